"""`top_k`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    SupportsIndex,
    TypeVar,
    Unpack,
    overload,
)

import numpy as np
from numpy import ndarray

from anydml.functions import _arguments, _engine, _selection
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Part, Tree
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Array, Library, call_with_numbers
from anydml.functions.gather_elements import gather_elements
from anydml.functions.join import join
from anydml.ops.top_k import TopK1

Values = TypeVar("Values")
Indices = TypeVar("Indices")


class TopKResult(NamedTuple, Generic[Values, Indices]):
    """The result of `top_k`: the values and their indices along the axis."""

    values: Values
    indices: Indices


_quick = _engine.function_call(TopK1.KERNEL, TopKResult)
_quick_rows = _engine.function_call(_selection.TopKRows.KERNEL, TopKResult)


def _prepare(lib: Library, x: Any, axis: Any, k: Any, largest: Any, index_dtype: Any) -> Call:
    data = lib.array(x, "x")
    is_scalar = data.ndim == 0
    if is_scalar:
        data = lib.reshape(data, (1,))
    number = _arguments.axis_of(axis, data)
    size = data.shape[number]  # an argument's own code may change the array
    count = _arguments.integer(k, "k")
    first = largest is None or _arguments.flag(largest, "largest")
    kind = lib.index_type(index_dtype, data, (size,))
    attributes = {"axis": number, "k": count, "largest": first, "index_dtype": kind}
    return Call((data,), attributes, is_scalar and count == 1)


def _tangent(lib: Library, saved: Saved, tangents: rules.Derived) -> rules.Derived:
    """Return the tangents of the chosen elements."""
    operands, axis = (tangents[0], rules.of(saved.results[1])), saved.attributes["axis"]
    return [*rules.call(lib, "gather_elements", operands, axis=axis, clamp=False), None]


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Scatter the gradients; no position comes twice, so nothing is added up."""
    grad = rules.of(grads[0])
    operands = (lib.zeros(saved.shapes[0], grad), rules.of(saved.results[1]), grad)
    attributes = {"axis": saved.attributes["axis"], "reduction": "add", "include_self": True}
    return rules.call(lib, "scatter_elements", operands, **attributes)


def _of_block(chunk: Array, start: int, attributes: Attributes) -> Part:
    """Return the first k of a block, with int64 indices into the whole axis."""
    k, axis = min(attributes["k"], chunk.shape[attributes["axis"]]), attributes["axis"]
    found = top_k(chunk, k, axis=axis, largest=attributes["largest"], index_dtype="int64")
    found.indices[...] += start
    return tuple(found)


def _merge(parts: Sequence[Part], attributes: Attributes) -> Part:
    """Return the first k of several blocks."""
    # Parts follow one another, and ties within a part are in the order of their indices: the first
    # of equal values is the one with the lowest index.
    axis = attributes["axis"]
    values, indices = (join([part[i] for part in parts], axis=axis) for i in (0, 1))
    count = min(attributes["k"], values.shape[axis])
    chosen = top_k(values, count, axis=axis, largest=attributes["largest"])
    return chosen.values, gather_elements(indices, chosen.indices, axis=axis)


TOP_K: Final = FunctionSpec(
    TopK1,
    ("x",),
    {"axis": "integer", "k": "size", "largest": "flag", "index_dtype": "type"},
    _prepare,
    rules.one_array,
    batch=rules.batch_along("top_k"),
    derivatives=Derivatives(_gradient, _tangent, lambda a: ((), (1,))),
    results=("x", "index_dtype"),
    result_class=TopKResult,
    bounds=lambda operands, a: (a["k"] >= 0, a["k"] <= operands[0].shape[a["axis"]]),
    program=call_with_numbers,
    check=lambda operands, a: _arguments.check_type(operands[0], _arguments.ORDERED),
    blocks=Tree("axis", _of_block, _merge),
)


def _as_arrays(lib: Library, x: Any, lengths: Any, *others: Any) -> tuple[Array, Array]:
    data = lib.array(x, "x")
    return data, lib.indices(lengths, data, "lengths")


def _prepare_rows(
    lib: Library,
    x: Any,
    lengths: Any,
    axis: Any,
    k: Any,
    largest: Any,
    sorted: Any,
    nan_last: Any,
    last_first: Any,
    fill_value: Any,
    index_dtype: Any,
) -> Call:
    plain = _prepare(lib, x, axis, k, largest, index_dtype)
    (data,), known = plain.operands, plain.attributes
    attributes = {
        "axis": known["axis"], "k": known["k"], "largest": known["largest"], "sorted": sorted,
        "nan_last": nan_last, "last_first": last_first, "fill_value": fill_value,
        "index_dtype": known["index_dtype"],
    }  # fmt: skip
    counts = _selection.of_rows(lib, lengths, data, attributes)
    return Call((data, counts), attributes, plain.is_scalar)


TOP_K_ROWS: Final = FunctionSpec(
    _selection.TopKRows,
    ("x", "lengths"),
    {
        "axis": "integer",
        "k": "size",
        "largest": "flag",
        "sorted": "flag",
        "nan_last": "flag",
        "last_first": "flag",
        "fill_value": "number",
        "index_dtype": "type",
    },
    _prepare_rows,
    _as_arrays,
    batch=_selection.batch,
    derivatives=Derivatives(_selection.gradient, _selection.tangent, lambda a: ((), (1,))),
    results=("x", "index_dtype"),
    result_class=TopKResult,
    bounds=TOP_K.bounds,
    program=_selection.program,
    check=_selection.check,
    blocks=_selection.in_steps,
    part_of="top_k",
)
"""Calls of `top_k` with options that the plain kernel does not have."""


class _Options(t.IndexOptions[t.IndexType, t.Out], total=False):
    axis: SupportsIndex
    largest: bool | None
    sorted: bool
    mode: Literal["largest", "smallest"] | None
    nan: Literal["largest", "last"]
    tie_break: Literal["first", "last"]
    lengths: Any
    fill_value: float


@overload
def top_k(
    x: t.ArrayOf[t.Scalar], k: SupportsIndex, **options: Unpack[_Options[None, None]]
) -> TopKResult[t.NDArray[t.Scalar], t.NDArray[np.intp]]: ...


@overload
def top_k(
    x: t.Plain, k: SupportsIndex, **options: Unpack[_Options[None, None]]
) -> TopKResult[t.NDArray[Any], t.NDArray[np.intp]]: ...


@overload
def top_k(
    x: t.ArrayOf[t.Scalar], k: SupportsIndex, **options: Unpack[_Options[t.TypeOf[t.Index], None]]
) -> TopKResult[t.NDArray[t.Scalar], t.NDArray[t.Index]]: ...


@overload
def top_k(
    x: t.ArrayOf[t.Scalar], k: SupportsIndex, **options: Unpack[_Options[t.GivenIndexType, None]]
) -> TopKResult[t.NDArray[t.Scalar], t.NDArray[Any]]: ...


@overload
def top_k(
    x: t.Other, k: SupportsIndex, **options: Unpack[_Options[t.GivenIndexType, None]]
) -> TopKResult[t.Other, t.Other]: ...


@overload
def top_k(
    x: t.Plain, k: SupportsIndex, **options: Unpack[_Options[t.TypeOf[t.Index], None]]
) -> TopKResult[t.NDArray[Any], t.NDArray[t.Index]]: ...


@overload
def top_k(
    x: t.Plain, k: SupportsIndex, **options: Unpack[_Options[t.GivenIndexType, None]]
) -> TopKResult[t.NDArray[Any], t.NDArray[Any]]: ...


@overload
def top_k(
    x: t.Operand,
    k: SupportsIndex,
    **options: Unpack[_Options[t.GivenIndexType, tuple[t.Out, t.OutIndices] | list[Any]]],
) -> TopKResult[t.Out, t.OutIndices]: ...


def top_k(
    x: Any,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = -1,
    largest: bool | None = None,
    sorted: bool = True,
    index_dtype: Any = None,
    mode: Literal["largest", "smallest"] | None = None,
    nan: Literal["largest", "last"] = "largest",
    tie_break: Literal["first", "last"] = "first",
    lengths: Any = None,
    fill_value: Any = 0,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Return the k largest or smallest elements along an axis, sorted, with their indices.

    Ties are in ascending index order in both directions. NaN counts as larger than every number,
    all NaNs tie, and -0.0 ties with +0.0. A returned value has the bits of the element. The result
    of a row does not depend on the other rows.

    Parameters
    ----------
    x : array_like, shape (..., n, ...)
        Bools, floats or integers of 8 to 64 bits. Rank 0 counts as one element along one
        axis; the results then have rank 0, too, unless k is 0.
    k : int
        0 to n.
    axis : int, optional
        The axis of n elements; the last by default.
    largest : bool, optional
        Largest first (the default), or (False) smallest first.
    sorted : bool, optional
        Whether the results are in the order of the values; with False, in that of the indices.
    index_dtype : optional
        The type of the indices: int64, int32, uint32 or uint64, as a name, a NumPy type or a type
        of the library. The default is the type of the indices in `out`, or the type that the
        library indexes with: ``np.intp``, int64 for PyTorch, JAX's default integer.
    mode : {"largest", "smallest"}, optional
        Another word for `largest`.
    nan : {"largest", "last"}, optional
        With "last", NaN is selected only when nothing else is left, in either mode.
    tie_break : {"first", "last"}, optional
        Which of equal elements comes first: the one with the lowest or with the highest index.
    lengths : integer or array_like of integers, shape of `x` without the axis, optional
        How many elements of each row count, in 0..n; the elements behind them are never selected.
        Positions of the results without an element have index -1 and `fill_value`. Lengths outside
        0..n are an error in the processor's memory, and limited to it on GPUs, in JAX and in Dask.
    fill_value : number, optional
        See `lengths`; 0 by default.
    out : tuple of two arrays, optional
        The arrays to write values and indices to, with the shape of `x` and k along the axis. None
        means that the call allocates this one.

    Returns
    -------
    TopKResult
        ``values`` and ``indices``, arrays of the library of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    TopK1 : the DirectML operator.

    Notes
    -----
    From ``DML_TOP_K1_OPERATOR_DESC``; any rank, k = 0, k = n, float64 and empty arrays are
    extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> values, indices = dml.top_k([3.0, 1.0, 3.0, 2.0], 2)
    >>> values, indices
    (array([3., 3.]), array([0, 2]))
    """
    if mode is not None or not (
        nan == "largest" and tie_break == "first" and lengths is None and sorted is True
    ):
        order = _selection.Order.of(mode, largest, nan, tie_break, sorted)
        if lengths is not None or order[1:] != (True, False, False):
            counts = _selection.NO_LENGTHS if lengths is None else lengths
            arguments = (x, counts, axis, k, *order, fill_value, index_dtype)
            # The general path refuses unsigned indices with lengths.
            is_simple = not unknown and (lengths is None or index_dtype is None)
            if is_simple and type(x) is type(counts) is ndarray:
                result = _quick_rows(out, *arguments)
                if result is not None:
                    return result
            return dispatch(TOP_K_ROWS, arguments, out, unknown)
        largest = order.largest
    elif largest is None:
        largest = True
    if type(x) is ndarray and not unknown:
        result = _quick(out, x, axis, k, largest, index_dtype)
        if result is not None:
            return result
    return dispatch(TOP_K, (x, axis, k, largest, index_dtype), out, unknown)
