"""JAX on the CPU: compiled functions, waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from benchmarks.jobs import Array
from benchmarks.peers._peer import Call, Peer, Ways

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
        """By ``jnp.top_k`` where it has that; `lax` knows the largest along the last axis only."""
        jnp, top_k, mode = self.jax.numpy, self.jax.lax.top_k, "largest" if largest else "smallest"
        if hasattr(jnp, "top_k"):
            yield "top_k", self._compiled(lambda x: jnp.top_k(x, k, axis=axis, mode=mode), x)
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
        yield ("take", self._compiled(lambda x, i: jnp.take(x, i, axis, mode="clip"), x, indices))

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
