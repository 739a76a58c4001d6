"""The factors and terms behind a convolution, which ONNX Runtime may fuse into it.

It multiplies the weights by the factors. Where that leaves the range of float32, though no product
of the convolution's results does, the nodes have to stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from anydml.engines._onnx_graph import Graph, Node, NumpyArray

LEAST: Final = 2.0**-100
"""The least that the largest weight of a channel may become."""

MOST: Final = 2.0**100
"""The most that any weight may become."""


def is_fusible(graph: Graph) -> bool:
    """Whether all convolutions of a graph may take the factors and terms behind them."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    return all(
        _keeps_range(graph.constants[node.inputs[1]], _behind(node, readers, graph.constants))
        for node in graph.nodes.values()
        if node.operator == "Conv" and node.inputs[1] in graph.constants
    )


def _behind(
    node: Node, readers: Mapping[str, Sequence[Node]], constants: Mapping[str, NumpyArray]
) -> Iterator[tuple[str, NumpyArray]]:
    """Operators and constants of the sums and products that alone read a value, in order."""
    while len(following := readers.get(node.name, ())) == 1:
        (reader,) = following
        held = [constants[name] for name in reader.inputs if name in constants]
        if reader.operator not in ("Add", "Mul") or len(held) != 1:
            return
        yield reader.operator, np.abs(held[0])
        node = reader


def _keeps_range(weights: NumpyArray, behind: Iterator[tuple[str, NumpyArray]]) -> bool:
    rows = weights.reshape(len(weights), -1)
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    low, high = largest[largest > 0].min(initial=1.0), largest.max()
    for operator, sizes in behind:
        if operator == "Add":
            high = max(high, sizes[np.isfinite(sizes)].max(initial=0.0))
            continue
        low, high = low * sizes[sizes > 0].min(initial=1.0), high * sizes.max()
        if not LEAST <= low <= high <= MOST:
            return False
    return True
