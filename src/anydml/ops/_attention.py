"""Attention on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from anydml.engines import Array, Engine
from anydml.ops.enumerations import MultiheadAttentionMaskType
from anydml.ops.softmax import softmax

NONE: Final = MultiheadAttentionMaskType.NONE
BOOLEAN: Final = MultiheadAttentionMaskType.BOOLEAN
LENGTH: Final = MultiheadAttentionMaskType.KEY_SEQUENCE_LENGTH
END_START: Final = MultiheadAttentionMaskType.KEY_SEQUENCE_END_START

_BYTES_OF_A_SCORE: Final = 48
"""The most memory that scoring takes for each pair of a query and a key."""


def attend(
    e: Engine, tensors: Sequence[Array], lengths: Array | None, heads: int, key_heads: int,
    scale: float, mask_filter_value: float, mask_type: MultiheadAttentionMaskType, buffer: int = 0,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Compute the output, and the present keys and values.

    With a buffer, past and new rows together have at most so many rows.
    """
    xp = e.xp
    query, key, value, query_key, key_value, stacked, bias, mask, relative, past_key, past_value = (
        tensors
    )
    both = stacked if query_key is None else query_key
    pair, first = (stacked, 1) if key_value is None else (key_value, 0)
    q = _part(e, query, heads, both, 0)
    k = _part(e, key, key_heads, *((pair, first) if query_key is None else (query_key, 1)))
    v = _part(e, value, key_heads, pair, first + 1)
    if bias is not None:
        bias = bias.reshape(-1).astype(xp.float64)
        ends = [n * x.shape[-1] if x is not None else 0 for n, x in ((heads, q), (key_heads, k))]
        q = q + bias[: ends[0]].reshape(heads, 1, -1)
        if k is not None:
            k = k + bias[ends[0] : sum(ends)].reshape(key_heads, 1, -1)
            v = v + bias[sum(ends) :].reshape(key_heads, 1, -1)
    batches, _, queries, _ = q.shape
    limit = None
    if lengths is not None:
        past = past_key.shape[-2]
        lengths = xp.clip(e.cast(lengths.reshape(-1, 1, 1, 1), "int64"), 0, past)
        new = 0 if k is None else k.shape[2]
        visible = lengths + xp.minimum(xp.arange(queries).reshape(-1, 1) + 1, new)
        limit = visible[:, :, None]
    k, v = _present(e, past_key, k, lengths), _present(e, past_value, v, lengths)
    if buffer:
        k, v = k[:, :, :buffer], v[:, :, :buffer]
    keys = k.shape[2]

    def grouped(x: Array) -> Array:
        """Arrange heads in groups that share keys."""
        split = (key_heads, heads // key_heads) if x.shape[1] == heads else (1, 1)
        return x.reshape(x.shape[0], *split, *x.shape[2:])

    start = end = None
    if mask is not None and mask_type is BOOLEAN:
        shape = ((1,) * 4 + mask.shape)[-4:]
        mask = grouped(mask.reshape(shape))
    elif mask is not None:
        start, end = _bounds(e, mask_type, mask.reshape(-1), batches, queries, keys)
        mask = None
    if relative is not None:
        relative = grouped(relative.reshape(relative.shape[-4:]))
    y = _weighted(
        e, grouped(q), k[:, :, None], v[:, :, None], (relative, mask, start, end, limit),
        scale, mask_filter_value,
    )  # fmt: skip
    y = y.reshape(batches, heads, queries, -1).swapaxes(1, 2).reshape(batches, queries, -1)
    return y, k, v


def _part(e: Engine, separate: Array | None, heads: int, stacked: Array | None, i: int) -> Array:
    """Get a part as (batches, heads, rows, size) from its tensor or a stack; None without both."""
    if separate is not None:
        *_, batches, rows, hidden = separate.shape
        x = separate.reshape(batches, rows, heads, hidden // heads)
    elif stacked is not None:
        x = stacked[:, :, :, i]
    else:
        return None
    return x.swapaxes(1, 2).astype(e.xp.float64)


def _present(e: Engine, past: Array | None, new: Array | None, lengths: Array | None) -> Array:
    """Concatenate the past and the new rows.

    With `lengths`, the new rows follow the valid past rows of each batch, and zeros follow them.
    """
    xp = e.xp
    if past is None:
        return new
    past = past.reshape(past.shape[-4:]).astype(xp.float64)
    joined = past if new is None else xp.concatenate([past, new], axis=2)
    if lengths is None:
        return joined
    held, total = past.shape[2], joined.shape[2]
    rows = xp.arange(total).reshape(-1, 1)
    places = xp.where(rows < lengths, rows, xp.minimum(rows - lengths + held, total - 1))
    moved = xp.take_along_axis(joined, places, axis=2)
    return xp.where(rows < lengths + (total - held), moved, 0.0)


def _bounds(
    e: Engine, mask_type: MultiheadAttentionMaskType, mask: Array, batches: int, queries: int,
    keys: int,
) -> tuple[Array, Array]:  # fmt: skip
    """The start and the end of the keys that each query can use."""
    xp = e.xp
    mask = mask.astype(xp.int64)
    if mask_type in (LENGTH, END_START):
        end = mask[:batches]
        start = mask[batches:] if mask_type is END_START else xp.zeros_like(end)
    else:
        length, of_queries, of_keys = (
            mask[:batches], mask[batches : 2 * batches + 1], mask[2 * batches + 1 :]
        )  # fmt: skip
        batch = xp.arange(batches)
        rows = (batch * queries)[:, None] + xp.arange(queries)
        own = (rows >= of_queries[:-1, None]) & (rows < of_queries[1:, None])
        start = of_keys[:-1] - batch * keys
        end = xp.minimum(of_keys[1:], of_keys[:-1] + length) - batch * keys
        end = xp.where(own, end[:, None], start[:, None])
    return start.reshape(batches, 1, 1, -1, 1), end.reshape(batches, 1, 1, -1, 1)


def _weighted(
    e: Engine, q: Array, k: Array, v: Array, others: Sequence[Array | None], scale: float,
    mask_filter_value: float,
) -> Array:  # fmt: skip
    """Compute weighted means of the values, in pieces if all scores would take too much memory.

    Axes are batches, key heads, query heads of each key head, rows and columns.
    """
    xp = e.xp
    scores = prod(q.shape[:-1]) * k.shape[3]
    axis = next((axis for axis in range(4) if q.shape[axis] > 1), None)
    if axis is not None and 0 < e.scratch_nbytes < scores * _BYTES_OF_A_SCORE:
        half = q.shape[axis] // 2
        blocks = []
        for part in (slice(half), slice(half, None)):
            at = (slice(None),) * axis + (part,)
            cut = [x if x is None or x.shape[axis] == 1 else x[at] for x in (q, *others)]
            own = (k, v) if axis > 1 else (k[at], v[at])
            blocks.append(_weighted(e, cut[0], *own, cut[1:], scale, mask_filter_value))
        return xp.concatenate(blocks, axis)
    relative, mask, start, end, limit = others
    products = e.dot(q, xp.swapaxes(k, -2, -1)) * scale
    if relative is not None:
        products = products + relative
    places = xp.arange(k.shape[3])
    if mask is not None:
        products = products + xp.where(mask == 0, mask_filter_value, 0.0)
    if end is not None:
        hidden = (places < start) | (places >= end)
        products = products + xp.where(hidden, mask_filter_value, 0.0)
    if limit is not None:
        products = xp.where(places < limit, products, -xp.inf)
    return e.dot(softmax(e, products, (4,)), v)
