"""Programs that ONNX Runtime runs on the CPU.

Calls that the ONNX engine can trace run together as sessions of ONNX Runtime; the others run as on
`cpu`, between two sessions. A session is made when its run is first needed, for the number of
threads of that call. It reads and writes the memory that is bound.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import onnx  # noqa: F401  # models are made with it
import onnxruntime

from anydml.core.errors import AllocationError, DeviceError
from anydml.core.program import ArraySpec, KernelCall, Program
from anydml.devices.backends._base import Array, Executable, unrepeated, unrepeated_copy
from anydml.devices.backends._computed import ENGINE as NUMPY
from anydml.devices.backends._computed import WORKING, computed_step
from anydml.devices.backends._memory import working_nbytes
from anydml.devices.backends._partition import Run, partition
from anydml.devices.backends._sequence import HostExecutable, HostMemory, Step
from anydml.devices.backends._traced import compute_calls, compute_run, held_inputs
from anydml.devices.backends.cpu import CpuBackend, allocate_block, kernel_step, refuse_missing
from anydml.devices.threads import get_num_threads
from anydml.engines._onnx import OnnxEngine
from anydml.engines._onnx_arrays import Traced, emit, value_of
from anydml.engines._onnx_fusions import is_fusible
from anydml.engines._onnx_gaps import (
    COPIES_OF_CONSTANTS,
    DISABLED,
    FUSIONS,
    OLDEST,
    SETTINGS,
    TYPES,
)
from anydml.engines._onnx_graph import Graph, Model, NotTraced, Spec
from anydml.engines._onnx_operators import RECURRENT, own_results
from anydml.ops._registry import computation, is_computed

ENGINE: Final = OnnxEngine()

LEAST_ELEMENTS: Final = 1 << 14
"""Elements of all arrays of a run that gets a session."""

LEAST_CALLS: Final = 3
"""Calls of a run that gets a session, however small its arrays are."""

MOST_FILLED: Final = 1 << 16
"""Elements of a result that depends on no input, and is then part of the model."""

COPIED_BYTES: Final = 1 << 15
"""Bytes of results up to which copies take less time than binding memory."""

MOST_SESSIONS: Final = 8
"""Sessions of a run, for different numbers of threads and layouts of its inputs."""

GUARD: Final = "a number if results are right"
"""The output of a model that has its guards, added up."""


def refuse_old_version() -> None:
    """Refuse an ONNX Runtime without the kernels that are needed.

    Raises
    ------
    DeviceError
        The installed one is older than `OLDEST`.
    """
    found = onnxruntime.__version__
    if tuple(map(int, found.split(".")[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise DeviceError(
            f"Device('onnxruntime') needs ONNX Runtime {oldest} or newer, got {found}: "
            "pip install --upgrade onnxruntime"
        )


class OnnxRuntimeBackend:
    """ONNX Runtime's CPU provider; native kernels and NumPy for the rest."""

    device: int | None = None

    allocate = CpuBackend.allocate
    copy = staticmethod(unrepeated_copy)

    def compile(self, program: Program) -> Executable:
        """Find the runs of calls that are traced; each gets a session when it first runs.

        Raises
        ------
        MissingKernelError
            A call is not computed, and the CPU has no kernel for it.
        """
        refuse_missing(program, "ONNX Runtime")
        name = program.name
        program, runs = partition(program, joins, keeps=gets_a_session)

        def step_of(call: KernelCall) -> Step:
            if call.kernel in runs:
                return SessionStep(name, runs[call.kernel])
            is_own = is_computed(call.kernel)
            return computed_step(call, WORKING) if is_own else kernel_step(call)

        return HostExecutable(program, step_of, HostMemory(partial(allocate_block, name)))

    def working_nbytes(self, program: Program) -> int:
        """Implement `Backend.working_nbytes`, with the memory of all sessions."""
        _, runs = partition(program, joins, keeps=gets_a_session)
        sessions = sum(
            session_nbytes(traced(run, [None] * len(run.inputs), is_guarded=True))
            for run in runs.values()
        )
        return working_nbytes(program, compiled=True) + sessions

    def describe(self) -> tuple[str, str]:
        """ONNX Runtime's version, and the most threads of a call."""
        return f"ONNX Runtime {onnxruntime.__version__}", str(get_num_threads())


def joins(call: KernelCall, run: Run) -> bool:
    """Whether a call can be part of a session."""
    inputs = tuple(name and run.specs[name] for name in call.inputs)
    outputs = tuple(name and run.specs[name] for name in call.outputs)
    return why_not_traced(call.kernel, call.attributes, inputs, outputs) is None


@lru_cache(4096)
def why_not_traced(
    kernel: str, attributes: Any, inputs: tuple[ArraySpec | None, ...],
    outputs: tuple[ArraySpec | None, ...],
) -> str | None:  # fmt: skip
    """Why a call has no graph; None if it has one."""
    if computation(kernel) is None:
        return "no computation"
    if not any(inputs) and sum(prod(spec.shape) for spec in outputs if spec) > MOST_FILLED:
        return "a large constant"
    known: dict[str | None, ArraySpec] = {
        f"x{i}": spec for i, spec in enumerate(inputs) if spec is not None
    }
    known |= {f"y{i}": spec for i, spec in enumerate(outputs) if spec is not None}
    for spec in known.values():
        if np.dtype(spec.dtype).name not in TYPES["Cast"]:
            return f"elements of type {spec.dtype}"
    names = tuple(f"x{i}" if spec else None for i, spec in enumerate(inputs))
    made = tuple(f"y{i}" if spec else None for i, spec in enumerate(outputs))
    present = dict.fromkeys(name for name in names if name)
    written = dict.fromkeys(name for name in made if name)
    call = KernelCall(kernel, names, made, attributes)
    try:
        run = Run(known, [call], present, tuple(written), written)
        traced(run, [None] * len(present), is_guarded=True)
    except NotTraced as error:
        return str(error)
    return None


def gets_a_session(run: Run) -> bool:
    """Whether a run has enough work."""
    names = {name for call in run.calls for name in (*call.inputs, *call.outputs)} - {None}
    elements = sum(prod(run.specs[name].shape) for name in names)
    loops = any(call.kernel in RECURRENT for call in run.calls)
    enough = loops or len(run.calls) >= LEAST_CALLS or elements >= LEAST_ELEMENTS
    return enough and any(is_computed(call.kernel) for call in run.calls)


def traced(
    run: Run, arrays: Sequence[Array | None], known: Mapping[int, Array] | None = None, *,
    is_guarded: bool = False, external: bool = True,
) -> Model:  # fmt: skip
    """The model of a run.

    Parameters
    ----------
    run : Run
        What is traced.
    arrays : sequence of array or None
        For each input of the run an array of the sizes that are bound; None for the sizes of the
        program.
    known : mapping of int to array, optional
        Inputs that are constants, by their positions.
    is_guarded : bool
        Whether the model may leave it to its guards to find NaN.
    external : bool
        Whether large constants are left out of the model.

    Raises
    ------
    NotTraced
        A call has no graph.
    """
    graph = Graph(is_guarded, adds_exactly())
    operands: list[Any] = []
    for i, (name, array) in enumerate(zip(run.inputs, arrays, strict=True)):
        if known and i in known:
            operands.append(unrepeated(known[i]))
            continue
        shape = run.specs[name].shape if array is None else unrepeated(array).shape
        spec = Spec(np.dtype(run.specs[name].dtype), tuple(shape))
        operands.append(Traced(graph, graph.input(name, spec), spec))
    held = held_inputs(ENGINE, run, operands)
    with np.errstate(all="ignore"):
        for call in compute_calls(ENGINE, run, held, own_results=own_results):
            graph.scope = call.source or call.kernel
    for name in run.written:
        if isinstance(held[name], Traced):
            graph.label(held[name].value, name)
    outputs = {name: value_of(graph, held[name]) for name in run.outputs}
    if graph.guards:
        scalar = Spec(np.dtype(np.float32), ())
        outputs[GUARD] = graph.add("Sum", graph.guards, scalar, {})
    return graph.model(outputs, external)._replace(is_fusible=is_fusible(graph))


@cache
def adds_exactly() -> bool:
    """Whether this processor's products of unsigned and signed bytes are added without overflow.

    ONNX Runtime adds pairs of them in INT16 on x86 without VNNI.
    """
    graph = Graph()
    spec = Spec(np.dtype(np.uint8), (8, 64))
    largest = np.full((64, 32), 127, np.int8)
    operands = Traced(graph, graph.input("x", spec), spec), largest
    total = emit("MatMulInteger", operands, np.int32, (8, 32))
    model = graph.model({"y": total.value}).proto.SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"x": np.full(spec.shape, 255, np.uint8)})
    return bool((got == 255 * 127 * 64).all())


def session_nbytes(model: Model) -> int:
    """The most memory that a session takes, about: all values, and two copies of the weights."""
    values = sum(prod(spec.shape) * spec.dtype.itemsize for spec in model.values)
    return values + COPIES_OF_CONSTANTS * sum(x.nbytes for x in model.apart.values())


class Session(NamedTuple):
    """A session of ONNX Runtime.

    Attributes
    ----------
    run : callable
        Runs it on bound memory.
    run_copying : callable
        Runs it on arrays, and returns new ones.
    new_binding : callable
        Makes an object that memory is bound to, for one call at a time.
    bindings : list
        Those that no call uses now.
    inputs : sequence of (int, str)
        The positions of the inputs that are bound, and their names in the model.
    has_guard : bool
        Whether it has the output `GUARD`.
    constants : sequence of array
        Memory that it reads.
    """

    run: Any
    run_copying: Any
    new_binding: Any
    bindings: list[Any]
    inputs: Sequence[tuple[int, str]]
    has_guard: bool
    constants: Sequence[Any]


class SessionStep:
    """`Step` of a run, some of whose inputs may be known; for several threads at once."""

    def __init__(self, name: str, run: Run, known: Mapping[int, Array] | None = None) -> None:
        self._name = name
        self._run = run
        self._known = dict(known or {})
        self._positions = [i for i in range(len(run.inputs)) if i not in self._known]
        self._sessions: dict[Any, Session] = {}
        self._process = os.getpid()
        self._lock = threading.Lock()

    def specialized(self, known: Mapping[int, Any]) -> Step:
        """The step on the other inputs."""
        return SessionStep(self._name, self._run, known)

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int
    ) -> int:
        plain: list[Array | None] = [None] * len(self._run.inputs)
        for i, x in zip(self._positions, inputs, strict=True):
            plain[i] = unrepeated(x)
        targets = outputs
        is_small = sum(array.nbytes for array in outputs) <= COPIED_BYTES
        if not is_small:
            targets = [self._target(array, plain) for array in outputs]
        with translate_errors(self._name):
            if not self._run_session(True, plain, targets, threads, is_small):
                self._run_session(False, plain, targets, threads, is_small)
        if is_small:
            return -1
        for array, target in zip(outputs, targets, strict=True):
            if array is not target:
                array[...] = target
        return -1

    def _run_session(
        self, is_guarded: bool, inputs: Sequence[Array | None], targets: Sequence[Array],
        threads: int, is_small: bool,
    ) -> bool:  # fmt: skip
        """Write the results; whether they are right."""
        key = is_guarded, threads, *(x.shape for x in inputs if x is not None)
        session = self._sessions.get(key)
        if session is None or self._process != os.getpid():
            try:
                session = self._made(key, inputs)
            except NotTraced:  # without guards
                self._run_numpy(inputs, targets)
                return True
        names = [*self._run.outputs, GUARD] if session.has_guard else [*self._run.outputs]
        if is_small:
            feeds = {name: np.ascontiguousarray(inputs[i]) for i, name in session.inputs}
            results = session.run_copying(names, feeds)
            if session.has_guard and np.isnan(results.pop()):
                return False
            for array, result in zip(targets, results, strict=True):
                array[...] = result
            return True
        try:
            binding = session.bindings.pop()
        except IndexError:
            binding = session.new_binding()
        for i, name in session.inputs:
            binding.bind_cpu_input(name, np.ascontiguousarray(inputs[i]))
        guard = np.empty((), np.float32)
        if session.has_guard:
            targets = [*targets, guard]
        for name, array in zip(names, targets, strict=True):
            address = array.__array_interface__["data"][0]
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, address)
        session.run(binding)
        binding.clear_binding_inputs()
        binding.clear_binding_outputs()
        session.bindings.append(binding)
        return not (session.has_guard and np.isnan(guard))

    def _run_numpy(self, inputs: Sequence[Array | None], targets: Sequence[Array]) -> None:
        arrays = [x if x is not None else self._known[i] for i, x in enumerate(inputs)]
        with np.errstate(all="ignore"):
            results = [np.array(x) for x in compute_run(NUMPY, self._run, arrays)]
        for target, result in zip(targets, results, strict=True):
            target[...] = result

    @staticmethod
    def _target(array: Array, inputs: Sequence[Array | None]) -> Array:
        """Memory for an output: its own, unless it has gaps or is memory of an input."""
        apart = array.flags.c_contiguous and array.flags.aligned
        if apart and not any(x is not None and np.may_share_memory(array, x) for x in inputs):
            return array
        return np.empty(array.shape, array.dtype)

    def _made(self, key: Any, inputs: Sequence[Array | None]) -> Session:
        with self._lock:
            if self._process != os.getpid():
                _FORKED.append(self._sessions)
                self._sessions, self._process = {}, os.getpid()
            session = self._sessions.get(key)
            if session is None:
                is_guarded, threads, *_ = key
                model = traced(self._run, inputs, self._known, is_guarded=is_guarded)
                names = [*self._run.inputs]
                bound = [(i, names[i]) for i in self._positions]
                session = _new_session(self._name, model, bound, threads)
                while len(self._sessions) >= MOST_SESSIONS:
                    self._sessions.pop(next(iter(self._sessions)))
                self._sessions[key] = session
            return session


_FORKED: Final[list[Any]] = []
"""Sessions of the parent of this process: their threads are not here, so that they never end."""


def _new_session(
    name: str, model: Model, inputs: Sequence[tuple[int, str]], threads: int
) -> Session:
    needed = session_nbytes(model)
    if needed > memory_limit():
        raise AllocationError(name, needed, "a session of ONNX Runtime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for key, value in SETTINGS.items():
        options.add_session_config_entry(f"session.{key}", value)
    constants = [onnxruntime.OrtValue.ortvalue_from_numpy(x) for x in model.apart.values()]
    if constants:
        options.add_external_initializers([*model.apart], constants)
    with translate_errors(name):
        session = onnxruntime.InferenceSession(
            model.proto.SerializeToString(), options, providers=["CPUExecutionProvider"],
            disabled_optimizers=DISABLED if model.is_fusible else [*DISABLED, *FUSIONS],
        )  # fmt: skip
    has_guard = any(output.name == GUARD for output in model.proto.graph.output)
    held = [*model.apart.values(), *constants]
    return Session(
        session.run_with_iobinding, session.run, session.io_binding, [], inputs, has_guard, held
    )


def memory_limit() -> int:
    """The bytes that this process may take: the machine's, where the system says."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 1 << 62


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise this library's errors for those of ONNX Runtime, which name the node."""
    try:
        yield
    except (AllocationError, DeviceError, KeyboardInterrupt):
        raise
    except MemoryError:
        raise AllocationError(name, None, "what ONNX Runtime computes") from None
    except Exception as error:  # ONNX Runtime's have no public base class
        text = str(error)
        if "allocate" in text.lower() or "bad_alloc" in text:
            raise AllocationError(name, None, "what ONNX Runtime computes") from error
        raise DeviceError(f"{name}: ONNX Runtime failed: {text}") from error
