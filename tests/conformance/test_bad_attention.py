"""Attention and quantization in blocks that break rules: every violation, and nothing else."""

import dataclasses

import pytest

import anydml as dml
from anydml import InvalidDescriptorError

T = dml.TensorDesc
NEW = {name: T("FLOAT32", (2, 3, 8)) for name in ("query_tensor", "key_tensor", "value_tensor")}


def attention(**fields):
    arguments = {"scale": 0.5, "mask_filter_value": -1e4, "head_count": 2, "mask_type": "NONE"}
    one_version = {**arguments, **fields}
    kind = dml.MultiheadAttention
    if "query_head_count" in fields:
        del one_version["head_count"]
        kind = dml.MultiheadAttention1
    return kind(**{"output_tensor": T("FLOAT32", (2, 3, 8)), **NEW, **one_version})


def grouped(**fields):
    return attention(query_head_count=4, key_value_head_count=2, **fields)


def masked(mask_type, *sizes, **fields):
    return attention(mask_type=mask_type, mask_tensor=T("INT32", sizes), **fields)


def quantize(kind=dml.Quantize, **fields):
    floats, ints = T("FLOAT32", (2, 6)), T("INT8", (2, 6))
    x, y = (floats, ints) if kind is dml.Quantize else (ints, floats)
    arguments = {"input_tensor": x, "quantization_type": "SCALE", "output_tensor": y}
    return kind(**{**arguments, "quantization_tensors": [T("FLOAT32", (2, 3))], **fields})


def with_zero(kind=dml.Quantize, data_type="INT8", sizes=(2, 3), **fields):
    tensors = [T("FLOAT32", (2, 3)), T(data_type, sizes)]
    arguments = {"quantization_type": "SCALE_ZERO_POINT", "quantization_tensors": tensors}
    return quantize(kind, **{**arguments, **fields})


PAST = {name: T("FLOAT32", (2, 2, 5, 4)) for name in ("past_key_tensor", "past_value_tensor")}
KEYS = {"key_tensor": None, "value_tensor": None}
NOTHING = dict.fromkeys(NEW)
PAIR, TRIPLE = T("FLOAT32", (2, 3, 2, 2, 4)), T("FLOAT32", (2, 3, 2, 3, 4))

GOOD = {
    "apart": attention(),
    "leading ones": attention(
        query_tensor=T("FLOAT32", (1, 1, 2, 3, 8)), output_tensor=T("FLOAT32", (1, 2, 3, 8))
    ),
    "other sizes of values": attention(
        value_tensor=T("FLOAT32", (2, 3, 6)), output_tensor=T("FLOAT32", (2, 3, 6)),
        bias_tensor=T("FLOAT32", (1, 22)),
    ),
    "a pair": attention(query_tensor=None, key_tensor=None, stacked_query_key_tensor=PAIR),
    "keys and values": attention(**KEYS, stacked_key_value_tensor=PAIR),
    "all": attention(**NOTHING, stacked_query_key_value_tensor=TRIPLE),
    "the past": attention(**KEYS, **PAST),
    "a mask type without a mask": attention(mask_type="BOOLEAN"),
    "a mask of keys": masked("BOOLEAN", 2, 1, 1, 8, **PAST),
    "a short mask": masked("BOOLEAN", 3),
    "lengths": masked("KEY_SEQUENCE_LENGTH", 1, 2),
    "ends and starts": masked("KEY_SEQUENCE_END_START", 1, 2, 2),
    "bounds": masked("KEY_QUERY_SEQUENCE_LENGTH_START_END", 8),
    "shared heads": grouped(
        query_tensor=T("FLOAT32", (2, 3, 16)), output_tensor=T("FLOAT32", (2, 3, 16)), **PAST,
        past_sequence_lengths_tensor=T("FLOAT32", (2,)),
        output_present_key_tensor=T("FLOAT32", (2, 2, 8, 4)),
    ),
    "blocks": quantize(),
    "zero points of other blocks": with_zero(sizes=(1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good(name):
    assert dml.Device("cpu").check(GOOD[name]) == []


BROKEN = [
    (
        attention(stacked_query_key_tensor=PAIR),
        "StackedQueryKeyTensor: expected no tensor (QueryTensor has the query), got a tensor",
        "StackedQueryKeyTensor: expected no tensor (KeyTensor has the key), got a tensor",
    ),
    (
        attention(stacked_key_value_tensor=PAIR, value_tensor=None),
        "StackedKeyValueTensor: expected no tensor (KeyTensor has the key), got a tensor",
    ),
    (
        attention(**NOTHING),
        "QueryTensor: expected a tensor, here or as StackedQueryKeyTensor or "
        "StackedQueryKeyValueTensor, got None",
        "KeyTensor: expected a tensor, here or as StackedQueryKeyTensor or StackedKeyValueTensor "
        "or StackedQueryKeyValueTensor, got None",
        "ValueTensor: expected a tensor, here or as StackedKeyValueTensor or "
        "StackedQueryKeyValueTensor, got None",
    ),
    (
        attention(key_tensor=None, **PAST),
        "KeyTensor: expected a tensor, here or as StackedQueryKeyTensor or StackedKeyValueTensor "
        "or StackedQueryKeyValueTensor, got None",
    ),
    (
        attention(past_key_tensor=PAST["past_key_tensor"]),
        "PastValueTensor: expected a tensor (past keys and past values come together), got None",
    ),
    (
        masked("NONE", 2, 1, 1, 3),
        "MaskTensor: expected no tensor (MaskType is NONE), got a tensor",
    ),
    (attention(head_count=0), "HeadCount: expected at least 1, got 0"),
    (
        attention(head_count=3),
        "QueryTensor.Sizes[2]: expected a multiple of 3 (the number of heads), got 8",
        "KeyTensor.Sizes[2]: expected a multiple of 3 (the number of heads), got 8",
        "ValueTensor.Sizes[2]: expected a multiple of 3 (the number of heads), got 8",
    ),
    (
        attention(query_tensor=T("FLOAT32", (2, 2, 3, 8))),
        "QueryTensor.Sizes[0]: expected 1 (of {2, 3, 8}), got 2",
    ),
    (
        attention(key_tensor=T("FLOAT16", (1, 4, 8)), value_tensor=T("FLOAT32", (2, 5, 8))),
        "KeyTensor.Sizes[0]: expected 2 (of {2, 4, 8}), got 1",
        "ValueTensor.Sizes[1]: expected 4 (of {2, 4, 8}), got 5",
        "KeyTensor.DataType: expected FLOAT32 (QueryTensor.DataType), got FLOAT16",
    ),
    (
        attention(bias_tensor=T("FLOAT32", (16,))),
        "BiasTensor.Sizes[0]: expected 24 (of {24}), got 16",
    ),
    (
        attention(relative_position_bias_tensor=T("FLOAT32", (1, 2, 3, 3))),
        "RelativePositionBiasTensor.Sizes[0]: expected 2 (of {2, 2, 3, 3}), got 1",
    ),
    (
        masked("BOOLEAN", 2, 3, 1, 3, **PAST),
        "MaskTensor.Sizes[1]: expected 2 or 1 (of {2, 2, 3, 8}), got 3",
        "MaskTensor.Sizes[3]: expected 8 or 1 (of {2, 2, 3, 8}), got 3",
    ),
    (
        masked("KEY_SEQUENCE_LENGTH", 2),
        "MaskTensor.DimensionCount: expected at least 2 (for sizes {1, 2}), got 1",
    ),
    (
        masked("KEY_SEQUENCE_END_START", 1, 2),
        "MaskTensor.Sizes[0]: expected 2 (of {2, 2}), got 1",
    ),
    (
        masked("KEY_QUERY_SEQUENCE_LENGTH_START_END", 7),
        "MaskTensor.Sizes[0]: expected 8 (of {8}), got 7",
    ),
    (
        attention(output_tensor=T("FLOAT32", (2, 3, 7)),
                  output_present_key_tensor=T("FLOAT32", (2, 2, 2, 4))),
        "OutputTensor.Sizes[2]: expected 8 (the inputs imply {2, 3, 8}), got 7",
        "OutputPresentKeyTensor.Sizes[2]: expected 3 (the inputs imply {2, 2, 3, 4}), got 2",
    ),
    (
        attention(query_head_count=3, key_value_head_count=2),
        "QueryHeadCount: expected a multiple of 2 above 0 (KeyValueHeadCount), got 3",
    ),
    (
        grouped(query_tensor=None, key_tensor=None, stacked_query_key_tensor=PAIR),
        "KeyValueHeadCount: expected 4 (QueryHeadCount, as StackedQueryKeyTensor has queries and "
        "keys), got 2",
        "StackedQueryKeyTensor.Sizes[2]: expected 4 (of {2, 3, 4, 2, 4}), got 2",
    ),
    (
        grouped(past_sequence_lengths_tensor=T("FLOAT32", (2,))),
        "OutputPresentKeyTensor: expected a tensor, whose memory has the past, got None",
        "OutputPresentValueTensor: expected a tensor, whose memory has the past, got None",
        "KeyTensor.Sizes[2]: expected 4 (of {2, 3, 4}), got 8",
        "OutputTensor.Sizes[2]: expected 16 (the inputs imply {2, 3, 16}), got 8",
    ),
    (
        grouped(past_sequence_lengths_tensor=T("INT64", (2,)), **PAST),
        "PastSequenceLengthsTensor.DataType: expected one of FLOAT32, FLOAT16 at feature level 6_4 "
        "(INT64 at no level), got INT64",
        "KeyTensor.Sizes[2]: expected 4 (of {2, 3, 4}), got 8",
        "PastKeyTensor.Sizes[3]: expected 2 (of {2, 2, 5, 2}), got 4",
        "OutputTensor.Sizes[2]: expected 16 (the inputs imply {2, 3, 16}), got 8",
    ),
    (
        quantize(quantization_type="NONE"),
        "QuantizationType: expected SCALE or SCALE_ZERO_POINT, got NONE",
    ),
    (
        quantize(quantization_type="SCALE_ZERO_POINT"),
        "QuantizationTensors: expected 2 tensors (SCALE_ZERO_POINT: a scale, a zero point), got 1",
    ),
    (
        with_zero(quantization_type="SCALE"),
        "QuantizationTensors: expected 1 tensor (SCALE: a scale), got 2",
    ),
    (
        with_zero(sizes=(2, 4)),
        "QuantizationTensors[1].Sizes[1]: expected a divisor of 6 (InputTensor.Sizes[1]), got 4",
    ),
    (
        quantize(quantization_tensors=[T("FLOAT32", (3,))]),
        "QuantizationTensors[0].DimensionCount: expected 2 (InputTensor.DimensionCount), got 1",
    ),
    (
        quantize(quantization_tensors=[T("FLOAT16", (2, 3))]),
        "QuantizationTensors[0].DataType: expected FLOAT32 (InputTensor.DataType), got FLOAT16",
    ),
    (
        with_zero(data_type="FLOAT32"),
        "QuantizationTensors[1].DataType: expected INT8 or another integer type (a zero point), "
        "got FLOAT32",
    ),
    (
        with_zero(data_type="UINT4"),
        "OutputTensor.DataType: expected UINT4 (QuantizationTensors[1].DataType), got INT8",
    ),
    (
        quantize(dml.Dequantize, quantization_tensors=[T("INT8", (2, 3))]),
        "QuantizationTensors[0].DataType: expected FLOAT32 or FLOAT16 (a scale), got INT8",
    ),
    (
        with_zero(dml.Dequantize, "UINT8"),
        "QuantizationTensors[1].DataType: expected INT8 (InputTensor.DataType), got UINT8",
    ),
    (
        quantize(dml.Dequantize, output_tensor=T("FLOAT16", (2, 6))),
        "OutputTensor.DataType: expected FLOAT32, got FLOAT16",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("desc", "expected"), [(case[0], case[1:]) for case in BROKEN])
def test_broken(desc, expected):
    found = [str(v).removeprefix(f"{desc.NAME}.") for v in dml.Device("cpu").check(desc)]
    assert found == [*expected]


def test_outputs_of_what_does_not_fit_are_not_made():
    for desc in (attention(**NOTHING), attention(head_count=0), attention(head_count=3)):
        fields = {info.attribute: getattr(desc, info.attribute) for info in desc.fields()}
        del fields["output_tensor"]
        with pytest.raises(InvalidDescriptorError):
            type(desc).with_outputs(**fields)


def test_sizes_of_zero_are_reported():
    for desc in (
        quantize(quantization_tensors=[T("FLOAT32", (2, 0))]),
        attention(query_tensor=T("FLOAT32", (2, 0, 8))),
        dataclasses.replace(quantize(), input_tensor=T("FLOAT32", (0, 6))),
    ):
        assert dml.Device("cpu").check(desc)
