"""Changes of an operator's fields after which it breaks a rule no more.

Every change follows from the broken rule: the accepted types, ranks and values. It is suggested
only if the operator with the change has no violation that it did not have before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, Violation
from anydml.core.levels import FeatureLevel
from anydml.core.problems import Location, members
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import AxisKind, FieldInfo, Role
from anydml.ops._registry import from_json

_MOST_REPAIRED: Final = 20
"""Violations of an operator for which changes are searched."""

_MOST_TENSORS: Final = 100
"""Tensors of an operator for which they are: each try reads all of them."""

_MOST_TRIES: Final = 200
"""Changes of an operator that are tried."""

_DEEPEST: Final = 4
"""Rules that a change may break before further changes repair them."""

_LEFT_OUT: Final = ("Strides", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment")
_INDICES: Final = re.compile(r"Ind(ex|ices)|Coordinates|Lengths")
_NESTED: Final = ("Desc", "desc")


class Change(NamedTuple):
    """A member of an operator's JSON, and its new value; None leaves it out."""

    path: str
    value: Any

    def as_json(self) -> dict[str, Any]:
        """The members of a report on the change."""
        return {"path": self.path, "value": self.value}

    def __str__(self) -> str:
        return f"{self.path} left out" if self.value is None else f"{self.path} {self.value}"


Changes = tuple[Change, ...]


def repairs(desc: Descriptor, level: FeatureLevel, safe: bool = False) -> dict[str, Changes]:
    """Find the changes that repair each violation of an operator, by the path of the violation.

    Parameters
    ----------
    desc : Descriptor
        The operator.
    level : FeatureLevel
        That of the device.
    safe : bool
        Whether a change may not alter what the operator computes: only types of indices, numbers of
        dimensions, counts and layouts.
    """
    found: dict[str, Changes] = {}
    if len([*desc.tensors()]) > _MOST_TENSORS:
        return found
    search = _Search(level, safe)
    violations = {item.path: item for item in desc.violations(level)}
    for path in [*violations][:_MOST_REPAIRED]:
        changes = search.solve(desc, violations, path)
        if changes:
            found[path] = changes
    return found


def applied(value: Any, changes: Changes) -> Any:
    """Return the JSON of an operator with changes; what they do not reach is shared."""
    for change in changes:
        value = _with(value, members(change.path), change.value)
    return value


def _with(value: Any, location: Location, new: Any) -> Any:
    nested = next((name for name in _NESTED if isinstance(value, Mapping) and name in value), None)
    if nested is not None:
        return {**value, nested: _with(value[nested], location, new)}
    head, *below = location
    if isinstance(head, int):
        item = _with(value[head], tuple(below), new) if below else new
        return [*value[:head], item, *value[head + 1 :]]
    changed = {**value}
    if below:
        changed[head] = _with(changed[head], tuple(below), new)
    elif new is None:
        changed.pop(head, None)
    else:
        changed[head] = new
    if head == "Sizes" and "DimensionCount" in changed:
        changed["DimensionCount"] = len(changed["Sizes"])
    return changed


@dataclass
class _Search:
    """A search for changes, of a bounded number of tries."""

    level: FeatureLevel
    safe: bool
    tries: int = _MOST_TRIES

    def solve(
        self, desc: Descriptor, before: Mapping[str, Violation], path: str, depth: int = _DEEPEST
    ) -> Changes:
        """Find changes after which a path has no violation, and all others were there `before`.

        A change that breaks no other rule comes first.
        """
        longer: Changes = ()
        document = desc.to_json()
        for changes in _candidates(desc, before, path, self.safe):
            self.tries -= 1
            if self.tries < 0:
                break
            try:
                changed = from_json(applied(document, changes))
            except AnyDMLError:
                continue
            after = {item.path: item for item in changed.violations(self.level)}
            new = [item for item in after if item not in before]
            if path in after or (new and (not depth or path.endswith(".DimensionCount"))):
                continue
            if not new:
                return changes
            further = () if longer else self.solve(changed, after, new[0], depth - 1)
            if further:
                rest = from_json(applied(changed.to_json(), further)).violations(self.level)
                if {item.path for item in rest} <= before.keys() - {path}:
                    longer = (*changes, *further)
        return longer


def _candidates(
    desc: Descriptor, violations: Mapping[str, Violation], path: str, safe: bool
) -> Iterator[Changes]:
    violation = violations[path]
    relative = path.removeprefix(f"{desc.NAME}.")
    if re.search(r"\[(-|\.\.)", relative):  # not one member
        return
    owner, _, member = relative.rpartition(".")
    name = member.partition("[")[0]
    accepted = violation.accepted or {}
    values = accepted.get("values", [])
    tensors = {at: (tensor, info) for at, tensor, info in desc.tensors()}
    if owner in tensors:
        tensor, info = tensors[owner]
        if name == "DataType" and (not safe or _INDICES.search(info.name)):
            yield from ((Change(relative, item),) for item in _types(tensor.data_type, values))
        elif name == "DimensionCount":
            yield from _ranks(desc, violations, owner)
        elif name in _LEFT_OUT:
            yield (Change(f"{owner}.{name}", None),)
            yield tuple(Change(f"{owner}.{item}", None) for item in _LEFT_OUT[:2])
        elif name == "Sizes" and info.role is Role.OUTPUT and len(values) == 1 and not safe:
            yield (Change(relative, values[0]),)
            layout = (Change(f"{owner}.{item}", None) for item in _LEFT_OUT[:2])
            yield (Change(relative, values[0]), *layout)
        return
    attribute = next((item for item in desc.fields() if item.name == name), None)
    if attribute is None or (safe and attribute.counts is None):
        return
    if _is_axis(attribute) and "maximum" in accepted and isinstance(violation.got, int):
        rank = accepted["maximum"] + 1
        if -rank <= violation.got < 0:
            yield (Change(relative, violation.got + rank),)
        elif violation.got == rank:  # counted from 1
            yield (Change(relative, rank - 1),)
    elif len(values) == 1 and not owner:
        yield (Change(relative, values[0]),)


def _types(got: DataType, names: Sequence[Any]) -> list[str]:
    """The accepted types, nearest first; of numbers of another kind only a single one."""
    types = [DataType.parse(name) for name in names]

    def distance(item: DataType) -> tuple[int, bool]:
        return abs(item.bits - got.bits), item.name[0] != got.name[0]

    alike = [item for item in types if _is_float(item) == _is_float(got)]
    return [item.suffix for item in sorted(alike or types[: len(types) == 1], key=distance)]


def _is_float(item: DataType) -> bool:
    return item.name.startswith("FLOAT")


def _is_axis(info: FieldInfo) -> bool:
    return isinstance(info.kind, AxisKind) or info.name == "Axes"


def _ranks(desc: Descriptor, violations: Mapping[str, Violation], owner: str) -> Iterator[Changes]:
    """Add or remove leading sizes of 1: of all tensors with a wrong number of them, or of one."""
    wrong = {}
    for at, tensor, _ in desc.tensors():
        violation = violations.get(f"{desc.NAME}.{at}.DimensionCount")
        if violation is not None:
            rank = tensor.dimension_count
            wrong[at] = tensor, _nearest(violation, rank) - rank, violation
    if owner not in wrong:
        return
    shift = next((more for at, (_, more, _) in wrong.items()), 0)
    first = next(at for at, _, _ in desc.tensors())
    moved = [] if first not in wrong else [
        Change(info.name, [n + shift for n in value] if info.name == "Axes" else value + shift)
        for info in desc.fields()
        if _is_axis(info) and (value := getattr(desc, info.attribute)) is not None
    ]  # fmt: skip
    alone = "DimensionCount)" in wrong[owner][2].rule  # that of another tensor
    for chosen in ([owner],) if alone else (wrong,):
        pieces = [_resized(at, *wrong[at][:2]) for at in chosen]
        if all(pieces):
            yield (*(change for piece in pieces for change in piece), *([] if alone else moved))


def _nearest(violation: Violation, rank: int) -> int:
    accepted = violation.accepted or {}
    low, high = accepted.get("minimum", rank), accepted.get("maximum", rank)
    values: list[int] = accepted.get("values") or [min(max(rank, low), high)]
    return min(values, key=lambda value: abs(value - rank))


def _resized(at: str, tensor: TensorDesc, more: int) -> list[Change]:
    """Return a tensor with more leading sizes of 1, or fewer; empty if other sizes are in front."""
    if any(size != 1 for size in tensor.sizes[: max(-more, 0)]):
        return []
    changes = [Change(f"{at}.Sizes", [*[1] * more, *tensor.sizes[max(-more, 0) :]])]
    if tensor.strides is not None:
        strides = [*[0] * more, *tensor.strides[max(-more, 0) :]]
        changes.append(Change(f"{at}.Strides", strides))
    return changes
