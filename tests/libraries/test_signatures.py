"""Array functions of traced code take what those of arrays take."""

import importlib
import inspect

import numpy as np
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
        expected = {name: one for name, one in expected.items() if not str(one).startswith("*")}
        assert [*arguments] == [*expected], name
        for parameter, like in zip(arguments.values(), expected.values(), strict=True):
            assert (parameter.default, parameter.kind) == (like.default, like.kind), name


@pytest.mark.parametrize("module", ["anydml.jax", "anydml.dask"])
def test_unexpected_arguments_have_the_same_errors(module):
    pytest.importorskip(module.rpartition(".")[2])
    x = np.arange(6.0).reshape(2, 3)
    for function in (importlib.import_module(module).gather, dml.gather):
        with pytest.raises(dml.ArgumentTypeError, match=r"argument 'dim'; use axis="):
            function(x, [0], dim=1)
        with pytest.raises(
            dml.ArgumentTypeError, match=r"gather\(\): expected at most 2 arguments"
        ):
            function(x, [0], 1)
