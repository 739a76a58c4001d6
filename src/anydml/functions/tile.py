"""`tile`."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, overload

from numpy import ndarray

from anydml.core.errors import ArgumentError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Composed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Library
from anydml.libraries._base import MOST_AXES
from anydml.ops.tile import Tile


def _prepare(lib: Library, x: Any, repeats: Any) -> Call:
    data = lib.array(x, "x")
    if _arguments.is_number(repeats):
        repeats = (_arguments.integer(repeats, "repeats"),)
    counts = _arguments.integers(repeats, "repeats", "an integer or a sequence of integers")
    missing = len(counts) - data.ndim
    if data.ndim > MOST_AXES:
        raise ArgumentError(f"x: expected at most {MOST_AXES} axes, got {data.ndim}")
    if len(counts) > MOST_AXES:
        raise ArgumentError(f"repeats: expected at most {MOST_AXES} values, got {len(counts)}")
    if missing > 0:
        data = data.reshape((1,) * missing + data.shape)
    return (data,), {"repeats": (1,) * -missing + counts}, False


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Add up the tiles."""
    pairs = zip(saved.attributes["repeats"], saved.shapes[0], strict=True)
    tiles = lib.reshape(grads[0], tuple(size for pair in pairs for size in pair))
    return [lib.sum(tiles, tuple(range(0, tiles.ndim, 2)))]


def _compose(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Repeat axis by axis."""
    (x,) = operands
    for axis, count in enumerate(attributes["repeats"]):
        x = lib.repeat(x, count, axis)
    return [x]


TILE: Final = FunctionSpec(
    Tile,
    ("x",),
    {"repeats": "sizes"},
    _prepare,
    batch=rules.batch_by("tile", lambda a, size: {"repeats": (1, *a["repeats"])}),
    derivatives=Derivatives(_gradient, rules.linear("tile")),
    bounds=lambda operands, a: [count >= 0 for count in a["repeats"]],
    blocks=Composed(_compose),
)
_quick: Final = TILE.quick


@overload
def tile(
    x: t.ArrayOf[t.Scalar], repeats: t.Integers | SupportsIndex, *, out: None = ...
) -> t.NDArray[t.Scalar]: ...
@overload
def tile(x: t.Other, repeats: t.Integers | SupportsIndex, *, out: None = ...) -> t.Other: ...
@overload
def tile(x: t.Operand, repeats: t.Integers | SupportsIndex, *, out: t.Out = ...) -> t.Out: ...


def tile(x: Any, repeats: Any, *more: Any, out: Any = None, **unknown: Any) -> Any:
    """Repeat `x` along its axes.

    Repeats are aligned with the last axes, as in `numpy.tile` and `torch.tile`: missing repeats are
    1, and if there are more repeats than axes, `x` gets leading axes of size 1.

    Parameters
    ----------
    x : array_like
        Any rank; elements of any type.
    repeats : int or sequence of int
        The number of copies along each axis; one number applies to the last axis.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, each size is that of x times its repeats
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    Notes
    -----
    From `Tile`, ``DML_TILE_OPERATOR_DESC``; any rank, any type, repeats of 0 and repeats for fewer
    or more axes than `x` has are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.tile([[1, 2, 3], [4, 5, 6]], (1, 2))
    array([[1, 2, 3, 1, 2, 3],
           [4, 5, 6, 4, 5, 6]])
    """
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, repeats)
        if result is not None:
            return result
    return dispatch(TILE, (x, repeats), out, more or unknown)
