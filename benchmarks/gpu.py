"""Measuring on a GPU: inputs and results stay there, times are the device's own.

A turn writes a buffer larger than the second-level cache, keeps the GPU busy while the host puts
the work into the stream, and takes the time between two events. The gate sees copies on the host.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

import numpy as np

from anydml.devices.backends.cuda import CudaBackend
from benchmarks import ours
from benchmarks.gate import Results
from benchmarks.jobs import Array, Job
from benchmarks.measure import FEWEST, Budget, Contestant
from benchmarks.peers._peer import Peer, Ways
from benchmarks.peers.torch import PyTorch

_FLUSHED: Final = 256 << 20
_CYCLES: Final = 2e9  # in a second, or a little less
_SPARE: Final = 2e-4
_LONGEST: Final = 0.02


class CudaTorch(PyTorch):
    """PyTorch on the GPU."""

    def take(self, array: Array) -> Any:
        """A tensor there."""
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def give(self, value: Any) -> Array:
        """A copy on the host."""
        array: Array = value.cpu().numpy()
        return array

    def gather(self, x: Any, indices: Any, axis: int, out: Any = None) -> Ways:
        """Also by indexing, which is the faster way for some shapes."""
        yield from super().gather(x, indices, axis, out)
        at = (slice(None),) * axis + (indices,)
        if out is None:
            yield "x[i]", lambda: x[at]


class CuPy(Peer):
    """What it has of these operations."""

    name = "CuPy"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.cupy: Any = import_module("cupy")
        self.version = self.cupy.__version__

    def take(self, array: Array) -> Any:
        """An array there."""
        return self.cupy.asarray(array)

    def give(self, value: Any) -> Array:
        """A copy on the host."""
        return np.asarray(value.get())

    def nonzero_coordinates(self, x: Any) -> Ways:
        """The result needs no conversion."""
        yield "argwhere", lambda: self.cupy.argwhere(x)

    def split(self, x: Any, sections: int, axis: int) -> Ways:
        """Copies of its views."""
        cupy = self.cupy
        yield "split, copy", lambda: [v.copy() for v in cupy.split(x, sections, axis)]

    def join(self, *parts: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "concatenate", lambda: self.cupy.concatenate(parts, axis)

    def gather(self, x: Any, indices: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "take", lambda: self.cupy.take(x, indices, axis)

    def gather_elements(self, x: Any, indices: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "take_along_axis", lambda: self.cupy.take_along_axis(x, indices, axis)

    def gather_nd(self, x: Any, indices: Any, batch_dims: int) -> Ways:
        """Fancy indexing."""
        if batch_dims == 0:
            at = tuple(indices[..., i] for i in range(indices.shape[-1]))
            yield "x[i, ..]", lambda: x[at]


class Gpu:
    """The first GPU as a place to measure on.

    Raises
    ------
    ModuleNotFoundError
        PyTorch is not installed: its arrays and events are used.
    """

    def __init__(self) -> None:
        self.torch: Any = import_module("torch")
        self._flushed = self.torch.empty(_FLUSHED, dtype=self.torch.uint8, device="cuda")

    def peers(self, threads: int) -> list[Peer]:
        """Those that are here."""
        found: list[Peer] = [CudaTorch(threads)]
        with suppress(ImportError):
            found.append(CuPy(threads))
        return found

    def function(self, job: Job) -> Contestant:
        """The array function on PyTorch's arrays."""
        taker = CudaTorch(1)
        on_gpu = Job(job.operation, tuple(map(taker.take, job.arrays)), job.options)
        contestant = ours.function(on_gpu)

        def results(result: Any) -> Results:
            return tuple(taker.give(value) for value in ours.results(result))

        contestant.results = results
        return contestant

    def copies(self, traffic: int) -> list[Contestant]:
        """A copy on the device of this many bytes, read and written."""
        source = self.torch.ones(traffic // 2, dtype=self.torch.uint8, device="cuda")
        target = self.torch.empty_like(source)
        return [Contestant("copy", "device to device", lambda: target.copy_(source))]

    def take_turns(self, contestants: Sequence[Contestant], budget: Budget) -> None:
        """Device times, round by round, as `measure.take_turns`."""
        candidates = [c for c in contestants if not c.problem]
        used = dict.fromkeys(map(id, candidates), 0.0)
        hosts = {id(c): self._host_time(c) for c in candidates}
        while candidates:
            for contestant in candidates:
                contestant.samples.append(self._turn(contestant, hosts[id(contestant)]))
                used[id(contestant)] += contestant.samples[-1] + 1e-3
            candidates = [
                c
                for c in candidates
                if len(c.samples) < FEWEST
                or (len(c.samples) < budget.runs and used[id(c)] < budget.seconds)
            ]

    def _host_time(self, contestant: Contestant) -> float:
        """Seconds until the work is in the stream."""
        contestant.call()  # compiled, and its memory allocated
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        contestant.call()
        end = time.perf_counter()
        self.torch.cuda.synchronize()
        return end - begin

    def _turn(self, contestant: Contestant, host: float) -> float:
        cuda = self.torch.cuda
        begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        self._flushed.fill_(1)
        # The GPU waits longer than the host takes, so that what is timed is the device's work.
        cuda._sleep(int(min(2 * host + _SPARE, _LONGEST) * _CYCLES))
        begin.record()
        result = contestant.call()
        end.record()
        end.synchronize()
        del result
        return float(begin.elapsed_time(end)) / 1000

    def describe(self) -> str:
        """The GPU and its driver."""
        return CudaBackend(0).describe()[0]

    def close(self) -> None:
        """Nothing: the memory is PyTorch's."""
