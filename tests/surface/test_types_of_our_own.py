"""bfloat16 and floats of 8 bits where no other library has them: what NumPy does with arrays."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import anydml as dml
from anydml.arrays._types import as_type
from anydml.backends.cpu import native

OWN = {name: kind for name, (kind, _) in native.added_types().items()}
BYTES = {
    "bfloat16": [0, 0, 0, 0x80, 0x80, 0x3F, 1, 0, 0xC0, 0x7F],
    "float8_e5m2": [0, 0x80, 1, 255],
}


def array(name):
    return np.frombuffer(bytes(BYTES[name]), OWN[name])


@pytest.mark.parametrize(("name", "places"), [("bfloat16", [2, 3, 4]), ("float8_e5m2", [1, 2, 3])])
def test_what_is_not_zero(name, places):
    """A minus zero of 16 bits is zero; of 8 bits only the bits are known."""
    assert np.nonzero(array(name))[0].tolist() == places


@pytest.mark.parametrize("name", BYTES)
def test_no_copy_writes_behind_its_end(name):
    x, size = array(name), OWN[name].itemsize
    target = np.frombuffer(bytearray(b"\xee" * 7 * size), OWN[name])
    target[1:4] = x[:3]
    assert target.tobytes() == b"\xee" * size + x[:3].tobytes() + b"\xee" * 3 * size
    assert x[::2].copy().tobytes() == b"".join(x[i : i + 1].tobytes() for i in range(0, len(x), 2))


@pytest.mark.parametrize("name", BYTES)
def test_their_bytes_have_one_order(name):
    x = array(name).copy()
    assert x.byteswap().tobytes() == x.tobytes()
    assert x.byteswap(inplace=True).tobytes() == bytes(BYTES[name])


@pytest.mark.parametrize("name", OWN)
def test_every_one_has_its_size(name):
    """What is read from a place is as long as the type."""
    size = 2 if name == "bfloat16" else 1
    assert OWN[name].itemsize == size
    behind = np.frombuffer(b"\x40" * size + b"\xff", OWN[name], 1)
    assert behind.tolist() == [3.0 if size == 2 else 0x40]
    assert OWN[name].type.dtype is OWN[name]


def test_copies_are_made_in_memory_that_the_cpu_reads():
    elsewhere = SimpleNamespace(dtype=np.dtype("f4"), size=1)
    with pytest.raises(dml.ArgumentTypeError, match=r"^x: expected float64, got float32, which is"):
        as_type(elsewhere, "f8", "x")


@pytest.mark.parametrize("name", OWN)
def test_copies_as_another_type(name):
    """What has a number in the other type, and what has none: no value is made up."""
    own, bfloat16 = OWN[name], OWN["bfloat16"]
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
    for other in OWN.values():
        if other != own:
            wrong += [(x, other), (x[:1], other)]
    if own != bfloat16:
        wrong += [(x, "f4"), (np.ones(2, "f4"), own), (np.ones(2, "?"), own)]
    for value, kind in wrong:
        with pytest.raises(dml.ArgumentTypeError, match=r"^x: expected"):
            as_type(value, kind, "x")


def test_another_librarys_type_is_known_by_name_and_size():
    """A type that has only the name would be read two bytes at a time.

    What is no type takes no room: where a type keeps its number and its size, these ints have a
    number of a user's type, and 2.
    """
    pytest.importorskip("ml_dtypes")
    script = """
import ml_dtypes, numpy as np
from anydml.backends.cpu import native

for number in range(256, 1256):
    native.know_added_type(number * 2**30 + 2 * 2**60 + 2 * 2**120 + 2**180, "bfloat16")
for kind, name in (("float8_e4m3", "bfloat16"), ("bfloat16", "bfloat16")):
    dtype = np.dtype(getattr(ml_dtypes, kind))
    native.know_added_type(dtype, name)
    print(native.shapes("nonzero_coordinates", np.zeros(2, dtype), None) is not None)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False\nTrue\n", "")
