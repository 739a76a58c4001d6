"""Comparison, logic and bits: compute each output element from the inputs at the same position.

Inputs and output have the same sizes. Strides of 0 broadcast an input. True is 1 and false is 0, in
the data type of the output. An input element is true if it is not 0.
"""

from __future__ import annotations

from typing import ClassVar

from anydml.core._literals import IsInfinityModeName
from anydml.core.enums import NamedEnum
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._computed import Map
from anydml.ops._family import Family
from anydml.ops._fields import enumeration, input_field, output_field
from anydml.ops._maps import Binary, Function

FAMILY = Family.ELEMENTWISE


class ElementWiseLogicalAnd(Binary):
    """Whether both ``A`` and ``B`` are true."""

    NAME = "ELEMENT_WISE_LOGICAL_AND"
    INPUTS = ([0, 0, 1, 2], [0, 1, 0, 1])
    ALSO_KNOWN_AS = "onnx.And numpy.logical_and torch.logical_and jax.numpy.logical_and"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return (a != 0) & (b != 0)


class ElementWiseLogicalOr(Binary):
    """Whether ``A``, ``B`` or both are true."""

    NAME = "ELEMENT_WISE_LOGICAL_OR"
    INPUTS = ([0, 0, 1, 2], [0, 1, 0, 1])
    ALSO_KNOWN_AS = "onnx.Or numpy.logical_or torch.logical_or jax.numpy.logical_or"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return (a != 0) | (b != 0)


class ElementWiseLogicalXor(Binary):
    """Whether one of ``A`` and ``B`` is true and the other is not."""

    NAME = "ELEMENT_WISE_LOGICAL_XOR"
    INPUTS = ([0, 0, 1, 2], [0, 1, 0, 1])
    ALSO_KNOWN_AS = "onnx.Xor numpy.logical_xor torch.logical_xor jax.numpy.logical_xor"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return (a != 0) ^ (b != 0)


class ElementWiseLogicalNot(Function):
    """Whether ``x`` is false."""

    NAME = "ELEMENT_WISE_LOGICAL_NOT"
    INPUTS = ([0, 1, 2],)
    ALSO_KNOWN_AS = "onnx.Not numpy.logical_not torch.logical_not jax.numpy.logical_not"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return x == 0


class Comparison(Binary):
    """Base of the comparisons, which follow IEEE 754 for NaN."""

    SAME_TYPES = ("ATensor", "BTensor")


class ElementWiseLogicalEquals(Comparison):
    """``A == B``."""

    NAME = "ELEMENT_WISE_LOGICAL_EQUALS"
    FUNCTION = "equal"
    ALSO_KNOWN_AS = "onnx.Equal numpy.equal torch.eq jax.numpy.equal jax.lax.eq"


class ElementWiseLogicalGreaterThan(Comparison):
    """``A > B``."""

    NAME = "ELEMENT_WISE_LOGICAL_GREATER_THAN"
    FUNCTION = "greater"
    ALSO_KNOWN_AS = "onnx.Greater numpy.greater torch.gt jax.numpy.greater jax.lax.gt"


class ElementWiseLogicalGreaterThanOrEqual(Comparison):
    """``A >= B``."""

    NAME = "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"
    FUNCTION = "greater_equal"
    ALSO_KNOWN_AS = (
        "onnx.GreaterOrEqual numpy.greater_equal torch.ge jax.numpy.greater_equal jax.lax.ge"
    )


class ElementWiseLogicalLessThan(Comparison):
    """``A < B``."""

    NAME = "ELEMENT_WISE_LOGICAL_LESS_THAN"
    FUNCTION = "less"
    ALSO_KNOWN_AS = "onnx.Less numpy.less torch.lt jax.numpy.less jax.lax.lt"


class ElementWiseLogicalLessThanOrEqual(Comparison):
    """``A <= B``."""

    NAME = "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"
    FUNCTION = "less_equal"
    ALSO_KNOWN_AS = "onnx.LessOrEqual numpy.less_equal torch.le jax.numpy.less_equal jax.lax.le"


class ElementWiseIsNan(Function):
    """Whether ``x`` is a NaN."""

    NAME = "ELEMENT_WISE_IS_NAN"
    FUNCTION = "isnan"
    INPUTS = ([float("nan"), 0.0, float("inf")],)
    SAME_TYPES = ()
    ALSO_KNOWN_AS = "onnx.IsNaN numpy.isnan torch.isnan jax.numpy.isnan"


class IsInfinityMode(NamedEnum):
    """``DML_IS_INFINITY_MODE``: the infinities to detect."""

    EITHER = 0
    POSITIVE = 1
    NEGATIVE = 2


class ElementWiseIsInfinity(Function):
    """Whether ``x`` is an infinity with a sign that the mode selects.

    Parameters
    ----------
    infinity_mode : IsInfinityMode
        The infinities to detect: EITHER, POSITIVE or NEGATIVE.
    """

    infinity_mode: IsInfinityMode | IsInfinityModeName = enumeration(IsInfinityMode)

    NAME = "ELEMENT_WISE_IS_INFINITY"
    SAME_TYPES = ()
    INPUTS = ([float("-inf"), -1.0, 0.0, 1.0, float("inf")],)
    EXAMPLES = ({"infinity_mode": "POSITIVE"},)
    ALSO_KNOWN_AS = "onnx.IsInf numpy.isinf torch.isinf jax.numpy.isinf"

    @staticmethod
    def compute(e: Engine, x: Array, *, infinity_mode: IsInfinityMode) -> Array:
        if infinity_mode == IsInfinityMode.EITHER:
            return e.xp.isinf(x)
        sign = 1 if infinity_mode == IsInfinityMode.POSITIVE else -1
        return x == x.dtype.type(sign * float("inf"))


class ElementWiseIf(Map):
    """``A`` where the condition is true, else ``B``.

    Parameters
    ----------
    condition_tensor : TensorDesc
        The condition, which is true where it is not 0.
    a_tensor : TensorDesc
        The values where the condition is true, with the sizes of the condition.
    b_tensor : TensorDesc
        The values where the condition is false, with the type and sizes of A.
    output_tensor : TensorDesc
        The result, with the type and sizes of A.
    """

    condition_tensor: TensorDesc = input_field()
    a_tensor: TensorDesc = input_field()
    b_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()

    NAME = "ELEMENT_WISE_IF"
    SAME_TYPES = ("ATensor", "BTensor", "OutputTensor")
    WIDENS = False
    EXAMPLES = ({
        "condition_tensor": [[1, 0], [1, 1]], "a_tensor": [[1.0, 2.0], [3.0, 4.0]],
        "b_tensor": [[9.0, 8.0], [7.0, 6.0]],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.Where numpy.where torch.where jax.numpy.where jax.lax.select"

    @staticmethod
    def compute(e: Engine, condition: Array, a: Array, b: Array) -> Array:
        return e.xp.where(condition != 0, a, b)


class ElementWiseBitAnd(Binary):
    """The bits that are 1 in both ``A`` and ``B``."""

    NAME = "ELEMENT_WISE_BIT_AND"
    INPUTS = ([12, 5, 255], [10, 3, 15])
    WIDENS = False
    ALSO_KNOWN_AS = "onnx.BitwiseAnd numpy.bitwise_and torch.bitwise_and jax.numpy.bitwise_and"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return e.from_bits(e.bits(a) & e.bits(b), a.dtype)


class ElementWiseBitOr(Binary):
    """The bits that are 1 in ``A``, ``B`` or both."""

    NAME = "ELEMENT_WISE_BIT_OR"
    INPUTS = ([12, 5, 255], [10, 3, 15])
    WIDENS = False
    ALSO_KNOWN_AS = "onnx.BitwiseOr numpy.bitwise_or torch.bitwise_or jax.numpy.bitwise_or"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return e.from_bits(e.bits(a) | e.bits(b), a.dtype)


class ElementWiseBitXor(Binary):
    """The bits that differ between ``A`` and ``B``."""

    NAME = "ELEMENT_WISE_BIT_XOR"
    INPUTS = ([12, 5, 255], [10, 3, 15])
    WIDENS = False
    ALSO_KNOWN_AS = "onnx.BitwiseXor numpy.bitwise_xor torch.bitwise_xor jax.numpy.bitwise_xor"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return e.from_bits(e.bits(a) ^ e.bits(b), a.dtype)


class ElementWiseBitNot(Function):
    """The inverted bits of ``x``."""

    NAME = "ELEMENT_WISE_BIT_NOT"
    INPUTS = ([0, 1, 170],)
    WIDENS = False
    ALSO_KNOWN_AS = "onnx.BitwiseNot numpy.invert torch.bitwise_not jax.numpy.invert"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return e.from_bits(~e.bits(x), x.dtype)


class ElementWiseBitCount(Function):
    """The number of bits of ``x`` that are 1."""

    NAME = "ELEMENT_WISE_BIT_COUNT"
    WORKING_BYTES = 40
    WIDENS = False
    SAME_TYPES = ()
    EXAMPLES = ({"input_tensor": [[0, 123], [456, 789]]},)
    ALSO_KNOWN_AS = "numpy.bitwise_count jax.numpy.bitwise_count jax.lax.population_count"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return e.popcount(e.bits(x))


class Shift(Binary):
    """Base of the shifts. A shift by at least the number of bits of the type gives 0."""

    SHIFTS_LEFT: ClassVar[bool]

    @classmethod
    def compute(cls, e: Engine, a: Array, b: Array) -> Array:
        most = a.dtype.type(8 * a.dtype.itemsize - 1)
        inside = e.xp.minimum(b, most)
        shifted = a << inside if cls.SHIFTS_LEFT else a >> inside
        return e.xp.where(b <= most, shifted, a.dtype.type(0))


class ElementWiseBitShiftLeft(Shift):
    """``A << B``; 0 where B is at least the number of bits of the type."""

    NAME = "ELEMENT_WISE_BIT_SHIFT_LEFT"
    SHIFTS_LEFT = True
    INPUTS = ([1, 2, 3, 255], [0, 1, 2, 4])
    ALSO_KNOWN_AS = "numpy.left_shift torch.bitwise_left_shift jax.numpy.left_shift"


class ElementWiseBitShiftRight(Shift):
    """``A >> B``, filled with zeros; 0 where B is at least the number of bits of the type."""

    NAME = "ELEMENT_WISE_BIT_SHIFT_RIGHT"
    SHIFTS_LEFT = False
    INPUTS = ([16, 24, 255, 1], [0, 1, 2, 4])
    ALSO_KNOWN_AS = (
        "onnx.BitShift numpy.right_shift torch.bitwise_right_shift jax.numpy.right_shift"
    )
