"""The base class of the descriptors, from which all operator definitions derive."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Final, Self, dataclass_transform

import numpy as np

from anydml.core import _json
from anydml.core.dtypes import DataType
from anydml.core.errors import ArgumentTypeError, InvalidDescriptorError, Violation
from anydml.core.levels import FeatureLevel
from anydml.core.problems import Location, members
from anydml.core.program import (
    ArraySpec,
    IndexUse,
    Inferred,
    Intermediate,
    KernelCall,
    Program,
    Slot,
)
from anydml.core.rules import UNKNOWN, Rules, differ, find_violations, is_known, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import EXACT, Tolerance
from anydml.engines import Engine
from anydml.ops import _deviations
from anydml.ops._advice import at_level, operator_without_options, why_not_fused
from anydml.ops._deviations import Deviation
from anydml.ops._fields import PREFIX, FieldInfo, Role
from anydml.ops._pages import PAGES, Support, TensorSupport
from anydml.ops._shapes import Named, declared_as, fixed, spec_of

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Sequence[Array]
"""Arrays of a program's slots, in their order."""

Attributes = Mapping[str, Any]
"""A kernel call's attributes by name."""


_NO_TENSOR: Final = TensorDesc(DataType.FLOAT32, ())
DESCRIBED_IN: Final = ("desc", "Desc")
"""Members of an operator's JSON that may have its fields, in place of the operator's own."""

DEFINED: Final[dict[str, type[Descriptor]]] = {}
"""Every definition that has been loaded and has a page, by the operator's names."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True, repr=False)
class Descriptor:
    """Base of the operator descriptors, dataclasses all: frozen, keyword-only, comparable."""

    NAME: ClassVar[str]
    """The operator's name, as in ``DML_OPERATOR_…``."""
    ALIASES: ClassVar[tuple[str, ...]] = ()
    """Other names of that form."""
    SUPPORT: ClassVar[tuple[Support, ...]]
    """The page's support table, lowest level first: `PAGES` has it by `NAME`."""
    KERNEL: ClassVar[str]
    """The kernel that runs it; the same name on every backend."""
    ONE_DIMENSION_COUNT: ClassVar[bool] = True
    """Whether all tensors have the first one's DimensionCount."""
    NATURAL: ClassVar[bool] = True
    """Whether `infer` omits leading sizes of 1, which only equalize DimensionCounts."""
    CLAMPS: ClassVar[bool] = False
    """Whether the operator can read the nearest element for an index out of range."""
    IN_PLACE: ClassVar[bool] = False
    """Whether the output may use the memory of the first input; by default as the page says."""
    FUSED: ClassVar[bool] = False
    """Whether it can be nested in another operator, without tensors."""
    FUSED_SINCE: ClassVar[FeatureLevel | None] = None
    """The level that allowed nesting, if the operator itself is older."""
    WIDENS: ClassVar[bool] = False
    """Whether `compute` gets floats in the type that is computed in, rather than as they are."""
    MULTIPLIES: ClassVar[bool] = False
    """Whether an engine that `multiplies_halves` gives `compute` float16 as it is nevertheless."""
    WORKING_BYTES: ClassVar[int] = 40
    """The most bytes that `compute` takes in float64 for each element of inputs and outputs."""
    IN_PIECES: ClassVar[bool] = False
    """Whether it takes the engine's `scratch_nbytes` besides, which no size of a tensor changes."""
    TOLERANCE: ClassVar[Tolerance] = EXACT
    """The largest accepted difference from the exact result."""
    EXAMPLES: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Examples of the operator's page: fields, with arrays, or nested lists, for the tensors.

    A computed operator leaves out the outputs that its inputs determine.
    """
    ALSO_KNOWN_AS: ClassVar[str] = ""
    """Full names of what has this meaning elsewhere, separated by blanks: ``onnx.TopK torch.topk``.

    One operator has a name: of several versions, the latest.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(frozen=True, kw_only=True, repr=False)(cls)
        page = PAGES.get(cls.__dict__.get("NAME", ""))
        if page is not None:
            cls.SUPPORT = page.support
            cls.IN_PLACE = cls.__dict__.get("IN_PLACE", page.in_place)
            DEFINED.update(dict.fromkeys((cls.NAME, *cls.ALIASES), cls))

    def __new__(cls, *values: Any, **fields: Any) -> Self:
        if values:
            raise ArgumentTypeError(
                f"{cls.__name__}: expected fields by keyword, got {len(values)} by position"
            )
        names = [info.attribute for info in cls.fields()]
        for name in fields:
            if name not in names:
                raise ArgumentTypeError(
                    f"{cls.__name__}: unexpected field {name!r}; the fields are {', '.join(names)}"
                    f"{_json.did_you_mean(name, names)}"
                )
        required = [i.attribute for i in cls.fields() if not cls._may_lack(i) and i.counts is None]
        missing = [name for name in required if name not in fields]
        if missing:
            raise ArgumentTypeError(
                f"{cls.__name__}: expected a value for {', '.join(missing)}, got none"
                f"{why_not_fused(cls, fields, DEFINED.values())}"
            )
        return super().__new__(cls)

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), {info.attribute: getattr(self, info.attribute) for info in self.fields()}

    def __post_init__(self) -> None:
        problems: list[Violation] = []
        for info in self.fields():
            value = getattr(self, info.attribute)
            if value is None and (self._may_lack(info) or info.counts is not None):
                continue
            try:
                object.__setattr__(self, info.attribute, info.kind.convert(value))
            except (TypeError, ValueError, MemoryError):
                got = f"{_json.short_repr(value)}{info.kind.did_you_mean(value)}"
                problems.append(Violation(f"{self.NAME}.{info.name}", info.kind.accepted, got))
        if problems:
            raise InvalidDescriptorError(problems)
        for info in self.fields():
            value = getattr(self, info.attribute)
            if info.counts is not None and value is None:
                object.__setattr__(self, info.attribute, self._length(info.counts))
            elif value is not None:
                resolved = info.kind.resolve(value, vars(self))
                object.__setattr__(self, info.attribute, resolved)

    @classmethod
    def fields(cls) -> tuple[FieldInfo, ...]:
        """The fields, in the page's order."""
        return _fields_of(cls)  # type: ignore[arg-type]  # typeshed on __hash__ of types

    @classmethod
    def _may_lack(cls, info: FieldInfo) -> bool:
        """Whether a field may be None: an optional one, or a tensor where it can be nested."""
        return info.optional or (cls.FUSED and info.role is not Role.ATTRIBUTE)

    def _length(self, attribute: str) -> int:
        value = getattr(self, attribute)
        return 0 if value is None else len(value)

    @classmethod
    def examples(cls) -> Sequence[Mapping[str, Any]]:
        """`EXAMPLES`, completed."""
        return cls.EXAMPLES

    @classmethod
    def tensor_fields(cls, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """The fields that hold tensors: all, or those of one role."""
        return _tensor_fields_of(cls, role)  # type: ignore[arg-type]  # typeshed on __hash__ of types

    def bind_points(self, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """The tensor fields without those that this descriptor leaves out."""
        fields = self.tensor_fields(role)
        return tuple(info for info in fields if getattr(self, info.attribute) is not None)

    def paths(self, info: FieldInfo) -> Iterator[tuple[str, TensorDesc]]:
        """Path and descriptor of each tensor in a tensor field."""
        return info.paths(getattr(self, info.attribute))

    def tensors(self, role: Role | None = None) -> Iterator[tuple[str, TensorDesc, FieldInfo]]:
        """Path, descriptor and field of every tensor."""
        for info in self.tensor_fields(role):
            for path, tensor in self.paths(info):
                yield path, tensor, info

    def check(self) -> Rules:
        """The page's own rules, for every level; paths are relative to the operator.

        Without those that `infer` has: how inputs fit together, and what outputs they make.
        """
        yield from ()

    def attributes(self) -> Attributes:
        """The attributes for the kernel, `infer` and the reference implementation.

        It must work for unknown values, because `infer` is called if rules are broken, too.
        """
        return {
            info.attribute: getattr(self, info.attribute)
            for info in self.fields()
            if info.role is Role.ATTRIBUTE and info.counts is None
        }

    def natural_sizes(self) -> Mapping[str, tuple[int, ...]]:
        """The sizes of padded inputs without their padding."""
        return {}

    def rules_at(self, level: FeatureLevel) -> Rules:
        """The page's rules that apply at some levels only, except for its table."""
        yield from ()

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        """The reference implementation: simple and slow, on natural arrays.

        Every index is in range and counts from the start. Undefined elements are not written.
        """
        raise NotImplementedError

    @staticmethod
    def compute(e: Engine, *tensors: Any, **attributes: Any) -> Any:
        """Compute the outputs, as arrays of the engine, from the inputs in the page's order.

        Each member of a tensor list is a separate argument; an omitted tensor is None. Several
        outputs are returned as a tuple, which includes the outputs that the descriptor omits. An
        operator that has a kernel may have this, too: compiled code then includes it.
        """
        raise NotImplementedError

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        """The outputs that inputs and attributes make, in natural form.

        The only rule about shapes: the array functions ask it, and a descriptor's outputs are
        compared with it. Violations are by the page's names. Wider than the page where the array
        functions are. Raises nothing, and treats sizes as anything that compares and adds like an
        integer. Axes count from the start. An optional input that is left out is None.

        Values that are invalid are `UNKNOWN`. A decision by one ends the rule that makes it: the
        rules are generators, which `Inferred.of` runs, and `known` makes the sizes of outputs.
        """
        raise NotImplementedError

    def inferred(self) -> Inferred:
        """Apply `infer` to this descriptor's inputs and attributes."""
        return self.infer(self._operands(), self.attributes())

    def lower(self) -> Program:
        """The kernel calls that run this descriptor, which has been checked."""
        natural = self.natural_sizes()
        inputs, outputs = (
            {
                path: Slot(path, spec_of(stored, natural.get(path)), stored.sizes)
                for path, tensor, _ in self.tensors(role)
                for stored in [tensor.storage]
            }
            for role in (Role.INPUT, Role.OUTPUT)
        )
        attributes = tuple(self.attributes().items())
        names = self._slots(Role.INPUT), self._slots(Role.OUTPUT)
        calls, between = self._calls(KernelCall(self.KERNEL, *names, attributes), inputs, outputs)
        slots = tuple(inputs.values()), tuple(outputs.values())
        return Program(self.NAME, *slots, tuple(calls), tuple(between))

    def _calls(
        self, call: KernelCall, inputs: dict[str, Slot], outputs: dict[str, Slot]
    ) -> tuple[Sequence[KernelCall], Sequence[Intermediate]]:
        # The calls that make one whole, and what is between them; brings outputs in natural form.
        operands = [None if path is None else inputs[path].spec for path in call.inputs]
        # mypy knows no pairs of names and values of several types.
        inferred = self.infer(operands, dict(call.attributes))  # type: ignore[arg-type]
        if inferred.violations:  # of a descriptor that has not been checked
            raise InvalidDescriptorError(inferred.violations)
        undefined = []
        for path, spec in zip(call.outputs, inferred.outputs, strict=True):
            if path is not None:
                shape, slot = fixed(spec.shape), outputs[path]
                outputs[path] = replace(slot, spec=ArraySpec(shape, slot.spec.dtype))
                undefined += [path] if shape != spec.shape else []
        indices = None
        if inferred.coordinates:
            indexed, lookup = list(inputs.values())[:2]
            sizes = tuple(indexed.spec.shape[axis] for axis in inferred.coordinates)
            axes = tuple(indexed.padding + axis for axis in inferred.coordinates)
            indices = IndexUse(lookup.name, axes, sizes)
        in_place = ((next(iter(outputs)), next(iter(inputs))),) if self.IN_PLACE else ()
        whole = replace(call, in_place=in_place, indices=indices, leaves_undefined=tuple(undefined))
        return (whole,), ()

    def _operands(self) -> list[Any]:
        # The operands of `infer`, in natural form.
        natural = self.natural_sizes()
        specs: dict[str | None, ArraySpec] = {
            path: spec_of(tensor, natural.get(path)) for path, tensor, _ in self.tensors(Role.INPUT)
        }
        return [specs.get(path) for path in self._slots(Role.INPUT)]

    def _slots(self, role: Role) -> tuple[str | None, ...]:
        # The names of the slots in the page's order; None for an omitted tensor.
        names: list[str | None] = []
        for info in self.tensor_fields(role):
            value = getattr(self, info.attribute)
            names += [None] if value is None else [path for path, _ in info.paths(value)]
        return tuple(names)

    def violations(self, level: FeatureLevel) -> list[Violation]:
        """Every rule that this descriptor breaks.

        The rules are checked in stages. A value that breaks a rule is unknown to the rules of later
        stages, which end where they read it.
        """
        found, _ = _deviations.split(self.NAME, self._page_violations(level), level)
        return [Violation(f"{self.NAME}.{item.path}", item.rule, item.got) for item in found]

    def _page_violations(self, level: FeatureLevel) -> list[Violation]:
        found = [*self._fused_violations()]
        if not found:
            kind = type(self)
            alone = kind._table_rules, kind._value_rules
            found = self._find_in_stages(level, alone, (kind._page_rules,), (kind._shape_rules,))
            found += find_violations(self._count_rules(found))
        return found

    def deviations(self, level: FeatureLevel) -> list[Deviation]:
        """List what DirectML accepts of this descriptor although its page forbids it."""
        if not _deviations.deviations_of(self.NAME):
            return []
        return _deviations.split(self.NAME, self._page_violations(level), level)[1]

    def minimum_level(self) -> FeatureLevel | None:
        """The lowest feature level that accepts this descriptor, or None when none does."""
        levels = sorted(FeatureLevel)  # each accepts what those before it accept
        since = levels.index(self.SUPPORT[0].level)
        if not self.violations(levels[since]):  # as most operators
            return levels[since]
        if self.violations(levels[-1]):  # as most that are wrong
            return None
        first = bisect_left(levels, True, since, key=lambda level: not self.violations(level))
        return levels[first]

    def _fused_violations(self) -> Iterator[Violation]:
        for info in self.tensor_fields() if self.FUSED else ():
            if getattr(self, info.attribute) is None:
                rule = f"{info.kind.accepted} (only a fused activation may omit it)"
                yield Violation(info.name, rule, None)

    def _find_in_stages(
        self, level: FeatureLevel, *stages: Sequence[Callable[[Self, FeatureLevel], Rules]]
    ) -> list[Violation]:
        found: list[Violation] = []  # also observed deviations, which hide no rule
        reported: set[str] = set()
        desc = self
        for stage in stages:
            wrong = []
            for rules in stage:
                new = [v for v in find_violations(rules(desc, level)) if v.path not in reported]
                found += new
                wrong += [v.path for v in _deviations.split(self.NAME, new, level)[0]]
                reported.update(wrong)
            desc = desc.without(*map(members, wrong))
        return found

    def without(self, *locations: Location) -> Self:
        """A copy in which the values at these locations are unknown."""
        if not locations:
            return self
        names: dict[Any, str] = {info.name: info.attribute for info in self.fields()}
        values = dict(vars(self))
        for name, *below in locations:
            if name in names:
                values[names[name]] = _forget(values[names[name]], below)
        return self.unchecked(values)

    @classmethod
    def unchecked(cls, values: Mapping[str, Any]) -> Self:
        """A descriptor of these values, some of which are unknown, to find violations of others."""
        desc = object.__new__(cls)
        vars(desc).update(values)
        return desc

    def named(self, attribute: str) -> Named:
        """A tensor as rules take it: its name on the page, and its shape and type."""
        return page_name(attribute), spec_of(getattr(self, attribute))

    def _table_rules(self, level: FeatureLevel) -> Rules:
        """The rules of the page's table, and the common DimensionCount."""
        first = self.SUPPORT[0].level
        if level < first:
            rule = f"{first} or above (the level that introduced {self.NAME})"
            yield Violation("FeatureLevel", rule, level)
            level = first  # also report violations at that level
        table = [row for row in self.SUPPORT if self._is_for(row)]
        accepted_at_level = [row for row in table if row.level <= level][-1].tensors
        tensors = [*self.tensors()]
        common = self.ONE_DIMENSION_COUNT and _common_rank(tensors, accepted_at_level)
        for path, tensor, info in tensors:
            accepted = accepted_at_level[info.name]
            rank, data_type = tensor.dimension_count, tensor.data_type
            if common and differ(rank, common[1]):
                rule = f"{common[1]} ({common[0]}.DimensionCount)"
                yield Violation(f"{path}.DimensionCount", rule, rank)
            elif rank is not UNKNOWN and rank not in accepted.ranks:
                levels = [row.level for row in table if rank in row.tensors[info.name].ranks]
                rule = at_level(accepted.ranks_text, level, rank, levels)
                yield Violation(f"{path}.DimensionCount", rule, rank)
            if data_type is not UNKNOWN and data_type not in accepted.data_types:
                rows = [(row.level, row.tensors[info.name].data_types) for row in table]
                levels = [at for at, types in rows if data_type in types]
                types = ", ".join(map(str, accepted.data_types))
                one_of = types if len(accepted.data_types) == 1 else f"one of {types}"
                alternative = operator_without_options(type(self), info.name, data_type)
                rule = at_level(one_of, level, data_type, levels, alternative)
                yield Violation(f"{path}.DataType", rule, data_type)

    def _value_rules(self, level: FeatureLevel) -> Rules:
        """The rules of each tensor and each attribute alone."""
        for path, tensor, info in self.tensors():
            for item in tensor.check(info.role is Role.OUTPUT):
                yield Violation(f"{path}.{item.path}", item.rule, item.got)
        for info in self.fields():
            value = getattr(self, info.attribute)
            if info.role is Role.ATTRIBUTE and value is not None and value is not UNKNOWN:
                yield self._range_rules(info, value, level)

    def _range_rules(self, info: FieldInfo, value: Any, level: FeatureLevel) -> Rules:
        for below, rule, got in info.kind.find_out_of_range(value, vars(self), level):
            yield Violation(f"{info.name}{below}", rule, got)

    def _page_rules(self, level: FeatureLevel) -> Rules:
        yield self.rules_at(level)
        yield self.check()

    def _shape_rules(self, level: FeatureLevel) -> Rules:
        """The rules of `infer`, and outputs that differ from its result."""
        if not all(is_known(getattr(self, i.attribute)) for i in self.tensor_fields(Role.INPUT)):
            return  # a list of tensors that could not be read
        inferred = self.inferred()
        yield inferred.violations
        reported = {item.path for item in inferred.violations}
        outputs = {path: tensor for path, tensor, _ in self.tensors(Role.OUTPUT)}
        made = zip(self._slots(Role.OUTPUT), inferred.outputs, strict=True)
        for i, (path, spec) in enumerate(made):
            if path is not None:
                reasons = () if i else inferred.reasons
                certain = not inferred.violations
                rules = declared_as(path, outputs[path], spec, self.NATURAL, reasons, certain)
                yield (item for item in find_violations(rules) if item.path not in reported)

    def _count_rules(self, found: Sequence[Violation]) -> Rules:
        """The rules of counts: an array that has a wrong length counts as if it were right."""
        for info in self.fields():
            if info.counts is not None:
                yield self._count_rule(info, info.counts, found)

    def _count_rule(self, info: FieldInfo, counted: str, found: Sequence[Violation]) -> Rules:
        value, length = getattr(self, info.attribute), self._length(counted)
        name = page_name(counted)
        why = f"the length of {name}"
        for item in found:
            accepted = item.accepted if item.path == name else None
            if accepted and "length" in accepted:
                length, why = accepted["length"], item.rule.partition("(")[2].removesuffix(")")
        if differ(value, length):
            yield Violation(info.name, f"{length} ({why})", value)

    def violations_nested(self, level: FeatureLevel) -> Iterator[Violation]:
        """Every rule that it breaks inside another operator, with paths relative to itself.

        Rules about tensors are excluded, because a nested operator has none.
        """
        since = self.nested_since()
        if level < since:
            what = "from which {} can be fused" if self.FUSED_SINCE else "that introduced {}"
            rule = f"{since} or above (the level {what.format(self.NAME)})"
            yield Violation("FeatureLevel", rule, level)
        for info in self.bind_points():
            yield Violation(info.name, "None (a fused activation has no tensors)", "a tensor")
        kind = type(self)
        tensors = {info.attribute: None for info in self.tensor_fields()}
        alone = self.unchecked({**vars(self), **tensors})
        yield from alone._find_in_stages(
            max(level, since), (kind._value_rules,), (kind._page_rules,)
        )

    @classmethod
    def nested_since(cls) -> FeatureLevel:
        """The lowest level at which it can be nested in another operator."""
        return cls.FUSED_SINCE or cls.SUPPORT[0].level

    def _is_for(self, row: Support) -> bool:
        return all(
            getattr(self, info.attribute).suffix in row.when[info.name]
            for info in (self.fields() if row.when else ())
            if info.name in row.when
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON form: ``type``, then the page's fields, as a model's dispatchable has them.

        Examples
        --------
        >>> import anydml as dml
        >>> tensor = dml.TensorDesc("FLOAT32", (4,))
        >>> desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
        >>> dml.from_json(desc.to_json()) == desc
        True
        """
        out: dict[str, Any] = {"type": f"{PREFIX}{self.NAME}"}
        for info in self.fields():
            value = getattr(self, info.attribute)
            if value is not None:
                out[info.name] = info.kind.write(value)
        return out

    @classmethod
    def read_json(cls, value: Any) -> Self:
        """The descriptor that a JSON object of the page's fields describes.

        Raises
        ------
        ModelError
            Fields are missing, of the wrong kind or out of their range: all of them at once.
        """
        record = _json.json_object(value)
        values: dict[str, Any] = {}
        faults = _json.Faults()
        for info in cls.fields():
            values[info.attribute] = _read_field(faults, record, info, values, cls._may_lack(info))
        faults.finish(lambda: cls._partial(values))
        return cls(**values)

    @classmethod
    def _partial(cls, values: Mapping[str, Any]) -> Self:
        """The descriptor of what could be read, to find the violations of it."""
        desc = cls.unchecked(values)
        for info in cls.fields():
            value = values[info.attribute]
            if info.counts is not None and value is None:
                vars(desc)[info.attribute] = known(desc._length, info.counts)
            elif info.role is Role.ATTRIBUTE and is_known(value) and value is not None:
                try:
                    vars(desc)[info.attribute] = info.kind.convert(value)
                except (TypeError, ValueError):  # a member is unknown
                    vars(desc)[info.attribute] = UNKNOWN
        return desc

    @classmethod
    def read_described(cls, record: Mapping[str, Any]) -> Self:
        """Call `read_json` with fields that are next to ``type``, or in ``desc`` or ``Desc``."""
        for below in DESCRIBED_IN:
            if below in record:
                _json.field(record, below, _json.json_object)  # which a message names
                return _json.field(record, below, cls.read_json, shown="")
        return cls.read_json(record)

    def __repr__(self) -> str:
        parts = []
        for info in self.fields():
            value = getattr(self, info.attribute)
            if value is None or (info.counts and value == self._length(info.counts)):
                continue
            parts.append(f"{info.attribute}={info.kind.short_repr(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _read_field(
    faults: _json.Faults,
    record: Mapping[str, Any],
    info: FieldInfo,
    values: Mapping[str, Any],
    may_lack: bool,
) -> Any:
    def value_of(value: Any) -> Any:
        if not all(is_known(values[name]) for name in info.kind.needs):
            return UNKNOWN  # a field that it depends on is invalid, which is reported
        return None if value is None and may_lack else info.kind.parse(value, values)

    default = {"default": None} if may_lack else {}
    found = faults.partial_field(record, info.name, value_of, **default)
    if info.role is Role.ATTRIBUTE or info.many or is_known(found):
        return found
    return _NO_TENSOR.without()


@cache
def _fields_of(kind: type[Descriptor]) -> tuple[FieldInfo, ...]:
    return tuple(
        FieldInfo(item.name, page_name(item.name), **item.metadata)
        for item in dataclasses.fields(kind)
    )


def _forget(value: Any, location: Sequence[Any]) -> Any:
    """Return a value whose part at a location is unknown."""
    if value is None or value is UNKNOWN:
        return value
    if isinstance(value, TensorDesc):
        return value.without(*location)
    if isinstance(value, Descriptor) and location:
        return value.without(tuple(location))
    if not location:  # a list of tensors has a wrong length only: the tensors are known
        is_list = isinstance(value, tuple) and all(isinstance(item, TensorDesc) for item in value)
        return value if is_list and value else UNKNOWN
    if isinstance(location[0], str):  # a member of a structure
        return value._replace(**{location[0].lower(): UNKNOWN})
    changed = [*value]
    changed[location[0]] = _forget(value[location[0]], location[1:])
    return tuple(changed)


def _common_rank(
    tensors: Sequence[tuple[str, TensorDesc, FieldInfo]], accepted: Mapping[str, TensorSupport]
) -> tuple[str, int] | None:
    """The DimensionCount that most tensors have, and the first of these; None if none has it."""
    ranks = [
        (path, tensor.dimension_count)
        for path, tensor, info in tensors
        if tensor.sizes is not UNKNOWN and tensor.dimension_count in accepted[info.name].ranks
    ]
    counts = Counter(rank for _, rank in ranks)
    return max(ranks, key=lambda item: counts[item[1]], default=None)


@cache
def _tensor_fields_of(kind: type[Descriptor], role: Role | None) -> tuple[FieldInfo, ...]:
    roles = (Role.INPUT, Role.OUTPUT) if role is None else (role,)
    return tuple(info for info in kind.fields() if info.role in roles)


def page_name(attribute: str) -> str:
    """The page's name of a field: ``axis_direction`` is ``AxisDirection``, ``roi`` is ``ROI``."""
    return "".join("ROI" if part == "roi" else part.capitalize() for part in attribute.split("_"))
