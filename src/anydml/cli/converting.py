"""`anydml convert`: graphs and JSON models as ONNX, ONNX models as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from anydml.core.errors import ModelError
from anydml.core.tensor import TensorDesc
from anydml.documents import Document
from anydml.graphs.constants import MOST_INSIDE, settle_constants
from anydml.graphs.desc import GraphDesc
from anydml.graphs.lower import lower
from anydml.models.document import visible
from anydml.models.files import Folder, Limits, Output, Place, parts_below, target_problem
from anydml.models.formats import npy_pieces, read_array
from anydml.models.write import dxdispatch_model, with_file_names
from anydml.onnx.read import load_onnx
from anydml.onnx.write import bound_weights, buffer_of, little_endian, written_model

LARGEST_INSIDE: Final = 2**31 - 2**20
"""The most bytes of a model that is one file: messages of protobuf end at 2 GiB."""

_LEAST_APART: Final = 1024
"""The fewest bytes of an initializer that goes to the file of external data."""

_ALIGNMENT: Final = 64


def convert_document(
    document: Document,
    output: Path,
    *,
    form: str | None,
    inputs: Sequence[tuple[str, Path]],
    external: bool,
) -> None:
    """Write a model or graph as another file; see ``anydml convert --help``."""
    to_onnx = output.suffix.lower() == ".onnx"
    if not to_onnx and output.suffix.lower() != ".json":
        raise click.UsageError(f"--output: expected OUT.onnx or OUT.json, got {str(output)!r}")
    if form is not None and to_onnx:
        raise click.UsageError(f"--form: expected OUT.json, got {str(output)!r}")
    if external and not to_onnx:
        raise click.UsageError(f"--external-data: expected OUT.onnx, got {str(output)!r}")
    load_onnx()
    arrays = {name: read_array(file) for name, file in inputs}
    document.options.refuse(document)
    limits = document.limits
    found = document.graph(arrays)
    if to_onnx:
        files = _onnx_files(*found, output.name, external, limits)
    else:
        files = _json_files(*found, output, form or "graph")
    _write(files, output, limits)


Arrays = Mapping[str, Any]


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
    return npy_pieces(array)


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
