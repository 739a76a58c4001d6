"""Drawings of models: dispatches in order, and the resources that go from one to the next."""

from __future__ import annotations

from anydml.core.levels import FeatureLevel
from anydml.drawing import Box, Line, draw_boxes, tensor_label
from anydml.models.commands import Dispatch
from anydml.models.model import Model
from anydml.models.operators import Bindings, Dispatchable
from anydml.models.resources import Resource
from anydml.ops._fields import Role


def draw_model(model: Model, level: FeatureLevel) -> str:
    """Draw the commands and resources of a model, as SVG.

    Parameters
    ----------
    model : Model
        As `load_model` returns it.
    level : FeatureLevel
        Operators that it refuses are red.

    Returns
    -------
    str
        An SVG document for light and dark pages.

    Raises
    ------
    DeviceError
        The library `igraph`, which lays the nodes out, is not installed.
    ArgumentError
        The model has too many commands for a picture.
    """
    return _Picture(model, level).draw()


class _Picture:
    def __init__(self, model: Model, level: FeatureLevel) -> None:
        self._model = model
        self._boxes: list[Box] = []
        self._lines: list[Line] = []
        # By resource: the box that wrote it last, and the labels of lines from there.
        self._writers: dict[str, tuple[int, tuple[str, ...]]] = {}
        # What has been written since it was read or shown.
        self._unread: set[str] = set()
        self._problems = {
            name: [f"{name}: {item}" for item in dispatchable.desc.violations(level)]
            for name, dispatchable in model.dispatchables.items()
        }

    def draw(self) -> str:
        model = self._model
        dispatched = set()
        for command in model.commands.values():
            if isinstance(command, Dispatch):
                dispatchable = model.dispatchables[command.dispatchable]
                dispatched.add(dispatchable.name)
                self._dispatch(dispatchable, command.bindings)
            else:
                for name in command.resources():
                    self._show(name)
        for name, dispatchable in model.dispatchables.items():
            if name not in dispatched:
                self._dispatch(dispatchable, {})
        for name in sorted(self._unread):
            self._show(name)
        problems = [problem for found in self._problems.values() for problem in found]
        return draw_boxes(f"The model {model.name}", self._boxes, self._lines, problems)

    def _dispatch(self, dispatchable: Dispatchable, bindings: Bindings) -> None:
        desc = dispatchable.desc
        problems = self._problems[dispatchable.name]
        box = self._add(Box(dispatchable.name, desc.NAME, problems=problems))
        for bound in dispatchable.bound(bindings, Role.INPUT):
            name, tensor = bound.source.name, bound.tensor
            if name not in self._writers:
                self._writers[name] = self._data(name), (tensor_label(tensor),)
            start, labels = self._writers[name]
            self._lines.append(Line(start, box, labels))
            self._unread.discard(name)
        for bound in dispatchable.bound(bindings, Role.OUTPUT):
            name = bound.source.name
            self._writers[name] = box, (name, tensor_label(bound.tensor))
            self._unread.add(name)

    def _show(self, name: str) -> None:
        """Add a box for a resource that a dispatch has written, once."""
        start, labels = self._writers.get(name, (0, ()))
        if labels and not self._boxes[start].is_data:
            end = self._data(name)
            self._lines.append(Line(start, end, labels[1:]))
            self._unread.discard(name)

    def _data(self, name: str) -> int:
        return self._add(Box(name, _described(self._model.resources.get(name)), is_data=True))

    def _add(self, box: Box) -> int:
        self._boxes.append(box)
        return len(self._boxes) - 1


def _described(resource: Resource | None) -> str:
    if resource is None:
        return ""
    kind = "" if resource.data_type is None else f"{resource.data_type}, "
    return f"{kind}{resource.size} bytes"
