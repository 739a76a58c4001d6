"""The attention family of com.microsoft, and rotary embedding."""

from __future__ import annotations

from typing import Final

from anydml.core.dtypes import DataType
from anydml.core.tensor import TensorDesc
from anydml.graphs.build import Expression
from anydml.onnx.lower.matrices import integer_product_to_float
from anydml.onnx.lower.node import Lowering, RefusedError, Sizes, UnsupportedError, strides_to
from anydml.onnx.types import DATA_TYPES
from anydml.ops._fields import ScaleBias

_LOWEST: Final = -(2**31)
"""The first diagonal of every matrix."""

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
    mask, mask_type = _mask(n, _MASK, scores)
    positions = n.broadcast(_POSITIONS, scores) if n.has(_POSITIONS) else None
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


def _mask(n: Lowering, i: int, scores: Sizes) -> tuple[Expression | None, str]:
    """The mask in the form of its rank, and its type."""
    if not n.has(i):
        return None, "NONE"
    shape = n.shape(i)
    batches = scores[0]
    if len(shape) == 1:
        rows, rest = divmod(shape[0], batches)
        if not rest and rows in _BOUNDS:
            return n.view(i, (rows, batches)), _BOUNDS[rows]
        return n.view(i, (1, *shape)), "KEY_QUERY_SEQUENCE_LENGTH_START_END"
    own = (shape[0], *(1,) * (4 - len(shape)), *shape[1:])
    if len(shape) == 4 and own[2] != scores[2]:  # of the longest sequence
        longest = (*scores[:2], *own[2:])
        part = n.emit(
            "SLICE1", n.view(i, longest, strides_to(own, longest)),
            outputs=[(DATA_TYPES[n.type(i)], scores)], input_window_offsets=[0] * 4,
            input_window_sizes=scores, input_window_strides=[1] * 4,
        )  # fmt: skip
        return part, "BOOLEAN"
    return n.view(i, scores, strides_to(own, scores)), "BOOLEAN"


_BOUNDS: Final = {1: "KEY_SEQUENCE_LENGTH", 2: "KEY_SEQUENCE_END_START"}
"""Types of masks that have ends, or ends and starts."""


def _heads_first(n: Lowering, x: Expression, count: int, heads: int) -> Expression:
    """Stack parts that hold all heads each, ``{.., parts, heads, size}``, by heads."""
    batches, rows, width = x.sizes
    size = width // (count * heads)
    sizes = (batches, rows, heads, count, size)
    strides = (rows * width, width, size, heads * size, 1)
    return n.emit(
        "ELEMENT_WISE_IDENTITY", n.reshape(x, sizes, strides), outputs=[(x.data_type, sizes)]
    )


def attention(n: Lowering) -> Expression:
    """Attention: project the input to queries, keys and values, then attend."""
    batches, rows, hidden = n.shape()
    heads = n.get("num_heads")
    width = n.shape(1)[-1]
    query, key, value = n.get("qkv_hidden_sizes") or [width // 3] * 3
    if query != key:
        raise RefusedError("qkv_hidden_sizes", "queries and keys of one size", (query, key))
    sizes = (batches, rows, width)
    kind = DATA_TYPES[n.type()]
    projected = n.emit(
        "GEMM", n.view(0, n.shape()), n.view(1, (batches, hidden, width), (0, width, 1)),
        n.view(2, sizes, (0, 0, 1)) if n.has(2) else None, outputs=[(kind, sizes)],
        trans_a="NONE", trans_b="NONE", alpha=1.0, beta=1.0,
    )  # fmt: skip

    def part(start: int, size: int) -> Expression:
        return n.emit(
            "SLICE1", projected, outputs=[(kind, (batches, rows, size))],
            input_window_offsets=[0, 0, start], input_window_sizes=[batches, rows, size],
            input_window_strides=[1] * 3,
        )  # fmt: skip

    stacked_pair = stacked = separate = None
    if value == query:
        stacked = _heads_first(n, projected, 3, heads)
    else:
        stacked_pair = _heads_first(n, part(0, 2 * query), 2, heads)
        separate = part(2 * query, value)
    scores = (batches, heads, rows, rows)
    mask, mask_type = _mask(n, 3, scores)
    positions = n.broadcast(5, scores) if n.has(5) else None
    return n.emit(
        "MULTIHEAD_ATTENTION", None, None, separate, stacked_pair, None, stacked, None, mask,
        positions, outputs=[(kind, n.results[0].shape)], head_count=heads,
        scale=n.get("scale", 0.0) or (query // heads) ** -0.5, mask_type=mask_type,
        mask_filter_value=n.get("mask_filter_value", -10000.0),
    )  # fmt: skip


def quantized_attention(n: Lowering) -> list[Expression | None]:
    """QAttention: project quantized elements, then attend to them and the past."""
    (batches, rows, _), width = n.shape(), n.shape(1)[-1]
    heads = n.get("num_heads")
    size = width // 3 // heads
    kind = DATA_TYPES[n.results[0].type]
    projected = integer_product_to_float(n, _QUANTIZED, (kind, (batches, rows, width)))
    stacked = _heads_first(n, n.reshape(projected, (batches, rows, width)), 3, heads)
    past = n.shape(8)[3] if n.has(8) else 0
    present = (1, batches, heads, past + rows, size)

    def half(i: int) -> Expression | None:
        """Past keys, or values."""
        if not past:
            return None
        sizes = (1, *n.shape(8)[1:])
        return n.emit(
            "SLICE1", n.view(8, n.shape(8)), outputs=[(kind, sizes)],
            input_window_offsets=[i, 0, 0, 0, 0], input_window_sizes=sizes,
            input_window_strides=[1] * 5,
        )  # fmt: skip

    scores = (batches, heads, rows, past + rows)
    mask, mask_type = _mask(n, 5, scores)
    if n.get("unidirectional", 0):
        triangle = n.emit(
            "DIAGONAL_MATRIX1", outputs=[("INT32", (1, 1, *scores[2:]))], value_data_type="INT32",
            value=1, diagonal_fill_begin=_LOWEST, diagonal_fill_end=past + 1,
        )  # fmt: skip
        strides = strides_to(triangle.sizes, scores)
        mask, mask_type = n.reshape(triangle, scores, strides), "BOOLEAN"
    present_type = (kind, present) if n.wants(1) else None
    y, *presents = n.emit_all(
        "MULTIHEAD_ATTENTION", *(None,) * 5, stacked, None, mask, None, half(0), half(1),
        outputs=[(kind, n.results[0].shape), present_type, present_type], head_count=heads,
        scale=n.get("scale", 0.0) or size**-0.5, mask_type=mask_type,
        mask_filter_value=n.get("mask_filter_value", -10000.0),
    )  # fmt: skip
    if not n.wants(1):
        return [y]
    return [y, n.emit("JOIN", presents, outputs=[(kind, (2, *present[1:]))], axis=0)]


_QUANTIZED: Final = {"a": 0, "b": 1, "bias": 2, "a_scale": 3, "b_scale": 4, "a_zero": 6,
                     "b_zero": 7}  # fmt: skip
"""Positions of the inputs of QAttention's product."""


# Positions of inputs of GroupQueryAttention.
_GROUP_KEY, _GROUP_PAST, _LENGTHS, _TOTAL = 1, (3, 4), 5, 6
_IGNORED: Final = {10: "attention_bias", 11: "head_sink", 12: "k_scale", 13: "v_scale",
                   16: "query_seqlens"}  # fmt: skip
IGNORED_OF_GROUPS: Final = {
    "do_rotary": 0,
    "softcap": 0.0,
    "local_window_size": -1,
    "smooth_softmax": 0,
}
"""The things that the provider ignores: inputs, and attributes with their defaults."""


def grouped_attention(n: Lowering) -> list[Expression | None]:
    """GroupQueryAttention: causal, with one new row after the past, or with rows and no past.

    The provider passes no past, because its present outputs have the memory of the past: that is
    the form `in_place`. A graph that runs here reads the past.
    """
    _check_groups(n)
    (batches, rows, _), heads, groups = n.shape(), n.get("num_heads"), n.get("kv_num_heads")
    size = n.shape()[-1] // heads
    if rows == 1:
        lengths = n.view(_LENGTHS, (batches,))
    else:
        lengths = n.emit(
            "FILL_VALUE_CONSTANT", outputs=[("INT32", (batches,))], value_data_type="INT32",
            value=0,
        )  # fmt: skip

    def single(i: int) -> Expression:
        return n.cast(n.view(i, n.shape(i)), DataType.FLOAT32)

    present = made = n.results[1].shape
    pasts: list[Expression | None] = [None, None]
    if not n.in_place and n.has(_GROUP_PAST[0]):
        pasts = [single(i) for i in _GROUP_PAST]
        made = (*present[:2], n.shape(_GROUP_PAST[0])[2] + rows, size)
    y, *presents = n.emit_all(
        "MULTIHEAD_ATTENTION1", *map(single, range(3)), *(None,) * 6, *pasts, lengths,
        outputs=[("FLOAT32", n.results[0].shape), ("FLOAT32", made), ("FLOAT32", made)],
        query_head_count=heads, key_value_head_count=groups, mask_type="NONE",
        scale=n.get("scale", 0.0) or size**-0.5, mask_filter_value=-10000.0,
    )  # fmt: skip
    if made != present:
        presents = [
            n.emit(
                "SLICE1", x, outputs=[("FLOAT32", present)], input_window_offsets=[0] * 4,
                input_window_sizes=present, input_window_strides=[1] * 4,
            )
            for x in presents
        ]  # fmt: skip
    return [n.cast(x, DATA_TYPES[n.type()]) for x in (y, *presents)]


def _check_groups(n: Lowering) -> None:
    """Refuse what the provider refuses, and unless `exact` what it ignores."""
    if not n.has(_GROUP_KEY):
        raise RefusedError("key", "a tensor (the query has no packed keys)", None)
    for i, name in ((14, "q_norm_weight"), (15, "k_norm_weight")):
        if n.has(i):
            raise RefusedError(name, "no tensor", "a tensor")
    if n.get("causal", 1) != 1:
        raise RefusedError("causal", "1", n.get("causal"))
    if not (n.wants(1) and n.wants(2)):
        raise RefusedError("present_key", "both present outputs", None)
    if n.exact:
        return
    for i, name in _IGNORED.items():
        if n.has(i):
            raise UnsupportedError(f"{name}, which the provider ignores")
    for name, default in IGNORED_OF_GROUPS.items():
        if n.get(name, default) != default:
            raise UnsupportedError(f"{name} {n.get(name)}, which the provider ignores")
    total, rows = n.constant(_TOTAL), n.shape()[1]
    if total is not None and 1 < rows < int(total.reshape(-1)[0]):
        raise UnsupportedError("several rows after a past, which the provider ignores")


def rotary_embedding(n: Lowering) -> Expression:
    """RotaryEmbedding: turn pairs of elements by angles that depend on their position."""
    if not n.exact and n.get("scale", 1.0) != 1:
        raise UnsupportedError("a scale, which the provider ignores")
    by_heads = len(n.shape()) == 4
    if by_heads:
        batches, heads, rows, size = n.shape()
    else:
        batches, rows, hidden = n.shape()
        heads = n.get("num_heads", 0) or hidden // (2 * n.shape(2)[-1])
        size = hidden // heads
    turned = n.get("rotary_embedding_dim", 0) or size
    kind = DATA_TYPES[n.type()]
    if rows > n.shape(2)[0] and not n.get("is_packed_batching", 0):
        raise UnsupportedError("more rows than cos_cache and sin_cache have")

    def of(last: int) -> Sizes:
        return (batches, heads, rows, last) if by_heads else (batches, rows, heads, last)

    x, rest = n.view(0, of(size)), None
    if turned < size:
        parts = [(kind, of(turned)), (kind, of(size - turned))]
        x, rest = n.emit_all("SPLIT", x, outputs=parts, axis=3)
    plain = (batches, rows, heads, turned)
    strides = (rows * heads * turned, turned, rows * turned, 1) if by_heads else None
    copied = n.emit(
        "ELEMENT_WISE_IDENTITY", n.reshape(x, plain, strides), outputs=[(kind, plain)],
        scale_bias=ScaleBias(1.0, 0.0) if n.exact else None,
    )  # fmt: skip
    interleaved = bool(n.get("interleaved", 0))
    half = turned // 2
    axis = 4 if interleaved else 3
    pairs = (batches, rows, heads, *((half, 2) if interleaved else (2, half)))
    single = tuple(1 if i == axis else s for i, s in enumerate(pairs))
    x = n.reshape(copied, pairs)
    one, other = n.emit_all("SPLIT", x, outputs=[(kind, single)] * 2, axis=axis)
    whole = [(kind, pairs)]
    swapped = n.emit("JOIN", [other, one], outputs=whole, axis=axis)
    positions = _positions(n, batches, rows)

    def angles(i: int) -> Expression:
        found = n.emit(
            "GATHER", n.view(i), positions, outputs=[(kind, (1, batches, rows, half))], axis=2,
            index_dimensions=2,
        )  # fmt: skip
        own = (batches, rows, 1, *((half, 1) if interleaved else (1, half)))
        return n.reshape(found, pairs, strides_to(own, pairs))

    signs = n.emit(
        "FILL_VALUE_SEQUENCE", outputs=[(kind, (2,))], value_data_type=kind, value_start=-1.0,
        value_delta=2.0,
    )  # fmt: skip
    sign = n.reshape(signs, pairs, tuple(int(i == axis) for i in range(5)))
    straight = n.emit("ELEMENT_WISE_MULTIPLY", x, angles(2), outputs=whole)
    crossed = n.emit("ELEMENT_WISE_MULTIPLY", swapped, sign, outputs=whole)
    crossed = n.emit("ELEMENT_WISE_MULTIPLY", crossed, angles(3), outputs=whole)
    result = n.emit(
        "ELEMENT_WISE_ADD", n.reshape(straight, plain), n.reshape(crossed, plain),
        outputs=[TensorDesc(kind, plain, strides)],
    )  # fmt: skip
    if rest is None:
        return result
    return n.emit("JOIN", [n.reshape(result, of(turned)), rest], outputs=[(kind, of(size))], axis=3)


def _positions(n: Lowering, batches: int, rows: int) -> Expression:
    """The position of each row; a single number is that of the first."""
    sizes = (1, 1, batches, rows)
    if len(n.shape(1)) > 1:
        return n.view(1, sizes)
    kind = DataType.INT64
    counted = n.emit(
        "FILL_VALUE_SEQUENCE", outputs=[(kind, (1, 1, 1, rows))], value_data_type=kind,
        value_start=0, value_delta=1,
    )  # fmt: skip
    return n.emit(
        "ELEMENT_WISE_ADD", n.reshape(counted, sizes, (0, 0, 0, 1)), n.broadcast(1, sizes),
        outputs=[(kind, sizes)],
    )  # fmt: skip
