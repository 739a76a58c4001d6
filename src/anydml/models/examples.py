"""Models of the operators' examples, for ``anydml run --example OPERATOR``."""

from __future__ import annotations

import json
from typing import Any

from anydml.core.dtypes import DataType
from anydml.models.check import model_from_text
from anydml.models.files import Limits
from anydml.models.model import Model
from anydml.models.resources import json_numbers
from anydml.ops._examples import examples_of
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS


def example_model(operator: str, limits: Limits | None = None) -> Model:
    """Make a model of the examples of an operator, by its name in `OPERATORS`.

    The model prints inputs and outputs. Where there are several examples, the names of resources
    end in the example's number.
    """
    kind = OPERATORS[operator]
    resources: dict[str, Any] = {}
    dispatchables: dict[str, Any] = {}
    commands: list[dict[str, Any]] = []
    examples = [*examples_of(kind)]
    for i, example in enumerate(examples, 1):
        number = f" (example {i})" if len(examples) > 1 else ""
        bindings: dict[str, Any] = {}
        for path, tensor, info in example.desc.tensors():
            values: Any = {"value": 0, "valueCount": tensor.element_count}
            if info.role is Role.INPUT:
                values = json_numbers(example.inputs[path])
            name = path + number
            type_name = DataType.parse(tensor.data_type).name
            resources[name] = {"initialValuesDataType": type_name, "initialValues": values}
            bindings[info.name] = [*bindings.get(info.name, ()), name] if info.many else name
        dispatchable = f"example {i}"
        dispatchables[dispatchable] = example.desc.to_json()
        commands.append({"type": "dispatch", "dispatchable": dispatchable, "bindings": bindings})
        for bound in bindings.values():
            names = bound if isinstance(bound, list) else [bound]
            commands += [{"type": "print", "resource": name} for name in names]
    model = {"resources": resources, "dispatchables": dispatchables, "commands": commands}
    return model_from_text(json.dumps(model).encode(), kind.NAME.lower(), limits)
