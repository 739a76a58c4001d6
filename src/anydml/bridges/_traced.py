"""What `torch.compile` reads in place of an array function: the call of PyTorch's bridge.

It does not run a function, it reads it, and cannot read the native quick calls. What it is to read
instead it looks for at the function itself, so that neither library has to be imported for the
other, and calls that nobody traces do not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def tell(function: Callable[..., Any]) -> None:
    """Let tracers read PyTorch's bridge, for tensors, in place of an array function."""
    assert isinstance(function, FunctionType)
    name = function.__name__
    # Without the mark, or a tracer would come back here for what is no tensor.
    plain = FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__

    def read_instead(*arguments: Any, **options: Any) -> Any:
        from anydml.bridges import torch as bridge

        first = arguments[0] if arguments else options.get("x", options.get("arrays"))
        if isinstance(first, list | tuple):
            first = first[0] if first else None
        called = getattr(bridge, name) if isinstance(first, bridge.Tensor) else plain
        return called(*arguments, **options)

    # Where what is compiled calls the function; and where the function itself is compiled.
    vars(function)["_torchdynamo_inline"] = read_instead
    vars(function)["_torchdynamo_orig_callable"] = read_instead
    vars(function)["_torchdynamo_wrapper_id"] = id(function)
