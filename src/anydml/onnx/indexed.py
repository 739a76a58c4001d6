"""Native operators that compute with indices, as operators of ONNX.

ONNX counts negative indices from the end, as DirectML does, and leaves it to the runtime to refuse
those that are out of range. Among several updates of one element ONNX leaves the order open; known
runtimes apply them in order, as DirectML's pages have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.program import ArraySpec, KernelCall
from anydml.engines._onnx import OnnxEngine
from anydml.engines._onnx_arrays import emit, emit_output, typed
from anydml.engines._onnx_graph import NotTraced

_XP: Any = OnnxEngine.xp
_INDEX: Final = np.dtype(np.int64)
_MOST_PLACES: Final = 1 << 22
"""The most places that are written out as a constant."""

Operands = Sequence[Any]
Specs = Sequence[ArraySpec]
Attributes = Mapping[str, Any]
Form = Callable[[Operands, Specs, Attributes], Sequence[Any]]


def indexed_results(call: KernelCall, operands: Operands, specs: Specs) -> Sequence[Any]:
    """The results of a native call, from its operands and the specs of its outputs.

    Raises
    ------
    NotTraced
        ONNX has no operator for it.
    """
    form = _FORMS.get(call.kernel)
    if form is None:
        raise NotTraced("an operator without a form in ONNX")
    return form(operands, specs, dict(call.attributes))


def _gather(operands: Operands, specs: Specs, attributes: Attributes) -> Sequence[Any]:
    x, indices = operands
    return [_XP.take(x, typed(indices, _INDEX), attributes["axis"])]


def _by_indices(operator: str, *names: str) -> Form:
    """An operator of ONNX that takes the same operands, and attributes of these names."""

    def form(operands: Operands, specs: Specs, attributes: Attributes) -> Sequence[Any]:
        x, indices, *updates = operands
        inputs = (x, typed(indices, _INDEX), *updates)
        values = {name: attributes[name] for name in names}
        return [emit(operator, inputs, x.dtype, specs[0].shape, **values)]

    return form


def _top_k(operands: Operands, specs: Specs, attributes: Attributes) -> Sequence[Any]:
    (x,) = operands
    axis, k = attributes["axis"], attributes["k"]
    keys = _keys(x)
    inputs = keys, np.array([k], np.int64)
    shape = tuple(k if i == axis else n for i, n in enumerate(x.shape))
    places = emit_output(
        1, "TopK", inputs, _INDEX, shape, axis=axis, largest=int(attributes["largest"])
    )
    return [_XP.take_along_axis(x, places, axis), places]


def _keys(x: Any) -> Any:
    """Numbers in the order of elements, of a type that ONNX Runtime sorts; NaN is the largest."""
    if x.dtype.kind == "f":
        wide, most = x.astype(np.float64), np.float64(np.finfo(np.float32).max)
        finite = _XP.clip(wide, -2 * most, 2 * most)
        return _XP.where(_XP.isnan(x), 4 * most, finite)
    if x.dtype == np.uint64:
        return (x ^ np.uint64(1 << 63)).astype(np.int64)
    return x.astype(np.int64)


def _nonzero_coordinates(operands: Operands, specs: Specs, attributes: Attributes) -> Sequence[Any]:
    """Coordinates in rows, without a size that depends on data: other rows are 0."""
    (x,) = operands
    total, columns = prod(x.shape), attributes["columns"]
    if total > _MOST_PLACES:
        raise NotTraced(f"the coordinates of {total} elements")
    present = (x != x.dtype.type(0)).reshape(total)
    ranks = _XP.cumsum(present.astype(np.int64), 0)
    count = ranks[total - 1 :]
    # Rows of zero elements go to one row behind the others.
    rows = _XP.where(present, ranks - np.int64(1), np.int64(total))
    every = np.indices(x.shape).reshape(len(x.shape), total).T[:, len(x.shape) - columns :]
    targets = _XP.broadcast_to(rows.reshape(total, 1), every.shape)
    inputs = np.zeros((total + 1, columns), np.int64), targets, np.ascontiguousarray(every)
    placed = emit("ScatterElements", inputs, _INDEX, (total + 1, columns), axis=0)
    return [count.reshape(specs[0].shape), placed[:total].reshape(specs[1].shape)]


def _one_hot(operands: Operands, specs: Specs, attributes: Attributes) -> Sequence[Any]:
    indices, values = operands
    axis, depth = attributes["axis"], attributes["depth"]
    if depth > _MOST_PLACES:
        raise NotTraced(f"an axis of {depth} elements")
    flat = values.reshape(-1)
    off, on = flat[0:1].reshape(()), flat[1:2].reshape(())
    places = np.arange(depth).reshape(-1, *(1,) * (indices.ndim - 1 - axis))
    signed = typed(indices, _INDEX)
    if indices.dtype.name == "uint64":  # those beyond int64 are out of range, not negative
        signed = _XP.where(signed < np.int64(0), np.int64(depth), signed)
    wrapped = _XP.where(signed < np.int64(0), signed + np.int64(depth), signed)
    return [_XP.where(wrapped == places, on, off)]


_FORMS: Final[Mapping[str, Form]] = {
    "gather": _gather,
    "gather_elements": _by_indices("GatherElements", "axis"),
    "gather_nd": _by_indices("GatherND", "batch_dims"),
    "scatter_elements": _by_indices("ScatterElements", "axis"),
    "scatter_nd": _by_indices("ScatterND"),
    "top_k": _top_k,
    "nonzero_coordinates": _nonzero_coordinates,
    "one_hot": _one_hot,
}
