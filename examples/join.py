"""JOIN: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

# Example 1: the inputs differ on axis 3, so only there can they be joined.
left = np.array([[[[1, 2, 3], [4, 5, 6]]]], np.float32)
right = np.array([[[[7, 8, 9, 10], [11, 12, 13, 14]]]], np.float32)
printed = [[[[1, 2, 3, 7, 8, 9, 10], [4, 5, 6, 11, 12, 13, 14]]]]

compare("example 1", dml.join([left, right], axis=3), printed)

desc = dml.Join(
    input_tensors=[
        dml.TensorDesc("FLOAT32", (1, 1, 2, 3)),
        dml.TensorDesc("FLOAT32", (1, 1, 2, 4)),
    ],
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 7)),
    axis=3,
)
compiled = dml.Device("cpu", feature_level="1_0").create_operator(desc).compile()
compare("example 1, compiled", compiled([left, right]), printed)

# Example 2: inputs of one shape can be joined on any axis.
a, b, c = np.arange(1, 13, dtype=np.float32).reshape(3, 1, 1, 2, 2)
rows = [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]
compare("example 2, axis 1", dml.join([a, b, c], axis=1), [[rows[:2], rows[2:4], rows[4:]]])
compare("example 2, axis 2", dml.join([a, b, c], axis=2), [[rows]])
compare(
    "example 2, axis 3",
    dml.join([a, b, c], axis=3),
    [[[[1, 2, 5, 6, 9, 10], [3, 4, 7, 8, 11, 12]]]],
)
