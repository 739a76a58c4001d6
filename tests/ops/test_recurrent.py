"""Recurrent layers against PyTorch's, how exact they are, and the rules of their sizes."""

import dataclasses

import numpy as np
import pytest

import anydml as dml
from anydml.core.tolerance import first_difference
from anydml.ops._fields import Role
from anydml.suite.recurrent_layers import layer
from support.computed import NAMES, device_named

CPU = dml.Device("cpu")
T = dml.TensorDesc
DIRECTIONS = ("FORWARD", "BACKWARD", "BIDIRECTIONAL")
STEPS, BATCH, SIZE, HIDDEN = 5, 3, 4, 2

KINDS = {
    # PyTorch's class, activations, attributes, and its gates in the order of the page.
    dml.Rnn: ("RNN", (dml.ActivationTanh(),), {}, (0,)),
    dml.Gru: (
        "GRU", (dml.ActivationSigmoid(), dml.ActivationTanh()),
        {"linear_before_reset": True}, (1, 0, 2),
    ),
    dml.Lstm: (
        "LSTM", (dml.ActivationSigmoid(), dml.ActivationTanh(), dml.ActivationTanh()),
        {"clip_threshold": 1, "use_clip_threshold": False, "couple_input_forget": False},
        (0, 3, 1, 2),
    ),
}  # fmt: skip


def normal(seed, *sizes):
    return np.random.default_rng(seed).normal(0, 1, sizes).astype("f4")


def operands(kind, directions, steps=STEPS, size=SIZE, hidden=HIDDEN):
    gates = kind.GATES * hidden
    state = (1, directions, BATCH, hidden)
    shapes = {
        "input_tensor": (1, steps, BATCH, size),
        "weight_tensor": (1, directions, gates, size),
        "recurrence_tensor": (1, directions, gates, hidden),
        "bias_tensor": (1, 1, directions, 2 * gates),
        "hidden_init_tensor": state,
    }
    if kind is dml.Lstm:
        shapes["cell_mem_init_tensor"] = state
    return {name: normal(i, *shape) for i, (name, shape) in enumerate(shapes.items())}


def describe(kind, arrays, direction, **changes):
    _, activations, attributes, _ = KINDS[kind]
    both = 2 if direction == "BIDIRECTIONAL" else 1
    tensors = {name: T.from_array(array) for name, array in arrays.items()}
    return kind.with_outputs(**{
        **tensors, "activation_descs": activations * both, "direction": direction,
        **attributes, **changes,
    })  # fmt: skip


def run(desc, arrays, device=CPU):
    results = device.create_operator(desc).compile()(*arrays.values())
    return [*results] if isinstance(results, tuple) else [results]


def by_definition(desc, arrays, dtype=np.float64):
    """The layer written out in NumPy, with running error bounds."""
    given = [arrays.get(info.attribute) for info in desc.tensor_fields(Role.INPUT)]
    return layer(desc, given, dtype, desc.TOLERANCE.count)


def first_wrong(desc, arrays, got, expected=None):
    """The first result beyond the bound, which is at most 0.01, or None."""
    for i, (ours, bounded) in enumerate(zip(got, by_definition(desc, arrays), strict=True)):
        exact = bounded.value if expected is None else expected[i]
        assert bounded.error.max() <= 1e-2
        if first_difference(ours, exact, bounded.error, desc.TOLERANCE) is not None:
            return i
    return None


def by_pytorch(kind, arrays, direction, lengths=None):
    """The outputs of PyTorch's layer in float64, sequences of these lengths packed."""
    torch = pytest.importorskip("torch")
    name, _, _, order = KINDS[kind]
    both = direction == "BIDIRECTIONAL"
    layer = getattr(torch.nn, name)(SIZE, HIDDEN, bidirectional=both, dtype=torch.double)
    gates = kind.GATES

    def blocks(values):  # in PyTorch's order of gates
        parts = values.reshape(gates, HIDDEN, -1)
        reordered = np.empty_like(parts)
        for i, gate in enumerate(order):
            reordered[gate] = parts[i]
        return torch.from_numpy(reordered.reshape(gates * HIDDEN, -1).astype("f8"))

    for d in range(1 + both):
        suffix = "_reverse" if d else ""
        bias = arrays["bias_tensor"][0, 0, d].reshape(2, -1)
        values = {
            "weight_ih": arrays["weight_tensor"][0, d],
            "weight_hh": arrays["recurrence_tensor"][0, d],
            "bias_ih": bias[0],
            "bias_hh": bias[1],
        }
        with torch.no_grad():
            for parameter, value in values.items():
                target = getattr(layer, f"{parameter}_l0{suffix}")
                target.copy_(blocks(value).reshape(target.shape))
    states = tuple(torch.from_numpy(arrays[n][0].astype("f8"))
                   for n in arrays if n.endswith("init_tensor"))  # fmt: skip
    x = torch.from_numpy(arrays["input_tensor"][0].astype("f8"))
    if lengths is not None:
        pack = torch.nn.utils.rnn.pack_padded_sequence
        x = pack(x, torch.tensor(lengths), enforce_sorted=False)
    with torch.no_grad():
        outputs, last = layer(x, states if len(states) > 1 else states[0])
    if lengths is not None:
        outputs, _ = torch.nn.utils.rnn.pad_packed_sequence(outputs, total_length=STEPS)
    sequence = outputs.reshape(STEPS, BATCH, 1 + both, HIDDEN).permute(0, 2, 1, 3)
    last = last if isinstance(last, tuple) else (last,)
    return [sequence.numpy(), *(state[None].numpy() for state in last)]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_pytorch(kind, direction):
    arrays = operands(kind, 2 if direction == "BIDIRECTIONAL" else 1)
    desc = describe(kind, arrays, direction)
    got = run(desc, arrays)
    if direction == "BACKWARD":  # PyTorch has none: the sequence turned round
        reversed_arrays = {**arrays, "input_tensor": arrays["input_tensor"][:, ::-1].copy()}
        expected = by_pytorch(kind, reversed_arrays, direction)
        expected[0] = expected[0][::-1]
    else:
        expected = by_pytorch(kind, arrays, direction)
    assert first_wrong(desc, arrays, got, expected) is None


def mistaken(kind, arrays):
    """The operands of layers with one mistake each."""
    gates = kind.GATES
    for name in ("weight_tensor", "recurrence_tensor"):
        parts = np.split(arrays[name], gates, axis=2)
        for i in range(gates - 1):
            swapped = [*parts[:i], parts[i + 1], parts[i], *parts[i + 2 :]]
            yield {**arrays, name: np.concatenate(swapped, axis=2)}
    halves = np.split(arrays["bias_tensor"], 2 * gates, axis=3)
    for i in range(2 * gates):
        rest = [part * (i != j) for j, part in enumerate(halves)]
        yield {**arrays, "bias_tensor": np.concatenate(rest, axis=3)}
    x = arrays["input_tensor"]
    yield {**arrays, "input_tensor": x[:, [0, 0, *range(1, STEPS - 1)]]}
    yield {**arrays, "hidden_init_tensor": arrays["hidden_init_tensor"] * 0}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_mistakes_exceed_the_tolerance(kind):
    """Swapped gates, a missing bias, a step too many, and a lost state."""
    arrays = operands(kind, 1)
    desc = describe(kind, arrays, "FORWARD")
    assert first_wrong(desc, arrays, run(desc, arrays)) is None
    cases = [*mistaken(kind, arrays)]
    assert len(cases) == 2 * (kind.GATES - 1) + 2 * kind.GATES + 2
    for wrong in cases:
        assert first_wrong(desc, arrays, run(desc, wrong)) is not None


def rms(got, exact):
    """The root mean square of all errors."""
    return np.sqrt(np.mean([np.mean((a - b) ** 2) for a, b in zip(got, exact, strict=True)]))


@pytest.mark.parametrize("sizes", [(5, 4, 2), (32, 64, 64), (20, 256, 256), (100, 24, 32)])
@pytest.mark.parametrize("device", [*NAMES, "reference"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_errors_are_those_of_float32(kind, device, sizes):
    """The root mean square is at most 4 times that of the layer in float32, written out."""
    arrays = operands(kind, 2, *sizes)
    for name in ("weight_tensor", "recurrence_tensor", "bias_tensor"):
        arrays[name] = arrays[name] / np.float32(np.sqrt(sizes[-1]))
    for before in (True, False) if kind is dml.Gru else (None,):
        changes = {} if before is None else {"linear_before_reset": before}
        desc = describe(kind, arrays, "BIDIRECTIONAL", **changes)
        exact = [bounded.value for bounded in by_definition(desc, arrays)]
        narrow = [bounded.value for bounded in by_definition(desc, arrays, np.float32)]
        got = run(desc, arrays, device_named(device))
        assert rms(got, exact) <= 4 * rms(narrow, exact)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
@pytest.mark.parametrize("steps", [STEPS, 70])
def test_nan_reaches_the_states_of_its_sequence(kind, device, steps):
    arrays = operands(kind, 1, steps)
    arrays["input_tensor"][0, 1, 2, 0] = np.nan
    for result in run(describe(kind, arrays, "FORWARD"), arrays, device_named(device)):
        is_nan = np.isnan(result)
        assert is_nan[-1, 0, 2].all()
        assert not is_nan[:, :, :2].any()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [None, [0, 2, 2**32 - 1, 5]])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_one_node_of_onnx_has_all_results(kind, lengths, direction, monkeypatch):
    """For any number of steps, without clipping and rare activations."""
    device_named("onnxruntime")
    from anydml.devices.backends import onnxruntime as backend

    made = []
    new_session = backend._new_session
    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)
    monkeypatch.setattr(
        backend,
        "_new_session",
        lambda n, model, *a: made.append(model) or new_session(n, model, *a),
    )
    arrays = operands(kind, 2 if direction == "BIDIRECTIONAL" else 1, 20)
    if lengths is not None:
        arrays["sequence_lengths_tensor"] = np.array([[[lengths[:BATCH]]]], "u4")
    changes = {"couple_input_forget": True} if kind is dml.Lstm else {}
    desc = describe(kind, arrays, direction, **changes)
    got = run(desc, arrays, dml.Device("onnxruntime"))
    assert first_wrong(desc, arrays, got) is None
    (model,) = made
    operators = [node.op_type for node in model.proto.graph.node]
    assert operators.count(kind.NAME) == 1
    assert len(operators) < 40  # with guards, and without steps


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_sequences_of_several_lengths(kind):
    arrays = operands(kind, 2)
    lengths = [2, 5, 1]
    expected = by_pytorch(kind, arrays, "BIDIRECTIONAL", lengths)
    names = list(arrays)
    for arguments in (lengths, [2, 2**32 - 1, 1]):
        with_lengths = dict(arrays, sequence_lengths_tensor=np.array([[[arguments]]], "u4"))
        ordered = {n: with_lengths[n] for n in [*names, "sequence_lengths_tensor"]}
        desc = describe(kind, ordered, "BIDIRECTIONAL")
        assert first_wrong(desc, ordered, run(desc, ordered), expected) is None


def test_an_empty_sequence_keeps_its_state():
    arrays = operands(dml.Rnn, 1)
    arrays["sequence_lengths_tensor"] = np.array([[[[0, 1, 0]]]], "u4")
    sequence, single = run(describe(dml.Rnn, arrays, "BACKWARD"), arrays)
    assert (sequence[:, :, [0, 2]] == 0).all()
    np.testing.assert_array_equal(single[0, 0, [0, 2]], arrays["hidden_init_tensor"][0, 0, [0, 2]])
    np.testing.assert_array_equal(single[0, 0, 1], sequence[0, 0, 1])


@pytest.mark.parametrize("left_out", ["output_sequence_tensor", "output_single_tensor"])
def test_one_output(left_out):
    arrays = operands(dml.Rnn, 1)
    both = run(describe(dml.Rnn, arrays, "FORWARD"), arrays)
    (got,) = run(describe(dml.Rnn, arrays, "FORWARD", **{left_out: None}), arrays)
    np.testing.assert_array_equal(got, both[left_out == "output_sequence_tensor"])


def test_clipping_coupling_and_peepholes_by_hand():
    """One cell of one element, as its formulas have it."""
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    x, h, c = 0.5, -0.25, 2.0
    w, r, b = normal(1, 4, 1), normal(2, 4, 1), normal(3, 8)
    p = normal(4, 3)
    arrays = {
        "input_tensor": np.full((1, 1, 1, 1), x, "f4"),
        "weight_tensor": w[None, None], "recurrence_tensor": r[None, None],
        "bias_tensor": b[None, None, None],
        "hidden_init_tensor": np.full((1, 1, 1, 1), h, "f4"),
        "cell_mem_init_tensor": np.full((1, 1, 1, 1), c, "f4"),
        "peephole_tensor": p[None, None, None],
    }  # fmt: skip
    for clip, couple in ((False, False), (True, False), (False, True)):
        desc = describe(dml.Lstm, arrays, "FORWARD", clip_threshold=0.3, use_clip_threshold=clip,
                        couple_input_forget=couple)  # fmt: skip
        got = [float(y.ravel()[0]) for y in run(desc, arrays)]
        cut = (lambda v: np.clip(v, -0.3, 0.3)) if clip else (lambda v: v)
        i, o, f, g = (x * w[k, 0] + h * r[k, 0] + b[k] + b[4 + k] for k in range(4))
        gate_i = sigmoid(cut(i + p[0] * c))
        gate_f = 1 - gate_i if couple else sigmoid(cut(f + p[2] * c))
        cell = gate_f * c + gate_i * np.tanh(cut(g))
        expected = sigmoid(cut(o + p[1] * cell)) * np.tanh(cell)
        np.testing.assert_allclose(got, [expected, expected, cell], rtol=1e-6)


def test_sizes_and_counts_that_are_refused():
    arrays = operands(dml.Rnn, 1)
    good = describe(dml.Rnn, arrays, "FORWARD")
    wrong = dataclasses.replace(
        good, weight_tensor=T("FLOAT32", (1, 2, 3, 4)), bias_tensor=T("FLOAT16", (1, 1, 1, 2)),
    )  # fmt: skip
    found = {v.path.partition(".")[2]: str(v) for v in CPU.check(wrong)}
    assert [*found] == [
        "WeightTensor.Sizes[1]", "WeightTensor.Sizes[2]", "BiasTensor.Sizes[3]",
        "BiasTensor.DataType",
    ]  # fmt: skip
    none = dataclasses.replace(good, activation_descs=(), activation_desc_count=0)
    assert [str(v) for v in CPU.check(none)] == [
        "RNN.ActivationDescs: expected 1 operators (1 for each direction), got 0",
        "RNN.ActivationDescCount: expected 1 (1 for each direction), got 0",
    ]
    assert "expected 2 (of {1, 1, 2, 4}, by InputTensor" in found["WeightTensor.Sizes[2]"]
    both = dataclasses.replace(good, direction="BIDIRECTIONAL")
    paths = {v.path.partition(".")[2] for v in CPU.check(both)}
    assert {"ActivationDescs", "WeightTensor.Sizes[1]"} <= paths
    owned = dataclasses.replace(
        good, weight_tensor=T("FLOAT32", (1, 1, 2, 4), flags="OWNED_BY_DML"),
        output_sequence_tensor=None, output_single_tensor=None,
    )  # fmt: skip
    assert [str(v) for v in CPU.check(owned)] == [
        "RNN.WeightTensor.Flags: expected NONE, got OWNED_BY_DML",
        "RNN.OutputSequenceTensor: expected at least one output tensor, got None",
    ]
