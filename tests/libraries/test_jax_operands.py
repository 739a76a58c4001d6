"""Operands of JAX calls outside of traced code that are NumPy arrays, lists or numbers."""

import os
import subprocess
import sys

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from anydml.functions._function import SPECS
from support import assert_same_bits, jax_64_bits

jax = pytest.importorskip("jax")
jnp = jax.numpy

import anydml.jax  # noqa: E402 (where there is JAX)

KIND = type(jnp.zeros(0))


@pytest.fixture(scope="module", autouse=True)
def _types_as_by_default():
    """Other tests' JAX may have 64-bit types."""
    with jax_64_bits(False):
        yield


class Number:
    """An integer of a class by which no program is found again."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


# ---- bad indices --------------------------------------------------------------------------------

LARGE = 1 << 22


@pytest.mark.parametrize(
    "call",
    [
        lambda: dml.gather(jnp.ones(LARGE), np.full(LARGE, 2 * LARGE)),
        lambda: dml.gather_nd(jnp.ones(LARGE), np.full((LARGE, 1), 2 * LARGE, np.int32)),
        lambda: dml.scatter_elements(jnp.ones(LARGE), jnp.full(LARGE, 2 * LARGE), 1.0),
        lambda: dml.scatter_nd(jnp.ones(LARGE), [[2 * LARGE]], [1.0]),
        lambda: dml.gather(jnp.ones(LARGE), jnp.full(LARGE, 2 * LARGE), axis=Number(0)),
    ],
)
def test_a_call_waits_for_its_index_check(call):
    """XLA runs large programs on another thread."""
    with pytest.raises(dml.IndexOutOfRangeError, match=f"got {2 * LARGE}"):
        call()


SECOND_DEVICE = """
import jax, numpy as np, anydml as dml
import jax.numpy as jnp
second = jax.devices()[1]
x, i, u = (jax.device_put(a, second) for a in (np.ones(3, "f4"), np.array([7]), np.ones(1, "f4")))
calls = [
    lambda: dml.gather(x, [7]),
    lambda: dml.gather(x, np.array([7])),
    lambda: dml.gather_elements(x, [7]),
    lambda: dml.gather_nd(x, [[7]]),
    lambda: dml.scatter_elements(x, i, 1.0),
    lambda: dml.scatter_elements(x, i, np.ones(1, "f4")),
    lambda: dml.scatter_elements(x, [7], u),
    lambda: dml.scatter_nd(x, [[7]], 2),
    lambda: dml.gather(x, i, axis=type("Zero", (), {"__index__": lambda self: 0})()),
]
for number, call in enumerate(calls):
    for _ in range(2):
        try:
            call()
        except dml.IndexOutOfRangeError as error:
            assert error.value == 7, (number, error)
        else:
            raise SystemExit(f"call {number} returned")
array, rows = np.arange(12, dtype="f4").reshape(3, 4), np.array([2, 0])
calls = [
    lambda x, i: dml.gather(x, rows),
    lambda x, i: dml.gather(x, [2, 0], mode="wrap"),
    lambda x, i: dml.scatter_elements(x, i[:, None], 1.0),
    lambda x, i: dml.scatter_nd(x, [[1]], array[:1]),
    lambda x, i: dml.join([x, array]),
    lambda x, i: dml.join([x, rows.astype("f4")[:, None] * np.ones(4, "f4")], promote=True),
    lambda x, i: dml.one_hot(i, 3),
    lambda x, i: dml.one_hot(i, 3, [7, 8]),
    lambda x, i: dml.reverse_subsequences(x, [[2, 1, 3, 0]], axis=0),
]
for device, committed in ((second, True), (jax.devices()[0], True), (jax.devices()[0], False)):
    place = lambda a: jax.device_put(a, device) if committed else jnp.asarray(a)
    for number, call in enumerate(calls):
        result = call(place(array), place(rows))
        assert result.devices() == {device}, (number, device, result.devices())
        assert result.committed == committed, (number, device, result.committed)
        assert np.array_equal(result, call(array, rows)), number
"""


def test_on_a_second_device():
    """Calls wait for their index check; results are where the arrays of JAX are, as committed."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", SECOND_DEVICE], check=True, env={**os.environ, **flags})


# ---- compiled programs --------------------------------------------------------------------------


def repeated_calls():
    x, m = jnp.arange(12.0), jnp.arange(12.0).reshape(3, 4)
    lookup = jnp.array([1, 2])
    return {
        "gather, array": ("gather", lambda: dml.gather(x, np.array([1, 2]))),
        "gather, list": ("gather", lambda: dml.gather(x, [1, 2])),
        "gather, clip": ("gather", lambda: dml.gather(x, [1, 20], mode="clip")),
        "gather_elements": ("gather_elements", lambda: dml.gather_elements(x, [1, 2])),
        "gather_nd": ("gather_nd", lambda: dml.gather_nd(m, [[1, 2]])),
        "scatter_elements": ("scatter_elements", lambda: dml.scatter_elements(x, lookup, 1.0)),
        "scatter_nd": ("scatter_nd", lambda: dml.scatter_nd(m, [[1, 2]], np.ones(1, np.float32))),
        "join": ("join", lambda: dml.join([x, [1, 2]])),
        "join, promote": ("join", lambda: dml.join([lookup, np.ones(2, "f4")], promote=True)),
        "one_hot": ("one_hot", lambda: dml.one_hot(lookup, 4)),
        "one_hot, values": ("one_hot", lambda: dml.one_hot(lookup, 4, [5, 2])),
        "reverse_subsequences": (
            "reverse_subsequences",
            lambda: dml.reverse_subsequences(m, [[2, 1, 3, 0]], axis=0),
        ),
        "split, sizes in an array": ("split", lambda: dml.split(x, np.array([5, 7]))[1]),
        "cast, an enumeration": ("cast", lambda: dml.cast(x, dml.DataType.INT32)),
        "anydml.jax": ("top_k", lambda: anydml.jax.top_k([3, 1], 1).values),
    }


@pytest.mark.parametrize("name", repeated_calls())
def test_arguments_are_prepared_once(name, monkeypatch):
    function, call = repeated_calls()[name]
    spec, traced = SPECS[function], []

    def prepare(*arguments, before=spec.prepare):
        traced.append(arguments)
        return before(*arguments)

    expected = call()
    assert type(expected) is KIND
    monkeypatch.setattr(spec, "prepare", prepare)
    assert_same_bits(np.asarray(call()), np.asarray(expected))
    assert not traced


def test_default_values_are_constants(monkeypatch):
    lookup = jnp.array([0, 2, -1, 5])
    expected = dml.one_hot([0, 2, -1, 5], 3)
    assert_same_bits(dml.one_hot(lookup, 3), expected.astype(np.int32))
    assert_same_bits(dml.one_hot(lookup, 3, (0, 1)), expected.astype(np.int32))
    assert_same_bits(dml.one_hot(lookup, 3, (0, 7)), (7 * expected).astype(np.int32))
    with jax_64_bits(True):
        assert_same_bits(dml.one_hot(lookup, 3), expected)
    assert_same_bits(dml.one_hot(lookup, 3), expected.astype(np.int32))
    assert_same_bits(anydml.jax.one_hot([0, 2, -1, 5], 3), expected.astype(np.int32))
    monkeypatch.setattr(SPECS["one_hot"], "as_arrays", None)  # nothing is converted
    assert_same_bits(dml.one_hot(lookup, 3), expected.astype(np.int32))


def test_lists_among_the_arguments_may_change():
    """A program is traced again for arrays of another shape."""
    sizes, starts = [1, 2], [1, 0]
    assert len(dml.split(jnp.arange(3.0), sizes)) == 2
    assert dml.slice_window(jnp.zeros((3, 4)), starts, (1, 1)).shape == (1, 1)
    sizes[:], starts[:] = [1, 1, 1], [0, 0]
    parts = dml.split(jnp.zeros((3, 2)), [1, 2])
    assert [part.shape for part in parts] == [(1, 2), (2, 2)]
    x = jnp.arange(25.0).reshape(5, 5)
    assert dml.slice_window(x, [1, 0], (1, 1)).tolist() == [[5]]
    array = np.array([2, 1])
    assert len(dml.split(jnp.arange(3.0), array)) == 2
    array[:] = [1, 2]
    assert [part.shape for part in dml.split(jnp.arange(3.0), array)] == [(1,), (2,)]
    assert [part.shape for part in dml.split(x[:3], np.array([2, 1]))] == [(2, 5), (1, 5)]


def test_the_caller_may_write_to_an_operand_after_the_call():
    """XLA reads aligned arrays of NumPy in place, when the program before has run."""
    busy = jax.jit(lambda a: (a @ a).sum() * 0 + jnp.arange(64.0))
    a = jnp.ones((1500, 1500))
    for start in (0, 1):
        block = native.empty((64 + start,), np.dtype(np.float32), "test", "test")
        array, lookup = block[start:], np.arange(64, dtype=np.int32)
        array[:] = 1
        calls = [
            lambda x, array=array: dml.join([x, array])[64:],
            lambda x, array=array: dml.one_hot(x.astype(int), 1, array[:2])[:, 0],
        ]
        for call in calls:
            call(busy(a)).block_until_ready()
            result = call(busy(a))
            array[:] = 7
            assert np.asarray(result).tolist() == [1] * 64
            array[:] = 1
        result = dml.gather(busy(a), lookup, mode="clip")
        lookup[:] = 0
        assert np.asarray(result).tolist() == [*range(64)]


# ---- what operands may be -----------------------------------------------------------------------

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "lookup",
    [
        [2, 0],
        (2, -1),
        [],
        1,
        np.array([2, 0], np.int8),
        np.array([2, 0], np.uint64),
        np.array([2, 0], ">i4"),
        np.array([[2, 0], [1, 1]]).T,
        np.array([2, 9, 0, 9])[::2],
        np.array(-1),
        np.int16(2),
        range(3),
        memoryview(np.array([1, 2])),
    ],
)
def test_indices(lookup):
    expected = dml.gather(X, lookup)
    for _ in range(2):
        result = dml.gather(jnp.asarray(X), lookup)
        assert type(result) is KIND
        assert_same_bits(np.asarray(result), expected)


@pytest.mark.parametrize(
    "updates",
    [5, 5.5, [[1.5, 2.5]], np.float32(3), np.array([[1, 2]], ">f4"), np.ones((1, 2), "f4")],
)
def test_updates(updates):
    expected = dml.scatter_elements(X, [[1, 2]], updates, reduction="add")
    for _ in range(2):
        result = dml.scatter_elements(jnp.asarray(X), [[1, 2]], updates, reduction="add")
        assert_same_bits(np.asarray(result), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: dml.gather(x, [0.5]), "^indices: expected one of "),
        (lambda x: dml.gather(x, np.array([2**40])), "^indices: expected a type that JAX has, got"),
        (lambda x: dml.gather(x, ["a"]), "^indices: expected numbers"),
        (lambda x: dml.gather(x, None), "^indices: expected numbers"),
        (lambda x: dml.scatter_elements(x, [[0]], np.ones((1, 1))), "^updates: expected float32"),
        (lambda x: dml.scatter_elements(x.astype(int), [[0]], 1.5), "^updates: expected int32 .*"
         "values that do not fit: 1.5"),
        (lambda x: dml.scatter_elements(x, [[0]], 1e300), "do not fit: 1e.300"),
        (lambda x: dml.join([x, np.ones((1, 4))]), r"^arrays\[1\]: expected float32"),
        (lambda x: dml.join([x, np.ones((1, 4))], promote=True), "^arrays: expected a type that"),
        (lambda x: dml.one_hot(x[0].astype(int), 2, np.ones(2)), "^values: expected a type that"),
        (lambda x: dml.one_hot(x[0].astype(int), 2, None), "^values: expected numbers"),
        (lambda x: anydml.jax.top_k(X.astype(float), 1), "^x: expected a type that JAX has"),
        (lambda x: anydml.jax.join(3), "^arrays: expected a sequence"),
    ],
)  # fmt: skip
def test_operands_are_rejected_at_every_call(call, message):
    for _ in range(2):
        with pytest.raises(dml.ArgumentTypeError, match=message):
            call(jnp.asarray(X))


def test_a_negative_length():
    for lengths in ([-1], np.array([2, -1])[1:], jnp.array([-1])):
        for _ in range(2):
            with pytest.raises(dml.ArgumentError, match=r"^lengths: expected 0 or more, got -1$"):
                dml.reverse_subsequences(jnp.arange(3.0), lengths, axis=0)


def test_functions_of_the_module_take_anything():
    found = anydml.jax.nonzero_coordinates([0, 7, 9])
    assert type(found) is KIND
    assert found.tolist() == [[1], [2]]
    assert anydml.jax.nonzero_coordinates(np.array([1, 0])).tolist() == [[0]]
    rows = anydml.jax.join(row for row in X)  # an iterator
    assert type(rows) is KIND
    assert rows.tolist() == [*range(12)]
    assert anydml.jax.join(jnp.asarray(X)).tolist() == [*range(12)]
    assert anydml.jax.gather(X, [1]).tolist() == [[4, 5, 6, 7]]


def test_inside_of_traced_code():
    x = jnp.arange(3.0)
    lookup = jnp.array([2])
    for indices in (lookup, np.array([2]), [2]):
        traced = jax.jit(lambda y, i=indices: y + dml.gather(x, i) + dml.one_hot(lookup, 3)[0])
        assert traced(jnp.zeros(3)).tolist() == [2, 2, 3]
    slope = jax.grad(lambda x: dml.scatter_elements(x, [1], 5.0).sum())(x)
    assert slope.tolist() == [1, 0, 1]


# ---- keys and memory ----------------------------------------------------------------------------


def key(*arguments, operands=0, is_list=False, threads=0, freeze=repr):
    return native.call_key(arguments, operands, is_list, threads, freeze)


def test_keys_distinguish_arguments():
    nan = float("nan")
    values = [
        0, 1, True, False, 1.0, 0.0, -0.0, nan, None, "1", [1], (1,), [1.0], [True], [[1]], [], (),
        [1, [2]], [1, 2], 2**70,
    ]  # fmt: skip
    assert len({key(value) for value in values}) == len(values)
    assert key(nan) == key(nan)
    assert key([1, ("a", 2.5)], "b") == key([1, ("a", 2.5)], "b")
    assert key(0, threads=1) != key(0, threads=2)


def test_operands_count_by_their_types():
    assert key(5, 1, operands=1) == key(6, 1, operands=1) != key(True, 1, operands=1)
    assert key([5], operands=1) == key([True], operands=1)
    list_options = {"operands": 1, "is_list": True}
    assert key([5], **list_options) == key([6], **list_options) != key([True], **list_options)
    assert key([5, 5], **list_options) != key([5], **list_options)


def test_unusual_arguments_of_keys():
    assert key(1j, freeze=str) == key(1j, freeze=str) != key(2j, freeze=str)

    def refuse(value):
        raise TypeError("unusual")

    with pytest.raises(TypeError, match="unusual"):
        key([1, {2}], freeze=refuse)
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        key(endless)

    def change(value):
        members.clear()
        return 0

    members = [{1}, 2, 3]
    assert key(members, freeze=change) != key([], freeze=change)


@pytest.mark.parametrize(
    "arguments", [(), ((), 0, False, 0), ([], 0, False, 0, None), ((), "", False, 0, None)]
)
def test_wrong_arguments_of_call_key(arguments):
    with pytest.raises(TypeError):
        native.call_key(*arguments)


@pytest.mark.parametrize("operands", [-1, 2])
def test_call_key_with_a_wrong_number_of_operands(operands):
    with pytest.raises(ValueError, match="operands"):
        key(1, operands=operands)


def test_aligned_arrays():
    block = native.aligned(np.arange(40, dtype=np.int32), True, "test")
    assert block.ctypes.data % 64 == 0
    assert native.aligned(block, False, "test") is block
    arrays = [block[1:], block[::2], block.reshape(5, 8).T, np.broadcast_to(block[3], (2, 3))]
    arrays += [np.array(5), np.array([1, 2], "M8[s]"), np.arange(6, dtype=">i2")[1:]]
    for array in arrays:
        copy = native.aligned(array, False, "test")
        assert copy.ctypes.data % 64 == 0
        assert copy.flags.c_contiguous
        assert copy.dtype == array.dtype
        assert np.array_equal(copy, array)
    copy = native.aligned(block, True, "test")
    assert not np.shares_memory(copy, block)
    empty = np.zeros((0, 3))
    assert native.aligned(empty, True, "test") is empty
    with pytest.raises(dml.ArgumentError, match="test: expected an array of NumPy"):
        native.aligned([1], False, "test")
    with pytest.raises(dml.AllocationError, match="test"):
        native.aligned(np.broadcast_to(np.int8(0), (1 << 30, 1 << 30)), False, "test")


# ---- results without elements, lists of floats, lazy arrays -------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dml.gather(x, [3]),
        lambda x: dml.gather(x, jnp.array([3])),
        lambda x: dml.gather_nd(x, [[3]]),
        lambda x: dml.scatter_nd(x, [[3]], jnp.zeros((1, 0))),
        lambda x: dml.scatter_elements(x.T, [[0, 0, 0]], jnp.zeros((1, 3))),
    ],
)
def test_indices_are_checked_where_the_result_has_no_elements(call):
    """XLA drops such calls."""
    with pytest.raises(dml.IndexOutOfRangeError) as raised:
        call(jnp.zeros((3, 0)))
    with pytest.raises(dml.IndexOutOfRangeError) as expected:
        call(np.zeros((3, 0), np.float32))
    assert str(raised.value) == str(expected.value)
    assert dml.gather(jnp.zeros((3, 0)), [-3, 2]).shape == (2, 0)
    assert dml.gather(jnp.zeros((3, 2)), jnp.zeros(0, int)).shape == (0, 2)


def test_one_hot_of_a_list_of_floats():
    got = dml.one_hot(jnp.array([0, 2]), 3, [0.5, 1.0])
    assert got.dtype == jnp.float32
    assert got.tolist() == [[1, 0.5, 0.5], [0.5, 0.5, 1]]
    assert jax.jit(lambda i: dml.one_hot(i, 3, [0.5, 1.0]))(jnp.array([0])).dtype == jnp.float32
    with jax_64_bits(True):
        assert dml.one_hot(jnp.array([0, 2]), 3, [0.5, 1.0]).dtype == jnp.float64
    with pytest.raises(dml.ArgumentTypeError, match=r"^values: "):
        dml.one_hot(jnp.array([0, 2]), 3, np.array([0.5, 1.0]))


def test_dask_arrays_beside_arrays_of_jax():
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(np.array([0, 1]))
    x = jnp.arange(3.0)
    advice = "expected an array in memory, got a dask array; call .*compute"
    for call in (
        lambda: dml.gather(x, lazy),
        lambda: jax.jit(lambda x: dml.gather(x, lazy))(x),
        lambda: dml.scatter_elements(x, [0, 1], lazy.astype(np.float32)),
        lambda: dml.join([x, lazy.astype(np.float32)]),
        lambda: dml.join([x, lazy], promote=True),
    ):
        with pytest.raises(dml.ArgumentTypeError, match=advice):
            call()


def test_results_that_the_call_allocates_are_those_of_jax():
    x = jnp.arange(3.0)
    values, indices = dml.top_k(x, 1, out=(None, None))
    assert (type(values), indices.dtype) == (KIND, dml.top_k(x, 1).indices.dtype)


def test_a_result_beyond_2_48_elements():
    with pytest.raises(dml.ArgumentError, match=r"at most 2\^48 elements"):
        dml.pad(jnp.ones((3, 5)), 2**31)


def test_the_gradient_of_one_hot_of_one_index():
    gradient = jax.grad(lambda v: dml.one_hot(jnp.asarray(1), 3, v).sum())(jnp.array([0.0, 1.0]))
    assert gradient.tolist() == [2, 1]
