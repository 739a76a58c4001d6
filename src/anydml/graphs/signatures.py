"""Functions of `GraphBuilder`, made from the operators' definitions: signatures and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any, Final

from anydml.core._json import did_you_mean
from anydml.graphs.directmlx import defaults_of, functions, names_of
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import FieldInfo, Role
from anydml.ops._registry import operator_meant

_HINTS: Final = {
    "output_sizes": "Sequence[int] | None",
    "output_data_type": "DataType | str | None",
}
_AXIS_SIZES: Final = {"output_axis_sizes": "Sequence[int] | None"}


@cache
def function_named(name: str) -> Callable[..., Any]:
    """Return the function of a name, which takes a builder first.

    Raises
    ------
    AttributeError
        There is none; the message suggests one.
    """
    kinds = functions().get(name.removesuffix("_"))  # `if_`, as `if` is a keyword
    if kinds is None:
        meant = operator_meant(name)  # `relu` is ACTIVATION_RELU
        hint = f"; did you mean {meant.lower()!r}?" if meant else did_you_mean(name, functions())
        raise AttributeError(f"GraphBuilder has no function {name!r}{hint}")

    def function(self: Any, /, *inputs: Any, name: str = "", **arguments: Any) -> Any:
        return self._call(kinds, *inputs, name=name, **arguments)

    function.__name__, function.__qualname__ = name, f"GraphBuilder.{name}"
    function.__doc__ = _docstring(kinds)
    vars(function)["__signature__"] = _signature(kinds)
    return function


def _docstring(kinds: Sequence[type[Descriptor]]) -> str:
    meaning = inspect.cleandoc(kinds[-1].__doc__ or "").partition("\nParameters\n")[0].strip()
    names = " or ".join(kind.NAME for kind in kinds)
    fields = ", ".join(f"`anydml.{kind.__name__}`" for kind in kinds)
    return (
        f"Add {names} to the graph.\n\n{meaning}\n\n"
        f"The fields are those of {fields}; outputs follow from them. An argument that is None is "
        "left out."
    )


def _signature(kinds: Sequence[type[Descriptor]]) -> Signature:
    """The signature of all versions: what only some of them require is optional."""
    positional: dict[str, Parameter] = {}
    keywords: dict[str, Parameter] = {}
    seen: dict[str, int] = {}
    for kind in kinds:
        for info in kind.fields():
            name = names_of(info)[-1]
            seen[name] = seen.get(name, 0) + 1
            if info.role is Role.INPUT:
                positional[name] = _tensor(name, info, positional.get(name))
            elif info.role is Role.OUTPUT and info.optional:
                keywords[name] = _keyword(name, "bool", False)
            elif info.role is Role.ATTRIBUTE and info.counts is None:
                keywords[name] = _attribute(name, kind, info, keywords.get(name))
    for name, count in seen.items():
        for found in (positional, keywords):
            if name in found and count < len(kinds) and found[name].default is Parameter.empty:
                found[name] = _optional(found[name])
    return Signature([*_ordered(positional.values()), *keywords.values(), *_further(kinds)])


def _ordered(inputs: Any) -> Iterator[Parameter]:
    """Input tensors in the page's order; those behind an optional one have a default, too."""
    yield Parameter("self", Parameter.POSITIONAL_ONLY)
    needed = True
    for item in inputs:
        needed = needed and item.default is Parameter.empty
        yield item if needed else _optional(item)


def _tensor(name: str, info: FieldInfo, before: Parameter | None) -> Parameter:
    one = "Sequence[Expression]" if info.many else "Expression"
    optional = info.optional or (before is not None and before.default is None)
    item = Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=one)
    return _optional(item) if optional else item


def _attribute(
    name: str, kind: type[Descriptor], info: FieldInfo, before: Parameter | None
) -> Parameter:
    types = {item.name: item.type for item in dataclasses.fields(kind)}
    item = _keyword(name, types[info.attribute], defaults_of(kind).get(name, Parameter.empty))
    if before is not None and before.default is not Parameter.empty:
        return before
    return _optional(item) if item.default is None or info.optional else item


def _further(kinds: Sequence[type[Descriptor]]) -> Iterator[Parameter]:
    splits = any(info.many for kind in kinds for info in kind.tensor_fields(Role.OUTPUT))
    for name, annotation in {**_HINTS, **(_AXIS_SIZES if splits else {})}.items():
        yield _keyword(name, annotation, None)
    yield _keyword("name", "str", "")


def _keyword(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _optional(item: Parameter) -> Parameter:
    annotation = str(item.annotation)
    if "None" not in annotation:
        annotation = f"{annotation} | None"
    return item.replace(default=None, annotation=annotation)
