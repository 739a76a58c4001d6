"""A model for each operator, to begin with: `anydml run --example NAME`.

An operator that calculates has its example in its definition, and the model is made of that. The
others have the examples that DirectML's pages print, as files in `examples/models/`, which an
installation has beside this module.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from anydml.dtypes import DataType
from anydml.models.loader import Model, model_from_text
from anydml.models.paths import Limits
from anydml.models.results import json_numbers
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.registry import OPERATORS


def example_model(operator: str, limits: Limits | None = None) -> Model:
    """The example of an operator, by its name in `OPERATORS`."""
    kind = OPERATORS[operator]
    if issubclass(kind, Computed):
        text = json.dumps(_derived(kind)).encode()
    else:
        installed = resources.files("anydml.models") / "page_examples" / f"{kind.NAME.lower()}.json"
        text = installed.read_bytes()
    return model_from_text(text, kind.NAME.lower(), limits)


def _derived(kind: type[Computed]) -> dict[str, Any]:
    """The example of a definition as a model that prints its inputs and outputs."""
    desc, inputs = kind.example_call()
    resources: dict[str, Any] = {}
    bindings: dict[str, Any] = {}
    for path, tensor, info in desc.tensors():
        values: Any = {"value": 0, "valueCount": tensor.element_count}
        if info.role is Role.INPUT:
            values = json_numbers(inputs[path])
        type_name = DataType.parse(tensor.data_type).name
        resources[path] = {"initialValuesDataType": type_name, "initialValues": values}
        bindings[info.name] = [*bindings.get(info.name, ()), path] if info.many else path
    return {
        "resources": resources,
        "dispatchables": {"example": desc.to_json()},
        "commands": [
            {"type": "dispatch", "dispatchable": "example", "bindings": bindings},
            *({"type": "print", "resource": name} for name in resources),
        ],
    }
