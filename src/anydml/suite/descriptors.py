"""Valid descriptors of any operator, made from its definition alone.

Fields are chosen within their kinds and the support table. What then breaks a rule says in its
violation what would be accepted there, and becomes that: the check itself leads to a valid
descriptor, and a message that would not help a reader shows here as an operator without one.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import InvalidDescriptorError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.tensor import MAX_DIMENSIONS, TensorDesc
from anydml.ops import _fields as kinds
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import FieldInfo, Role
from anydml.ops._pages import Support
from anydml.suite.choices import Choices
from anydml.suite.layouts import Layout

Fields = dict[str, Any]

_FLOATS = (0.0, 1.0, -1.0, 2.0, -2.5, 0.1, -0.0, 3.0, 0.5, float("inf"))
_ATTEMPTS, _REPAIRS = 200, 24
_PATH = re.compile(r"\w+\.(\w+)(?:\[(\d+|\.\.)\])?(?:\.(\w+))?(?:\[(-?\d+)\])?$")
_RANGE = re.compile(r"(-?\d+)\.\.(\d+\^\d+|\d+)")
_NUMBER = re.compile(r"(at least |at most |a sum of )?(-?\d+)\b")
_MULTIPLE = re.compile(r"a multiple of (\d+)\b")
_DIVISOR = re.compile(r"a divisor of ([1-9]\d*)\b")
_SIZES = re.compile(r"\(([\d, ]*)\)")


class NoneFoundError(LookupError):
    """No valid descriptor was found by following the violations: the operator needs a `sample`."""


def descriptor(
    choose: Choices,
    kind: type[Descriptor],
    level: FeatureLevel = LATEST,
    *,
    maximum: int = 400,
    packed: bool = False,
) -> Any:
    """A descriptor that breaks no rule.

    Parameters
    ----------
    choose : Choices
        What decides.
    kind : descriptor class
        The operator.
    level : FeatureLevel, optional
        At which it is valid.
    maximum : int, optional
        Elements of the largest tensor.
    packed : bool, optional
        Whether tensors have no strides.
    """
    for _ in range(_ATTEMPTS):
        desc = valid(choose, kind, level)
        if all(tensor.element_count <= maximum for _, tensor, _ in desc.tensors()):
            return desc if packed else laid_out(choose, desc)
    raise NoneFoundError(f"no {kind.__name__} of at most {maximum} elements found")


def valid(
    choose: Choices, kind: type[Descriptor], level: FeatureLevel = LATEST, attempts: int = _ATTEMPTS
) -> Any:
    """A descriptor of packed tensors that breaks no rule of its page, of any size."""
    left: list[Violation] = []
    for _ in range(attempts):
        draft = Draft(choose, kind, level)
        for _ in range(_REPAIRS):
            try:
                desc = kind(**draft.fields)
                left = desc.violations(level)
            except InvalidDescriptorError as error:
                left = list(error.violations)
                break
            if not left and desc.deviations(level):
                break  # which has tests of its own
            if not left:
                return desc
            if not all(draft.repair(violation) for violation in left):
                break
    raise NoneFoundError(f"no valid {kind.__name__} found; what is left: {left}")


def laid_out(choose: Choices, desc: Any) -> Any:
    """The descriptor with tensors of any strides."""

    def strided(tensor: TensorDesc, output: bool) -> TensorDesc:
        if choose.below(3) == 0 or tensor.data_type.bits < 8:
            return tensor
        axes = range(tensor.dimension_count)
        layout = Layout(
            order=tuple(choose.shuffled(axes)) if choose.chance(128) else None,
            gaps=tuple(choose.below(3) if choose.chance(60) else 0 for _ in axes),
            # Tuples of coordinates have limits of their own: no repeats of the last axis.
            repeated=() if output else tuple(axis for axis in axes[:-1] if choose.chance(40)),
        )
        return TensorDesc(tensor.data_type, tensor.sizes, layout.strides(tensor.sizes, 1))

    return with_tensors(desc, strided)


def with_tensors(desc: Any, change: Any) -> Any:
    """The descriptor with each tensor replaced by ``change(tensor, whether it is an output)``."""
    fields = {info.attribute: getattr(desc, info.attribute) for info in desc.fields()}
    for info in desc.bind_points():
        value, output = fields[info.attribute], info.role is Role.OUTPUT
        fields[info.attribute] = (
            tuple(change(tensor, output) for tensor in value)
            if info.many
            else change(value, output)
        )
    return type(desc)(**fields)


class Draft:
    """A descriptor's fields on the way to a valid one."""

    def __init__(self, choose: Choices, kind: type[Descriptor], level: FeatureLevel) -> None:
        self.choose, self.kind, self.level = choose, kind, level
        self.infos = {info.name: info for info in kind.fields()}
        self.row = choose.among(_rows(kind, level))
        self.fields: Fields = {}
        tensors = [info for info in kind.fields() if info.role is not Role.ATTRIBUTE]
        self.rank = self._rank(tensors)
        self.sizes = sizes(choose, self.rank)
        self.data_type = self._data_type(tensors[0].name)
        for info in kind.fields():
            if info.counts is None and not (info.optional and choose.chance(110)):
                self.fields[info.attribute] = self._value(info)
        sample = getattr(kind, "sample", None)
        if sample is not None:
            self.fields |= sample(choose)

    # ---- a first value --------------------------------------------------------------------------

    def _rank(self, tensors: list[FieldInfo]) -> int:
        shared = set(range(1, MAX_DIMENSIONS + 1))
        for info in tensors:
            shared &= set(self.row.tensors[info.name].ranks)
        ranks = sorted(shared or self.row.tensors[tensors[0].name].ranks)
        maximum = len(ranks) if self.choose.chance(80) else min(4, len(ranks))
        return ranks[self.choose.below(maximum)]

    def _data_type(self, name: str) -> DataType:
        accepted = [t for t in self.row.tensors[name].data_types if t.bits >= 8]
        return self.choose.among(accepted)

    def _value(self, info: FieldInfo) -> Any:
        if info.role is Role.ATTRIBUTE:
            return self._attribute(info)
        if not info.many:
            return self._tensor(info)
        return tuple(self._tensor(info) for _ in range(self.choose.between(1, 4)))

    def _tensor(self, info: FieldInfo) -> TensorDesc:
        accepted, choose = self.row.tensors[info.name], self.choose
        same = self.data_type in accepted.data_types and not choose.chance(30)
        data_type = self.data_type if same else self._data_type(info.name)
        drawn = [size if choose.chance(200) else choose.between(1, 5) for size in self.sizes]
        return TensorDesc(data_type, _of_rank(drawn, choose, accepted.ranks))

    def _attribute(self, info: FieldInfo, rank: int | None = None) -> Any:
        if info.name in self.row.when:
            return self.choose.among(self.row.when[info.name])
        length = self.rank if rank is None else rank
        return attribute(self.choose, info.kind, length, self.data_type, self.fields, self.level)

    # ---- what a violation makes of it -----------------------------------------------------------

    def repair(self, violation: Violation) -> bool:
        """Whether the field could be made what the violation says that it should be."""
        found = _PATH.match(violation.path)
        info = self.infos.get(found[1]) if found else None
        if info is None or found is None:
            return False
        _, member, part, index = found.groups()
        value: Any = self.fields.get(info.attribute)
        if info.counts is not None:  # left out, it is right: what it counts is not
            info = next(i for i in self.infos.values() if i.attribute == info.counts)
            value, member, part = self.fields.get(info.attribute), None, None
        if info.role is Role.ATTRIBUTE:
            return self._repair_attribute(info, value, member, part, violation.rule)
        if member == "..":
            return self._repair_sum(info, list(value), int(index), violation.rule)
        if violation.rule.startswith("no tensor"):
            self.fields[info.attribute] = None
            return True
        if info.many and member is None:
            self.fields[info.attribute] = self._value(info)
            return True
        if info.many and int(member or 0) >= len(value):
            return True  # a part that another repair has taken away
        tensor = value[int(member or 0)] if info.many else value
        repaired = self._repaired(info, tensor, part, index, violation.rule)
        if repaired is None:
            return False
        if info.many:
            members = list(value)
            members[int(member)] = repaired
            self.fields[info.attribute] = tuple(members)
        else:
            self.fields[info.attribute] = repaired
        return True

    def _repair_attribute(
        self, info: FieldInfo, value: Any, member: str | None, part: str | None, rule: str
    ) -> bool:
        if isinstance(info.kind, kinds.IntegersKind | kinds.FloatsKind) and member is None:
            expected = _number(self.choose, rule, 1)
            length = self.rank if expected is None else expected
            self.fields[info.attribute] = self._attribute(info, length)
        elif isinstance(info.kind, kinds.EnumerationKind):
            word = rule.split(maxsplit=1)[0]
            known = word in info.kind.members.__members__
            self.fields[info.attribute] = word if known else self._attribute(info)
        elif isinstance(info.kind, kinds.NestedKind):
            self.fields[info.attribute] = self._attribute(info)  # another one
        else:
            expected = _number(self.choose, rule, 0)
            if expected is None:
                self.fields[info.attribute] = self._attribute(info)
            elif member is not None:
                values = list(value)
                values[int(member) : int(member) + 1] = [expected][: len(values) - int(member)]
                self.fields[info.attribute] = tuple(values)
            elif part is not None:
                self.fields[info.attribute] = value._replace(**{part.lower(): expected})
            else:
                self.fields[info.attribute] = expected
        return True

    def _repair_sum(self, info: FieldInfo, parts: list[TensorDesc], axis: int, rule: str) -> bool:
        total = _number(self.choose, rule, 1)
        if total is None or total < 1:
            return False
        parts = parts[:total]
        cuts = sorted(self.choose.shuffled(range(1, total))[: len(parts) - 1])
        edges = [0, *cuts, total]
        self.fields[info.attribute] = tuple(
            _with_size(part, axis, end - start)
            for part, start, end in zip(parts, edges, edges[1:], strict=False)
        )
        return True

    def _repaired(
        self, info: FieldInfo, tensor: TensorDesc, part: str | None, index: str | None, rule: str
    ) -> TensorDesc | None:
        if part == "DataType":
            word = rule.split(maxsplit=1)[0]
            kinds = DataType[word] if word in DataType.__members__ else self._data_type(info.name)
            return TensorDesc(kinds, tensor.sizes)
        if part == "Sizes" and index is None:
            expected = _SIZES.match(rule)
            if expected is None:
                return self._tensor(info)
            drawn = [int(size) for size in re.findall(r"\d+", expected[1])]
            ranks = range(max(len(drawn), tensor.dimension_count), MAX_DIMENSIONS + 1)
            if not ranks:
                return self._tensor(info)
            return _tensor_of(tensor.data_type, _of_rank(drawn, self.choose, ranks))
        number = _number(self.choose, rule, 1)
        if number is None:
            return self._tensor(info)
        if part == "Sizes" and index is not None:
            return _with_size(tensor, int(index), number)
        if part == "DimensionCount" and number <= MAX_DIMENSIONS:
            if rule.startswith("at least") and self.kind.ONE_DIMENSION_COUNT:
                self.rank = number
            return TensorDesc(
                tensor.data_type,
                _of_rank(list(tensor.sizes), self.choose, range(number, number + 1)),
            )
        return None


def attribute(
    choose: Choices,
    kind: Any,
    rank: int,
    data_type: DataType,
    siblings: Fields,
    level: FeatureLevel,
) -> Any:
    """A value of an attribute's kind, without regard to any rule of an operator."""
    if isinstance(kind, kinds.NestedKind):
        definitions = [one for one in kind.definitions if one.nested_since() <= level]
        attributes = [
            _nested(choose, choose.among(definitions), data_type, level)
            for _ in range(choose.between(1, 3) if kind.many else 1)
        ]
        return tuple(attributes) if kind.many else attributes[0]
    if isinstance(kind, kinds.EnumerationKind):
        if kind.members is DataType:
            return data_type
        late = {name for name, since in kind.later if level < since}
        return choose.among([member for member in kind.members if member.suffix not in late])
    if isinstance(kind, kinds.ScalarKind):
        return scalar(choose, DataType.parse(siblings.get(kind.typed_by, data_type)))
    if isinstance(kind, kinds.FloatKind):
        return choose.among(_FLOATS)
    if isinstance(kind, kinds.ScaleBiasKind):
        return (choose.among(_FLOATS), choose.among(_FLOATS))
    if isinstance(kind, kinds.Size2DKind):
        return kinds.Size2D(choose.between(1, 3), choose.between(1, 3))
    if isinstance(kind, kinds.BoolKind):
        return choose.chance(128)
    if isinstance(kind, kinds.FloatsKind):
        return tuple(choose.among(_FLOATS[1:]) for _ in range(rank))
    if isinstance(kind, kinds.IntegersKind):
        return tuple(_small(choose, kind.signed) for _ in range(rank))
    return choose.below(6) if isinstance(kind, kinds.Kind) else None


def scalar(choose: Choices, data_type: DataType) -> Any:
    """A scalar of a type."""
    if data_type.numpy.kind == "f":
        return choose.among(_FLOATS)
    limits = np.iinfo(data_type.numpy)
    return choose.among((0, 1, 3, int(limits.min), int(limits.max), int(limits.max) // 3))


def sizes(choose: Choices, rank: int, maximum: int = 120) -> tuple[int, ...]:
    """Sizes of few elements, most of them short and one perhaps long."""
    sizes = []
    for _ in range(rank):
        limit = max(1, min(maximum, choose.among((4, 3, 2, 9, 70, maximum))))
        sizes.append(choose.between(1, limit))
        maximum //= sizes[-1]
    return tuple(choose.shuffled(sizes)) if choose.chance(100) else tuple(sizes)


def _rows(kind: type[Descriptor], level: FeatureLevel) -> list[Support]:
    # The row of the level; where rows are for some members of an attribute, the last for each.
    last = {repr(row.when): row for row in kind.SUPPORT if row.level <= level}
    return list(last.values())


def _nested(choose: Choices, kind: Any, data_type: DataType, level: FeatureLevel) -> Any:
    fields: Fields = {}
    for info in kind.fields():
        if info.role is Role.ATTRIBUTE and info.counts is None:
            fields[info.attribute] = attribute(choose, info.kind, 1, data_type, fields, level)
    return kind(**fields)


def _small(choose: Choices, signed: bool) -> int:
    if signed:
        return choose.among((1, -1, 2, -2, 3, -7))
    return choose.among((1, 0, 1, 2, 1, 3))


def _number(choose: Choices, rule: str, minimum: int) -> int | None:
    """A number that a rule accepts."""
    if found := _RANGE.match(rule):
        low = int(found[1])
        base, _, power = found[2].partition("^")
        high = int(base) ** int(power or 1)
        return choose.between(low, min(high, low + 40))
    if found := _MULTIPLE.match(rule):
        return int(found[1]) * choose.between(1, 3)
    if found := _DIVISOR.match(rule):
        number = int(found[1])
        return choose.among([n for n in range(1, min(number, 100) + 1) if number % n == 0])
    found = _NUMBER.match(rule)
    if found is None:
        return 1 + choose.below(3) if rule.startswith("a stride other than 0") else None
    number = int(found[2])
    if found[1] == "at most ":
        return choose.between(min(minimum, number), number)
    return number + choose.below(3) if found[1] == "at least " else number


def _with_size(tensor: TensorDesc, axis: int, size: int) -> TensorDesc:
    sizes = list(tensor.sizes)
    if not -len(sizes) <= axis < len(sizes):
        return tensor
    sizes[axis] = size
    return _tensor_of(tensor.data_type, sizes)


def _tensor_of(data_type: DataType, sizes: Any) -> TensorDesc:
    # Sizes that are too large are a rule's business, not an overflow's.
    return TensorDesc(data_type, tuple(min(size, 2**31) for size in sizes))


def _of_rank(sizes: list[int], choose: Choices, ranks: range) -> tuple[int, ...]:
    """Sizes of an accepted rank: cropped in front, or behind 1s."""
    if len(sizes) in ranks:
        return tuple(sizes)
    rank = max(ranks[0], min(len(sizes), ranks[-1]))
    return (1,) * (rank - len(sizes)) + tuple(sizes[max(0, len(sizes) - rank) :])
