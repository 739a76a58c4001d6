"""Operators of DirectML that are operators of ONNX, too: one node in place of `compute`.

Their results are within the tolerance of the definition, and NaN where its are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from anydml.engines._onnx_arrays import chosen, compact, emit, emit_output, guarded, is_traced
from anydml.engines._onnx_namespace import minimum

Form = Callable[[str, Sequence[Any], Mapping[str, Any]], "Sequence[Any] | None"]

RECURRENT: Final = ("RNN", "GRU", "LSTM")

_MOST_ADDED: Final = 1024
"""The most elements that ONNX Runtime adds in float32 within the tolerance of a softmax."""

_ACTIVATIONS: Final = {
    "ACTIVATION_RELU": "Relu", "ACTIVATION_SIGMOID": "Sigmoid", "ACTIVATION_TANH": "Tanh",
}  # fmt: skip
_DIRECTIONS: Final = {
    "FORWARD": "forward", "BACKWARD": "reverse", "BIDIRECTIONAL": "bidirectional",
}  # fmt: skip


def own_results(
    kernel: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> Sequence[Any] | None:
    """The results of a call by an operator of ONNX; None if it has no equal one."""
    form = _FORMS.get(kernel)
    return None if form is None else form(kernel, operands, attributes)


def _recurrent(
    kernel: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> Sequence[Any] | None:
    x, weight, recurrence, bias, hidden, *others = operands
    memory, lengths, peephole = others if kernel == "LSTM" else (None, *others, None)
    names = [_ACTIVATIONS.get(name, "") for name, _ in attributes["activation_descs"]]
    is_plain = not attributes.get("use_clip_threshold") and all(names)
    if not is_plain or x.dtype != np.float32 or not any(map(is_traced, operands)):
        return None
    # With a bias, ONNX Runtime's LSTM and GRU take NaN for a number.
    if kernel != "RNN" and bias is not None and not all(map(_without_nan, operands)):
        return None
    _, steps, batch, _ = x.shape
    _, directions, _, size = recurrence.shape
    flags = {
        own: int(attributes[name])
        for name, own in (("couple_input_forget", "input_forget"), ("linear_before_reset",) * 2)
        if attributes.get(name)
    }
    rows, states = (
        [None if y is None else y.reshape(y.shape[y.ndim - count :]) for y in group]
        for count, group in ((2, (bias, peephole)), (3, (x, weight, recurrence, hidden, memory)))
    )
    ends = None if lengths is None else minimum(lengths.reshape(batch), np.uint32(steps))
    counts = None if ends is None else ends.astype(np.int32)
    inputs = [*states[:3], rows[0], counts, *states[3:], rows[1]]
    while inputs[-1] is None:
        inputs.pop()
    state = (directions, batch, size)
    outputs = [
        emit_output(
            i, kernel, inputs, x.dtype, shape, hidden_size=size, activations=tuple(names),
            direction=_DIRECTIONS[attributes["direction"].name], **flags,
        )
        for i, shape in enumerate([(steps, *state), state, state][: 3 if kernel == "LSTM" else 2])
    ]  # fmt: skip
    if ends is not None:  # the state of an empty sequence is the initial one
        initial = [np.float32(0) if y is None else y for y in states[3:]]
        is_empty = ends.reshape(1, batch, 1) == np.uint32(0)
        outputs[1:] = [chosen(is_empty, *pair) for pair in zip(initial, outputs[1:], strict=False)]
    return [outputs[0], *(y[None] for y in outputs[1:])]


def _without_nan(x: Any) -> bool:
    if x is None or not is_traced(x):
        return x is None or not np.isnan(x).any()
    return guarded(x)


def _dynamic_quantize(
    kernel: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> Sequence[Any] | None:
    (x,) = operands
    if attributes["dtype"] != "uint8" or not is_traced(x) or x.dtype != np.float32:
        return None
    ones = (1,) * x.ndim
    shapes = (np.uint8, x.shape), (np.float32, ()), (np.uint8, ())
    y, scale, zero = (
        emit_output(i, "DynamicQuantizeLinear", (x,), *spec) for i, spec in enumerate(shapes)
    )
    # NaN and infinity are lost, and what a scale of 0 makes of numbers.
    if not guarded(x, is_finite=True, divisor=scale):
        return None
    return y, scale.reshape(ones), zero.reshape(ones)


def _softmax(
    kernel: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> Sequence[Any] | None:
    (x,) = operands
    is_last = [*attributes.get("axes", [x.ndim - 1])] == [x.ndim - 1]
    if not is_last or not is_traced(x) or x.dtype != np.float32 or x.shape[-1] > _MOST_ADDED:
        return None
    return [emit("Softmax", (x,), x.dtype, x.shape, axis=x.ndim - 1)]


def _sloped(
    kernel: str, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> Sequence[Any] | None:
    x, *slopes = operands
    if not is_traced(x) or x.dtype != np.float32:
        return None
    if not slopes:
        return [emit("LeakyRelu", (x,), x.dtype, x.shape, alpha=attributes["alpha"])]
    return [emit("PRelu", (x, compact(slopes[0])), x.dtype, x.shape)]


_FORMS: Final[Mapping[str, Form]] = {
    **dict.fromkeys(RECURRENT, _recurrent),
    **dict.fromkeys(("ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1"), _softmax),
    "ACTIVATION_LEAKY_RELU": _sloped,
    "ACTIVATION_PARAMETERIZED_RELU": _sloped,
    "DYNAMIC_QUANTIZE_LINEAR": _dynamic_quantize,
}
