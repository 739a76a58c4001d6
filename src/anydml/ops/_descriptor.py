"""What every room is built from: the descriptor base class, its fields and its support rows."""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from anydml import _json
from anydml._named import NamedEnum
from anydml.dtypes import DataType
from anydml.errors import InvalidDescriptorError, ModelError, Violation
from anydml.levels import FeatureLevel
from anydml.program import ArraySpec, Dynamic, IndexUse, Inferred, KernelCall, Program, Slot, Value
from anydml.tensor import TensorDesc

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Sequence[Array]
"""Arrays of a program's slots, in their order."""

Attributes = Mapping[str, Any]
"""A kernel call's attributes by name."""


class Role(enum.Enum):
    """What a descriptor's field is."""

    INPUT = "input tensor"
    OUTPUT = "output tensor"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True)
class FieldInfo:
    """A descriptor's field as its page has it."""

    attribute: str
    name: str
    role: Role
    many: bool
    counts: str | None
    enum: type[NamedEnum] | None
    optional: bool

    def paths(self, value: Any) -> Iterator[tuple[str, TensorDesc]]:
        """Path and descriptor of each tensor in a tensor field's value."""
        if not self.many:
            yield self.name, value
            return
        for i, tensor in enumerate(value):
            yield f"{self.name}[{i}]", tensor


def _field(role: Role, **metadata: Any) -> Any:
    given = {"many": False, "counts": None, "enum": None, "optional": False} | metadata
    default: Any = None if given["optional"] else dataclasses.MISSING
    return dataclasses.field(metadata={"role": role, **given}, default=default)


def input_field() -> Any:
    """A field for one input tensor."""
    return _field(Role.INPUT)


def input_list() -> Any:
    """A field for a list of input tensors."""
    return _field(Role.INPUT, many=True)


def output_field() -> Any:
    """A field for one output tensor."""
    return _field(Role.OUTPUT)


def output_list() -> Any:
    """A field for a list of output tensors."""
    return _field(Role.OUTPUT, many=True)


def uint() -> Any:
    """A field for a UINT attribute."""
    return _field(Role.ATTRIBUTE)


def count_of(tensors: str) -> Any:
    """A UINT field that counts a tensor list; left out, it is the list's length."""
    return _field(Role.ATTRIBUTE, counts=tensors, optional=True)


def enumeration(kind: type[NamedEnum]) -> Any:
    """A field for an enumeration."""
    return _field(Role.ATTRIBUTE, enum=kind)


@dataclass(frozen=True)
class TensorSupport:
    """What one row of a support table says of one tensor."""

    ranks: range
    data_types: tuple[DataType, ...]

    @property
    def ranks_text(self) -> str:
        """The ranks as a message shows them."""
        return span(self.ranks[0], self.ranks[-1])


@dataclass(frozen=True)
class Support:
    """One row of a support table: what a level and those above it, up to the next row, accept.

    Attributes
    ----------
    level : FeatureLevel
        The first level that the row is for.
    tensors : dict of str to TensorSupport
        Ranks and data types by the page's tensor name.
    """

    level: FeatureLevel
    tensors: Mapping[str, TensorSupport]


def support(level: str, **tensors: tuple[range | int, tuple[DataType, ...]]) -> Support:
    """A row, written as ``support("3_0", InputTensor=(range(1, 9), LOW), …)``."""
    return Support(
        FeatureLevel.parse(level),
        {
            name: TensorSupport(range(ranks, ranks + 1) if isinstance(ranks, int) else ranks, types)
            for name, (ranks, types) in tensors.items()
        },
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Descriptor:
    """Base of the operator descriptors: frozen, keyword-only, comparable and hashable."""

    NAME: ClassVar[str]
    """The operator's name, as in ``DML_OPERATOR_…``."""
    SUPPORT: ClassVar[tuple[Support, ...]]
    """The page's support table, lowest level first."""
    KERNEL: ClassVar[str]
    """The kernel that runs it; the same name on every backend."""
    CLAMPS: ClassVar[bool] = False
    """Whether the operator can read the nearest element for an index out of range."""
    IN_PLACE: ClassVar[bool] = False
    """Whether the output may be the first input's own memory."""

    def __post_init__(self) -> None:
        problems: list[Violation] = []
        for info in self.fields():
            value = getattr(self, info.attribute)
            if value is None and info.counts is not None:
                continue
            try:
                object.__setattr__(self, info.attribute, _taken(info, value))
            except (TypeError, ValueError, MemoryError):
                kind = "an integer"
                if info.role is not Role.ATTRIBUTE:
                    kind = "a sequence of TensorDesc" if info.many else "a TensorDesc"
                elif info.enum is not None:
                    kind = "one of " + ", ".join(map(str, info.enum))
                problems.append(Violation(f"{self.NAME}.{info.name}", kind, _json.shown(value)))
        if problems:
            raise InvalidDescriptorError(problems)
        for info in self.fields():
            if info.counts is not None and getattr(self, info.attribute) is None:
                object.__setattr__(self, info.attribute, len(getattr(self, info.counts)))

    @classmethod
    def fields(cls) -> tuple[FieldInfo, ...]:
        """The fields, in the page's order."""
        return _fields_of(cls)  # type: ignore[arg-type]  # typeshed on __hash__ of types

    @classmethod
    def tensor_fields(cls, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """The fields that hold tensors: all, or those of one role."""
        roles = (Role.INPUT, Role.OUTPUT) if role is None else (role,)
        return tuple(info for info in cls.fields() if info.role in roles)

    def tensors(self, role: Role | None = None) -> Iterator[tuple[str, TensorDesc, FieldInfo]]:
        """Path, descriptor and field of every tensor."""
        for info in self.tensor_fields(role):
            for path, tensor in info.paths(getattr(self, info.attribute)):
                yield path, tensor, info

    def check(self) -> Iterator[Violation]:
        """The page's own rules, for every level; paths are relative to the operator."""
        raise NotImplementedError

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, given: Attributes) -> None:
        """The reference implementation: obvious and slow, on natural arrays.

        Every index is in range and counts from the start. What the page leaves undefined is not
        written.
        """
        raise NotImplementedError

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], given: Attributes) -> Inferred:
        """The outputs that inputs and attributes make, in natural form.

        Wider than the page where the array functions are. Raises nothing, and treats sizes as
        anything that compares and adds like an integer. Axes count from the start.
        """
        raise NotImplementedError

    def lower(self, *, clamp: bool = False) -> Program:
        """The kernel call that runs this descriptor, which has been checked.

        Parameters
        ----------
        clamp : bool
            Read the nearest element for an index out of range; where the operator `CLAMPS`.
        """
        raise NotImplementedError

    def _program(
        self, natural: Mapping[str, tuple[int, ...]] | None = None, **attributes: Value
    ) -> Program:
        """A program of one call on all tensors in the page's order.

        `natural` has the sizes of inputs without their padding, where they have any.
        """
        inputs = tuple(
            Slot(
                path,
                ArraySpec((natural or {}).get(path, tensor.sizes), tensor.data_type.numpy),
                tensor.sizes,
            )
            for path, tensor, _ in self.tensors(Role.INPUT)
        )
        inferred = self.infer([slot.spec for slot in inputs], attributes)
        declared = [(path, tensor) for path, tensor, _ in self.tensors(Role.OUTPUT)]
        outputs = tuple(
            Slot(path, ArraySpec(fixed(spec.shape), tensor.data_type.numpy), tensor.sizes)
            for (path, tensor), spec in zip(declared, inferred.outputs, strict=True)
        )
        indices = None
        if inferred.coordinates:
            sizes = tuple(inputs[0].spec.shape[axis] for axis in inferred.coordinates)
            axes = tuple(inputs[0].padding + axis for axis in inferred.coordinates)
            indices = IndexUse(inputs[1].name, axes, sizes)
        call = KernelCall(
            self.KERNEL,
            tuple(slot.name for slot in inputs),
            tuple(slot.name for slot in outputs),
            tuple(attributes.items()),
            ((outputs[0].name, inputs[0].name),) if self.IN_PLACE else (),
            indices,
            tuple(
                slot.name
                for slot, spec in zip(outputs, inferred.outputs, strict=True)
                if fixed(spec.shape) != spec.shape
            ),
        )
        return Program(self.NAME, inputs, outputs, (call,))

    def violations(self, level: FeatureLevel) -> list[Violation]:
        """Every rule that this descriptor breaks at a feature level."""
        found = [*self._support_violations(level)]
        for path, tensor, info in self.tensors():
            output = info.role is Role.OUTPUT
            found.extend(_below(path, violation) for violation in tensor.check(output))
        for info in self.fields():
            value = getattr(self, info.attribute)
            if info.role is Role.ATTRIBUTE and not 0 <= value <= _json.UINT32_MAX:
                found.append(Violation(info.name, "0..2^32 - 1 (UINT)", value))
            if info.counts is not None and value != len(getattr(self, info.counts)):
                length = len(getattr(self, info.counts))
                rule = f"{length} (the length of {page_name(info.counts)})"
                found.append(Violation(info.name, rule, value))
        found.extend(self.check())
        return [Violation(f"{self.NAME}.{item.path}", item.rule, item.got) for item in found]

    def _support_violations(self, level: FeatureLevel) -> Iterator[Violation]:
        first = self.SUPPORT[0].level
        if level < first:
            yield Violation("FeatureLevel", f"{first} or above ({self.NAME} came with it)", level)
            level = first  # what would be wrong there as well
        rows = [row for row in self.SUPPORT if row.level <= level]
        for path, tensor, info in self.tensors():
            accepted = rows[-1].tensors[info.name]
            later = [(row.level, row.tensors[info.name]) for row in self.SUPPORT]
            rank, data_type = tensor.dimension_count, tensor.data_type
            if rank not in accepted.ranks:
                levels = [at for at, row in later if at > level and rank in row.ranks]
                rule = _at_level(accepted.ranks_text, level, rank, levels)
                yield Violation(f"{path}.DimensionCount", rule, rank)
            if data_type not in accepted.data_types:
                levels = [at for at, row in later if at > level and data_type in row.data_types]
                types = ", ".join(map(str, accepted.data_types))
                one_of = types if len(accepted.data_types) == 1 else f"one of {types}"
                rule = _at_level(one_of, level, data_type, levels)
                yield Violation(f"{path}.DataType", rule, data_type)

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
        out: dict[str, Any] = {"type": f"DML_OPERATOR_{self.NAME}"}
        for info in self.fields():
            value = getattr(self, info.attribute)
            if info.role is Role.ATTRIBUTE:
                out[info.name] = value.suffix if info.enum is not None else value
            else:
                out[info.name] = [v.to_json() for v in value] if info.many else value.to_json()
        return out

    @classmethod
    def read_json(cls, value: Any) -> Self:
        """The descriptor that a JSON object of the page's fields describes.

        Raises
        ------
        ModelError
            A field is missing, of the wrong kind or out of its range.
        """
        given = _json.json_object(value)
        read = {
            info.attribute: _json.field(given, info.name, _reader(info)) for info in cls.fields()
        }
        return cls(**read)

    def __repr__(self) -> str:
        parts = []
        for info in self.fields():
            value = getattr(self, info.attribute)
            if info.counts is not None and value == len(getattr(self, info.counts)):
                continue
            shown = repr(value.suffix) if info.enum is not None else repr(value)
            parts.append(f"{info.attribute}={shown}")
        return f"{type(self).__name__}({', '.join(parts)})"


@cache
def _fields_of(kind: type[Descriptor]) -> tuple[FieldInfo, ...]:
    return tuple(
        FieldInfo(item.name, page_name(item.name), **item.metadata)
        for item in dataclasses.fields(kind)
    )


def page_name(attribute: str) -> str:
    """The page's name of a field: ``axis_direction`` is ``AxisDirection``."""
    return "".join(part.capitalize() for part in attribute.split("_"))


def span(low: int, high: int) -> str:
    """A closed range as a message shows it."""
    return f"{low}" if low == high else f"{low}..{high}"


def fixed(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape with the largest sizes in place of those that the data decide."""
    return tuple(size.most if isinstance(size, Dynamic) else size for size in shape)


def _at_level(
    accepted: str, level: FeatureLevel, got: object, later: Sequence[FeatureLevel]
) -> str:
    hint = f"{got} from {later[0]}" if later else f"{got} at no level"
    return f"{accepted} at feature level {level} ({hint})"


def _below(path: str, violation: Violation) -> Violation:
    return Violation(f"{path}.{violation.path}", violation.rule, violation.got)


def _taken(info: FieldInfo, value: Any) -> Any:
    if info.role is Role.ATTRIBUTE:
        if info.enum is not None:
            return info.enum.parse(value)
        if isinstance(value, bool):
            raise TypeError("a bool is no count")
        number = operator.index(value)
        if abs(number) > _json.UINT64_MAX:
            raise ValueError("larger than any field of the header")
        return number
    tensors = tuple(value) if info.many else (value,)
    if not all(isinstance(tensor, TensorDesc) for tensor in tensors):
        raise TypeError("expected TensorDesc")
    return tensors if info.many else value


def _reader(info: FieldInfo) -> Callable[[Any], Any]:
    if info.role is Role.ATTRIBUTE:
        return info.enum.parse if info.enum is not None else _json.json_uint32
    if not info.many:
        return TensorDesc.from_json

    def read(value: Any) -> list[TensorDesc]:
        tensors = []
        for i, item in enumerate(_json.json_array(value)):
            try:
                tensors.append(TensorDesc.from_json(item))
            except ModelError as error:
                raise ModelError(f"[{i}]: {error}") from error
        return tensors

    return read
