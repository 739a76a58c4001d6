"""Multi-head attention."""

from __future__ import annotations

from typing import Any

from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lowering, UnsupportedError, padded, strides_to
from anydml.onnx.types import DATA_TYPES

# Positions of the inputs.
_QUERY, _KEY, _VALUE, _BIAS, _MASK, _POSITIONS, _PAST_KEY, _PAST_VALUE = range(8)


def multihead_attention(n: Lowering) -> list[Expression | None]:
    """MultiHeadAttention, of packed or separate tensors, or keys and values of the past."""
    heads = n.get("num_heads")
    packed = len(n.shape(_QUERY)) == 5
    batches, queries = n.shape(_QUERY)[:2]
    size = n.shape(_QUERY)[-1] if packed else n.shape(_QUERY)[-1] // heads
    if n.get("unidirectional", 0):
        raise UnsupportedError("the provider has no unidirectional attention")

    def tensor(i: int) -> Expression | None:
        return n.view(i, n.shape(i)) if n.has(i) else None

    query, key, value = tensor(_QUERY), tensor(_KEY), tensor(_VALUE)
    past_key, past_value = tensor(_PAST_KEY), tensor(_PAST_VALUE)
    stacked = stacked_pair = None
    if packed:
        query, stacked = None, query
    elif n.has(_KEY) and len(n.shape(_KEY)) == 5:
        key, stacked_pair = None, key
    elif n.has(_KEY) and len(n.shape(_KEY)) == 4:  # of a cross attention: computed before
        key, past_key = None, key
        value, past_value = None, value
    bias = n.view(_BIAS, n.shape(_BIAS)) if n.has(_BIAS) else None
    total = _total(n, queries, packed)
    scores = (batches, heads, queries, total)
    mask, mask_type = _mask(n, batches, scores)
    positions = None
    if n.has(_POSITIONS):
        own = padded(n.shape(_POSITIONS), 4)
        positions = n.view(_POSITIONS, scores, strides_to(own, scores))
    kind = DATA_TYPES[n.type()]
    outputs = [(kind, n.results[i].shape) if n.wants(i) else None for i in range(3)]
    return list(
        n.emit_all(
            "MULTIHEAD_ATTENTION", query, key, value, None, stacked_pair, stacked, bias, mask,
            positions, past_key, past_value, outputs=outputs, head_count=heads,
            scale=n.get("scale", 0.0) or size**-0.5, mask_type=mask_type,
            mask_filter_value=n.get("mask_filter_value", -10000.0),
        )
    )  # fmt: skip


def _total(n: Lowering, queries: int, packed: bool) -> int:
    """The number of keys, those of the past included."""
    past = n.shape(_PAST_KEY)[2] if n.has(_PAST_KEY) else 0
    if packed or not n.has(_KEY):
        return queries + past
    key = n.shape(_KEY)
    return past + (key[2] if len(key) == 4 else key[1])


def _mask(n: Lowering, batches: int, scores: Any) -> tuple[Expression | None, str]:
    if not n.has(_MASK):
        return None, "NONE"
    shape = n.shape(_MASK)
    if shape == (batches,):
        return n.view(_MASK, (1, batches)), "KEY_SEQUENCE_LENGTH"
    if len(shape) == 1:
        return n.view(_MASK, (1, *shape)), "KEY_QUERY_SEQUENCE_LENGTH_START_END"
    own = (shape[0], 1, *((1,) if len(shape) == 2 else ()), *shape[1:])
    return n.view(_MASK, scores, strides_to(own, scores)), "BOOLEAN"
