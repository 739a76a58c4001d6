"""Recurrent layers against PyTorch's, and the rules of their sizes."""

import dataclasses

import numpy as np
import pytest

import anydml as dml
from support.tolerances import assert_within

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


def operands(kind, directions):
    gates = kind.GATES * HIDDEN
    state = (1, directions, BATCH, HIDDEN)
    shapes = {
        "input_tensor": (1, STEPS, BATCH, SIZE),
        "weight_tensor": (1, directions, gates, SIZE),
        "recurrence_tensor": (1, directions, gates, HIDDEN),
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


def run(desc, arrays):
    return CPU.create_operator(desc).compile()(*arrays.values())


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
    got = run(describe(kind, arrays, direction), arrays)
    if direction == "BACKWARD":  # PyTorch has none: the sequence turned round
        reversed_arrays = {**arrays, "input_tensor": arrays["input_tensor"][:, ::-1].copy()}
        expected = by_pytorch(kind, reversed_arrays, direction)
        expected[0] = expected[0][::-1]
    else:
        expected = by_pytorch(kind, arrays, direction)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert_within(kind, ours, theirs)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_sequences_of_several_lengths(kind):
    arrays = operands(kind, 2)
    lengths = [2, 5, 1]
    expected = by_pytorch(kind, arrays, "BIDIRECTIONAL", lengths)
    names = list(arrays)
    for arguments in (lengths, [2, 2**32 - 1, 1]):
        with_lengths = dict(arrays, sequence_lengths_tensor=np.array([[[arguments]]], "u4"))
        ordered = {n: with_lengths[n] for n in [*names, "sequence_lengths_tensor"]}
        got = run(describe(kind, ordered, "BIDIRECTIONAL"), ordered)
        for ours, theirs in zip(got, expected, strict=True):
            assert_within(kind, ours, theirs)


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
    got = run(describe(dml.Rnn, arrays, "FORWARD", **{left_out: None}), arrays)
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
