"""How the arguments of each array function become operands and attributes, for any library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.functions import _arguments, _attributes, _combining
from anydml.functions._spec import Array, Namespace, Prepared


def _one(xp: Namespace, results: Sequence[Array]) -> list[Array]:
    return [xp.reshape(result, ()) for result in results]


# ---- operands as arrays of the library -----------------------------------------------------------


def one_array(xp: Namespace, x: Any, *others: Any) -> tuple[Array]:
    """The operand `x` alone."""
    return (xp.array(x, "x"),)


def array_and_indices(xp: Namespace, x: Any, indices: Any, *others: Any) -> tuple[Array, Array]:
    """The operands of gathers."""
    data = xp.array(x, "x")
    return data, xp.indices(indices, data)


def array_and_lengths(xp: Namespace, x: Any, lengths: Any, *others: Any) -> tuple[Array, Array]:
    """The operands of `reverse_subsequences`."""
    data = xp.array(x, "x")
    return data, xp.indices(lengths, data, "lengths")


def array_indices_and_updates(
    xp: Namespace, x: Any, indices: Any, updates: Any, *others: Any
) -> tuple[Array, Array, Array]:
    """The operands of scatters."""
    data = xp.array(x, "x")
    return data, xp.indices(indices, data), xp.same_type(updates, data, "updates")


def arrays_of_one_type(xp: Namespace, arrays: Any, axis: Any, promote: Any) -> tuple[Array, ...]:
    """The members of the list that `join` takes."""
    members = _attributes.members_of(arrays)
    if _arguments.flag(promote, "promote"):
        return tuple(xp.promoted(members, "arrays"))
    first = xp.array(members[0], "arrays[0]")
    others = enumerate(members[1:], 1)
    return first, *(xp.same_type(x, first, f"arrays[{i}]", "arrays[0]") for i, x in others)


# ---- selections ---------------------------------------------------------------------------------


def top_k(
    xp: Namespace, x: Any, k: Any, axis: Any, largest: Any, sorted: Any, index_dtype: Any
) -> Prepared:
    """`sorted` changes nothing."""
    data = xp.array(x, "x")
    scalar = data.ndim == 0
    if scalar:
        data = xp.reshape(data, (1,))
    number = _arguments.axis_of(axis, data)
    count = _arguments.integer(k, "k")
    first = _arguments.flag(largest, "largest")
    kind = xp.index_type(index_dtype, data, (data.shape[number],))
    finish = _one if scalar and count == 1 else None
    return (data,), (count, number, first, kind), finish


def nonzero_coordinates(
    xp: Namespace, x: Any, index_dtype: Any, size: Any, fill_value: Any
) -> Prepared:
    """With a size, rows are cut off or filled in behind the call."""
    data = xp.array(x, "x")
    kind = xp.index_type(index_dtype, data, data.shape)
    rows, fill = -1, 0
    if size is not None:
        rows, fill = _attributes.sized(size, fill_value, xp.limits(kind))
    return (data,), (kind, rows, fill), None


# ---- gathers ------------------------------------------------------------------------------------


def gather(xp: Namespace, x: Any, indices: Any, axis: Any, mode: Any) -> Prepared:
    """A scalar is one element on one axis."""
    data, lookup = array_and_indices(xp, x, indices)
    if data.ndim == 0:
        data = xp.reshape(data, (1,))
    number = _arguments.axis_of(axis, data)
    clamp = False
    if mode != "raise":
        lookup, clamp = _inside(xp, mode, lookup, data, (number,))
    return (data, lookup), (number, clamp), None


def gather_elements(
    xp: Namespace, x: Any, indices: Any, axis: Any, mode: Any, broadcast: Any
) -> Prepared:
    """The indices of a scalar may have any shape."""
    data, lookup = array_and_indices(xp, x, indices)
    finish = None
    number = _arguments.axis_of(axis, data if data.ndim else xp.reshape(data, (1,)))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        shapes = _attributes.broadcast_indexed(number, data, lookup, xp.broadcast_shapes)
        data, lookup = xp.broadcast_to(data, shapes[0]), xp.broadcast_to(lookup, shapes[1])
    if data.ndim == 0:
        if lookup.ndim == 0:
            lookup, finish = xp.reshape(lookup, (1,)), _one
        data = xp.broadcast_to(data, (1, *lookup.shape[1:]))
    clamp = False
    if mode != "raise":
        lookup, clamp = _inside(xp, mode, lookup, data, (number,))
    return (data, lookup), (number, clamp), finish


def gather_nd(xp: Namespace, x: Any, indices: Any, batch_dims: Any, mode: Any) -> Prepared:
    """Tuples of indices behind batch axes."""
    data, lookup = array_and_indices(xp, x, indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    axes = _attributes.indexed_axes(lookup, batch, data.ndim)
    lookup, clamp = _inside(xp, mode, lookup, data, axes)
    return (data, lookup), (batch, clamp), None


def _inside(
    xp: Namespace, mode: Any, lookup: Array, data: Array, axes: Sequence[int]
) -> tuple[Array, bool]:
    """The indices that the operator is to read, and whether it clamps them."""
    if mode == "raise":
        return lookup, False
    _attributes.check_mode(mode, lookup, data, axes)
    sizes = [data.shape[axis] for axis in axes]
    if mode == "clamp" or not sizes or 0 in sizes:  # with a size of 0 there are no indices
        return lookup, mode == "clamp"
    if len(sizes) not in (1, *lookup.shape[-1:]):
        return lookup, False  # the operator's own rules refuse it
    if len(sizes) == 1:
        return _moved(xp, mode, lookup, sizes[0]), False
    columns = [_moved(xp, mode, lookup[..., i], size) for i, size in enumerate(sizes)]
    return xp.stack(columns, -1), False


def _moved(xp: Namespace, mode: Any, lookup: Array, size: Any) -> Array:
    signed = xp.positions(lookup)
    beyond = signed < 0 if xp.is_uint64(lookup) else None  # 2^64 less than the index
    if mode == "wrap":
        inside = signed % size
        if beyond is None:
            return inside
        missing = 2**62 % size * 4 % size
        return xp.where(beyond, (inside + missing) % size, inside)
    inside = xp.clip(signed, 0, size - 1)
    return inside if beyond is None else xp.where(beyond, size - 1, inside)


# ---- scatters -----------------------------------------------------------------------------------


def scatter_elements(
    xp: Namespace,
    x: Any,
    indices: Any,
    updates: Any,
    axis: Any,
    reduction: Any,
    include_self: Any,
    broadcast: Any,
) -> Prepared:
    """One update, or a scalar, stands for any shape."""
    data, lookup, values = array_indices_and_updates(xp, x, indices, updates)
    scalar = data.ndim == 0
    number = _arguments.axis_of(axis, xp.reshape(data, (1,)) if scalar else data)
    if _arguments.flag(broadcast, "broadcast") and not scalar:
        shape = _attributes.updates_shape(number, data, lookup)
        lookup = _arguments.broadcast_with(lookup, shape, "indices", xp.broadcast_to)
        values = _arguments.broadcast_with(values, shape, "updates", xp.broadcast_to)
    elif values.ndim == 0:
        values = xp.broadcast_to(values, lookup.shape)
    if scalar:
        _attributes.check_scalar(lookup, values)
        data, lookup, values = (xp.reshape(array, (-1,)) for array in (data, lookup, values))
    reduction_name = _combining.name_of(reduction)
    includes_self = _arguments.flag(include_self, "include_self")
    return (data, lookup, values), (number, reduction_name, includes_self), _one if scalar else None


def scatter_nd(
    xp: Namespace, x: Any, indices: Any, updates: Any, reduction: Any, include_self: Any
) -> Prepared:
    """One update stands for all."""
    data, lookup, values = array_indices_and_updates(xp, x, indices, updates)
    if values.ndim == 0 and lookup.ndim:
        shape = (*lookup.shape[:-1], *data.shape[lookup.shape[-1] :])
        values = xp.broadcast_to(values, shape)
    reduction_name = _combining.name_of(reduction)
    return (
        (data, lookup, values),
        (reduction_name, _arguments.flag(include_self, "include_self")),
        None,
    )


# ---- slabs and movers ---------------------------------------------------------------------------


def split(
    xp: Namespace, x: Any, sections_or_sizes: Any, axis: Any, points: Any, near_equal: Any
) -> Prepared:
    """Slabs by their sizes."""
    data = xp.array(x, "x")
    found = _attributes.split_attributes(data, sections_or_sizes, axis, points, near_equal)
    return (data,), (found["sizes"], found["axis"]), None


def join(xp: Namespace, arrays: Any, axis: Any, promote: Any) -> Prepared:
    """Arrays of one type."""
    parts = arrays_of_one_type(xp, arrays, axis, promote)
    if axis is None:
        parts = tuple(xp.reshape(part, (-1,)) for part in parts)
    number = 0 if axis is None else _arguments.axis_of(axis, parts[0], "arrays[0]")
    return parts, (number,), None


def cast(xp: Namespace, x: Any, dtype: Any) -> Prepared:
    """A type by any name."""
    return (xp.array(x, "x"),), (xp.value_type(dtype),), None


def pad(xp: Namespace, x: Any, pad_width: Any, mode: Any, constant: Any) -> Prepared:
    """Paddings by axis."""
    data = xp.array(x, "x")
    starts, ends = _attributes.paddings(pad_width, data.ndim)
    return (data,), (starts, ends, _attributes.padding_mode(mode), constant), None


def slice_window(xp: Namespace, x: Any, starts: Any, sizes: Any, strides: Any) -> Prepared:
    """A window with strides of 1 by default."""
    data = xp.array(x, "x")
    found = _attributes.window(starts, sizes, strides, data.ndim)
    return (data,), (found["starts"], found["sizes"], found["strides"]), None


def tile(xp: Namespace, x: Any, repeats: Any) -> Prepared:
    """As many axes as repeats."""
    data, found = _attributes.normalize_repeats(xp.array(x, "x"), repeats)
    return (data,), (found["repeats"],), None


def reverse_subsequences(xp: Namespace, x: Any, lengths: Any, axis: Any) -> Prepared:
    """A length for each sequence."""
    data, counts = array_and_lengths(xp, x, lengths)
    number = _arguments.axis_of(axis, data)
    shape = (*data.shape[:number], 1, *data.shape[number + 1 :])
    counts = _arguments.broadcast_with(counts, shape, "lengths", xp.broadcast_to)
    return (data, counts), (number,), None
