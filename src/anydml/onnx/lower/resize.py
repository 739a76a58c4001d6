"""Resize and Upsample."""

from __future__ import annotations

import math
from typing import Any, Final

from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lowering, RefusedError, UnfitError, UnsupportedError, padded

_NEAREST: Final = {
    "round_prefer_floor": ("INCREASING", 0.5),
    "round_prefer_ceil": ("DECREASING", -0.5),
    "ceil": ("INCREASING", 0.0),
    "floor": ("DECREASING", 0.0),
}
"""The rounding direction, and what is added so that it rounds to the nearest."""


def _axes(n: Lowering) -> list[int]:
    """The dimensions that the inputs describe."""
    return [axis % len(n.shape()) for axis in n.get("axes", range(len(n.shape())))]


def _scales(n: Lowering) -> list[float]:
    """The factor of each dimension."""
    shape, sizes = n.shape(), n.results[0].shape
    axes = _axes(n)
    found: Any = None
    at = 1 if n.version < 11 else 2
    if n.has(at) and n.operand(at).shape != (0,):
        found = [float(s) for s in n.constant(at).reshape(-1)]  # type: ignore[union-attr]
    elif "scales" in n.attributes:
        found = list(n.get("scales"))
    scales = [1.0] * len(shape)
    if found is not None:
        for axis, scale in zip(axes, found, strict=True):
            scales[axis] = scale
        return scales
    ratios = [sizes[axis] / shape[axis] for axis in axes]
    policy = n.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        requested = n.integers(3) or []
        wanted = [size / shape[axis] for size, axis in zip(requested, axes, strict=True)]
        ratios = [min(wanted) if policy == "not_larger" else max(wanted)] * len(axes)
    for axis, ratio in zip(axes, ratios, strict=True):
        scales[axis] = ratio
    return scales


def resize(n: Lowering) -> Expression:
    mode = n.get("mode", "nearest")
    # Upsample and Resize 10 have no such attributes, and the provider takes the later defaults.
    old = n.version < 11 and not n.exact
    places = "asymmetric" if old else n.get("coordinate_transformation_mode", "half_pixel")
    if mode == "cubic" or n.get("exclude_outside", 0):
        raise UnsupportedError("DirectML has no cubic mode and no excluded elements")
    shape, sizes, scales = n.shape(), n.results[0].shape, _scales(n)
    regions = _regions(n) if places == "tf_crop_and_resize" else []
    kept = [i for i in range(len(shape)) if shape[i] != 1 or sizes[i] != 1] or [0]
    linear = mode in ("linear", "bilinear")
    filtered = linear and bool(n.get("antialias", 0))
    rounding = "round_prefer_floor"
    if old and not linear:  # as ONNX Runtime rounds, which ONNX left open
        rounding = "floor" if max(scales) > 1 else "ceil"
        if min(scales) < 1 < max(scales):
            raise UnsupportedError("DirectML rounds all dimensions in one direction")
    direction, shift = _NEAREST[n.get("nearest_mode", rounding)]
    fields: dict[str, list[float]] = {"scales": [], "input": [], "output": []}
    margins = []
    for i in kept:
        size, result, scale = shape[i], sizes[i], scales[i]
        begin = end = 0.0
        if places == "align_corners":  # with whole sizes, as in the provider
            scale = (result - 1) / (size - 1) if size > 1 and result > 1 else 1.0
        elif places == "tf_crop_and_resize":
            begin, scale = _cropped(size, result, regions[i], n.exact)
        elif places == "tf_half_pixel_for_nn":
            end = -0.5 if scale != 1 or n.exact else 0.0  # ONNX Runtime leaves the others as is
        elif places != "asymmetric" and (places != "pytorch_half_pixel" or result > 1):
            begin, end = 0.5, -0.5
        if places == "half_pixel_symmetric":
            begin += size / 2 * (result / (size * scale) - 1)
        if not math.isfinite(scale) or scale <= 0:
            raise UnfitError(f"scales: expected positive numbers, got {scale}")
        # The filter of DirectML leaves elements behind an edge out; ONNX repeats the edge.
        margin = math.ceil(1 / scale) + 1 if filtered and scale < 1 and not n.exact else 0
        margins.append(margin)
        fields["scales"].append(scale)
        fields["input"].append(begin - margin if linear else begin + shift)
        fields["output"].append(end)
    more = [*range(4 - len(kept))]
    x, data_type = n.view(0, padded([shape[i] for i in kept])), n.output()[0]
    if any(margins):
        edges = [0 for _ in more] + margins
        wide = [size + 2 * edge for size, edge in zip(x.sizes, edges, strict=True)]
        x = n.emit(
            "PADDING1", x, outputs=[(data_type, wide)], padding_mode="EDGE",
            padding_value_data_type=data_type, padding_value=0, start_padding=edges,
            end_padding=edges,
        )  # fmt: skip
    return n.emit(
        "RESAMPLE3", x, outputs=[(data_type, padded([sizes[i] for i in kept]))],
        scales=[1.0 for _ in more] + fields["scales"],
        input_pixel_offsets=[0.5 for _ in more] + fields["input"],
        output_pixel_offsets=[-0.5 for _ in more] + fields["output"],
        interpolation_mode="LINEAR" if linear else "NEAREST_NEIGHBOR",
        rounding_direction=direction, antialiased=bool(n.get("antialias", 0)),
    )  # fmt: skip


def _regions(n: Lowering) -> list[tuple[float, float]]:
    """The begin and end of the region along each dimension, of 1 where the node has none."""
    found = [(0.0, 1.0)] * len(n.shape())
    numbers: Any = n.constant(1)
    if numbers is None:
        raise RefusedError("roi", "a tensor", None)
    half = numbers.size // 2
    for axis, begin, end in zip(_axes(n), numbers[:half], numbers[half:], strict=True):
        found[axis] = float(begin), float(end)
    if not n.exact and not all(0 <= x <= 1 for region in found for x in region):
        raise UnsupportedError("DirectML repeats the edges, ONNX has extrapolation_value there")
    return found


def _cropped(
    size: int, result: int, region: tuple[float, float], exact: bool
) -> tuple[float, float]:
    """The input's offset, and the scale, of a region; `exact` has the provider's mistakes."""
    begin, end = (x * (size - 1) for x in region)
    if exact:
        return -begin, (result - 1) / max(end - begin, 1.0) if size > 1 else 1.0
    if result == 1:
        return -(begin + end) / 2, 1.0
    return -begin, (result - 1) / (end - begin) if end != begin else math.inf
