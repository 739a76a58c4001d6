"""The array functions in code that JAX traces: inside jit, vmap and grad.

The functions of the package send traced values here. What has to be selected, compared or looked up
runs on the host, by `jax.pure_callback`; what only moves elements is JAX's own operations.
"""

from anydml.bridges.jax import _batches, _gradients  # noqa: F401 (register vmap, jvp and grad)
from anydml.bridges.jax._indexed import (
    gather,
    gather_elements,
    gather_nd,
    nonzero_coordinates,
    scatter_elements,
    scatter_nd,
    top_k,
)
from anydml.bridges.jax._movers import (
    cast,
    join,
    pad,
    reverse_subsequences,
    slice_window,
    split,
    tile,
)

__all__ = [
    "cast",
    "gather",
    "gather_elements",
    "gather_nd",
    "join",
    "nonzero_coordinates",
    "pad",
    "reverse_subsequences",
    "scatter_elements",
    "scatter_nd",
    "slice_window",
    "split",
    "tile",
    "top_k",
]
