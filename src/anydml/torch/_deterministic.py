"""`deterministic`: replaces PyTorch's nondeterministic operators.

The mode is a dispatch mode below autograd, so the backward pass uses it too. `_replacements` has
the replacement of each operator.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from anydml.errors import ArgumentError, IndexOutOfRangeError
from anydml.torch._pytorch import torch
from anydml.torch._replacements import REPLACEMENTS

_Mode: Final[Any] = import_module("torch.utils._python_dispatch").TorchDispatchMode


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
            try:
                return replacement(*args, **keywords)
            except (IndexOutOfRangeError, MemoryError):
                raise
            except Exception as error:
                raise _pytorchs_own(function, args, keywords) or error from None
        # In inference mode operators that are made of others come whole.
        if torch.is_inference_mode_enabled():
            with self:
                parts = function.decompose(*args, **keywords)
            if parts is not NotImplemented:
                return parts
        return function(*args, **keywords)


def _pytorchs_own(function: Any, args: Any, keywords: Any) -> Exception | None:
    """The error that PyTorch itself reports for a call, if it refuses the call as well."""

    def copied(value: Any) -> Any:
        # On the CPU: a bad index would end the work of a GPU.
        if isinstance(value, torch.Tensor):
            return value.detach().to("cpu", copy=True)
        return [copied(item) for item in value] if isinstance(value, (list, tuple)) else value

    try:
        function(*copied(args), **{name: copied(value) for name, value in keywords.items()})
    except Exception as error:
        return None if "INTERNAL ASSERT" in str(error) else error
    return None
