"""Operators that calculate, defined by one function `compute` on an array namespace.

A computed operator defines its fields, the shapes and types of its outputs (`infer`) and their
values (`compute`). The base class does the rest: a scale and bias and a fused activation become
separate calls, and omitted optional tensors are passed as None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Self

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import InvalidDescriptorError, Violation
from anydml.core.program import ArraySpec, Inferred, Intermediate, KernelCall, Program, Slot
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._fields import FieldInfo, NestedKind, Role
from anydml.ops._shapes import spec_of

_FREE: Final = ArraySpec((), None)
"""An output whose type the caller chooses."""
_OWN_CALLS = ("scale_bias", "fused_activation")
"""Fields that become calls of their own, before and after the operator's."""


class Computed(Descriptor):
    """Base of the operators that calculate."""

    ONE_DIMENSION_COUNT = False
    NATURAL = False
    WIDENS = True
    ELEMENTWISE: ClassVar[bool] = False
    """Whether an output element is made of the input elements at the same place alone."""
    WORKING_BYTES: ClassVar[int] = 8
    """The most bytes that `compute` takes in float64 for each element of inputs and outputs."""
    IN_PIECES: ClassVar[bool] = False
    """Whether it takes the engine's `scratch_nbytes` besides, which no size of a tensor changes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "NAME" in vars(cls):
            cls.KERNEL = cls.NAME

    def _can_infer(self) -> bool:
        inputs = self.tensors(Role.INPUT)
        return all(_in_table(self, info.name, tensor) for _, tensor, info in inputs)

    def _with_accepted_types(self) -> Self:
        """A copy whose outputs have types of the table."""
        changed = {
            info.attribute: replace(tensor, data_type=_type_of(type(self), info.name, _FREE, None))
            for _, tensor, info in self.tensors(Role.OUTPUT)
            if not (info.many or _in_table(self, info.name, tensor))
        }
        return replace(self, **changed) if changed else self

    @classmethod
    def with_outputs(cls, **fields: Any) -> Self:
        """Create a descriptor with packed output tensors, as the inputs and attributes imply.

        Parameters
        ----------
        **fields
            Input tensors and attributes by name; omitted ones have their defaults. None omits an
            optional output. ``output_type`` is the data type of outputs whose type the caller
            chooses; by default the last one of the page's table with at least 8 bits.

        Raises
        ------
        InvalidDescriptorError
            The inputs break a rule.
        """
        names = [info.attribute for info in cls.tensor_fields(Role.OUTPUT)]
        chosen = fields.pop("output_type", None)
        unknown = TensorDesc(DataType.UINT32, (1,))
        draft = cls(**{**dict.fromkeys(names, unknown), **fields})
        inferred = draft.inferred()
        if inferred.violations:
            raise InvalidDescriptorError(
                [Violation(f"{cls.NAME}.{v.path}", v.rule, v.got) for v in inferred.violations]
            )
        tensors = {
            info.attribute: TensorDesc(_type_of(cls, info.name, spec, chosen), spec.shape)
            for info, spec in zip(cls.tensor_fields(Role.OUTPUT), inferred.outputs, strict=True)
            if getattr(draft, info.attribute) is not None
        }
        return replace(draft, **tensors)

    def attributes(self) -> Attributes:
        infos = {info.attribute: info for info in self.fields()}
        return {
            name: _value_of(value, infos[name])
            for name, value in super().attributes().items()
            if name not in _OWN_CALLS
        }

    def _shape_violations(self, known: Collection[str]) -> Iterator[Violation]:
        desc = self._with_accepted_types()
        yield from super(Computed, desc)._shape_violations(known)
        fused, inferred = getattr(self, "fused_activation", None), desc.inferred()
        if fused is not None and not inferred.violations:
            # A fused activation has no tensors: its input is the output of this operator.
            for item in fused.infer(inferred.outputs[:1], fused.attributes()).violations:
                yield Violation(f"FusedActivation.{item.path}", item.rule, item.got)

    def _operands(self, specs: Mapping[str | None, ArraySpec]) -> list[Any]:
        fields = [(info, getattr(self, info.attribute)) for info in self.tensor_fields(Role.INPUT)]
        return [
            tuple(map(spec_of, value)) if info.many else value and spec_of(value)
            for info, value in fields
        ]

    def lower(self) -> Program:
        slots = {
            path: Slot(path, spec_of(stored), stored.sizes)
            for path, tensor, _ in self.tensors()
            for stored in [tensor.storage]
        }
        inputs, outputs = list(self._slots(Role.INPUT)), list(self._slots(Role.OUTPUT))
        pairs = list(self._in_place_pairs(inputs, outputs, slots)) if self.IN_PLACE else []
        after: list[KernelCall] = []
        between: list[Intermediate] = []
        before = _scaling(self, "InputTensor", "scaled")
        if before:
            between.append(Intermediate("scaled", slots["InputTensor"].spec))
            inputs[inputs.index("InputTensor")] = "scaled"
        fused = getattr(self, "fused_activation", None)
        if fused is not None:
            last = next(iter(self.tensors(Role.OUTPUT)))[0]
            spec = _wide(slots[last].spec)
            between.append(Intermediate("unactivated", spec))
            after = _scaling(fused, "unactivated", "scaled result")
            between += [Intermediate("scaled result", spec)] if after else []
            source = after[-1].outputs[0] if after else "unactivated"
            fused_attributes = tuple(fused.attributes().items())
            after.append(KernelCall(fused.KERNEL, (source,), (last,), fused_attributes))
            outputs[outputs.index(last)] = "unactivated"
        attributes = tuple(self.attributes().items())
        call = KernelCall(self.KERNEL, tuple(inputs), tuple(outputs), attributes)
        calls = (
            replace(call, in_place=tuple(pair for pair in pairs if pair[0] in call.outputs))
            for call in (*before, call, *after)
        )
        roles = {path: info.role for path, _, info in self.tensors()}
        return Program(
            self.NAME,
            tuple(slot for slot in slots.values() if roles[slot.name] is Role.INPUT),
            tuple(slot for slot in slots.values() if roles[slot.name] is Role.OUTPUT),
            tuple(calls),
            tuple(between),
        )

    @staticmethod
    def _in_place_pairs(
        inputs: Sequence[str | None], outputs: Sequence[str | None], slots: Mapping[str, Slot]
    ) -> Iterator[tuple[str, str]]:
        for output in outputs:
            for name in inputs:
                pair = name in slots and output in slots
                if pair and slots[str(name)].spec == slots[str(output)].spec:
                    yield str(output), str(name)


class Sized(Computed):
    """Base of the operators for which the caller chooses the sizes of the first output.

    These sizes are passed to `infer` and `compute` as ``shape``.
    """

    def attributes(self) -> Attributes:
        (_, first, _), *_ = self.tensors(Role.OUTPUT)
        return {"shape": first.sizes, **super().attributes()}


def _scaling(desc: Any, source: str, target: str) -> list[KernelCall]:
    # The call that applies an operator's own scale and bias, if it has any.
    scale = getattr(desc, "scale_bias", None)
    if scale is None:
        return []
    numbers = (("scaled", True), ("scale", scale.scale), ("bias", scale.bias))
    return [KernelCall("identity", (source,), (target,), numbers)]


def _value_of(value: Any, info: FieldInfo) -> Any:
    # A program is data: nested operators are the names of their kernels and attributes.
    if not isinstance(info.kind, NestedKind):
        return value
    return tuple((nested.KERNEL, tuple(nested.attributes().items())) for nested in value)


def _type_of(
    kind: type[Descriptor], name: str, spec: ArraySpec, chosen: DataType | str | None
) -> DataType:
    if spec.dtype is not None:
        return DataType.from_numpy(spec.dtype)
    types = kind.SUPPORT[-1].tensors[name].data_types
    data_type = None if chosen is None else DataType.parse(chosen)
    return data_type if data_type in types else [t for t in types if t.bits >= 8][-1]


def _wide(spec: ArraySpec) -> ArraySpec:
    # The intermediate result before an activation stays wide, so that rounding happens once.
    return ArraySpec(spec.shape, np.dtype(np.float32)) if spec.dtype == np.float16 else spec


def _in_table(desc: Descriptor, name: str, tensor: TensorDesc) -> bool:
    rows = [row.tensors[name] for row in desc.SUPPORT if name in row.tensors]
    rank, data_type = tensor.dimension_count, tensor.data_type
    return any(rank in row.ranks and data_type in row.data_types for row in rows)


def same_as(
    first: tuple[str, ArraySpec],
    *others: tuple[str, ArraySpec | None],
    types: bool = True,
    sizes: bool = True,
) -> Iterator[Violation]:
    """Check that inputs have the type, the sizes, or both, of the first one; None is skipped."""
    name, spec = first
    for other, other_spec in others:
        if other_spec is None:
            continue
        if types and other_spec.dtype != spec.dtype:
            rule = f"{np.dtype(spec.dtype).name.upper()} ({name}.DataType)"
            yield Violation(f"{other}.DataType", rule, np.dtype(other_spec.dtype).name.upper())
        if not sizes:
            continue
        if len(other_spec.shape) != len(spec.shape):
            yield from same_rank(first, (other, other_spec))
            continue
        for i, (expected, got) in enumerate(zip(spec.shape, other_spec.shape, strict=True)):
            if expected != got:
                yield Violation(f"{other}.Sizes[{i}]", f"{expected} ({name}.Sizes[{i}])", got)


def same_rank(
    first: tuple[str, ArraySpec], *others: tuple[str, ArraySpec | None]
) -> Iterator[Violation]:
    """Check that inputs have the DimensionCount of the first one; None is skipped."""
    expected = len(first[1].shape)
    for name, spec in others:
        if spec is not None and len(spec.shape) != expected:
            rule = f"{expected} ({first[0]}.DimensionCount)"
            yield Violation(f"{name}.DimensionCount", rule, len(spec.shape))


class Map(Computed):
    """Base of the operators whose inputs and output all have the sizes and the type of the first
    input.

    If only some tensors share a type, `SAME_TYPES` names these. Other inputs may have any type, and
    the caller chooses the type of an output that is not named.
    """

    ELEMENTWISE = True
    WORKING_BYTES = 16
    SAME_TYPES: ClassVar[Sequence[str] | None] = None
    INPUTS: ClassVar[Sequence[Any]] = ([-2.0, -0.5, 0.0, 0.5, 3.0], [4.0, -1.0, 2.0, 0.5, 1.0])
    """Inputs of the examples of operators that define no inputs."""

    @classmethod
    def examples(cls) -> list[Mapping[str, Any]]:
        """`EXAMPLES` with inputs."""
        names = [info.attribute for info in cls.tensor_fields(Role.INPUT)]
        inputs = dict(zip(names, cls.INPUTS, strict=False))
        return [{**inputs, **example} for example in cls.EXAMPLES or ({},)]

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        names = [info.name for info in cls.tensor_fields(Role.INPUT)]
        specs = {n: spec for n, spec in zip(names, inputs, strict=True) if spec is not None}
        first, *others = specs.items()
        same = specs if cls.SAME_TYPES is None else cls.SAME_TYPES
        typed = [(name, specs[name]) for name in same if name in specs]
        violations = [*same_as(first, *others, types=False)]
        violations += same_as(*typed, sizes=False) if typed else ()
        known = cls.SAME_TYPES is None or "OutputTensor" in cls.SAME_TYPES
        output = ArraySpec(first[1].shape, typed[0][1].dtype if known and typed else None)
        return Inferred((output,), tuple(violations))


def broadcast_to_input(
    first: ArraySpec, others: Sequence[tuple[str, ArraySpec | None]]
) -> Iterator[Violation]:
    """Check that each size is 1 or the input's, and that types and DimensionCounts are equal."""
    for name, spec in others:
        if spec is None:
            continue
        yield from same_as(("InputTensor", first), (name, spec), sizes=False)
        if len(spec.shape) != len(first.shape):
            rule = f"{len(first.shape)} (InputTensor.DimensionCount)"
            yield Violation(f"{name}.DimensionCount", rule, len(spec.shape))
            continue
        for i, (size, full_size) in enumerate(zip(spec.shape, first.shape, strict=True)):
            if size not in (1, full_size):
                rule = "1" if full_size == 1 else f"1 or {full_size} (InputTensor.Sizes[{i}])"
                yield Violation(f"{name}.Sizes[{i}]", rule, size)
