"""Indices that are known before a run: check finds those that would stop it, and only those."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_files import run, tensor, value_resource, write_model, zeros

import anydml as dml
from anydml import IndexOutOfRangeError, ModelError
from anydml.devices.binding import elements_size
from anydml.models import Limits
from anydml.models.report import report
from anydml.ops._registry import OPERATORS
from support.seconds import result_within
from support.strategies import descriptors

DEVICE = dml.Device("cpu")
KINDS = sorted(set(OPERATORS.values()), key=lambda kind: kind.NAME)


def problems(folder, model, limits=None):
    found = report(write_model(folder, model), DEVICE, limits or Limits(output_dir=folder))
    assert found.good is (not found.problems)
    return list(found.problems)


def octets(tensor, values):
    """Numbers for a tensor's buffer, gaps included."""
    count = elements_size(tensor) // tensor.data_type.element_size
    return np.resize(np.array(values, tensor.data_type.numpy), count)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
@given(data=st.data())
def test_check_finds_what_dispatch_refuses(kind, data, tmp_path_factory):
    desc = data.draw(descriptors(kind))
    call = desc.lower().calls[-1]  # only operators of one call have indices
    buffers, resources, bindings = {}, {}, {}
    for path, described, info in desc.tensors():
        values = [1]
        if call.indices is not None and path == call.indices.slot:
            maximum = max(call.indices.sizes)
            low = -maximum - 1 if str(described.data_type).startswith("INT") else 0
            values = data.draw(st.lists(st.integers(low, maximum + 1), min_size=1, max_size=20))
        buffers[path] = octets(described, values)
        resources[path] = value_resource(buffers[path].tolist(), str(described.data_type))
        bindings.setdefault(info.name, []).append(path)
    bound = {
        info.name: [buffers[path] for path in bindings[info.name]] if info.many
        else buffers[info.name]
        for info in desc.bind_points()
    }  # fmt: skip
    expected = []
    try:
        DEVICE.create_operator(desc).compile().dispatch(**bound)
    except IndexOutOfRangeError as error:
        expected = [f"Command at index 0: {error} (resource '{call.indices.slot}')"]
    model = {
        "resources": resources,
        "dispatchables": {"op": desc.to_json()},
        "commands": [{"type": "dispatch", "dispatchable": "op", "bindings": bindings}],
    }
    assert problems(tmp_path_factory.mktemp("model"), model) == expected


def gather(indices, bindings=None, *, data_type="INT32", count=3, flags=None, before=(), **more):
    """A gather of `count` from 4 elements; its indices are the resource I."""
    lookup = tensor([count], data_type) | ({"Flags": flags} if flags else {})
    owned = {"bindings": {"IndicesTensor": "I"}} if flags else {}
    bound = {"InputTensor": "X", "OutputTensor": "Y"} | ({} if flags else {"IndicesTensor": "I"})
    return {
        "resources": {"X": value_resource([1, 2, 3, 4]), "I": indices, "Y": zeros(count)} | more,
        "dispatchables": {
            "gather": {
                "type": "GATHER_ELEMENTS", "InputTensor": tensor([4]), "IndicesTensor": lookup,
                "OutputTensor": tensor([count]), "Axis": 0,
            } | owned,
            "copy": {
                "type": "ELEMENT_WISE_IDENTITY", "InputTensor": tensor([1], "INT32"),
                "OutputTensor": tensor([1], "INT32"),
            },
        },
        "commands": [
            *before,
            {"type": "dispatch", "dispatchable": "gather", "bindings": bound | (bindings or {})},
        ],
    }  # fmt: skip


# Makes the second index another one.
COPY = {
    "type": "dispatch",
    "dispatchable": "copy",
    "bindings": {"InputTensor": "J", "OutputTensor": {"name": "I", "elementOffset": 1}},
}


def bad(position, value, at=0, low=-4):
    return [
        f"Command at index {at}: GATHER_ELEMENTS.IndicesTensor[{position}]: expected {low}..3 "
        f"(axis 0 of size 4), got {value} (resource 'I')"
    ]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        (value_resource([0, -4, 3], "INT32"), []),
        (value_resource([0, 4, 9], "INT32"), bad(1, 4)),
        (value_resource([0, 1, -5], "INT32"), bad(2, -5)),
        ({"initialValuesDataType": "INT32", "initialValues": {"value": 7, "valueCount": 3}},
         bad(0, 7)),
        ({"initialValuesDataType": "INT32",
          "initialValues": {"valueStart": 2, "valueDelta": 1, "valueCount": 3}}, bad(2, 4)),
        # Bytes are bytes, whatever type the resource has; what no value fills is 0.
        (value_resource([0, 0, 1], "FLOAT32"), bad(2, 0x3F800000)),
        (value_resource([5], "INT32", sizeInBytes=16, initialValuesOffsetInBytes=4), bad(1, 5)),
        (value_resource([5], "INT32", sizeInBytes=16, initialValuesOffsetInBytes=12), []),
        ([{"type": "INT8", "value": 4}, {"type": "INT8", "value": 1}], []),
    ],
)  # fmt: skip
def test_values(tmp_path, indices, expected):
    if isinstance(indices, list):
        indices = {"initialValues": indices, "sizeInBytes": 12}
        expected = bad(0, 260)
    model = gather(indices)
    assert problems(tmp_path, model) == expected
    if expected:
        with pytest.raises(ModelError) as error:
            run(tmp_path, model)
        assert error.value.problems == tuple(expected)


@pytest.mark.parametrize("data_type", ["INT64", "UINT64", "INT32", "UINT32"])
def test_extremes_of_types(tmp_path, data_type):
    info = np.iinfo(data_type.lower())
    for value in {info.min, info.max, info.max // 2 + 1}:
        expected = bad(2, value, low=-4 if info.min else 0) if value else []
        assert problems(tmp_path, gather(value_resource([0, 1, int(value)], data_type),
                                         data_type=data_type)) == expected  # fmt: skip


def test_offsets(tmp_path):
    indices = value_resource([9, 0, 1, 2, 9], "INT32")
    for offset, expected in ((0, bad(0, 9)), (1, []), (2, bad(2, 9))):
        source = {"name": "I", "elementOffset": offset}
        assert problems(tmp_path, gather(indices, {"IndicesTensor": source})) == expected


@pytest.mark.parametrize("suffix", [".npy", ".bin"])
def test_files(tmp_path, suffix):
    values = np.array([1, 2, 4], ">i4" if suffix == ".npy" else "<i4")
    name = f"indices{suffix}"
    np.save(tmp_path / name, values) if suffix == ".npy" else values.tofile(tmp_path / name)
    source = {"initialValuesDataType": "INT32", "initialValues": {"sourcePath": name}}
    assert problems(tmp_path, gather(source)) == bad(2, 4)


def test_what_has_been_written_is_not_known(tmp_path):
    indices = value_resource([0, 4, 1], "INT32")
    good = gather(indices, before=[COPY], J=value_resource([2], "INT32"))
    assert problems(tmp_path, good) == []
    assert run(tmp_path, good)[1]["Y"].view("f4").tolist() == [1, 3, 2]
    late = gather(indices, J=value_resource([2], "INT32"))
    late["commands"].append(COPY)
    assert problems(tmp_path, late) == bad(1, 4)
    # What a refused dispatchable would write is not known.
    refused = gather(
        indices, before=[COPY | {"dispatchable": "none"}], J=value_resource([2], "INT32")
    )
    assert len(problems(tmp_path, refused)) == 1


def test_an_owned_tensor_is_copied_before_the_first_command(tmp_path):
    model = gather(value_resource([0, 4, 1], "INT32"), flags="OWNED_BY_DML", before=[COPY],
                   J=value_resource([2], "INT32"))  # fmt: skip
    assert problems(tmp_path, model) == bad(1, 4, at=1)


def test_every_dispatch_is_reported_in_order(tmp_path):
    model = gather(value_resource([0, 4, 1], "INT32"), K=value_resource([5, 0, 0], "INT32"))
    (first,) = model["commands"]
    other = first | {"bindings": first["bindings"] | {"IndicesTensor": "K"}}
    model["commands"] = [first, other, {"type": "print", "resource": "Y"}, first]
    second = bad(0, 5, at=1)[0].replace("'I'", "'K'")
    assert problems(tmp_path, model) == [*bad(1, 4), second, *bad(1, 4, at=3)]


def test_a_run_that_fails_has_run_nothing(tmp_path):
    model = gather(value_resource([0, 4, 1], "INT32"))
    shows = {"type": "print", "resource": "X"}
    written = {"type": "writeFile", "resource": "X", "targetPath": "x.bin"}
    model["commands"] = [shows, written, *model["commands"]]
    with pytest.raises(ModelError):
        run(tmp_path, model)
    assert not (tmp_path / "x.bin").exists()


def test_bindings_that_do_not_fit_are_told_alone(tmp_path):
    model = gather(value_resource([9, 9], "INT32"))
    (problem,) = problems(tmp_path, model)
    assert "Expected at least 12 bytes of resource 'I'" in problem


def test_no_more_is_made_than_a_tensor_reads(tmp_path):
    long = {"valueStart": 1, "valueDelta": 1, "valueCount": 2**30 - 1}
    indices = {"initialValuesDataType": "INT32", "initialValues": long}
    limits = Limits(tmp_path, 2**33)
    assert result_within(1, lambda: problems(tmp_path, gather(indices), limits)) == []
    beyond = problems(tmp_path, gather(indices), Limits(tmp_path, 2**31))
    assert all("--memory-limit" in problem for problem in beyond)
    # However often they are read.
    model = gather(value_resource(list(range(4)) * 10**5, "INT32"), count=400_000)
    model["commands"] *= 1000
    assert result_within(5, lambda: problems(tmp_path, model)) == []
