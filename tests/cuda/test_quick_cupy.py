"""CuPy's arrays in quick calls, on stand-ins for CuPy and the driver: which are taken, and how."""

# What the real module has of this: attributes, a class that makes arrays of a shape and a type, and
# C functions in capsules, named by their signatures as Cython does.
CUPY = """
held = []

class Pointer:
    def __init__(self, address, device):
        self.ptr, self.device_id = address, device

class ndarray:
    def __init__(self, shape, dtype=float, array=None):
        if os.environ.get("NO_MEMORY") == str(np.prod(shape)):
            raise RuntimeError("out of memory")
        self.array = np.full(shape, 1, dtype) if array is None else array
        held.append(self.array)
        self.data = Pointer(self.array.__array_interface__["data"][0], where[0])
        self.shape, self.strides = self.array.shape, self.array.strides
        self.dtype = self.array.dtype
        self.device = types.SimpleNamespace(id=where[0])

def array(*values, dtype="f4"):
    return ndarray(0, array=np.array(values, dtype))

class Device:
    def __init__(self, number): pass
    def __enter__(self): pass
    def __exit__(self, *_): pass

where = [1]
make = ctypes.pythonapi.PyCapsule_New
make.restype = ctypes.py_object
kept = []

def exported(module, name, function, signature):
    text = ctypes.create_string_buffer(signature)
    kept.extend((function, text))
    capsule = make(ctypes.cast(function, ctypes.c_void_p), ctypes.addressof(text), None)
    sys.modules[module] = types.ModuleType(module)
    sys.modules[module].__pyx_capi__ = {name: capsule}

make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
exported("cupy_backends.cuda.stream", "get_current_stream_ptr",
         ctypes.PYFUNCTYPE(ctypes.c_ssize_t)(lambda: 0x40),
         os.environ.get("SIGNATURE", "intptr_t (void)").encode())
exported("cupy.cuda.device", "get_device_id",
         ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda skip: where[0]),
         os.environ.get("DEVICE_SIGNATURE", "int (int __pyx_skip_dispatch)").encode())
cupy = types.ModuleType("cupy")
cupy.ndarray = ndarray
cupy.empty = ndarray
cupy.cuda = types.SimpleNamespace(
    Device=Device, get_current_stream=lambda: types.SimpleNamespace(ptr=0x40),
    memory=types.SimpleNamespace(OutOfMemoryError=RuntimeError))
sys.modules["cupy"] = cupy

x = array(5, 6, 7)
i = array(2, 0, 1, dtype="i8")

def changed(name, value, dtype="f4"):
    one = array(1, 2, 3, dtype=dtype)
    if name in ("ptr", "device_id"):
        setattr(one.data, name, value)
    else:
        setattr(one, name, value)
    return one

exec(os.environ.get("FIRST", ""))
dml.gather(x, i)  # tells the quick calls of it
gather, join = native.quick("gather"), native.quick("join")
top_k, nonzero = native.quick("top_k"), native.quick("nonzero_coordinates")
"""


def run(with_stubs, code, **variables):
    return with_stubs(CUPY.replace("\n", "\n    ") + code, **variables).splitlines()


def test_plain_arrays_are_taken(with_stubs):
    code = """
    before = len(log())
    result = gather(None, x, i, 0, "raise")
    print(type(result) is ndarray, result.shape, result.dtype)
    values, indices = top_k(dml.TopKResult, x, 0, 2, True, None)
    print(type(values) is ndarray, values.dtype, indices.dtype, indices.shape)
    print(join(None, [x, x, x], 0).shape)
    print(nonzero(None, x, None).shape)
    launched = [line for line in log()[before:] if line.startswith("launch")]
    print(len(launched) > 4, all("stream 0x40" in line for line in launched), "push 1" in log())
    print(stub().stub_lent(), stub().stub_depth())
    """
    assert run(with_stubs, code, STUB_COUNT="2") == [
        "True (3,) float32",
        "True float32 int64 (2,)",
        "(9,)",
        "(2, 1)",
        "True True True",
        "0 0",
    ]


OTHERS = [
    ("np.zeros(3, 'f4')", "NumPy's"),
    ("elsewhere()", "on another device than CuPy works on"),
    ("type('Own', (ndarray,), {})(3, 'f4')", "a subclass"),
    ("array(1, 2, 3, dtype='>f4')", "of foreign byte order"),
    ("changed('dtype', 'f4')", "a type that is none"),
    # Where a type keeps its number and its byte order, this int has a 5 and an equals sign.
    ("changed('dtype', 5 * 2**30 + (0x3D << 16))", "an int that lies in memory as int32 does"),
    ("changed('shape', (1 << 62, 1 << 62))", "sizes that overflow"),
    ("changed('shape', (3, 3))", "as many strides as sizes"),
    ("changed('strides', (2,))", "elements that are not aligned"),
    ("changed('shape', (-3,))", "a negative size"),
    ("changed('shape', (1 << 70,))", "a size of more than 64 bits"),
    ("changed('strides', None)", "no strides"),
    ("changed('strides', [4])", "strides that are no tuple"),
    ("changed('shape', [3])", "sizes that are no tuple"),
    ("changed('shape', 3)", "a size alone"),
    ("changed('shape', ('3',))", "a size that is no number"),
    ("changed('strides', (4.0,))", "a stride that is no integer"),
    ("changed('strides', (1 << 70,), 'u1')", "a stride of more than 64 bits"),
    ("two(2)", "two elements that are not aligned"),
    ("ranked(65)", "more axes than a tensor has"),
    ("changed('data', None)", "no memory"),
    ("changed('ptr', None)", "no address"),
    ("changed('ptr', 1 << 70, 'u1')", "an address of more than 64 bits"),
    ("changed('device_id', '1')", "a device that is no number"),
    ("without('shape')", "nothing of that name"),
    ("without('strides')", "nothing of that name"),
    ("without('data')", "nothing of that name"),
]


def test_others_are_left_alone(with_stubs):
    values = "".join(f"lambda: {value}, " for value, _ in OTHERS)
    code = f"""
    def without(name):
        one = array(1, 2, 3)
        delattr(one, name)
        return one

    def two(stride):
        one = changed("shape", (2,))
        one.strides = (stride,)
        return one

    def ranked(rank):
        one = changed("shape", (1,) * rank)
        one.strides = (4,) * rank
        return one

    def elsewhere():
        one = array(1, 2, 3)
        one.data.device_id = 0
        return one

    for make in ({values}):
        one = make()
        before = len(log())
        results = [gather(None, one, i, 0, "raise"), gather(None, x, one, 0, "raise"),
                   join(None, [x, one], 0), join(None, [one, x], 0)]
        if type(one) is not np.ndarray:
            results.append(top_k(dml.TopKResult, one, 0, 2, True, None))
        print(all(result is None for result in results), len(log()) - before)
    """
    left = zip(run(with_stubs, code), OTHERS, strict=True)
    assert [why for line, why in left if line != "True 0"] == []


def test_arrays_of_any_layout_are_taken(with_stubs):
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
        print(native.quick("tile")(None, one, (1,) * len(shape)) is not None)
    """
    assert run(with_stubs, code) == ["True"] * 5


def test_without_memory_the_general_way_tells_it(with_stubs):
    code = """
    print(join(None, [x] * 37, 0))
    try:
        dml.join([x] * 37)
    except dml.AllocationError as error:
        print(error)
    print(stub().stub_lent(), stub().stub_depth())
    """
    none, message, balance = run(with_stubs, code, NO_MEMORY="111")
    assert none == "None"
    assert "444 bytes" in message
    assert balance == "0 0"


def test_functions_of_other_signatures_are_not_called(with_stubs):
    code = """
    print(gather(None, x, i, 0, "raise"), dml.gather(x, i).shape)
    """
    assert run(with_stubs, code, SIGNATURE="intptr_t (int)") == ["None (3,)"]
    assert run(with_stubs, code, DEVICE_SIGNATURE="int (void)") == ["None (3,)"]


EXPORTS = """
capsules = [sys.modules["cupy_backends.cuda.stream"].__pyx_capi__["get_current_stream_ptr"],
            sys.modules["cupy.cuda.device"].__pyx_capi__["get_device_id"]]
"""


def test_the_library_is_told_once(with_stubs):
    wrong = "native.take_cupy('no type', capsules[0], capsules[1])"
    code = """
    native.take_cupy(int, *capsules)
    print(gather(None, x, i, 0, "raise").shape, gather(None, 5, i, 0, "raise"))
    """
    assert run(with_stubs, code, FIRST=EXPORTS + wrong) == ["(3,) None"]


def test_the_first_call_is_the_general_ways(with_stubs):
    """It finds the compiler, and says that it compiles."""
    first = """
native.take_cupy(ndarray, *capsules)
print(native.quick("gather")(None, x, i, 0, "raise"), len(log()))
"""
    code = """
    print(gather(None, x, i, 0, "raise") is not None)
    """
    assert run(with_stubs, code, FIRST=EXPORTS + first) == ["None 0", "True"]
