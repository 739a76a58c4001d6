"""Nodes as they are placed: functions expanded, constants folded, types and shapes inferred.

ONNX Runtime rewrites a model before it assigns nodes to providers. This module makes the rewrites
that decide where nodes run: it folds constants, removes Identity and Dropout, replaces an If with
a constant condition by its branch, and expands functions. One pass in the order of the file does
all of it, because a shape that depends on a constant is known once the constant is. The nodes in
bodies of If, Loop and Scan are rewritten alike; a body that runs several times is read again where
the shapes of its results differ from those of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ModelError
from anydml.onnx.control import infer_bodies
from anydml.onnx.folding import Folding
from anydml.onnx.nodes import Graph, Node, Removed, key_of
from anydml.onnx.order import in_order, names_read, outer_names, with_inner
from anydml.onnx.read import Source, check_opsets, constants_of, load_onnx, subgraphs
from anydml.onnx.shapes import infer, node_errors, type_of, value_of
from anydml.onnx.types import SEQUENCE, Value, is_plain

MOST_NODES: Final = 100_000
"""Nodes of a model with its functions expanded."""

_LEAST_NODES: Final = 10_000
_BYTES_OF_NODE: Final = 24
"""Functions may make this many nodes, or one for each of these bytes of the file."""

_FEW_OPERANDS: Final = 16
"""Inputs and outputs of a node beyond which each counts as a node."""

_MOST_EXPANSIONS: Final = 50
"""Functions that call each other."""

_MOST_GUESSES: Final = 3
"""How deep bodies are nested that are read again with other shapes."""

_TOO_DEEP: Final = (
    f"Expected functions that call each other at most {_MOST_EXPANSIONS} deep, got more (or one "
    "that calls itself)."
)


def clean(
    source: Source, shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int], schemaless: Any
) -> Graph:
    """The nodes of a model that are placed, and the types and shapes of all values.

    Parameters
    ----------
    source : Source
        The model.
    shapes : mapping
        Shapes of inputs.
    dims : mapping
        Sizes of free dimensions.
    schemaless : callable
        Infers the outputs of a node whose operator the `onnx` package does not define, from its
        inputs; returns None for an operator that is not known.
    """
    return _Cleaner(source, shapes, dims, schemaless).cleaned()


Key = tuple[str, str, str]
Scope = dict[str, str]
"""For each name of a graph or function body, the unique name of the value."""


class _Cleaner:
    def __init__(
        self,
        source: Source,
        shapes: Mapping[str, Sequence[int]],
        dims: Mapping[str, int],
        schemaless: Any,
    ) -> None:
        self._onnx = load_onnx()
        self._source = source
        self._shapes = dict(shapes)
        self._dims = dict(dims)
        self._schemaless = schemaless
        self._graph = Graph(functions=source.proto.functions)
        self._schemas: dict[tuple[str, int, str], Any] = {}
        self._functions = {_key(item, item.name): item for item in source.proto.functions}
        self._kept: set[str] = set()
        self._read: set[str] = set()
        self._expanded = 0
        file = source.proto
        most = max(len(file.graph.node), _LEAST_NODES, file.ByteSize() // _BYTES_OF_NODE)
        self._most_nodes = min(most, MOST_NODES)
        self._problems: list[str] = []
        self._repeats: dict[str, int] = {}
        self._bodies: dict[Hashable, Any] = {}
        self._inferred: dict[Hashable, Any] = {}
        self._results: dict[str, list[str]] = {}
        self._inside = 0
        self._folding = Folding(self._graph.values, source.memory_limit)

    def cleaned(self) -> Graph:
        graph, found = self._source.proto.graph, self._graph
        scope: Scope = {}
        for name, value in self._source.constants.items():
            found.values[name] = value
            scope[name] = name
        used: set[str] = set()
        for item in graph.input:
            if item.name in self._source.constants:
                continue
            if item.name in scope:
                raise ModelError(f"Input {short_repr(item.name)}: expected a unique name.")
            value = self._input(item, used)
            found.values[item.name] = value
            found.inputs.append(value)
            scope[item.name] = item.name
        names = {value.name for value in found.inputs}
        problems = [
            *_unknown("input", self._shapes, names),
            *_unknown("free dimension", self._dims, used),
        ]
        if problems:
            raise ModelError(*problems)
        self._check_functions()
        self._kept = {item.name for item in graph.output}
        self._read = self._kept | names_read(graph)
        declared = {item.name: item for item in (*graph.value_info, *graph.output)}
        self._body(graph.node, scope, self._source.opsets, "", 0, declared)
        if self._problems:
            raise ModelError(*self._problems)
        for item in graph.output:
            if item.name not in scope:
                raise ModelError(
                    f"Output {short_repr(item.name)}: expected a node that computes it."
                )
            found.outputs[item.name] = scope[item.name]
        found.names = {name: unique for name, unique in scope.items() if name != unique}
        self._drop_unread()
        return found

    def _check_functions(self) -> None:
        """Raise if the functions of the model have too many nodes when they are expanded."""
        known: dict[Key, tuple[int, int]] = {}

        def extent(nodes: Sequence[Any], above: int) -> tuple[int, int]:
            """The nodes that some nodes become, and how deep their functions call each other."""
            count, depth = 0, 0
            for node in with_inner(nodes):
                count += _weight(node)
                key = _key(node, node.op_type)
                if key in self._functions:
                    if above == _MOST_EXPANSIONS:
                        raise ModelError(_TOO_DEEP)
                    if key not in known:
                        known[key] = extent(self._functions[key].node, above + 1)
                    count += known[key][0]
                    depth = max(depth, 1 + known[key][1])
            if above + depth > _MOST_EXPANSIONS:
                raise ModelError(_TOO_DEEP)
            return count, depth

        nodes = self._source.proto.graph.node
        self._count(len(nodes))
        self._count(extent(nodes, 0)[0])

    def _count(self, count: int) -> None:
        """Raise if there are too many nodes: those of the file, or those that functions make."""
        if count > self._most_nodes:
            raise ModelError(
                f"Expected at most {self._most_nodes} nodes with functions expanded, got more."
            )

    def _input(self, item: Any, used: set[str]) -> Value:
        value = value_of(item.name, item.type)
        given = self._shapes.get(item.name)
        if given is not None:
            if value.shape is not None and len(value.shape) != len(given):
                raise ModelError(
                    f"Input {short_repr(item.name)}: expected {len(value.shape)} sizes, got "
                    f"{len(given)} ({short_repr(tuple(given))})."
                )
            for i, (size, new) in enumerate(zip(value.shape or given, given, strict=True)):
                if value.shape is not None and isinstance(size, int) and size != new:
                    raise ModelError(
                        f"Input {short_repr(item.name)}: expected {size} as size {i}, got {new}."
                    )
            for size, new in zip(value.shape or (), given, strict=bool(value.shape)):
                if isinstance(size, str):
                    used.add(size)
                    if self._dims.setdefault(size, new) != new:
                        raise ModelError(
                            f"Input {short_repr(item.name)}: expected {self._dims[size]} as "
                            f"{size}, got {new}."
                        )
            value.shape = tuple(given)
        elif value.shape is not None:
            used |= {size for size in value.shape if isinstance(size, str)}
            return self._declared(item)
        return value

    def _body(
        self,
        nodes: Iterable[Any],
        scope: Scope,
        opsets: Mapping[str, int],
        prefix: str,
        depth: int,
        declared: Mapping[str, Any],
    ) -> None:
        nodes = list(nodes)
        self._expanded += sum(map(_weight, nodes))
        self._count(self._expanded)
        for proto in in_order(nodes):
            with node_errors(proto.name or next(iter(proto.output), ""), proto.op_type):
                self._node(proto, scope, opsets, prefix, depth, declared)

    def _node(
        self,
        proto: Any,
        scope: Scope,
        opsets: Mapping[str, int],
        prefix: str,
        depth: int,
        declared: Mapping[str, Any],
    ) -> None:
        first = next((name for name in proto.output if name), "")
        label = f"{prefix}/{proto.name or first}" if prefix else proto.name or first
        inputs = []
        for name in proto.input:
            if name and name not in scope:
                raise ModelError(
                    f"Node {short_repr(label)} ({proto.op_type}): expected an input that another "
                    f"node computes, got {short_repr(name)} (a cycle, or a value that does not "
                    "exist)."
                )
            inputs.append(scope[name] if name else "")
        node = self._described(proto, label, inputs, opsets)
        for name in proto.output:
            if name and name in scope and not prefix:
                raise ModelError(
                    f"Node {short_repr(label)} ({proto.op_type}): expected outputs with unique "
                    f"names, got {short_repr(name)} twice."
                )
        if (
            self._alias(node, scope)
            or self._branch(node, scope, opsets, label, depth)
            or self._expand(node, scope, opsets, label, depth)
        ):
            return
        known = self._control(node, scope, opsets, depth) if node.has_subgraphs else None
        node.outputs = [self._define(name, scope, prefix) for name in proto.output]
        values = self._infer(node, declared, known)
        if self._fold_node(node, values):
            return
        self._graph.nodes.append(node)

    def _define(self, name: str, scope: Scope, prefix: str) -> str:
        if not name:
            return ""
        base = unique = f"{prefix}/{name}" if prefix else name
        while unique in self._graph.values:
            self._repeats[base] = self._repeats.get(base, 0) + 1
            unique = f"{base}'{self._repeats[base]}"
        scope[name] = unique
        return unique

    def _described(
        self, proto: Any, label: str, inputs: list[str], opsets: Mapping[str, int]
    ) -> Node:
        domain = _domain(proto.domain)
        opset = opsets.get(domain, 1)
        schema = self._schema(proto.op_type, opset, domain)
        version = schema.since_version if schema else 1
        attributes = {item.name: self._attribute(item, label) for item in proto.attribute}
        return Node(
            label, proto.op_type, domain, version, opset, inputs, list(proto.output), proto,
            schema, attributes, opsets, is_inside=self._inside > 0,
        )  # fmt: skip

    def _schema(self, operator: str, opset: int, domain: str) -> Any:
        """The schema of an operator; None if it has none, or a deprecated one."""
        key = operator, opset, domain
        if key not in self._schemas:
            try:
                schema = self._onnx.defs.get_schema(*key)
            except self._onnx.defs.SchemaError:
                schema = None
            self._schemas[key] = None if schema is None or schema.deprecated else schema
        return self._schemas[key]

    def _attribute(self, item: Any, label: str) -> Any:
        kinds = self._onnx.AttributeProto
        if item.type == kinds.TENSOR:
            return self._source.array(item.t, f"Node {short_repr(label)}: {item.name}")
        if item.type == kinds.SPARSE_TENSOR:
            where = f"Node {short_repr(label)}: {item.name}"
            return self._source.sparse_array(item.sparse_tensor, where)
        try:
            value = self._onnx.helper.get_attribute_value(item)
            if item.type == kinds.STRINGS:
                return [text.decode() for text in value]
            value = value.decode() if isinstance(value, bytes) else value
        except ValueError as error:
            raise ModelError(f"Node {short_repr(label)}: {item.name}: {error}.") from None
        return list(value) if item.type in (kinds.INTS, kinds.FLOATS) else value

    # What is removed

    def _remove(self, node: Node, why: str) -> None:
        self._graph.removed.append(Removed(node.name, node.title, why))

    def _alias(self, node: Node, scope: Scope) -> bool:
        """Remove a node whose output is its input."""
        if node.domain or node.operator not in ("Identity", "Dropout"):
            return False
        if not node.inputs or not node.outputs:
            return False
        if node.operator == "Dropout":
            if any(name in self._read for name in node.outputs[1:] if name):
                return False
            training = self._graph.values.get(node.inputs[2]) if len(node.inputs) > 2 else None
            if training is not None and (training.data is None or training.data.any()):
                return False
        if node.outputs[0] in self._kept or not node.inputs[0]:
            return False
        scope[node.outputs[0]] = node.inputs[0]
        self._remove(node, "its output is its input")
        return True

    def _branch(
        self, node: Node, scope: Scope, opsets: Mapping[str, int], label: str, depth: int
    ) -> bool:
        """Replace an If with a constant condition by its branch."""
        if node.domain or node.operator != "If" or not any(node.inputs[:1]):
            return False
        condition = self._graph.values[node.inputs[0]].data
        if condition is None or condition.size != 1:
            return False
        which = "then_branch" if condition.reshape(()).item() else "else_branch"
        body, inner = self._opened(node, which, (), len(node.outputs), scope)
        self._remove(node, f"its condition is constant: the {which} takes its place")
        self._inline(body.node, [o.name for o in body.output], node.outputs, scope, inner, opsets,
                     label, depth)  # fmt: skip
        return True

    def _opened(
        self,
        node: Node,
        which: str,
        inputs: Sequence[Value | None] | None,
        outputs: int,
        scope: Scope,
    ) -> tuple[Any, Scope]:
        """A body of a node, and its names: those around it, its constants and its inputs."""
        body, inner = node.attributes.get(which), dict(scope)
        if not isinstance(body, self._onnx.GraphProto):
            raise ModelError(f"{node.label}: expected a {which}.")
        constants = constants_of(self._source, body)
        free = [self._declared(item) for item in body.input if item.name not in constants]
        inputs = free if inputs is None else inputs
        if (len(free), len(body.output)) != (len(inputs), outputs):
            raise ModelError(
                f"{node.label}: expected a {which} of {len(inputs)} inputs and {outputs} outputs, "
                f"got {len(free)} and {len(body.output)}."
            )
        for value, given in zip(free, inputs, strict=True):
            if given is not None and given.type:
                value.type, value.proto = given.type, given.proto
                value.shape = value.shape if given.shape is None else given.shape
        for value in (*constants.values(), *free):
            value.name = self._define(value.name, inner, node.name)
            self._graph.values[value.name] = value
        return body, inner

    def _declared(self, item: Any) -> Value:
        """A value as a file describes it, with the sizes of free dimensions that are given."""
        value = value_of(item.name, item.type)
        if value.shape is not None:
            value.shape = tuple(
                self._dims.get(s, s) if isinstance(s, str) else s for s in value.shape
            )
        return value

    def _control(
        self, node: Node, scope: Scope, opsets: Mapping[str, int], depth: int
    ) -> list[Value]:
        """Add the nodes of the bodies of a node, and infer its outputs from them."""
        node.captured = list(dict.fromkeys(n for n in outer_names(node.proto) if n in scope))
        given = self._graph.tensors(node.inputs)
        node.inputs = [*node.inputs, *(scope[name] for name in node.captured)]
        results = self._results.setdefault(node.name, [])

        def made(which: str, inputs: Any, outputs: int) -> list[Value]:
            body, inner = self._opened(node, which, inputs, outputs, scope)
            names = [item.name for item in body.output]
            found: Scope = {}
            self._inside += 1
            self._inline(body.node, names, names, found, inner, opsets, node.name, depth)
            self._inside -= 1
            results.extend(found.values())
            return [self._graph.values[found[name]] for name in names]

        return infer_bodies(node, given, made, self._mark, self._inside < _MOST_GUESSES)

    def _mark(self) -> Callable[[], None]:
        """Return a function that undoes what has been added to the graph since."""
        graph, before = self._graph, (self._expanded, self._source.taken)
        lists: list[list[Any]] = [graph.nodes, graph.removed, self._problems]
        sizes, known = [*map(len, lists)], len(graph.values)

        def undo() -> None:
            self._expanded, self._source.taken = before
            for items, size in zip(lists, sizes, strict=True):
                del items[size:]
            for name in [*graph.values][known:]:
                del graph.values[name]

        return undo

    def _inline(
        self,
        nodes: Iterable[Any],
        results: Sequence[str],
        outputs: Sequence[str],
        scope: Scope,
        inner: Scope,
        opsets: Mapping[str, int],
        label: str,
        depth: int,
    ) -> None:
        """Add the nodes of a body; `results` of the body are `outputs` of the node."""
        if depth >= _MOST_EXPANSIONS:
            raise ModelError(
                f"Node {short_repr(label)}: expected functions and branches that are nested at "
                f"most {_MOST_EXPANSIONS} deep, got more."
            )
        self._body(nodes, inner, opsets, label, depth + 1, {})
        for result, output in zip(results, outputs, strict=True):
            if not output:
                continue
            if result not in inner:
                raise ModelError(
                    f"Node {short_repr(label)}: expected a body that computes {short_repr(result)}."
                )
            scope[output] = inner[result]

    def _expand(
        self, node: Node, scope: Scope, opsets: Mapping[str, int], label: str, depth: int
    ) -> bool:
        """Replace a function of the model, or of the standard, by its body."""
        values = self._graph.tensors(node.inputs)
        called, alike = _key(node.proto, node.operator), key_of(node, values)
        if called not in self._functions and (node.schema is None or self._is_known(node)):
            return False
        key = alike and (called, alike)
        if key is None or key not in self._bodies:
            self._bodies[key] = self._called(node, self._functions.get(called))
        if self._bodies[key] is None:
            return False
        body, nodes, imported = self._bodies[key]
        inner = {
            name: unique for name, unique in zip(body.input, node.inputs, strict=False) if unique
        }
        if node.schema is not None:  # a body of the standard need not say what it uses
            imported = {"": self._onnx.defs.onnx_opset_version(), **opsets, **imported}
        count = len(node.proto.output)
        if count > len(body.output):
            raise ModelError(
                f"{node.label}: expected at most {len(body.output)} outputs (those of the "
                f"function), got {count}."
            )
        self._remove(node, "a function: its body takes its place")
        self._inline(nodes, list(body.output)[:count], list(node.proto.output), scope, inner,
                     imported or opsets, label, depth)  # fmt: skip
        return True

    def _called(self, node: Node, body: Any) -> tuple[Any, list[Any], dict[str, int]] | None:
        """The body of a function, of the standard if it is None, and its nodes for a call."""
        body = self._standard_body(node) if body is None else body
        if body is None:
            return None
        given = {item.name: item for item in node.proto.attribute}
        defaults = {item.name: item for item in body.attribute_proto}
        if node.schema is not None:
            kinds = self._onnx.AttributeProto
            defaults |= {
                name: item.default_value
                for name, item in node.schema.attributes.items()
                if item.default_value.type != kinds.UNDEFINED
            }
        present = dict(zip(body.input, node.inputs, strict=False))
        left_out = {name for name in body.input if not present.get(name)}
        nodes = list(body.node)
        if left_out or any(map(_depends_on_call, nodes)):
            nodes = [self._instance(item, {**defaults, **given}) for item in nodes]
        for item in nodes if left_out else ():
            item.input[:] = ["" if name in left_out else name for name in item.input]
        imported = {_domain(item.domain): item.version for item in body.opset_import}
        check_opsets(imported)
        return body, nodes, imported

    def _is_known(self, node: Node) -> bool:
        if node.title == "AffineGrid":  # whose body is wrong for sizes of 1
            return True
        return bool(self._schemaless(node, None))

    def _standard_body(self, node: Node) -> Any:
        schema = node.schema
        if schema.has_function:
            versions = [v for v in schema.function_opset_versions if v <= node.opset]
            data = schema.get_function_with_opset_version(max(versions)) if versions else b""
        elif schema.has_context_dependent_function:
            versions = [
                v for v in schema.context_dependent_function_opset_versions if v <= node.opset
            ]
            known = [self._graph.values[name].type for name in node.inputs if name]
            if not versions or not all(kind and kind != SEQUENCE for kind in known):
                return None
            values = self._graph.tensors(node.inputs)
            types = [type_of(value).SerializeToString() if value else b"" for value in values]
            data = schema.get_context_dependent_function_with_opset_version(
                max(versions), node.proto.SerializeToString(), types
            )
        else:
            return None
        return self._onnx.FunctionProto.FromString(data) if data else None

    def _instance(self, proto: Any, attributes: Mapping[str, Any]) -> Any:
        """A node of a function with the attributes of a call."""
        copy = self._onnx.NodeProto()
        copy.CopyFrom(proto)
        del copy.attribute[:]
        for item in proto.attribute:
            if not item.ref_attr_name:
                added = copy.attribute.add()
                added.CopyFrom(item)
                for graph in subgraphs(copy):
                    bound = [self._instance(node, attributes) for node in graph.node]
                    del graph.node[:]
                    graph.node.extend(bound)
            elif item.ref_attr_name in attributes:
                added = copy.attribute.add()
                added.CopyFrom(attributes[item.ref_attr_name])
                added.name = item.name
        return copy

    # Types, shapes and constants

    def _infer(
        self, node: Node, declared: Mapping[str, Any], control: Sequence[Value] | None
    ) -> list[Value]:
        operands = self._graph.tensors(node.inputs)
        key = key_of(node, operands)
        found = self._inferred.get(key)
        try:
            if found is None:
                with node_errors(node.name, node.title):
                    found = infer(node, operands, self._schemaless, self._source.proto.ir_version)
                if key is not None:
                    self._inferred[key] = found
        except ModelError as error:
            # The outputs are not known to later nodes, which may be wrong too. A body may be for
            # other sizes than those given, and never run.
            if self._inside:
                node.misfit = " ".join(error.problems)
            else:
                self._problems += error.problems
        if control:
            found = [(value.type, value.shape, None, value.proto) for value in control]
        values = []
        for i, name in enumerate(node.outputs):
            known = found[i] if found is not None and i < len(found) else ("", None)
            value = Value(name, *known)
            item = declared.get(node.proto.output[i])
            if item is not None and (not value.type or value.shape is None):
                other = self._declared(item)
                value.type, value.proto = value.type or other.type, value.proto or other.proto
                value.shape = other.shape if value.shape is None else value.shape
            if name:
                self._graph.values[name] = value
            values.append(value)
        return values

    def _fold_node(self, node: Node, values: list[Value]) -> bool:
        """Compute a node whose inputs are constant."""
        arrays = self._folding.outputs(node, values)
        if arrays is None:
            return False
        for value, array in zip(values, arrays, strict=False):
            if value.name:
                if is_plain(value.type):
                    value.shape = tuple(array.shape)
                value.data = array
        self._remove(node, "a constant")
        return True

    def _drop_unread(self) -> None:
        """Remove nodes whose outputs nothing reads, now that constants are known."""
        read = set(self._graph.outputs.values())
        kept = []
        for node in reversed(self._graph.nodes):
            if any(name in read for name in node.outputs if name):
                read.update(node.inputs, self._results.get(node.name, ()))
                kept.append(node)
            else:
                self._remove(node, "nothing reads its outputs")
        self._graph.nodes = kept[::-1]


def _weight(node: Any) -> int:
    """A node as a number of nodes: each of many operands may become an operator."""
    return 1 + max(0, len(node.input) + len(node.output) - _FEW_OPERANDS)


def _depends_on_call(node: Any) -> bool:
    """Whether a node of a function has an attribute that is one of the call's."""
    inner = (item for graph in subgraphs(node) for item in graph.node)
    return any(item.ref_attr_name for item in node.attribute) or any(map(_depends_on_call, inner))


def _key(proto: Any, name: str) -> Key:
    """The domain, name and overload of a function, or of the one that a node calls."""
    return _domain(proto.domain), name, getattr(proto, "overload", "")


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _unknown(what: str, given: Iterable[str], known: Collection[str]) -> Iterator[str]:
    """Report names that the model does not have."""
    names = ", ".join(map(short_repr, sorted(known))) or "none"
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; it has {names}"
            yield f"The model has no {what} {short_repr(name)}{hint}."
