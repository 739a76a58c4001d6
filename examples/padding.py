"""PADDING: the four examples of its page, and a value that becomes an integer."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]] * 2, np.float32)


def padded(x: np.ndarray, mode: str, value: float = 0) -> np.ndarray:
    """The array with more elements around it."""
    desc = dml.Padding(
        input_tensor=dml.TensorDesc.from_array(x),
        output_tensor=dml.TensorDesc(dml.DataType.from_numpy(x.dtype), (8, 10)),
        padding_mode=mode,
        padding_value=value,
        start_padding=(1, 2),
        end_padding=(3, 4),
    )
    return dml.Device("cpu").create_operator(desc).compile()(x)


# Example 1: a value.
nines = [[9] * 10]
printed = [*nines, *([9, 9, *row, 9, 9, 9, 9] for row in x.tolist()), *nines, *nines, *nines]
compare("example 1", padded(x, "CONSTANT", 9), printed)
compare("of integers, a value of 9.9", padded(x.astype(np.uint8), "CONSTANT", 9.9), printed)

# Example 2: the nearest element.
first, second = [1, 1, 1, 2, 3, 4, 4, 4, 4, 4], [5, 5, 5, 6, 7, 8, 8, 8, 8, 8]
printed = [first, first, second, first, second, second, second, second]
compare("example 2", padded(x, "EDGE"), printed)

# Example 3: mirrored at the first and the last element.
printed = [[7, 6, 5, 6, 7, 8, 7, 6, 5, 6], [3, 2, 1, 2, 3, 4, 3, 2, 1, 2]] * 4
compare("example 3", padded(x, "REFLECTION"), printed)

# Example 4, from feature level 3_0: mirrored at the edges.
first, second = [2, 1, 1, 2, 3, 4, 4, 3, 2, 1], [6, 5, 5, 6, 7, 8, 8, 7, 6, 5]
printed = [first, first, second, first, second, second, first, second]
compare("example 4", padded(x, "SYMMETRIC"), printed)
