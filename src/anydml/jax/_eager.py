"""Calls with arrays of JAX outside of its transformations: programs that are compiled once.

`jax.jit` keeps a program for each shape and type of arrays; here each set of other arguments has
one of its own. JAX decides where it runs, and whether results are committed to a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, wraps
from inspect import signature
from typing import Any, Final, NoReturn, TypeVar

import jax
import numpy as np
from jax import numpy as jnp

from anydml import threads
from anydml.backends import cuda
from anydml.errors import AnyDMLError, ArgumentError, ArgumentTypeError
from anydml.jax import _kernels

Function = TypeVar("Function", bound=Callable[..., Any])

with jax.ensure_compile_time_eval():  # the first call may come from code that is being traced
    _ARRAY: Final = type(jnp.zeros(0))
_PLAIN: Final = frozenset((_ARRAY, int, bool, str, type(None)))
_RAISE: Final = "raise"
_MOST: Final = 4096  # programs of a function


def has_memory(value: Any) -> bool:
    """Whether the value is an array of JAX, and no tracer."""
    return type(value) is _ARRAY


def is_on_gpu(value: Any) -> bool:
    """Whether the value is an array of JAX on a GPU."""
    return has_memory(value) and any(device.platform == "gpu" for device in value.devices())


def compiled(
    general: Callable[..., Any], operands: int, check: Callable[..., None] | None = None
) -> Callable[[Function], Function]:
    """Make a function for traced code one that is compiled when it gets arrays with memory.

    Parameters
    ----------
    general : callable
        The function for NumPy's arrays, which writes into an array of the caller's (`out`).
    operands : int
        How many of its arguments are operands; they come first, and all others are static. 0: the
        first one is a sequence of operands.
    check : callable, optional
        Takes the operands, and raises for values that a program does not refuse.
    """

    def decorate(function: Function) -> Function:
        programs: dict[Any, Any] = {}
        count = operands or 1
        names = [*signature(function).parameters] if operands else []
        has_indices = "indices" in names

        def chosen(arguments: tuple[Any, ...], options: dict[str, Any], key: Any) -> Any:
            """What computes the result from the operands, for arguments without a plain key."""
            given, static = arguments[:count], arguments[count:]
            arrays = given if operands else given[0]
            if options.get("out") is not None and any(map(has_memory, arrays)):
                return partial(_written, general, static=static, options=options)
            values, kinds, *others = key
            if not {_ARRAY}.issuperset(map(type, arrays)) or len(arrays) < count:
                return lambda *_: function(*arguments, **options)
            if not _PLAIN.issuperset(kinds):
                try:
                    key = tuple(map(_frozen, values)), len(arrays), *others
                except TypeError:
                    return lambda *_: function(*arguments, **options)
            if key not in programs:
                if len(programs) >= _MOST:
                    programs.clear()
                programs[key] = program_of(function, static, options)
            return programs[key]

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            values = (*arguments[count:], *options.values())
            given: Sequence[Any] = arguments
            if not operands:
                if not arguments or not isinstance(arguments[0], list | tuple):
                    return function(*arguments, **options)
                given = arguments[0]
            key = values, (*map(type, given), *map(type, values)), (*options,), threads.of_context()
            try:
                compute = programs.get(key)
            except TypeError:  # a list, say
                compute = None
            try:
                if compute is None:
                    compute = chosen(arguments, options, key)
                if check is not None:
                    check(*arguments[:count])
                result = compute(*arguments[:count])
                if has_indices and type(result) is _ARRAY and options.get("mode", _RAISE) == _RAISE:
                    result.block_until_ready()
                    cuda.raise_bad_indices()
            except AnyDMLError as error:
                vars(error).pop("__notes__", None)  # of JAX, about frames that it left out
                raise
            except (RuntimeError, ValueError) as error:
                _translate(error, given, names)
            return result

        return call  # type: ignore[return-value]  # with the function's own signature

    return decorate


def program_of(
    function: Callable[..., Any], static: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    most = threads.of_context()

    def traced(*operands: Any) -> Any:
        token = _kernels.threads.set(most)
        try:
            return function(*operands, *static, **options)
        finally:
            _kernels.threads.reset(token)

    return jax.jit(traced)


def _frozen(value: Any) -> Any:
    """What tells a static argument from others; TypeError for an unusual one."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.dtype | type):
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if kind is float:
        return kind, value.hex()  # -0.0 is not 0.0, and NaN is itself
    if kind is list or kind is tuple:
        plain = {int}.issuperset(map(type, value))
        return kind, tuple(value if plain else map(_frozen, value))
    raise TypeError


def _written(
    general: Callable[..., Any], *given: Any, static: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    def on_host(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [on_host(one) for one in value]
        return np.asarray(value) if has_memory(value) else value

    return general(*map(on_host, given), *static, **options)


def _translate(error: Exception, arrays: Sequence[Any], names: Sequence[str]) -> NoReturn:
    """Raise this package's own error for one of JAX's, where it has one.

    `names` are those of the operands; none where they are members of one argument.
    """
    text = str(error)
    for failure in reversed(_kernels.failures):
        if str(failure) in text:
            raise copy(failure) from error
    for i, array in enumerate(arrays):
        if has_memory(array) and array.is_deleted():
            name = names[i] if names else f"arrays[{i}]"
            raise ArgumentTypeError(
                f"{name}: expected an array with memory, got one that was deleted or donated"
            ) from error
    known = [array for array in arrays if has_memory(array)]
    places = {tuple(sorted(map(str, array.devices()))) for array in known if array.committed}
    if len(places) > 1:
        named = " and ".join(" ".join(place) for place in sorted(places))
        raise ArgumentError(f"arrays: expected all on one device, got {named}") from error
    raise error
