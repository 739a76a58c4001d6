"""Operators that calculate: one function `compute` on an array namespace is their meaning.

A computed operator says what its fields are, what outputs its inputs make (`infer`) and how they
are computed (`compute`). The rest is here: declared outputs are compared with `infer`, a scale and
bias and a fused activation become calls of their own, and optional tensors that are left out are
None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from anydml.dtypes import DataType
from anydml.engines import Engine
from anydml.errors import InvalidDescriptorError, Violation
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._fields import Role
from anydml.program import ArraySpec, Inferred, Intermediate, KernelCall, Program, Slot
from anydml.tensor import TensorDesc

_OWN_CALLS = ("scale_bias", "fused_activation")
"""Fields that become calls of their own, before and after the operator's."""


class Computed(Descriptor):
    """Base of the operators that calculate."""

    INPUT_OF_SCALE: ClassVar[str] = "InputTensor"
    """The tensor that a scale and bias applies to."""
    EXAMPLE: ClassVar[Mapping[str, Any]] = {}
    """Attributes, and inputs as nested lists, that the operator's page shows."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "NAME" in vars(cls):
            cls.KERNEL = cls.NAME

    @staticmethod
    def compute(e: Engine, *tensors: Any, **attributes: Any) -> Any:
        """The outputs, as arrays of the engine, from the inputs in the page's order.

        A tensor list is a tuple; a tensor that is left out is None. FLOAT16 arrives as float32.
        Several outputs are a tuple, those that the descriptor leaves out included.
        """
        raise NotImplementedError

    @classmethod
    def example(cls) -> dict[str, Any]:
        """Attributes and inputs, as nested lists, of the example on the operator's page."""
        return dict(cls.EXAMPLE)

    def rules(self) -> Iterator[Violation]:
        """The page's rules that are not about the types and sizes that `infer` makes."""
        yield from ()

    def check(self) -> Iterator[Violation]:
        yield from self.rules()
        if not all(_has_rank(self, info.name, tensor) for _, tensor, info in self.tensors()):
            return  # which is reported already, and `infer` need not expect
        inferred = self.infer(self._specs(), self.attributes())
        if inferred.violations:
            yield from inferred.violations
            return
        outputs = {path: tensor for path, tensor, _ in self.tensors(Role.OUTPUT)}
        for path, spec in zip(self._slots(Role.OUTPUT), inferred.outputs, strict=True):
            if path is not None:
                yield from declared_as(path, outputs[path], spec)

    @classmethod
    def with_outputs(cls, **fields: Any) -> Self:
        """A descriptor whose output tensors are packed and as the inputs and attributes make them.

        Parameters
        ----------
        **fields
            Input tensors and attributes by their names; what is left out has its default.

        Raises
        ------
        InvalidDescriptorError
            The inputs make no outputs.
        """
        names = [info.attribute for info in cls.tensor_fields(Role.OUTPUT)]
        unknown = TensorDesc("FLOAT32", (1,))
        draft = cls(**fields, **dict.fromkeys(names, unknown))
        inferred = cls.infer(draft._specs(), draft.attributes())
        if inferred.violations:
            raise InvalidDescriptorError(
                [Violation(f"{cls.NAME}.{v.path}", v.rule, v.got) for v in inferred.violations]
            )
        made = (TensorDesc(DataType.from_numpy(s.dtype), s.shape) for s in inferred.outputs)
        return dataclasses.replace(draft, **dict(zip(names, made, strict=True)))

    def attributes(self) -> dict[str, Any]:
        """What `infer` and `compute` get besides tensors, by the names of the fields."""
        return {
            info.attribute: getattr(self, info.attribute)
            for info in self.fields()
            if info.role is Role.ATTRIBUTE
            and info.counts is None
            and info.attribute not in _OWN_CALLS
        }

    def _specs(self) -> list[Any]:
        specs: list[Any] = []
        for info in self.tensor_fields(Role.INPUT):
            value = getattr(self, info.attribute)
            specs.append(tuple(map(spec_of, value)) if info.many else value and spec_of(value))
        return specs

    def lower(self, *, clamp: bool = False) -> Program:
        slots = {
            path: Slot(path, spec_of(tensor), tensor.sizes) for path, tensor, _ in self.tensors()
        }
        inputs, outputs = list(self._slots(Role.INPUT)), list(self._slots(Role.OUTPUT))
        before: list[KernelCall] = []
        after: list[KernelCall] = []
        between: list[Intermediate] = []
        scaled = getattr(self, "scale_bias", None)
        if scaled is not None:
            name = self.INPUT_OF_SCALE
            numbers = (("scaled", True), ("scale", scaled.scale), ("bias", scaled.bias))
            between.append(Intermediate("scaled", slots[name].spec))
            before.append(KernelCall("identity", (name,), ("scaled",), numbers))
            inputs[inputs.index(name)] = "scaled"
        fused = getattr(self, "fused_activation", None)
        if fused is not None:
            last = next(iter(self.tensors(Role.OUTPUT)))[0]
            between.append(Intermediate("activated", _wide(slots[last].spec)))
            given = tuple(fused.attributes().items())
            after.append(KernelCall(fused.KERNEL, ("activated",), (last,), given))
            outputs[outputs.index(last)] = "activated"
        call = KernelCall(
            self.KERNEL, tuple(inputs), tuple(outputs), tuple(self.attributes().items()),
            tuple(self._in_place_pairs(inputs, outputs, slots)) if self.IN_PLACE else (),
        )  # fmt: skip
        roles = {path: info.role for path, _, info in self.tensors()}
        return Program(
            self.NAME,
            tuple(slot for slot in slots.values() if roles[slot.name] is Role.INPUT),
            tuple(slot for slot in slots.values() if roles[slot.name] is Role.OUTPUT),
            (*before, call, *after),
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


def spec_of(tensor: TensorDesc) -> ArraySpec:
    """The shape and type of a tensor."""
    return ArraySpec(tensor.sizes, tensor.data_type.numpy if tensor.data_type.bits >= 8 else None)


def _wide(spec: ArraySpec) -> ArraySpec:
    # What goes from a call to its activation is rounded once, at the end.
    return ArraySpec(spec.shape, np.dtype(np.float32)) if spec.dtype == np.float16 else spec


def _has_rank(desc: Descriptor, name: str, tensor: TensorDesc) -> bool:
    rows = [row.tensors[name] for row in desc.SUPPORT if name in row.tensors]
    return any(tensor.dimension_count in row.ranks for row in rows)


def declared_as(path: str, tensor: TensorDesc, spec: ArraySpec) -> Iterator[Violation]:
    """An output has the type and sizes that the inputs make."""
    if spec.dtype is not None and spec_of(tensor).dtype != spec.dtype:
        yield Violation(f"{path}.DataType", f"{spec.dtype.name.upper()}", tensor.data_type)
    if len(spec.shape) != tensor.dimension_count:
        yield Violation(f"{path}.DimensionCount", str(len(spec.shape)), tensor.dimension_count)
        return
    for i, (expected, got) in enumerate(zip(spec.shape, tensor.sizes, strict=True)):
        if expected != got:
            rule = f"{expected} (what the inputs make: {_shape_text(spec.shape)})"
            yield Violation(f"{path}.Sizes[{i}]", rule, got)


def _shape_text(shape: Sequence[Any]) -> str:
    return "{" + ", ".join(map(str, shape)) + "}"


def same_as(
    first: tuple[str, ArraySpec], *others: tuple[str, ArraySpec | None], sizes: bool = True
) -> Iterator[Violation]:
    """Inputs that have the first one's type and, with `sizes`, its sizes; None is left out."""
    name, spec = first
    for other, given in others:
        if given is None:
            continue
        if given.dtype != spec.dtype:
            rule = f"{np.dtype(spec.dtype).name.upper()} ({name}.DataType)"
            yield Violation(f"{other}.DataType", rule, np.dtype(given.dtype).name.upper())
        if not sizes:
            continue
        if len(given.shape) != len(spec.shape):
            rule = f"{len(spec.shape)} ({name}.DimensionCount)"
            yield Violation(f"{other}.DimensionCount", rule, len(given.shape))
            continue
        for i, (expected, got) in enumerate(zip(spec.shape, given.shape, strict=True)):
            if expected != got:
                yield Violation(f"{other}.Sizes[{i}]", f"{expected} ({name}.Sizes[{i}])", got)


class Map(Computed):
    """Base of the operators whose inputs and output all have the first input's type and sizes."""

    INPUTS: ClassVar[Sequence[Any]] = ([-2.0, -0.5, 0.0, 0.5, 3.0], [4.0, -1.0, 2.0, 0.5, 1.0])
    """What the examples of operators without inputs of their own show."""

    @classmethod
    def example(cls) -> dict[str, Any]:
        """`EXAMPLE` with inputs."""
        names = [info.attribute for info in cls.tensor_fields(Role.INPUT)]
        return {**dict(zip(names, cls.INPUTS, strict=False)), **cls.EXAMPLE}

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], given: Attributes) -> Inferred:
        names = [info.name for info in cls.tensor_fields(Role.INPUT)]
        pairs = list(zip(names, inputs, strict=True))
        return Inferred((inputs[0],), tuple(same_as(pairs[0], *pairs[1:])))
