"""`one_hot` on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, SupportsIndex, overload

import numpy as np
from numpy import ndarray

from anydml.functions import _arguments, _engine
from anydml.functions import _spec_rules as rules
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._spec import (
    Array,
    Attribute,
    FunctionSpec,
    MovingNamespace,
    Namespace,
    Prepared,
    Saved,
)
from anydml.functions._types import ArrayOf, NDArray, Operand, Other, Out, Plain, Scalar
from anydml.libraries import as_operand
from anydml.ops.one_hot import OneHot

_call_one_hot = _engine.function_call(OneHot.KERNEL)
_ZERO_AND_ONE: Final = (0, 1)
_NUMBERS: Final = np.array(_ZERO_AND_ONE)

# ---- for integrations: operands indices and values, attributes depth and axis --------------------


def _as_arrays(xp: Namespace, indices: Any, values: Any, *others: Any) -> tuple[Array, Array]:
    lookup = xp.array(indices, "indices")
    lookup = xp.indices(lookup, lookup)
    return lookup, xp.array(values, "values", lookup)


def _prepare(xp: Namespace, indices: Any, values: Any, depth: Any, axis: Any) -> Prepared:
    lookup, table = _as_arrays(xp, indices, values)
    count = _arguments.integer(depth, "depth")
    return (lookup, table), (count, _axis(axis, lookup)), None


def _axis(axis: Any, lookup: Array) -> int:
    return _arguments.axis_of(axis, lookup, "the result", 1)


def _places(xp: Namespace, indices: Array, depth: Any, axis: int) -> Array:
    """1 where the result is on, else 0, each in an array of its own: tuples of one index."""
    (found,) = rules.call(xp, "one_hot", (indices, xp.arange(2, indices)), depth, axis)
    return xp.reshape(found, (*found.shape, 1))


def _batch(
    xp: Namespace, operands: Sequence[Array], dims: Sequence[int | None], size: Any, attributes: Any
) -> rules.Batched:
    depth, axis = attributes
    if dims[1] is None:
        moved = xp.moveaxis(operands[0], (dims[0] or 0,), (0,))
        return rules.call(xp, "one_hot", (moved, operands[1]), depth, axis + 1), [0]
    indices, values = rules.all_first(xp, operands, dims, size)
    tables = xp.reshape(values, (size, prod(values.shape[1:])))
    places = _places(xp, indices, depth, axis + 1)
    return rules.call(xp, "gather_nd", (tables, places), 1, False), [0]


def _gradient(
    xp: Namespace, saved: Saved, grads: rules.Derived, needs: Sequence[bool]
) -> rules.Derived:
    """Each of the two values has the sum of what became of it."""
    (indices, _), (grad,) = saved.operands, grads
    shape = saved.shapes[1]
    zeros = xp.zeros((prod(shape),), grad)
    places = _places(xp, indices, *saved.attributes)
    (sums,) = rules.call(xp, "scatter_nd", (zeros, places, grad), "add", True)
    return [None, xp.reshape(sums, shape)]


def _in_blocks(xp: MovingNamespace, operands: Sequence[Array], attributes: Any) -> Sequence[Array]:
    (indices, values), (depth, axis) = operands, attributes
    table = xp.reshape(values, (-1,))
    shape = indices.shape
    places = xp.positions(xp.reshape(indices, (*shape[:axis], 1, *shape[axis:])))
    numbers = xp.numbers(xp.broadcast_to(places, (*shape[:axis], depth, *shape[axis:])), axis)
    hot = places == numbers
    if not xp.is_uint64(indices):
        hot = hot | (places == numbers - depth)
    return [xp.where(hot, table[1], table[0])]


ONE_HOT: Final = FunctionSpec(
    "one_hot",
    OneHot,
    ("indices", "values"),
    (Attribute("depth", "size"), Attribute("axis", "integer")),
    _prepare,
    _as_arrays,
    arguments=lambda operands, a: a,
    keywords=lambda a: {"depth": a[0], "axis": a[1]},
    batch=_batch,
    tangent=rules.linear("one_hot"),
    gradient=_gradient,
    saves=lambda a: ((0,), ()),
    moves=(1,),
    result_types=(1,),
    inferred=lambda operands, attribute_values: {**attribute_values, "inserts": True},
    bounds=lambda operands, a: (a[0] >= 0,),
    chunking=_in_blocks,
)


@overload
def one_hot(
    indices: ArrayOf[Any],
    depth: SupportsIndex,
    values: ArrayOf[Scalar],
    *,
    axis: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def one_hot(
    indices: ArrayOf[Any] | Plain,
    depth: SupportsIndex,
    values: Operand = ...,
    *,
    axis: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def one_hot(
    indices: Other,
    depth: SupportsIndex,
    values: Operand = ...,
    *,
    axis: SupportsIndex = ...,
    out: None = ...,
) -> Other: ...


@overload
def one_hot(
    indices: Operand,
    depth: SupportsIndex,
    values: Operand = ...,
    *,
    axis: SupportsIndex = ...,
    out: Out,
) -> Out: ...


def one_hot(
    indices: Any,
    depth: SupportsIndex,
    values: Any = _ZERO_AND_ONE,
    *,
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

    See Also
    --------
    OneHot : the DirectML operator.

    Notes
    -----
    From ``DML_ONE_HOT_OPERATOR_DESC``; any rank, any type and empty arrays are extensions.

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
    if unknown:
        raise unknown_keyword(one_hot, unknown, depth="num_classes classes size n")
    if type(indices) is ndarray and out is None:
        table = _NUMBERS if values is _ZERO_AND_ONE else values
        result = _call_one_hot(None, indices, table, depth, axis)
        if result is not None:
            return result
    return dispatch(ONE_HOT, (indices, values, depth, axis), out)


@ONE_HOT.for_memory
def _one_hot(indices: Any, values: Any, depth: Any, axis: Any, out: Any) -> Any:
    array, wrap = as_operand(indices, "indices")
    lookup = _arguments.as_indices(array, indices)
    table = _arguments.to_device_of(as_operand(values, "values")[0], lookup)
    count = _arguments.integer(depth, "depth")
    attributes = {"axis": _axis(axis, lookup), "depth": count, "inserts": True}
    inferred = _engine.infer(OneHot, (lookup, table), attributes)
    (spec,) = inferred.outputs
    operands = [("indices", lookup), ("values", table)]
    result = _arguments.output("one_hot", out, "out", spec.shape, _engine.dtype_of(spec), operands)
    _engine.run(OneHot, (lookup, table), (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)
