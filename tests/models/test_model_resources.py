"""Resources: every form of initial values, sizes, and what is refused."""

import numpy as np
import pytest
from model_files import first_values, only, run, value_resource, zeros

import anydml as dml
from anydml import ModelError
from anydml.models import Limits

TYPES = [t.suffix for t in dml.DataType if t.element_size]
INTEGERS = [name for name in TYPES if "INT" in name]
FLOATS = [name for name in TYPES if "FLOAT" in name]


def load(folder, resource, **limits):
    return run(folder, only({"r": resource}), Limits(output_dir=folder, **limits))


@pytest.mark.parametrize("name", TYPES)
def test_array(tmp_path, name):
    octets, values = first_values(tmp_path, value_resource([1, 2, 3], name), name.lower())
    assert len(octets) == -(-3 * values.itemsize // 4) * 4
    assert values[:3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_range(tmp_path, name):
    info = np.iinfo(name.lower())
    _, values = first_values(tmp_path, value_resource([info.min, info.max], name), name.lower())
    assert values[:2].tolist() == [info.min, info.max]
    for wrong in (info.min - 1, info.max + 1, 1.0, "1", True, None, [1]):
        with pytest.raises(ModelError, match=r"^Resource 'r': initialValues\[1\]: expected"):
            load(tmp_path, value_resource([0, wrong], name))


@pytest.mark.parametrize("name", FLOATS)
def test_floats(tmp_path, name):
    numbers = [0.1, -2, "NaN", "inf", "-INF", -0.0, 1e300]
    _, values = first_values(tmp_path, value_resource(numbers, name), name.lower())
    with np.errstate(over="ignore"):
        expected = np.array([0.1, -2, np.nan, np.inf, -np.inf, -0.0, 1e300], name.lower())
    assert values[:7].tobytes() == expected.tobytes()
    for wrong in ("x", "infinity", None, False, {}):
        with pytest.raises(ModelError, match=r"\[0\]: expected a number"):
            load(tmp_path, value_resource([wrong], name))


def test_a_number_beyond_float64(tmp_path):
    model = '{"resources": {"r": {"initialValuesDataType": "FLOAT32", "initialValues": [0, %s]}},'
    for number in ("1e999", "1" + "0" * 400):
        with pytest.raises(ModelError, match=r"\[1\]: expected a number that FLOAT64 holds"):
            run(tmp_path, model % number + '"dispatchables": {}, "commands": []}')


@pytest.mark.parametrize("name", TYPES)
def test_constant(tmp_path, name):
    resource = {"initialValuesDataType": name, "initialValues": {"value": 7, "valueCount": 5}}
    _, values = first_values(tmp_path, resource, name.lower())
    assert values[:5].tolist() == [7] * 5


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("count", [1, 2, 1000, 70_000])
def test_sequence_is_added_up_in_the_type(tmp_path, name, count):
    start, delta = (3, 7) if "INT" in name else (0.1, 0.3)
    resource = value_resource({"valueStart": start, "valueDelta": delta, "valueCount": count}, name)
    _, values = first_values(tmp_path, resource, name.lower())
    dtype = np.dtype(name.lower())
    number, step = dtype.type(start), dtype.type(delta)
    expected = []
    with np.errstate(all="ignore"):
        for _ in range(count):
            expected.append(number)
            number = dtype.type(number + step)
    assert values[:count].tobytes() == np.array(expected, dtype).tobytes()


def test_list_of_typed_values_is_packed(tmp_path):
    values = [
        {"name": "n", "type": "UINT8", "value": 6},
        {"type": "DML_TENSOR_DATA_TYPE_FLOAT32", "value": 1.5},
        {"type": "INT16", "value": -2},
    ]
    expected = bytes([6]) + np.float32(1.5).tobytes() + np.int16(-2).tobytes()
    for extra in ({}, {"initialValuesDataType": "UNKNOWN"}):
        octets, _ = first_values(tmp_path, {"initialValues": values, **extra}, "u1")
        assert octets == expected + bytes(1)
    with pytest.raises(ModelError, match=r"\[1\].value: expected"):
        load(tmp_path, {"initialValues": [values[0], {"type": "UINT8", "value": 256}]})
    with pytest.raises(ModelError, match=r"\[0\].type: expected a value, got none"):
        load(tmp_path, {"initialValues": [{"value": 1}]})
    with pytest.raises(ModelError, match="initialValuesDataType"):
        load(tmp_path, {"initialValues": [1, 2]})


def test_offset_and_size(tmp_path):
    resource = value_resource([1, 2], "UINT8", initialValuesOffsetInBytes=3, sizeInBytes=6)
    octets, _ = first_values(tmp_path, resource, "u1")
    assert octets == bytes([0, 0, 0, 1, 2, 0])
    text, _ = run(tmp_path, only({"r": resource}, [{"type": "print", "resource": "r"}]))
    assert text == "Resource 'r': 1, 2\n"
    with pytest.raises(
        ModelError, match=r"at least 5 bytes .2 of initial values at offset 3., got 4"
    ):
        load(tmp_path, {**resource, "sizeInBytes": 4})
    with pytest.raises(ModelError, match="got 4"):
        load(tmp_path, value_resource([1, 2], "UINT8", initialValuesOffsetInBytes=3))


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ({}, "initialValues: expected a value, got none"),
        ([], "Expected an object"),
        (value_resource([]), "at least one value"),
        (zeros(0), "at least one value"),
        (value_resource({}), "'value', 'valueStart' or 'sourcePath'"),
        (value_resource({"value": 1}), "initialValues.valueCount: expected a value, got none"),
        (value_resource({"value": 1, "valueStart": 1, "valueCount": 1}), "got several"),
        (value_resource({"value": 1, "sourcePath": "x"}), "got several"),
        (
            value_resource({"valueStart": 1, "valueCount": 1}),
            "valueDelta: expected a value, got none",
        ),
        (value_resource({"value": 1, "valueCount": 1.0}), "valueCount: expected an integer"),
        (value_resource({"value": 1, "valueCount": -1}), "valueCount: expected an integer"),
        (value_resource({"value": 1, "valueCount": 2**32}), "valueCount: expected an integer"),
        ({"initialValues": {"value": 1, "valueCount": 1}}, "'initialValuesDataType' is required"),
        ({"initialValues": {"sourcePath": "raw.bin"}}, "'initialValuesDataType' is required"),
        (value_resource(5), "expected an array or an object"),
        (value_resource("deferred"), "'deferred' is for the outputs of ONNX models"),
        ({"initialValues": [{"type": "UNKNOWN", "value": 1}]}, "a known type, got UNKNOWN"),
        (value_resource([1], "FLOAT31"), "initialValuesDataType: expected one of"),
        (value_resource([1], "float32"), "initialValuesDataType: expected"),
        (value_resource([1], 5), "initialValuesDataType: expected"),
        (value_resource([1], "INT4"), "whole bytes"),
        (value_resource([1], sizeInBytes="4"), "sizeInBytes: expected an integer"),
        (value_resource([1], sizeInBytes=2), "at least 4 bytes"),
    ],
)
def test_refused(tmp_path, resource, message):
    (tmp_path / "raw.bin").write_bytes(b"1234")
    with pytest.raises(ModelError, match=message) as caught:
        load(tmp_path, resource)
    assert str(caught.value).startswith("Resource 'r': ")


def test_memory_is_limited_before_it_is_allocated(tmp_path):
    huge = value_resource({"value": 1, "valueCount": 2**32 - 1}, "FLOAT64")
    with pytest.raises(ModelError, match=r"at most 4294967296 bytes .--memory-limit., got 343597"):
        load(tmp_path, huge)
    with pytest.raises(ModelError, match="--memory-limit"):
        load(tmp_path, value_resource([1], sizeInBytes=2**64 - 1))
    assert load(tmp_path, value_resource([1, 2]), memory_limit=8)
    with pytest.raises(ModelError, match=r"Resources: .* 8 bytes together .*, got 12"):
        run(tmp_path, only({"a": zeros(2), "b": zeros(1)}), Limits(tmp_path, memory_limit=8))
