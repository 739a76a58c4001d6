"""Describe → create → compile → initialise → bind → dispatch."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from anydml._json import meant, shown
from anydml.arrays import adopt, written
from anydml.backends import decline
from anydml.binding import Array, bind, refuse_overlap
from anydml.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    BindingError,
    InvalidDescriptorError,
)
from anydml.levels import FeatureLevel
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import FieldInfo, Role
from anydml.program import Slot
from anydml.tensor import TensorFlags
from anydml.threads import get_num_threads

if TYPE_CHECKING:
    from anydml.device import Device


OutOfRange = Literal["raise", "clamp"]


class Operator:
    """A descriptor that has passed every check on a device.

    Made by `Device.create_operator`, or directly: the check is the constructor's, and what has been
    checked cannot be exchanged. A copy, and one that comes back from a pickle, is checked again.

    Parameters
    ----------
    desc : Descriptor
        As `TopK1`.
    device : Device
        Whose feature level decides.
    out_of_range : str
        As `Device.create_operator` takes it.

    Raises
    ------
    InvalidDescriptorError
        The descriptor breaks rules; ``violations`` has all of them.
    ArgumentError, ArgumentTypeError
        An argument of another kind.
    """

    def __init__(
        self, desc: Descriptor, device: Device, out_of_range: OutOfRange = "raise"
    ) -> None:
        level = getattr(device, "feature_level", None)
        if not isinstance(level, FeatureLevel):
            raise ArgumentTypeError(f"device: expected a Device, got {shown(device)}")
        violations = checked_kind(desc).violations(level)
        if violations:
            raise InvalidDescriptorError(violations)
        if not isinstance(out_of_range, str) or out_of_range not in ("raise", "clamp"):
            raise ArgumentError(
                f"out_of_range: expected 'raise' or 'clamp', got {shown(out_of_range)}"
                f"{meant(out_of_range, ('raise', 'clamp'))}"
            )
        if out_of_range == "clamp" and not desc.CLAMPS:
            raise ArgumentError(f"out_of_range: {desc.NAME} takes 'raise' only, got 'clamp'")
        self._desc = desc
        self._device = device
        self._out_of_range = out_of_range

    @property
    def desc(self) -> Descriptor:
        """The descriptor."""
        return self._desc

    @property
    def device(self) -> Device:
        """The device that it was checked for."""
        return self._device

    @property
    def out_of_range(self) -> str:
        """What an index outside its axis does: ``"raise"`` or ``"clamp"``."""
        return self._out_of_range

    def __reduce__(self) -> tuple[type[Operator], tuple[Descriptor, Device, str]]:
        return type(self), (self._desc, self._device, self._out_of_range)

    def __repr__(self) -> str:
        return f"<Operator {self.desc!r} on {self.device!r}>"

    def compile(self) -> CompiledOperator:
        """Choose the kernel and lay out its plan.

        Raises
        ------
        MissingKernelError
            The device has no kernel for the operator; ``Device("reference")`` runs every one.
        """
        return CompiledOperator(self)


class CompiledOperator:
    """An operator that is ready to run; may be dispatched from several threads at once.

    Made by `Operator.compile`.
    """

    def __init__(self, operator: Operator, owned: Mapping[str, Any] | None = None) -> None:
        if not isinstance(operator, Operator):
            raise ArgumentTypeError(f"operator: expected an Operator, got {shown(operator)}")
        self.operator = operator
        self.desc = operator.desc
        self.program = self.desc.lower(clamp=operator.out_of_range == "clamp")
        self._executable = operator.device.backend.compile(self.program)
        self._owned: dict[str, Any] = dict(owned or {})
        self._owned_names = {
            info.name
            for _, tensor, info in self.desc.tensors(Role.INPUT)
            if tensor.flags is TensorFlags.OWNED_BY_DML
        }
        # What is owned is not bound again, which the quick way does not know.
        self._quick_dispatch = decline if self._owned_names else self._executable.dispatch

    def __reduce__(self) -> tuple[type[CompiledOperator], tuple[Operator, dict[str, Any]]]:
        return type(self), (self.operator, self._owned)

    def __repr__(self) -> str:
        return f"<CompiledOperator {self.desc!r} on {self.operator.device!r}>"

    def initialize(self, /, **bindings: Any) -> CompiledOperator:
        """A compiled operator that owns a copy of its OWNED_BY_DML inputs.

        Parameters
        ----------
        **bindings : array or buffer
            Every tensor that the descriptor flags OWNED_BY_DML, by the page's name or the field's.
            These are not bound again at dispatch.

        Raises
        ------
        BindingError
            A tensor that is not owned, one that is missing, or one that does not fit.
        """
        bindings = self._by_page_name(bindings)
        for name in bindings:
            if name not in self._owned_names:
                raise BindingError(f"{name}: not flagged OWNED_BY_DML, bind it at dispatch")
        owned = {}
        for info in self.desc.bind_points(Role.INPUT):
            if info.name in self._owned_names:
                if info.name not in bindings:
                    raise BindingError(f"{info.name}: flagged OWNED_BY_DML, bind it to initialize")
                bound = self._bound(info, bindings[info.name])
                owned[info.name] = (
                    [self._copy(a, info.name) for a in bound]
                    if info.many
                    else self._copy(bound, info.name)
                )
        return CompiledOperator(self.operator, owned)

    def dispatch(self, /, **bindings: Any) -> None:
        """Run on the bound arrays and buffers.

        Parameters
        ----------
        **bindings : array, buffer, or sequence of them for a tensor list
            By the page's names (``InputTensor``) or the fields' (``input_tensor``); messages have
            the page's. An array whose shape equals the descriptor's sizes is taken element by
            element, whatever its memory layout; a flat contiguous array or a bytes-like object is
            the raw buffer, laid out by the descriptor's strides. SCATTER and SCATTER_ND may have
            their output bound to exactly the memory of their input.

        Raises
        ------
        BindingError
            A binding that is missing, unknown, given twice or does not fit; nothing has been
            written.
        IndexOutOfRangeError
            An index points outside its axis; nothing has been written.
        """
        if self._quick_dispatch(bindings, get_num_threads()) == -1:
            return
        spelled, bindings = bindings, self._by_page_name(bindings)
        if (
            bindings.keys() != spelled.keys()
            and self._quick_dispatch(bindings, get_num_threads()) == -1
        ):
            return
        arrays = self._bind(bindings)
        self._run(arrays, private=False)
        for info in self.desc.tensor_fields(Role.OUTPUT):
            bound = bindings[info.name]
            for value in bound if info.many else (bound,):
                written(value)

    def __call__(self, /, *inputs: Any, **bindings: Any) -> Any:
        """Run on inputs, allocate the outputs and return them.

        Parameters
        ----------
        *inputs, **bindings : array or buffer
            The inputs, in the page's order or by name, as `dispatch` takes them.

        Returns
        -------
        array, tuple of arrays, or named tuple
            One array for one output, of the first input's kind; a tuple for a tensor list; a named
            tuple for several outputs. Elements that the operator leaves undefined are zero.

        Raises
        ------
        BindingError, IndexOutOfRangeError
            As `dispatch`.
        """
        names = [
            info.name
            for info in self.desc.bind_points(Role.INPUT)
            if info.name not in self._owned_names
        ]
        if len(inputs) > len(names):
            raise BindingError(
                f"inputs: expected at most {len(names)} ({', '.join(names)}), got {len(inputs)}"
            )
        bindings = self._by_page_name(bindings)
        for name, value in zip(names, inputs, strict=False):
            if name in bindings:
                raise BindingError(f"{name}: bound twice, by position and by name")
            bindings[name] = value
        like, wrap = self._first(bindings)
        outputs: dict[str, Any] = {}
        slots = iter(self.program.outputs)
        for info in self.desc.bind_points(Role.OUTPUT):
            if info.name in bindings:
                raise BindingError(f"{info.name}: an output, allocated by this call; use dispatch")
            count = len(getattr(self.desc, info.attribute)) if info.many else 1
            arrays = [self._allocate(slot, like) for slot in islice(slots, count)]
            outputs[info.name] = arrays if info.many else arrays[0]
        self._run(self._bind(bindings | outputs), private=True)
        results = [
            tuple(map(wrap, value)) if isinstance(value, list) else wrap(value)
            for value in outputs.values()
        ]
        return results[0] if len(results) == 1 else self._result_type(*results)

    @cached_property
    def _result_type(self) -> Any:
        fields = [info.attribute for info in self.desc.bind_points(Role.OUTPUT)]
        return namedtuple(f"{type(self.desc).__name__}Outputs", fields)

    def _first(self, bindings: Mapping[str, Any]) -> tuple[Any, Any]:
        # Results are of the kind of the page's first input that is bound; bytes and other buffers
        # give NumPy arrays.
        names = (info.name for info in self.desc.tensor_fields(Role.INPUT))
        name = next((name for name in names if name in bindings), "")
        first = bindings.get(name)
        if isinstance(first, list | tuple) and first:
            first = first[0]
        if isinstance(first, np.ndarray) or not hasattr(first, "__dlpack__"):
            return None, lambda array: array
        try:
            return adopt(first, name)
        except ArgumentTypeError as error:
            raise BindingError(str(error)) from error

    def _allocate(self, slot: Slot, like: Any) -> Array:
        # What the kernel does not write stays as it is: nothing left over in memory may show.
        cleared = any(slot.name in call.leaves_undefined for call in self.program.calls)
        return self.operator.device.backend.allocate(slot, cleared, self.desc.NAME, like)

    def _copy(self, array: Array, name: str) -> Array:
        purpose = f"a copy of {name}"
        copied: Array = self.operator.device.backend.copy(array, self.desc.NAME, purpose)
        return copied

    def _bound(self, info: FieldInfo, value: Any) -> Any:
        tensors = getattr(self.desc, info.attribute)
        output = info.role is Role.OUTPUT
        if not info.many:
            return bind(info.name, tensors, value, output, self.operator.device.backend.device)
        if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
            raise BindingError(f"{info.name}: expected a sequence of arrays, got {shown(value)}")
        try:
            count = len(value)
            # A list of its own: a member's methods may change the caller's, and lengths may lie.
            members = [item for _, item in zip(range(len(tensors) + 1), value, strict=False)]
        except (TypeError, ValueError) as error:
            raise BindingError(f"{info.name}: {error}") from error
        if count != len(tensors):
            raise BindingError(f"{info.name}: expected {len(tensors)} arrays, got {count}")
        if len(members) != len(tensors):
            raise BindingError(f"{info.name}: expected {len(tensors)} arrays, got {len(members)}")
        return [
            bind(f"{info.name}[{i}]", tensor, item, output, self.operator.device.backend.device)
            for i, (tensor, item) in enumerate(zip(tensors, members, strict=True))
        ]

    def _by_page_name(self, bindings: Mapping[str, Any]) -> dict[str, Any]:
        """The bindings by the page's names, where some may be given by the fields' names."""
        spellings = {
            spelling: info
            for info in self.desc.tensor_fields()
            for spelling in (info.name, info.attribute)
        }
        points = [info.name for info in self.desc.bind_points()]
        found: dict[str, Any] = {}
        for spelling, value in bindings.items():
            if spelling not in spellings:
                raise BindingError(
                    f"{spelling}: expected one of {', '.join(points)}, got an unknown binding"
                    f"{meant(spelling, spellings)}"
                )
            info = spellings[spelling]
            if info.name not in points:
                raise BindingError(f"{spelling}: expected nothing (the descriptor leaves it out)")
            if info.name in found:
                raise BindingError(f"{info.name}: bound twice, also as {info.attribute}")
            found[info.name] = value
        return found

    def _bind(self, bindings: Mapping[str, Any]) -> dict[str, Array]:
        """Arrays of the declared sizes by slot."""
        fields = {info.name: info for info in self.desc.bind_points()}
        for name in bindings:
            if name in self._owned_names:
                raise BindingError(f"{name}: flagged OWNED_BY_DML, bind it to initialize")
        arrays: dict[str, Any] = {}
        for name, info in fields.items():
            if name in self._owned:
                arrays[name] = self._owned[name]
            elif name in bindings:
                arrays[name] = self._bound(info, bindings[name])
            elif name in self._owned_names:
                raise BindingError(f"{name}: flagged OWNED_BY_DML, call initialize first")
            else:
                raise BindingError(f"{name}: expected a binding, got none")
        sides: dict[Role, list[tuple[str, Array]]] = {Role.INPUT: [], Role.OUTPUT: []}
        for name, info in fields.items():
            if info.many:
                sides[info.role] += [(f"{name}[{i}]", a) for i, a in enumerate(arrays[name])]
            else:
                sides[info.role].append((name, arrays[name]))
        refuse_overlap(sides[Role.OUTPUT], sides[Role.INPUT], self.program.in_place())
        return dict(sides[Role.INPUT] + sides[Role.OUTPUT])

    def _run(self, arrays: Mapping[str, Array], private: bool) -> None:
        try:
            self._executable.run(arrays, private, get_num_threads())
        except AllocationError as error:  # which names the kernel
            raise AllocationError(self.desc.NAME, error.bytes, error.purpose) from None


def checked_kind(desc: Descriptor) -> Descriptor:
    """The descriptor, if it is one.

    Raises
    ------
    ArgumentTypeError
        Anything else.
    """
    if not isinstance(desc, Descriptor):
        raise ArgumentTypeError(f"desc: expected an operator descriptor, got {shown(desc)}")
    return desc
