"""`anydml convert`: graphs and JSON models as ONNX, ONNX models as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from anydml.cli.onnx_models import Dimensions, Shapes, is_onnx
from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.core.levels import LATEST
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.graphs.check import SINCE, violations
from anydml.graphs.constants import MOST_INSIDE, settle_constants
from anydml.graphs.desc import GraphDesc
from anydml.graphs.lower import lower
from anydml.graphs.serialized import DATA_SUFFIX
from anydml.models.as_graph import graph_of_commands
from anydml.models.check import without_problems
from anydml.models.document import folder_of, read_document, visible
from anydml.models.files import Folder, Limits, Output, Place, parts_below, target_problem
from anydml.models.formats import header_of, read_array, read_array_at
from anydml.models.model import model_of
from anydml.models.write import dxdispatch_model, with_file_names
from anydml.onnx.read import load_onnx, read_file
from anydml.onnx.restore import graph_of_source
from anydml.onnx.write import bound_weights, buffer_of, little_endian, written_model

LARGEST_INSIDE: Final = 2**31 - 2**20
"""The most bytes of a model that is one file: messages of protobuf end at 2 GiB."""

_LEAST_APART: Final = 1024
"""The fewest bytes of an initializer that goes to the file of external data."""

_ALIGNMENT: Final = 64


Converted = tuple[GraphDesc, Mapping[str, Any]]
"""A graph, and the elements of inputs: of all that it owns, and of others."""


def convert_file(
    path: Path,
    output: Path,
    *,
    form: str | None,
    inputs: Sequence[tuple[str, Path]],
    shapes: Shapes,
    dims: Dimensions,
    external: bool,
    limits: Limits,
) -> None:
    """Write the model or graph in a file as another file; see ``anydml convert --help``."""
    to_onnx = output.suffix.lower() == ".onnx"
    if not to_onnx and output.suffix.lower() != ".json":
        raise click.UsageError(f"--output: expected OUT.onnx or OUT.json, got {str(output)!r}")
    if form is not None and to_onnx:
        raise click.UsageError(f"--form: expected OUT.json, got {str(output)!r}")
    if external and not to_onnx:
        raise click.UsageError(f"--external-data: expected OUT.onnx, got {str(output)!r}")
    load_onnx()
    arrays = {name: read_array(file) for name, file in inputs}
    read = _read_onnx if is_onnx(path) else _read_graph
    found = read(path, arrays, shapes, dims, limits)
    if to_onnx:
        files = _onnx_files(*found, output.name, external, limits)
    else:
        files = _json_files(*found, output, form or "graph")
    _write(files, output, limits)


Arrays = Mapping[str, Any]


def _read_onnx(
    path: Path, arrays: Arrays, shapes: Shapes, dims: Dimensions, limits: Limits
) -> Converted:
    """An ONNX model, whose inputs may have arrays."""
    known = {name: array.shape for name, array in arrays.items()}
    source = read_file(path, limits.memory_limit)
    graph, weights = graph_of_source(source, {**known, **dict(shapes)}, dict(dims))
    return graph, {**weights, **arrays}


def _read_graph(
    path: Path, arrays: Arrays, shapes: Shapes, dims: Dimensions, limits: Limits
) -> Converted:
    """A graph or a JSON model; arrays are for inputs, first of all for those that it owns."""
    if shapes or dims:
        raise click.UsageError("--shape, --dim: expected an ONNX model (.onnx)")
    document = read_document(path, limits)
    if not isinstance(document, GraphDesc) and "Nodes" in document:
        document = GraphDesc.from_json(document)
    if isinstance(document, GraphDesc):
        graph, weights = document, dict[str, Any]()
        folder = folder_of(path, limits)
    else:
        graph, weights = graph_of_commands(without_problems(model_of(document, path, limits)))
        folder = None
    owned = _owned(graph)
    for name in owned:
        if name in arrays:
            weights[name] = arrays[name]
        elif name not in weights and folder is not None:
            places = (folder.find(f"{name}{suffix}") for suffix in (".npy", DATA_SUFFIX))
            place = next(filter(None, places), None)
            if place is not None:
                weights[name] = _limited(place, limits)
    missing = [name for name in owned if name not in weights]
    if missing:
        raise ModelError(
            *(
                f"Input {short_repr(name)}: expected --input NAME=FILE.npy, or a file "
                f"{f'{name}.npy'!r} or {f'{name}{DATA_SUFFIX}'!r} beside the graph (the graph "
                "owns it), got neither."
                for name in missing
            )
        )
    return graph, {**weights, **arrays}


def _limited(place: Place, limits: Limits) -> Any:
    array = read_array_at(place)
    if array.nbytes > limits.memory_limit:
        raise ModelError(f"Expected at most {limits.memory_limit} bytes (--memory-limit), got "
                         f"{place}.")  # fmt: skip
    return array


def _owned(graph: GraphDesc) -> list[str]:
    """The inputs that a graph owns and its nodes read; none of a graph that breaks rules."""
    if violations(graph, LATEST, constants_since=SINCE):
        return []
    tensors = lower(graph).tensors
    return [t.name for t in graph.inputs
            if t.name in tensors and tensors[t.name].flags is TensorFlags.OWNED_BY_DML]  # fmt: skip


Files = dict[str, list[memoryview]]
"""The content of files, in pieces, by their names."""


def _onnx_files(
    graph: GraphDesc, weights: Arrays, name: str, external: bool, limits: Limits
) -> Files:
    """An ONNX model, and the file of its weights if it has one."""
    written = written_model(graph, weights, limits.memory_limit)
    proto = written.proto
    size = sum(x.nbytes for x in written.weights.values()) + proto.ByteSize()
    if not external and size <= LARGEST_INSIDE:
        return {name: [memoryview(written.whole().SerializeToString(deterministic=True))]}
    data = f"{name}.data"
    pieces: list[memoryview] = []
    offset = 0
    for tensor in proto.graph.initializer:
        array = written.weights.get(tensor.name)
        content = tensor.raw_data if array is None else little_endian(array)
        if len(content) < _LEAST_APART:
            tensor.raw_data = content
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = 1  # EXTERNAL
        entries = {"location": data, "offset": str(offset), "length": str(len(content))}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        padding = -len(content) % _ALIGNMENT
        pieces += [memoryview(content), memoryview(bytes(padding))]
        offset += len(content) + padding
    message = [memoryview(proto.SerializeToString(deterministic=True))]
    return {data: pieces, name: message} if pieces else {name: message}


def _json_files(graph: GraphDesc, weights: Arrays, output: Path, form: str) -> Files:
    """A graph or a model for DxDispatch, and the files of its weights."""
    lowered, arrays = bound_weights(graph, weights)
    buffers = {name: buffer_of(x, lowered.tensors[name]) for name, x in arrays.items()}
    # A model for DxDispatch tells weights from inputs by who owns them.
    most_inside = MOST_INSIDE if form == "graph" else 0
    graph, buffers = settle_constants(graph, buffers, most_inside)
    graph, names = with_file_names(graph, buffers)
    tensors = lower(graph).tensors
    files = {
        f"{names[name]}.npy": _npy(content, tensors[names[name]])
        for name, content in buffers.items()
    }
    document = graph.to_json()
    if form == "dxdispatch":
        document, more = dxdispatch_model(graph, {name: f"{name}.npy" for name in names.values()})
        files |= {name: _npy(content, tensor) for name, (content, tensor) in more.items()}
    text = json.dumps(document, indent=1) + "\n"
    if output.name in files:
        raise ModelError(f"File {str(output)!r}: expected a name that no weight has.")
    return {**files, output.name: [memoryview(text.encode())]}


def _npy(content: bytes, tensor: TensorDesc) -> list[memoryview]:
    """A `.npy` file of a tensor: of its sizes if it is packed, else of its buffer."""
    array = np.frombuffer(content, tensor.data_type.numpy)
    if tensor.strides is None:
        array = array[: tensor.element_count].reshape(tensor.sizes)
    return [memoryview(header_of(array)), array.reshape(-1).view(np.uint8).data]


def _write(files: Files, output: Path, limits: Limits) -> None:
    """Write all files, or none that was not there before."""
    if not output.parent.is_dir():
        raise ModelError(f"Folder {str(output.parent)!r}: expected a folder that exists.")
    folder = Folder.of(output.parent)
    problems = [
        problem
        for name in files
        if (problem := target_problem(Place(folder, parts_below(folder, name)), limits.overwrite))
    ]
    if problems:
        raise ModelError(*problems)
    with Output(folder, False, limits.overwrite) as target:
        try:
            for name, pieces in files.items():
                target.write(name, pieces)
        except BaseException:
            target.withdraw()
            raise
    for name in files:
        print(f"Wrote {visible(str(output.parent / name))}")
