"""The table of integrations, from the top-level modules of libraries.

An integration is imported when the first array of its library comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any, Final

from numpy import ndarray

from anydml._native import has_extension
from anydml.core._json import counted, did_you_mean
from anydml.core.errors import ArgumentTypeError
from anydml.functions._function import FunctionSpec, function_specs
from anydml.functions._memory import on_memory
from anydml.libraries import has_no_memory

Caller = Callable[[tuple[Any, ...], Any], Any]
"""Takes the function's arguments without ``out``, and ``out``."""


_HAS_EXTENSION: Final = has_extension()


def _integration_of(library: str) -> Callable[[FunctionSpec], Caller] | None:
    """Return the maker of an integration's calls, by the top-level module of an array's class."""
    if library == "dask":
        from anydml.dask._calls import call_of
    elif not _HAS_EXTENSION:  # arrays on the CPU are then taken by their memory
        return None
    elif library == "torch":
        from anydml.torch._operators import call_of
    elif library in ("jax", "jaxlib"):
        from anydml.jax._eager import call_of
    elif library == "cupy":
        from anydml.functions import _cupy

        return lambda spec: _cupy.call_of(spec, _on_memory(spec))
    else:
        return None
    return call_of


def dispatch(
    spec: FunctionSpec,
    arguments: tuple[Any, ...],
    out: Any,
    unexpected: Sequence[Any] | Mapping[str, Any],
) -> Any:
    """Call a function by the integration of its first operand's library, or on memory.

    `unexpected` are arguments that the function does not take, by position or by keyword.
    """
    if unexpected:
        raise _unexpected(spec.function, unexpected)
    first = arguments[0][0] if spec.lists_operands else arguments[0]
    kind = type(first)
    call = spec.calls.get(kind) or _call_of(spec, kind)
    if call is None:
        call = spec.calls[kind] = _on_memory(spec)
    return call(arguments, out)


def _call_of(spec: FunctionSpec, kind: type) -> Caller | None:
    for base in kind.__mro__:
        call_of = _integration_of(base.__module__.partition(".")[0])
        if call_of is not None:
            spec.calls[kind] = call = call_of(spec)
            return call
    return None


def _on_memory(spec: FunctionSpec) -> Caller:
    """Return the call of a function without an integration of its first operand's library.

    Another operand that is lazy or traced sends the call to that one's.
    """
    count = len(spec.operands)

    def call(arguments: tuple[Any, ...], out: Any) -> Any:
        for operand in arguments[0] if spec.lists_operands else arguments[:count]:
            if type(operand) is ndarray or not has_no_memory(operand):
                continue
            if (theirs := _call_of(spec, type(operand))) is not None:
                return theirs(arguments, out)
        return on_memory(spec, arguments, out)

    return call


@cache
def function_of(
    module: str, name: str, call_of: Callable[[FunctionSpec], Caller], asarray: Callable[[Any], Any]
) -> Callable[..., Any]:
    """An array function by its name that calls one library's integration whatever it gets."""
    spec = function_specs().get(name)
    if spec is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    whole = signature(spec.function)
    catching = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD  # unexpected arguments
    known = [one for one in whole.parameters.values() if one.kind not in catching]
    call, public_signature = call_of(spec), whole.replace(parameters=known)
    order = [*signature(spec.prepare).parameters][1:]
    composes = {*public_signature.parameters} - {*order, "out"}

    def function(*positional: Any, **keywords: Any) -> Any:
        bound = whole.bind(*positional, **keywords)
        for parameter in whole.parameters.values():
            if parameter.kind in catching and parameter.name in bound.arguments:
                raise _unexpected(spec.function, bound.arguments[parameter.name])
        if composes & {*bound.arguments}:  # by calls of the function on arrays of the library
            operand = spec.operands[0]
            given = bound.arguments[operand]
            array = asarray(given)
            if str(getattr(given, "dtype", array.dtype)) != str(array.dtype):
                raise ArgumentTypeError(
                    f"{operand}: expected a type that the library keeps, got {given.dtype}"
                )
            bound.arguments[operand] = array
            return spec.function(*bound.args, **bound.kwargs)
        bound.apply_defaults()
        arguments = tuple(bound.arguments[name] for name in order)
        return call(arguments, bound.arguments["out"])

    function.__name__, function.__doc__ = name, spec.function.__doc__
    function.__signature__ = public_signature  # type: ignore[attr-defined]  # which inspect.signature reads
    return function


# The spellings of PyTorch, NumPy, JAX and ONNX, by the parameter here.
_SPELLINGS: Final = {
    "x": "input self a data operand arr array tensor",
    "arrays": "tensors inputs seq operands xs",
    "axis": "dim dimension dims axes",
    "indices": "index idx",
    "updates": "src source values value",
    "largest": "descending reverse",
    "index_dtype": "dtype indices_dtype out_dtype",
    "reduction": "reduce mode accumulate",
    "sections_or_sizes": "split_size_or_sections indices_or_sections split_size sections",
    "repeats": "reps dims multiples",
    "pad_width": "pad padding pads",
    "constant": "value constant_values constant_value fill_value",
    "starts": "start start_indices offsets",
    "sizes": "length lengths slice_sizes",
    "strides": "steps step stride",
    "lengths": "seq_lengths sequence_lens sequence_lengths",
    "batch_dims": "batch_axis batch",
    "dtype": "to new_dtype",
    "depth": "num_classes classes size n",
}


def _unexpected(
    function: Callable[..., Any], arguments: Sequence[Any] | Mapping[str, Any]
) -> ArgumentTypeError:
    """The error for arguments that a function does not take."""
    code = function.__code__
    count = code.co_argcount
    accepted = code.co_varnames[: count + code.co_kwonlyargcount]
    if not isinstance(arguments, Mapping):
        by_name = ", ".join(f"{name}=" for name in accepted[count:])
        advice = "one list of arrays, and " if accepted[0] == "arrays" else ""
        return ArgumentTypeError(
            f"{function.__name__}(): expected at most {counted(count, 'argument')} by position "
            f"({', '.join(accepted[:count])}), got {count + len(arguments)}; give {advice}"
            f"{by_name} by name"
        )
    name = next(iter(arguments))
    use = next((one for one in accepted if name in _SPELLINGS.get(one, "").split()), None)
    hint = f"; use {use}=" if use else did_you_mean(name, accepted)
    return ArgumentTypeError(
        f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
    )
