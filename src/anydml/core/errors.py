"""The errors, as one tree.

::

    AnyDMLError
    ├── InvalidDescriptorError   (ValueError)    a descriptor breaks rules of its page: all of them
    ├── BindingError             (ValueError)    a bound array or buffer does not fit its tensor
    ├── IndexOutOfRangeError     (IndexError)    an index value points outside its axis
    ├── ArgumentError            (ValueError)    an argument of an array function does not fit
    ├── ArgumentTypeError        (TypeError)     … is of a kind or type that is not taken
    ├── ModelError               (ValueError)    a JSON model or descriptor cannot be read or run
    ├── DeviceError              (RuntimeError)  a device that this machine does not have
    │   ├── MissingKernelError                   an operator that a device has no kernel for
    │   └── MissingPackageError (ModuleNotFoundError)  a package that an extra installs
    └── AllocationError          (MemoryError)   memory for a result or for scratch is not there

Every message names the tensor or argument, the rule, what was got and what would be accepted.
Nothing has been written when one of these is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anydml.core.problems import Problem, accepted_by, code_of


class AnyDMLError(Exception):
    """Base of all errors that anydml raises."""


@dataclass(frozen=True)
class Violation:
    """One rule that a descriptor breaks.

    Attributes
    ----------
    path : str
        Where: operator, field, element, as ``SCATTER_ND.IndicesTensor.Sizes[-1]``.
    rule : str
        What would be accepted.
    got : object
        What stands there.
    """

    path: str
    rule: str
    got: object

    @property
    def code(self) -> str:
        """The kind of rule: ``unsupported_data_type``, ``invalid_axis``."""
        return code_of(self.path, self.rule)

    @property
    def accepted(self) -> dict[str, Any] | None:
        """The values that the rule accepts: ``values``, ``minimum`` and ``maximum``, or ``length``.

        None where the rule only has words for it.
        """
        return accepted_by(self.rule)

    def as_json(self) -> dict[str, Any]:
        """The members of a report on the violation."""
        return {
            "path": self.path,
            "rule": self.rule,
            "got": str(self.got),
            "code": self.code,
            "accepted": self.accepted,
        }

    def __str__(self) -> str:
        try:
            got = str(self.got)
        except ValueError:  # Python prints no integer of more than 4,300 digits
            got = "an integer of thousands of digits"
        return f"{self.path}: expected {self.rule}, got {got}"


class InvalidDescriptorError(AnyDMLError, ValueError):
    """A descriptor breaks rules; ``violations`` lists all of them."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations: tuple[Violation, ...] = tuple(violations)
        super().__init__("\n".join(map(str, self.violations)))

    def __reduce__(self) -> tuple[type[InvalidDescriptorError], tuple[tuple[Violation, ...]]]:
        return type(self), (self.violations,)


class BindingError(AnyDMLError, ValueError):
    """A bound array or buffer is invalid; the message starts with the binding's name."""


class IndexOutOfRangeError(AnyDMLError, IndexError):
    """An index value that points outside its axis.

    Attributes
    ----------
    position : tuple of int
        Coordinates of the first bad value (in row-major order) in the index tensor.
    value : int
        The value.
    size : int
        The size of the axis that it should point into.
    """

    def __init__(self, message: str, position: tuple[int, ...], value: int, size: int) -> None:
        self.position = position
        self.value = value
        self.size = size
        super().__init__(message)

    def __reduce__(
        self,
    ) -> tuple[type[IndexOutOfRangeError], tuple[str, tuple[int, ...], int, int]]:
        return type(self), (str(self), self.position, self.value, self.size)


class ArgumentError(AnyDMLError, ValueError):
    """An argument of an array function has an invalid value or shape."""


class ArgumentTypeError(AnyDMLError, TypeError):
    """An argument of an array function has an unsupported class or element type."""


class ModelError(AnyDMLError, ValueError):
    """A JSON model, or a descriptor's JSON form, that cannot be read or run.

    Attributes
    ----------
    problems : tuple of str
        Everything that is wrong with it; the message has them one below the other, with line and
        column if the text is known.
    """

    partial: Any
    """The value, unknown where it could not be read; readers of parts set it for their callers."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, one after another."""
        return self.args

    def __str__(self) -> str:
        return "\n".join(Problem(problem).line for problem in self.problems)


class DeviceError(AnyDMLError, RuntimeError):
    """A device does not exist on this machine, or does not support the operation."""


class MissingKernelError(DeviceError):
    """An operator that a device has no kernel for.

    Attributes
    ----------
    operator : str
        Its name.
    backend : str
        What lacks the kernel: ``"CPU"``, ``"CUDA"`` or ``"XLA"``.
    """

    def __init__(self, operator: str, backend: str) -> None:
        self.operator = operator
        self.backend = backend
        super().__init__(f"{operator} has no {backend} kernel; Device('reference') runs it")

    def __reduce__(self) -> tuple[type[MissingKernelError], tuple[str, str]]:
        return type(self), (self.operator, self.backend)


class MissingPackageError(DeviceError, ModuleNotFoundError):
    """A package that a part of anydml needs is not installed.

    Attributes
    ----------
    name : str
        The module that could not be imported.
    user : str
        What needs it.
    install : str
        What ``pip install`` takes to install it, as ``anydml[jax]``.
    """

    def __init__(self, user: str, name: str, install: str) -> None:
        self.user = user
        self.install = install
        message = (
            f"{user}: expected the module {name}, which is not installed; "
            f"install it with `pip install '{install}'`"
        )
        ModuleNotFoundError.__init__(self, message, name=name)

    def __reduce__(self) -> tuple[type[MissingPackageError], tuple[str, str | None, str]]:
        return type(self), (self.user, self.name, self.install)


class AllocationError(AnyDMLError, MemoryError):
    """Memory that a call needs and the system does not have.

    Attributes
    ----------
    call : str
        The function or operator.
    bytes : int or None
        How much; None where the size is unknown.
    purpose : str
        What for.
    """

    def __init__(self, call: str, bytes: int | None, purpose: str) -> None:
        self.call = call
        self.bytes = bytes
        self.purpose = purpose
        amount = "memory" if bytes is None else _amount(bytes)
        super().__init__(f"{call}: {amount} for {purpose} could not be allocated")

    def __reduce__(self) -> tuple[type[AllocationError], tuple[str, int | None, str]]:
        return type(self), (self.call, self.bytes, self.purpose)


def _amount(count: int) -> str:
    if count < 1000:
        return f"{count} bytes"
    if count >= 10**27:
        return "more than 10^27 bytes"  # and more than a float may hold
    power = (len(str(count)) - 1) // 3
    unit = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")[power]
    return f"{count / 1000**power:.1f} {unit}"


for _class in (*globals().values(),):
    if isinstance(_class, type) and (_class is Violation or issubclass(_class, AnyDMLError)):
        _class.__module__ = "anydml"  # the place to import it from, in tracebacks and pickles
