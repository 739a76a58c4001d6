"""The outputs of If, Loop and Scan, inferred from their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, repeat
from typing import Final

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.onnx.nodes import Node
from anydml.onnx.types import Value

_BATCHED_SCAN: Final = 8
"""The version of Scan with a batch dimension; the shapes of its outputs are not inferred."""

_WITHOUT_SHAPES: Final = 2
"""After as many attempts with shapes, a body is read with those that it declares."""

Operands = Sequence[Value | None]
Made = Callable[[str, Operands | None, int], list[Value]]
"""Reads a body for some inputs (or those that it declares) and a number of results."""

Mark = Callable[[], Callable[[], None]]
"""Returns a function that undoes what has been read since."""


def infer_bodies(node: Node, inputs: Operands, made: Made, mark: Mark, guess: bool) -> list[Value]:
    """Infer the outputs of a node from its bodies.

    Parameters
    ----------
    node : Node
        The node.
    inputs : sequence of Value or None
        Its inputs, without those that only its bodies read.
    made : callable
        Reads a body.
    mark : callable
        Begins what can be undone.
    guess : bool
        Whether a body may be read again to find the shapes that all of its runs have.
    """
    outputs = len(node.proto.output)

    def repeated(before: Operands, states: Operands, after: Operands) -> list[Value]:
        """The results of a body that runs several times, the states first.

        The shapes of states are those of the first run if the body keeps them. Otherwise it is
        read again without the sizes that it changes, and then without these shapes.
        """
        for attempt in count(0 if guess else _WITHOUT_SHAPES):
            undo, given = mark(), states
            if attempt == _WITHOUT_SHAPES:
                given = [value and Value("", value.type, proto=value.proto) for value in states]
            found = made("body", [*before, *given, *after], outputs + len(before))
            ends = [*map(_either, states, found)]
            same = [value and value.shape for value in states] == [end.shape for end in ends]
            if same or attempt == _WITHOUT_SHAPES:
                break
            undo()
            states = ends
        return [*ends, *found[len(states) :]]

    if node.title == "If":
        one, other = made("then_branch", (), outputs), made("else_branch", (), outputs)
        return [*map(_either, one, other)]
    if node.title == "Loop":
        states = [Value("", "bool", ()), *inputs[2:]]
        found = repeated([Value("", "i64", ())], states, ())
        return [
            *found[1 : len(states)],
            *map(_stacked, found[len(states) :], repeat(None), repeat(0)),
        ]
    if node.title == "Scan" and node.version > _BATCHED_SCAN:
        at = len(inputs) - _scanned_inputs(node, inputs)
        axes = node.attributes.get("scan_input_axes") or [0] * len(inputs[at:])
        slices = [*map(_sliced, inputs[at:], axes)]
        found = repeated((), inputs[:at], slices)
        first = inputs[at]
        length = None if first is None or first.shape is None else first.shape[axes[0]]
        axes = node.attributes.get("scan_output_axes") or [0] * len(found[at:])
        return [*found[:at], *map(_stacked, found[at:], repeat(length), axes)]
    for attribute in node.proto.attribute:
        if attribute.HasField("g"):
            made(attribute.name, None, len(attribute.g.output))
    return []


def _scanned_inputs(node: Node, inputs: Operands) -> int:
    number = node.attributes["num_scan_inputs"]
    if not (isinstance(number, int) and 0 < number <= len(inputs)):
        raise ModelError(
            f"Node {short_repr(node.name)} (Scan): num_scan_inputs: expected 1..{len(inputs)}, got "
            f"{short_repr(number)}."
        )
    return number


def _either(one: Value | None, other: Value) -> Value:
    """The facts that hold of a value that is one or another."""
    one = one or other
    shape = None
    if one.shape is not None and other.shape is not None and len(one.shape) == len(other.shape):
        pairs = zip(one.shape, other.shape, strict=True)
        shape = tuple(a if a == b else None for a, b in pairs)
    return Value("", one.type or other.type, shape, proto=one.proto or other.proto)


def _sliced(value: Value | None, axis: int) -> Value | None:
    """A value for one run of a body, of the value for all."""
    if value is None or value.shape is None:
        return value and Value("", value.type)
    at = range(len(value.shape))[axis]
    return Value("", value.type, (*value.shape[:at], *value.shape[at + 1 :]))


def _stacked(value: Value, length: int | str | None, axis: int) -> Value:
    """The value of all runs of a body, of the value of each."""
    if value.shape is None:
        return Value("", value.type)
    at = range(len(value.shape) + 1)[axis]
    return Value("", value.type, (*value.shape[:at], length, *value.shape[at:]))
