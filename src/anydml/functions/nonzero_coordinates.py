"""`nonzero_coordinates`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, SupportsIndex, Unpack, overload

import numpy as np
from numpy import ndarray

from anydml._native import INDEX_TYPES, MOST_ELEMENTS
from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Rows
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, FunctionSpec
from anydml.functions._library import Array, Library
from anydml.ops.nonzero_coordinates import NonzeroCoordinates

_LIMITS: Final = {name: np.iinfo(name) for name in INDEX_TYPES}
_COMPARED: Final = (*_arguments.ORDERED, "complex64", "complex128")


def _prepare(lib: Library, x: Any, index_dtype: Any, size: Any, fill_value: Any) -> Call:
    data = lib.array(x, "x")
    kind = lib.index_type(index_dtype, data, data.shape)
    rows, fill = -1, 0  # as many rows as elements that are not zero
    if size is not None:
        rows = _arguments.integer(size, "size")
        if not 0 <= rows <= MOST_ELEMENTS:
            raise ArgumentError(f"size: expected 0..2^48 rows, got {short_repr(rows)}")
        fill = _arguments.integer(fill_value, "fill_value")
        limits = _LIMITS[str(kind).removeprefix("torch.")]
        if not limits.min <= fill <= limits.max:
            raise ArgumentError(
                f"fill_value: expected a value that {limits.dtype} can hold, got {short_repr(fill)}"
            )
    attributes = {"columns": data.ndim, "index_dtype": kind, "size": rows, "fill_value": fill}
    return (data,), attributes, False


def _batch(
    lib: Library, operands: rules.Arrays, dims: rules.Dims, size: Any, attributes: Attributes
) -> rules.Batched:
    """Cut the rows of all members out of those of the batch.

    Only with a size do all members of a batch have as many rows.
    """
    rows, fill = attributes["size"], attributes["fill_value"]
    if rows < 0:
        raise ArgumentTypeError(
            "size: expected an integer under vmap, because the number of nonzero elements differs "
            "between the members of a batch, got None; pass size=, or call outside of vmap"
        )
    x = rules.to_first(lib, operands[0], dims[0], size)
    total = prod(x.shape)
    if not rows or not total:
        (of_one,) = rules.call(lib, "nonzero_coordinates", (x[0],), **attributes)
        return [rules.to_first(lib, of_one, None, size)], [0]
    # Padding rows get member number `size`, so they sort last.
    of_all = {**attributes, "columns": x.ndim, "size": total, "fill_value": size}
    (found,) = rules.call(lib, "nonzero_coordinates", (x,), **of_all)
    members = lib.positions(found[..., 0])
    starts = lib.searchsorted(members, lib.arange(size + 1, members))
    row_numbers = lib.reshape(starts[:-1], (-1, 1)) + lib.arange(rows, members)
    inside = lib.reshape(row_numbers < lib.reshape(starts[1:], (-1, 1)), (size, rows, 1))
    at = lib.clip(row_numbers, 0, total - 1)
    (taken,) = rules.call(lib, "gather", (found[..., 1:], at), axis=0, clamp=False)
    return [lib.where(inside, taken, fill)], [0]


def _program(
    lib: Library, spec: FunctionSpec, operands: rules.Arrays, attributes: Attributes
) -> rules.Arrays:
    """Find as many rows as there may be; then cut them off, or fill them in."""
    (x,), columns, size = operands, attributes["columns"], attributes["size"]
    kind, fill, total = attributes["index_dtype"], attributes["fill_value"], prod(x.shape)
    source = lib.is_nonzero(x) if x.dtype.kind == "c" else x
    if lib.in_memory:
        return [lib.run_measured(spec.operator, source, {"columns": columns}, kind, size, fill)]
    like = np.empty(0, kind)
    if not total or not size:
        return [lib.full((size, columns), fill, like)]
    outputs = ((1,), np.uint32), ((total, columns), kind)
    count, rows = lib.run(spec.operator, (source,), outputs, {"columns": columns}, (), True)
    row_numbers = lib.arange(size, count)
    taken = lib.take(rows, lib.clip(row_numbers, 0, total - 1), 0)
    return [lib.where(lib.reshape(row_numbers < count, (size, 1)), taken, fill)]


def _mark(chunk: Array) -> Any:
    """Return one byte for each element."""
    return chunk != 0


def _of_block(chunk: Array, starts: Sequence[int], attributes: Attributes) -> Array:
    """Return coordinates in the whole array."""
    found: Array = nonzero_coordinates(chunk, index_dtype=attributes["index_dtype"])
    for axis, start in enumerate(starts):
        if start:
            found[:, axis] += start
    return found


NONZERO_COORDINATES: Final = FunctionSpec(
    NonzeroCoordinates,
    ("x",),
    {
        "columns": "integer",
        "index_dtype": "type",
        "size": ("size", -1),
        "fill_value": ("integer", 0),
    },
    _prepare,
    batch=_batch,
    results=("index_dtype",),
    program=_program,
    check=lambda operands, a: _arguments.check_type(operands[0], _COMPARED),
    blocks=Rows(_mark, _of_block),
)
_quick: Final = NONZERO_COORDINATES.quick


class _Options(t.IndexOptions[t.IndexType, t.Out], total=False):
    size: SupportsIndex | None
    fill_value: SupportsIndex


@overload
def nonzero_coordinates(
    x: t.ArrayOf[Any], **options: Unpack[_Options[t.TypeOf[t.Index] | None, None]]
) -> t.NDArray[t.Index]: ...
@overload
def nonzero_coordinates(
    x: t.ArrayOf[Any], **options: Unpack[_Options[t.GivenIndexType, None]]
) -> t.NDArray[Any]: ...
@overload
def nonzero_coordinates(
    x: t.Other, **options: Unpack[_Options[t.GivenIndexType, None]]
) -> t.Other: ...
@overload
def nonzero_coordinates(
    x: t.Operand, **options: Unpack[_Options[t.GivenIndexType, t.Out]]
) -> t.Out: ...


def nonzero_coordinates(
    x: Any,
    *more: Any,
    index_dtype: Any = None,
    size: SupportsIndex | None = None,
    fill_value: SupportsIndex = 0,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Return the coordinates of all nonzero elements, in ascending element order.

    Negative zero counts as zero, NaN does not.

    Parameters
    ----------
    x : array_like
        Bools, floats, integers or complex numbers, of any rank.
    index_dtype : optional
        The type of the coordinates: int64, int32, uint32 or uint64, as a name, a NumPy type or a
        type of the library. The default is the type of `out`, or the type that the library indexes
        with: ``np.intp``, int64 for PyTorch, JAX's default integer.
    size : int, optional
        The number of rows of the result, as in ``jnp.nonzero``. Further coordinates are dropped,
        and missing rows contain `fill_value`. The default is the number of nonzero elements.
    fill_value : int, optional
        0 by default.
    out : array, shape (count, x.ndim), optional
        The array to write the coordinates to; its shape must fit exactly.

    Returns
    -------
    array, shape (count, x.ndim)
        A row of coordinates for each nonzero element, or `size` rows, as an array of the library
        of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    Notes
    -----
    From `NonzeroCoordinates`, ``DML_NONZERO_COORDINATES_OPERATOR_DESC``; any rank, 64-bit types,
    bools and empty arrays are extensions. A scalar gives one row without coordinates if it is not
    zero, and no rows otherwise.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.nonzero_coordinates([[1.0, -0.0], [0.0, 5.0]])
    array([[0, 0],
           [1, 1]])
    >>> dml.nonzero_coordinates([0, 5, 0], size=2, fill_value=-1)
    array([[ 1],
           [-1]])
    """
    if type(x) is ndarray and size is None and not (more or unknown):
        coordinates = _quick(out, x, index_dtype)
        if coordinates is not None:
            return coordinates
    return dispatch(NONZERO_COORDINATES, (x, index_dtype, size, fill_value), out, more or unknown)
