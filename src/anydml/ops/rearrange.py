"""Depth and space: move channels to blocks of pixels, and blocks of pixels to channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from anydml.core._literals import DepthSpaceOrderName
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import enumeration, input_field, output_field, uint
from anydml.ops._rules import at_least, of_rank

FAMILY = Family.MOVE


class DepthSpaceOrder(NamedEnum):
    """``DML_DEPTH_SPACE_ORDER``: the order of the parts of a channel index, slowest first."""

    DEPTH_COLUMN_ROW = 0
    COLUMN_ROW_DEPTH = 1


_FIRST: Final = DepthSpaceOrder.DEPTH_COLUMN_ROW
"""The order of the operators that have no choice."""


def _to_space(e: Engine, x: Array, *, block_size: int, order: DepthSpaceOrder = _FIRST) -> Array:
    batches, channels, height, width = x.shape
    depth = channels // (block_size * block_size)
    block = (block_size, block_size)
    if order is DepthSpaceOrder.DEPTH_COLUMN_ROW:
        parts, moved = (*block, depth), (0, 3, 4, 1, 5, 2)
    else:
        parts, moved = (depth, *block), (0, 1, 4, 2, 5, 3)
    pixels = e.xp.transpose(x.reshape(batches, *parts, height, width), moved)
    return pixels.reshape(batches, depth, height * block_size, width * block_size)


def _to_depth(e: Engine, x: Array, *, block_size: int, order: DepthSpaceOrder = _FIRST) -> Array:
    batches, depth, height, width = x.shape
    rows, columns = height // block_size, width // block_size
    parts = x.reshape(batches, depth, rows, block_size, columns, block_size)
    first = order is DepthSpaceOrder.DEPTH_COLUMN_ROW
    moved = e.xp.transpose(parts, (0, 3, 5, 1, 2, 4) if first else (0, 1, 3, 5, 2, 4))
    return moved.reshape(batches, depth * block_size * block_size, rows, columns)


class Rearranged(Computed):
    """Base of the operators that move elements between channels and positions.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, height, width}``.
    output_tensor : TensorDesc
        The result, with the type of the input.
    block_size : int
        The height and the width of a block.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    block_size: int = uint()

    WORKING_BYTES = 16


def _divides(block: Any, data: ArraySpec, divisors: Mapping[int, Any]) -> Rules:
    """Check that the block size is at least 1 and divides the sizes."""
    yield at_least("BlockSize", block, 1)
    for axis, divisor in divisors.items() if block > 0 else ():
        yield _is_multiple(f"InputTensor.Sizes[{axis}]", of_rank(data, 4).shape[axis], divisor)


def _is_multiple(path: str, size: int, divisor: int) -> Rules:
    if size % divisor:
        yield Violation(path, f"{divisor} or a multiple (BlockSize)", size)


def _quotient(size: int, divisor: int) -> Any:
    return known(lambda: size // divisor if divisor > 0 and size % divisor == 0 else UNKNOWN)


class ToSpace(Rearranged):
    """Base of the operators that move channels to blocks."""

    EXAMPLES = ({"input_tensor": [[[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]], "block_size": 2},)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        block = attributes["block_size"]

        def shape() -> tuple[Any, ...]:
            batches, channels, height, width = of_rank(data, 4).shape
            return batches, _quotient(channels, block * block), height * block, width * block

        return Inferred.of(
            (ArraySpec(known(shape), data.dtype),), _divides(block, data, {1: block * block})
        )


class ToDepth(Rearranged):
    """Base of the operators that move blocks to channels."""

    EXAMPLES = ({"input_tensor": [[[[0, 2, 1, 3], [4, 6, 5, 7]]]], "block_size": 2},)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        block = attributes["block_size"]

        def shape() -> tuple[Any, ...]:
            batches, channels, height, width = of_rank(data, 4).shape
            down, across = _quotient(height, block), _quotient(width, block)
            return batches, channels * block * block, down, across

        return Inferred.of(
            (ArraySpec(known(shape), data.dtype),), _divides(block, data, {2: block, 3: block})
        )


class DepthToSpace(ToSpace):
    """Moves the channels of each pixel to a block: row, column, then output channel."""

    NAME = "DEPTH_TO_SPACE"

    compute = staticmethod(_to_space)


class DepthToSpace1(ToSpace):
    """Moves the channels of each pixel to a block of pixels.

    Parameters
    ----------
    order : DepthSpaceOrder or str
        The order of the parts of the input channels. DEPTH_COLUMN_ROW: the row in the block, the
        column, then the output channel. COLUMN_ROW_DEPTH: the output channel, the row, then the
        column.
    """

    order: DepthSpaceOrder | DepthSpaceOrderName = enumeration(DepthSpaceOrder)

    NAME = "DEPTH_TO_SPACE1"
    EXAMPLES = ({**ToSpace.EXAMPLES[0], "order": "COLUMN_ROW_DEPTH"},)
    ALSO_KNOWN_AS = "onnx.DepthToSpace torch.pixel_shuffle torch.nn.functional.pixel_shuffle"

    compute = staticmethod(_to_space)


class SpaceToDepth(ToDepth):
    """Moves each block of pixels to channels: row, column, then input channel."""

    NAME = "SPACE_TO_DEPTH"

    compute = staticmethod(_to_depth)


class SpaceToDepth1(ToDepth):
    """Moves each block of pixels to channels.

    Parameters
    ----------
    order : DepthSpaceOrder or str
        The order of the parts of the output channels. DEPTH_COLUMN_ROW: the row in the block, the
        column, then the input channel. COLUMN_ROW_DEPTH: the input channel, the row, then the
        column.
    """

    order: DepthSpaceOrder | DepthSpaceOrderName = enumeration(DepthSpaceOrder)

    NAME = "SPACE_TO_DEPTH1"
    EXAMPLES = ({**ToDepth.EXAMPLES[0], "order": "COLUMN_ROW_DEPTH"},)
    ALSO_KNOWN_AS = "onnx.SpaceToDepth torch.pixel_unshuffle torch.nn.functional.pixel_unshuffle"

    compute = staticmethod(_to_depth)
