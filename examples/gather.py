"""GATHER: the five examples of its page, from arrays and from descriptors."""

import numpy as np
from _printed import compare

import anydml as dml

device = dml.Device("cpu")


def compiled(x: np.ndarray, indices: np.ndarray, sizes: tuple[int, ...], axis: int, count: int):
    """The operator's output: axis and sizes are the descriptor's, padded to one rank."""
    desc = dml.Gather(
        input_tensor=dml.TensorDesc.from_array(x),
        indices_tensor=dml.TensorDesc.from_array(indices),
        output_tensor=dml.TensorDesc("FLOAT32", sizes),
        axis=axis,
        index_dimensions=count,
    )
    return device.create_operator(desc).compile()(x, indices)


# Example 1: elements of a line.
line, indices = np.array([11, 12, 13, 14], np.float32), np.array([3, 1, 3, 0, 2], np.uint32)
printed = [14, 12, 14, 11, 13]
compare("example 1", dml.gather(line, indices), printed)
compare("example 1, compiled", compiled(line, indices, (5,), axis=0, count=1), printed)

# Example 2: rows, one of them twice.
rows, indices = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([0, 1, 1, 2], np.uint32)
printed = [[1, 2], [3, 4], [3, 4], [5, 6]]
compare("example 2", dml.gather(rows, indices), printed)
output = compiled(rows, indices.reshape(1, 4), (4, 2), axis=0, count=1)
compare("example 2, compiled", output, printed)

# Example 3: swapped columns. The page prints IndexDimensions 2; only 1 gives what it prints.
indices = np.array([1, 0], np.uint32)
printed = [[2, 1], [4, 3], [6, 5]]
compare("example 3", dml.gather(rows, indices, axis=1), printed)
output = compiled(rows, indices.reshape(1, 2), (3, 2), axis=1, count=1)
compare("example 3, compiled", output, printed)

# Examples 4 and 5: nested indices. The array function needs no padding in front.
square = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
indices = np.array([[0, 2]], np.uint32)
printed = [[[1, 3]], [[4, 6]], [[7, 9]]]
compare("example 4", dml.gather(square, indices, axis=1), printed)
output = compiled(square[None], indices[None], (3, 1, 2), axis=2, count=2)
compare("example 4, compiled", output, printed)

indices = np.array([[0, 1], [1, 2]], np.uint32)
printed = [[[1, 2], [3, 4]], [[3, 4], [5, 6]]]
compare("example 5", dml.gather(rows, indices, axis=0), printed)
output = compiled(rows[None], indices[None], (2, 2, 2), axis=1, count=2)
compare("example 5, compiled", output, printed)
