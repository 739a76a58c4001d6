"""Gather, scatter, selection and reductions."""

from __future__ import annotations

from math import prod
from typing import Any

from anydml.core.dtypes import DataType
from anydml.core.tensor import packed_strides
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, UnsupportedError, axes_of, padded


def gather(n: Lowering) -> Expression:
    rank = max(len(n.shape()), len(n.shape(1)), len(n.results[0].shape), 1)
    return n.emit(
        "GATHER", n.view(0, rank=rank), n.view(1, rank=rank), outputs=[n.output(rank=rank)],
        axis=n.axis(0) + rank - len(n.shape()), index_dimensions=len(n.shape(1)),
    )  # fmt: skip


def gather_elements(n: Lowering) -> Expression:
    rank = max(len(n.shape()), 1)
    axis, x = n.axis(0), n.view(0, rank=rank)
    if not n.exact:  # DirectML wants the sizes of the indices, but for the axis
        sizes = [
            old if i == axis else size
            for i, (old, size) in enumerate(zip(x.sizes, n.output(rank=rank)[1], strict=True))
        ]
        x = n.view(0, sizes, packed_strides(x.sizes))
    return n.emit(
        "GATHER_ELEMENTS", x, n.view(1, rank=rank), outputs=[n.output(rank=rank)], axis=axis
    )


def gather_nd(n: Lowering) -> Expression:
    rank = max(len(n.shape()), len(n.shape(1)), len(n.results[0].shape), 1)
    return n.emit(
        "GATHER_ND1", n.view(0, rank=rank), n.view(1, rank=rank), outputs=[n.output(rank=rank)],
        input_dimension_count=len(n.shape()), indices_dimension_count=len(n.shape(1)),
        batch_dimension_count=n.get("batch_dims", 0),
    )  # fmt: skip


def scatter(n: Lowering) -> Expression:
    if 0 in n.shape(1):
        return n.emit("ELEMENT_WISE_IDENTITY", n.view(0))
    rank = max(len(n.shape()), 4)
    axis = n.axis(0) + rank - len(n.shape())
    kept = [i for i in range(len(n.shape())) if i != n.axis(0)]
    if not n.exact and any(n.shape(1)[i] != n.shape()[i] for i in kept):
        raise UnsupportedError("DirectML has no indices that are smaller than the input")
    return n.emit("SCATTER", n.view(0), n.view(1), n.view(2), axis=axis)


def scatter_nd(n: Lowering) -> Expression:
    if 0 in n.shape(1):
        return n.emit("ELEMENT_WISE_IDENTITY", n.view(0))
    rank = max(*(len(n.shape(i)) for i in range(3)), 1)
    return n.emit(
        "SCATTER_ND", *(n.view(i, rank=rank) for i in range(3)), outputs=[n.output(rank=rank)],
        input_dimension_count=len(n.shape()), indices_dimension_count=len(n.shape(1)),
    )  # fmt: skip


def top_k(n: Lowering) -> Any:
    k = n.get("k") if n.version < 10 else (n.integers(1) or [0])[0]
    rank = max(len(n.shape()), 4)
    largest = n.get("largest", 1)
    return n.emit_all(
        "TOP_K1", n.view(0), outputs=[n.output(), (DataType.UINT64, n.output(1)[1])],
        axis=n.axis(-1) + rank - len(n.shape()), k=k,
        axis_direction="DECREASING" if largest else "INCREASING",
    )  # fmt: skip


def one_hot(n: Lowering) -> Expression:
    sizes = n.results[0].shape
    axis = n.axis(-1, len(sizes))
    indices = [1 if i == axis else size for i, size in enumerate(sizes)]
    values = padded((2,))  # whatever the rank of the others
    return n.emit(
        "ONE_HOT", n.view(0, indices), n.view(2, values), outputs=[n.output(rank=1)], axis=axis
    )


def reduce(function: str) -> Lower:
    """A reduction along axes of an attribute or a constant input."""

    def lower(n: Lowering) -> Expression:
        rank = len(n.shape())
        axes = n.integers(1) if len(n.operands) > 1 else n.get("axes")
        axes = axes_of(axes or [], max(rank, 1))
        shape = n.shape() or (1,)
        if not axes and n.get("noop_with_empty_axes", 0):  # each element is reduced alone
            shape, axes = (prod(shape), 1), [1]
        axes = sorted(set(axes)) or list(range(max(rank, 1)))
        sizes = tuple(1 if i in axes else size for i, size in enumerate(shape))
        return n.emit(
            "REDUCE", n.view(0, shape), outputs=[(n.output()[0], sizes)], function=function,
            axes=axes,
        )  # fmt: skip

    return lower


def position(name: str) -> Lower:
    """ArgMax or ArgMin."""

    def lower(n: Lowering) -> Expression:
        axis, shape = n.axis(0), n.shape() or (1,)
        sizes = tuple(1 if i == axis else size for i, size in enumerate(shape))
        last = n.get("select_last_index", 0)
        return n.emit(
            name, n.view(0, rank=1), outputs=[(n.output()[0], sizes)], axes=[axis],
            axis_direction="DECREASING" if last else "INCREASING",
        )  # fmt: skip

    return lower


def nonzero(n: Lowering) -> Any:
    """Coordinates of elements that are not zero; how many there are is known at run time."""
    shape = n.shape() or (1,)
    x = n.view(0, rank=1)
    count, coordinates = n.emit_all(
        "NONZERO_COORDINATES", x,
        outputs=[("UINT32", (1,) * len(shape)), ("UINT32", (x.desc.element_count, len(shape)))],
    )  # fmt: skip
    return count, coordinates
