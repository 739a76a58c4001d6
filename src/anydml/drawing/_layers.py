"""Graphs as boxes in layers, each below those that it reads from."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import islice, pairwise
from textwrap import wrap
from typing import Any, Final

from anydml.core.errors import ArgumentError, Violation
from anydml.core.extras import name_missing_package
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.tensor import TensorDesc
from anydml.drawing._svg import document, shortened, text
from anydml.graphs.check import SINCE, Ports, violations
from anydml.graphs.desc import ConstantNode, GraphDesc
from anydml.ops._fields import Role

MOST_PARTS: Final = 20_000
"""Boxes, and lines between them, of one picture."""
_MOST_BENDS: Final = 20_000
"""The most bends of all lines together; a line that needs more goes straight to its end."""
_SWEEPS: Final = 24
"""The number of rounds of the search for few crossings."""
_BOX: Final = (168.0, 44.0)
_STEP: Final = (196.0, 96.0)
"""From a box to the next one, across and down."""
_BEND: Final = 20.0
"""The width that is kept free for a line that passes a layer."""
_MARGIN: Final = 16.0
_LETTERS: Final = 21
"""The most letters in a line of text in a box."""
_MOST_PROBLEMS: Final = 30
_PROBLEM_LETTERS: Final = 300
_MOST_LABELS: Final = 3
_LABEL_LETTERS: Final = 26
_LETTER: Final = 7.3
"""The width of one."""

_BESIDE: Final = 6
"""From a line to its label."""


@dataclass(frozen=True)
class Box:
    """A node of the picture.

    Attributes
    ----------
    name, kind : str
        Its two lines.
    is_data : bool
        Whether it is a tensor rather than an operator: its corners are round.
    problems : list of str
        Why it is red.
    """

    name: str
    kind: str
    is_data: bool = False
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    """An edge from one box to another, by position, with lines of text next to it."""

    start: int
    end: int
    labels: tuple[str, ...] = ()


def available() -> bool:
    """Whether the library that lays boxes out is installed."""
    return find_spec("igraph") is not None


def tensor_label(tensor: TensorDesc) -> str:
    """The type and sizes of a tensor, as a line of text."""
    return f"{tensor.data_type} {{{', '.join(map(str, tensor.sizes))}}}"


def draw_graph(graph: GraphDesc, level: FeatureLevel = LATEST) -> str:
    """A picture of a graph's nodes and edges, as SVG; what a feature level refuses is red.

    Parameters
    ----------
    graph : GraphDesc
        Any, also one that breaks rules.
    level : FeatureLevel, optional
        The level whose rules are asked. Below 6_2, constants count as inputs.

    Returns
    -------
    str
        An SVG document for light and dark pages.

    Raises
    ------
    MissingPackageError
        The library `igraph`, which lays the nodes out, is not installed.
    ArgumentError
        The graph has more than 20,000 nodes or edges.
    """
    boxes = [_box_of(graph, i) for i in range(len(graph.nodes))]
    first_input, first_output = len(boxes), len(boxes) + len(graph.inputs)
    boxes += [Box(tensor.name, "input", is_data=True) for tensor in graph.inputs]
    boxes += [Box(tensor.name, "output", is_data=True) for tensor in graph.outputs]
    ports = Ports(graph)

    def port(role: Role, node: int, at: int) -> tuple[str, ...]:
        paths = ports.of(node, role)
        found = paths[at] if at in range(len(paths)) else None
        return () if found is None else (tensor_label(found[1]),)

    nodes, inputs, outputs = (range(len(x)) for x in (graph.nodes, graph.inputs, graph.outputs))
    lines = [
        Line(first_input + e.graph_input_index, e.to_node_index,
             port(Role.INPUT, e.to_node_index, e.to_node_input_index))
        for e in graph.input_edges
        if e.graph_input_index in inputs and e.to_node_index in nodes
    ]  # fmt: skip
    lines += [
        Line(e.from_node_index, e.to_node_index,
             port(Role.OUTPUT, e.from_node_index, e.from_node_output_index)
             or port(Role.INPUT, e.to_node_index, e.to_node_input_index))
        for e in graph.intermediate_edges
        if e.from_node_index in nodes and e.to_node_index in nodes
    ]  # fmt: skip
    lines += [
        Line(e.from_node_index, first_output + e.graph_output_index,
             port(Role.OUTPUT, e.from_node_index, e.from_node_output_index))
        for e in graph.output_edges
        if e.from_node_index in nodes and e.graph_output_index in outputs
    ]  # fmt: skip
    labels = {graph.label(i): i for i in range(first_input)}
    found = violations(graph, level, constants_since=SINCE)
    for item in found:
        node = _node_of(item, labels)
        if node is not None:
            boxes[node].problems.append(str(item))
    return draw_boxes("A graph of operators", boxes, lines, [str(item) for item in found])


def _box_of(graph: GraphDesc, index: int) -> Box:
    node = graph.nodes[index]
    if isinstance(node, ConstantNode):
        return Box(graph.label(index), f"constant, {len(node.data)} bytes", is_data=True)
    return Box(graph.label(index), node.desc.NAME)


def _node_of(violation: Violation, labels: Mapping[str, int]) -> int | None:
    """The node whose label a path begins with; labels may have dots of their own."""
    parts = violation.path.split(".")
    for count in range(len(parts), 0, -1):
        found = labels.get(".".join(parts[:count]))
        if found is not None:
            return found
    return None


def draw_boxes(
    title: str, boxes: Sequence[Box], lines: Sequence[Line], problems: Sequence[str] = ()
) -> str:
    """Boxes and lines as SVG, with problems below."""
    if max(len(boxes), len(lines)) > MOST_PARTS:
        raise ArgumentError(
            f"picture: expected at most {MOST_PARTS} boxes and as many lines, "
            f"got {len(boxes)} and {len(lines)}"
        )
    layers = _layers(len(boxes), lines)
    centres, bends = _placed(layers, lines)
    xs = [x for x, _ in itertools.chain(centres, *bends)] or [0.0]
    left = min(xs) - _STEP[0] / 2
    letters = max((min(len(" ".join(line.labels)), _LABEL_LETTERS) for line in lines), default=0)
    width = max(xs) + max(_STEP[0] / 2, _LETTER * letters + 2 * _BESIDE) - left
    top = _BOX[1] / 2 + _MARGIN
    height = max((y for _, y in centres), default=0.0) + 2 * top
    drawn = [_line(line, centres, via) for line, via in zip(lines, bends, strict=True)]
    drawn += [_box(box, at) for box, at in zip(boxes, centres, strict=True)]
    drawn += _labels(lines, centres)
    body = (
        f'<g text-anchor="middle" transform="translate({-left:.0f} {top:g})">{"".join(drawn)}</g>'
    )
    texts = [shortened(problem, _PROBLEM_LETTERS) for problem in islice(problems, _MOST_PROBLEMS)]
    if len(problems) > len(texts):
        texts.append(f"and {len(problems) - len(texts)} more")
    letters = int((max(width, 420) - 2 * _MARGIN) / _LETTER)
    for line in (row for problem in texts for row in wrap(problem, letters)):
        body += f'<text class="alarm" x="{_MARGIN:g}" y="{height + 8:g}">{text(line)}</text>'
        height += 17
        width = max(width, _LETTER * len(line) + 2 * _MARGIN)
    names = ", ".join(shortened(box.name, 40) for box in islice(boxes, 50))
    description = f"{len(boxes)} boxes: {names}. {'; '.join(texts)}"
    return document(round(width), round(height + _MARGIN / 2), title, description, body)


def _layers(count: int, lines: Iterable[Line]) -> list[int]:
    """The layer of each box: below all that it reads from, where it is in no cycle.

    A box that reads nothing is directly above the first one that reads from it.
    """
    after: dict[int, list[int]] = {}
    waiting: Counter[int] = Counter()
    for line in lines:
        after.setdefault(line.start, []).append(line.end)
        waiting[line.end] += 1
    sources = [i for i in range(count) if not waiting[i]]
    ready = [*sources]
    rest = iter(range(count))
    layers, done = [0] * count, [False] * count
    while True:
        if not ready:  # what is left is behind a cycle: it is cut at the first
            cut = next((i for i in rest if not done[i]), None)
            if cut is None:
                break
            ready.append(cut)
        node = ready.pop()
        if done[node]:
            continue
        done[node] = True
        for end in after.get(node, ()):
            waiting[end] -= 1
            if not done[end]:
                layers[end] = max(layers[end], layers[node] + 1)
                if not waiting[end]:
                    ready.append(end)
    for source in sources:
        if source in after:
            layers[source] = min(layers[end] for end in after[source]) - 1
    return layers


_Point = tuple[float, float]


def _placed(
    layers: Sequence[int], lines: Sequence[Line]
) -> tuple[list[_Point], list[list[_Point]]]:
    """The centre of each box, and the points between the ends of each line."""
    with name_missing_package("Drawing graphs", "anydml[show]"):
        igraph: Any = import_module("igraph")
    all_layers, links = [*layers], list[tuple[int, int]]()
    vias: list[list[int]] = [[] for _ in lines]
    # Lines that pass layers get a place in each, short ones first.
    spans = sorted((abs(layers[e.end] - layers[e.start]), i) for i, e in enumerate(lines))
    bends = 0
    for span, i in spans:
        start, end = lines[i].start, lines[i].end
        bends += max(span - 1, 0)
        if bends > _MOST_BENDS or layers[start] >= layers[end]:
            continue  # the layout does not know it
        for layer in range(layers[start] + 1, layers[end]):
            all_layers.append(layer)
            vias[i].append(len(all_layers) - 1)
        links += pairwise([start, *vias[i], end])
    graph = igraph.Graph(n=len(all_layers), edges=links, directed=True)
    layout = graph.layout_sugiyama(layers=all_layers, hgap=_STEP[0], vgap=_STEP[1], maxiter=_SWEEPS)
    xs = [float(x) for x, _ in layout]
    by_layer: dict[int, list[int]] = {}
    for i in sorted(range(len(xs)), key=xs.__getitem__):
        by_layer.setdefault(all_layers[i], []).append(i)
    for members in by_layer.values():
        widths = [_STEP[0] if i < len(layers) else _BEND for i in members]
        for i, x in zip(members, _spread([xs[i] for i in members], widths), strict=True):
            xs[i] = x
    places = [(x, layer * _STEP[1]) for x, layer in zip(xs, all_layers, strict=True)]
    return places[: len(layers)], [[places[i] for i in via] for via in vias]


def _spread(xs: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Ordered centres moved as little as possible, so that nothing overlaps.

    The layout can place boxes of a layer over each other. This is isotonic regression of the
    centres without the widths of what is between them.
    """
    halves = [(a + b) / 2 for a, b in pairwise(widths)]
    offsets = [*itertools.accumulate(halves, initial=0.0)]
    runs: list[tuple[float, int]] = []  # the sum and the count of centres that are moved together
    for x, offset in zip(xs, offsets, strict=False):
        runs.append((x - offset, 1))
        while len(runs) > 1 and runs[-2][0] * runs[-1][1] > runs[-1][0] * runs[-2][1]:
            total, count = runs.pop()
            runs[-1] = runs[-1][0] + total, runs[-1][1] + count
    moved = (total / count for total, count in runs for _ in range(count))
    return [x + offset for x, offset in zip(moved, offsets, strict=False)]


def _box(box: Box, centre: _Point) -> str:
    (x, y), (width, height) = centre, _BOX
    problems = "".join(f"\n{problem}" for problem in islice(box.problems, _MOST_PROBLEMS))
    colour = "bad" if box.problems else "k0" if box.is_data else "k1"
    return (
        f"<g><title>{text(f'{box.name[:1000]}: {box.kind}{problems}')}</title>"
        f'<rect class="node {colour}" x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" '
        f'width="{width:g}" height="{height:g}" rx="{height / 2 if box.is_data else 4:g}"/>'
        f'<text class="ink" x="{x:.0f}" y="{y - 4:.0f}" font-weight="bold">'
        f"{text(shortened(box.name, _LETTERS))}</text>"
        f'<text class="ink" x="{x:.0f}" y="{y + 13:.0f}">'
        f"{text(shortened(box.kind, _LETTERS))}</text></g>"
    )


def _line(line: Line, centres: Sequence[_Point], via: Sequence[_Point]) -> str:
    start, end = centres[line.start], centres[line.end]
    half = _BOX[1] / 2
    points = [(start[0], start[1] + half), *via, (end[0], end[1] - half - 7)]
    d = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y1 - y0) / 2
        d += f"C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"
    x, y = points[-1]
    tip = f"M{x - 4:.0f} {y - 1:.0f}h8l-4 8z"
    return f'<path class="line" d="{d}"/><path class="tip" d="{tip}"/>'


def _labels(lines: Sequence[Line], centres: Sequence[_Point]) -> Iterator[str]:
    """The labels beside lines, below the box that they leave, once for all of its lines.

    Where they differ, each is at the arrow of its line, if no other line ends there.
    """
    of: dict[int, dict[tuple[str, ...], list[Line]]] = {}
    ending = Counter(line.end for line in lines)
    for line in lines:
        if line.labels:
            of.setdefault(line.start, {}).setdefault(line.labels, []).append(line)
    for start, labels in of.items():
        rows = []
        for words, labelled in labels.items():
            if len(labels) > 1 and all(ending[line.end] == 1 for line in labelled):
                for x, y in (centres[line.end] for line in labelled):
                    yield _label(" ".join(words), x, y - _BOX[1] / 2 - 13)
            else:
                rows.append(" ".join(words))
        x, y = centres[start]
        if len(rows) > _MOST_LABELS:
            rows[_MOST_LABELS - 1 :] = [f"and {len(rows) - _MOST_LABELS + 1} more"]
        for i, row in enumerate(rows):
            yield _label(row, x, y + _BOX[1] / 2 + 14 * (i + 1) + 1)


def _label(words: str, x: float, y: float) -> str:
    return (
        f'<text class="muted halo" text-anchor="start" x="{x + _BESIDE:.0f}" y="{y:.0f}">'
        f"{text(shortened(words, _LABEL_LETTERS))}</text>"
    )
