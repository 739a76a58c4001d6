"""ONE_HOT: the examples of its page, from arrays and from descriptors."""

import numpy as np
from _printed import compare

import anydml as dml

zero_and_one = np.array([0, 1], np.float32)
rows = [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
columns = [[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]
other_values = [[2, 4, 4, 4], [4, 4, 4, 2], [4, 4, 2, 4]]
any_indices = [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]

compare("example 1", dml.one_hot(np.array([0, 3, 2]), 4, zero_and_one), rows)
compare("example 2", dml.one_hot(np.array([0, 2, 1, 0]), 3, zero_and_one, axis=0), columns)
compare("example 3", dml.one_hot([0, 3, 2], 4, [4.0, 2.0, 9.0]), other_values)
compare("example 4", dml.one_hot([-3, 100, 3], 4, zero_and_one), any_indices)

device = dml.Device("cpu")


def compiled(indices, values, axis, size):
    sizes = [*indices.shape]
    sizes[axis] = size
    desc = dml.OneHot(
        indices_tensor=dml.TensorDesc.from_array(indices),
        values_tensor=dml.TensorDesc.from_array(values),
        output_tensor=dml.TensorDesc("FLOAT32", sizes),
        axis=axis,
    )
    return device.create_operator(desc).compile()(indices, values)[0, 0]


indices = np.array([0, 3, 2], np.uint32).reshape(1, 1, 3, 1)
values = zero_and_one.reshape(1, 1, 1, 2)
compare("example 1, compiled", compiled(indices, values, 3, 4), rows)
across = np.array([0, 2, 1, 0], np.uint32).reshape(1, 1, 1, 4)
compare("example 2, compiled", compiled(across, values, 2, 3), columns)
three = np.array([4, 2, 9], np.float32).reshape(1, 1, 3, 1)
compare("example 3, compiled", compiled(indices, three, 3, 4), other_values)
signed = np.array([-3, 100, 3], np.int32).reshape(1, 1, 3, 1)
compare("example 4, compiled", compiled(signed, values, 3, 4), any_indices)
