"""GATHER_ND1: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

# Example 1: no batches, as GATHER_ND.
x, indices = np.array([[0, 1], [2, 3]], np.float32), np.array([[1], [0]], np.uint32)
compare("example 1", dml.gather_nd(x, indices, batch_dims=0), [[2, 3], [0, 1]])

# Example 2: three batches, each with tuples into its own part of the input.
x = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
indices = np.array([[[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]], np.uint32)
printed = [[0, 3], [7, 4], [9, 10]]
compare("example 2", dml.gather_nd(x, indices, batch_dims=1), printed)

desc = dml.GatherND1(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 3, 2, 2)),
    indices_tensor=dml.TensorDesc("UINT32", (1, 3, 2, 2)),
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 2)),
    input_dimension_count=3,
    indices_dimension_count=3,
    batch_dimension_count=1,
)
compiled = dml.Device("cpu").create_operator(desc).compile()
compare("example 2, compiled", compiled(x[None], indices[None]), [[printed]])
