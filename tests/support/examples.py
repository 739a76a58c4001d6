"""The examples that DirectML's pages print, with arrays as a caller binds them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from anydml import Descriptor
from anydml.ops._examples import examples_of
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS


@dataclass(frozen=True)
class PageExample:
    """One example of a page.

    Attributes
    ----------
    name : str
        The operator's and the example's number.
    desc : Descriptor
        Its descriptor, with packed tensors.
    inputs, outputs : dict
        Arrays by the page's names; a list for a tensor list.
    """

    name: str
    desc: Descriptor
    inputs: dict[str, Any]
    outputs: dict[str, Any]

    def __str__(self) -> str:
        return self.name


@cache
def page_examples() -> list[PageExample]:
    """The examples of all operators whose pages print outputs."""
    return [
        PageExample(
            f"{kind.NAME} {i}",
            example.desc,
            _by_field(example.desc, Role.INPUT, example.inputs),
            _by_field(example.desc, Role.OUTPUT, example.outputs),
        )
        for kind in dict.fromkeys(OPERATORS.values())
        for i, example in enumerate(examples_of(kind), 1)
        if example.outputs
    ]


def _by_field(desc: Descriptor, role: Role, arrays: dict[str, Any]) -> dict[str, Any]:
    fields = {}
    for info in desc.bind_points(role):
        values = [arrays[path] for path, _ in desc.paths(info)]
        fields[info.name] = values if info.many else values[0]
    return fields


def page_example(name: str) -> Descriptor:
    """The descriptor of the first example on an operator's page."""
    return next(examples_of(OPERATORS[name])).desc
