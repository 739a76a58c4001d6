"""The promises of each function, and the cases that try them.

A promise calls the function that is judged with NumPy arrays, and yields a message for each case
that breaks it. Cases go from small to large, so that the first message is short. The expected
results are computed in plain Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from anydml.core._json import counted

Array = np.ndarray[Any, np.dtype[Any]]


class Caller(Protocol):
    """The function that is judged, on NumPy arrays."""

    def __call__(self, *arguments: Any) -> Any:
        """Call it; raise `RefusedError` for an error of the function."""

    def threads(self, count: int) -> AbstractContextManager[None]:
        """Set the number of threads; raise `UntriedError` if that is not possible."""

    def shares(self, size: int, count: int) -> bool:
        """Return whether writing to the first part of a split changes the array."""

    def further(self, what: str, *arguments: Any) -> Any:
        """Call the library's ``gradient`` or ``replay``; raise `UntriedError` if it has none."""


SIZES: Final = (3, 4, 5, 8, 16, 40, 100, 1000, 5000)
FLOATS: Final = ("float16", "float32", "float64")
INTEGERS: Final = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_SHOWN: Final = 8


class RefusedError(Exception):
    """The function has raised an error, whose text this has.

    Attributes
    ----------
    left : numpy.ndarray or None
        The first argument after the error.
    """

    def __init__(self, text: str, left: Array | None = None) -> None:
        super().__init__(text)
        self.left = left


class UntriedError(Exception):
    """A promise cannot be tried."""


@dataclass(frozen=True)
class Promise:
    """One promise of a function.

    Attributes
    ----------
    function : str
        What is judged: ``top_k``, ``nonzero``, ``scatter``, ...
    name : str
        A short name, unique for the function.
    text : str
        The promise as a sentence.
    broken : callable
        Takes the caller; returns what is wrong in the first case that breaks the promise, or None.
    is_large : bool
        Whether its arrays have more than 2^31 elements. It is tried on request.
    """

    function: str
    name: str
    text: str
    broken: Callable[[Caller], str | None] = field(repr=False, compare=False)
    is_large: bool = False


PROMISES: Final[list[Promise]] = []
"""All promises, by function."""


def _promise(function: str, name: str, text: str, is_large: bool = False) -> Callable[[Any], Any]:
    def register(cases: Callable[[Caller], Iterator[str | None]]) -> Any:
        def broken(call: Caller) -> str | None:
            return next((wrong for wrong in cases(call) if wrong is not None), None)

        PROMISES.append(Promise(function, name, text, broken, is_large))
        return cases

    return register


def shown(x: Any) -> str:
    """An array in one line, its end left out if it is long."""
    array = np.asarray(x)
    if array.size <= _SHOWN:
        return f"{array.tolist()}"
    first = ", ".join(map(str, array.reshape(-1)[:_SHOWN].tolist()))
    return f"[{first}, ...] ({'×'.join(map(str, array.shape))} {array.dtype})"


def _differs(call: str, what: str, got: Any, expected: Any) -> str | None:
    """Describe the first element that differs; None if none does."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return f"{call}: expected {what} of shape {expected.shape}, got {got.shape}"
    with np.errstate(invalid="ignore"):  # of a signalling NaN that is cast
        equal = (got == expected) | ((got != got) & (expected != expected))
    if np.all(equal):
        return None
    at = int(np.flatnonzero(~equal.reshape(-1))[0])
    where = "" if got.size <= _SHOWN else f" at {at}"
    if got.size > _SHOWN:
        got, expected = got.reshape(-1)[at : at + 1], expected.reshape(-1)[at : at + 1]
    return f"{call}: expected {what} {expected.tolist()}{where}, got {got.tolist()}"


def _random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---- top_k: (x, k) -> values and indices of the k largest elements of the last axis, sorted


def _expected_top(row: Sequence[Any], k: int) -> list[int]:
    # NaN above every number, equal elements in the order of their indices.
    return sorted(range(len(row)), key=lambda i: (row[i] == row[i], -row[i] if row[i] == row[i]
                                                  else 0, i))[:k]  # fmt: skip


def _ks(size: int) -> list[int]:
    return sorted({1, 2, size // 2, size - 1})


def _top_k(call: Caller, x: Array, k: int) -> tuple[Array, Array, str]:
    values, indices = call(x, k)
    return np.asarray(values), np.asarray(indices), f"top_k({shown(x)}, {k})"


def _judge_rows(call: Caller, rows: Iterator[Array]) -> Iterator[str | None]:
    """Try rows with several k; the indices must be the expected ones."""
    for x in rows:
        for k in _ks(x.size):
            _, indices, text = _top_k(call, x, k)
            yield _differs(text, "indices", indices, _expected_top(x.tolist(), k))


def _unequal(size: int, kind: str, seed: int = 0) -> Array:
    x = _random(seed).permutation(size)
    return np.asarray(x - size // 2 if np.dtype(kind).kind != "u" else x).astype(kind)


@_promise("top_k", "set", "the k largest elements of each row are found")
def _set(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        for kind in ("float32", "int32"):
            for k in _ks(size):
                x = _random(size).integers(-size, size, size).astype(kind)
                values, _, text = _top_k(call, x, k)
                expected = sorted(x.tolist(), reverse=True)[:k]
                yield _differs(text, "the values", sorted(values.tolist(), reverse=True), expected)


@_promise("top_k", "order", "values come from the largest to the smallest, each with its index")
def _order(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        for k in _ks(size):
            x = _unequal(size, "float32")
            values, indices, text = _top_k(call, x, k)
            yield _differs(text, "values", values, sorted(x.tolist(), reverse=True)[:k])
            yield _differs(text, "values at the indices", x[indices], values)


@_promise("top_k", "ties", "equal elements are in the order of their indices")
def _ties(call: Caller) -> Iterator[str | None]:
    yield from _judge_rows(call, (_random(seed).integers(0, 3, size).astype(kind)
                                  for size in SIZES for kind in ("float32", "int32")
                                  for seed in range(3)))  # fmt: skip
    yield from _judge_rows(call, (np.full(size, 1, "float32") for size in SIZES))


@_promise("top_k", "boundary", "of equal elements at the boundary the first are chosen")
def _boundary(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        for k in _ks(size):
            x = _random(k).integers(0, 3, size).astype("float32")
            _, indices, text = _top_k(call, x, k)
            expected = sorted(_expected_top(x.tolist(), k))
            yield _differs(text, "the chosen indices", sorted(indices.tolist()), expected)


@_promise("top_k", "NaN", "NaN is the largest, whatever its sign and payload")
def _nan(call: Caller) -> Iterator[str | None]:
    bits = {"float32": ("uint32", 0x7FC00000, 0x7F800001, 1 << 31),
            "float64": ("uint64", 0x7FF8 << 48, (0x7FF0 << 48) + 1, 1 << 63)}  # fmt: skip
    for size in SIZES:
        for kind, (unsigned, quiet, payload, sign) in bits.items():
            nans = np.array([quiet, quiet | sign, payload, payload | sign], unsigned).view(kind)
            x = _unequal(size, kind)
            for i, place in enumerate(_random(size).permutation(size)[: 1 + size // 3]):
                x[place] = nans[(i + 1) % len(nans)]
            for k in _ks(size):
                values, _, text = _top_k(call, x, k)
                count = min(k, int(np.isnan(x).sum()))
                rest = sorted(x[~np.isnan(x)].tolist(), reverse=True)[: k - count]
                yield _differs(text, "values", values, [float("nan")] * count + rest)


@_promise("top_k", "zeros", "-0 and +0 are equal: their order is that of their indices")
def _zeros(call: Caller) -> Iterator[str | None]:
    yield from _judge_rows(call, (np.where(_random(size).random(size) < 0.5, -0.0, 0.0)
                                  .astype(kind)
                                  for size in SIZES for kind in FLOATS))  # fmt: skip


@_promise("top_k", "bits", "values are the elements at the indices, bit for bit")
def _bits(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        bits = _random(size).integers(0, 1 << 32, size, np.uint32)
        bits[::3] |= 0x7F800000  # infinities and NaN with payloads
        x = bits.view(np.float32)
        values, indices, text = _top_k(call, x, size // 2)
        got = np.ascontiguousarray(values).view(np.uint32)
        yield _differs(text, "the bits", got, bits[indices])


@_promise("top_k", "denormals", "numbers below the smallest normal one have their order")
def _denormals(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        bits = (1 + _random(size).permutation(size)).astype(np.uint32)
        yield from _judge_rows(call, iter([bits.view(np.float32)]))


@_promise("top_k", "k", "k may be 0, 1 and the size of the row")
def _any_k(call: Caller) -> Iterator[str | None]:
    for size in (1, 2, 5, 40, 1000):
        x = _unequal(size, "float32")
        for k in (0, 1, size):
            _, indices, text = _top_k(call, x, k)
            yield _differs(text, "indices", indices, _expected_top(x.tolist(), k))


@_promise("top_k", "too much", "a k above the size of the row is an error")
def _too_much(call: Caller) -> Iterator[str | None]:
    for size in (1, 5, 100):
        yield _must_refuse(call, f"top_k of {counted(size, 'element')}, k {size + 1}",
                           _unequal(size, "float32"), size + 1)  # fmt: skip


@_promise("top_k", "types", "every float and integer type is taken")
def _types(call: Caller) -> Iterator[str | None]:
    for kind in (*FLOATS, *INTEGERS):
        x = _unequal(20, kind)
        if kind in ("int64", "uint64"):  # beyond the integers of float64
            x = x + np.array(1 << 62, kind)
        try:
            _, indices, _ = _top_k(call, x, 5)
        except RefusedError as error:
            yield f"{kind}: {error}"
        else:
            yield _differs(f"top_k of {kind}", "indices", indices, _expected_top(x.tolist(), 5))


@_promise("top_k", "strides", "views with steps give what their copies give")
def _strides(call: Caller) -> Iterator[str | None]:
    whole = _random().integers(0, 50, (6, 400)).astype("float32")
    for view in (whole[:, ::2], whole[:, 300:7:-3], whole[::2], whole[:, 1:].T):
        values, indices, text = _top_k(call, view, 3)
        again, at, _ = _top_k(call, view.copy(), 3)
        yield _differs(text, "values", values, again) or _differs(text, "indices", indices, at)


@_promise("top_k", "empty", "no rows, and k of 0 of an empty row, give empty results")
def _empty(call: Caller) -> Iterator[str | None]:
    for shape, k in (((0, 5), 2), ((3, 0), 0), ((2, 0, 4), 3)):
        _, indices, _ = _top_k(call, np.zeros(shape, "float32"), k)
        yield _differs(f"top_k of {shape}", "indices", indices, np.zeros((*shape[:-1], k)))


@_promise("top_k", "runs", "20 runs give the same bits")
def _runs(call: Caller) -> Iterator[str | None]:
    for rows, size in ((1, 5000), (64, 300), (4, 100_000)):
        x = _random(size).integers(0, 9, (rows, size)).astype("float32")
        yield _same(f"top_k of {rows} × {size} elements", partial(call, x, 50), 20)


@_promise("top_k", "batch", "a row alone gives what it gives among others")
def _batch(call: Caller) -> Iterator[str | None]:
    for rows, size in ((3, 40), (65, 300), (16, 5000)):
        x = _random(size).integers(0, 9, (rows, size)).astype("float32")
        _, together, _ = _top_k(call, x, 20)
        for row in (0, rows // 2, rows - 1):
            _, alone, _ = _top_k(call, x[row : row + 1], 20)
            yield _differs(f"row {row} of {rows} × {size}", "indices", alone[0], together[row])


def _same(text: str, run: Callable[[], Any], count: int) -> str | None:
    first = _as_bytes(run())
    for number in range(1, count):
        if _as_bytes(run()) != first:
            return f"{text}: run {number + 1} differs from the first"
    return None


def _as_bytes(results: Any) -> list[bytes]:
    many = results if isinstance(results, tuple | list) else [results]
    return [np.ascontiguousarray(x).tobytes() for x in many]


def _must_refuse(call: Caller, text: str, *arguments: Any) -> str | None:
    try:
        got = call(*arguments)
    except RefusedError:
        return None
    first = got[0] if isinstance(got, tuple | list) else got
    return f"{text}: expected an error, got {shown(first)}"


# ---- nonzero: x -> coordinates (count, rank)


@_promise("nonzero", "order", "coordinates come in row-major order")
def _coordinates(call: Caller) -> Iterator[str | None]:
    for shape in ((3,), (2, 3), (40,), (5, 6, 7), (300, 300)):
        x = _random(len(shape)).integers(0, 2, shape).astype("float32")
        expected = [at for at in np.ndindex(*shape) if x[at]]
        got = np.asarray(call(x)).reshape(-1, len(shape))
        yield _differs(f"nonzero({shown(x)})", "coordinates", got, expected)


@_promise("nonzero", "NaN", "NaN and denormals are not zero; -0 is")
def _not_zero(call: Caller) -> Iterator[str | None]:
    denormal = np.array([1], np.uint32).view(np.float32)[0].item()
    for x in ([np.nan, 0.0, 1.0], [-0.0, 0.0, 2.0], [0.0, denormal, -0.0]):
        array = np.array(x * 20, "float32")
        expected = [[i] for i, element in enumerate(array.tolist()) if element != 0]
        yield _differs(f"nonzero({x} * 20)", "coordinates", call(array), expected)


@_promise("nonzero", "empty", "an array without elements, or of zeros, has no coordinates")
def _no_coordinates(call: Caller) -> Iterator[str | None]:
    for shape in ((0,), (3, 0), (4, 5)):
        got = call(np.zeros(shape, "float32"))
        yield _differs(f"nonzero of {shape}", "coordinates", got, np.zeros((0, len(shape))))


# ---- scatter and scatter_add: (x, indices, updates) -> x with updates at the indices of axis 0


def _scatter_case(size: int, count: int, span: int) -> tuple[Array, Array, Array]:
    random = _random(size + count)
    x = np.arange(-size, 0).astype("float32")
    return x, random.integers(0, span, count), np.arange(count).astype("float32")


@_promise("scatter", "places", "updates are written at their indices")
def _places(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        x, _, updates = _scatter_case(size, size, size)
        indices = _random(size).permutation(size)
        expected = np.empty_like(x)
        for at, update in zip(indices.tolist(), updates.tolist(), strict=True):
            expected[at] = update
        yield _differs(f"scatter({shown(x)}, {shown(indices)}, {shown(updates)})", "the elements",
                       call(x, indices, updates), expected)  # fmt: skip


@_promise("scatter", "last wins", "of several updates of one element the last one remains")
def _last_wins(call: Caller) -> Iterator[str | None]:
    for size, count, span in ((3, 4, 2), (10, 30, 4), (1000, 4000, 300), (5000, 100_000, 5000),
                              (4_000_000, 2_000_000, 100_000)):  # fmt: skip
        x, indices, updates = _scatter_case(size, count, span)
        # The first of an index among the updates from the last to the first.
        written, last = np.unique(indices[::-1], return_index=True)
        expected = x.copy()
        expected[written] = updates[::-1][last]
        yield _differs(f"scatter({shown(x)}, {shown(indices)}, {shown(updates)})", "the elements",
                       call(x, indices, updates), expected)  # fmt: skip


@_promise("scatter", "runs", "20 runs give the same bits where updates meet")
def _scatter_runs(call: Caller) -> Iterator[str | None]:
    for size, count in ((100, 5000), (1000, 300_000)):
        case = _scatter_case(size, count, size // 4)
        yield _same(f"scatter of {count} updates", partial(call, *case), 20)


@_promise("scatter", "negative", "negative indices count from the end")
def _negative(call: Caller) -> Iterator[str | None]:
    x = np.zeros(3, "float32")
    got = call(x, np.array([-1]), np.ones(1, "float32"))
    yield _differs("scatter([0, 0, 0], [-1], [1])", "the elements", got, [0, 0, 1])


@_promise("scatter", "bad index", "an index out of range is an error")
def _bad_index(call: Caller) -> Iterator[str | None]:
    for bad in (3, -4, 1 << 31, -(1 << 62)):
        case = np.zeros(3, "float32"), np.array([bad]), np.ones(1, "float32")
        yield _must_refuse(call, f"scatter([0, 0, 0], [{bad}], [1])", *case)


@_promise("scatter_into", "unchanged", "after an error the array that is written is as before")
def _unchanged(call: Caller) -> Iterator[str | None]:
    for size in (4, 1000):
        x, indices = np.zeros(size, "float32"), np.arange(size)
        indices[-1] = size
        try:
            call(x, indices, np.ones(size, "float32"))
        except RefusedError as error:
            yield _differs(f"scatter_into of {size}, the last index out of range",
                           "the array", error.left, np.zeros(size))  # fmt: skip
        else:
            yield f"scatter_into of {size}: expected an error at the last index, got none"


@_promise("scatter_add", "sums", "each element has the sum of its updates")
def _sums(call: Caller) -> Iterator[str | None]:
    for size, count in ((3, 5), (40, 100), (1000, 20_000)):
        x, indices, updates = _scatter_case(size, count, size)
        expected = x + np.bincount(indices, updates, size)
        got = np.asarray(call(x, indices, updates), "float64")
        if not np.allclose(got, expected, rtol=1e-4):
            yield f"scatter_add of {count} updates: wrong sums"


@_promise("scatter_add", "runs", "sums of floats have the same bits in 20 runs")
def _sum_runs(call: Caller) -> Iterator[str | None]:
    for size, count in ((10, 3000), (1000, 300_000)):
        x, indices, _ = _scatter_case(size, count, size)
        case = x, indices, _random(1).random(count).astype("float32")
        yield _same(f"scatter_add of {count} updates", partial(call, *case), 20)


@_promise("scatter_add", "threads", "sums of floats have the same bits with 1, 2 and 4 threads")
def _sum_threads(call: Caller) -> Iterator[str | None]:
    x, indices, _ = _scatter_case(1000, 300_000, 1000)
    updates = _random(1).random(300_000).astype("float32")
    found = {}
    for count in (1, 2, 4):
        with call.threads(count):
            found[count] = _as_bytes(call(x, indices, updates))
    yield None if found[1] == found[2] == found[4] else "scatter_add of 300000 updates: they differ"


# ---- gather: (x, indices) -> rows of axis 0


@_promise("gather", "bits", "rows are copied bit for bit")
def _gather_bits(call: Caller) -> Iterator[str | None]:
    for size in SIZES:
        bits = _random(size).integers(0, 1 << 32, size, np.uint32)
        bits[::3] |= 0x7F800000
        indices = _random(size).integers(0, size, 2 * size)
        got = np.ascontiguousarray(call(bits.view(np.float32), indices)).view(np.uint32)
        yield _differs(f"gather({shown(bits)}, {shown(indices)})", "bits", got, bits[indices])


@_promise("gather", "negative", "negative indices count from the end")
def _gather_negative(call: Caller) -> Iterator[str | None]:
    got = call(np.arange(3).astype("float32"), np.array([-1, -3]))
    yield _differs("gather([0, 1, 2], [-1, -3])", "elements", got, [2, 0])


@_promise("gather", "bad index", "an index out of range is an error")
def _gather_bad(call: Caller) -> Iterator[str | None]:
    for bad in (3, -4, 1 << 31, -(1 << 62)):
        yield _must_refuse(call, f"gather([0, 1, 2], [{bad}])", np.arange(3).astype("float32"),
                           np.array([bad]))  # fmt: skip


@_promise("gather", "empty", "no indices give no rows")
def _gather_empty(call: Caller) -> Iterator[str | None]:
    got = call(np.zeros((3, 2), "float32"), np.zeros(0, "int64"))
    yield _differs("gather of no indices", "rows", got, np.zeros((0, 2)))


# ---- split: (x, count) -> parts of axis 0; join: (arrays) -> one array


@_promise("split", "parts", "parts are consecutive, and together the array")
def _parts(call: Caller) -> Iterator[str | None]:
    for size, count in ((4, 2), (6, 3), (1000, 10)):
        x = np.arange(size).astype("float32")
        parts = call(x, count)
        for i, part in enumerate(parts):
            width = size // count
            yield _differs(f"split({shown(x)}, {count})[{i}]", "elements", part,
                           x[i * width : (i + 1) * width])  # fmt: skip
        yield None if len(parts) == count else f"split of {size} into {count}: {len(parts)} parts"


@_promise("split", "own memory", "a part is a copy: to write it changes nothing else")
def _copies(call: Caller) -> Iterator[str | None]:
    yield "split([0, 1, 2, 3], 2): parts are views" if call.shares(4, 2) else None


@_promise("split", "empty", "an array without elements has empty parts")
def _split_empty(call: Caller) -> Iterator[str | None]:
    for part in call(np.zeros((0, 3), "float32"), 2):
        yield _differs("split of (0, 3)", "elements", part, np.zeros((0, 3)))


@_promise("join", "parts", "arrays stand one behind the other, empty ones too, bit for bit")
def _joined(call: Caller) -> Iterator[str | None]:
    for sizes in ((1, 2), (3, 0, 2), (0, 0), (500, 1, 0, 70)):
        bits = [_random(i).integers(0, 1 << 32, s, np.uint32) for i, s in enumerate(sizes)]
        got = np.ascontiguousarray(call([part.view(np.float32) for part in bits]))
        yield _differs(f"join of sizes {sizes}", "bits", got.view(np.uint32), np.concatenate(bits))


# ---- gradients, where the library has them: of integers, so that sums are exact


def _gradients(function: str, text: str) -> Callable[[Any], None]:
    def register(cases: Callable[[Caller, int], Iterator[Any]]) -> None:
        @_promise(function, "gradient", text)
        def _gradient(call: Caller) -> Iterator[str | None]:
            for size in SIZES:
                for of, arguments, weights, expected in cases(call, size):
                    got = call.further("gradient", of, weights, arguments)
                    what = f"of {shown(weights)} the gradients of argument {of + 1}"
                    given = f"{function}({', '.join(map(shown, arguments))})"
                    yield _differs(given, what, got, expected)

    return register


def _weights(size: int) -> Array:
    return _random(1).integers(1, 100, size).astype("float32")


@_gradients("top_k", "the gradient of a value goes to the element at its index")
def _top_k_gradient(call: Caller, size: int) -> Iterator[Any]:
    x, weights = _random(size).integers(0, 3, size).astype("float32"), _weights(size // 2)
    expected = np.zeros_like(x)
    expected[np.asarray(call(x, size // 2)[1])] = weights
    yield 0, (x, size // 2), weights, expected


@_gradients("gather", "the gradients of a row that is fetched several times are added")
def _gather_gradient(call: Caller, size: int) -> Iterator[Any]:
    (x, indices, _), weights = _scatter_case(size, 3 * size, size), _weights(3 * size)
    yield 0, (x, indices), weights, np.bincount(indices, weights, size)


@_gradients("scatter", "an update has a gradient if it remains; an element, if no update does")
def _scatter_gradient(call: Caller, size: int) -> Iterator[Any]:
    case, weights = _scatter_case(size, 2 * size, size), _weights(size)
    found, of_updates = np.asarray(call(*case)), np.zeros(2 * size)
    remains = found >= 0  # elements are negative; an update is its own position
    of_updates[found[remains].astype(int)] = weights[remains]
    yield 0, case, weights, np.where(remains, 0, weights)
    yield 2, case, weights, of_updates


@_gradients("scatter_add", "an update has the gradient of the element that it is added to")
def _add_gradient(call: Caller, size: int) -> Iterator[Any]:
    case, weights = _scatter_case(size, 2 * size, size), _weights(size)
    yield 2, case, weights, weights[case[1]]


# ---- replays of CUDA graphs, and arrays of more than 2^31 elements


def _replays(function: str, arguments: Callable[[int], tuple[Any, ...]]) -> None:
    @_promise(function, "replay", "a replay of a CUDA graph gives what a call gives, bit for bit")
    def _replay(call: Caller) -> Iterator[str | None]:
        for size in SIZES[2:]:
            x, *rest = arguments(size)
            for seed in range(3):
                other = _random(seed).integers(0, 9, size).astype("float32")
                got = _as_bytes(call.further("replay", other, (x, *rest)))
                is_same = got == _as_bytes(call(other, *rest))
                yield (
                    None
                    if is_same
                    else f"{function} of {size} elements, replay {seed + 1}: differs"
                )


_replays("top_k", lambda size: (np.ones(size, "float32"), size // 2))
_replays("gather", lambda size: _scatter_case(size, size, size)[:2])
for _function in ("scatter", "scatter_add"):
    _replays(_function, lambda size: _scatter_case(size, 2 * size, size))

_LARGE: Final = 2**31 + 40


def _large(call: Caller, x: Array, *rest: Any) -> Any:
    """Call with a view, of which no copy is made, if 16 GiB are free."""
    try:
        (free,) = re.findall(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text())
    except OSError:  # another system
        raise UntriedError from None
    if int(free) < 1 << 24:
        raise UntriedError
    return call(x[:], *rest)


@_promise("top_k", "large", "rows of more than 2^31 elements together are searched", is_large=True)
def _large_top_k(call: Caller) -> Iterator[str | None]:
    rows, size = 2**16 + 1, 2**15
    x, at = np.zeros((rows, size), "int8"), np.arange(rows)
    expected = np.stack([at % size, (at + 9) % size], -1)
    x[at, expected[:, 0]], x[at, expected[:, 1]] = 2, 1
    yield _differs(f"top_k of {rows} × {size} int8", "indices", _large(call, x, 2)[1], expected)


@_promise("nonzero", "large", "coordinates beyond 2^31 are right", is_large=True)
def _large_nonzero(call: Caller) -> Iterator[str | None]:
    x, places = np.zeros(_LARGE, "int8"), np.array([7, 2**31 - 1, 2**31 + 3])
    x[places] = 1
    yield _differs(f"nonzero of {_LARGE} int8", "places", _large(call, x), places[:, None])


@_promise("gather", "large", "indices beyond 2^31 fetch what is there", is_large=True)
def _large_gather(call: Caller) -> Iterator[str | None]:
    x, indices = np.zeros(_LARGE, "int8"), np.array([3, 2**31 - 1, 2**31 + 3, _LARGE - 1])
    x[indices] = [1, 2, 3, 4]
    got = _large(call, x, indices)
    yield _differs(f"gather of {_LARGE} int8", "elements", got, [1, 2, 3, 4])
