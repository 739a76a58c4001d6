"""Which input elements each output element is made of, found by changing one after the other.

No operator is known here: it runs with an element of an input a little larger and a little smaller,
and what changes in the outputs each time is made of it. Elements that tie are first made distinct
in the order in which the operator decides between them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError
from anydml.core.tensor import TensorDesc
from anydml.devices.device import Device
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
"""Arrays by the tensors' paths."""

MOST_ELEMENTS: Final = 256
"""The most elements of all tensors together: with more, nothing is traced."""


class Traced(NamedTuple):
    """The outputs that an operator made of its inputs.

    Attributes
    ----------
    outputs : dict of str to array
        By the tensors' paths.
    written : dict of str to array of bool
        Which elements of them the operator wrote.
    colours : dict of str to array of int
        For every tensor, a number for each element: alike where they belong together, 0 for what
        belongs to nothing.
    window : bool
        Whether one output element is marked, with all that it is made of, because the elements of
        several outputs are made of overlapping ones.
    """

    outputs: Arrays
    written: Arrays
    colours: Arrays
    window: bool


def trace(desc: Descriptor, inputs: Arrays) -> Traced:
    """Run a descriptor, which the latest feature level accepts, and find what belongs together."""
    plain = _plain(desc)
    first, second = (_Runner(plain, fill)(inputs) for fill in (0, 0xFF))
    written = {path: _bits(array) == _bits(second[path]) for path, array in first.items()}
    elements = sum(tensor.element_count for _, tensor, _ in desc.tensors())
    shapes = {path: tensor.storage.sizes for path, tensor, _ in desc.tensors()}
    if elements > MOST_ELEMENTS:
        return Traced(first, written, {p: np.zeros(s, int) for p, s in shapes.items()}, False)
    made_of = _same_place(desc, inputs) or _Tracer(plain, inputs, first, written).made_of()
    return Traced(first, written, *_coloured(made_of, shapes))


def _plain(desc: Descriptor, for_tracing: bool = False) -> Any:
    """Trace an operator on packed tensors that are bound at dispatch.

    For tracing without what hides a small change: FLOAT16, and a fused activation.
    """
    changed: dict[str, Any] = {}
    if for_tracing and getattr(desc, "fused_activation", None) is not None:
        changed["fused_activation"] = None
    for info in desc.bind_points():
        tensors = [
            TensorDesc(
                DataType.FLOAT32
                if for_tracing and tensor.data_type is DataType.FLOAT16
                else tensor.data_type,
                tensor.sizes,
            )
            for _, tensor in info.paths(getattr(desc, info.attribute))
        ]
        changed[info.attribute] = tensors if info.many else tensors[0]
    return dataclasses.replace(desc, **changed)


class _Runner:
    """Runs a descriptor on arrays by path; outputs are filled with a byte before."""

    def __init__(self, desc: Descriptor, fill: int = 0) -> None:
        self._desc, self._fill = desc, fill
        self._compiled = Device("cpu").create_operator(desc).compile()

    def __call__(self, inputs: Arrays) -> dict[str, Array]:
        outputs: dict[str, Array] = {}
        bound: dict[str, Any] = {}
        for info in self._desc.bind_points():
            arrays = []
            for path, tensor in info.paths(getattr(self._desc, info.attribute)):
                stored = tensor.storage
                dtype = stored.data_type.numpy
                if info.role is Role.OUTPUT:
                    array = np.empty(stored.sizes, dtype)
                    array.view(np.uint8).fill(self._fill)
                    outputs[path] = array
                else:
                    array = np.ascontiguousarray(inputs[path], dtype)
                arrays.append(array.reshape(stored.sizes))
            bound[info.name] = arrays if info.many else arrays[0]
        self._compiled.dispatch(**bound)
        return outputs


def _bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


_Element = tuple[str, int]
"""A tensor's path, and a position in it."""
_MadeOf = dict[_Element, set[_Element]]
"""Output elements, with the input elements that each is made of."""


def _same_place(desc: Descriptor, inputs: Arrays) -> _MadeOf:
    if not (isinstance(desc, Computed) and desc.ELEMENTWISE):
        return {}
    return {
        (path, at): {(name, at) for name, array in inputs.items() if array.size > at}
        for path, tensor, info in desc.tensors(Role.OUTPUT)
        for at in range(tensor.element_count)
    }


class _Tracer:
    def __init__(self, desc: Descriptor, inputs: Arrays, outputs: Arrays, written: Arrays) -> None:
        self._written = written
        self._inputs = {path: array.copy() for path, array in inputs.items()}
        try:
            self._run = _Runner(_plain(desc, for_tracing=True))
        except AnyDMLError:  # some tensor must be FLOAT16
            self._run = _Runner(desc)
        self._step = self._make_distinct(outputs)
        self._before = self._run(self._inputs)

    def _make_distinct(self, outputs: Arrays) -> float:
        """Make floats distinct and small where the integers among the results stay.

        Returns how much an element is then changed without passing another one.
        """
        floats = {p: a.astype(np.float32) for p, a in self._inputs.items() if a.dtype.kind == "f"}
        values = np.unique(
            np.concatenate([a.ravel() for a in floats.values()] or [np.zeros(1, np.float32)])
        )
        finite: list[float] = values[np.isfinite(values)].tolist()
        gap = min([1.0, *(after - before for before, after in pairwise(finite))])
        scale = min(1.0, 2 / max([1.0, *map(abs, finite)]))  # so that softmax is not 0 and 1 alone
        step = scale * gap / (4 * max([1, *(array.size for array in floats.values())]))
        for sign in (-step, step):  # of tied elements the first counts as larger, or the last
            distinct = {
                path: scale * array + sign * np.arange(array.size).reshape(array.shape)
                for path, array in floats.items()
            }
            found = self._attempt({**self._inputs, **distinct})
            if found and all(
                np.array_equal(found[path], output)
                for path, output in outputs.items()
                if output.dtype.kind != "f"
            ):
                self._inputs.update({p: a.astype(np.float32) for p, a in distinct.items()})
                return step / 4
        return gap / 16

    def _attempt(self, inputs: Arrays) -> dict[str, Array]:
        try:
            return self._run(inputs)
        except AnyDMLError:  # an index that is out of range, say
            return {}

    def made_of(self) -> _MadeOf:
        coordinate_rows = self._coordinate_rows()
        if coordinate_rows:
            return coordinate_rows
        found = self._changed(coarse=False)
        shapes: dict[tuple[int, ...], str] = {}
        for path, _ in found:
            shapes.setdefault(self._before[path].shape, path)
        for path, output in self._before.items():
            if not any(name == path for name, _ in found):
                twin = shapes.get(output.shape)
                if twin is not None:  # the positions of the elements there
                    found |= {(path, at): s for (name, at), s in found.items() if name == twin}
                else:
                    coarse = self._changed(coarse=True)
                    found |= {key: s for key, s in coarse.items() if key[0] == path}
        return found

    def _changed(self, coarse: bool) -> _MadeOf:
        """Output elements that change with an input element.

        With little changes, in every one of them: an index that is moved leaves one place for
        different others. With coarse ones, which find what only large changes make, in any.
        """
        found: _MadeOf = {}
        for name, array in self._inputs.items():
            for at in range(array.size):
                changes = [*self._outcomes(name, at, coarse)]
                combine = set.union if coarse else set.intersection
                for key in combine(*changes) if changes else ():
                    found.setdefault(key, set()).add((name, at))
        return found

    def _outcomes(self, name: str, at: int, coarse: bool) -> Iterator[set[_Element]]:
        array = self._inputs[name]
        value = array.flat[at].item()
        largest = np.abs(array).max().item() + 1
        steps: Sequence[Any] = (self._step, -self._step)
        if array.dtype.kind != "f":
            steps = (1, -1, 2, -2)
        if coarse:
            steps = (-value, 2 * largest - value, -2 * largest - value)
        for step in steps:
            changed = array.copy()
            try:
                changed.reshape(-1)[at] = value + step
            except OverflowError:  # beyond the type
                continue
            outputs = self._attempt({**self._inputs, name: changed})
            if outputs:
                yield {
                    (path, int(i))
                    for path, output in outputs.items()
                    for i in np.flatnonzero(_bits(output) != _bits(self._before[path]))
                }

    def _coordinate_rows(self) -> _MadeOf:
        """Rows of coordinates, of which each names the element whose loss removes just that row."""
        first, array = next(iter(self._inputs.items()), ("", np.empty(0)))
        found: _MadeOf = {}
        for path, output in self._before.items():
            rank, count = output.shape[-1] if output.ndim else 0, array.ndim
            if output.dtype.kind == "f" or not 0 < rank <= count or output.size == rank:
                continue
            sizes = array.shape[count - rank :]
            rows = output.reshape(-1, rank)[self._written[path].reshape(-1, rank).all(axis=1)]
            is_out_of_range = ((rows < 0) | (rows >= sizes)).any()
            if not len(rows) or is_out_of_range or array.size != np.prod(sizes):
                continue
            for i, row in enumerate(rows):
                at = int(np.ravel_multi_index(tuple(row), sizes))
                lost = array.copy()
                lost.flat[at] = 0
                rest = self._attempt({**self._inputs, first: lost}).get(path, output)
                if not np.array_equal(
                    rest.reshape(-1, rank)[: len(rows) - 1], np.delete(rows, i, 0)
                ):
                    return {}
                found |= {(path, i * rank + j): {(first, at)} for j in range(rank)}
        return found


def _coloured(
    made_of: _MadeOf, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, Array], bool]:
    """A number for each set of elements that belong together, in the order of the inputs."""
    colours = {path: np.zeros(shape, int) for path, shape in shapes.items()}
    groups = _groups(made_of)
    if groups is None:  # a number that is common to all, such as a scale, need not join them
        single = {path for path, array in colours.items() if array.size == 1}
        groups = _groups(
            {key: {s for s in of if s[0] not in single} or of for key, of in made_of.items()}
        )
    window = groups is None
    order = {path: i for i, path in enumerate(shapes)}
    if groups is None:
        maximum = max(map(len, made_of.values()))
        largest = [key for key, sources in made_of.items() if len(sources) == maximum]
        marked = min(largest, key=lambda key: (order[key[0]], key[1]))
        groups = [{marked, *made_of[marked]}]
    groups.sort(key=lambda group: min((order[path], at) for path, at in group))
    for number, group in enumerate(groups, 1):
        for path, at in group:
            colours[path].flat[at] = number
    return colours, window


def _overlap(made_of: _MadeOf) -> bool:
    """Whether two elements share some, not all, of what they are made of in one tensor."""
    sources_of: dict[_Element, frozenset[int]] = {}
    for sources in made_of.values():
        by_tensor: dict[str, set[int]] = {}
        for path, at in sources:
            by_tensor.setdefault(path, set()).add(at)
        for path, places in by_tensor.items():
            all_places = frozenset(places)
            if any(sources_of.setdefault((path, at), all_places) != all_places for at in places):
                return True
    return False


def _groups(made_of: _MadeOf) -> list[set[_Element]] | None:
    """The connected parts; None if they do not show what an element depends on."""
    group_of: dict[_Element, set[_Element]] = {}
    for key, sources in made_of.items():
        joined = {key}
        for source in sources:
            joined |= group_of.get(source, {source})
        for member in joined:
            group_of[member] = joined
    groups = [*{id(group): group for group in group_of.values()}.values()]
    have_same_sources = len({frozenset(sources) for sources in made_of.values()}) < 2
    return None if _overlap(made_of) or (len(groups) == 1 and not have_same_sources) else groups
