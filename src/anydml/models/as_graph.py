"""JSON models as graphs: what their commands compute, without the commands."""

from __future__ import annotations

from collections import Counter

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.graphs.check import Place
from anydml.graphs.desc import GraphDesc, InputEdge, IntermediateEdge, OperatorNode, OutputEdge
from anydml.models.commands import Dispatch
from anydml.models.document import words
from anydml.models.model import Model
from anydml.models.operators import GraphOperator
from anydml.ops._fields import Role


def graph_of_commands(model: Model) -> tuple[GraphDesc, dict[str, bytes]]:
    """A graph of the operators that a model dispatches, and the inputs that it owns.

    Resources that a dispatch reads and none before has written are inputs. What commands print or
    write to files, as it is then, are outputs; without such commands, what no dispatch reads. A
    resource that is an output and an input, or that is several outputs, gets a number.

    Parameters
    ----------
    model : Model
        As `load_model` returns it.

    Raises
    ------
    ModelError
        A command binds a part of a resource, or a graph besides other commands.
    """
    graph = _only_graph(model)
    if graph is not None:
        return graph
    return _Reader(model).graph()


def _only_graph(model: Model) -> tuple[GraphDesc, dict[str, bytes]] | None:
    """The graph of a model that dispatches nothing else."""
    found = {dispatchable.name: dispatchable for _, _, dispatchable in model.dispatches()}
    if len(found) != 1:
        return None
    (dispatchable,) = found.values()
    if dispatchable.graph is None:
        return None
    weights = {
        name: _contents(model, sources[0].name) for name, sources in dispatchable.bindings.items()
    }
    return dispatchable.graph, weights


def _contents(model: Model, resource: str) -> bytes:
    return model.resources[resource].allocate().tobytes()


class _Reader:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._nodes: list[OperatorNode] = []
        self._inputs: dict[tuple[str, bool], int] = {}
        self._into: list[InputEdge] = []
        self._between: list[IntermediateEdge] = []
        self._out_of: list[OutputEdge] = []
        # Where the contents of resources come from now; and the places that some node reads.
        self._sources: dict[str, Place] = {}
        self._read: set[Place] = set()
        self._last: dict[Place, str] = {}
        self._names: Counter[str] = Counter()
        self._problems: list[str] = []

    def graph(self) -> tuple[GraphDesc, dict[str, bytes]]:
        shown: dict[Place, str] = {}
        for index, command in self._model.commands.items():
            if isinstance(command, Dispatch):
                self._dispatch(words("commands", index), command)
            elif command.resource in self._sources:
                shown.setdefault(self._sources[command.resource], command.resource)
        if self._problems:
            raise ModelError(*self._problems)
        if not self._nodes:
            raise ModelError("Expected a command that dispatches an operator, got none.")
        unread = {place: name for place, name in self._last.items() if place not in self._read}
        inputs = [self._unique(name) for name, _ in self._inputs]
        outputs = list[str]()
        for place, name in (shown or unread).items():
            self._out_of.append(OutputEdge(*place, len(outputs)))
            outputs.append(self._unique(name))
        weights = {
            own: _contents(self._model, name)
            for own, (name, owned) in zip(inputs, self._inputs, strict=True)
            if owned
        }
        graph = GraphDesc(self._nodes, self._into, self._between, self._out_of, inputs, outputs)
        return graph, weights

    def _unique(self, name: str) -> str:
        while True:
            self._names[name] += 1
            number = self._names[name]
            if number == 1:
                return name
            name = f"{name}_{number}"

    def _dispatch(self, where: str, command: Dispatch) -> None:
        dispatchable = self._model.dispatchables[command.dispatchable]
        desc = dispatchable.desc
        if isinstance(desc, GraphOperator):
            self._problems.append(
                f"{where}: expected an operator, got a graph besides other commands: convert "
                "the graph alone."
            )
            return
        used = sum(node.name.partition(" #")[0] == dispatchable.name for node in self._nodes)
        name = f"{dispatchable.name} #{used + 1}" if used else dispatchable.name
        node = len(self._nodes)
        self._nodes.append(OperatorNode(desc, name))
        for bound in dispatchable.bound(command.bindings):
            at, resource, owned = bound.at, bound.source.name, bound.owned
            if bound.source.element_offset:
                self._problems.append(
                    f"{where}: {bound.info.name}: expected a resource from its first element on, "
                    f"got {short_repr(resource)} from element {bound.source.element_offset} on."
                )
            if bound.info.role is Role.OUTPUT:
                self._sources[resource] = node, at
                self._last[node, at] = resource
                continue
            place = None if owned else self._sources.get(resource)
            if place is None:
                index = self._inputs.setdefault((resource, owned), len(self._inputs))
                self._into.append(InputEdge(index, node, at))
            else:
                self._between.append(IntermediateEdge(*place, node, at, resource))
                self._read.add(place)
