"""UPSAMPLE_2D, whose page has no examples: both modes, and images whose channels come last."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[[[1, 2], [3, 4]]]], np.float32)


def upsampled(x: np.ndarray, mode: str, width: int, height: int) -> np.ndarray:
    """Images of more elements."""
    *outer, rows, columns = x.shape
    desc = dml.Upsample2D(
        input_tensor=dml.TensorDesc.from_array(x),
        output_tensor=dml.TensorDesc("FLOAT32", (*outer, rows * height, columns * width)),
        scale_size=dml.Size2D(width=width, height=height),
        interpolation_mode=mode,
    )
    return dml.Device("cpu", feature_level="1_0").create_operator(desc).compile()(x)


# Each element three times in its row, and each row twice.
rows = [[1, 1, 1, 2, 2, 2], [3, 3, 3, 4, 4, 4]]
printed = [[[rows[0], rows[0], rows[1], rows[1]]]]
compare("nearest", upsampled(x, "NEAREST_NEIGHBOR", 3, 2), printed)

# An element of the output lies between those of the input, a quarter or three quarters on the way.
printed = [[[[1, 1.25, 1.75, 2], [3, 3.25, 3.75, 4]]]]
compare("linear, the width alone", upsampled(x, "LINEAR", 2, 1), printed)

# Channels that come last in memory are the same images, by strides.
channels_last = np.moveaxis(np.array([[[[1, 10], [2, 20]]]], np.float32), -1, 1)
printed = [[[[1, 1.25, 1.75, 2]], [[10, 12.5, 17.5, 20]]]]
compare("linear, channels last", upsampled(channels_last, "LINEAR", 2, 1), printed)
