"""Generated descriptors with NumPy's own operations as their references, for `dispatches.py`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import anydml as dml
from anydml.dtypes import ALL_TYPES, INDEX_TYPES, UP_TO_32_BITS

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Any]
Sizes = tuple[int, ...]

_CPU = dml.Device("cpu")


def bits(x: Array) -> Array:
    """The elements as unsigned integers, so that nothing on the way looks at them as numbers."""
    return x.view(f"u{x.dtype.itemsize}")


def wrapped(lookup: Array, size: Any) -> Array:
    at = lookup.astype(np.int64)
    return np.where(at < 0, at + size, at)


class Case:
    """A descriptor, what its inputs hold, and what must come out."""

    def __init__(
        self,
        desc: Any,
        expected: Callable[[Arrays], Arrays],
        limits: int | Sizes | None = None,
    ) -> None:
        self.desc = desc
        self.compiled = _CPU.create_operator(desc).compile()
        self.expected = expected
        self.limits = limits  # of the values of IndicesTensor


def any_sizes(chance: Random, most_rank: int = 8) -> Sizes:
    """Mostly few elements, now and then enough for every algorithm and for threads."""
    draw = chance.random()
    left = 40 if draw < 0.5 else 300 if draw < 0.85 else 3000 if draw < 0.985 else 100_000
    rank = chance.randint(1, most_rank if chance.random() < 0.3 else min(most_rank, 4))
    sizes = []
    for _ in range(rank):
        most = max(1, min(left, chance.choice((2, 4, 9, 70, left))))
        sizes.append(chance.randint(1, most))
        left //= sizes[-1]
    if chance.random() < 0.3 and left > 1:
        sizes[-1] *= chance.randint(1, left)
    if chance.random() < 0.5:
        chance.shuffle(sizes)
    return tuple(sizes)


def tensor(chance: Random, data_type: Any, sizes: Sizes, *, output: bool = False) -> dml.TensorDesc:
    """Packed, or with strides of any order, with gaps, repeated in inputs."""
    if chance.random() < 0.6:
        return dml.TensorDesc(data_type, sizes)
    strides = [0] * len(sizes)
    step = 1
    order = list(range(len(sizes)))
    if chance.random() < 0.5:
        chance.shuffle(order)
    for axis in reversed(order):
        if not output and chance.random() < 0.1:
            continue
        step += chance.choice((0, 0, 0, 1, 2))
        strides[axis] = step
        step *= sizes[axis]
    return dml.TensorDesc(data_type, sizes, strides)


def replaced(sizes: Sizes, axis: int, size: int) -> Sizes:
    return (*sizes[:axis], size, *sizes[axis + 1 :])


def padded(sizes: Sizes, rank: int) -> Sizes:
    return (1,) * (rank - len(sizes)) + sizes


def top_k(chance: Random) -> Case:
    sizes = any_sizes(chance)
    axis = chance.randrange(len(sizes))
    n = sizes[axis]
    k = min(n, chance.choice((1, 2, 8, n, n // 16 + 1, chance.randint(1, n))))
    selected = replaced(sizes, axis, k)
    data = chance.choice((*UP_TO_32_BITS, dml.DataType.INT64, dml.DataType.UINT64))
    index = chance.choice((dml.DataType.UINT32, dml.DataType.UINT64))
    given: Arrays = {
        "input_tensor": tensor(chance, data, sizes),
        "output_value_tensor": tensor(chance, data, selected, output=True),
        "output_index_tensor": tensor(chance, index, selected, output=True),
        "axis": axis,
        "k": k,
    }
    largest = True
    if chance.random() < 0.7:
        largest = chance.random() < 0.5
        direction = "DECREASING" if largest else "INCREASING"
        desc: Any = dml.TopK1(**given, axis_direction=direction)
    else:
        desc = dml.TopK(**given)

    def expected(arrays: Arrays) -> Arrays:
        x = arrays["InputTensor"]
        order = np.argsort(keys(x, largest), axis=axis, kind="stable")
        chosen = np.take(order, range(k), axis=axis)
        values = np.take_along_axis(bits(x), chosen, axis)
        return {"OutputValueTensor": values, "OutputIndexTensor": chosen.astype(index.numpy)}

    return Case(desc, expected)


def keys(x: Array, largest: bool) -> Array:
    """Integers in the order of the elements: NaN on top, -0.0 with 0.0."""
    if x.dtype.kind == "f":
        raw = x.view(f"i{x.dtype.itemsize}")
        least, most = np.iinfo(raw.dtype).min, np.iinfo(raw.dtype).max
        with np.errstate(over="ignore"):
            ordered = np.where(raw < 0, least - raw, raw)
        x = np.where(np.isnan(x), most, ordered).astype(raw.dtype)
    return ~x if largest else x


def nonzero(chance: Random) -> Case:
    sizes = any_sizes(chance)
    effective = next((len(sizes) - i for i, size in enumerate(sizes) if size != 1), 0)
    columns = chance.randint(max(1, effective), len(sizes))
    elements = int(np.prod(sizes))
    rank = chance.randint(2, 8)
    index = dml.DataType.UINT32
    desc = dml.NonzeroCoordinates(
        input_tensor=tensor(chance, chance.choice(UP_TO_32_BITS), sizes),
        output_count_tensor=tensor(chance, index, (1,) * chance.randint(1, 8), output=True),
        output_coordinates_tensor=tensor(
            chance, index, padded((elements, columns), rank), output=True
        ),
    )

    def expected(arrays: Arrays) -> Arrays:
        rows = np.argwhere(arrays["InputTensor"] != 0)[:, len(sizes) - columns :]
        count = np.full(desc.output_count_tensor.sizes, len(rows), np.uint32)
        return {"OutputCountTensor": count, "OutputCoordinatesTensor": rows.astype(np.uint32)}

    return Case(desc, expected)


def slabs(chance: Random) -> Case:
    sizes, data = any_sizes(chance), chance.choice(ALL_TYPES)
    axis = chance.randrange(len(sizes))
    most = min(sizes[axis], chance.choice((2, 4, 9, 40)))
    cuts = sorted({chance.randrange(sizes[axis]) for _ in range(most)} - {0})
    if chance.random() < 0.3 and sizes[axis] % most == 0:
        cuts = list(range(sizes[axis] // most, sizes[axis], sizes[axis] // most))
    lengths = np.diff([0, *cuts, sizes[axis]])
    joining = chance.random() < 0.5
    whole = tensor(chance, data, sizes, output=joining)
    parts = [
        tensor(chance, data, replaced(sizes, axis, int(length)), output=not joining)
        for length in lengths
    ]
    if joining:
        join = dml.Join(input_tensors=parts, output_tensor=whole, axis=axis)
        return Case(
            join,
            lambda a: {"OutputTensor": np.concatenate(list(map(bits, a["InputTensors"])), axis)},
        )
    split = dml.Split(input_tensor=whole, output_tensors=parts, axis=axis)
    return Case(split, lambda a: {"OutputTensors": np.split(bits(a["InputTensor"]), cuts, axis)})


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


def elements(chance: Random) -> Case:
    sizes = any_sizes(chance)
    data, index = chance.choice(ALL_TYPES), chance.choice(INDEX_TYPES)
    axis = chance.randrange(len(sizes))
    length = chance.choice((1, sizes[axis], chance.randint(1, 2 * sizes[axis])))
    lookup = replaced(sizes, axis, length)
    given: Arrays = {
        "input_tensor": tensor(chance, data, sizes),
        "indices_tensor": tensor(chance, index, lookup),
        "axis": axis,
    }
    if chance.random() < 0.5:
        desc: Any = dml.GatherElements(
            **given, output_tensor=tensor(chance, data, lookup, output=True)
        )

        def gathered(arrays: Arrays) -> Arrays:
            at = wrapped(arrays["IndicesTensor"], sizes[axis])
            return {"OutputTensor": np.take_along_axis(bits(arrays["InputTensor"]), at, axis)}

        return Case(desc, gathered, sizes[axis])
    desc = dml.Scatter(
        **given,
        updates_tensor=tensor(chance, data, lookup),
        output_tensor=tensor(chance, data, sizes, output=True),
    )

    def scattered(arrays: Arrays) -> Arrays:
        result = bits(arrays["InputTensor"]).copy()
        # Duplicates: NumPy's assignment goes in order, so the last one stays.
        at = wrapped(arrays["IndicesTensor"], sizes[axis])
        np.put_along_axis(result, at, bits(arrays["UpdatesTensor"]), axis)
        return {"OutputTensor": result}

    return Case(desc, scattered, sizes[axis])


def gather(chance: Random) -> Case:
    sizes = any_sizes(chance, 4)
    data, index = chance.choice(ALL_TYPES), chance.choice(INDEX_TYPES)
    lookup: Sizes = any_sizes(chance, 3)[chance.randint(0, 1) :]
    axis = chance.randrange(len(sizes))
    natural = sizes[:axis] + lookup + sizes[axis + 1 :]
    if np.prod(natural) > 200_000:
        return gather(chance)
    rank = chance.randint(max(len(natural), len(sizes), len(lookup)), 8)
    desc = dml.Gather(
        input_tensor=tensor(chance, data, padded(sizes, rank)),
        indices_tensor=tensor(chance, index, padded(lookup, rank)),
        output_tensor=tensor(chance, data, padded(natural, rank), output=True),
        axis=axis + rank - len(sizes),
        index_dimensions=len(lookup),
    )

    def expected(arrays: Arrays) -> Arrays:
        x = bits(arrays["InputTensor"]).reshape(sizes)
        at = wrapped(arrays["IndicesTensor"], sizes[axis]).reshape(lookup)
        return {"OutputTensor": np.take(x, at, axis).reshape(padded(natural, rank))}

    return Case(desc, expected, sizes[axis])


def nd(chance: Random) -> Case:
    sizes = any_sizes(chance, 5)
    data, index = chance.choice(ALL_TYPES), chance.choice(INDEX_TYPES)
    kind = chance.choice((dml.GatherND, dml.GatherND1, dml.ScatterND))
    batch = chance.randint(0, min(2, len(sizes) - 1)) if kind is dml.GatherND1 else 0
    length = chance.randint(1, len(sizes) - batch)
    more = any_sizes(chance, 2)[chance.randint(0, 1) :]
    lookup = (*sizes[:batch], *more, length)
    block = lookup[:-1] + sizes[batch + length :]
    least = max(len(sizes), len(lookup), len(block))
    if least > 8 or np.prod(block) > 200_000 or np.prod(lookup) > 200_000:
        return nd(chance)
    rank = chance.randint(least, 8)
    output = sizes if kind is dml.ScatterND else block
    given: Arrays = {
        "input_tensor": tensor(chance, data, padded(sizes, rank)),
        "indices_tensor": tensor(chance, index, padded(lookup, rank)),
        "output_tensor": tensor(chance, data, padded(output, rank), output=True),
        "input_dimension_count": len(sizes),
        "indices_dimension_count": len(lookup),
    }
    if kind is dml.ScatterND:
        given["updates_tensor"] = tensor(chance, data, padded(block, rank))
    if kind is dml.GatherND1:
        given["batch_dimension_count"] = batch
    limits = sizes[batch : batch + length]

    def expected(arrays: Arrays) -> Arrays:
        at = wrapped(arrays["IndicesTensor"], np.array(limits)).reshape(lookup)
        grid = np.ogrid[tuple(slice(size) for size in lookup[:batch])]
        # A coordinate of a batch has the rank of the tuples.
        place = [g.reshape(g.shape + (1,) * len(more)) for g in grid]
        place += list(np.moveaxis(at, -1, 0))
        x = bits(arrays["InputTensor"]).reshape(sizes)
        if kind is not dml.ScatterND:
            return {"OutputTensor": x[tuple(place)].reshape(padded(block, rank))}
        result = x.copy()
        # Of one dimension, which NumPy walks in order: the last of duplicates stays.
        flat = tuple(np.ascontiguousarray(one).reshape(-1) for one in place)
        result[flat] = bits(arrays["UpdatesTensor"]).reshape(len(flat[0]), *sizes[length:])
        return {"OutputTensor": result.reshape(padded(sizes, rank))}

    return Case(kind(**given), expected, limits)


MAKERS = (
    *(top_k, nonzero, slabs, slice1, slice_, cast, identity, sequence, constant, padding, tile),
    *(elements, elements, gather, nd, nd),
)
