"""Normalizations."""

from __future__ import annotations

from anydml.core.dtypes import DataType
from anydml.core.tensor import TensorDesc
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, padded, padded_right
from anydml.onnx.types import DATA_TYPES


def batch_normalization(n: Lowering) -> Expression:
    sizes = padded_right(n.shape())
    x = n.view(0, sizes)
    # Without `spatial`, the parameters have the sizes of the input but for the batch.
    scale, bias, mean, variance = (
        n.view(i, padded_right((1, *n.shape(i)), len(sizes))) for i in range(1, 5)
    )
    return n.emit(
        "BATCH_NORMALIZATION", x, mean, variance, scale, bias, outputs=[(n.output()[0], sizes)],
        spatial=bool(n.get("spatial", 1)), epsilon=n.get("epsilon", 1e-5),
    )  # fmt: skip


def instance_normalization(n: Lowering) -> Expression:
    sizes = padded_right(n.shape())
    return n.emit(
        "MEAN_VARIANCE_NORMALIZATION1", n.view(0, sizes),
        *(n.vector(i, len(sizes), 1) for i in (1, 2)),
        outputs=[(n.output()[0], sizes)], axes=list(range(2, len(sizes))), normalize_variance=True,
        epsilon=n.get("epsilon", 1e-5),
    )  # fmt: skip


def layer_normalization(use_mean: bool) -> Lower:
    """Layer normalization, or RMS normalization without the mean; types may be mixed."""

    def lower(n: Lowering) -> Expression:
        rank = len(n.shape())
        sizes = padded_right(n.shape())
        first = n.axis(-1)
        mixed = any(n.has(i) and n.type(i) != n.type() for i in (1, 2))
        kind = DataType.FLOAT32 if mixed else n.output()[0]

        def operand(i: int) -> Expression | None:
            if not n.has(i):
                return None
            own = padded_right(padded(n.shape(i), rank), len(sizes))
            return n.cast(n.view(i, own), kind)

        result = n.emit(
            "MEAN_VARIANCE_NORMALIZATION2", operand(0), operand(1), operand(2),
            outputs=[(kind, sizes)], axes=list(range(first, len(sizes))), use_mean=use_mean,
            use_variance=True, epsilon=n.get("epsilon", 1e-5),
        )  # fmt: skip
        return n.cast(result, n.output()[0])

    return lower


def mean_variance(n: Lowering) -> Expression:
    rank = len(n.shape())
    if n.version < 9:
        axes = [0, 1, 2, 3] if n.get("across_channels", 0) else [0, 2, 3]
    else:
        axes = [axis % rank for axis in n.get("axes", [0, 2, 3])]
    more = max(4 - rank, 0)
    # ONNX adds 1e-9 to the deviation, the provider 1e-5 to the variance.
    return n.emit(
        "MEAN_VARIANCE_NORMALIZATION1", n.view(0), axes=[axis + more for axis in axes],
        normalize_variance=bool(n.get("normalize_variance", 1)),
        epsilon=1e-5 if n.exact else 1e-18,
    )  # fmt: skip


def lp_normalization(n: Lowering) -> Expression:
    axis = n.axis(0 if n.exact else -1) + max(4 - len(n.shape()), 0)
    least = 1e-5 if n.exact else 2.0**-126  # ONNX divides by any norm above 0
    return n.emit("LP_NORMALIZATION", n.view(0), axis=axis, epsilon=least, p=n.get("p", 2))


def local_response(n: Lowering) -> Expression:
    return n.emit(
        "LOCAL_RESPONSE_NORMALIZATION", n.view(0), cross_channel=True, local_size=n.get("size"),
        alpha=n.get("alpha", 1e-4), beta=n.get("beta", 0.75), bias=n.get("bias", 1.0),
    )  # fmt: skip


def group_normalization(n: Lowering) -> Expression:
    """GroupNorm, with channels last unless `channels_last` is 0, and SiLU if `activation` is 1."""
    last = n.exact or n.get("channels_last", 1)  # the provider does not ask
    batches, *others = n.shape()
    channels = others.pop(-1 if last else 0)
    pixels, groups = others[0] * others[1], n.get("groups")
    size = channels // groups
    sizes = (batches, size, pixels, groups)
    step = (1, channels, size) if last else (pixels, 1, size * pixels)
    kind = n.output()[0]
    tensor = TensorDesc(kind, sizes, (channels * pixels, *step))

    def parameter(i: int) -> Expression:
        vector = n.view(i, sizes, (0, 1, 0, size))
        return vector if n.type(i) == n.type() else n.emit("CAST", vector, outputs=[tensor])

    y = n.emit(
        "MEAN_VARIANCE_NORMALIZATION1", n.view(0, sizes, tensor.strides), parameter(1),
        parameter(2), outputs=[tensor], axes=[1, 2], normalize_variance=True,
        epsilon=n.get("epsilon", 1e-5),
    )  # fmt: skip
    if not n.get("activation"):
        return y
    gate = n.emit("ACTIVATION_SIGMOID", y, outputs=[tensor])
    return n.emit("ELEMENT_WISE_MULTIPLY", y, gate, outputs=[tensor])


_WORDS, _SEGMENTS, _MASK, _POSITIONS = 0, 1, 7, 8
"""Positions of inputs of EmbedLayerNormalization: indices, and which of them count."""


def embedding_normalization(n: Lowering) -> list[Expression | None]:
    """EmbedLayerNormalization: the sum of two or three embeddings, normalized."""
    batches, rows = n.shape(_WORDS)
    ids = (1, 1, batches, rows)
    kind = DATA_TYPES[n.type(2)]
    out = [(kind, (1, batches, rows, n.shape(2)[-1]))]

    def gathered(table: int, indices: Expression) -> Expression:
        return n.emit("GATHER", n.view(table), indices, outputs=out, axis=2, index_dimensions=2)

    if n.has(_POSITIONS):
        positions = n.broadcast(_POSITIONS, ids)
    else:
        counted = n.emit(
            "FILL_VALUE_SEQUENCE", outputs=[("INT32", (1, 1, 1, rows))], value_data_type="INT32",
            value_start=0, value_delta=1,
        )  # fmt: skip
        positions = n.reshape(counted, ids, (0, 0, 0, 1))
    total = n.emit(
        "ELEMENT_WISE_ADD", gathered(2, n.view(_WORDS, ids)), gathered(3, positions), outputs=out
    )
    if n.has(4):
        segments = gathered(4, n.view(_SEGMENTS, ids))
        total = n.emit("ELEMENT_WISE_ADD", total, segments, outputs=out)
    result = n.emit(
        "MEAN_VARIANCE_NORMALIZATION1", total, n.view(5), n.view(6), outputs=out, axes=[3],
        normalize_variance=True, epsilon=n.get("epsilon", 1e-12),
    )  # fmt: skip
    lengths = _lengths(n, ids) if n.wants(1) else None
    return [result, lengths, total if n.wants(2) else None][: len(n.results)]


def _lengths(n: Lowering, ids: tuple[int, ...]) -> Expression:
    """How many elements of each row of the mask are 1."""

    def filled(value: int, *sizes: int) -> Expression:
        return n.emit(
            "FILL_VALUE_CONSTANT", outputs=[("INT32", sizes)], value_data_type="INT32", value=value
        )

    if not n.has(_MASK):
        return filled(0, *n.results[1].shape)
    ones = n.reshape(filled(1, 1, 1, 1, 1), ids, (0,) * 4)
    equal = n.emit(
        "ELEMENT_WISE_LOGICAL_EQUALS", n.view(_MASK, ids), ones, outputs=[("UINT32", ids)]
    )
    return n.emit(
        "REDUCE", n.reshape(equal, ids, type="i32"), outputs=[("INT32", (1, 1, ids[2], 1))],
        function="SUM", axes=[3],
    )  # fmt: skip
