"""Sizes that no memory has, numbers that no size can be, memory that is not there."""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import anydml as dml

NUMPY_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"

T = dml.TensorDesc
VAST = np.broadcast_to(np.uint8(1), (2**62,))
LARGE = np.broadcast_to(np.uint8(1), (2**45,))
NONE = np.zeros((2**20, 0), np.int64)


def test_the_interpreter_lives():
    """In a process of its own: this one aborted."""
    code = (
        "import numpy as np, anydml as dml\n"
        "a = np.broadcast_to(np.uint8(1), (2**62,))\n"
        "try:\n    dml.join([a, a])\nexcept MemoryError as error:\n    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "join: 9.2 EB for the result could not be allocated\n"


# What to call, and what the message says.
NO_MEMORY = {
    "join": (lambda: dml.join([VAST, VAST]), "join: 9.2 EB for the result"),
    "join one": (lambda: dml.join([LARGE]), "join: 35.2 TB for the result"),
    "join many": (lambda: dml.join([VAST] * 100), "join: 461.2 EB for the result"),
    "split": (lambda: dml.split(VAST, 2), "split: 2.3 EB for slab 0"),
    "split into 1": (lambda: dml.split(LARGE, 1), "split: 35.2 TB for a slab"),
    "split by sizes": (lambda: dml.split(LARGE, [1, 2**45 - 1]), "split: 35.2 TB for slab 1"),
    "split into all": (lambda: dml.split(VAST, 2**62), "split: memory for the list of 4611686018"),
    "split into many": (lambda: dml.split(LARGE, 2**45), "split: memory for the list of arrays"),
    "top_k": (lambda: dml.top_k(VAST, 2**62), "top_k: 4.6 EB for the values"),
    "top_k wide": (lambda: dml.top_k(LARGE, 2**45), "top_k: 35.2 TB for the values"),
    "top_k indices": (
        lambda: dml.top_k(np.broadcast_to(np.uint8(1), (2**40, 0, 2**22)), 2**22),
        None,
    ),
    "nonzero": (lambda: dml.nonzero_coordinates(LARGE), "nonzero_coordinates: 4.4 TB for scratch"),
    "scatter_elements": (
        lambda: dml.scatter_elements(LARGE, np.array([1]), np.array([1], "u1")),
        "scatter_elements: 35.2 TB for the result",
    ),
    "scatter_nd": (
        lambda: dml.scatter_nd(VAST, np.array([[1]]), np.array([1], "u1")),
        "scatter_nd: 4.6 EB for the result",
    ),
    "gather": (
        lambda: dml.gather(np.zeros((2, 3)), np.broadcast_to(0, (2**40,))),
        "gather: 26.4 TB for the result",
    ),
    "gather_elements": (
        lambda: dml.gather_elements(np.zeros(3), np.broadcast_to(0, (2**40,))),
        "gather_elements: 8.8 TB for the result",
    ),
    "gather_nd": (
        lambda: dml.gather_nd(np.zeros(3), np.broadcast_to(0, (2**40, 1))),
        "gather_nd: 8.8 TB for the result",
    ),
    "widened indices": (
        lambda: dml.gather(np.zeros(3), np.broadcast_to(np.int8(0), (2**45,))),
        "indices: 281.5 TB for a copy as int64",
    ),
    "foreign order": (
        lambda: dml.top_k(np.broadcast_to(np.array(1, ">f4"), (2**45,)), 1),
        "x: 140.7 TB for a copy as float32",
    ),
}


@pytest.mark.parametrize("name", [name for name, (_, text) in NO_MEMORY.items() if text])
def test_memory_that_is_not_there(name):
    call, text = NO_MEMORY[name]
    with pytest.raises(MemoryError) as caught:
        call()
    error = caught.value
    assert isinstance(error, dml.AllocationError)
    assert isinstance(error, dml.AnyDMLError)
    assert str(error).startswith(text), error
    assert str(error).endswith("could not be allocated")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.bytes, again.purpose) == (str(error), error.bytes, error.purpose)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "memory"),
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (34_359_738_368, "34.4 GB"),
        (2**64, "18.4 EB"),
        (10**27 - 1, "1000.0 YB"),
        pytest.param(10**5000, "more than 10^27 bytes", id="thousands of digits"),
    ],
)
def test_amounts(count, text):
    assert str(dml.AllocationError("f", count, "x")) == f"f: {text} for x could not be allocated"


def test_broadcast_arrays_beyond_counting():
    for name, call in {
        "top_k": lambda x: dml.top_k(x, 1),
        "nonzero": dml.nonzero_coordinates,
        "gather": lambda x: dml.gather(x, [5]),
        "gather_elements": lambda x: dml.gather_elements(x, [5]),
        "gather_nd": lambda x: dml.gather_nd(x, [[5]]),
        "split": lambda x: dml.split(x, [2**62], out=[np.zeros(3, "u1")]),
    }.items():
        with pytest.raises(dml.ArgumentError, match=r"^x: expected at most 2\^48 elements, got 46"):
            call(VAST)
        assert name
    with pytest.raises(dml.ArgumentError, match=r"^arrays\[0\]: expected at most 2\^48 elements"):
        dml.join([VAST], out=np.zeros(3, "u1"))
    # As many as can be counted are read where they are.
    maximum = np.broadcast_to(np.uint8(7), (2**24, 2**24))
    assert dml.gather(maximum, [2**24 - 1], axis=1)[:2].tolist() == [[7], [7]]


def test_strides_beyond_the_address_space():
    strided = np.lib.stride_tricks.as_strided
    one = np.ones(1)
    for strides in ((2**62,), (-(2**62),), (2**60,)):
        far = strided(one, (2,), strides)  # never read: refused
        with pytest.raises(dml.ArgumentError, match="within the address space"):
            dml.top_k(far, 1)
        with pytest.raises(dml.ArgumentError, match="within the address space"):
            dml.join([one, far])
    # A stride that no element needs says nothing.
    for stride in (2**62, -(2**63), 2**63 - 1):
        for x in (strided(one, (1,), (stride,)), strided(one, (1, 1), (8, stride))):
            assert dml.top_k(x, 1, axis=0).values.tolist() == x.tolist()
            assert dml.join([x, x]).sum() == 2
            assert dml.nonzero_coordinates(x).shape == (1, x.ndim)
        assert dml.join([strided(one, (0, 5), (stride, stride))] * 2).shape == (0, 5)


# ---- empty arrays of large sizes

KINDS = ("u1", "f4")


@pytest.mark.parametrize("kind", KINDS)
def test_large_and_empty(kind):
    e = np.empty((2**40, 2**20, 0), kind)
    empty = np.zeros((2, 3, 0), np.int64)
    # NumPy has no empty array of so many 64-bit elements off its empty axis.
    values, indices = dml.top_k(e, 0, axis=2, index_dtype="uint32")
    assert values.shape == indices.shape == e.shape
    assert dml.top_k(e, 5, axis=1).values.shape == (2**40, 5, 0)
    assert dml.nonzero_coordinates(e).shape == (0, 3)
    assert [part.shape for part in dml.split(e, 2)] == [(2**39, 2**20, 0)] * 2
    assert [part.shape[1] for part in dml.split(e, [1, 2**20 - 1], axis=1)] == [1, 2**20 - 1]
    assert dml.join([e, e], axis=2).shape == e.shape
    assert dml.gather(e, [0, 5, -1]).shape == (3, 2**20, 0)
    assert dml.gather(e, [[0], [5]], axis=1, mode="clamp").shape == (2**40, 2, 1, 0)
    assert dml.gather_elements(e, empty).shape == empty.shape
    assert dml.gather_nd(e, [[5, 6], [-1, -1]]).shape == (2, 0)
    assert dml.scatter_elements(e, empty, np.zeros(empty.shape, kind)).shape == e.shape
    assert dml.scatter_nd(e, [[5, 6]], np.zeros((1, 0), kind)).shape == e.shape
    assert dml.scatter_elements(e, empty, np.zeros(empty.shape, kind), out=e) is e
    # Indices are looked at where there is nothing to move.
    for call in (
        lambda: dml.gather(e, [2**40]),
        lambda: dml.gather(e[:1, :1], [0], axis=2),
        lambda: dml.gather_nd(e, [[5, 2**20]]),
        lambda: dml.scatter_nd(e, [[5, -(2**20) - 1]], np.zeros((1, 0), kind)),
    ):
        with pytest.raises(dml.IndexOutOfRangeError):
            call()


def test_many_empty_tuples():
    tuples = np.zeros((2**40, 0), np.int64)
    x = np.zeros((3, 0))
    assert dml.scatter_nd(x, tuples, np.zeros((2**40, 3, 0))).shape == (3, 0)
    assert dml.gather_nd(x, tuples).shape == (2**40, 3, 0)


def test_results_of_sizes_that_numpy_does_not_have():
    e = np.empty((2**40, 2**20, 0), "f4")
    with pytest.raises(
        dml.ArgumentError,
        match=r"^join: .*\(21990232",
    ):
        dml.join([e, e])


# ---- ranks and ragged lists


def test_ranks_above_64():
    maximum = 64 if NUMPY_2 else 32
    rank = maximum // 2 + 8
    x, i = np.zeros((1,) * rank), np.zeros((1,) * rank, int)
    with pytest.raises(
        dml.ArgumentError, match=f"gather: expected at most {maximum} axes of the res"
    ):
        dml.gather(x, i)
    with pytest.raises(dml.ArgumentError, match=f"gather_nd: expected at most {maximum} axes"):
        dml.gather_nd(x, np.zeros((*(1,) * (rank - 1), 1), int))
    rest, out = np.zeros((1,) * (maximum + 1 - rank), int), np.zeros((1,) * maximum)
    assert dml.gather(x, rest).ndim == maximum
    assert dml.tile(x, (1,) * maximum).ndim == maximum
    with pytest.raises(
        dml.ArgumentError, match=f"expected at most {maximum} values, got {maximum + 1}"
    ):
        dml.tile(x, (1,) * (maximum + 1))
    assert dml.gather(x, rest, out=out) is out
    deep = [1]
    for _ in range(70):
        deep = [deep]
    for call in (dml.nonzero_coordinates, lambda v: dml.top_k(v, 1), lambda v: dml.join([v])):
        with pytest.raises(dml.ArgumentTypeError):
            call(deep)


@pytest.mark.parametrize("sizes", [[1, [2]], [[1], [2, 3]], [1, (2, 3)], [[], 1], ([],), [1, None]])
def test_ragged_sizes(sizes):
    with pytest.raises(
        dml.ArgumentTypeError, match=r"sections_or_sizes\[\d\]: expected an integer"
    ):
        dml.split(np.zeros(4), sizes)


# ---- numbers

HUGE = [2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, 10**5000]
NUMBERS = [
    pytest.param(sign * number, id=f"{'-' if sign < 0 else ''}2^{number.bit_length() - 1}")
    for number in HUGE
    for sign in (1, -1)
]


@pytest.mark.parametrize("number", NUMBERS)
def test_huge_numbers(number):
    x = np.zeros((3, 4), "f4")
    i = np.zeros((3, 4), int)
    for call in (
        lambda: dml.top_k(x, number),
        lambda: dml.top_k(x, 1, axis=number),
        lambda: dml.split(x, number),
        lambda: dml.split(x, [number, 1]),
        lambda: dml.split(x, [number, -number, 3]),
        lambda: dml.split(x, [number, number]),
        lambda: dml.split(x, 1, axis=number),
        lambda: dml.join([x], axis=number),
        lambda: dml.gather(x, i, axis=number),
        lambda: dml.gather_elements(x, i, axis=number),
        lambda: dml.gather_nd(x, i[:, :2], batch_dims=number),
        lambda: dml.scatter_elements(x, i, x, axis=number),
        lambda: dml.set_num_threads(number),
        lambda: dml.num_threads(number),
    ):
        with pytest.raises(dml.ArgumentError):
            call()
    tensor = T("FLOAT32", (4,))
    with pytest.raises(dml.InvalidDescriptorError):
        dml.Device("cpu").create_operator(
            dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=number)
        )
    try:
        bad = T("FLOAT32", (number, number), (number, 1))
    except dml.InvalidDescriptorError:
        return
    with pytest.raises(dml.InvalidDescriptorError):
        dml.Device("cpu").create_operator(dml.Split(input_tensor=bad, output_tensors=[bad], axis=0))


@pytest.mark.parametrize("number", NUMBERS[-8::2])
def test_huge_index_values(number):
    for call in (
        lambda: dml.gather([1.0, 2.0], [number]),
        lambda: dml.scatter_elements([1.0, 2.0], [-number], [1.0]),
        lambda: dml.gather_nd([1.0, 2.0], [[0], [number]]),
    ):
        with pytest.raises((dml.ArgumentTypeError, dml.IndexOutOfRangeError)):
            call()


# ---- memory that the system refuses, for results and for scratch

LIMITED = """
import json, resource, sys
import numpy as np
import anydml as dml

dml.set_num_threads(2)
dml.set_memory_pool_limit(0)
T, device = dml.TensorDesc, dml.Device("cpu")
n = 1 << 23
x = np.random.default_rng(0).random(n, np.float32)
i = np.random.default_rng(1).integers(0, n, n)
few = np.arange(1000)
flat = T("FLOAT32", (n,))
index = T("UINT32", (n,))
i32 = i.astype(np.uint32)
bool_out = np.empty(n, np.float32)


def operator(desc):
    return device.create_operator(desc).compile()


top = operator(dml.TopK1(input_tensor=flat, output_value_tensor=flat, output_index_tensor=index,
                         axis=0, k=n, axis_direction="DECREASING"))
scatter = operator(dml.Scatter(input_tensor=flat, indices_tensor=index, updates_tensor=flat,
                               output_tensor=flat, axis=0))
gather = operator(dml.GatherElements(input_tensor=flat, indices_tensor=index, output_tensor=flat,
                                     axis=0))
nonzero = operator(dml.NonzeroCoordinates(input_tensor=T("FLOAT32", (1, 1, 1, n)),
                                          output_count_tensor=T("UINT32", (1,)),
                                          output_coordinates_tensor=T("UINT32", (n, 1))))
u4, rows, one = np.empty(n, np.uint32), np.empty((n, 1), np.uint32), np.zeros(1, np.uint32)
wide = np.empty(2 * n, np.float32)[::2]
parts = np.split(x, 4)
CALLS = {
    "top_k": lambda: dml.top_k(x, n),
    "top_k scratch": lambda: dml.top_k(x, n, out=(bool_out, u4)),
    "nonzero_coordinates": lambda: dml.nonzero_coordinates(x),
    "scatter_elements": lambda: dml.scatter_elements(x, few, x[:1000]),
    "scatter_elements scratch": lambda: dml.scatter_elements(x, i, x, out=bool_out),
    "scatter_nd": lambda: dml.scatter_nd(x, few[:, None], x[:1000]),
    "scatter_nd scratch": lambda: dml.scatter_nd(x, i[:, None], x, out=bool_out),
    "split": lambda: dml.split(x, 2),
    "split sizes": lambda: dml.split(x, [1, n - 1]),
    "join": lambda: dml.join(parts),
    "gather": lambda: dml.gather(x, i),
    "gather_elements": lambda: dml.gather_elements(x, i),
    "gather_nd": lambda: dml.gather_nd(x, i[:, None]),
    "TOP_K1": lambda: top(x),
    "TOP_K1 scratch": lambda: top.dispatch(InputTensor=x, OutputValueTensor=bool_out,
                                           OutputIndexTensor=u4),
    "TOP_K1 scratch, strided": lambda: top.dispatch(InputTensor=x, OutputValueTensor=wide,
                                                    OutputIndexTensor=u4),
    "SCATTER": lambda: scatter(x, i32, x),
    "SCATTER scratch": lambda: scatter.dispatch(InputTensor=x, IndicesTensor=i32, UpdatesTensor=x,
                                                OutputTensor=bool_out),
    "GATHER_ELEMENTS": lambda: gather(x, i32),
    "NONZERO_COORDINATES": lambda: nonzero(x.reshape(1, 1, 1, n)),
}
for call in CALLS.values():  # whatever the first call keeps, and the threads
    call()
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
hard = resource.getrlimit(resource.RLIMIT_AS)[1]
told = {}
for name, call in CALLS.items():
    bool_out[:] = -1
    resource.setrlimit(resource.RLIMIT_AS, (pages + (4 << 20), hard))
    try:
        call()
        text = "no error"
    except BaseException as error:
        text = f"{type(error).__name__}: {error}"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    told[name] = [text, bool((bool_out == -1).all())]
print(json.dumps(told))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_memory_that_the_system_refuses():
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    output = json.loads(ran.stdout)
    for name, (text, untouched) in output.items():
        call = name.split()[0]
        pattern = rf"AllocationError: {call}: [\d.]+ [MG]B for .* could not be allocated"
        assert re.match(pattern, text), (name, text)
        assert untouched, name
        if "scratch" in name:
            assert "for scratch" in text, name
    assert "TOP_K1 scratch, strided" in output
