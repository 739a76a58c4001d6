"""A program's stand-in for CuPy: its public names, on memory that the stand-in driver takes."""

CUPY = """
cupy = types.ModuleType("cupy")

class Pointer:
    def __init__(self, address):
        self.ptr = address

class ndarray:
    def __init__(self, held, device=1):
        self.held, self.data = held, Pointer(held.__array_interface__["data"][0])
        self.shape, self.strides, self.dtype = held.shape, held.strides, held.dtype
        self.device = types.SimpleNamespace(id=device)

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
cupy.cuda = types.SimpleNamespace(
    Device=Device, get_current_stream=lambda: types.SimpleNamespace(ptr=0x80 >> Device.now[-1]))
sys.modules["cupy"] = cupy
"""
