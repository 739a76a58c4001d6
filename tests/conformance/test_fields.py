"""Kinds of fields: what they take, where their ranges end, JSON both ways, `repr`."""

import copy
import itertools
import json
import math
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import sample_operators
from sample_operators import Curve, Everything, F, Other, everything

import anydml as dml
from anydml.devices.backends import cpu
from anydml.ops import _registry as registry
from anydml.ops._fields import Real

DEVICE = dml.Device("cpu")
NAMES = {**vars(dml), "Curve": Curve, "Everything": Everything}
INF, NAN = float("inf"), float("nan")
HUGE = 10**400


def paths(desc, level="6_4"):
    return {
        v.path.removeprefix("EVERYTHING."): v
        for v in desc.violations(dml.FeatureLevel.parse(level))
    }


def same(desc):
    """JSON text, `repr`, pickle and copy give an equal descriptor of the same hash."""
    text = json.dumps(desc.to_json(), allow_nan=False)
    for other in (
        Everything.read_described(json.loads(text)),
        eval(repr(desc), dict(NAMES)),
        pickle.loads(pickle.dumps(desc)),
        copy.deepcopy(desc),
    ):
        assert other == desc, repr(other)
        assert hash(other) == hash(desc)
        assert repr(other) == repr(desc)
    return True


GOOD = [
    ("step", -(2**31), -(2**31)), ("step", 2**31 - 1, 2**31 - 1), ("step", np.int8(-3), -3),
    ("keep", False, False), ("keep", np.bool_(True), True),
    ("epsilon", 0.1, float(np.float32(0.1))), ("epsilon", 3, 3.0), ("epsilon", np.float16(2), 2.0),
    ("epsilon", NAN, NAN), ("epsilon", -INF, -INF), ("epsilon", -0.0, -0.0),
    ("epsilon", Fraction(1, 4), 0.25), ("epsilon", 1e-50, 0.0),
    ("epsilon", 3.4028234e38, float(np.finfo("f4").max)),
    ("scales", [1, 0.1, NAN], (1.0, float(np.float32(0.1)), NAN)), ("scales", (), ()),
    ("scales", None, None), ("pads", None, None), ("pads", [0, 2**32 - 1], (0, 2**32 - 1)),
    ("shifts", range(-2, 2), (-2, -1, 0, 1)),
    ("value", 0.1, float(np.float16(0.1))), ("value", NAN, NAN), ("value", -INF, -INF),
    ("value", 65504, 65504.0), ("value", -0.0, -0.0),
    ("scale_bias", None, None), ("scale_bias", (2, 0.1), (2.0, float(np.float32(0.1)))),
    ("scale_bias", dml.ScaleBias(scale=-INF, bias=NAN), (-INF, NAN)),
    ("window", [3, 2**32 - 1], (3, 2**32 - 1)), ("window", dml.Size2D(width=1, height=2), (1, 2)),
    ("fused_activation", None, None), ("fused_activation", Curve(alpha=0.5), Curve(alpha=0.5)),
    ("activations", [Curve(alpha=1), Curve(alpha=NAN)], (Curve(alpha=1), Curve(alpha=NAN))),
]  # fmt: skip


def test_what_a_field_is_as_people_are_shown_it():
    drawing = {info.attribute: (info.text, info.choices) for info in Everything.fields()}
    types = "one of " + ", ".join(member.suffix for member in dml.DataType)
    assert drawing == {
        **{name: (text, text) for name, text in {
            "input_tensor": "input tensor", "bias_tensor": "input tensor, optional",
            "output_tensor": "output tensor", "count_tensor": "output tensor, optional",
            "step": "INT", "keep": "BOOL", "epsilon": "FLOAT", "dimension_count": "UINT",
            "scales": "FLOAT array, optional", "pads": "UINT array, optional",
            "shifts": "INT array, optional", "value": "scalar", "delta": "scalar",
            "scale_bias": "scale and bias, optional", "window": "width and height",
        }.items()},
        "value_data_type": ("DataType", types),
        "fused_activation": ("operator, optional", "one of Curve, optional"),
        "activations": ("operators", "a sequence of operators, each one of Curve"),
    }  # fmt: skip
    lists = {info.attribute: info.text for info in (*dml.Join.fields(), *dml.Split.fields())}
    assert lists["input_tensors"] == "input tensors"
    assert lists["output_tensors"] == "output tensors"


@pytest.mark.parametrize("pair", ["34", {3, 4}, {3: 1, 4: 2}, b"34", (3,), (3, 4, 5), 3])
def test_a_structure_is_given_by_its_members_in_order(pair):
    with pytest.raises(dml.InvalidDescriptorError, match="Window: expected a Size2D, or two n"):
        everything(window=pair)
    assert everything(window=(3, 4)).window == everything(window=[3, 4]).window


def test_what_a_list_of_tensors_is():
    with pytest.raises(dml.InvalidDescriptorError, match="InputTensors: expected a sequence of"):
        dml.Join(input_tensors=5, output_tensor=F, axis=0)
    with pytest.raises(dml.InvalidDescriptorError, match="OutputTensor: expected a TensorDesc"):
        dml.Join(input_tensors=[F], output_tensor=[F], axis=0)


def test_a_number_larger_than_any_float_is_shown_as_it_is():
    desc = everything(epsilon=1e39)
    assert desc.to_json()["Epsilon"] == 1e39
    assert "epsilon=1e+39" in repr(desc)
    assert paths(desc)["Epsilon"].got == 1e39


def test_what_has_no_default_is_required():
    with pytest.raises(TypeError, match="expected a value for output_tensor, step, keep, epsilon"):
        Everything(input_tensor=F)


@pytest.mark.parametrize(("kind", "number"), [("UINT64", 2**64 - 1), ("INT64", -(2**63))])
def test_the_largest_integers(kind, number):
    desc = dml.FillValueConstant(output_tensor=dml.TensorDesc(kind, (2,)), value_data_type=kind,
                                 value=number)  # fmt: skip
    assert desc.value == number
    assert not desc.violations(dml.FeatureLevel.LEVEL_6_0)


@pytest.mark.parametrize(("name", "arguments", "kept"), GOOD, ids=str)
def test_taken_and_kept(name, arguments, kept):
    desc = everything(**{name: arguments})
    value = getattr(desc, name)
    assert paths(desc) == {}
    assert same_bits(value, kept)
    assert same(desc)


def same_bits(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    return type(a) is type(b) and a == b


class Rising:
    def __index__(self):
        raise ValueError("not now")


WRONG = {
    "step": [True, 1.0, "1", None, [1], NAN, 2**64, HUGE, Rising(), F],
    "keep": [0, 1, "true", None, 1.0, np.array(True)],
    "epsilon": [True, np.bool_(0), "1", None, [1.0], 1j, HUGE, np.array(1.0), b"1", F],
    "scales": [1.0, "12", b"12", {1.0: 2}, [True], ["1"], itertools.repeat(1.0), [1.0] * 9, [[1]]],
    "pads": [1, "12", [1.0], [True], itertools.count(), [0] * 9],
    "shifts": [1, [None], itertools.cycle([1])],
    "value": [True, None, "1", [1], HUGE, 1j],
    "delta": ["-2", False],
    "scale_bias": [1, (1,), (1, 2, 3), "12", {"Scale": 1, "Bias": 2}, ("1", 2), (True, 1)],
    "window": [None, 3, (1,), (1.0, 2), ("1", "2"), itertools.repeat(1)],
    "fused_activation": [3, "RELU", Curve, F, [], Other(input_tensor=F)],
    "activations": [None, 3, Curve(alpha=1), [Curve(alpha=1)] * 9, [None], [Other(input_tensor=F)],
                    itertools.repeat(Curve(alpha=1))],
    "input_tensor": [None], "bias_tensor": [3, [F]], "output_tensor": [None],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in WRONG.items() for value in values],
    ids=lambda part: repr(part).partition(" at 0x")[0],
)
def test_values_of_another_kind(name, value):
    with pytest.raises(dml.InvalidDescriptorError) as error:
        everything(**{name: value})
    (violation,) = error.value.violations
    info = next(info for info in Everything.fields() if info.attribute == name)
    assert violation.path == f"EVERYTHING.{info.name}"
    assert violation.rule == info.kind.accepted
    assert len(str(violation)) < 400


OUTSIDE = [
    ({"step": 2**31}, "Step", r"-2^31..2^31 - 1 (INT)"),
    ({"step": -(2**31) - 1}, "Step", "(INT)"),
    ({"epsilon": 3.5e38}, "Epsilon", "at most 3.4028234663852886e+38 in magnitude"),
    ({"epsilon": -1e300}, "Epsilon", "(FLOAT)"),
    ({"scales": [1, 1e39]}, "Scales[1]", "(FLOAT)"),
    ({"pads": [-1]}, "Pads[0]", "0..2^32 - 1 (UINT)"),
    ({"shifts": [0, 2**31]}, "Shifts[1]", "(INT)"),
    ({"value": 65520}, "Value", "at most 65504.0 in magnitude, or an infinity or NaN (FLOAT16)"),
    ({"value_data_type": "INT8", "value": 128}, "Value", "an integer in -128..127 (INT8)"),
    ({"value_data_type": "INT8", "value": 1.0}, "Value", "an integer in -128..127 (INT8)"),
    ({"value_data_type": "UINT64", "value": -1}, "Value", "an integer in 0..18446744073709551615"),
    ({"value_data_type": "UINT8", "value": 0, "delta": -129}, "Delta", "an integer in -128..255"),
    ({"value_data_type": "UINT8", "value": 0, "delta": 256}, "Delta", "an integer in -128..255"),
    ({"value_data_type": "UINT4", "value": 16}, "Value", "an integer in 0..15 (UINT4)"),
    ({"scale_bias": (1, 1e39)}, "ScaleBias.Bias", "(FLOAT)"),
    ({"window": (-1, 2)}, "Window.Width", "(UINT)"),
    ({"window": (1, 2**32)}, "Window.Height", "(UINT)"),
    ({"dimension_count": 3}, "DimensionCount", "0 (the length of Scales)"),
    ({"fused_activation": Curve(alpha=1e39)}, "FusedActivation.Alpha", "(FLOAT)"),
    ({"fused_activation": Curve(alpha=1, input_tensor=F)}, "FusedActivation.InputTensor",
     "no tensor"),
    ({"activations": [Curve(alpha=1), Curve(alpha=-1e39)]}, "Activations[1].Alpha", "(FLOAT)"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "path", "rule"), OUTSIDE, ids=str)
def test_ranges(arguments, path, rule):
    found = paths(everything(**arguments))
    assert path in found
    assert rule in found[path].rule
    assert "EVERYTHING" in str(found[path])


def test_a_step_back_of_an_unsigned_type_is_kept_by_its_bits():
    desc = everything(value_data_type="UINT8", value=10, delta=-2)
    assert desc.delta == 254
    assert desc == everything(value_data_type="UINT8", value=10, delta=254)
    assert paths(desc) == {}
    assert same(desc)
    assert everything(value_data_type="INT8", value=1, delta=-2).delta == -2
    assert everything(value_data_type="INT8", value=1, delta=-128).delta == -128
    assert everything(value_data_type="UINT8", value=1, delta=-128).delta == 128
    for delta in (-129, -1.0, 256):  # no integer of 8 bits
        assert "Delta" in paths(everything(value_data_type="UINT8", value=1, delta=delta))


def test_values_that_differ_in_bits_differ():
    descs = [everything(epsilon=value) for value in (0.0, -0.0, NAN, INF, 1.0)]
    assert len(set(descs)) == 5
    assert everything(epsilon=NAN) == everything(epsilon=-NAN)
    assert everything(epsilon=0.1) == everything(epsilon=np.float32(0.1))
    for value in (0.0, -0.0, 1.5, INF, NAN):
        assert Real(value) == value
        assert (Real(value) != value) is False
        assert hash(Real(value)) == hash(Real(value))
    assert Real(-0.0) != 0.0
    assert Real(0.0) == 0
    assert Real(2.0) != "2"
    assert Real(1.0) != HUGE
    assert Real(NAN) != HUGE
    assert Real(NAN) != 1.0
    assert Real(1.0) != NAN


def read(**changed):
    arguments = everything().to_json() | changed
    return Everything.read_json(arguments)


def test_json_forms():
    assert everything().to_json() == {
        "type": "DML_OPERATOR_EVERYTHING",
        "InputTensor": F.to_json(), "OutputTensor": F.to_json(),
        "Step": -3, "Keep": True, "Epsilon": 0.1, "DimensionCount": 0, "ValueDataType": "FLOAT16",
        "Value": 1.5, "Delta": -2.0, "Window": {"Width": 4, "Height": 2}, "Activations": [],
    }  # fmt: skip
    for name in ("BiasTensor", "CountTensor", "Scales", "ScaleBias", "FusedActivation"):
        assert read(**{name: None}) == everything()
    assert read(Value={"UInt16": 0x3C00}).value == 1.0
    for delta, kept in ((-128, 128), (-1, 255), (255, 255)):
        assert read(ValueDataType="UINT8", Value=0, Delta=delta).delta == kept
    for delta in (-129, 256):
        with pytest.raises(dml.ModelError, match="Delta"):
            read(ValueDataType="UINT8", Value=0, Delta=delta)
    assert read(ValueDataType="FLOAT32", Value={"Float32": 7}).value == 7.0
    assert read(ValueDataType="INT64", Value={"Int64": -(2**63)}, Delta=1).value == -(2**63)
    assert read(ValueDataType="UINT8", Value=1, Delta=-2).delta == 254
    assert read(Epsilon="-INF").epsilon == -INF
    assert read(ScaleBias={"Scale": 2, "Bias": "nan"}) == everything(scale_bias=(2, NAN))
    curve = {"type": "ACTIVATION_CURVE", "desc": {"Alpha": 0.5, "InputTensor": None}}
    assert read(FusedActivation=curve) == everything(fused_activation=Curve(alpha=0.5))
    curve = {"Type": "DML_OPERATOR_ACTIVATION_CURVE", "Alpha": 0.5}
    assert read(Activations=[curve]) == everything(activations=[Curve(alpha=0.5)])
    everything_there = everything(
        bias_tensor=F, count_tensor=dml.TensorDesc("UINT32", (1,)), scales=[1, 2],
        scale_bias=(1, 2), fused_activation=Curve(alpha=1))  # fmt: skip
    assert same(everything_there)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Step": 1.0}, "Step: expected an integer in -2147483648..2147483647"),
        ({"Step": True}, "Step: expected an integer"),
        ({"Keep": 1}, "Keep: expected true or false"),
        ({"Epsilon": "1"}, "Epsilon: expected a number, 'nan', 'inf' or '-inf'"),
        ({"Epsilon": False}, "Epsilon: expected a number"),
        ({"Epsilon": HUGE}, "expected a number that FLOAT64 holds"),
        ({"Scales": 3}, "Scales: expected an array"),
        ({"Scales": [1, "x"]}, r"Scales\[1\]: expected a number"),
        ({"Shifts": [2**31]}, r"Shifts\[0\]: expected an integer"),
        ({"Value": None}, "Value: expected a number"),
        ({"Value": {"Float16": 1}}, "a number or an object of one field 'UInt16' .FLOAT16."),
        ({"Value": {"UInt16": 1, "UInt8": 2}}, "an object of one field 'UInt16'"),
        ({"Value": {}}, "an object of one field"),
        ({"Value": {"UInt16": 2**16}}, "expected an integer in 0..65535"),
        ({"ValueDataType": "INT8", "Value": 1.0}, "Value: expected an integer in -128..127"),
        ({"ValueDataType": "UINT8", "Value": -1}, "Value: expected an integer in 0..255"),
        ({"ValueDataType": "UINT4", "Value": {"UInt4": 1}}, "Value: expected a number .UINT4."),
        ({"ScaleBias": [1, 2]}, "ScaleBias: expected an object"),
        ({"ScaleBias": {"Scale": 1}}, "ScaleBias.Bias: expected a value"),
        ({"Window": {"Width": -1, "Height": 1}}, "Width: expected an integer in 0.."),
        ({"FusedActivation": {"type": "RELU"}}, r"expected an operator \(ACTIVATION_CURVE\)"),
        ({"FusedActivation": {"Alpha": 1}}, "type: expected a value"),
        ({"FusedActivation": {"type": "ACTIVATION_CURVE"}}, "Alpha: expected a value"),
        ({"Activations": [3]}, r"Activations\[0\]: expected an object"),
        ({"Activations": None}, "Activations: expected an array"),
        ({"InputTensor": None}, "InputTensor: expected an object"),
    ],
)
def test_json_that_cannot_be_read(changed, message):
    with pytest.raises(dml.ModelError, match=message):
        read(**changed)


def test_an_operator_alone_needs_the_tensors_that_it_has_not_inside_another():
    found = Curve(alpha=1).violations(dml.FeatureLevel.parse("6_4"))
    assert [violation.path for violation in found] == [
        "ACTIVATION_CURVE.InputTensor", "ACTIVATION_CURVE.OutputTensor",
    ]  # fmt: skip
    assert (
        Curve(alpha=1, input_tensor=F, output_tensor=F).violations(dml.FeatureLevel(0x6400)) == []
    )
    late = everything(fused_activation=Curve(alpha=1)).violations(dml.FeatureLevel.parse("2_1"))
    (violation,) = late
    assert violation.path == "EVERYTHING.FusedActivation.FeatureLevel"
    assert "3_0 or above" in violation.rule
    assert everything(fused_activation=Curve(alpha=1)).violations(dml.FeatureLevel(0x3000)) == []


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setitem(registry.OPERATORS, "EVERYTHING", Everything)


def test_tensors_that_are_left_out(known):
    x, bias = np.arange(6, dtype="f4").reshape(2, 3), np.ones((2, 3), "f4")
    device = dml.Device("reference")
    plain = device.create_operator(everything()).compile()
    assert plain.program.calls[0].inputs == ("InputTensor", None)
    assert plain.program.calls[0].outputs == ("OutputTensor", None)
    assert "nothing" in str(plain.program)
    assert (plain(x) == x * -3).all()
    for name in ("BiasTensor", "CountTensor"):
        with pytest.raises(dml.BindingError, match=f"{name}: expected nothing"):
            plain.dispatch(InputTensor=x, OutputTensor=x.copy(), **{name: x.copy()})
    with pytest.raises(
        dml.BindingError, match="Nonsense: expected one of InputTensor, OutputTensor"
    ):
        plain.dispatch(InputTensor=x, OutputTensor=x.copy(), Nonsense=x)
    full = everything(bias_tensor=F, count_tensor=dml.TensorDesc("UINT32", (1,)))
    result = device.create_operator(full).compile()(x, bias)
    assert (result.output_tensor == x * -3 + 1).all()
    assert result.count_tensor.tolist() == [6]
    with pytest.raises(dml.BindingError, match="BiasTensor: expected a binding, got none"):
        device.create_operator(full).compile()(x)


def test_a_kernel_of_the_cpu_is_given_nothing_for_what_is_left_out(monkeypatch):
    arguments = []
    native = SimpleNamespace(
        CompiledCall=lambda *_: SimpleNamespace(dispatch=None),
        kernels=lambda: ["everything"],
        run=lambda kernel, inputs, outputs, *_: arguments.extend((inputs, outputs)) or -1,
    )
    monkeypatch.setattr(cpu, "native", native)
    x, y = np.zeros((2, 3), "f4"), np.zeros((2, 3), "f4")
    executable = cpu.CpuBackend().compile(everything().lower())
    executable.run({"InputTensor": x, "OutputTensor": y}, False, 1)
    assert [[array is None for array in arrays] for arrays in arguments] == [[False, True]] * 2


def test_a_left_out_tensor_in_a_model(known, tmp_path):
    from anydml.models.check import binding_problems
    from anydml.models.operators import read_bindings

    bindings = read_bindings({"InputTensor": "x", "OutputTensor": "y", "BiasTensor": "z"})
    problems = [*binding_problems(everything(), bindings, {}, initial=False)]
    assert len(problems) == 1
    assert problems[0].startswith("Bind point 'BiasTensor': Expected 0 resources, got 1")


def test_what_people_are_shown():
    text = {info.name: info.choices for info in Everything.fields()}
    assert text["BiasTensor"] == "input tensor, optional"
    assert text["CountTensor"] == "output tensor, optional"
    assert text["Step"] == "INT"
    assert text["Keep"] == "BOOL"
    assert text["Epsilon"] == "FLOAT"
    assert text["Scales"] == "FLOAT array, optional"
    assert text["Value"] == "scalar"
    assert text["ScaleBias"] == "scale and bias, optional"
    assert text["Window"] == "width and height"
    assert text["FusedActivation"] == "one of Curve, optional"
    assert {info.name: info.text for info in Everything.fields()}["Activations"] == "operators"
    assert repr(everything(scale_bias=(2, 0.1), epsilon=INF)).count("bias=0.1") == 1
    assert sample_operators.DEFAULTS["activations"] == []
