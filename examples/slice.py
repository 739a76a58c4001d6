"""SLICE: the two examples of its page."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)


def sliced(
    offsets: tuple[int, ...], sizes: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """What the operator copies."""
    desc = dml.Slice(
        input_tensor=dml.TensorDesc("FLOAT32", x.shape),
        output_tensor=dml.TensorDesc("FLOAT32", sizes),
        offsets=offsets,
        sizes=sizes,
        strides=strides,
    )
    return dml.Device("cpu", feature_level="1_0").create_operator(desc).compile()(x)


# Example 1: a contiguous slice.
printed = [[[[7, 8], [11, 12], [15, 16]]]]
compare("example 1", sliced((0, 0, 1, 2), (1, 1, 3, 2), (1, 1, 1, 1)), printed)

# Example 2: every other row, every third column. The function takes a window's extent instead.
printed = [[[[5, 8], [13, 16]]]]
compare("example 2", sliced((0, 0, 1, 0), (1, 1, 2, 2), (1, 1, 2, 3)), printed)
window = dml.slice_window(x, (0, 0, 1, 0), (1, 1, 3, 4), (1, 1, 2, 3))
compare("example 2, as a window", window, printed)
