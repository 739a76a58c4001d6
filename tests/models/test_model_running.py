"""Models that run: every operator, bindings; and references that lead nowhere."""

import copy
import json

import numpy as np
import pytest
from model_files import run, split_model, tensor, value_resource, write_model, zeros

import anydml as dml
from anydml import ModelError
from anydml.models import Limits, load_model, run_model
from anydml.models.check import Checked, Checks, run_problems
from anydml.models.model import read_model
from anydml.ops._registry import OPERATORS
from support.made import plain_values, shared


def one_operator(desc, inputs, outputs):
    """A model that dispatches one operator and prints its outputs."""
    prints = [{"type": "print", "resource": name} for name in outputs]
    bindings = {name: name for name in (*inputs, *outputs)}
    return {
        "resources": inputs | outputs,
        "dispatchables": {"op": desc},
        "commands": [{"type": "dispatch", "dispatchable": "op", "bindings": bindings}, *prints],
    }


def test_split(tmp_path):
    text, buffers = run(tmp_path, split_model())
    assert text == "Resource 'Out1': 1, 2\nResource 'Out2': 3, 4, 5, 6\n"
    assert str(buffers["Out2"].dtype) == "float32"
    assert buffers["Out2"].tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("flags", "allows"),
    [
        ("NONE", False),
        (["DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE"], False),
        (["NONE", "DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION"], True),
    ],
)
def test_execution_flags(tmp_path, flags, allows):
    model = split_model()
    model["dispatchables"]["split"]["executionFlags"] = flags
    dispatchable = load_model(write_model(tmp_path, model)).dispatchables["split"]
    compiled = Checked(dispatchable, dml.Device("cpu")).compiled
    assert compiled.program.allows_half == allows


@pytest.mark.parametrize("form", ["model", "graph"])
def test_a_run_checks_and_lowers_once(tmp_path, monkeypatch, form):
    kind, path = dml.Split, write_model(tmp_path, split_model())
    if form == "graph":
        kind, graph = dml.ActivationRelu, dml.GraphBuilder()
        y = graph.activation_relu(graph.input("x", dml.TensorDesc("FLOAT32", (6,))))
        path.write_text(json.dumps(graph.build(y=y).to_json()))
        np.save(tmp_path / "x.npy", np.arange(6, dtype="f4"))
    called = []
    for name in ("violations", "lower"):
        plain = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *a, n=name, f=plain: called.append(n) or f(*a))
    run_model(load_model(path), write=lambda _: None)
    assert sorted(called) == ["lower", "violations"]


def test_it_prints_to_standard_output(tmp_path, capsys):
    run_model(load_model(write_model(tmp_path, split_model())))
    assert capsys.readouterr().out == "Resource 'Out1': 1, 2\nResource 'Out2': 3, 4, 5, 6\n"


def test_join_of_ranges_of_one_resource(tmp_path):
    desc = {
        "type": "JOIN",
        "InputCount": 3,
        "InputTensors": [tensor([2]), tensor([3]), tensor([1])],
        "OutputTensor": tensor([6]),
        "Axis": 0,
    }
    model = one_operator(
        desc, {"A": value_resource([1, 2, 3, 4]), "B": value_resource([9])}, {"O": zeros(6)}
    )
    model["commands"][0]["bindings"] = {
        "InputTensors": [
            {"name": "A", "elementOffset": 2, "elementCount": 2},
            {"name": "A", "elementOffset": 4, "elementSizeInBytes": 1, "format": "R32_FLOAT"},
            "B",
        ],
        "OutputTensor": ["O"],
        "NoBindPoint": "A",
    }
    assert run(tmp_path, model)[0] == "Resource 'O': 3, 4, 2, 3, 4, 9\n"


def test_scatter_in_place(tmp_path):
    data = tensor([4])
    desc = {
        "type": "DML_OPERATOR_SCATTER_ELEMENTS",
        "Desc": {
            "InputTensor": data, "IndicesTensor": tensor([3], "INT64"),
            "UpdatesTensor": tensor([3]), "OutputTensor": data, "Axis": 0,
        },
    }  # fmt: skip
    inputs = {
        "InputTensor": value_resource([1, 2, 3, 4]),
        "IndicesTensor": value_resource([-1, 0, -1], "INT64"),
        "UpdatesTensor": value_resource([7, 8, 9]),
    }
    model = one_operator(desc, inputs, {})
    model["commands"][0]["bindings"]["OutputTensor"] = "InputTensor"
    model["commands"].append({"type": "print", "resource": "InputTensor"})
    assert run(tmp_path, model)[0] == "Resource 'InputTensor': 8, 2, 3, 9\n"


def test_state_persists(tmp_path):
    model = split_model()
    second = copy.deepcopy(model["commands"][0])
    second["bindings"] = {"InputTensor": "A", "OutputTensors": ["Out2", {"name": "A"}]}
    second["bindings"]["InputTensor"] = "B"
    model["resources"]["B"] = value_resource([10, 20, 30, 40, 50, 60])
    model["commands"] += [second, model["commands"][0], *model["commands"][1:]]
    assert run(tmp_path, model)[0].splitlines()[-2:] == [
        "Resource 'Out1': 30, 40",
        "Resource 'Out2': 50, 60, 5, 6",
    ]


def test_top_k_with_strides_and_enum_names(tmp_path):
    desc = {
        "type": "TOP_K1",
        "desc": {
            "InputTensor": tensor([2, 3], "INT8", Strides=[4, 1]),
            "OutputValueTensor": tensor([2, 2], "INT8"),
            "OutputIndexTensor": tensor([2, 2], "UINT32"),
            "Axis": 1, "K": 2, "AxisDirection": "DML_AXIS_DIRECTION_INCREASING",
        },
    }  # fmt: skip
    model = one_operator(
        desc,
        {"InputTensor": value_resource([3, 1, 2, -99, -5, 7, -128], "INT8")},
        {"OutputValueTensor": zeros(4, "INT8"), "OutputIndexTensor": zeros(4, "UINT32")},
    )
    assert run(tmp_path, model)[0] == (
        "Resource 'OutputValueTensor': 1, 2, -128, -5\nResource 'OutputIndexTensor': 1, 2, 2, 0\n"
    )


@pytest.mark.parametrize("data_type", ["UINT8", "INT8"])
def test_a_resource_of_as_many_bytes_as_elements_is_laid_out_by_the_strides(tmp_path, data_type):
    desc = {
        "type": "ELEMENT_WISE_IDENTITY",
        "InputTensor": tensor([4], data_type, Strides=[0]),
        "OutputTensor": tensor([4], data_type),
    }
    model = one_operator(
        desc,
        {"InputTensor": value_resource([1, 2, 3, 4], data_type)},
        {"OutputTensor": zeros(4, data_type)},
    )
    assert run(tmp_path, model)[0] == "Resource 'OutputTensor': 1, 1, 1, 1\n"


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_every_operator_runs_as_its_descriptor(tmp_path, operator):
    desc = shared(OPERATORS[operator], 7, packed=True)
    arrays = plain_values(desc)
    expected = dml.Device("cpu").create_operator(desc).compile()
    resources, point_names, reference = {}, {}, {}
    for info in desc.bind_points():
        tensors = [*info.paths(getattr(desc, info.attribute))]
        point_names[info.name] = [path for path, _ in tensors]
        arguments = arrays[info.name] if info.many else [arrays[info.name]]
        for (path, item), values in zip(tensors, arguments, strict=True):
            resources[path] = value_resource(values.ravel().tolist(), item.data_type.suffix)
            reference[path] = values.copy()
    model = {
        "resources": resources,
        "dispatchables": {"op": desc.to_json()},
        "commands": [{"type": "dispatch", "dispatchable": "op", "bindings": point_names}],
    }
    _, buffers = run(tmp_path, model)
    expected.dispatch(
        **{
            info.name: [reference[path] for path in point_names[info.name]]
            if info.many
            else reference[info.name]
            for info in desc.bind_points()
        }
    )
    for path, values in reference.items():
        assert buffers[path][: values.nbytes].tobytes() == values.tobytes(), path


class TestOwned:
    def model(self):
        desc = {
            "InputTensor": tensor([4], Flags="OWNED_BY_DML"),
            "IndicesTensor": tensor([2], "UINT32"),
            "OutputTensor": tensor([2]),
            "Axis": 0,
        }
        model = one_operator(
            {"type": "GATHER_ELEMENTS", "desc": desc, "bindings": {"InputTensor": "In"}},
            {"IndicesTensor": value_resource([3, 1], "UINT32")},
            {"OutputTensor": zeros(2)},
        )
        model["resources"]["In"] = value_resource([1, 2, 3, 4])
        return model

    def test_it_is_bound_when_initialised(self, tmp_path):
        assert run(tmp_path, self.model())[0] == "Resource 'OutputTensor': 4, 2\n"

    def test_it_is_not_bound_at_dispatch(self, tmp_path):
        model = self.model()
        model["commands"][0]["bindings"]["InputTensor"] = "In"
        with pytest.raises(ModelError, match="index 0: Bind point 'InputTensor': Expected no"):
            run(tmp_path, model)

    def test_it_must_be_bound(self, tmp_path):
        model = self.model()
        del model["dispatchables"]["op"]["bindings"]
        with pytest.raises(ModelError, match=r"'op': .*Expected 1 resource, got 0"):
            run(tmp_path, model)

    def test_others_are_not_bound_when_initialised(self, tmp_path):
        model = self.model()
        model["dispatchables"]["op"]["bindings"]["IndicesTensor"] = "In"
        with pytest.raises(ModelError, match="'op': Bind point 'IndicesTensor': Expected no"):
            run(tmp_path, model)

    def test_copies_count_for_the_memory_limit(self, tmp_path):
        model = self.model()
        desc = model["dispatchables"]["op"]["desc"]
        desc["InputTensor"] |= {"Sizes": [2**20], "Strides": [0]}
        assert run(tmp_path, model)[0] == "Resource 'OutputTensor': 1, 1\n"
        with pytest.raises(ModelError, match=r"'op': .*--memory-limit.* OWNED_BY_DML .* 4194336"):
            run(tmp_path, model, Limits(tmp_path, memory_limit=2**20))


def test_copies_of_several_dispatchables_count_together(tmp_path):
    model = TestOwned().model()
    first = model["dispatchables"]["op"]
    first["desc"]["InputTensor"] |= {"Sizes": [100], "Strides": [0]}
    for name in ("second", "third"):
        model["dispatchables"][name] = copy.deepcopy(first)
    needed = 16 + 8 + 8 + 3 * 400
    run(tmp_path, model, Limits(tmp_path, memory_limit=needed))
    with pytest.raises(ModelError, match=rf"^Dispatchable 'third': .* got {needed}\."):
        run(tmp_path, model, Limits(tmp_path, memory_limit=needed - 1))


def test_repeated_elements_count_for_the_memory_limit(tmp_path):
    model = split_model()
    desc = model["dispatchables"]["split"]["desc"]
    desc["InputTensor"] |= {"Strides": [0]}
    text, _ = run(tmp_path, model, Limits(tmp_path, memory_limit=24 + 8 + 32 + 20))
    assert text == "Resource 'Out1': 1, 1\nResource 'Out2': 1, 1, 1, 1\n"
    with pytest.raises(ModelError, match=r"'split': .*strides repeat elements, got 84"):
        run(tmp_path, model, Limits(tmp_path, memory_limit=83))


def test_repeated_elements_of_several_inputs_count_together(tmp_path):
    repeated = tensor([6], Strides=[0])
    parts = [repeated, tensor([2], Strides=[3]), repeated]  # one with gaps needs no more
    desc = {"type": "JOIN", "InputCount": 3, "InputTensors": parts, "OutputTensor": tensor([14]),
            "Axis": 0}  # fmt: skip
    model = one_operator(desc, {"A": value_resource([1]), "B": zeros(4)}, {"O": zeros(14)})
    model["commands"][0]["bindings"] = {"InputTensors": ["A", "B", "A"], "OutputTensor": "O"}
    needed = 4 + 16 + 56 + 2 * 20
    run(tmp_path, model, Limits(tmp_path, memory_limit=needed))
    with pytest.raises(ModelError, match=rf"strides repeat elements, got {needed}\."):
        run(tmp_path, model, Limits(tmp_path, memory_limit=needed - 1))


def problems(folder, model, limits, device="cpu"):
    read = read_model(write_model(folder, model), limits)
    return [*run_problems(Checks(read, dml.Device(device), limits))]


class TestBindings:
    @pytest.mark.parametrize(
        ("bindings", "message"),
        [
            ({"OutputTensors": ["Out1"]}, r"OutputTensors': Expected 2 resources, got 1"),
            ({"OutputTensors": "Out1"}, r"OutputTensors': Expected 2 resources, got 1"),
            (
                {"InputTensor": ["A", "A"]},
                r"InputTensor': Expected 1 resource, got 2 .bindings: '",
            ),
            ({"InputTensor": []}, r"InputTensor': Expected 1 resource, got 0"),
            ({"InputTensor": {"name": "A", "elementOffset": 1}}, "at least 24 bytes .* got 20"),
            ({"InputTensor": {"name": "A", "elementOffset": 6}}, "offset below 24 bytes"),
            ({"InputTensor": {"name": "A", "elementOffset": 2**64 - 1}}, "offset below 24 bytes"),
            (
                {"InputTensor": {"name": "A", "elementOffset": 3, "elementSizeInBytes": 1}},
                "multiple of 4 bytes .FLOAT32., got 3",
            ),
            ({"InputTensor": {"elementOffset": 1}}, "name: expected a value, got none"),
            ({"InputTensor": {"name": "A", "elementOffset": -1}}, "elementOffset: expected"),
            ({"InputTensor": {"name": "A", "elementCount": 1.5}}, "elementCount: expected"),
            ({"InputTensor": 5}, "expected a resource's name, an object or an array"),
            ({"InputTensor": [["A"]]}, "expected a resource's name, an object or an array"),
            ({"InputTensor": "X"}, "Unknown resource 'X'"),
            ({"InputTensor": {"name": "A", "counter": "X"}}, "Unknown resource 'X'"),
            ({"NoBindPoint": "X"}, "Unknown resource 'X'"),
            ({"OutputTensors": ["Out1", "A"]}, r"OutputTensors.1.: .* overlap InputTensor"),
            ({"OutputTensors": ["Out2", "Out2"]}, r"OutputTensors.1.: .* overlap OutputTensors.0."),
        ],
    )
    def test_wrong(self, tmp_path, bindings, message):
        model = split_model()
        model["commands"][0]["bindings"] |= bindings
        with pytest.raises(ModelError, match=message) as caught:
            run(tmp_path, model)
        assert str(caught.value).startswith("Command at index 0: ")

    def test_overlaps_are_told_up_to_the_memory_limit(self, tmp_path):
        model = split_model()
        model["commands"][0]["bindings"]["OutputTensors"] = ["Out1", "A"]
        limits = Limits(tmp_path, memory_limit=24 + 8 + 32)
        (problem,) = problems(tmp_path, model, limits)
        assert "overlap InputTensor" in problem
        (problem,) = problems(tmp_path, model, Limits(tmp_path, memory_limit=63))
        assert "--memory-limit" in problem
        model["commands"][0]["bindings"]["OutputTensors"] = ["Out2", "Out2"]
        (problem,) = problems(tmp_path, model, limits)
        assert "overlap OutputTensors[0]" in problem

    def test_alignment_that_the_descriptor_guarantees(self, tmp_path):
        model = split_model()
        desc = model["dispatchables"]["split"]["desc"]
        desc["InputTensor"]["GuaranteedBaseOffsetAlignment"] = 16
        model["resources"]["A"]["initialValues"] += [7] * 8
        bound = model["commands"][0]["bindings"]
        bound["InputTensor"] = {"name": "A", "elementOffset": 4}
        assert run(tmp_path, model)[0].startswith("Resource 'Out1': 5, 6\n")
        bound["InputTensor"] = {"name": "A", "elementOffset": 2}
        with pytest.raises(ModelError, match=r"multiple of 16 bytes .GuaranteedBase.*, got 8"):
            run(tmp_path, model)

    def test_bytes_that_only_round_up_may_be_missing(self, tmp_path):
        part = {"type": "SPLIT", "InputTensor": tensor([3], "UINT8"), "OutputCount": 1, "Axis": 0}
        part["OutputTensors"] = [tensor([3], "UINT8")]
        model = one_operator(
            part,
            {"InputTensor": value_resource([1, 2, 3], "UINT8", sizeInBytes=3)},
            {"OutputTensors": zeros(3, "UINT8", sizeInBytes=3)},
        )
        assert run(tmp_path, model)[0] == "Resource 'OutputTensors': 1, 2, 3\n"
        part["InputTensor"]["TotalTensorSizeInBytes"] = 8
        with pytest.raises(ModelError, match="at least 8 bytes"):
            run(tmp_path, model)

    def test_no_element_size(self, tmp_path):
        model = split_model()
        values = [{"type": "FLOAT32", "value": i} for i in range(9)]
        model["resources"]["A"] = {"initialValues": values}
        assert run(tmp_path, model)[0].startswith("Resource 'Out1': 0, 1\n")
        model["commands"][0]["bindings"]["InputTensor"] = {"name": "A", "elementOffset": 2}
        with pytest.raises(ModelError, match="field 'elementSizeInBytes' is required"):
            run(tmp_path, model)

    def test_an_index_out_of_range_writes_nothing(self, tmp_path):
        model = TestOwned().model()
        model["resources"]["IndicesTensor"] = value_resource([0, 4], "UINT32")
        with pytest.raises(
            ModelError, match=r"Command at index 0: .*\[1\]: expected 0..3 .* got 4"
        ):
            run(tmp_path, model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("resources"), "^resources: expected a value, got none"),
        (lambda m: m.update(dispatchables=[]), "^dispatchables: expected an"),
        (lambda m: m.update(commands={}), "^commands: expected an array"),
        (
            lambda m: m["commands"].append({}),
            "^Command at index 3: type: expected a value, got none",
        ),
        (lambda m: m["commands"].append({"type": "x"}), "3: Expected a command of type dispatch"),
        (lambda m: m["commands"][1].pop("resource"), "1: resource: expected a value, got none"),
        (lambda m: m["commands"][1].update(resource="X"), "1: Unknown resource 'X'"),
        (
            lambda m: m["commands"][1].update(verbose=1),
            "1: verbose: expected",
        ),
        (lambda m: m["commands"][0].pop("bindings"), "0: bindings: expected a value, got none"),
        (lambda m: m["commands"][0].update(bindings=[]), "0: bindings: expected"),
        (lambda m: m["commands"][0].update(dispatchable="X"), "0: Unknown dispatchable 'X'"),
        (lambda m: m["dispatchables"].update(split=5), "^Dispatchable 'split': Expected an object"),
    ],
)
def test_a_model_that_is_wrong(tmp_path, change, message):
    model = split_model()
    change(model)
    with pytest.raises(ModelError, match=message):
        load_model(write_model(tmp_path, model))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "HLSL"}, "type 'HLSL', which needs DxDispatch"),
        ({"type": "onnx"}, "a DirectML operator, got a dispatchable of type 'onnx', which needs"),
        ({"type": "dmlSerializedGraph"}, "sourcePath: expected a value, got none"),
        ({"type": "split"}, "name of a DirectML operator, got 'split'; did you mean 'SPLIT'?"),
        ({"dmlCompileType": "Fast"}, "dmlCompileType: expected one of DmlCompileOp"),
        ({"executionFlags": "FAST"}, "executionFlags: expected one of NONE"),
        ({"executionFlags": [None]}, "executionFlags: expected one of NONE"),
        ({"bindings": "A"}, "bindings: expected an object"),
        ({"bindings": {"InputTensor": "X"}}, "Unknown resource 'X'"),
        ({"desc": {}}, "SPLIT.InputTensor: expected a value, got none"),
    ],
)
def test_a_dispatchable_that_is_wrong(tmp_path, change, message):
    model = split_model()
    model["dispatchables"]["split"] |= change
    with pytest.raises(ModelError, match=message) as caught:
        run(tmp_path, model)
    assert str(caught.value).startswith("Dispatchable 'split': ")


def test_a_field_that_is_wrong_is_told_from_the_outside_in(tmp_path):
    model = split_model()
    model["dispatchables"]["split"]["desc"]["OutputTensors"][1]["Desc"]["Sizes"] = [4.0]
    with pytest.raises(ModelError) as caught:
        load_model(write_model(tmp_path, model))
    assert str(caught.value).startswith(
        "Dispatchable 'split': SPLIT.OutputTensors[1]."
        "Sizes[0]: expected an integer in 0..4294967295, got 4.0 (line 1, column 712)"
    )


def test_every_problem_is_told(tmp_path):
    model = split_model()
    model["resources"]["A"] = 5
    model["dispatchables"]["more"] = {"type": "ROI_POLING"}
    model["commands"][1]["resource"] = "X"
    with pytest.raises(ModelError) as caught:
        load_model(write_model(tmp_path, model))
    starts = [line.split(":")[0] for line in str(caught.value).splitlines()]
    assert starts == ["Resource 'A'", "Dispatchable 'more'", "Command at index 1"]
    # What could be read is checked further, and what could not is no second problem.
    broken = read_model(write_model(tmp_path, model))
    assert Checks(broken, dml.Device("cpu"), broken.limits).wrong_bindings == {}


def test_a_refused_operator_stops_the_run_before_it_begins(tmp_path):
    model = split_model()
    model["dispatchables"]["split"]["desc"] |= {"Axis": 1, "OutputCount": 3}
    model["commands"].insert(0, {"type": "print", "resource": "A"})
    pieces = []
    loaded = load_model(write_model(tmp_path, model))
    with pytest.raises(ModelError) as caught:
        run_model(loaded, dml.Device("cpu", feature_level="2_1"), write=pieces.append)
    assert pieces == []
    lines = str(caught.value).splitlines()
    assert lines[0] == "Dispatchable 'split' (SPLIT): refused at feature level 2_1"
    assert lines[-1] == "  No feature level accepts it"
    for rule in ("SPLIT.OutputCount: ", "SPLIT.InputTensor.DimensionCount: "):
        assert any(line.startswith(f"  {rule}") for line in lines[1:-1]), rule


@pytest.mark.parametrize("field", ["Sizes", "Strides"])
def test_thousands_of_dimensions(tmp_path, field):
    model = split_model()
    model["dispatchables"]["split"]["desc"]["InputTensor"][field] = [2**32 - 1] * 300_000
    with pytest.raises(ModelError, match=f"{field}: expected at most 8 integers, got 300000"):
        run(tmp_path, model)


def test_blocks_of_an_elementwise_operator_count_for_the_memory_limit(tmp_path):
    x = tensor([4_000_000])
    desc = {"type": "ELEMENT_WISE_ABS", "InputTensor": x, "OutputTensor": x}
    values = {"initialValuesDataType": "FLOAT32",
              "initialValues": {"value": -1, "valueCount": 4_000_000}}  # fmt: skip
    model = one_operator(desc, {"X": values}, {"Y": values})
    model["commands"][0]["bindings"] = {"InputTensor": "X", "OutputTensor": "Y"}
    width = dml.ElementWiseAbs.WORKING_BYTES  # of an element of the input or the output
    resources, block = 2 * 16_000_000, 2 * width * 32_768
    with dml.num_threads(1):
        limits = Limits(tmp_path, memory_limit=resources + block)
        assert problems(tmp_path, model, limits) == []
        (problem,) = problems(tmp_path, model, Limits(tmp_path, memory_limit=resources + block - 1))
        assert f"got {resources + block}." in problem
        (problem,) = problems(tmp_path, model, limits, "reference")
        assert f"got {resources + 2 * width * 4_000_000}." in problem


def test_intermediate_results_count_for_the_memory_limit(tmp_path):
    tensor = {"DataType": "FLOAT32", "Sizes": [1000]}
    desc = {"type": "ELEMENT_WISE_ADD1", "ATensor": tensor, "BTensor": tensor,
            "OutputTensor": tensor, "FusedActivation": {"type": "ACTIVATION_RELU"}}  # fmt: skip
    values = {"initialValuesDataType": "FLOAT32", "initialValues": {"value": 1, "valueCount": 1000}}
    model = {
        "resources": {"A": values, "Y": values},
        "dispatchables": {"add": desc},
        "commands": [{"type": "dispatch", "dispatchable": "add",
                      "bindings": {"ATensor": "A", "BTensor": "A", "OutputTensor": "Y"}}],
    }  # fmt: skip
    # The resources, the sum, and what the activation is computed in.
    needed = 2 * 4000 + 4000 + 2 * 1000 * dml.ActivationRelu.WORKING_BYTES
    run(tmp_path, model, Limits(tmp_path, memory_limit=needed))
    with pytest.raises(ModelError, match=rf"intermediate results .* got {needed}\."):
        run(tmp_path, model, Limits(tmp_path, memory_limit=needed - 1))
