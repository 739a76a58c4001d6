"""Recurrent layers."""

from __future__ import annotations

from typing import Any, Final

from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, UnsupportedError
from anydml.ops._registry import OPERATORS

DEFAULTS: Final = {
    "RNN": ("Tanh",),
    "GRU": ("Sigmoid", "Tanh"),
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
}
_DIRECTIONS: Final = {
    "forward": "FORWARD", "reverse": "BACKWARD", "bidirectional": "BIDIRECTIONAL",
}  # fmt: skip
# Activations by ONNX's names, with the fields that activation_alpha and activation_beta set.
_ACTIVATIONS: Final[dict[str, tuple[str, dict[str, float]]]] = {
    "affine": ("ACTIVATION_LINEAR", {"alpha": 1.0, "beta": 0.0}),
    "elu": ("ACTIVATION_ELU", {"alpha": 1.0}),
    "hardsigmoid": ("ACTIVATION_HARD_SIGMOID", {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": ("ACTIVATION_LEAKY_RELU", {"alpha": 0.01}),
    "relu": ("ACTIVATION_RELU", {}),
    "scaledtanh": ("ACTIVATION_SCALED_TANH", {"alpha": 1.0, "beta": 1.0}),
    "sigmoid": ("ACTIVATION_SIGMOID", {}),
    "softplus": ("ACTIVATION_SOFTPLUS", {}),
    "softsign": ("ACTIVATION_SOFTSIGN", {}),
    "tanh": ("ACTIVATION_TANH", {}),
    "thresholdedrelu": ("ACTIVATION_THRESHOLDED_RELU", {"alpha": 1.0}),
}


def _activations(n: Lowering, name: str, count: int) -> list[Any]:
    names = n.get("activations") or [*DEFAULTS[name]] * 2
    numbers = {key: iter(n.get(f"activation_{key}", [])) for key in ("alpha", "beta")}
    found = []
    for item in names[:count]:
        text = item.decode() if isinstance(item, bytes) else item
        if text.lower() not in _ACTIVATIONS:
            raise UnsupportedError(f"DirectML has no activation {text!r} in a recurrent layer")
        operator, fields = _ACTIVATIONS[text.lower()]
        values: dict[str, float] = {key: next(numbers[key], v) for key, v in fields.items()}
        if operator == "ACTIVATION_SOFTPLUS":
            values = {"steepness": 1.0}
        found.append(OPERATORS[operator](**values))
    return found


def layer(name: str) -> Lower:
    """RNN, GRU or LSTM."""

    def lower(n: Lowering) -> list[Expression | None]:
        if n.get("layout", 0):
            raise UnsupportedError("layout 1 (the batch first)")
        direction = n.get("direction", "forward")
        both = direction == "bidirectional"
        directions = 2 if both else 1
        steps, batch, _ = n.shape(0)
        hidden = n.shape(2)[-1]
        if n.get("clip") and name != "LSTM":
            raise UnsupportedError("DirectML has no clip in this layer")

        def optional(i: int) -> Expression | None:
            return n.view(i) if n.has(i) else None

        bias = n.view(3, (1, 1, *n.shape(3))) if n.has(3) else None
        lengths = n.view(4, (1, 1, 1, batch), type="u32") if n.has(4) else None
        operands = [n.view(0), n.view(1), n.view(2), bias, optional(5)]
        fields: dict[str, Any] = {}
        if name == "LSTM":
            peephole = n.view(7, (1, 1, *n.shape(7))) if n.has(7) else None
            operands += [optional(6), lengths, peephole]
            fields = {
                "clip_threshold": n.get("clip", 0.0), "use_clip_threshold": "clip" in n.attributes,
                "couple_input_forget": bool(n.get("input_forget", 0)),
            }  # fmt: skip
        else:
            operands.append(lengths)
            if name == "GRU":
                fields = {"linear_before_reset": bool(n.get("linear_before_reset", 0))}
        kind = n.operand(0).type
        from anydml.onnx.types import DATA_TYPES

        sequence = (DATA_TYPES[kind], (steps, directions, batch, hidden))
        single = (DATA_TYPES[kind], (1, directions, batch, hidden))
        shapes = [sequence, single, single][: 3 if name == "LSTM" else 2]
        outputs = [shape if n.wants(i) else None for i, shape in enumerate(shapes)]
        if not any(outputs):
            raise UnsupportedError("it has no outputs")
        result: list[Expression | None] = list(
            n.emit_all(
                name, *operands, outputs=outputs, direction=_DIRECTIONS[direction],
                activation_descs=_activations(n, name, len(DEFAULTS[name]) * directions),
                **fields,
            )
        )  # fmt: skip
        return result

    return lower
