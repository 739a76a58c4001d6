"""Descriptors from decisions: valid ones, and valid ones with something changed."""

from __future__ import annotations

from typing import Any

import anydml as dml
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from anydml.suite.descriptors import NoneFoundError, valid, with_tensors
from fuzz.targets.decisions import Decisions

Fields = dict[str, Any]

KINDS = tuple(dict.fromkeys(OPERATORS.values()))
TYPES = tuple(dml.DataType)


def descriptor(decide: Decisions) -> Descriptor | None:
    """A descriptor, or None where one of its fields is not even of the right kind."""
    kind = decide.among(KINDS)
    try:
        desc = valid(decide, kind, attempts=8)
    except NoneFoundError:
        return None
    desc = with_tensors(desc, lambda tensor, output: _flagged(decide, tensor, output))
    changes = decide.below(3) if decide.chance(150) else 0
    if not changes:
        return desc
    fields = {info.attribute: _unmade(getattr(desc, info.attribute)) for info in kind.fields()}
    for _ in range(changes):
        _spoil(decide, kind, fields)
    try:
        return kind(**{name: _built(value) for name, value in fields.items()})
    except dml.InvalidDescriptorError as error:
        violations = error.violations
    assert violations
    assert all(str(violation) for violation in violations)
    return None


def index_sizes(desc: Descriptor) -> tuple[int, ...] | None:
    """What the values of the index tensor point into: a size for each coordinate of a tuple."""
    use = desc.lower().calls[0].indices
    return None if use is None else use.sizes


def _flagged(decide: Decisions, tensor: TensorDesc, output: bool) -> TensorDesc:
    owned = not output and decide.chance(16)
    aligned = decide.chance(16)
    return TensorDesc(
        tensor.data_type,
        tensor.sizes,
        tensor.strides,
        flags="OWNED_BY_DML" if owned else "NONE",
        guaranteed_base_offset_alignment=8 << decide.below(5) if aligned else 0,
    )


def _unmade(value: Any) -> Any:
    """Tensors are dicts of their fields until all changes are made."""
    if isinstance(value, tuple) and any(isinstance(item, TensorDesc) for item in value):
        return [*map(_unmade, value)]
    if isinstance(value, TensorDesc):
        return {"data_type": value.data_type, "sizes": value.sizes, "strides": value.strides,
                "flags": value.flags}  # fmt: skip
    return value


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return [_built(item) for item in value]
    if isinstance(value, dict) and "sizes" in value:
        fields = dict(value)
        return dml.TensorDesc(fields.pop("data_type"), fields.pop("sizes"), **fields)
    return value


# ---- changes ------------------------------------------------------------------------------------


def _spoil(decide: Decisions, kind: Any, fields: Fields) -> None:
    """One change, after which the descriptor may still be sound."""
    info = decide.among(kind.fields())
    if info.role is Role.ATTRIBUTE:
        fields[info.attribute] = _any_value(decide)
        return
    value = fields[info.attribute]
    if info.many and isinstance(value, list):
        if not value or decide.chance(40):
            fields[info.attribute] = value[1:] if decide.chance(128) else value + value[:1]
            return
        value = decide.among(value)
    if not isinstance(value, dict):
        return
    field = decide.among(("data_type", "sizes", "strides", "flags", "total_tensor_size_in_bytes",
                          "guaranteed_base_offset_alignment"))  # fmt: skip
    if field == "data_type" and decide.chance(200):
        value[field] = decide.among(TYPES)
    elif field == "flags" and decide.chance(200):
        value[field] = decide.among(tuple(dml.TensorFlags))
    elif field in ("sizes", "strides") and decide.chance(240):
        numbers = value.get(field) or value["sizes"]
        if not isinstance(numbers, list | tuple):
            return
        numbers = list(numbers)
        way = decide.below(4)
        if way == 0 or not numbers:
            numbers.insert(decide.below(len(numbers) + 1), decide.integer())
        elif way == 1:
            numbers.pop(decide.below(len(numbers)))
        else:
            numbers[decide.below(len(numbers))] = decide.integer()
        value[field] = numbers
    elif field == "total_tensor_size_in_bytes" and decide.chance(128):
        value[field] = 4 * decide.below(4000)
    else:
        value[field] = _any_value(decide)


def _any_value(decide: Decisions) -> Any:
    if decide.chance(200):
        return decide.integer()
    return decide.among((None, True, 1.5, "FLOAT32", "", (), [1, 2], [None], {}, b"4", 2.0,
                         dml.DataType.INT8, "DECREASING", float("nan")))  # fmt: skip
