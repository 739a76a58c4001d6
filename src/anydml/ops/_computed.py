"""Operators that calculate, defined by one function `compute` on an array namespace.

A computed operator defines its fields, the shapes and types of its outputs (`infer`) and their
values (`compute`). The base class does the rest: a scale and bias and a fused activation become
separate calls, and omitted optional tensors are passed as None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import InvalidDescriptorError, Violation
from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred, Intermediate, KernelCall, Slot
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._fields import FieldInfo, NestedKind, Role
from anydml.ops._rules import same_ranks, same_sizes, same_types, shape_of
from anydml.ops._shapes import spec_of

_OWN_CALLS = ("scale_bias", "fused_activation")
"""Fields that become calls of their own, before and after the operator's."""


class Computed(Descriptor):
    """Base of the operators that calculate."""

    ONE_DIMENSION_COUNT = False
    NATURAL = False
    WIDENS = True
    ELEMENTWISE: ClassVar[bool] = False
    """Whether an output element is made of the input elements at the same place alone."""
    WORKING_BYTES = 8
    NOT_IN_PLACE: ClassVar[Sequence[str]] = ()
    """Inputs whose memory the outputs may not use where they may use that of others."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "NAME" in vars(cls):
            cls.KERNEL = cls.NAME

    @classmethod
    def input_names(cls) -> list[str]:
        """The names of the inputs on the page."""
        return [info.name for info in cls.tensor_fields(Role.INPUT)]

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

    def _shape_rules(self, level: FeatureLevel) -> Rules:
        yield super()._shape_rules(level)
        fused = getattr(self, "fused_activation", None)
        if fused is not None:
            # A fused activation has no tensors: its input is the output of this operator.
            for item in fused.infer(self.inferred().outputs[:1], fused.attributes()).violations:
                yield Violation(f"FusedActivation.{item.path}", item.rule, item.got)

    def _operands(self) -> list[Any]:
        fields = [(info, getattr(self, info.attribute)) for info in self.tensor_fields(Role.INPUT)]
        return [
            known(lambda specs: tuple(map(spec_of, specs)), value) if info.many else spec_of(value)
            for info, value in fields
        ]

    def _calls(
        self, call: KernelCall, inputs: dict[str, Slot], outputs: dict[str, Slot]
    ) -> tuple[Sequence[KernelCall], Sequence[Intermediate]]:
        pairs = [
            (output.name, source.name)
            for output in (outputs.values() if self.IN_PLACE else ())
            for source in inputs.values()
            if output.spec == source.spec and source.name not in self.NOT_IN_PLACE
        ]
        between: list[Intermediate] = []
        before = _scaling(self, "InputTensor", "scaled")
        if before:
            between.append(Intermediate("scaled", inputs["InputTensor"].spec))
            call = replace(call, inputs=_renamed(call.inputs, "InputTensor", "scaled"))
        after: list[KernelCall] = []
        fused = getattr(self, "fused_activation", None)
        if fused is not None:
            last = next(iter(outputs))
            spec = _wide(outputs[last].spec)
            between.append(Intermediate("unactivated", spec))
            after = _scaling(fused, "unactivated", "scaled result")
            between += [Intermediate("scaled result", spec)] if after else []
            source = after[-1].outputs[0] if after else "unactivated"
            fused_attributes = tuple(fused.attributes().items())
            after.append(KernelCall(fused.KERNEL, (source,), (last,), fused_attributes))
            call = replace(call, outputs=_renamed(call.outputs, last, "unactivated"))
        calls = [
            replace(call, in_place=tuple(pair for pair in pairs if pair[0] in call.outputs))
            for call in (*before, call, *after)
        ]
        return calls, between


class Sized(Computed):
    """Base of the operators for which the caller chooses the sizes of the first output.

    These sizes are passed to `infer` and `compute` as ``shape``.
    """

    def attributes(self) -> Attributes:
        (_, first, _), *_ = self.tensors(Role.OUTPUT)
        return {"shape": first.sizes, **super().attributes()}


def _renamed(names: Sequence[str | None], old: str, new: str) -> tuple[str | None, ...]:
    return tuple(new if name == old else name for name in names)


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
    if value is UNKNOWN:
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


class Map(Computed):
    """Base of the operators whose inputs and output all have the sizes and the type of the first
    input.

    If only some tensors share a type, `SAME_TYPES` names these. Other inputs may have any type, and
    the caller chooses the type of an output that is not named.
    """

    ONE_DIMENSION_COUNT = True
    ELEMENTWISE = True
    WORKING_BYTES = 16
    SAME_TYPES: ClassVar[Sequence[str] | None] = None
    INPUTS: ClassVar[Sequence[Any]] = ([-2.0, -0.5, 0.0, 0.5, 3.0], [4.0, -1.0, 2.0, 0.5, 1.0])
    """Inputs of the examples of operators that define no inputs."""
    FUNCTION: ClassVar[str]
    """The function of the namespace that computes the output, of operators without `compute`."""

    @classmethod
    def compute(cls, e: Engine, *tensors: Any, **attributes: Any) -> Array:
        return getattr(e.xp, cls.FUNCTION)(*tensors)

    @classmethod
    def examples(cls) -> list[Mapping[str, Any]]:
        """`EXAMPLES` with inputs."""
        names = [info.attribute for info in cls.tensor_fields(Role.INPUT)]
        inputs = dict(zip(names, cls.INPUTS, strict=False))
        return [{**inputs, **example} for example in cls.EXAMPLES or ({},)]

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        first, *others = zip(cls.input_names(), inputs, strict=True)
        names = cls.SAME_TYPES
        typed = [n for n in (first, *others) if n[1] and (names is None or n[0] in names)]
        dtypes = [spec.dtype for _, spec in typed if spec]
        takes_type = dtypes and (names is None or "OutputTensor" in names)
        output = ArraySpec(shape_of(first[1]), dtypes[0] if takes_type else None)
        return Inferred.of(
            (output,),
            same_ranks(first, *others),
            same_sizes(first, *others),
            same_types(*typed or [first]),
        )
