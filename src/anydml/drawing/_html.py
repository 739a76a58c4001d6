"""The notebook form of descriptors and graphs. Names may come from anybody, so all is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np

from anydml.core.errors import AnyDMLError, ArgumentError
from anydml.core.levels import LATEST
from anydml.core.tensor import TensorDesc
from anydml.drawing._cells import draw_traced
from anydml.drawing._layers import available, draw_graph
from anydml.drawing._links import MOST_ELEMENTS, trace
from anydml.drawing._svg import shortened, text
from anydml.graphs.desc import GraphDesc, OperatorNode
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

_LONGEST: Final = 200
_MOST_ROWS: Final = 100


def descriptor_html(desc: Descriptor) -> str:
    """A table of the fields; where the tensors are small, a picture with counting inputs too."""
    rows = (
        (path, info.text, _shown(value) if isinstance(value, TensorDesc) else value)
        for info in desc.fields()
        for path, value in _values(desc, info)
    )
    return _table(desc.NAME, ("field", "kind", "value"), rows) + _picture(desc)


def _values(desc: Descriptor, info: Any) -> Iterator[tuple[str, Any]]:
    value = getattr(desc, info.attribute)
    if value is None:
        return
    if info.role is Role.ATTRIBUTE:
        yield info.attribute, info.kind.short_repr(value)
    else:
        yield from info.paths(value)


def _shown(tensor: TensorDesc) -> str:
    strides = "" if tensor.strides is None else f", strides {tensor.strides}"
    return f"{tensor.data_type} {tensor.sizes}{strides}"


def _picture(desc: Descriptor) -> str:
    elements = sum(tensor.element_count for _, tensor, _ in desc.tensors())
    if elements > MOST_ELEMENTS or desc.violations(LATEST):
        return ""
    for make in (np.arange, np.zeros):  # counting may lead out of range where inputs are indices
        inputs = {
            path: make(stored.element_count).astype(stored.data_type.numpy).reshape(stored.sizes)
            for path, tensor, _ in desc.tensors(Role.INPUT)
            for stored in [tensor.storage]
        }
        try:
            return draw_traced(desc, inputs, trace(desc, inputs))
        except AnyDMLError:
            continue
    return ""


def graph_html(graph: GraphDesc) -> str:
    """The picture of a graph; without the library for its layout, a table of nodes and edges."""
    try:
        if available():
            return draw_graph(graph)
    except ArgumentError:  # it is too large for a picture
        pass
    nodes = (
        (graph.label(i), node.desc.NAME if isinstance(node, OperatorNode) else node)
        for i, node in enumerate(graph.nodes)
    )
    edges = (*graph.input_edges, *graph.intermediate_edges, *graph.output_edges)
    return _table("Nodes", ("node", "operator"), nodes) + _table(
        "Edges", ("edge",), ((edge,) for edge in edges)
    )


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    rows = iter(rows)
    body = "".join(
        f"<tr>{''.join(f'<td>{text(shortened(cell, _LONGEST))}</td>' for cell in row)}</tr>"
        for row in islice(rows, _MOST_ROWS)
    )
    more = "<tr><td>…</td></tr>" if next(rows, None) is not None else ""
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f"<table><caption>{text(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}{more}</tbody></table>"
    )
