"""Every example that the reference pages print, with the misprints settled.

An example is the page's fields in the page's names. A tensor is (data type, sizes, values); values
of None stand for what the page leaves undefined.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    name: str
    operator: str
    fields: dict[str, Any]
    call: str
    """How the array functions say it, over the fields' values."""

    def __str__(self) -> str:
        return self.name


SQUARE = [[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]
TIED = [[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]
TWELVE = [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]


def _top_k(name, operator, data, axis, values, indices, direction=None):
    def tensor(kind, rows):
        return (kind, (1, 1, len(rows), len(rows[0])), [[rows]])

    k = len(values[0]) if axis == 3 else len(values)
    fields = {
        "InputTensor": tensor("FLOAT32", data),
        "OutputValueTensor": tensor("FLOAT32", values),
        "OutputIndexTensor": tensor("UINT32", indices),
        "Axis": axis,
        "K": k,
    }
    largest = True
    if direction is not None:
        fields["AxisDirection"] = direction
        largest = "DECREASING" in direction
    call = f"dml.top_k(InputTensor, {k}, axis={axis}, largest={largest}, index_dtype='uint32')"
    return Example(name, operator, fields, call)


def _both(name, *arguments):
    yield _top_k(f"TOP_K {name}", "TOP_K", *arguments)
    yield _top_k(f"TOP_K1 {name}", "TOP_K1", *arguments, "DML_AXIS_DIRECTION_DECREASING")


TOP_K = [
    *_both("1", SQUARE, 3, [[11, 10], [9, 8], [7, 6]], [[3, 2], [2, 3], [3, 2]]),
    *_both("2: another axis", SQUARE, 2,
           [[4, 5, 10, 11], [3, 2, 9, 8]], [[2, 2, 0, 0], [1, 1, 1, 1]]),
    *_both("3: ties", TIED, 3,
           [[3, 2, 2], [5, 5, 4], [6, 6, 6]], [[3, 1, 2], [2, 3, 1], [0, 1, 2]]),
    _top_k("TOP_K1 4: increasing", "TOP_K1", TIED, 3,
           [[1, 2, 2], [3, 4, 5], [6, 6, 6]], [[0, 1, 2], [0, 1, 2], [0, 1, 2]],
           "DML_AXIS_DIRECTION_INCREASING"),
]  # fmt: skip

SCATTER = [
    Example(
        "SCATTER 1: one dimension, a duplicate",
        "SCATTER",
        {
            "InputTensor": ("FLOAT32", (5,), [0, 1, 2, 3, 4]),
            "IndicesTensor": ("UINT32", (4,), [3, 1, 3, 0]),
            "UpdatesTensor": ("FLOAT32", (4,), [5, 6, 7, 8]),
            "OutputTensor": ("FLOAT32", (5,), [8, 6, 2, 7, 4]),
            "Axis": 0,
        },
        "dml.scatter_elements(InputTensor, IndicesTensor, UpdatesTensor, axis=0)",
    ),
    Example(
        # The page prints the input's sizes as {2,3}.
        "SCATTER 2: two dimensions",
        "SCATTER",
        {
            "InputTensor": ("FLOAT32", (3, 3), [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
            "IndicesTensor": ("UINT32", (2, 3), [[1, 0, 2], [0, 2, 1]]),
            "UpdatesTensor": ("FLOAT32", (2, 3), [[10, 11, 12], [20, 21, 22]]),
            "OutputTensor": ("FLOAT32", (3, 3), [[20, 11, 0], [10, 0, 22], [0, 21, 12]]),
            "Axis": 0,
        },
        "dml.scatter_elements(InputTensor, IndicesTensor, UpdatesTensor, axis=0)",
    ),
    Example(
        # The page prints FLOAT32 indices, and sizes of different ranks.
        "SCATTER_ND",
        "SCATTER_ND",
        {
            "InputTensor": ("FLOAT32", (1, 8), [[1, 2, 3, 4, 5, 6, 7, 8]]),
            "IndicesTensor": ("UINT32", (4, 1), [[4], [3], [1], [7]]),
            "UpdatesTensor": ("FLOAT32", (1, 4), [[9, 10, 11, 12]]),
            "OutputTensor": ("FLOAT32", (1, 8), [[1, 11, 3, 10, 9, 6, 7, 12]]),
            "InputDimensionCount": 1,
            "IndicesDimensionCount": 2,
        },
        "dml.scatter_nd(InputTensor[0], IndicesTensor, UpdatesTensor[0])[None]",
    ),
]

NONZERO = [
    Example(
        "NONZERO_COORDINATES",
        "NONZERO_COORDINATES",
        {
            "InputTensor": ("FLOAT32", (1, 1, 2, 4), [[[[1, 0, 0, 2], [-0.0, 3.5, 0, -5.2]]]]),
            "OutputCountTensor": ("UINT32", (1, 1, 1, 1), [[[[4]]]]),
            "OutputCoordinatesTensor": (
                "UINT32",
                (1, 1, 8, 3),
                [[[[0, 0, 0], [0, 0, 3], [0, 1, 1], [0, 1, 3], None, None, None, None]]],
            ),
        },
        "dml.nonzero_coordinates(InputTensor[0], index_dtype='uint32')",
    ),
]

SPLIT = [
    Example(
        "SPLIT 1: axis 2",
        "SPLIT",
        {
            "InputTensor": ("FLOAT32", (1, 1, 6, 2), [[TWELVE]]),
            "OutputCount": 3,
            "OutputTensors": [
                ("FLOAT32", (1, 1, 2, 2), [[[[1, 2], [3, 4]]]]),
                ("FLOAT32", (1, 1, 1, 2), [[[[5, 6]]]]),
                ("FLOAT32", (1, 1, 3, 2), [[[[7, 8], [9, 10], [11, 12]]]]),
            ],
            "Axis": 2,
        },
        "dml.split(InputTensor, [2, 1, 3], axis=2)",
    ),
    Example(
        "SPLIT 2: axis 3",
        "SPLIT",
        {
            "InputTensor": ("FLOAT32", (1, 1, 6, 2), [[TWELVE]]),
            "OutputCount": 2,
            "OutputTensors": [
                ("FLOAT32", (1, 1, 6, 1), [[[[1], [3], [5], [7], [9], [11]]]]),
                ("FLOAT32", (1, 1, 6, 1), [[[[2], [4], [6], [8], [10], [12]]]]),
            ],
            "Axis": 3,
        },
        "dml.split(InputTensor, 2, axis=3)",
    ),
]


def _join(name, axis, sizes, output, *inputs):
    fields = {
        "InputCount": len(inputs),
        "InputTensors": [("FLOAT32", (1, 1, len(rows), len(rows[0])), [[rows]]) for rows in inputs],
        "OutputTensor": ("FLOAT32", sizes, output),
        "Axis": axis,
    }
    return Example(name, "JOIN", fields, f"dml.join(InputTensors, axis={axis})")


_PARTS = ([[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]])
JOIN = [
    _join("JOIN 1: one possible axis", 3, (1, 1, 2, 7),
          [[[[1, 2, 3, 7, 8, 9, 10], [4, 5, 6, 11, 12, 13, 14]]]],
          [[1, 2, 3], [4, 5, 6]], [[7, 8, 9, 10], [11, 12, 13, 14]]),
    _join("JOIN 2: axis 1", 1, (1, 3, 2, 2),
          [[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]], *_PARTS),
    _join("JOIN 2: axis 2", 2, (1, 1, 6, 2), [[TWELVE]], *_PARTS),
    _join("JOIN 2: axis 3", 3, (1, 1, 2, 6),
          [[[[1, 2, 5, 6, 9, 10], [3, 4, 7, 8, 11, 12]]]], *_PARTS),
]  # fmt: skip


def _gather(name, data, indices, output, axis, index_dimensions, call):
    fields = {
        "InputTensor": ("FLOAT32", *data),
        "IndicesTensor": ("UINT32", *indices),
        "OutputTensor": ("FLOAT32", *output),
        "Axis": axis,
        "IndexDimensions": index_dimensions,
    }
    return Example(name, "GATHER", fields, call)


_SIX = [[1, 2], [3, 4], [5, 6]]
GATHER = [
    _gather("GATHER 1: one dimension", ((4,), [11, 12, 13, 14]), ((5,), [3, 1, 3, 0, 2]),
            ((5,), [14, 12, 14, 11, 13]), 0, 1,
            "dml.gather(InputTensor, IndicesTensor, axis=0)"),
    _gather("GATHER 2: rows", ((3, 2), _SIX), ((1, 4), [[0, 1, 1, 2]]),
            ((4, 2), [[1, 2], [3, 4], [3, 4], [5, 6]]), 0, 1,
            "dml.gather(InputTensor, IndicesTensor[0], axis=0)"),
    # The page prints IndexDimensions 2, which gives other sizes than its output has.
    _gather("GATHER 3: columns", ((3, 2), _SIX), ((1, 2), [[1, 0]]),
            ((3, 2), [[2, 1], [4, 3], [6, 5]]), 1, 1,
            "dml.gather(InputTensor, IndicesTensor[0], axis=1)"),
    _gather("GATHER 4: nested indices, columns",
            ((1, 3, 3), [[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]), ((1, 1, 2), [[[0, 2]]]),
            ((3, 1, 2), [[[1, 3]], [[4, 6]], [[7, 9]]]), 2, 2,
            "dml.gather(InputTensor[0], IndicesTensor[0], axis=1)"),
    _gather("GATHER 5: nested indices, rows", ((1, 3, 2), [_SIX]), ((1, 2, 2), [[[0, 1], [1, 2]]]),
            ((2, 2, 2), [[[1, 2], [3, 4]], [[3, 4], [5, 6]]]), 1, 2,
            "dml.gather(InputTensor[0], IndicesTensor[0], axis=0)"),
    Example(
        # The page prints the output's type as UINT32.
        "GATHER_ELEMENTS",
        "GATHER_ELEMENTS",
        {
            "InputTensor": ("FLOAT32", (3, 3), [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
            "IndicesTensor": ("UINT32", (2, 3), [[1, 2, 0], [2, 0, 0]]),
            "OutputTensor": ("FLOAT32", (2, 3), [[4, 8, 3], [7, 2, 3]]),
            "Axis": 0,
        },
        "dml.gather_elements(InputTensor, IndicesTensor, axis=0)",
    ),
]  # fmt: skip


def _gather_nd(name, data, indices, output, counts, call, batch=None):
    fields = {
        "InputTensor": ("FLOAT32", *data),
        "IndicesTensor": ("UINT32", *indices),
        "OutputTensor": ("FLOAT32", *output),
        "InputDimensionCount": counts[0],
        "IndicesDimensionCount": counts[1],
    }
    operator = "GATHER_ND"
    if batch is not None:
        fields["BatchDimensionCount"] = batch
        operator = "GATHER_ND1"
    return Example(f"{operator} {name}", operator, fields, call)


_ROWS = (((2, 2), [[0, 1], [2, 3]]), ((2, 1), [[1], [0]]), ((2, 2), [[2, 3], [0, 1]]), (2, 2))
GATHER_ND = [
    _gather_nd("1: one dimension", *_ROWS, "dml.gather_nd(InputTensor, IndicesTensor)"),
    _gather_nd("1: one dimension", *_ROWS, "dml.gather_nd(InputTensor, IndicesTensor)", batch=0),
    _gather_nd("2: two dimensions",
               ((1, 2, 2, 2), [[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]),
               ((1, 1, 2, 2), [[[[0, 1], [1, 0]]]]), ((1, 1, 2, 2), [[[[2, 3], [4, 5]]]]), (3, 2),
               "dml.gather_nd(InputTensor[0], IndicesTensor[0, 0])[None, None]"),
    _gather_nd("2: batches",
               ((1, 3, 2, 2), [[[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]]),
               ((1, 3, 2, 2), [[[[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]]]),
               ((1, 1, 3, 2), [[[[0, 3], [7, 4], [9, 10]]]]), (3, 3),
               "dml.gather_nd(InputTensor[0], IndicesTensor[0], batch_dims=1)[None, None]",
               batch=1),
]  # fmt: skip

FOUR_BY_FOUR = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]


def _slice1(name, strides, output):
    fields = {
        "InputTensor": ("FLOAT32", (1, 1, 4, 4), [[FOUR_BY_FOUR]]),
        "OutputTensor": ("FLOAT32", (1, 1, 2, 2), [[output]]),
        "DimensionCount": 4,
        "InputWindowOffsets": [0, 0, 0, 1],
        "InputWindowSizes": [1, 1, 4, 3],
        "InputWindowStrides": strides,
    }
    call = f"dml.slice_window(InputTensor, (0, 0, 0, 1), (1, 1, 4, 3), {tuple(strides)})"
    return Example(f"SLICE1 {name}", "SLICE1", fields, call)


SLICE1 = [
    _slice1("1: positive strides", [1, 1, 2, 2], [[2, 4], [10, 12]]),
    _slice1("2: a negative stride", [1, 1, -2, 2], [[14, 16], [6, 8]]),
]


def _slice(name, offsets, sizes, strides, output):
    fields = {
        "InputTensor": ("FLOAT32", (1, 1, 4, 4), [[FOUR_BY_FOUR]]),
        "OutputTensor": ("FLOAT32", (1, 1, *sizes), [[output]]),
        "DimensionCount": 4,
        "Offsets": [0, 0, *offsets],
        "Sizes": [1, 1, *sizes],
        "Strides": [1, 1, *strides],
    }
    ends = [at + (n - 1) * step + 1 for at, n, step in zip(offsets, sizes, strides, strict=True)]
    windows = tuple(end - at for at, end in zip(offsets, ends, strict=True))
    call = (
        f"dml.slice_window(InputTensor, (0, 0, *{offsets}), (1, 1, *{windows}), (1, 1, *{strides}))"
    )
    return Example(f"SLICE {name}", "SLICE", fields, call)


SLICE = [
    _slice("1: contiguous", (1, 2), (3, 2), (1, 1), [[7, 8], [11, 12], [15, 16]]),
    _slice("2: strided", (1, 0), (2, 2), (2, 3), [[5, 8], [13, 16]]),
]

TILE = Example(
    # The page labels the output InputTensor.
    "TILE",
    "TILE",
    {
        "InputTensor": ("FLOAT32", (1, 1, 2, 3), [[[[1, 2, 3], [4, 5, 6]]]]),
        "OutputTensor": ("FLOAT32", (1, 1, 6, 9), [[[[1, 2, 3] * 3, [4, 5, 6] * 3] * 3]]),
        "RepeatsCount": 4,
        "Repeats": [1, 1, 3, 3],
    },
    "dml.tile(InputTensor, (3, 3))",
)


def _reverse(name, lengths, axis, output):
    # The page calls the lengths SequenceTensor.
    shape = (1, 1, 3, 1) if axis == 3 else (1, 1, 1, 4)
    rows = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    return Example(
        f"REVERSE_SUBSEQUENCES {name}",
        "REVERSE_SUBSEQUENCES",
        {
            "InputTensor": ("FLOAT32", (1, 1, 3, 4), [[rows]]),
            "SequenceLengthsTensor": ("UINT32", shape, [[lengths]]),
            "OutputTensor": ("FLOAT32", (1, 1, 3, 4), [[output]]),
            "Axis": axis,
        },
        f"dml.reverse_subsequences(InputTensor, SequenceLengthsTensor, axis={axis})",
    )


REVERSE = [
    _reverse("1: rows", [[2], [4], [3]], 3, [[2, 1, 3, 4], [8, 7, 6, 5], [11, 10, 9, 12]]),
    _reverse("2: columns", [[2, 3, 1, 0]], 2, [[5, 10, 3, 4], [1, 6, 7, 8], [9, 2, 11, 12]]),
]


def _sequence(name, kind, sizes, start, delta, output):
    fields = {
        "OutputTensor": (kind, sizes, output),
        "ValueDataType": kind,
        "ValueStart": start,
        "ValueDelta": delta,
    }
    call = (
        f"dml.Device('cpu').create_operator(dml.FillValueSequence("
        f"output_tensor=dml.TensorDesc({kind!r}, {sizes}), value_data_type={kind!r}, "
        f"value_start={start}, value_delta={delta})).compile()()"
    )
    return Example(f"FILL_VALUE_SEQUENCE {name}", "FILL_VALUE_SEQUENCE", fields, call)


FILL = [
    _sequence("1: ascending", "FLOAT32", (1, 1, 1, 3), 3, 2, [[[[3, 5, 7]]]]),
    _sequence("2: descending", "UINT8", (1, 1, 2, 2), 10, -2, [[[[10, 8], [6, 4]]]]),
]

CONSTANT = Example(
    "FILL_VALUE_CONSTANT",
    "FILL_VALUE_CONSTANT",
    {
        "OutputTensor": ("FLOAT32", (1, 1, 2, 4), [[[[13] * 4] * 2]]),
        "ValueDataType": "FLOAT32",
        "Value": 13,
    },
    "dml.Device('cpu').create_operator(dml.FillValueConstant("
    "output_tensor=dml.TensorDesc('FLOAT32', (1, 1, 2, 4)), value_data_type='FLOAT32', "
    "value=13)).compile()()",
)

TWICE = [[1, 2, 3, 4], [5, 6, 7, 8]] * 2
_PADDED = {
    "CONSTANT": [[9] * 10, *([9, 9, *row, 9, 9, 9, 9] for row in TWICE), *([[9] * 10] * 3)],
    "EDGE": [[1, 1, 1, 2, 3, 4, 4, 4, 4, 4], *([[1, 1, 1, 2, 3, 4, 4, 4, 4, 4],
             [5, 5, 5, 6, 7, 8, 8, 8, 8, 8]] * 2), *([[5, 5, 5, 6, 7, 8, 8, 8, 8, 8]] * 3)],
    "REFLECTION": [[7, 6, 5, 6, 7, 8, 7, 6, 5, 6], [3, 2, 1, 2, 3, 4, 3, 2, 1, 2]] * 4,
    "SYMMETRIC": [[2, 1, 1, 2, 3, 4, 4, 3, 2, 1], *([[2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
                  [6, 5, 5, 6, 7, 8, 8, 7, 6, 5]] * 2), [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
                  [2, 1, 1, 2, 3, 4, 4, 3, 2, 1], [6, 5, 5, 6, 7, 8, 8, 7, 6, 5]],
}  # fmt: skip


def _padding(operator, number, mode):
    typed = {"PaddingValueDataType": "FLOAT32"} if operator == "PADDING1" else {}
    fields = {
        "InputTensor": ("FLOAT32", (1, 1, 4, 4), [[TWICE]]),
        "OutputTensor": ("FLOAT32", (1, 1, 8, 10), [[_PADDED[mode]]]),
        "PaddingMode": mode,
        **typed,
        "PaddingValue": 9,
        "DimensionCount": 4,
        "StartPadding": [0, 0, 1, 2],
        "EndPadding": [0, 0, 3, 4],
    }
    call = f"dml.pad(InputTensor, ((0, 0), (0, 0), (1, 3), (2, 4)), {mode.lower()!r}, 9)"
    return Example(f"{operator} {number}: {mode.lower()}", operator, fields, call)


PADDING = [
    _padding(operator, number, mode)
    for operator in ("PADDING", "PADDING1")
    for number, mode in enumerate(_PADDED, start=1)
]

EXAMPLES = [
    *SLICE,
    *SLICE1,
    *FILL,
    CONSTANT,
    *PADDING,
    *REVERSE,
    TILE,
    *TOP_K,
    *SCATTER,
    *NONZERO,
    *SPLIT,
    *JOIN,
    *GATHER,
    *GATHER_ND,
]
