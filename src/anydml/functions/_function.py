"""The definition of an array function, from which every library's calls of it are made.

A call has one normalized form, `Call`: operands, and attributes by the kernel's names. A function's
`prepare` is the only place that knows the user's arguments; everything else works on calls. Its
rules are written with the array functions and with operations that every library has (`Library`),
so they hold for each library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np

from anydml.core.program import Dynamic
from anydml.functions import _engine
from anydml.functions._arguments import type_named
from anydml.ops._fields import Role

Array = Any
"""An array of a library, which may be traced."""
Attributes = Mapping[str, Any]
"""The attributes of a call by name, in the order of `FunctionSpec.attributes`."""

Kind = Literal["size", "sizes", "integer", "integers", "flag", "word", "type", "number"]
"""The kind of an attribute. A size may be a symbol while a library traces; an integer may not."""


class Library(Protocol):
    """The operations of an array library that functions and their rules use.

    Arrays have ``shape``, ``ndim``, ``dtype``, arithmetic, comparison and indexing.
    """

    knows_modes: bool
    """Whether kernels get all modes of indices; else only whether they clamp."""

    def call(self, spec: FunctionSpec, operands: Sequence[Any], attributes: Attributes) -> Any:
        """Call an array function on normalized operands; return a sequence of all results."""

    # ---- operands and arguments

    def array(self, value: Any, name: str, like: Array | None = None) -> Array:
        """Convert an operand to an array; numbers and lists go where `like` is."""

    def indices(self, value: Any, like: Array, name: str = "indices") -> Array:
        """Convert an operand of integers to an array where `like` is."""

    def same_type(self, value: Any, like: Array, name: str, like_name: str = "x") -> Array:
        """Convert an operand that must have the type of `like`."""

    def promoted(self, values: Sequence[Any], name: str) -> list[Array]:
        """Convert the members of an operand to the type that the library promotes theirs to."""

    def value_type(self, dtype: Any) -> Any:
        """Return the library's own name of the type that `cast` converts to."""

    def index_type(self, dtype: Any, x: Array, sizes: Sequence[Any]) -> Any:
        """Return the type of indices into axes of these sizes; the library's default for None."""

    def limits(self, kind: Any) -> Any:
        """Return an index type's ``min``, ``max`` and ``dtype``, as `numpy.iinfo` has them."""

    # ---- operations

    def broadcast_shapes(self, *shapes: Sequence[Any]) -> tuple[Any, ...]:
        """Return the shape that these are broadcast to."""

    def broadcast_to(self, x: Array, shape: Sequence[Any]) -> Array:
        """Repeat an array along new axes and axes of size 1."""

    def reshape(self, x: Array, shape: Sequence[Any]) -> Array:
        """Return the same elements in another shape, in row-major order."""

    def moveaxis(self, x: Array, source: Sequence[int], target: Sequence[int]) -> Array:
        """Move axes to other positions."""

    def zeros(self, shape: Sequence[Any], like: Array) -> Array:
        """Return zeros of the type of `like`."""

    def arange(self, count: Any, like: Array) -> Array:
        """Return 0 to `count` - 1 in a type of positions: that of `like` where it is one."""

    def positions(self, x: Array) -> Array:
        """Convert indices to a type of positions (int64 where the library has it)."""

    def is_uint64(self, x: Array) -> bool:
        """Whether `positions` may make large indices negative."""

    def searchsorted(self, x: Array, values: Array) -> Array:
        """Find the positions of values in a sorted array, before elements that equal them."""

    def where(self, condition: Array, x: Any, y: Any) -> Array:
        """Choose elements of one or the other."""

    def clip(self, x: Array, low: Any, high: Any) -> Array:
        """Limit elements to a range; None means no limit."""

    def stack(self, arrays: Sequence[Array], axis: int) -> Array:
        """Join arrays along a new axis."""

    def concatenate(self, arrays: Sequence[Array], axis: int) -> Array:
        """Join arrays by the library's own operation."""

    def flip(self, x: Array, axis: int) -> Array:
        """Reverse an axis."""

    def place(self, x: Array, shape: Sequence[Any], axis: int, start: Any, step: int) -> Array:
        """Return zeros of a shape with `x` along an axis, every `step` elements from `start` on."""

    def sum(self, x: Array, axes: Sequence[int]) -> Array:
        """Add up axes; without axes, return `x` itself."""

    def is_real_or_complex(self, x: Array) -> bool:
        """Whether an array has a gradient: floating-point or complex elements."""

    def adjoint_weight(self, x: Array) -> Array:
        """Return the factor of gradients, where `x` is the factor of tangents."""


class MovingLibrary(Library, Protocol):
    """The operations that compose a function of operations that move elements."""

    def take(self, x: Array, positions: Any, axis: int) -> Array:
        """Return the slices at positions inside the axis."""

    def fill(self, x: Array, axis: int, size: int, value: Any) -> Array:
        """Return an array like `x` with another size on an axis, and one value everywhere."""

    def repeat(self, x: Array, count: int, axis: int) -> Array:
        """Repeat `x` along an axis."""

    def numbers(self, x: Array, axis: int) -> Array:
        """Return 0 to the size of an axis, less 1, along that axis; size 1 on the others."""


class KernelLibrary(Library, Protocol):
    """A library that calls kernels itself: in memory, or in programs that it compiles."""

    in_memory: bool
    """Whether sizes and values are known when a kernel is called (`run_measured`)."""

    def run(
        self,
        operator: _engine.OperatorClass,
        operands: Sequence[Array],
        outputs: Sequence[tuple[tuple[Any, ...], Any]],
        attributes: Attributes,
        axes: Sequence[int],
        scratch: bool,
    ) -> list[Array]:
        """Call an operator's kernel.

        Parameters
        ----------
        operator : descriptor class
            The operator.
        operands : sequence of arrays
            The inputs, in natural form.
        outputs : sequence of (shape, type)
            The outputs.
        attributes : mapping
            The kernel's attributes.
        axes : sequence of int
            The axes of the first operand that indices in the second one point into.
        scratch : bool
            Whether the outputs are intermediate results of the call.
        """

    def run_measured(
        self,
        operator: _engine.OperatorClass,
        x: Array,
        attributes: Attributes,
        kind: Any,
        size: int,
        fill: int,
    ) -> Array:
        """Call a kernel for as many rows as it finds, or for `size` rows, of a type."""

    def kept(self, x: Array) -> Array:
        """Return indices that do not change between two kernels."""

    def as_numbers(self, x: Array) -> Array:
        """Convert bools to uint8, which kernels that compute take; others stay as they are."""

    def as_bools(self, x: Array) -> Array:
        """Convert results of `as_numbers` back."""

    def full(self, shape: Sequence[int], value: Any, like: Array) -> Array:
        """Return one value everywhere, of the type of `like`."""

    def take(self, x: Array, positions: Array, axis: int) -> Array:
        """Return the slices at positions inside the axis."""

    def is_nonzero(self, x: Array) -> Array:
        """Find the complex numbers that are not zero; subnormal ones are not."""

    def wide_types(self) -> AbstractContextManager[Any]:
        """Return a context that allows 64-bit types, if the library may be set up without them."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of a call: a value that is not an array."""

    name: str
    kind: Kind
    default: int | None = None


class Call(NamedTuple):
    """A normalized call.

    Attributes
    ----------
    operands : sequence of arrays
        The operands; the members of a list in place of it.
    attributes : dict
        The attributes by name, all of them and in order.
    is_scalar : bool
        Whether the results, of one element, have no axes.
    """

    operands: Sequence[Array]
    attributes: dict[str, Any]
    is_scalar: bool = False


@dataclass(frozen=True)
class Saved:
    """The operands and results that the rules of derivatives read.

    Attributes
    ----------
    operands, results : tuple
        The arrays that the rules need (`Derivatives.saves`), None in place of the others.
    shapes : tuple of tuple
        The shapes of the operands.
    dtypes : tuple
        The types of the operands.
    attributes : mapping
        The attributes of the call.
    """

    operands: tuple[Array | None, ...]
    results: tuple[Array | None, ...]
    shapes: tuple[tuple[Any, ...], ...]
    dtypes: tuple[Any, ...]
    attributes: Attributes

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


def _no_values(attributes: Attributes) -> tuple[Sequence[int], Sequence[int]]:
    return (), ()


@dataclass(frozen=True)
class Derivatives:
    """The derivatives of a function.

    Attributes
    ----------
    gradient : callable
        ``gradient(lib, saved, cotangents, needs)``: the cotangents of the operands; `needs` says
        which are wanted.
    tangent : callable
        ``tangent(lib, saved, tangents)``: the tangents of the results; None for one that is zero.
    saves : callable
        The positions of the operands and of the results whose values the rules need, by attributes.
    of : tuple of int
        The differentiable operands, if they are not a list.
    """

    gradient: Callable[..., Sequence[Array | None]]
    tangent: Callable[..., Sequence[Array | None]]
    saves: Callable[[Attributes], tuple[Sequence[int], Sequence[int]]] = _no_values
    of: tuple[int, ...] = (0,)


def call_kernel(
    lib: KernelLibrary,
    spec: FunctionSpec,
    operands: Sequence[Array],
    attributes: Attributes,
    scratch: bool = False,
) -> Sequence[Array]:
    """Call the function's kernel once."""
    inferred = spec.infer(operands, attributes)
    outputs = spec.outputs(inferred.outputs, operands, attributes)
    return lib.run(spec.operator, operands, outputs, attributes, inferred.coordinates, scratch)


def call_with_numbers(
    lib: KernelLibrary, spec: FunctionSpec, operands: Sequence[Array], attributes: Attributes
) -> Sequence[Array]:
    """Call a kernel that computes with the first operand, which may hold bools."""
    first, *others = operands
    numbers = lib.as_numbers(first)
    results = call_kernel(lib, spec, (numbers, *others), attributes)
    if numbers is first:
        return results
    pairs = zip(results, spec.results, strict=True)
    return [lib.as_bools(y) if source in spec.operands else y for y, source in pairs]


@dataclass(eq=False)
class FunctionSpec:
    """The definition of one array function.

    Attributes
    ----------
    operator : descriptor class
        The operator, whose `infer` is the shape rule; the function has the name of its kernel.
    operands : tuple of str
        The arguments that are arrays, or the one that is a list of them.
    attributes : tuple of Attribute
        The attributes of a call: the kernel's in its own order, then those of the function alone.
    prepare : callable
        ``prepare(lib, *arguments)``: checks the function's arguments, and returns a `Call`.
    as_arrays : callable
        ``as_arrays(lib, *arguments)``: the operands as arrays of the library, which is the first
        thing that `prepare` does; for a library that compiles the rest.
    batch : callable
        ``batch(lib, operands, dims, size, attributes)``: the call with one more axis, at `dims` of
        the operands (None: the same for the whole batch); returns results and their axes.
    derivatives : Derivatives or None
        Its derivatives, if it has any.
    results : tuple of str
        For each result, the operand or the attribute that names its type.
    result_class : class or None
        The class of several results.
    bounds : callable
        The conditions on sizes that a valid call meets, from operands and attributes; for a tracer
        that does not know the sizes.
    program : callable
        ``program(lib, spec, operands, attributes)``: the results by calls of kernels.
    blocks : Composed, Chunking or callable
        The results from blocks (`anydml.functions._blocks`), or from a library's own operations.
    check : callable
        Refuses types that the function does not take; takes operands and attributes.
    value_checks : mapping
        By the position of an operand, a check of values that the kernel takes and the function does
        not; it gets the operand in host memory, or a part of it.
    part_of : str or None
        The function of the same module that this is a part of; None if it is a function itself.
    """

    operator: _engine.OperatorClass
    operands: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    prepare: Callable[..., Call]
    as_arrays: Callable[..., tuple[Array, ...]]
    batch: Callable[..., tuple[Sequence[Array], Sequence[int]]]
    derivatives: Derivatives | None = None
    results: tuple[str, ...] = ("x",)
    result_class: Any = None
    bounds: Callable[[Sequence[Array], Attributes], Sequence[Any]] = lambda operands, a: ()
    program: Callable[..., Sequence[Array]] = call_kernel
    blocks: Any = None
    check: Callable[[Sequence[Array], Attributes], None] = lambda operands, a: None
    value_checks: Mapping[int, Callable[[Array], None]] = field(default_factory=dict)
    part_of: str | None = None

    def __post_init__(self) -> None:
        self.name: str = self.operator.KERNEL
        self.lists_operands, self.lists_results = (
            any(info.many and info.role is role for info in self.operator.tensor_fields())
            for role in (Role.INPUT, Role.OUTPUT)
        )
        self.attribute_names = tuple(attribute.name for attribute in self.attributes)
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
        """The public function."""
        module = sys.modules[self.prepare.__module__]
        found: Callable[..., Any] = getattr(module, self.part_of or self.name)
        return found

    def operand_name(self, i: int) -> str:
        """Return the name of an operand in messages."""
        return f"{self.operands[0]}[{i}]" if self.lists_operands else self.operands[i]

    def named(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return attributes by name."""
        return dict(zip(self.attribute_names, values, strict=True))

    def infer(self, operands: Sequence[Array], attributes: Attributes) -> _engine.Inferred:
        """Apply the operator's shape rule.

        Raises
        ------
        ArgumentError
            A rule that operands or attributes break.
        """
        for name in self._types:
            if not isinstance(attributes[name], np.dtype):
                attributes = {**attributes, name: type_named(attributes[name])}
        return _engine.infer(self.operator, operands, attributes)

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
    return {name: spec for name, spec in SPECS.items() if spec.part_of is None}
