"""Attention against PyTorch in float64 and against ONNX Runtime's operators."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.ops._fields import Role
from support.computed import NAMES, device_named, run
from support.strategies import descriptors, generators
from support.tolerances import assert_within

torch = pytest.importorskip("torch")
functional = torch.nn.functional
RNG = np.random.default_rng(7)

HIDES = {
    "KEY_SEQUENCE_LENGTH": lambda m, b, q, k: not k < m[b],
    "KEY_SEQUENCE_END_START": lambda m, b, q, k: not m[len(m) // 2 + b] <= k < m[b],
}


def hidden(desc, mask, batches, queries, keys):
    """Whether each query's key is hidden, one by one as the page has it."""
    if desc.mask_type.suffix == "BOOLEAN":
        return mask == 0
    flat = [*map(int, mask.ravel())]

    def packed(m, b, q, k):
        length, of_queries, of_keys = m[:batches], m[batches:][: batches + 1], m[-batches - 1 :]
        row, column = b * queries + q, b * keys + k
        own = of_queries[b] <= row < of_queries[b + 1] and of_keys[b] <= column < of_keys[b + 1]
        return not (own and column < of_keys[b] + length[b])

    hides = HIDES.get(desc.mask_type.suffix, packed)
    return torch.tensor([
        [[[hides(flat, b, q, k) for k in range(keys)] for q in range(queries)]]
        for b in range(batches)
    ])  # fmt: skip


def oracle(desc, tensors):
    """Output, and present keys and values, by `scaled_dot_product_attention`."""
    heads, key_heads = (getattr(desc, name) for name in desc.HEADS)

    def split_heads(name, count):
        x = tensors[name]
        return x.reshape(*x.shape[-3:-1], count, -1).transpose(1, 2)

    found = dict.fromkeys("qkv")
    for name, parts in {"QueryKey": "qk", "KeyValue": "kv", "QueryKeyValue": "qkv"}.items():
        stacked = tensors.get(f"Stacked{name}Tensor")
        if stacked is not None:
            members = (x.transpose(1, 2) for x in stacked.unbind(3))
            found |= dict(zip(parts, members, strict=True))
    counts = {"Query": heads, "Key": key_heads, "Value": key_heads}
    for name, count in counts.items():
        if f"{name}Tensor" in tensors:
            found[name[0].lower()] = split_heads(f"{name}Tensor", count)
    if "BiasTensor" in tensors:
        rest = tensors["BiasTensor"].ravel()
        for name, x in found.items():
            if x is not None:
                count = x.shape[1] * x.shape[3]
                found[name] = x + rest[:count].reshape(x.shape[1], 1, -1)
                rest = rest[count:]
    q, k, v = found.values()
    batches, _, queries, _ = q.shape
    mask, past_end = torch.zeros(batches, 1, queries, 1, dtype=q.dtype), torch.tensor(False)
    if "PastKeyTensor" in tensors:
        past = [tensors[f"Past{name}Tensor"] for name in ("Key", "Value")]
        past = [x.reshape(x.shape[-4:]) for x in past]
        new = [x[:, :, :0] for x in past] if k is None else [k, v]
        held, added = past[0].shape[2], new[0].shape[2]
        lengths = tensors.get("PastSequenceLengthsTensor", torch.full((batches,), held))
        lengths = [min(max(int(n), 0), held) for n in lengths.ravel()]
        k, v = (
            torch.stack([
                torch.cat([x[b, :, :n], y[b], torch.zeros_like(x[b, :, n:])], 1)
                for b, n in enumerate(lengths)
            ])
            for x, y in zip(past, new, strict=True)
        )  # fmt: skip
        if "PastSequenceLengthsTensor" in tensors:
            seen = torch.tensor([
                [[n + min(i + 1, added)] for i in range(queries)] for n in lengths
            ])[:, None]  # fmt: skip
            past_end = torch.arange(k.shape[2]) >= seen
    if "MaskTensor" in tensors:
        hides = hidden(desc, tensors["MaskTensor"], batches, queries, k.shape[2])
        hides = hides.reshape(((1,) * 4 + hides.shape)[-4:])
        mask = mask + torch.where(hides, desc.mask_filter_value, 0.0)
    if "RelativePositionBiasTensor" in tensors:
        mask = mask + tensors["RelativePositionBiasTensor"].reshape(
            batches, heads, queries, k.shape[2]
        )
    mask = torch.where(past_end, -torch.inf, mask).expand(batches, heads, queries, k.shape[2])
    y = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=desc.scale, enable_gqa=heads != key_heads
    )
    y = torch.where((mask == -torch.inf).all(-1, keepdim=True), torch.nan, y)
    results = {"OutputTensor": y.transpose(1, 2), "OutputPresentKeyTensor": k}
    results["OutputPresentValueTensor"] = v
    return [
        results[path].reshape(tensor.sizes).numpy() for path, tensor, _ in desc.tensors(Role.OUTPUT)
    ]


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("kind", [dml.MultiheadAttention, dml.MultiheadAttention1])
@given(data=st.data())
def test_as_pytorch(kind, device, data):
    desc = data.draw(descriptors(kind))
    if not math.isfinite(desc.scale):  # PyTorch multiplies both sides by its root
        desc = dataclasses.replace(desc, scale=0.5)
    generator = data.draw(generators())
    arrays = []
    for path, tensor, _ in desc.tensors(Role.INPUT):
        values = generator.random(tensor.sizes) * 16 - 8
        if path == "MaskTensor" and data.draw(st.booleans()):
            values = np.maximum(values, 0) / 2
        values = values.astype(tensor.data_type.numpy)
        cut = tuple(slice(0, 1 if s == 0 else None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(values[cut], tensor.sizes))
    results = run(device_named(device), desc, arrays)
    wide = {
        path: torch.from_numpy(np.array(array, np.float64))
        for (path, _, _), array in zip(desc.tensors(Role.INPUT), arrays, strict=True)
    }
    for got, expected in zip(results, oracle(desc, wide), strict=True):
        assert_within(kind, got, expected)


def floats(*sizes):
    return RNG.normal(size=sizes).astype(np.float32)


def described(kind, arrays, **fields):
    """A descriptor on arrays by field, and the arrays by name."""
    tensors = {name: dml.TensorDesc.from_array(array) for name, array in arrays.items()}
    arguments = {"scale": 0.5, "mask_filter_value": -10000.0, "mask_type": "NONE", **fields}
    desc = kind.with_outputs(**tensors, **arguments)
    assert not dml.Device("cpu").check(desc)
    names = {info.attribute: info.name for info in kind.fields()}
    return desc, {names[name]: array for name, array in arrays.items()}


def results_of(desc, bound):
    results = dml.Device("cpu").create_operator(desc).compile()(**bound)
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("masked", [False, True])
def test_as_pytorch_with_its_projections(masked):
    """`multi_head_attention_forward` with weights of 1, whose biases are the operator's."""
    batches, length, heads, size = 2, 5, 3, 4
    hidden_size = heads * size
    arrays = {
        "query_tensor": floats(batches, length, hidden_size),
        "key_tensor": floats(batches, length + 1, hidden_size),
        "value_tensor": floats(batches, length + 1, hidden_size),
        "bias_tensor": floats(3 * hidden_size),
    }
    hides = RNG.random((batches, 1, 1, length + 1)) < 0.4
    fields = {"head_count": heads, "scale": 0.5, "output_present_key_tensor": None}
    if masked:
        arrays["mask_tensor"] = (~hides).astype(np.int32)
        fields |= {"mask_type": "BOOLEAN", "mask_filter_value": -1e30}
    desc, bound = described(
        dml.MultiheadAttention, arrays, output_present_value_tensor=None, **fields
    )
    (got,) = results_of(desc, bound)
    q, k, v = (
        torch.from_numpy(arrays[f"{name}_tensor"]).double().transpose(0, 1)
        for name in ("query", "key", "value")
    )
    one = torch.eye(hidden_size, dtype=torch.float64)
    expected, _ = functional.multi_head_attention_forward(
        q, k, v, hidden_size, heads, one.repeat(3, 1),
        torch.from_numpy(arrays["bias_tensor"]).double(), None, None, False, 0.0, one, None,
        key_padding_mask=torch.from_numpy(hides[:, 0, 0]) if masked else None, need_weights=False,
    )  # fmt: skip
    assert_within(dml.MultiheadAttention, got, expected.transpose(0, 1))


@pytest.mark.parametrize(
    ("lengths", "queries", "keys"),
    [
        ((2, 3), (0, 3, 6), (0, 4, 8)),  # padded rows
        ((4, 4), (0, 2, 6), (0, 3, 7)),  # rows beyond the batch's end
        ((1, 9), (1, 4, 5), (2, 5, 8)),  # rows before its start
    ],
)
def test_bounds_of_all_batches(lengths, queries, keys):
    arrays = {**APART, "mask_tensor": np.array([*lengths, *queries, *keys], np.int32)}
    desc, bound = described(
        dml.MultiheadAttention, arrays, head_count=N,
        mask_type="KEY_QUERY_SEQUENCE_LENGTH_START_END",
    )  # fmt: skip
    wide = {name: torch.from_numpy(array).double() for name, array in bound.items()}
    for got, expected in zip(results_of(desc, bound), oracle(desc, wide), strict=True):
        assert_within(dml.MultiheadAttention, got, expected)


def run_node(operator, inputs, outputs, **attributes):
    """What ONNX Runtime's own operator gives; inputs in order, None where one is left out."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    helper = onnx.helper
    arguments = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in arguments.items()
    ]
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, results, domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "one", infos, [onnx.ValueInfoProto(name=y) for y in results])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, arguments)


B, S, L, P, N, D = 2, 3, 4, 5, 2, 8
"""Batches, queries, keys, past ones, heads and their size."""
APART = {
    "query_tensor": floats(B, S, N * D),
    "key_tensor": floats(B, L, N * D),
    "value_tensor": floats(B, L, N * D),
}
PAST = {"past_key_tensor": floats(B, N, P, D), "past_value_tensor": floats(B, N, P, D)}
BIAS = {"bias_tensor": floats(3 * N * D)}
CASES = {
    "apart": APART,
    "bias": {**APART, **BIAS},
    "lengths": {**APART, "mask_tensor": np.array([[4, 2]], np.int32)},
    "boolean": {**APART, "mask_tensor": np.array([[1, 0, 1, 1], [0, 1, 1, 0]], np.int32)},
    "all hidden": {**APART, "mask_tensor": np.array([[1, 0, 1, 1], [0, 0, 0, 0]], np.int32)},
    "position bias": {**APART, "relative_position_bias_tensor": floats(B, N, S, L)},
    "past": {**APART, **PAST},
    "past and bias": {**APART, **PAST, **BIAS},
    "past, mask and position bias": {
        **APART, **PAST,
        "mask_tensor": np.array([[1, 0, 1, 1, 0, 1, 1, 0, 1]] * B, np.int32),
        "relative_position_bias_tensor": floats(B, N, S, P + L),
    },
    "past alone": {"query_tensor": APART["query_tensor"], **PAST},
    "stacked keys and values": {
        "query_tensor": APART["query_tensor"], "stacked_key_value_tensor": floats(B, L, N, 2, D),
    },
    "stacked": {"stacked_query_key_value_tensor": floats(B, S, N, 3, D)},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_onnx_runtime(case):
    arrays = CASES[case]
    alone = "past_key_tensor" in arrays and "key_tensor" not in arrays
    present = "past_key_tensor" in arrays and not alone
    mask, fields = arrays.get("mask_tensor"), {"head_count": N}
    if mask is not None:
        fields["mask_type"] = "KEY_SEQUENCE_LENGTH" if case == "lengths" else "BOOLEAN"
    if not present:
        fields |= {"output_present_key_tensor": None, "output_present_value_tensor": None}
    shaped = dict(arrays)
    if mask is not None and case != "lengths":
        shaped["mask_tensor"] = mask[:, None, None]
    desc, bound = described(dml.MultiheadAttention, shaped, **fields)
    names = ("bias_tensor", "mask_tensor", "relative_position_bias_tensor")
    others = [arrays.get(name) for name in names]
    if case == "lengths":
        others[1] = mask[0]
    past = [arrays.get("past_key_tensor"), arrays.get("past_value_tensor")]
    parts = [arrays.get(f"{name}_tensor") for name in ("query", "key", "value")]
    if alone:
        parts, past = [parts[0], *past], [None, None]
    for name, array in arrays.items():  # stacks are not implemented there
        if name.startswith("stacked"):
            members = [
                array[:, :, :, i].reshape(*array.shape[:2], -1) for i in range(array.shape[3])
            ]
            parts[-len(members) :] = members
    reference = run_node(
        "MultiHeadAttention", [*parts, *others, *past], 3 if present else 1, num_heads=N, scale=0.5
    )
    for got, expected in zip(results_of(desc, bound), reference, strict=True):
        # Where all keys are hidden, ONNX Runtime's float32 has few digits left beside -10000.
        loose = case == "all hidden"
        np.testing.assert_allclose(
            got, expected, rtol=2e-2 if loose else 2e-5, atol=2e-3 if loose else 2e-6
        )


@pytest.mark.parametrize("lengths", [(4, 2), (0, 5)])
def test_past_lengths_as_onnx_runtime(lengths):
    """GROUP_QUERY_ATTENTION: the past is a buffer of which each batch has used a part."""
    heads, key_heads, held = 4, 2, 5
    arrays = {
        "query_tensor": floats(B, 1, heads * D),
        "key_tensor": floats(B, 1, key_heads * D),
        "value_tensor": floats(B, 1, key_heads * D),
        "past_key_tensor": floats(B, key_heads, held, D),
        "past_value_tensor": floats(B, key_heads, held, D),
    }
    desc, bound = described(
        dml.MultiheadAttention1,
        {**arrays, "past_sequence_lengths_tensor": np.array(lengths, np.float32)},
        query_head_count=heads, key_value_head_count=key_heads,
    )  # fmt: skip
    got, key, value = results_of(desc, bound)
    reference = run_node(
        "GroupQueryAttention",
        [*arrays.values(), np.array(lengths, np.int32), np.array(held + 1, np.int32)],
        3, num_heads=heads, kv_num_heads=key_heads, scale=0.5,
    )  # fmt: skip
    np.testing.assert_allclose(got, reference[0], rtol=2e-5, atol=2e-6)
    for cached, expected in ((key, reference[1]), (value, reference[2])):
        for b, length in enumerate(lengths):
            np.testing.assert_array_equal(cached[b, :, : length + 1], expected[b, :, : length + 1])
            assert not cached[b, :, length + 1 :].any()


def test_a_prompt_is_causal_as_in_onnx_runtime():
    """Without any past that counts, each query sees the keys up to its own place."""
    heads, key_heads, length = 4, 2, 3
    new = [floats(B, length, n * D) for n in (heads, key_heads, key_heads)]
    past = [np.full((B, key_heads, 2, D), np.nan, np.float32)] * 2
    names = ("query_tensor", "key_tensor", "value_tensor", "past_key_tensor", "past_value_tensor")
    arrays = dict(zip(names, (*new, *past), strict=True))
    desc, bound = described(
        dml.MultiheadAttention1,
        {**arrays, "past_sequence_lengths_tensor": np.zeros(B, np.float32)},
        query_head_count=heads, key_value_head_count=key_heads,
    )  # fmt: skip
    got, key, _ = results_of(desc, bound)
    last, total = np.full(B, length - 1, np.int32), np.array(length, np.int32)
    expected, present, _ = run_node(
        "GroupQueryAttention", [*new, None, None, last, total], 3, num_heads=heads,
        kv_num_heads=key_heads, scale=0.5,
    )  # fmt: skip
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_array_equal(key[:, :, :length], present[:, :, :length])


def test_special_values():
    """NaN in one head or batch stays there; -inf hides for good, and everything gives NaN."""
    arrays = {name: floats(2, 3, 4) for name in ("query_tensor", "key_tensor", "value_tensor")}
    arrays["query_tensor"][0, 1, 2] = np.nan
    arrays["mask_tensor"] = np.array([[[[1, 1, 1]]], [[[0, 1, 1]]]], np.int32)
    arrays["value_tensor"][1, 0] = 1e30
    fields = {
        "head_count": 2, "mask_type": "BOOLEAN", "mask_filter_value": -math.inf,
        "output_present_key_tensor": None, "output_present_value_tensor": None,
    }  # fmt: skip
    desc, bound = described(dml.MultiheadAttention, arrays, **fields)
    (got,) = results_of(desc, bound)
    nans = np.zeros((2, 3, 4), bool)
    nans[0, 1, 2:] = True
    np.testing.assert_array_equal(np.isnan(got), nans)
    assert np.abs(got[1]).max() < 100
    bound["MaskTensor"] = np.zeros((2, 1, 1, 3), np.int32)
    assert np.isnan(results_of(desc, bound)[0]).all()


def test_all_keys_hidden_by_a_number_is_as_without_a_mask():
    arrays = {name: floats(1, 3, 4) for name in ("query_tensor", "key_tensor", "value_tensor")}
    hide_all = {"mask_tensor": np.zeros((1, 1, 1, 1), np.int32)}
    plain, bound = described(dml.MultiheadAttention, arrays, head_count=1)
    masked, more = described(
        dml.MultiheadAttention, {**arrays, **hide_all}, head_count=1, mask_type="BOOLEAN"
    )
    for got, expected in zip(results_of(masked, more), results_of(plain, bound), strict=True):
        assert_within(dml.MultiheadAttention, got, expected)


def test_long_sequences_are_computed_in_pieces():
    """Pieces give what the whole gives; scores alone would take 77 MB."""
    rng = np.random.default_rng(3)
    arrays = {
        name: rng.normal(size=(1, 900, 12)).astype(np.float32)
        for name in ("query_tensor", "key_tensor", "value_tensor")
    }
    arrays["mask_tensor"] = np.array([[700], [100]], np.int32)
    desc, bound = described(
        dml.MultiheadAttention, arrays, head_count=12, mask_type="KEY_SEQUENCE_END_START"
    )
    got, *_ = results_of(desc, bound)
    wide = {name: torch.from_numpy(array).double() for name, array in bound.items()}
    hides = torch.ones(1, 1, 1, 900)
    hides[..., 100:700] = 0
    q, k, v = (
        wide[f"{name}Tensor"].reshape(1, 900, 12, 1).transpose(1, 2)
        for name in ("Query", "Key", "Value")
    )
    expected = functional.scaled_dot_product_attention(
        q, k, v, hides.double() * -10000.0, scale=0.5
    )
    assert_within(dml.MultiheadAttention, got, expected.transpose(1, 2))
