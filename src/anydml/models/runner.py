"""Running a model: resources allocated, dispatchables initialised, then command after command."""

from __future__ import annotations

import array
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, ArgumentError, ModelError
from anydml.core.tensor import TensorDesc
from anydml.devices.device import Device
from anydml.devices.operators import CompiledOperator
from anydml.graphs.compiled import CompiledGraph
from anydml.models import npy, pictures
from anydml.models.checking import compile_dispatchable, refusal, run_problems
from anydml.models.commands import Dispatch, Print, WriteFile
from anydml.models.constant_indices import index_problems
from anydml.models.dispatchables import Bindings, Dispatchable, is_owned
from anydml.models.files import Output
from anydml.models.loader import Model
from anydml.models.paths import Limits, output_folder, own_folder
from anydml.models.printing import printed
from anydml.models.resources import Resource
from anydml.models.results import arrays, elements
from anydml.models.timing import timed
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]

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
    operators = {
        name: _compiled(dispatchable, device) for name, dispatchable in model.dispatchables.items()
    }
    problems = [*run_problems(model, limits, device), *_copies_problems(model, limits, repeat)]
    if problems:
        raise ModelError(*problems)
    buffers = {name: _allocated(resource) for name, resource in model.resources.items()}
    problems = [*index_problems(model, contents=lambda resource, _: buffers[resource.name])]
    if problems:
        raise ModelError(*problems)
    for name, dispatchable in model.dispatchables.items():
        with _located(f"Dispatchable {short_repr(name)}"):
            bound = _bound(dispatchable, dispatchable.bindings, True, model.resources, buffers)
            if bound:
                operators[name] = operators[name].initialize(**bound)
    with _output(model, limits, write) as output:
        for index, command in model.commands.items():
            with _located(f"Command at index {index}"):
                if isinstance(command, Dispatch):
                    seconds = _dispatch(
                        command, model, operators, buffers, repeat, f"Command at index {index}",
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
    """What `writeFile` commands write to; a model without any leaves no folder behind."""
    if not any(isinstance(command, WriteFile) for command in model.commands.values()):
        yield None
        return
    folder, own = output_folder(model.name, limits), own_folder(limits)
    with Output(folder, own and not limits.overwrite, limits.overwrite) as output:
        if own:
            write(f"Files are written to {str(folder.display_path)!r}.\n")
        yield output


def _compiled(dispatchable: Dispatchable, device: Device) -> CompiledOperator | CompiledGraph:
    refused = refusal(dispatchable, device)
    if refused is not None:
        raise ModelError(refused)
    return compile_dispatchable(dispatchable, device)


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
    desc = dispatchable.desc
    bound: dict[str, Any] = {}
    for info in desc.bind_points():
        if is_owned(desc, info) is initial:
            tensors = desc.paths(info)
            views = [
                _view(tensor.storage, buffers[source.name][source.start(resources[source.name]) :])
                for (_, tensor), source in zip(tensors, bindings[info.name], strict=True)
            ]
            bound[info.name] = views if info.many else views[0]
    return bound


def _view(tensor: TensorDesc, octets: Array) -> Array | memoryview:
    """A tensor's part of a buffer: as an array where it is packed, which is bound natively."""
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
    seconds = array.array("d")
    due = monotonic() + _PROGRESS_SECONDS
    try:
        for i in range(repeat):
            for buffer, contents in before if i else ():
                np.copyto(buffer, contents)
            if repeat > 1 and monotonic() >= due:
                progress(f"{where}: {i} of {repeat} runs")
                due = monotonic() + _PROGRESS_SECONDS
            start = time.perf_counter()
            operator.dispatch(**bound)
            seconds.append(time.perf_counter() - start)
    finally:
        if repeat > 1:
            progress("")
    return seconds


def _copies_problems(model: Model, limits: Limits, repeat: int) -> Iterator[str]:
    kept = sum(resource.size for resource in model.resources.values())
    for index, command in model.commands.items():
        if repeat > 1 and isinstance(command, Dispatch):
            names = _in_place(model.dispatchables[command.dispatchable], command)
            needed = kept + sum(model.resources[name].size for name in names)
            if needed > limits.memory_limit:
                yield (
                    f"Command at index {index}: Expected at most {limits.memory_limit} bytes "
                    "(--memory-limit) for resources and copies of those that --repeat puts back, "
                    f"got {needed}."
                )


def _in_place(dispatchable: Dispatchable, command: Dispatch) -> set[str]:
    """The resources that a dispatch both reads and writes."""
    sources, targets = (
        {
            source.name
            for info in dispatchable.desc.bind_points(role)
            for source in command.bindings.get(info.name, ())
        }
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
        output.write(command.target, [memoryview(pictures.encode(command.target, contents))])
        return
    elements = contents.reshape(-1).view(np.uint8).data
    header = npy.header_of(contents) if command.npy else b""
    output.write(command.target, [memoryview(header), elements])


@contextmanager
def _located(where: str) -> Iterator[None]:
    try:
        yield
    except AnyDMLError as error:
        raise ModelError(f"{where}: {error}") from error
