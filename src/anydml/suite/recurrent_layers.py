"""Recurrent layers written out once more, with bounds of what each calculation may be off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import anydml as dml
from anydml.engines._numpy import NumpyEngine

Array = np.ndarray[Any, np.dtype[Any]]

HALF_ULP = float(np.finfo(np.float32).eps) / 2


class Bounded(NamedTuple):
    """Numbers, and how far those of an engine may be from them: infinitely, if they overflow."""

    value: Array
    error: Array


def _bounded(value: Array, error: Array, size: Array) -> Bounded:
    """Numbers that are open where the size of what is added up may leave FLOAT32."""
    return Bounded(value, np.where(size + error <= np.finfo(np.float32).max, error, np.inf))


def layer(
    desc: Any, operands: Sequence[Array | None], dtype: type = np.float64, count: float = 0
) -> list[Bounded]:
    """All results of a recurrent layer, computed in a type, with running error bounds.

    Parameters
    ----------
    desc : Descriptor
        An RNN, a GRU or an LSTM.
    operands : sequence of array or None
        For each input of the page its elements.
    dtype : type
        What everything is computed in.
    count : float
        Half-ULPs of FLOAT32 by which a sum or a product may be off, of the magnitudes of its terms;
        an activation of its result plus 1.
    """
    cells = {dml.Rnn: _rnn, dml.Gru: _gru, dml.Lstm: _lstm}
    found: dict[str, Any] = {
        name: x if x is None or x.dtype.kind != "f" else x.astype(dtype)
        for name, x in zip(type(desc).input_names(), operands, strict=True)
    }
    x, lengths = found["InputTensor"][0], found.get("SequenceLengthsTensor")
    steps, batch, _ = x.shape
    alive = np.full(batch, steps) if lengths is None else lengths.reshape(-1)
    sequences, finals = [], []
    with np.errstate(all="ignore"):
        for d in range(found["WeightTensor"].shape[1]):
            cell = cells[type(desc)](desc, found, d, count * HALF_ULP)
            hidden = found["RecurrenceTensor"].shape[3]
            states = []
            for name in ("HiddenInitTensor", "CellMemInitTensor"):
                if name in found:
                    zeros = np.zeros((batch, hidden), dtype)
                    given = found[name]
                    states.append(Bounded(zeros if given is None else given[0, d], zeros))
            outputs = [Bounded(zeros, zeros)] * steps
            is_backward = d == 1 or desc.direction.name == "BACKWARD"
            for i in range(steps)[::-1] if is_backward else range(steps):
                within = (i < alive)[:, None]
                new = cell(x[i], *states)
                states = [_chosen(within, n, o) for n, o in zip(new, states, strict=True)]
                outputs[i] = _chosen(within, new[0], Bounded(zeros, zeros))
            sequences.append(_stacked(outputs, 0))
            finals.append(states)
    lasts = [_stacked(each, 0) for each in zip(*finals, strict=True)]
    return [_stacked(sequences, 1), *(Bounded(*(part[None] for part in last)) for last in lasts)]


def _chosen(within: Array, a: Bounded, b: Bounded) -> Bounded:
    return Bounded(*(np.where(within, one, two) for one, two in zip(a, b, strict=True)))


def _stacked(parts: Sequence[Bounded], axis: int) -> Bounded:
    return Bounded(*(np.stack(values, axis) for values in zip(*parts, strict=True)))


def _given(x: Array) -> Bounded:
    return Bounded(x, np.zeros_like(x))


def _sum(unit: float, *parts: Bounded) -> Bounded:
    value: Any = sum(part.value for part in parts)
    size: Any = sum(np.abs(part.value) for part in parts)
    error: Any = sum(part.error for part in parts)
    return _bounded(value, error + unit * size, size)


def _times(unit: float, a: Bounded, b: Bounded) -> Bounded:
    value = a.value * b.value
    error = np.abs(a.value) * b.error + a.error * np.abs(b.value) + a.error * b.error
    return _bounded(value, error + unit * np.abs(value), np.abs(value))


def _product(unit: float, x: Bounded, w: Array) -> Bounded:
    size = np.abs(x.value) @ np.abs(w).T
    return _bounded(x.value @ w.T, x.error @ np.abs(w).T + unit * size, size)


def _activation(unit: float, desc: Any) -> Callable[[Bounded], Bounded]:
    def function(x: Array) -> Array:
        y = type(desc).compute(NumpyEngine(), x, **desc.attributes())
        return np.asarray(y).astype(x.dtype)

    def activate(x: Bounded) -> Bounded:
        y = function(x.value)
        ends = [np.abs(function(x.value + sign * x.error) - y) for sign in (1, -1)]
        error = np.maximum(*ends) + unit * (np.abs(y) + 1)
        return _bounded(y, np.where(np.isfinite(x.error), error, np.inf), np.abs(y))

    return activate


class _Weights:
    """The weights of one direction, by gates."""

    def __init__(self, found: Any, d: int, gates: int, unit: float) -> None:
        self.w, self.r = (
            np.split(found[name][0, d], gates) for name in ("WeightTensor", "RecurrenceTensor")
        )
        bias = found["BiasTensor"]
        zeros = np.zeros(2 * gates * len(self.r[0]), self.r[0].dtype)
        self.b = np.split(zeros if bias is None else bias[0, 0, d], 2 * gates)
        self.unit = unit

    def gate(self, k: int, x: Array, h: Bounded, *more: Bounded) -> Bounded:
        biases = (_given(self.b[k][None]), _given(self.b[len(self.w) + k][None]))
        parts = _product(self.unit, _given(x), self.w[k]), _product(self.unit, h, self.r[k])
        return _sum(self.unit, *parts, *biases, *more)


def _activations(desc: Any, d: int, unit: float) -> list[Callable[[Bounded], Bounded]]:
    count = desc.ACTIVATIONS
    return [_activation(unit, a) for a in desc.activation_descs[d * count : (d + 1) * count]]


def _rnn(desc: Any, found: Any, d: int, unit: float) -> Any:
    weights, (f,) = _Weights(found, d, 1, unit), _activations(desc, d, unit)
    return lambda x, h: (f(weights.gate(0, x, h)),)


def _gru(desc: Any, found: Any, d: int, unit: float) -> Any:
    weights, (f, g) = _Weights(found, d, 3, unit), _activations(desc, d, unit)

    def cell(x: Array, h: Bounded) -> Sequence[Bounded]:
        z, r = f(weights.gate(0, x, h)), f(weights.gate(1, x, h))
        inner, bias = _product(unit, _given(x), weights.w[2]), _given(weights.b[2][None])
        own = _given(weights.b[5][None])
        if desc.linear_before_reset:
            reset = _times(unit, r, _sum(unit, _product(unit, h, weights.r[2]), own))
        else:
            reset = _sum(unit, _product(unit, _times(unit, r, h), weights.r[2]), own)
        new = g(_sum(unit, inner, bias, reset))
        rest = _sum(unit, _given(np.ones_like(z.value)), Bounded(-z.value, z.error))
        return (_sum(unit, _times(unit, rest, new), _times(unit, z, h)),)

    return cell


def _lstm(desc: Any, found: Any, d: int, unit: float) -> Any:
    weights, (f, g, h_of) = _Weights(found, d, 4, unit), _activations(desc, d, unit)
    limit, peephole = float(desc.clip_threshold), found["PeepholeTensor"]

    def clipped(x: Bounded) -> Bounded:
        return Bounded(np.clip(x.value, -limit, limit), x.error) if desc.use_clip_threshold else x

    def peeped(k: int, c: Bounded) -> Sequence[Bounded]:
        if peephole is None:
            return ()
        own = np.split(peephole[0, 0, d], 3)[k][None]
        return (_times(unit, _given(own), c),)

    def cell(x: Array, h: Bounded, c: Bounded) -> Sequence[Bounded]:
        i = f(clipped(weights.gate(0, x, h, *peeped(0, c))))
        forget = f(clipped(weights.gate(2, x, h, *peeped(2, c))))
        if desc.couple_input_forget:
            forget = _sum(unit, _given(np.ones_like(i.value)), Bounded(-i.value, i.error))
        new = g(clipped(weights.gate(3, x, h)))
        c = _sum(unit, _times(unit, forget, c), _times(unit, i, new))
        o = f(clipped(weights.gate(1, x, h, *peeped(1, c))))
        return _times(unit, o, h_of(c)), c

    return cell
