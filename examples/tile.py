"""TILE: the example of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[[[1, 2, 3], [4, 5, 6]]]], np.float32)
printed = [[[[1, 2, 3] * 3, [4, 5, 6] * 3] * 3]]

compare("example", dml.tile(x, (1, 1, 3, 3)), printed)
compare("example, the last axes", dml.tile(x, (3, 3)), printed)

desc = dml.Tile(
    input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 3)),
    output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 6, 9)),
    repeats=(1, 1, 3, 3),
)
compiled = dml.Device("cpu", feature_level="1_0").create_operator(desc).compile()
compare("example, compiled", compiled(x), printed)
