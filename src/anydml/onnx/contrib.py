"""Operators of ONNX Runtime's domain com.microsoft."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from anydml.graphs.build import Expression
from anydml.onnx.lower import attention, matrices, normalization, quantized, windows
from anydml.onnx.lower.elementwise import unary
from anydml.onnx.lower.node import Lower, Lowering, padded, padded_right, strides_to
from anydml.onnx.rows import Row
from anydml.onnx.shapes import transposed, windows_inside
from anydml.onnx.types import FLOATS, Value
from anydml.ops._fields import ScaleBias
from anydml.ops._registry import OPERATORS

DOMAIN: Final = "com.microsoft"

Operands = Sequence[Value | None]
Found = list[tuple[str, Any]]


def _same(node: Any, inputs: Operands) -> Found:
    """Every output has the first input's type and shape."""
    first = inputs[0]
    return [] if first is None else [(first.type, first.shape)] * len(node.outputs)


def _broadcast(*shapes: Any) -> Any:
    if any(shape is None or not all(isinstance(s, int) for s in shape) for shape in shapes):
        return None
    rank = max(map(len, shapes))
    columns = zip(*(padded(shape, rank) for shape in shapes), strict=True)
    return tuple(0 if 0 in sizes else max(sizes) for sizes in columns)


def _pair(first: int, second: int) -> Callable[[Any, Operands], Found]:
    def infer(node: Any, inputs: Operands) -> Found:
        one, other = inputs[first], inputs[second] if second < len(inputs) else None
        if one is None:
            return []
        shape = one.shape if other is None else _broadcast(one.shape, other.shape)
        return [(one.type, shape)]

    return infer


def _product(a: int, b: int, made: Callable[[Operands], str]) -> Callable[[Any, Operands], Found]:
    def infer(node: Any, inputs: Operands) -> Found:
        left, right = inputs[a], inputs[b]
        if left is None or right is None or left.sizes is None or right.sizes is None:
            return [(made(inputs), None)]
        one, other = left.sizes, right.sizes
        if node.attributes.get("transBatchA"):
            one = (*one[1:-1], one[0], one[-1])
        if node.attributes.get("transBatchB"):
            other = (*other[1:-1], other[0], other[-1])
        if node.attributes.get("transA"):
            one = (*one[:-2], one[-1], one[-2])
        if node.attributes.get("transB"):
            other = (*other[:-2], other[-1], other[-2])
        row = one[-2:-1]
        column = other[-1:] if len(other) > 1 else ()
        batch = _broadcast(one[:-2], other[:-2]) if len(one) > 2 or len(other) > 2 else ()
        return [(made(inputs), (*batch, *row, *column))]

    return infer


def _in_blocks(node: Any, inputs: Operands) -> Found:
    first = inputs[0]
    if first is None or first.shape is None:
        return [] if first is None else [(first.type, None)]
    return [(first.type, (*first.shape[:-1], node.attributes.get("N")))]


def _type_of(i: int) -> Callable[[Operands], str]:
    return lambda inputs: getattr(inputs[i], "type", "")


def _first_scale(inputs: Operands) -> str:
    return getattr(inputs[2], "type", "") if len(inputs) > 2 else ""


def _quantize(node: Any, inputs: Operands) -> Found:
    x = inputs[0]
    zero = inputs[2] if len(inputs) > 2 else None
    return [] if x is None else [(zero.type if zero else "u8", x.shape)]


def _dequantize(node: Any, inputs: Operands) -> Found:
    x, scale = inputs[:2]
    return [] if x is None or scale is None else [(scale.type, x.shape)]


def _pool(globally: bool) -> Callable[[Any, Operands], Found]:
    def infer(node: Any, inputs: Operands) -> Found:
        x, attributes = inputs[0], node.attributes
        if x is None or x.sizes is None or len(x.sizes) < 3:
            return [] if x is None else [(x.type, None)]
        last = attributes.get("channels_last", 0)
        spatial = x.sizes[1:-1] if last else x.sizes[2:]
        rank = len(spatial)
        results = [1] * rank
        if not globally:
            window = attributes.get("kernel_shape", [1] * rank)
            strides = attributes.get("strides", [1] * rank)
            pads = attributes.get("pads", [0] * 2 * rank)
            up = attributes.get("ceil_mode", 0)
            for i, size in enumerate(spatial):
                left = size + pads[i] + pads[i + rank] - window[i]
                results[i] = (-(-left // strides[i]) if up else left // strides[i]) + 1
                if str(attributes.get("auto_pad", "")).startswith("SAME"):
                    results[i] = -(-size // strides[i])
            if up:
                results = windows_inside(results, spatial, strides, pads)
        channels = x.sizes[-1] if last else x.sizes[1]
        shape = (x.sizes[0], *results, channels) if last else (x.sizes[0], channels, *results)
        return [(x.type, shape)]

    return infer


def _concat(node: Any, inputs: Operands) -> Found:
    parts = [value.sizes for value in inputs[2::3] if value is not None]
    zero = inputs[1]
    kind = zero.type if zero else ""
    if not parts or any(sizes is None for sizes in parts):
        return [(kind, None)]
    first = list(parts[0] or ())
    axis = node.attributes.get("axis", 1) % len(first)
    first[axis] = sum((sizes or ())[axis] for sizes in parts)
    return [(kind, tuple(first))]


def _convolved(last: bool) -> Callable[[Any, Operands], Found]:
    """A convolution, of channels last or second; filters have them there, too."""

    def infer(node: Any, inputs: Operands) -> Found:
        x, w = inputs[:2]
        if x is None or w is None or x.sizes is None or w.sizes is None:
            return [] if x is None else [(x.type, None)]
        attributes, first = node.attributes, 1 if last else 2
        if str(attributes.get("auto_pad", "NOTSET")) != "NOTSET":
            return [(x.type, None)]
        rank = len(x.sizes) - 2
        pads = attributes.get("pads", [0] * 2 * rank)
        strides = attributes.get("strides", [1] * rank)
        dilations = attributes.get("dilations", [1] * rank)
        results = [
            (x.sizes[first + i] + pads[i] + pads[i + rank]
             - (w.sizes[first + i] - 1) * dilations[i] - 1) // strides[i] + 1
            for i in range(rank)
        ]  # fmt: skip
        channels = w.sizes[0]
        shape = (*results, channels) if last else (channels, *results)
        return [(x.type, (x.sizes[0], *shape))]

    return infer


def _sum_of_product(b: int, typed: Callable[[Operands], str]) -> Callable[[Any, Operands], Found]:
    """A Gemm, whose second matrix is the input `b`."""

    def infer(node: Any, inputs: Operands) -> Found:
        left, right = inputs[0], inputs[b]
        if left is None or right is None or left.shape is None or right.shape is None:
            return [(typed(inputs), None)]
        attributes = node.attributes
        row = left.shape[1 if attributes.get("transA") else 0]
        return [(typed(inputs), (row, right.shape[0 if attributes.get("transB") else 1]))]

    return infer


def _quantized_type(inputs: Operands) -> str:
    """The type of a QGemm: floats if it has no output scale."""
    zero = inputs[8] if len(inputs) > 8 else None
    return _type_of(1)(inputs) if zero is None else zero.type


def _skipped(node: Any, inputs: Operands) -> Found:
    first = inputs[0]
    if first is None:
        return []
    found: Found = [
        (first.type, first.shape),
        ("f32", None),
        ("f32", None),
        (first.type, first.shape),
    ]
    return found[: len(node.outputs)]


def _attended(node: Any, inputs: Operands) -> Found:
    query, key, value = (inputs[i] if i < len(inputs) else None for i in range(3))
    if query is None or query.sizes is None:
        return [] if query is None else [(query.type, None)] * len(node.outputs)
    heads = node.attributes.get("num_heads", 1)
    batches, queries, *_ = query.sizes
    packed = len(query.sizes) == 5
    size = query.sizes[-1] if packed else query.sizes[-1] // heads
    keys, value_size = queries, size
    if key is not None and key.sizes is not None:
        keys = key.sizes[2] if len(key.sizes) == 4 else key.sizes[1]
        if value is not None and value.sizes is not None:
            value_size = value.sizes[-1] if len(value.sizes) == 4 else value.sizes[-1] // heads
    past = inputs[6] if len(inputs) > 6 else None
    total = keys + (past.sizes[2] if past is not None and past.sizes is not None else 0)
    found: Found = [
        (query.type, (batches, queries, heads * value_size)),
        (query.type, (batches, heads, total, size)),
        (query.type, (batches, heads, total, value_size)),
    ]
    return found[: len(node.outputs)]


def _self_attended(node: Any, inputs: Operands) -> Found:
    """Attention and QAttention: the output, then past and new keys and values."""
    x, weights = inputs[:2]
    past_at, kind = (
        (8, _type_of(3)(inputs)) if node.operator[0] == "Q" else (4, _type_of(0)(inputs))
    )
    if x is None or weights is None or x.sizes is None or weights.sizes is None:
        return [(kind, None)] * len(node.outputs)
    batches, rows = x.sizes[:2]
    heads = node.attributes.get("num_heads", 1)
    width = weights.sizes[-1]
    query, _, value = node.attributes.get("qkv_hidden_sizes") or [width // 3] * 3
    past = inputs[past_at] if len(inputs) > past_at else None
    total: Any = rows
    if past is not None:
        total = None if past.sizes is None else past.sizes[3] + rows
    found: Found = [
        (kind, (batches, rows, value)),
        (kind, (2, batches, heads, total, query // heads)),
    ]
    return found[: len(node.outputs)]


def _grouped(node: Any, inputs: Operands) -> Found:
    """GroupQueryAttention: the present has room for the past, and at least for all rows."""
    query, key, past = (inputs[i] if i < len(inputs) else None for i in (0, 1, 3))
    if query is None or query.sizes is None:
        return [] if query is None else [(query.type, None)] * len(node.outputs)
    batches, _, width = query.sizes
    heads, groups = (node.attributes.get(name, 1) for name in ("num_heads", "kv_num_heads"))
    size = width // (heads if key is not None else heads + 2 * groups)
    data = inputs[6].data if len(inputs) > 6 and inputs[6] is not None else None
    rows: Any = None
    if data is not None and (past is None or past.sizes is not None):
        rows = max(int(data.reshape(-1)[0]), 0 if past is None else (past.sizes or (0,) * 4)[2])
    present = (query.type, (batches, groups, rows, size))
    return [(query.type, (*query.sizes[:2], heads * size)), present, present][: len(node.outputs)]


def _embedded(node: Any, inputs: Operands) -> Found:
    """EmbedLayerNormalization; of quantized tables if the node has the scale of the first."""
    ids, words = inputs[0], inputs[2]
    if ids is None or words is None:
        return []
    known = ids.shape is not None and words.shape is not None
    shape = (*(ids.shape or ()), (words.shape or (None,))[-1]) if known else None
    lengths = None if ids.shape is None else ids.shape[:1]
    kind = _type_of(8)(inputs) if node.operator[0] == "Q" else words.type
    found: Found = [(kind, shape), (ids.type, lengths), (kind, shape)]
    return found[: len(node.outputs)]


def _transposed(node: Any, inputs: Operands) -> Found:
    x, w, pads = inputs[:3]
    if x is None or pads is None or pads.data is None:
        return [] if x is None else [(x.type, None)]
    return [(x.type, transposed(node, (x, w), pads.data.reshape(-1).tolist()))]


def _halved(node: Any, inputs: Operands) -> Found:
    x = inputs[0]
    if x is None or x.shape is None:
        return [] if x is None else [(x.type, None)]
    last = x.shape[-1]
    return [(x.type, (*x.shape[:-1], last // 2 if isinstance(last, int) else None))]


# Small graphs


def bias_gelu(n: Lowering) -> Expression:
    if not n.has(1):
        return n.emit("ACTIVATION_GELU", n.view(0))
    sizes = n.output()[1]
    return n.emit(
        "ELEMENT_WISE_ADD1", n.broadcast(0, sizes), n.broadcast(1, sizes),
        fused_activation=OPERATORS["ACTIVATION_GELU"](),
    )  # fmt: skip


def quick_gelu(n: Lowering) -> Expression:
    x = n.view(0)
    alpha = n.get("alpha", 1.702)
    scaled = x
    if alpha != 1:
        scaled = n.emit("ELEMENT_WISE_IDENTITY", x, scale_bias=ScaleBias(alpha, 0.0))
    return n.emit("ELEMENT_WISE_MULTIPLY", x, n.emit("ACTIVATION_SIGMOID", scaled))


def skip_normalization(use_mean: bool) -> Lower:
    def lower(n: Lowering) -> list[Expression | None]:
        sizes = padded_right(n.shape())
        bias = 4 if use_mean else 3

        def spread(i: int) -> Expression:
            own = padded_right(padded(n.shape(i), len(n.shape())))
            return n.view(i, sizes, strides_to(own, sizes))

        out = [(n.output()[0], sizes)]
        total = n.emit("ELEMENT_WISE_ADD", n.view(0, sizes), spread(1), outputs=out)
        if n.has(bias):
            total = n.emit("ELEMENT_WISE_ADD", total, spread(bias), outputs=out)
        last = len(n.shape()) - 1

        def vector(i: int) -> Expression | None:
            return n.vector(i, len(sizes), last) if n.has(i) else None

        result = n.emit(
            "MEAN_VARIANCE_NORMALIZATION2", total, vector(2), vector(3) if use_mean else None,
            outputs=out, axes=list(range(last, len(sizes))), use_mean=use_mean, use_variance=True,
            epsilon=n.get("epsilon", 1e-12),
        )  # fmt: skip
        return [result, None, None, total][: len(n.results)]

    return lower


def _skip_query(node: Any, _: Operands) -> str:
    means = any(node.outputs[1:3])
    return "the outputs of mean and inverse deviation" if means else ""


def bias_split_gelu(n: Lowering) -> Expression:
    sizes = padded(n.shape())
    data_type = n.output()[0]
    total = n.emit(
        "ELEMENT_WISE_ADD", n.view(0), n.broadcast(1, sizes), outputs=[(data_type, sizes)]
    )
    half = n.output()
    one, other = n.emit_all("SPLIT", total, outputs=[half, half], axis=len(sizes) - 1)
    return n.emit("ELEMENT_WISE_MULTIPLY", one, n.emit("ACTIVATION_GELU", other))


def bias_add(n: Lowering) -> Expression:
    sizes = n.output()[1]
    total = n.emit("ELEMENT_WISE_ADD", n.view(0), n.broadcast(1, sizes))
    return n.emit("ELEMENT_WISE_ADD", total, n.broadcast(2, sizes))


def _blocks_query(node: Any, _: Operands) -> str:
    bits = node.attributes.get("bits", 4)
    return f"{bits} bits" if bits not in (4, 8) else ""


def _attention_query(node: Any, _: Operands) -> str:
    if any(node.inputs[4:5]) or any(node.inputs[6:7]) or any(node.outputs[1:2]):
        return "keys and values of the past"
    set_ = ("unidirectional", "do_rotary", "past_present_share_buffer")
    return next((f"{name} 1" for name in set_ if node.attributes.get(name, 0)), "")


def _quantized_attention_query(node: Any, _: Operands) -> str:
    if node.attributes.get("unidirectional", 0) and any(node.inputs[5:6]):
        return "unidirectional 1 with a mask"
    set_ = ("do_rotary", "past_present_share_buffer")
    return next((f"{name} 1" for name in set_ if node.attributes.get(name, 0)), "")


def _sigmoid_query(node: Any, inputs: Operands) -> str:
    return "" if len(inputs) > 4 and all(inputs) else "a missing zero point"


_T: Final = f"T={FLOATS}"
_EIGHT: Final = "T=u8 i8"


def _row(
    name: str,
    types: str,
    formals: str,
    lower: Lower,
    infer: Callable[[Any, Operands], Found] = _same,
    *,
    query: Any = None,
    constants: Mapping[int, Sequence[int]] | None = None,
) -> Row:
    return Row(
        name, (1,), {1: types}, lower, constants or {}, True, query, DOMAIN,
        tuple(formals.split()), infer,
    )  # fmt: skip


CONTRIB: Final = (
    _row("ConvTransposeWithDynamicPads", _T, "T T -? T? -> T",
         windows.convolution("BACKWARD", bias=3, pads=2), _transposed, constants={1: (2,)}),
    _row("MultiHeadAttention", f"T={FLOATS}; M=i32", "T T? T? T? M? T? T? T? -> T T T",
         attention.multihead_attention, _attended),
    _row("Attention", f"T={FLOATS}; M=i32", "T T T? M? T? T? M? -> T T", attention.attention,
         _self_attended, query=_attention_query),
    _row("QAttention", f"T1=u8 i8; T2=u8 i8; T3={FLOATS}; T4=i32",
         "T1 T2 T3 T3 T3 T4? T1? T2? T3? -> T3 T3", attention.quantized_attention, _self_attended,
         query=_quantized_attention_query),
    _row("GroupQueryAttention", f"T={FLOATS}; M=i32",
         "T T? T? T? T? M M T? T? I? T? T? S? S? T? T? M? -> T T T T",
         attention.grouped_attention, _grouped, constants={1: (6,)}),
    _row("RotaryEmbedding", f"T={FLOATS}; M=i64", "T M T T -> T", attention.rotary_embedding),
    _row("NhwcConv", _T, "T T T? -> T", windows.nhwc_convolution, _convolved(True)),
    _row("QuantizeLinear", "T1=f16 f32 i32; T2=u8 i8", "T1 - T2? -> T2",
         quantized.linear("QUANTIZE"), _quantize),
    _row("DequantizeLinear", "T1=u8 i8 i32; T2=f16 f32", "T1 T2 T1? -> T2",
         quantized.linear("DEQUANTIZE"), _dequantize),
    _row("Gelu", _T, "T -> T", unary("ACTIVATION_GELU")),
    _row("BiasGelu", _T, "T T -> T", bias_gelu),
    _row("FastGelu", _T, "T T? -> T", bias_gelu),
    _row("FusedMatMul", _T, "T T -> T", matrices.fused_matmul, _product(0, 1, _type_of(0))),
    _row("FusedMatMulActivation", _T, "T T -> T", matrices.fused_matmul,
         _product(0, 1, _type_of(0))),
    _row("DynamicQuantizeMatMul", "T1=f32; T2=u8 i8", "T1 T2 T1 T2? T1? -> T1",
         matrices.dynamic_quantized_product, _product(0, 1, _type_of(0))),
    _row("QLinearSigmoid", _EIGHT, "T - T? - T? -> T", quantized.quantized_sigmoid,
         query=_sigmoid_query),
    _row("QLinearConcat", "TF=f32; T8=u8 i8; TV=u8 i8 f32", "TF T8 TV* -> T8",
         quantized.quantized_concat, _concat),
    _row("QLinearAveragePool", _EIGHT, "T - T? - T? -> T", windows.quantized_pooling(False),
         _pool(False)),
    _row("QLinearGlobalAveragePool", _EIGHT, "T - T - T -> T", windows.quantized_pooling(True),
         _pool(True)),
    _row("QLinearAdd", "T=i8 u8", "T - T? T - T? - T? -> T", quantized.quantized_add, _pair(0, 3)),
    _row("MatMulIntegerToFloat", "T1=u8 i8; T2=u8 i8; T3=f16 f32", "T1 T2 T3 T3 T1? T2? T3? -> T3",
         matrices.integer_product_to_float, _product(0, 1, _first_scale)),
    _row("SkipLayerNormalization", _T, "T T T T? T? -> T - - T", skip_normalization(True), _skipped,
         query=_skip_query),
    _row("SkipSimplifiedLayerNormalization", _T, "T T T T? -> T - - T", skip_normalization(False),
         _skipped, query=_skip_query),
    _row("EmbedLayerNormalization", _T, "T1 T1? T T T? T T T1? T1? -> T T1 T",
         normalization.embedding_normalization, _embedded),
    _row("GroupNorm", f"T={FLOATS}; M={FLOATS}", "T M M -> T", normalization.group_normalization),
    _row("BiasSplitGelu", _T, "T T -> T", bias_split_gelu, _halved),
    _row("BiasAdd", _T, "T T T -> T", bias_add),
    _row("QuickGelu", _T, "T -> T", quick_gelu),
    _row("MatMulNBits", "T1=f16 f32; T2=u8", "T1 T2 T1 T3? T4? T1? -> T1",
         quantized.matmul_in_blocks, _in_blocks, query=_blocks_query),
)  # fmt: skip
"""The rows of com.microsoft."""

OTHERS: Final[Mapping[str, tuple[str, Callable[[Any, Operands], Found]]]] = {
    "FusedConv": ("T T T? T?", _convolved(False)),
    "FusedGemm": ("T T T?", _sum_of_product(1, _type_of(0))),
    "QEmbedLayerNormalization": (
        "T1 T1? T2 T2 T2? T2 T2 T1? T T T? T T T2 T2 T2? T2 T2", _embedded),
    "QGemm": ("TA T TA TB T TB TC? T? TYZ?", _sum_of_product(3, _quantized_type)),
    "QLinearLeakyRelu": ("T - T? - T?", _same),
    "QLinearMul": ("T - T? T - T? - T?", _pair(0, 3)),
    "QLinearSoftmax": ("T - T? - T", _same),
}  # fmt: skip
"""Operators of com.microsoft for which the provider has no kernel: type parameters of inputs, and
types and shapes of outputs."""
