"""`uses.py` for JAX's own class."""

from typing import assert_type

import jax
import jax.numpy as jnp

import anydml as dml

x: jax.Array = jnp.zeros((2, 3))
i: jax.Array = jnp.zeros((2, 3), "int32")

assert_type(dml.gather(x, i), jax.Array)
assert_type(dml.scatter_elements(x, i, x, reduction="mean"), jax.Array)
assert_type(dml.split(x, 3, axis=1), tuple[jax.Array, ...])
assert_type(dml.join([x, x]), jax.Array)
assert_type(dml.cast(x, jnp.float16), jax.Array)
assert_type(dml.top_k(x, 2, index_dtype=jnp.int32), dml.TopKResult[jax.Array, jax.Array])
assert_type(dml.nonzero_coordinates(x), jax.Array)
