"""`top_k`, `nonzero_coordinates`, gathers and scatters in traced code."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import numpy as jnp

from anydml.errors import ArgumentError
from anydml.functions import _arguments, _attributes, _combining, _engine, selection
from anydml.functions import gather as gathers
from anydml.functions import scatter as scatters
from anydml.functions.selection import TopKResult
from anydml.jax import _calls, _eager
from anydml.jax._calls import Call
from anydml.jax._kernels import Traced
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.top_k import TopK1


@_eager.compiled(selection.top_k, operands=1)
def top_k(
    x: Any,
    k: Any,
    *,
    axis: Any = -1,
    largest: Any = True,
    sorted: Any = True,
    index_dtype: Any = None,
    out: None = None,
) -> TopKResult[Traced, Traced]:
    """`anydml.top_k` in traced code; the values have a gradient.

    Parameters
    ----------
    x, k, axis, largest, index_dtype
        As for `anydml.top_k`; all but `x` are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    TopKResult
        Values and indices.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import top_k
    >>> jax.jit(lambda x: top_k(x, 2).indices)(jnp.array([3.0, 1.0, 3.0])).tolist()
    [0, 2]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    _attributes.check_type(data, _attributes.ORDERED)
    shaped = data if data.ndim else data.reshape(1)
    number = _arguments.axis_of(axis, shaped)
    count = _arguments.integer(k, "k")
    inferred = _engine.infer(TopK1, (shaped,), {"axis": number, "k": count})
    first = _arguments.flag(largest, "largest")
    size = shaped.shape[number]
    kind = _arguments.result_indices(index_dtype, data, (size,), None, "out[1]")
    shape = inferred.outputs[0].shape
    given = (("k", count), ("axis", number), ("largest", first))
    outputs = ((shape, shaped.dtype.name), (shape, kind.name))
    values, indices = Call("top_k", given, outputs)(shaped)
    if not data.ndim and count == 1:
        values, indices = values.reshape(()), indices.reshape(())
    return TopKResult(values, indices)


def nonzero_coordinates(
    x: Any,
    *,
    index_dtype: Any = None,
    size: Any = None,
    fill_value: Any = 0,
    out: None = None,
) -> Traced:
    """`anydml.nonzero_coordinates` of JAX's arrays; traced code needs a number of rows.

    Parameters
    ----------
    x, index_dtype, fill_value
        As for `anydml.nonzero_coordinates`; all but `x` are static.
    size : int, optional
        How many rows the result has. Without it `x` must have memory.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array, shape (size, x.ndim)
        The first rows, and rows of `fill_value` where there are not so many.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import nonzero_coordinates
    >>> rows = jax.jit(lambda x: nonzero_coordinates(x, size=3, fill_value=9))(jnp.array([0, 4, 5]))
    >>> rows.tolist()
    [[1], [2], [9]]
    """
    if size is None and out is None and _eager.has_memory(x):
        return selection.coordinates_of(x, index_dtype)
    return _first_coordinates(x, index_dtype=index_dtype, size=size, fill_value=fill_value, out=out)


@_eager.compiled(selection.nonzero_coordinates, operands=1)
def _first_coordinates(x: Any, *, index_dtype: Any, size: Any, fill_value: Any, out: Any) -> Traced:
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    _attributes.check_type(data, _attributes.COMPARED)
    if size is None:
        raise ArgumentError(
            "size: expected a number of rows, which traced code must know beforehand, got None"
        )
    kind = _arguments.result_indices(index_dtype, data, data.shape, None, "out")
    rows, fill = _attributes.sized(size, fill_value, np.iinfo(kind))
    _, columns = _engine.infer(NonzeroCoordinates, (data,), {"columns": data.ndim}).outputs[1].shape
    given = (("size", rows), ("fill_value", fill))
    outputs = (((rows, columns), kind.name),)
    return Call("nonzero_coordinates", given, outputs)(data)[0]


@_eager.compiled(gathers.gather, operands=2)
def gather(x: Any, indices: Any, *, axis: Any = 0, mode: Any = "raise", out: None = None) -> Traced:
    """`anydml.gather` in traced code, with a gradient.

    Parameters
    ----------
    x, indices, axis, mode
        As for `anydml.gather`; axis and mode are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        The slices.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing. A bad index is an error of JAX's when the
        code runs, whose message has this package's; outside of JAX's transformations
        `IndexOutOfRangeError`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import gather
    >>> jax.grad(lambda x: gather(x, [1, 1, 0]).sum())(jnp.zeros(3)).tolist()
    [1.0, 2.0, 0.0]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    data = data if data.ndim else data.reshape(1)
    lookup = _calls.indices(indices)
    number = _arguments.axis_of(axis, data)
    _attributes.check_mode(mode, lookup, data, (number,))
    given = {"axis": number, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(Gather, (data, lookup), given).outputs
    call = Call("gather", (("axis", number), ("mode", mode)), ((spec.shape, data.dtype.name),))
    return call(data, lookup)[0]


@_eager.compiled(gathers.gather_elements, operands=2)
def gather_elements(
    x: Any,
    indices: Any,
    *,
    axis: Any = 0,
    mode: Any = "raise",
    broadcast: Any = False,
    out: None = None,
) -> Traced:
    """`anydml.gather_elements` in traced code, with a gradient.

    Parameters
    ----------
    x, indices, axis, mode, broadcast
        As for `anydml.gather_elements`; all but `x` and the indices are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        The elements, one for each index.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As for `gather`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import gather_elements
    >>> x = jnp.array([[3.0, 9.0, 5.0]])
    >>> jax.jit(lambda x: gather_elements(x, [[1, -1]], axis=1))(x).tolist()
    [[9.0, 5.0]]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    lookup = _calls.indices(indices)
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        wanted = _attributes.alike(number, data, lookup)
        data, lookup = jnp.broadcast_to(data, wanted[0]), jnp.broadcast_to(lookup, wanted[1])
    shape = lookup.shape
    if not data.ndim:  # one element on one axis, for indices of any shape
        lookup = lookup if lookup.ndim else lookup.reshape(1)
        data = jnp.broadcast_to(data, (1, *lookup.shape[1:]))
    _attributes.check_mode(mode, lookup, data, (number,))
    given = {"axis": number, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(GatherElements, (data, lookup), given).outputs
    call = Call(
        "gather_elements", (("axis", number), ("mode", mode)), ((spec.shape, data.dtype.name),)
    )
    return call(data, lookup)[0].reshape(shape)


@_eager.compiled(gathers.gather_nd, operands=2)
def gather_nd(
    x: Any, indices: Any, *, batch_dims: Any = 0, mode: Any = "raise", out: None = None
) -> Traced:
    """`anydml.gather_nd` in traced code, with a gradient.

    Parameters
    ----------
    x, indices, batch_dims, mode
        As for `anydml.gather_nd`; batch_dims and mode are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        The elements or blocks.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As for `gather`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import gather_nd
    >>> x = jnp.arange(4.0).reshape(2, 2)
    >>> jax.jit(lambda x: gather_nd(x, [[1, 0], [0, -1]]))(x).tolist()
    [2.0, 1.0]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    lookup = _calls.indices(indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    _attributes.check_mode(mode, lookup, data, _attributes.pointed(lookup, batch, data.ndim))
    given = {"batch_dims": batch, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(GatherND, (data, lookup), given).outputs
    call = Call(
        "gather_nd", (("batch_dims", batch), ("mode", mode)), ((spec.shape, data.dtype.name),)
    )
    return call(data, lookup)[0]


@_eager.compiled(scatters.scatter_elements, operands=3)
def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: Any = 0,
    reduction: Any = None,
    include_self: Any = True,
    broadcast: Any = False,
    out: None = None,
) -> Traced:
    """`anydml.scatter_elements` in traced code.

    With ``reduction`` None or "add", and the element itself included, it has a gradient: an update
    that a later one replaced has none.

    Parameters
    ----------
    x, indices, updates, axis, reduction, include_self, broadcast
        As for `anydml.scatter_elements`; all but the first three are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        Of the shape and type of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As for `gather`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import scatter_elements
    >>> add = jax.jit(lambda x, u: scatter_elements(x, [2, 0, 2], u, reduction="add"))
    >>> add(jnp.zeros(3), jnp.array([1.0, 2.0, 3.0])).tolist()
    [2.0, 0.0, 4.0]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    lookup = _calls.indices(indices)
    values = _calls.operand_as(updates, "updates", data)
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        shape = _attributes.along(number, data, lookup)
        lookup = _calls.spread(lookup, shape, "indices")
        values = _calls.spread(values, shape, "updates")
    elif not values.ndim:
        values = jnp.broadcast_to(values, lookup.shape)
    shape = data.shape
    if not data.ndim:  # one element on one axis
        _attributes.check_scalar(lookup, values)
        data, lookup, values = data.reshape(1), lookup.reshape(-1), values.reshape(-1)
    operands = (data, lookup, values)
    inferred = _engine.infer(Scatter, operands, {"axis": number})
    given = (("axis", number), *_reduction(reduction, data, include_self))
    call = Call("scatter_elements", given, ((inferred.outputs[0].shape, data.dtype.name),))
    return call(*operands)[0].reshape(shape)


@_eager.compiled(scatters.scatter_nd, operands=3)
def scatter_nd(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    reduction: Any = None,
    include_self: Any = True,
    out: None = None,
) -> Traced:
    """`anydml.scatter_nd` in traced code, with the gradients of `scatter_elements`.

    Parameters
    ----------
    x, indices, updates, reduction, include_self
        As for `anydml.scatter_nd`; reduction and include_self are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        Of the shape and type of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        As for `gather`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import scatter_nd
    >>> jax.jit(lambda x: scatter_nd(x, [[2], [0]], [5.0, 6.0]))(jnp.zeros(3)).tolist()
    [6.0, 0.0, 5.0]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    lookup = _calls.indices(indices)
    values = _calls.operand_as(updates, "updates", data)
    if not values.ndim and lookup.ndim:
        values = jnp.broadcast_to(values, lookup.shape[:-1] + data.shape[lookup.shape[-1] :])
    operands = (data, lookup, values)
    inferred = _engine.infer(ScatterND, operands, {})
    given = _reduction(reduction, data, include_self)
    call = Call("scatter_nd", given, ((inferred.outputs[0].shape, data.dtype.name),))
    return call(*operands)[0]


def _reduction(reduction: Any, data: Traced, include_self: Any) -> tuple[tuple[str, Any], ...]:
    how = _combining.reduction_of(reduction, data)
    whole = _arguments.flag(include_self, "include_self")
    return ("reduction", how), ("include_self", whole)
