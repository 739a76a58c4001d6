"""What generated cases are made of: sizes, tensors, bits; see `dispatch_cases.py`."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import anydml as dml

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
