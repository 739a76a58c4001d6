"""Matrix products: multiply the matrices of each batch and channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.core._literals import MatrixTransformName
from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, find_violations, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import enumeration, floating, input_field, nested, output_field
from anydml.ops._rules import equal, of_rank, rank_of, same_ranks, same_types
from anydml.ops.activations import FUSABLE, Fusable
from anydml.ops.elementwise import ElementWiseClip
from anydml.ops.softmax import ActivationSoftmax, ActivationSoftmax1

FAMILY = Family.NETWORKS


class MatrixTransform(NamedEnum):
    """``DML_MATRIX_TRANSFORM``: whether a matrix is transposed."""

    NONE = 0
    TRANSPOSE = 1


class Gemm(Computed):
    """``activation(alpha * A @ B + beta * C)`` for each batch and channel.

    Parameters
    ----------
    a_tensor : TensorDesc
        ``{batches, channels, M, K}``, or ``{.., K, M}`` if A is transposed. From feature level 4_0,
        batches and channels may be omitted.
    b_tensor : TensorDesc
        ``{batches, channels, K, N}``, or ``{.., N, K}`` if B is transposed.
    c_tensor : TensorDesc, optional
        The tensor to add, with the sizes of the output. Strides of 0 broadcast it.
    output_tensor : TensorDesc
        ``{batches, channels, M, N}``.
    trans_a, trans_b : MatrixTransform or str
        NONE, or TRANSPOSE to exchange the last two dimensions.
    alpha : float
        The factor of the product.
    beta : float
        The factor of C; ignored without C.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    ONE_DIMENSION_COUNT = True

    a_tensor: TensorDesc = input_field()
    b_tensor: TensorDesc = input_field()
    c_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()
    trans_a: MatrixTransform | MatrixTransformName = enumeration(MatrixTransform)
    trans_b: MatrixTransform | MatrixTransformName = enumeration(MatrixTransform)
    alpha: float = floating()
    beta: float = floating()
    fused_activation: Fusable | ElementWiseClip | ActivationSoftmax | ActivationSoftmax1 | None = (
        nested(*FUSABLE, ElementWiseClip, ActivationSoftmax, ActivationSoftmax1)
    )

    NAME = "GEMM"
    TOLERANCE = products(8)
    MULTIPLIES = True
    WORKING_BYTES = 24
    IN_PIECES = True
    ALSO_KNOWN_AS = "onnx.Gemm onnx.MatMul numpy.matmul torch.matmul jax.numpy.matmul"
    EXAMPLES = ({
        "a_tensor": [[1, 2], [3, 4]], "b_tensor": [[1, 0], [0, 2]], "c_tensor": [[1, 1], [1, 1]],
        "trans_a": "NONE", "trans_b": "TRANSPOSE", "alpha": 1.0, "beta": 10.0,
    },)  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        a, b, c = inputs
        operands = ("ATensor", a), ("BTensor", b), ("CTensor", c)
        rank = rank_of(a)
        b = of_rank(b, rank)
        rows, inner = _matrix_axes(rank, attributes["trans_a"])
        inner_b, columns = _matrix_axes(rank, attributes["trans_b"])
        shape = known(lambda: (*a.shape[:-2], a.shape[rows], b.shape[columns]))
        reasons = (
            _because(f"ATensor.Sizes[{rows}]", "TransA", attributes["trans_a"]),
            _because(f"BTensor.Sizes[{columns}]", "TransB", attributes["trans_b"]),
        )
        return Inferred.of(
            (ArraySpec(shape, a.dtype),),
            same_types(*operands),
            same_ranks(*operands),
            _same_batches_and_inner(a, b, inner, inner_b),
            _sizes_of_output(c, shape, reasons),
            reasons=reasons,
        )

    def _shape_rules(self, level: FeatureLevel) -> Rules:
        # Of two wrong tensors of equal sizes, C and the output, the output is reported.
        c, output = self.named("c_tensor")[1], self.named("output_tensor")[1]
        are_equal = known(lambda: c and output and c.shape == output.shape)
        for item in find_violations(super()._shape_rules(level)):
            if not (are_equal is True and item.path.startswith("CTensor.Sizes")):
                yield item

    @staticmethod
    def compute(
        e: Engine,
        a: Array,
        b: Array,
        c: Array | None,
        *,
        trans_a: MatrixTransform,
        trans_b: MatrixTransform,
        alpha: float,
        beta: float,
    ) -> Array:
        result = e.dot(_transform(e, a, trans_a), _transform(e, b, trans_b))
        number = result.dtype.type
        if alpha != 1:
            result = number(alpha) * result
        return result if c is None else result + number(beta) * c


def _matrix_axes(rank: Any, transform: MatrixTransform) -> tuple[Any, Any]:
    """The axes of the rows and the columns of a matrix."""
    if transform is UNKNOWN:
        return UNKNOWN, UNKNOWN
    transposed = transform is MatrixTransform.TRANSPOSE
    return (rank - 1, rank - 2) if transposed else (rank - 2, rank - 1)


def _transform(e: Engine, x: Array, transform: MatrixTransform) -> Array:
    return e.xp.swapaxes(x, -2, -1) if transform is MatrixTransform.TRANSPOSE else x


def _because(path: str, field: str, transform: MatrixTransform) -> str:
    is_transposed = transform is MatrixTransform.TRANSPOSE
    return f"{path}, because {field} is TRANSPOSE" if is_transposed else path


def _sizes_of_output(c: ArraySpec | None, shape: Sequence[int], reasons: Sequence[str]) -> Rules:
    batches = (f"OutputTensor.Sizes[{i}]" for i in range(len(shape) - 2))
    own = () if c is None else of_rank(c, len(shape)).shape
    sizes = zip(own, shape, (*batches, *reasons), strict=False)
    for i, (size, expected, why) in enumerate(sizes):
        yield equal(f"CTensor.Sizes[{i}]", size, expected, why)


def _same_batches_and_inner(a: ArraySpec, b: ArraySpec, inner: int, inner_b: int) -> Rules:
    for own, other in [*((axis, axis) for axis in range(len(a.shape) - 2)), (inner, inner_b)]:
        yield _equal_sizes(a, own, b, other)


def _equal_sizes(a: ArraySpec, own: int, b: ArraySpec, other: int) -> Rules:
    size, expected = b.shape[other], a.shape[own]
    yield equal(f"BTensor.Sizes[{other}]", size, expected, f"ATensor.Sizes[{own}]")
