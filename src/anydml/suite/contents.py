"""Element values that kernels get wrong, made from a random generator."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Flavour(enum.Enum):
    """The contents of an array.

    RANDOM is any bits, SPECIAL the values at the edges of the type, TIED a handful of values,
    SPARSE mostly zeros of both signs, SORTED and REVERSED an order, CONSTANT one value.
    """

    RANDOM = "random"
    SPECIAL = "special"
    TIED = "tied"
    SPARSE = "sparse"
    SORTED = "sorted"
    REVERSED = "reversed"
    CONSTANT = "constant"


def contents(
    generator: np.random.Generator, shape: Sequence[int], dtype: Any, flavour: Flavour
) -> Array:
    """A packed array of the given flavour.

    Parameters
    ----------
    generator : numpy.random.Generator
        Where chance comes from.
    shape : sequence of int
        Its shape.
    dtype : dtype_like
        Its element type.
    flavour : Flavour
        What it is full of.

    Examples
    --------
    >>> import numpy as np
    >>> from anydml.suite.contents import Flavour, contents
    >>> contents(np.random.default_rng(1), (2, 3), "i1", Flavour.CONSTANT).shape
    (2, 3)
    """
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    pool = special_values(kind)
    if flavour is Flavour.SPECIAL:
        flat = pool[generator.integers(0, len(pool), count)]
    elif flavour is Flavour.TIED:
        few_values = pool[generator.integers(0, len(pool), 3)]
        flat = few_values[generator.integers(0, len(few_values), count)]
    elif flavour is Flavour.SPARSE:
        zeros = np.array([0, -0.0]).astype(kind) if kind.kind in "fV" else np.zeros(2, kind)
        flat = zeros[generator.integers(0, 2, count)]
        chosen = generator.random(count) < 0.1
        flat[chosen] = pool[generator.integers(0, len(pool), int(chosen.sum()))]
    elif flavour is Flavour.CONSTANT:
        flat = np.repeat(pool[generator.integers(0, len(pool), 1)], count)
    else:
        flat = _any_bits(generator, count, kind)
        if flavour is not Flavour.RANDOM:
            flat.sort()
        if flavour is Flavour.REVERSED:
            flat = flat[::-1].copy()
    return flat.reshape(tuple(shape))


def special_values(dtype: Any) -> Array:
    """The values at the edges of a type: extremes, zeros, neighbours, NaNs of several payloads."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        edges = {info.min, info.min + 1, 0, 1, 2, 3, info.max // 2, info.max - 1, info.max}
        if kind.kind == "i":
            edges |= {-1, -2}
        return np.array(sorted(edges), kind)
    real = limits(kind)
    numbers = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, real.max, real.min, real.tiny,
               real.smallest_subnormal, -real.smallest_subnormal]  # fmt: skip
    plain = np.array(numbers, kind)
    width = kind.itemsize
    quiet = int(np.array(np.inf, kind).view(f"u{width}")) | 1 << (real.nmant - 1)
    sign = 1 << (8 * width - 1)
    # Quiet NaNs of either sign and several payloads, and one that signals.
    signalling = (quiet ^ (1 << (real.nmant - 1))) | 1
    nans = [quiet, quiet | 5, quiet | sign, quiet | sign | 9, signalling]
    return np.concatenate([plain, np.array(nans, f"u{width}").view(kind)])


def limits(dtype: Any) -> Any:
    """The limits of a float type, of bfloat16 too, as `numpy.finfo` has them."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.finfo(kind)
    import ml_dtypes

    return ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]  # as it is


def indices(
    generator: np.random.Generator,
    shape: Sequence[int],
    sizes: int | Sequence[int],
    dtype: Any,
) -> Array:
    """Valid indices, counted from either end where the type is signed.

    Parameters
    ----------
    generator : numpy.random.Generator
        Where chance comes from.
    shape : sequence of int
        Shape of the index array.
    sizes : int or sequence of int
        Size of the axis, or one size for each coordinate on the last axis of the shape.
    dtype : dtype_like
        An integer type.
    """
    kind = np.dtype(dtype)
    high = np.broadcast_to(np.maximum(np.asarray(sizes), 1), tuple(shape))
    found = np.asarray(generator.integers(0, high))
    if kind.kind == "i":
        backwards = generator.random(found.shape) < 0.4
        found = np.where(backwards, found - np.asarray(sizes), found)
    return np.asarray(found).astype(kind)


def _any_bits(generator: np.random.Generator, count: int, kind: np.dtype[Any]) -> Array:
    raw: Array = np.frombuffer(generator.bytes(count * kind.itemsize), np.uint8).copy()
    values: Array = raw % 2 == 1 if kind.kind == "b" else raw.view(kind)
    return values
