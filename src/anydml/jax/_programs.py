"""The compiled programs of an array function's calls outside of JAX's transformations.

`jax.jit` keeps a program for each shape and type of arrays; here each set of other arguments has
one of its own. Operands that are not arrays of JAX become arrays of NumPy, and `jax.jit` places
them where the arrays of JAX are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from inspect import signature
from typing import Any, Final

import jax
import numpy as np
from jax import numpy as jnp

from anydml._native import native
from anydml.devices import threads
from anydml.functions._function import FunctionSpec
from anydml.functions._memory import on_memory
from anydml.jax import _namespace
from anydml.jax._calls import call, trace
from anydml.jax._namespace import ARRAY, HostNamespace
from anydml.libraries import as_numpy

DEFAULT: Final = object()
"""Stands for the default value of the last operand, which is a constant of the program."""

_MOST: Final = 4096  # programs that are kept
_SMALL: Final = 1024  # bytes of an array in a key
_host: Final = HostNamespace(call)

Compute = Callable[..., Any]
"""Computes the result from the operands."""

Program = tuple[Compute, bool]
"""How the result is computed, and whether to wait for it, because indices are checked meanwhile."""


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
        is_traced = any(map(_is_traced, self._members(operands)))
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
        copies = not waits  # a program that runs later must not see what the caller writes then

        def convert_and_run(*operands: Any) -> Any:
            arrays = [
                x if type(x) is ARRAY else aligned(x, copies, name)
                for x in as_arrays(_host, *operands[:count], *constants, *static)
            ]
            if self._spec.lists_operands:
                return compiled(arrays)
            if self._spec.value_checks:
                self._check_values(arrays)
            return compiled(*arrays[:count])

        def check_and_run(*operands: Any) -> Any:
            self._check_values(operands)
            return compiled(*operands[:count])

        if any(type(x) is not ARRAY for x in self._members(operands[:count])):
            return convert_and_run
        if self._spec.value_checks:
            return check_and_run
        return (lambda *operands: compiled(*operands[:count])) if constants else compiled

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


def _is_traced(value: Any) -> bool:
    """Whether it is an array of JAX without memory: a tracer, or keys of random numbers."""
    return isinstance(value, jax.Array) and type(value) is not ARRAY
