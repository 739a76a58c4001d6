"""When the system has no more memory: an error says how much for what, and all works after it."""

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")

SCRIPT = """
import resource
import numpy as np, anydml as dml

COUNT = 2**28
wide = np.broadcast_to(np.uint8(7), (COUNT,))  # one byte of memory
zeros = np.broadcast_to(np.int64(0), (COUNT,))
pairs = np.broadcast_to(np.int64(0), (COUNT, 1))
small = np.arange(6, dtype=np.uint8)
first = np.zeros(1, np.int64)
x = np.zeros(2**23)  # sorting it takes several times its memory
k = x.size - 1
values, indices = np.full(k, 7.0), np.full(k, 7, np.uint32)

def tensor(kind, *sizes):
    return dml.TensorDesc(kind, sizes)

def compiled(desc):
    return dml.Device("cpu").create_operator(desc).compile()

large = tensor("UINT8", COUNT)
gathering = compiled(dml.Gather(
    input_tensor=tensor("UINT8", 6), indices_tensor=tensor("INT64", COUNT), output_tensor=large,
    axis=0, index_dimensions=1))
sorting = compiled(dml.TopK1(
    input_tensor=tensor("FLOAT32", x.size), output_value_tensor=tensor("FLOAT32", k),
    output_index_tensor=tensor("UINT32", k), axis=0, k=k, axis_direction="DECREASING"))
floats, found = x.astype("f4"), np.full(k, 7, "f4")

calls = {
    "top_k": lambda: dml.top_k(wide, COUNT // 2),
    "top_k to out": lambda: dml.top_k(x, k, out=(values, indices)),
    "nonzero_coordinates": lambda: dml.nonzero_coordinates(wide),
    "scatter_elements": lambda: dml.scatter_elements(wide, first, small[:1]),
    "scatter_nd": lambda: dml.scatter_nd(wide, first[:, None], small[:1]),
    "split": lambda: dml.split(wide, 2),
    "split into many": lambda: dml.split(wide, 2**16),
    "split by sizes": lambda: dml.split(wide, [COUNT // 2] * 2),
    "join": lambda: dml.join([wide, wide]),
    "gather": lambda: dml.gather(small, zeros),
    "gather_elements": lambda: dml.gather_elements(small, zeros),
    "gather_nd": lambda: dml.gather_nd(small, pairs),
    "GATHER": lambda: gathering(small, zeros),
    "TOP_K1 to out": lambda: sorting.dispatch(
        InputTensor=floats, OutputValueTensor=found, OutputIndexTensor=indices),
}

def everything_works():
    assert dml.top_k(small, 2).values.tolist() == [5, 4]
    assert dml.nonzero_coordinates(small).shape == (5, 1)
    assert dml.scatter_elements(small, first, small[3:4]).tolist() == [3, 1, 2, 3, 4, 5]
    assert dml.scatter_nd(small, first[:, None], small[3:4]).tolist() == [3, 1, 2, 3, 4, 5]
    assert dml.join(dml.split(small, 3)).tolist() == small.tolist()
    assert dml.gather(small, [5]).tolist() == [5]
    assert dml.gather_elements(small, [5]).tolist() == [5]
    assert dml.gather_nd(small, [[5]]).tolist() == [5]

everything_works()
dml.set_memory_pool_limit(0)
with open("/proc/self/statm") as sizes:
    used = int(sizes.read().split()[0]) * resource.getpagesize()
unlimited = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, unlimited[1]))
for name, call in calls.items():
    for threads in (1, 3):
        try:
            with dml.num_threads(threads):
                call()
        except dml.AllocationError as error:
            message = str(error)
            assert isinstance(error, MemoryError) and isinstance(error, dml.AnyDMLError)
            assert message.startswith(name.split()[0] + ":"), message
            if name == "split into many" and error.bytes is None:  # Python's own memory
                assert error.purpose == "the list of arrays", message
                continue
            assert "for " in message and any(c.isdigit() for c in message.split(":", 1)[1]), message
            assert error.bytes > 0 and error.purpose, message
            if name == "split by sizes":
                assert (error.bytes, error.purpose) == (COUNT // 2, "slab 0"), message
        else:
            raise AssertionError(f"{name}: went through")
        everything_works()
resource.setrlimit(resource.RLIMIT_AS, unlimited)
assert np.all(values == 7) and np.all(found == 7) and np.all(indices == 7), "written all the same"
calls["top_k to out"]()
assert np.all(values == 0) and np.array_equal(indices, np.arange(k))
print("good")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its size from /proc")
def test_memory_refused_by_the_system():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "good\n", "")
