"""A descriptor's outputs by its operator module's reference implementation."""

from __future__ import annotations

from typing import Any

from anydml.core.tolerance import EXACT, first_difference
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from support.bits import assert_same_bits


def assert_agrees(desc: Descriptor, got: Any, expected: Any, what: str) -> None:
    """A result has the reference's bits, where the operator promises them.

    How far others may be apart depends on sizes of what is computed on the way:
    tests/properties/test_computed.py compares them.
    """
    if not isinstance(desc, Computed):
        assert desc.TOLERANCE is EXACT
        assert_same_bits(got, expected, what)
        return
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), what
    if getattr(desc, "fused_activation", None) is None and desc.TOLERANCE is EXACT:
        assert first_difference(got, expected) is None, (what, desc)
