"""What can go wrong, as one tree.

::

    AnyDMLError
    ├── InvalidDescriptorError   (ValueError)    a descriptor breaks rules of its page: all of them
    ├── BindingError             (ValueError)    a bound array or buffer does not fit its tensor
    ├── IndexOutOfRangeError     (IndexError)    an index value points outside its axis
    ├── ArgumentError            (ValueError)    an argument of an array function does not fit
    ├── ArgumentTypeError        (TypeError)     … is of a kind or type that is not taken
    ├── ModelError               (ValueError)    a JSON model or descriptor cannot be read or run
    └── DeviceError              (RuntimeError)  a device that this machine does not have

Every message names the tensor or argument, the rule, what was got and what would be accepted.
Nothing has been written when one of these is raised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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

    def __str__(self) -> str:
        return f"{self.path}: expected {self.rule}, got {self.got}"


class InvalidDescriptorError(AnyDMLError, ValueError):
    """A descriptor that breaks rules of its page; ``violations`` has all of them at once."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations: tuple[Violation, ...] = tuple(violations)
        super().__init__("\n".join(map(str, self.violations)))

    def __reduce__(self) -> tuple[type[InvalidDescriptorError], tuple[tuple[Violation, ...]]]:
        return type(self), (self.violations,)


class BindingError(AnyDMLError, ValueError):
    """A bound array or buffer that does not fit; the message starts with the binding's name."""


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
    """An argument of an array function whose value or shape does not fit."""


class ArgumentTypeError(AnyDMLError, TypeError):
    """An argument of an array function whose kind or element type is not taken."""


class ModelError(AnyDMLError, ValueError):
    """A JSON model, or a descriptor's JSON form, that cannot be read or run."""


class DeviceError(AnyDMLError, RuntimeError):
    """A device that does not exist here, or cannot do what was asked."""
