"""JSON models, and graphs that are serialized or JSON, as documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from anydml.core._json import short_repr
from anydml.core._progress import show_progress
from anydml.core.errors import ModelError
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.tensor import TensorFlags
from anydml.devices.device import Device
from anydml.documents.document import Arrays, Converted, Document, Write
from anydml.drawing import draw_graph
from anydml.graphs.check import SINCE, violations
from anydml.graphs.desc import GraphDesc
from anydml.graphs.lower import lower
from anydml.graphs.serialized import DATA_SUFFIX
from anydml.models.as_graph import graph_of_commands
from anydml.models.check import load_model, without_problems
from anydml.models.document import folder_of, json_graph, read_document
from anydml.models.examples import example_model
from anydml.models.files import Limits, Place
from anydml.models.fixing import fixed_model
from anydml.models.formats import read_array_at
from anydml.models.model import Model, model_of
from anydml.models.report import Report, report
from anydml.models.run import results_data, run_model
from anydml.models.showing import draw_model


class ModelDocument(Document):
    """A JSON model, or a graph."""

    TENSOR = "resource"

    @cached_property
    def model(self) -> Model:
        """The model; that of a graph runs it on files beside it."""
        return load_model(self.path, self.limits)

    @property
    def warnings(self) -> Sequence[str]:
        return self.model.warnings

    def names(self) -> Collection[str]:
        return self.model.resources

    def check(self, device: Device) -> Report:
        return report(self.path, device, self.limits)

    def fixed(self, level: FeatureLevel) -> tuple[str, list[str]]:
        document = read_document(self.path, self.limits)
        if isinstance(document, GraphDesc) or "Nodes" in document:
            return super().fixed(level)
        model = model_of(document, self.path, self.limits)
        changed, lines = fixed_model(document, model, level)
        return json.dumps(changed, indent=1) + "\n", lines

    def run(
        self, device: Device, write: Write, names: Sequence[str], repeat: int, timing: bool
    ) -> Arrays:
        return run_model(
            self.model, device, write=write, repeat=repeat, timing=timing, progress=show_progress
        )

    def results_data(self, results: Arrays) -> dict[str, Any]:
        return results_data(self.model, results)

    def draw(self, level: FeatureLevel) -> str:
        found = self._read()
        if isinstance(found, GraphDesc):
            return draw_graph(found, level)
        return draw_model(found, level)

    def _read(self) -> Model | GraphDesc:
        """Read a model, or a graph alone."""
        document = read_document(self.path, self.limits)
        if not isinstance(document, GraphDesc) and "Nodes" in document:
            document = json_graph(document)
        if isinstance(document, GraphDesc):
            return document
        return without_problems(model_of(document, self.path, self.limits))

    def graph(self, arrays: Arrays) -> Converted:
        found = self._read()
        if isinstance(found, GraphDesc):
            graph, weights, folder = found, dict[str, Any](), folder_of(self.path, self.limits)
        else:
            graph, weights = graph_of_commands(found)
            folder = None
        owned = _owned(graph)
        for name in owned:
            if name in arrays:
                weights[name] = arrays[name]
            elif name not in weights and folder is not None:
                places = (folder.find(f"{name}{suffix}") for suffix in (".npy", DATA_SUFFIX))
                place = next(filter(None, places), None)
                if place is not None:
                    weights[name] = _limited(place, self.limits)
        missing = [name for name in owned if name not in weights]
        if missing:
            raise ModelError(
                *(
                    f"Input {short_repr(name)}: expected --input NAME=FILE.npy, or a file "
                    f"{f'{name}.npy'!r} or {f'{name}{DATA_SUFFIX}'!r} beside the graph (the graph "
                    "owns it), got neither."
                    for name in missing
                )
            )
        return graph, {**weights, **arrays}


class ExampleDocument(ModelDocument):
    """The examples of an operator, by its name."""

    @cached_property
    def model(self) -> Model:
        return example_model(str(self.path), self.limits)


def _limited(place: Place, limits: Limits) -> Any:
    array = read_array_at(place)
    if array.nbytes > limits.memory_limit:
        raise ModelError(f"Expected at most {limits.memory_limit} bytes (--memory-limit), got "
                         f"{place}.")  # fmt: skip
    return array


def _owned(graph: GraphDesc) -> list[str]:
    """The inputs that a graph owns and its nodes read; none of a graph that breaks rules."""
    if violations(graph, LATEST, constants_since=SINCE):
        return []
    tensors = lower(graph).tensors
    return [t.name for t in graph.inputs
            if t.name in tensors and tensors[t.name].flags is TensorFlags.OWNED_BY_DML]  # fmt: skip
