"""The array functions on tensors that have no memory, or ask for a gradient.

Each turns its arguments into the operator's terms and asks PyTorch's dispatcher. `torch.compile`
traces what is here, so it is plain Python on sizes that may be symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from anydml._json import meant, shown
from anydml.arrays import adopt, is_added, type_of
from anydml.arrays._torch import tensor_of
from anydml.bridges.torch._gradients import DIFFERENTIABLE, no_gradient
from anydml.bridges.torch._library import ops
from anydml.bridges.torch._pytorch import Tensor, torch
from anydml.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _arguments, _combining, movers, selection, slabs
from anydml.functions import gather as gathers
from anydml.functions import scatter as scatters
from anydml.functions.rearranging import matched
from anydml.functions.selection import TopKResult

# As a graph may hold them; other ways to name a type are looked up in eager mode.
_TYPES: Final[dict[Any, Any]] = {
    said: getattr(torch, name)
    for name in _arguments.TYPED
    for said in (getattr(torch, name), name, name.upper(), getattr(np, name, name))
}


def top_k(
    x: Any,
    k: Any,
    *,
    axis: Any = -1,
    largest: Any = True,
    sorted: Any = True,
    index_dtype: Any = None,
    out: Any = None,
) -> TopKResult[Any, Any]:
    """`anydml.top_k`; the values have a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    shaped = data.reshape(1) if data.ndim == 0 else data
    number = _arguments.axis_of(axis, shaped)
    most_first = _arguments.flag(largest, "largest")
    count = _arguments.integer(k, "k")
    values, indices = ops.top_k(shaped, count, number, most_first, _index_type(index_dtype))
    if data.ndim == 0 and count == 1:
        values, indices = values.reshape(()), indices.reshape(())
    return TopKResult(values, indices)


def nonzero_coordinates(
    x: Any, *, index_dtype: Any = None, size: Any = None, fill_value: Any = 0, out: Any = None
) -> Tensor:
    """`anydml.nonzero_coordinates`; in a graph, of an unbacked number of rows without `size`."""
    _allocated(out)
    kind = _index_type(index_dtype)
    found: Tensor = ops.nonzero_coordinates(_tensor(x, "x"), kind)
    if size is None:
        return found
    rows, fill = selection.sized(size, fill_value, torch.iinfo(kind))
    # In this order the number of rows is known, be it a graph's.
    return torch.cat([found, found.new_full((rows, found.shape[1]), fill)]).narrow(0, 0, rows)


def gather(x: Any, indices: Any, *, axis: Any = 0, mode: Any = "raise", out: Any = None) -> Tensor:
    """`anydml.gather`; x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    data = data.reshape(1) if data.ndim == 0 else data
    lookup = _indices(indices, data)
    number = _arguments.axis_of(axis, data)
    lookup, clamp = _inside(mode, lookup, data, [number])
    result: Tensor = ops.gather(data, lookup, number, clamp)
    return result


def gather_elements(
    x: Any,
    indices: Any,
    *,
    axis: Any = 0,
    mode: Any = "raise",
    broadcast: Any = False,
    out: Any = None,
) -> Tensor:
    """`anydml.gather_elements`; x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    lookup = _indices(indices, data)
    if data.ndim == 0:  # one element on one axis, for indices of any shape
        data = data.reshape(1)
        flat, clamp = _inside(mode, lookup.reshape(-1), data, [_arguments.axis_of(axis, data)])
        result: Tensor = ops.gather_elements(data, flat, 0, clamp)
        return result.reshape(lookup.shape)
    number = _arguments.axis_of(axis, data)
    if _arguments.flag(broadcast, "broadcast"):
        shapes = gathers.alike(number, data, lookup, torch.broadcast_shapes)
        data, lookup = data.expand(shapes[0]), lookup.expand(shapes[1])
    lookup, clamp = _inside(mode, lookup, data, [number])
    picked: Tensor = ops.gather_elements(data, lookup, number, clamp)
    return picked


def gather_nd(
    x: Any, indices: Any, *, batch_dims: Any = 0, mode: Any = "raise", out: Any = None
) -> Tensor:
    """`anydml.gather_nd`; x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    lookup = _indices(indices, data)
    batch = _arguments.integer(batch_dims, "batch_dims")
    lookup, clamp = _inside(mode, lookup, data, gathers.pointed(lookup, batch, data.ndim))
    result: Tensor = ops.gather_nd(data, lookup, batch, clamp)
    return result


def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: Any = 0,
    reduction: Any = None,
    include_self: Any = True,
    broadcast: Any = False,
    out: Any = None,
) -> Tensor:
    """`anydml.scatter_elements`; x and the updates have a gradient, for "none" and "add"."""
    _allocated(out)
    data = _tensor(x, "x")
    lookup, values = _indices(indices, data), _updates(updates, data)
    scalar = data.ndim == 0
    number = _arguments.axis_of(axis, data.reshape(1) if scalar else data)
    if _arguments.flag(broadcast, "broadcast") and not scalar:
        shape = scatters.along(number, data, lookup)
        lookup, values = _spread(lookup, shape, "indices"), _spread(values, shape, "updates")
    elif values.ndim == 0:
        values = values.expand(lookup.shape)
    if scalar:
        scatters.check_scalar(lookup, values)
        data, lookup, values = data.reshape(1), lookup.reshape(-1), values.reshape(-1)
    how = _reduction(reduction, data, values)
    whole = _arguments.flag(include_self, "include_self")
    result: Tensor = ops.scatter_elements(data, lookup, values, number, how, whole)
    return result.reshape(()) if scalar else result


def scatter_nd(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    reduction: Any = None,
    include_self: Any = True,
    out: Any = None,
) -> Tensor:
    """`anydml.scatter_nd`; x and the updates have a gradient, for "none" and "add"."""
    _allocated(out)
    data = _tensor(x, "x")
    lookup, values = _indices(indices, data), _updates(updates, data)
    if values.ndim == 0 and lookup.ndim:
        values = values.expand((*lookup.shape[:-1], *data.shape[lookup.shape[-1] :]))
    how = _reduction(reduction, data, values)
    whole = _arguments.flag(include_self, "include_self")
    result: Tensor = ops.scatter_nd(data, lookup, values, how, whole)
    return result


def split(
    x: Any,
    sections_or_sizes: Any = None,
    *,
    axis: Any = 0,
    points: Any = None,
    near_equal: Any = False,
    out: Any = None,
) -> tuple[Tensor, ...]:
    """`anydml.split`; x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    given = slabs.split_attributes(data, sections_or_sizes, axis, points, near_equal)
    return tuple(ops.split(data, given["sizes"], given["axis"]))


def join(arrays: Any, *, axis: Any = 0, promote: Any = False, out: Any = None) -> Tensor:
    """`anydml.join`; every array has a gradient."""
    _allocated(out)
    parts = [_tensor(array, f"arrays[{i}]") for i, array in enumerate(slabs.members_of(arrays))]
    kinds = [part.dtype for part in parts]
    if _arguments.flag(promote, "promote"):
        common = reduce(torch.promote_types, kinds)
        parts = [part.to(common) for part in parts]
    else:
        for i, kind in enumerate(kinds):
            if kind != kinds[0]:
                raise ArgumentTypeError(
                    f"arrays[{i}]: expected {_name(kinds[0])} (the type of arrays[0]), "
                    f"got {_name(kind)}"
                )
    if axis is None:
        parts = [part.reshape(-1) for part in parts]
    number = 0 if axis is None else _arguments.axis_of(axis, parts[0], "arrays[0]")
    result: Tensor = ops.join(parts, number)
    return result


def cast(x: Any, dtype: Any, *, out: Any = None) -> Tensor:
    """`anydml.cast`; between floats, x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    result: Tensor = ops.cast(data, _type(dtype, "dtype", _arguments.TYPED))
    return result


def pad(
    x: Any, pad_width: Any, mode: Any = "constant", constant: Any = 0, *, out: Any = None
) -> Tensor:
    """`anydml.pad`; x has a gradient where the mode is "constant"."""
    _allocated(out)
    data = _tensor(x, "x")
    starts, ends = movers.paddings(pad_width, data.ndim)
    how = movers.padding_mode(mode)
    if how != "constant" and data.requires_grad and torch.is_grad_enabled():
        raise ArgumentTypeError(
            f"mode: 'constant' has a gradient, got {mode!r} and a tensor that requires grad; use "
            f".detach()"
        )
    result: Tensor = ops.pad(data, starts, ends, how, constant)
    return result


def slice_window(
    x: Any, starts: Any, sizes: Any, strides: Any = None, *, out: Any = None
) -> Tensor:
    """`anydml.slice_window`; x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    given = movers.window(starts, sizes, strides, data.ndim)
    result: Tensor = ops.slice_window(data, given["starts"], given["sizes"], given["strides"])
    return result


def tile(x: Any, repeats: Any, *, out: Any = None) -> Tensor:
    """`anydml.tile`; x has a gradient."""
    _allocated(out)
    data, given = matched(_tensor(x, "x"), repeats)
    result: Tensor = ops.tile(data, given["repeats"])
    return result


def reverse_subsequences(x: Any, lengths: Any, *, axis: Any, out: Any = None) -> Tensor:
    """`anydml.reverse_subsequences`; x has a gradient."""
    _allocated(out)
    data = _tensor(x, "x")
    number = _arguments.axis_of(axis, data)
    one = (*data.shape[:number], 1, *data.shape[number + 1 :])
    counts = _spread(_indices(lengths, data), one, "lengths")
    result: Tensor = ops.reverse_subsequences(data, counts, number)
    return result


# ---- arguments ----------------------------------------------------------------------------------


def _allocated(out: Any) -> None:
    if out is not None:
        raise ArgumentError(
            "out: expected none, as an operand requires grad or stands for a tensor "
            "(torch.compile, export, vmap, grad), got one"
        )


def _tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, torch.Tensor):
        raise ArgumentTypeError(
            f"{name}: expected a torch.Tensor, as another operand requires grad or stands for one "
            f"(torch.compile, export, vmap, grad), got {type(value).__name__}; use .detach() there"
        )
    return value


def _indices(value: Any, data: Tensor) -> Tensor:
    if isinstance(value, torch.Tensor):
        return value
    if torch.compiler.is_compiling():
        return torch.tensor(value, dtype=torch.int64, device=data.device)
    return torch.as_tensor(_arguments.index_array(value), device=data.device)


def _check_fit(value: Any, dtype: Any) -> None:
    """Refuse Python numbers that a tensor would not keep; in terms that torch.compile traces."""
    if isinstance(value, (list, tuple)):
        for member in value:
            _check_fit(member, dtype)
    elif isinstance(value, (int, float)) and not (dtype.is_floating_point or dtype.is_complex):
        low, high = (
            (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        )
        if not low <= value <= high or value % 1:  # torch.compile formats no number
            raise ArgumentTypeError(
                "updates: expected the type of x, got a number that does not fit"
            )


def _updates(value: Any, data: Tensor) -> Tensor:
    if isinstance(value, torch.Tensor):
        if value.dtype != data.dtype:
            raise ArgumentTypeError(
                f"updates: expected {_name(data.dtype)} (the type of x), got {_name(value.dtype)}"
            )
        return value
    if torch.compiler.is_compiling():
        _check_fit(value, data.dtype)
        return torch.tensor(value, dtype=data.dtype, device=data.device)
    like = np.empty(0, type_of(_name(data.dtype)))
    array = _arguments.same_type(adopt(value, "updates")[0], value, "updates", like)
    made = tensor_of(array) if is_added(array.dtype) else torch.as_tensor(array)
    return made.to(data.device)


def _type(given: Any, argument: str, accepted: Sequence[str]) -> Any:
    kind = _TYPES.get(given) if isinstance(given, str | type | torch.dtype) else None
    if kind is None:  # NumPy's or this library's own, or none
        kind = _TYPES.get(_arguments.type_name(given))
    if kind is None or _name(kind) not in accepted:
        raise ArgumentTypeError(
            f"{argument}: expected one of {', '.join(accepted)}, got {shown(given)}"
            f"{meant(given, accepted)}"
        )
    return kind


def _name(kind: Any) -> str:
    return str(kind).removeprefix("torch.")


def _index_type(given: Any) -> Any:
    return torch.int64 if given is None else _type(given, "index_dtype", _arguments.INDEX_KINDS)


def _reduction(given: Any, data: Tensor, updates: Tensor) -> str:
    name = _combining.name_of(given)
    asked = data.requires_grad or updates.requires_grad
    if name not in DIFFERENTIABLE and asked and torch.is_grad_enabled():
        raise no_gradient(name)
    return name


def _inside(mode: Any, lookup: Tensor, data: Tensor, axes: Sequence[int]) -> tuple[Tensor, bool]:
    """The indices that the operator is to read, and whether it clamps them."""
    gathers.check_mode(mode, lookup, data, axes)
    sizes = [data.shape[axis] for axis in axes]
    if mode in ("raise", "clamp") or not sizes or 0 in sizes:  # 0: there are no indices
        return lookup, mode == "clamp"
    if len(sizes) not in (1, *lookup.shape[-1:]):
        return lookup, False  # which the operator's own rules refuse
    if len(sizes) == 1:
        return _moved(mode, lookup, sizes[0]), False
    columns = [_moved(mode, lookup[..., i], size) for i, size in enumerate(sizes)]
    return torch.stack(columns, -1), False


def _moved(mode: Any, lookup: Tensor, size: Any) -> Tensor:
    signed = lookup.to(torch.int64)
    beyond = signed < 0 if lookup.dtype == torch.uint64 else None  # 2^64 less than it was
    if mode == "wrap":
        inside = torch.remainder(signed, size)
        if beyond is None:
            return inside
        missing = 2**62 % size * 4 % size
        return torch.where(beyond, (inside + missing) % size, inside)
    inside = signed.clamp(0, size - 1)
    return inside if beyond is None else torch.where(beyond, size - 1, inside)


def _spread(tensor: Tensor, shape: Sequence[Any], name: str) -> Tensor:
    spread: Tensor = _arguments.spread(tensor, shape, name, torch.broadcast_to)
    return spread
