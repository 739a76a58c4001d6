"""Calls with arrays of JAX outside of its transformations.

`jax.jit` keeps a program for each shape and type of arrays; here each set of other arguments has
one of its own. Operands that are not arrays of JAX become arrays of NumPy, and `jax.jit` places
them where the arrays of JAX are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from enum import Enum
from inspect import signature
from typing import Any, Final, NoReturn

import jax
import numpy as np
from jax import numpy as jnp

from anydml._native import native
from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, ArgumentError, ArgumentTypeError
from anydml.devices import threads
from anydml.devices.backends import cuda
from anydml.devices.backends._xla_calls import failures
from anydml.functions._arguments import members_of
from anydml.functions._function import FunctionSpec
from anydml.functions._memory import on_memory
from anydml.jax import _calls, _namespace
from anydml.jax._calls import UnknownSizeError, trace
from anydml.jax._namespace import ARRAY, HostNamespace
from anydml.libraries import as_numpy

_LISTS: Final = frozenset((list, tuple))
DEFAULT: Final = object()
"""Stands for the default value of the last operand, which is a constant of the program."""

_MOST: Final = 4096  # programs that are kept
_SMALL: Final = 1024  # bytes of an array in a key
_host: Final = HostNamespace(_calls.call)

Compute = Callable[..., Any]
"""Computes the result from the operands."""

Program = tuple[Compute, bool]
"""How the result is computed, and whether to wait for it, because indices are checked meanwhile."""


def call_of(spec: FunctionSpec) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the call of a function on JAX's arrays: of arguments without ``out``, and ``out``."""
    programs = Programs(spec)
    is_list, count, last, default = (
        spec.lists_operands, programs.count, programs.count - 1, programs.default,
    )  # fmt: skip
    # Local names: every call reads them.
    by_key, call_key = programs.by_key, native.call_key
    threads_of_context, gpus_in_use = threads.of_context, native.cuda.in_use

    def is_unset(out: Sequence[Any]) -> bool:
        """Whether the call allocates all of its results."""
        return 0 < len(out) == len(spec.result_names) and all(one is None for one in out)

    def call(arguments: tuple[Any, ...], out: Any) -> Any:
        if is_list and type(arguments[0]) not in _LISTS:
            arguments = members_of(arguments[0]), *arguments[1:]
        if out is not None and not (type(out) in _LISTS and is_unset(out)):
            operands = arguments[0] if is_list else arguments[:count]
            if not any(type(value) is ARRAY for value in operands):
                # JAX's arrays are never written.
                raise ArgumentTypeError(
                    f"out: expected None in traced code, got {short_repr(type(out).__name__)}"
                )
            return _on_host(spec, operands, arguments, out)
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


class Programs:
    """The programs of a function's calls."""

    def __init__(self, spec: FunctionSpec) -> None:
        names = [*signature(spec.prepare).parameters][1:]
        # By keys of calls (`native.call_key`), in which operands count by their types. The key of a
        # call that cannot be found again is None.
        self.by_key: dict[Any, Program] = {}
        # How many arguments are operands; a list of them is one.
        self.count = 1 if spec.lists_operands else len(spec.operands)
        # The default value of the last operand.
        self.default = signature(spec.function).parameters[names[self.count - 1]].default
        self._spec = spec
        self._compiled: dict[Any, Compute] = {}  # by keys without the types of operands
        self._mode = names.index("mode") if "mode" in names else None
        self._has_indices = native.checks_indices(spec.operator.KERNEL)

    def make(self, arguments: tuple[Any, ...], key: Any) -> Program:
        """The program of a call, from its arguments without ``out``."""
        operands, static = arguments[: self.count], arguments[self.count :]
        waits = self._has_indices and (self._mode is None or arguments[self._mode] == "raise")
        # Without memory: a tracer, or keys of random numbers.
        is_traced = any(
            isinstance(x, jax.Array) and type(x) is not ARRAY for x in self._members(operands)
        )
        if key is None or is_traced:
            return self._tracing(static), waits and not is_traced
        if len(self.by_key) >= _MOST:
            self.by_key.clear()
            self._compiled.clear()
        constants = (self.default,) if operands[-1] is DEFAULT else ()
        static = (*map(_copied, static),)
        compiled_key = len(constants), key[0], *key[1 + self.count :]
        compiled = self._compiled.get(compiled_key)
        if compiled is None:
            compiled = program_of(lambda *arrays: trace(self._spec, (*arrays, *constants, *static)))
            self._compiled[compiled_key] = compiled
        compute = self._converting(operands, constants, static, compiled, waits)
        self.by_key[key] = compute, waits
        return compute, waits

    def on_memory(self, arguments: tuple[Any, ...], key: Any) -> Compute:
        """How a result is computed whose size the data decide."""
        static = (*map(_copied, arguments[self.count :]),)

        def compute(*operands: Any) -> Any:
            arrays = self._spec.as_arrays(_host, *operands, *static)
            return on_memory(self._spec, (*map(jnp.asarray, arrays), *static), None)

        if key is not None:
            self.by_key[key] = compute, False
        return compute

    def _tracing(self, static: tuple[Any, ...]) -> Compute:
        def compute(*operands: Any) -> Any:
            if operands[-1] is DEFAULT:
                operands = *operands[:-1], self.default
            self._check_values(operands)
            return trace(self._spec, (*operands, *static))

        return compute

    def _converting(
        self,
        operands: tuple[Any, ...],
        constants: tuple[Any, ...],
        static: tuple[Any, ...],
        compiled: Compute,
        waits: bool,
    ) -> Compute:
        """How operands of these types are converted before the program runs."""
        count = self.count - len(constants)
        as_arrays, aligned, name = self._spec.as_arrays, native.aligned, self._spec.name
        has_checks = bool(self._spec.value_checks)
        copies = not waits  # a program that runs later must not see what the caller writes then

        def convert_and_run(*operands: Any) -> Any:
            arrays = [
                x if type(x) is ARRAY else aligned(x, copies, name)
                for x in as_arrays(_host, *operands[:count], *constants, *static)
            ]
            if self._spec.lists_operands:
                return compiled(arrays)
            return run(*arrays)

        def run(*operands: Any) -> Any:
            if has_checks:
                self._check_values(operands)
            return compiled(*operands[:count])

        if any(type(x) is not ARRAY for x in self._members(operands[:count])):
            return convert_and_run
        return run if has_checks or constants else compiled

    def _members(self, operands: Sequence[Any]) -> Sequence[Any]:
        members: Sequence[Any] = operands[0] if self._spec.lists_operands else operands
        return members

    def _check_values(self, operands: Sequence[Any]) -> None:
        for i, check in self._spec.value_checks.items():
            value = operands[i]
            if type(value) is not ARRAY:
                if not isinstance(value, jax.core.Tracer):
                    check(as_numpy(value, self._spec.operand_name(i)))
            elif next(iter(value.devices())).platform != "gpu":
                check(np.asarray(value))


def program_of(function: Callable[..., Any]) -> Any:
    """A program that computes a function of traced arrays, with the caller's number of threads."""
    limit = threads.of_context()

    def traced(*operands: Any) -> Any:
        with _namespace.at_most(limit):
            return function(*operands)

    return jax.jit(traced)


def freeze(value: Any) -> Any:
    """An argument that is not a number, a string or a list, as part of a key.

    `TypeError` if equal values may differ, or members may change.
    """
    if isinstance(value, np.dtype | type | Enum):
        return value
    if isinstance(value, np.generic):
        return value.tobytes()
    if type(value) is np.ndarray and value.dtype.kind in "iuf" and value.nbytes <= _SMALL:
        return value.dtype.str, value.shape, value.tobytes()
    raise TypeError


def _copied(value: Any) -> Any:
    """A value that keeps its members: programs are traced again for arrays of other shapes."""
    if type(value) is list or type(value) is tuple:
        return type(value)(map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value
