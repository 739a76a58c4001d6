"""Quantization in blocks: one scale and one zero point for each block of elements.

A scale tensor has the DimensionCount of the input, and each of its sizes divides that of the input.
For example, input sizes {2, 8} and scale sizes {2, 2} form blocks of four elements of a row.
Four-bit tensors are bound as bytes, with the first of two elements in the low four bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from anydml.core._literals import QuantizationTypeName
from anydml.core.dtypes import data_types
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import count_of, enumeration, input_field, input_list, output_field
from anydml.ops._rules import equal, of_rank, rank_of, same_ranks

FAMILY = Family.QUANTIZED


class QuantizationType(NamedEnum):
    """``DML_QUANTIZATION_TYPE``: the tensors that define the quantization."""

    NONE = 0
    SCALE = 1
    SCALE_ZERO_POINT = 2


_TENSORS: Final = {
    QuantizationType.SCALE: (1, "1 tensor (SCALE: a scale)"),
    QuantizationType.SCALE_ZERO_POINT: (2, "2 tensors (SCALE_ZERO_POINT: a scale, a zero point)"),
}
_FLOATS: Final = data_types("FLOAT32 FLOAT16")

Layout = tuple[str, tuple[int, ...], tuple[int, ...] | None]
"""A four-bit tensor's type, sizes and strides."""


class BlockQuantization(Computed):
    """Base of quantization in blocks and its inverse.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to convert.
    quantization_type : QuantizationType or str
        SCALE, or SCALE_ZERO_POINT; NONE is not accepted.
    quantization_tensor_count : int
        The length of `quantization_tensors`.
    quantization_tensors : sequence of TensorDesc
        The scale, with the type of the float tensor, and for SCALE_ZERO_POINT the zero point, with
        the type of the integer tensor. Each size divides that of the input.
    output_tensor : TensorDesc
        The converted elements, with the sizes of the input.
    """

    input_tensor: TensorDesc = input_field()
    quantization_type: QuantizationType | QuantizationTypeName = enumeration(QuantizationType)
    quantization_tensor_count: int = count_of("quantization_tensors")
    quantization_tensors: Sequence[TensorDesc] = input_list()
    output_tensor: TensorDesc = output_field()

    WORKING_BYTES = 24

    def attributes(self) -> Attributes:
        layouts = known(lambda: tuple(_layout(tensor) for _, tensor, _ in self.tensors()))
        return {**super().attributes(), "four_bits": layouts}

    def check(self) -> Rules:
        kind: Any = self.quantization_type
        yield _four_bits_are_packed(self.output_tensor)
        if kind == QuantizationType.NONE:
            yield Violation("QuantizationType", "SCALE or SCALE_ZERO_POINT", kind)
            return
        count, rule = _TENSORS[kind]
        if len(self.quantization_tensors) != count:
            yield Violation("QuantizationTensors", rule, len(self.quantization_tensors))
            return
        yield self._types(*self.quantization_tensors)

    def _types(self, scale: TensorDesc, zero: TensorDesc | None = None) -> Rules:
        raise NotImplementedError

    @classmethod
    def infer(cls, inputs: Sequence[Any], attributes: Attributes) -> Inferred:
        data, parameters = inputs
        dtype = known(lambda: cls._made_type(*parameters) if len(parameters) in (1, 2) else UNKNOWN)
        output = ArraySpec(data.shape, dtype)
        return Inferred.of((output,), _block_counts(data, parameters))

    @staticmethod
    def _made_type(scale: ArraySpec, zero_point: ArraySpec | None = None) -> Any:
        raise NotImplementedError


def _four_bits_are_packed(output: TensorDesc) -> Rules:
    if output.data_type.bits < 8:
        packed = TensorDesc(output.data_type, output.sizes).element_strides
        rule = f"{packed}, or none (four-bit outputs are packed)"
        if output.element_strides != packed:
            yield Violation("OutputTensor.Strides", rule, output.strides)


def _block_counts(data: ArraySpec, parameters: Sequence[ArraySpec]) -> Rules:
    """Check that the numbers of blocks divide the sizes."""
    for i, spec in enumerate(parameters):
        path = f"QuantizationTensors[{i}]"
        yield same_ranks(("InputTensor", data), (path, spec))
        yield _divisors(path, data.shape, of_rank(spec, rank_of(data)).shape)


def _divisors(path: str, sizes: Sequence[int], counts: Sequence[int]) -> Rules:
    for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        yield _divides(f"{path}.Sizes[{axis}]", count, size, f"InputTensor.Sizes[{axis}]")


def _divides(path: str, count: int, size: int, why: str) -> Rules:
    if not count or size % count:
        yield Violation(path, f"a divisor of {size} ({why})", count)


class Quantize(BlockQuantization):
    """``clamp(round(x / scale) + zero_point)``: ties to even, clamped to the range of the output.

    The quotient and the sum are computed in FLOAT32. NaN becomes 0.
    """

    NAME = "QUANTIZE"
    WIDENS = False
    EXAMPLES = ({
        "input_tensor": [[0.0, 1.0, 2.5, 3.5], [10.0, -10.0, 600.0, -600.0]],
        "quantization_type": "SCALE_ZERO_POINT",
        "quantization_tensors": [[[1.0, 0.5], [2.0, 4.0]], [[0, 0], [128, 128]]],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.QuantizeLinear"

    def _types(self, scale: TensorDesc, zero: TensorDesc | None = None) -> Rules:
        expected, why = self.input_tensor.data_type, "InputTensor.DataType"
        yield equal("QuantizationTensors[0].DataType", scale.data_type, expected, why)
        if zero is not None and zero.data_type in _FLOATS:
            rule = "INT8 or another integer type (a zero point)"
            yield Violation("QuantizationTensors[1].DataType", rule, zero.data_type)
        elif zero is not None:
            expected, why = zero.data_type, "QuantizationTensors[1].DataType"
            yield equal("OutputTensor.DataType", self.output_tensor.data_type, expected, why)

    @staticmethod
    def _made_type(scale: ArraySpec, zero_point: ArraySpec | None = None) -> Any:
        return None if zero_point is None else zero_point.dtype

    @staticmethod
    def compute(
        e: Engine, x: Array, scale: Array, zero_point: Array | None = None, *,
        quantization_type: QuantizationType, four_bits: Sequence[Layout | None],
    ) -> Array:  # fmt: skip
        xp, wide = e.xp, e.xp.float32
        y = xp.rint(x.astype(wide) / _spread(e, scale.astype(wide), x.shape))
        if zero_point is not None:
            zeros = _unpacked(e, zero_point, four_bits[2]).astype(wide)
            y = y + _spread(e, zeros, x.shape)
        layout = four_bits[-1]
        return y if layout is None else _packed(e, y, layout[0])


class Dequantize(BlockQuantization):
    """``(x - zero_point) * scale``."""

    NAME = "DEQUANTIZE"
    EXAMPLES = ({
        "input_tensor": [[0, 64, 128, 255], [1, 2, 3, 4]], "quantization_type": "SCALE_ZERO_POINT",
        "quantization_tensors": [[[1.0, 0.5], [2.0, 4.0]], [[0, 128], [2, 2]]],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.DequantizeLinear"

    def _types(self, scale: TensorDesc, zero: TensorDesc | None = None) -> Rules:
        if zero is not None:
            expected, path = self.input_tensor.data_type, "QuantizationTensors[1].DataType"
            yield equal(path, zero.data_type, expected, "InputTensor.DataType")
        if scale.data_type not in _FLOATS:
            rule = "FLOAT32 or FLOAT16 (a scale)"
            yield Violation("QuantizationTensors[0].DataType", rule, scale.data_type)

    @staticmethod
    def _made_type(scale: ArraySpec, zero_point: ArraySpec | None = None) -> Any:
        return scale.dtype

    @staticmethod
    def compute(
        e: Engine, x: Array, scale: Array, zero_point: Array | None = None, *,
        quantization_type: QuantizationType, four_bits: Sequence[Layout | None],
    ) -> Array:  # fmt: skip
        y = _unpacked(e, x, four_bits[0]).astype(e.xp.int32)
        if zero_point is not None:
            zeros = _unpacked(e, zero_point, four_bits[2]).astype(e.xp.int32)
            y = y - _spread(e, zeros, y.shape)
        return y.astype(scale.dtype) * _spread(e, scale, y.shape)


def _spread(e: Engine, x: Array, sizes: Sequence[int]) -> Array:
    """Repeat the value of each block for its elements; sizes of 1 are left to broadcasting."""
    for axis, (size, count) in enumerate(zip(sizes, x.shape, strict=True)):
        if 1 < count < size:
            x = e.xp.repeat(x, size // count, axis=axis)
    return x


def _layout(tensor: TensorDesc) -> Layout | None:
    kind = tensor.data_type
    return (kind.name, tensor.sizes, tensor.strides) if kind.bits < 8 else None


def _unpacked(e: Engine, stored: Array, layout: Layout | None) -> Array:
    """The elements of a four-bit tensor as INT8; elements of other types unchanged."""
    if layout is None:
        return stored
    xp, (kind, sizes, strides) = e.xp, layout
    flat = xp.stack([stored & 15, stored >> 4], axis=-1).reshape(-1).astype(xp.int8)
    if kind == "INT4":
        flat = (flat ^ 8) - 8
    if strides is None:
        return flat[: prod(sizes)].reshape(sizes)
    rank = len(sizes)
    places = xp.zeros((1,) * rank, xp.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        steps = xp.arange(size) * stride
        places = places + steps.reshape([-1 if i == axis else 1 for i in range(rank)])
    return flat[places]


def _packed(e: Engine, x: Array, kind: str) -> Array:
    """Pack integers within the range of a four-bit type, two to a byte."""
    xp, (low, high) = e.xp, (-8, 7) if kind == "INT4" else (0, 15)
    flat = e.cast(xp.clip(x, low, high), "int8").astype(xp.uint8).reshape(-1) & 15
    if len(flat) % 2:
        flat = xp.concatenate([flat, xp.zeros(1, xp.uint8)])
    return flat[::2] | (flat[1::2] << 4)
