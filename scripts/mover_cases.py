"""Generated descriptors of the operators that move, convert and fill; see `dispatch_cases.py`."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from dispatch_case import Array, Arrays, Case, any_sizes, bits, tensor

import anydml as dml
from anydml.dtypes import ALL_TYPES


def slice1(chance: Random) -> Case:
    sizes, data = any_sizes(chance), chance.choice(ALL_TYPES)
    offsets = [chance.randrange(size) for size in sizes]
    windows = [chance.randint(1, n - at) for n, at in zip(sizes, offsets, strict=True)]
    strides = [chance.choice((1, 1, 2, 3, -1, -2, -5)) for _ in sizes]
    places = tuple(slice(at, at + n) for at, n in zip(offsets, windows, strict=True))
    counts = [1 + (n - 1) // abs(step) for n, step in zip(windows, strides, strict=True)]
    desc = dml.Slice1(
        input_tensor=tensor(chance, data, sizes),
        output_tensor=tensor(chance, data, tuple(counts), output=True),
        input_window_offsets=offsets,
        input_window_sizes=windows,
        input_window_strides=strides,
    )
    steps = tuple(slice(None, None, step) for step in strides)
    return Case(desc, lambda a: {"OutputTensor": bits(a["InputTensor"])[places][steps]})


def slice_(chance: Random) -> Case:
    sizes, data = any_sizes(chance), chance.choice(ALL_TYPES)
    offsets = [chance.randrange(size) for size in sizes]
    strides = [chance.choice((1, 1, 2, 3, 5)) for _ in sizes]
    taken = tuple(slice(at, None, step) for at, step in zip(offsets, strides, strict=True))
    counts = np.empty(sizes)[taken].shape
    desc = dml.Slice(
        input_tensor=tensor(chance, data, sizes),
        output_tensor=tensor(chance, data, counts, output=True),
        offsets=offsets,
        sizes=counts,
        strides=strides,
    )
    return Case(desc, lambda a: {"OutputTensor": bits(a["InputTensor"])[taken]})


def tile(chance: Random) -> Case:
    sizes, data = any_sizes(chance, 4), chance.choice(ALL_TYPES[1:])  # all but FLOAT64
    repeats = tuple(chance.choice((1, 1, 2, 5)) for _ in sizes)
    tiled = tuple(size * repeat for size, repeat in zip(sizes, repeats, strict=True))
    desc = dml.Tile(
        input_tensor=tensor(chance, data, sizes),
        output_tensor=tensor(chance, data, tiled, output=True),
        repeats=repeats,
    )
    return Case(desc, lambda a: {"OutputTensor": np.tile(bits(a["InputTensor"]), repeats)})


def reverse(chance: Random) -> Case:
    data, sizes = chance.choice(ALL_TYPES), any_sizes(chance)
    lengths_type = chance.choice((dml.DataType.UINT32, dml.DataType.UINT64))
    rank, axis = len(sizes), chance.randrange(len(sizes))
    lengths = (*sizes[:axis], 1, *sizes[axis + 1 :])
    desc = dml.ReverseSubsequences(
        input_tensor=tensor(chance, data, sizes),
        sequence_lengths_tensor=tensor(chance, lengths_type, lengths),
        output_tensor=tensor(chance, data, sizes, output=True),
        axis=axis,
    )

    def expected(arrays: Arrays) -> Arrays:
        counts = np.minimum(arrays["SequenceLengthsTensor"], sizes[axis]).astype(np.int64)
        at = np.arange(sizes[axis]).reshape((-1,) + (1,) * (rank - 1 - axis))
        places = np.where(at < counts, counts - 1 - at, at)
        return {"OutputTensor": np.take_along_axis(bits(arrays["InputTensor"]), places, axis)}

    return Case(desc, expected)


def upsample(chance: Random) -> Case:
    rank, data = chance.choice((4, 5)), chance.choice((dml.DataType.FLOAT32, dml.DataType.FLOAT16))
    sizes = tuple(chance.choice((1, 2, 3, 5)) for _ in range(rank))
    width, height = chance.choice((1, 2, 3, 7)), chance.choice((1, 2, 4))
    scaled = (*sizes[:-2], sizes[-2] * height, sizes[-1] * width)
    linear = chance.random() < 0.5
    desc = dml.Upsample2D(
        input_tensor=tensor(chance, data, sizes),
        output_tensor=tensor(chance, data, scaled, output=True),
        scale_size=(width, height),
        interpolation_mode="LINEAR" if linear else "NEAREST_NEIGHBOR",
    )

    def expected(arrays: Arrays) -> Arrays:
        x = arrays["InputTensor"]
        if not linear:
            return {"OutputTensor": bits(x).repeat(height, -2).repeat(width, -1)}
        for axis, scale in ((-1, width), (-2, height)):
            x = _stretched(x.astype(np.float32), axis, scale)
        return {"OutputTensor": bits(converted(np.where(np.isnan(x), np.float32(np.nan), x),
                                               data.numpy))}  # fmt: skip

    return Case(desc, expected)


def _stretched(x: Array, axis: int, scale: int) -> Array:
    """Between the two nearest elements along an axis, those without weight left out."""
    size = x.shape[axis]
    middle = np.maximum(2 * np.arange(size * scale) + 1 - scale, 0)
    first, rest = np.divmod(middle, 2 * scale)
    part = np.where(first < size - 1, rest / (2 * scale), 0).astype(np.float32)
    part = part.reshape((-1,) + (1,) * (-1 - axis))
    one, two = (np.take(x, np.minimum(at, size - 1), axis) for at in (first, first + 1))
    with np.errstate(all="ignore"):
        return np.where(part == 0, one, one * (np.float32(1) - part) + two * part)


def constant(chance: Random) -> Case:
    sizes, data = any_sizes(chance), chance.choice(ALL_TYPES)
    value = chance.randint(0, 100)
    desc = dml.FillValueConstant(
        output_tensor=tensor(chance, data, sizes, output=True), value_data_type=data, value=value
    )
    return Case(desc, lambda _: {"OutputTensor": bits(np.full(sizes, value, data.numpy))})


def cast(chance: Random) -> Case:
    sizes = any_sizes(chance)
    to = chance.choice(ALL_TYPES)
    desc = dml.Cast(
        input_tensor=tensor(chance, chance.choice(ALL_TYPES), sizes),
        output_tensor=tensor(chance, to, sizes, output=True),
    )

    def expected(arrays: Arrays) -> Arrays:
        return {"OutputTensor": bits(converted(arrays["InputTensor"], to.numpy))}

    return Case(desc, expected)


def identity(chance: Random) -> Case:
    sizes, data = any_sizes(chance), chance.choice(ALL_TYPES)
    scale, bias = (chance.choice((0.0, 1.0, -2.5, 0.1, 3e38, 1e-40)) for _ in range(2))
    scaled = chance.random() < 0.8
    desc = dml.ElementWiseIdentity(
        input_tensor=tensor(chance, data, sizes),
        output_tensor=tensor(chance, data, sizes, output=True),
        scale_bias=(scale, bias) if scaled else None,
    )
    single = data in (dml.DataType.FLOAT32, dml.DataType.FLOAT16)
    wide = np.dtype(np.float32 if single else np.float64)
    factor, summand = (wide.type(np.float32(number)) for number in (scale, bias))

    def expected(arrays: Arrays) -> Arrays:
        x = arrays["InputTensor"]
        if not scaled:
            return {"OutputTensor": bits(x)}
        with np.errstate(all="ignore"):
            product = x.astype(wide) * factor
            made = product + summand
        made = np.where(np.isnan(made), wide.type(np.nan), made)
        return {"OutputTensor": bits(converted(made, data.numpy))}

    return Case(desc, expected)


def sequence(chance: Random) -> Case:
    sizes = any_sizes(chance)
    data = chance.choice([one for one in ALL_TYPES if one is not dml.DataType.FLOAT64])
    kind = data.numpy
    start, delta = _start_and_delta(chance, kind)
    desc = dml.FillValueSequence(
        output_tensor=tensor(chance, data, sizes, output=True),
        value_data_type=data,
        value_start=start,
        value_delta=delta,
    )

    def expected(_: Arrays) -> Arrays:
        with np.errstate(all="ignore"):
            steps = np.full(sizes, delta).reshape(-1).astype(kind)
            steps[0] = np.asarray(start).astype(kind)
            made = np.add.accumulate(steps, dtype=kind).reshape(sizes)  # one after the other
            if kind.kind == "f":
                made = np.where(np.isnan(made), kind.type(np.nan), made)
        return {"OutputTensor": bits(made)}

    return Case(desc, expected)


def _start_and_delta(chance: Random, kind: np.dtype[Any]) -> tuple[Any, Any]:
    if kind.kind == "f":
        start, delta = (chance.uniform(-4000, 4000) * 2.0 ** chance.randint(-30, 3) for _ in "ab")
        return (start, chance.choice((delta, start / 64, -start / 4096, 0.0)))
    limits = np.iinfo(kind)
    least, most = int(limits.min), int(limits.max)
    small = chance.choice((1, 3, -1, chance.randint(-100, 100)))
    return chance.randint(least, most), chance.choice((small, chance.randint(least, most)))


def padding(chance: Random) -> Case:
    sizes, data = any_sizes(chance, 4), chance.choice(ALL_TYPES)
    starts = [chance.choice((0, 0, 1, 2, 5)) for _ in sizes]
    ends = [chance.choice((0, 0, 1, 3, 4)) for _ in sizes]
    mode = chance.choice(list(dml.PaddingMode))
    value = chance.randint(0, 100)
    padded_sizes = tuple(map(sum, zip(starts, sizes, ends, strict=True)))
    given: dict[str, Any] = {
        "input_tensor": tensor(chance, data, sizes),
        "output_tensor": tensor(chance, data, padded_sizes, output=True),
        "padding_mode": mode,
        "padding_value": value,
        "start_padding": starts,
        "end_padding": ends,
    }
    desc = chance.choice(
        (
            lambda: dml.Padding(**given),
            lambda: dml.Padding1(**given, padding_value_data_type=data),
        )
    )()

    def expected(arrays: Arrays) -> Arrays:
        result = bits(arrays["InputTensor"])
        filler = bits(np.array([value], data.numpy))[0]
        for axis, (start, size, end) in enumerate(zip(starts, sizes, ends, strict=True)):
            at = np.arange(-start, size + end)
            inside = (at >= 0) & (at < size)
            period = 2 * size - 2 * (mode is dml.PaddingMode.REFLECTION)
            if mode is dml.PaddingMode.EDGE or mode is dml.PaddingMode.CONSTANT:
                at = at.clip(0, size - 1)
            elif mode is dml.PaddingMode.WRAP or size == 1:
                at %= size
            else:
                at = np.minimum(at % period, period - at % period - (period == 2 * size))
            result = np.take(result, at, axis)
            if mode is dml.PaddingMode.CONSTANT:
                along = inside.reshape(-1, *(1,) * (len(sizes) - axis - 1))
                result = np.where(along, result, filler)
        return {"OutputTensor": result}

    return Case(desc, expected)


def converted(x: Array, to: Any) -> Array:
    """Another type: saturated, NaN as 0 or the canonical one."""
    if x.dtype == to:
        return x
    with np.errstate(all="ignore"):
        if to.kind == "f":
            result = x.astype(to)
            return np.where(np.isnan(result), to.type(np.nan), result)
        if x.dtype.kind != "f":
            return x.astype(to)
        limits = np.iinfo(to)
        wide = np.where(np.isnan(x), 0, x).astype(np.float64)
        high, low = wide >= float(limits.max), wide <= float(limits.min)
        kept = np.trunc(np.where(high | low, 0, wide)).astype(to)
        return np.where(high, limits.max, np.where(low, limits.min, kept)).astype(to)


MAKERS = (
    *(slice1, slice_, cast, identity, sequence, constant, padding, tile),
    *(reverse, upsample),
)
