"""`top_k`.

Calls with options that the plain kernel does not have are those of `TOP_K_ROWS`. Its kernel takes
the lengths of the rows as a second operand, which is empty if all rows are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, Literal, NamedTuple, SupportsIndex, Unpack, overload

import numpy as np
from numpy import ndarray

from anydml.core._json import check_word
from anydml.core.errors import ArgumentError
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.functions import _arguments, _scatter
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Part, Tree
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Array, Library, call_with_numbers
from anydml.functions.gather_elements import gather_elements
from anydml.functions.join import join
from anydml.ops import _rules
from anydml.ops._numbers import bits_of
from anydml.ops.top_k import TopK1


class TopKResult(NamedTuple, Generic[t.Values, t.Indices]):
    """The result of `top_k`: the values and their indices along the axis."""

    values: t.Values
    indices: t.Indices


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
    return (data,), attributes, is_scalar and count == 1


def _has_lengths(shapes: Sequence[tuple[Any, ...]]) -> bool:
    """Whether rows have lengths of their own, from the shapes of the operands."""
    return len(shapes) > 1 and shapes[1] != (0,)


def _tangent(lib: Library, saved: Saved, tangents: rules.Derived) -> rules.Derived:
    """Return the tangents of the chosen elements; none where there is no element."""
    indices, axis = saved.results[1], saved.attributes["axis"]
    filled = _has_lengths(saved.shapes)
    places = lib.clip(indices, 0, None) if filled else indices
    operands = (tangents[0], places)
    (moved,) = rules.call(lib, "gather_elements", operands, axis=axis, clamp=False)
    return [lib.where(indices < 0, lib.zeros(moved.shape, moved), moved) if filled else moved, None]


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Scatter the gradients; no position comes twice, but for those without an element."""
    grad, indices = grads[0], saved.results[1]
    if _has_lengths(saved.shapes):
        grad = lib.where(indices < 0, lib.zeros(grad.shape, grad), grad)
        indices = lib.clip(indices, 0, None)
    summed = rules.added_up(lib, saved.shapes[0], indices, grad, axis=saved.attributes["axis"])
    return [*summed, *(None for _ in saved.shapes[1:])]


_DERIVATIVES: Final = Derivatives(_gradient, _tangent, lambda attributes: ((), (1,)))


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
    batch=rules.batch_along("top_k"),
    derivatives=_DERIVATIVES,
    results=("x", "index_dtype"),
    result_class=TopKResult,
    bounds=lambda operands, a: (a["k"] >= 0, a["k"] <= operands[0].shape[a["axis"]]),
    program=call_with_numbers,
    check=lambda operands, a: _arguments.check_type(operands[0], _arguments.ORDERED),
    blocks=Tree("axis", _of_block, _merge),
)


# ---- options ------------------------------------------------------------------------------------

_NO_LENGTHS: Final = np.empty(0, np.int32)
_CHOICES: Final = {
    "mode": ("largest", "smallest"),
    "nan": ("largest", "last"),
    "tie_break": ("first", "last"),
}


def _order(
    mode: Any, largest: Any, nan: Any, tie_break: Any, sorted: Any
) -> tuple[bool, bool, bool, bool]:
    """Check the options; return the attributes `largest`, `sorted`, `nan_last` and `last_first`."""
    for name, value in {"mode": mode, "nan": nan, "tie_break": tie_break}.items():
        if (name, value) != ("mode", None):
            check_word(name, value, _CHOICES[name])
    wanted = mode != "smallest"
    if largest is not None:
        wanted = _arguments.flag(largest, "largest")
        if mode is not None and wanted != (mode == "largest"):
            raise ArgumentError(f"largest: expected {not wanted} (mode={mode!r}), got {wanted}")
    return wanted, _arguments.flag(sorted, "sorted"), nan == "last", tie_break == "last"


def _lengths_of(x: Any, lengths: Any) -> Any:
    """Return the lengths for the call, where shape (0,) stands for rows that are whole."""
    if lengths is None:
        return _NO_LENGTHS if type(x) is ndarray else ()
    if _shape_of(lengths) == (0,) and 0 not in _shape_of(x):
        raise ArgumentError("lengths: expected one for each row, got shape (0,)")
    return lengths


def _shape_of(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


class TopKRows(TopK1):
    """`TopK1` with options; no operator of DirectML."""

    KERNEL = "top_k_rows"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        inferred = TopK1.infer(inputs[:1], attributes)
        shape, axis = inputs[0].shape, attributes["axis"]
        rows = (*shape[:axis], *shape[axis + 1 :])
        violations = () if inferred.violations else (_one_for_each(rows, inputs[1].shape),)
        return Inferred.of(inferred.outputs, *violations) if violations else inferred


def _one_for_each(rows: tuple[Any, ...], shape: tuple[Any, ...]) -> Rules:
    if shape != (0,):
        yield _rules.same_shape("LengthsTensor", shape, rows, "one for each row")


def _prepare_rows(
    lib: Library, x: Any, lengths: Any, axis: Any, k: Any, largest: Any, sorted: Any,
    nan_last: Any, last_first: Any, fill_value: Any, index_dtype: Any,
) -> Call:  # fmt: skip
    (data,), known, is_scalar = _prepare(lib, x, axis, k, largest, index_dtype)
    kind, number = known.pop("index_dtype"), known["axis"]
    known.update(sorted=sorted, nan_last=nan_last, last_first=last_first, fill_value=fill_value)
    known["index_dtype"] = kind
    counts = lib.indices(lengths, data, "lengths")
    if tuple(counts.shape) != (0,) and "uint" in str(kind):
        raise ArgumentError(
            f"index_dtype: expected a signed type (positions without an element have index -1, "
            f"because of lengths=), got {kind}"
        )
    if not counts.ndim:
        counts = lib.broadcast_to(counts, (*data.shape[:number], *data.shape[number + 1 :]))
    return (data, counts), known, is_scalar


def _check_rows(operands: rules.Arrays, attributes: Attributes) -> None:
    """Refuse other types than a kernel takes, and lengths in memory that no row has."""
    x, lengths = operands
    _arguments.check_type(x, _arguments.ORDERED)
    if not isinstance(lengths, np.ndarray):
        return
    size = x.shape[attributes["axis"]]
    wrong = lengths[(lengths < 0) | (lengths > size)]
    if wrong.size:
        raise ArgumentError(f"lengths: expected 0..{size}, got {wrong.flat[0]}")


def _program(
    lib: Library, spec: FunctionSpec, operands: rules.Arrays, attributes: Attributes
) -> rules.Arrays:
    """Call the kernel with the bits of the fill value, and with lengths that rows have."""
    x, lengths = operands
    if not lib.in_memory:
        lengths = lib.clip(lengths, 0, x.shape[attributes["axis"]])
    fill = bits_of(_arguments.number(attributes["fill_value"], "fill_value", x), x.dtype)
    return call_with_numbers(lib, spec, (x, lengths), {**attributes, "fill": fill})


def _batch(
    lib: Library, operands: rules.Arrays, dims: rules.Dims, size: Any, attributes: Attributes
) -> rules.Batched:
    """Select from the rows of all batches; rows that are whole stay so."""
    (x, lengths), axis = operands, attributes["axis"]
    first = rules.to_first(lib, x, dims[0], size)
    if dims[1] is not None or tuple(lengths.shape) != (0,):
        lengths = rules.to_first(lib, lengths, dims[1], size)
    changed = {**attributes, "axis": axis + 1}
    return rules.call(lib, "top_k_rows", (first, lengths), **changed), [0, 0]


def _in_steps(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Select by the plain kernel: options change the keys, or the order of the indices."""
    (x, lengths), axis, largest = operands, attributes["axis"], attributes["largest"]
    size, keys, numbers, length = x.shape[axis], x, lib.numbers(x, axis), x.shape[axis]
    filled = tuple(lengths.shape) != (0,)
    if filled:
        rows = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        length = lib.reshape(lib.positions(lib.clip(lengths, 0, size)), rows)

    def along(name: str, *arrays: Array, **others: Any) -> rules.Arrays:
        return rules.call(lib, name, arrays, axis=axis, **others)

    def first_of(array: Array, k: int, largest: bool) -> rules.Arrays:
        return along("top_k", array, k=k, largest=largest, index_dtype=np.dtype(np.int64))

    if attributes["last_first"] and size:  # elements are selected in the order of reading
        order = lib.broadcast_to(lib.clip(length - 1 - numbers, 0, None), x.shape)
        (keys,) = along("gather_elements", keys, order, clamp=False)
    if attributes["nan_last"] and largest and "float" in str(x.dtype):  # NaN is the largest key
        keys, largest = -keys, False
    if filled:
        keys = lib.where(numbers < length, keys, _last_of(keys.dtype, largest))
    _, indices = first_of(keys, attributes["k"], largest)
    rank = lib.numbers(indices, axis)
    if attributes["last_first"]:
        indices = length - 1 - indices
    if not attributes["sorted"]:
        indices = lib.where(rank < length, indices, size)
        indices, _ = first_of(indices, attributes["k"], False)
    there = rank < length
    places = lib.where(there, indices, 0) if size else indices
    (values,) = along("gather_elements", x, places, clamp=False)
    if filled:
        fill = _arguments.number(attributes["fill_value"], "fill_value", x)
        values = lib.where(there, values, fill)
        indices = lib.where(there, indices, -1)
    return [values, indices.astype(attributes["index_dtype"])]


def _last_of(dtype: Any, largest: bool) -> Any:
    """Return the key that is selected last."""
    if "float" in str(dtype) and not largest:
        return np.asarray(np.nan, dtype)
    return _scatter.identity("max" if largest else "min", dtype)


TOP_K_ROWS: Final = FunctionSpec(
    TopKRows,
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
    as_arrays=rules.array_and_lengths,
    batch=_batch,
    derivatives=_DERIVATIVES,
    results=("x", "index_dtype"),
    result_class=TopKResult,
    bounds=TOP_K.bounds,
    program=_program,
    check=_check_rows,
    blocks=_in_steps,
)


_quick: Final = TOP_K.quick
_quick_rows: Final = TOP_K_ROWS.quick


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
    x: t.ArrayOf[t.Scalar],
    k: SupportsIndex,
    **options: Unpack[_Options[t.TypeOf[t.Index] | None, None]],
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
    x: t.Operand,
    k: SupportsIndex,
    **options: Unpack[_Options[t.GivenIndexType, tuple[t.Out, t.OutIndices] | list[Any]]],
) -> TopKResult[t.Out, t.OutIndices]: ...


def top_k(
    x: Any,
    k: SupportsIndex,
    *more: Any,
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
        Bools, integers of 8 to 64 bits, or floats of 16 to 64 bits. Rank 0 counts as one element
        along one axis; the results then have rank 0, too, unless k is 0.
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
        Positions of the results without an element have index -1, for which `index_dtype` must be
        signed, and `fill_value`. Lengths outside 0..n are an error if they are in the processor's
        memory; those on a GPU and in arrays of JAX and Dask are clamped.
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

    Notes
    -----
    From `TopK1`, ``DML_TOP_K1_OPERATOR_DESC``; any rank, k = 0, float64 and empty arrays are
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
        order = _order(mode, largest, nan, tie_break, sorted)
        if lengths is not None or order[1:] != (True, False, False):
            counts = _lengths_of(x, lengths)
            arguments = (x, counts, axis, k, *order, fill_value, index_dtype)
            # The general path refuses unsigned indices with lengths.
            is_simple = not (more or unknown) and (lengths is None or index_dtype is None)
            if is_simple and type(x) is type(counts) is ndarray:
                result = _quick_rows(out, *arguments)
                if result is not None:
                    return result
            return dispatch(TOP_K_ROWS, arguments, out, more or unknown)
        largest = order[0]
    elif largest is None:
        largest = True
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, axis, k, largest, index_dtype)
        if result is not None:
            return result
    return dispatch(TOP_K, (x, axis, k, largest, index_dtype), out, more or unknown)
