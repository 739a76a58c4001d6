"""Calls with arrays of JAX outside of its transformations: programs that are compiled once.

`jax.jit` keeps a program for each shape and type of arrays; here each set of other arguments has
one of its own. JAX decides where it runs, and whether results are committed to a device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from inspect import signature
from typing import Any, Final, NoReturn

import jax
import numpy as np
from jax import numpy as jnp

from anydml import threads
from anydml._json import short_repr
from anydml._native import native
from anydml.arrays import as_numpy
from anydml.backends import cuda
from anydml.errors import AnyDMLError, ArgumentError, ArgumentTypeError
from anydml.functions._spec import FunctionSpec
from anydml.jax import _kernels
from anydml.jax._calls import UnknownSizeError, trace

with jax.ensure_compile_time_eval():  # the first call may come from code that is being traced
    _ARRAY: Final = type(jnp.zeros(0))
_PLAIN: Final = frozenset((int, bool, str, type(None)))
_MOST: Final = 4096  # programs of a function

Program = tuple[Callable[..., Any], bool]
"""What computes the result from the operands, and whether it checks indices while it runs."""


def call_of(spec: FunctionSpec) -> Callable[[tuple[Any, ...], Any], Any]:
    """What calls a function on arrays of JAX: takes its arguments without ``out``, and ``out``."""
    programs: dict[Any, Program] = {}
    listed, value_checks = spec.lists_operands, spec.value_checks
    count = 1 if listed else len(spec.operands)
    # Values of these kinds can be equal and not the same, or have no hash.
    freeze = any(a.kind in ("sizes", "integers", "number") for a in spec.attributes)
    names = [*signature(spec.general).parameters]
    mode = names.index("mode") if "mode" in names else -1
    has_indices = native.checks_indices(spec.operator.KERNEL)

    def make(arguments: tuple[Any, ...], given: Sequence[Any], key: Any) -> Program:
        static = arguments[count:]
        try:
            for value in static:
                _frozen(value)
        except TypeError:
            key = None
        checks = has_indices and (mode < 0 or arguments[mode] == "raise")
        if key is None or not all(map(has_memory, given)):
            traced = any(isinstance(x, jax.core.Tracer) for x in given)
            return (lambda *operands: trace(spec, (*operands, *static))), checks and not traced
        compute = program_of(lambda *operands: trace(spec, (*operands, *static)))
        if len(programs) >= _MOST:
            programs.clear()
        programs[key] = program = compute, checks
        return program

    def call(arguments: tuple[Any, ...], out: Any) -> Any:
        operands, static = arguments[:count], arguments[count:]
        given: Any = operands
        if listed:
            given = arguments[0]
            if not isinstance(given, list | tuple):
                return trace(spec, arguments)
        if out is not None:
            return _write(spec, given, arguments, out)
        try:
            frozen = tuple(map(_frozen, static)) if freeze else static
            kinds = (*map(type, arguments),)
            if listed:
                kinds += (*map(type, given),)
            key: Any = frozen, kinds, threads.of_context()
            program = programs.get(key)
        except TypeError:
            key = program = None
        try:
            compute, waits = program or make(arguments, given, key)
            if value_checks:
                _check_values(spec, given)
            result = compute(*operands)
            if waits:
                result.block_until_ready()
                cuda.raise_bad_indices()
        except UnknownSizeError:
            if not all(map(has_memory, given)):
                raise
            compute = partial(_on_memory, spec, static)
            programs[key] = compute, False
            return compute(*operands)
        except AnyDMLError as error:
            vars(error).pop("__notes__", None)  # of JAX, about frames that it left out
            raise
        except (RuntimeError, ValueError) as error:
            _translate(spec, given, error)
        return result

    return call


def has_memory(value: Any) -> bool:
    """Whether the value is an array of JAX, and no tracer."""
    return type(value) is _ARRAY


def program_of(function: Callable[..., Any]) -> Any:
    """A program that computes a function of traced arrays, with the caller's number of threads."""
    most = threads.of_context()

    def traced(*operands: Any) -> Any:
        token = _kernels.threads.set(most)
        try:
            return function(*operands)
        finally:
            _kernels.threads.reset(token)

    return jax.jit(traced)


def _frozen(value: Any) -> Any:
    """A hashable key of a static argument; TypeError if there is none."""
    kind = type(value)
    if kind in _PLAIN or isinstance(value, np.dtype | type):
        return kind, value
    if kind is list or kind is tuple:
        kinds = (*map(type, value),)
        if _PLAIN.issuperset(kinds):
            return kind, kinds, (*value,)
        return kind, kinds, (*map(_frozen, value),)
    if kind is float:
        return kind, value.hex()  # -0.0 is not 0.0, and NaN is itself
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    raise TypeError


def _check_values(spec: FunctionSpec, operands: Sequence[Any]) -> None:
    for i, check in spec.value_checks.items():
        if not isinstance(operands[i], jax.core.Tracer) and not _is_on_gpu(operands[i]):
            check(as_numpy(operands[i], spec.operands[i]))


def _is_on_gpu(value: Any) -> bool:
    return has_memory(value) and any(device.platform == "gpu" for device in value.devices())


def _on_memory(spec: FunctionSpec, static: tuple[Any, ...], *operands: Any) -> Any:
    """Of what the data decide the size of."""
    return spec.general(*operands, *static, None)


def _write(
    spec: FunctionSpec, operands: Sequence[Any], arguments: tuple[Any, ...], out: Any
) -> Any:
    if not any(map(has_memory, operands)):  # JAX's arrays are never written
        raise ArgumentTypeError(
            f"out: expected None beside a traced value, got {short_repr(type(out).__name__)}"
        )
    on_host = [np.asarray(value) if has_memory(value) else value for value in operands]
    given = [on_host] if spec.lists_operands else on_host
    return spec.general(*given, *arguments[len(given) :], out)


def _translate(spec: FunctionSpec, arrays: Sequence[Any], error: Exception) -> NoReturn:
    """Raise this package's own error for one of JAX's, where it has one."""
    text = str(error)
    for failure in reversed(_kernels.failures):
        if str(failure) in text:
            raise copy(failure) from error
    for i, array in enumerate(arrays):
        if has_memory(array) and array.is_deleted():
            raise ArgumentTypeError(
                f"{spec.operand_name(i)}: expected an array with memory, got one that was deleted "
                f"or donated"
            ) from error
    known = [array for array in arrays if has_memory(array)]
    places = {tuple(sorted(map(str, array.devices()))) for array in known if array.committed}
    if len(places) > 1:
        named = " and ".join(" ".join(place) for place in sorted(places))
        raise ArgumentError(f"arrays: expected all on one device, got {named}") from error
    raise error
