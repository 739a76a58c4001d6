"""Models: resources, dispatchables and commands, read from a document. `check` checks them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeVar

from anydml.core import _json
from anydml.core._json import Fields, short_repr
from anydml.core.comparison import without_leading_ones
from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.problems import Problem
from anydml.core.tensor import TensorDesc
from anydml.devices.binding import elements_size
from anydml.graphs.desc import GraphDesc
from anydml.graphs.serialized import DATA_SUFFIX
from anydml.models import formats
from anydml.models.commands import Command, Dispatch, Print, read_command
from anydml.models.document import (
    STANDARD_INPUT,
    folder_of,
    json_graph,
    read_document,
    unread_members,
    unread_names,
    within,
    words,
)
from anydml.models.files import Folder, Limits, Place, model_name, state
from anydml.models.operators import (
    Bindings,
    Dispatchable,
    GraphOperator,
    Source,
    is_owned,
    points_bound,
    read_dispatchable,
)
from anydml.models.positions import placed
from anydml.models.resources import Resource, read_resource
from anydml.models.text import Text
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

K = TypeVar("K", int, str)
T = TypeVar("T")

# Members for editors and readers, which DxDispatch's models have.
_SILENT: Final = {"$schema"}


@dataclass(frozen=True)
class Model:
    """Resources, dispatchables and commands that have been read.

    Attributes
    ----------
    resources, dispatchables : dict
        By name, in the order of the model.
    commands : dict of int to command
        By index.
    declared_resources, declared_dispatchables : collection of str
        Names in the model, also of those that could not be read.
    problems : tuple of str
        Parts that could not be read; empty for a model that `load_model` returns.
    warnings : tuple of str
        Members that nothing reads or that come twice, and bindings without a bind point.
    name : str
        Name of the file without ``.json``, after which its output folder is named.
    limits : Limits
        Limits that it has been read with.
    text : bytes
        What it has been read from; empty for a graph.
    alone : bool
        Whether it is an operator, or a JSON graph without a file for any input, or for any but
        its weights: there is nothing to run it with.
    """

    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, Dispatchable]
    commands: Mapping[int, Command]
    declared_resources: Collection[str]
    declared_dispatchables: Collection[str]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    name: str
    limits: Limits
    text: bytes = b""
    alone: bool = False

    def dispatches(self) -> Iterator[tuple[int, Dispatch, Dispatchable]]:
        """List the dispatches of what could be read, with their indices."""
        for index, command in self.commands.items():
            if isinstance(command, Dispatch) and command.dispatchable in self.dispatchables:
                yield index, command, self.dispatchables[command.dispatchable]


def read_model(path: str | Path, limits: Limits | None = None) -> Model:
    """Read a model; parts that are wrong are left out and reported in ``problems``.

    The model of a file of one graph, serialized or as JSON, runs it and prints its outputs. The
    model of an operator, which has a member ``type`` and no ``dispatchables``, has no commands.

    Raises
    ------
    ModelError
        The file cannot be read, or is not a JSON object with the three members of a model.
    """
    limits = limits or Limits()
    return model_of(read_document(path, limits), path, limits)


def model_of(document: Text | GraphDesc, path: str | Path, limits: Limits) -> Model:
    """Read the model that a document from a path describes; see `read_model`."""
    name = "stdin" if str(path) == STANDARD_INPUT else model_name(Path(path))
    folder = folder_of(path, limits)
    if isinstance(document, GraphDesc):
        return graph_model(document, name, folder, limits)
    if "Nodes" in document:
        graph = json_graph(document)
        model = graph_model(graph, name, folder, limits)
        names = {tensor.name for tensor in graph.inputs}
        missing = names - model.resources.keys()
        bound = names - model.dispatchables[name].bindings.keys()  # the others are owned
        return replace(model, alone=bool(missing) and missing in (names, bound))
    if "type" in document and "dispatchables" not in document:
        return operator_model(document, name, limits)
    return json_model(document, name, folder, limits)


def json_model(document: Text, name: str, folder: Folder | None, limits: Limits) -> Model:
    """Read the model that a JSON object describes; its files are in the folder, if any.

    Raises
    ------
    ModelError
        The object has not the three members of a model.
    """
    faults = _json.Faults()
    resources = faults.field(document, "resources", _json.json_object)
    dispatchables = faults.field(document, "dispatchables", _json.json_object)
    commands = faults.field(document, "commands", _json.json_array)
    try:
        faults.finish()
    except ModelError as error:
        raise ModelError(*placed(error.problems, document.data)) from error
    limit = limits.memory_limit
    read_resources: dict[str, Resource] = {}
    read_dispatchables: dict[str, Dispatchable] = {}
    read_commands: dict[int, Command] = {}
    problems = chain(
        _read_parts(
            "resources", resources, read_resources,
            lambda name, value: read_resource(name, value, folder, limit),
        ),
        _read_parts(
            "dispatchables", dispatchables, read_dispatchables,
            lambda name, value: read_dispatchable(name, value, folder, limit),
        ),
        _read_parts(
            "commands", dict(enumerate(commands)), read_commands,
            lambda _, value: read_command(value),
        ),
    )  # fmt: skip
    found = reported(problems)
    warnings = reported(_warnings(document, read_resources, read_dispatchables, read_commands))
    return Model(
        read_resources, read_dispatchables, read_commands,
        dict.fromkeys(resources), dict.fromkeys(dispatchables), found, warnings, name, limits,
        document.data,
    )  # fmt: skip


def operator_model(document: Text, name: str, limits: Limits) -> Model:
    """Make a model that has an operator, and nothing to bind to it."""
    found: dict[str, Dispatchable] = {}
    parts = _read_parts("dispatchables", {name: document}, found, _read_operator)
    problems = reported(parts)
    warnings = reported(unread_members(words("dispatchables", name), document, name in found))
    return Model({}, found, {}, (), (name,), problems, warnings, name, limits, alone=True)


def _read_operator(name: str, document: Text) -> Dispatchable:
    try:
        return read_dispatchable(name, document)
    except ModelError as error:
        raise ModelError(*placed(error.problems, document.data)) from error


def reported(texts: Iterable[str]) -> tuple[str, ...]:
    """Take as many problems or warnings as are reported; further ones are not made."""
    found = (*islice(texts, _json.MOST_REPORTED + 1),)
    return (*found[:-1], "There are more.") if len(found) > _json.MOST_REPORTED else found


def _read_parts(
    section: str, values: Mapping[K, Any], found: dict[K, T], read: Callable[[K, Any], T]
) -> Iterator[Problem]:
    """Read the parts of a section into `found`, and report those that cannot be read."""
    for key, value in values.items():
        try:
            found[key] = read(key, value)
        except AnyDMLError as error:
            yield from (within(section, key, problem) for problem in _json.problems_of(error))


def _warnings(
    document: Fields,
    resources: Mapping[str, object],
    dispatchables: Mapping[str, Dispatchable],
    commands: Mapping[int, Command],
) -> Iterator[str]:
    """Find members that nothing reads or that come twice, and bindings without a bind point."""
    yield from unread_names("Top level", document, True, _SILENT)
    for section, known in (("resources", resources), ("dispatchables", dispatchables)):
        yield from unread_names(section, document[section], False)
        for name, part in document[section].items():
            if isinstance(part, Fields):
                yield from unread_members(words(section, name), part, name in known)
    for name, dispatchable in dispatchables.items():
        yield from _unread_bindings(
            words("dispatchables", name), dispatchable.desc, dispatchable.bindings, initial=True
        )
    for index, part in enumerate(document["commands"]):
        where = words("commands", index)
        command = commands.get(index)
        # What a dispatch of a dispatchable that is not read has depends on that one's type:
        # DxDispatch reads 'threadGroupCount' for HLSL, 'shape' in bindings for ONNX.
        unknown = isinstance(command, Dispatch) and command.dispatchable not in dispatchables
        if isinstance(part, Fields):
            yield from unread_members(where, part, command is not None and not unknown)
        if isinstance(command, Dispatch) and command.dispatchable in dispatchables:
            desc = dispatchables[command.dispatchable].desc
            yield from _unread_bindings(where, desc, command.bindings, initial=False)


def _unread_bindings(
    where: str, desc: Descriptor | GraphOperator, bindings: Bindings, initial: bool
) -> Iterator[str]:
    # Where a tensor has no resource, which is a problem, the names belong to that message.
    if any(info.name not in bindings for info in points_bound(desc, initial)):
        return
    points = [info.name for info in desc.tensor_fields()]
    for name in bindings:
        if name not in points:
            yield (
                f"{where}: bindings: {desc.NAME} has no bind point {short_repr(name)} "
                f"(it has {', '.join(points)})."
            )


def graph_model(graph: GraphDesc, name: str, folder: Folder | None, limits: Limits) -> Model:
    """Make a model that runs a graph on files named after its inputs, and prints its outputs."""
    operator = GraphOperator(graph)
    owned: dict[str, tuple[Source, ...]] = {}
    bound: dict[str, tuple[Source, ...]] = {}
    for info in operator.bind_points():
        (owned if is_owned(operator, info) else bound)[info.name] = (Source(info.name),)
    resources: dict[str, Resource] = {}
    problems = reported(_read_inputs(operator, folder, limits.memory_limit, resources))
    commands: list[Command] = []
    if bound and not problems:
        outputs = (output for output, _, _ in operator.tensors(Role.OUTPUT))
        commands = [Dispatch(name, bound), *(Print(output, False) for output in outputs)]
    return Model(
        resources, {name: Dispatchable(name, operator, owned)}, dict(enumerate(commands)),
        owned.keys() | bound, (name,), problems, (), name, limits,
    )  # fmt: skip


def _read_inputs(
    graph: GraphOperator, folder: Folder | None, memory_limit: int, found: dict[str, Resource]
) -> Iterator[Problem]:
    """Read resources for the inputs of a graph, from files named after them, and its outputs."""
    for name, tensor, info in graph.tensors():
        values: dict[str, Any] = {"value": 0, "valueCount": tensor.element_count}
        if info.role is Role.INPUT:
            names = [f"{name}{suffix}" for suffix in (".npy", DATA_SUFFIX)]
            place = next(filter(None, map(folder.find, names)), None) if folder else None
            if place is None:
                text = (
                    f"Input {short_repr(name)}: Expected a file {' or '.join(map(repr, names))} "
                    "beside the graph (or in --input-dir), got neither."
                )
                yield Problem(text, "missing_file")
                continue
            try:
                _check_input(tensor, place)
            except ModelError as error:
                yield Problem(f"Input {short_repr(name)}: {error}")
                continue
            values = {"sourcePath": "/".join(place.parts)}
        value = {"initialValuesDataType": tensor.data_type.name, "initialValues": values}
        yield from _read_parts(
            "resources", {name: value}, found,
            lambda name, value: read_resource(name, value, folder, memory_limit),
        )  # fmt: skip


def _check_input(tensor: TensorDesc, place: Place) -> None:
    """Check that a file has the type, shape and size of the tensor of an input.

    Sizes of 1 in front do not count: descriptors often have more of them than arrays. With strides
    a file has the buffer of the tensor, whose shape is another one.
    """
    data_type, shape = tensor.data_type, None
    with place.open_file() as file:
        if place.name.endswith(DATA_SUFFIX):
            size = state(file).size
        else:
            try:
                dtype, size, shape, _ = formats.read_header(file)
            except ModelError as error:
                raise ModelError(f"File {place}: {error}") from error
            if DataType.from_numpy(dtype) is not data_type:
                raise ModelError(
                    f"expected {data_type} in {place}, got {dtype.newbyteorder('=').name}."
                )
    expected = f"{data_type} {_braced(tensor.sizes)}"
    if shape is not None and tensor.strides is None:
        if without_leading_ones(shape) != without_leading_ones(tensor.sizes):
            raise ModelError(f"expected {expected} in {place}, got {data_type} {_braced(shape)}.")
        return
    minimum = elements_size(tensor)
    if not minimum <= size <= tensor.total_tensor_size_in_bytes:
        raise ModelError(f"expected {minimum} bytes ({expected}) in {place}, got {size}.")


def _braced(sizes: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, sizes))}}}"
