"""Generated descriptors with NumPy's own operations as their references, for `dispatches.py`."""

from __future__ import annotations

from random import Random
from typing import Any

import mover_cases
import numpy as np
from dispatch_case import (
    Array,
    Arrays,
    Case,
    Sizes,
    any_sizes,
    bits,
    padded,
    replaced,
    tensor,
    wrapped,
)

import anydml as dml
from anydml.dtypes import ALL_TYPES, INDEX_TYPES, UP_TO_32_BITS


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
    *(top_k, nonzero, slabs),
    *mover_cases.MAKERS,
    *(elements, elements, gather, nd, nd),
)
