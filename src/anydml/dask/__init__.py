"""The array functions on dask arrays: lazy, in chunks along any axis, the same bits as in memory.

The functions of the package send dask arrays here. What is wrong with arguments, shapes and types
is an error at once; a bad index is one when the block that holds it is computed. They are here
under their own names, too.
"""

from collections.abc import Callable
from typing import Any

from anydml.core.extras import name_missing_package
from anydml.functions._dispatch import function_of
from anydml.functions._function import function_specs

with name_missing_package("anydml.dask", "anydml[dask]"):
    from dask.array import asarray as _asarray

    from anydml.dask._calls import call_of

__all__: list[str] = []


def __getattr__(name: str) -> Callable[..., Any]:
    """An array function that makes dask arrays of all operands."""
    return function_of(__name__, name, call_of, _asarray)


def __dir__() -> list[str]:
    return [*__all__, *function_specs()]
