"""CuPy's arrays, on stand-ins for CuPy and the driver: which are taken, and how."""

import pytest
from cupy_stand_in import CUPY

ARRAYS = """
def array(*values, dtype="f4"):
    return ndarray(np.array(values, dtype))

def changed(**attributes):
    one = array(1, 2, 3)
    for name, value in attributes.items():
        setattr(one, name, value)
    return one

def refused(call):
    try:
        print(type(call()).__name__)
    except dml.AnyDMLError as error:
        print(type(error).__name__, error, sep=": ")

x = array(5, 6, 7)
i = array(2, 0, 1, dtype="i8")

"""


@pytest.fixture
def run(with_stubs):
    """What a program prints, by lines."""

    def lines(code, **variables):
        return with_stubs(CUPY + ARRAYS + code, **variables).splitlines()

    return lines


def test_results_are_arrays_of_the_same_device(run):
    code = """
before = len(log())
result = dml.gather(x, i)
print(type(result) is ndarray, result.shape, result.dtype, result.device.id)
values, indices = dml.top_k(x, 2)
print(type(values) is ndarray, values.dtype, indices.dtype, indices.shape)
print(dml.join([x, x, x]).shape, dml.nonzero_coordinates(x).shape)
out = array(0, 0)
print(dml.slice_window(x, (0,), (2,), out=out) is out)
launched = [line for line in log()[before:] if line.startswith("launch")]
print(len(launched) > 4, all("stream 0x40" in line for line in launched), "push 1" in log())
print(stub().stub_lent(), stub().stub_depth())
"""
    assert run(code, STUB_COUNT="2") == [
        "True (3,) float32 1",
        "True float32 int64 (2,)",
        "(9,) (2, 1)",
        "True",
        "True True True",
        "0 0",
    ]


def test_options_of_top_k(run):
    """Lengths go where the rows are: none, a number or a list, for which alone the host waits."""
    code = """
rows = ndarray(np.ones((3, 4), "f4"))
dml.top_k(rows, 2, sorted=False)  # finds the compiler
for options in (
    {"sorted": False}, {"nan": "last"}, {"tie_break": "last"}, {"lengths": 3},
    {"lengths": np.int64(300)}, {"lengths": i}, {"lengths": [1, 2, 3]},
):
    before = len(log())
    values, indices = dml.top_k(rows, 2, **options)
    launched = any(line.startswith("launch top_k") for line in log()[before:])
    print(type(values) is type(indices) is ndarray, launched, "wait" in log()[before:])
print(stub().stub_lent(), stub().stub_depth())
"""
    *calls, balance = run(code)
    assert calls == ["True True False"] * 6 + ["True True True"]
    assert balance == "0 0"


def test_an_array_on_another_device_than_cupy_works_on(run):
    """Results lie with the operands, on that device's own stream."""
    code = """
x.device.id = i.device.id = 0
before = len(log())
print(dml.gather(x, i).device.id)
launched = [line for line in log()[before:] if line.startswith("launch")]
print(all("stream 0x80" in line for line in launched), Device.now)
refused(lambda: dml.gather(x, array(0, dtype="i8")))
"""
    assert run(code) == [
        "0",
        "True [1]",
        "ArgumentError: arrays: expected all on one device, got cuda:0 and cuda:1",
    ]


def test_arrays_of_any_layout_are_taken(run):
    code = """
most = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
for dtype, shape, strides, shift in (
    ("u1", (3,), (-1,), 2),
    ("f4", (1,), (2,), 0),  # no second element
    ("f4", (0,), (2,), 1),
    ("f4", (), (), 0),
    ("f4", (1,) * most, (4,) * most, 0),
):
    one = array(1, 2, 3, dtype=dtype)
    one.shape, one.strides, one.data.ptr = shape, strides, one.data.ptr + shift
    print(dml.tile(one, (1,) * len(shape)).shape == shape)
print(type(dml.tile(type("Own", (ndarray,), {})(np.ones(2)), 2)).__name__)
"""
    assert run(code) == ["True"] * 5 + ["ndarray"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ("changed(strides=(2,))", "expected aligned elements"),
        ("changed(shape=(1 << 62, 1 << 62), strides=(4, 4))", "EB for an array"),
        ("changed(shape=(1,) * 65, strides=(4,) * 65)", "axes"),
        ("changed(dtype=np.dtype('>f4'))", "use dml.cast first"),
        ("changed(dtype=np.dtype('U1'))", "expected numbers"),
        ("changed(dtype=np.dtype([('a', 'i4')]))", "expected numbers"),
    ],
)
def test_what_no_kernel_reads_is_refused(run, array, message):
    code = f"""
before = len(log())
refused(lambda: dml.gather({array}, i))
print(len(log()) - before)
"""
    error, calls = run(code)
    assert error.startswith(("ArgumentError", "ArgumentTypeError", "AllocationError"))
    assert message in error
    assert calls == "0"


def test_no_memory_for_a_result(run):
    code = """
refused(lambda: dml.join([x] * 37))
print(stub().stub_lent(), stub().stub_depth())
"""
    message, balance = run(code, NO_MEMORY="111")
    assert message.startswith("AllocationError: ")
    assert "444 bytes" in message
    assert balance == "0 0"


def test_bfloat16(run):
    """CuPy has ml_dtypes' type, as NumPy does."""
    pytest.importorskip("ml_dtypes")
    code = """
import ml_dtypes
x = ndarray(np.ones(3, ml_dtypes.bfloat16))
print(dml.top_k(x, 2).values.dtype, dml.cast(x, "float32").dtype, dml.cast(i, "bfloat16").dtype)
"""
    assert run(code) == ["bfloat16 float32 bfloat16"]


CALLS = """
dml.gather(x, i)  # finds the compiler, and knows the types
dml.cast(i, "float32")
from anydml.functions import _dispatch
_dispatch.on_memory = lambda spec, *_: print(spec.name)

"""


def test_calls_are_native(run):
    """No plain call takes the general path, which is several times slower."""
    code = """
rows, at = ndarray(np.ones((3, 4), "f4")), ndarray(np.zeros((3, 4), "i8"))
pair = ndarray(np.zeros((1, 2), "i8"))
for call in (
    lambda: dml.top_k(rows, 2), lambda: dml.nonzero_coordinates(rows), lambda: dml.gather(rows, i),
    lambda: dml.gather_elements(rows, at), lambda: dml.gather_nd(rows, pair),
    lambda: dml.scatter_elements(rows, at, rows), lambda: dml.scatter_nd(rows, pair, array(1)),
    lambda: dml.split(rows, 2, axis=1), lambda: dml.join([rows, rows]),
    lambda: dml.cast(i, "float32"), lambda: dml.pad(rows, 1), lambda: dml.tile(rows, (2, 1)),
    lambda: dml.slice_window(rows, (0, 0), (2, 2)),
    lambda: dml.reverse_subsequences(rows, ndarray(np.ones((1, 4), "i8")), axis=0),
):
    result = call()
    parts = result if isinstance(result, tuple) else (result,)
    print(all(type(part) is ndarray for part in parts))
out = ndarray(np.ones((3, 4), "f4"))
print(dml.gather(rows, i, out=out) is out, dml.scatter_nd(rows, pair, array(1), out=rows) is rows)
found = dml.top_k(rows, 4)
again = dml.top_k(rows, 4, out=(found.values, found.indices))
print(again.values is found.values, again.indices is found.indices)
print(type(again) is type(found) is dml.TopKResult, stub().stub_lent(), stub().stub_depth())
"""
    *lines, last = run(CALLS + code, STUB_COUNT="2")
    assert {word for line in lines for word in line.split()} == {"True"}
    assert len(lines) == 16
    assert last == "True 0 0"


def test_operands_of_dask_arrays(run):
    """Indices and updates on a GPU become blocks of their own, of CuPy's class."""
    pytest.importorskip("dask.array")
    code = """
import dask.array as da

lazy = da.from_array(np.ones(3, "f4"), chunks=2)
for call in (
    lambda: dml.gather(lazy, i), lambda: dml.gather_elements(lazy, i),
    lambda: dml.scatter_elements(lazy, i, x),
    lambda: dml.scatter_nd(lazy, ndarray(np.ones((3, 1), "i8")), x),
):
    print(type(call()).__name__)
"""
    assert run(code) == ["Array"] * 4


@pytest.mark.parametrize(
    "call",
    [
        "gather(x, [0])",
        "gather(x, i, mode='wrap')",
        "gather(x, i, axis=1)",
        "gather(x, i, out=x)",
        "gather(x, i, out=np.ones(3, 'f4'))",
        "top_k(x, 1, out=x)",
        "top_k(x, 1, out=(None, None))",
        "split(x, 1, out=[x])",
        "gather(x, array(0.5))",
        "gather(changed(strides=(2,)), i)",
        "gather(x, ndarray(np.zeros(1, 'i8'), 0))",
        "gather(ndarray(np.ones(3), 0), ndarray(np.zeros(1, 'i8'), 0))",
        "gather(type('Own', (ndarray,), {})(np.ones(2)), i)",
        "gather(ndarray(np.ones(3, 'M8[s]')), i)",
        "join([x, np.ones(3, 'f4')])",
        "split(x, iter([1, 2]))",
        "cast(x, 'no type')",
        "top_k(ndarray(np.ones((), 'f4')), 1)",
        "tile(x, 37)",
    ],
)
def test_unusual_calls_take_the_general_path(run, call):
    assert run(CALLS + f"dml.{call}\n", NO_MEMORY="111") == [call.partition("(")[0]]
