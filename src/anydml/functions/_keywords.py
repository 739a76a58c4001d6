"""Suggestions for unknown keyword arguments of the array functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from anydml.core._json import did_you_mean
from anydml.core.errors import ArgumentTypeError

# The spellings of PyTorch, NumPy, JAX and ONNX, by the parameter here.
_SPELLINGS: Final = {
    "x": "input self a data operand arr array tensor",
    "arrays": "tensors inputs seq operands xs",
    "axis": "dim dimension dims axes",
    "indices": "index idx",
    "updates": "src source values value",
    "index_dtype": "dtype indices_dtype out_dtype",
    "reduction": "reduce mode accumulate",
    "sections_or_sizes": "split_size_or_sections indices_or_sections split_size sections",
    "repeats": "reps dims multiples",
    "pad_width": "pad padding pads",
    "constant": "value constant_values constant_value fill_value",
    "starts": "start start_indices offsets",
    "sizes": "length lengths slice_sizes",
    "strides": "steps step stride",
    "lengths": "seq_lengths sequence_lens sequence_lengths",
    "batch_dims": "batch_axis batch",
    "dtype": "to new_dtype",
}


def unknown_keyword(
    function: Callable[..., Any], unknown: Iterable[str], **own: str
) -> ArgumentTypeError:
    """The error for keywords that a function does not take; it names the first one.

    `own` has other libraries' spellings of parameters that no other function has.
    """
    spellings = {**_SPELLINGS, **own}
    code = function.__code__
    accepted = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = next(iter(unknown))
    use = next((one for one in accepted if name in spellings.get(one, "").split()), None)
    hint = f"; use {use}=" if use else did_you_mean(name, accepted)
    return ArgumentTypeError(
        f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}"
    )
