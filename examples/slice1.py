"""SLICE1: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
offsets, sizes = (0, 0, 0, 1), (1, 1, 4, 3)

# Example 1: every other row and column of the window.
compare("example 1", dml.slice_window(x, offsets, sizes, (1, 1, 2, 2)), [[[[2, 4], [10, 12]]]])

# Example 2: rows from the end of the window.
printed = [[[[14, 16], [6, 8]]]]
compare("example 2", dml.slice_window(x, offsets, sizes, (1, 1, -2, 2)), printed)

desc = dml.Slice1(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 4, 4)),
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 2)),
    input_window_offsets=offsets,
    input_window_sizes=sizes,
    input_window_strides=(1, 1, -2, 2),
)
compiled = dml.Device("cpu", feature_level="2_1").create_operator(desc).compile()
compare("example 2, compiled", compiled(x), printed)
