"""SPLIT: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]]], np.float32)

# Example 1: slabs of 2, 1 and 3 rows.
printed = ([[[[1, 2], [3, 4]]]], [[[[5, 6]]]], [[[[7, 8], [9, 10], [11, 12]]]])
for i, part in enumerate(dml.split(x, [2, 1, 3], axis=2)):
    compare(f"example 1, part {i}", part, printed[i])

desc = dml.Split(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 6, 2)),
    output_tensors=[dml.TensorDesc("FLOAT32", (1, 1, rows, 2)) for rows in (2, 1, 3)],
    axis=2,
)
compiled = dml.Device("cpu", feature_level="1_0").create_operator(desc).compile()
for i, part in enumerate(compiled(x)):
    compare(f"example 1, compiled, part {i}", part, printed[i])

# Example 2: single columns.
left, right = dml.split(x, 2, axis=3)
compare("example 2, left", left, [[[[1], [3], [5], [7], [9], [11]]]])
compare("example 2, right", right, [[[[2], [4], [6], [8], [10], [12]]]])
