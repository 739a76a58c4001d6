"""A judge of the promises that array functions make: the order of ties, NaN, bad indices.

Each promise has hard cases, from small to large, with results that are worked out here in plain
Python. A function keeps a promise, or the first case in which it does not is its answer.
``anydml judge`` asks all libraries that are installed, anydml by the same code.

Examples
--------
>>> import numpy as np
>>> from anydml import judge
>>> def top_k(x, k):
...     indices = np.argsort(-x, axis=-1, kind="stable")[..., :k]
...     return np.take_along_axis(x, indices, -1), indices
>>> for answer in judge.top_k(top_k):
...     if answer.verdict == "no":
...         print(answer.promise.name)
NaN
too much
types
"""

from anydml.judge.judging import (
    Answer,
    gather,
    join,
    judge,
    nonzero,
    scatter,
    scatter_add,
    scatter_into,
    split,
    top_k,
)
from anydml.judge.promises import PROMISES, Promise

__all__ = [
    "PROMISES",
    "Answer",
    "Promise",
    "gather",
    "join",
    "judge",
    "nonzero",
    "scatter",
    "scatter_add",
    "scatter_into",
    "split",
    "top_k",
]
