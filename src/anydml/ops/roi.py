"""Regions of interest: pool or resample parts of images to one size, and the gradients of that.

The corners of a region may lie outside the input. If the batch index of a region is out of range,
or a corner is NaN, no input element is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from anydml.core._literals import InterpolationModeName, ReduceFunctionName
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import ulp
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed, Sized
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    Size2D,
    boolean,
    enumeration,
    floating,
    input_field,
    output_field,
    size_2d,
    uint,
)
from anydml.ops._regions import Grid, Run, first_elements
from anydml.ops._rules import at_least, at_most, equal, same_types, size_at
from anydml.ops._shapes import Named
from anydml.ops.enumerations import InterpolationMode, ReduceFunction

FAMILY = Family.NETWORKS


def _check_regions(data: Named, regions: ArraySpec, indices: ArraySpec | None, count: int) -> Rules:
    """Check that each region has the data's type, `count` numbers and one batch index."""
    yield same_types(data, ("ROITensor", regions))
    yield _last_sizes("ROITensor", regions, (count, "numbers of a region"), 1)
    if indices is not None:
        expected = size_at(regions, -2), "ROITensor, the number of regions"
        yield _last_sizes("BatchIndicesTensor", indices, expected)


def _last_sizes(name: str, spec: ArraySpec, last: tuple[Any, str], free: int = 0) -> Rules:
    """Check the last size, and that those before it and before `free` others are 1."""
    rank = len(spec.shape)
    for i, size in enumerate(spec.shape[: rank - 1 - free]):
        yield equal(f"{name}.Sizes[{i}]", size, 1)
    yield equal(f"{name}.Sizes[{rank - 1}]", spec.shape[-1], *last)


class RoiPooling(Computed):
    """The maximum of each cell of a grid over a region of the input.

    Corners are multiplied by SpatialScale and rounded. Cells are cropped to the input; an empty
    cell gives 0.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, height, width}``.
    roi_tensor : TensorDesc
        ``{1, 1, regions, 5}``: for each region its batch, x1, y1, x2 and y2, both corners included.
    output_tensor : TensorDesc
        The maxima, ``{regions, channels, height, width}``, with the height and width of
        `pooled_size`.
    spatial_scale : float
        The factor of the coordinates of the corners.
    pooled_size : Size2D or pair of int
        The width and the height of the output.
    """

    input_tensor: TensorDesc = input_field()
    roi_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    spatial_scale: float = floating()
    pooled_size: Size2D = size_2d()

    NAME = "ROI_POOLING"
    WORKING_BYTES = 64
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2.0, 3.0, 4.0], [5.0, 9.0, 7.0, 8.0], [6.0, 3.0, 2.0, 1.0]]]],
        "roi_tensor": [[[[0.0, 0.0, 0.0, 3.0, 1.0], [0.0, 2.0, 1.0, 3.0, 2.0]]]],
        "spatial_scale": 1.0, "pooled_size": (2, 1),
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.MaxRoiPool torchvision.ops.roi_pool"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, regions = inputs
        pooled = attributes["pooled_size"]
        shape = (size_at(regions, -2), size_at(data, 1), pooled.height, pooled.width)
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            _check_regions(("InputTensor", data), regions, None, 5),
            at_least("PooledSize.Width", pooled.width, 1),
            at_least("PooledSize.Height", pooled.height, 1),
        )

    @staticmethod
    def compute(
        e: Engine, x: Array, regions: Array, *, spatial_scale: float, pooled_size: Size2D
    ) -> Array:
        xp = e.xp
        rows = regions.reshape(-1, 5).astype(xp.float64)
        known, first = first_elements(e, xp.trunc(rows[:, 0]), x.shape)
        corners = (rows[:, 1:] * spatial_scale).astype(xp.float32).astype(xp.float64)
        known = known & ~xp.isnan(corners).any(axis=1)
        # Halves round away from 0. The bounds keep the products below within INT64.
        corners = xp.where(corners < 0, xp.ceil(corners - 0.5), xp.floor(corners + 0.5))
        corners = e.cast(xp.clip(corners, -(2.0**29), 2.0**29), xp.int64)

        def cells(axis: int, size: int, outputs: int) -> tuple[Array, Array]:
            low, high = (corners[:, i].reshape(-1, 1, 1, 1) for i in (3 - axis, 5 - axis))
            extent = xp.maximum(high - low + 1, 1)
            index = xp.arange(outputs).reshape((-1, 1) if axis == 2 else (-1,))
            begin = index * extent // outputs + low
            end = -(-(index + 1) * extent // outputs) + low
            return xp.clip(begin, 0, size), xp.clip(end, 0, size)

        (top, bottom), (left, right) = (
            cells(axis, x.shape[axis], outputs)
            for axis, outputs in ((2, pooled_size.height), (3, pooled_size.width))
        )
        inside = known.reshape(-1, 1, 1, 1) & (bottom > top) & (right > left)
        max_width = xp.max(xp.where(inside, right - left, 0))
        flat = x.reshape(-1)

        def step(index: Array, best: Array) -> Array:
            row = xp.minimum(top + index // max_width, xp.maximum(bottom, 1) - 1)
            column = xp.minimum(left + index % max_width, xp.maximum(right, 1) - 1)
            value = xp.take(flat, first + row * x.shape[3] + column)
            # Selects the first of equal elements, and the first NaN.
            return xp.where((value > best) | (xp.isnan(value) & ~xp.isnan(best)), value, best)

        shape = (len(rows), x.shape[1], pooled_size.height, pooled_size.width)
        lowest = xp.full(shape, -xp.inf, x.dtype)
        best = e.repeat(xp.max(xp.where(inside, bottom - top, 0)) * max_width, step, lowest)
        return xp.where(inside, best, x.dtype.type(0))


class Tensors(Sized):
    """The tensors of ROI_ALIGN and its version 1.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, height, width}``.
    roi_tensor : TensorDesc
        ``{.., regions, 4}``: x1, y1, x2 and y2 of each region. The corners may be equal, and the
        second one may lie before the first, which mirrors the region.
    batch_indices_tensor : TensorDesc
        ``{.., regions}``: the batch of each region.
    output_tensor : TensorDesc
        ``{regions, channels, height, width}``, with any height and width.
    """

    input_tensor: TensorDesc = input_field()
    roi_tensor: TensorDesc = input_field()
    batch_indices_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()

    TOLERANCE = ulp(1)
    WORKING_BYTES = 128

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, regions, indices = inputs
        own = known(lambda: attributes["shape"][2:])
        shape = known(lambda: (size_at(regions, -2), size_at(data, 1), *own))
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            _check_regions(("InputTensor", data), regions, indices, 4),
        )

    @staticmethod
    def compute(
        e: Engine,
        x: Array,
        regions: Array,
        indices: Array,
        *,
        shape: Sequence[int],
        **attributes: Any,
    ) -> Array:
        xp, flat = e.xp, x.reshape(-1)
        grid = Grid.of(e, x.shape, regions, indices, shape[2:], attributes)
        inside = grid.rows.inside * grid.columns.inside / grid.count
        beyond = attributes["out_of_bounds_input_value"]
        size = (len(inside), x.shape[1], *shape[2:])

        def add(row: Run, column: Run, total: Array) -> Array:
            weight = row.count * column.count / grid.count
            value = grid.value(flat, row.middle, column.middle)
            return total + xp.where(weight == 0, 0.0, weight * value)

        def update_maximum(row: Run, column: Run, maximum: Array) -> Array:
            has_samples = row.count * column.count > 0
            for value, _, _ in grid.ends(flat, row, column):
                maximum = xp.maximum(maximum, xp.where(has_samples, value, -xp.inf))
            return maximum

        if attributes["reduction_function"] is ReduceFunction.MAX:
            maximum = grid.repeat(update_maximum, xp.full(size, -xp.inf))
            return xp.where(inside == 1, maximum, xp.maximum(maximum, beyond))
        total = grid.repeat(add, xp.zeros(size))
        return total + xp.where(inside == 1, 0.0, (1 - inside) * beyond)


class Scaled(Computed):
    """How samples are computed and combined.

    Parameters
    ----------
    reduction_function : ReduceFunction or str
        AVERAGE or MAX: how the samples of each output element are combined.
    interpolation_mode : InterpolationMode or str
        NEAREST_NEIGHBOR: a sample is the nearest element. LINEAR: a sample is interpolated between
        the two nearest elements of each dimension.
    spatial_scale_x, spatial_scale_y : float
        The factors of the coordinates of the corners.
    """

    reduction_function: ReduceFunction | ReduceFunctionName = enumeration(ReduceFunction)
    interpolation_mode: InterpolationMode | InterpolationModeName = enumeration(InterpolationMode)
    spatial_scale_x: float = floating()
    spatial_scale_y: float = floating()

    def check(self) -> Rules:
        if self.reduction_function not in (ReduceFunction.AVERAGE, ReduceFunction.MAX):
            yield Violation("ReductionFunction", "AVERAGE or MAX", self.reduction_function)


class Shifted(Computed):
    """Offsets of elements and samples.

    Parameters
    ----------
    input_pixel_offset : float
        Subtracted from positions in the input; 0.5 for the centers of elements.
    output_pixel_offset : float
        Subtracted from positions in the output; -0.5 for the centers of samples.
    """

    input_pixel_offset: float = floating()
    output_pixel_offset: float = floating()


class Bounded(Computed):
    """The value outside the input.

    Parameters
    ----------
    out_of_bounds_input_value : float
        The value of a sample that lies more than one element outside the input.
    """

    out_of_bounds_input_value: float = floating()


class Sampled(Computed):
    """The number of samples of an output element.

    Parameters
    ----------
    minimum_samples_per_output, maximum_samples_per_output : int
        The bounds for the number of samples of an output element along each dimension. The number
        is the size of the scaled region divided by the size of the output, rounded up, and at least
        1.
    """

    minimum_samples_per_output: int = uint()
    maximum_samples_per_output: int = uint()

    def check(self) -> Rules:
        yield super().check()
        minimum, maximum = self.minimum_samples_per_output, self.maximum_samples_per_output
        yield at_least("MaximumSamplesPerOutput", maximum, 1)
        if maximum >= 1:
            why = "MaximumSamplesPerOutput"
            yield at_most("MinimumSamplesPerOutput", minimum, maximum, why)


# Four regions of one row of three elements each: the example on ROI_ALIGN_GRAD's page.
_REGIONS: Final = {
    "roi_tensor": [[0.0, 0, 2, 2], [2.0, 0, 4, 2], [0.0, 2, 2, 4], [2.0, 2, 4, 4]],
    "batch_indices_tensor": [0, 0, 0, 0],
    "reduction_function": "AVERAGE", "interpolation_mode": "NEAREST_NEIGHBOR",
    "spatial_scale_x": 1.0, "spatial_scale_y": 1.0,
    "minimum_samples_per_output": 1, "maximum_samples_per_output": 1,
}  # fmt: skip
_IMAGES: Final = {
    "input_tensor": [[[[1.0, 2, 3, 4], [5.0, 6, 7, 8], [9.0, 10, 11, 12], [13.0, 14, 15, 16]]]],
    "output_tensor": TensorDesc("FLOAT32", (4, 1, 1, 3)), "out_of_bounds_input_value": 0.0,
}  # fmt: skip
_CENTERS: Final = {
    "input_pixel_offset": 0.5, "output_pixel_offset": -0.5, "align_regions_to_corners": False,
}  # fmt: skip


class RoiAlign(Sampled, Bounded, Scaled, Tensors):
    """Resamples regions of the input to one size."""

    NAME = "ROI_ALIGN"
    EXAMPLES = ({**_REGIONS, **_IMAGES},)


class RoiAlign1(Sampled, Bounded, Shifted, Scaled, Tensors):
    """Resamples regions of the input to one size, with offsets and a choice of alignment.

    Parameters
    ----------
    align_regions_to_corners : bool
        Whether the first and the last sample of a region lie on its corners instead of inside it.
    """

    align_regions_to_corners: bool = boolean()

    NAME = "ROI_ALIGN1"
    EXAMPLES = ({**_REGIONS, **_IMAGES, **_CENTERS},)
    ALSO_KNOWN_AS = "onnx.RoiAlign torchvision.ops.roi_align tensorflow.image.crop_and_resize"


class GradientTensors(Sized):
    """The tensors of the gradient.

    Parameters
    ----------
    input_tensor : TensorDesc, optional
        The input of ROI_ALIGN1. It is required for MAX and for the gradient of the regions.
    input_gradient_tensor : TensorDesc
        The gradient of the output of ROI_ALIGN1, ``{regions, channels, height, width}``.
    roi_tensor : TensorDesc
        ``{.., regions, 4}``: x1, y1, x2 and y2 of each region.
    batch_indices_tensor : TensorDesc
        ``{.., regions}``: the batch of each region.
    output_gradient_tensor : TensorDesc, optional
        The gradient of the input of ROI_ALIGN1, ``{batches, channels, height, width}``. At least
        one output is required.
    output_roi_gradient_tensor : TensorDesc, optional
        The gradient of the regions, with the sizes of `roi_tensor`.
    """

    input_tensor: TensorDesc | None = input_field(optional=True)
    input_gradient_tensor: TensorDesc = input_field()
    roi_tensor: TensorDesc = input_field()
    batch_indices_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc | None = output_field(optional=True)
    output_roi_gradient_tensor: TensorDesc | None = output_field(optional=True)


def _same_channels(name: str, gradient: ArraySpec, data: ArraySpec) -> Rules:
    channels = size_at(data, 1)
    yield equal(f"{name}.Sizes[1]", size_at(gradient, 1), channels, "InputTensor.Sizes[1]")


class RoiAlignGrad(Sampled, Shifted, Scaled, GradientTensors):
    """The gradient of ROI_ALIGN and ROI_ALIGN1.

    A sample outside the input has no gradient. The gradient of a maximum goes to the largest
    sample; of equal samples, to the topmost and then the leftmost one.

    Parameters
    ----------
    align_regions_to_corners : bool
        Whether the first and the last sample of a region lie on its corners instead of inside it.
    """

    align_regions_to_corners: bool = boolean()

    NAME = "ROI_ALIGN_GRAD"
    TOLERANCE = ulp(1)
    WORKING_BYTES = 320
    EXAMPLES = ({
        "input_gradient_tensor": [
            [[[1.0, 2.0, 3.0]]], [[[4.0, 5.0, 6.0]]], [[[7.0, 8.0, 9.0]]], [[[10.0, 11.0, 12.0]]]
        ],
        "output_gradient_tensor": TensorDesc("FLOAT32", (1, 1, 4, 4)),
        "output_roi_gradient_tensor": None, **_REGIONS, **_CENTERS,
    },)  # fmt: skip

    def attributes(self) -> Attributes:
        """The attributes for `infer` and `compute`, with the input's sizes and the outputs."""
        image, regions = self.output_gradient_tensor, self.output_roi_gradient_tensor
        source = image if self.input_tensor is None else self.input_tensor
        attributes = super(Sized, self).attributes()  # its shape may be that of the regions
        return {
            **attributes, "shape": source.sizes if source else (), "of_input": image is not None,
            "of_regions": regions is not None,
        }  # fmt: skip

    def check(self) -> Rules:
        yield super().check()
        image, regions = self.output_gradient_tensor, self.output_roi_gradient_tensor
        if image is None and regions is None:
            yield Violation("OutputGradientTensor", "a tensor, here or as another output", None)
        needed = regions is not None or self.reduction_function == ReduceFunction.MAX
        if self.input_tensor is None and needed:
            rule = "a tensor (ReductionFunction MAX and OutputROIGradientTensor need it)"
            yield Violation("InputTensor", rule, None)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        data, gradient, regions, indices = inputs
        assert gradient is not None
        assert regions is not None
        name, shape = "InputGradientTensor", attributes["shape"]
        image = known(lambda: (*shape[:1], size_at(gradient, 1), *shape[2:]))
        outputs = ArraySpec(image, gradient.dtype), ArraySpec(regions.shape, gradient.dtype)
        count, why = size_at(regions, -2), "ROITensor, the number of regions"
        return Inferred.of(
            outputs,
            _check_regions((name, gradient), regions, indices, 4),
            same_types((name, gradient), ("InputTensor", data)),
            equal(f"{name}.Sizes[0]", size_at(gradient, 0), count, why),
            *([] if data is None else [_same_channels(name, gradient, data)]),
        )

    @staticmethod
    def compute(
        e: Engine, x: Array | None, dy: Array, regions: Array, indices: Array, *,
        shape: Sequence[int], of_input: bool, of_regions: bool, **attributes: Any,
    ) -> tuple[Array | None, Array | None]:  # fmt: skip
        xp, size = e.xp, prod(shape)
        grid = Grid.of(e, shape, regions, indices, dy.shape[2:], attributes)
        flat = None if x is None else x.reshape(-1)
        has_slopes = of_regions and attributes["interpolation_mode"] is InterpolationMode.LINEAR
        wide = dy.astype(xp.float64)

        def add(row: Run, column: Run, sums: Any, count: Any) -> Any:
            image, slopes = sums
            weight = row.count * column.count / count
            if of_input:
                places = grid.rows.place(row.middle), grid.columns.place(column.middle)
                for position, share in grid.taps(*places):
                    part = xp.where(share * weight == 0, 0.0, wide * (share * weight))
                    image = image + e.scatter_add(size, position.reshape(-1), part.reshape(-1))
            if has_slopes:
                slopes = slopes + grid.slopes(row, column, flat, wide / count)
            return image, slopes

        sums = xp.zeros(size) if of_input else None, xp.zeros((len(dy), 4)) if of_regions else None
        if attributes["reduction_function"] is ReduceFunction.MAX:
            sums = add(*grid.largest(flat, dy.shape), sums, 1.0)
        else:
            sums = grid.repeat(lambda row, column, sums: add(row, column, sums, grid.count), sums)
        image, slopes = sums
        if of_regions:
            scales = xp.asarray([attributes["spatial_scale_x"], attributes["spatial_scale_y"]] * 2)
            slopes = xp.where(slopes == 0, 0.0, slopes * scales).reshape(regions.shape)
        return image.reshape(shape) if of_input else None, slopes
