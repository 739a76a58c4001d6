"""GATHER_ND: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

# Example 1: one-coordinate tuples name rows.
x, indices = np.array([[0, 1], [2, 3]], np.float32), np.array([[1], [0]], np.uint32)
compare("example 1", dml.gather_nd(x, indices), [[2, 3], [0, 1]])

# Example 2: two-coordinate tuples name rows of a block.
x, indices = np.arange(8, dtype=np.float32).reshape(2, 2, 2), np.array([[0, 1], [1, 0]], np.uint32)
printed = [[2, 3], [4, 5]]
compare("example 2", dml.gather_nd(x, indices), printed)

desc = dml.GatherND(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 2, 2, 2)),
    indices_tensor=dml.TensorDesc("UINT32", (1, 1, 2, 2)),
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 2)),
    input_dimension_count=3,
    indices_dimension_count=2,
)
compiled = dml.Device("cpu", feature_level="2_1").create_operator(desc).compile()
compare("example 2, compiled", compiled(x[None], indices[None, None]), [[printed]])
