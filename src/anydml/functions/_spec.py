"""What an array function is to the integrations with array libraries: one `FunctionSpec` each.

An integration turns a specification into operators of its library, without naming a function. The
rules of a specification are written with the array functions and with a few operations that every
array library has (`Namespace`), so they hold for each of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal, Protocol, TypeVar

from anydml.core.program import Dynamic
from anydml.functions import _engine

Array = Any
"""An array of the integration's library, be it traced."""
Function = TypeVar("Function", bound=Callable[..., Any])

Kind = Literal["size", "sizes", "integer", "integers", "flag", "word", "type", "number"]
"""What an attribute is. A size may be a symbol while a library traces; an integer may not."""


class Namespace(Protocol):
    """What rules need of a library besides the array functions.

    Arrays have ``shape``, ``ndim``, ``dtype``, arithmetic, comparison and indexing.
    """

    def call(self, spec: FunctionSpec, operands: Sequence[Any], attributes: tuple[Any, ...]) -> Any:
        """Call an array function on normalized operands; all results as a sequence."""

    def array(self, value: Any, name: str, like: Array | None = None) -> Array:
        """An operand as the library's array; of numbers and lists, where `like` is."""

    def indices(self, value: Any, like: Array, name: str = "indices") -> Array:
        """An operand of integers as an array where `like` is."""

    def same_type(self, value: Any, like: Array, name: str, like_name: str = "x") -> Array:
        """An operand that must have the type of `like`."""

    def value_type(self, dtype: Any) -> Any:
        """The type that `cast` is given, as the library names it."""

    def index_type(self, dtype: Any, x: Array, sizes: Sequence[Any]) -> Any:
        """The type of the indices into axes of these sizes; the library's own for None."""

    def limits(self, kind: Any) -> Any:
        """An index type's ``min``, ``max`` and ``dtype``, as `numpy.iinfo` has them."""

    def promoted(self, values: Sequence[Any], name: str) -> list[Array]:
        """The members of an operand as the one type that the library promotes theirs to."""

    def broadcast_shapes(self, *shapes: Sequence[Any]) -> tuple[Any, ...]:
        """The shape that these are broadcast to."""

    def broadcast_to(self, x: Array, shape: Sequence[Any]) -> Array:
        """Repeat an array along new axes and axes of size 1."""

    def reshape(self, x: Array, shape: Sequence[Any]) -> Array:
        """The same elements in another shape, in row-major order."""

    def moveaxis(self, x: Array, source: Sequence[int], target: Sequence[int]) -> Array:
        """Move axes to other positions."""

    def zeros(self, shape: Sequence[Any], like: Array) -> Array:
        """Zeros of the type of `like`."""

    def arange(self, count: Any, like: Array) -> Array:
        """0 to `count` - 1 in a type of positions, the one of `like` where that is one."""

    def positions(self, x: Array) -> Array:
        """Indices in a type of positions (int64 where the library has it)."""

    def is_uint64(self, x: Array) -> bool:
        """Whether `positions` may make large indices negative."""

    def searchsorted(self, x: Array, values: Array) -> Array:
        """Where values belong in a sorted array of positions: in front of those that equal them."""

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
        """Zeros of a shape with `x` along an axis, at every `step` elements from `start` on."""

    def sum(self, x: Array, axes: Sequence[int]) -> Array:
        """Add up axes; of no axes, `x` itself."""

    def is_real_or_complex(self, x: Array) -> bool:
        """Whether an array has a gradient: floating-point or complex elements."""

    def adjoint_weight(self, x: Array) -> Array:
        """What multiplies gradients where `x` multiplies tangents: the conjugate in PyTorch."""


class MovingNamespace(Namespace, Protocol):
    """What rules need that compose a function of operations that move elements."""

    def take(self, x: Array, positions: Any, axis: int) -> Array:
        """The slices at positions, in an array of NumPy."""

    def fill(self, x: Array, axis: int, size: int, value: Any) -> Array:
        """Like `x` with another size on an axis, and one value everywhere."""

    def repeat(self, x: Array, count: int, axis: int) -> Array:
        """Repeat `x` along an axis."""

    def numbers(self, x: Array, axis: int) -> Array:
        """0 to the size of an axis, less 1, along that axis; of size 1 on the others."""


class Programs(Namespace, Protocol):
    """What rules need that make calls of kernels in programs that a library compiles."""

    def run(
        self,
        kernel: str,
        operands: Sequence[Array],
        outputs: Sequence[tuple[tuple[int, ...], Any]],
        attributes: Mapping[str, Any],
        axes: Sequence[int] = (),
    ) -> list[Array]:
        """Call a kernel; indices in the second operand point into these axes of the first."""

    def astype(self, x: Array, kind: Any) -> Array:
        """The elements as another type."""

    def wide_types(self) -> AbstractContextManager[Any]:
        """Allow 64-bit types, where the library may be set up without them."""

    def full(self, shape: Sequence[int], value: Any, kind: Any) -> Array:
        """One value everywhere."""

    def take(self, x: Array, positions: Array, axis: int) -> Array:
        """The slices at positions that are inside."""

    def divide(self, sums: Array, counts: Array) -> Array:
        """Quotients in the type of `sums`; integers are rounded down."""

    def is_nonzero(self, x: Array) -> Array:
        """Which complex numbers are not zero; subnormal ones are not."""


@dataclass(frozen=True)
class Attribute:
    """One attribute of a call: a value that is not an array."""

    name: str
    kind: Kind
    default: int | None = None


Finish = Callable[[Any, Sequence[Array]], Sequence[Array]]
"""Makes the user's results of a call's: takes the namespace and the results."""

Prepared = tuple[tuple[Array, ...], tuple[Any, ...], Finish | None]
"""A call in normalized terms: operands (the members of a list stand for it), attributes, and what
is to be done with the results."""


@dataclass(frozen=True)
class Saved:
    """What the rules of derivatives get in place of a call's operands and results.

    Attributes
    ----------
    operands, results : tuple
        Arrays where the specification says that the rules need them (`FunctionSpec.saves`), None
        elsewhere.
    shapes : tuple of tuple
        The shapes of the operands.
    dtypes : tuple
        The types of the operands.
    attributes : tuple
        In the order of the specification.
    """

    operands: tuple[Array | None, ...]
    results: tuple[Array | None, ...]
    shapes: tuple[tuple[Any, ...], ...]
    dtypes: tuple[Any, ...]
    attributes: tuple[Any, ...]

    def values(self) -> list[Array]:
        """The arrays that are kept."""
        return [x for x in (*self.operands, *self.results) if x is not None]

    def with_values(self, values: Sequence[Array]) -> Saved:
        """The same with other arrays in place of those that are kept."""
        left = iter(values)
        operands, results = (
            tuple(None if x is None else next(left) for x in side)
            for side in (self.operands, self.results)
        )
        return replace(self, operands=operands, results=results)


def call_kernel(
    xp: Programs, spec: FunctionSpec, operands: Sequence[Array], attributes: Any, **more: Any
) -> list[Array]:
    """One call of the function's kernel; `more` are attributes that only the kernel has."""
    kernel_attributes = {**spec.inferred(operands, spec.attribute_values(attributes)), **more}
    axes = _engine.infer(spec.operator, operands, kernel_attributes).coordinates
    shapes = spec.shapes(operands, attributes)
    types = spec.types(operands, attributes, len(shapes))
    outputs = [*zip(shapes, types, strict=True)]
    return xp.run(spec.operator.KERNEL, operands, outputs, kernel_attributes, axes)


@dataclass(eq=False)
class FunctionSpec:
    """One array function.

    Attributes
    ----------
    name : str
        The function's name.
    operator : descriptor class
        The operator, whose `infer` is the shape rule.
    operands : tuple of str
        The arguments that are arrays.
    attributes : tuple of Attribute
        The attributes of a call.
    prepare : callable
        ``prepare(namespace, *arguments)``, with all arguments of `general` but ``out``: checks them
        and gives `Prepared`.
    as_arrays : callable
        ``as_arrays(namespace, *arguments)``: the operands as arrays of the library, which is the
        first that `prepare` does; for an integration that compiles what follows.
    arguments : callable
        The values of the kernel's native call from operands and attributes (types by their code),
        in its order; None where it has none.
    keywords : callable
        The function's own keyword arguments from the attributes.
    batch : callable
        ``batch(namespace, operands, dims, size, attributes)``: the call with one axis more, at
        `dims` of the operands (None: the same for the whole batch); results and their axes.
    tangent : callable or None
        ``tangent(namespace, saved, tangents)``: the tangents of the results; None for one that is
        zero. None: no result has one.
    gradient : callable or None
        ``gradient(namespace, saved, cotangents, needs)``: the cotangents of the operands; `needs`
        says which are asked for.
    saves : callable
        The operands and the results whose values `tangent` and `gradient` need, by attributes.
    result_types : tuple of (str or int)
        For each result the attribute that names its type, or the operand that has it.
    lists_operands, lists_results : bool
        Whether the operand, or the result, is a list of arrays.
    result_class : class or None
        Makes the user's result if there are several.
    inferred : callable
        What the shape rule gets, from operands and attributes by name.
    bounds : callable
        The conditions on sizes that a valid call meets, from operands and attributes; for a tracer
        that does not know the sizes.
    composed : callable or None
        ``composed(namespace, operands, attributes)``: the same results by the library's own
        operations, where these only move elements (`MovingNamespace`; of functions with a list of
        arrays, `Namespace`).
    program : callable
        ``program(namespace, spec, operands, attributes)``: the results by calls of the kernel
        (`Programs`).
    chunking : Chunking, callable or None
        How a call is made of calls on blocks (`anydml.functions._blocks`), or a rule as `composed`,
        for an array in blocks; None where `composed` does it.
    check : callable
        Refuses types that the function does not take, and attributes that do not fit them; takes
        operands and attributes.
    value_checks : mapping
        By the position of an operand what refuses values that the kernel takes; it gets the operand
        in host memory, or a part of it.
    moves : tuple of int
        The operands that have a gradient, where they are not a list.
    general : callable
        The function for arrays in memory, without its native call: takes the function's arguments,
        the operands first, and ``out``.
    calls : dict
        What calls the function on the arrays of a class, of the classes that were seen: takes the
        function's arguments as a tuple, in the order of `general`, and ``out``.
    """

    name: str
    operator: _engine.OperatorClass
    operands: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    prepare: Callable[..., Prepared]
    as_arrays: Callable[..., tuple[Array, ...]]
    arguments: Callable[[Sequence[Array], tuple[Any, ...]], tuple[Any, ...] | None]
    keywords: Callable[[tuple[Any, ...]], Mapping[str, Any]]
    batch: Callable[..., tuple[Sequence[Array], Sequence[int]]]
    tangent: Callable[..., Sequence[Array | None]] | None = None
    gradient: Callable[..., Sequence[Array | None]] | None = None
    saves: Callable[[tuple[Any, ...]], tuple[Sequence[int], Sequence[int]]] = lambda attributes: (
        (),
        (),
    )
    result_types: tuple[str | int, ...] = (0,)
    lists_operands: bool = False
    lists_results: bool = False
    result_class: Any = None
    inferred: Callable[[Sequence[Array], dict[str, Any]], Mapping[str, Any]] = (
        lambda operands, attribute_values: attribute_values
    )
    bounds: Callable[[Sequence[Array], tuple[Any, ...]], Sequence[Any]] = lambda operands, a: ()
    composed: Callable[..., Sequence[Array]] | None = None
    program: Callable[..., Sequence[Array]] = call_kernel
    chunking: Any = None
    check: Callable[[Sequence[Array], tuple[Any, ...]], None] = lambda operands, a: None
    value_checks: Mapping[int, Callable[[Array], None]] = field(default_factory=dict)
    moves: tuple[int, ...] = (0,)
    general: Callable[..., Any] = field(init=False)
    calls: dict[type, Callable[[tuple[Any, ...], Any], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        SPECS[self.name] = self

    def for_memory(self, function: Function) -> Function:
        """Note what runs on arrays in memory; a decorator."""
        self.general = function
        return function

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The public function; `general` is the one for arrays in memory."""
        found: Callable[..., Any] = getattr(sys.modules[self.general.__module__], self.name)
        return found

    def operand_name(self, i: int) -> str:
        """An operand as messages name it."""
        return f"{self.operands[0]}[{i}]" if self.lists_operands else self.operands[i]

    def attribute_values(self, attributes: tuple[Any, ...]) -> dict[str, Any]:
        """The attributes by name."""
        pairs = zip(self.attributes, attributes, strict=True)
        return {attribute.name: value for attribute, value in pairs}

    def shapes(
        self, operands: Sequence[Array], attributes: tuple[Any, ...]
    ) -> list[tuple[Any, ...]]:
        """The shapes of the results, by the operator's shape rule; `Dynamic` where data decide.

        Raises
        ------
        ArgumentError
            A rule that operands or attributes break.
        """
        kernel_attributes = self.inferred(operands, self.attribute_values(attributes))
        outputs = _engine.infer(self.operator, operands, kernel_attributes).outputs
        if not self.lists_results:
            outputs = outputs[len(outputs) - len(self.result_types) :]
        size = kernel_attributes.get("size", -1)
        return [
            tuple(size if isinstance(n, Dynamic) and size >= 0 else n for n in spec.shape)
            for spec in outputs
        ]

    def types(
        self, operands: Sequence[Array], attributes: tuple[Any, ...], count: int
    ) -> list[Any]:
        """The types of the results, as the library names them."""
        if self.lists_results:
            return [operands[0].dtype] * count
        values = self.attribute_values(attributes)
        return [
            operands[of].dtype if isinstance(of, int) else values[of] for of in self.result_types
        ]

    def saved(
        self, operands: Sequence[Array], results: Sequence[Array], attributes: tuple[Any, ...]
    ) -> Saved:
        """What derivatives of a call need."""
        kept = self.saves(attributes)
        return Saved(
            tuple(x if i in kept[0] else None for i, x in enumerate(operands)),
            tuple(y if i in kept[1] else None for i, y in enumerate(results)),
            tuple(tuple(x.shape) for x in operands),
            tuple(x.dtype for x in operands),
            attributes,
        )


SPECS: Final[dict[str, FunctionSpec]] = {}
"""The specification of every array function, by its name."""
