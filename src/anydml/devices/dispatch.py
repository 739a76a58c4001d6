"""Dispatch: a compiled program, the tensors that are bound to it, and those that it owns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, Final, Never, TypeVar

import numpy as np

from anydml.core._json import did_you_mean, short_repr, unnamed_error
from anydml.core.errors import AllocationError, ArgumentTypeError, BindingError
from anydml.core.program import Program, Slot
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.devices.backends import Backend, Executable, decline
from anydml.devices.binding import Array, bind, refuse_overlap
from anydml.devices.threads import get_num_threads
from anydml.libraries import as_operand, bump_version

Bound = TypeVar("Bound")

_MOST_PROBLEMS: Final = 20
"""Lines of an error."""


@dataclass(frozen=True)
class Point:
    """A tensor, or a list of tensors, that a caller binds.

    Attributes
    ----------
    name : str
        By which it is bound, and which messages have.
    attribute : str
        Its other name.
    tensors : tuple of TensorDesc
        One, or those of the list.
    many : bool
        Whether it is a list.
    output : bool
        Whether it is written.
    slots : tuple of Slot
        The program's, in the order of the tensors.
    """

    name: str
    attribute: str
    tensors: tuple[TensorDesc, ...]
    many: bool
    output: bool
    slots: tuple[Slot, ...]

    @property
    def owned(self) -> bool:
        """Whether it is bound at initialization only."""
        return any(tensor.flags is TensorFlags.OWNED_BY_DML for tensor in self.tensors)


_Plain = tuple[str, tuple[int, ...], np.dtype[Any]]
"""A plain array for a slot: the name there, the shape and the type."""


def _plain_slots(point: Point) -> list[_Plain]:
    pairs = zip(point.slots, point.tensors, strict=True)
    return [(slot.name, tensor.sizes, tensor.data_type.numpy) for slot, tensor in pairs]


def allowing_half(program: Program, allow_half_precision: bool) -> Program:
    """The program, with products of FLOAT32 as precise as those of FLOAT16 if that is allowed.

    Raises
    ------
    ArgumentTypeError
        `allow_half_precision` is not a bool.
    """
    if not isinstance(allow_half_precision, bool):
        got = short_repr(allow_half_precision)
        raise ArgumentTypeError(f"allow_half_precision: expected a bool, got {got}")
    return replace(program, allows_half=allow_half_precision) if allow_half_precision else program


def _without_problems(
    problems: list[str], calls: Iterable[Callable[[], Bound]] = ()
) -> list[Bound]:
    """The results of calls; a `BindingError` with the problems and those that the calls find."""
    results = []
    for call in calls:
        try:
            results.append(call())
        except BindingError as error:
            problems.append(str(error))
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS} more"]
    if problems:
        raise BindingError("\n".join(problems))
    return results


class Compiled:
    """A program on a backend, and the bindings of its runs; for several threads at once."""

    def __init__(
        self,
        name: str,
        program: Program,
        points: Iterable[Point],
        backend: Backend,
        owned: Mapping[str, Any] | None = None,
    ) -> None:
        self.program = program
        self._name = name
        self._backend = backend
        self._points = {point.name: point for point in points}
        self._spellings = {
            spelling: point
            for point in self._points.values()
            for spelling in (point.name, point.attribute)
        }
        self._inputs = [point for point in self._points.values() if not point.output]
        self._outputs = [point for point in self._points.values() if point.output]
        self._owned_names = {point.name: point for point in self._inputs if point.owned}.keys()
        self._in_place = program.in_place()
        self._compiled = backend.compile(program)
        self._own(owned or {})
        # The native call binds every input, so it cannot be used where nobody binds some.
        self._native = decline if self._owned_names or program.held else self._compiled.dispatch
        self._bound_names = [p.name for p in self._inputs if p.name not in self._owned_names]
        self._lists = [point for point in self._points.values() if point.many]
        self._plain_inputs = [
            item for name in self._bound_names for item in _plain_slots(self._points[name])
        ]
        self._plain_outputs = [item for point in self._outputs for item in _plain_slots(point)]
        undefined = {name for call in program.calls for name in call.leaves_undefined}
        self._undefined = {slot.name for slot in program.outputs if slot.name in undefined}

    @property
    def working_nbytes(self) -> int:
        """The most bytes that a run takes besides what is bound and owned.

        The CPU computes elementwise operators in blocks, one for each thread: `num_threads` counts.
        """
        held = {name for name, _ in self.program.held}
        copied = (slot for slot in self.program.inputs if slot.name in held)
        copies = sum(prod(s.declared) * np.dtype(s.spec.dtype).itemsize for s in copied)
        return self._backend.working_nbytes(self.program) + copies

    def _own(self, owned: Mapping[str, list[Array]]) -> None:
        """Let runs that begin later use copies of what is owned, by the points' names."""
        arrays = {
            slot: array
            for name, copies in owned.items()
            for slot, array in self._by_slot(self._points[name], copies)
        }
        executable = self._compiled.owning(arrays) if arrays else self._compiled
        is_ready = self._owned_names <= owned.keys()
        self._owned = dict(owned)
        self._executable: Executable | None = executable if is_ready else None

    def _copies(self, bindings: Mapping[str, Any]) -> dict[str, list[Array]]:
        """Copies of what is owned."""
        bindings = self._by_name(bindings)
        problems = [
            f"{name}: expected an OWNED_BY_DML input, got another one; bind it at dispatch"
            for name in bindings
            if name not in self._owned_names
        ]
        points = [point for point in self._inputs if point.owned]
        bound = _without_problems(problems, (partial(self._owned_by, bindings, p) for p in points))
        return {
            p.name: [self._backend.copy(a, self._name, f"a copy of {p.name}") for a in arrays]
            for p, arrays in zip(points, bound, strict=True)
        }

    def _owned_by(self, bindings: Mapping[str, Any], point: Point) -> list[Array]:
        if point.name not in bindings:
            raise BindingError(
                f"{point.name}: expected a binding (the input is OWNED_BY_DML), got none"
            )
        return self._bound(point, bindings[point.name])

    def dispatch(self, /, *unnamed: Never, **bindings: Any) -> None:
        """Run on the bound arrays and buffers.

        Parameters
        ----------
        **bindings : array, buffer, or sequence of them for a tensor list
            Of an operator, by the page's names (``InputTensor``) or the fields' (``input_tensor``);
            messages have the page's. Of a graph, by the names of its inputs and outputs. An array
            whose shape equals the tensor's sizes is taken element by element, whatever its memory
            layout; a flat contiguous array or a bytes-like object is the raw buffer, laid out by
            the tensor's strides. Where an operator's page allows in-place execution, and for
            SCATTER and SCATTER_ND, an output may be bound to exactly the memory of an input of its
            type and sizes.

        Raises
        ------
        BindingError
            A binding that is missing, unknown, given twice or does not fit; nothing has been
            written.
        IndexOutOfRangeError
            An index points outside its axis; nothing has been written.
        """
        if unnamed:
            raise unnamed_error("dispatch()", unnamed, self._points)
        if self._dispatch_plain(bindings):
            return
        by_name = self._by_name(bindings)
        if by_name.keys() != bindings.keys() and self._dispatch_plain(by_name):
            return
        self._run(self._bind(by_name), private=False)
        for point in self._outputs:
            bound = by_name[point.name]
            for value in bound if point.many else (bound,):
                bump_version(value)

    def _dispatch_plain(self, bindings: dict[str, Any]) -> bool:
        """Run on plain arrays by the points' names; whether that was possible."""
        if self._native is not decline:
            return self._native(bindings, get_num_threads()) == -1
        if len(bindings) != len(self._bound_names) + len(self._outputs):
            return False
        bindings = self._spread(bindings)
        arrays: dict[str, Array] = {}
        if not self._take_plain(bindings, arrays):
            return False
        for name, sizes, dtype in self._plain_outputs:
            value = bindings.get(name)
            if type(value) is not np.ndarray or value.shape != sizes or value.dtype != dtype:
                return False
            if not value.flags.carray:
                return False
            owns = value.flags.owndata
            for other in arrays.values():
                if value is other or type(other) is not np.ndarray:
                    return False  # which `refuse_overlap` decides
                if not (owns and other.flags.owndata) and np.may_share_memory(value, other):
                    return False
            arrays[name] = value
        self._run(arrays, private=False)
        return True

    def _take_plain(self, bindings: Mapping[str, Any], arrays: dict[str, Array]) -> bool:
        """Put inputs among the arrays, by slot; not where `bind` would convert or refuse one."""
        for name, sizes, dtype in self._plain_inputs:
            value = bindings.get(name)
            if type(value) is not np.ndarray or value.shape != sizes or value.dtype != dtype:
                return False
            if not value.flags.aligned:
                return False
            arrays[name] = value
        return self._executable is not None

    def _spread(self, bindings: dict[str, Any]) -> dict[str, Any]:
        """The bindings with the members of lists by the names of their slots."""
        if not self._lists:
            return bindings
        spread = dict(bindings)
        for point in self._lists:
            value = spread.pop(point.name, None)
            if type(value) in (list, tuple):
                members = tuple(value)
                if len(members) == len(point.slots):
                    spread.update(self._by_slot(point, members))
        return spread

    def _results(self, bindings: dict[str, Any]) -> dict[str, Any]:
        """Run on inputs; return the outputs by the names of their bind points."""
        executable = self._executable
        if executable is not None and not self._lists and not self.program.held:
            direct = executable.direct(bindings)
            if direct is not None:
                return direct
        arrays: dict[str, Any] = {}
        is_plain = len(bindings) == len(self._bound_names)
        if is_plain and self._take_plain(self._spread(bindings), arrays):
            results: dict[str, Any] = {
                slot.name: self._allocate(slot, None) for slot in self.program.outputs
            }
            arrays.update(results)
            self._run(arrays, private=True)
            for point in self._lists:
                if point.output:
                    results = {point.name: tuple(results[slot.name] for slot in point.slots)}
            return results
        bindings = self._by_name(bindings)
        outputs, wrap = self._allocated(bindings)
        self._run(self._bind({**bindings, **outputs}), private=True)
        return {
            name: tuple(map(wrap, value)) if isinstance(value, list) else wrap(value)
            for name, value in outputs.items()
        }

    def _allocated(self, bindings: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """New outputs by name, and what makes results of them."""
        like, wrap = self._first(bindings)
        outputs: dict[str, Any] = {}
        for point in self._outputs:
            if point.name in bindings:
                raise BindingError(
                    f"{point.name}: expected no binding (a call allocates its outputs), got one; "
                    f"use dispatch"
                )
            arrays = [self._allocate(slot, like) for slot in point.slots]
            outputs[point.name] = arrays if point.many else arrays[0]
        return outputs, wrap

    def _first(self, bindings: Mapping[str, Any]) -> tuple[Any, Any]:
        # Results are of the kind of the page's first input that is bound; bytes and other buffers
        # give NumPy arrays.
        name = next((point.name for point in self._inputs if point.name in bindings), "")
        first = bindings.get(name)
        if isinstance(first, list | tuple) and first:
            first = first[0]
        if isinstance(first, np.ndarray) or not hasattr(first, "__dlpack__"):
            return None, lambda array: array
        try:
            return as_operand(first, name)
        except ArgumentTypeError as error:
            raise BindingError(str(error)) from error

    def _allocate(self, slot: Slot, like: Any) -> Array:
        # What the kernel does not write stays as it is: nothing left over in memory may show.
        return self._backend.allocate(slot, slot.name in self._undefined, self._name, like)

    def _bound(self, point: Point, value: Any) -> list[Array]:
        device = self._backend.device
        if not point.many:
            return [bind(point.name, point.tensors[0], value, point.output, device)]
        if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
            raise BindingError(
                f"{point.name}: expected a sequence of arrays, got {short_repr(value)}"
            )
        expected = len(point.tensors)
        try:
            count = len(value)
            # A list of its own: a member's methods may change the caller's, and lengths may lie.
            members = [item for _, item in zip(range(expected + 1), value, strict=False)]
        except (TypeError, ValueError) as error:
            raise BindingError(f"{point.name}: {error}") from error
        if count != expected:
            raise BindingError(f"{point.name}: expected {expected} arrays, got {count}")
        if len(members) != expected:
            raise BindingError(f"{point.name}: expected {expected} arrays, got {len(members)}")
        parts = zip(point.slots, point.tensors, members, strict=True)
        return _without_problems(
            [], (partial(bind, s.name, t, item, point.output, device) for s, t, item in parts)
        )

    def _by_name(self, bindings: Mapping[str, Any]) -> dict[str, Any]:
        """The bindings by the points' names, where some may be given by their other names."""
        found: dict[str, Any] = {}
        problems = []
        for spelling, value in bindings.items():
            point = self._spellings.get(spelling)
            if point is None:
                problems.append(self._unknown(spelling))
            elif point.name in found:
                problems.append(
                    f"{point.name}: expected one binding, got two (also as {point.attribute})"
                )
            else:
                found[point.name] = value
        _without_problems(problems)
        return found

    def _unknown(self, name: str) -> str:
        """The error for an unknown binding name."""
        return (
            f"{name}: expected one of {', '.join(self._points)}, got an unknown binding"
            f"{did_you_mean(name, self._spellings)}"
        )

    def _bind(self, bindings: Mapping[str, Any]) -> dict[str, Array]:
        """Arrays of the declared sizes by slot."""
        problems = [
            f"{name}: expected no binding (the input is OWNED_BY_DML), got one; "
            f"bind it with initialize"
            for name in bindings
            if name in self._owned_names
        ]
        points = self._points.values()
        bound = _without_problems(problems, (partial(self._taken, bindings, p) for p in points))
        sides: list[list[tuple[str, Array]]] = [[], []]
        for point, arrays in zip(points, bound, strict=True):
            if arrays is not None:
                sides[point.output] += self._by_slot(point, arrays)
        inputs, outputs = sides
        refuse_overlap(outputs, inputs, self._in_place)
        return dict(inputs + outputs)

    def _taken(self, bindings: Mapping[str, Any], point: Point) -> list[Array] | None:
        """The arrays of a point; None if it is owned."""
        if point.name in self._owned_names:
            if self._executable is None:
                raise BindingError(
                    f"{point.name}: expected an initialized input (it is OWNED_BY_DML), got none; "
                    f"call initialize first"
                )
            return None
        if point.name not in bindings:
            raise BindingError(f"{point.name}: expected a binding, got none")
        return self._bound(point, bindings[point.name])

    def _held(self, arrays: Mapping[str, Array], private: bool) -> Iterator[tuple[str, Any]]:
        """Copies of what the memory of outputs holds; zeros where it was allocated for the run."""
        slots = {slot.name: slot for slot in self.program.inputs}
        for name, output in self.program.held:
            if private or not output:
                yield name, self._backend.allocate(slots[name], True, self._name)
            else:
                purpose = f"a copy of {output}"
                yield name, self._backend.copy(arrays[output], self._name, purpose)

    @staticmethod
    def _by_slot(point: Point, arrays: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        return zip((slot.name for slot in point.slots), arrays, strict=True)

    def _run(self, arrays: Mapping[str, Array], private: bool) -> None:
        executable = self._executable  # of one initialization
        assert executable is not None, "the bindings have been checked"
        if self.program.held:
            arrays = {**arrays, **dict(self._held(arrays, private))}
        try:
            executable.run(arrays, private, get_num_threads())
        except AllocationError as error:  # which names the kernel
            raise AllocationError(self._name, error.bytes, error.purpose) from None
