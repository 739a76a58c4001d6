"""Uses that checkers are to refuse, each for what its comment says. Checked, never run."""

import numpy as np

import anydml as dml

x = np.zeros((2, 3), np.float32)
i = np.zeros((2, 3), np.int64)

dml.gather(x, i, mode="rase")  # error: a mode that there is not
dml.gather(x, i, axis="0")  # error: no integer
dml.gather(object(), i)  # error: no array
dml.gather(x)  # error: no indices
dml.scatter_elements(x, i, x, reduction="plus")  # error: a reduction that there is not
dml.scatter_nd(x, i, x, include_self="no")  # error: no bool
dml.top_k(x, 2, index_dtype="int16")  # error: no type of indices
dml.top_k(x, 2.5)  # error: no integer
dml.nonzero_coordinates(x, index_dtype="float32")  # error: no type of indices
dml.cast(x, "flaot32")  # error: a type that there is not
dml.pad(x, 1, "mirror")  # error: a mode that there is not
dml.split(x, "ab")  # error: no sizes
dml.TensorDesc("FLOAT31", (2,))  # error: a type that there is not
dml.Split(input_tensor=dml.TensorDesc("FLOAT32", (2,)), axes=0)  # error: no field
dml.FillValueSequence(value_data_type="FLOAT31")  # error: a type that there is not
_ = dml.join([x, x]).no_such  # error: an array is what comes back

tensor = dml.TensorDesc("FLOAT32", (2, 3))
graph = dml.GraphBuilder()
e = graph.input("e", tensor)
graph.relu(e)  # error: a function that there is not
graph.gemm(e)  # error: an input is missing
graph.gemm(e, x)  # error: no expression
graph.gemm(e, e, trans_c="NONE")  # error: a field that there is not
graph.gemm(e, e, trans_a="TRANSPOSED")  # error: a word that there is not
graph.top_k(e, axis=1, k="2")  # error: no integer
_ = graph.top_k(e, axis=1, k=2).values  # error: the output is called value
_ = graph.max_pooling(e, window_size=(1,)).indices  # error: indices were not asked for
split = dml.Device().create_operator(dml.Split(input_tensor=tensor, output_tensors=[], axis=0))
_ = split.compile()(x).output_tensor  # error: a tuple is what comes back
split.compile()(3.5)  # error: no array
