"""Shape inference by the operator modules: the authority on outputs, of numbers and of symbols."""

import numpy as np
import pytest

import anydml as dml
from anydml.core.program import ArraySpec, Dynamic

F4, I8 = np.dtype("f4"), np.dtype("i8")


class Symbol:
    """A size as tracers have them: compares and adds like its number, and nothing else."""

    __hash__ = None

    def __init__(self, value):
        self.value = value

    def _of(self, other):
        return other.value if isinstance(other, Symbol) else other

    def __add__(self, other):
        return Symbol(self.value + self._of(other))

    def __sub__(self, other):
        return Symbol(self.value - self._of(other))

    def __mul__(self, other):
        return Symbol(self.value * self._of(other))

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return self.value == self._of(other)

    def __lt__(self, other):
        return self.value < self._of(other)

    def __le__(self, other):
        return self.value <= self._of(other)

    def __gt__(self, other):
        return self.value > self._of(other)

    def __ge__(self, other):
        return self.value >= self._of(other)

    def __repr__(self):
        return f"s{self.value}"


def spec(*shape, dtype=F4):
    return ArraySpec(shape, dtype)


# Room, inputs, attributes, outputs: shape and type (None: the caller's choice).
GOOD = [
    (dml.TopK1, [spec(2, 5)], {"axis": 1, "k": 3}, [((2, 3), F4), ((2, 3), None)]),
    (dml.TopK, [spec(5)], {"axis": 0, "k": 0}, [((0,), F4), ((0,), None)]),
    (dml.Gather, [spec(2, 5, 3), spec(4, 6, dtype=I8)], {"axis": 1, "clamp": False},
     [((2, 4, 6, 3), F4)]),
    (dml.Gather, [spec(0), spec(0, dtype=I8)], {"axis": 0, "clamp": True}, [((0,), F4)]),
    (dml.Gather, [spec(0), spec(3, dtype=I8)], {"axis": 0, "clamp": False}, [((3,), F4)]),
    (dml.GatherElements, [spec(2, 5), spec(1, 9, dtype=I8)], {"axis": 1, "clamp": True},
     [((1, 9), F4)]),
    (dml.GatherND, [spec(2, 5, 3), spec(2, 4, 1, dtype=I8)], {"batch_dims": 1, "clamp": False},
     [((2, 4, 3), F4)]),
    (dml.Scatter, [spec(4, 5), spec(2, 5, dtype=I8), spec(2, 5)], {"axis": 0}, [((4, 5), F4)]),
    (dml.ScatterND, [spec(4, 5), spec(7, 1, dtype=I8), spec(7, 5)], {}, [((4, 5), F4)]),
    (dml.Cast, [spec(6, 0)], {"to": "uint8"}, [((6, 0), np.dtype("u1"))]),
    (dml.ElementWiseIdentity, [spec(6, 0)], {"scaled": False}, [((6, 0), F4)]),
    (dml.FillValueSequence, [], {"shape": (2, 3), "dtype": "float32"}, [((2, 3), F4)]),
    (dml.Padding1, [spec(6, 0)], {"starts": (1, 2), "ends": (0, 3), "mode": "constant"},
     [((7, 5), F4)]),
    (dml.ReverseSubsequences, [spec(6, 4), spec(6, 1, dtype=I8)], {"axis": 1}, [((6, 4), F4)]),
    (dml.Upsample2D, [spec(6, 4)], {"height": 2, "width": 3}, [((12, 12), F4)]),
    (dml.Tile, [spec(6, 4)], {"repeats": (2, 0)}, [((12, 0), F4)]),
    (dml.FillValueConstant, [], {"shape": (2, 3), "dtype": "int8"}, [((2, 3), np.dtype("i1"))]),
    (dml.Slice1, [spec(6, 4)], {"starts": (1, 0), "sizes": (5, 0), "strides": (-2, 3)},
     [((3, 0), F4)]),
    (dml.Slice1, [spec(6)], {"starts": (6,), "sizes": (0,), "strides": (1,)}, [((0,), F4)]),
    (dml.Padding1, [spec(6, 0)], {"starts": (1, 0), "ends": (0, 0), "mode": "edge"},
     [((7, 0), F4)]),
    (dml.Split, [spec(6, 2)], {"axis": 0, "sizes": (1, 5)}, [((1, 2), F4), ((5, 2), F4)]),
    (dml.Join, [spec(1, 2), spec(5, 2)], {"axis": 0}, [((6, 2), F4)]),
]  # fmt: skip
NAMES = [definition.__name__ for definition, *_ in GOOD]


def symbolic(arguments):
    # The last axis of an index operand is a number: it says how many coordinates a tuple has.
    return ArraySpec(
        tuple(map(Symbol, arguments.shape)) if arguments.dtype == F4 or len(arguments.shape) < 2
        else (*map(Symbol, arguments.shape[:-1]), arguments.shape[-1]),
        arguments.dtype,
    )  # fmt: skip


@pytest.mark.parametrize(("definition", "inputs", "arguments", "outputs"), GOOD, ids=NAMES)
def test_outputs(definition, inputs, arguments, outputs):
    for operands in (inputs, [symbolic(one) for one in inputs]):
        inferred = definition.infer(operands, arguments)
        assert inferred.violations == ()
        assert [(out.shape, out.dtype) for out in inferred.outputs] == outputs


BAD = [
    *((definition, [spec(2, 5)] * count, {"axis": axis, "k": 1, "sizes": (2,), "clamp": False},
       "Axis: expected 0..1 (Input")
      for axis in (2, -1)
      for definition, count in ((dml.TopK1, 1), (dml.Split, 1), (dml.Join, 2), (dml.Gather, 2),
                          (dml.GatherElements, 2), (dml.Scatter, 3))),
    (dml.TopK1, [spec(2, 5)], {"axis": 1, "k": 6}, "K: expected at most 5 (InputTensor.Sizes[1])"),
    (dml.TopK1, [spec(2, 5)], {"axis": 1, "k": -1}, "K: expected at least 0"),
    (dml.GatherElements, [spec(2, 5), spec(3, 1)], {"axis": 1, "clamp": False},
     "IndicesTensor.Sizes[0]: expected at most 2 (InputTensor.Sizes[0])"),
    (dml.GatherElements, [spec(2, 5), spec(3)], {"axis": 1, "clamp": False},
     "IndicesTensor.DimensionCount: expected 2"),
    (dml.Gather, [spec(0), spec(3)], {"axis": 0, "clamp": True}, "axis 0 has no elements"),
    (dml.GatherND, [spec(2), spec()], {"batch_dims": 0, "clamp": False}, "tuples on the last"),
    (dml.GatherND, [spec(2), spec(3, 1)], {"batch_dims": 2, "clamp": False},
     "BatchDimensionCount: expected 0..1"),
    (dml.GatherND, [spec(2, 2), spec(3, 1)], {"batch_dims": 1, "clamp": False},
     "IndicesTensor.Sizes[-2]: expected 2"),
    (dml.ScatterND, [spec(2), spec(3, 2), spec(3)], {},
     "IndicesTensor.Sizes[-1]: expected at most 1"),
    (dml.ScatterND, [spec(2), spec(3, 1), spec(4)], {}, "UpdatesTensor.Sizes: expected (3,)"),
    (dml.Scatter, [spec(2), spec(3), spec(4)], {"axis": 0}, "UpdatesTensor.Sizes: expected (3,)"),
    (dml.Padding1, [spec(6)], {"starts": (1, 2), "ends": (0,), "mode": "edge"},
     "StartPadding: expected 1 values"),
    (dml.Padding1, [spec(6)], {"starts": (1,), "ends": (-1,), "mode": "edge"},
     "EndPadding[0]: expected 0 or more"),
    (dml.Padding1, [spec(0)], {"starts": (1,), "ends": (0,), "mode": "wrap"},
     "PaddingMode: expected mode 'constant' (axis 0 has no elements"),
    (dml.Slice1, [spec(6)], {"starts": (4,), "sizes": (3,), "strides": (1,)},
     "InputWindowSizes[0]: expected 0..2"),
    (dml.Slice1, [spec(6)], {"starts": (7,), "sizes": (0,), "strides": (1,)},
     "InputWindowOffsets[0]: expected 0..6"),
    (dml.Slice1, [spec(6)], {"starts": (-1,), "sizes": (1,), "strides": (1,)},
     "InputWindowOffsets[0]: expected 0..6"),
    (dml.Slice1, [spec(6)], {"starts": (0,), "sizes": (1,), "strides": (0,)},
     "InputWindowStrides[0]: expected a stride other than 0, got 0"),
    (dml.Slice1, [spec(6)], {"starts": (0,), "sizes": (-1,), "strides": (1,)},
     "InputWindowSizes[0]: expected 0..6"),
    (dml.Slice1, [spec(6)], {"starts": (), "sizes": (1,), "strides": (1,)},
     "InputWindowOffsets: expected 1 values"),
    (dml.ReverseSubsequences, [spec(6, 4), spec(6, 4, dtype=I8)], {"axis": 1},
     "SequenceLengthsTensor.Sizes: expected (6, 1)"),
    (dml.Upsample2D, [spec(6)], {"height": 1, "width": 1},
     "InputTensor.DimensionCount: expected 2 or more"),
    (dml.ReverseSubsequences, [spec(6), spec(1, dtype=I8)], {"axis": 1}, "Axis: expected 0 "),
    (dml.Tile, [spec(6)], {"repeats": (1, 2)}, "Repeats: expected 1 values"),
    (dml.Tile, [spec(6)], {"repeats": (-1,)}, "Repeats[0]: expected at least 0"),
    (dml.Split, [spec(6)], {"axis": 0, "sizes": (1, 4)}, "a sum of 6"),
    (dml.Join, [spec(6, 1), spec(6, 2)], {"axis": 0}, "InputTensors[1].Sizes: expected (6, "),
    (dml.Join, [spec(6, 2), spec(6)], {"axis": 1}, "InputTensors[1].Sizes: expected (6, "),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "inputs", "arguments", "message"), BAD)
def test_every_broken_rule_is_returned(definition, inputs, arguments, message):
    inferred = definition.infer(inputs, arguments)
    assert any(message in str(violation) for violation in inferred.violations)


def test_a_size_that_the_data_decide():
    inferred = dml.NonzeroCoordinates.infer([spec(2, 3)], {"columns": 2})
    assert [out.shape for out in inferred.outputs] == [(), (Dynamic(6), 2)]
