"""Normalizations."""

from __future__ import annotations

from anydml.core.dtypes import DataType
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, padded, padded_right


def batch_normalization(n: Lowering) -> Expression:
    sizes = padded_right(n.shape())
    x = n.view(0, sizes)
    scale, bias, mean, variance = (n.vector(i, len(sizes), 1) for i in range(1, 5))
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
    return n.emit(
        "MEAN_VARIANCE_NORMALIZATION1", n.view(0), axes=[axis + more for axis in axes],
        normalize_variance=bool(n.get("normalize_variance", 1)), epsilon=1e-5,
    )  # fmt: skip


def lp_normalization(n: Lowering) -> Expression:
    axis = n.axis(0 if n.exact else -1) + max(4 - len(n.shape()), 0)
    return n.emit("LP_NORMALIZATION", n.view(0), axis=axis, epsilon=1e-5, p=n.get("p", 2))


def local_response(n: Lowering) -> Expression:
    return n.emit(
        "LOCAL_RESPONSE_NORMALIZATION", n.view(0), cross_channel=True, local_size=n.get("size"),
        alpha=n.get("alpha", 1e-4), beta=n.get("beta", 0.75), bias=n.get("bias", 1.0),
    )  # fmt: skip
