"""PADDING1: the four examples of its page, from arrays and from a descriptor."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]] * 2, np.float32)
around = ((1, 3), (2, 4))

# Example 1: a value.
nines = [[9] * 10]
printed = [*nines, *([9, 9, *row, 9, 9, 9, 9] for row in x.tolist()), *nines, *nines, *nines]
compare("example 1", dml.pad(x, around, constant=9), printed)

# Example 2: the nearest element.
first, second = [1, 1, 1, 2, 3, 4, 4, 4, 4, 4], [5, 5, 5, 6, 7, 8, 8, 8, 8, 8]
printed = [first, first, second, first, second, second, second, second]
compare("example 2", dml.pad(x, around, "edge"), printed)

# Example 3: mirrored at the first and the last element.
printed = [[7, 6, 5, 6, 7, 8, 7, 6, 5, 6], [3, 2, 1, 2, 3, 4, 3, 2, 1, 2]] * 4
compare("example 3", dml.pad(x, around, "reflection"), printed)

# Example 4: mirrored at the edges.
first, second = [2, 1, 1, 2, 3, 4, 4, 3, 2, 1], [6, 5, 5, 6, 7, 8, 8, 7, 6, 5]
printed = [first, first, second, first, second, second, first, second]
compare("example 4", dml.pad(x, around, "symmetric"), printed)

desc = dml.Padding1(
    input_tensor=dml.TensorDesc("FLOAT32", (4, 4)),
    output_tensor=dml.TensorDesc("FLOAT32", (8, 10)),
    padding_mode="SYMMETRIC",
    padding_value_data_type="FLOAT32",
    padding_value=0,
    start_padding=(1, 2),
    end_padding=(3, 4),
)
compiled = dml.Device("cpu", feature_level="5_0").create_operator(desc).compile()
compare("example 4, compiled", compiled(x), printed)
