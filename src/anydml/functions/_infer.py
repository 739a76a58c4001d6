"""The shape rules of operators for array functions, whose arguments messages name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError
from anydml.core.program import ArraySpec, Inferred
from anydml.ops._descriptor import Descriptor

OperatorClass = type[Descriptor]


def _lower(match: re.Match[str]) -> str:
    return match[1].lower()


# The names of tensors and fields; a field that is not here is in lower case.
_Name = str | Callable[[re.Match[str]], str]
_BY_PATTERN: dict[str, _Name] = {
    r"OutputTensors\[\.\.\]\.Sizes\[\d+\]": "sections_or_sizes",
    r"OutputTensors(\[\d+\])\.Sizes\[\d+\]": r"sections_or_sizes\1",
    r"StartPadding(\[\d+\])": r"pad_width\1[0]",
    r"EndPadding(\[\d+\])": r"pad_width\1[1]",
    r"(Start|End)Padding\b": "pad_width",
    r"InputTensors\b": "arrays",
    r"InputTensor\b": "x",
    r"SequenceLengthsTensor\b": "lengths",
    r"([A-Z][a-z]+)Tensor\b": _lower,
    r"InputWindowOffsets\b": "starts",
    r"InputWindowSizes\b": "sizes",
    r"InputWindowStrides\b": "strides",
    r"BatchDimensionCount\b": "batch_dims",
    r"PaddingMode\b": "mode",
    r"Axis\b": "axis",
    r"K\b": "k",
    r"Repeats\b": "repeats",
    r"Sizes\b": "shape",
    r"DimensionCount\b": "ndim",
}
_NAMES = tuple((re.compile(rf"\b{pattern}"), name) for pattern, name in _BY_PATTERN.items())
_FIELD = re.compile(r"\b([A-Z][a-z]+)\b")


def infer(
    operator: OperatorClass, operands: Sequence[Any], attributes: Mapping[str, Any]
) -> Inferred:
    """Apply the operator's shape rule; raise `ArgumentError` for a rule that is broken."""
    inferred = operator.infer([ArraySpec(tuple(x.shape), x.dtype) for x in operands], attributes)
    for violation in inferred.violations[:1]:
        got = violation.got if isinstance(violation.got, str) else short_repr(violation.got)
        path = _FIELD.sub(_lower, _by_arguments(violation.path))
        raise ArgumentError(f"{path}: expected {_by_arguments(violation.rule)}, got {got}")
    return inferred


def _by_arguments(text: str) -> str:
    """A text about the tensors and fields of a page, by the names of arguments."""
    for pattern, name in _NAMES:
        text = pattern.sub(name, text)
    return text
