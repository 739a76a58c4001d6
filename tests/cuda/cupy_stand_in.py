"""A program's stand-in for CuPy: its public names, on memory that the stand-in driver takes."""

CUPY = """
cupy = types.ModuleType("cupy")

class Pointer:
    def __init__(self, address):
        self.ptr = address

class ndarray:
    __module__ = "cupy"

    def __init__(self, held, device=1):
        self.held, self.data = held, Pointer(held.__array_interface__["data"][0])
        self.shape, self.strides, self.dtype = held.shape, held.strides, held.dtype
        self.device = types.SimpleNamespace(id=device)
        self.ndim, self.size = held.ndim, held.size

    def reshape(self, shape): return ndarray(self.held.reshape(shape), self.device.id)

    def __dlpack__(self, **_): raise BufferError("nobody asks for this")

class Device:
    now = [1]
    def __init__(self, number): self.number = number
    def __enter__(self): self.now.append(self.number)
    def __exit__(self, *_): self.now.pop()

def empty(shape, dtype):
    if os.environ.get("NO_MEMORY") == str(int(np.prod(shape))):
        raise MemoryError("out of memory")
    return ndarray(np.full(shape, 1, np.dtype(dtype).str).view(dtype), Device.now[-1])

cupy.ndarray, cupy.empty = ndarray, empty
cupy.broadcast_to = lambda x, shape: ndarray(np.broadcast_to(x.held, shape), x.device.id)
cupy.cuda = types.SimpleNamespace(
    Device=Device, runtime=types.SimpleNamespace(getDevice=lambda: Device.now[-1]),
    get_current_stream=lambda: types.SimpleNamespace(ptr=0x80 >> Device.now[-1]))
sys.modules["cupy"] = cupy
"""
