"""ONNX models as one DirectML graph each."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.levels import LATEST
from anydml.graphs.desc import GraphDesc, GraphTensor, OutputEdge
from anydml.models.text import parse
from anydml.onnx.model import OnnxModel
from anydml.onnx.partition import partitions
from anydml.onnx.read import Source
from anydml.onnx.types import Array
from anydml.onnx.verdict import Judged, tensor_desc
from anydml.onnx.write import PROPERTY, written_model

Weights = dict[str, Array]

_MOST_EMBEDDED: Final = 1 << 62
"""Bytes of a constant that becomes one of the graph: any."""


def graph_of_source(
    source: Source, shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> tuple[GraphDesc, Weights]:
    """The DirectML operators of a model as one graph, and the inputs that it owns.

    A model that `anydml.to_onnx` has made, and that nobody has changed since, gives the graph that
    it was made of.

    Parameters
    ----------
    source : Source
        The model.
    shapes, dims : mapping
        As `anydml.read_onnx` takes them.

    Raises
    ------
    ModelError
        A shape is not known, or a node is no DirectML operator: the message has all of them.
    """
    return restored(source) or _lowered(OnnxModel(source, shapes, dims, False))


def restored(source: Source) -> tuple[GraphDesc, Weights] | None:
    """The graph in the properties of a model, if writing it gives the same model."""
    text = next((p.value for p in source.proto.metadata_props if p.key == PROPERTY), None)
    if text is None:
        return None
    try:
        record = parse(text.encode())
        for node in record["Nodes"]:
            if isinstance(node.get("Data"), int):
                data = _elements(source, node["Name"]).tobytes().ljust(node["Data"], b"\0")
                node["Data"] = base64.b64encode(data).decode()
        graph = GraphDesc.from_json(record)
        names = [tensor.name for tensor in graph.inputs if tensor.name in source.constants]
        weights = {name: _elements(source, name) for name in names}
        written = written_model(graph, weights, source.memory_limit)
    except (AnyDMLError, LookupError, TypeError, ValueError, AttributeError):
        return None  # the property is as untrusted as the rest of the file
    kept = written.weights
    same = _without_weights(written.proto, kept) == _without_weights(source.proto, kept)
    return (graph, weights) if same else None


def _elements(source: Source, name: str) -> Array:
    data = source.constants[name].data
    if data is None:
        raise LookupError(name)
    return data


def _without_weights(proto: Any, names: Collection[str]) -> bytes:
    """A model's message without the elements of some initializers."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    for tensor in copy.graph.initializer:
        if tensor.name in names:
            for field in ("raw_data", "external_data", "data_location"):
                tensor.ClearField(field)
    data: bytes = copy.SerializeToString(deterministic=True)
    return data


def _lowered(model: OnnxModel) -> tuple[GraphDesc, Weights]:
    judged = model.judged_for_run(LATEST)
    _refuse(model, judged)
    everything = [True] * len(judged)
    (part,) = partitions(judged, model.graph, False, is_member=everything, literal=False)
    part.most_embedded = _MOST_EMBEDDED
    desc, values = part.desc, model.graph.values
    at = {tensor.name: i for i, tensor in enumerate(desc.outputs)}
    edges, tensors = [], []
    for k, (name, unique) in enumerate(model.graph.outputs.items()):
        index = at[unique]
        edge = next(e for e in desc.output_edges if e.graph_output_index == index)
        edges.append(OutputEdge(edge.from_node_index, edge.from_node_output_index, k, name))
        tensors.append(GraphTensor(name, tensor_desc(values[unique])))
    graph = GraphDesc(
        desc.nodes, desc.input_edges, desc.intermediate_edges, edges, desc.inputs, tensors
    )
    return graph, {}


def _refuse(model: OnnxModel, judged: list[Judged]) -> None:
    """Raise unless every node is part of one graph, and every output is computed by a node."""
    problems = model.input_problems()
    if problems:
        raise ModelError(*problems)
    for item in judged:
        problems += item.problems
        if item.place != "refused" and not (item.on_device and item.static):
            reason = item.reason or "its shapes are not known"
            problems.append(f"{item.node.label}: expected a DirectML operator: {reason}.")
    computed = {name for item in judged for name in item.node.outputs}
    for name, unique in model.graph.outputs.items():
        if unique not in computed:
            problems.append(
                f"Output {short_repr(name)}: expected what a DirectML operator computes, got a "
                "constant or an input."
            )
    if problems:
        raise ModelError(*problems)
