"""The attention family of com.microsoft, with what surrounds it in transformers."""

import numpy as np
import onnx
import pytest
from building import FLOAT, FLOAT16, INT32, bytes_of, compare, floats, one, signed

import anydml as dml
from anydml.cli import command as cli

MASKS = {
    "none": None,
    "lengths": np.int32([2, 4]),
    "ends and starts": np.int32([3, 4, 0, 1]),
    "keys": np.int32([[1, 1, 0, 1], [1, 1, 1, 0]]),
    "pairs": np.int32(np.eye(4) + np.random.default_rng(0).integers(0, 2, (2, 4, 4)) > 0),
}


def attention(mask=None, bias=None, width=24, **attributes):
    weights = {"w": floats(1, 8, width), "b": floats(2, width)}
    weights |= {} if mask is None else {"m": mask}
    weights |= {} if bias is None else {"p": bias}
    order = ["x", "w", "b", "" if mask is None else "m", "", "" if bias is None else "p"]
    return one("Attention", {"x": floats(0, 2, 4, 8)}, weights, num_heads=2, order=order,
               **attributes)  # fmt: skip


def quantized_attention(mask=None, past=0, columns=False, outputs=1, **attributes):
    make = signed if columns else bytes_of
    weights = {
        "w": make(1, 8, 24), "b": floats(2, 24), "xs": np.float32(0.02),
        "ws": 0.02 * floats(3, 24) if columns else np.float32(0.01), "xz": np.uint8(120),
        "wz": np.zeros(24, np.int8) if columns else np.uint8(130),
    }  # fmt: skip
    weights |= {} if mask is None else {"m": mask}
    inputs = {"x": bytes_of(0, 2, 4, 8)}
    inputs |= {"past": floats(4, 2, 2, 2, past, 4)} if past else {}
    order = ["x", "w", "b", "xs", "ws", "" if mask is None else "m", "xz", "wz"]
    order += ["past"] if past else []
    return one("QAttention", inputs, weights, num_heads=2, order=order, outputs=outputs,
               **attributes)  # fmt: skip


def heads(operator="MultiHeadAttention", weights=None, order=(), **attributes):
    inputs = {"q": floats(0, 2, 3, 8), "k": floats(1, 2, 5, 8), "v": floats(2, 2, 5, 8)}
    given = [name for name in order or inputs if name not in (weights or {})]
    inputs = {name: inputs[name] for name in inputs if name in given}
    order = order or ["q", "k", "v", *([""] if weights else []), *(weights or {})]
    return one(operator, inputs, weights, num_heads=2, order=order, **attributes)


def rotary(shape, positions, half=4, **attributes):
    weights = {"p": np.int64(positions), "c": floats(1, 9, half), "s": floats(2, 9, half)}
    return one("RotaryEmbedding", {"x": floats(0, *shape)}, weights, **attributes)


PLACES = [[0, 1, 2], [5, 6, 7]]
PART = {"num_heads": 2, "rotary_embedding_dim": 4, "half": 2}
TABLES = {"w": floats(1, 6, 8), "p": floats(2, 7, 8), "sg": floats(3, 2, 8), "g": floats(4, 8),
          "b": floats(5, 8), "m": np.int32([[1, 1, 0], [1, 1, 1]]),
          "at": np.int32([[2, 1, 0]])}  # fmt: skip


def embedding(*order, outputs=2):
    inputs = {"i": np.int32([[1, 2, 3], [4, 0, 1]]), "s": np.int32([[0, 1, 1], [0, 0, 1]])}
    return one(
        "EmbedLayerNormalization", {n: array for n, array in inputs.items() if n in order},
        {name: array for name, array in TABLES.items() if name in order},
        (FLOAT, INT32, FLOAT)[:outputs], outputs, order=order, middle=True, epsilon=1e-5,
    )  # fmt: skip


CASES = {
    **{f"Attention {name}": attention(mask) for name, mask in MASKS.items()},
    "Attention scale": attention(scale=0.3),
    "Attention filter": attention(MASKS["keys"], mask_filter_value=-3.0),
    "Attention bias": attention(bias=floats(5, 2, 2, 4, 4)),
    "Attention one bias": attention(bias=floats(5, 1, 1, 4, 4)),
    "Attention sizes": attention(width=28, qkv_hidden_sizes=[8, 8, 12]),
    **{
        f"QAttention {name}": quantized_attention(mask)
        for name, mask in MASKS.items() if name != "pairs"
    },
    "QAttention columns": quantized_attention(columns=True),
    "QAttention unidirectional": quantized_attention(unidirectional=1),
    "QAttention past": quantized_attention(past=3, outputs=2),
    "QAttention past mask": quantized_attention(np.ones((2, 7), np.int32), past=3, outputs=2),
    "QAttention past unidirectional": quantized_attention(past=3, outputs=2, unidirectional=1),
    "MultiHeadAttention bias": heads(weights={"p": floats(3, 2, 2, 3, 5)},
                                     order=["q", "k", "v", "", "", "p"]),
    "MultiHeadAttention one bias": heads(weights={"p": floats(3, 1, 1, 3, 5)},
                                         order=["q", "k", "v", "", "", "p"]),
    "MultiHeadAttention pairs": heads(
        weights={"m": np.random.default_rng(1).integers(0, 2, (2, 3, 5)).astype(np.int32)},
        order=["q", "k", "v", "", "m"]),
    "MultiHeadAttention cross": heads(
        weights={"pk": floats(3, 2, 2, 6, 4), "pv": floats(4, 2, 2, 6, 4)},
        order=["q", "pk", "pv"]),
    "MultiHeadAttention scale": heads(scale=0.7),
    "RotaryEmbedding": rotary((2, 3, 16), PLACES),
    "RotaryEmbedding offset": rotary((2, 3, 16), [4]),
    "RotaryEmbedding heads": rotary((2, 2, 3, 8), PLACES),
    "RotaryEmbedding interleaved": rotary((2, 3, 16), PLACES, interleaved=1),
    "RotaryEmbedding heads interleaved": rotary((2, 2, 3, 8), [1], interleaved=1),
    "RotaryEmbedding part": rotary((2, 3, 16), [1], **PART),
    "RotaryEmbedding heads part": rotary((2, 2, 3, 8), [1], interleaved=1, **PART),
    "EmbedLayerNormalization": embedding("i", "s", "w", "p", "sg", "g", "b", "m", "at", outputs=3),
    "EmbedLayerNormalization no segments": embedding("i", "", "w", "p", "", "g", "b"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_onnx_runtime_gives(name):
    model, inputs = CASES[name]
    read = compare(model, inputs, atol=2e-5)
    assert {item.place for item in read.nodes} == {"graph"}


def run(model, inputs, **options):
    return dml.read_onnx(model, **options).compile(dml.Device("cpu"))(**inputs)["y0"]


def test_keys_and_values_may_share_a_tensor():
    """ONNX Runtime has it on GPUs only."""
    pair = floats(1, 2, 5, 2, 2, 4)
    key, value = (pair[:, :, :, i].reshape(2, 5, 8) for i in range(2))
    expected = run(*heads(weights={"k": key, "v": value}, order=["q", "k", "v"]))
    np.testing.assert_array_equal(run(*heads(weights={"kv": pair}, order=["q", "kv"])), expected)


def test_a_mask_of_the_longest_sequence_is_cut():
    """ONNX Runtime has it on GPUs only."""
    causal = np.tril(np.ones((2, 1, 6, 6), np.int32))
    expected = run(*attention(causal[:, 0, :4, :4].copy()))
    np.testing.assert_array_equal(run(*attention(causal)), expected)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (attention(unidirectional=1), "unidirectional 1"),
        (attention(do_rotary=1), "do_rotary 1"),
        (quantized_attention(MASKS["keys"], unidirectional=1), "unidirectional 1 with a mask"),
    ],
)
def test_the_provider_leaves_forms_to_the_cpu(case, reason):
    (node,) = dml.read_onnx(case[0]).nodes
    assert (node.place, node.reason) == ("cpu", f"the provider does not support {reason}")


def test_a_unidirectional_attention_runs_on_the_cpu():
    read = compare(*attention(unidirectional=1))
    assert [item.place for item in read.nodes] == ["cpu"]


REFUSED = {
    "bias: expected no tensor": (64, {"bias": floats(3, 5)}, ["", "", "bias"]),
    "g_idx: expected no tensor": (64, {"g": np.int32(np.arange(64) // 32)}, ["", "g"]),
    "K: expected a multiple of 32": (40, {}, []),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_a_kernel_that_the_provider_fails_to_make_is_refused_and_runs_on_the_cpu(problem):
    size, further, order = REFUSED[problem]
    weights = {"b": bytes_of(1, 5, 2, 16), "s": floats(2, 10), **further}
    model, inputs = one(
        "MatMulNBits", {"a": floats(0, 2, 3, size)}, weights, order=["a", "b", "s", *order],
        K=size, N=5, bits=4, block_size=32,
    )  # fmt: skip
    (node,) = compare(model, inputs, atol=1e-4).nodes
    assert node.place == "refused"
    assert [str(item).startswith(f"y0.{problem}") for item in node.violations] == [True]
    with pytest.raises(dml.ModelError, match=problem):
        dml.read_onnx(model, as_onnxruntime=True).compile(dml.Device("cpu"))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_groups_of_channels_are_normalized(last, kind):
    x, gamma, beta = floats(0, 2, 3, 5, 8), floats(1, 8).astype(kind), floats(2, 8).astype(kind)
    channels = x if last else np.moveaxis(x, -1, 1).copy()
    model, inputs = one("GroupNorm", {"x": channels}, {"g": gamma, "b": beta}, groups=4,
                        activation=1, channels_last=last)  # fmt: skip
    grouped = x.reshape(2, 15, 4, 2).astype(float)
    centred = grouped - grouped.mean((1, 3), keepdims=True)
    y = (centred / np.sqrt(centred.var((1, 3), keepdims=True) + 1e-5)).reshape(x.shape)
    y = y * gamma.astype(float) + beta.astype(float)
    y = y / (1 + np.exp(-y))
    found = run(model, inputs)
    np.testing.assert_allclose(found if last else np.moveaxis(found, 1, -1), y, rtol=1e-4,
                               atol=1e-5)  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "function"),
    [
        ({"activation": "Softmax"}, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        (
            {"activation": "Softmax", "activation_axis": 0, "transB": 1},
            lambda x: np.exp(x) / np.exp(x).sum(0),
        ),
        ({"activation": "LeakyRelu", "activation_alpha": 0.5}, lambda x: np.maximum(x, x / 2)),
        ({"activation": "Selu"}, None),
    ],
)
def test_a_product_with_an_activation(attributes, function):
    a, b = floats(0, 5, 3), floats(1, 3, 4)
    stored = b.T.copy() if attributes.get("transB") else b
    found = run(*one("FusedMatMulActivation", {"a": a, "b": stored}, **attributes))
    if function is None:
        y = a @ b
        expected = 1.05070098 * np.where(y > 0, y, 1.67326319 * np.expm1(np.minimum(y, 0)))
    else:
        expected = function(a @ b)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def grouped(rows, past, total, lengths, kind="f4", constant=True, size=8, **attributes):
    """GroupQueryAttention; `lengths` are one less than all rows of each batch."""
    batches, groups = len(lengths), 2
    inputs = {"q": floats(0, batches, rows, 4 * size)}
    inputs |= {name: floats(i, batches, rows, groups * size) for i, name in enumerate("kv", 1)}
    if past:
        inputs |= {f"p{n}": floats(i, batches, groups, past, size) for i, n in enumerate("kv", 3)}
    inputs = {name: array.astype(kind) for name, array in inputs.items()}
    inputs |= {"l": np.int32(lengths), "t": np.int32([total])}
    weights = {"t": inputs.pop("t")} if constant else {}
    order = ["q", "k", "v", *(["pk", "pv"] if past else ["", ""]), "l", "t"]
    if attributes.get("do_rotary"):
        weights |= {name: floats(i, 16, size // 2) for i, name in enumerate("cs", 5)}
        order += ["c", "s"]
    return one(
        "GroupQueryAttention", inputs, weights, FLOAT if kind == "f4" else FLOAT16, 3,
        order=order, middle=True, num_heads=4, kv_num_heads=groups, **attributes,
    )  # fmt: skip


GROUPED = {
    "one row": grouped(1, 5, 6, [5, 5]),
    "one row, lengths": grouped(1, 5, 6, [5, 3]),
    "one row in a buffer": grouped(1, 8, 6, [5, 4]),
    "one row, half precision": grouped(1, 5, 6, [5, 5], kind="f2"),
    "one row, scale": grouped(1, 5, 6, [5, 5], scale=0.9),
    "rows": grouped(4, 0, 4, [3, 3]),
    "rows in a buffer": grouped(4, 8, 4, [3, 3]),
}


@pytest.mark.parametrize("name", GROUPED)
def test_heads_that_share_keys(name):
    model, inputs = GROUPED[name]
    read = compare(model, inputs, atol=1e-6)
    (node,) = read.nodes
    assert node.place == "graph"
    # The provider's graph has no past: it is in the memory of the present outputs.
    (attention,) = (desc for desc in node.descriptors if desc.NAME == "MULTIHEAD_ATTENTION1")
    assert attention.past_key_tensor is None
    (graph,) = read.graphs
    assert not {"pk", "pv"} & {tensor.name for tensor in graph.inputs}
    exact = run(model, inputs, as_onnxruntime=True)
    np.testing.assert_array_equal(exact, run(model, inputs))


@pytest.mark.parametrize(
    ("case", "place"),
    [
        (grouped(1, 5, 6, [5, 5], constant=False), "alone"),
        (grouped(3, 5, 8, [7]), "graph"),  # the provider forgets the past
        (grouped(1, 5, 6, [5, 5], size=16, do_rotary=1), "graph"),  # and does not turn
        (grouped(1, 5, 6, [5, 5], softcap=0.5), "graph"),
    ],
)
def test_heads_that_share_keys_give_the_same_where_the_provider_cannot(case, place):
    read = compare(*case, atol=1e-6)
    assert [item.place for item in read.nodes] == [place]


def test_a_report_names_what_the_provider_ignores(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    onnx.save(grouped(1, 5, 6, [5, 5], size=16, do_rotary=1)[0], path)
    cli.main(["check", str(path)])
    assert "the provider ignores do_rotary" in capsys.readouterr().out
