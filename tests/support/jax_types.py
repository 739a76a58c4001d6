"""JAX with and without 64-bit types."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def jax_64_bits(enabled: bool) -> Iterator[None]:
    """Let JAX have 64-bit types in the block, or not; newer versions have `jax.enable_x64`."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", enabled)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)
