"""What arrays of other libraries are taken as, and what is refused before anything is read."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import anydml as dml
from anydml.arrays import _dlpack, _jax


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


class ArrayImpl(list):
    """Stands for JAX's class of arrays."""


def given_to_quick_calls(
    monkeypatch: pytest.MonkeyPatch, kind: type, make: Any, enabled: Any = False
) -> list[Any]:
    """What quick calls are told of a JAX that makes arrays like this."""
    told: list[Any] = []
    config = SimpleNamespace(jax_enable_x64=enabled)
    fake = SimpleNamespace(local_devices=lambda backend: [f"first {backend}"], config=config)
    module = SimpleNamespace(dlpack_managed_tensor_to_buffer=make)
    monkeypatch.setitem(sys.modules, "jax", fake)
    monkeypatch.setitem(sys.modules, kind.__module__, module)
    native = SimpleNamespace(
        take_jax=lambda *given: told.extend(given), take_jax_split=lambda program: None
    )
    monkeypatch.setattr(_jax, "native", native)
    _jax._offer.__wrapped__(kind)
    return told


def test_results_are_made_as_a_known_jax_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(capsule: Any, device: Any, stream: Any) -> Any:
        assert stream is None
        return ArrayImpl([0, 1, 2])

    told = given_to_quick_calls(monkeypatch, ArrayImpl, make)
    assert told[:3] == [ArrayImpl, make, "first cpu"]
    assert told[3].jax_enable_x64 is False


class OtherImpl(ArrayImpl):
    """One that is not known."""


def test_a_jax_that_is_not_known_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def good(*_: Any) -> Any:
        return ArrayImpl([0, 1, 2])

    def fails(*_: Any) -> Any:
        raise TypeError

    cases: list[tuple[type, Any, Any]] = [
        (ArrayImpl, None, False),
        (OtherImpl, lambda *_: OtherImpl([0, 1, 2]), False),
        (ArrayImpl, lambda *_: OtherImpl([0, 1, 2]), False),
        (ArrayImpl, lambda *_: ArrayImpl([0, 2, 1]), False),
        (ArrayImpl, good, 0),
        (ArrayImpl, fails, False),
    ]
    for kind, make, enabled in cases:
        assert given_to_quick_calls(monkeypatch, kind, make, enabled) == []


def test_the_split_of_an_array_elsewhere_is_no_program() -> None:
    elsewhere = SimpleNamespace(devices=lambda: {"second"})
    assert _jax._split_program("first", elsewhere, [1, 2], 0) is None
