"""`OnnxModel`: an ONNX model, what DirectML makes of it, and how it runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anydml.core._json import counted, short_repr
from anydml.core.errors import ArgumentTypeError, ModelError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.releases import Runtime, runtime_of
from anydml.graphs.desc import GraphDesc
from anydml.onnx.cleanup import clean
from anydml.onnx.cpu import refuse_without_kernel
from anydml.onnx.nodes import Graph, Removed
from anydml.onnx.partition import Partition, partitions
from anydml.onnx.read import Source, read_bytes, read_file, read_proto
from anydml.onnx.table import infer_without_schema
from anydml.onnx.types import OBJECTS, SEQUENCE, Value
from anydml.onnx.verdict import Judged, judge
from anydml.ops._descriptor import Descriptor

if TYPE_CHECKING:
    from anydml.devices.device import Device
    from anydml.onnx.run import CompiledModel


@dataclass(frozen=True)
class OnnxNode:
    """A node of an ONNX model.

    Attributes
    ----------
    name : str
        Its name, or that of its first output.
    operator : str
        ONNX's operator, with its domain if that is not ai.onnx.
    place : str
        Where ONNX Runtime's DirectML provider runs it: ``"graph"``, ``"alone"`` (an operator of its
        own), ``"cpu"``, or ``"refused"`` (DirectML returns E_INVALIDARG).
    reason : str
        Why it is not part of a graph; empty if it is.
    descriptors : tuple of Descriptor
        The DirectML operators that it becomes, if all its shapes are known.
    violations : tuple of Violation
        The rules that they break at the latest feature level.
    """

    name: str
    operator: str
    place: str
    reason: str
    descriptors: tuple[Descriptor, ...]
    violations: tuple[Violation, ...]


class OnnxModel:
    """An ONNX model as ONNX Runtime's DirectML provider takes it; made by `read_onnx`.

    Attributes
    ----------
    name : str
        The name of the file.
    removed : tuple of Removed
        The nodes that ONNX Runtime removes before it places the others.
    """

    def __init__(
        self,
        source: Source,
        shapes: Mapping[str, Sequence[int]],
        dims: Mapping[str, int],
        exact: bool,
        runtime: Runtime | None = None,
    ) -> None:
        self.name = source.name
        self.exact = exact
        self.runtime = runtime
        self.source = source
        self.graph: Graph = clean(source, shapes, dims, infer_without_schema)

    @property
    def removed(self) -> tuple[Removed, ...]:
        """The nodes that ONNX Runtime removes before it places the others, with the reasons."""
        return tuple(self.graph.removed)

    @cached_property
    def verdicts(self) -> list[Judged]:
        """Where the provider runs the nodes, at the latest feature level."""
        return self._judged(LATEST, True)

    def verdicts_at(self, level: FeatureLevel) -> list[Judged]:
        """Where the provider runs the nodes at a feature level."""
        return self.verdicts if level is LATEST else self._judged(level, True)

    def judged_for_run(self, level: FeatureLevel) -> list[Judged]:
        """How a run computes the nodes at a feature level."""
        return self.verdicts_at(level) if self.exact else self._judged(level, False)

    def _judged(self, level: FeatureLevel, exact: bool) -> list[Judged]:
        found = judge(self.graph, level, exact, self.runtime)
        refuse_without_kernel(found, self.graph)
        return found

    @cached_property
    def nodes(self) -> tuple[OnnxNode, ...]:
        """The nodes in the order of the file, without those that are removed."""
        return tuple(
            OnnxNode(
                item.node.name, item.node.title, item.place, item.reason,
                tuple(item.descriptors), tuple(item.violations),
            )
            for item in self.verdicts
        )  # fmt: skip

    @cached_property
    def partitions(self) -> list[Partition]:
        """The parts of the model that become one graph each."""
        return partitions(self.verdicts, self.graph, True, in_place=True)

    @property
    def graphs(self) -> tuple[GraphDesc, ...]:
        """The graphs that the provider makes."""
        return tuple(part.desc for part in self.partitions)

    @property
    def inputs(self) -> dict[str, Value]:
        """The inputs by name."""
        return {value.name: value for value in self.graph.inputs}

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(self.graph.outputs)

    def names(self) -> list[str]:
        """The names of all tensors of numbers that nodes compute, then further outputs."""
        nodes = (node for node in self.graph.nodes if not node.is_inside)
        found = {name: name for node in nodes for name in node.outputs if name}
        kinds = {name: self.graph.values[unique].type
                 for name, unique in (found | self.graph.outputs).items()}  # fmt: skip
        return [name for name, kind in kinds.items() if kind not in OBJECTS]

    def producer(self, name: str) -> str:
        """The node that computes a tensor, as ``node 'conv1' (Conv)``; empty if none does."""
        unique = self.graph.outputs.get(name, self.graph.names.get(name, name))
        return next(
            (
                f"node {short_repr(node.name)} ({node.title})"
                for node in self.graph.nodes
                if unique in node.outputs
            ),
            "",
        )

    def free_dimensions(self) -> list[str]:
        """List the sizes that must be known before every shape is, for a message."""
        return [
            f"input {short_repr(value.name)} has free dimensions "
            + ", ".join("?" if s is None else str(s) for s in value.shape if not isinstance(s, int))
            if value.shape is not None
            else f"input {short_repr(value.name)} has no shape"
            for value in self.graph.inputs
            if value.sizes is None and value.type != SEQUENCE
        ]

    def input_problems(self) -> list[str]:
        """List why no arrays can be bound to the inputs, and what to do."""
        free = [f"{text[0].upper()}{text[1:]}." for text in self.free_dimensions()]
        hint = [f"Give {self.size_options()} (dims= or shapes=)."] if free else []
        types = [f"Input {short_repr(value.name)}: expected a type of ONNX, got none."
                 for value in self.graph.inputs if not value.type]  # fmt: skip
        return [*free, *hint, *types]

    def memory_problems(self, copies: int = 1) -> list[str]:
        """List the reason if copies of all tensors exceed the memory limit of `read_onnx`."""
        size, limit = copies * self._nbytes, self.source.memory_limit
        rule = f"Expected tensors of at most {limit} bytes together (--memory-limit), got {size}."
        return [rule] if size > limit else []

    @cached_property
    def _nbytes(self) -> int:
        return sum(value.nbytes for value in self.graph.values.values())

    def size_options(self) -> str:
        """The options that give free dimensions sizes, as ``--dim batch=1 or --shape x=1,3``."""
        waiting = [value for value in self.graph.inputs
                   if value.sizes is None and value.type != SEQUENCE]  # fmt: skip
        shapes = [(value.name, value.shape or (None, 3, 224, 224)) for value in waiting]
        names = {size: None for _, shape in shapes for size in shape if isinstance(size, str)}
        dims = " ".join(f"--dim {shlex.quote(f'{name}=1')}" for name in names)
        sizes = [
            shlex.quote(f"{name}={','.join(str(s if isinstance(s, int) else 1) for s in shape)}")
            for name, shape in shapes
        ]
        shape = " ".join(f"--shape {text}" for text in sizes)
        complete = all(None not in (value.shape or (None,)) for value in waiting)
        return f"{dims} or {shape}" if complete else shape

    def check(self, feature_level: FeatureLevel | str = LATEST) -> list[Violation]:
        """Every rule that an operator breaks, with the name of its node.

        Parameters
        ----------
        feature_level : FeatureLevel or str
            As ``"5_0"``.
        """
        level = FeatureLevel.parse(feature_level)
        found = self.verdicts_at(level)
        return [violation for item in found for violation in item.violations]

    def compile(self, device: Device, outputs: Sequence[str] = ()) -> CompiledModel:
        """The model, ready to run.

        Parameters
        ----------
        device : Device
            Where it runs. Nodes that the provider leaves to the CPU are run by ONNX Runtime, which
            must be installed then (``pip install 'anydml[onnxruntime]'``).
        outputs : sequence of str, optional
            Further tensors of the model that a run returns.

        Raises
        ------
        ModelError
            A dimension is free, DirectML refuses a node, or a node cannot run on this machine; the
            message has all of them.
        """
        from anydml.onnx.run import CompiledModel

        return CompiledModel(self, device, outputs)

    def __repr__(self) -> str:
        return f"<OnnxModel {self.name!r}: {counted(len(self.graph.nodes), 'node')}>"


def load_model(
    model: Any,
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
    exact: bool,
    memory_limit: int,
    runtime: str | None = None,
) -> OnnxModel:
    """The model in a file, in bytes or of a message; see `anydml.read_onnx`."""
    release = None if runtime is None else runtime_of(runtime)
    if isinstance(model, bytes):
        source = read_bytes(model, "model", None, memory_limit)
    elif isinstance(model, str | Path):
        source = read_file(model, memory_limit)
    elif hasattr(model, "graph") and hasattr(model, "opset_import"):
        source = read_proto(model, "model", None, memory_limit)
    else:
        raise ArgumentTypeError(
            f"model: expected a path, bytes or an onnx.ModelProto, got {short_repr(model)}"
        )
    return OnnxModel(source, _sizes("shapes", shapes), _counts("dims", dims), exact, release)


def _sizes(what: str, given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    _check_mapping(what, given)
    for name, sizes in given.items():
        if isinstance(sizes, str) or not isinstance(sizes, Iterable):
            raise ArgumentTypeError(
                f"{what}[{name!r}]: expected a sequence of integers, got {short_repr(sizes)}"
            )
    return {name: tuple(_counts(what, dict.fromkeys([name], n))[name] for n in sizes)
            for name, sizes in given.items()}  # fmt: skip


def _check_mapping(what: str, given: Any) -> None:
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"{what}: expected a mapping by name, got {short_repr(given)}")


def _counts(what: str, given: Mapping[str, int]) -> dict[str, int]:
    _check_mapping(what, given)
    for name, size in given.items():
        if isinstance(size, bool) or not hasattr(size, "__index__") or not 0 <= size < 2**32:
            raise ModelError(f"{what}[{name!r}]: expected an integer in 0..2^32 - 1, got {size!r}.")
    return {name: int(size) for name, size in given.items()}
