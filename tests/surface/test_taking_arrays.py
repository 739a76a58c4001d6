"""What arrays of other libraries are taken as, and what is refused before anything is read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import anydml as dml
from anydml.libraries import _dlpack


@pytest.mark.parametrize("kind", range(20))
def test_memory_that_the_cpu_reads(kind: int) -> None:
    """DLPack's numbers of devices: CPU, CUDA's pinned memory, ROCm's, CUDA's managed memory."""
    array = SimpleNamespace(__dlpack_device__=lambda: (kind, 3))
    if kind in (1, 3, 11, 13):
        _dlpack.on_host(array, "x")
        return
    with pytest.raises(dml.ArgumentTypeError, match=rf"^x: .* got one on DLPack device {kind}:3$"):
        _dlpack.on_host(array, "x")


class Interface:
    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


class Exchanged:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [np.asarray, Interface, Exchanged])
def test_arrays_of_any_library_have_a_type_that_is_kept(kind: Any) -> None:
    """Lists take the type of the data where their values fit; arrays have a type."""
    x = np.zeros(3, np.float32)
    assert dml.scatter_elements(x, [1], [7]).tolist() == [0, 7, 0]
    same = kind(np.array([7], np.float32))
    assert dml.scatter_elements(x, [1], same).tolist() == [0, 7, 0]
    with pytest.raises(dml.ArgumentTypeError, match=r"^updates: expected float32 .*got int32$"):
        dml.scatter_elements(x, [1], kind(np.array([7], np.int32)))


def test_floats_of_8_bits_are_not_converted() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    small, half = np.ones(1, ml_dtypes.float8_e4m3fn), np.ones(1, ml_dtypes.bfloat16)
    joined = dml.join([small, np.zeros(1, np.int8)], promote=True)
    assert joined.tobytes() == np.array([1, 0], small.dtype).tobytes()
    for other, message in (
        (np.ones(1, np.int8), r"^arrays\[1\]: expected float8_e4m3fn, got int8$"),
        (np.zeros(1, bool), r"^arrays\[1\]: expected float8_e4m3fn, got bool$"),
        (np.zeros(1, np.float32), r"^arrays\[0\]: expected float32, got float8_e4m3fn$"),
    ):
        with pytest.raises(dml.ArgumentTypeError, match=message):
            dml.join([small, other], promote=True)
    joined = dml.join([half, np.array([True, False])], promote=True)
    assert joined.tobytes() == np.array([1, 1, 0], half.dtype).tobytes()


def test_added_types_in_foreign_byte_order() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    foreign = array.view(np.uint16).byteswap().view(array.dtype.newbyteorder("S"))
    assert dml.tile(foreign, 1).tobytes() == array.tobytes()
    with pytest.raises(dml.ArgumentTypeError, match="out: expected bfloat16"):
        dml.tile(array, 1, out=foreign)


def test_nothing_of_a_buffer() -> None:
    class Empty:
        def __init__(self) -> None:
            self.__array_interface__ = {
                "version": 3, "data": bytearray(8), "shape": (0, 3), "typestr": "<f4",
                "strides": (100, 100),
            }  # fmt: skip

    assert dml.tile(Empty(), 1).shape == (0, 3)


def test_what_stands_for_an_array_of_jax_is_none() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(dml.ArgumentTypeError, match=r"x: expected numbers .*ShapeDtypeStruct$"):
        dml.tile(jax.ShapeDtypeStruct((2,), "float32"), 2)
