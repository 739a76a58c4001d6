"""Descriptors of the operators that move, convert and fill, which break one rule each."""

from broken_descriptors import Broken, F, T


def _slice1():
    op, data, output = "SLICE1", "InputTensor", "OutputTensor"
    for count in (3, 5):
        rule = "4 (the length of InputWindowOffsets)"
        yield Broken(op, f"DimensionCount {count}", {"DimensionCount": count}, "DimensionCount",
                     rule, count)  # fmt: skip
    yield Broken(op, "three offsets", {"DimensionCount": 3, "InputWindowOffsets": (0, 0, 1)},
                 "DimensionCount", "4 (InputTensor.DimensionCount)", 3)  # fmt: skip
    for name, values in (("InputWindowSizes", (1, 1, 2)), ("InputWindowStrides", (1,) * 5)):
        yield Broken(op, f"too few or many {name}", {name: values}, name,
                     "4 values (InputTensor.DimensionCount)", len(values))  # fmt: skip
    yield Broken(op, "a stride of 0", {"InputWindowStrides": (1, 1, 1, 0)}, "InputWindowStrides[3]",
                 "a stride other than 0", 0)  # fmt: skip
    yield Broken(op, "an empty window", {"InputWindowSizes": (1, 1, 0, 4)}, "InputWindowSizes[2]",
                 "1..2 (InputTensor.Sizes[2] - InputWindowOffsets[2])", 0)  # fmt: skip
    yield Broken(op, "a window that leaves the input", {"InputWindowSizes": (1, 1, 2, 5)},
                 "InputWindowSizes[3]", "1..4 (InputTensor.Sizes[3] - InputWindowOffsets[3])",
                 5)  # fmt: skip
    yield Broken(op, "a window behind the input", {"InputWindowOffsets": (0, 0, 0, 5)},
                 "InputWindowOffsets[3]", "0..4 (InputTensor.Sizes[3] - 1)", 5)  # fmt: skip
    yield Broken(op, "more than the stride reaches", {output: T(F, (1, 1, 2, 3))},
                 f"{output}.Sizes[3]", "1..2 (what the stride reaches)", 3)  # fmt: skip
    yield Broken(op, "more than a window of one has", {"InputWindowSizes": (1, 1, 1, 4)},
                 f"{output}.Sizes[2]", "1 (what the stride reaches)", 2)  # fmt: skip
    yield Broken(op, "another type", {output: T("FLOAT16", (1, 1, 2, 2))}, f"{output}.DataType",
                 f"FLOAT32 ({data}.DataType)", "FLOAT16")  # fmt: skip


def _slice():
    op, data, output = "SLICE", "InputTensor", "OutputTensor"
    for count in (3, 5):
        rule = "4 (the length of Offsets)"
        yield Broken(op, f"DimensionCount {count}", {"DimensionCount": count}, "DimensionCount",
                     rule, count)  # fmt: skip
    yield Broken(op, "three offsets", {"DimensionCount": 3, "Offsets": (0, 0, 1)},
                 "DimensionCount", "4 (InputTensor.DimensionCount)", 3)  # fmt: skip
    for name, values in (("Sizes", (1, 1, 2)), ("Strides", (1,) * 5)):
        yield Broken(op, f"too few or many {name}", {name: values}, name,
                     "4 values (InputTensor.DimensionCount)", len(values))  # fmt: skip
    yield Broken(op, "a stride of 0", {"Strides": (1, 1, 1, 0)}, "Strides[3]",
                 "a stride of at least 1", 0)  # fmt: skip
    yield Broken(op, "a stride too long", {"Strides": (1, 1, 1, 4)}, "Sizes[3]",
                 "1 (what the stride reaches in InputTensor from Offsets[3] on)", 2)  # fmt: skip
    yield Broken(op, "a size of 0", {"Sizes": (1, 1, 0, 2)}, "Sizes[2]", "1..2 (what the stride",
                 0, (f"{output}.Sizes[2]",))  # fmt: skip
    yield Broken(op, "an offset behind the input", {"Offsets": (0, 0, 0, 5)}, "Offsets[3]",
                 "0..4 (InputTensor.Sizes[3] - 1)", 5)  # fmt: skip
    yield Broken(op, "an output of another size", {output: T(F, (1, 1, 2, 1))},
                 f"{output}.Sizes[3]", "2 (Sizes[3])", 1)  # fmt: skip
    yield Broken(op, "another type", {output: T("FLOAT16", (1, 1, 2, 2))}, f"{output}.DataType",
                 f"FLOAT32 ({data}.DataType)", "FLOAT16")  # fmt: skip


def _tile():
    op, output = "TILE", "OutputTensor"
    for count in (3, 5):
        yield Broken(op, f"RepeatsCount {count}", {"RepeatsCount": count}, "RepeatsCount",
                     "4 (the length of Repeats)", count)  # fmt: skip
    yield Broken(op, "three repeats", {"RepeatsCount": 3, "Repeats": (1, 2, 3)}, "RepeatsCount",
                 "4 (InputTensor.DimensionCount)", 3)  # fmt: skip
    yield Broken(op, "a repeat of 0", {"Repeats": (1, 0, 2, 3)}, "Repeats[1]", "at least 1",
                 0)  # fmt: skip
    yield Broken(op, "another size of one", {output: T(F, (2, 1, 4, 15))}, f"{output}.Sizes[0]",
                 "1 (InputTensor.Sizes[0] * Repeats[0])", 2)  # fmt: skip
    yield Broken(op, "another size", {output: T(F, (1, 1, 4, 14))}, f"{output}.Sizes[3]",
                 "15 (InputTensor.Sizes[3] * Repeats[3])", 14)  # fmt: skip
    yield Broken(op, "another type", {output: T("FLOAT16", (1, 1, 4, 15))}, f"{output}.DataType",
                 "FLOAT32 (InputTensor.DataType)", "FLOAT16")  # fmt: skip


def _reverse():
    op, output, lengths = "REVERSE_SUBSEQUENCES", "OutputTensor", "SequenceLengthsTensor"
    yield Broken(op, "Axis 4", {"Axis": 4}, "Axis", "0..3 (within InputTensor", 4,
                 (f"{lengths}.Sizes[3]",))  # fmt: skip
    yield Broken(op, "two lengths for a sequence", {lengths: T("UINT32", (1, 1, 2, 2))},
                 f"{lengths}.Sizes[3]", "1 (a length for each sequence)", 2)  # fmt: skip
    yield Broken(op, "too few lengths", {lengths: T("UINT32", (1, 1, 1, 1))},
                 f"{lengths}.Sizes[2]", "2 (InputTensor.Sizes[2])", 1)  # fmt: skip
    yield Broken(op, "another size", {output: T(F, (1, 1, 2, 6))}, f"{output}.Sizes[3]",
                 "5 (InputTensor.Sizes[3])", 6)  # fmt: skip
    yield Broken(op, "another type", {output: T("FLOAT16", (1, 1, 2, 5))}, f"{output}.DataType",
                 "FLOAT32 (InputTensor.DataType)", "FLOAT16")  # fmt: skip


def _upsample():
    op, output = "UPSAMPLE_2D", "OutputTensor"
    for name, size in (("Width", (0, 2)), ("Height", (3, 0))):
        yield Broken(op, f"{name} 0", {"ScaleSize": size}, f"ScaleSize.{name}", "1..", 0)
    yield Broken(op, "a scale too large", {"ScaleSize": (2**32 // 5 + 1, 2)}, "ScaleSize.Width",
                 f"1..{2**32 // 5} (UINT_MAX / InputTensor.Sizes[3])", 2**32 // 5 + 1)  # fmt: skip
    yield Broken(op, "another width", {output: T(F, (1, 1, 4, 10))}, f"{output}.Sizes[3]",
                 "15 (InputTensor.Sizes[3] * ScaleSize.Width)", 10)  # fmt: skip
    yield Broken(op, "another height", {output: T(F, (1, 1, 2, 15))}, f"{output}.Sizes[2]",
                 "4 (InputTensor.Sizes[2] * ScaleSize.Height)", 2)  # fmt: skip
    yield Broken(op, "more channels", {output: T(F, (1, 2, 4, 15))}, f"{output}.Sizes[1]",
                 "1 (InputTensor.Sizes[1])", 2)  # fmt: skip
    yield Broken(op, "another type", {output: T("FLOAT16", (1, 1, 4, 15))}, f"{output}.DataType",
                 "FLOAT32 (InputTensor.DataType)", "FLOAT16")  # fmt: skip


def _constant():
    op = "FILL_VALUE_CONSTANT"
    yield Broken(op, "another type", {"ValueDataType": "FLOAT16"}, "ValueDataType",
                 "FLOAT32 (OutputTensor.DataType)", "FLOAT16")  # fmt: skip
    yield Broken(op, "a value that no FLOAT32 has", {"Value": 1e39}, "Value",
                 "a number of at most 3.4028234663852886e+38", 1e39)  # fmt: skip


def _cast():
    op, output = "CAST", "OutputTensor"
    yield Broken(op, "another size", {output: T("INT8", (1, 1, 2, 6))}, f"{output}.Sizes[3]",
                 "5 (InputTensor.Sizes[3])", 6)  # fmt: skip
    yield Broken(op, "another rank", {output: T("INT8", (1, 2, 5))}, f"{output}.DimensionCount",
                 "4 (InputTensor.DimensionCount)", 3)  # fmt: skip


def _identity():
    op, output = "ELEMENT_WISE_IDENTITY", "OutputTensor"
    yield Broken(op, "another size", {output: T(F, (1, 1, 2, 6))}, f"{output}.Sizes[3]",
                 "5 (InputTensor.Sizes[3])", 6)  # fmt: skip
    yield Broken(op, "another type", {output: T("FLOAT16", (1, 1, 2, 5))}, f"{output}.DataType",
                 "FLOAT32 (InputTensor.DataType)", "FLOAT16")  # fmt: skip
    yield Broken(op, "a scale that no FLOAT has", {"ScaleBias": (1e39, 0)}, "ScaleBias.Scale",
                 "a number of at most 3.4028234663852886e+38", 1e39)  # fmt: skip


def _sequence():
    op = "FILL_VALUE_SEQUENCE"
    yield Broken(op, "another type", {"ValueDataType": "FLOAT16"}, "ValueDataType",
                 "FLOAT32 (OutputTensor.DataType)", "FLOAT16")  # fmt: skip
    yield Broken(op, "a start that no FLOAT32 has", {"ValueStart": 1e39}, "ValueStart",
                 "a number of at most 3.4028234663852886e+38", 1e39)  # fmt: skip


def _paddings(op):
    output = "OutputTensor"
    for count in (3, 5):
        rule = "4 (the length of StartPadding)"
        yield Broken(op, f"DimensionCount {count}", {"DimensionCount": count}, "DimensionCount",
                     rule, count)  # fmt: skip
    yield Broken(op, "three start paddings", {"DimensionCount": 3, "StartPadding": (0, 1, 3)},
                 "DimensionCount", "4 (InputTensor.DimensionCount)", 3)  # fmt: skip
    for values in ((0, 0, 1), (0, 0, 0, 0, 1)):
        yield Broken(op, f"{len(values)} end paddings", {"EndPadding": values}, "EndPadding",
                     "4 values (InputTensor.DimensionCount)", len(values))  # fmt: skip
    yield Broken(op, "another size", {output: T(F, (1, 1, 3, 10))}, f"{output}.Sizes[3]",
                 "9 (StartPadding[3] + InputTensor.Sizes[3] + EndPadding[3])", 10)  # fmt: skip
    if op == "PADDING1":
        yield Broken(op, "another type of the value", {"PaddingValueDataType": "INT8"},
                     "PaddingValueDataType", "FLOAT32 (OutputTensor.DataType)",
                     "INT8")  # fmt: skip
    yield Broken(op, "a value that no FLOAT32 has", {"PaddingValue": -1e39}, "PaddingValue",
                 "a number of at most 3.4028234663852886e+38", -1e39)  # fmt: skip


BROKEN_MOVERS = [
    *_slice1(), *_slice(), *_cast(), *_identity(), *_sequence(), *_constant(), *_tile(),
    *_reverse(), *_upsample(), *_paddings("PADDING"), *_paddings("PADDING1"),
]  # fmt: skip
