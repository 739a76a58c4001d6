"""Convolution and pooling, with their strides, dilations and paddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anydml.core.dtypes import DataType
from anydml.core.tensor import TensorDesc, packed_strides
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, UnsupportedError, padded
from anydml.ops._fields import ScaleBias, Size2D


@dataclass
class Window:
    """The attributes of a sliding window, for each spatial dimension."""

    size: list[int]
    strides: list[int]
    dilations: list[int]
    start: list[int]
    end: list[int]

    @property
    def spans(self) -> list[int]:
        """The elements from the first to the last one that a window reads."""
        return [(k - 1) * d + 1 for k, d in zip(self.size, self.dilations, strict=True)]

    def fields(self, rank: int, dilated: bool = True) -> dict[str, list[int]]:
        """DirectML's fields, with dimensions of size 1 in front up to a number."""
        more = rank - len(self.size)
        found = {
            "strides": [1] * more + self.strides,
            "start_padding": [0] * more + self.start,
            "end_padding": [0] * more + self.end,
        }
        if dilated:
            found["dilations"] = [1] * more + self.dilations
        return found


def window_of(
    n: Lowering, sizes: Sequence[int], window: Sequence[int], results: Sequence[int],
    backward: bool = False, pads: Sequence[int] | None = None,
) -> Window:  # fmt: skip
    """The window of a node on some spatial sizes.

    Parameters
    ----------
    n : Lowering
        The node.
    sizes, window, results : sequence of int
        The spatial sizes of the input, the window and the output.
    backward : bool
        Whether the node is a transposed convolution.
    pads : sequence of int, optional
        Paddings in place of the attribute's.
    """
    rank = len(window)
    strides = list(n.get("strides", [1] * rank))
    dilations = list(n.get("dilations", [1] * rank))
    pads = list(n.get("pads", [0] * 2 * rank) if pads is None else pads)
    if not len(strides) == len(dilations) == len(pads) // 2 == len(sizes) == rank:
        raise UnsupportedError(f"expected attributes for {len(sizes)} spatial dimensions")
    start, end = pads[:rank], pads[rank:]
    spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    auto = n.get("auto_pad", "NOTSET")
    if auto == "VALID":
        start, end = [0] * rank, [0] * rank
    if auto.startswith("SAME") or (backward and "output_shape" in n.attributes):
        if backward:
            more = n.get("output_padding", [0] * rank)
            excess = [
                (size - 1) * s + span + p - result
                for size, s, span, p, result in zip(
                    sizes, strides, spans, more, results, strict=True
                )
            ]
        else:
            excess = [
                (result - 1) * s + span - size
                for size, s, span, result in zip(sizes, strides, spans, results, strict=True)
            ]
        excess = [max(e, 0) for e in excess]
        less, rest = [e // 2 for e in excess], [e - e // 2 for e in excess]
        upper = auto == "SAME_UPPER" or (auto != "SAME_LOWER" and not backward)
        start, end = (less, rest) if upper else (rest, less)
    if any(pad < 0 for pad in (*start, *end)):
        raise UnsupportedError("DirectML has no negative paddings")
    return Window(list(window), strides, dilations, start, end)


def spatial(shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes with at least two spatial dimensions: {N, C, W} is {N, C, 1, W}."""
    return (*shape[:2], *(1,) * (4 - len(shape)), *shape[2:])


def _checked_rank(n: Lowering, most: int = 5) -> None:
    if not 3 <= len(n.shape()) <= most:
        raise UnsupportedError(f"expected a tensor of rank 3 to {most}, got {len(n.shape())}")


def convolution(direction: str, bias: int = 2, pads: int | None = None) -> Lower:
    """A convolution, or a transposed one; `bias` and `pads` are positions of inputs."""

    def lower(n: Lowering) -> Expression:
        _checked_rank(n)
        x, w, y = n.shape(0), n.shape(1), n.results[0].shape
        paddings = None if pads is None else n.integers(pads)
        window = window_of(n, x[2:], w[2:], y[2:], direction == "BACKWARD", paddings)
        sizes, count = spatial(y), max(len(y) - 2, 2)
        fields = window.fields(count)
        return n.emit(
            "CONVOLUTION",
            n.view(0, spatial(x)),
            n.view(1, spatial(w)),
            n.vector(bias, len(sizes), 1) if n.has(bias) else None,
            outputs=[(n.output()[0], sizes)],
            mode="CROSS_CORRELATION",
            direction=direction,
            output_padding=[0] * count,
            group_count=n.get("group", 1),
            **fields,
        )

    return lower


def integer_convolution(n: Lowering) -> Expression:
    _checked_rank(n, 4)
    x, w, y = n.shape(0), n.shape(1), n.results[0].shape
    window = window_of(n, x[2:], w[2:], y[2:])
    sizes = spatial(y)
    zeros = [n.vector(i, 4, 1) if n.has(i) else None for i in (2, 3)]
    return n.emit(
        "CONVOLUTION_INTEGER", n.view(0, spatial(x)), zeros[0], n.view(1, spatial(w)), zeros[1],
        outputs=[(n.output()[0], sizes)], group_count=n.get("group", 1), **window.fields(2),
    )  # fmt: skip


def quantized_convolution(n: Lowering) -> Expression:
    _checked_rank(n, 4)
    x, w, y = n.shape(0), n.shape(3), n.results[0].shape
    window = window_of(n, x[2:], w[2:], y[2:])
    parts = {i: n.vector(i, 4, 1) for i in (1, 2, 4, 5, 6, 7, 8) if n.has(i)}
    return n.emit(
        "QUANTIZED_LINEAR_CONVOLUTION", n.view(0, spatial(x)), parts[1], parts.get(2),
        n.view(3, spatial(w)), parts[4], parts.get(5), parts.get(8), parts[6], parts.get(7),
        outputs=[(n.output()[0], spatial(y))], group_count=n.get("group", 1), **window.fields(2),
    )  # fmt: skip


def _enlarge(window: Window, sizes: Sequence[int], results: Sequence[int]) -> None:
    """Enlarge the padding behind, so that the last windows of ceil_mode are whole.

    The provider enlarges the output alone, which DirectML is known to accept of other pooling.
    """
    for i, (size, result, span) in enumerate(zip(sizes, results, window.spans, strict=True)):
        needed = (result - 1) * window.strides[i] + span - size - window.start[i]
        window.end[i] = max(window.end[i], needed)


def _pool_window(
    n: Lowering, globally: bool, sizes: Sequence[int], results: Sequence[int]
) -> Window:
    if globally:
        return Window(list(sizes), *([v] * len(sizes) for v in (1, 1, 0, 0)))
    return window_of(n, sizes, n.get("kernel_shape"), results)


def pooling(name: str, dilated: str = "", globally: bool = False, **defaults: Any) -> Lower:
    """Pooling by the operator `name`, or with dilations by `dilated`."""

    def lower(n: Lowering) -> Any:
        _checked_rank(n)
        x, y = n.shape(), n.results[0].shape
        window = _pool_window(n, globally, x[2:], y[2:])
        fields = {
            field: type(value)(n.get(attribute, value))
            for field, (attribute, value) in defaults.items()
        }
        rank = max(len(x) - 2, 2)
        fields["window_size"] = [1] * (rank - len(window.size)) + window.size
        indices = n.wants(1)
        extended = bool(dilated) and (indices or any(d != 1 for d in window.dilations))
        shape = padded(y)
        outputs: list[Any] = [(n.output()[0], shape)]
        if indices:
            outputs.append((DataType.UINT64, shape))
        if indices and n.get("storage_order", 0):
            raise UnsupportedError("DirectML has no column-major indices")
        return n.emit_all(
            dilated if extended else name, n.view(0), outputs=outputs,
            **window.fields(rank, extended), **fields,
        )  # fmt: skip

    return lower


def quantized_pooling(globally: bool) -> Lower:
    def lower(n: Lowering) -> Expression:
        x, y = n.shape(), n.results[0].shape
        if len(x) < 3:
            raise UnsupportedError(f"expected a tensor of rank 3 at least, got {len(x)}")
        strides: list[Any] = [None, None]
        if n.get("channels_last", 0):
            (x, xs), (y, ys) = map(_channels_second, (x, y))
            strides = [padded(xs), padded(ys)]
        window = _pool_window(n, globally, x[2:], y[2:])
        _enlarge(window, x[2:], y[2:])
        rank, sizes = max(len(x) - 2, 2), padded(x)
        parts = {i: n.vector(i, len(sizes), 1) for i in (1, 2, 3, 4) if n.has(i)}
        return n.emit(
            "QUANTIZED_LINEAR_AVERAGE_POOLING", n.view(0, sizes, strides[0]), parts[1],
            parts.get(2), parts[3], parts.get(4),
            outputs=[TensorDesc(n.output()[0], padded(y), strides[1])],
            window_size=[1] * (rank - len(window.size)) + window.size,
            include_padding=bool(n.get("count_include_pad", 0)), **window.fields(rank),
        )  # fmt: skip

    return lower


def _channels_second(shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides of a tensor whose channels come last."""
    order = (0, len(shape) - 1, *range(1, len(shape) - 1))
    own = packed_strides(shape)
    return tuple(shape[i] for i in order), tuple(own[i] for i in order)


def nhwc_convolution(n: Lowering) -> Expression:
    if len(n.shape()) != 4:
        raise UnsupportedError(f"expected a tensor of rank 4, got {len(n.shape())}")
    shapes = (n.shape(0), n.shape(1), n.results[0].shape)
    (x, xs), (w, ws), (y, ys) = map(_channels_second, shapes)
    window = window_of(n, x[2:], w[2:], y[2:])
    return n.emit(
        "CONVOLUTION", n.view(0, x, xs), n.view(1, w, ws), n.vector(2, 4, 1) if n.has(2) else None,
        outputs=[TensorDesc(n.output()[0], y, ys)], mode="CROSS_CORRELATION", direction="FORWARD",
        output_padding=[0, 0], group_count=n.get("group", 1), **window.fields(2),
    )  # fmt: skip


def unpool(n: Lowering) -> Expression:
    return n.emit("MAX_UNPOOLING", n.view(0), n.view(1, type="u64"))


def roi_pool(n: Lowering) -> Expression:
    height, width = n.get("pooled_shape")
    return n.emit(
        "ROI_POOLING", n.view(0), n.view(1), spatial_scale=n.get("spatial_scale", 1.0),
        pooled_size=Size2D(width, height),
    )  # fmt: skip


def roi_align(n: Lowering) -> Expression:
    samples = n.get("sampling_ratio", 0)
    mode = n.get("coordinate_transformation_mode", "half_pixel" if n.version >= 16 or n.exact
                 else "output_half_pixel")  # fmt: skip
    if n.get("mode", "avg") == "max" and not n.exact:
        raise UnsupportedError(
            "ONNX takes the largest weighted element, DirectML the largest sample"
        )
    scale = n.get("spatial_scale", 1.0)
    regions = n.view(1)
    if mode == "output_half_pixel" and not n.exact:
        if not samples:  # their number would follow from the rounded size
            raise UnsupportedError("ONNX enlarges regions that are smaller than 1")
        regions = _of_size_one(n, regions, scale)
    unsigned = {"i64": "u64", "i32": "u32"}[n.type(2)]
    return n.emit(
        "ROI_ALIGN1", n.view(0), regions, n.view(2, type=unsigned),
        reduction_function={"avg": "AVERAGE", "max": "MAX"}[n.get("mode", "avg")],
        interpolation_mode="LINEAR", spatial_scale_x=scale, spatial_scale_y=scale,
        input_pixel_offset=0.5 if mode == "half_pixel" else 0.0, output_pixel_offset=-0.5,
        out_of_bounds_input_value=0.0, minimum_samples_per_output=samples or 1,
        maximum_samples_per_output=samples or 2**32 - 1, align_regions_to_corners=False,
    )  # fmt: skip


def _of_size_one(n: Lowering, regions: Expression, scale: float) -> Expression:
    """Regions that end one element after their beginning at least, as ONNX takes them."""
    *sizes, _ = regions.sizes
    half = (regions.data_type, (*sizes, 2))
    begin, end = n.emit_all("SPLIT", regions, outputs=[half, half], axis=3)
    least = n.emit(
        "ELEMENT_WISE_IDENTITY", begin, outputs=[half], scale_bias=ScaleBias(1, 1 / scale)
    )
    end = n.emit("ELEMENT_WISE_MAX", end, least, outputs=[half])
    return n.emit("JOIN", [begin, end], outputs=[(half[0], regions.sizes)], axis=3)


def columns(n: Lowering) -> Expression:
    block = n.integers(2) or []
    rank = len(block)
    pads = list(n.get("pads", [0] * 2 * rank))
    start, end = pads[:rank], pads[rank:]
    if n.exact:
        end = start  # the provider reads the first half for both ends
    return n.emit(
        "FOLD", n.view(0, rank=3), outputs=[(n.output()[0], n.results[0].shape)],
        window_sizes=block, strides=n.get("strides", [1] * rank),
        dilations=n.get("dilations", [1] * rank), start_padding=start, end_padding=end,
    )  # fmt: skip
