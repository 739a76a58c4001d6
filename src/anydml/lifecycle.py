"""Describe → create → compile → initialise → bind → dispatch."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anydml.arrays import adopt
from anydml.backends.cpu import index_error
from anydml.binding import Array, bind, refuse_overlap
from anydml.errors import ArgumentError, BindingError
from anydml.ops._descriptor import Descriptor, FieldInfo, Role
from anydml.tensor import TensorDesc, TensorFlags
from anydml.threads import get_num_threads

if TYPE_CHECKING:
    from anydml.device import Device


class Operator:
    """A descriptor that has passed every check on a device.

    Made by `Device.create_operator`.
    """

    def __init__(self, desc: Descriptor, device: Device, out_of_range: str = "raise") -> None:
        if out_of_range not in ("raise", "clamp"):
            raise ArgumentError(f"out_of_range: expected 'raise' or 'clamp', got {out_of_range!r}")
        if out_of_range == "clamp" and not desc.CLAMPS:
            raise ArgumentError(f"out_of_range: {desc.NAME} takes 'raise' only, got 'clamp'")
        self.desc = desc
        self.device = device
        self.out_of_range = out_of_range

    def __repr__(self) -> str:
        return f"<Operator {self.desc!r} on {self.device!r}>"

    def compile(self) -> CompiledOperator:
        """Choose the kernel and lay out its plan."""
        return CompiledOperator(self)


class CompiledOperator:
    """An operator that is ready to run; may be dispatched from several threads at once.

    Made by `Operator.compile`.
    """

    def __init__(self, operator: Operator, owned: Mapping[str, Any] | None = None) -> None:
        self.operator = operator
        self.desc = operator.desc
        self.program = self.desc.lower(clamp=operator.out_of_range == "clamp")
        (self._call,) = self.program.calls
        self._executable = operator.device.backend.compile(self.program)
        self._owned: dict[str, Any] = dict(owned or {})
        self._owned_names = {
            info.name
            for _, tensor, info in self.desc.tensors(Role.INPUT)
            if tensor.flags is TensorFlags.OWNED_BY_DML
        }

    def __repr__(self) -> str:
        return f"<CompiledOperator {self.desc!r} on {self.operator.device!r}>"

    def initialize(self, **bindings: Any) -> CompiledOperator:
        """A compiled operator that owns a copy of its OWNED_BY_DML inputs.

        Parameters
        ----------
        **bindings : array or buffer
            Every tensor that the descriptor flags OWNED_BY_DML, by the page's name. These are not
            bound again at dispatch.

        Raises
        ------
        BindingError
            A tensor that is not owned, one that is missing, or one that does not fit.
        """
        for name in bindings:
            if name not in self._owned_names:
                raise BindingError(f"{name}: not flagged OWNED_BY_DML, bind it at dispatch")
        owned = {}
        for info in self.desc.tensor_fields(Role.INPUT):
            if info.name in self._owned_names:
                if info.name not in bindings:
                    raise BindingError(f"{info.name}: flagged OWNED_BY_DML, bind it to initialize")
                bound = self._bound(info, bindings[info.name])
                owned[info.name] = [a.copy() for a in bound] if info.many else bound.copy()
        return CompiledOperator(self.operator, owned)

    def dispatch(self, **bindings: Any) -> None:
        """Run on the bound arrays and buffers.

        Parameters
        ----------
        **bindings : array, buffer, or sequence of them for a tensor list
            By the page's names. An array whose shape equals the descriptor's sizes is taken element
            by element, whatever its memory layout; a flat contiguous array or a bytes-like object
            is the raw buffer, laid out by the descriptor's strides. SCATTER and SCATTER_ND may
            have their output bound to exactly the memory of their input.

        Raises
        ------
        BindingError
            A binding that is missing, unknown or does not fit; nothing has been written.
        IndexOutOfRangeError
            An index points outside its axis; nothing has been written.
        """
        if not self._owned_names:
            bad = self._executable.dispatch(bindings, get_num_threads())
            if bad == -1:
                return
        arrays = self._bind(bindings)
        self._run(arrays, private=False)

    def __call__(self, *inputs: Any, **bindings: Any) -> Any:
        """Run on inputs, allocate the outputs and return them.

        Parameters
        ----------
        *inputs, **bindings : array or buffer
            The inputs, in the page's order or by the page's names.

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
            for info in self.desc.tensor_fields(Role.INPUT)
            if info.name not in self._owned_names
        ]
        if len(inputs) > len(names):
            raise BindingError(
                f"inputs: expected at most {len(names)} ({', '.join(names)}), got {len(inputs)}"
            )
        for name, value in zip(names, inputs, strict=False):
            if name in bindings:
                raise BindingError(f"{name}: bound twice, by position and by name")
            bindings[name] = value
        outputs: dict[str, Any] = {}
        for info in self.desc.tensor_fields(Role.OUTPUT):
            tensors = getattr(self.desc, info.attribute)
            outputs[info.name] = (
                [self._allocate(info, t) for t in tensors]
                if info.many
                else self._allocate(info, tensors)
            )
            if info.name in bindings:
                raise BindingError(f"{info.name}: an output, allocated by this call; use dispatch")
        self._run(self._bind(bindings | outputs), private=True)
        wrap = _wrapper(bindings)
        results = [
            tuple(map(wrap, value)) if isinstance(value, list) else wrap(value)
            for value in outputs.values()
        ]
        return results[0] if len(results) == 1 else self._result_type(*results)

    @cached_property
    def _result_type(self) -> Any:
        fields = [info.attribute for info in self.desc.tensor_fields(Role.OUTPUT)]
        return namedtuple(f"{type(self.desc).__name__}Outputs", fields)

    def _allocate(self, info: FieldInfo, tensor: TensorDesc) -> Array:
        # What the kernel does not write stays as it is: nothing left over in memory may show.
        cleared = info.name in self._call.leaves_undefined
        backend = self.operator.device.backend
        return backend.allocate(tensor.sizes, tensor.data_type.numpy, cleared)

    def _bound(self, info: FieldInfo, value: Any) -> Any:
        tensors = getattr(self.desc, info.attribute)
        output = info.role is Role.OUTPUT
        if not info.many:
            return bind(info.name, tensors, value, output)
        if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
            raise BindingError(f"{info.name}: expected a sequence of arrays, got {value!r}")
        if len(value) != len(tensors):
            raise BindingError(f"{info.name}: expected {len(tensors)} arrays, got {len(value)}")
        return [
            bind(f"{info.name}[{i}]", tensor, item, output)
            for i, (tensor, item) in enumerate(zip(tensors, value, strict=True))
        ]

    def _bind(self, bindings: Mapping[str, Any]) -> dict[str, Array]:
        """Arrays of the declared sizes by slot."""
        fields = {info.name: info for info in self.desc.tensor_fields()}
        for name in bindings:
            if name not in fields:
                known = ", ".join(fields)
                raise BindingError(f"{name}: expected one of {known}, got an unknown binding")
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
        in_place = self._call.in_place[0][1] if self._call.in_place else None
        refuse_overlap(sides[Role.OUTPUT], sides[Role.INPUT], in_place)
        return dict(sides[Role.INPUT] + sides[Role.OUTPUT])

    def _run(self, arrays: Mapping[str, Array], private: bool) -> None:
        bad = self._executable.run(arrays, private, get_num_threads())
        if bad >= 0:
            use = self._call.indices
            assert use is not None
            axis, size = use.axis_and_size(bad)
            where = f"{self.desc.NAME}.{use.slot}"
            raise index_error(where, arrays[use.slot], bad, axis, size)


def _wrapper(bindings: Mapping[str, Any]) -> Any:
    # Results are of the kind of the first input; bytes and other buffers give NumPy arrays.
    first = next(iter(bindings.values()), None)
    if isinstance(first, list | tuple):
        first = first[0]
    if isinstance(first, np.ndarray) or not hasattr(first, "__dlpack__"):
        return lambda array: array
    return adopt(first, "InputTensor")[1]
