"""Resampling: enlarge or shrink tensors along any dimension, and the gradients of resampling.

Along each dimension, output element x lies at position ``(x - output offset) / scale - input
offset`` of the input, computed in FLOAT32. A position before the first or after the last element
has the value of that element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, prod
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core._literals import AxisDirectionName, InterpolationModeName
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products
from anydml.engines import Array, Engine
from anydml.ops._computed import Sized
from anydml.ops._descriptor import Attributes, page_name
from anydml.ops._family import Family
from anydml.ops._fields import (
    Role,
    boolean,
    count_of,
    enumeration,
    floats,
    input_field,
    output_field,
)
from anydml.ops._rules import has_length, rank_of, same_ranks
from anydml.ops._shapes import Named
from anydml.ops.enumerations import AxisDirection, InterpolationMode

FAMILY = Family.NETWORKS

_CENTRES: Final = {"input_pixel_offsets": 0.5, "output_pixel_offsets": -0.5}


class Resampling(Sized):
    """Base of the operators that resample, and of their gradients."""

    ONE_DIMENSION_COUNT = True
    TOLERANCE = products(24)
    WORKING_BYTES = 56

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        (source,) = cls.input_names()
        (output,) = (info.name for info in cls.tensor_fields(Role.OUTPUT))
        shape = ArraySpec(attributes["shape"], data.dtype)
        names = [name for name in ("scales", *_CENTRES) if name in attributes]
        return Inferred.of(
            (shape,),
            same_ranks((source, data), (output, shape)),
            *(_array(name, attributes[name], (source, data)) for name in names),
        )


def _array(name: str, values: Sequence[float], of: Named) -> Rules:
    """Check that an array has a finite value for each dimension; scales are above 0."""
    yield has_length(page_name(name), values, rank_of(of[1]), f"{of[0]}.DimensionCount")
    for i, value in enumerate(values):
        yield _finite(f"{page_name(name)}[{i}]", value, name == "scales")


def _finite(path: str, value: float, positive: bool) -> Rules:
    if not isfinite(value) or (positive and value <= 0):
        yield Violation(path, f"a finite number{' above 0' * positive}", value)


class Tensors(Resampling):
    """The fields that all resampling operators have.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to resample.
    output_tensor : TensorDesc
        The resampled tensor, with the type and DimensionCount of the input and any sizes.
    interpolation_mode : InterpolationMode or str
        NEAREST_NEIGHBOR copies the nearest element. LINEAR interpolates between the two nearest
        elements of each dimension.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    interpolation_mode: InterpolationMode | InterpolationModeName = enumeration(InterpolationMode)


class Gradients(Resampling):
    """The fields that all gradients of resampling have.

    Parameters
    ----------
    input_gradient_tensor : TensorDesc
        The gradient of the resampled tensor.
    output_gradient_tensor : TensorDesc
        The gradient of the tensor that was resampled, with the type and DimensionCount of the input
        gradient and any sizes.
    interpolation_mode : InterpolationMode or str
        NEAREST_NEIGHBOR or LINEAR.
    """

    input_gradient_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc = output_field()
    interpolation_mode: InterpolationMode | InterpolationModeName = enumeration(InterpolationMode)


class Placed(Resampling):
    """Scales and offsets.

    Parameters
    ----------
    dimension_count : int, optional
        The length of `scales`.
    scales : sequence of float
        The scale factor of each dimension, greater than 0.
    input_pixel_offsets : sequence of float
        Subtracted from positions in the input; 0.5 for the centers of elements.
    output_pixel_offsets : sequence of float
        Subtracted from positions in the output; -0.5 for the centers of elements.
    """

    dimension_count: int = count_of("scales")
    scales: Sequence[float] = floats()
    input_pixel_offsets: Sequence[float] = floats()
    output_pixel_offsets: Sequence[float] = floats()


class Rounded(Resampling):
    """The rounding direction.

    Parameters
    ----------
    rounding_direction : AxisDirection or str
        For NEAREST_NEIGHBOR, INCREASING selects the first element at or after the position,
        DECREASING the last element at or before it.
    """

    rounding_direction: AxisDirection | AxisDirectionName = enumeration(AxisDirection)


_ROW: Final = [[1.0, 2.0, 4.0, 8.0]]
_PLACES: Final = {
    "scales": (1.0, 1.5), "input_pixel_offsets": (0.5, 0.5), "output_pixel_offsets": (-0.5, -0.5),
}  # fmt: skip
_EXAMPLE: Final = {"input_tensor": _ROW, "output_tensor": TensorDesc("FLOAT32", (1, 6))}


class Resample(Tensors):
    """Resizes the input; output element x lies at position ``(x + 0.5) / scale - 0.5``.

    Parameters
    ----------
    scale_count : int, optional
        The length of `scales`.
    scales : sequence of float
        The scale factor of each dimension, greater than 0.
    """

    scale_count: int = count_of("scales")
    scales: Sequence[float] = floats()

    NAME = "RESAMPLE"
    EXAMPLES = ({**_EXAMPLE, "interpolation_mode": "LINEAR", "scales": (1.0, 1.5)},)

    @staticmethod
    def compute(e: Engine, x: Array, **attributes: Any) -> Array:
        return _resample(e, x, attributes)


class Resample1(Placed, Tensors):
    """Resizes the input, with offsets for input and output positions."""

    NAME = "RESAMPLE1"
    EXAMPLES = ({**_EXAMPLE, **_PLACES, "interpolation_mode": "NEAREST_NEIGHBOR"},)

    compute = staticmethod(Resample.compute)


class Resample2(Placed, Rounded, Tensors):
    """Resizes the input, with offsets and a rounding direction for NEAREST_NEIGHBOR."""

    NAME = "RESAMPLE2"
    EXAMPLES = ({
        **_EXAMPLE, **_PLACES,
        "interpolation_mode": "NEAREST_NEIGHBOR", "rounding_direction": "INCREASING",
    },)  # fmt: skip

    compute = staticmethod(Resample.compute)


class Resample3(Placed, Rounded, Tensors):
    """Resizes the input, with an optional antialiasing filter for shrinking.

    Parameters
    ----------
    antialiased : bool
        Whether LINEAR uses an antialiasing filter where a scale is less than 1: the weighted mean
        of all elements that are less than 1 / scale away. The weights decrease linearly to 0 at
        that distance.
    """

    antialiased: bool = boolean()

    NAME = "RESAMPLE3"
    WORKING_BYTES = 112
    EXAMPLES = ({
        **_EXAMPLE, **_PLACES, "scales": (1.0, 0.25), "antialiased": True,
        "output_tensor": TensorDesc("FLOAT32", (1, 1)),
        "interpolation_mode": "LINEAR", "rounding_direction": "DECREASING",
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.Resize torch.nn.functional.interpolate jax.image.resize"

    compute = staticmethod(Resample.compute)


_GRADIENT: Final = {
    **_PLACES,
    "input_gradient_tensor": [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]],
    "output_gradient_tensor": TensorDesc("FLOAT32", (1, 4)),
}


class ResampleGrad(Placed, Gradients):
    """The gradient of RESAMPLE1."""

    NAME = "RESAMPLE_GRAD"
    EXAMPLES = ({**_GRADIENT, "interpolation_mode": "LINEAR"},)

    @staticmethod
    def compute(e: Engine, dy: Array, **attributes: Any) -> Array:
        wide = dy.astype(e.xp.float64)
        for axis, _, taps in _taps(attributes["shape"], dy.shape, attributes, backward=True):
            wide = _scatter(e, wide, axis, attributes["shape"][axis], taps)
        return wide


class ResampleGrad1(Placed, Rounded, Gradients):
    """The gradient of RESAMPLE2."""

    NAME = "RESAMPLE_GRAD1"
    EXAMPLES = ({
        **_GRADIENT, "interpolation_mode": "NEAREST_NEIGHBOR", "rounding_direction": "DECREASING",
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.ops.aten.upsample_bilinear2d_backward"

    compute = staticmethod(ResampleGrad.compute)


class _Tap(NamedTuple):
    """One contributing input element for each output element along an axis, and its weight."""

    places: Array
    weights: Array


def _taps(
    sizes: Sequence[int],
    output_sizes: Sequence[int],
    attributes: Attributes,
    backward: bool = False,
) -> Iterator[tuple[int, Array, list[_Tap]]]:
    """The axes that change, each with the positions of its output elements and their taps.

    An axis with a filter has no taps.

    Axes that shrink the array come first, so that intermediate arrays are never larger than the
    input or the result. With `backward` the order is reversed, from the result to the input.
    """
    ratios = [count / size for size, count in zip(sizes, output_sizes, strict=True)]
    for axis in sorted(range(len(sizes)), key=ratios.__getitem__, reverse=backward):
        size, count = sizes[axis], output_sizes[axis]
        at = _positions(axis, count, attributes)
        if (
            attributes.get("antialiased")
            and attributes["scales"][axis] < 1
            and (attributes["interpolation_mode"] is InterpolationMode.LINEAR)
        ):
            yield axis, at, []
            continue
        taps = _taps_at(at, size, attributes)
        same = size == count and (taps[0].places == np.arange(size)).all()
        if not (same and (taps[0].weights == 1).all()):
            yield axis, at, taps


def _positions(axis: int, count: int, attributes: Attributes) -> Array:
    """The positions of output elements along an axis of the input, in FLOAT32."""
    start, end = (
        np.float32(attributes[name][axis] if name in attributes else centre)
        for name, centre in _CENTRES.items()
    )
    with np.errstate(all="ignore"):
        scale = np.float32(attributes["scales"][axis])
        return (np.arange(count, dtype=np.float32) - end) / scale - start


def _taps_at(at: Array, size: int, attributes: Attributes) -> list[_Tap]:
    if attributes["interpolation_mode"] is InterpolationMode.NEAREST_NEIGHBOR:
        direction = attributes.get("rounding_direction")
        if direction is None:  # ties round up
            at = np.floor(at + np.float32(0.5))
        else:
            at = np.ceil(at) if direction is AxisDirection.INCREASING else np.floor(at)
        return [_Tap(_inside(at, size), np.ones(len(at)))]
    at = np.clip(at, 0, size - 1)
    first = np.floor(at)
    part = (at - first).astype(np.float64)
    return [_Tap(_inside(first, size), 1 - part), _Tap(_inside(first + 1, size), part)]


def _inside(at: Array, size: int) -> Array:
    return np.clip(at, 0, size - 1).astype(np.intp)


def _resample(e: Engine, x: Array, attributes: Attributes) -> Array:
    nearest = attributes["interpolation_mode"] is InterpolationMode.NEAREST_NEIGHBOR
    if not nearest and x.dtype.kind != "f":
        x = x.astype(e.xp.float64)
    for axis, at, taps in _taps(x.shape, attributes["shape"], attributes):
        if nearest:
            x = e.xp.take(x, taps[0].places, axis=axis)
        elif taps:
            x = sum(_weighted(e, x, axis, tap) for tap in taps)
        else:
            x = _filter(e, x, axis, at.astype(np.float64), float(attributes["scales"][axis]))
    return x


def _weighted(e: Engine, x: Array, axis: int, tap: _Tap) -> Array:
    weights = tap.weights.astype(x.dtype).reshape(-1, *(1 for _ in x.shape[axis + 1 :]))
    taken = e.xp.take(x, tap.places, axis=axis)
    # An element with weight 0 is ignored, even if it is infinite.
    return e.xp.where(weights == 0, x.dtype.type(0), taken * weights)


def _filter(e: Engine, x: Array, axis: int, at: Array, scale: float) -> Array:
    """Weighted means around positions; the weights of a triangle reach 0 at the distance 1 / scale.

    Elements are taken in steps, so that no step takes more than there are in the input or the
    result.
    """
    xp, wide = e.xp, x.astype(e.xp.float64)
    size, count = x.shape[axis], len(at)
    first = np.clip(np.ceil(at - 1 / scale), 0, size - 1).astype(np.int64)
    last = np.clip(np.floor(at + 1 / scale), 0, size - 1).astype(np.int64)
    step = max(size // count, 1)
    steps = (int((last - first).max()) + step) // step
    rest = (1,) * (x.ndim - axis - 1)

    def add(i: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
        places = first[:, None] + (i * step + np.arange(step))
        weights = xp.maximum(1 - xp.abs(places - at[:, None]) * scale, 0.0)
        weights = xp.where(places < size, weights, 0.0)
        taken = xp.take(wide, xp.minimum(places, size - 1).reshape(-1), axis=axis)
        taken = taken.reshape(*x.shape[:axis], count, step, *x.shape[axis + 1 :])
        factors = weights.reshape(count, step, *rest)
        parts = xp.where(factors == 0, 0.0, taken * factors)  # even an infinite element
        return sums[0] + xp.sum(parts, axis=axis + 1), sums[1] + xp.sum(weights, axis=1)

    zeros = xp.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), xp.float64)
    total, weight = e.repeat(np.asarray(steps), add, (zeros, xp.zeros(count, xp.float64)))
    weight = weight.reshape(count, *rest)
    nearest = xp.take(wide, _inside(at, size), axis=axis)  # of positions that no element is near
    return xp.where(weight == 0, nearest, total / weight)


def _scatter(e: Engine, dy: Array, axis: int, size: int, taps: Sequence[_Tap]) -> Array:
    """The transpose of a resampling along an axis."""
    outer, inner = prod(dy.shape[:axis]), prod(dy.shape[axis + 1 :])
    rows = np.arange(outer)[:, None, None] * size
    columns = np.arange(inner)
    total: Any = 0.0
    for tap in taps:
        (kept,) = np.nonzero(tap.weights)
        places = (rows + tap.places[kept][:, None]) * inner + columns
        parts = e.xp.take(dy, kept, axis=axis).reshape(outer, len(kept), inner)
        values = parts * tap.weights[kept][:, None]
        total = total + e.scatter_add(outer * size * inner, places.ravel(), values.reshape(-1))
    return total.reshape(*dy.shape[:axis], size, *dy.shape[axis + 1 :])
