"""`split`, `join`, `slice_window`, `pad`, `tile` and `cast` in traced code.

Inside of JAX's transformations, what only moves elements is JAX's own operations, with the shapes
and rules of the operators: they have gradients, and are compiled with what is around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jax import Array, core, lax
from jax import numpy as jnp

from anydml.arrays import adopt, as_numpy, keep, promoted
from anydml.functions import _arguments, _attributes, _engine, movers, rearranging, slabs
from anydml.jax import _calls, _eager, _kernels
from anydml.jax._calls import Call
from anydml.jax._kernels import Traced
from anydml.ops.cast import Cast
from anydml.ops.join import Join
from anydml.ops.padding1 import Padding1
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.slice1 import Slice1, first_places
from anydml.ops.split import Split
from anydml.ops.tile import Tile


@_eager.compiled(slabs.split, operands=1)
def split(
    x: Any,
    sections_or_sizes: Any = None,
    *,
    axis: Any = 0,
    points: Any = None,
    near_equal: Any = False,
    out: None = None,
) -> tuple[Traced, ...]:
    """`anydml.split` in traced code.

    Parameters
    ----------
    x, sections_or_sizes, axis, points, near_equal
        As for `anydml.split`; all but `x` are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    tuple of jax.Array
        The slabs.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import split
    >>> [part.tolist() for part in jax.jit(lambda x: split(x, [1, 2]))(jnp.arange(3))]
    [[0], [1, 2]]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    given = _attributes.split_attributes(data, sections_or_sizes, axis, points, near_equal)
    outputs = [(spec.shape, data.dtype) for spec in _engine.infer(Split, (data,), given).outputs]
    parts = _kernels.moved("split", (data,), outputs, {"axis": given["axis"]})
    if parts is not None:
        return tuple(parts)
    ends = np.cumsum([0, *given["sizes"]]).tolist()
    return tuple(lax.slice_in_dim(data, *span, axis=given["axis"]) for span in pairwise(ends))


@_eager.compiled(slabs.join, operands=0)
def join(arrays: Sequence[Any], *, axis: Any = 0, promote: Any = False, out: None = None) -> Traced:
    """`anydml.join` in traced code.

    Parameters
    ----------
    arrays, axis, promote
        As for `anydml.join`; axis and promote are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        The arrays, one behind the other.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import join
    >>> jax.jit(lambda x: join([x, x]))(jnp.arange(2)).tolist()
    [0, 1, 0, 1]
    """
    _calls.no_out(out)
    parts: list[Traced]
    first, *others = (
        (value, f"arrays[{i}]") for i, value in enumerate(_attributes.members_of(arrays))
    )
    if _arguments.flag(promote, "promote"):
        parts = [value if isinstance(value, Array) else adopt(value, name)[0]
                 for value, name in (first, *others)]  # fmt: skip
        kind = promoted(jnp.zeros(0), [part.dtype for part in parts], "arrays")
        keep(jnp.zeros(0), kind, "arrays")
        parts = [jnp.asarray(part.astype(kind)) for part in parts]
    else:
        data = _calls.operand(*first)
        parts = [data, *(_calls.operand_as(*other, data, first[1]) for other in others)]
    if axis is None:
        parts, number = [part.reshape(-1) for part in parts], 0
    else:
        number = _arguments.axis_of(axis, parts[0], "arrays[0]")
    (spec,) = _engine.infer(Join, parts, {"axis": number}).outputs
    joined = _kernels.moved("join", parts, [(spec.shape, parts[0].dtype)], {"axis": number})
    return joined[0] if joined else lax.concatenate(parts, number)


@_eager.compiled(movers.slice_window, operands=1)
def slice_window(
    x: Any, starts: Any, sizes: Any, strides: Any = None, *, out: None = None
) -> Traced:
    """`anydml.slice_window` in traced code.

    Parameters
    ----------
    x, starts, sizes, strides
        As for `anydml.slice_window`; all but `x` are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        The window.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import slice_window
    >>> jax.jit(lambda x: slice_window(x, [1], [4], [-2]))(jnp.arange(6)).tolist()
    [4, 2]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    given = _attributes.window(starts, sizes, strides, data.ndim)
    (spec,) = _engine.infer(Slice1, (data,), given).outputs
    if moved := _kernels.moved("slice_window", (data,), [(spec.shape, data.dtype)], given):
        return moved[0]
    for axis, step in enumerate(
        zip(first_places(given), given["strides"], spec.shape, strict=True)
    ):
        first, stride, count = step
        data = jnp.take(data, first + stride * np.arange(count), axis=axis, mode="clip")
    return data


@_eager.compiled(movers.pad, operands=1)
def pad(
    x: Any, pad_width: Any, mode: Any = "constant", constant: Any = 0, *, out: None = None
) -> Traced:
    """`anydml.pad` in traced code.

    Parameters
    ----------
    x, pad_width, mode, constant
        As for `anydml.pad`; all but `x` are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        `x` with more elements at the ends of each axis.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import pad
    >>> jax.jit(lambda x: pad(x, (1, 2), "edge"))(jnp.arange(2)).tolist()
    [0, 0, 1, 1, 1]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    value = movers.constant_of(constant, data, mode)
    given = movers.padding(data, pad_width, mode, value)
    (spec,) = _engine.infer(Padding1, (data,), given).outputs
    if moved := _kernels.moved("pad", (data,), [(spec.shape, data.dtype)], given):
        return moved[0]
    widths = list(zip(given["starts"], given["ends"], strict=True))
    if given["mode"] == "constant":
        return lax.pad(data, jnp.asarray(value), [(*width, 0) for width in widths])
    if not data.size:  # nothing is repeated
        return jnp.zeros(spec.shape, data.dtype)
    for axis, width in enumerate(widths):
        places = movers.pad(np.arange(data.shape[axis]), width, given["mode"])
        data = jnp.take(data, places, axis=axis, mode="clip")
    return data


@_eager.compiled(rearranging.tile, operands=1)
def tile(x: Any, repeats: Any, *, out: None = None) -> Traced:
    """`anydml.tile` in traced code.

    Parameters
    ----------
    x, repeats
        As for `anydml.tile`; repeats are static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        `x` again and again along its axes.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import tile
    >>> jax.jit(lambda x: tile(x, 2))(jnp.arange(2)).tolist()
    [0, 1, 0, 1]
    """
    _calls.no_out(out)
    data, given = _attributes.matched(_calls.operand(x, "x"), repeats)
    (spec,) = _engine.infer(Tile, (data,), given).outputs
    if moved := _kernels.moved("tile", (data,), [(spec.shape, data.dtype)], given):
        return moved[0]
    return jnp.tile(data, given["repeats"])


def _refuse_negative(_: Any, lengths: Any) -> None:
    if not isinstance(lengths, core.Tracer) and not _eager.is_on_gpu(lengths):
        rearranging.refuse_negative(as_numpy(lengths, "lengths"))


@_eager.compiled(rearranging.reverse_subsequences, operands=2, check=_refuse_negative)
def reverse_subsequences(x: Any, lengths: Any, *, axis: Any, out: None = None) -> Traced:
    """`anydml.reverse_subsequences` in traced code, with a gradient.

    Parameters
    ----------
    x, lengths, axis
        As for `anydml.reverse_subsequences`; the axis is static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        `x` with the first elements of each sequence in the opposite order.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing. When the code runs, a length below 0 means
        none.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import reverse_subsequences
    >>> jax.jit(lambda x: reverse_subsequences(x, [2], axis=0))(jnp.arange(3)).tolist()
    [1, 0, 2]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    counts = _calls.operand(lengths, "lengths")
    number = _arguments.axis_of(axis, data)
    rearranging.check_lengths(counts)
    one = (*data.shape[:number], 1, *data.shape[number + 1 :])
    counts = _calls.spread(counts, one, "lengths")
    (spec,) = _engine.infer(ReverseSubsequences, (data, counts), {"axis": number}).outputs
    call = Call("reverse_subsequences", (("axis", number),), ((spec.shape, data.dtype.name),))
    return call(data, counts)[0]


@_eager.compiled(movers.cast, operands=1)
def cast(x: Any, dtype: Any, *, out: None = None) -> Traced:
    """`anydml.cast` in traced code.

    Parameters
    ----------
    x, dtype
        As for `anydml.cast`; the type is static.
    out : None
        Arrays of JAX are never written.

    Returns
    -------
    jax.Array
        `x` as another type.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, while tracing.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from anydml.jax import cast
    >>> jax.jit(lambda x: cast(x, "uint8"))(jnp.array([1.9, 300.0])).tolist()
    [1, 255]
    """
    _calls.no_out(out)
    data = _calls.operand(x, "x")
    movers.check_numbers(data)
    to = _attributes.type_named(dtype)
    keep(data, to, "dtype")
    (spec,) = _engine.infer(Cast, (data,), {"to": to}).outputs
    return Call("cast", (), ((spec.shape, to.name),))(data)[0]
