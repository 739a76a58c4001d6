"""CAST: its page prints no example; these show what becomes of fractions, ends and NaN."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[1.9, -1.5, 300], [-0.5, np.nan, 254.99]], np.float32)

# The fraction is left out, the ends of the range hold, NaN is 0.
bytes_ = [[1, 0, 255], [0, 0, 254]]
compare("to uint8", dml.cast(x, "uint8"), bytes_)

# An integer becomes a smaller one by its low bits.
compare("to int8", dml.cast(np.array([1, 255, -129]), "int8"), [1, -1, 127])

# To a float everything is rounded once, ties to even.
compare("to float16", dml.cast(np.array([2049, 2051, 70000]), "float16"), [2048, 2052, np.inf])

desc = dml.Cast(
    input_tensor=dml.TensorDesc("FLOAT32", (2, 3)),
    output_tensor=dml.TensorDesc("UINT8", (2, 3)),
)
compiled = dml.Device("cpu", feature_level="3_1").create_operator(desc).compile()
compare("to uint8, compiled", compiled(x), bytes_)
