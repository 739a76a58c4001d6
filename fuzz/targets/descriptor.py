"""Descriptors of any fields through check, compile and dispatch, compared with the references.

A finding is an exception that is not the library's own, a descriptor that is accepted and then
fails, a binding that should have been refused, a byte written that no output owns, or a result that
the operator module's reference does not give.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import anydml as dml
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.suite.choices import Choices
from fuzz.targets import descriptor_fields as fields
from fuzz.targets.decisions import Decisions
from support import Flavour, Layout, Poisoned, assert_agrees, by_reference, contents

# Above these a descriptor is checked, but not dispatched: references are slow.
MOST_ELEMENTS = 600
MOST_BYTES = 1 << 20

LEVELS = tuple(dml.FeatureLevel)
FLAVOURS = tuple(Flavour)
INDICES = "IndicesTensor"


def run(data: bytes) -> None:
    """Raise when the library does not do with the descriptor in `data` what it should."""
    decide = Decisions(data)
    desc = fields.descriptor(decide)
    if desc is None:
        return
    backend = decide.among(("cpu", "cpu", "cpu", "reference"))
    device = dml.Device(backend, feature_level=decide.among(LEVELS) if decide.chance(30)
                        else LEVELS[-1])  # fmt: skip
    found = device.check(desc)
    assert found == device.check(desc), "a check depends on the one before"
    minimum = device.minimum_feature_level(desc)
    if found:
        assert all(str(violation) for violation in found)
        assert minimum is None or minimum > device.feature_level
        with contextlib.suppress(dml.InvalidDescriptorError):
            device.create_operator(desc)
            raise AssertionError(f"created in spite of {found[0]}")
        return
    assert minimum is not None
    assert minimum <= device.feature_level
    assert dml.from_json(desc.to_json()) == desc
    clamp = desc.CLAMPS and decide.chance(60)
    operator = device.create_operator(desc, out_of_range="clamp" if clamp else "raise")
    compiled = operator.compile()
    tensors = [tensor for _, tensor, _ in desc.tensors()]
    if max(tensor.element_count for tensor in tensors) > MOST_ELEMENTS:
        return
    if max(tensor.total_tensor_size_in_bytes for tensor in tensors) > MOST_BYTES:
        return
    with dml.num_threads(decide.below(3) + 1):
        Dispatch(decide, desc, clamp).run(compiled)


class Dispatch:
    """One dispatch of a compiled operator to memory that is watched."""

    def __init__(self, decide: Choices, desc: Descriptor, clamp: bool) -> None:
        self.decide = decide
        self.desc = desc
        self.generator = np.random.default_rng(decide.below(256))
        self.clamp = clamp
        self.watched: list[Poisoned] = []
        self.bad_index = False
        self.refused = False  # whether something is bound that must not be

    def run(self, compiled: Any) -> None:
        values, bound = self._inputs()
        outputs = {
            info.name: [self._operand(tensor, None, output=True) for tensor in many]
            for info, many in self._fields(Role.OUTPUT)
        }
        targets = {
            info.name: [form for form, _ in outputs[info.name]]
            if info.many
            else outputs[info.name][0][0]
            for info, _ in self._fields(Role.OUTPUT)
        }
        self._in_place(bound, outputs, targets)
        owned = {
            info.name: bound.pop(info.name)
            for info, many in self._fields(Role.INPUT)
            if any(tensor.flags is dml.TensorFlags.OWNED_BY_DML for tensor in many)
        }
        if owned:
            try:
                compiled = compiled.initialize(**owned)
            except dml.BindingError:
                assert self.refused, "initialize refused good bindings"
                return
        before = [operand.block.copy() for operand in self.watched]
        try:
            compiled.dispatch(**bound, **targets)
        except dml.BindingError:
            assert self.refused, "dispatch refused good bindings"
            self._untouched(before)
            return
        except dml.IndexOutOfRangeError as error:
            self._refused_index(error, values[INDICES])
            self._untouched(before)
            return
        assert not self.refused, "dispatch took a binding that it must not"
        assert not self.bad_index, "a bad index was taken"
        expected = by_reference(self.desc, values)
        for name, results in outputs.items():
            expected_result = (
                expected[name] if isinstance(expected[name], list) else [expected[name]]
            )
            for (_, view), reference in zip(results, expected_result, strict=True):
                mask = self._defined(name, reference, expected)
                assert_agrees(self.desc, view[mask], reference[mask], name)
        self._called(compiled, bound, expected)
        # Nothing but elements of outputs has changed.
        for operand, block in zip(self.watched, before, strict=True):
            changed = operand.block != block
            for results in outputs.values():
                for _, view in results:
                    if view.base is operand.block or np.may_share_memory(view, operand.block):
                        changed &= ~self._mask(operand, view)
            assert not changed.any(), "memory was written that is no output's"

    def _refused_index(self, error: dml.IndexOutOfRangeError, lookup: Any) -> None:
        assert self.bad_index, f"good indices refused: {error}"
        assert error.position == self._first_bad(lookup)

    def _called(self, compiled: Any, bound: dict[str, Any], expected: dict[str, Any]) -> None:
        """The same with outputs that the call allocates."""
        if self.decide.chance(128) or self.written_input:
            return
        results = compiled(**bound)
        results = list(results) if len(expected) > 1 else [results]
        for got, (name, expected_result) in zip(results, expected.items(), strict=True):
            pairs = (
                zip(got, expected_result, strict=True)
                if isinstance(expected_result, list)
                else [(got, expected_result)]
            )
            for array, reference in pairs:
                assert_agrees(self.desc, np.asarray(array), reference, f"{name}, allocated")

    # ---- what is bound --------------------------------------------------------------------------

    def _fields(self, role: Role) -> Iterator[tuple[Any, list[dml.TensorDesc]]]:
        for info in self.desc.tensor_fields(role):
            value = getattr(self.desc, info.attribute)
            if value is not None:
                yield info, list(value) if info.many else [value]

    def _inputs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arrays that the reference takes, and what is bound."""
        values: dict[str, Any] = {}
        bound: dict[str, Any] = {}
        for info, many in self._fields(Role.INPUT):
            pairs = [self._operand(tensor, info.name) for tensor in many]
            views, forms = [view for _, view in pairs], [form for form, _ in pairs]
            values[info.name] = views if info.many else views[0]
            bound[info.name] = forms if info.many else forms[0]
        if INDICES in values and fields.index_sizes(self.desc) is not None:
            position = self._first_bad(values[INDICES])
            self.bad_index = position is not None and not self.clamp
            lookup = values[INDICES].astype(object)
            sizes = np.array(fields.index_sizes(self.desc), object)
            wrapped = np.where(lookup < 0, lookup + sizes, lookup)
            values[INDICES] = (
                values[INDICES].copy()
                if self.bad_index
                else np.minimum(np.maximum(wrapped, 0), sizes - 1).astype(np.int64)
            )
            values = {name: _copies(value) for name, value in values.items()}
        else:
            values = {name: _copies(value) for name, value in values.items()}
        return values, bound

    def _operand(
        self, tensor: dml.TensorDesc, name: str | None, *, output: bool = False
    ) -> tuple[Any, Any]:
        """What is bound, and its elements as an array of the tensor's sizes."""
        kind = tensor.data_type.numpy
        raw = self.decide.chance(100)
        spare = self.decide.below(9) if self.decide.chance(40) else 0
        length = tensor.total_tensor_size_in_bytes + spare
        # An array of the tensor's own type and sizes is no raw buffer.
        raw = raw and (kind != np.uint8 or tensor.sizes != (length,))
        if raw:
            memory = Poisoned((length,), "u1")
            strides = tuple(stride * kind.itemsize for stride in tensor.element_strides)
            view = np.ndarray(tensor.sizes, kind, memory.array, 0, strides)
            form: Any = memory.array
        else:
            memory = Poisoned(tensor.sizes, kind, self._layout(tensor, output))
            view = form = memory.array
            if not view.flags.aligned:
                self.refused = True
        self.watched.append(memory)
        if not output:
            view[...] = self._values(tensor, name)
        if raw and self.decide.chance(60):
            form = memoryview(form)
        elif not raw and self.decide.chance(8):
            form = self._wrong(form, tensor, output)
            self.refused = True
        return form, view

    def _layout(self, tensor: dml.TensorDesc, output: bool) -> Layout:
        rank, decide = tensor.dimension_count, self.decide
        if decide.chance(90):
            return Layout()
        axes = list(range(rank))
        return Layout(
            order=tuple(decide.shuffled(axes)),
            gaps=tuple(decide.below(3) for _ in axes),
            reversed=tuple(axis for axis in axes if decide.chance(50)),
            repeated=() if output else tuple(axis for axis in axes if decide.chance(30)),
            shift=decide.below(8) if decide.chance(10) else 0,
        )

    def _values(self, tensor: dml.TensorDesc, name: str | None) -> Any:
        kind, decide = tensor.data_type.numpy, self.decide
        limits = fields.index_sizes(self.desc) if name == INDICES else None
        if limits is None or decide.chance(12):
            return contents(self.generator, tensor.sizes, kind, decide.among(FLAVOURS))
        sizes = np.array(limits)
        found = self.generator.integers(0, np.broadcast_to(sizes, tensor.sizes))
        if kind.kind == "i" and decide.chance(128):
            found = np.where(self.generator.random(found.shape) < 0.5, found - sizes, found)
        found = found.astype(kind)
        if decide.chance(40):
            flat = decide.below(found.size)
            found.reshape(-1)[flat] = decide.among(
                (np.iinfo(kind).max, np.iinfo(kind).min, found.dtype.type(int(sizes.max())))
            )
        return found

    def _wrong(self, array: Any, tensor: dml.TensorDesc, output: bool) -> Any:
        """Something that must be refused in place of an array of the tensor's sizes."""
        other = np.dtype("i4" if array.dtype == np.float32 else "f4")
        wrong = [
            None,
            np.zeros(tensor.sizes, other.newbyteorder("S") if other.itemsize > 1 else other),
            np.zeros((*tensor.sizes, 2), array.dtype),
            np.zeros((0,), np.uint8),
            array.astype(array.dtype.newbyteorder("S")) if array.dtype.itemsize > 1 else "text",
        ]
        if output:
            frozen = array.view()
            frozen.flags.writeable = False
            wrong += [frozen, bytes(array.nbytes + 4)]
        return self.decide.among(wrong)

    written_input = False  # whether an output is bound to an input's memory

    def _in_place(self, bound: dict[str, Any], outputs: Any, targets: dict[str, Any]) -> None:
        """Sometimes the output is the input's memory, which some operators allow."""
        bound_input = bound.get("InputTensor")
        if not self.decide.chance(24) or not isinstance(bound_input, np.ndarray) or self.refused:
            return
        name = next(iter(targets))
        tensor = next(tensor for _, tensor, _ in self.desc.tensors(Role.OUTPUT))
        if isinstance(outputs[name], list) and len(outputs[name]) > 1:
            return
        if isinstance(targets[name], list) or (
            bound_input.dtype == np.uint8 and bound_input.ndim == 1
        ):
            return
        if bound_input.shape != tensor.sizes or bound_input.dtype != tensor.data_type.numpy:
            return
        (source,) = (tensor for path, tensor, _ in self.desc.tensors() if path == "InputTensor")
        owned = source.flags is dml.TensorFlags.OWNED_BY_DML
        if 0 in bound_input.strides or owned:
            return
        targets[name] = bound_input
        outputs[name] = [(bound_input, bound_input)]
        self.written_input = True
        self.refused |= (name, "InputTensor") not in self.desc.lower().in_place()

    # ---- what is looked at ----------------------------------------------------------------------

    def _first_bad(self, lookup: Any) -> tuple[int, ...] | None:
        sizes = fields.index_sizes(self.desc)
        assert sizes is not None
        for at in np.ndindex(lookup.shape):
            size = sizes[at[-1]] if len(sizes) > 1 else sizes[0]
            value = int(lookup[at])
            if not (-size if lookup.dtype.kind == "i" else 0) <= value < size:
                return at
        return None

    @staticmethod
    def _defined(name: str, reference: Any, expected: dict[str, Any]) -> Any:
        mask = np.ones(reference.shape, bool)
        if name == "OutputCoordinatesTensor":
            mask.reshape(-1, mask.shape[-1])[expected["OutputCountTensor"].item() :] = False
        return mask

    @staticmethod
    def _mask(operand: Poisoned, view: Any) -> Any:
        """Which bytes of an operand's block belong to the elements of a view of it."""
        mask = np.zeros(operand.block.size, np.uint8)
        first = view.__array_interface__["data"][0] - operand.block.__array_interface__["data"][0]
        shape, strides = (*view.shape, view.itemsize), (*view.strides, 1)
        np.ndarray(shape, np.uint8, mask, first, strides)[...] = 1
        return mask != 0

    def _untouched(self, before: list[Any]) -> None:
        for operand, block in zip(self.watched, before, strict=True):
            assert np.array_equal(operand.block, block), "written in spite of a refusal"


def _copies(value: Any) -> Any:
    return [item.copy() for item in value] if isinstance(value, list) else value.copy()
