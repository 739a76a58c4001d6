"""SLICE against NumPy's own slices: every slice of short arrays."""

import numpy as np
import pytest

import anydml as dml
from anydml.core.rules import find_violations
from support import assert_same_bits


@pytest.mark.parametrize("stride", [1, 2, 3, 9, 2**32 - 1])
def test_every_slice(stride):
    x = np.arange(6, dtype=np.int16) + 10
    for offset in range(6):
        reached = x[offset::stride]
        for count in range(1, len(reached) + 2):
            desc = dml.Slice(
                input_tensor=dml.TensorDesc("INT16", (6,)),
                output_tensor=dml.TensorDesc("INT16", (count,)),
                offsets=[offset],
                sizes=[count],
                strides=[stride],
            )
            if count > len(reached):
                (violation,) = dml.Device("cpu").check(desc)
                assert violation.path == "SLICE.Sizes[0]"
                continue
            for kind in ("cpu", "reference"):
                got = dml.Device(kind).create_operator(desc).compile()(x)
                assert_same_bits(got, reached[:count])


@pytest.mark.parametrize(("offset", "fits"), [(-1, False), (0, True), (5, True), (6, False)])
def test_where_offsets_end(offset, fits):
    one = dml.TensorDesc("INT16", (1,))
    desc = dml.Slice(
        input_tensor=dml.TensorDesc("INT16", (6,)), output_tensor=one, offsets=[offset],
        sizes=[1], strides=[1],
    )  # fmt: skip
    assert [item.path for item in find_violations(desc.check())] == ([] if fits else ["Offsets[0]"])
