"""Reductions and running totals: combine elements along axes to one element or a running total.

Floats are added and multiplied in FLOAT64 and rounded once. Integers wrap around. An index counts
the elements along all reduced axes in row-major order. If an element is NaN,
the result is NaN, or the index of a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from anydml.core._literals import AxisDirectionName, ReduceFunctionName
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import EXACT, ulp
from anydml.engines import Array, Engine
from anydml.ops._axes import mean, merge_axes, total
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    axes_field,
    axis_field,
    boolean,
    count_of,
    enumeration,
    input_field,
    output_field,
)
from anydml.ops._rules import axis_in_range, distinct_axes
from anydml.ops.enumerations import AxisDirection, ReduceFunction

FAMILY = Family.NETWORKS

_INPUT: Final = [[1.0, 2.0, 3.0], [3.0, 0.0, 4.0], [2.0, 5.0, 2.0]]
_INDICES: Final = (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN)


def position(
    e: Engine, x: Array, axes: Sequence[int], largest: bool, direction: AxisDirection
) -> Array:
    """The index of the first or last of the largest or smallest elements along axes."""
    merged, _ = merge_axes(e, x, axes)
    find = e.xp.argmax if largest else e.xp.argmin
    if direction is AxisDirection.DECREASING:
        found = merged.shape[-1] - 1 - find(e.xp.flip(merged, -1), axis=-1)
    else:
        found = find(merged, axis=-1)
    return found.reshape(reduced_sizes(x.shape, axes))


def reduced_sizes(sizes: Sequence[Any], axes: Sequence[int]) -> tuple[Any, ...]:
    """The sizes, with 1 on the reduced axes."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(sizes))


def _kept_sizes(sizes: Sequence[Any], axes: Sequence[int]) -> Any:
    """The sizes of the output; unknown if there is no such axis, or one is repeated."""

    def kept() -> Any:
        valid = all(0 <= axis < len(sizes) for axis in axes) and len({*axes}) == len(axes)
        return reduced_sizes(sizes, axes) if valid else UNKNOWN

    return known(kept)


def _product(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    dtype = e.xp.float64 if x.dtype.kind == "f" else x.dtype
    return e.xp.prod(x, axis=tuple(axes), dtype=dtype, keepdims=True)


def _squares(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    wide = x.astype(e.xp.float64) if x.dtype.kind == "f" else x
    return total(e, wide * wide, axes)


def _log_sum_exp(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    wide, xp = x.astype(e.xp.float64), e.xp
    maximum = xp.max(wide, axis=tuple(axes), keepdims=True)
    maximum = xp.where(xp.isfinite(maximum), maximum, 0.0)
    return maximum + xp.log(total(e, xp.exp(wide - maximum), axes))


_FUNCTIONS: Final[dict[str, Callable[[Engine, Array, Sequence[int]], Array]]] = {
    "AVERAGE": mean,
    "L1": lambda e, x, axes: total(e, e.xp.abs(x), axes),
    "L2": lambda e, x, axes: e.xp.sqrt(_squares(e, x, axes)),
    "LOG_SUM": lambda e, x, axes: e.xp.log(total(e, x, axes)),
    "LOG_SUM_EXP": _log_sum_exp,
    "MAX": lambda e, x, axes: e.xp.max(x, axis=tuple(axes), keepdims=True),
    "MIN": lambda e, x, axes: e.xp.min(x, axis=tuple(axes), keepdims=True),
    "MULTIPLY": _product,
    "SUM": total,
    "SUM_SQUARE": _squares,
}


class Reduce(Computed):
    """Reduces the elements along some axes with a function, such as their sum.

    Parameters
    ----------
    function : ReduceFunction
        ARGMAX and ARGMIN give indices of the first such element; AVERAGE, MAX, MIN, MULTIPLY and
        SUM are as named; L1 is ``sum(|x|)``, L2 ``sqrt(sum(x * x))``, LOG_SUM ``log(sum(x))``,
        LOG_SUM_EXP ``log(sum(exp(x)))``, SUM_SQUARE ``sum(x * x)``.
    input_tensor : TensorDesc
        The elements to combine.
    output_tensor : TensorDesc
        The result, with the sizes of the input, but 1 on the axes. It has the type of the input, or
        an index type for ARGMAX and ARGMIN.
    axis_count : int
        The length of `axes`.
    axes : sequence of int
        The axes to reduce, in any order.
    """

    ONE_DIMENSION_COUNT = True

    function: ReduceFunction | ReduceFunctionName = enumeration(ReduceFunction)
    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis_count: int = count_of("axes")
    axes: Sequence[int] = axes_field()

    NAME = "REDUCE"
    TOLERANCE = ulp(1)
    EXAMPLES = ({"function": "SUM", "input_tensor": _INPUT, "axes": (1,)},)
    ALSO_KNOWN_AS = (
        "onnx.ReduceSum onnx.ReduceMean onnx.ReduceMax onnx.ReduceMin onnx.ReduceProd "
        "onnx.ReduceL1 onnx.ReduceL2 onnx.ReduceLogSum onnx.ReduceLogSumExp onnx.ReduceSumSquare "
        "numpy.sum numpy.mean numpy.max numpy.min numpy.prod "
        "torch.sum torch.mean torch.amax torch.amin torch.prod torch.logsumexp "
        "jax.numpy.sum jax.numpy.mean jax.numpy.max jax.numpy.min jax.numpy.prod"
    )

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        sizes = _kept_sizes(data.shape, attributes["axes"])
        dtype = known(lambda: None if attributes["function"] in _INDICES else data.dtype)
        rule = distinct_axes(attributes["axes"], ("InputTensor", data))
        return Inferred.of((ArraySpec(sizes, dtype),), rule)

    @staticmethod
    def compute(e: Engine, x: Array, *, function: ReduceFunction, axes: Sequence[int]) -> Array:
        if function in _INDICES:
            largest = function is ReduceFunction.ARGMAX
            return position(e, x, axes, largest, AxisDirection.INCREASING)
        return _FUNCTIONS[function.suffix](e, x, axes)


class Position(Computed):
    """Base of ARGMAX and ARGMIN.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to combine.
    output_tensor : TensorDesc
        The indices, in an index type, with the sizes of the input, but 1 on the axes.
    axis_count : int
        The length of `axes`.
    axes : sequence of int
        The axes to reduce, in any order.
    axis_direction : AxisDirection
        INCREASING selects the first of equal elements, DECREASING the last.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis_count: int = count_of("axes")
    axes: Sequence[int] = axes_field()
    axis_direction: AxisDirection | AxisDirectionName = enumeration(AxisDirection)

    LARGEST: ClassVar[bool]
    TOLERANCE = EXACT
    EXAMPLES = ({"input_tensor": _INPUT, "axes": (0, 1), "axis_direction": "INCREASING"},)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        sizes = _kept_sizes(inputs[0].shape, attributes["axes"])
        rule = distinct_axes(attributes["axes"], ("InputTensor", inputs[0]))
        return Inferred.of((ArraySpec(sizes, None),), rule)

    @classmethod
    def compute(
        cls, e: Engine, x: Array, *, axes: Sequence[int], axis_direction: AxisDirection
    ) -> Array:
        return position(e, x, axes, cls.LARGEST, axis_direction)


class ArgMax(Position):
    """The index of the largest element along some axes."""

    NAME = "ARGMAX"
    LARGEST = True
    ALSO_KNOWN_AS = "onnx.ArgMax numpy.argmax torch.argmax jax.numpy.argmax jax.lax.argmax"


class ArgMin(Position):
    """The index of the smallest element along some axes."""

    NAME = "ARGMIN"
    LARGEST = False
    ALSO_KNOWN_AS = "onnx.ArgMin numpy.argmin torch.argmin jax.numpy.argmin jax.lax.argmin"


class Cumulative(Computed):
    """Base of the running totals.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to combine.
    output_tensor : TensorDesc
        The running totals, with the type and sizes of the input.
    axis : int
        The axis along which elements are combined.
    axis_direction : AxisDirection
        INCREASING starts at the first element, DECREASING at the last one.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()
    axis_direction: AxisDirection | AxisDirectionName = enumeration(AxisDirection)

    TOLERANCE = ulp(1)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data = "InputTensor", inputs[0]
        return Inferred.of((inputs[0],), axis_in_range(attributes["axis"], data))


def _running(
    e: Engine, x: Array, name: str, axis: int, direction: AxisDirection, exclusive: bool
) -> Array:
    # `name` is a function of the namespace: cumsum or cumprod.
    xp = e.xp
    if direction is AxisDirection.DECREASING:
        x = xp.flip(x, axis)
    dtype = xp.float64 if x.dtype.kind == "f" else x.dtype
    y = getattr(xp, name)(x, axis=axis, dtype=dtype)
    if exclusive:
        before = (slice(None),) * axis
        first = xp.full_like(y[(*before, slice(0, 1))], 1 if name == "cumprod" else 0)
        y = xp.concatenate([first, y[(*before, slice(0, -1))]], axis=axis)
    return xp.flip(y, axis) if direction is AxisDirection.DECREASING else y


class CumulativeSummation(Cumulative):
    """The running sum along an axis.

    Parameters
    ----------
    has_exclusive_sum : bool
        Whether the sum excludes the element itself; the first result is then 0.
    """

    has_exclusive_sum: bool = boolean()

    NAME = "CUMULATIVE_SUMMATION"
    EXAMPLES = ({
        "input_tensor": [[2.0, 1.0, 3.0, 5.0], [3.0, 8.0, 7.0, 3.0]],
        "axis": 1, "axis_direction": "DECREASING", "has_exclusive_sum": False,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.CumSum numpy.cumsum torch.cumsum jax.numpy.cumsum jax.lax.cumsum"

    @staticmethod
    def compute(
        e: Engine, x: Array, *, axis: int, axis_direction: AxisDirection, has_exclusive_sum: bool
    ) -> Array:
        return _running(e, x, "cumsum", axis, axis_direction, has_exclusive_sum)


class CumulativeProduct(Cumulative):
    """The running product along an axis.

    Parameters
    ----------
    has_exclusive_product : bool
        Whether the product excludes the element itself; the first result is then 1.
    """

    has_exclusive_product: bool = boolean()

    NAME = "CUMULATIVE_PRODUCT"
    EXAMPLES = ({
        "input_tensor": [[2.0, 1.0, 3.0, 5.0], [3.0, 8.0, 7.0, 3.0]],
        "axis": 1, "axis_direction": "INCREASING", "has_exclusive_product": True,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.CumProd numpy.cumprod torch.cumprod jax.numpy.cumprod jax.lax.cumprod"

    @staticmethod
    def compute(
        e: Engine, x: Array, *, axis: int, axis_direction: AxisDirection,
        has_exclusive_product: bool,
    ) -> Array:  # fmt: skip
        return _running(e, x, "cumprod", axis, axis_direction, has_exclusive_product)
