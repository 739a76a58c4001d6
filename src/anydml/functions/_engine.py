"""The operator's `infer` and a backend's kernel, which run every array function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anydml.core._json import short_repr
from anydml.core.errors import AllocationError, ArgumentError
from anydml.core.program import ArraySpec, IndexUse, Inferred
from anydml.devices.backends import kernels_for
from anydml.devices.backends._sequence import index_error
from anydml.devices.backends.cpu import function_call, know_type
from anydml.devices.threads import get_num_threads
from anydml.libraries._base import Array
from anydml.ops._descriptor import Descriptor

OperatorClass = type[Descriptor]


def _lower(match: re.Match[str]) -> str:
    return match[1].lower()


# The array functions' names of tensors and fields; of fields that are not here, in lower case.
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

__all__ = ["Inferred", "function_call", "know_type"]


def infer(
    operator: OperatorClass, operands: Sequence[Array], attributes: Mapping[str, Any]
) -> Inferred:
    """Apply the operator's shape rule; raise `ArgumentError` for a rule that is broken."""
    inferred = operator.infer([ArraySpec(tuple(a.shape), a.dtype) for a in operands], attributes)
    for violation in inferred.violations[:1]:
        got = violation.got if isinstance(violation.got, str) else short_repr(violation.got)
        path, rule = _by_arguments(violation.path), _by_arguments(violation.rule)
        path = _FIELD.sub(_lower, path)
        raise ArgumentError(f"{path}: expected {rule}, got {got}")
    return inferred


def _by_arguments(text: str) -> str:
    """A text about a page's tensors and fields, by the array functions' names."""
    for pattern, name in _NAMES:
        text = pattern.sub(name, text)
    return text


def run(
    operator: OperatorClass,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    attributes: Mapping[str, Any],
    axes: Sequence[int],
    output_is_private: bool = True,
) -> None:
    """Run the operator's kernel on arrays in natural form.

    `axes` are those of the first input that indices point into. `IndexOutOfRangeError` leaves the
    outputs as they were, if they are not private.
    """
    kernels = kernels_for([*inputs, *outputs])
    bad = kernels.execute(
        operator.KERNEL, inputs, outputs, attributes, output_is_private, get_num_threads()
    )
    if bad >= 0:
        sizes = tuple(inputs[0].shape[axis] for axis in axes)
        use = IndexUse("indices", tuple(axes), sizes)
        axis, size = use.axis_and_size(bad)
        raise index_error(f"{operator.KERNEL}: indices", inputs[1], bad, axis, size)


def run_measured(
    operator: OperatorClass,
    attributes: Mapping[str, Any],
    x: Array,
    allocate: Callable[[int], Array],
) -> Array:
    """Run the operator's kernel; `allocate` makes its output once its size is known."""

    def make(size: int) -> Array:
        output = allocate(size)
        kernels_for([x, output])  # in the same place
        return output

    return kernels_for([x]).run_measured(operator.KERNEL, x, attributes, make, get_num_threads())


def scratch(call: str, make: Callable[[], Array]) -> Array:
    """Call `make`; raise `AllocationError` if the temporary array cannot be allocated."""
    try:
        return make()
    except (MemoryError, ValueError):  # "array is too big"
        raise AllocationError(call, None, "scratch") from None
