"""An operator's tensors as grids of cells: colours say what went where."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from itertools import groupby
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core.tensor import TensorDesc
from anydml.drawing._layers import tensor_label
from anydml.drawing._links import Array, Arrays, Traced, trace
from anydml.drawing._svg import COLOURS, document, shortened, text
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

_WIDTH: Final = 440
"""The largest width of a picture: a phone shows it almost at its size."""
_MARGIN: Final = 12
_CHARACTER: Final = 7.3
_LINE: Final = 16
_CELL: Final = 22
_GAP: Final = 10
_MOST_ROWS: Final = 8
_MOST_GRIDS: Final = 8
_MOST_SPOKEN: Final = 64
_ALIKE: Final = "Cells of the same colour correspond"
_WINDOW: Final = "Coloured: one output element and the inputs that it depends on"
_BORDERS: Final = ("", ' stroke-dasharray="3 2"', ' style="stroke-width:3"')
"""The borders of cells once all colours have been used, and again."""


class _Box(NamedTuple):
    width: float
    height: float
    body: str
    """Elements, drawn from (0, 0)."""


def draw_operator(desc: Descriptor, inputs: Mapping[str, Any]) -> str:
    """A picture of what an operator makes of example inputs, as SVG.

    Elements that belong together have one colour: an element and its copies, with the index that
    chose it; a result and what it is computed from. Where results are made of overlapping elements,
    one result is marked. This is found by running the operator on the CPU with one element changed
    after the other, so it holds for any operator. Large tensors are cut.

    Parameters
    ----------
    desc : Descriptor
        What the operator does; the latest feature level accepts it.
    inputs : mapping of str to array
        By the page's names of the input tensors: ``InputTensor``, ``InputTensors[0]``.

    Returns
    -------
    str
        An SVG document for light and dark pages.

    Raises
    ------
    InvalidDescriptorError
        The descriptor breaks rules.
    IndexOutOfRangeError
        The inputs hold indices that are out of range.

    Examples
    --------
    >>> import numpy as np
    >>> import anydml as dml
    >>> from anydml.drawing import draw_operator
    >>> desc = dml.Split(input_tensor=dml.TensorDesc("FLOAT32", (2,)), axis=0,
    ...                  output_tensors=[dml.TensorDesc("FLOAT32", (1,))] * 2)
    >>> draw_operator(desc, {"InputTensor": np.array([0.5, 7])}).count("</svg>")
    1
    """
    arrays = {
        path: np.asarray(inputs[path], stored.data_type.numpy).reshape(stored.sizes)
        for path, tensor, _ in desc.tensors(Role.INPUT)
        for stored in [tensor.storage]
    }
    return draw_traced(desc, arrays, trace(desc, arrays))


def draw_traced(desc: Descriptor, inputs: Arrays, traced: Traced) -> str:
    """The picture of a run."""
    arrays = {**inputs, **traced.outputs}
    boxes: dict[Role, list[_Box]] = {Role.INPUT: [], Role.OUTPUT: []}
    for path, tensor, info in desc.tensors():
        written = traced.written.get(path)
        cells = _Cells(arrays[path], written, traced.colours[path])
        boxes[info.role].append(_labelled(path, tensor, cells))
    parts = [*_flow(boxes[Role.INPUT]), _middle(desc), *_flow(boxes[Role.OUTPUT])]
    what = ""
    if any(colours.any() for colours in traced.colours.values()):
        what = _WINDOW if traced.window else _ALIKE
        parts.append(_Box(_CHARACTER * len(what), 12, f'<text class="muted" y="10">{what}</text>'))
    values = "; ".join(f"{path} = {_spoken(array)}" for path, array in arrays.items())
    body, y = "", float(_MARGIN)
    for part in parts:
        body += _at(_MARGIN, y, part.body)
        y += part.height + _GAP
    width = max(part.width for part in parts) + 2 * _MARGIN
    return document(width, y, f"{desc.NAME}: an example in cells", f"{what}. {values}", body)


class _Cells(NamedTuple):
    values: Array
    written: Array | None
    colours: Array

    def grids(self) -> Iterator[_Cells]:
        """The last two dimensions for each index of those before."""
        shape = self.values.shape
        rows, columns = (1, 1, *shape)[-2:]
        if len(shape) > 2 and columns == 1 and rows < _MOST_ROWS and prod(shape[:-2]) == 1:
            rows, columns = 1, rows  # a column of few is shown as a row
        count = max(prod(shape), 0) // max(rows * columns, 1)
        three = [None if array is None else array.reshape(count, rows, columns) for array in self]
        for i in range(count):
            values, written, colours = (None if a is None else a[i] for a in three)
            assert values is not None
            assert colours is not None
            yield _Cells(values, written, colours)


def _labelled(path: str, tensor: TensorDesc, cells: _Cells) -> _Box:
    kind = tensor_label(tensor)
    head = (
        f'<text class="ink" y="12" font-weight="bold">{text(path)}</text>'
        f'<text class="muted" y="{12 + _LINE}">{text(kind)}</text>'
    )
    grids = [*cells.grids()]
    labels = [_grid(grid) for grid in grids[:_MOST_GRIDS]]
    if len(grids) > len(labels):
        more = f"and {len(grids) - len(labels)} more"
        labels.append(
            _Box(_CHARACTER * len(more), _LINE, f'<text class="muted" y="12">{more}</text>')
        )
    body, y, width = head, 2.0 * _LINE + 2, _CHARACTER * max(len(path), len(kind))
    for line in _flow(labels):
        body += _at(0, y, line.body)
        y += line.height + _GAP / 2
        width = max(width, line.width)
    return _Box(width, y - _GAP / 2, body)


def _grid(cells: _Cells) -> _Box:
    rows, columns = cells.values.shape
    # A row and a column that were cut end in a cell with dots.
    height = min(rows, _MOST_ROWS)
    words = [
        [
            "" if cells.written is not None and not cells.written[i, j] else number(value)
            for j, value in enumerate(row.tolist()[: _WIDTH // 20])
        ]
        for i, row in enumerate(cells.values[:height])
    ]
    wide = max(26.0, 10 + _CHARACTER * max((len(word) for row in words for word in row), default=0))
    width = min(columns, int((_WIDTH - 2 * _MARGIN) / wide))
    groups: dict[int, list[str]] = {}
    lines = []
    for i in range(height):
        spans = []
        for j in range(width):
            cut = (i == height - 1 and height < rows) or (j == width - 1 and width < columns)
            colour = 0 if cut else int(cells.colours[i, j])
            place = f"M{j * wide:g} {i * _CELL}h{wide:g}v{_CELL}h-{wide:g}z"
            groups.setdefault(colour, []).append(place)
            word = "…" if cut else words[i][j]
            if word:
                spans.append(f'<tspan x="{(j + 0.5) * wide:g}">{word}</tspan>')
        lines.append(f'<text class="ink" y="{i * _CELL + 15}">{"".join(spans)}</text>')
    paths = "".join(
        f'<path class="cell k{_class_of(colour)}"{_border(colour)} d="{"".join(places)}"/>'
        for colour, places in sorted(groups.items())
    )
    body = f'{paths}<g text-anchor="middle">{"".join(lines)}</g>'
    return _Box(width * wide, height * _CELL, body)


def _class_of(colour: int) -> int:
    return 0 if not colour else 1 + (colour - 1) % COLOURS


def _border(colour: int) -> str:
    return _BORDERS[(max(colour, 1) - 1) // COLOURS % len(_BORDERS)]


def number(value: Any) -> str:
    """An element, in few characters."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e6 else f"{value:.4g}"


def _spoken(array: Array) -> str:
    """The first elements, and all sizes, for those who do not see the picture."""
    elements = ", ".join(map(number, array.ravel()[:_MOST_SPOKEN].tolist()))
    more = ", …" if array.size > _MOST_SPOKEN else ""
    return f"{{{', '.join(map(str, array.shape))}}}: {elements}{more}"


def _middle(desc: Descriptor) -> _Box:
    """The operator's name and attributes next to an arrow."""
    attributes = ", ".join(
        f"{info.attribute}={shortened(info.kind.short_repr(value), 48)}".replace(" ", "\xa0")
        for info in desc.fields()
        if info.role is Role.ATTRIBUTE
        and info.counts is None
        and (value := getattr(desc, info.attribute)) is not None
    )
    lines = textwrap.wrap(attributes, int((_WIDTH - 2 * _MARGIN - 24) / _CHARACTER))[:4]
    height = _LINE * (len(lines) + 1) + 2
    rows = "".join(
        f'<text class="muted" x="24" y="{12 + _LINE * (i + 1)}">{text(line)}</text>'
        for i, line in enumerate(lines)
    )
    body = (
        f'<path class="line" d="M8 0V{height - 5}"/>'
        f'<path class="tip" d="M3 {height - 7}h10L8 {height}z"/>'
        f'<text class="ink" x="24" y="12" font-weight="bold">{text(desc.NAME)}</text>{rows}'
    )
    longest = max(map(len, (desc.NAME, *lines)))
    return _Box(24 + _CHARACTER * longest, height, body)


def _flow(boxes: list[_Box]) -> Iterator[_Box]:
    """Boxes in rows, wrapped to as many rows as needed."""
    page_width = _WIDTH - 2 * _MARGIN
    rights, line = [], 0
    x = 0.0
    for box in boxes:
        if x and x + box.width > page_width:
            line, x = line + 1, 0.0
        rights.append((line, x, box))
        x += box.width + 2 * _GAP
    for _, group in groupby(rights, key=lambda item: item[0]):
        placed = [(left, box) for _, left, box in group]
        yield _Box(
            max(left + box.width for left, box in placed),
            max(box.height for _, box in placed),
            "".join(_at(left, 0, box.body) for left, box in placed),
        )


def _at(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:g} {y:g})">{body}</g>'
