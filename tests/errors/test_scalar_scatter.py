"""`scatter_elements` on an array of rank 0: indices of any shape, an update each or for all."""

import numpy as np
import pytest

import anydml as dml
from support.poison import Poisoned

X = np.float32(1)
SHAPES = [(), (6,), (2, 3), (3, 2), (1, 6), (6, 1), (2, 3, 1), (0,), (0, 2)]


@pytest.mark.parametrize("out", [False, True], ids=["fresh", "out"])
@pytest.mark.parametrize("updates", SHAPES, ids=str)
@pytest.mark.parametrize("indices", SHAPES, ids=str)
def test_updates_have_the_shape_of_the_indices(indices, updates, out):
    target = Poisoned((), "f4")
    arguments = {"out": target.array} if out else {}
    lookup, values = np.zeros(indices, np.int64), np.full(updates, 5, np.float32)
    if updates in (indices, ()):
        result = dml.scatter_elements(X, lookup, values, **arguments)
        assert result == (5 if lookup.size else X)
        return
    with pytest.raises(dml.ArgumentError) as error:
        dml.scatter_elements(X, lookup, values, **arguments)
    message = f"updates: expected shape {indices} (the shape of indices), got {updates}"
    assert str(error.value) == message
    assert target.untouched()
