"""Operators that move elements, and those that fill tensors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from anydml.core.tensor import packed_strides
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lowering, RefusedError, UnsupportedError, axes_of, padded
from anydml.onnx.types import DATA_TYPES


def copy(n: Lowering) -> Expression:
    """The bytes of the input; readers reinterpret them."""
    x = n.view(0)
    return n.emit("ELEMENT_WISE_IDENTITY", x, outputs=[(x.data_type, x.sizes)])


def reshape(n: Lowering) -> Expression:
    """`copy`; with `allowzero` the provider takes the sizes as they are, -1 as 2^32 - 1."""
    sizes = n.integers(1) if n.exact and n.get("allowzero", 0) else None
    if sizes is not None and -1 in sizes:
        rule = "no -1 beside allowzero=1, which the provider takes for a size (set allowzero to 0)"
        raise RefusedError("shape", rule, sizes)
    return copy(n)


def dropout(n: Lowering) -> Expression:
    return n.emit("ACTIVATION_IDENTITY", n.view(0))


def transpose(n: Lowering) -> Expression:
    shape = n.shape()
    order = list(n.get("perm", reversed(range(len(shape)))))
    strides = packed_strides(shape)
    sizes = tuple(shape[i] for i in order) or (1,)
    x = n.view(0, sizes, tuple(strides[i] for i in order) or (1,))
    return n.emit("ELEMENT_WISE_IDENTITY", x, outputs=[(n.output()[0], sizes)])


def expand(n: Lowering) -> Expression:
    return n.emit("ELEMENT_WISE_IDENTITY", n.broadcast(0, n.output()[1]))


def split(n: Lowering) -> Any:
    rank = max(len(n.shape()), 4)
    axis = n.axis(0) + rank - len(n.shape())
    outputs = [n.output(i) for i in range(len(n.results))]
    return n.emit_all("SPLIT", n.view(0), outputs=outputs, axis=axis)


def concat(n: Lowering) -> Expression:
    rank = len(n.results[0].shape)
    axis = n.axis(1, rank) + max(4 - rank, 0)
    parts = [n.view(i) for i in range(len(n.operands)) if n.has(i) and 0 not in n.shape(i)]
    return n.emit("JOIN", parts, axis=axis)


def slice_(n: Lowering) -> Expression:
    shape = n.shape()
    if n.version < 10:
        starts, ends, axes = (n.get(name) for name in ("starts", "ends", "axes"))
        steps = None
    else:
        starts, ends, axes, steps = (n.integers(i) for i in (1, 2, 3, 4))
    starts, ends = starts or [], ends or []
    axes = range(len(starts)) if axes is None else axes_of(axes, len(shape))
    steps = [1] * len(starts) if steps is None else steps
    taken = [range(size) for size in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        taken[axis] = range(shape[axis])[slice(start, end, step)]
    if not shape:
        taken = [range(1)]
    return n.emit(
        "SLICE1", n.view(0, rank=1), outputs=[(n.output()[0], tuple(map(len, taken)))],
        input_window_offsets=[min(places[0], places[-1]) for places in taken],
        input_window_sizes=[abs(places[-1] - places[0]) + 1 for places in taken],
        input_window_strides=[places.step for places in taken],
    )  # fmt: skip


_MODES: Final = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}


def pad(n: Lowering) -> Expression:
    shape = n.shape()
    rank = len(shape)
    axes: Any = None
    if n.version < 11:
        pads, value = list(n.get("pads")), n.get("value", 0.0)
    else:
        pads = n.integers(1) or []
        data = n.constant(2)
        value = 0 if data is None or not data.size else data.reshape(-1)[0].item()
        axes = n.integers(3)
    axes = range(rank) if axes is None else axes_of(axes, rank)
    start, end = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        start[axis], end[axis] = pads[i], pads[i + len(pads) // 2]
    if any(size < 0 for size in (*start, *end)):
        raise UnsupportedError("negative paddings")
    kind = n.type()
    value = bool(value) if kind == "bool" else value
    more = max(4 - rank, 0)
    return n.emit(
        "PADDING1", n.view(0), padding_mode=_MODES[n.get("mode", "constant")],
        padding_value_data_type=DATA_TYPES[kind],
        padding_value=float(value) if kind[0] == "f" else int(value),
        start_padding=[0] * more + start, end_padding=[0] * more + end,
    )  # fmt: skip


def crop(n: Lowering) -> Expression:
    left, top, *_ = n.get("border")
    return n.emit(
        "SLICE", n.view(0), offsets=[0, 0, top, left], sizes=n.output()[1], strides=[1] * 4
    )


def space_to_depth(n: Lowering) -> Expression:
    return n.emit("SPACE_TO_DEPTH", n.view(0), block_size=n.get("blocksize"))


def depth_to_space(n: Lowering) -> Expression:
    order = {"DCR": "DEPTH_COLUMN_ROW", "CRD": "COLUMN_ROW_DEPTH"}[n.get("mode", "DCR")]
    return n.emit("DEPTH_TO_SPACE1", n.view(0), block_size=n.get("blocksize"), order=order)


def tile(n: Lowering) -> Expression:
    repeats = n.integers(1) or []
    kept = [i for i, size in enumerate(n.results[0].shape) if size != 1] or [0]
    shape = [n.shape()[i] if n.shape() else 1 for i in kept]
    repeats = [repeats[i] if repeats else 1 for i in kept]
    sizes = padded([size * count for size, count in zip(shape, repeats, strict=True)])
    return n.emit(
        "TILE", n.view(0, padded(shape)), outputs=[(n.output()[0], sizes)],
        repeats=padded(repeats),
    )  # fmt: skip


def fill(n: Lowering) -> Expression:
    value = n.get("value")
    number = 0.0 if value is None else value.data.reshape(-1)[0].item()
    kind = n.results[0].type
    number = float(number) if kind[0] == "f" else int(number)
    return n.emit("FILL_VALUE_CONSTANT", value_data_type=DATA_TYPES[kind], value=number)


def fill_range(n: Lowering) -> Expression:
    start, _, delta = (n.constant(i) for i in range(3))
    kind = n.results[0].type
    assert start is not None
    assert delta is not None
    first, step = start.reshape(-1)[0].item(), delta.reshape(-1)[0].item()
    return n.emit(
        "FILL_VALUE_SEQUENCE", value_data_type=DATA_TYPES[kind], value_start=first,
        value_delta=step,
    )  # fmt: skip


def eye(n: Lowering) -> Expression:
    if len(n.results[0].shape) > 4:
        raise UnsupportedError("expected a tensor of rank 4 at most")
    return n.emit("DIAGONAL_MATRIX", offset=n.get("k", 0), value=1.0)


def triangle(n: Lowering) -> Expression:
    k = n.integers(1)
    at = k[0] if k else 0
    low, high = -(2**31), 2**31 - 1
    at = min(max(at, low), high - 1)
    # The diagonals that become 0.
    begin, end = (low, at) if n.get("upper", 1) else (at + 1, high)
    kind = n.type()
    return n.emit(
        "DIAGONAL_MATRIX1", n.view(0), value_data_type=DATA_TYPES[kind],
        value=0.0 if kind[0] == "f" else 0, diagonal_fill_begin=begin, diagonal_fill_end=end,
    )  # fmt: skip


def reverse(n: Lowering) -> Expression:
    shape = n.shape()
    batch, time = n.get("batch_axis", 1), n.get("time_axis", 0)
    sizes = [1] * len(shape)
    sizes[batch] = shape[batch]
    more = max(4 - len(shape), 0)
    unsigned = {"i64": "u64", "i32": "u32"}[n.type(1)]
    # The page repeats the lengths over all other dimensions.
    lengths = [1 if i == time else size for i, size in enumerate(shape)]
    strides = [1 if i == batch else 0 for i in range(len(shape))]
    return n.emit(
        "REVERSE_SUBSEQUENCES", n.view(0),
        n.view(1, padded(lengths), padded_zero(strides), type=unsigned), axis=time + more,
    )  # fmt: skip


def padded_zero(strides: list[int], rank: int = 4) -> tuple[int, ...]:
    return (*(0,) * (rank - len(strides)), *strides)


def cumulative_sum(n: Lowering) -> Expression:
    (axis,) = axes_of((n.integers(1) or [0])[:1], max(len(n.shape()), 1))
    return n.emit(
        "CUMULATIVE_SUMMATION", n.view(0), axis=axis + max(4 - len(n.shape()), 0),
        axis_direction="DECREASING" if n.get("reverse", 0) else "INCREASING",
        has_exclusive_sum=bool(n.get("exclusive", 0)),
    )  # fmt: skip


def scale_image(n: Lowering) -> Expression:
    return n.emit(
        "VALUE_SCALE_2D", n.view(0), scale=n.get("scale", 1.0),
        bias=[float(b) for b in np.asarray(n.get("bias", []))],
    )  # fmt: skip
