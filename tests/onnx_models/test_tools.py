"""Models that the tools of ONNX Runtime write, against its CPU provider."""

import csv
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from building import FLOAT, floats, session
from small_transformers import HEADS, HIDDEN, bert, gpt2, llama, words
from test_attention_nodes import attention as attention_of_mask
from test_models import attention, classifier, upscaler

import anydml as dml

pytestmark = pytest.mark.slow

MODELS = {"bert": bert, "gpt2": gpt2, "llama": llama}
KINDS = {"bert": "bert", "gpt2": "gpt2", "llama": "gpt_neox"}
"""What the optimizer calls them; a Llama is none of its kinds, and no attention is fused."""

TOLERANCE = 1e-5
with Path(__file__).with_name("differences.tsv").open(encoding="utf-8") as _file:
    DIFFERENCES = {
        row["case"]: float(row["difference"]) for row in csv.DictReader(_file, delimiter="\t")
    }
"""Cases in which ONNX Runtime's results differ, with the largest difference."""


def judge(case, model, inputs):
    """Compare results; the operators that the provider leaves to the CPU, and all operators."""
    read = dml.read_onnx(model)
    results = read.compile(dml.Device("cpu"))(**inputs)
    expected = session(model).run(list(results), inputs)
    largest = max(
        np.abs(result.astype(float) - other).max()
        for result, other in zip(results.values(), expected, strict=True)
    )
    known = DIFFERENCES.get(case)
    if known is None:
        assert largest <= TOLERANCE
    else:
        assert TOLERANCE < largest <= known
    assert not [item.name for item in read.nodes if item.place == "alone"]
    places = {place: {item.operator.rpartition(".")[2] for item in read.nodes
                      if item.place == place} for place in ("graph", "cpu", "refused")}  # fmt: skip
    assert not places["refused"]
    return places["graph"], places["cpu"]


def optimized(name, folder, **choices):
    """A model after ONNX Runtime's optimizer of transformers."""
    pytest.importorskip("sympy")
    from onnxruntime.transformers.fusion_options import FusionOptions
    from onnxruntime.transformers.optimizer import optimize_model

    onnx.save(MODELS[name](), folder / "model.onnx")
    options = FusionOptions(KINDS[name])
    for choice, value in choices.items():
        setattr(options, choice, value)
    model = optimize_model(
        str(folder / "model.onnx"), KINDS[name], HEADS, HIDDEN, options, opt_level=0
    )
    model.save_model_to_file(str(folder / "optimized.onnx"))
    return onnx.load(folder / "optimized.onnx")


@pytest.mark.parametrize(
    ("name", "fused", "on_cpu"),
    [
        ("bert", {"Attention", "BiasGelu", "EmbedLayerNormalization", "SkipLayerNormalization"},
         set()),
        ("gpt2", {"BiasGelu", "EmbedLayerNormalization", "SkipLayerNormalization"},
         {"Attention"}),  # unidirectional
        ("llama", {"SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"}, set()),
    ],
)  # fmt: skip
def test_an_optimized_transformer(tmp_path, name, fused, on_cpu):
    model = optimized(name, tmp_path)
    in_graphs, elsewhere = judge(name, model, words(model))
    assert in_graphs >= fused
    assert elsewhere == on_cpu


def test_an_optimized_bert_with_separate_projections(tmp_path):
    model = optimized("bert", tmp_path, use_multi_head_attention=True)
    in_graphs, elsewhere = judge("bert heads", model, words(model))
    assert "MultiHeadAttention" in in_graphs
    assert not elsewhere


def test_an_optimized_bert_with_an_approximated_gelu(tmp_path):
    model = optimized("bert", tmp_path, enable_gelu_approximation=True)
    in_graphs, elsewhere = judge("bert GELU by tanh", model, words(model))
    assert "FastGelu" in in_graphs
    assert not elsewhere


class Calibration:
    """Inputs for which `quantize_static` looks at ranges."""

    def __init__(self, make):
        self._inputs = iter([make(seed) for seed in range(4)])

    def get_next(self):
        return next(self._inputs, None)


def quantized(model, folder, form, make):
    """A model after `quantize_dynamic` or `quantize_static`."""
    tools = pytest.importorskip("onnxruntime.quantization")
    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(model, source)
    if form.startswith("dynamic"):
        kind = tools.QuantType.QInt8 if "signed" in form else tools.QuantType.QUInt8
        # 7 bits: without VNNI, ONNX Runtime saturates sums of signed products in 16 bits.
        tools.quantize_dynamic(source, target, weight_type=kind, reduce_range="signed" in form,
                               op_types_to_quantize=["Attention", "EmbedLayerNormalization",
                                                     "Gemm", "MatMul"],
                               extra_options={"DefaultTensorType": FLOAT})  # fmt: skip
    else:
        tools.quantize_static(
            source, target, Calibration(make), per_channel="channels" in form,
            quant_format=tools.QuantFormat.QOperator if form.startswith("QOperator")
            else tools.QuantFormat.QDQ,
        )  # fmt: skip
    return onnx.load(target)


FORMS = ["dynamic", "dynamic signed", "QOperator", "QDQ", "QDQ channels"]
WITHOUT_KERNEL = {"QEmbedLayerNormalization", "QGemm", "QLinearMul", "QLinearSoftmax"}
"""Operators that these tools write and for which the provider has no kernel."""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["classifier", *MODELS])
def test_a_quantized_model(tmp_path, name, form):
    if name == "classifier":
        model = classifier()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1

        def make(seed):
            return {"x": floats(seed, 1, 3, 17, 17)}
    else:
        model = MODELS[name]()

        def make(seed):
            return words(model, seed)

    _, on_cpu = judge(f"{name} {form}", quantized(model, tmp_path, form, make), make(0))
    assert on_cpu <= WITHOUT_KERNEL if form == "QOperator" else not on_cpu


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_optimized_and_quantized_transformer(tmp_path, name):
    model = quantized(optimized(name, tmp_path), tmp_path, "dynamic", None)
    in_graphs, on_cpu = judge(f"{name} attention", model, words(model))
    assert "QAttention" in in_graphs
    assert on_cpu <= WITHOUT_KERNEL


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits(bits, symmetric):
    pytest.importorskip("onnx_ir")
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    tool = MatMulNBitsQuantizer(llama(), bits=bits, block_size=16, is_symmetric=symmetric)
    tool.process()
    model = tool.model.model
    in_graphs, on_cpu = judge(f"llama {bits} bits", model, words(model))
    assert "MatMulNBits" in in_graphs
    assert not on_cpu


def test_weights_of_few_bits_before_products():
    pytest.importorskip("onnx_ir")
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    tool = MatMulNBitsQuantizer(llama(), block_size=16, quant_format=QuantFormat.QDQ)
    tool.process()
    model = tool.model.model
    in_graphs, on_cpu = judge("llama QDQ bits", model, words(model))
    assert {"DequantizeLinear", "MatMul"} <= in_graphs
    assert not on_cpu


FUSED = {"FusedConv", "FusedGemm"}
"""Operators of ONNX Runtime's CPU provider alone."""


@pytest.mark.parametrize("make", [attention, bert, classifier, llama, upscaler])
def test_a_model_that_onnx_runtime_saved_for_the_cpu(tmp_path, make):
    model = make()
    if make is classifier:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    model = onnx.load(tmp_path / "saved.onnx")
    if "input_ids" in {value.name for value in model.graph.input}:
        inputs = words(model)
    else:
        inputs = {value.name: floats(0, *(d.dim_value for d in value.type.tensor_type.shape.dim))
                  for value in model.graph.input}  # fmt: skip
    _, on_cpu = judge(f"saved {make.__name__}", model, inputs)
    assert on_cpu <= FUSED


def test_queries_whose_keys_are_all_hidden():
    mask = np.ones((2, 4, 4), np.int32)
    mask[1, 2:] = 0
    in_graphs, _ = judge("Attention hidden", *attention_of_mask(mask))
    assert in_graphs == {"Attention"}
