"""`deterministic`: replaces PyTorch's nondeterministic operators.

The mode is a dispatch mode below autograd, so the backward pass uses it too. `_replacements` has
the replacement of each operator.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError, IndexOutOfRangeError
from anydml.torch._pytorch import torch
from anydml.torch._pytorch_rules import (
    error_of,
    is_about_index_values,
    is_plainly_valid,
    with_strides,
)
from anydml.torch._replacements import REPLACEMENTS

_Mode: Final[Any] = import_module("torch.utils._python_dispatch").TorchDispatchMode
_Function = TypeVar("_Function", bound=Callable[..., Any])


class deterministic(_Mode):  # type: ignore[misc]  # PyTorch's, without types
    """Make PyTorch's operators bitwise reproducible, on CPUs and GPUs.

    In place of ``topk``, ``sort``, ``nonzero``, ``scatter``, ``scatter_add``, ``scatter_reduce``,
    ``index_add``, ``index_copy``, ``index_reduce``, ``index_put``, ``put`` and the gradient of
    ``embedding``, including in-place and ``out=`` variants, anydml's kernels run: updates are
    applied in the order of the indices, and the last one wins. The same holds for the gradients of
    ``topk``, ``sort``, ``gather``, ``index_select``, ``take`` and ``x[indices]`` if the backward
    pass runs in the block. Results are PyTorch's, up to the order of float additions.

    Other operators are not changed. Combine the block with ``torch.use_deterministic_algorithms``,
    which raises for those that have no deterministic kernel.

    Functions under ``torch.compile`` run eagerly inside the block, and afterwards until
    ``torch.compiler.reset()``; with ``fullgraph=True`` PyTorch raises. Enter
    ``torch.compiler.set_stance("force_eager")`` first to avoid both. A block inside a compiled
    function runs eagerly too.

    ``@deterministic()`` before a function runs each of its calls in a block.

    Notes
    -----
    An index out of range, or an element type that anydml's kernel lacks, raises an error of anydml.
    Other invalid calls raise PyTorch's own error.

    Examples
    --------
    >>> import torch
    >>> import anydml.torch
    >>> sums = torch.zeros(2)
    >>> with anydml.torch.deterministic():
    ...     sums.index_add_(0, torch.tensor([0, 1, 0]), torch.tensor([1.0, 2.0, 3.0]))
    tensor([4., 2.])
    """

    def __init__(self, *arguments: Any) -> None:
        if arguments:
            got = "a function" if callable(arguments[0]) else short_repr(arguments[0])
            raise ArgumentTypeError(
                f"deterministic: expected no argument, got {got}; write `with deterministic():` "
                f"around the code, or `@deterministic()` before a function"
            )
        super().__init__()

    def __call__(self, function: _Function) -> _Function:
        """Run a function in a block whenever it is called."""

        @wraps(function)
        def run(*arguments: Any, **keywords: Any) -> Any:
            with deterministic():
                return function(*arguments, **keywords)

        return cast(_Function, run)

    def __enter__(self) -> Any:
        """Begin to replace."""
        if torch.compiler.is_compiling():
            raise ArgumentError(
                "deterministic: expected a block around a compiled function, got one inside it"
            )
        return super().__enter__()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operator, or what replaces it."""
        keywords = kwargs or {}
        replacement = REPLACEMENTS.get(function)
        if replacement is not None:
            if not is_plainly_valid(replacement.name, args):
                refusal = error_of(function, args, keywords)
                if refusal is not None and not is_about_index_values(refusal):
                    raise refusal
            try:
                results = replacement.run(*args, **keywords)
            except (IndexOutOfRangeError, MemoryError):
                raise
            except Exception as error:
                raise error_of(function, args, keywords) or error from None
            if replacement.allocates:
                return with_strides(replacement.name, args[0], results)
            return results
        # In inference mode operators that are made of others come whole.
        if torch.is_inference_mode_enabled():
            with self:
                parts = function.decompose(*args, **keywords)
            if parts is not NotImplemented:
                return parts
        return function(*args, **keywords)
