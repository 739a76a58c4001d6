"""A library of tensors with an exchange table: what `test_exchange_tables.py` runs.

Its tensors have NumPy's memory. What quick calls ask of it is counted.
"""

import ctypes
import sys
from collections import Counter

import numpy as np

from anydml._native import native

CPU = 1
asked = Counter()
kept = []


class Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Layout(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32), ("type", Type), ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Layout),
    ]  # fmt: skip


class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in
          ("allocate", "managed_of", "object_of", "tensor_of", "current_stream")),
    ]  # fmt: skip


def integers(numbers):
    made = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
    kept.append(made)
    return ctypes.cast(made, ctypes.POINTER(ctypes.c_int64))


def given(value):
    if value is None:
        raise LookupError("there is none")
    return value


class Tensor:
    """An array; `changes` are fields that the table tells of it instead.

    What is asked of it is an error where None stands for it.
    """

    def __init__(self, array, **changes):
        self.array, self.changes = array, changes
        self.bytes = changes.pop("bytes", array.nbytes)
        self.keys = changes.pop("keys", 1)
        self.first = changes.pop("first", 0)
        self.storage = changes.pop("storage", self)
        self.requires_grad = changes.pop("requires_grad", False)

    def raw_repr(self):
        return self.keys

    def untyped_storage(self):
        return given(self.storage)

    def nbytes(self):
        return self.bytes

    def storage_offset(self):
        return self.first


def tell(array, layout, changes):
    layout.data = array.__array_interface__["data"][0]
    layout.device_type, layout.device, layout.rank = CPU, 0, array.ndim
    layout.type = Type({"i": 0, "u": 1, "f": 2}[array.dtype.kind], 8 * array.itemsize, 1)
    layout.sizes = integers(array.shape)
    layout.strides = integers([stride // array.itemsize for stride in array.strides])
    for name, value in changes.items():
        if name == "type":
            layout.type = Type(*value)
        else:
            setattr(layout, name, integers(value) if isinstance(value, tuple) else value)


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Layout))
def tensor_of(tensor, layout):
    asked["tensor_of"] += 1
    if tensor.changes.get("fails"):
        return 1
    tell(tensor.array, layout.contents, tensor.changes)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Layout), ctypes.POINTER(ctypes.POINTER(Managed)),
                   ctypes.c_void_p, ctypes.c_void_p)  # fmt: skip
def allocate(like, made, context, set_error):
    asked["allocate"] += 1
    like = like.contents
    asked["device"] += like.device
    asked["asks of an error"] += (context is None) and bool(set_error)
    shape = [like.sizes[i] for i in range(like.rank)]
    kind = f"{'iuf'[like.type.code]}{like.type.bits // 8}"
    array = np.zeros(shape, kind)
    managed = Managed(1, 3)
    tell(array, managed.tensor, {})
    kept.append((managed, array))
    made[0] = ctypes.pointer(managed)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))
def object_of(managed, made):
    asked["object_of"] += 1
    data = managed.contents.tensor.data
    array = next(a for m, a in kept[::-1] if isinstance(m, Managed) and m.tensor.data == data)
    tensor = Tensor(array)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
    made[0] = id(tensor)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def current_stream(device_type, device, stream):
    return 1


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
forward, modes = {"_current_level": -1}, [0]


def capsule(name=b"dlpack_exchange_api", **changes):
    functions = {"allocate": allocate, "managed_of": tensor_of, "object_of": object_of,
                 "tensor_of": tensor_of, "current_stream": current_stream}  # fmt: skip
    table = Table(1, 3, None, *(ctypes.cast(f, ctypes.c_void_p) for f in functions.values()))
    for field, value in changes.items():
        setattr(table, field, value)
    kept.append((table, name))
    return new_capsule(ctypes.addressof(table), name, None)


def take(kind=Tensor, **changes):
    native.take_tensors(kind, capsule(**changes), lambda tensor: given(tensor.keys) and tensor,
                        lambda: modes[0], forward, 1, 2)  # fmt: skip


def tiled(tensor):
    """What a quick call gives of a tensor, and how often the table was asked meanwhile."""
    before = asked["tensor_of"]
    result = native.quick("tile")(None, tensor, (1,) * len(tensor.array.shape))
    given = None if result is None else result.array.tolist()
    return given, asked["tensor_of"] - before


if __name__ == "__main__":
    exec(sys.stdin.read())
