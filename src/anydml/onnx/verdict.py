"""Where ONNX Runtime's DirectML provider runs a node: in a graph, alone, on the CPU, or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Final, Literal

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import InvalidDescriptorError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.releases import Runtime
from anydml.core.tensor import TensorDesc
from anydml.graphs.build import Expression, GraphBuilder
from anydml.onnx.contrib import DOMAIN
from anydml.onnx.lower.node import (
    Lowering,
    Operand,
    RefusedError,
    Result,
    UnfitError,
    UnsupportedError,
)
from anydml.onnx.nodes import CONTROL, Graph, Node, key_of
from anydml.onnx.read import load_onnx
from anydml.onnx.rows import Row
from anydml.onnx.table import HOST, SHADERS, formals, row_of, version_of
from anydml.onnx.types import DATA_TYPES, NO_NUMBERS, OBJECTS, Value
from anydml.ops._descriptor import Descriptor

Place = Literal["graph", "alone", "cpu", "refused"]

_SMALL: Final = 64
"""Elements of a constant that does not decide where a node runs."""

NO_GRAPH: Final = "the model has an If, Loop or Scan: the provider makes no graph of it"


@dataclass(eq=False)
class Judged:
    """A node, and where the provider runs it.

    Attributes
    ----------
    node : Node
        The node.
    place : str
        ``"graph"``, ``"alone"``, ``"cpu"`` or ``"refused"``.
    reason : str
        Why it is not part of a graph.
    code : str
        The kind of reason, for programs.
    row : Row or None
        The row of the table that `run` uses.
    version : int
        The version of the row that `run` uses.
    descriptors : list of Descriptor
        The DirectML operators that it becomes.
    violations : list of Violation
        The rules that they break at the feature level, with the name of the node.
    lowest : FeatureLevel or None
        The lowest level that accepts the operators; None if none does, or there are none.
    static : bool
        Whether all shapes and constant inputs are known, so that it can be compiled now.
    is_empty : bool
        Whether a tensor has no elements, so that it creates no operator.
    is_checked : bool
        Whether the verdict holds for every run: nothing that a run finds out decides it.
    """

    node: Node
    place: Place
    reason: str = ""
    code: str = ""
    row: Row | None = None
    version: int = 0
    descriptors: list[Descriptor] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    lowest: FeatureLevel | None = None
    static: bool = False
    is_empty: bool = False
    is_checked: bool = False

    @property
    def problems(self) -> list[str]:
        """Why a node is refused; empty if it is not."""
        if self.place != "refused":
            return []
        return [f"Node {item}" for item in self.violations] or [
            f"{self.node.label}: {self.reason}."
        ]

    @property
    def on_device(self) -> bool:
        """Whether a run computes it by DirectML operators."""
        has_operator = self.row is not None and self.row.lower is not None and not self.is_empty
        return has_operator and self.place != "refused"

    @property
    def is_on_host(self) -> bool:
        """Whether it needs no more than the shape of its input."""
        return self.row is not None and self.row.lower is None and self.place != "cpu"

    @property
    def is_on_cpu(self) -> bool:
        """Whether a run leaves it to ONNX Runtime."""
        return self.place != "refused" and not self.on_device and not self.is_on_host


def judge(
    graph: Graph, level: FeatureLevel = LATEST, exact: bool = False, runtime: Runtime | None = None
) -> list[Judged]:
    """Where each node of a cleaned-up model runs.

    Parameters
    ----------
    graph : Graph
        The model.
    level : FeatureLevel
        What the operators are checked against.
    exact : bool
        Whether a run uses exactly the versions for which the provider has a kernel. Otherwise a
        revision that only adds types uses the newest row that is not above it.
    runtime : Runtime, optional
        The release whose kernels count if `exact`; the last one by default.
    """
    missing = runtime.missing if runtime is not None and exact else frozenset[str]()
    control = any(node.operator in CONTROL and not node.domain for node in graph.nodes)
    judged = [
        _judged(node, graph, level, exact, control, _row_without(node, missing))
        for node in graph.nodes
    ]
    for item in judged:
        item.is_checked = _is_checked(item, graph)
    _keep_shapes_on_cpu(judged, graph)
    return judged


def _is_checked(item: Judged, graph: Graph) -> bool:
    """Whether nothing that a run finds out decides about a node."""
    if item.place == "refused" or (item.row is not None and item.row.lower is None):
        return True
    if item.on_device:
        return item.static
    if item.code in ("control_flow", "not_a_tensor"):  # on the CPU, whatever the shapes are
        return True
    values = [graph.values[name] for name in (*item.node.inputs, *item.node.outputs) if name]
    row = row_of(item.node)
    read = row.constants_at(item.node.version) if row is not None else ()
    decides = [name for i, name in enumerate(item.node.inputs) if name and i in read]
    return (
        all(value.sizes is not None and value.type not in NO_NUMBERS for value in values)
        and all(graph.values[name].data is not None for name in decides)
        and item.code != "does_not_fit"
    )


def _keep_shapes_on_cpu(judged: Sequence[Judged], graph: Graph) -> None:
    """Leave nodes to the CPU that compute from shapes and constants alone."""
    on_cpu: set[str] = set()
    for item in judged:
        inputs = [name for name in item.node.inputs if name]
        if item.code == "no_operator":
            on_cpu.update(item.node.outputs)
        elif item.place in ("graph", "alone") and any(name in on_cpu for name in inputs):
            read = item.row.constants_at(item.version) if item.row else ()
            others = [
                name
                for i, name in enumerate(item.node.inputs)
                if name and i not in read and not _is_small_constant(graph.values[name])
            ]
            if others and all(name in on_cpu for name in others):
                item.place, item.code = "cpu", "shape_arithmetic"
                item.reason = "it computes from shapes, which are on the CPU"
                on_cpu.update(item.node.outputs)


def _is_small_constant(value: Value) -> bool:
    return value.data is not None and value.data.size <= _SMALL


def _row_without(node: Node, missing: frozenset[str]) -> Row | None:
    """The row of a node without the kernels that a release does not have."""
    row = row_of(node)
    if row is None or not missing:
        return row
    versions = tuple(n for n in row.versions if f"{node.title}-{n}" not in missing)
    return replace(row, versions=versions) if versions else None


def _judged(
    node: Node, graph: Graph, level: FeatureLevel, exact: bool, control: bool, row: Row | None
) -> Judged:
    if node.misfit:
        return Judged(node, "alone", f"a run of it fails: {node.misfit}", "does_not_fit")
    inputs, outputs = graph.tensors(node.inputs), graph.tensors(node.outputs)
    strange, code = _without_elements(node, inputs, outputs)
    if strange:
        return Judged(node, "cpu", strange, code)
    if row is None and _has_shader(node, inputs):
        why = "a shader of the provider computes it, not a DirectML operator; a run uses the CPU"
        return Judged(node, "alone", why, "shader")
    unknown = _unknown(node, row_of(node))
    if unknown:
        return Judged(node, "refused", unknown, "unknown_operator")
    if row is None:
        why = f"the provider has no kernel for {node.title}"
        return Judged(node, "cpu", why, "no_kernel")
    version = version_of(row, node.version)
    registered = version == node.version or bool(node.domain)
    missing = (
        ""
        if registered
        else f"the provider has no kernel for version {node.version} of {node.title}, "
        f"only for {', '.join(map(str, row.versions))}"
    )
    if version is None or (missing and (exact or not _only_adds_types(node, version))):
        return Judged(node, "cpu", missing, "no_kernel_for_version")
    why = _types(node, row, version, inputs, outputs)
    if why:
        return Judged(node, "cpu", why, "no_kernel_for_type")
    why = row.query(node, inputs) if row.query is not None else ""
    if why:
        return Judged(node, "cpu", f"the provider does not support {why}", "not_supported")
    found = Judged(node, "graph", "", "", row, version)
    if missing:
        found.place, found.reason, found.code = "cpu", missing, "no_kernel_for_version"
    elif row.lower is None:
        found.place, found.code = "alone", "no_operator"
        found.reason = "no DirectML operator: the CPU writes its result"
    _lower(found, inputs, outputs, graph, level, exact)
    if missing and found.place == "refused":  # by the rules of an older version
        return Judged(node, "cpu", missing, "no_kernel_for_version")
    if found.place == "graph":
        alone, code = _why_alone(node, row, inputs, found, control)
        if alone:
            found.place, found.reason, found.code = "alone", alone, code
    return found


def _without_elements(
    node: Node, inputs: Sequence[Value | None], outputs: Sequence[Value | None]
) -> tuple[str, str]:
    """Why a node does not compute tensors of numbers, and the kind of reason."""
    if not node.domain and node.operator in CONTROL:
        why = f"{node.operator} has the CPU kernel, and the provider makes no graph of the model"
        return why, "control_flow"
    if not node.domain and node.operator in HOST:
        return f"{node.operator} is for sequences and optionals, not for tensors", "not_a_tensor"
    for value in (*inputs, *outputs):
        if value is not None and value.type in OBJECTS:
            return f"{value.name!r} is a {value.type}, not a tensor of numbers", "not_a_tensor"
    return "", ""


def _unknown(node: Node, row: Row | None) -> str:
    """Why no provider has an operator; empty if one may have it."""
    if node.schema is not None or node.domain == DOMAIN:
        return ""
    if row is not None and 1 in row.versions:
        return ""  # ONNX Runtime's own, of which ONNX has later versions or none
    names = _names_of(node.domain)
    if node.domain and not names:
        return (
            f"expected a function of the model, or an operator of ONNX or {DOMAIN}, got "
            f"{short_repr(node.title)}"
        )
    version = f"opset {node.opset}" if not node.domain else f"{node.domain} {node.opset}"
    return (
        f"{version} has no {short_repr(node.operator)} in the installed version of ONNX"
        f"{_suggestion(node.operator, names)}"
    )


@cache
def _names_of(domain: str) -> frozenset[str]:
    """The operators of a domain that the `onnx` package defines."""
    known = load_onnx().defs.get_all_schemas()
    return frozenset(schema.name for schema in known if schema.domain == domain)


_suggestion = lru_cache(64)(did_you_mean)


def _has_shader(node: Node, inputs: Sequence[Value | None]) -> bool:
    """Whether the provider computes a node on the GPU without a DirectML operator."""
    versions, types = SHADERS.get(node.title, ((), ()))
    kinds = [value.type for value in inputs[:1] if value is not None and value.type]
    return node.version in versions and (not types or all(kind in types for kind in kinds))


def _only_adds_types(node: Node, version: int) -> bool:
    """Whether a node of a newer revision is one of a version: no new attributes or inputs."""
    defs = load_onnx().defs
    try:
        old = defs.get_schema(node.operator, version, node.domain)
    except defs.SchemaError:
        return False
    return (
        set(node.attributes) <= set(old.attributes)
        and len(node.inputs) <= old.max_input
        and len(node.outputs) <= old.max_output
    )


def _types(
    node: Node, row: Row, version: int, inputs: Sequence[Any], outputs: Sequence[Any]
) -> str:
    """Why the types of a node have no kernel."""
    accepted = row.types_at(version)
    for known, values in zip(formals(node), (inputs, outputs), strict=True):
        for i, value in enumerate(values):
            if value is None:
                continue
            name = known[min(i, len(known) - 1)].rstrip("?*") if known else "T"
            types = accepted.get(name, ("all",))
            if value.type and value.type not in types and types != ("all",):
                return (
                    f"the provider has no kernel for {value.type} in {value.name!r}, only for "
                    f"{', '.join(types)}"
                )
    return ""


def _why_alone(
    node: Node, row: Row, inputs: Sequence[Value | None], found: Judged, control: bool
) -> tuple[str, str]:
    if not row.graph:
        return f"{node.title} is never part of a graph", "never_in_a_graph"
    if row.graph == "pair" and len(inputs) != 2:
        return f"{node.title} is part of a graph only with exactly 2 inputs", "not_two_inputs"
    if found.is_empty:
        return "a tensor is empty, and an operator has none", "empty_tensor"
    for i in row.constants_at(found.version):
        if i < len(inputs) and (value := inputs[i]) is not None and value.data is None:
            return f"input {i} ({value.name!r}) is not constant", "input_not_constant"
    if not found.static:
        return "a shape is not known before the run", "shape_not_known"
    return (NO_GRAPH, "control_flow") if control else ("", "")


def _lower(
    found: Judged,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    graph: Graph,
    level: FeatureLevel,
    exact: bool,
) -> None:
    """Describe the operators of a node, if everything is known."""
    row = found.row
    assert row is not None
    values = [value for value in (*inputs, *outputs) if value is not None]
    constant = all(
        i >= len(inputs) or (value := inputs[i]) is None or value.data is not None
        for i in row.constants_at(found.version)
    )
    known = all(value.sizes is not None and value.type in DATA_TYPES for value in values)
    found.is_empty = any(0 in (value.shape or ()) for value in values)
    if not known or not constant or row.lower is None or found.is_empty:
        return
    why = "DirectML refuses an operator (E_INVALIDARG)"
    made = _described(found, inputs, outputs, graph, level, exact)
    if isinstance(made, RefusedError) and exact:
        why = "the provider fails to make its kernel (E_INVALIDARG)"
        found.violations = _named(found.node, [Violation(made.path, made.rule, made.got)])
    elif isinstance(made, UnsupportedError):
        found.place, found.reason = "cpu", str(made)
        found.code = "does_not_fit" if isinstance(made, UnfitError) else "not_supported"
        found.row = None
        return
    else:
        found.descriptors, violations, found.lowest = made
        found.violations = _named(found.node, violations)
    if found.violations:
        found.place, found.code = "refused", "refused"
        found.reason = why
        return
    found.static = True


Described = tuple[list[Descriptor], list[Violation], FeatureLevel | None] | UnsupportedError
"""The operators of a node, the rules that they break and the lowest level that accepts them, or why
there are none."""


def _described(
    found: Judged,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    graph: Graph,
    level: FeatureLevel,
    exact: bool,
) -> Described:
    """Describe the operators of a node; those of nodes that are alike are the same objects."""
    alike = key_of(found.node, inputs, outputs)
    key = None if alike is None else (alike, found.version, level, exact)
    before: Described | None = graph.described.get(key)
    if before is not None:
        return before
    builder = GraphBuilder()
    made: Described
    try:
        source = once(lambda value: builder.input(value.name, tensor_desc(value)))
        descriptors, _ = lower_node(found, inputs, outputs, builder, source, exact, in_place=exact)
    except UnsupportedError as error:
        made = error
    except InvalidDescriptorError as error:
        made = [], [*error.violations], None
    else:
        levels = [desc.minimum_level() for desc in descriptors]
        known = [item for item in levels if item is not None]
        lowest = max(known) if levels and len(known) == len(levels) else None
        wrong = descriptors if lowest is None or lowest > level else ()
        violations = [item for desc in wrong for item in desc.violations(level)]
        made = descriptors, violations, lowest
    if key is not None:
        graph.described[key] = made
    return made


def _named(node: Node, violations: Sequence[Violation]) -> list[Violation]:
    return [Violation(f"{node.name}.{item.path}", item.rule, item.got) for item in violations]


def once(make: Callable[[Value], Expression]) -> Callable[[Value], Expression]:
    """Make the expression of each value once, by its name."""
    known: dict[str, Expression] = {}

    def source(value: Value) -> Expression:
        if value.name not in known:
            known[value.name] = make(value)
        return known[value.name]

    return source


def tensor_desc(value: Value, **options: Any) -> TensorDesc:
    """The packed tensor of a value."""
    return TensorDesc(DATA_TYPES[value.type], value.sizes or (1,), **options)


def lower_node(
    found: Judged,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    builder: GraphBuilder,
    source: Any,
    exact: bool,
    label: Any = str,
    in_place: bool = False,
) -> tuple[list[Descriptor], list[Expression | None]]:
    """Add the operators of a node to a graph.

    Parameters
    ----------
    found : Judged
        The node.
    inputs, outputs : sequence of Value or None
        Its tensors, whose sizes are known.
    builder : GraphBuilder
        The graph.
    source : callable
        The expression of a value that the node reads.
    exact : bool
        Whether mistakes of the provider are repeated.
    label : callable
        Makes the name of the next operator.
    in_place : bool
        Whether outputs that the provider puts in the memory of inputs replace these.

    Returns
    -------
    descriptors : list of Descriptor
        The operators.
    results : list of Expression or None
        The outputs.
    """
    assert found.row is not None
    assert found.row.lower is not None
    operands = [
        None
        if value is None
        else Operand(value.type, value.sizes or (), value.data, lambda value=value: source(value))  # type: ignore[misc]
        for value in inputs
    ]
    results = [
        Result("", "", ()) if value is None else Result(value.name, value.type, value.sizes or ())
        for value in outputs
    ]
    lowering = Lowering(
        builder, found.node.attributes, found.version, operands, results, exact, label,
        in_place, found.descriptors,
    )  # fmt: skip
    try:
        made = found.row.lower(lowering)
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError) as error:
        if isinstance(error, InvalidDescriptorError):
            raise
        # Attributes that are missing or do not fit the tensors.
        raise UnfitError(f"its attributes do not fit its inputs ({error})") from error
    found_outputs = list(made) if isinstance(made, tuple | list) else [made]
    present = [result is not None for result in found_outputs]
    if any(value is not None and not any(present[i : i + 1]) for i, value in enumerate(outputs)):
        raise UnfitError("it has an output that the operator has not")
    # Outputs with strides are the bytes of the packed tensor in the model.
    for i, (result, value) in enumerate(zip(found_outputs, outputs, strict=False)):
        if result is not None and value is not None and result.desc.strides is not None:
            found_outputs[i] = builder.reinterpret(result, None, value.sizes or (1,))
    return lowering.descriptors, found_outputs
