"""GATHER_ELEMENTS: the example of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)
indices = np.array([[1, 2, 0], [2, 0, 0]], np.uint32)
printed = [[4, 8, 3], [7, 2, 3]]

compare("example", dml.gather_elements(x, indices, axis=0), printed)

# The page prints UINT32 as the output's type; its own rule asks for the input's.
desc = dml.GatherElements(
    input_tensor=dml.TensorDesc("FLOAT32", (3, 3)),
    indices_tensor=dml.TensorDesc("UINT32", (2, 3)),
    output_tensor=dml.TensorDesc("FLOAT32", (2, 3)),
    axis=0,
)
compiled = dml.Device("cpu").create_operator(desc).compile()
compare("example, compiled", compiled(x, indices), printed)
