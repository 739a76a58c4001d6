"""The comparison that tests of computed operators use: what it accepts, and what it finds."""

import numpy as np
import pytest

import anydml as dml
from anydml.core.tolerance import EXACT, first_difference, products, sums, ulp
from anydml.ops._registry import OPERATORS


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_every_operator_has_a_tolerance(operator):
    assert dml.tolerance(operator) == dml.tolerance(OPERATORS[operator])
    assert str(dml.tolerance(operator))


def test_exact_compares_bits_but_for_the_payload_of_nan():
    got = np.array([0.0, np.nan, 1.0], "f4")
    other = np.array([0.0, np.float32(np.nan), 1.0])
    assert first_difference(got, other) is None
    assert first_difference(got, np.array([-0.0, np.nan, 1.0], "f4")) == (0,)
    assert first_difference(np.array([1, 2], "i4"), np.array([1, 3], "i4")) == (1,)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_ulps_of_the_exact_result(kind):
    one = np.array([1.0], kind)
    step = np.finfo(kind).eps
    within, beyond = one + 3 * step, one + 4 * step
    exact = np.array([1.0])
    assert first_difference(within, exact, tolerance=ulp(3)) is None
    assert first_difference(beyond, exact, tolerance=ulp(3)) == (0,)
    assert first_difference(-one, exact, tolerance=ulp(3)) == (0,)


@pytest.mark.parametrize("unit", [products, sums])
def test_a_sum_that_cancels_is_measured_by_what_it_added(unit):
    got, exact = np.array([3e-5], "f4"), np.array([0.0])
    magnitude = np.array([2.0**10])  # half an ULP there is 2^-14
    assert first_difference(got, exact, magnitude, unit(1)) is None
    assert first_difference(got, exact, np.array([1.0]), unit(1)) == (0,)
    assert first_difference(got * 4, exact, magnitude, unit(1)) == (0,)


def test_what_is_not_finite():
    inf = float("inf")
    huge = float(np.finfo("f4").max)

    def differs(got, exact):
        return first_difference(np.array([got], "f4"), np.array([exact]), tolerance=ulp(2))

    assert differs(inf, inf) is None
    assert differs(np.nan, np.nan) is None
    assert differs(inf, huge * (1 + 1e-7)) is None  # what rounds to infinity
    assert differs(huge, huge * (1 + 1e-8)) is None
    for got, exact in ((inf, -inf), (huge, inf), (np.nan, 1.0), (1.0, np.nan), (inf, huge / 2)):
        assert differs(got, exact) == (0,), (got, exact)
    # Parts that overflow may end anywhere that is not finite.
    assert first_difference(
        np.array([np.nan], "f4"), np.array([1.0]), np.array([1e40]), sums(1)
    ) is None  # fmt: skip
    tiny = np.array([1e-39], "f4")  # a denormal, which an engine may flush
    assert first_difference(tiny * 0, tiny.astype("f8"), tolerance=ulp(1)) is None


def test_exact_is_printed_as_such():
    assert [str(t) for t in (EXACT, ulp(2), products(8), sums(4))] == [
        "EXACT", "ulp(2)", "products(8)", "sums(4)",
    ]  # fmt: skip
