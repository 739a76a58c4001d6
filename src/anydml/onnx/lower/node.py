"""One node that becomes DirectML operators in a graph that is being built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from anydml.core._literals import DataTypeName
from anydml.core.dtypes import DataType
from anydml.core.tensor import TensorDesc, packed_strides
from anydml.graphs.build import Expression, GraphBuilder
from anydml.onnx.types import DATA_TYPES, Array, Shape
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS

Sizes = Sequence[int]


class UnsupportedError(Exception):
    """A node that the provider leaves to the CPU, with the reason."""


class UnfitError(UnsupportedError):
    """A node whose inputs and attributes do not fit together, for which it is not tried further."""


class RefusedError(UnsupportedError):
    """A node for which the provider fails to make a kernel, so that it opens no session.

    Parameters
    ----------
    path : str
        The input or attribute.
    rule : str
        The accepted values.
    got : object
        Another value.
    """

    def __init__(self, path: str, rule: str, got: object) -> None:
        super().__init__(f"{path}: expected {rule}, got {got}")
        self.path, self.rule, self.got = path, rule, got


@dataclass
class Operand:
    """A tensor that a node reads.

    Attributes
    ----------
    type : str
        The short name of its element type.
    shape : tuple of int
        Its sizes in the model.
    data : ndarray or None
        The elements, if they are constant.
    expression : callable
        Makes the tensor in the graph; not called for constants that only attributes need.
    """

    type: str
    shape: Shape
    data: Array | None
    expression: Callable[[], Expression]


@dataclass
class Result:
    """A tensor that a node computes: its name in the model, type and sizes."""

    name: str
    type: str
    shape: Shape


class Lowering:
    """A node, its operands, and the operators that it becomes.

    Parameters
    ----------
    builder : GraphBuilder
        The graph that takes the operators.
    attributes : mapping
        The node's.
    version : int
        That of the row of the table.
    operands : sequence of Operand or None
        The node's inputs; None for one that is left out.
    results : sequence of Result
        The node's outputs; one without a name is left out.
    exact : bool
        Whether mistakes of ONNX Runtime are repeated.
    label : callable
        Makes the name of the next operator.
    in_place : bool
        Whether outputs that ONNX Runtime puts in the memory of inputs replace these.
    known : sequence of Descriptor
        Operators of the node, if they have been described before: equal ones are these objects,
        whose rules and programs a graph finds once.
    """

    def __init__(
        self,
        builder: GraphBuilder,
        attributes: Mapping[str, Any],
        version: int,
        operands: Sequence[Operand | None],
        results: Sequence[Result],
        exact: bool = False,
        label: Callable[[], str] = str,
        in_place: bool = False,
        known: Sequence[Descriptor] = (),
    ) -> None:
        self.builder = builder
        self.attributes = attributes
        self.version = version
        self.operands = list(operands)
        self.results = list(results)
        self.exact = exact
        self.in_place = in_place
        self.descriptors: list[Descriptor] = []
        self._label = label
        self._known = known

    # Operands

    def has(self, i: int) -> bool:
        """Whether an input is there."""
        return i < len(self.operands) and self.operands[i] is not None

    def wants(self, i: int) -> bool:
        """Whether an output is there."""
        return i < len(self.results) and bool(self.results[i].name)

    def operand(self, i: int) -> Operand:
        """An input that is there."""
        found = self.operands[i]
        if found is None:
            raise UnfitError(f"it has no input {i}")
        return found

    def shape(self, i: int = 0) -> Shape:
        """The sizes of an input in the model."""
        return self.operand(i).shape

    def type(self, i: int = 0) -> str:
        """The element type of an input."""
        return self.operand(i).type

    def constant(self, i: int) -> Array | None:
        """The elements of an input that must be constant; None if it is left out."""
        if not self.has(i):
            return None
        data = self.operand(i).data
        if data is None:
            raise UnsupportedError(f"input {i} is not constant")
        return data

    def integers(self, i: int) -> list[int] | None:
        """The elements of a constant input as integers."""
        data = self.constant(i)
        return None if data is None else [int(n) for n in data.reshape(-1)]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    def axis(self, default: int, rank: int | None = None) -> int:
        """The attribute ``axis``, counted from the start."""
        rank = len(self.shape()) if rank is None else rank
        axis = int(self.get("axis", default))
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise UnfitError(f"axis: expected {-rank}..{rank - 1}, got {axis}")
        return axis % max(rank, 1)

    # Tensors

    def view(
        self,
        i: int,
        sizes: Sizes | None = None,
        strides: Sizes | None = None,
        *,
        rank: int = 4,
        type: str | None = None,
    ) -> Expression:
        """An input with some sizes; by default those in the model, padded in front with 1."""
        operand = self.operand(i)
        sizes = padded(operand.shape, rank) if sizes is None else sizes
        return self.reshape(operand.expression(), sizes, strides, type or operand.type)

    def broadcast(self, i: int, sizes: Sizes, type: str | None = None) -> Expression:
        """An input repeated to some sizes by strides of 0."""
        own = padded(self.shape(i), len(sizes))
        return self.view(i, sizes, strides_to(own, sizes), type=type)

    def vector(self, i: int, rank: int, axis: int, type: str | None = None) -> Expression:
        """A vector or scalar along one dimension, with sizes of 1 elsewhere."""
        sizes = [1] * rank
        sizes[axis] = prod(self.shape(i))
        return self.view(i, sizes, type=type)

    def reshape(
        self,
        expression: Expression,
        sizes: Sizes,
        strides: Sizes | None = None,
        type: str | None = None,
    ) -> Expression:
        """The bytes of an expression with other sizes, strides or type."""
        kind = None if type is None else DATA_TYPES[type]
        old = expression.desc
        strides = None if strides is None else tuple(strides)
        if old.sizes == tuple(sizes) and old.strides == strides and kind in (None, old.data_type):
            return expression
        return self.builder.reinterpret(expression, kind, sizes, strides)

    def output(self, i: int = 0, rank: int = 4) -> tuple[DataType, Shape]:
        """The type and padded sizes of an output."""
        return DATA_TYPES[self.results[i].type], padded(self.results[i].shape, rank)

    # Operators

    def emit(self, name: str, *inputs: Any, **fields: Any) -> Expression:
        """Add an operator, and return its first output; see `emit_all`."""
        result: Expression = self.emit_all(name, *inputs, **fields)[0]
        return result

    def emit_all(
        self,
        name: str,
        *inputs: Expression | Sequence[Expression] | None,
        outputs: Sequence[tuple[DataType | DataTypeName, Sizes] | TensorDesc | None] | None = None,
        **fields: Any,
    ) -> tuple[Any, ...]:
        """Add an operator.

        Parameters
        ----------
        name : str
            The operator's.
        *inputs : Expression, sequence of Expression or None
            In the page's order.
        outputs : sequence, optional
            Type and sizes of each; by default the node's first output, of rank 4 at least.
        **fields
            The attributes.

        Returns
        -------
        tuple of Expression or None
            The outputs, in the page's order; None for one that is left out.
        """
        kind = OPERATORS[name]
        infos = kind.tensor_fields(Role.INPUT)
        for info, value in zip(infos, inputs, strict=False):
            if value is not None:
                is_one = isinstance(value, Expression)
                parts = [value.desc] if isinstance(value, Expression) else [e.desc for e in value]
                fields[info.attribute] = parts[0] if is_one else parts
        made = [self.output() if o is None and outputs is None else o for o in outputs or [None]]
        tensors = [t if t is None or isinstance(t, TensorDesc) else _packed(t[0], tuple(t[1]))
                   for t in made]  # fmt: skip
        targets = kind.tensor_fields(Role.OUTPUT)
        if targets[0].many:
            fields[targets[0].attribute] = tensors
        else:
            fields.update(
                (info.attribute, tensor)
                for info, tensor in zip(targets, tensors, strict=False)
                if tensor is not None
            )
        desc = kind(**fields)
        at = len(self.descriptors)
        if at < len(self._known) and self._known[at] == desc:
            desc = self._known[at]
        self.descriptors.append(desc)
        return self.builder.operator(desc, *inputs, name=self._label())

    def cast(self, expression: Expression, data_type: DataType) -> Expression:
        """An expression converted to another type."""
        if expression.data_type is data_type:
            return expression
        return self.emit("CAST", expression, outputs=[(data_type, expression.sizes)])


_packed = lru_cache(1024)(TensorDesc)  # equal tensors of alike nodes are one object


def padded(shape: Sizes, rank: int = 4) -> Shape:
    """Sizes with 1s in front, up to a rank."""
    return (*(1,) * (rank - len(shape)), *shape)


def padded_right(shape: Sizes, rank: int = 4) -> Shape:
    """Sizes with 1s behind, up to a rank."""
    return (*shape, *(1,) * (rank - len(shape)))


def strides_to(own: Sizes, sizes: Sizes) -> Shape | None:
    """Strides that repeat sizes of 1 to larger ones; None if nothing is repeated."""
    if tuple(own) == tuple(sizes):
        return None
    for size, to in zip(own, sizes, strict=True):
        if size not in (1, to):
            raise UnfitError(f"sizes {tuple(own)} do not broadcast to {tuple(sizes)}")
    strides = packed_strides(own)
    return tuple(0 if size == 1 else s for size, s in zip(own, strides, strict=True))


def axes_of(axes: Iterable[int], rank: int) -> list[int]:
    """Axes counted from the start."""
    found = list(axes)
    if not all(-rank <= axis < rank for axis in found):
        raise UnfitError(f"axes: expected {-rank}..{rank - 1}, got {found}")
    return [axis % rank for axis in found]


Lower = Callable[[Lowering], Any]
"""Adds the operators of a node; returns the expressions of its outputs."""
