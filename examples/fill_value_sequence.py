"""FILL_VALUE_SEQUENCE: the two examples of its page."""

import numpy as np
from _printed import compare

import anydml as dml


def sequence(data_type: str, sizes: tuple[int, ...], start: float, delta: float) -> np.ndarray:
    """A tensor that the operator has filled."""
    desc = dml.FillValueSequence(
        output_tensor=dml.TensorDesc(data_type, sizes),
        value_data_type=data_type,
        value_start=start,
        value_delta=delta,
    )
    return dml.Device("cpu").create_operator(desc).compile()()


# Example 1: an ascending step.
compare("example 1", sequence("FLOAT32", (1, 1, 1, 3), 3, 2), [[[[3, 5, 7]]]])

# Example 2: a step back, of an unsigned type.
compare("example 2", sequence("UINT8", (1, 1, 2, 2), 10, -2), [[[[10, 8], [6, 4]]]])
