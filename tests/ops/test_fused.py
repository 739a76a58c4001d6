"""What an operator contains does what it does as an operator of its own."""

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role
from anydml.registry import OPERATORS
from support import descriptors
from support.choices import Seeded

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


def test_only_convolution_and_gemm_contain_a_clip():
    with pytest.raises(dml.InvalidDescriptorError, match="FusedActivation: expected one of Act"):
        dml.ElementWiseAdd1(
            a_tensor=SQUARE, b_tensor=SQUARE, output_tensor=SQUARE,
            fused_activation=dml.ElementWiseClip(min=0, max=1),
        )  # fmt: skip


SCALED = {"scale_bias": dml.ScaleBias(2.0, 1.0)}
FUSED = {"fused_activation": dml.ActivationLinear(alpha=-2.0, beta=3.0)}
STEPS = [
    (kind, given)
    for kind in dict.fromkeys(OPERATORS.values())
    for given in (SCALED, FUSED)
    if kind.IN_PLACE and given.keys() <= {info.attribute for info in kind.fields()}
]


def in_place_pairs(desc):
    """The names of the output and of each input that has its type and sizes."""
    (output,) = desc.bind_points(Role.OUTPUT)
    made = desc.output_tensor
    for info in desc.bind_points(Role.INPUT):
        given = getattr(desc, info.attribute)
        if (given.data_type, given.sizes) == (made.data_type, made.sizes):
            yield output.name, info.name


@pytest.mark.parametrize("device", ["cpu", "reference", "xla"])
@pytest.mark.parametrize(("kind", "given"), STEPS, ids=lambda value: getattr(value, "NAME", ""))
def test_a_scale_or_an_activation_runs_in_place(device, kind, given):
    if device == "xla":
        pytest.importorskip("jax")
    drawn = descriptors.descriptor(Seeded(3), kind, packed=True)
    fields = {info.attribute: getattr(drawn, info.attribute) for info in drawn.fields()}
    desc = kind(**{**fields, **given})
    pairs = [*in_place_pairs(desc)]
    assert pairs
    compiled = dml.Device(device).create_operator(desc).compile()
    rng = np.random.default_rng(4)
    arrays = {
        path: (3 * rng.random(tensor.sizes)).astype(tensor.data_type.numpy)
        for path, tensor, _ in desc.tensors(Role.INPUT)
    }
    wanted = compiled(**arrays)
    for output, name in pairs:
        bound = {path: array.copy() for path, array in arrays.items()}
        compiled.dispatch(**bound, **{output: bound[name]})
        np.testing.assert_array_equal(bound[name], wanted)


def test_many_operators_have_a_scale_or_an_activation():
    names = {kind.NAME.removeprefix("ELEMENT_WISE_") for kind, _ in STEPS}
    assert {"ABS", "ADD1", "CLIP", "CLIP1", "POW", "THRESHOLD"} < names


@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
def test_blocks_on_several_threads_run_in_place(data_type):
    tensor = dml.TensorDesc(data_type, (3, 700_000))
    values = np.random.default_rng(5).normal(size=tensor.sizes).astype(tensor.data_type.numpy)
    for kind, given, count in (
        (dml.ElementWiseAbs, SCALED, 1),
        (dml.ElementWiseAdd1, FUSED, 2),
    ):
        names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
        assert len(names) == count
        desc = kind(**dict.fromkeys([*names, "output_tensor"], tensor), **given)
        compiled = dml.Device("cpu").create_operator(desc).compile()
        wanted = compiled(**dict.fromkeys(names, values))
        both = values.copy()
        with dml.num_threads(4):
            compiled.dispatch(**dict.fromkeys(names, both), output_tensor=both)
        np.testing.assert_array_equal(both, wanted)


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
    with pytest.raises(dml.BindingError, match="y: expected memory of its own, got an overlap"):
        compiled.dispatch(x=memory, y=memory)
