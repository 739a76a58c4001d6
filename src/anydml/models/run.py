"""Run a model: allocate resources, initialise dispatchables, then execute command after command."""

from __future__ import annotations

import array
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from time import monotonic
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, ArgumentError, ModelError
from anydml.core.tensor import TensorDesc
from anydml.devices.device import Device
from anydml.devices.operators import CompiledOperator
from anydml.graphs.compiled import CompiledGraph
from anydml.models import formats
from anydml.models.check import Checks, run_problems
from anydml.models.commands import Dispatch, Print, WriteFile
from anydml.models.constant_indices import index_problems
from anydml.models.document import visible, words
from anydml.models.files import Limits, Output, output_folder, own_folder
from anydml.models.model import Model
from anydml.models.operators import Bindings, Dispatchable
from anydml.models.resources import Resource, json_numbers
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]

# Elements formatted at a time, so that the text of a large buffer is never in memory as a whole.
_CHUNK: Final = 16384
_PROGRESS_SECONDS: Final = 0.2


def run_model(
    model: Model,
    device: Device | None = None,
    limits: Limits | None = None,
    write: Callable[[str], object] | None = None,
    *,
    repeat: int = 1,
    timing: bool = False,
    progress: Callable[[str], object] = lambda _: None,
) -> dict[str, Array]:
    """Run a model's commands.

    Parameters
    ----------
    model : Model
        As `load_model` returns it.
    device : Device, optional
        What runs the operators and whose feature level they are checked against.
    limits : Limits, optional
        What the model may read, write and allocate.
    write : callable, optional
        Takes what `print` commands print, in pieces; standard output by default.
    repeat : int
        How many times each dispatch runs. Whatever it writes in place is put back before it runs
        again, so that it leaves what one run leaves.
    timing : bool
        Whether a line for each `dispatch` command is printed that says how long it took.
    progress : callable, optional
        Takes a line that says how far a `dispatch` command is, every fifth of a second while it is
        repeated, and an empty one when it has ended.

    Returns
    -------
    dict of str to array
        The resources after the last command: of the type and sizes of the tensor that the model
        binds each to. A resource that is bound in several ways is flat, in its own type, or bytes.

    Raises
    ------
    ModelError
        Something is wrong that can be known before any command has run, and none has; or a command
        has failed.
    """
    device = device or Device("cpu")
    limits = limits or model.limits
    write = write or sys.stdout.write
    if repeat < 1:
        raise ArgumentError(f"repeat: expected at least 1, got {repeat}")
    if model.alone:
        raise ModelError("Expected a model, got an operator alone, which `anydml check` checks.")
    checks = Checks(model, device, limits)
    operators = {name: item.compiled for name, item in checks.checked.items()}
    problems = [*run_problems(checks), *_copies_problems(model, limits, repeat)]
    if problems:
        raise ModelError(*problems)
    buffers = {name: _allocated(resource) for name, resource in model.resources.items()}
    problems = [*index_problems(checks, lambda resource, _: buffers[resource.name])]
    if problems:
        raise ModelError(*problems)
    for name, dispatchable in model.dispatchables.items():
        with _located(words("dispatchables", name)):
            bound = _bound(dispatchable, {}, True, model.resources, buffers)
            if bound:
                operators[name] = operators[name].initialize(**bound)
    with _output(model, limits, write) as output:
        for index, command in model.commands.items():
            with _located(words("commands", index)):
                if isinstance(command, Dispatch):
                    seconds = _dispatch(
                        command, model, operators, buffers, repeat, words("commands", index),
                        progress,
                    )  # fmt: skip
                    if timing:
                        desc = model.dispatchables[command.dispatchable].desc
                        write(f"{timed(index, command.dispatchable, desc.NAME, seconds)}\n")
                else:
                    _show(command, model, buffers, output, write)
    return arrays(model, buffers)


@contextmanager
def _output(
    model: Model, limits: Limits, write: Callable[[str], object]
) -> Iterator[Output | None]:
    """Make the folder that `writeFile` commands write to, if there are any."""
    if not any(isinstance(command, WriteFile) for command in model.commands.values()):
        yield None
        return
    folder, own = output_folder(model.name, limits), own_folder(limits)
    with Output(folder, own and not limits.overwrite, limits.overwrite) as output:
        if own:
            write(f"Files are written to {str(folder.display_path)!r}.\n")
        yield output


def _allocated(resource: Resource) -> Array:
    with _located(f"Resource {short_repr(resource.name)}"):
        return resource.allocate()


def _bound(
    dispatchable: Dispatchable,
    bindings: Bindings,
    initial: bool,
    resources: Mapping[str, Resource],
    buffers: Mapping[str, Array],
) -> dict[str, Any]:
    bound: dict[str, Any] = {}
    for info, _, tensor, source, _, owned in dispatchable.bound(bindings):
        if owned is initial:
            octets = buffers[source.name][source.start(resources[source.name]) :]
            view = _view(tensor.storage, octets)
            if info.many:
                bound.setdefault(info.name, []).append(view)
            else:
                bound[info.name] = view
    return bound


def _view(tensor: TensorDesc, octets: Array) -> Array | memoryview:
    """View the part of a buffer of a tensor: as an array, bound natively, where it is packed."""
    return octets.data if tensor.strides is not None else elements(tensor, octets)


def _dispatch(
    command: Dispatch,
    model: Model,
    operators: Mapping[str, CompiledOperator | CompiledGraph],
    buffers: Mapping[str, Array],
    repeat: int,
    where: str,
    progress: Callable[[str], object],
) -> array.array[float]:
    """Run a dispatch `repeat` times and return the seconds that each took."""
    dispatchable = model.dispatchables[command.dispatchable]
    bound = _bound(dispatchable, command.bindings, False, model.resources, buffers)
    operator = operators[command.dispatchable]
    both = _in_place(dispatchable, command) if repeat > 1 else ()
    before = [(buffers[name], buffers[name].copy()) for name in both]

    def put_back() -> None:
        for buffer, contents in before:
            np.copyto(buffer, contents)

    return repeated(lambda: operator.dispatch(**bound), repeat, where, progress, put_back)


def repeated(
    run: Callable[[], object],
    repeat: int,
    where: str,
    progress: Callable[[str], object],
    put_back: Callable[[], object] = lambda: None,
) -> array.array[float]:
    """Run something `repeat` times, and return the seconds that each run took.

    Parameters
    ----------
    run : callable
        The run.
    repeat : int
        The number of runs.
    where : str
        The beginning of the line of progress.
    progress : callable
        As `run_model` takes it.
    put_back : callable
        Called before each run but the first.
    """
    seconds = array.array("d")
    due = monotonic() + _PROGRESS_SECONDS
    try:
        for i in range(repeat):
            if i:
                put_back()
            if repeat > 1 and monotonic() >= due:
                progress(f"{where}: {i} of {repeat} runs")
                due = monotonic() + _PROGRESS_SECONDS
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
    finally:
        if repeat > 1:
            progress("")
    return seconds


def _copies_problems(model: Model, limits: Limits, repeat: int) -> Iterator[str]:
    kept = sum(resource.size for resource in model.resources.values())
    for index, command, dispatchable in model.dispatches():
        if repeat > 1:
            names = _in_place(dispatchable, command)
            needed = kept + sum(model.resources[name].size for name in names)
            if needed > limits.memory_limit:
                yield (
                    f"{words('commands', index)}: Expected at most {limits.memory_limit} bytes "
                    "(--memory-limit) for resources and copies of those that --repeat puts back, "
                    f"got {needed}."
                )


def _in_place(dispatchable: Dispatchable, command: Dispatch) -> set[str]:
    """Return the resources that a dispatch both reads and writes."""
    sources, targets = (
        {item.source.name for item in dispatchable.bound(command.bindings, role) if not item.owned}
        for role in (Role.INPUT, Role.OUTPUT)
    )
    return sources & targets


def _show(
    command: Print | WriteFile,
    model: Model,
    buffers: Mapping[str, Array],
    output: Output | None,
    write: Callable[[str], object],
) -> None:
    resource = model.resources[command.resource]
    buffer = buffers[command.resource]
    if isinstance(command, Print):
        for piece in printed(
            resource.name, resource.elements(resource.data(buffer)), command.verbose
        ):
            write(piece)
        return
    assert output is not None, "there is one for every model that writes"
    contents = command.contents(resource, buffer)
    if command.picture:
        output.write(command.target, [memoryview(formats.encode_picture(command.target, contents))])
        return
    npy = command.npy
    pieces = formats.npy_pieces(contents) if npy else [formats.octets_of(contents)]
    output.write(command.target, pieces)


@contextmanager
def _located(where: str) -> Iterator[None]:
    try:
        yield
    except AnyDMLError as error:
        raise ModelError(f"{where}: {error}") from error


def printed(name: str, numbers: Array, verbose: bool) -> Iterator[str]:
    """Format the text of one `print`, in pieces, with numbers as C++ streams write them.

    ``Resource 'Out': 1, 2``; with `verbose`, a line an element: index, value and bits.
    """
    text = _text_of(numbers.dtype)
    if not verbose:
        yield f"Resource '{visible(name)}': "
        for start in range(0, numbers.size, _CHUNK):
            separator = ", " if start else ""
            chunk = numbers[start : start + _CHUNK].tolist()
            yield separator + ", ".join(map(text, chunk))
        yield "\n"
        return
    yield f"Resource '{visible(name)}':\n"
    digits = 2 * numbers.itemsize
    width = len(str(numbers.size))
    bits = numbers.view(f"u{numbers.itemsize}")
    for start in range(0, numbers.size, _CHUNK):
        pairs = zip(
            numbers[start : start + _CHUNK].tolist(),
            bits[start : start + _CHUNK].tolist(),
            strict=True,
        )
        yield "".join(
            f"[{start + i:{width}}] {text(value)} (0x{pattern:0{digits}X})\n"
            for i, (value, pattern) in enumerate(pairs)
        )


def _text_of(dtype: np.dtype[Any]) -> Callable[[Any], str]:
    return "{:g}".format if dtype.kind == "f" else str  # :g has 6 significant digits


def timed(index: int, name: str, operator: str, seconds: Sequence[float]) -> str:
    """Describe how long the dispatches of one command took.

    The first one finds caches cold and pays for what is made once; it is printed separately.
    """
    what = f"{words('commands', index)}: dispatch of {short_repr(name)} ({operator})"
    return durations(what, seconds)


def durations(what: str, seconds: Sequence[float]) -> str:
    """Describe how long the runs of something took."""
    if len(seconds) == 1:
        return f"{what}: {duration(seconds[0])}"
    return (
        f"{what}, {len(seconds)} times: median {duration(median(seconds))}, "
        f"fastest {duration(min(seconds))}, first {duration(seconds[0])}"
    )


def duration(seconds: float) -> str:
    """Format a time in three digits and a unit."""
    unit, size = next(
        (pair for pair in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= pair[1]),
        ("ns", 1e-9),
    )
    number = seconds / size
    return f"{number:.{max(0, 3 - len(str(int(number))))}f} {unit}"


def elements(tensor: TensorDesc, octets: Array) -> Array:
    """View the elements of a packed tensor at the beginning of a buffer."""
    dtype = tensor.data_type.numpy
    return octets[: tensor.element_count * dtype.itemsize].view(dtype).reshape(tensor.sizes)


def arrays(model: Model, buffers: Mapping[str, Array]) -> dict[str, Array]:
    """View each resource as an array on its buffer.

    It has the type and sizes of the tensor that the model binds it to. A resource that is bound to
    several, to a part of a tensor or to one with strides is flat, in its own type; one without a
    type is bytes.
    """
    found: dict[str, Array] = {}
    bound = dict(_only_tensors(model))
    for name, buffer in buffers.items():
        resource, tensor = model.resources[name], bound.get(name)
        if tensor is not None:
            found[name] = elements(tensor, buffer)
        elif resource.data_type is not None:
            found[name] = resource.elements(resource.data(buffer))
        else:
            found[name] = buffer
    return found


def _only_tensors(model: Model) -> Iterator[tuple[str, TensorDesc]]:
    # Resources and the only tensor that each is bound to, from its first byte on.
    tensors: dict[str, set[tuple[DataType, tuple[int, ...]] | None]] = {}
    for _, command, dispatchable in model.dispatches():
        for _, _, tensor, source, *_ in dispatchable.bound(command.bindings):
            is_packed = tensor.strides is None and not source.element_offset
            stored = tensor.storage
            shape = (stored.data_type, stored.sizes) if is_packed else None
            tensors.setdefault(source.name, set()).add(shape)
    for name, shapes in tensors.items():
        (first, *others) = shapes
        if first is not None and not others:
            yield name, TensorDesc(*first)


def results_data(model: Model, found: Mapping[str, Array]) -> dict[str, Any]:
    """Describe each resource that a dispatch writes: its type, sizes and values.

    A resource that the model writes to a file has the file's name in place of the values. NaN and
    infinities, which JSON lacks, are strings.
    """
    files = {
        command.resource: command.target
        for command in model.commands.values()
        if isinstance(command, WriteFile)
    }
    written = {
        bound.source.name
        for _, command, dispatchable in model.dispatches()
        for bound in dispatchable.bound(command.bindings, Role.OUTPUT)
    }
    records = {}
    for name in sorted(written):
        array = found[name]
        values = {"file": files[name]} if name in files else {"values": json_numbers(array)}
        kind = DataType.from_numpy(array.dtype).name
        records[name] = {"dataType": kind, "sizes": list(array.shape), **values}
    return {"resources": records}
