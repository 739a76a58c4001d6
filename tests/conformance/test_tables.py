"""What Python writes out of the native tables, for type checkers, is what they say."""

from typing import get_args

import numpy as np
import pytest

from anydml import _native, dtypes, tensor
from anydml.ops import padding1, top_k, upsample_2d

UPPER = [known.name.upper() for known in _native.TYPES if 0 < known.number < 64]


def test_data_types():
    table = {known.name.upper(): known for known in _native.TYPES if 0 < known.number < 64}
    assert {member.name for member in dtypes.DataType if member.bits >= 8} == set(table)
    for name, known in table.items():
        member = dtypes.DataType[name]
        assert (member, member.element_size) == (known.number, known.size)
        assert member.numpy == np.dtype(known.name)
        assert member.numpy.kind == known.kind
    assert [t.numpy.name for t in dtypes.ALL_TYPES] == [n.lower() for n in UPPER]
    assert {t.numpy.name for t in dtypes.INDEX_TYPES} == set(_native.INDEX_TYPES)
    for known in _native.TYPES:
        if known.in_numpy:
            dtype = np.dtype(known.name)
            assert (dtype.itemsize, dtype.kind) == (known.size, known.kind)


@pytest.mark.parametrize(
    ("enum", "names"),
    [
        (top_k.AxisDirection, top_k.DirectionName),
        (tensor.TensorFlags, tensor.FlagName),
    ],
)
def test_names_of_enumerations(enum, names):
    members = [*enum]
    assert [*get_args(names)] == [m.suffix for m in members] + [m.full_name for m in members]


@pytest.mark.parametrize(
    ("enum", "words"),
    [
        (padding1.PaddingMode, _native.PADDING_MODES),
        (upsample_2d.InterpolationMode, _native.INTERPOLATIONS),
    ],
)
def test_members_of_enumerations(enum, words):
    assert [(m.suffix.lower(), int(m)) for m in enum] == [(w, i) for i, w in enumerate(words)]
