"""What stands inside the package for the element types that NumPy lacks."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import anydml as dml
from anydml.devices.backends.cpu import native
from anydml.libraries._types import (
    ADDED,
    DLPACK_CODES,
    as_type,
    dtype_name,
    is_added,
    own_type,
    type_of,
)

BFLOAT16 = ADDED["bfloat16"]


@pytest.mark.parametrize("name", ADDED)
def test_they_are_named_views_of_integers(name):
    """No two are the same, each has its size, and NumPy's own types are none of them."""
    own = ADDED[name]
    assert own.itemsize == own.alignment == (2 if name == "bfloat16" else 1)
    assert own.num == np.dtype("V1").num  # records, which every NumPy has
    assert (dtype_name(own), type_of(name), own_type(own)) == (name, own, own)
    assert is_added(own)
    assert native.type_code(own) == DLPACK_CODES[name] << 8 | 8 * own.itemsize
    assert [other for other in ADDED.values() if other == own] == [own]
    assert not is_added(np.dtype(f"V{own.itemsize}"))
    assert not is_added(np.dtype(f"u{own.itemsize}"))
    bits = np.arange(7, dtype=f"u{own.itemsize}")
    assert bits.view(own)[1::2].copy().view(bits.dtype).tolist() == [1, 3, 5]


def test_a_users_records_are_still_refused():
    """Records of one integer are not taken for bfloat16, by quick calls neither."""
    for field in ("bfloat16", "f0"):
        records = np.zeros((2, 2), [(field, "u2")])
        assert native.function_call("gather")(None, records, np.array([0]), 0, "raise") is None
        with pytest.raises(dml.ArgumentTypeError, match=r"expected numbers .*got records"):
            dml.gather(records, [0])


def test_copies_are_made_in_memory_that_the_cpu_reads():
    foreign = SimpleNamespace(dtype=np.dtype("f4"), size=1)
    with pytest.raises(dml.ArgumentTypeError, match=r"^x: expected float64, got float32, which is"):
        as_type(foreign, "f8", "x")


@pytest.mark.parametrize("name", ADDED)
def test_copies_as_another_type(name):
    """What has a number in the other type, and what has none: no value is made up."""
    own = ADDED[name]
    x = np.array([0x00, 0x3C, 0xFF], np.uint8).repeat(own.itemsize).view(own)
    copy = as_type(x, own, "x")
    assert (copy.dtype, copy.tobytes()) == (own, x.tobytes())
    assert not np.shares_memory(copy, x)
    for kind in ("int8", "uint64", "float16", "float64"):
        assert as_type(np.zeros(2, kind), own, "x").tobytes() == bytes(2 * own.itemsize)
    wrong = [(np.ones(2, "c8"), own), (np.zeros(2, "c8"), own), (np.zeros(2, "S3"), own),
             (np.array(["a"], object), own)]  # fmt: skip
    if np.longdouble(0).itemsize > 8 and name == "bfloat16":
        wrong.append((np.zeros(2, np.longdouble), own))
    for other in ADDED.values():
        if other != own:
            wrong += [(x, other), (x[:1], other)]
    if own != BFLOAT16:
        wrong += [(x, "f4"), (np.ones(2, "f4"), own), (np.ones(2, "?"), own)]
    for value, kind in wrong:
        with pytest.raises(dml.ArgumentTypeError, match=r"^x: expected") as raised:
            as_type(value, kind, "x")
        assert "anydml." not in str(raised.value)


def test_a_type_of_ml_dtypes_is_known_by_name_and_size():
    """A type that has only the name would be read two bytes at a time.

    An integer is not a type: where a type keeps its number and its size, these integers have a
    number of a user-defined type, and 2.
    """
    pytest.importorskip("ml_dtypes")
    script = """
import ml_dtypes, numpy as np
import anydml as dml
from anydml.devices.backends.cpu import native

for number in range(256, 1256):
    native.know_added_type(number * 2**30 + 2 * 2**60 + 2 * 2**120 + 2**180, "bfloat16")
native.know_added_type(np.dtype("u2"), "bfloat16")
for kind, name in (("float8_e4m3", "bfloat16"), ("bfloat16", "bfloat16")):
    dtype = np.dtype(getattr(ml_dtypes, kind))
    native.know_added_type(dtype, name)
    print(native.shapes("nonzero_coordinates", np.zeros(2, dtype), None) is not None)
print(dml.cast(np.ones(1, "u2"), "int8"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False\nTrue\n[1]\n", "")
