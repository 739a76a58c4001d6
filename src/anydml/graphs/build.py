"""`GraphBuilder`: graphs from expressions, with DirectMLX's functions."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from types import MethodType
from typing import TYPE_CHECKING, Any, Never, Self

import numpy as np

from anydml.core._json import counted, short_repr, unnamed_error
from anydml.core._literals import DataTypeName
from anydml.core.dtypes import DataType
from anydml.core.errors import ArgumentError, ArgumentTypeError, InvalidDescriptorError
from anydml.core.levels import LATEST
from anydml.core.tensor import TensorDesc
from anydml.graphs.desc import (
    ConstantNode,
    GraphDesc,
    GraphTensor,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
)
from anydml.graphs.directmlx import (
    TensorPolicy,
    describe,
    functions,
    names_of,
    output_name,
    versions,
)
from anydml.graphs.signatures import function_named
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import FieldInfo, Role, ScaleBias

if TYPE_CHECKING:
    from anydml.graphs._functions import Functions
else:
    Functions = object


class Arithmetic:
    """Arithmetic of expressions, as DirectMLX defines it; a number becomes a scale and bias."""

    __array_ufunc__ = None  # NumPy would make an array of expressions

    def _apply(self, name: str, *operands: Self, **attributes: Any) -> Self:
        """Add an operator with one output to the graph."""
        raise NotImplementedError

    def _binary(self, name: str, other: Any, scaled: Callable[[float], ScaleBias] | None) -> Self:
        if isinstance(other, type(self)):
            return self._apply(f"element_wise_{name}", self, other)
        if scaled is None or not isinstance(other, Real):
            return NotImplemented  # type: ignore[no-any-return]  # as Python's protocol has it
        return self._apply("element_wise_identity", self, scale_bias=scaled(float(other)))

    def __add__(self, other: Self | float) -> Self:
        return self._binary("add", other, lambda value: ScaleBias(1, value))

    def __sub__(self, other: Self | float) -> Self:
        return self._binary("subtract", other, lambda value: ScaleBias(1, -value))

    def __mul__(self, other: Self | float) -> Self:
        return self._binary("multiply", other, lambda value: ScaleBias(value, 0))

    def __truediv__(self, other: Self | float) -> Self:
        return self._binary("divide", other, lambda value: ScaleBias(_reciprocal(value), 0))

    def __mod__(self, other: Self) -> Self:
        return self._binary("modulus_truncate", other, None)

    def __radd__(self, other: float) -> Self:
        return self + other

    def __rsub__(self, other: float) -> Self:
        return self._binary("subtract", other, lambda value: ScaleBias(-1, value))

    def __rmul__(self, other: float) -> Self:
        return self * other

    def __rtruediv__(self, other: float) -> Self:
        if not isinstance(other, Real):
            return NotImplemented
        return self._apply("element_wise_recip", self) * float(other)

    def __neg__(self) -> Self:
        return self * -1


def _reciprocal(value: float) -> float:
    """Return 1 / value in FLOAT32, as DirectMLX computes it; infinite for 0."""
    with np.errstate(all="ignore"):
        return float(np.float32(1) / np.float32(value))


@dataclass(frozen=True, eq=False, repr=False)
class Expression(Arithmetic):
    """A tensor of a graph that is being built: an input, a constant or the output of an operator.

    ``+``, ``-``, ``*``, ``/`` and ``%`` of two expressions are the elementwise operators. A number
    takes the place of one of them, except with ``%``; it becomes the scale and bias of
    ELEMENT_WISE_IDENTITY.

    Attributes
    ----------
    builder : GraphBuilder
        Where it was made.
    desc : TensorDesc
        The tensor, as operators that take it see it.

    Examples
    --------
    >>> import anydml as dml
    >>> graph = dml.GraphBuilder()
    >>> x = graph.input("x", dml.TensorDesc("FLOAT32", (4, 6)))
    >>> graph.tile(x, repeats=(1, 2)).sizes
    (4, 12)
    >>> (x * x + 1).sizes
    (4, 6)
    """

    builder: GraphBuilder
    desc: TensorDesc
    _node: int | None  # None for an input
    _index: int

    def __repr__(self) -> str:
        return f"<Expression {self.desc!r}>"

    def _apply(self, name: str, *operands: Expression, **attributes: Any) -> Expression:
        return self.builder._call(functions()[name], *operands, **attributes)  # type: ignore[no-any-return]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the tensor."""
        return self.desc.sizes

    @property
    def data_type(self) -> DataType:
        """Type of the tensor."""
        return self.desc.data_type


@dataclass
class _Node:
    node: OperatorNode | ConstantNode
    inputs: list[Expression | None] = field(default_factory=list)


@cache
def _result_type(name: str, *fields: str) -> Any:
    return namedtuple(f"{name}Outputs", fields)


class _Functions(type):
    """The class of `GraphBuilder`, which has the functions of operators as its instances have."""

    if not TYPE_CHECKING:  # `_functions.pyi` has them

        def __getattr__(cls, name):
            return function_named(name)

    def __dir__(cls) -> list[str]:
        return [*super().__dir__(), *functions()]


class GraphBuilder(Functions, metaclass=_Functions):
    """Builder of a `GraphDesc` from expressions.

    Beside the methods below it has a function for each operator, by the operator's name in lower
    case (``element_wise_add1``) and by the name that it has in DirectMLX (``add``). Such a function
    takes expressions for the operator's input tensors, in the page's order or by the names of the
    fields, and the other fields by name; ``name=`` names the node. Fields that DirectMLX has
    defaults for may be left out; `help` of a function shows them. Of an operator's versions, the
    earliest that takes the arguments is chosen; a name with a number means that version.

    The outputs' descriptors follow from the inputs and attributes. Where they do not, say
    ``output_sizes=``, ``output_data_type=``, or for SPLIT ``output_axis_sizes=``. An output that is
    optional is made on demand: ``output_indices=True``.

    A function returns an expression, a named tuple of several, or a tuple for a tensor list.

    Parameters
    ----------
    tensor_policy : callable, optional
        Makes the descriptor of an output from a data type and sizes: packed ones, if left out.

    Examples
    --------
    >>> import anydml as dml
    >>> graph = dml.GraphBuilder()
    >>> x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 4)))
    >>> best = graph.top_k(graph.activation_relu(x), axis=1, k=2)
    >>> desc = graph.build(values=best.value, where=best.index)
    >>> compiled = dml.Device("cpu").compile_graph(desc)
    >>> compiled(x=dml.cast([[-1, 3, 2, 4]], "float32"))
    {'values': array([[4., 3.]], dtype=float32), 'where': array([[3, 1]], dtype=uint32)}
    """

    def __init__(self, tensor_policy: TensorPolicy = TensorDesc) -> None:
        if not callable(tensor_policy):
            raise ArgumentTypeError(
                "tensor_policy: expected a function of a data type and sizes, "
                f"got {short_repr(tensor_policy)}"
            )
        self._policy = tensor_policy
        self._inputs: list[GraphTensor] = []
        self._nodes: list[_Node] = []

    def input(self, name: str, desc: TensorDesc) -> Expression:
        """Add an input of the graph.

        Parameters
        ----------
        name : str
            By which it is bound.
        desc : TensorDesc
            The tensor; one that is OWNED_BY_DML is bound when the compiled graph is initialized.

        Returns
        -------
        Expression
            The input.
        """
        self._inputs.append(GraphTensor(name, desc))
        return Expression(self, desc, None, len(self._inputs) - 1)

    def constant(self, data: Any, desc: TensorDesc | None = None, *, name: str = "") -> Expression:
        """Add data that are part of the graph.

        Parameters
        ----------
        data : array_like or buffer
            The elements; with `desc`, the bytes of the tensor.
        desc : TensorDesc, optional
            The tensor. Left out, that of the array.
        name : str, optional
            What messages call the node.

        Returns
        -------
        Expression
            The constant.
        """
        if desc is None:
            data = np.ascontiguousarray(data)
            desc = TensorDesc.from_array(data)
        self._nodes.append(_Node(ConstantNode(data, name)))
        return Expression(self, desc, len(self._nodes) - 1, 0)

    def reinterpret(
        self,
        input: Expression,
        data_type: DataType | DataTypeName | None = None,
        sizes: Iterable[int] | None = None,
        strides: Iterable[int] | None = None,
    ) -> Expression:
        """View the bytes of a tensor as another tensor of the same total size.

        Parameters
        ----------
        input : Expression
            What is reinterpreted.
        data_type : DataType or str, optional
            Left out, the input's.
        sizes : sequence of int, optional
            Left out, the input's sizes and strides.
        strides : sequence of int, optional
            In elements; 0 repeats a dimension. Left out with `sizes`, packed.

        Returns
        -------
        Expression
            The same bytes.
        """
        old = self._own("input", input).desc
        if sizes is None:
            sizes, strides = old.sizes, old.strides if strides is None else strides
        desc = TensorDesc(
            old.data_type if data_type is None else data_type,
            sizes,
            strides,
            flags=old.flags,
            total_tensor_size_in_bytes=old.total_tensor_size_in_bytes,
            guaranteed_base_offset_alignment=old.guaranteed_base_offset_alignment,
        )
        return Expression(self, desc, input._node, input._index)

    def operator(
        self, desc: Descriptor, *inputs: Expression | Sequence[Expression] | None, name: str = ""
    ) -> tuple[Expression | None, ...]:
        """Add a node with a descriptor of your own.

        Parameters
        ----------
        desc : Descriptor
            The operator.
        *inputs : Expression, sequence of Expression, or None
            For each field of an input tensor, in the page's order; trailing ones that the
            descriptor leaves out may be left out.
        name : str, optional
            What messages call the node.

        Returns
        -------
        tuple of Expression or None
            The outputs, in the page's order; None for one that the descriptor leaves out.
        """
        expressions: list[Expression | None] = []
        infos = desc.tensor_fields(Role.INPUT)
        for info, value in zip(infos, (*inputs, *(None,) * len(infos)), strict=False):
            expressions += self._operands(info, value)
        self._nodes.append(_Node(OperatorNode(desc, name), expressions))
        tensors: list[TensorDesc | None] = []
        for info in desc.tensor_fields(Role.OUTPUT):
            value = getattr(desc, info.attribute)
            tensors += value if info.many else [value]
        node = len(self._nodes) - 1
        return tuple(
            None if tensor is None else Expression(self, tensor, node, i)
            for i, tensor in enumerate(tensors)
        )

    def build(self, /, *unnamed: Never, **outputs: Expression) -> GraphDesc:
        """Build the graph that computes some expressions.

        Parameters
        ----------
        **outputs : Expression
            The graph's outputs, by name. Nodes that none of them needs are left out.

        Returns
        -------
        GraphDesc
            Not yet checked.
        """
        if unnamed:
            raise unnamed_error("build()", unnamed, ("NAME",))
        if not outputs:
            raise ArgumentTypeError("outputs: expected at least one expression by name, got none")
        for name, value in outputs.items():
            if self._own(name, value)._node is None:
                raise ArgumentError(
                    f"{name}: expected an expression that an operator computes, got an input "
                    "(identity() copies it)"
                )
        kept = self._needed(outputs.values())
        position = {node: i for i, node in enumerate(kept)}
        input_edges, links = [], []
        for node, i in position.items():
            for at, expression in enumerate(self._nodes[node].inputs):
                if expression is None:
                    continue
                start = expression._node
                if start is None:
                    input_edges.append(InputEdge(expression._index, i, at))
                else:
                    links.append(IntermediateEdge(position[start], expression._index, i, at))
        ends = [
            OutputEdge(position[int(value._node or 0)], value._index, i)
            for i, value in enumerate(outputs.values())
        ]
        return GraphDesc(
            [self._nodes[node].node for node in kept],
            input_edges,
            links,
            ends,
            self._inputs,
            [GraphTensor(name, value.desc) for name, value in outputs.items()],
        )

    def _needed(self, outputs: Iterable[Expression]) -> list[int]:
        found: set[int] = set()
        left = [value._node for value in outputs]
        while left:
            node = left.pop()
            if node is not None and node not in found:
                found.add(node)
                left += [e._node for e in self._nodes[node].inputs if e is not None]
        return sorted(found)

    if not TYPE_CHECKING:  # `_functions.pyi` has them

        def __getattr__(self, name):
            return MethodType(function_named(name), self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *functions()]

    def _call(
        self, kinds: Sequence[type[Descriptor]], /, *inputs: Any, name: str = "", **arguments: Any
    ) -> Any:
        arguments = {key: value for key, value in arguments.items() if value is not None}
        # The first version whose rules hold; if none, the first that has the arguments.
        drafts: list[tuple[Descriptor, list[Any]]] = []
        refused: list[InvalidDescriptorError] = []
        for kind in versions(kinds, len(inputs), arguments):
            try:
                draft = self._describe(kind, inputs, dict(arguments))
            except InvalidDescriptorError as error:
                refused.append(error)
                continue
            drafts.append(draft)
            if not draft[0].violations(LATEST):
                drafts = [draft]
                break
        if not drafts:
            raise refused[0]
        desc, operands = drafts[0]
        results = self.operator(desc, *operands, name=name)
        outputs = desc.bind_points(Role.OUTPUT)
        if outputs[0].many:
            return results
        present = [result for result in results if result is not None]
        if len(present) == 1:
            return present[0]
        return _result_type(type(desc).__name__, *map(output_name, outputs))(*present)

    def _describe(
        self, kind: type[Descriptor], inputs: Sequence[Any], arguments: dict[str, Any]
    ) -> tuple[Descriptor, list[Any]]:
        """Describe an operator on expressions; also return these in the order of the page."""
        infos = kind.tensor_fields(Role.INPUT)
        if len(inputs) > len(infos):
            names = ", ".join(info.attribute for info in infos)
            advice = "give a list of expressions" if infos and infos[-1].many else "name the others"
            raise ArgumentTypeError(
                f"{kind.NAME}: expected at most {counted(len(infos), 'expression')} by position "
                f"({names}), got {len(inputs)}; {advice}"
            )
        operands: dict[str, Any] = {}
        for info, value in zip(infos, inputs, strict=False):
            operands[info.attribute] = value
        for info in infos:
            for spelling in names_of(info):
                if spelling in arguments:
                    if info.attribute in operands:
                        raise ArgumentTypeError(
                            f"{kind.NAME}: {spelling}: expected one expression, got two"
                        )
                    operands[info.attribute] = arguments.pop(spelling)
        tensors: dict[str, Any] = {}
        for info in infos:
            expressions = self._operands(info, operands.get(info.attribute))
            descs = [expression.desc for expression in expressions if expression is not None]
            if descs:
                tensors[info.attribute] = descs if info.many else descs[0]
        desc = describe(kind, tensors, arguments, self._policy)
        return desc, [operands.get(info.attribute) for info in infos]

    def _operands(self, info: FieldInfo, value: Any) -> list[Expression | None]:
        if not info.many:
            return [None if value is None else self._own(info.attribute, value)]
        if not isinstance(value, list | tuple):
            got = short_repr(value)
            raise ArgumentTypeError(f"{info.attribute}: expected a list of expressions, got {got}")
        return [self._own(f"{info.attribute}[{i}]", item) for i, item in enumerate(value)]

    def _own(self, name: str, value: Any) -> Expression:
        if not isinstance(value, Expression):
            raise ArgumentTypeError(f"{name}: expected an expression, got {short_repr(value)}")
        if value.builder is not self:
            raise ArgumentError(f"{name}: expected an expression of this graph, got one of another")
        return value
