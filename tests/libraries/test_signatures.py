"""Array functions of traced code take what those of arrays take."""

import importlib
import inspect

import pytest

import anydml as dml


@pytest.mark.parametrize("module", ["anydml.jax", "anydml.dask"])
def test_parameters_and_defaults_are_the_same(module):
    pytest.importorskip(module.rpartition(".")[2])
    library = importlib.import_module(module)
    functions = [name for name in dml.__all__ if inspect.isfunction(getattr(library, name, None))]
    assert len(functions) >= 14
    for name in functions:
        arguments, expected = (
            inspect.signature(getattr(of, name)).parameters for of in (library, dml)
        )
        expected = {key: parameter for key, parameter in expected.items() if key != "unknown"}
        assert [*arguments] == [*expected], name
        for parameter, like in zip(arguments.values(), expected.values(), strict=True):
            assert (parameter.default, parameter.kind) == (like.default, like.kind), name
