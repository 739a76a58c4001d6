"""What DirectML accepts although the pages forbid it: checked, marked and run."""

import json

import numpy as np
import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.core.levels import LATEST
from anydml.graphs.serialized import graph_from_bytes
from anydml.ops._registry import OPERATORS
from support.serialized import serialized

T = dml.TensorDesc
DEVICES = (
    "cpu", "reference", "onnxruntime", pytest.param("xla", marks=pytest.mark.slow),
    pytest.param("cuda", marks=pytest.mark.gpu),
)  # fmt: skip
BATCHES, HEADS, KEY_HEADS, SIZE, ROWS = 2, 4, 2, 8, 6


def device_of(kind):
    module = {"onnxruntime": "onnxruntime", "xla": "jax"}.get(kind)
    if module:
        pytest.importorskip(module)
    return dml.Device(kind)


def floats(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def grouped(queries=1, data_type="INT32", **changes):
    """Attention as ONNX Runtime describes GroupQueryAttention."""
    present = T("FLOAT32", (BATCHES, KEY_HEADS, ROWS, SIZE))
    fields = {
        "query_tensor": T("FLOAT32", (BATCHES, queries, HEADS * SIZE)),
        "key_tensor": T("FLOAT32", (BATCHES, queries, KEY_HEADS * SIZE)),
        "value_tensor": T("FLOAT32", (BATCHES, queries, KEY_HEADS * SIZE)),
        "past_sequence_lengths_tensor": T(data_type, (BATCHES,)),
        "output_tensor": T("FLOAT32", (BATCHES, queries, HEADS * SIZE)),
        "output_present_key_tensor": present, "output_present_value_tensor": present,
        "scale": 0.3, "mask_filter_value": -1e4, "query_head_count": HEADS,
        "key_value_head_count": KEY_HEADS, "mask_type": "NONE",
    }  # fmt: skip
    return OPERATORS["MULTIHEAD_ATTENTION1"](**(fields | changes))


def graph_of(desc):
    builder = dml.GraphBuilder()
    names = {"query_tensor": "q", "key_tensor": "k", "value_tensor": "v",
             "past_sequence_lengths_tensor": "lengths"}  # fmt: skip
    inputs = [
        builder.input(names[info.attribute], getattr(desc, info.attribute))
        if info.attribute in names
        else None
        for info in desc.tensor_fields(dml.ops._fields.Role.INPUT)
    ]
    y, key, value = builder.operator(desc, *inputs)
    return builder.build(y=y, key=key, value=value)


def step(q, k, v, pasts, lengths):
    """One new row for each batch, by the definition; the output and the present rows."""
    y = np.zeros_like(q)
    presents = [np.zeros_like(past) for past in pasts]
    for b, n in enumerate(lengths):
        for past, present, new in zip(pasts, presents, (k, v), strict=True):
            present[b, :, :n] = past[b, :, :n]
            present[b, :, n] = new[b, 0].reshape(KEY_HEADS, SIZE)
        for h in range(HEADS):
            keys, values = (p[b, h // (HEADS // KEY_HEADS), : n + 1] for p in presents)
            at = slice(h * SIZE, (h + 1) * SIZE)
            weights = np.exp(keys @ q[b, 0, at] * 0.3)
            y[b, 0, at] = weights / weights.sum() @ values
    return y, *presents


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("dumped", [False, True])
def test_the_past_is_in_the_memory_of_the_present_outputs(kind, dumped):
    device = device_of(kind)
    q, k, v = floats(0, BATCHES, 1, 32), floats(1, BATCHES, 1, 16), floats(2, BATCHES, 1, 16)
    pasts = floats(3, BATCHES, KEY_HEADS, ROWS, SIZE), floats(4, BATCHES, KEY_HEADS, ROWS, SIZE)
    lengths = np.int32([3, 0])
    expected = step(q, k, v, pasts, lengths)
    y, key, value = np.zeros_like(q), pasts[0].copy(), pasts[1].copy()
    desc = grouped()
    if dumped:
        graph = graph_from_bytes(serialized(graph_of(desc), as_onnxruntime=True))
        compiled = device.compile_graph(graph)
        inputs = {"q": q, "k": k, "v": v, "lengths": lengths}
        compiled.dispatch(**inputs, y=y, key=key, value=value)
        first = compiled(**{**inputs, "lengths": np.int32([0, 0])})
    else:
        operator = device.create_operator(desc).compile()
        inputs = {"query_tensor": q, "key_tensor": k, "value_tensor": v}
        operator.dispatch(
            **inputs, past_sequence_lengths_tensor=lengths, output_tensor=y,
            output_present_key_tensor=key, output_present_value_tensor=value,
        )  # fmt: skip
        found = operator(**inputs, past_sequence_lengths_tensor=np.int32([0, 0]))
        first = dict(zip(("y", "key", "value"), found, strict=True))
        assert operator.working_nbytes > pasts[0].nbytes + pasts[1].nbytes
    for result, reference in zip((y, key, value), expected, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-6)
    zeros = np.zeros_like(key)
    for result, reference in zip(
        first.values(), step(q, k, v, (zeros, zeros), [0, 0]), strict=True
    ):
        np.testing.assert_allclose(result, reference, rtol=1e-5, atol=1e-6)


def test_lengths_are_integers_or_floats_and_need_present_outputs():
    for data_type in ("INT32", "FLOAT32"):
        assert dml.Device("cpu").check(grouped(data_type=data_type)) == []
    found = dml.Device("cpu").check(grouped(data_type="INT64", output_present_key_tensor=None))
    assert [item.path.partition(".")[2] for item in found] == [
        "PastSequenceLengthsTensor.DataType", "OutputPresentKeyTensor",
    ]  # fmt: skip
    short = T("FLOAT32", (BATCHES, KEY_HEADS, ROWS, SIZE - 1))
    assert dml.Device("cpu").check(grouped(output_present_value_tensor=short))


POOLING = {
    "AVERAGE_POOLING": {"include_padding": False},
    "LP_POOLING": {"p": 2},
    "MAX_POOLING": {},
}


def pooling(name, size, result, **fields):
    kind = OPERATORS[name]
    spatial = {
        "strides": (1, 3), "window_size": (1, 3), "start_padding": (0, 1), "end_padding": (0, 0),
    }  # fmt: skip
    return kind(
        input_tensor=T("FLOAT32", (1, 1, 1, size)), output_tensor=T("FLOAT32", (1, 1, 1, result)),
        **{**spatial, **POOLING[name], **fields},
    )  # fmt: skip


@pytest.mark.parametrize("name", POOLING)
@pytest.mark.parametrize("kind", DEVICES)
def test_a_partial_window_at_the_end_is_accepted(name, kind):
    device = device_of(kind)
    for size in range(2, 9):
        x = floats(size, 1, 1, 1, size)
        windows = [x[0, 0, 0, max(i - 1, 0) : i + 2] for i in range(0, size + 1, 3)]
        function = {"AVERAGE_POOLING": np.mean, "MAX_POOLING": np.max,
                    "LP_POOLING": np.linalg.norm}[name]  # fmt: skip
        desc = pooling(name, size, len(windows))
        whole = (size + 1 - 3) // 3 + 1
        assert bool(desc.deviations(LATEST)) is (len(windows) > whole)
        y = device.create_operator(desc).compile()(x)
        np.testing.assert_allclose(y[0, 0, 0], [*map(function, windows)], rtol=1e-6)
        assert device.check(pooling(name, size, len(windows) + 1))
    with pytest.raises(dml.InvalidDescriptorError):
        device.create_operator(pooling(name, 6, 4, strides=(1, 0)))


@pytest.mark.parametrize("kind", DEVICES)
def test_means_of_partial_windows_count_the_padding_and_nothing_beyond(kind):
    device = device_of(kind)
    desc = pooling("AVERAGE_POOLING", 3, 2, include_padding=True)
    y = device.create_operator(desc).compile()(np.float32([[[[1, 2, 3]]]]))
    np.testing.assert_allclose(y[0, 0, 0], [1, 3], rtol=1e-6)


def cast_to_bool():
    """A cast of floats to bool as ONNX Runtime describes it."""
    builder = dml.GraphBuilder()
    cast = OPERATORS["CAST"](
        input_tensor=T("FLOAT32", (4,)), output_tensor=T("UINT8", (4,))
    )  # fmt: skip
    (octets,) = builder.operator(cast, builder.input("x", cast.input_tensor))
    clip = OPERATORS["ELEMENT_WISE_CLIP1"](
        input_tensor=T("UINT8", (4,)), output_tensor=T("UINT8", (4,)), min_max_data_type="UINT8",
        min=0, max=1,
    )  # fmt: skip
    (y,) = builder.operator(clip, octets)
    return builder.build(y=y)


def test_bounds_without_a_type_are_read_for_octets_only():
    data = serialized(cast_to_bool(), as_onnxruntime=True)
    assert data != serialized(cast_to_bool())
    graph = graph_from_bytes(data)
    y = dml.Device("cpu").compile_graph(graph)(x=np.float32([0, 0.5, 1, 7]))["y"]
    assert y.tolist() == [0, 0, 1, 1]
    others = data.replace(b"DML_TENSOR_DATA_TYPE_UINT8", b"DML_TENSOR_DATA_TYPE_INT8\0")
    with pytest.raises(dml.ModelError):
        graph_from_bytes(others)


def test_descriptions_of_type_invalid_are_tensors_that_are_left_out():
    kind = OPERATORS["MAX_POOLING2"]
    desc = kind(
        input_tensor=T("FLOAT32", (1, 1, 1, 4)), output_tensor=T("FLOAT32", (1, 1, 1, 2)),
        strides=(1, 2), window_size=(1, 2), start_padding=(0, 0), end_padding=(0, 0),
        dilations=(1, 1),
    )  # fmt: skip
    builder = dml.GraphBuilder()
    y, _ = builder.operator(desc, builder.input("x", desc.input_tensor))
    graph = graph_from_bytes(serialized(builder.build(y=y), as_onnxruntime=True))
    assert graph.nodes[0].desc.output_indices_tensor is None
    assert dml.Device("cpu").compile_graph(graph)(x=np.float32([[[[1, 3, 2, 0]]]]))["y"].tolist() \
        == [[[[3, 2]]]]  # fmt: skip


def test_reports_of_dumps_mark_them(tmp_path, capsys):
    path = tmp_path / "Partition_0.bin"
    path.write_bytes(serialized(graph_of(grouped()), as_onnxruntime=True))
    for name, shape in (("q", (2, 1, 32)), ("k", (2, 1, 16)), ("v", (2, 1, 16))):
        np.save(tmp_path / f"{name}.npy", floats(0, *shape))
    np.save(tmp_path / "lengths.npy", np.int32([0, 0]))
    assert cli.main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.count("Accepted by DirectML, not on its page: lengths of the past") == 2
    assert cli.main(["check", str(path), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert len(report["dispatchables"][0]["observed_deviations"]) == 2
    assert cli.main(["run", str(path), "--output-dir", str(tmp_path / "out")]) == 0
