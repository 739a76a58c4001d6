"""Windows that slide over the spatial dimensions, those behind the second: rules and counts."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

from anydml.core._json import UINT32_MAX
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.engines import Array, Engine
from anydml.engines._windows import Window
from anydml.ops._descriptor import Attributes, page_name
from anydml.ops._rules import each_at_least, has_length, rank_of, usable
from anydml.ops._shapes import Named

_ARRAYS: Final = (
    "strides", "window_size", "window_sizes", "dilations", "start_padding", "end_padding",
    "output_padding",
)  # fmt: skip
_POSITIVE: Final = _ARRAYS[:4]


def check_arrays(attributes: Attributes, of: Named) -> Rules:
    """Check that arrays have a value for each spatial dimension; strides and windows are not 0."""
    count = rank_of(of[1]) - 2
    for name in (name for name in _ARRAYS if name in attributes):
        yield has_length(page_name(name), attributes[name], count, f"{of[0]}.DimensionCount - 2")
        if name in _POSITIVE:
            yield each_at_least(page_name(name), attributes[name], 1)


def count_windows(
    data: ArraySpec, window: Any, paths: str, attributes: Attributes, first: int = 0
) -> tuple[Any, list[Rules]]:
    """The output's spatial sizes, and the rules that windows fit into the padded input.

    `window` has the sizes of a window; `paths` is where a message finds each, by its number, which
    counts from `first`.
    """
    if data.shape is UNKNOWN:
        return UNKNOWN, []
    count = len(data.shape) - 2
    none, ones = [0] * count, [1] * count
    sizes, rules = [], list[Rules]()
    for i, (size, taps, stride, start, end, dilation, more) in enumerate(
        zip(
            data.shape[2:], usable(window, count, True), usable(attributes["strides"], count, True),
            usable(attributes["start_padding"], count), usable(attributes["end_padding"], count),
            usable(attributes.get("dilations", ones), count, True),
            usable(attributes.get("output_padding", none), count), strict=True,
        )
    ):  # fmt: skip
        padded, span = size + start + end, (taps - 1) * dilation + 1
        fits = known(operator.le, span, padded)
        if fits is False:
            rule = f"at most {padded} elements including dilation (the padded input's size)"
            rules.append([Violation(paths.format(first + i), rule, span)])
        sizes.append((padded - span) // stride + 1 + more if fits is True else UNKNOWN)
    return sizes, [*rules, check_sizes(sizes)]


def check_sizes(sizes: Sequence[int]) -> Rules:
    """The output's spatial sizes are those of a tensor."""
    for i, size in enumerate(sizes):
        if size is not UNKNOWN and size > UINT32_MAX:
            yield Violation(f"OutputTensor.Sizes[{i + 2}]", f"at most {UINT32_MAX}", size)


def window_of(attributes: Attributes, sizes: Sequence[int] | None = None) -> Window:
    """The attributes as the engine's primitives take them; `sizes` are those of a filter."""
    strides = attributes["strides"]
    pads = list(zip(attributes["start_padding"], attributes["end_padding"], strict=True))
    sizes = attributes["window_size"] if sizes is None else sizes
    return Window(sizes, strides, pads, attributes.get("dilations", [1] * len(strides)))


def counts_of_windows(e: Engine, shape: Sequence[int], dtype: Any, attributes: Attributes) -> Array:
    """How many elements each window meets, at least 1."""
    xp = e.xp
    total = xp.ones((), dtype)
    for i, axis in enumerate(window_of(attributes).over(shape[2:])):
        first = xp.arange(axis.count) * axis.stride - axis.start
        low = xp.maximum(-(first // axis.dilation), 0)
        high = xp.minimum((axis.size - 1 - first) // axis.dilation, axis.window - 1)
        counts_on_axis = xp.maximum(high - low + 1, 1).astype(dtype)
        total = total * counts_on_axis.reshape(-1, *(1 for _ in shape[3 + i :]))
    return total
