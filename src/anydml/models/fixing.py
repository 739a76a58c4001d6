"""`anydml check --fix`: a model with the repairs that do not alter what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.levels import FeatureLevel
from anydml.models.model import Model
from anydml.models.operators import Dispatchable
from anydml.models.repairs import Changes, applied, repairs
from anydml.ops._descriptor import Descriptor
from anydml.ops._registry import from_json

_MOST_CHANGES = 40
"""Repairs of one operator."""

Use = tuple[str, str]
"""A dispatchable, and the path of a tensor of it."""


def fixed_model(
    document: Mapping[str, Any], model: Model, level: FeatureLevel
) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON of a model with repairs, and a line for each of them.

    Where the type of an index tensor changes, that of its resource does too, if it has no other use
    and its values are numbers that fit.
    """
    changed = {**document}
    lines = []
    uses = _uses(model)
    for name, item in model.dispatchables.items():
        if not isinstance(item.desc, Descriptor):
            continue
        for changes in _repairs(item.desc, level):
            resources = _retyped(changed, model, name, changes, uses)
            if resources is None:
                continue
            if model.alone:
                changed = applied(changed, changes)
            else:
                part = applied(changed["dispatchables"][name], changes)
                changed["dispatchables"] = {**changed["dispatchables"], name: part}
                changed["resources"] = {**changed["resources"], **resources}
            lines.append(f"Fixed {short_repr(name)}: {', '.join(map(str, changes))}")
    return changed, lines


def _repairs(desc: Descriptor, level: FeatureLevel) -> Iterator[Changes]:
    """Find repairs one after the other, each of what the ones before have made."""
    for _ in range(_MOST_CHANGES):
        changes = next(iter(repairs(desc, level, safe=True).values()), None)
        if changes is None:
            return
        yield changes
        desc = from_json(applied(desc.to_json(), changes))


def _uses(model: Model) -> dict[str, set[Use]]:
    """The tensors to which each resource is bound."""
    found: dict[str, set[Use]] = {}
    dispatched = [(item, command.bindings) for _, command, item in model.dispatches()]
    own = [(item, item.bindings) for item in model.dispatchables.values()]
    for item, bindings in (*own, *dispatched):
        for path, resource in _bound(item, bindings):
            found.setdefault(resource, set()).add((item.name, path))
    return found


def _bound(item: Dispatchable, bindings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for info in item.desc.tensor_fields():
        for i, source in enumerate(bindings.get(info.name, ())):
            yield f"{info.name}[{i}]" if info.many else info.name, source.name


def _retyped(
    document: Mapping[str, Any],
    model: Model,
    name: str,
    changes: Changes,
    uses: Mapping[str, set[Use]],
) -> dict[str, Any] | None:
    """Return the resources that take the types of changed tensors; None if one of them cannot."""
    types = {(name, c.path.removesuffix(".DataType")): c.value
             for c in changes if c.path.endswith(".DataType")}  # fmt: skip
    found = {}
    for resource, tensors in uses.items():
        new = {types[use] for use in tensors if use in types}
        if not new:
            continue
        value = document["resources"][resource] if resource in model.resources else {}
        (kind, *others) = new
        if others or not tensors <= types.keys() or not _fits(value.get("initialValues"), kind):
            return None
        found[resource] = {**value, "initialValuesDataType": kind}
    return found


def _fits(values: Any, name: str) -> bool:
    """Whether initial values are integers that a type has."""
    kind = DataType.parse(name)
    if isinstance(values, Mapping):
        if "value" in values:
            values = [values["value"]]
        elif "valueStart" in values:
            start, count = values["valueStart"], values.get("valueCount", 0)
            values = [start, start + values.get("valueDelta", 0) * max(count - 1, 0)]
    if not isinstance(values, list) or kind.bits < 8:
        return False
    limits = np.iinfo(kind.numpy)
    return all(type(number) is int and limits.min <= number <= limits.max for number in values)
