"""Programs on NVIDIA GPUs: the CUDA kernels, on PyTorch's and CuPy's arrays or on uploaded ones.

A call puts its work into the stream that the arrays' library works on, and returns without waiting
for it, but where a number is needed on the host. NumPy arrays are uploaded, and downloaded when the
work has run.

Kernels are compiled for the GPU at hand when they are first used, by NVRTC, and kept on disk:
``ANYDML_CACHE_DIR``, or ``anydml`` in the user's cache folder. ``anydml warm`` compiles them ahead.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import PathFinder
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from anydml._native import native
from anydml.core.errors import (
    AnyDMLError,
    ArgumentError,
    DeviceError,
    IndexOutOfRangeError,
    MissingKernelError,
)
from anydml.core.extras import name_missing_package
from anydml.core.program import ArraySpec, KernelCall, Program, Slot
from anydml.devices.backends._base import Array, Executable, decline, out_of_range
from anydml.devices.backends._memory import working_nbytes
from anydml.devices.backends._sequence import (
    CallSequence,
    Step,
    direct_call,
    host_constants,
    natural_inputs,
)
from anydml.devices.threads import get_num_threads
from anydml.libraries._device import DeviceArray, packed_strides
from anydml.ops._registry import is_computed

CACHE: Final = "ANYDML_CACHE_DIR"
QUIET: Final = "ANYDML_QUIET"

DRIVER: Final = "libcuda.so.1"


class Gpu(NamedTuple):
    """A GPU of this machine: its name, bytes of memory, compute capability and multiprocessors."""

    name: str
    memory: int
    major: int
    minor: int
    multiprocessors: int


@cache
def _cuda() -> Any:
    """The native module's part for CUDA, configured for this process."""
    from importlib.metadata import version

    native.cuda.configure(_compilers(), _cache_folder(), version("anydml"), DRIVER)
    atexit.register(_tell_at_exit)
    return native.cuda


def configure() -> None:
    """Tell the native module where things are, for calls that do not come from here."""
    _cuda()


def raise_bad_indices() -> None:
    """Raise what calls have found on the GPUs, as far as they have run; without waiting.

    Raises
    ------
    IndexOutOfRangeError
        A call had an index that points outside its axis.
    """
    for device in native.cuda.in_use():
        native.cuda.raise_bad_indices(device)


def _compilers() -> list[str]:
    """Where NVRTC may be: in its own wheel, or installed with CUDA."""
    found = []
    for folder in _wheel_folders():
        with suppress(OSError):
            wheels = (n for n in os.listdir(folder) if n.startswith("libnvrtc.so."))
            found += [os.path.join(folder, name) for name in sorted(wheels, reverse=True)]
    names = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
    return [*found, *names, "/usr/local/cuda/lib64/libnvrtc.so"]


def _wheel_folders() -> Iterator[str]:
    spec = PathFinder.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield from (os.path.join(root, name, "lib") for name in ("cu13", "cuda_nvrtc"))


def _cache_folder() -> str:
    """Where compiled kernels are kept; empty for nowhere."""
    configured = os.environ.get(CACHE)
    if configured:
        return os.path.abspath(configured)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "anydml") if os.path.isabs(base) else ""


def announce() -> None:
    """Say once that a first call takes its time; called when the first kernel is compiled."""
    if not os.environ.get(QUIET) and sys.stderr is not None:
        print(
            "anydml: compiling kernels for this GPU, which takes some seconds the first time "
            f"(`anydml warm` does it ahead; {QUIET}=1 leaves this line out)",
            file=sys.stderr,
        )


def gpus() -> tuple[list[Gpu], str]:
    """The GPUs of this machine, and the CUDA version of the driver.

    Raises
    ------
    DeviceError
        There is no driver, or it does not work.
    """
    found, release = _cuda().devices()
    return [Gpu(*facts) for facts in found], f"{release // 1000}.{release % 1000 // 10}"


def variants() -> int:
    """How many kernels there are to compile."""
    return int(_cuda().variants())


def warm(device: int) -> tuple[int, int]:
    """Compile every kernel that is not kept, on all cores; how many of how many."""
    from concurrent.futures import ThreadPoolExecutor

    native_part, count = _cuda(), variants()
    with ThreadPoolExecutor(get_num_threads()) as pool:
        compiled = sum(pool.map(lambda number: native_part.warm(device, number), range(count)))
    return compiled, count


def synchronize() -> None:
    """Wait until all work on the GPUs that were used has run.

    Raises
    ------
    IndexOutOfRangeError
        A call had an index that points outside its axis.
    DeviceError
        A GPU failed.
    """
    found: AnyDMLError | None = None
    for device in native.cuda.in_use():
        try:
            _cuda().synchronize(device, None)
        except AnyDMLError as error:
            found = found or error
    if found is not None:
        raise found


def _tell_at_exit() -> None:
    """Print errors that no call has raised: a program may end right after its last call."""
    for device in native.cuda.in_use():
        try:
            if _cuda().indices_open(device):
                _cuda().synchronize(device, None)
        except IndexOutOfRangeError as error:
            if sys.stderr is not None:
                print(f"anydml: {error}", file=sys.stderr)
        except DeviceError:  # reported when it happened
            pass


def bad_index(where: str, shape: tuple[int, ...], signed: bool, flat: int, value: int, axis: int,
              size: int, device: int, earlier: bool, captured: bool,
              more: int) -> IndexOutOfRangeError:  # fmt: skip
    """The error for an index that a kernel found; the native module raises it.

    `earlier`: a call before the one that raises it, maybe one `captured` in a graph; `more`: how
    many other calls had one.
    """
    call = "a call captured in a graph" if captured else "an earlier call"
    note = f"; found on cuda:{device} in {call}" if earlier else ""
    if more:
        note += f", and {more} more {'call' if more == 1 else 'calls'} had one"
    if not where:  # the call is too old to be known
        return IndexOutOfRangeError(
            f"indices: expected values within their axis, got {value} at position {flat}{note}",
            (flat,), value, 0,
        )  # fmt: skip
    return out_of_range(where, shape, signed, flat, value, axis, size, note)


def _operand(array: DeviceArray) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.strides, 1, array.address, 0, -1


class CudaKernels:
    """The kernels on one GPU, for arrays of a library that lie there."""

    def __init__(
        self, device: int, stream: int, indices: tuple[str, int, int] | None = None
    ) -> None:
        # `indices`: how messages call the operand with indices; leading sizes of 1 of the data and
        # of the indices that messages count and kernels do not see.
        configure()
        self._place = device, stream
        self._indices = indices

    def execute(self, kernel: str, inputs: Sequence[Any], outputs: Sequence[Any],
                attributes: Mapping[str, Any], private: bool, threads: int) -> int:  # fmt: skip
        """Put a kernel's work into the stream; -1, as bad indices are found later."""
        operands = [list(map(_operand, side)) for side in (inputs, outputs)]
        native.run(kernel, *operands, dict(attributes), private, 1, self._place, self._indices)
        return -1

    def run_measured(self, kernel: str, x: Any, attributes: Mapping[str, Any],
                     make: Callable[[int], Any], threads: int) -> Any:  # fmt: skip
        """Run a kernel, and wait for the size of its output, which the host needs."""
        buffers = []

        def operand(size: int) -> tuple[Any, ...]:
            buffers.append(make(size))
            return _operand(buffers[0])

        native.run_measured(kernel, _operand(x), dict(attributes), operand, 1, self._place)
        return buffers[0]

    def wait(self) -> None:
        """Wait for the stream, and raise what the calls in it have found."""
        _cuda().synchronize(*self._place)


def kernels_for(arrays: Sequence[Any]) -> CudaKernels:
    """The kernels for arrays of which one is on a GPU at least.

    Raises
    ------
    ArgumentError
        Not all of them are on one GPU.
    """
    places = sorted({a.place if isinstance(a, DeviceArray) else "the CPU" for a in arrays})
    if len(places) > 1:
        raise ArgumentError(f"arrays: expected all on one device, got {' and '.join(places)}")
    first: DeviceArray = arrays[0]
    return CudaKernels(first.device, first.stream)


class CudaBackend:
    """One GPU of this machine."""

    def __init__(self, device: int) -> None:
        self.device: int | None = device

    def __reduce__(self) -> tuple[type[CudaBackend], tuple[int | None]]:
        return type(self), (self.device,)

    def allocate(self, slot: Slot, cleared: bool, call: str, like: Any = None) -> Any:
        """A new array of the kind of `like`: on the GPU by its library, or a NumPy array."""
        dtype = np.dtype(slot.spec.dtype)
        if not isinstance(like, DeviceArray):
            return np.zeros(slot.declared, dtype)
        result = like.make(slot.declared, dtype)
        if cleared:
            _cuda().clear(result.device, result.stream, result.address, result.nbytes)
        return result

    def copy(self, array: Any, call: str, purpose: str) -> DeviceArray:
        """A copy of an array, on the GPU, in memory of this library."""
        assert self.device is not None
        if isinstance(array, DeviceArray):
            copied = _buffer(array.shape, array.dtype, self.device, array.stream)
            kernels = CudaKernels(self.device, array.stream)
            kernels.execute("identity", [array], [copied], {}, True, 1)
        else:
            copied = uploaded(array, self.device, 0)
        return _fixed(copied)

    def compile(self, program: Program) -> Executable:
        """Look up the kernels; computed calls are compiled when they first run.

        Raises
        ------
        MissingKernelError
            The operator has no kernel for CUDA.
        DeviceError
            A call is computed, and JAX is missing or does not see the GPU.
        """
        assert self.device is not None
        return CudaExecutable(program, self.device)

    working_nbytes = staticmethod(partial(working_nbytes, compiled=True))

    def describe(self) -> tuple[str, str]:
        """The GPU's name and architecture, and its multiprocessors."""
        found, release = gpus()
        gpu = found[self.device or 0]
        memory = f"{gpu.memory / 2**30:.0f} GiB"
        return (
            f"{gpu.name}, {memory}, sm_{gpu.major}{gpu.minor}, CUDA {release}",
            str(gpu.multiprocessors),
        )


class CudaExecutable:
    """A program that runs on a GPU."""

    def __init__(
        self, program: Program, device: int, owned: Mapping[str, DeviceArray] | None = None
    ) -> None:
        self._made_of = program, device
        computed = False
        for call in program.calls:
            computed = computed or is_computed(call.kernel)
            if not is_computed(call.kernel) and call.kernel not in native.kernels():
                raise MissingKernelError(call.source or program.name, "CUDA")
        self._runs: Mapping[str, Step] = {}
        if computed:
            program, self._runs = _compiled_runs(program, device)
        self._padding = {slot.name: slot.padding for slot in (*program.inputs, *program.outputs)}
        self._outputs = [slot.name for slot in program.outputs]
        self._program = program
        self._device = device
        constants = {
            name: _fixed(uploaded(array, device, 0))
            for name, array in host_constants(program).items()
        }
        known = constants | natural_inputs(program, owned or {})
        self._sequence = CallSequence(program, self._step, _CudaMemory(device, 0), known)
        self._checks = any(call.indices is not None for call in program.calls)
        self.dispatch: Callable[[dict[str, Any], int], int | None] = decline
        self.direct = direct_call(program, self._sequence)

    def _step(self, call: KernelCall) -> Step:
        if call.kernel in self._runs:
            return self._runs[call.kernel]
        attributes, indices = dict(call.attributes), None
        if call.indices is not None:
            use = call.indices
            where = f"{call.source or self._program.name}.{use.tensor or use.slot}"
            data = call.inputs[0] or ""
            indices = where, self._padding.get(data, 0), self._padding.get(use.slot, 0)

        device = self._device  # not the executable, whose owned memory a cycle would keep

        def run(inputs: Sequence[Any], outputs: Sequence[Any], private: bool,
                threads: int) -> int:  # fmt: skip
            stream = next(a.stream for a in (*outputs, *inputs) if a is not None)
            kernels = CudaKernels(device, stream, indices)
            return kernels.execute(call.kernel, inputs, outputs, attributes, private, threads)

        return run

    def owning(self, arrays: Mapping[str, Any]) -> CudaExecutable:
        return CudaExecutable(*self._made_of, arrays)

    def run(self, arrays: Mapping[str, Any], private: bool, threads: int) -> None:
        """Run on arrays of the declared sizes by slot, on the GPU or on the host."""
        on_device = [array for array in arrays.values() if isinstance(array, DeviceArray)]
        stream = on_device[0].stream if on_device else 0
        buffers = {
            name: array
            if isinstance(array, DeviceArray)
            else uploaded(array, self._device, stream)  # outputs too: what is undefined stays
            for name, array in arrays.items()
        }
        on_host = [name for name in self._outputs if not isinstance(arrays[name], DeviceArray)]
        private = private or len(on_host) == len(self._outputs)  # buffers of this call
        self._sequence.run(_CudaMemory(self._device, stream), buffers, private, threads)
        if on_host and self._checks:
            CudaKernels(self._device, stream).wait()
        for name in on_host:
            arrays[name][...] = downloaded(buffers[name])


def _compiled_runs(program: Program, device: int) -> tuple[Program, Mapping[str, Step]]:
    """Call `anydml.devices.backends._cuda_runs.compiled_runs`, which needs JAX."""
    user = f"{program.name}: Device('cuda:{device}') calculates with JAX"
    with name_missing_package(user, "jax[cuda13]"):
        from anydml.devices.backends import _cuda_runs
    return _cuda_runs.compiled_runs(program, device, partial(_CudaMemory, device), _cache_folder())


class _CudaMemory:
    """Arrays on one GPU, used on one stream."""

    def __init__(self, device: int, stream: int) -> None:
        self._device = device
        self._stream = stream

    def block(self, nbytes: int) -> DeviceArray:
        return _buffer((nbytes,), np.dtype(np.uint8), self._device, self._stream)

    def view(
        self, base: DeviceArray, offset: int, spec: ArraySpec, strides: tuple[int, ...]
    ) -> DeviceArray:
        result = base.laid_out(spec.shape, np.dtype(spec.dtype), strides)
        result.address += offset
        return result

    def pack(self, array: DeviceArray) -> DeviceArray:
        packed = array if array.flags.c_contiguous else self.packed(array)
        return packed.laid_out((packed.nbytes,), np.dtype(np.uint8), (1,))

    def packed(self, array: DeviceArray) -> DeviceArray:
        result = _buffer(array.shape, array.dtype, self._device, self._stream)
        self.copy(array, result)
        return result

    def clear(self, array: DeviceArray) -> None:
        extent = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
        if array.size:
            nbytes = extent + array.itemsize
            _cuda().clear(self._device, self._stream, array.address, nbytes)

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        kernels = CudaKernels(self._device, self._stream)
        kernels.execute("identity", [source], [target], {}, True, 1)

    def wait(self) -> None:
        _cuda().synchronize(self._device, self._stream)


class OwnedArray(DeviceArray):
    """A packed array in memory of this library; pickles as a copy on the host."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., DeviceArray], tuple[Array, int, int]]:
        return uploaded, (downloaded(self), self.device, 0)


def _buffer(shape: tuple[int, ...], dtype: np.dtype[Any], device: int, stream: int) -> DeviceArray:
    buffer = _cuda().Buffer(device, prod(shape) * dtype.itemsize, stream)
    strides = packed_strides(shape, dtype.itemsize)
    return OwnedArray(buffer.address, dtype, shape, strides, device, stream, buffer,
                      lambda shape, like: _buffer(shape, like, device, stream))  # fmt: skip


def _fixed(array: DeviceArray) -> DeviceArray:
    """An array that is not written any more, and that any stream may read."""
    _cuda().synchronize(array.device, array.stream)
    return array


def uploaded(array: Array, device: int, stream: int) -> DeviceArray:
    """A host array on a GPU."""
    packed = np.ascontiguousarray(array).reshape(array.shape)
    result = _buffer(packed.shape, packed.dtype, device, stream)
    if packed.size:
        _cuda().upload(device, stream, result.address, packed.reshape(-1).view(np.uint8))
    return result


def downloaded(array: DeviceArray) -> Array:
    """A packed array on the host."""
    packed = np.empty(array.shape, array.dtype)
    if packed.size:
        raw = packed.reshape(-1).view(np.uint8)
        _cuda().download(array.device, array.stream, raw, array.address)
    return packed
