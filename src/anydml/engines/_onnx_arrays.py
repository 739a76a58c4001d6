"""Arrays of an ONNX graph: a value, its type and its sizes, which are all known.

Functions here take traced arrays, NumPy arrays and numbers, at least one of them traced. Types of
results are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.engines._onnx_gaps import MOST_POOLED, MOST_ROWS, TYPES, WIDER, WRAPPING
from anydml.engines._onnx_graph import Graph, NotTraced, NumpyArray, Spec, Value

_COMPARISONS: Final = frozenset(
    ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "IsNaN", "IsInf")
)


def _both(compute: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The method of an operator, and that of its second operand if the first is not traced."""
    return compute, lambda b, a: compute(a, b)


class Traced:
    """An array of a graph.

    Attributes
    ----------
    graph : Graph
        Where it is computed.
    dtype : numpy.dtype
        The type of its elements.
    shape : tuple of int
        The sizes.
    compact : Traced
        The array with sizes of 1 where elements are repeated; broadcasting repeats them.
    """

    __slots__ = ("_value", "compact", "dtype", "graph", "shape")
    __array_ufunc__ = None  # operators with NumPy's arrays are those here
    __hash__ = None  # type: ignore[assignment]  # == is elementwise

    def __init__(
        self, graph: Graph, value: str | None, spec: Spec, compact: Traced | None = None
    ) -> None:
        self.graph = graph
        self.dtype, self.shape = spec
        self._value = value
        self.compact: Traced = self if compact is None else compact

    @property
    def value(self) -> str:
        """The value in the graph; elements are repeated only if it is needed."""
        if self._value is None:
            sizes = np.array(self.shape, np.int64)
            self._value = emit("Expand", (self.compact, sizes), self.dtype, self.shape).value
        return self._value

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        """The transpose."""
        return permuted(self, range(self.ndim)[::-1])

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)}>"

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        raise NotTraced("a condition that depends on data")

    def __index__(self) -> int:
        raise NotTraced("a number that depends on data")

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise NotTraced("a function of NumPy on what depends on data")

    @property
    def is_cast(self) -> bool:
        """Whether a conversion makes the elements."""
        node = self.graph.nodes.get(self.value)
        return node is not None and node.operator == "Cast"

    def astype(self, dtype: Any) -> Any:
        """The elements as another type, as C++ converts them."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        if dtype.name not in TYPES["Cast"]:
            raise NotTraced(f"elements of type {dtype.name}")
        if dtype.kind == "b" and self.dtype.kind == "f":
            return self != 0
        number = _number_of(dtype)
        x = self.compact
        if x.is_cast and f"{x.dtype} {dtype.kind}" in ("float64 f", "uint32 u"):
            x = emit("Max", (x,), x.dtype, x.shape)  # else they become one: `_onnx_gaps`
        return repeated(emit("Cast", (x,), dtype, x.shape, to=number), self.shape)

    def reshape(self, *shape: Any) -> Any:
        """The elements in row-major order with other sizes, of which one may be -1."""
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = tuple(map(int, sizes))
        if -1 in sizes:
            known = prod(n for n in sizes if n != -1)
            sizes = tuple(self.size // known if n == -1 else n for n in sizes)
        if sizes == self.shape:
            return self
        source = self.compact if self.compact.size == self.size else self
        node = self.graph.nodes.get(source.value)
        if node is not None and node.operator == "Reshape" and node.inputs[0] in self.graph.specs:
            inner = node.inputs[0]
            if self.graph.specs[inner].shape == sizes:
                return Traced(self.graph, inner, self.graph.specs[inner])
            source = Traced(self.graph, inner, self.graph.specs[inner])
        return emit("Reshape", (source, np.array(sizes, np.int64)), self.dtype, sizes)

    def swapaxes(self, a: int, b: int) -> Any:
        """Two axes exchanged."""
        order = [*range(self.ndim)]
        order[a], order[b] = order[b], order[a]
        return permuted(self, order)

    def any(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Whether any element is true."""
        return reduced("ReduceMax", self.astype(np.uint8), axis, keepdims) != np.uint8(0)

    def __getitem__(self, key: Any) -> Any:
        return indexed(self, key)

    __add__, __radd__ = _both(lambda a, b: elementwise("Add", a, b))
    __mul__, __rmul__ = _both(lambda a, b: elementwise("Mul", a, b))
    __truediv__, __rtruediv__ = _both(lambda a, b: true_quotient(a, b))  # noqa: PLW0108  # below
    __floordiv__, __rfloordiv__ = _both(lambda a, b: floor_quotient(a, b))  # noqa: PLW0108  # below
    __pow__, __rpow__ = _both(lambda a, b: power(a, b))  # noqa: PLW0108  # below
    __matmul__, __rmatmul__ = _both(lambda a, b: product(a, b))  # noqa: PLW0108  # below
    __and__, __rand__ = _both(lambda a, b: bitwise("And", a, b))
    __or__, __ror__ = _both(lambda a, b: bitwise("Or", a, b))
    __xor__, __rxor__ = _both(lambda a, b: bitwise("Xor", a, b))

    def __mod__(self, other: Any) -> Any:
        return self - floor_quotient(self, other) * other

    def __lshift__(self, other: Any) -> Any:
        return shifted(self, other, "LEFT")

    def __rshift__(self, other: Any) -> Any:
        return shifted(self, other, "RIGHT")

    def __lt__(self, other: Any) -> Any:
        return elementwise("Less", self, other)

    def __le__(self, other: Any) -> Any:
        return elementwise("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> Any:
        return elementwise("Greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return elementwise("GreaterOrEqual", self, other)

    def __sub__(self, other: Any) -> Any:
        if self.dtype.kind == "f" and isinstance(other, float | np.ndarray) and _is_zero(other):
            return self.astype(result_type(self, other))
        if not isinstance(other, Traced) and result_type(self, other).kind == "f":
            return elementwise("Add", self, -typed(other, result_type(self, other)))
        return elementwise("Sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return elementwise("Sub", other, self)

    def __invert__(self) -> Any:
        return elementwise("Not" if self.dtype.kind == "b" else "BitwiseNot", self)

    def __neg__(self) -> Any:
        if self.dtype.kind == "u":
            return self.dtype.type(0) - self
        return elementwise("Neg", self)

    def __eq__(self, other: object) -> Any:
        return elementwise("Equal", self, other)

    def __ne__(self, other: object) -> Any:
        return ~elementwise("Equal", self, other)


def is_traced(x: Any) -> bool:
    """Whether an operand depends on data."""
    return isinstance(x, Traced)


def graph_of(operands: Sequence[Any]) -> Graph:
    """The graph of the first traced operand."""
    return next(x.graph for x in operands if isinstance(x, Traced))


def emit(
    operator: str, inputs: Sequence[Any], dtype: Any, shape: Sequence[int], **attributes: Value
) -> Any:  # fmt: skip
    """The result of an operator of ONNX on operands of types that it takes; None is left out."""
    return emit_output(0, operator, inputs, dtype, shape, **attributes)


def emit_output(
    position: int, operator: str, inputs: Sequence[Any], dtype: Any, shape: Sequence[int],
    **attributes: Value,
) -> Any:  # fmt: skip
    """The output at a position of an operator of ONNX; see `emit`."""
    dtype, shape = np.dtype(dtype), tuple(map(int, shape))
    if 0 in shape:
        return np.empty(shape, dtype)
    graph = graph_of(inputs)
    values = ["" if x is None else value_of(graph, x) for x in inputs]
    spec = Spec(dtype, shape)
    return Traced(graph, graph.add(operator, values, spec, attributes, position), spec)


def value_of(graph: Graph, x: Any) -> str:
    """An operand's value in the graph."""
    return x.value if isinstance(x, Traced) else graph.constant(np.asarray(x))


def _number_of(dtype: np.dtype[Any]) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))


def repeated(x: Any, shape: Sequence[int]) -> Any:
    """An array with other sizes that it broadcasts to."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if not isinstance(x, Traced):
        return np.broadcast_to(x, shape)
    if 0 in shape:
        return np.empty(shape, x.dtype)
    compact = x.compact
    if len(compact.shape) < len(shape):
        ones = (1,) * (len(shape) - len(compact.shape))
        compact = compact.reshape((*ones, *compact.shape))
    return Traced(x.graph, None, Spec(x.dtype, shape), compact)


def compact(x: Any) -> Any:
    """An array with sizes of 1 where its elements are repeated."""
    if isinstance(x, Traced):
        return x.compact
    for axis, size in enumerate(x.shape):
        if size > 1:
            first = x[(slice(None),) * axis + (slice(0, 1),)]
            if x.strides[axis] == 0 or _same(x, first, axis):
                x = first
    return x


def _same(x: NumpyArray, first: NumpyArray, axis: int) -> bool:
    second = x[(slice(None),) * axis + (slice(1, 2),)]
    return all(
        bool(((a == b) & (np.signbit(a) == np.signbit(b)) if x.dtype.kind == "f" else a == b).all())
        for a, b in ((second, first), (x, first))
    )


def _is_zero(x: Any) -> bool:
    return bool(np.ndim(x) == 0 and x == 0 and not np.signbit(x))


def typed(x: Any, dtype: Any) -> Any:
    """An operand as an array of a type."""
    return x.astype(dtype) if isinstance(x, Traced) else np.asarray(x).astype(dtype, copy=False)


def result_type(*operands: Any) -> np.dtype[Any]:
    """The type that operators compute in; numbers of Python take that of the others."""
    return np.dtype(np.result_type(*(x.dtype if hasattr(x, "dtype") else x for x in operands)))


def working_type(operator: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest type of at least the same range that ONNX Runtime has the operator for."""
    types = TYPES[operator]
    wider = WIDER.get(dtype.name, "").split()
    if dtype.name == "uint64" and operator in WRAPPING:
        wider = ["int64"]
    for name in (dtype.name, *wider):
        if name in types:
            return np.dtype(name)
    raise NotTraced(f"{operator} of {dtype.name}")


def elementwise(operator: str, *operands: Any, dtype: Any = None, **attributes: Value) -> Any:
    """An operator of ONNX on each element; the result has the type of the operands or `dtype`."""
    common = result_type(*operands)
    return _mapped(operator, [typed(x, common) for x in operands], common, dtype, attributes)


def _mapped(
    operator: str, arrays: Sequence[Any], common: np.dtype[Any], dtype: Any, attributes: Any,
    first: Sequence[Any] = (),
) -> Any:  # fmt: skip
    shape = np.broadcast_shapes(*(x.shape for x in (*first, *arrays)))
    if 0 in shape:
        return np.empty(shape, dtype or common)
    working = working_type(operator, common)
    small = [compact(x) for x in (*first, *arrays)]
    small_shape = np.broadcast_shapes(*(x.shape for x in small))
    head, tail = small[: len(first)], [typed(x, working) for x in small[len(first) :]]
    if operator in _COMPARISONS:
        dtype = np.dtype(bool)
    result = emit(operator, (*head, *tail), dtype or working, small_shape, **attributes)
    return repeated(result if dtype else result.astype(common), shape)


def chosen(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition is true, else `b`."""
    common = result_type(a, b)
    if not isinstance(condition, Traced):
        condition = np.asarray(condition, bool)
        if condition.all() or not condition.any():
            picked = typed(a if condition.all() else b, common)
            shape = np.broadcast_shapes(condition.shape, np.shape(a), np.shape(b))
            return repeated(picked, shape)
    condition = typed(condition, bool)
    if common.kind == "b":
        return (condition & a) | (~condition & b)
    arrays = [typed(x, common) for x in (a, b)]
    return _mapped("Where", arrays, common, None, {}, first=[condition])


def bitwise(operator: str, a: Any, b: Any) -> Any:
    """``And``, ``Or`` or ``Xor`` of truth values or of bits."""
    is_logical = result_type(a, b).kind == "b"
    return elementwise(operator if is_logical else f"Bitwise{operator}", a, b)


def true_quotient(a: Any, b: Any) -> Any:
    """``a / b``, in float64 for integers."""
    if result_type(a, b).kind != "f":
        a, b = typed(a, np.float64), typed(b, np.float64)
    return elementwise("Div", a, b)


def floor_quotient(a: Any, b: Any) -> Any:
    """``a // b`` of integers, rounded down; 0 where b is 0, as in NumPy."""
    common = result_type(a, b)
    if common.kind == "f":
        raise NotTraced("// of floats")
    a, b = typed(a, common), typed(b, common)
    one, zero = common.type(1), common.type(0)
    divides = chosen(b == zero, one, b)
    if common.kind == "u":
        return chosen(b == zero, zero, elementwise("Div", a, divides))
    # The processor refuses to divide the smallest integer by -1.
    minus = divides == common.type(-1)
    safe = chosen(minus, one, divides)
    towards_zero = elementwise("Div", a, safe)
    below = (towards_zero * safe != a) & ((a < zero) != (safe < zero))
    down = towards_zero - below.astype(common)
    return chosen(b == zero, zero, chosen(minus, zero - a, down))


def power(a: Any, b: Any) -> Any:
    """``a ** b`` of floats."""
    if result_type(a, b).kind != "f":
        raise NotTraced("a power of integers")
    if isinstance(a, Traced) and not isinstance(b, Traced) and np.ndim(b) == 0 and b in (0.5, 2):
        return elementwise("Mul", a, a) if b == 2 else elementwise("Sqrt", a)
    one = np.ones((), result_type(a, b))
    # ONNX Runtime returns NaN for a signalling NaN to the power of 0.
    return chosen(b == 0, one, elementwise("Pow", a, b))


def shifted(a: Any, b: Any, direction: str) -> Any:
    """The bits of integers shifted by fewer places than there are."""
    common = result_type(a, b)
    a, b = typed(a, common), typed(b, common)
    if common.kind == "i" and direction == "RIGHT":
        if isinstance(b, Traced):
            raise NotTraced("a shift of signed integers")
        return floor_quotient(a.astype(np.int64), np.int64(1) << b.astype(np.int64)).astype(common)
    unsigned = np.dtype(f"u{common.itemsize}")
    a, b = a.astype(unsigned), b.astype(unsigned)
    return elementwise("BitShift", a, b, direction=direction).astype(common)


def product(a: Any, b: Any) -> Any:
    """Matrix products of the last two axes; the others are broadcast."""
    common = result_type(a, b)
    a, b = typed(a, common), typed(b, common)
    if min(a.ndim, b.ndim) < 2:
        raise NotTraced("the product of a vector")
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*shape, a.shape[-2], b.shape[-1])
    working = working_type("MatMul", common)
    # ONNX Runtime prepares constant matrices if they have two dimensions.
    if not isinstance(b, Traced):
        b = as_matrix(b, a.ndim)
        if working == np.float64 and a.ndim == b.ndim == 2 and a.shape[0] <= MOST_ROWS:
            operands = np.ascontiguousarray(b.T, working), permuted(typed(a, working), (1, 0))
            result = emit("MatMul", operands, working, (b.shape[1], a.shape[0]))
            return permuted(result, (1, 0)).astype(common)
    elif not isinstance(a, Traced):
        a = as_matrix(a, b.ndim)
    result = emit("MatMul", (typed(a, working), typed(b, working)), working, shape)
    return result.astype(common)


def as_matrix(x: NumpyArray, rank: int) -> NumpyArray:
    """The one matrix that an array repeats, for a product with one of another rank."""
    same = all(n == 1 or s == 0 for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True))
    return x[(0,) * (x.ndim - 2)] if same and x.ndim <= rank else x


def permuted(x: Any, order: Sequence[int]) -> Any:
    """The axes in another order."""
    order = [axis % x.ndim for axis in order]
    if not isinstance(x, Traced):
        return np.transpose(x, order)
    if order == [*range(x.ndim)]:
        return x
    small = x.compact
    shape = tuple(small.shape[axis] for axis in order)
    moved = [axis for axis in order if small.shape[axis] > 1]
    if moved == sorted(moved):
        result = small.reshape(shape)
    else:
        result = emit("Transpose", (small,), x.dtype, shape, perm=tuple(order))
    return repeated(result, tuple(x.shape[axis] for axis in order))


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that an argument means, in order; all for None."""
    if axis is None:
        return tuple(range(rank))
    axes = (axis,) if isinstance(axis, int | np.integer) else axis
    return tuple(sorted(int(a) % rank for a in axes))


def reduced(operator: str, x: Any, axis: Any, keepdims: bool, dtype: Any = None) -> Any:
    """A reduction along axes."""
    x = typed(x, dtype or x.dtype)
    axes = axes_of(axis, x.ndim)
    ones = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    kept = ones if keepdims else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    if all(x.shape[i] == 1 for i in axes):
        result = x
    elif x.dtype.kind in "iu" and operator in ("ReduceSum", "ReduceProd"):
        result = _reduced_integers(operator, x, axes).reshape(ones)
    else:
        working = working_type(operator, x.dtype)
        inputs = (x.astype(working), np.array(axes, np.int64))
        result = emit(operator, inputs, working, kept, keepdims=int(keepdims)).astype(x.dtype)
    return result.reshape(kept)


def guarded(x: Any, *, is_finite: bool = False, divisor: Any = None) -> bool:
    """Whether NaN in an array, or any infinity, or a divisor of 0, is found by a guard.

    This adds it.
    """
    guards = x.graph.guards
    if guards is None:
        return False
    is_pooled = 2 < x.ndim <= MOST_POOLED and x.size > prod(x.shape[:2])
    has_order = any(node.operator == "Conv" for node in x.graph.nodes.values())
    if has_order and x.value in x.graph.nodes and x.dtype == np.float32 and is_pooled:
        # ONNX Runtime reads what a convolution has written in the order of that.
        ones = (*x.shape[:2], *(1 for _ in x.shape[2:]))
        total = emit("GlobalAveragePool", (x,), x.dtype, ones)
    else:
        total = x
    total = reduced("ReduceSum", total, None, False).astype(np.float32)
    if is_finite:
        total = total * np.float32(0)
    if divisor is not None:
        total = total / divisor
    if total.value not in guards:
        guards.append(total.value)
    return True


def _reduced_integers(operator: str, x: Any, axes: Sequence[int]) -> Any:
    """A sum or a product that wraps around, which ONNX Runtime's reductions do not."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = permuted(x, (*kept, *axes))
    merged = moved.reshape(-1, prod(x.shape[axis] for axis in axes))
    if operator == "ReduceSum":
        return product(merged, np.ones((merged.shape[1], 1), x.dtype))
    while merged.shape[1] > 1:
        half = merged.shape[1] // 2
        pairs = merged[:, :half] * merged[:, half : 2 * half]
        merged = joined([pairs, merged[:, 2 * half :]], 1)
    return merged


def indexed(x: Traced, key: Any) -> Any:
    """Elements by integers, slices, new axes, and one array of integers."""
    keys = key if isinstance(key, tuple) else (key,)
    count = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if not any(k is Ellipsis for k in keys):
        keys = (*keys, Ellipsis)
    expanded: list[Any] = []
    for k in keys:
        expanded += [slice(None)] * (x.ndim - count) if k is Ellipsis else [k]
    arrays = [
        (axis, k)
        for axis, k in enumerate(k for k in expanded if k is not None)
        if isinstance(k, Traced | np.ndarray | list) and np.ndim(k)
    ]
    if arrays:
        if len(arrays) > 1 or any(k is None for k in expanded):
            raise NotTraced("an index of several arrays")
        ((axis, places),) = arrays
        others = tuple(slice(None) if i == axis else k for i, k in enumerate(expanded))
        if any(isinstance(k, int | np.integer) for k in others):
            raise NotTraced("an index of arrays and numbers")
        return taken(indexed(x, others), places, axis)
    slices, sizes, axis = [], list[int](), 0
    for k in expanded:
        if k is None:
            sizes.append(1)
            continue
        n = x.shape[axis]
        if isinstance(k, slice):
            start, stop, step = k.indices(n)
            size = len(range(start, stop, step))
            sizes.append(size)
        else:
            start, step, size = int(k) % n, 1, 1
            stop = start + 1
        slices.append((start, stop, step, size))
        axis += 1
    if 0 in sizes:
        return np.empty(sizes, x.dtype)
    small = x.compact
    cut = [
        (i, start, stop, step)
        for i, (start, stop, step, size) in enumerate(slices)
        if small.shape[i] > 1 and (size != x.shape[i] or step != 1)
    ]
    result = small
    if cut:
        axes, starts, stops, steps = (
            np.array(values, np.int64) for values in zip(*cut, strict=True)
        )
        stops = np.where((steps < 0) & (stops < 0), np.iinfo(np.int64).min, stops)
        ends = {i: size for i, (_, _, _, size) in enumerate(slices)}
        shape = [ends[i] if i in axes else n for i, n in enumerate(small.shape)]
        result = emit("Slice", (small, starts, stops, axes, steps), x.dtype, shape)
    full = [n if small.shape[i] == 1 else result.shape[i] for i, (_, _, _, n) in enumerate(slices)]
    return repeated(result, full).reshape(sizes)


def taken(x: Any, places: Any, axis: int) -> Any:
    """Elements along an axis at places, which are in range."""
    places = places if isinstance(places, Traced) else np.asarray(places)
    axis %= x.ndim
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    places = typed(places, np.int64)
    if not isinstance(x, Traced):
        x = np.ascontiguousarray(x)
    return emit("Gather", (x, places), x.dtype, shape, axis=axis)


def joined(arrays: Sequence[Any], axis: int) -> Any:
    """Arrays one after the other along an axis."""
    common = result_type(*arrays)
    parts = [typed(x, common) for x in arrays]
    axis %= parts[0].ndim
    parts = [x for x in parts if x.shape[axis]]
    shape = list(parts[0].shape)
    shape[axis] = sum(x.shape[axis] for x in parts)
    if len(parts) == 1:
        return parts[0]
    return emit("Concat", parts, common, shape, axis=axis)


def padded(x: Any, widths: Sequence[tuple[int, int]], value: Any) -> Any:
    """An array with elements in front and behind, along each axis; negative widths crop."""
    crop = tuple(
        slice(max(-low, 0), n - max(-high, 0))
        for n, (low, high) in zip(x.shape, widths, strict=True)
    )
    x = x[crop]
    widths = [(max(low, 0), max(high, 0)) for low, high in widths]
    if not any(map(any, widths)):
        return x
    if not isinstance(x, Traced):
        return np.pad(x, widths, constant_values=value)
    working = working_type("Pad", x.dtype)
    ends = np.array([*(low for low, _ in widths), *(high for _, high in widths)], np.int64)
    shape = [n + sum(pair) for n, pair in zip(x.shape, widths, strict=True)]
    fill = np.asarray(value, x.dtype).astype(working)
    return emit("Pad", (x.astype(working), ends, fill), working, shape).astype(x.dtype)
