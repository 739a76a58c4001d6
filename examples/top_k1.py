"""TOP_K1: the four examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

distinct = np.array([[[[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]], np.float32)
tied = np.array([[[[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]], np.float32)

values, indices = dml.top_k(distinct, 2, axis=3)
compare("example 1, values", values, [[[[11, 10], [9, 8], [7, 6]]]])
compare("example 1, indices", indices, [[[[3, 2], [2, 3], [3, 2]]]])

values, indices = dml.top_k(distinct, 2, axis=2)
compare("example 2, values", values, [[[[4, 5, 10, 11], [3, 2, 9, 8]]]])
compare("example 2, indices", indices, [[[[2, 2, 0, 0], [1, 1, 1, 1]]]])

# Ties come in ascending index order, whichever way the values are sorted.
values, indices = dml.top_k(tied, 3)
compare("example 3, values", values, [[[[3, 2, 2], [5, 5, 4], [6, 6, 6]]]])
compare("example 3, indices", indices, [[[[3, 1, 2], [2, 3, 1], [0, 1, 2]]]])

smallest_values = [[[[1, 2, 2], [3, 4, 5], [6, 6, 6]]]]
smallest_indices = [[[[0, 1, 2], [0, 1, 2], [0, 1, 2]]]]
values, indices = dml.top_k(tied, 3, largest=False)
compare("example 4, values", values, smallest_values)
compare("example 4, indices", indices, smallest_indices)

desc = dml.TopK1(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 4)),
    output_value_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 3)),
    output_index_tensor=dml.TensorDesc("UINT32", (1, 1, 3, 3)),
    axis=3,
    k=3,
    axis_direction="INCREASING",
)
compiled = dml.Device("cpu", feature_level="2_1").create_operator(desc).compile()
values, indices = compiled(tied)
compare("example 4, compiled, values", values, smallest_values)
compare("example 4, compiled, indices", indices, smallest_indices)
