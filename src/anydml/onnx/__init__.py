"""ONNX models: read, placed as ONNX Runtime's DirectML provider places them, checked and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anydml.onnx.model import OnnxModel


def read_onnx(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    as_onnxruntime: bool = False,
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

    return load_model(model, shapes or {}, dims or {}, as_onnxruntime, memory_limit)
