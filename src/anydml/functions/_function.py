"""The definition of an array function, from which every library's calls of it are made.

A call has one normalized form, `Call`: operands, and attributes by the kernel's names. A function's
`prepare` is the only place that knows the user's arguments; everything else works on calls. Its
rules are written with the array functions and with operations that every library has (`_library`),
so they hold for each library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from anydml._native import native
from anydml.core.program import Dynamic, Inferred
from anydml.functions._arguments import type_named
from anydml.functions._infer import OperatorClass, infer
from anydml.functions._library import Array, call_kernel
from anydml.ops._fields import Role

Attributes = Mapping[str, Any]
"""The attributes of a call by name, in the order of `FunctionSpec.kinds`."""

Kind = Literal["size", "sizes", "integer", "integers", "flag", "word", "type", "number"]
"""The kind of an attribute. A size may be a symbol while a library traces; an integer may not."""


Kinds = Mapping[str, Kind | tuple[Kind, int]]
"""The kinds of attributes by name; one that may be left out has a default."""


class Attribute(NamedTuple):
    """An attribute of a call: a value that is not an array."""

    name: str
    kind: Kind
    default: int | None = None


Call = tuple[Sequence[Array], dict[str, Any], bool]
"""A normalized call: the operands, with the members of a list in place of it; the attributes by
name, all of them and in order; and whether the results, of one element, have no axes."""


@dataclass(frozen=True)
class Saved:
    """The operands and results that the rules of derivatives read."""

    operands: tuple[Array, ...]
    """The operands that the rules need (`Derivatives.saves`), None in place of the others."""
    results: tuple[Array, ...]
    """The results, likewise."""
    shapes: tuple[tuple[Any, ...], ...]
    """The shapes of the operands."""
    dtypes: tuple[Any, ...]
    """The types of the operands."""
    attributes: Attributes
    """The attributes of the call."""

    def values(self) -> list[Array]:
        """Return the arrays that are kept."""
        return [x for x in (*self.operands, *self.results) if x is not None]

    def with_values(self, values: Sequence[Array]) -> Saved:
        """Replace the arrays that are kept."""
        left = iter(values)
        operands, results = (
            tuple(None if x is None else next(left) for x in side)
            for side in (self.operands, self.results)
        )
        return replace(self, operands=operands, results=results)


@dataclass(frozen=True)
class Derivatives:
    """The derivatives of a function."""

    gradient: Callable[..., Sequence[Array | None]]
    """``gradient(lib, saved, cotangents, needs)``: the cotangents of the operands; `needs` says
    which are wanted."""
    tangent: Callable[..., Sequence[Array | None]]
    """``tangent(lib, saved, tangents)``: the tangents of the results; None for one that is zero."""
    saves: Callable[[Attributes], tuple[Sequence[int], Sequence[int]]] = lambda attributes: ((), ())
    """The positions of the operands and of the results whose values the rules need."""
    of: tuple[int, ...] = (0,)
    """The differentiable operands, if they are not a list."""


@dataclass(eq=False)
class FunctionSpec:
    """The definition of one array function."""

    operator: OperatorClass
    """The operator, whose `infer` is the shape rule; the function has the name of its kernel."""
    operands: tuple[str, ...]
    """The arguments that are arrays, or the one that is a list of them."""
    kinds: Kinds
    """The attributes of a call: the kernel's in its own order, then those of the function alone."""
    prepare: Callable[..., Call]
    """``prepare(lib, *arguments)``: checks the function's arguments, and returns a `Call`."""
    batch: Callable[..., tuple[Sequence[Array], Sequence[int]]]
    """``batch(lib, operands, dims, size, attributes)``: the call with one more axis, at `dims` of
    the operands (None: the same for the whole batch); returns results and their axes."""
    as_arrays: Callable[..., tuple[Array, ...]] = lambda lib, x, *others: (lib.array(x, "x"),)
    """``as_arrays(lib, *arguments)``: the operands as arrays of the library, which is the first
    thing that `prepare` does; for a library that compiles the rest."""
    derivatives: Derivatives | None = None
    results: tuple[str, ...] = ("x",)
    """For each result, the operand or the attribute that names its type."""
    result_class: Any = None
    """The class of several results."""
    bounds: Callable[[Sequence[Array], Attributes], Sequence[Any]] = lambda operands, a: ()
    """The conditions on sizes that a valid call meets, from operands and attributes; for a tracer
    that does not know the sizes."""
    program: Callable[..., Sequence[Array]] = call_kernel
    """``program(lib, spec, operands, attributes)``: the results by calls of kernels."""
    blocks: Any = None
    """The results from blocks (`_blocks`), or by a library's own operations."""
    check: Callable[[Sequence[Array], Attributes], None] = lambda operands, a: None
    """Refuses types that the function does not take; takes operands and attributes."""
    value_checks: Mapping[int, Callable[[Array], None]] = field(default_factory=dict)
    """By the position of an operand, a check of values that the kernel takes and the function does
    not; it gets the operand in host memory, or a part of it."""

    def __post_init__(self) -> None:
        self.name: str = self.operator.KERNEL
        # The whole call for plain NumPy arrays, ``quick(out, *arguments)``. It returns None where
        # anything is unusual or wrong, and has done nothing then.
        self.quick: Callable[..., Any] = native.function_call(self.name, self.result_class)
        self.lists_operands, self.lists_results = (
            any(info.many and info.role is role for info in self.operator.tensor_fields())
            for role in (Role.INPUT, Role.OUTPUT)
        )
        self.attributes = tuple(
            Attribute(name, kind) if isinstance(kind, str) else Attribute(name, *kind)
            for name, kind in self.kinds.items()
        )
        self._positions = {name: i for i, name in enumerate(self.operands)}
        self._types = tuple(a.name for a in self.attributes if a.kind == "type")
        # The names of results, of which there are several: fields, or none of a list.
        self.result_names: tuple[str, ...] = getattr(self.result_class, "_fields", ())
        self.writes_over = bool(getattr(self.blocks, "writes", False))
        self.is_single = not self.lists_results and not self.result_names
        self.calls: dict[type, Callable[[tuple[Any, ...], Any], Any]] = {}
        SPECS[self.name] = self

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The public function, which has the name of its module."""
        module = self.prepare.__module__
        found: Callable[..., Any] = getattr(sys.modules[module], module.rpartition(".")[2])
        return found

    def operand_name(self, i: int) -> str:
        """Return the name of an operand in messages."""
        return f"{self.operands[0]}[{i}]" if self.lists_operands else self.operands[i]

    def named(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return attributes by name."""
        return dict(zip(self.kinds, values, strict=True))

    def infer(self, operands: Sequence[Array], attributes: Attributes) -> Inferred:
        """Apply the operator's shape rule; raise `ArgumentError` for a rule that is broken."""
        for name in self._types:
            if not isinstance(attributes[name], np.dtype):
                attributes = {**attributes, name: type_named(attributes[name])}
        return infer(self.operator, operands, attributes)

    def outputs(
        self, found: Sequence[Any], operands: Sequence[Array], attributes: Attributes
    ) -> list[tuple[tuple[Any, ...], Any]]:
        """Return shapes and types of the results; a size is `Dynamic` where data decide it."""
        if self.lists_results:
            return [(spec.shape, operands[0].dtype) for spec in found]
        outputs = []
        for spec, source in zip(found[-len(self.results) :], self.results, strict=True):
            shape = spec.shape
            if "size" in attributes:
                size = attributes["size"]
                shape = tuple(size if isinstance(n, Dynamic) and size >= 0 else n for n in shape)
            operand = self._positions.get(source)
            kind = attributes[source] if operand is None else operands[operand].dtype
            outputs.append((shape, kind))
        return outputs

    def outputs_of(
        self, operands: Sequence[Array], attributes: Attributes
    ) -> list[tuple[tuple[Any, ...], Any]]:
        """Return shapes and types of the results of a call."""
        return self.outputs(self.infer(operands, attributes).outputs, operands, attributes)

    def saved(
        self, operands: Sequence[Array], results: Sequence[Array], attributes: Attributes
    ) -> Saved:
        """Keep what derivatives of a call need."""
        assert self.derivatives is not None
        kept = self.derivatives.saves(attributes)
        return Saved(
            tuple(x if i in kept[0] else None for i, x in enumerate(operands)),
            tuple(y if i in kept[1] else None for i, y in enumerate(results)),
            tuple(tuple(x.shape) for x in operands),
            tuple(x.dtype for x in operands),
            attributes,
        )

    def finished(self, results: Sequence[Array]) -> Any:
        """Return results as the user gets them."""
        if self.result_class is not None:
            return self.result_class(*results)
        return tuple(results) if self.lists_results else results[0]


SPECS: Final[dict[str, FunctionSpec]] = {}
"""The definitions of array functions and of their parts, by name."""


def function_specs() -> dict[str, FunctionSpec]:
    """Return the definitions of the public array functions, by name."""
    return {name: spec for name, spec in SPECS.items() if spec.function.__name__ == name}
