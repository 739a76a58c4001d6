"""NONZERO_COORDINATES: the examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[1.0, 0.0, 0.0, 2.0], [-0.0, 3.5, 0.0, -5.2]], np.float32)

compare("coordinates", dml.nonzero_coordinates(x), [[0, 0], [0, 3], [1, 1], [1, 3]])

# A descriptor's output has a row for every element of the input, and here three columns for an
# input of rank 4: its effective rank is 2. Rows from the count on are undefined, which is zero in
# memory that the library allocates.
desc = dml.NonzeroCoordinates(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 4)),
    output_count_tensor=dml.TensorDesc("UINT32", (1, 1, 1, 1)),
    output_coordinates_tensor=dml.TensorDesc("UINT32", (1, 1, 8, 3)),
)
compiled = dml.Device("cpu").create_operator(desc).compile()
count, coordinates = compiled(x.reshape(1, 1, 2, 4))
printed = [[0, 0, 0], [0, 0, 3], [0, 1, 1], [0, 1, 3], *[[0, 0, 0]] * 4]
compare("count, compiled", count, [[[[4]]]])
compare("coordinates, compiled", coordinates, [[printed]])

# The page's example of the order: ascending elements, whichever way they were set.
grid = np.zeros((2, 6), np.float32)
grid[1, 0] = grid[1, 2] = grid[0, 5] = 1
compare("order", dml.nonzero_coordinates(grid), [[0, 5], [1, 0], [1, 2]])
