"""Resize and Upsample."""

from __future__ import annotations

import math
from typing import Any, Final

from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lowering, UnsupportedError, padded

_NEAREST: Final = {
    "round_prefer_floor": ("INCREASING", 0.5),
    "round_prefer_ceil": ("DECREASING", -0.5),
    "ceil": ("INCREASING", 0.0),
    "floor": ("DECREASING", 0.0),
}
"""The rounding direction, and what is added so that it rounds to the nearest."""


def _scales(n: Lowering) -> list[float]:
    """The factor of each dimension."""
    shape, sizes = n.shape(), n.results[0].shape
    axes = [axis % len(shape) for axis in n.get("axes", range(len(shape)))]
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
    old = n.version < 11  # Upsample, and Resize 10: no attribute
    places = "asymmetric" if old else n.get("coordinate_transformation_mode", "half_pixel")
    if mode == "cubic" or places == "tf_crop_and_resize" or n.get("exclude_outside", 0):
        raise UnsupportedError("DirectML has no cubic mode, no cropping and no excluded elements")
    shape, sizes, scales = n.shape(), n.results[0].shape, _scales(n)
    kept = [i for i in range(len(shape)) if shape[i] != 1 or sizes[i] != 1] or [0]
    linear = mode in ("linear", "bilinear")
    rounding = n.get("nearest_mode", "floor" if old else "round_prefer_floor")
    direction, shift = _NEAREST[rounding]
    fields: dict[str, list[float]] = {"scales": [], "input": [], "output": []}
    for i in kept:
        size, result, scale = shape[i], sizes[i], scales[i]
        length = size * scale
        if places == "align_corners":
            scale = (length - 1) / (size - 1) if size > 1 and length > 1 else 1.0
        half = places in ("half_pixel", "half_pixel_symmetric") or (
            places == "pytorch_half_pixel" and result > 1
        )
        begin, end = (0.5, -0.5) if half else (0.0, 0.0)
        if places == "half_pixel_symmetric":
            begin += size / 2 * (result / length - 1)
        if not math.isfinite(scale) or scale <= 0:
            raise UnsupportedError(f"scales: expected positive numbers, got {scale}")
        fields["scales"].append(scale)
        fields["input"].append(begin if linear else begin + shift)
        fields["output"].append(end)
    more = [*range(4 - len(kept))]
    data_type = n.output()[0]
    return n.emit(
        "RESAMPLE3", n.view(0, padded([shape[i] for i in kept])),
        outputs=[(data_type, padded([sizes[i] for i in kept]))],
        scales=[1.0 for _ in more] + fields["scales"],
        input_pixel_offsets=[0.5 for _ in more] + fields["input"],
        output_pixel_offsets=[-0.5 for _ in more] + fields["output"],
        interpolation_mode="LINEAR" if linear else "NEAREST_NEIGHBOR",
        rounding_direction=direction, antialiased=bool(n.get("antialias", 0)),
    )  # fmt: skip
