"""What an operator contains does what it does as an operator of its own."""

from dataclasses import replace

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from support.made import shared

SQUARE = dml.TensorDesc("FLOAT32", (1, 1, 4, 4))
X = np.random.default_rng(0).normal(size=(1, 1, 4, 4)).astype(np.float32)
CLIP = {"min": -0.25, "max": 1.5, "scale_bias": dml.ScaleBias(2.0, 0.5)}


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_clip_with_a_scale_and_bias(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", SQUARE)
    outputs = {}
    for name, apply in (
        ("gemm", lambda **fused: graph.gemm(x, x, **fused)),
        ("convolution", lambda **fused: graph.convolution(x, x, **fused)),
    ):
        outputs[name] = apply(fused_activation=dml.ElementWiseClip(**CLIP))
        outputs[f"{name} apart"] = graph.element_wise_clip(apply(), **CLIP)
    compiled = dml.Device(device).compile_graph(graph.build(**outputs))
    found = compiled(x=X)
    for name in ("gemm", "convolution"):
        np.testing.assert_array_equal(found[name], found[f"{name} apart"])
    product = (X.astype(np.float64) @ X) * 2 + 0.5
    np.testing.assert_allclose(found["gemm"], product.clip(-0.25, 1.5), rtol=1e-5, atol=1e-6)


def apply(device, desc, *arrays):
    return dml.Device(device).create_operator(desc).compile()(*arrays)


@pytest.mark.parametrize(
    "device", ["cpu", "reference", pytest.param("xla", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_where_results_are_rounded(device, data_type):
    """A scaled input is rounded to its type, and a result before an activation to FLOAT32."""
    if device == "xla":
        pytest.importorskip("jax")
    tensor = dml.TensorDesc(data_type, (1, 1, 64, 64))
    own = tensor.data_type.numpy
    x = np.random.default_rng(3).normal(size=tensor.sizes).astype(own)
    scale = dml.ScaleBias(1.0009765625, 1 / 3)
    desc = dml.ElementWiseAbs(input_tensor=tensor, output_tensor=tensor, scale_bias=scale)
    wide = x.astype(np.float32) * np.float32(scale.scale) + np.float32(scale.bias)
    assert np.array_equal(apply(device, desc, x), np.abs(wide.astype(own)))
    # 1 + 2^-14 times 1 + 2^-14, less 1: what the product has beyond FLOAT32, and FLOAT16, counts.
    half = dml.TensorDesc(data_type, (1, 1, 1, 1))
    desc = dml.Gemm.with_outputs(
        a_tensor=half, b_tensor=half, trans_a="NONE", trans_b="NONE", alpha=1.0, beta=0.0,
        fused_activation=dml.ActivationLinear(alpha=1.0, beta=-1.0),
    )  # fmt: skip
    digits = 14 if data_type == "FLOAT32" else 8
    factor = np.full((1, 1, 1, 1), 1 + 2.0**-digits, own)
    product = np.float32(1 + 2.0 ** (1 - digits) + 2.0 ** (-2 * digits))
    expected = (product - np.float32(1)).astype(own)
    assert apply(device, desc, factor, factor).item() == expected
    assert expected != np.float64(factor.item()) ** 2 - 1 or data_type == "FLOAT16"
    assert expected != own.type(product) - own.type(1) or data_type == "FLOAT32"


def gemm(fused, sizes=(2, 3, 3)):
    tensor = dml.TensorDesc("FLOAT32", sizes)
    return dml.Gemm.with_outputs(
        a_tensor=tensor, b_tensor=tensor, trans_a="NONE", trans_b="NONE", alpha=1.0, beta=0.0,
        fused_activation=fused,
    )  # fmt: skip


def convolution(fused):
    tensor, pair = dml.TensorDesc("FLOAT32", (1, 1, 2, 2)), (1, 1)
    return dml.Convolution.with_outputs(
        input_tensor=tensor, filter_tensor=tensor, mode="CROSS_CORRELATION", direction="FORWARD",
        strides=pair, dilations=pair, start_padding=(0, 0), end_padding=(0, 0),
        output_padding=(0, 0), group_count=1, fused_activation=fused,
    )  # fmt: skip


def rnn(*fused):
    tensor = dml.TensorDesc("FLOAT32", (1, 1, 1, 1))
    return dml.Rnn(
        input_tensor=tensor, weight_tensor=tensor, recurrence_tensor=tensor,
        output_single_tensor=tensor, activation_descs=fused, direction="FORWARD",
    )  # fmt: skip


CLIPPED = dml.ElementWiseClip(min=0, max=1)
LEVELS = [
    (gemm(CLIPPED, (1, 1, 2, 2)), "6_0", "the level from which ELEMENT_WISE_CLIP can be fused"),
    (convolution(CLIPPED), "6_0", "the level from which ELEMENT_WISE_CLIP can be fused"),
    (
        gemm(dml.ActivationSoftmax(), (3, 3)),
        "6_1",
        "the level from which ACTIVATION_SOFTMAX can be fused",
    ),
    (
        gemm(dml.ActivationSoftmax1(axes=(1,))),
        "6_1",
        "the level from which ACTIVATION_SOFTMAX1 can be fused",
    ),
    (convolution(dml.ActivationGelu()), "5_1", "the level that introduced ACTIVATION_GELU"),
    (convolution(dml.ActivationSoftplus(steepness=0.5)), "6_4", "FusedActivation.Steepness"),
    (convolution(dml.ActivationSoftplus(steepness=1)), "1_0", ""),
    (rnn(dml.ActivationSoftplus(steepness=0.5)), "6_4", r"ActivationDescs\[0\].Steepness"),
]


@pytest.mark.parametrize(("desc", "level", "message"), LEVELS)
def test_what_is_inside_needs_a_level(desc, level, message):
    assert dml.Device("cpu").check(desc) == []
    assert dml.Device("cpu").minimum_feature_level(desc).suffix == level
    below = [at for at in dml.FeatureLevel if at < dml.FeatureLevel.parse(level)][-1:]
    for at in below:
        with pytest.raises(dml.InvalidDescriptorError, match=message):
            dml.Device("cpu", feature_level=at).create_operator(desc)


@pytest.mark.parametrize("steepness", [0.0, -1.0, float("nan")])
def test_rules_of_what_is_inside(steepness):
    softplus = dml.ActivationSoftplus(steepness=steepness)
    for desc, path in (
        (gemm(softplus), "GEMM.FusedActivation.Steepness"),
        (rnn(softplus), "RNN.ActivationDescs[0].Steepness"),
    ):
        (found,) = dml.Device("cpu").check(desc)
        assert (found.path, found.rule) == (path, "a number above 0")
        assert dml.Device("cpu").minimum_feature_level(desc) is None


def test_what_is_inside_fits_the_output():
    (found,) = dml.Device("cpu").check(gemm(dml.ActivationSoftmax1(axes=(3,))))
    assert found.path == "GEMM.FusedActivation.Axes[0]"
    assert found.rule.startswith("0..2 ")
    (found,) = dml.Device("cpu").check(gemm(dml.ActivationSoftmax()))
    assert found.path == "GEMM.FusedActivation.InputTensor.Sizes[0]"


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_gemm_with_a_softmax(device, data_type):
    for sizes, fused, axes in (
        ((3, 3), dml.ActivationSoftmax(), -1),
        ((2, 3, 3), dml.ActivationSoftmax1(axes=(2,)), 2),
        ((2, 3, 3), dml.ActivationSoftmax1(axes=(0, 1)), (0, 1)),
    ):
        desc = gemm(fused, sizes)
        tensor = dml.TensorDesc(data_type, sizes)
        desc = replace(desc, a_tensor=tensor, b_tensor=tensor, output_tensor=tensor)
        x = np.random.default_rng(1).normal(size=sizes).astype(tensor.data_type.numpy)
        found = dml.Device(device).create_operator(desc).compile()(x, x)
        powers = np.exp(np.matmul(x, x, dtype=np.float64))
        expected = powers / powers.sum(axes, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if data_type == "FLOAT32" else 1e-3)


@pytest.mark.parametrize("kind", [dml.ElementWiseAdd1, dml.Convolution, dml.BatchNormalization])
def test_only_gemm_contains_a_softmax(kind):
    (info,) = [info for info in kind.fields() if info.attribute == "fused_activation"]
    assert "Softmax" not in info.kind.accepted


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (dml.ActivationSwish, {"sigmoid_input_scale": 1.0}),
        (dml.ActivationLogSoftmax1, {"axes": (0,)}),
        (dml.ActivationParameterizedRelu, {}),
    ],
)
def test_what_cannot_be_fused_says_so(kind, arguments):
    with pytest.raises(dml.ArgumentTypeError) as error:
        kind(**arguments)
    first, _, advice = str(error.value).partition(". It cannot be fused into another operator; ")
    assert first.startswith(f"{kind.__name__}: expected a value for input_tensor, ")
    fusable = {kind.__name__ for kind in OPERATORS.values() if kind.FUSED}
    assert advice.removesuffix(" can.").split(", ") == sorted(fusable)
    with pytest.raises(dml.ArgumentTypeError, match=r"got none$"):
        kind(**arguments, input_tensor=SQUARE)


def test_an_operator_without_an_activation_is_named():
    def found(data_type, level="6_4"):
        tensor = dml.TensorDesc(data_type, (1, 1, 1, 4))
        desc = dml.ElementWiseAdd1(
            a_tensor=tensor, b_tensor=tensor, output_tensor=tensor,
            fused_activation=dml.ActivationRelu(),
        )  # fmt: skip
        return dml.Device("cpu", feature_level=level).check(desc)[0].rule

    hint = "at no level; ELEMENT_WISE_ADD, without FusedActivation, takes it from"
    accepted = "one of FLOAT32, FLOAT16 at feature level"
    assert found("INT32") == f"{accepted} 6_4 (INT32 {hint} 2_1)"
    assert found("INT64", "3_0") == f"{accepted} 3_0 (INT64 {hint} 4_1)"
    assert found("UINT4") == f"{accepted} 6_4 (UINT4 at no level)"


def test_only_convolution_and_gemm_contain_a_clip():
    with pytest.raises(dml.InvalidDescriptorError, match="FusedActivation: expected one of Act"):
        dml.ElementWiseAdd1(
            a_tensor=SQUARE, b_tensor=SQUARE, output_tensor=SQUARE,
            fused_activation=dml.ElementWiseClip(min=0, max=1),
        )  # fmt: skip


SCALED = {"scale_bias": dml.ScaleBias(2.0, 1.0)}
FUSED = {"fused_activation": dml.ActivationLinear(alpha=-2.0, beta=3.0)}
STEPS = [
    (kind, arguments)
    for kind in dict.fromkeys(OPERATORS.values())
    for arguments in (SCALED, FUSED)
    if kind.IN_PLACE and arguments.keys() <= {info.attribute for info in kind.fields()}
]


def in_place_pairs(desc):
    """The names of the output and of each input that has its type and sizes."""
    (output,) = desc.bind_points(Role.OUTPUT)
    tensor = desc.output_tensor
    for info in desc.bind_points(Role.INPUT):
        other = getattr(desc, info.attribute)
        if (other.data_type, other.sizes) == (tensor.data_type, tensor.sizes):
            yield output.name, info.name


@pytest.mark.parametrize("device", ["cpu", "reference", "xla"])
@pytest.mark.parametrize(("kind", "arguments"), STEPS, ids=lambda value: getattr(value, "NAME", ""))
def test_a_scale_or_an_activation_runs_in_place(device, kind, arguments):
    if device == "xla":
        pytest.importorskip("jax")
    drawn = shared(kind, 3, packed=True)
    fields = {info.attribute: getattr(drawn, info.attribute) for info in drawn.fields()}
    desc = kind(**{**fields, **arguments})
    pairs = [*in_place_pairs(desc)]
    assert pairs
    compiled = dml.Device(device).create_operator(desc).compile()
    rng = np.random.default_rng(4)
    arrays = {
        path: (3 * rng.random(tensor.sizes)).astype(tensor.data_type.numpy)
        for path, tensor, _ in desc.tensors(Role.INPUT)
    }
    expected = compiled(**arrays)
    for output, name in pairs:
        bound = {path: array.copy() for path, array in arrays.items()}
        compiled.dispatch(**bound, **{output: bound[name]})
        np.testing.assert_array_equal(bound[name], expected)


def test_many_operators_have_a_scale_or_an_activation():
    names = {kind.NAME.removeprefix("ELEMENT_WISE_") for kind, _ in STEPS}
    assert {"ABS", "ADD1", "CLIP", "CLIP1", "POW", "THRESHOLD"} < names


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_blocks_on_several_threads_run_in_place(data_type):
    tensor = dml.TensorDesc(data_type, (3, 700_000))
    values = np.random.default_rng(5).normal(size=tensor.sizes).astype(tensor.data_type.numpy)
    for kind, arguments, count in (
        (dml.ElementWiseAbs, SCALED, 1),
        (dml.ElementWiseAdd1, FUSED, 2),
    ):
        names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
        assert len(names) == count
        desc = kind(**dict.fromkeys([*names, "output_tensor"], tensor), **arguments)
        compiled = dml.Device("cpu").create_operator(desc).compile()
        expected = compiled(**dict.fromkeys(names, values))
        both = values.copy()
        with dml.num_threads(4):
            compiled.dispatch(**dict.fromkeys(names, both), output_tensor=both)
        np.testing.assert_array_equal(both, expected)


def test_an_optimizer_does_not_run_over_its_step():
    """Of all inputs of one element, the page leaves out this one."""
    one = dml.TensorDesc("FLOAT32", (1, 1, 1, 1))
    numbers = {"learning_rate": 0.5, "beta1": 0.5, "beta2": 0.75, "epsilon": 0.0}
    tensors = {info.attribute: one for info in dml.AdamOptimizer.tensor_fields()}
    desc = dml.AdamOptimizer(**tensors, **numbers)
    compiled = dml.Device("cpu").create_operator(desc).compile()
    bound = {path: np.ones((1, 1, 1, 1), "f4") for path, _, _ in desc.tensors()}
    with pytest.raises(dml.BindingError, match="overlap"):
        compiled.dispatch(**{**bound, "OutputParametersTensor": bound["TrainingStepTensor"]})
    assert bound["TrainingStepTensor"] == 1
    compiled.dispatch(**{**bound, "OutputParametersTensor": bound["GradientTensor"]})
    assert bound["GradientTensor"] != 1


def test_a_part_of_the_input_is_not_in_place():
    tensor = dml.TensorDesc("FLOAT32", (4,))
    desc = dml.ElementWiseAbs(input_tensor=tensor, output_tensor=tensor, **SCALED)
    memory = np.zeros(5, np.float32)
    compiled = dml.Device("cpu").create_operator(desc).compile()
    accepted = "only exactly the memory of InputTensor is allowed"
    with pytest.raises(dml.BindingError, match=f"OutputTensor: .*{accepted}"):
        compiled.dispatch(input_tensor=memory[:4], output_tensor=memory[1:])


def test_a_graph_never_runs_in_place():
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (4,)))
    compiled = dml.Device("cpu").compile_graph(graph.build(y=graph.abs(x, **SCALED)))
    memory = np.zeros(4, np.float32)
    with pytest.raises(dml.BindingError, match=r"y: .*overlap x"):
        compiled.dispatch(x=memory, y=memory)
