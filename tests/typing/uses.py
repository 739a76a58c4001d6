"""Uses of the array functions with the types that checkers are to find. Checked, never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import anydml as dml


class Tensor:
    """An array of another library, with the protocol as PyTorch declares it."""

    def __dlpack__(
        self, *, stream: Any | None = -1, max_version: tuple[int, int] | None = None
    ) -> Any:
        raise NotImplementedError


class Image:
    """An object with NumPy's array interface, whose class no library has."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise NotImplementedError


Floats = NDArray[np.float32]
Places = NDArray[np.intp]
Anything = NDArray[Any]

x = np.zeros((2, 3), np.float32)
i = np.zeros((2, 3), np.int64)
t = Tensor()
nested = [[1.0, 2.0], [3.0, 4.0]]

# A NumPy array gives NumPy arrays of its type, of any shape.
assert_type(dml.gather(x, i), Floats)
assert_type(dml.gather(x, [0, 1], axis=1, mode="wrap"), Floats)
assert_type(dml.gather_elements(x, i, axis=-1, broadcast=True), Floats)
assert_type(dml.gather_nd(x, i, batch_dims=np.int64(0), mode="clamp"), Floats)
assert_type(dml.scatter_elements(x, i, x, reduction="sum", include_self=False), Floats)
assert_type(dml.scatter_elements(x, i, 7.0), Floats)
assert_type(dml.scatter_nd(x, i, x, reduction="amax"), Floats)
assert_type(dml.split(x, 3, axis=1), tuple[Floats, ...])
assert_type(dml.split(x, [1, 2], axis=1)[0], Floats)
assert_type(dml.split(x, points=[1], axis=1), tuple[Floats, ...])
assert_type(dml.split(x, 2, near_equal=True), tuple[Floats, ...])
assert_type(dml.join([x, x], axis=None), Floats)
assert_type(dml.join((x, x), promote=True), Floats)
assert_type(dml.pad(x, 1, "edge"), Floats)
assert_type(dml.slice_window(x, (0, 1), (1, 2)), Floats)
assert_type(dml.tile(x, 2), Floats)
assert_type(dml.reverse_subsequences(x, [[1]], axis=1), Floats)
assert_type(dml.one_hot(i, 3, x), Floats)
assert_type(dml.one_hot(i, 3), Anything)
assert_type(dml.one_hot(i, 3, [0.0, 1.0], axis=0), Anything)
assert_type(dml.cast(x, np.int8), NDArray[np.int8])
assert_type(dml.cast(x, np.dtype(np.int8)), NDArray[np.int8])
assert_type(dml.cast(x, "int8"), Anything)
assert_type(dml.cast(x, dml.DataType.INT8), Anything)

# Indices are of the type that NumPy indexes with, unless another one is asked for.
values, indices = dml.top_k(x, 2)
assert_type(values, Floats)
assert_type(indices, Places)
assert_type(dml.top_k(x, 2).values, Floats)
assert_type(dml.top_k(x, 2, index_dtype=np.uint32).indices, NDArray[np.uint32])
assert_type(dml.top_k(x, 2, index_dtype="uint32").indices, Anything)
assert_type(dml.nonzero_coordinates(x), Places)
assert_type(dml.nonzero_coordinates(x, index_dtype=np.int32), NDArray[np.int32])
assert_type(dml.nonzero_coordinates(x, index_dtype="int32"), Anything)

# Another library's array gives its own.
assert_type(dml.gather(t, i), Tensor)
assert_type(dml.gather_elements(t, t), Tensor)
assert_type(dml.gather_nd(t, t), Tensor)
assert_type(dml.scatter_elements(t, t, t, axis=1), Tensor)
assert_type(dml.scatter_nd(t, i, 0.0), Tensor)
assert_type(dml.split(t, 2), tuple[Tensor, ...])
assert_type(dml.join([t, t]), Tensor)
assert_type(dml.pad(t, ((0, 1), (1, 0))), Tensor)
assert_type(dml.slice_window(t, [0], [1], [-1]), Tensor)
assert_type(dml.tile(t, (2, 1)), Tensor)
assert_type(dml.reverse_subsequences(t, [1, 2], axis=0), Tensor)
assert_type(dml.one_hot(t, 3), Tensor)
assert_type(dml.cast(t, "float16"), Tensor)
assert_type(dml.top_k(t, 1).indices, Tensor)
assert_type(dml.top_k(t, 1, index_dtype="int32").values, Tensor)
assert_type(dml.nonzero_coordinates(t), Tensor)

# What NumPy makes an array of gives a NumPy array.
assert_type(dml.gather(nested, 0), Anything)
assert_type(dml.split(nested, 2), tuple[Anything, ...])
assert_type(dml.join([nested, nested]), Anything)
assert_type(dml.one_hot(nested, 2), Anything)
assert_type(dml.top_k(nested, 1).indices, Places)
assert_type(dml.nonzero_coordinates(nested), Places)
assert_type(dml.cast(nested, np.float16), NDArray[np.float16])
assert_type(dml.pad(Image(), 1), Anything)
assert_type(dml.top_k(Image(), 1).values, Anything)

# What is written comes back.
out = np.zeros(3, np.float32)
assert_type(dml.gather(nested, i, out=t), Tensor)
assert_type(dml.top_k(x, 1, out=(t, t)), dml.TopKResult[Tensor, Tensor])
assert_type(dml.join([t, t], out=t), Tensor)

# Descriptors and errors.
tensor = dml.TensorDesc("FLOAT32", (2, 3))
desc = dml.TopK1(
    input_tensor=tensor,
    output_value_tensor=tensor,
    output_index_tensor=dml.TensorDesc(dml.DataType.UINT32, (2, 3)),
    axis=1,
    k=3,
    axis_direction="DECREASING",
)
assert_type(desc, dml.TopK1)
padding = dml.Padding1(
    input_tensor=tensor,
    output_tensor=tensor,
    padding_mode="EDGE",
    padding_value_data_type="FLOAT32",
    padding_value=0,
    start_padding=(0, 0),
    end_padding=(0, 0),
)
assert_type(padding, dml.Padding1)
device = dml.Device("cpu", feature_level="5_0")
assert_type(device.check(desc), list[dml.Violation])
assert_type(device.minimum_feature_level(desc), dml.FeatureLevel | None)
compiled = device.create_operator(desc, out_of_range="raise").compile()
assert_type(compiled, dml.CompiledOperator[dml.TopK1])
assert_type(compiled.desc, dml.TopK1)
assert_type(dml.support(dml.TopK1), tuple[dml.Support, ...])

# Compiled operators and graphs give results of the inputs' kind, by the names of the fields.
assert_type(compiled(x).output_value_tensor, Anything)
assert_type(compiled(InputTensor=t).output_index_tensor, Tensor)
assert_type(device.create_operator(padding).compile()(x), Anything)
assert_type(device.create_operator(padding).compile()(t), Tensor)
split = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
assert_type(device.create_operator(split).compile()(t), tuple[Tensor, ...])
some: dml.CompiledOperator = compiled
assert_type(some(x), Any)

# Functions of graphs give expressions; optional outputs make a named tuple of them.
graph = dml.GraphBuilder()
e = graph.input("e", tensor)
assert_type(graph.add(e, e, fused_activation=dml.ActivationRelu()), dml.Expression)
assert_type(graph.element_wise_add1(e, e) + 1, dml.Expression)
assert_type(graph.if_(e, e, e), dml.Expression)
assert_type(graph.top_k(e, axis=1, k=2).value, dml.Expression)
assert_type(graph.split(e, axis=0, output_axis_sizes=(1, 1)), tuple[dml.Expression, ...])
assert_type(graph.join([e, e], axis=0), dml.Expression)
assert_type(graph.max_pooling(e, window_size=(1,)), dml.Expression)
assert_type(graph.max_pooling(e, window_size=(1,), output_indices=True).indices, dml.Expression)
of_graph = device.compile_graph(graph.build(y=graph.gemm(e, e, trans_b="TRANSPOSE")))
assert_type(of_graph(e=x), dict[str, Anything])
assert_type(of_graph(e=t), dict[str, Tensor])
