"""The names of the native module, on NumPy; `anydml._native` takes it where that is missing.

What only the fast paths of other libraries and GPUs need is missing here, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.errors import AllocationError, ArgumentError, DeviceError
from anydml.portable._numbers import Array
from anydml.portable._tables import DLPACK_CODES, TABLES
from anydml.portable.kernels import KERNELS, find_nonzero

LEVEL: Final = "python"
_MOST_AXES: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32

_limit = 0


def load_kernels(path: str) -> str:
    """Return the name of the only level."""
    return LEVEL


def tables() -> Mapping[str, Any]:
    """Return the tables of element types and modes."""
    return TABLES


def added_types() -> dict[str, tuple[np.dtype[Any], int]]:
    """Return the types that NumPy lacks: their records, and their codes of DLPack."""
    sizes = {name: size for name, _, size, _, _ in TABLES["types"]}
    return {
        name: (np.dtype([(f"anydml.{name}", f"u{sizes[name]}")], align=True), code)
        for name, code in DLPACK_CODES.items()
    }


def know_added_type(dtype: np.dtype[Any], name: str) -> None:
    """Do nothing: only native calls keep types."""


def know_type(user_type: Any, dtype: np.dtype[Any]) -> None:
    """Do nothing: only native calls keep types."""


def as_integers(capsule: Any) -> str | None:
    """Return None: a capsule of a type that NumPy lacks is not read here."""
    return None


def available_threads() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_threads(context: Any, count: int) -> None:
    """Do nothing: the kernels run on one thread."""


def pool() -> tuple[int, int, int]:
    """Return the limit that was set, and no memory: NumPy keeps its own."""
    return _limit, 0, 0


def set_pool_limit(limit: int) -> None:
    """Keep the limit for `pool`."""
    global _limit
    _limit = limit


def kernels() -> list[str]:
    """Return the names of the kernels."""
    return [*KERNELS]


def run(
    name: str,
    inputs: Iterable[Array],
    outputs: Iterable[Array],
    attributes: Mapping[str, Any],
    output_is_private: bool,
    threads: int,
) -> int:
    """Run a kernel; return the position of the first bad index, or -1.

    Raises
    ------
    ArgumentError
        An operand that does not lie in the address space, or that has too many elements.
    """
    sides = {"input": [*inputs], "output": [*outputs]}
    for side, arrays in sides.items():
        for i, array in enumerate(arrays):
            _check_place(array, f"{name}: {side} {i}")
    return KERNELS[name](sides["input"], sides["output"], attributes)


def _check_place(array: Array, name: str) -> None:
    """Refuse memory that NumPy would read without a look at the strides."""
    reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    address = array.__array_interface__["data"][0]
    begin, end = (address + sum(pick(0, way) for way in reach) for pick in (min, max))
    if array.size and (array.size > TABLES["most_elements"] or begin < 0 or end >= 2**57):
        raise ArgumentError(f"{name}: expected at most 2^48 elements, within the address space")


def run_measured(
    name: str, x: Array, attributes: Mapping[str, Any], make: Callable[[int], Array], threads: int
) -> Array:
    """Run a kernel whose output has a size that the data decide."""
    _check_place(x, f"{name}: input 0")
    rows = find_nonzero(x, attributes["columns"])
    output = make(len(rows))
    output[...] = rows
    return output


def empty(shape: Sequence[int], dtype: Any, call: str, purpose: str) -> Array:
    """Allocate an array of undefined contents.

    Raises
    ------
    ArgumentError
        More axes than NumPy has.
    AllocationError
        It cannot be allocated: `call` needs it for `purpose`.
    """
    if len(shape) > _MOST_AXES:
        raise ArgumentError(
            f"{call}: expected at most {_MOST_AXES} axes of {purpose}, got {len(shape)}"
        )
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError):  # "array is too big"
        size = prod(map(int, shape)) * np.dtype(dtype).itemsize
        raise AllocationError(call, size, purpose) from None


def chain_operations() -> list[str]:
    """Return no operation: elementwise chains run in NumPy's blocks."""
    return []


def function_call(kernel: str, result_class: Any = None) -> Callable[..., Any]:
    """Return a call that leaves every array to the general path."""
    return _decline


def _decline(*arguments: Any) -> None:
    return None


class CompiledCall:
    """The dispatch of a compiled operator, which leaves every binding to the general path."""

    def __init__(self, *facts: Any) -> None:
        pass

    def dispatch(self, bindings: Any, threads: int) -> None:
        """Decline."""


class cuda:  # the name of the native module's part
    """The part for GPUs, which needs the native modules."""

    @staticmethod
    def in_use() -> tuple[int, ...]:
        """Return no GPU."""
        return ()

    @staticmethod
    def configure(*places: Any) -> None:
        """Do nothing."""

    @staticmethod
    def devices() -> tuple[list[Any], int]:
        """Raise an error that says what GPUs need."""
        raise DeviceError(
            "GPUs need the native modules, which this installation of anydml lacks; install a "
            "wheel for this platform, or build it with a C++20 compiler: pip install ."
        )
