"""The examples that the operators' pages print, as the example models have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from anydml.models.commands import Dispatch, Print
from anydml.models.loader import load_model
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.tensor import TensorDesc
from support.descriptors import with_tensors

MODELS = Path(__file__).parents[2] / "examples" / "models"


@dataclass(frozen=True)
class Example:
    """One example of a page.

    Attributes
    ----------
    name : str
        The model's and the dispatchable's.
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
def page_examples() -> list[Example]:
    """All examples of all pages."""
    found = []
    for path in sorted(MODELS.glob("*.out")):
        model = load_model(path.with_suffix(".json"))
        lines = iter(re.findall(r"Resource '\w+': (.*)", path.read_text()))
        printed = {
            (at, command.resource): [*map(float, next(lines).split(","))]
            for at, command in model.commands.items()
            if isinstance(command, Print)
        }
        written: dict[str, Any] = {}
        for at, command in model.commands.items():
            if not isinstance(command, Dispatch):
                continue
            desc = model.dispatchables[command.dispatchable].desc
            arrays: dict[Role, dict[str, Any]] = {Role.INPUT: {}, Role.OUTPUT: {}}
            for info in desc.bind_points():
                bound = command.bindings[info.name]
                examples = []
                for (_, tensor), one in zip(
                    info.paths(getattr(desc, info.attribute)), bound, strict=True
                ):
                    kind = tensor.data_type.numpy
                    resource = model.resources[one.name]
                    flat: Any = resource.elements(resource.allocate())
                    if info.role is Role.OUTPUT:
                        later = [key for key in printed if key[0] > at and key[1] == one.name]
                        written[one.name] = np.array(printed[min(later)]).astype(kind)
                    flat = written.get(one.name, flat)
                    strides = [stride * kind.itemsize for stride in tensor.element_strides]
                    examples.append(np.ndarray(tensor.sizes, kind, flat, 0, strides).copy("C"))
                arrays[info.role][info.name] = examples if info.many else examples[0]
            name = f"{path.stem}: {command.dispatchable}"
            packed = with_tensors(desc, lambda t, _: TensorDesc(t.data_type, t.sizes))
            found.append(Example(name, packed, arrays[Role.INPUT], arrays[Role.OUTPUT]))
    return found


def page_example(name: str) -> Any:
    """The descriptor of the first example on an operator's page."""
    return next(example.desc for example in page_examples() if name == example.desc.NAME)
