"""Runs of FLOAT32 operations as native chains.

The calls' `compute` is run on values that record which operations are applied to them. Where these
are all operations that the native code has, with the bits of NumPy's, a run is one native call: on
threads of the kernels' pool, and without the interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np

from anydml._native import native
from anydml.devices.backends._partition import Run
from anydml.ops._registry import definition_of

_FLOAT: Final = np.dtype(np.float32)


class _UnknownOperationError(Exception):
    """An operation that native chains do not have."""


@cache
def _codes() -> dict[str, int]:
    """The numbers of the native operations, by NumPy's names."""
    return {name: code for code, name in enumerate(native.chain_operations())}


class _Value:
    """A float32 array that a chain reads or makes: its number is its only content."""

    __array_ufunc__ = None  # NumPy's scalars leave operations to this class
    dtype = _FLOAT

    def __init__(self, recorder: _Recorder, number: int) -> None:
        self._recorder = recorder
        self.number = number

    def __add__(self, other: Any) -> Any:
        return self._recorder.apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._recorder.apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._recorder.apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._recorder.apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._recorder.apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._recorder.apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._recorder.apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._recorder.apply("divide", other, self)

    def __neg__(self) -> Any:
        return self._recorder.apply("negative", self)

    def __getattr__(self, name: str) -> Any:
        raise _UnknownOperationError(name)

    def __hash__(self) -> int:
        return self.number

    def _unknown(self, other: Any) -> Any:
        raise _UnknownOperationError("a comparison")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __pow__ = __mod__ = _unknown


class _Recorder:
    """An engine whose operations are recorded: its namespace is itself.

    Values are counted: constants below -1, the others from 0 on, as they are made.
    """

    def __init__(self) -> None:
        self.xp = self
        self.constants: dict[np.uint32, int] = {}
        self.operations: list[tuple[int, int, int, int]] = []
        self.count = 0

    def value(self) -> _Value:
        """A new value."""
        self.count += 1
        return _Value(self, self.count - 1)

    def apply(self, name: str, *operands: Any) -> Any:
        """Record an operation; one on numbers alone is done."""
        if not any(isinstance(one, _Value) for one in operands):
            return getattr(np, name)(*operands)
        code = _codes().get({"abs": "absolute"}.get(name, name))
        if code is None:
            raise _UnknownOperationError(name)
        first, second = (self._number(one) for one in (operands[0], operands[-1]))
        result = self.value()
        self.operations.append((code, first, second, result.number))
        return result

    def _number(self, operand: Any) -> int:
        if isinstance(operand, _Value):
            return operand.number
        if type(operand) not in (int, float, np.float32):
            raise _UnknownOperationError(str(type(operand)))
        bits = np.float32(operand).view(np.uint32)
        return self.constants.setdefault(bits, -2 - len(self.constants))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        """Limit elements as NumPy does: one that equals a bound keeps the sign of its zero."""
        return self.apply("minimum", high, self.apply("maximum", low, x))

    def zeros_like(self, x: Any) -> np.float32:
        """One zero, which is each element's."""
        return np.float32(0)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self.apply, name)


def chain_of(run: Run) -> list[int] | None:
    """A run as `native.chain` takes it; None if it has other operations, or other types."""
    if any(run.specs[name].dtype != _FLOAT for name in (*run.inputs, *run.written)):
        return None
    recorder = _Recorder()
    values: dict[str | None, Any] = {None: None, **{name: recorder.value() for name in run.inputs}}
    try:
        for call in run.calls:
            operands = [values[name] for name in call.inputs]
            before = recorder.count
            result = definition_of(call.kernel).compute(
                recorder,  # type: ignore[arg-type]  # it need not be an engine for this
                *operands,
                **dict(call.attributes),
            )
            if not isinstance(result, _Value) or result.number < before:
                return None
            values[call.outputs[0]] = result
    except (_UnknownOperationError, TypeError):
        return None
    outputs = {values[name].number: i for i, name in enumerate(run.outputs)}
    return _encoded(recorder, len(run.inputs), outputs)


def _encoded(recorder: _Recorder, inputs: int, outputs: dict[int, int]) -> list[int]:
    last = {}
    for at, (_, first, second, _) in enumerate(recorder.operations):
        last[first] = last[second] = at
    arrays = inputs + len(outputs)
    base = arrays + len(recorder.constants)
    places = {i: i for i in range(inputs)}
    places.update({number: inputs + i for number, i in outputs.items()})
    places.update({number: arrays - 2 - number for number in recorder.constants.values()})
    free: list[int] = []
    count = 0
    program = []
    for at, (code, first, second, target) in enumerate(recorder.operations):
        if target not in places:
            if not free:
                free.append(count)
                count += 1
            places[target] = base + free.pop()
        program += [code, places[first], places[second], places[target]]
        # A register is free behind its last reader: no operation writes what it reads.
        free += (
            places[number] - base
            for number in {first, second, target}
            if places[number] >= base and last.get(number, at) == at
        )
    bits = [int(constant) for constant in recorder.constants]
    return [len(bits), count, *bits, *program, -1]
