"""`one_hot`."""

from __future__ import annotations

from math import prod
from typing import Any, Final, SupportsIndex, Unpack, overload

import numpy as np
from numpy import ndarray

from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Array, Library
from anydml.ops.one_hot import OneHot

_ZERO_AND_ONE: Final = (0, 1)
_NUMBERS: Final = np.array(_ZERO_AND_ONE)


def _as_arrays(lib: Library, indices: Any, values: Any, *others: Any) -> tuple[Array, Array]:
    lookup = lib.indices(indices, None)
    return lookup, lib.array(values, "values", lookup)


def _prepare(lib: Library, indices: Any, values: Any, depth: Any, axis: Any) -> Call:
    lookup, table = _as_arrays(lib, indices, values)
    size = _arguments.integer(depth, "depth")
    number = _arguments.axis_of(axis, lookup, "the result", 1)
    return (lookup, table), {"axis": number, "depth": size, "inserts": True}, False


def _places(lib: Library, indices: Array, attributes: Attributes) -> Array:
    """Return 1 where the result is on, else 0, each as a tuple of one index."""
    operands = (indices, lib.arange(2, indices))
    (found,) = rules.call(lib, "one_hot", operands, **attributes)
    return lib.reshape(found, (*found.shape, 1))


def _batch(
    lib: Library, operands: rules.Arrays, dims: rules.Dims, size: Any, attributes: Attributes
) -> rules.Batched:
    attributes = {**attributes, "axis": attributes["axis"] + 1}
    if dims[1] is None:
        moved = lib.moveaxis(operands[0], (dims[0] or 0,), (0,))
        return rules.call(lib, "one_hot", (moved, operands[1]), **attributes), [0]
    indices, values = rules.all_first(lib, operands, dims, size)
    tables = lib.reshape(values, (size, prod(values.shape[1:])))
    places = _places(lib, indices, attributes)
    return rules.call(lib, "gather_nd", (tables, places), batch_dims=1, clamp=False), [0]


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Add up, for each of the two values, the gradients where the result has it."""
    grad, shape = grads[0], saved.shapes[1]
    places = _places(lib, saved.operands[0], saved.attributes)
    (sums,) = rules.added_up(lib, (prod(shape),), places, grad)
    return [None, lib.reshape(sums, shape)]


def _in_blocks(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Compare the indices with their places along the axis."""
    (indices, values), axis, depth = operands, attributes["axis"], attributes["depth"]
    table = lib.reshape(values, (-1,))
    shape = indices.shape
    places = lib.positions(lib.reshape(indices, (*shape[:axis], 1, *shape[axis:])))
    numbers = lib.numbers(lib.broadcast_to(places, (*shape[:axis], depth, *shape[axis:])), axis)
    hot = places == numbers
    if not _arguments.is_uint64(indices):
        hot = hot | (places == numbers - depth)
    return [lib.where(hot, table[1], table[0])]


ONE_HOT: Final = FunctionSpec(
    OneHot,
    ("indices", "values"),
    {"axis": "integer", "depth": "size", "inserts": "flag"},
    _prepare,
    as_arrays=_as_arrays,
    batch=_batch,
    derivatives=Derivatives(_gradient, rules.linear("one_hot"), lambda a: ((0,), ()), of=(1,)),
    results=("values",),
    bounds=lambda operands, a: (a["depth"] >= 0,),
    blocks=_in_blocks,
)
_quick: Final = ONE_HOT.quick


class _Options(t.Options[t.Out], total=False):
    axis: SupportsIndex


@overload
def one_hot(
    indices: t.ArrayOf[Any],
    depth: t.Size,
    values: t.ArrayOf[t.Scalar],
    **options: Unpack[_Options[None]],
) -> t.NDArray[t.Scalar]: ...
@overload
def one_hot(
    indices: t.ArrayOf[Any],
    depth: t.Size,
    values: t.Operand = ...,
    **options: Unpack[_Options[None]],
) -> t.NDArray[Any]: ...
@overload
def one_hot(
    indices: t.Other, depth: t.Size, values: t.Operand = ..., **options: Unpack[_Options[None]]
) -> t.Other: ...
@overload
def one_hot(
    indices: t.Operand, depth: t.Size, values: t.Operand = ..., **options: Unpack[_Options[t.Out]]
) -> t.Out: ...


def one_hot(
    indices: Any,
    depth: SupportsIndex,
    values: Any = _ZERO_AND_ONE,
    *more: Any,
    axis: SupportsIndex = -1,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Write one value where an index points along a new axis, and another value elsewhere.

    For the last axis, ``y[i, j, ..., k]`` is ``values[1]`` where ``indices[i, j, ...]`` is k, and
    ``values[0]`` elsewhere. Negative indices count from the end of the axis. Indices outside the
    axis are ignored.

    Parameters
    ----------
    indices : array_like of int
        Any shape.
    depth : int
        The size of the new axis; 0 or more.
    values : array_like, optional
        The off value and the on value, two elements of any type; the result has their type. Further
        elements are ignored. A list of floats has the default float type of the library of
        `indices`: float64 for NumPy, `torch.get_default_dtype()` for PyTorch, float32 for JAX
        without ``jax_enable_x64``. 0 and 1 by default, of the library's default integer type.
    axis : int, optional
        The position of the new axis in the result; the last one by default.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape indices.shape[:axis] + (depth,) + indices.shape[axis:]
        An array of the library of `indices` and of the type of `values`, or `out`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    Notes
    -----
    From `OneHot`, ``DML_ONE_HOT_OPERATOR_DESC``; any rank, any type and empty arrays are
    extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.one_hot([0, 2, -1, 5], 3)
    array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 1],
           [0, 0, 0]])
    >>> dml.one_hot([1, 0], 2, [0.5, 2.0], axis=0)
    array([[0.5, 2. ],
           [2. , 0.5]])
    """
    if type(indices) is ndarray and not (more or unknown):
        table = _NUMBERS if values is _ZERO_AND_ONE else values
        result = _quick(out, indices, table, depth, axis)
        if result is not None:
            return result
    return dispatch(ONE_HOT, (indices, values, depth, axis), out, more or unknown)
