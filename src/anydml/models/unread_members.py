"""What in a model does nothing: members that nothing reads, and members that come twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from anydml.core._json import Fields, or_similar, short_repr
from anydml.models.commands import Command, Dispatch
from anydml.models.dispatchables import Bindings, Dispatchable

_CONTAINERS: Final = {Fields, list}
# Members for editors and readers, which DxDispatch's models have.
_SILENT: Final = {"$schema"}


def find_unread_members(
    document: Fields,
    resources: Mapping[str, object],
    dispatchables: Mapping[str, Dispatchable],
    commands: Mapping[int, Command],
) -> Iterator[str]:
    """Every member that nothing reads or that comes twice, and bindings without a bind point.

    Parameters
    ----------
    document : Fields
        The model's text.
    resources, dispatchables, commands
        The parts of it that could be read: of the others it is not known what would have been.
    """
    yield from _of_object("Top level", document, True, _SILENT)
    for section, known in (("resources", resources), ("dispatchables", dispatchables)):
        yield from _of_object(section, document[section], False)
        for name, part in document[section].items():
            if isinstance(part, Fields):
                yield from _below(
                    f"{section[:-1].capitalize()} {short_repr(name)}", part, name in known
                )
    for name, dispatchable in dispatchables.items():
        yield from _points(f"Dispatchable {short_repr(name)}", dispatchable, dispatchable.bindings)
    for index, part in enumerate(document["commands"]):
        where = f"Command at index {index}"
        command = commands.get(index)
        # What a dispatch of a dispatchable that is not read has depends on that one's type:
        # DxDispatch reads 'threadGroupCount' for HLSL, 'shape' in bindings for ONNX.
        unknown = isinstance(command, Dispatch) and command.dispatchable not in dispatchables
        if isinstance(part, Fields):
            yield from _below(where, part, command is not None and not unknown)
        if isinstance(command, Dispatch) and command.dispatchable in dispatchables:
            yield from _points(where, dispatchables[command.dispatchable], command.bindings)


def _points(where: str, dispatchable: Dispatchable, bindings: Bindings) -> Iterator[str]:
    points = [info.name for info in dispatchable.desc.tensor_fields()]
    for name in bindings:
        if name not in points:
            yield (
                f"{where}: bindings: {dispatchable.desc.NAME} has no bind point {short_repr(name)} "
                f"(it has {', '.join(points)})."
            )


def _below(where: str, top: Fields, is_read: bool) -> Iterator[str]:
    """The warnings of an object and all that are in it, however deep."""
    yield from _of_object(where, top, is_read)
    way: list[str | int] = []
    pending = [_containers(top)]
    while pending:
        found = next(pending[-1], None)
        if found is None:
            pending.pop()
            del way[-1:]
            continue
        key, value = found
        way.append(key)
        pending.append(_containers(value))
        if isinstance(value, Fields) and (value.repeated or value.unread_names()):
            yield from _of_object(f"{where}: {_path(way)}", value, is_read)


def _containers(value: Any) -> Iterator[tuple[str | int, Any]]:
    """Objects and arrays in one, but for those that nothing reads."""
    if isinstance(value, Fields):
        for name, item in value.items():
            if type(item) in _CONTAINERS and name in value.read:
                yield name, item
    elif not _CONTAINERS.isdisjoint(map(type, value)):
        for i, item in enumerate(value):
            if type(item) in _CONTAINERS:
                yield i, item


def _path(way: Iterable[str | int]) -> str:
    pieces = (f"[{key}]" if isinstance(key, int) else f".{short_repr(key)[1:-1]}" for key in way)
    return "".join(pieces).removeprefix(".")


def _of_object(
    where: str, value: Fields, is_read: bool, silent: Iterable[str] = ()
) -> Iterator[str]:
    for name in value.repeated:
        yield f"{where}: member {short_repr(name)} comes more than once; the last one counts."
    if is_read:
        for name in value.unread_names():
            if name not in silent:
                yield (
                    f"{where}: nothing reads member "
                    f"{short_repr(name)}{or_similar(name, value.read)}"
                )
