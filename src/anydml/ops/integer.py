"""Integer arithmetic: matrix products and sums of quantized tensors.

An integer represents the number ``(integer - zero point) * scale``; an omitted zero point is 0.
Scales and zero points have one element, or one for each row, column or channel. Sums of integers
are exact. A scaled result is computed in FLOAT64. An integer result is rounded once, with ties to
even, and clamped to the range of its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import input_field, output_field
from anydml.ops._quantized import (
    PARAMETERS,
    Specs,
    align_to_axis,
    centred,
    named_specs,
    parameters,
    quantized,
    type_of_output,
    wrapped,
)
from anydml.ops._rules import equal, of_rank, rank_of, same_ranks, same_sizes, same_types

FAMILY = Family.QUANTIZED


def _product(specs: Specs) -> tuple[Any, list[Rules]]:
    """The sizes of a matrix product, and the rules for its operands."""
    a, b = specs["ATensor"], specs["BTensor"]
    assert a is not None
    assert b is not None
    rank = rank_of(a)
    rows, columns = known(lambda: a.shape[-2]), known(lambda: of_rank(b, rank).shape[-1])
    return known(lambda: (*a.shape[:-1], columns)), [
        same_ranks(("ATensor", a), ("BTensor", b)),
        _same_batches_and_inner(a, of_rank(b, rank)),
        parameters(specs, "A", rank, -2, rows),
        parameters(specs, "B", rank, -1, columns),
        parameters(specs, "Output", rank, -2, rows),
    ]


def _same_ranks_of_parameters(specs: Specs, *tensors: str) -> Rules:
    names = [f"{tensor}{name}" for tensor in tensors for name in PARAMETERS]
    return same_ranks(*((name, specs[name]) for name in names))


def _same_batches_and_inner(a: ArraySpec, b: ArraySpec) -> Rules:
    batches, inner = len(a.shape) - 2, len(a.shape) - 1
    for own, other in [*((i, i) for i in range(batches)), (inner, inner - 1)]:
        size, expected = b.shape[other], a.shape[own]
        yield equal(f"BTensor.Sizes[{other}]", size, expected, f"ATensor.Sizes[{own}]")


_MATRICES: Final[dict[str, Any]] = {
    "a_tensor": [[3, 5], [7, 11]], "a_zero_point_tensor": [[3], [5]],
    "b_tensor": [[1, 2], [3, 4]], "b_zero_point_tensor": [[1]],
}  # fmt: skip
_SCALES: Final = {"a_scale_tensor": [[0.5]], "b_scale_tensor": [[2.0, 4.0]]}
_OUTPUT: Final = {"output_scale_tensor": [[2.0]], "output_zero_point_tensor": [[10]]}


class MatrixMultiplyInteger(Computed):
    """``(A - zero point) @ (B - zero point)`` for each batch and channel; sums wrap around.

    Parameters
    ----------
    a_tensor : TensorDesc
        ``{.., M, K}``.
    a_zero_point_tensor : TensorDesc, optional
        One element, or one element for each of the M rows.
    b_tensor : TensorDesc
        ``{.., K, N}``.
    b_zero_point_tensor : TensorDesc, optional
        One element, or one element for each of the N columns.
    output_tensor : TensorDesc
        ``{.., M, N}``.
    """

    a_tensor: TensorDesc = input_field()
    a_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    b_tensor: TensorDesc = input_field()
    b_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()

    NAME = "MATRIX_MULTIPLY_INTEGER"
    WORKING_BYTES = 32
    IN_PIECES = True
    EXAMPLES = (_MATRICES,)
    ALSO_KNOWN_AS = "onnx.MatMulInteger"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        shape, rules = _product(named_specs(cls, inputs))
        return Inferred.of((ArraySpec(shape, np.dtype(np.int32)),), *rules)

    @staticmethod
    def compute(e: Engine, a: Array, a_zero: Array | None, b: Array, b_zero: Array | None) -> Array:
        return wrapped(e, e.dot(centred(a, a_zero, -2), centred(b, b_zero)))


class Scaled(Computed):
    """The operands of operators with scales; the sizes are those of a matrix product.

    Parameters
    ----------
    a_tensor : TensorDesc
        ``{.., M, K}``.
    a_scale_tensor : TensorDesc
        One element, or one element for each of the M rows.
    a_zero_point_tensor : TensorDesc, optional
        One element, or one element for each of the M rows, with the type of A.
    b_tensor : TensorDesc
        ``{.., K, N}``.
    b_scale_tensor : TensorDesc
        One element, or one element for each of the N columns.
    b_zero_point_tensor : TensorDesc, optional
        One element, or one element for each of the N columns, with the type of B.
    """

    a_tensor: TensorDesc = input_field()
    a_scale_tensor: TensorDesc = input_field()
    a_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    b_tensor: TensorDesc = input_field()
    b_scale_tensor: TensorDesc = input_field()
    b_zero_point_tensor: TensorDesc | None = input_field(optional=True)

    WORKING_BYTES = 32
    IN_PIECES = True


class MatrixMultiplyIntegerToFloat(Scaled):
    """The matrix product of two quantized tensors, as floats.

    Parameters
    ----------
    bias_tensor : TensorDesc, optional
        The bias that is added to the product, with the sizes of the output.
    output_tensor : TensorDesc
        ``{.., M, N}``, with the type of the scales.
    """

    bias_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()

    NAME = "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"
    TOLERANCE = products(8)
    EXAMPLES = ({**_MATRICES, **_SCALES},)
    ALSO_KNOWN_AS = "com.microsoft.MatMulIntegerToFloat"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        specs = named_specs(cls, inputs)
        shape, rules = _product(specs)
        a, b, scale, other_scale, bias = (
            (name, specs[name])
            for name in ("ATensor", "BTensor", "AScaleTensor", "BScaleTensor", "BiasTensor")
        )
        output = "OutputTensor", ArraySpec(shape, None)
        return Inferred.of(
            (ArraySpec(shape, scale[1].dtype),),
            *rules,
            _same_ranks_of_parameters(specs, "A", "B"),
            same_types(a, b),
            same_types(scale, other_scale, bias),
            same_ranks(output, bias),
            same_sizes(output, bias),
        )

    @staticmethod
    def compute(
        e: Engine, a: Array, a_scale: Array, a_zero: Array | None, b: Array, b_scale: Array,
        b_zero: Array | None, bias: Array | None,
    ) -> Array:  # fmt: skip
        total = e.dot(centred(a, a_zero, -2), centred(b, b_zero))
        y = total * align_to_axis(a_scale, -2) * align_to_axis(b_scale, -1)
        return y if bias is None else y + bias


class QuantizedLinearMatrixMultiply(Scaled):
    """The quantized matrix product of two quantized tensors.

    Parameters
    ----------
    output_scale_tensor : TensorDesc
        One element, or one element for each of the M rows.
    output_zero_point_tensor : TensorDesc, optional
        One element, or one element for each of the M rows, with the type of the output.
    output_tensor : TensorDesc
        ``{.., M, N}``.
    """

    output_scale_tensor: TensorDesc = input_field()
    output_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()

    NAME = "QUANTIZED_LINEAR_MATRIX_MULTIPLY"
    EXAMPLES = ({**_MATRICES, **_SCALES, **_OUTPUT},)
    ALSO_KNOWN_AS = "onnx.QLinearMatMul"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        specs = named_specs(cls, inputs)
        shape, rules = _product(specs)
        same = _same_ranks_of_parameters(specs, "A", "B", "Output")
        return Inferred.of((ArraySpec(shape, type_of_output(specs)),), *rules, same)

    @staticmethod
    def compute(
        e: Engine, a: Array, a_scale: Array, a_zero: Array | None, b: Array, b_scale: Array,
        b_zero: Array | None, scale: Array, zero: Array | None,
    ) -> Array:  # fmt: skip
        total = e.dot(centred(a, a_zero, -2), centred(b, b_zero))
        real = total * align_to_axis(a_scale, -2) * align_to_axis(b_scale, -1)
        return quantized(e, real, align_to_axis(scale, -2), zero, -2)


class ElementWiseQuantizedLinearAdd(Scaled):
    """The quantized sum of two quantized tensors.

    Parameters
    ----------
    a_tensor : TensorDesc
        The first operand.
    a_scale_tensor : TensorDesc
        One element.
    a_zero_point_tensor : TensorDesc, optional
        One element with the type of A.
    b_tensor : TensorDesc
        The second operand, with the sizes of A.
    b_scale_tensor : TensorDesc
        One element.
    b_zero_point_tensor : TensorDesc, optional
        One element with the type of B.
    output_scale_tensor : TensorDesc
        One element.
    output_zero_point_tensor : TensorDesc, optional
        One element with the type of the output.
    output_tensor : TensorDesc
        The sum, with the sizes of A.
    """

    output_scale_tensor: TensorDesc = input_field()
    output_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()

    NAME = "ELEMENT_WISE_QUANTIZED_LINEAR_ADD"
    IN_PIECES = False
    EXAMPLES = ({
        "a_tensor": [1, 2, 3], "a_scale_tensor": [0.5], "b_tensor": [10, 20, 30],
        "b_scale_tensor": [2.0], "output_scale_tensor": [1.0], "output_zero_point_tensor": [100],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "com.microsoft.QLinearAdd torch.ops.quantized.add"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        specs = named_specs(cls, inputs)
        first, *others = specs.items()
        rank = rank_of(first[1])
        return Inferred.of(
            (ArraySpec(first[1].shape, type_of_output(specs)),),
            same_ranks(first, *others),
            same_sizes(first, ("BTensor", specs["BTensor"])),
            *(parameters(specs, tensor, rank, None, 1) for tensor in ("A", "B", "Output")),
        )

    @staticmethod
    def compute(
        e: Engine, a: Array, a_scale: Array, a_zero: Array | None, b: Array, b_scale: Array,
        b_zero: Array | None, scale: Array, zero: Array | None,
    ) -> Array:  # fmt: skip
        real = centred(a, a_zero) * align_to_axis(a_scale, -1)
        real = real + centred(b, b_zero) * align_to_axis(b_scale, -1)
        return quantized(e, real, align_to_axis(scale, -1), zero)
