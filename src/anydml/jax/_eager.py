"""Calls with arrays of JAX outside of its transformations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final, NoReturn

import jax
import numpy as np

from anydml._native import native
from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, ArgumentError, ArgumentTypeError
from anydml.devices import threads
from anydml.devices.backends import cuda
from anydml.devices.backends._xla_calls import failures
from anydml.functions._arguments import members_of
from anydml.functions._function import FunctionSpec
from anydml.functions._memory import on_memory
from anydml.jax._calls import UnknownSizeError
from anydml.jax._namespace import ARRAY
from anydml.jax._programs import DEFAULT, Programs, freeze

_LISTS: Final = frozenset((list, tuple))


def call_of(spec: FunctionSpec) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the call of a function on JAX's arrays: of arguments without ``out``, and ``out``."""
    programs = Programs(spec)
    is_list, count, last, default = (
        spec.lists_operands, programs.count, programs.count - 1, programs.default,
    )  # fmt: skip
    # Local names: every call reads them.
    by_key, call_key = programs.by_key, native.call_key
    threads_of_context, gpus_in_use = threads.of_context, native.cuda.in_use

    def call(arguments: tuple[Any, ...], out: Any) -> Any:
        if is_list and type(arguments[0]) not in _LISTS:
            arguments = members_of(arguments[0]), *arguments[1:]
        if out is not None:
            return _write(spec, arguments[0] if is_list else arguments[:count], arguments, out)
        if arguments[last] is default:
            arguments = *arguments[:last], DEFAULT, *arguments[count:]
        try:
            key = call_key(arguments, count, is_list, threads_of_context(), freeze)
            program = by_key.get(key)
        except (TypeError, RecursionError):
            key = program = None
        try:
            compute, waits = program or programs.make(arguments, key)
            result = compute(*arguments[:count])
            if waits and type(result) is ARRAY:  # else a tracer, in the caller's traced code
                result.block_until_ready()
                if 0 in result.shape:
                    _on_host(spec, arguments[:count], arguments)
                if gpus_in_use():
                    cuda.raise_bad_indices()
        except UnknownSizeError:
            if any(isinstance(value, jax.core.Tracer) for value in arguments[:count]):
                raise
            return programs.on_memory(arguments, key)(*arguments[:count])
        except AnyDMLError as error:
            vars(error).pop("__notes__", None)  # of JAX, about frames that it left out
            raise
        except (RuntimeError, ValueError) as error:
            _translate(spec, arguments[0] if is_list else arguments[:count], error)
        return result

    return call


def _write(
    spec: FunctionSpec, operands: Sequence[Any], arguments: tuple[Any, ...], out: Any
) -> Any:
    if not any(type(value) is ARRAY for value in operands):  # JAX's arrays are never written
        raise ArgumentTypeError(
            f"out: expected None in traced code, got {short_repr(type(out).__name__)}"
        )
    return _on_host(spec, operands, arguments, out)


def _on_host(
    spec: FunctionSpec, operands: Sequence[Any], arguments: tuple[Any, ...], out: Any = None
) -> Any:
    """Call the function in host memory; also to check indices where the result has no elements.

    XLA then drops the call that checks them. Either the operands have no elements, or there are no
    indices to check, so this costs little.
    """
    on_host = [np.asarray(value) if type(value) is ARRAY else value for value in operands]
    arrays = [on_host] if spec.lists_operands else on_host
    return on_memory(spec, (*arrays, *arguments[len(arrays) :]), out)


def _translate(spec: FunctionSpec, arrays: Sequence[Any], error: Exception) -> NoReturn:
    """Raise this package's own error for one of JAX's, where it has one."""
    text = str(error)
    for failure in reversed(failures):
        if str(failure) in text:
            raise copy(failure) from error
    for i, array in enumerate(arrays):
        if type(array) is ARRAY and array.is_deleted():
            raise ArgumentTypeError(
                f"{spec.operand_name(i)}: expected an array with memory, got one that was deleted "
                f"or donated"
            ) from error
    known = [array for array in arrays if type(array) is ARRAY]
    places = {tuple(sorted(map(str, array.devices()))) for array in known if array.committed}
    if len(places) > 1:
        devices = " and ".join(" ".join(place) for place in sorted(places))
        raise ArgumentError(f"arrays: expected all on one device, got {devices}") from error
    raise error
