"""`deterministic`: a mode in which PyTorch's operators that differ from run to run are replaced.

It is a dispatch mode, below autograd: what the backward pass calls comes by as well. A model needs
no change. What each operator is replaced by is in `_replacements`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from anydml.errors import ArgumentError, IndexOutOfRangeError
from anydml.torch._pytorch import torch
from anydml.torch._replacements import REPLACEMENTS

_Mode: Final[Any] = import_module("torch.utils._python_dispatch").TorchDispatchMode


class deterministic(_Mode):  # type: ignore[misc]  # PyTorch's, without types
    """A block in which PyTorch's operators give the same bits at every run, on a GPU too.

    In place of ``topk``, ``sort``, ``nonzero``, ``scatter``, ``scatter_add``, ``scatter_reduce``,
    ``index_add``, ``index_copy``, ``index_reduce``, ``index_put``, ``put`` and the gradient of
    ``embedding``, with their variants in place and with ``out=``, kernels of this library run: in
    the order of the indices, the last update wins, and sums are made one after the other. So do
    the gradients of ``topk``, ``sort``, ``gather``, ``index_select``, ``take`` and ``x[indices]``,
    where the backward pass runs in the block. Results are PyTorch's, up to the order in which
    floats are added.

    Every other operator runs as it is: ``torch.use_deterministic_algorithms`` says which of them
    have no deterministic kernel, and may be on together with this.

    Nothing can be replaced inside compiled code, so functions of ``torch.compile`` run in the block
    as they are written: PyTorch does not compile while the thread has a dispatch mode. It runs
    them so until ``torch.compiler.reset()``, and refuses those with ``fullgraph=True``; put
    ``torch.compiler.set_stance("force_eager")`` around the block to keep both. A block inside a
    compiled function runs as it is written too.

    Notes
    -----
    An index out of range, or an element type that no kernel has and PyTorch takes, is an error of
    this library. Everything else that PyTorch refuses ends in PyTorch's own error.

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
        named = kwargs or {}
        replacement = REPLACEMENTS.get(function)
        if replacement is not None:
            try:
                return replacement(*args, **named)
            except (IndexOutOfRangeError, MemoryError):
                raise
            except Exception as error:
                raise _pytorchs_own(function, args, named) or error from None
        # In inference mode operators that are made of others come whole.
        if torch.is_inference_mode_enabled():
            with self:
                parts = function.decompose(*args, **named)
            if parts is not NotImplemented:
                return parts
        return function(*args, **named)


def _pytorchs_own(function: Any, args: Any, named: Any) -> Exception | None:
    """The error that PyTorch itself reports for a call, if it refuses the call as well."""

    def copied(value: Any) -> Any:
        # On the CPU: a bad index would end the work of a GPU.
        if isinstance(value, torch.Tensor):
            return value.detach().to("cpu", copy=True)
        return [copied(item) for item in value] if isinstance(value, (list, tuple)) else value

    try:
        function(*copied(args), **{name: copied(value) for name, value in named.items()})
    except Exception as error:
        return None if "INTERNAL ASSERT" in str(error) else error
    return None
