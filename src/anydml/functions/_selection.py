"""The options of `top_k` that its kernel does not have, by operations of the array's own library.

Each option changes the keys that are compared, or the order of the indices; the kernel then selects
as always, and the values are gathered from the array itself. What a library derives, batches,
traces or compiles works with options, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _arguments
from anydml.functions.cast import cast
from anydml.functions.gather_elements import gather_elements
from anydml.libraries import DeviceArray, as_operand, namespace_of

_LONG: Final = 2048
"""The size of rows from which on a call for each row costs less than reading all of them again."""

_CHOICES: Final = {
    "mode": ("largest", "smallest"),
    "nan": ("largest", "last"),
    "tie_break": ("first", "last"),
}


@dataclass(frozen=True)
class Selection:
    """The options of a call of `top_k`, checked.

    Attributes
    ----------
    largest, nan_last, last_first, sorted : bool
        Whether the largest elements are selected, NaN after all numbers, the last of equal elements
        before the others, and whether the results are sorted by value.
    lengths : array_like or None
        How many elements of each row count.
    fill_value : number
        The value at positions without an element.
    """

    largest: bool
    nan_last: bool
    last_first: bool
    sorted: bool
    lengths: Any
    fill_value: Any

    @classmethod
    def of(
        cls,
        mode: Any,
        largest: Any,
        nan: Any,
        tie_break: Any,
        sorted: Any,
        lengths: Any,
        fill_value: Any,
    ) -> Selection:
        """Check the options.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            One has an invalid value, or `mode` and `largest` contradict each other.
        """
        values = {"mode": mode, "nan": nan, "tie_break": tie_break}
        for name, value in values.items():
            if (name, value) != ("mode", None) and value not in _CHOICES[name]:
                accepted = " or ".join(map(repr, _CHOICES[name]))
                hint = did_you_mean(str(value), _CHOICES[name])
                raise ArgumentError(f"{name}: expected {accepted}, got {short_repr(value)}{hint}")
        wanted = mode != "smallest"
        if largest is not None:
            wanted = _arguments.flag(largest, "largest")
            if mode is not None and wanted != (mode == "largest"):
                raise ArgumentError(f"largest: expected {not wanted} (mode={mode!r}), got {wanted}")
        return cls(
            wanted, nan == "last", tie_break == "last", _arguments.flag(sorted, "sorted"), lengths,
            fill_value,
        )  # fmt: skip

    @property
    def is_plain(self) -> bool:
        """Whether the kernel has all of these options."""
        return self.sorted and not (self.nan_last or self.last_first) and self.lengths is None

    def select(
        self,
        top_k: Callable[..., Any],
        x: Any,
        k: Any,
        axis: Any,
        index_dtype: Any,
        out: Any,
    ) -> tuple[Any, ...]:
        """Return the values and indices of a call; `top_k` is the function without options."""
        xp = namespace_of(*(base.__module__ for base in type(x).__mro__))
        if xp is np and type(x) is not np.ndarray:
            array, wrap = as_operand(x, "x")
            if isinstance(array, DeviceArray):
                raise ArgumentTypeError(
                    f"x: expected an array on the CPU, got one on {array.place}"
                )
            return tuple(map(wrap, self.select(top_k, array, k, axis, index_dtype, out)))
        lib = _Operations(xp)
        if x.ndim == 0:
            found = self.select(top_k, xp.reshape(x, (1,)), k, axis, index_dtype, out)
            return tuple(xp.reshape(y, ()) for y in found) if k == 1 and out is None else found
        axis, k = _arguments.axis_of(axis, x), _arguments.integer(k, "k")
        targets = _targets(out)
        kind = index_dtype if index_dtype is not None else getattr(targets[1], "dtype", None)
        if self.lengths is not None and kind is not None and "uint" in str(kind):
            raise ArgumentError(
                f"index_dtype: expected a signed type (positions without an element have index -1, "
                f"because of lengths=), got {kind}"
            )
        values, indices = self._select(lib, top_k, x, k, axis)
        return _finish(values, x.dtype, targets[0]), _finish(indices, kind, targets[1])

    def _select(
        self, lib: _Operations, top_k: Callable[..., Any], x: Any, k: Any, axis: int
    ) -> tuple[Any, Any]:
        size, keys, largest = x.shape[axis], x, self.largest
        length = None
        if self.lengths is not None:
            length = lib.lengths(self.lengths, x, axis)
            if lib.xp is np and size >= _LONG and 0 <= k <= size:
                return self._by_rows(top_k, x, k, axis, length)
        last = (size if length is None else length) - 1
        positions = lib.positions(size, x, axis)
        if self.last_first:  # equal elements are selected in the order in which they are read
            order = lib.xp.broadcast_to(last - positions, x.shape)
            keys = gather_elements(keys, lib.xp.clip(order, 0, None), axis=axis) if size else keys
        if self.nan_last and largest and lib.has_nan(x):  # NaN is the largest key
            keys, largest = -keys, False
        if length is not None:
            worst = lib.worst(keys, largest)
            keys = lib.xp.where(positions < length, keys, worst)
        values, indices = top_k(keys, k, axis=axis, largest=largest)
        if self.last_first:
            indices = last - indices
        if keys is x and self.sorted:
            return values, indices
        rank = lib.positions(indices.shape[axis], indices, axis)
        if not self.sorted:
            if length is not None:
                indices = lib.xp.where(rank < length, indices, size)
            indices = top_k(indices, indices.shape[axis], axis=axis, largest=False).values
        if size == 0:
            return values, indices
        if length is None:
            return gather_elements(x, indices, axis=axis), indices
        there = rank < length
        values = gather_elements(x, lib.xp.where(there, indices, 0), axis=axis)
        fill = lib.scalar(self.fill_value, x)
        return lib.xp.where(there, values, fill), lib.xp.where(there, indices, -1)

    def _by_rows(
        self, top_k: Callable[..., Any], x: Any, k: int, axis: int, length: Any
    ) -> tuple[Any, Any]:
        """Select from the part of each row that counts, without reading the rest."""
        rows = np.moveaxis(x, axis, -1)
        lengths = np.broadcast_to(length, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        shape = (*rows.shape[:-1], k)
        values = np.full(shape, self.fill_value, x.dtype)
        indices = np.full(shape, -1, np.intp)
        options = replace(self, lengths=None)
        for place, count in np.ndenumerate(np.moveaxis(lengths, axis, -1)[..., 0]):
            found = min(k, int(count))
            row = values[place][:found], indices[place][:found]
            row[0][...], row[1][...] = options._select(
                _Operations(np), top_k, rows[place][:count], found, 0
            )
        return np.moveaxis(values, -1, axis), np.moveaxis(indices, -1, axis)


class _Operations:
    """The operations of a library's own namespace."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.is_torch = xp.__name__ == "torch"

    def positions(self, count: int, like: Any, axis: int) -> Any:
        """Return 0 to `count` - 1 along an axis."""
        shape = tuple(-1 if i == axis else 1 for i in range(like.ndim))
        where = {"device": like.device} if self.is_torch else {}
        return self.xp.reshape(self.xp.arange(count, **where), shape)

    def lengths(self, lengths: Any, x: Any, axis: int) -> Any:
        """Return the lengths of the rows of `x`, with size 1 on its axis."""
        rows = (*x.shape[:axis], *x.shape[axis + 1 :])
        given = lengths
        if self.is_torch and not isinstance(lengths, self.xp.Tensor):
            lengths = self.xp.as_tensor(np.asarray(lengths), device=x.device)
        elif not self.is_torch:
            lengths = self.xp.asarray(lengths)
        if not any(word in str(lengths.dtype) for word in ("int", "long")):
            raise ArgumentTypeError(f"lengths: expected integers, got {lengths.dtype}")
        if tuple(lengths.shape) not in ((), rows):
            raise ArgumentError(
                f"lengths: expected a number, or one for each row: shape {rows}, "
                f"got shape {tuple(lengths.shape)}"
            )
        size = x.shape[axis]
        traced = self.is_torch and self.xp.compiler.is_compiling()  # then values are unknown
        if not traced and isinstance(given, int | list | tuple | np.ndarray | np.generic):
            host = np.asarray(given)
            wrong = host[(host < 0) | (host > size)]
            if wrong.size:
                raise ArgumentError(f"lengths: expected 0..{size}, got {wrong.flat[0]}")
        lengths = self.xp.clip(lengths, 0, size)
        if lengths.ndim == 0:
            return lengths
        return self.xp.reshape(lengths, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))

    def has_nan(self, x: Any) -> bool:
        """Whether the type has NaN."""
        if self.is_torch:
            return bool(x.dtype.is_floating_point)
        return "float" in str(x.dtype)

    def worst(self, keys: Any, largest: bool) -> Any:
        """Return the key that is selected last."""
        if self.has_nan(keys):
            return self.scalar(float("-inf" if largest else "nan"), keys)
        if "bool" in str(keys.dtype):
            return self.scalar(not largest, keys)
        limits = (self.xp if self.is_torch else np).iinfo(keys.dtype)
        return self.scalar(limits.min if largest else limits.max, keys)

    def scalar(self, value: Any, like: Any) -> Any:
        """Return a number as an array of the type of `like`."""
        where = {"device": like.device} if self.is_torch else {}
        return (self.xp.tensor if self.is_torch else self.xp.asarray)(
            value, dtype=like.dtype, **where
        )


def _targets(out: Any) -> Sequence[Any]:
    if out is None:
        return (None, None)
    if not isinstance(out, list | tuple) or len(out) != 2:
        raise ArgumentTypeError(f"out: expected two arrays, got {short_repr(out)}")
    return out


def _finish(result: Any, kind: Any, target: Any) -> Any:
    """Return a result in a type, or write it to an array of the user's."""
    if target is not None:
        return cast(result, kind, out=target)
    return result if kind is None or result.dtype == kind else cast(result, kind)
