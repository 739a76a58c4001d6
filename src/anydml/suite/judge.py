"""Judges the answer of a runner to a case: right, or a kind of difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core._json import short_repr
from anydml.core.tolerance import first_difference
from anydml.suite.case import Case, Output, Refused
from anydml.suite.cases import view
from anydml.suite.webnn import first_beyond

Array = np.ndarray[Any, np.dtype[Any]]

STATUSES: Final = {
    "right": "right",
    "wrong": "wrong",
    "outside": "outside our tolerance, within WebNN's",
    "refused": "refused though valid",
    "unsupported": "operator or type not supported",
    "accepted": "accepted though broken",
    "crashed": "crashed",
    "hung": "hung",
}
"""The kinds of results, and what they mean."""

GOOD: Final = ("right", "unsupported")
"""Kinds that are no fault."""


class Result(NamedTuple):
    """The result of a case: its name, one of `STATUSES`, and what differs."""

    case: str
    status: str
    detail: str = ""


def judge(case: Case, answer: Any) -> Result:
    """Compare the answer of a runner with the verdict and the exact results of a case."""
    if isinstance(answer, Refused):
        return _judge_refusal(case, answer)
    if case.verdict == "refused":
        return Result(case.name, "accepted", f"{case.path} breaks a rule ({case.code})")
    if not isinstance(answer, Mapping):
        return Result(case.name, "wrong", f"expected outputs or Refused, got {short_repr(answer)}")
    worst = Result(case.name, "right")
    for name, output in case.outputs.items():
        status, detail = _judge_output(case, name, output, answer.get(name))
        if status == "wrong":
            return Result(case.name, status, detail)
        if status != "right":
            worst = Result(case.name, status, detail)
    return worst


def _judge_refusal(case: Case, answer: Refused) -> Result:
    reason = short_repr(str(answer.reason), 2000)
    if answer.unsupported:
        return Result(case.name, "unsupported", reason)
    if case.verdict == "accepted":
        return Result(case.name, "refused", reason)
    if answer.rules and (case.path, case.code) not in map(tuple, answer.rules):
        return Result(case.name, "wrong", f"refused for another reason than {case.path}: {reason}")
    return Result(case.name, "right")


def _judge_output(case: Case, name: str, output: Output, value: Any) -> tuple[str, str]:
    expected, magnitude = case.stored(name, "expected"), case.stored(name, "magnitude")
    assert expected is not None, "only magnitudes may be left out"
    got = _elements(output, value)
    if got is None:
        shown = short_repr(value) if not isinstance(value, np.ndarray) else (
            f"{value.dtype} of shape {value.shape}")  # fmt: skip
        return "wrong", f"{name}: expected {output.dtype} of sizes {output.sizes}, got {shown}"
    if magnitude is None:
        magnitude = np.abs(expected) if expected.dtype.kind == "f" else expected
    count = output.elements if output.elements is not None else got.size
    flat = [array.reshape(-1)[:count] for array in (got, expected, magnitude)]
    if flat[2].dtype.kind == "f":  # NaN: the specification leaves the element open
        is_open = np.isnan(flat[2]) & ~np.isnan(flat[1])
        flat = [np.where(is_open, array.dtype.type(0), array) for array in flat]
    got, expected, magnitude = flat
    where = first_difference(got, expected, magnitude, case.tolerance)
    if where is None:
        return "right", ""
    beyond = first_beyond(got, expected, magnitude, case.tolerance, case.webnn)
    (at,) = where if beyond is None else beyond
    position = [int(i) for i in np.unravel_index(at, output.sizes)]
    detail = f"{name}{position}: expected {expected[at]}, got {got[at]}"
    return "outside" if beyond is None else "wrong", f"{detail} (tolerance {case.tolerance})"


def _elements(output: Output, value: Any) -> Array | None:
    """The elements of an output, of an array of its sizes or of its buffer; None of others."""
    try:
        got = np.asarray(value)
        if got.dtype != output.dtype:
            return None
        if got.shape == output.sizes:
            return np.ascontiguousarray(got)
        flat = np.ascontiguousarray(got).reshape(-1)
    except Exception:  # whatever a runner returns
        return None
    if flat.size < output.length:
        return None
    return np.ascontiguousarray(view(output.sizes, output.strides, flat))
