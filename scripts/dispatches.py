"""Dispatch generated operators and compare every result with NumPy, to the bit.

    python scripts/dispatches.py --count 1000000 --state build/dispatches.json

Chunks of a thousand dispatches have a seed of their own each, so that a run goes on where the last
one ended and a failure is repeated by `--seed S --only CHUNK`. The references are NumPy's own
operations on the indices, independent of the kernels and of the rooms' loops. Operands lie in any
layout, outputs in watched memory, and some indices are bad: then nothing may be written.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import anydml as dml
from anydml.dtypes import ALL_TYPES, INDEX_TYPES, UP_TO_32_BITS
from anydml.testing.contents import special_values

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = dict[str, Any]
Sizes = tuple[int, ...]

CHUNK = 1000
# Dispatches of one descriptor, each with contents, layouts and threads of its own.
REPEATS = 8

_CPU = dml.Device("cpu")


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


# ---- descriptors --------------------------------------------------------------------------------


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


MAKERS = (top_k, nonzero, slabs, elements, elements, gather, nd, nd)


# ---- operands -----------------------------------------------------------------------------------


def bits(x: Array) -> Array:
    """The elements as unsigned integers, so that nothing on the way looks at them as numbers."""
    return x.view(f"u{x.dtype.itemsize}")


def wrapped(lookup: Array, size: Any) -> Array:
    at = lookup.astype(np.int64)
    return np.where(at < 0, at + size, at)


@cache
def pool(kind: np.dtype[Any]) -> Array:
    return special_values(kind)


def contents(chance: Random, noise: np.random.Generator, count: int, kind: np.dtype[Any]) -> Array:
    draw = chance.random()
    if draw < 0.4:
        raw = np.frombuffer(noise.bytes(count * kind.itemsize), kind)
        return raw if draw < 0.3 else np.sort(raw)
    edges = pool(kind)
    if draw < 0.6:
        return edges[noise.integers(0, len(edges), count)]
    if draw < 0.75:  # few values, of long runs of equals
        return edges[noise.integers(0, len(edges), 3)][noise.integers(0, 3, count)]
    mostly = np.zeros(count, kind)
    some = noise.random(count) < chance.choice((0.01, 0.2, 0.9))
    mostly[some] = edges[noise.integers(0, len(edges), int(some.sum()))]
    return mostly


def lookups(
    chance: Random, noise: np.random.Generator, shape: Sizes, kind: np.dtype[Any], limits: Any
) -> Array:
    sizes = np.asarray(limits)
    found = noise.integers(0, np.broadcast_to(sizes, shape))
    if chance.random() < 0.2:
        found = found // 2
    if kind.kind == "i" and chance.random() < 0.5:
        found = np.where(noise.random(shape) < 0.5, found - sizes, found)
    values = found.astype(kind)
    if chance.random() < 0.05:
        for _ in range(chance.randint(1, 3)):
            flat = chance.randrange(values.size)
            size = int(np.broadcast_to(sizes, shape).flat[flat])
            wrong = [size, size + 1, np.iinfo(kind).max, 2**31]
            if kind.kind == "i":
                wrong = [size, -size - 1, np.iinfo(kind).min, np.iinfo(kind).max]
            values.flat[flat] = chance.choice(wrong)
    return values


def first_bad(lookup: Array, limits: Any) -> tuple[int, ...] | None:
    least = -np.asarray(limits, np.int64) if lookup.dtype.kind == "i" else np.int64(0)
    if lookup.dtype.kind == "i":
        wrong = (lookup < least) | (lookup >= np.asarray(limits, np.int64))
    else:
        wrong = lookup >= np.asarray(limits, np.uint64)
    flat = int(np.argmax(wrong))
    if not wrong.flat[flat]:
        return None
    return tuple(map(int, np.unravel_index(flat, lookup.shape)))


class Operand:
    """What is bound for a tensor, its elements, and all the memory that they lie in."""

    def __init__(self, chance: Random, desc: dml.TensorDesc) -> None:
        kind, sizes = desc.data_type.numpy, desc.sizes
        draw = chance.random()
        self.memory: Array
        raw = desc.total_tensor_size_in_bytes
        if draw < 0.25 and (kind != np.uint8 or sizes != (raw,)):
            self.memory = np.full(raw + chance.choice((0, 0, 5)), 0xA5, np.uint8)
            strides = tuple(stride * kind.itemsize for stride in desc.element_strides)
            self.view: Array = np.ndarray(sizes, kind, self.memory, 0, strides)
            self.bound: Any = self.memory
        elif draw < 0.65:
            self.memory = np.full(desc.element_count * kind.itemsize, 0xA5, np.uint8)
            self.view = self.bound = self.memory.view(kind).reshape(sizes)
        else:
            order = list(range(len(sizes)))
            if chance.random() < 0.5:
                chance.shuffle(order)
            steps = [chance.choice((1, 1, 1, 2, 3, -1, -2)) for _ in sizes]
            shape = tuple(sizes[axis] * abs(steps[axis]) for axis in order)
            count = int(np.prod(shape))
            if count > 1_000_000:
                steps, shape, count = [1] * len(sizes), tuple(sizes[a] for a in order), 0
                count = int(np.prod(shape))
            self.memory = np.full(count * kind.itemsize, 0xA5, np.uint8)
            base = self.memory.view(kind).reshape(shape)
            place = tuple(slice(None, None, steps[axis]) for axis in order)
            self.view = self.bound = base[place].transpose(np.argsort(order))
        self.before = self.memory.copy()

    def put(self, values: Array) -> None:
        bits(self.view)[...] = bits(values.reshape(self.view.shape))
        self.before = self.memory.copy()

    def untouched(self) -> bool:
        return bool(np.array_equal(self.memory, self.before))

    def gaps_intact(self) -> bool:
        """Whether only elements have changed; puts the old ones back."""
        old = np.ndarray(
            self.view.shape, bits(self.view).dtype, self.before,
            self.view.__array_interface__["data"][0] - self.memory.__array_interface__["data"][0],
            self.view.strides,
        )  # fmt: skip
        bits(self.view)[...] = old
        return self.untouched()


# ---- a dispatch ---------------------------------------------------------------------------------


def fields(desc: Any, role: str) -> Iterator[tuple[str, Sequence[dml.TensorDesc], bool]]:
    for info in desc.tensor_fields():
        if info.role.value == role:
            value = getattr(desc, info.attribute)
            yield info.name, (value if info.many else (value,)), info.many


def dispatch(case: Case, chance: Random, noise: np.random.Generator, counts: Counter[str]) -> None:
    """One dispatch; an AssertionError when anything is not as it should be."""
    desc = case.desc
    arrays: Arrays = {}
    bound: Arrays = {}
    inputs: list[Operand] = []
    for name, tensors, many in fields(desc, "input tensor"):
        made = [Operand(chance, item) for item in tensors]
        for operand, item in zip(made, tensors, strict=True):
            kind = item.data_type.numpy
            if name == "IndicesTensor":
                operand.put(lookups(chance, noise, item.sizes, kind, case.limits))
            else:
                operand.put(contents(chance, noise, item.element_count, kind))
        inputs += made
        arrays[name] = [operand.view for operand in made] if many else made[0].view
        bound[name] = [operand.bound for operand in made] if many else made[0].bound
    outputs: dict[str, list[Operand]] = {}
    for name, tensors, many in fields(desc, "output tensor"):
        outputs[name] = [Operand(chance, item) for item in tensors]
        targets = [operand.bound for operand in outputs[name]]
        bound[name] = targets if many else targets[0]
    bad = None if case.limits is None else first_bad(arrays["IndicesTensor"], case.limits)
    counts[desc.NAME] += 1
    try:
        with dml.num_threads(chance.randint(1, 3)):
            case.compiled.dispatch(**bound)
    except dml.IndexOutOfRangeError as error:
        counts["bad indices"] += 1
        found = error.position
        assert found == bad, f"bad index at {found}, not {bad}: {desc}"
        assert all(o.untouched() for many in outputs.values() for o in many), f"written: {desc}"
    else:
        assert bad is None, f"bad index at {bad} taken: {desc}"
        for name, wanted in case.expected(arrays).items():
            several = wanted if isinstance(wanted, list) else [wanted]
            for operand, reference in zip(outputs[name], several, strict=True):
                got = bits(operand.view)
                if name == "OutputCoordinatesTensor":
                    got = got.reshape(-1, got.shape[-1])
                    assert np.all(got[len(reference) :] == 0xA5A5A5A5), f"spare rows: {desc}"
                    got = got[: len(reference)]
                assert np.array_equal(got, bits(reference)), f"{name}: {desc}"
                assert operand.gaps_intact(), f"gaps of {name}: {desc}"
    assert all(operand.untouched() for operand in inputs), f"an input was written: {desc}"


def run_chunk(seed: int, number: int, counts: Counter[str]) -> None:
    """A thousand dispatches."""
    chance = Random(f"{seed} {number}")
    noise = np.random.default_rng([seed, number])
    for _ in range(CHUNK // REPEATS):
        case = chance.choice(MAKERS)(chance)
        for _ in range(REPEATS):
            dispatch(case, chance, noise, counts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is left of the dispatches; 0 when all were right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="dispatches in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this chunk alone")
    parser.add_argument("--state", type=Path, help="a file that says how far the last run came")
    given = parser.parse_args(arguments)
    if given.only is not None:
        run_chunk(given.seed, given.only, Counter())
        return 0
    state: dict[str, Any] = {"seed": given.seed, "chunks": 0, "seconds": 0.0, "counts": {}}
    if given.state and given.state.exists():
        state = json.loads(given.state.read_text())
    counts: Counter[str] = Counter(state["counts"])
    while state["chunks"] * CHUNK < given.count:
        start = time.perf_counter()
        try:
            run_chunk(state["seed"], state["chunks"], counts)
        except AssertionError as error:
            print(f"seed {state['seed']}, chunk {state['chunks']}: {error}", file=sys.stderr)
            return 1
        state["chunks"] += 1
        state["seconds"] = round(state["seconds"] + time.perf_counter() - start, 3)
        state["counts"] = dict(sorted(counts.items()))
        if given.state:
            given.state.write_text(json.dumps(state) + "\n")
        if state["chunks"] % 10 == 0 or state["chunks"] * CHUNK >= given.count:
            print(f"{state['chunks'] * CHUNK} dispatches, {state['seconds']:.0f} s:",
                  ", ".join(f"{n} {name}" for name, n in state["counts"].items()), flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
