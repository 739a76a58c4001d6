"""How many threads a call may use.

The innermost `num_threads` block of the current context decides, then `set_num_threads`, then
``ANYDML_NUM_THREADS``, then the processors that this process may use. Results never depend on it.
"""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from types import TracebackType
from typing import Final

from anydml._native import native
from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError

VARIABLE: Final = "ANYDML_NUM_THREADS"
_MOST: Final = 256

_in_context: ContextVar[int] = ContextVar("anydml.num_threads", default=0)
of_context: Final = _in_context.get
"""The number of the innermost `num_threads` block; 0 outside of every block."""

# What the enclosing blocks set. With the context, not the block: threads may share one.
_enclosing: ContextVar[tuple[int, ...]] = ContextVar("anydml.num_threads.outside", default=())


def _checked(count: object, name: str) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise ArgumentTypeError(f"{name}: expected an integer, got {short_repr(count)}")
    if not 1 <= count <= _MOST:
        raise ArgumentError(f"{name}: expected 1..{_MOST}, got {short_repr(count)}")
    return count


def _from_environment() -> int:
    text = os.environ.get(VARIABLE)
    if not text:
        return int(native.available_threads())
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ArgumentError(f"{VARIABLE}: expected 1..{_MOST}, got {short_repr(text)}")
    return _checked(int(text), VARIABLE)


_in_process = _from_environment()
native.use_threads(_in_context, _in_process)


def get_num_threads() -> int:
    """The most threads that a call from here uses.

    Examples
    --------
    >>> import anydml as dml
    >>> with dml.num_threads(1):
    ...     dml.get_num_threads()
    1
    """
    return _in_context.get() or _in_process


def set_num_threads(count: int) -> None:
    """Set the most threads that a call uses, for the whole process.

    Parameters
    ----------
    count : int
        1 to 256.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        Not an integer in that range.

    Examples
    --------
    >>> import anydml as dml
    >>> usual = dml.get_num_threads()
    >>> dml.set_num_threads(1)
    >>> dml.get_num_threads()
    1
    >>> dml.set_num_threads(usual)
    """
    global _in_process
    _in_process = _checked(count, "count")
    native.use_threads(_in_context, _in_process)


class num_threads:
    """A context manager: calls inside the block use at most `count` threads.

    It holds for the current thread or task (context), may be nested, entered again and shared.

    Parameters
    ----------
    count : int
        1 to 256.

    Examples
    --------
    >>> import anydml as dml
    >>> with dml.num_threads(1):
    ...     dml.split([1, 2, 3, 4], 2)
    (array([1, 2]), array([3, 4]))
    """

    def __init__(self, count: int) -> None:
        self.count = _checked(count, "count")

    def __enter__(self) -> None:
        _enclosing.set((*_enclosing.get(), _in_context.get()))
        _in_context.set(self.count)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        *rest, before = _enclosing.get()
        _enclosing.set(tuple(rest))
        _in_context.set(before)
