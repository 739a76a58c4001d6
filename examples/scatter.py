"""SCATTER: the two examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

# Example 1. The index 3 comes twice: the last update in row-major order (7) wins.
line = np.array([0, 1, 2, 3, 4], np.float32)
indices = np.array([3, 1, 3, 0], np.uint32)
updates = np.array([5, 6, 7, 8], np.float32)

compare("example 1", dml.scatter_elements(line, indices, updates, axis=0), [8, 6, 2, 7, 4])

# Example 2. The page prints the input's sizes as {2,3}, but its nine elements are {3,3}.
square = np.zeros((3, 3), np.float32)
indices = np.array([[1, 0, 2], [0, 2, 1]], np.uint32)
updates = np.array([[10, 11, 12], [20, 21, 22]], np.float32)
printed = [[20, 11, 0], [10, 0, 22], [0, 21, 12]]

compare("example 2", dml.scatter_elements(square, indices, updates, axis=0), printed)

desc = dml.Scatter(
    input_tensor=dml.TensorDesc("FLOAT32", (3, 3)),
    indices_tensor=dml.TensorDesc("UINT32", (2, 3)),
    updates_tensor=dml.TensorDesc("FLOAT32", (2, 3)),
    output_tensor=dml.TensorDesc("FLOAT32", (3, 3)),
    axis=0,
)
compiled = dml.Device("cpu").create_operator(desc).compile()
compare("example 2, compiled", compiled(square, indices, updates), printed)

# In place: the output is the input's own memory, and nothing is copied.
compiled.dispatch(
    InputTensor=square, IndicesTensor=indices, UpdatesTensor=updates, OutputTensor=square
)
compare("example 2, in place", square, printed)
