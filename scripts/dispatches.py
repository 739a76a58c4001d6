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
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from dispatch_case import Array, Arrays, Case, Sizes, bits
from dispatch_cases import MAKERS

import anydml as dml
from support.contents import special_values

CHUNK = 1000
# Dispatches of one descriptor, each with contents, layouts and threads of its own.
REPEATS = 8


# ---- operands -----------------------------------------------------------------------------------


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
        raw = desc.total_tensor_size_in_bytes + chance.choice((0, 0, 5))
        # An array of the tensor's own type and sizes is no raw buffer.
        if draw < 0.25 and (kind != np.uint8 or sizes != (raw,)):
            self.memory = np.full(raw, 0xA5, np.uint8)
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
                steps, shape = [1] * len(sizes), tuple(sizes[axis] for axis in order)
                count = desc.element_count
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


def dispatch(
    case: Case,
    chance: Random,
    noise: np.random.Generator,
    counts: Counter[str],
    threads: int | None = None,
) -> None:
    """One dispatch; an AssertionError when anything is not as it should be.

    Without `threads` as many as the process's setting says.
    """
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
        with dml.num_threads(threads) if threads else nullcontext():
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
            dispatch(case, chance, noise, counts, chance.randint(1, 3))


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
            each = ", ".join(f"{n} {name}" for name, n in state["counts"].items())
            done = state["chunks"] * CHUNK
            print(f"{done} dispatches, {state['seconds']:.0f} s: {each}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
