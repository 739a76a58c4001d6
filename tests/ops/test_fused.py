"""What an operator contains does what it does as an operator of its own."""

import numpy as np
import pytest

import anydml as dml

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
