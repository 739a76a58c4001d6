"""Which library's integration takes a call: the one table, from top-level modules to integrations.

An integration is imported when the first array of its library comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Final

from anydml.arrays import bridge_of
from anydml.functions._spec import FunctionSpec

Call = Callable[[tuple[Any, ...], Any], Any]
"""Takes the function's arguments without ``out``, and ``out``."""


def _torch(spec: FunctionSpec) -> Call:
    from anydml.torch import call_of

    return call_of(spec)


def _cupy(spec: FunctionSpec) -> Call:
    from anydml._cupy import call_of

    return call_of(spec)


def _jax(spec: FunctionSpec) -> Call:
    from anydml.jax import call_of

    return call_of(spec)


TABLE: Final[dict[str, Callable[[FunctionSpec], Call]]] = {
    "torch": _torch,
    "cupy": _cupy,
    "jax": _jax,
    "jaxlib": _jax,
}
"""What makes an integration's call of a function, by the top-level module of a class of arrays."""


def dispatch(spec: FunctionSpec, arguments: tuple[Any, ...], out: Any) -> Any:
    """Call a function by the integration of its first operand's library, or on memory."""
    first = arguments[0][0] if spec.lists_operands else arguments[0]
    call = spec.calls.get(type(first))
    if call is not None:
        return call(arguments, out)
    return _dispatch_new(spec, type(first), arguments, out)


def _dispatch_new(spec: FunctionSpec, kind: type, arguments: tuple[Any, ...], out: Any) -> Any:
    for base in kind.__mro__:
        make = TABLE.get(base.__module__.partition(".")[0])
        if make is not None:
            spec.calls[kind] = call = make(spec)
            return call(arguments, out)
    return on_memory(spec, arguments, out)


def on_memory(spec: FunctionSpec, arguments: tuple[Any, ...], out: Any) -> Any:
    """Call a function without an integration of its first operand's library."""
    operands = arguments[0] if spec.lists_operands else arguments[: len(spec.operands)]
    if bridge := bridge_of(*operands):
        function = getattr(bridge, spec.name)
        named = dict(zip(signature(function).parameters, arguments, strict=False))
        return function(**named, out=out)
    return spec.general(*arguments, out)
