"""TOP_K: the three examples of its page, from descriptors; it is TOP_K1 with DECREASING."""

import numpy as np
from _printed import compare

import anydml as dml

device = dml.Device("cpu", feature_level="2_0")


def top_k(x: np.ndarray, axis: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices of the k largest along an axis."""
    sizes = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    desc = dml.TopK(
        input_tensor=dml.TensorDesc.from_array(x),
        output_value_tensor=dml.TensorDesc("FLOAT32", sizes),
        output_index_tensor=dml.TensorDesc("UINT32", sizes),
        axis=axis,
        k=k,
    )
    return device.create_operator(desc).compile()(x)


distinct = np.array([[[[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]], np.float32)
tied = np.array([[[[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]], np.float32)

values, indices = top_k(distinct, axis=3, k=2)
compare("example 1, values", values, [[[[11, 10], [9, 8], [7, 6]]]])
compare("example 1, indices", indices, [[[[3, 2], [2, 3], [3, 2]]]])

values, indices = top_k(distinct, axis=2, k=2)
compare("example 2, values", values, [[[[4, 5, 10, 11], [3, 2, 9, 8]]]])
compare("example 2, indices", indices, [[[[2, 2, 0, 0], [1, 1, 1, 1]]]])

values, indices = top_k(tied, axis=3, k=3)
compare("example 3, values", values, [[[[3, 2, 2], [5, 5, 4], [6, 6, 6]]]])
compare("example 3, indices", indices, [[[[3, 1, 2], [2, 3, 1], [0, 1, 2]]]])
