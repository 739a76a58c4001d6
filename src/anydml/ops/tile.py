"""TILE: repeat the input along each dimension.

::

    output[i, j, ..] = input[i % (input's size 0), j % (input's size 1), ..]

Worked example, repeats {1, 2}::

    input  [[1, 2, 3], [4, 5, 6]]
    output [[1, 2, 3, 1, 2, 3], [4, 5, 6, 4, 5, 6]]

Page: ``DML_TILE_OPERATOR_DESC``. The page's example calls the output InputTensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import count_of, input_field, output_field, uints
from anydml.ops._rules import each_at_least, has_length, rank_of, usable

FAMILY = Family.MOVE


class Tile(Descriptor):
    """``DML_TILE_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to repeat.
    output_tensor : TensorDesc
        The result, with the type and DimensionCount of the input. Each size is the size of the
        input times the repeats.
    repeats_count : int, optional
        The number of repeats; by default the length of `repeats`.
    repeats : sequence of int
        The number of copies along each dimension, at least 1.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Tile(input_tensor=dml.TensorDesc("FLOAT32", (2, 3)),
    ...                 output_tensor=dml.TensorDesc("FLOAT32", (2, 6)), repeats=(1, 2))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    repeats_count: int = count_of("repeats")
    repeats: Sequence[int] = uints()

    NAME = "TILE"
    KERNEL = "tile"
    ALSO_KNOWN_AS = "anydml.tile onnx.Tile numpy.tile torch.tile jax.numpy.tile"
    EXAMPLES = (
        {
            "input_tensor": [[[[1.0, 2, 3], [4, 5, 6]]]],
            "output_tensor": [
                [
                    [
                        [1.0, 2, 3, 1, 2, 3, 1, 2, 3],
                        [4, 5, 6, 4, 5, 6, 4, 5, 6],
                        [1, 2, 3, 1, 2, 3, 1, 2, 3],
                        [4, 5, 6, 4, 5, 6, 4, 5, 6],
                        [1, 2, 3, 1, 2, 3, 1, 2, 3],
                        [4, 5, 6, 4, 5, 6, 4, 5, 6],
                    ]
                ]
            ],
            "repeats": (1, 1, 3, 3),
        },
    )

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, repeats = inputs[0], attributes["repeats"]
        rank = rank_of(data)
        pairs = known(lambda: [*zip(data.shape, usable(repeats, rank), strict=True)])
        shape = known(lambda: tuple(size * repeat for size, repeat in pairs))
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            has_length("Repeats", repeats, rank, "InputTensor.DimensionCount"),
            each_at_least("Repeats", repeats, 0),
        )

    def check(self) -> Rules:
        yield each_at_least("Repeats", self.repeats, 1)

    @staticmethod
    def compute(e: Engine, x: Array, *, repeats: Sequence[int]) -> Array:
        return e.xp.tile(x, repeats)
