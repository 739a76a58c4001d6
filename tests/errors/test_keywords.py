"""Unexpected arguments: the error names the keyword here, or what is given by position."""

import inspect

import numpy as np
import pytest

import anydml as dml

X = np.arange(6.0).reshape(2, 3)
INDICES = np.zeros((2, 3), int)

CALLS = {
    "top_k": (dml.top_k, (X, 1), {"dim": "axis", "axes": "axis", "dtype": "index_dtype"}),
    "nonzero": (dml.nonzero_coordinates, (X,), {"dtype": "index_dtype"}),
    "gather": (dml.gather, (X, [0]), {"dim": "axis"}),
    "gather_elements": (dml.gather_elements, (X, INDICES), {"dim": "axis", "index": "indices"}),
    "gather_nd": (dml.gather_nd, (X, INDICES), {"batch_axis": "batch_dims", "input": "x"}),
    "scatter": (dml.scatter_elements, (X, INDICES, X), {"dim": "axis", "reduce": "reduction"}),
    "scatter_source": (dml.scatter_elements, (X, INDICES, X), {"src": "updates"}),
    "scatter_nd": (dml.scatter_nd, (X, INDICES[:, :1], X), {"accumulate": "reduction"}),
    "split": (dml.split, (X, 2), {"dim": "axis", "indices_or_sections": "sections_or_sizes"}),
    "join": (dml.join, ([X],), {"dim": "axis", "tensors": "arrays"}),
    "cast": (dml.cast, (X, "int8"), {"to": "dtype"}),
    "pad": (dml.pad, (X, 1), {"value": "constant", "constant_values": "constant"}),
    "slice_window": (dml.slice_window, (X, [0, 0], [1, 1]), {"steps": "strides"}),
    "one_hot": (dml.one_hot, (INDICES, 2), {"num_classes": "depth", "dim": "axis"}),
    "tile": (dml.tile, (X, 2), {"reps": "repeats", "dims": "repeats", "input": "x"}),
    "reverse": (
        dml.reverse_subsequences, (X, [[1, 1, 1]]), {"dim": "axis", "seq_lengths": "lengths"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_keyword_of_another_library(case):
    function, arguments, keywords = CALLS[case]
    own = {"axis": 0} if function is dml.reverse_subsequences else {}
    for name, use in keywords.items():
        with pytest.raises(TypeError) as caught:
            function(*arguments, **own, **{name: 0})
        text = f"{function.__name__}() got an unexpected keyword argument {name!r}; use {use}="
        assert str(caught.value) == text
        assert isinstance(caught.value, dml.ArgumentTypeError)


def test_any_other_keyword():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'frobnicate'$"):
        dml.top_k(X, 1, frobnicate=1)
    with pytest.raises(TypeError, match=r"'larges'; did you mean 'largest'\?$"):
        dml.top_k(X, 1, larges=True)


@pytest.mark.parametrize("case", CALLS)
def test_too_many_arguments_by_position(case):
    function, arguments, _ = CALLS[case]
    own = {"axis": 0} if function is dml.reverse_subsequences else {}
    parameters = inspect.signature(function).parameters.values()
    names = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    by_name = [f"{one.name}=" for one in parameters if one.kind is one.KEYWORD_ONLY]
    filled = (*arguments, *(None,) * (len(names) - len(arguments)), X)
    with pytest.raises(dml.ArgumentTypeError) as caught:
        function(*filled, **own)
    text = str(caught.value)
    assert text.startswith(f"{function.__name__}(): expected at most {len(names)} argument")
    assert f"by position ({', '.join(names)}), got {len(names) + 1}; give " in text
    assert text.endswith(f"{', '.join(by_name)} by name")


def test_arrays_that_are_not_in_a_list():
    with pytest.raises(dml.ArgumentTypeError, match=r"got 3; give one list of arrays, and axis="):
        dml.join(X, X, X)
