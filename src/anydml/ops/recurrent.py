"""Recurrent layers: networks that update a state for each element of a sequence.

For each direction, the weights of all gates are stacked by rows. The bias tensor contains the
biases of the input, then the biases of the recurrence. The backward direction starts at the last
element, and has its own states, weights and activations.

A sequence may be shorter than the tensor. Its outputs after its end are then 0, and its last state
is the state at its end, or the initial state if the sequence is empty. A length that exceeds the
tensor means the full length. All operators compute in the type of their tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from anydml.core._literals import RecurrentNetworkDirectionName
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.core.tolerance import running
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    Role,
    boolean,
    count_of,
    enumeration,
    floating,
    input_field,
    nested_list,
    output_field,
)
from anydml.ops._rules import equal, rank_of, same_types, usable
from anydml.ops.activations import FUSABLE, ActivationSigmoid, ActivationTanh, Fusable

FAMILY = Family.NETWORKS

_RANK: Final = 4


class RecurrentNetworkDirection(NamedEnum):
    """``DML_RECURRENT_NETWORK_DIRECTION``."""

    FORWARD = 0
    BACKWARD = 1
    BIDIRECTIONAL = 2


_BACKWARD: Final = RecurrentNetworkDirection.BACKWARD
_BIDIRECTIONAL: Final = RecurrentNetworkDirection.BIDIRECTIONAL


Activate = Callable[[Array], Array]
Cell = Callable[[Sequence[Array], Array], Sequence[Array]]
"""New states from the old ones and what the input adds to each gate; the first is the output."""


def _directions(direction: Any) -> int:
    return 2 if direction == _BIDIRECTIONAL else 1


def _sizes(spec: ArraySpec) -> Sequence[Any]:
    """The sizes, which are unknown if there are more or fewer than four."""
    return usable(spec.shape, _RANK)


def _expected_sizes(name: str, spec: ArraySpec | None, expected: tuple[Any, ...]) -> Rules:
    if spec is None:
        return
    yield equal(f"{name}.DimensionCount", rank_of(spec), _RANK)
    shape = f"{{{', '.join(map(str, expected))}}}"
    for i, (size, got) in enumerate(zip(expected, _sizes(spec), strict=True)):
        why = f"of {shape}, by InputTensor, RecurrenceTensor and Direction"
        yield equal(f"{name}.Sizes[{i}]", got, size, why)


class Recurrent(Computed):
    """Base of the recurrent layers."""

    GATES: ClassVar[int]
    ACTIVATIONS: ClassVar[int]
    """For each direction."""
    TOLERANCE = running(8)

    def check(self) -> Rules:
        fields: Any = self
        for path, tensor, _ in self.tensors(Role.INPUT):
            if tensor.flags is TensorFlags.OWNED_BY_DML:
                yield Violation(f"{path}.Flags", "NONE", tensor.flags)
        outputs = self.tensor_fields(Role.OUTPUT)
        if not self.bind_points(Role.OUTPUT):
            yield Violation(outputs[0].name, "at least one output tensor", None)
        count, expected = (
            len(fields.activation_descs),
            self.ACTIVATIONS * _directions(fields.direction),
        )
        if count != expected:
            rule = f"{expected} operators ({self.ACTIVATIONS} for each direction)"
            yield Violation("ActivationDescs", rule, count)

    @classmethod
    def infer(cls, inputs: Sequence[Any], attributes: Attributes) -> Inferred:
        specs = dict(zip(cls.input_names(), inputs, strict=True))
        direction = attributes["direction"]
        _, steps, batch, size = _sizes(specs["InputTensor"])
        hidden = _sizes(specs["RecurrenceTensor"])[3]
        directions = known(lambda: _directions(direction))
        gates, state = cls.GATES * hidden, (1, directions, batch, hidden)
        expected = {
            "InputTensor": (1, steps, batch, size),
            "WeightTensor": (1, directions, gates, size),
            "RecurrenceTensor": (1, directions, gates, hidden),
            "BiasTensor": (1, 1, directions, 2 * gates),
            "HiddenInitTensor": state,
            "CellMemInitTensor": state,
            "SequenceLengthsTensor": (1, 1, 1, batch),
            "PeepholeTensor": (1, 1, directions, 3 * hidden),
        }
        first, *others = ((n, s) for n, s in specs.items() if n != "SequenceLengthsTensor")
        dtype = inputs[0].dtype
        sequence = ArraySpec((steps, directions, batch, hidden), dtype)
        singles = [ArraySpec(state, dtype)] * (len(cls.tensor_fields(Role.OUTPUT)) - 1)
        return Inferred.of(
            (sequence, *singles),
            *(_expected_sizes(name, spec, expected[name]) for name, spec in specs.items()),
            same_types(first, *others),
        )


def _activations(e: Engine, descs: Sequence[Any], direction: int, count: int) -> list[Activate]:
    # The activations of one direction, from names of kernels and their attributes.
    known = {kind.NAME: kind.compute for kind in FUSABLE}

    def activation(name: str, attributes: Any) -> Activate:
        return lambda x: known[name](e, x, **dict(attributes)).astype(x.dtype)

    return [activation(*desc) for desc in descs[direction * count :][:count]]


def _run(
    e: Engine, x: Array, weight: Array, bias: Array | None, states: Sequence[Array | None],
    lengths: Array | None, hidden: int, direction: RecurrentNetworkDirection,
    cell_of: Callable[[int], Cell], apart: int = 0,
) -> tuple[Array, ...]:  # fmt: skip
    # Returns the outputs of all steps, and the last states. `cell_of` creates the cell of a
    # direction, which adds the recurrence biases of the last gates, `apart` of them, itself.
    xp = e.xp
    x, weight = x[0], weight[0]
    steps, batch, size = x.shape
    rows = weight.shape[1]
    alive = () if lengths is None else (xp.arange(steps)[:, None] < lengths.reshape(-1),)
    sequences, finals = [], []
    for d in range(len(weight)):
        added = e.dot(x.reshape(-1, size), weight[d].T).reshape(steps, batch, rows)
        if bias is not None:
            own, kept = bias[0, 0, d], rows - apart * hidden
            both = own[:kept] + own[rows : rows + kept]
            added = added + (xp.concatenate([both, own[kept:rows]]) if apart else both)
        cell = cell_of(d)

        def step(old: Sequence[Array], at: Any, cell: Cell = cell) -> tuple[Any, Array]:
            added, *alive = at
            new = cell(old, added)
            if not alive:
                return new, new[0]
            within = alive[0][:, None]
            kept = tuple(xp.where(within, y, x) for x, y in zip(old, new, strict=True))
            return kept, xp.where(within, new[0], xp.zeros_like(new[0]))

        initial = tuple(
            xp.zeros((batch, hidden), x.dtype) if s is None else s[0, d] for s in states
        )
        backward = direction is _BACKWARD or d == 1
        last, outputs = e.scan(step, initial, (added, *alive), backward)
        sequences.append(outputs)
        finals.append(last)
    singles = (xp.stack(states)[None] for states in zip(*finals, strict=True))
    return (xp.stack(sequences, axis=1), *singles)


def _gates(x: Array, count: int) -> list[Array]:
    # Faster than a split of NumPy.
    size = x.shape[-1] // count
    return [x[:, i * size : (i + 1) * size] for i in range(count)]


def _transposed(recurrence: Array, d: int, gates: slice = slice(None)) -> Array:
    # The recurrence weights of some gates in one direction, to multiply states with.
    size = recurrence.shape[3]
    rows = slice(*(end and end * size for end in (gates.start, gates.stop)))
    return recurrence[0, d, rows].T


class Rnn(Recurrent):
    """``H = f(X @ W.T + H @ R.T + bias)`` for each element of a sequence.

    Parameters
    ----------
    input_tensor : TensorDesc
        The sequences, with sizes ``{1, steps, batch, input}``. No input may be OWNED_BY_DML.
    weight_tensor : TensorDesc
        The weights of the input, with sizes ``{1, directions, hidden, input}``.
    recurrence_tensor : TensorDesc
        The weights of the recurrence, with sizes ``{1, directions, hidden, hidden}``.
    bias_tensor : TensorDesc, optional
        The biases of the input, then those of the recurrence, with sizes ``{1, 1, directions, 2 *
        hidden}``.
    hidden_init_tensor : TensorDesc, optional
        The initial H, with sizes ``{1, directions, batch, hidden}``; 0 if omitted.
    sequence_lengths_tensor : TensorDesc, optional
        The length of each sequence, with sizes ``{1, 1, 1, batch}``; all steps if omitted.
    output_sequence_tensor : TensorDesc, optional
        H at each step, with sizes ``{steps, directions, batch, hidden}``.
    output_single_tensor : TensorDesc, optional
        The last H, with sizes ``{1, directions, batch, hidden}``. At least one output is required.
    activation_desc_count : int
        The length of `activation_descs`.
    activation_descs : sequence of Activation
        The activation f for each direction; its tensors are omitted.
    direction : RecurrentNetworkDirection
        FORWARD, BACKWARD, or BIDIRECTIONAL for both.
    """

    input_tensor: TensorDesc = input_field()
    weight_tensor: TensorDesc = input_field()
    recurrence_tensor: TensorDesc = input_field()
    bias_tensor: TensorDesc | None = input_field(optional=True)
    hidden_init_tensor: TensorDesc | None = input_field(optional=True)
    sequence_lengths_tensor: TensorDesc | None = input_field(optional=True)
    output_sequence_tensor: TensorDesc | None = output_field(optional=True)
    output_single_tensor: TensorDesc | None = output_field(optional=True)
    activation_desc_count: int = count_of("activation_descs")
    activation_descs: Sequence[Fusable] = nested_list(*FUSABLE)
    direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName = enumeration(
        RecurrentNetworkDirection
    )

    NAME = "RNN"
    GATES = 1
    ACTIVATIONS = 1
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]],
        "weight_tensor": [[[[0.5, 0.0], [0.0, 0.25]]]],
        "recurrence_tensor": [[[[0.5, -0.5], [0.25, 0.0]]]],
        "activation_descs": (ActivationTanh(),), "direction": "FORWARD",
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.RNN torch.nn.RNN"

    @staticmethod
    def compute(
        e: Engine, x: Array, weight: Array, recurrence: Array, bias: Array | None,
        hidden: Array | None, lengths: Array | None, *,
        activation_descs: Any, direction: RecurrentNetworkDirection,
    ) -> tuple[Array, ...]:  # fmt: skip
        def cell_of(d: int) -> Cell:
            (f,) = _activations(e, activation_descs, d, 1)
            matrix = _transposed(recurrence, d)
            return lambda states, added: (f(added + e.dot(states[0], matrix)),)

        size = recurrence.shape[3]
        return _run(e, x, weight, bias, (hidden,), lengths, size, direction, cell_of)


class Gru(Rnn):
    """Gated recurrent units: ``H = (1 - z) * g(…) + z * H`` with update and reset gates.

    ``z = f(Xz + H @ Rz.T)`` and ``r = f(Xr + H @ Rr.T)``. The candidate state is ``g(Xh + (r * H) @
    Rh.T)``, or ``g(Xh + r * (H @ Rh.T))`` with `linear_before_reset`. X is the product of the input
    and its weights; each product includes its bias. The weights and biases of the gates are in the
    order z, r, h.

    Parameters
    ----------
    input_tensor : TensorDesc
        The sequences, with sizes ``{1, steps, batch, input}``.
    weight_tensor : TensorDesc
        The weights of the input, with sizes ``{1, directions, 3 * hidden, input}``.
    recurrence_tensor : TensorDesc
        The weights of the recurrence, with sizes ``{1, directions, 3 * hidden, hidden}``.
    bias_tensor : TensorDesc, optional
        The biases of the input, then those of the recurrence, with sizes ``{1, 1, directions, 6 *
        hidden}``.
    activation_descs : sequence of Activation
        The activations f and g for each direction; their tensors are omitted.
    linear_before_reset : bool
        Whether the state is multiplied by the recurrence weights before the reset gate is applied.
    """

    linear_before_reset: bool = boolean()

    NAME = "GRU"
    GATES = 3
    ACTIVATIONS = 2
    EXAMPLES = ({
        "input_tensor": [[[[1.0]], [[2.0]]]], "weight_tensor": [[[[0.5], [0.25], [1.0]]]],
        "recurrence_tensor": [[[[0.5], [0.25], [1.0]]]],
        "activation_descs": (ActivationSigmoid(), ActivationTanh()), "direction": "FORWARD",
        "linear_before_reset": False,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.GRU torch.nn.GRU"

    @staticmethod
    def compute(  # type: ignore[override]  # names its tensors
        e: Engine, x: Array, weight: Array, recurrence: Array, bias: Array | None,
        hidden: Array | None, lengths: Array | None, *,
        activation_descs: Any, direction: RecurrentNetworkDirection, linear_before_reset: bool,
    ) -> tuple[Array, ...]:  # fmt: skip
        def cell_of(d: int) -> Cell:
            f, g = _activations(e, activation_descs, d, 2)
            gates, matrix = (_transposed(recurrence, d, part) for part in parts)
            own = 0.0 if bias is None else bias[0, 0, d, -size:]

            def cell(states: Sequence[Array], added: Array) -> tuple[Array]:
                (h,) = states
                z, r = _gates(f(added[:, : 2 * size] + e.dot(h, gates)), 2)
                before = e.dot(h if linear_before_reset else r * h, matrix) + own
                reset = r * before if linear_before_reset else before
                new = g(added[:, 2 * size :] + reset)
                return ((1 - z) * new + z * h,)

            return cell

        size, parts = recurrence.shape[3], (slice(2), slice(2, 3))
        return _run(e, x, weight, bias, (hidden,), lengths, size, direction, cell_of, apart=1)


class Lstm(Recurrent):
    """Long short-term memory: a cell state C with input, output and forget gates.

    ``i = f(Xi + H @ Ri.T + Pi * C)``, ``F = f(Xf + H @ Rf.T + Pf * C)`` or ``1 - i``, ``C = F * C +
    i * g(Xc + H @ Rc.T)``, ``o = f(Xo + H @ Ro.T + Po * C)`` with the new C, and ``H = o * h(C)``.
    X is the product of the input and its weights; each product includes its bias. The weights and
    biases of the gates are in the order i, o, f, c; the peephole weights P are in the order i, o,
    f.

    Parameters
    ----------
    input_tensor : TensorDesc
        The sequences, with sizes ``{1, steps, batch, input}``. No input may be OWNED_BY_DML.
    weight_tensor : TensorDesc
        The weights of the input, with sizes ``{1, directions, 4 * hidden, input}``.
    recurrence_tensor : TensorDesc
        The weights of the recurrence, with sizes ``{1, directions, 4 * hidden, hidden}``.
    bias_tensor : TensorDesc, optional
        The biases of the input, then those of the recurrence, with sizes ``{1, 1, directions, 8 *
        hidden}``.
    hidden_init_tensor, cell_mem_init_tensor : TensorDesc, optional
        The initial H and C, with sizes ``{1, directions, batch, hidden}``; 0 if omitted.
    sequence_lengths_tensor : TensorDesc, optional
        The length of each sequence, with sizes ``{1, 1, 1, batch}``; all steps if omitted.
    peephole_tensor : TensorDesc, optional
        The peephole weights, with sizes ``{1, 1, directions, 3 * hidden}``; 0 if omitted.
    output_sequence_tensor : TensorDesc, optional
        H at each step, with sizes ``{steps, directions, batch, hidden}``.
    output_single_tensor, output_cell_single_tensor : TensorDesc, optional
        The last H and C, with sizes ``{1, directions, batch, hidden}``. At least one output is
        required.
    activation_desc_count : int
        The length of `activation_descs`.
    activation_descs : sequence of Activation
        The activations f, g and h for each direction; their tensors are omitted.
    direction : RecurrentNetworkDirection
        FORWARD, BACKWARD, or BIDIRECTIONAL for both.
    clip_threshold : float
        The bound to which the arguments of f and g are clipped, on both sides of 0.
    use_clip_threshold : bool
        Whether the arguments of f and g are clipped.
    couple_input_forget : bool
        Whether the forget gate is ``1 - i`` instead of F's formula.
    """

    input_tensor: TensorDesc = input_field()
    weight_tensor: TensorDesc = input_field()
    recurrence_tensor: TensorDesc = input_field()
    bias_tensor: TensorDesc | None = input_field(optional=True)
    hidden_init_tensor: TensorDesc | None = input_field(optional=True)
    cell_mem_init_tensor: TensorDesc | None = input_field(optional=True)
    sequence_lengths_tensor: TensorDesc | None = input_field(optional=True)
    peephole_tensor: TensorDesc | None = input_field(optional=True)
    output_sequence_tensor: TensorDesc | None = output_field(optional=True)
    output_single_tensor: TensorDesc | None = output_field(optional=True)
    output_cell_single_tensor: TensorDesc | None = output_field(optional=True)
    activation_desc_count: int = count_of("activation_descs")
    activation_descs: Sequence[Fusable] = nested_list(*FUSABLE)
    direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName = enumeration(
        RecurrentNetworkDirection
    )
    clip_threshold: float = floating()
    use_clip_threshold: bool = boolean()
    couple_input_forget: bool = boolean()

    NAME = "LSTM"
    GATES = 4
    ACTIVATIONS = 3
    EXAMPLES = ({
        "input_tensor": [[[[1.0]], [[2.0]]]], "weight_tensor": [[[[0.5], [0.25], [1.0], [-0.5]]]],
        "recurrence_tensor": [[[[0.5], [0.25], [1.0], [-0.5]]]],
        "activation_descs": (ActivationSigmoid(), ActivationTanh(), ActivationTanh()),
        "direction": "FORWARD", "clip_threshold": 0.0, "use_clip_threshold": False,
        "couple_input_forget": False,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.LSTM torch.nn.LSTM"

    @staticmethod
    def compute(
        e: Engine, x: Array, weight: Array, recurrence: Array, bias: Array | None,
        hidden: Array | None, memory: Array | None, lengths: Array | None,
        peephole: Array | None, *,
        activation_descs: Any, direction: RecurrentNetworkDirection,
        clip_threshold: float, use_clip_threshold: bool, couple_input_forget: bool,
    ) -> tuple[Array, ...]:  # fmt: skip
        xp, size = e.xp, recurrence.shape[3]
        limit = float(clip_threshold)

        def clipped(y: Array) -> Array:
            return xp.clip(y, -limit, limit) if use_clip_threshold else y

        def cell_of(d: int) -> Cell:
            f, g, h = _activations(e, activation_descs, d, 3)
            matrix = _transposed(recurrence, d)
            peeps = None if peephole is None else peephole[0, 0, d].reshape(3, size)

            def cell(states: Sequence[Array], added: Array) -> tuple[Array, Array]:
                state, c = states
                gates = added + e.dot(state, matrix)
                if peeps is None:
                    i, o, forget = _gates(f(clipped(gates[:, : 3 * size])), 3)
                else:
                    in_i, in_o, in_f, _ = _gates(gates, 4)
                    i, forget = f(clipped(in_i + peeps[0] * c)), f(clipped(in_f + peeps[2] * c))
                if couple_input_forget:
                    forget = 1 - i
                c = forget * c + i * g(clipped(gates[:, 3 * size :]))
                if peeps is not None:
                    o = f(clipped(in_o + peeps[1] * c))
                return o * h(c), c

            return cell

        return _run(e, x, weight, bias, (hidden, memory), lengths, size, direction, cell_of)
