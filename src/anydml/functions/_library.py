"""The operations of a library that array functions and their rules use, and calls of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from anydml.functions._function import Attributes, FunctionSpec
    from anydml.functions._infer import OperatorClass

Array = Any
"""An array of a library, which may be traced."""


class Library(Protocol):
    """The operations of an array library that functions and their rules use.

    Arrays have ``shape``, ``ndim``, ``dtype``, arithmetic, comparison and indexing. A library may
    lack operations that its calls do not need.
    """

    knows_modes: bool
    """Whether kernels get all modes of indices; else only whether they clamp."""
    in_memory: bool
    """Whether sizes and values are known when a kernel is called (`run_measured`)."""

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

    # ---- operations that compose functions which only move elements

    def take(self, x: Array, positions: Any, axis: int) -> Array:
        """Return the slices at positions inside the axis."""

    def fill(self, x: Array, axis: int, size: int, value: Any) -> Array:
        """Return an array like `x` with another size on an axis, and one value everywhere."""

    def repeat(self, x: Array, count: int, axis: int) -> Array:
        """Repeat `x` along an axis."""

    def numbers(self, x: Array, axis: int) -> Array:
        """Return 0 to the size of an axis, less 1, along that axis; size 1 on the others."""

    # ---- calls of kernels: in memory, or in programs that the library compiles

    def run(
        self,
        operator: OperatorClass,
        operands: Sequence[Array],
        outputs: Sequence[tuple[tuple[Any, ...], Any]],
        attributes: Attributes,
        axes: Sequence[int],
        scratch: bool,
    ) -> list[Array]:
        """Call an operator's kernel on inputs in natural form.

        `outputs` are shapes and types; `axes` those of the first operand that indices in the second
        one point into. `scratch` says that the outputs are intermediate results of the call.
        """

    def run_measured(
        self,
        operator: OperatorClass,
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

    def is_nonzero(self, x: Array) -> Array:
        """Find the complex numbers that are not zero; subnormal ones are not."""

    def wide_types(self) -> AbstractContextManager[Any]:
        """Return a context that allows 64-bit types, if the library may be set up without them."""


def call_kernel(
    lib: Library,
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
    lib: Library, spec: FunctionSpec, operands: Sequence[Array], attributes: Attributes
) -> Sequence[Array]:
    """Call a kernel that computes with the first operand, which may hold bools."""
    first, *others = operands
    numbers = lib.as_numbers(first)
    results = call_kernel(lib, spec, (numbers, *others), attributes)
    if numbers is first:
        return results
    pairs = zip(results, spec.results, strict=True)
    return [lib.as_bools(y) if source in spec.operands else y for y, source in pairs]
