"""The array functions on dask arrays: lazy, in chunks along any axis, the same bits as in memory.

The functions of the package send dask arrays here. What is wrong with arguments, shapes and types
is an error at once; a bad index is one when the block that holds it is computed.
"""

from anydml.dask._gathers import gather, gather_elements, gather_nd
from anydml.dask._movers import (
    cast,
    join,
    pad,
    reverse_subsequences,
    slice_window,
    split,
    tile,
)
from anydml.dask._scatters import scatter_elements, scatter_nd
from anydml.dask._selection import nonzero_coordinates, top_k

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
