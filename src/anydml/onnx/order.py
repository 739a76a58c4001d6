"""The order of the nodes of a graph, and the names that nodes and their bodies read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from anydml.onnx.read import subgraphs


def with_inner(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes, and those in their bodies."""
    for node in nodes:
        yield node
        for graph in subgraphs(node) if node.attribute else ():
            yield from with_inner(graph.node)


def in_order(nodes: Sequence[Any]) -> Iterator[Any]:
    """Yield each node after those that compute its inputs, as ONNX Runtime sorts them.

    Tools append nodes at the end of a model, such as the casts of a conversion to float16. Of a
    cycle a node comes before one of its inputs.
    """
    producers: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            producers.setdefault(name, i)
    producers.pop("", None)
    needs = [
        {producers[name] for name in (*node.input, *outer_names(node)) if name in producers}
        for node in nodes
    ]
    if all(max(needed, default=-1) < i for i, needed in enumerate(needs)):
        yield from nodes
        return
    entered, left = set[int](), set[int]()
    for root in range(len(nodes)):
        stack = [root]
        while stack:
            i = stack[-1]
            if i not in entered:
                entered.add(i)
                stack += sorted(needs[i] - entered, reverse=True)
                continue
            stack.pop()
            if i not in left:
                left.add(i)
                yield nodes[i]


def outer_names(node: Any) -> Iterator[str]:
    """Yield the names that bodies of a node read of the graphs around it."""
    for graph in subgraphs(node) if node.attribute else ():
        own = {item.name for item in (*graph.input, *graph.initializer)}
        own.update(item.values.name for item in graph.sparse_initializer)
        own.update(name for inner in graph.node for name in inner.output)
        read = (chain(inner.input, outer_names(inner)) for inner in graph.node)
        results = (item.name for item in graph.output)
        yield from (name for name in chain(*read, results) if name not in own)


def names_read(graph: Any) -> set[str]:
    """All names that nodes of a graph and of its subgraphs read."""
    found = {item.name for item in graph.output}
    for node in with_inner(graph.node):
        found.update(node.input)
        found.update(item.name for body in subgraphs(node) for item in body.output)
    return found
