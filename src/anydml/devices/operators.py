"""Describe → create → compile → initialise → bind → dispatch."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

from anydml.core._json import check_word, short_repr, unnamed_error
from anydml.core._literals import OutOfRange
from anydml.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BindingError,
    InvalidDescriptorError,
)
from anydml.core.levels import FeatureLevel
from anydml.core.program import Program
from anydml.devices.dispatch import Compiled, Point, allowing_half
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

if TYPE_CHECKING:
    from anydml.devices._results import Desc, Results
    from anydml.devices.device import Device
else:
    Desc, Results = TypeVar("Desc", covariant=True), Generic


class Operator(Generic[Desc]):
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

    def __init__(self, desc: Desc, device: Device, out_of_range: OutOfRange = "raise") -> None:
        level = getattr(device, "feature_level", None)
        if not isinstance(level, FeatureLevel):
            raise ArgumentTypeError(f"device: expected a Device, got {short_repr(device)}")
        violations = checked_kind(desc).violations(level)
        if violations:
            raise InvalidDescriptorError(violations)
        check_word("out_of_range", out_of_range, ("raise", "clamp"))
        if out_of_range == "clamp" and not desc.CLAMPS:
            raise ArgumentError(f"out_of_range: expected 'raise' for {desc.NAME}, got 'clamp'")
        self._desc = desc
        self._device = device
        self._out_of_range = out_of_range

    @property
    def desc(self) -> Desc:
        """The descriptor."""
        return self._desc

    @property
    def device(self) -> Device:
        """The device that it was checked for."""
        return self._device

    @property
    def out_of_range(self) -> str:
        """The effect of an index outside its axis: ``"raise"`` or ``"clamp"``."""
        return self._out_of_range

    def __reduce__(self) -> tuple[type[Operator], tuple[Desc, Device, str]]:
        return type(self), (self._desc, self._device, self._out_of_range)

    def __repr__(self) -> str:
        return f"<Operator {self.desc!r} on {self.device!r}>"

    def compile(self, *, allow_half_precision: bool = False) -> CompiledOperator[Desc]:
        """Choose the kernel and lay out its plan.

        Parameters
        ----------
        allow_half_precision : bool
            As `Device.compile_graph` takes it.

        Raises
        ------
        MissingKernelError
            The device has no kernel for the operator; ``Device("reference")`` runs every one.
        """
        return CompiledOperator(self, allow_half_precision)


class CompiledOperator(Compiled, Results[Desc]):
    """An operator that is ready to run; may be dispatched from several threads at once.

    Made by `Operator.compile`.
    """

    def __init__(
        self,
        operator: Operator[Desc],
        allow_half_precision: bool = False,
        owned: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(operator, Operator):
            raise ArgumentTypeError(f"operator: expected an Operator, got {short_repr(operator)}")
        self.operator = operator
        self.desc = operator.desc
        program = allowing_half(self.desc.lower(), allow_half_precision)
        if operator.out_of_range == "clamp":
            program = program.clamped()
        super().__init__(
            self.desc.NAME, program, _points(self.desc, program), operator.device.backend, owned
        )

    def __reduce__(self) -> tuple[type[CompiledOperator], tuple[Operator, bool, dict[str, Any]]]:
        return type(self), (self.operator, self.program.allows_half, self._owned)

    def __repr__(self) -> str:
        return f"<CompiledOperator {self.desc!r} on {self.operator.device!r}>"

    def initialize(self, /, *unnamed: Never, **bindings: Any) -> CompiledOperator[Desc]:
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
        if unnamed:
            raise unnamed_error("initialize()", unnamed, self._owned_names)
        allows_half = self.program.allows_half
        return CompiledOperator(self.operator, allows_half, self._copies(bindings))

    if not TYPE_CHECKING:  # `_results.pyi` has the types of results

        def __call__(self, /, *inputs, **bindings):
            """Run on inputs, allocate the outputs and return them.

            Parameters
            ----------
            *inputs, **bindings : array or buffer
                The inputs, in the page's order or by name, as `dispatch` takes them.

            Returns
            -------
            array, tuple of arrays, or named tuple
                One array for one output, of the first input's kind; a tuple for a tensor list; a
                named tuple for several outputs. Elements that the operator leaves undefined are
                zero.

            Raises
            ------
            BindingError, IndexOutOfRangeError
                As `dispatch`.
            """
            if inputs:
                names = self._bound_names
                if len(inputs) > len(names):
                    raise BindingError(
                        f"inputs: expected at most {len(names)} ({', '.join(names)}), "
                        f"got {len(inputs)}"
                    )
                bindings = self._by_name(bindings)
                for name, value in zip(names, inputs, strict=False):
                    if name in bindings:
                        raise BindingError(
                            f"{name}: expected one binding, got two (by position and by name)"
                        )
                    bindings[name] = value
            results = tuple(self._results(bindings).values())
            return results[0] if len(results) == 1 else self._result_type(*results)

    @cached_property
    def _result_type(self) -> Any:
        fields = [point.attribute for point in self._outputs]
        return namedtuple(f"{type(self.desc).__name__}Outputs", fields)

    def _unknown(self, name: str) -> str:
        fields = self.desc.tensor_fields()
        if any(name in (info.name, info.attribute) for info in fields):
            return f"{name}: expected nothing (the descriptor leaves it out)"
        return super()._unknown(name)


def _points(desc: Descriptor, program: Program) -> Iterator[Point]:
    slots = {slot.name: slot for slot in (*program.inputs, *program.outputs)}
    for info in desc.bind_points():
        named_tensors = list(info.paths(getattr(desc, info.attribute)))
        yield Point(
            info.name,
            info.attribute,
            tuple(tensor.storage for _, tensor in named_tensors),
            info.many,
            info.role is Role.OUTPUT,
            tuple(slots[path] for path, _ in named_tensors),
        )


def checked_kind(desc: Descriptor) -> Descriptor:
    """The descriptor, if it is one.

    Raises
    ------
    ArgumentTypeError
        Anything else.
    """
    if not isinstance(desc, Descriptor):
        raise ArgumentTypeError(f"desc: expected an operator descriptor, got {short_repr(desc)}")
    return desc
