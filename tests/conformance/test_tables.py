"""What Python writes out of the native tables, for type checkers, is what they say."""

from typing import get_args, get_type_hints

import numpy as np
import pytest

from anydml import _native
from anydml.core import dtypes
from anydml.ops import padding1, upsample_2d
from anydml.ops._fields import EnumerationKind
from anydml.ops._registry import OPERATORS

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


def test_signatures_take_every_name_of_an_enumeration():
    found = set()
    for kind in dict.fromkeys(OPERATORS.values()):
        hints = get_type_hints(kind)
        for info in kind.fields():
            if isinstance(info.kind, EnumerationKind):
                taken = {
                    word for part in get_args(hints[info.attribute]) for word in get_args(part)
                }
                members = info.kind.members
                assert taken == {name for m in members for name in (m.suffix, m.full_name)}
                found.add(type(next(iter(members))))
    assert len(found) > 10


@pytest.mark.parametrize(
    ("enum", "words"),
    [
        (padding1.PaddingMode, _native.PADDING_MODES),
        (upsample_2d.InterpolationMode, _native.INTERPOLATIONS),
    ],
)
def test_members_of_enumerations(enum, words):
    assert [(m.suffix.lower(), int(m)) for m in enum] == [(w, i) for i, w in enumerate(words)]
