"""Calls of the array functions that their docstrings show, for tests of the integrations."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import anydml as dml
from anydml.functions._function import FunctionSpec, function_specs


class Call(NamedTuple):
    """A call of an array function: its arguments by name, with arrays of NumPy as operands."""

    spec: FunctionSpec
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return self.spec.name

    def with_operands(self, change: Callable[[np.ndarray], Any]) -> Any:
        """The result of the call with other operands."""
        arguments = dict(self.arguments)
        for name in self.spec.operands:
            value = arguments[name]
            listed = self.spec.lists_operands
            arguments[name] = [*map(change, value)] if listed else change(value)
        bound = inspect.signature(self.spec.function).bind_partial()
        bound.arguments.update(arguments)
        return self.spec.function(*bound.args, **bound.kwargs)


@cache
def documented_calls() -> tuple[Call, ...]:
    """The calls of each function in its own docstring; every function has at least one."""
    return tuple(call for spec in function_specs().values() for call in _calls_of(spec))


def _calls_of(spec: FunctionSpec) -> Iterator[Call]:
    signature, found = inspect.signature(spec.function), list[Call]()

    def record(*args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(*args, **kwargs).arguments
        for name in spec.operands:
            value = arguments.setdefault(name, signature.parameters[name].default)
            arguments[name] = [*map(np.array, value)] if spec.lists_operands else np.array(value)
        found.append(Call(spec, arguments))
        return spec.function(*args, **kwargs)

    module = SimpleNamespace(**{name: getattr(dml, name) for name in dml.__all__})
    setattr(module, spec.name, record)
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(spec.function) or "")
    variables: dict[str, Any] = {}
    for example in examples:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(example.source, spec.name, "single"), variables)
        if variables.get("dml") is dml:  # after `import anydml as dml`
            variables["dml"] = module
    assert found, spec.name
    yield from found
