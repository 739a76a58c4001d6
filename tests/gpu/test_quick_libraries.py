"""CuPy's arrays on a GPU in quick calls: the CPU's results, to the bit."""

import threading

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

TYPES = ("float32", "float16", "int32", "int8", "uint8", "bool", "complex64")


class CuPy:
    def __init__(self):
        self.library = pytest.importorskip("cupy")
        self.kind = self.library.ndarray

    def to_device(self, array):
        return self.library.asarray(array)

    def to_host(self, array):
        return array.get()


@pytest.fixture(params=[CuPy], ids=["cupy"])
def library(request):
    library_arrays = request.param()
    one = library_arrays.to_device(np.zeros(3, np.float32))
    dml.gather(one, library_arrays.to_device(np.zeros(1, np.int32)))  # tells the quick calls of it
    return library_arrays


CALLS = {
    "top_k": lambda x, i: dml.top_k(x, 3, index_dtype="int32"),
    "smallest": lambda x, i: dml.top_k(x, 2, axis=0, largest=False, index_dtype="uint32"),
    "nonzero": lambda x, i: dml.nonzero_coordinates(x, index_dtype="int32"),
    "gather": lambda x, i: dml.gather(x, i, axis=0),
    "gather_elements": lambda x, i: dml.gather_elements(x, i, axis=0),
    "scatter": lambda x, i: dml.scatter_elements(x, i, x, axis=0),
    "split": lambda x, i: dml.split(x, [1, 3], axis=0),
    "join": lambda x, i: dml.join([x, x, x], axis=1),
    "cast": lambda x, i: dml.cast(x, "float32"),
    "pad": lambda x, i: dml.pad(x, [(1, 0), (0, 2)]),
    "one_hot": lambda x, i: dml.one_hot(i, 5, x[0], axis=1),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", TYPES)
def test_results(library, call, dtype):
    if dtype == "complex64" and call == "cast":
        pytest.skip("to a real type")
    if dtype == "complex64" and call in ("top_k", "smallest", "nonzero"):
        with pytest.raises(dml.ArgumentTypeError):
            CALLS[call](library.to_device(np.zeros((4, 5), dtype)), None)
        return
    rng = np.random.default_rng(7)
    array = rng.integers(0, 3, (4, 5)).astype(dtype)
    places = rng.integers(-4, 4, (4, 5)).astype(np.int32)
    expected = CALLS[call](array, places)
    got = CALLS[call](library.to_device(array), library.to_device(places))
    expected, got = (v if isinstance(v, tuple) else (v,) for v in (expected, got))
    assert len(expected) == len(got)
    for theirs, ours in zip(expected, got, strict=True):
        assert type(ours) is library.kind
        assert_same_bits(library.to_host(ours), theirs)


def test_a_bad_index_is_told(library):
    x, i = (
        library.to_device(np.arange(9, dtype=np.float32)),
        library.to_device(np.array([3, 9], np.int32)),
    )

    def waited(call):
        call()
        dml.synchronize()

    with pytest.raises(dml.IndexOutOfRangeError, match=r"gather: indices\[1\]: expected -9..8"):
        waited(lambda: dml.gather(x, i))
    with pytest.raises(dml.IndexOutOfRangeError, match=r"scatter_elements: indices\[1\]"):
        waited(lambda: dml.scatter_elements(x, i, i.astype(np.float32), axis=0))


def test_strided_arrays_of_cupy():
    cupy = pytest.importorskip("cupy")
    array = np.arange(60, dtype=np.float32).reshape(6, 10)
    x = cupy.asarray(array)
    for part in (np.s_[::2, ::-3], np.s_[5:0:-1], np.s_[:, 3], np.s_[2:2]):
        for ours, theirs in ((x[part], array[part]), (x.T[part], array.T[part])):
            got = dml.nonzero_coordinates(ours)
            assert_same_bits(got.get(), dml.nonzero_coordinates(theirs))
            assert_same_bits(dml.join([ours, ours]).get(), dml.join([theirs, theirs]))
    repeated = cupy.broadcast_to(x[0], (4, 10))
    assert_same_bits(dml.top_k(repeated, 3).values.get(), dml.top_k(array[:1].repeat(4, 0), 3)[0])


def test_the_current_stream_of_cupy():
    cupy = pytest.importorskip("cupy")
    side = cupy.cuda.Stream(non_blocking=True)
    x = cupy.zeros(1 << 24, "f4")
    cupy.cuda.Device().synchronize()
    with side:
        for _ in range(20):
            x += 1  # on another stream the call would see fewer
        assert len(dml.nonzero_coordinates(x)) == x.size
        assert float(dml.top_k(x, 1).values[0]) == 20


def test_threads(library):
    array = np.random.default_rng(1).standard_normal((64, 300)).astype(np.float32)
    x = library.to_device(array)
    expected = dml.top_k(array, 5, index_dtype="int32")
    failed = []

    def work():
        for _ in range(100):
            values, indices = dml.top_k(x, 5, index_dtype="int32")
            if not ((library.to_host(values) == expected.values).all()
                    and (library.to_host(indices) == expected.indices).all()):  # fmt: skip
                failed.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
