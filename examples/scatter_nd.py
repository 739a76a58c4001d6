"""SCATTER_ND: the example of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.float32)
indices = np.array([[4], [3], [1], [7]], np.uint32)
updates = np.array([9, 10, 11, 12], np.float32)
printed = [1, 11, 3, 10, 9, 6, 7, 12]

compare("example", dml.scatter_nd(x, indices, updates), printed)

# The page prints sizes of different ranks and FLOAT32 indices, which its own rules refuse. A
# descriptor has one DimensionCount; the two counts say which trailing dimensions are meant.
desc = dml.ScatterND(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 8)),
    indices_tensor=dml.TensorDesc("UINT32", (4, 1)),
    updates_tensor=dml.TensorDesc("FLOAT32", (1, 4)),
    output_tensor=dml.TensorDesc("FLOAT32", (1, 8)),
    input_dimension_count=1,
    indices_dimension_count=2,
)
compiled = dml.Device("cpu").create_operator(desc).compile()
output = compiled(x.reshape(1, 8), indices, updates.reshape(1, 4))
compare("example, compiled", output, [printed])

# The page's example of sizes: tuples of 3 coordinates into 5 dimensions name blocks of [6, 7].
sizes = dml.ScatterND(
    input_tensor=dml.TensorDesc("FLOAT32", (3, 4, 5, 6, 7)),
    indices_tensor=dml.TensorDesc("UINT32", (1, 1, 1, 2, 3)),
    updates_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 6, 7)),
    output_tensor=dml.TensorDesc("FLOAT32", (3, 4, 5, 6, 7)),
    input_dimension_count=5,
    indices_dimension_count=3,
)
assert dml.Device("cpu").check(sizes) == []
