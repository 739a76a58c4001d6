"""PyDirectML programs, run as they are, and the graphs that they compute."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from anydml import GraphDesc, pydirectml
from anydml.pydirectml.__main__ import main


@dataclass
class Computed:
    """One call of `Device.compute`: the graph, its inputs as bytes, and its results."""

    graph: GraphDesc
    inputs: dict[str, Any]
    outputs: list[Any]


def run_program(script: Path, *arguments: str) -> tuple[int, list[Computed]]:
    """Run a program in its own folder; its exit status and what it computed."""
    found: list[Computed] = []
    compute = pydirectml.Device.compute

    def recorded(
        self: pydirectml.Device, model: Any, inputs: Any, outputs: Any
    ) -> list[pydirectml.TensorData]:
        results = compute(self, model, inputs, outputs)
        arrays = {f"input{i}": binding._bytes for i, binding in enumerate(inputs)}
        found.append(Computed(model._graph.desc, arrays, results))
        return results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pydirectml.Device, "compute", recorded)
        patch.setattr(sys, "argv", [*sys.argv])
        patch.setattr(sys, "path", [*sys.path])
        patch.setitem(sys.modules, "pydirectml", pydirectml)
        patch.chdir(script.parent)
        return main([script.name, *arguments]), found
