"""Windows that slide over the spatial dimensions, those behind the second: rules and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from anydml.core._json import UINT32_MAX
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, page_name

_ARRAYS: Final = (
    "strides", "window_size", "window_sizes", "dilations", "start_padding", "end_padding",
    "output_padding",
)  # fmt: skip
_POSITIVE: Final = _ARRAYS[:4]


def check_arrays(
    data: ArraySpec, attributes: Attributes, tensor: str = "InputTensor"
) -> Iterator[Violation]:
    """Arrays have a value for each spatial dimension; strides, windows and dilations no 0."""
    count = len(data.shape) - 2
    for name in (name for name in _ARRAYS if name in attributes):
        if len(attributes[name]) != count:
            rule = f"{count} values ({tensor}.DimensionCount - 2)"
            yield Violation(page_name(name), rule, len(attributes[name]))
        for i, value in enumerate(attributes[name] if name in _POSITIVE else ()):
            if value == 0:
                yield Violation(f"{page_name(name)}[{i}]", "at least 1", value)


def count_windows(
    data: ArraySpec, window: Sequence[int], paths: Sequence[str], attributes: Attributes
) -> tuple[list[int], list[Violation]]:
    """The output's spatial sizes: windows that fit into the padded input, and output padding.

    `window` has the sizes of a window, and `paths` where a message finds them.
    """
    sizes, found = [], list[Violation]()
    none, ones = [0] * len(window), [1] * len(window)
    for path, size, taps, stride, start, end, dilation, more in zip(
        paths, data.shape[2:], window, attributes["strides"], attributes["start_padding"],
        attributes["end_padding"], attributes.get("dilations", ones),
        attributes.get("output_padding", none), strict=True,
    ):  # fmt: skip
        padded, span = size + start + end, (taps - 1) * dilation + 1
        if span > padded:
            rule = f"at most {padded} elements including dilation (the padded input's size)"
            found.append(Violation(path, rule, span))
        sizes.append((padded - span) // stride + 1 + more)
    return sizes, [*found, *check_sizes(sizes)]


def check_sizes(sizes: Sequence[int]) -> Iterator[Violation]:
    """The output's spatial sizes are those of a tensor."""
    for i, size in enumerate(sizes):
        if size > UINT32_MAX:
            yield Violation(f"OutputTensor.Sizes[{i + 2}]", f"at most {UINT32_MAX}", size)


def window_of(attributes: Attributes) -> dict[str, Any]:
    """The attributes as the engine's primitives take them."""
    strides = attributes["strides"]
    return {
        "sizes": attributes["window_size"],
        "strides": strides,
        "pads": list(zip(attributes["start_padding"], attributes["end_padding"], strict=True)),
        "dilations": attributes.get("dilations", [1] * len(strides)),
    }


def counts_of_windows(e: Engine, shape: Sequence[int], dtype: Any, attributes: Attributes) -> Array:
    """How many elements each window meets, at least 1."""
    xp, window = e.xp, window_of(attributes)
    total = xp.ones((), dtype)
    for i, (n, taps, stride, pad, step) in enumerate(
        zip(shape[2:], *(window[name] for name in ("sizes", "strides", "pads", "dilations")),
            strict=True)
    ):  # fmt: skip
        count = (n + sum(pad) - (taps - 1) * step - 1) // stride + 1
        first = xp.arange(count) * stride - pad[0]
        low = xp.maximum(-(first // step), 0)
        high = xp.minimum((n - 1 - first) // step, taps - 1)
        counts_on_axis = xp.maximum(high - low + 1, 1).astype(dtype)
        total = total * counts_on_axis.reshape(-1, *(1 for _ in shape[3 + i :]))
    return total
