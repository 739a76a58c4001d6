"""Results compared with others within the tolerance of an operator's definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml.core.tolerance import first_difference
from anydml.ops._descriptor import Descriptor


def assert_within(kind: type[Descriptor], got: Any, exact: Any, magnitude: Any = None) -> None:
    """Each element is within the tolerance of `kind`.

    Parameters
    ----------
    kind : descriptor class
        The operator that the result is of.
    got : array
        The result.
    exact : array or tensor of float64
        What it should be.
    magnitude : array of float64, optional
        The exact result on absolute values, for tolerances that are counted in it; the absolute
        value of `exact` if left out.
    """
    exact = np.asarray(exact).reshape(got.shape)
    where = first_difference(got, exact, magnitude, kind.TOLERANCE)
    assert where is None, (where, got[where], exact[where])
