"""The array functions. Written by write_lists.py; the only list of them."""

from anydml.functions.gather import gather, gather_elements, gather_nd
from anydml.functions.movers import cast, pad, slice_window
from anydml.functions.one_hot import one_hot
from anydml.functions.rearranging import reverse_subsequences, tile
from anydml.functions.scatter import scatter_elements, scatter_nd
from anydml.functions.selection import nonzero_coordinates, top_k
from anydml.functions.slabs import join, split

__all__ = [
    "cast",
    "gather",
    "gather_elements",
    "gather_nd",
    "join",
    "nonzero_coordinates",
    "one_hot",
    "pad",
    "reverse_subsequences",
    "scatter_elements",
    "scatter_nd",
    "slice_window",
    "split",
    "tile",
    "top_k",
]
