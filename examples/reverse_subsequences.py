"""REVERSE_SUBSEQUENCES: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)

# Example 1: rows of several lengths.
lengths = np.array([[[[2], [4], [3]]]], np.uint32)
printed = [[[[2, 1, 3, 4], [8, 7, 6, 5], [11, 10, 9, 12]]]]
compare("example 1", dml.reverse_subsequences(x, lengths, axis=3), printed)

# Example 2: along another axis.
lengths = np.array([[[[2, 3, 1, 0]]]], np.uint32)
printed = [[[[5, 10, 3, 4], [1, 6, 7, 8], [9, 2, 11, 12]]]]
compare("example 2", dml.reverse_subsequences(x, lengths, axis=2), printed)

desc = dml.ReverseSubsequences(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 4)),
    sequence_lengths_tensor=dml.TensorDesc("UINT32", (1, 1, 1, 4)),
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 4)),
    axis=2,
)
compiled = dml.Device("cpu", feature_level="2_1").create_operator(desc).compile()
compare("example 2, compiled", compiled(x, lengths), printed)
