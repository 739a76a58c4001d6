"""The pool that large outputs and scratch come from.

Fresh memory costs more than the copy into it, so blocks go back to a capped pool when their arrays
die. A block is never handed out while an array, or a view of it, is alive. At first the pool keeps
at most 1 GiB, or an eighth of the memory that the process may use (the machine's, or its
container's limit) where that is less.
"""

from __future__ import annotations

from typing import NamedTuple

from anydml._native import native
from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError


class MemoryPool(NamedTuple):
    """The pool's state, in bytes: most that is kept, kept now, and in use now."""

    limit: int
    held: int
    lent: int


def memory_pool() -> MemoryPool:
    """The state of the memory pool.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.memory_pool().held <= dml.memory_pool().limit
    True
    """
    return MemoryPool(*native.pool())


def set_memory_pool_limit(limit: int) -> None:
    """Set the most bytes that the pool keeps; memory above it is given back at once.

    Parameters
    ----------
    limit : int
        In bytes; 0 switches the pool off.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        Negative, or 2^63 and more; not an integer.

    Examples
    --------
    >>> import anydml as dml
    >>> usual = dml.memory_pool().limit
    >>> dml.set_memory_pool_limit(0)
    >>> dml.memory_pool().held
    0
    >>> dml.set_memory_pool_limit(usual)
    """
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ArgumentTypeError(f"limit: expected an integer, got {short_repr(limit)}")
    if not 0 <= limit < 2**63:
        raise ArgumentError(f"limit: expected 0..2^63 - 1 bytes, got {short_repr(limit)}")
    native.set_pool_limit(limit)
