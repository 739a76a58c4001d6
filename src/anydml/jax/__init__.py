"""The array functions on arrays of JAX, inside and outside of jit, vmap and grad.

The functions of the package send JAX's arrays here. Their kernels are custom calls of XLA's foreign
function interface: a primitive of JAX with rules for its transformations.
"""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from anydml.functions._spec import FunctionSpec
from anydml.jax import _batches, _gradients  # noqa: F401 (register vmap, jvp and grad)
from anydml.jax._indexed import (
    gather,
    gather_elements,
    gather_nd,
    nonzero_coordinates,
    scatter_elements,
    scatter_nd,
    top_k,
)
from anydml.jax._kernels import TARGET
from anydml.jax._movers import (
    cast,
    join,
    pad,
    reverse_subsequences,
    slice_window,
    split,
    tile,
)

__all__ = [
    "TARGET",
    "call_of",
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


def call_of(spec: FunctionSpec) -> Callable[[tuple[Any, ...], Any], Any]:
    """What calls a function on arrays of JAX: takes its arguments without ``out``, and ``out``."""
    function: Callable[..., Any] = globals()[spec.name]
    parameters = signature(function).parameters.values()
    count = sum(one.kind is Parameter.POSITIONAL_OR_KEYWORD for one in parameters)
    names = [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY][:-1]  # no out

    def call(arguments: tuple[Any, ...], out: Any) -> Any:
        options = dict(zip(names, arguments[count:], strict=True))
        return function(*arguments[:count], **options, out=out)

    return call
