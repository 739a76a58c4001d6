"""ELEMENT_WISE_IDENTITY: its page prints no example; these are its two uses."""

import numpy as np
from _printed import compare

import anydml as dml

x = np.array([[1, -1], [0.25, 40000]], np.float16)
tensor = dml.TensorDesc("FLOAT16", (2, 2))

# A scale and a bias, computed in FLOAT32 and rounded once to FLOAT16.
scaled = dml.ElementWiseIdentity(
    input_tensor=tensor, output_tensor=tensor, scale_bias=dml.ScaleBias(scale=2, bias=0.5)
)
compiled = dml.Device("cpu").create_operator(scaled).compile()
compare("scale and bias", compiled(x), [[2.5, -1.5], [1, np.inf]])

# Another memory layout: the raw buffer of the output has its columns behind one another.
columns = dml.TensorDesc("FLOAT16", (2, 2), strides=(1, 2))
desc = dml.ElementWiseIdentity(input_tensor=tensor, output_tensor=columns)
buffer = np.zeros(4, np.float16)
dml.Device("cpu").create_operator(desc).compile().dispatch(InputTensor=x, OutputTensor=buffer)
compare("columns", buffer, [1, 0.25, -1, 40000])
