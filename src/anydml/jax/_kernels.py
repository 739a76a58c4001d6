"""Kernels of this library in programs of JAX: custom calls of XLA, on the CPU and on NVIDIA GPUs.

The functions here take natural operands that fit together, and attributes in the kernels' terms.
What is no kernel's work, as wrapping indices or dividing sums, is JAX's own operations.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from anydml._native import native
from anydml.backends import cuda
from anydml.errors import AnyDMLError
from anydml.functions import _combining

Traced: TypeAlias = Any
"""An array of JAX, traced or not: the package's types are not needed to check this one."""

Outputs = Sequence[tuple[tuple[int, ...], Any]]
"""Shapes and types of results."""

TARGET: Final = "anydml"
"""The name of the custom calls."""

failures: Final[deque[AnyDMLError]] = deque(maxlen=64)
"""The latest failures of custom calls, whose messages JAX's own exceptions have."""

threads: Final[ContextVar[int | None]] = ContextVar("anydml.jax.threads", default=None)
"""The most threads of the program that is being made for one call; None in other traced code."""


def most_threads() -> int:
    """The most threads of the calls that are being traced; 0: what the process says later."""
    return threads.get() or 0


def _message(failure: AnyDMLError) -> str:
    failures.append(failure)
    return str(failure)


def _register() -> None:
    on_cpu, on_gpu = native.xla_handlers(_message)
    jax.ffi.register_ffi_target(TARGET, on_cpu, platform="cpu")
    jax.ffi.register_ffi_target(TARGET, on_gpu, platform="CUDA")
    cuda.configure()


_register()


def _run(
    kernel: str,
    operands: Sequence[Traced],
    outputs: Outputs,
    *,
    most: int,
    axes: Sequence[int] = (),
    **attributes: Any,
) -> list[Traced]:
    """The kernel's results; `axes` are those that the second operand's indices point into."""
    first = axes[0] if axes else 0
    numbers = (most, first, len(axes), *native.attribute_numbers(kernel, attributes))
    specs = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in outputs]
    call = jax.ffi.ffi_call(TARGET, specs)
    results: Sequence[Traced] = call(*operands, kernel=kernel, numbers=np.array(numbers, np.int64))
    return list(results)


def moved(
    kernel: str, operands: Sequence[Traced], outputs: Outputs, given: Mapping[str, Any]
) -> list[Traced] | None:
    """What a kernel that moves elements makes, in the program of one call.

    None in other traced code, which is for JAX's own operations: they can be fused, differentiated
    and batched, and take several times as long on large arrays.
    """
    most = threads.get()
    return None if most is None else _run(kernel, operands, outputs, most=most, **given)


def top_k(
    x: Traced, *, outputs: Outputs, most: int, k: int, axis: int, largest: bool
) -> list[Traced]:
    """Values and indices."""
    if x.dtype == np.bool_:  # ordered as the numbers that they are in memory
        (shape, kind), indices = outputs
        outputs = [(shape, "uint8"), indices]
        given: dict[str, Any] = {"k": k, "axis": axis, "largest": largest}
        values, found = top_k(x.astype("uint8"), outputs=outputs, most=most, **given)
        return [values.astype(kind), found]
    return _run("top_k", (x,), outputs, most=most, axis=axis, k=k, largest=largest)


def gather(
    x: Traced, lookup: Traced, *, outputs: Outputs, most: int, axis: int, mode: str
) -> list[Traced]:
    """The slices that the indices name."""
    lookup, clamp = _inside(lookup, [x.shape[axis]], mode)
    operands = x, lookup
    return _run("gather", operands, outputs, most=most, axes=[axis], axis=axis, clamp=clamp)


def gather_elements(
    x: Traced, lookup: Traced, *, outputs: Outputs, most: int, axis: int, mode: str
) -> list[Traced]:
    """The elements that the indices name."""
    lookup, clamp = _inside(lookup, [x.shape[axis]], mode)
    operands = x, lookup
    return _run("gather_elements", operands, outputs, most=most, axes=[axis], axis=axis,
                clamp=clamp)  # fmt: skip


def gather_nd(
    x: Traced, lookup: Traced, *, outputs: Outputs, most: int, batch_dims: int, mode: str
) -> list[Traced]:
    """The elements or blocks that the tuples name."""
    axes = range(batch_dims, batch_dims + lookup.shape[-1])
    lookup, clamp = _inside(lookup, [x.shape[axis] for axis in axes], mode)
    operands = x, lookup
    return _run("gather_nd", operands, outputs, most=most, axes=axes, batch_dims=batch_dims,
                clamp=clamp)  # fmt: skip


def _inside(lookup: Traced, sizes: Sequence[int], mode: str) -> tuple[Traced, int]:
    """Indices that a kernel takes, and what it does with those outside their axis."""
    if mode in ("raise", "clamp") or not lookup.size:
        return lookup, int(mode == "clamp")
    most = np.iinfo(lookup.dtype).max  # an index of that type points no farther
    limits = np.array([min(size, most) for size in sizes], lookup.dtype)
    limits = limits[0] if len(sizes) == 1 else limits  # of indices of any rank
    if mode == "wrap":
        return jnp.remainder(lookup, limits), 0
    return jnp.clip(lookup, 0, limits - 1), 0


def scatter_elements(
    x: Traced, lookup: Traced, updates: Traced, *, outputs: Outputs, most: int, axis: int,
    reduction: str, include_self: bool,
) -> list[Traced]:  # fmt: skip
    """The updates where the indices point along an axis."""
    given = {"kernel": "scatter_elements", "axes": [axis], "axis": axis}
    return [_scattered(x, lookup, updates, reduction, include_self, {**given, "most": most})]


def scatter_nd(
    x: Traced, lookup: Traced, updates: Traced, *, outputs: Outputs, most: int, reduction: str,
    include_self: bool,
) -> list[Traced]:  # fmt: skip
    """The updates where the tuples point."""
    given = {"kernel": "scatter_nd", "axes": range(lookup.shape[-1])}
    return [_scattered(x, lookup, updates, reduction, include_self, {**given, "most": most})]


def _scattered(
    x: Traced, lookup: Traced, updates: Traced, how: str, whole: bool, given: dict[str, Any]
) -> Traced:
    """Scatters as `functions/_combining.py` makes them of calls of the kernel."""

    def once(data: Traced, values: Traced, how: str) -> Traced:
        operands = data, lookup, values
        return _run(operands=operands, outputs=[(data.shape, data.dtype)], reduction=how, mean=0,
                    **given)[0]  # fmt: skip

    if how != "none" and x.dtype == np.bool_:
        bits = _scattered(x.astype(np.uint8), lookup, updates.astype(np.uint8),
                          _combining.OF_BOOLS[how], whole, given)  # fmt: skip
        return bits != 0
    if how == "none" or (whole and how != "mean"):
        return once(x, updates, how)
    if not whole:
        start = jnp.full(updates.shape, _combining.neutral(how, x.dtype), x.dtype)
        x = once(x, start, "none")
    if how != "mean":
        return once(x, updates, how)
    sums = once(x, updates, "add")
    counts = once(jnp.zeros(x.shape, np.int32), jnp.ones(updates.shape, np.int32), "add")
    means = _divided(sums, jnp.maximum(counts + whole, 1))
    return jnp.where(counts > 0, means, sums)  # what no update names keeps its bits


def _divided(sums: Traced, counts: Traced) -> Traced:
    kind = sums.dtype
    if kind.kind == "c":
        return lax.complex(_divided(sums.real, counts), _divided(sums.imag, counts))
    if kind.kind in "iu":
        wide = np.promote_types(kind, np.int32 if kind.kind == "i" else np.uint32)
        return jnp.floor_divide(sums.astype(wide), counts.astype(wide)).astype(kind)
    wide = np.dtype(np.float64 if kind == np.float64 else np.float32)
    return (sums.astype(wide) / counts.astype(wide)).astype(kind)


def reverse_subsequences(
    x: Traced, lengths: Traced, *, outputs: Outputs, most: int, axis: int
) -> list[Traced]:
    """The sequences with their first elements in the opposite order; none for lengths below 0."""
    counts = jnp.maximum(lengths, 0) if lengths.dtype.kind == "i" else lengths
    if counts.dtype.itemsize < 4 or counts.dtype.kind not in "iu":  # of other types there are none
        counts = counts.astype(np.uint32)
    return _run("reverse_subsequences", (x, counts), outputs, most=most, axis=axis)


def cast(x: Traced, *, outputs: Outputs, most: int) -> list[Traced]:
    """The numbers as another type."""
    read = x.astype(np.uint8) if x.dtype == np.bool_ else x
    return _run("cast", (read,), outputs, most=most)


def nonzero_coordinates(
    x: Traced, *, outputs: Outputs, most: int, size: int, fill_value: int, batches: int = 0
) -> list[Traced]:
    """The first `size` rows for each of the batches on the first axes."""
    ((shape, kind),) = outputs
    fill = jnp.full(shape, fill_value, kind)
    if not x.size or not size:
        return [fill]
    count = math.prod(x.shape[:batches])
    whole = _as_numbers(x).reshape(count, *x.shape[batches:])
    columns = whole.ndim if count > 1 else whole.ndim - 1
    specs = ((1,), np.uint32), ((x.size, columns), kind)
    total, rows = _run("nonzero_coordinates", (whole,), specs, most=most, columns=columns)
    number = jax.dtypes.canonicalize_dtype(np.int64)
    ends = jnp.concatenate([jnp.zeros(1, number), total.astype(number)])
    if count > 1:  # what lies behind the last row that was found is undefined
        found = jnp.arange(x.size, dtype=number) < total.astype(number)
        batch = jnp.where(found, rows[:, 0].astype(number), count)
        ends = jnp.searchsorted(batch, jnp.arange(count + 1, dtype=number)).astype(number)
        rows = rows[:, 1:]
    wanted = ends[:-1, None] + jnp.arange(size, dtype=number)
    taken = jnp.take(rows, wanted, axis=0, mode="clip").reshape(shape)
    inside = (wanted < ends[1:, None]).reshape(*shape[:-1], 1)
    return [jnp.where(inside, taken, fill)]


def _as_numbers(x: Traced) -> Traced:
    """Complex numbers as whether they are zero: subnormal parts are not, which XLA flushes."""
    if x.dtype.kind != "c":
        return x
    bits = np.uint32 if x.dtype.itemsize == 8 else np.uint64
    first, second = (lax.bitcast_convert_type(part, bits) for part in (x.real, x.imag))
    return ((first | second) << 1) != 0
