"""The array functions. Written by write_lists.py; the only list of them."""

from anydml.functions.cast import cast
from anydml.functions.gather import gather
from anydml.functions.gather_elements import gather_elements
from anydml.functions.gather_nd import gather_nd
from anydml.functions.join import join
from anydml.functions.nonzero_coordinates import nonzero_coordinates
from anydml.functions.one_hot import one_hot
from anydml.functions.pad import pad
from anydml.functions.reverse_subsequences import reverse_subsequences
from anydml.functions.scatter_elements import scatter_elements
from anydml.functions.scatter_nd import scatter_nd
from anydml.functions.slice_window import slice_window
from anydml.functions.split import split
from anydml.functions.tile import tile
from anydml.functions.top_k import top_k

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
