"""Every argument of everything public, hostile in every way that could be thought of.

The outcome is a result, an exception of this package, or what the operand's own method raised;
never another exception, and never the end of the process.
"""

import gc
import itertools
import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import anydml as dml

X = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.array([[0, 1], [1, 0], [2, -1]])  # noqa: E741
U = np.zeros((3, 2), np.float32)
TUPLES = np.array([[0, 1], [2, 3]])
TENSOR, INDEX = dml.TensorDesc("FLOAT32", (3, 4)), dml.TensorDesc("UINT32", (3, 4))
DEVICE = dml.Device("cpu")
SPLIT = {"input_tensor": TENSOR, "output_count": 1, "output_tensors": [TENSOR], "axis": 0}
COMPILED = DEVICE.create_operator(dml.Split(**SPLIT)).compile()
JOINED = DEVICE.create_operator(
    dml.Join(input_tensors=[TENSOR], output_tensor=TENSOR, axis=0)
).compile()
SCATTER = DEVICE.create_operator(
    dml.Scatter(input_tensor=TENSOR, indices_tensor=INDEX, updates_tensor=TENSOR,
                output_tensor=TENSOR, axis=0)
).compile()  # fmt: skip


def scatter_bindings():
    zeros = np.zeros((3, 4), "f4")
    return {"InputTensor": X, "IndicesTensor": np.zeros((3, 4), "u4"), "UpdatesTensor": X,
            "OutputTensor": zeros}  # fmt: skip


# Each callable with good arguments, made anew for each call.
CALLS = {
    "top_k": (dml.top_k, lambda: {"x": X.copy(), "k": 2, "axis": 1, "largest": True,
                                  "sorted": True, "index_dtype": None, "out": None}),
    "nonzero_coordinates": (dml.nonzero_coordinates, lambda: {"x": X.copy(), "out": None}),
    "scatter_elements": (dml.scatter_elements, lambda: {
        "x": X.copy(), "indices": I.copy(), "updates": U.copy(), "axis": 1, "reduction": None,
        "out": None}),
    "scatter_nd": (dml.scatter_nd, lambda: {
        "x": X.copy(), "indices": TUPLES.copy(), "updates": np.zeros(2, "f4"), "reduction": None,
        "out": None}),
    "split": (dml.split, lambda: {"x": X.copy(), "sections_or_sizes": [1, 2], "axis": 0,
                                  "out": None}),
    "join": (dml.join, lambda: {"arrays": [X.copy(), X.copy()], "axis": 0, "out": None}),
    "gather": (dml.gather, lambda: {"x": X.copy(), "indices": I.copy(), "axis": 1,
                                    "mode": "raise", "out": None}),
    "gather_elements": (dml.gather_elements, lambda: {
        "x": X.copy(), "indices": I.copy(), "axis": 1, "mode": "clamp", "out": None}),
    "gather_nd": (dml.gather_nd, lambda: {"x": X.copy(), "indices": TUPLES.copy(),
                                          "batch_dims": 0, "mode": "raise", "out": None}),
    "TensorDesc": (dml.TensorDesc, lambda: {
        "data_type": "FLOAT32", "sizes": (3, 4), "strides": (4, 1), "flags": "NONE",
        "total_tensor_size_in_bytes": 48, "guaranteed_base_offset_alignment": 0}),
    "TensorDesc.from_array": (dml.TensorDesc.from_array, lambda: {"array": X.copy()}),
    "TensorDesc.from_json": (dml.TensorDesc.from_json, lambda: {"value": TENSOR.to_json()}),
    "from_json": (dml.from_json, lambda: {"value": dml.Split(**SPLIT).to_json()}),
    "DataType.parse": (dml.DataType.parse, lambda: {"value": "FLOAT32"}),
    "DataType.from_numpy": (dml.DataType.from_numpy, lambda: {"dtype": "f4"}),
    "FeatureLevel.parse": (dml.FeatureLevel.parse, lambda: {"value": "3_0"}),
    "support": (dml.support, lambda: {"operator": "SPLIT"}),
    "Device": (dml.Device, lambda: {"kind": "cpu", "feature_level": "5_0"}),
    "Device.check": (DEVICE.check, lambda: {"desc": dml.Split(**SPLIT)}),
    "Device.minimum": (DEVICE.minimum_feature_level, lambda: {"desc": dml.Split(**SPLIT)}),
    "Device.create": (DEVICE.create_operator, lambda: {"desc": dml.Split(**SPLIT),
                                                       "out_of_range": "raise"}),
    "Operator": (dml.Operator, lambda: {"desc": dml.Split(**SPLIT), "device": DEVICE,
                                        "out_of_range": "raise"}),
    "CompiledOperator": (dml.CompiledOperator, lambda: {"operator": COMPILED.operator}),
    "dispatch": (COMPILED.dispatch, lambda: {"InputTensor": X.copy(), "OutputTensors": [X.copy()]}),
    "dispatch JOIN": (JOINED.dispatch, lambda: {"InputTensors": [X.copy()],
                                                "OutputTensor": X.copy()}),
    "dispatch SCATTER": (SCATTER.dispatch, scatter_bindings),
    "call": (COMPILED, lambda: {"InputTensor": X.copy()}),
    "call JOIN": (JOINED, lambda: {"InputTensors": [X.copy()]}),
    "initialize": (COMPILED.initialize, lambda: {"InputTensor": X.copy()}),
    "set_num_threads": (dml.set_num_threads, lambda: {"count": 2}),
    "num_threads": (dml.num_threads, lambda: {"count": 2}),
    "set_memory_pool_limit": (dml.set_memory_pool_limit, lambda: {"limit": 1 << 30}),
}  # fmt: skip

for kind in (dml.Split, dml.Join, dml.TopK, dml.TopK1, dml.Scatter, dml.ScatterND, dml.Gather,
             dml.GatherElements, dml.GatherND, dml.GatherND1, dml.NonzeroCoordinates):  # fmt: skip

    def fields(kind=kind):
        values = {}
        for info in kind.fields():
            if info.enum is not None:
                values[info.attribute] = "DECREASING"
            elif info.role.value == "attribute":
                values[info.attribute] = 1
            else:
                values[info.attribute] = [TENSOR] if info.many else TENSOR
        return values

    def make(kind=kind, **values):
        desc = kind(**values)
        DEVICE.check(desc)
        DEVICE.minimum_feature_level(desc)
        return repr(desc), hash(desc), desc.to_json()

    CALLS[kind.__name__] = (make, fields)


class OwnError(Exception):
    """What an operand's own method raises."""


def raising(*names):
    def method(self, *args, **kwargs):
        raise OwnError

    return type("Raising", (), dict.fromkeys(names, method))()


class Lying:
    """A sequence whose length is not what it says."""

    def __init__(self, says, has):
        self.says, self.has = says, has

    def __len__(self):
        return self.says

    def __getitem__(self, at):
        if at >= self.has:
            raise IndexError
        return X if self.has else 0

    def __iter__(self):
        return iter([X] * self.has)


class Interface:
    """Says what is not so; but an address or offset that lies, NumPy believes: no part of this."""

    def __init__(self, **changes):
        self.memory = np.zeros((3, 4), "f4")
        self.__array_interface__ = {**self.memory.__array_interface__, **changes}


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Text(str):
    __slots__ = ()

    def __hash__(self):
        raise OwnError


class BadRepr:
    def __repr__(self):
        raise OwnError


class Float(float):
    pass


def read_only():
    made = np.zeros((3, 4), "f4")
    made.flags.writeable = False
    return made


def released():
    view = memoryview(bytearray(48))
    view.release()
    return view


def nested(depth):
    value = [1]
    for _ in range(depth):
        value = [value]
    return value


def endless():
    value = []
    value.append(value)
    return value


def mutable(value):
    return lambda: value


HOSTILE = {
    "None": lambda: None,
    "object": object,
    "type": lambda: int,
    "function": lambda: len,
    "module": lambda: np,
    **{f"int {n.bit_length()} bits {n < 0}": mutable(n) for n in (
        0, -1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40,
        10**5000, -(10**5000))},
    "True": lambda: True,
    "numpy True": lambda: np.True_,
    **{f"float {v}": mutable(v) for v in (0.5, float("nan"), float("inf"), -0.0, 1e308)},
    "complex": lambda: 1j,
    "float subclass": lambda: Float(1),
    "numpy int": lambda: np.int8(1),
    "numpy uint64": lambda: np.uint64(2**64 - 1),
    "numpy nan": lambda: np.float16("nan"),
    "string": lambda: "abc",
    "long string": lambda: "x" * 100_000,
    "surrogate": lambda: "\ud800",
    "zero in string": lambda: "FLOAT32\0",
    "text": lambda: Text("raise"),
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(48),
    "memoryview": lambda: memoryview(bytes(48)),
    "released": released,
    "strided memoryview": lambda: memoryview(bytearray(96))[::2],
    "empty list": list,
    "empty tuple": tuple,
    "nested": lambda: nested(3),
    "rank 65": lambda: nested(65),
    "rank 2000": lambda: nested(2000),
    "endless": endless,
    "ragged": lambda: [[1, 2], [3]],
    "list of None": lambda: [None, None],
    "list of strings": lambda: ["a", "b"],
    "list of arrays": lambda: [X, X],
    "list of one array": lambda: [X.copy()],
    "list of ragged arrays": lambda: [X, X[:2], X[:, 1:]],
    "huge in list": lambda: [2**63, -(2**70)],
    "huge digits in list": lambda: [10**5000],
    "floats in list": lambda: [0.5, float("nan")],
    "dict": lambda: {"a": 1},
    "self-made json": lambda: {"type": "SPLIT", "InputTensor": {"Sizes": [10**5000]}},
    "set": lambda: {1, 2},
    "range": lambda: range(10**12),
    "generator": lambda: (n for n in range(3)),
    "iterator": lambda: iter([X]),
    "exhausted": lambda: iter(()),
    "ellipsis": lambda: ...,
    "slice": lambda: slice(None),
    "object array": lambda: np.array([None, 1]),
    "array of arrays": lambda: np.array([X, None], dtype=object),
    "string array": lambda: np.array(["a", "b"]),
    "bytes array": lambda: np.array([b"a"]),
    "record array": lambda: np.zeros((3, 4), [("a", "i4"), ("b", "f4")]),
    "recarray": lambda: np.zeros(3, [("a", "i4")]).view(np.recarray),
    "void array": lambda: np.zeros((3, 4), "V4"),
    "datetime": lambda: np.zeros((3, 4), "M8[s]"),
    "timedelta": lambda: np.zeros((3, 4), "m8[ns]"),
    "longdouble": lambda: np.zeros((3, 4), np.longdouble),
    "clongdouble": lambda: np.zeros((3, 4), np.clongdouble),
    "foreign": lambda: np.zeros((3, 4), ">f4"),
    "foreign indices": lambda: np.zeros((3, 2), ">i8"),
    "bools": lambda: np.zeros((3, 4), bool),
    "masked": lambda: np.ma.masked_array(X, X > 3),
    "matrix": lambda: np.asmatrix(X),
    "chararray": lambda: np.array(["a"]).view(np.char.chararray),
    "memmap-like": lambda: X.view(type("Sub", (np.ndarray,), {})),
    "rank 0": lambda: np.array(1.0, "f4"),
    "rank 64": lambda: np.zeros((1,) * 64, "f4"),
    "no rows": lambda: np.zeros((0, 4), "f4"),
    "no columns": lambda: np.zeros((3, 0), "f4"),
    "large and empty": lambda: np.zeros((2**40, 2**20, 0), "u1"),
    "vast": lambda: np.broadcast_to(np.float32(1), (2**60,)),
    "vast indices": lambda: np.broadcast_to(np.int64(0), (2**59,)),
    "vast bytes": lambda: np.broadcast_to(np.int8(0), (2**50, 2**10)),
    "read-only": read_only,
    "broadcast": lambda: np.broadcast_to(np.float32(1), (3, 4)),
    "overlapping": lambda: np.lib.stride_tricks.as_strided(np.zeros(20, "f4"), (3, 4), (4, 4)),
    "misaligned": lambda: np.zeros(49, "u1")[1:].view("f4").reshape(3, 4),
    "interface of wrong type": lambda: Interface(typestr="<Q9"),
    "interface of no shape": lambda: Interface(shape=None),
    "interface of huge shape": lambda: Interface(shape=(2**62, 2**62)),
    "interface of negative shape": lambda: Interface(shape=(-3, 4)),
    "interface of text": lambda: Interface(data="abc"),
    "interface of short data": lambda: Interface(data=bytes(3)),
    "interface of bad strides": lambda: Interface(strides=(1,)),
    "interface of wild strides": lambda: Interface(data=bytes(48), strides=(2**60, 4)),
    "interface version": lambda: Interface(version="x"),
    "lying longer": lambda: Lying(1000, 1),
    "lying shorter": lambda: Lying(1, 3),
    "lying empty": lambda: Lying(1, 0),
    "lying negative": lambda: Lying(-1, 1),
    "lying huge": lambda: Lying(2**62, 1),
    "index object": lambda: Index(1),
    "index huge": lambda: Index(2**63),
    "index float": lambda: Index(0.5),
    "bad repr": BadRepr,
    **{name: (lambda name=name: raising(name)) for name in (
        "__index__", "__len__", "__iter__", "__getitem__", "__array__", "__dlpack__",
        "__dlpack_device__", "__eq__", "__hash__", "__bool__", "__int__", "__float__", "__str__",
        "__buffer__", "__getattr__")},
    "half a producer": type("P", (), {
        "__dlpack__": lambda self, **k: object(), "__dlpack_device__": lambda self: (1, 0)}),
    "odd device": type("P", (), {
        "__dlpack__": lambda self, **k: None, "__dlpack_device__": lambda self: "ab"}),
    "device of no number": type("P", (), {
        "__dlpack__": lambda self, **k: None, "__dlpack_device__": lambda self: None}),
    "array of the wrong kind": type("P", (), {
        "__array__": lambda self, dtype=None, copy=None: "no array"}),
    "descriptor": lambda: dml.Split(**SPLIT),
    "descriptor class": lambda: dml.Split,
    "tensor": lambda: TENSOR,
    "bad tensor": lambda: dml.TensorDesc("UINT4", (0, 2**32 - 1), (2**32 - 1, 0)),
    "tensor of 60 sizes": lambda: dml.TensorDesc("FLOAT32", (2**32 - 1,) * 60),
    "negative tensor": lambda: dml.TensorDesc("FLOAT32", (-3, -4), (-4, -1)),
    "list of tensors": lambda: [TENSOR] * 3,
    "list of bad tensors": lambda: [dml.TensorDesc("INT4", ()), dml.TensorDesc("FLOAT64", (9,))],
    "device": lambda: DEVICE,
    "enum": lambda: dml.DataType.INT4,
}  # fmt: skip

PAIRS = [(name, argument) for name, (_, make) in CALLS.items() for argument in make()]


@pytest.fixture(scope="module", autouse=True)
def as_before():
    threads, limit = dml.get_num_threads(), dml.memory_pool().limit
    yield
    dml.set_num_threads(threads)
    dml.set_memory_pool_limit(limit)


def outcome(call, arguments):
    try:
        return call(**arguments)
    except (dml.AnyDMLError, OwnError) as error:
        str(error)
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "argument"), PAIRS, ids=lambda value: value)
def test_one_hostile_argument(name, argument):
    call, make = CALLS[name]
    for title, value in HOSTILE.items():
        try:
            outcome(call, {**make(), argument: value()})
        except Exception as error:
            error.add_note(f"{name}({argument} = {title})")
            raise


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name, (_, make) in CALLS.items() if "out" in make()])
def test_two_hostile_arguments(name):
    """Every pair of arguments, with a sample of all pairs of values."""
    call, make = CALLS[name]
    values = list(HOSTILE.values())
    generator = np.random.default_rng(3)
    for first, second in itertools.combinations(make(), 2):
        for _ in range(60):
            a, b = (values[n]() for n in generator.integers(0, len(values), 2))
            outcome(call, {**make(), first: a, second: b})


def test_bad_text_of_bindings():
    for call in (COMPILED.dispatch, COMPILED, COMPILED.initialize):
        for key in ("", "\ud800", "InputTensor\0", "x" * 10_000):
            with pytest.raises(dml.BindingError):
                call(**{key: X})


# ---- operands that change one another meanwhile


class Changing:
    """An integer whose conversion changes an array or a list first."""

    def __init__(self, value, change):
        self.value, self.change = value, change

    def __index__(self):
        self.change()
        return self.value


def reshape(array, shape):
    def change():
        array.shape = shape

    return change


def shrink(array):
    return lambda: array.resize((1,), refcheck=False)


CHANGES = {
    "another shape": lambda x: reshape(x, (12,)),
    "another rank": lambda x: reshape(x, (1, 1, 12)),
    "transposed": lambda x: reshape(x, (4, 3)),
    "another type": lambda x: lambda: setattr(x, "dtype", "u1"),
    "strides of 0": lambda x: lambda: setattr(x, "strides", (0, 0)),
    "resized": shrink,
    "read-only": lambda x: lambda: x.setflags(write=False),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_an_index_that_changes_an_array(change):
    def fresh():
        x = np.arange(12, dtype="f4").reshape(3, 4).copy()
        out = np.zeros((3, 4), "f4")
        return x, out

    for which in (0, 1):

        def changing(value, arrays, which=which):
            return Changing(value, CHANGES[change](arrays[which]))

        for call in (
            lambda a: dml.top_k(a[0], changing(2, a), axis=1),
            lambda a: dml.top_k(a[0], 4, axis=changing(1, a), out=(a[1], np.zeros((3, 4), "u4"))),
            lambda a: dml.split(a[0], changing(2, a), axis=1),
            lambda a: dml.split(a[0], [1, changing(3, a)], axis=1),
            lambda a: dml.split(a[0], [changing(4, a)], axis=1, out=[a[1]]),
            lambda a: dml.join([a[0], a[1]], axis=changing(0, a)),
            lambda a: dml.gather(a[0], I, axis=changing(1, a)),
            lambda a: dml.gather(a[0], np.arange(4), axis=changing(1, a), out=a[1]),
            lambda a: dml.gather_elements(a[0], I, axis=changing(1, a)),
            lambda a: dml.gather_nd(a[0], TUPLES, batch_dims=changing(0, a)),
            lambda a: dml.scatter_elements(a[0], I, U, axis=changing(1, a)),
            lambda a: dml.scatter_elements(a[0], I, U, axis=changing(1, a), out=a[1]),
            lambda a: dml.scatter_elements(a[0], I, [[changing(1, a), 2]] * 3, axis=1, out=a[1]),
            lambda a: COMPILED.dispatch(InputTensor=a[0], OutputTensors=Members(a, change)),
        ):
            arrays = fresh()
            try:
                call(arrays)
            except (dml.AnyDMLError, ValueError) as error:
                # NumPy's own: an array that it may not change in this way.
                assert isinstance(error, dml.AnyDMLError) or "resize" in str(error), error  # noqa: PT017


class Members:
    """A list of one output that changes the arrays when it is read."""

    def __init__(self, arrays, change):
        self.arrays, self.change = arrays, change

    def __len__(self):
        return 1

    def __iter__(self):
        CHANGES[self.change](self.arrays[0])()
        return iter([self.arrays[1]])


@pytest.mark.parametrize("count", [2, 5, 50])
def test_a_list_that_empties_itself(count):
    parts = []

    class Emptying:
        def __index__(self):
            parts.clear()
            gc.collect()
            return 0

        def __array__(self, dtype=None, copy=None):
            parts.clear()
            gc.collect()
            return np.ones((3, 4), "f4")

    for call in (
        lambda: dml.join(parts, axis=Emptying()),
        lambda: dml.join(parts),
        lambda: dml.split(X, parts),
        lambda: dml.split(X, [1, 2], out=parts),
        lambda: dml.split(X, 3, axis=Emptying(), out=parts),
        lambda: dml.gather(X, parts),
        lambda: dml.top_k(X, 1, out=parts),
        lambda: JOINED(parts),
        lambda: JOINED.dispatch(InputTensors=parts, OutputTensor=X.copy()),
    ):
        for member in (X.copy(), 1):
            parts[:] = [np.array(member) for _ in range(count)]
            parts.insert(1, Emptying())
            try:
                call()
            except (dml.AnyDMLError, IndexError, ValueError, RuntimeError) as error:
                # NumPy's own, of a list that changes while it is converted.
                assert not isinstance(error, SystemError)  # noqa: PT017
            parts.clear()


THREADS = """
import sys, threading, time
import numpy as np
import anydml as dml

sys.setswitchinterval(1e-6)
stop = time.monotonic() + float(sys.argv[1])
parts = [np.ones((64, 256), "f4") for _ in range(40)]
spare = list(parts)
outs = [np.empty((64, 256), "f4") for _ in range(40)]
whole = np.ones((64 * 40, 256), "f4")
T = dml.TensorDesc
few = [T("FLOAT32", (64, 256))] * 4
joined = dml.Device().create_operator(
    dml.Join(input_tensors=few, output_tensor=T("FLOAT32", (256, 256)), axis=0)).compile()
four = parts[:4]

def change():
    n = 0
    while time.monotonic() < stop:
        parts.clear()
        four.clear()
        parts.extend(np.ones((64, 256), "f4") for _ in range(40))
        four.extend(np.ones((64, 256), "f4") for _ in range(4))
        outs[n % 40] = np.empty((64, 256), "f4")
        n += 1

threads = [threading.Thread(target=change) for _ in range(2)]
for thread in threads:
    thread.start()
done = 0
while time.monotonic() < stop:
    for call in (
        lambda: dml.join(parts),
        lambda: dml.join(parts, out=np.empty((64 * len(parts), 256), "f4")),
        lambda: dml.split(whole, 40, out=outs),
        lambda: joined(four),
        lambda: joined.dispatch(InputTensors=four, OutputTensor=np.empty((256, 256), "f4")),
    ):
        try:
            call()
            done += 1
        except dml.AnyDMLError:
            pass
for thread in threads:
    thread.join()
print(done)
"""


def test_lists_that_another_thread_changes():
    ran = subprocess.run(
        [sys.executable, "-c", THREADS, "2"], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) > 0


FINALIZERS = """
import gc, json
import numpy as np
import anydml as dml

parts, seen = [], []


class Bomb:
    # Garbage in a cycle: its finalizer runs when the collector does, in the middle of a call.
    def __init__(self):
        self.me = self

    def __del__(self):
        seen.append(len(parts))
        parts.clear()


gc.set_threshold(1)
for n in range(3000):
    parts[:] = [np.full((n % 7 + 1, 3), 1.0) for _ in range(n % 9 + 1)]
    Bomb()
    for call in (lambda: dml.join(parts), lambda: dml.split(np.ones((6, 2)), 3)):
        try:
            result = call()
        except dml.AnyDMLError:
            continue
        total = sum(map(float, (r.sum() for r in result)))
        assert total == total and total <= 1e6, total
print(json.dumps(len(seen)))
"""


def test_finalizers_that_empty_the_list():
    ran = subprocess.run(
        [sys.executable, "-c", FINALIZERS], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout) > 100


@pytest.mark.filterwarnings("ignore")
def test_many_threads_with_hostile_arguments():
    errors = []

    def work(seed):
        generator = np.random.default_rng(seed)
        names = [name for name, (_, make) in CALLS.items() if "out" in make()]
        values = list(HOSTILE.values())
        try:
            for _ in range(150):
                call, make = CALLS[names[int(generator.integers(len(names)))]]
                arguments = make()
                argument = list(arguments)[int(generator.integers(len(arguments)))]
                outcome(call, {**arguments, argument: values[generator.integers(len(values))]()})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
