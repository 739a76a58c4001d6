"""Limits of processor time that hold on busy machines, too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

import anydml as dml

Result = TypeVar("Result")


def result_within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return the result of a call that takes less than these seconds of an ordinary machine.

    There are up to four attempts, because other processes may slow one down. The garbage collector
    ignores what earlier tests have left.
    """
    gc.freeze()
    try:
        for _ in range(4):
            result, taken = _timed(call)
            if taken < seconds or taken < seconds * _slowness():
                return result
        raise AssertionError(f"expected less than {seconds} seconds, got {taken}")
    finally:
        gc.unfreeze()


def refusal_of(call: Callable[..., Any], *arguments: Any) -> str:
    """Return the message of the `ModelError` that a call raises."""
    with pytest.raises(dml.ModelError) as e:
        call(*arguments)
    return str(e.value)


def _timed(call: Callable[[], Result]) -> tuple[Result, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def _slowness() -> float:
    """Measure how many times longer than an ordinary machine this one takes now."""

    def multiply() -> None:
        for i in range(1_000_000):
            _ = i * i

    return _timed(multiply)[1] / 0.06
