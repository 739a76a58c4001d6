"""JAX on the CPU: compiled functions, waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import Any, Final

import numpy as np

from benchmarks.gate import window
from benchmarks.jobs import Array
from benchmarks.peers._peer import Call, Peer, Ways, exact

_UPDATE: Final = {None: "set", "add": "add", "mul": "multiply", "min": "min", "max": "max"}


class JAX(Peer):
    """64-bit types are switched on, so that everybody works on the same inputs."""

    name = "JAX"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        os.environ.setdefault("NPROC", str(threads))  # its thread count; read when it starts
        self.jax: Any = import_module("jax")
        self.version = self.jax.__version__
        self.jax.config.update("jax_enable_x64", True)
        self.device = self.jax.devices("cpu")[0]

    def take(self, array: Array) -> Any:
        """An array on its CPU device."""
        return self.jax.device_put(array, self.device)

    def _compiled(self, function: Callable[..., Any], *arrays: Any) -> Call:
        run, wait = self.jax.jit(function), self.jax.block_until_ready
        return lambda: wait(run(*arrays))

    def top_k(self, x: Any, k: int, axis: int, largest: bool) -> Ways:
        """It knows the largest along the last axis only."""
        jnp, top_k = self.jax.numpy, self.jax.lax.top_k
        if not largest:
            return

        def moved(x: Any) -> Any:
            found = top_k(jnp.moveaxis(x, axis, -1), k)
            return tuple(jnp.moveaxis(result, -1, axis) for result in found)

        yield "lax.top_k", self._compiled(moved, x)

    def nonzero_coordinates(self, x: Any) -> Ways:
        """Uncompiled: a compiled function's sizes may not depend on values."""
        jnp, wait = self.jax.numpy, self.jax.block_until_ready
        yield "argwhere", lambda: wait(jnp.argwhere(x))

    def scatter_elements(
        self, x: Any, indices: Any, updates: Any, axis: int, reduction: str | None
    ) -> Ways:
        """An update at indices."""
        method = _UPDATE[reduction]
        grid: list[Any] = list(np.indices(indices.shape, sparse=True))

        def updated(x: Any, indices: Any, updates: Any) -> Any:
            grid[axis] = indices
            return getattr(x.at[tuple(grid)], method)(updates)

        yield f"at[..].{method}", self._compiled(updated, x, indices, updates)

    def scatter_nd(self, x: Any, indices: Any, updates: Any, reduction: str | None) -> Ways:
        """An update at indices."""
        method, jnp = _UPDATE[reduction], self.jax.numpy

        def updated(x: Any, indices: Any, updates: Any) -> Any:
            return getattr(x.at[tuple(jnp.moveaxis(indices, -1, 0))], method)(updates)

        yield f"at[..].{method}", self._compiled(updated, x, indices, updates)

    def split(self, x: Any, sections: int, axis: int) -> Ways:
        """The result needs no conversion."""
        jnp = self.jax.numpy
        yield "split", self._compiled(lambda x: jnp.split(x, sections, axis), x)

    def join(self, *parts: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        jnp = self.jax.numpy
        yield "concatenate", self._compiled(lambda *parts: jnp.concatenate(parts, axis), *parts)

    def gather(self, x: Any, indices: Any, axis: int) -> Ways:
        """Without a check of the indices, which is its fastest."""
        jnp = self.jax.numpy
        yield (
            "take",
            self._compiled(lambda x, i: jnp.take(x, i, axis, mode="clip"), x, indices),
        )

    def gather_elements(self, x: Any, indices: Any, axis: int) -> Ways:
        """Without a check of the indices, which is its fastest."""
        take_along_axis = self.jax.numpy.take_along_axis
        mode = "promise_in_bounds"
        yield (
            "take_along_axis",
            self._compiled(lambda x, i: take_along_axis(x, i, axis, mode=mode), x, indices),
        )

    def gather_nd(self, x: Any, indices: Any, batch_dims: int) -> Ways:
        """Fancy indexing, batch by batch."""
        jnp, jax = self.jax.numpy, self.jax

        def taken(x: Any, indices: Any) -> Any:
            return x[tuple(jnp.moveaxis(indices, -1, 0))]

        for _ in range(batch_dims):
            taken = jax.vmap(taken)
        yield "x[i, ..]", self._compiled(taken, x, indices)

    def cast(self, x: Any, dtype: str) -> Ways:
        """The result needs no conversion."""
        yield "astype", self._compiled(lambda x: x.astype(dtype), x)

    def pad(self, x: Any, pad_width: Any, mode: str) -> Ways:
        """The result needs no conversion."""
        mode_name, jnp = "reflect" if mode == "reflection" else mode, self.jax.numpy
        yield "pad", self._compiled(lambda x: jnp.pad(x, pad_width, mode_name), x)

    def slice_window(self, x: Any, **options: Any) -> Ways:
        """Indexing by slices."""
        inside = window(options)
        steps = tuple(slice(None, None, step) for step in options["strides"])
        yield "x[::s]", self._compiled(lambda x: x[inside][steps], x)

    def element_wise_identity(self, x: Any, scale: float | None, bias: float) -> Ways:
        """One expression."""
        jnp = self.jax.numpy
        if scale is None:
            yield "copy", self._compiled(jnp.copy, x)
        elif np.dtype(x.dtype).kind == "f":
            factor, summand = x.dtype.type(scale), x.dtype.type(bias)
            yield "x * s + b", self._compiled(lambda x: x * factor + summand, x)

    def fill_value_sequence(self, shape: Any, dtype: str, start: float, delta: float) -> Ways:
        """The result needs no conversion, where the type has every number."""
        jnp, stop = self.jax.numpy, start + delta * prod(shape)
        if exact(dtype, stop - delta):
            yield (
                "arange",
                self._compiled(lambda: jnp.arange(start, stop, delta, dtype).reshape(shape)),
            )

    def fill_value_constant(self, shape: Any, dtype: str, value: float) -> Ways:
        """The result needs no conversion."""
        jnp = self.jax.numpy
        yield "full", self._compiled(lambda: jnp.full(shape, value, dtype))

    def tile(self, x: Any, repeats: Any) -> Ways:
        """The result needs no conversion."""
        jnp = self.jax.numpy
        yield "tile", self._compiled(lambda x: jnp.tile(x, repeats), x)

    def reverse_subsequences(self, x: Any, lengths: Any, axis: int) -> Ways:
        """Positions, and a gather of them."""
        jnp = self.jax.numpy
        positions = jnp.arange(x.shape[axis]).reshape(-1, *(1 for _ in x.shape[axis + 1 :]))

        def reverse_rows(x: Any, lengths: Any) -> Any:
            at = jnp.where(positions < lengths, lengths - 1 - positions, positions)
            return jnp.take_along_axis(x, at, axis, mode="promise_in_bounds")

        yield "take_along_axis", self._compiled(reverse_rows, x, lengths)

    def upsample_2d(self, x: Any, scale: Any, mode: str) -> Ways:
        """Two passes, or the function for images."""
        jnp, resize = self.jax.numpy, self.jax.image.resize
        shape = (*x.shape[:-2], x.shape[-2] * scale[0], x.shape[-1] * scale[1])
        if mode == "linear":
            yield "resize", self._compiled(lambda x: resize(x, shape, "linear"), x)
        else:
            yield (
                "repeat, repeat",
                self._compiled(lambda x: jnp.repeat(jnp.repeat(x, scale[1], -1), scale[0], -2), x),
            )
