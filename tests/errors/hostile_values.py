"""Everything public with good arguments, and values to put in their place."""

import numpy as np

import anydml as dml
from anydml.ops._registry import OPERATORS
from support.made import shared

# NumPy 2 takes 64 axes, older ones 32.
MOST_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
X = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.array([[0, 1], [1, 0], [2, -1]])  # noqa: E741  # beside X and U
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
    "nonzero_coordinates": (dml.nonzero_coordinates, lambda: {
        "x": X.copy(), "index_dtype": None, "out": None}),
    "scatter_elements": (dml.scatter_elements, lambda: {
        "x": X.copy(), "indices": I.copy(), "updates": U.copy(), "axis": 1, "reduction": None,
        "include_self": True, "broadcast": False, "out": None}),
    "scatter_nd": (dml.scatter_nd, lambda: {
        "x": X.copy(), "indices": TUPLES.copy(), "updates": np.zeros(2, "f4"), "reduction": None,
        "include_self": False, "out": None}),
    "split": (dml.split, lambda: {"x": X.copy(), "sections_or_sizes": [1, 2], "axis": 0,
                                  "near_equal": False, "out": None}),
    "split at points": (dml.split, lambda: {"x": X.copy(), "points": [1, 2], "axis": 0,
                                            "out": None}),
    "join": (dml.join, lambda: {"arrays": [X.copy(), X.copy()], "axis": 0,
                                "promote": True, "out": None}),
    "gather": (dml.gather, lambda: {"x": X.copy(), "indices": I.copy(), "axis": 1,
                                    "mode": "raise", "out": None}),
    "gather_elements": (dml.gather_elements, lambda: {
        "x": X.copy(), "indices": I.copy(), "axis": 1, "mode": "wrap",
        "broadcast": True, "out": None}),
    "gather_nd": (dml.gather_nd, lambda: {"x": X.copy(), "indices": TUPLES.copy(),
                                          "batch_dims": 0, "mode": "raise", "out": None}),
    "slice_window": (dml.slice_window, lambda: {"x": X.copy(), "starts": (1, 0), "sizes": (2, 3),
                                                "strides": (1, -2), "out": None}),
    "cast": (dml.cast, lambda: {"x": X.copy(), "dtype": "int8", "out": None}),
    "pad": (dml.pad, lambda: {"x": X.copy(), "pad_width": ((1, 2), (0, 3)), "mode": "edge",
                              "constant": 0, "out": None}),
    "reverse_subsequences": (dml.reverse_subsequences, lambda: {
        "x": X.copy(), "lengths": np.array([[2], [0], [9]]), "axis": 1, "out": None}),
    "one_hot": (dml.one_hot, lambda: {"indices": I.copy(), "depth": 3, "values": (0, 1),
                                      "axis": 1, "out": None}),
    "tile": (dml.tile, lambda: {"x": X.copy(), "repeats": (2, 1), "out": None}),
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

for kind in dict.fromkeys(OPERATORS.values()):

    def fields(kind=kind):
        desc = shared(kind, 1)
        return {info.attribute: getattr(desc, info.attribute) for info in kind.fields()}

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
    array = np.zeros((3, 4), "f4")
    array.flags.writeable = False
    return array


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
    "most axes": lambda: np.zeros((1,) * MOST_AXES, "f4"),
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
