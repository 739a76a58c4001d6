"""Arrays of any library: the kind that came in comes out, over the same memory."""

import array
import sys
import types
import warnings

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

X = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 5.0]], np.float32)


class Producer:
    """A DLPack producer of no known library; counts what it hands out."""

    def __init__(self, values, device=None):
        self.values = values
        self.device = device
        self.handed_out = 0

    def __dlpack__(self, **options):
        self.handed_out += 1
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device or self.values.__dlpack_device__()


class Interface:
    """Only the array interface."""

    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


def every_function(x, wrap):
    """Results of all array functions, with the operands of one kind."""
    index = wrap(np.array([[0, 1], [2, 0]]))
    rows = wrap(np.array([1, 0]))
    tuples = wrap(np.array([[0, 1], [1, 2]]))
    values, indices = dml.top_k(x, 2)
    yield from (values, indices)
    yield dml.nonzero_coordinates(x)
    yield dml.scatter_elements(x, index, wrap(X[:, :2] + 1), axis=1)
    yield dml.scatter_elements(x, index, wrap(X[:, :2] + 1), axis=1, reduction="add")
    yield dml.scatter_nd(x, tuples, wrap(X[0, :2]))
    yield from dml.split(x, [1, 2], axis=1)
    yield from dml.split(x, 3, axis=1)
    yield dml.join([x, x], axis=1)
    yield dml.gather(x, rows, axis=0)
    yield dml.gather_elements(x, index, axis=1)
    yield dml.gather_nd(x, tuples)


EXPECTED = list(every_function(X, lambda a: a))


def test_torch():
    torch = pytest.importorskip("torch")
    results = list(every_function(torch.from_numpy(X), torch.from_numpy))
    for got, expected in zip(results, EXPECTED, strict=True):
        assert isinstance(got, torch.Tensor)
        assert_same_bits(got.numpy(), expected)
    for transposed in (torch.from_numpy(X).T, torch.from_numpy(X)[:, ::2], torch.tensor(3.5)):
        assert_same_bits(dml.top_k(transposed, 1).values.numpy(),
                         dml.top_k(transposed.numpy(), 1).values)  # fmt: skip
    assert dml.nonzero_coordinates(torch.zeros(3, 0)).shape == (0, 2)


def test_torch_tensors_of_which_elements_share_memory():
    torch = pytest.importorskip("torch")
    wide = torch.tensor([[1.0], [2.0]]).expand(2, 500)
    assert dml.cast(wide, "float64").tolist() == [[1.0] * 500, [2.0] * 500]
    assert dml.pad(wide[:, :2], 0).tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_torch_out_and_in_place():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    out = torch.empty(2, 1), torch.empty(2, 1, dtype=torch.uint32)
    result = dml.top_k(x, 1, out=out)
    assert result.values is out[0]
    assert out[0].tolist() == [[3.0], [5.0]]
    pointer = x.data_ptr()
    again = dml.scatter_elements(x, torch.tensor([[1], [0]]), torch.tensor([[9.0], [8.0]]),
                                 axis=1, out=x)  # fmt: skip
    assert again is x
    assert x.data_ptr() == pointer
    assert x.tolist() == [[3, 9, 1], [8, 2, 5]]


def test_results_of_torch_are_in_its_own_memory():
    torch = pytest.importorskip("torch")
    x = torch.zeros(300_000)
    lent = dml.memory_pool().lent
    result = _copy(300_000)(x)
    (part,) = dml.split(x, 1)
    for output in (result, part):
        assert isinstance(output, torch.Tensor)
        output[7] = 3  # writable
        assert x[7] == 0
        assert output.untyped_storage().resizable()
    assert dml.memory_pool().lent <= lent


def test_operands_and_results_share_memory():
    from anydml.libraries import as_operand

    torch = pytest.importorskip("torch")
    for value in (torch.from_numpy(X), Producer(X), Interface(X), X, memoryview(X)):
        seen, wrap = as_operand(value, "x")
        assert np.shares_memory(seen, X)
        assert seen.strides == X.strides
        if not isinstance(value, torch.Tensor):
            assert np.shares_memory(np.asarray(wrap(seen)), X)


def test_torch_that_cannot_be_read():
    torch = pytest.importorskip("torch")
    with pytest.raises(dml.ArgumentTypeError, match="x: "):
        dml.top_k(torch.zeros(3, dtype=torch.complex64), 1)
    assert dml.top_k(torch.zeros(3, device="meta"), 1).values.device.type == "meta"
    with pytest.raises(dml.ArgumentTypeError, match="x: "):
        dml.nonzero_coordinates(torch.eye(3).to_sparse())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, once in a process
        half = torch.zeros(3, dtype=torch.complex32)
    with pytest.raises(dml.ArgumentTypeError, match=r"x: .* got torch\.complex32"):
        dml.gather(half, [0])
    with pytest.raises(dml.ArgumentTypeError, match=r"x: expected one of bool, .* got float8_e5m2"):
        dml.top_k(torch.zeros(3, dtype=torch.float8_e5m2), 1)


def test_jax():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    wrap = jnp.asarray
    results = list(every_function(wrap(X), wrap))
    for got, expected in zip(results, EXPECTED, strict=True):
        assert isinstance(got, jax.Array)
        kind = jnp.arange(1).dtype if expected.dtype == np.intp else expected.dtype
        assert_same_bits(np.asarray(got), expected.astype(kind))
    compiled = _copy(6)
    assert isinstance(compiled(jnp.zeros(6, "float32")), jax.Array)
    with pytest.raises(dml.ArgumentError, match="read-only"):
        dml.gather(X, [0], out=wrap(np.zeros((1, 3), "f4")))


def test_dlpack_producers():
    producer = Producer(X)
    results = list(every_function(producer, lambda a: a))
    for got, expected in zip(results, EXPECTED, strict=True):
        assert isinstance(got, np.ndarray)  # nobody can say what else
        assert_same_bits(got, expected)
    assert producer.handed_out > 0
    foreign = Producer(X, device=(2, 0))
    with pytest.raises(dml.ArgumentTypeError, match="DLPack device 2:0"):
        dml.top_k(foreign, 1)
    assert foreign.handed_out == 0


def test_dlpack_producers_that_fail():
    class NoDevice(Producer):
        def __dlpack_device__(self):
            raise RuntimeError("no device today")

    class NoMemory(Producer):
        def __dlpack__(self, **options):
            raise BufferError("not exportable")

    for producer, why in ((NoDevice(X), "no device today"), (NoMemory(X), "not exportable")):
        with pytest.raises(dml.ArgumentTypeError, match=f"x: its memory cannot be read: {why}"):
            dml.top_k(producer, 1)
        with pytest.raises(dml.BindingError, match=f"InputTensor: .*{why}"):
            _copy(6).dispatch(InputTensor=producer, OutputTensors=[np.zeros(6, "f4")])


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy 1 sees it as read-only"
)
def test_a_dlpack_producer_as_output_is_written_through():
    memory = np.zeros((1, 3), np.float32)
    out = Producer(memory)
    assert dml.gather(X, [1], out=out) is out
    assert memory.tolist() == [[0, 2, 5]]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a: a.tolist(),
        lambda a: tuple(a.tolist()),
        Interface,
        memoryview,
        lambda a: a.view(type("Sub", (np.ndarray,), {})),
        np.asfortranarray,
        lambda a: a.astype(a.dtype.newbyteorder()),
    ],
    ids=["list", "tuple", "array interface", "memoryview", "subclass", "column-major", "swapped"],
)
def test_array_likes(wrap):
    # A list of floats is float64: compare by value there.
    for got, expected in zip(every_function(wrap(X), lambda a: a.astype(dtype(wrap, a))), EXPECTED,
                           strict=True):  # fmt: skip
        assert type(got) is np.ndarray
        assert np.array_equal(got, expected)


def dtype(wrap, a):
    seen = np.asarray(wrap(X)).dtype
    return a.dtype if a.dtype.kind == "i" else seen.newbyteorder("=")


def test_python_scalars_and_buffers():
    assert dml.nonzero_coordinates(5).shape == (1, 0)
    assert dml.nonzero_coordinates(0.0).shape == (0, 0)
    assert dml.top_k(2.5, 1).values.tolist() == 2.5
    assert dml.scatter_elements(1.0, 0, 7.0) == 7.0
    assert dml.scatter_nd(1.0, np.zeros((0,), "i8"), 7.0) == 7.0
    assert dml.gather([1, 2, 3], 1) == 2
    assert dml.gather([1, 2, 3], 1).shape == ()
    assert dml.top_k(array.array("d", [1, 3, 2]), 2).values.tolist() == [3, 2]
    assert dml.top_k(range(5), 2).indices.tolist() == [4, 3]
    assert dml.gather([[1, 2]], []).shape == (0, 2)
    assert dml.join([[1], [2]]).tolist() == [1, 2]
    assert dml.top_k(memoryview(b"\x01\x03\x02"), 1).indices.tolist() == [1]


def test_smaller_index_types_are_widened():
    for kind in ("i1", "u1", "i2", "u2"):
        assert dml.gather(X, np.array([1, 0], kind)).tolist() == X[::-1].tolist()
    assert dml.gather(X, np.array([-1], "i1")).tolist() == [X[1].tolist()]
    assert dml.gather(X, np.array([1, 0], ">i4")).tolist() == X[::-1].tolist()


def test_memory_maps(tmp_path):
    path = tmp_path / "x.bin"
    X.tofile(path)
    mapped = np.memmap(path, np.float32, "r", shape=X.shape)
    for got, expected in zip(every_function(mapped, lambda a: a), EXPECTED, strict=True):
        assert_same_bits(got, expected)
    target = np.memmap(tmp_path / "y.bin", np.float32, "w+", shape=X.shape)
    dml.gather(mapped, [1, 0], out=target)
    target.flush()
    assert np.fromfile(tmp_path / "y.bin", np.float32).tolist() == X[::-1].ravel().tolist()
    compiled = _copy(6)
    compiled.dispatch(InputTensor=mapped.reshape(6), OutputTensors=[target.reshape(6)])
    assert target.ravel().tolist() == X.ravel().tolist()


def test_bindings_of_every_kind():
    compiled = _copy(6)
    flat = X.ravel()
    torch = pytest.importorskip("torch")
    sources = [
        flat, flat.tobytes(), memoryview(flat), bytearray(flat.tobytes()),
        array.array("f", flat.tolist()), torch.from_numpy(flat), Producer(flat), Interface(flat),
    ]  # fmt: skip
    for source in sources:
        memory = np.zeros(6, "f4")
        for target in (memory, memoryview(memory), torch.from_numpy(memory), Producer(memory)):
            memory[...] = 0
            compiled.dispatch(InputTensor=source, OutputTensors=[target])
            assert memory.tolist() == flat.tolist()


def test_what_has_a_buffer_and_a_library_is_its_librarys():
    class Both(bytearray):  # whose bytes are not its elements
        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    x = np.arange(6, dtype="f4")
    tensor = dml.TensorDesc("FLOAT32", (6,))
    compiled = dml.Device("cpu").create_operator(
        dml.Cast(input_tensor=tensor, output_tensor=tensor)
    ).compile()  # fmt: skip
    out = np.zeros(6, "f4")
    compiled.dispatch(InputTensor=Both(24), OutputTensor=out)
    assert out.tolist() == x.tolist()


def test_outputs_of_a_list_count_as_written():
    torch = pytest.importorskip("torch")
    tensors = [dml.TensorDesc("FLOAT32", (size,)) for size in (6, 2, 4)]
    desc = dml.Split(input_tensor=tensors[0], output_tensors=tensors[1:], axis=0)
    compiled = dml.Device("cpu").create_operator(desc).compile()
    parts = [torch.zeros(2), torch.zeros(4)]
    versions = [part._version for part in parts]
    compiled.dispatch(InputTensor=torch.arange(6.0), OutputTensors=parts)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3, 4, 5]]
    assert all(part._version > old for part, old in zip(parts, versions, strict=True))
    square = dml.TensorDesc("FLOAT32", (2, 2))
    desc = dml.Cast(input_tensor=square, output_tensor=square)
    out = torch.zeros(2, 2)
    version = out._version
    dml.Device("cpu").create_operator(desc).compile().dispatch(
        InputTensor=torch.ones(2, 2), OutputTensor=out
    )
    assert out._version == version + 1


def test_bool_is_uint8():
    tensor = dml.TensorDesc("UINT8", (4,))
    compiled = dml.Device().create_operator(
        dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    ).compile()  # fmt: skip
    out = np.zeros(4, bool)
    compiled.dispatch(InputTensor=np.array([1, 0, 1, 1], bool), OutputTensors=[out])
    assert out.tolist() == [True, False, True, True]


def _copy(count):
    tensor = dml.TensorDesc("FLOAT32", (count,))
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    compiled = dml.Device("cpu").create_operator(desc).compile()

    class OnePart:
        def __call__(self, x):
            return compiled(x)[0]

        def dispatch(self, **bindings):
            compiled.dispatch(**bindings)

    return OnePart()


def test_results_come_back_by_the_importer_of_the_library(monkeypatch):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **arguments):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    Foreign.__module__ = "foreign.core.arrays"
    library = types.ModuleType("foreign")
    library.from_dlpack = lambda array: Foreign(np.from_dlpack(array))
    monkeypatch.setitem(sys.modules, "foreign", library)
    result = dml.gather(Foreign(np.arange(4.0)), np.array([3, 1]))
    assert type(result) is Foreign
    assert result.array.tolist() == [3, 1]
    del library.from_dlpack
    assert type(dml.gather(Foreign(np.arange(4.0)), np.array([3, 1]))) is np.ndarray


def test_a_buffer_that_ends_before_its_array():
    """Of each direction, one byte too far."""

    class Described:
        def __init__(self, shape, strides, offset, size):
            self.__array_interface__ = {
                "version": 3, "typestr": "|i1", "shape": shape, "strides": strides,
                "data": bytes(range(size)), "offset": offset,
            }  # fmt: skip

    for shape, strides, offset, first in (
        ((2,), (1,), 0, 0), ((2,), (-1,), 1, 1), ((2, 2), (2, -1), 1, 1), ((2, 1), (1, 9), 0, 0)
    ):  # fmt: skip
        size = 4 if len(shape) == 2 and shape[1] == 2 else 2
        assert dml.gather(Described(shape, strides, offset, size), [0]).ravel()[0] == first
        for low, high in ((-1, 0), (0, -1)):
            with pytest.raises(dml.ArgumentTypeError, match=r"x: .*(buffer|offset|array)"):
                dml.gather(Described(shape, strides, offset + low, size + high), [0])
