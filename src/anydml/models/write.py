"""Graphs as JSON: in our own form, or as a model for DxDispatch; weights are files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from anydml.core._json import unique_name
from anydml.core.tensor import TensorDesc
from anydml.devices.binding import elements_size
from anydml.graphs.check import Place, Ports, topological_order
from anydml.graphs.constants import MOST_INSIDE
from anydml.graphs.desc import ConstantNode, GraphDesc, OperatorNode
from anydml.graphs.lower import lower
from anydml.models.operators import is_owned
from anydml.models.resources import json_numbers
from anydml.ops._fields import Role

_FILE: Final = re.compile(r"[^.\s/\\\"<>|?*][^/\\\"<>|?*]{0,199}")


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Names of files, without suffix, for tensors: their own, or one that a file can have."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        text = name
        if not (name.isprintable() and name.isascii() and _FILE.fullmatch(name)):
            text = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:200].lstrip(".") or "tensor"
        unique, number = text, 1
        while unique.lower() in taken:
            number += 1
            unique = f"{text}_{number}"
        taken.add(unique.lower())
        found[name] = unique
    return found


def with_file_names(graph: GraphDesc, weights: Iterable[str]) -> tuple[GraphDesc, dict[str, str]]:
    """A graph whose weights have names that files can have, and these by the names before."""
    others = [tensor.name for tensor in (*graph.outputs, *graph.inputs)]
    used = [name for name in others if name not in {*weights}]
    names = file_names((*used, *weights))
    new = {name: names[name] for name in weights}
    inputs = [replace(t, name=new.get(t.name, t.name)) for t in graph.inputs]
    edges = graph.input_edges, graph.intermediate_edges, graph.output_edges
    return GraphDesc(graph.nodes, *edges, inputs, graph.outputs), new


def dxdispatch_model(
    graph: GraphDesc, files: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, tuple[bytes, TensorDesc]]]:
    """The JSON model that dispatches the operators of a graph one after the other.

    It prints the outputs. Inputs without a file are zeros.

    Parameters
    ----------
    graph : GraphDesc
        A graph that has been checked.
    files : mapping of str to str
        The files of inputs, by their names.

    Returns
    -------
    document : dict
        The model.
    files : dict of str to (bytes, TensorDesc)
        Further files that it reads, of large constants: their buffers and tensors.
    """
    model = _Model(graph, files)
    return model.document(), model.further


class _Model:
    def __init__(self, graph: GraphDesc, files: Mapping[str, str]) -> None:
        self._graph = graph
        self._files = files
        self.further: dict[str, tuple[bytes, TensorDesc]] = {}
        self._ports = Ports(graph)
        self._tensors = lower(graph).tensors
        self._resources: dict[str, Any] = {}
        # The resources that inputs of nodes read, and outputs write.
        self._names: dict[tuple[Role, Place], str] = {}

    def document(self) -> dict[str, Any]:
        graph = self._graph
        self._name_resources()
        order = [i for i in topological_order(graph) if isinstance(graph.nodes[i], OperatorNode)]
        dispatchables, commands = dict[str, Any](), list[dict[str, Any]]()
        for index in order:
            name = unique_name(graph.label(index), dispatchables)
            record, bindings = self._dispatchable(index)
            dispatchables[name] = record
            commands.append({"type": "dispatch", "dispatchable": name, "bindings": bindings})
        for edge in graph.output_edges:
            place = edge.from_node_index, edge.from_node_output_index
            printed = {"type": "print", "resource": self._names[Role.OUTPUT, place]}
            if printed not in commands:
                commands.append(printed)
        return {
            "resources": self._resources, "dispatchables": dispatchables, "commands": commands,
        }  # fmt: skip

    def _name_resources(self) -> None:
        graph = self._graph
        for edge in graph.input_edges:
            tensor = graph.inputs[edge.graph_input_index]
            to = edge.to_node_index, edge.to_node_input_index
            self._names[Role.INPUT, to] = tensor.name
            if tensor.name in self._resources:
                continue
            desc = self._tensors[tensor.name]
            values: Any = self._zeros(desc)
            if tensor.name in self._files:
                values = {"sourcePath": self._files[tensor.name]}
            self._add(tensor.name, desc, values)
        outputs = {
            (edge.from_node_index, edge.from_node_output_index): graph.outputs[
                edge.graph_output_index
            ].name
            for edge in reversed(graph.output_edges)
        }
        for place, name in outputs.items():
            self._add_output(place, name)
        for link in graph.intermediate_edges:
            start = link.from_node_index, link.from_node_output_index
            node = graph.nodes[start[0]]
            if isinstance(node, ConstantNode) and (Role.OUTPUT, start) not in self._names:
                name = unique_name(graph.label(start[0]), self._resources)
                port = self._ports.at((link.to_node_index, link.to_node_input_index), Role.INPUT)
                assert port is not None, "the graph has been checked"
                self._add(name, port[1], self._constant(name, node.data, port[1].storage))
                self._names[Role.OUTPUT, start] = name
            elif (Role.OUTPUT, start) not in self._names:
                self._add_output(start, link.name)
            to = link.to_node_index, link.to_node_input_index
            self._names[Role.INPUT, to] = self._names[Role.OUTPUT, start]

    def _constant(self, name: str, data: bytes, desc: TensorDesc) -> Any:
        """The values of a constant, or the file that has them."""
        if len(data) <= MOST_INSIDE:
            values = np.frombuffer(data[: elements_size(desc)], desc.data_type.numpy)
            return json_numbers(values)
        file = f"{file_names((*self._resources, name))[name]}.npy"
        self.further[file] = data, desc
        return {"sourcePath": file}

    def _add_output(self, place: Place, name: str) -> None:
        port = self._ports.at(place, Role.OUTPUT)
        assert port is not None, "the graph has been checked"
        name = unique_name(name or f"{self._graph.label(place[0])}.{port[0]}", self._resources)
        self._add(name, port[1], self._zeros(port[1]))
        self._names[Role.OUTPUT, place] = name

    def _add(self, name: str, desc: TensorDesc, values: Any) -> None:
        kind = desc.storage.data_type.name
        self._resources[name] = {"initialValuesDataType": kind, "initialValues": values}

    @staticmethod
    def _zeros(desc: TensorDesc) -> dict[str, Any]:
        size = desc.storage.data_type.element_size
        return {"value": 0, "valueCount": -(-desc.total_tensor_size_in_bytes // size)}

    def _dispatchable(self, index: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The record of an operator, with the resources that it owns, and its other bindings."""
        node = self._graph.nodes[index]
        assert isinstance(node, OperatorNode), "constants are not dispatched"
        record = node.desc.to_json()
        owned, bound = dict[str, Any](), dict[str, Any]()
        for role in (Role.INPUT, Role.OUTPUT):
            at = 0
            for info in node.desc.tensor_fields(role):
                value = getattr(node.desc, info.attribute)
                tensors = [*info.paths(value)]
                names = []
                for i in range(len(tensors)):
                    place = index, at + i
                    if (role, place) not in self._names:  # an output that nothing reads
                        self._add_output(place, "")
                    names.append(self._names[role, place])
                if names:
                    is_own = is_owned(node.desc, info)
                    (owned if is_own else bound)[info.name] = names if info.many else names[0]
                at += 1 if value is None else len(tensors)
        return {**record, **({"bindings": owned} if owned else {})}, bound
