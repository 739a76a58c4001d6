"""The options of `top_k`: what they may be, and the operator that has them.

Its kernel takes the rows' lengths as a second operand, which is empty if all rows are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ArgumentError
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions._function import Attributes, FunctionSpec, Saved
from anydml.functions._library import (
    Array,
    KernelLibrary,
    Library,
    MovingLibrary,
    call_with_numbers,
)
from anydml.libraries import as_numpy
from anydml.ops import _rules
from anydml.ops._numbers import bits_of
from anydml.ops.top_k import TopK1

NO_LENGTHS: Final = np.empty(0, np.int32)
"""The second operand of calls without `lengths`: rows count as a whole."""

_CHOICES: Final = {
    "mode": ("largest", "smallest"),
    "nan": ("largest", "last"),
    "tie_break": ("first", "last"),
}


class Order(NamedTuple):
    """The order in which `top_k` selects and returns elements, checked."""

    largest: bool
    sorted: bool
    nan_last: bool
    last_first: bool

    @classmethod
    def of(cls, mode: Any, largest: Any, nan: Any, tie_break: Any, sorted: Any) -> Order:
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
        return cls(wanted, _arguments.flag(sorted, "sorted"), nan == "last", tie_break == "last")


class TopKRows(TopK1):
    """`TopK1` with these options; no operator of DirectML."""

    KERNEL = "top_k_rows"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        inferred = TopK1.infer(inputs[:1], attributes)
        shape, axis = inputs[0].shape, attributes["axis"]
        rows = (*shape[:axis], *shape[axis + 1 :])
        violations = () if inferred.violations else (_one_for_each(rows, inputs[1].shape),)
        return Inferred.of(inferred.outputs, *violations) if violations else inferred


def _one_for_each(rows: tuple[Any, ...], shape: tuple[Any, ...]) -> Rules:
    if shape != (0,):
        yield _rules.same_shape("LengthsTensor", shape, rows, "one for each row")


def of_rows(lib: Library, lengths: Any, x: Array, attributes: Attributes) -> Array:
    """Convert lengths to an array with one for each row, or none."""
    counts = lib.indices(lengths, x, "lengths")
    axis, kind = attributes["axis"], attributes["index_dtype"]
    if has_lengths(counts) and "uint" in str(kind):
        raise ArgumentError(
            f"index_dtype: expected a signed type (positions without an element have index -1, "
            f"because of lengths=), got {kind}"
        )
    rows = (*x.shape[:axis], *x.shape[axis + 1 :])
    return counts if counts.ndim else lib.broadcast_to(counts, rows)


def has_lengths(lengths: Array) -> bool:
    """Whether rows have lengths of their own."""
    return tuple(lengths.shape) != (0,)


def check(operands: rules.Arrays, attributes: Attributes) -> None:
    """Refuse other types than a kernel takes, and lengths in memory that no row has."""
    x, lengths = operands
    _arguments.check_type(x, _arguments.ORDERED)
    if not isinstance(lengths, np.ndarray):
        return
    size = x.shape[attributes["axis"]]
    wrong = lengths[(lengths < 0) | (lengths > size)]
    if wrong.size:
        raise ArgumentError(f"lengths: expected 0..{size}, got {wrong.flat[0]}")


def program(
    lib: KernelLibrary, spec: FunctionSpec, operands: rules.Arrays, attributes: Attributes
) -> rules.Arrays:
    """Call the kernel with the bits of the fill value, and with lengths that rows have."""
    x, lengths = operands
    if not lib.in_memory:
        lengths = lib.clip(lengths, 0, x.shape[attributes["axis"]])
    fill = bits_of(_fill_of(attributes, x), x.dtype)
    return call_with_numbers(lib, spec, (x, lengths), {**attributes, "fill": fill})


def _fill_of(attributes: Attributes, x: Array) -> Any:
    value = attributes["fill_value"]
    array = as_numpy(value, "fill_value")
    if array.ndim:
        raise ArgumentError(f"fill_value: expected one number, got shape {array.shape}")
    return _arguments.same_type(array, value, "fill_value", x)


def batch(
    lib: Library, operands: rules.Arrays, dims: rules.Dims, size: Any, attributes: Attributes
) -> rules.Batched:
    """Select from the rows of all batches; rows that are whole stay so."""
    (x, lengths), axis = operands, attributes["axis"]
    first = rules.to_first(lib, x, dims[0], size)
    if dims[1] is not None or has_lengths(lengths):
        lengths = rules.to_first(lib, lengths, dims[1], size)
    changed = {**attributes, "axis": axis + 1}
    return rules.call(lib, "top_k_rows", (first, lengths), **changed), [0, 0]


def tangent(lib: Library, saved: Saved, tangents: rules.Derived) -> rules.Derived:
    """Return the tangents of the chosen elements; none where there is no element."""
    indices, axis = rules.of(saved.results[1]), saved.attributes["axis"]
    filled = saved.shapes[1] != (0,)
    places = lib.clip(indices, 0, None) if filled else indices
    operands = (rules.of(tangents[0]), places)
    (moved,) = rules.call(lib, "gather_elements", operands, axis=axis, clamp=False)
    return [lib.where(indices < 0, lib.zeros(moved.shape, moved), moved) if filled else moved, None]


def gradient(
    lib: Library, saved: Saved, grads: rules.Derived, needs: Sequence[bool]
) -> rules.Derived:
    """Scatter the gradients; no position comes twice, but for those without an element."""
    grad, indices = rules.of(grads[0]), rules.of(saved.results[1])
    if saved.shapes[1] != (0,):
        grad = lib.where(indices < 0, lib.zeros(grad.shape, grad), grad)
        indices = lib.clip(indices, 0, None)
    attributes = {"axis": saved.attributes["axis"], "reduction": "add", "include_self": True}
    operands = (lib.zeros(saved.shapes[0], grad), indices, grad)
    return [*rules.call(lib, "scatter_elements", operands, **attributes), None]


# ---- in blocks, where rows may be in several of them --------------------------------------------


def in_steps(lib: MovingLibrary, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Select by the plain kernel: options change the keys, or the order of the indices."""
    (x, lengths), axis, largest = operands, attributes["axis"], attributes["largest"]
    size, keys, numbers, length = x.shape[axis], x, lib.numbers(x, axis), x.shape[axis]
    filled = has_lengths(lengths)
    if filled:
        rows = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        length = lib.reshape(lib.positions(lib.clip(lengths, 0, size)), rows)

    def along(name: str, *arrays: Array, **others: Any) -> rules.Arrays:
        return rules.call(lib, name, arrays, axis=axis, **others)

    def first_of(array: Array, k: int, largest: bool) -> rules.Arrays:
        return along("top_k", array, k=k, largest=largest, index_dtype=np.dtype(np.int64))

    if attributes["last_first"] and size:  # elements are selected in the order of reading
        order = lib.broadcast_to(lib.clip(length - 1 - numbers, 0, None), x.shape)
        (keys,) = along("gather_elements", keys, order, clamp=False)
    if attributes["nan_last"] and largest and "float" in str(x.dtype):  # NaN is the largest key
        keys, largest = -keys, False
    if filled:
        keys = lib.where(numbers < length, keys, _last_of(keys.dtype, largest))
    _, indices = first_of(keys, attributes["k"], largest)
    rank = lib.numbers(indices, axis)
    if attributes["last_first"]:
        indices = length - 1 - indices
    if not attributes["sorted"]:
        indices = lib.where(rank < length, indices, size)
        indices, _ = first_of(indices, attributes["k"], False)
    there = rank < length
    places = lib.where(there, indices, 0) if size else indices
    (values,) = along("gather_elements", x, places, clamp=False)
    if filled:
        values = lib.where(there, values, _fill_of(attributes, x))
        indices = lib.where(there, indices, -1)
    return [values, indices.astype(attributes["index_dtype"])]


def _last_of(dtype: Any, largest: bool) -> Any:
    """Return the key that is selected last."""
    if "float" in str(dtype):
        return np.asarray("-inf" if largest else "nan", dtype)
    if dtype == np.bool_:
        return np.asarray(not largest)
    limits = np.iinfo(dtype)
    return np.asarray(limits.min if largest else limits.max, dtype)
