"""ONNX models: read, placed as ONNX Runtime's DirectML provider places them, run and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anydml.graphs.desc import GraphDesc
    from anydml.onnx.model import OnnxModel


def read_onnx(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    as_onnxruntime: bool = False,
    runtime: str | None = None,
    memory_limit: int = 4 * 2**30,
) -> OnnxModel:
    """Read an ONNX model; needs the extra ``anydml[onnx]``.

    Parameters
    ----------
    model : str, Path, bytes or onnx.ModelProto
        A file, its content, or the message. External data are read from the file's folder.
    shapes : mapping of str to sequence of int, optional
        Shapes of inputs.
    dims : mapping of str to int, optional
        Sizes of free dimensions, by their names in the model.
    as_onnxruntime : bool
        Whether a run uses exactly the versions of operators that ONNX Runtime's provider has. By
        default a revision that only adds types runs as the one before it.
    runtime : str, optional
        The version of ONNX Runtime's package with DirectML whose kernels count, as ``"1.20.1"``;
        by default the last one.
    memory_limit : int
        The most bytes of the file and of its constants.

    Returns
    -------
    OnnxModel
        With `nodes`, `check`, `graphs` and `compile`.

    Raises
    ------
    ModelError
        The file cannot be read, or is not a valid model.
    DeviceError
        The package `onnx` is not installed.

    Examples
    --------
    >>> import anydml as dml, onnx.helper as oh
    >>> x, y = (oh.make_tensor_value_info(name, 1, [3]) for name in "xy")
    >>> graph = oh.make_graph([oh.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> model = dml.read_onnx(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)]))
    >>> [(node.operator, node.place) for node in model.nodes]
    [('Relu', 'graph')]
    >>> model.compile(dml.Device("cpu"))(x=dml.cast([-1, 0, 2], "float32"))
    {'y': array([0., 0., 2.], dtype=float32)}
    """
    from anydml.onnx.model import load_model

    return load_model(model, shapes or {}, dims or {}, as_onnxruntime, memory_limit, runtime)


def to_onnx(graph: GraphDesc, weights: Mapping[str, Any] | None = None) -> Any:
    """Write a DirectML graph as an ONNX model; needs the extra ``anydml[onnx]``.

    The model computes what `Device("cpu")` does, within the tolerances of the operators, with
    operators of ONNX alone. Inputs, outputs and weights keep their names; the names of nodes begin
    with those of the graph's nodes.

    Parameters
    ----------
    graph : GraphDesc
        As `GraphBuilder.build`, `read_serialized_graph` and `GraphDesc.from_json` make it.
    weights : mapping of str to array or buffer, optional
        Every input that is OWNED_BY_DML, as `CompiledGraph.initialize` takes it. They become
        initializers.

    Returns
    -------
    onnx.ModelProto
        Of opset 21, with the weights inside. One of more than 2 GiB cannot be serialized:
        ``onnx.save(model, path, save_as_external_data=True)`` writes it.

    Raises
    ------
    InvalidDescriptorError
        The graph breaks rules.
    BindingError
        A weight is missing, unknown, or does not fit.
    ModelError
        ONNX has no form of an operator; the message names each node and the reason.
    DeviceError
        The package `onnx` is not installed.

    Examples
    --------
    >>> import anydml as dml
    >>> graph = dml.GraphBuilder()
    >>> x = graph.input("x", dml.TensorDesc("FLOAT32", (2, 3)))
    >>> w = graph.input("w", dml.TensorDesc("FLOAT32", (3, 200), flags="OWNED_BY_DML"))
    >>> desc = graph.build(y=graph.gemm(x, w, name="project"))
    >>> weights = dml.cast([[0.5] * 200] * 3, "float32")
    >>> model = dml.to_onnx(desc, weights={"w": weights})
    >>> [(node.op_type, node.name) for node in model.graph.node]
    [('MatMul', 'project/MatMul_0')]
    """
    from anydml.onnx.write import written_model

    return written_model(graph, weights or {}).whole()
