"""`deterministic`: replaces PyTorch's nondeterministic operators.

The mode is a dispatch mode below autograd, so the backward pass uses it too. `_replacements` has
the replacement of each operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from typing import Any, Final, TypeVar, cast

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError, IndexOutOfRangeError
from anydml.functions._arguments import flag
from anydml.torch._pytorch import torch
from anydml.torch._pytorch_rules import error_of, is_about_index_values, is_plainly_valid
from anydml.torch._replacements import OPERATIONS, REPLACEMENTS

_Mode: Final[Any] = import_module("torch.utils._python_dispatch").TorchDispatchMode
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass
class Report:
    """Counts of the operators that ran in a block, by name. Views are left out."""

    replaced: Counter[str] = field(default_factory=Counter)
    """Operators in whose place anydml's kernels ran."""
    excluded: Counter[str] = field(default_factory=Counter)
    """PyTorch's operators that `only` or the flag kept from being replaced."""
    others: Counter[str] = field(default_factory=Counter)
    """PyTorch's operators that have no replacement, deterministic or not."""

    def __str__(self) -> str:
        """Return a line for each of the three, with the most frequent operator first."""
        return "\n".join(
            f"{name}: {', '.join(f'{key} {n}' for key, n in counts.most_common()) or 'none'}"
            for name, counts in vars(self).items()
        )


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

    Parameters
    ----------
    only : collection of str, optional
        The operators to replace, by the names above; PyTorch runs the others. ``"embedding"``
        is the gradient of `embedding`. By default all of them are replaced.
    report : bool, default False
        Count the operators that run, in the attribute `report` of the block: it has `replaced`,
        `excluded` (by `only` or `follow_flag`) and `others`, each a `collections.Counter` by name.
        ``print(block.report)`` shows them. A decorated function has the attribute too.
    follow_flag : bool, default False
        Replace operators only while ``torch.use_deterministic_algorithms`` is on.

    Raises
    ------
    ArgumentError
        If `only` has a name that is not replaced.
    ArgumentTypeError
        If an argument has the wrong type.

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
    >>> with anydml.torch.deterministic(only={"topk"}, report=True) as block:
    ...     best = sums.topk(1).indices
    ...     order = sums.sort().indices
    >>> print(block.report)
    replaced: topk 1
    excluded: sort 1
    others: none
    """

    report: Report | None

    def __init__(
        self,
        *arguments: Any,
        only: Collection[str] | None = None,
        report: bool = False,
        follow_flag: bool = False,
    ) -> None:
        if arguments:
            got = "a function" if callable(arguments[0]) else short_repr(arguments[0])
            raise ArgumentTypeError(
                f"deterministic: expected no argument, got {got}; write `with deterministic():` "
                f"around the code, or `@deterministic()` before a function"
            )
        super().__init__()
        self._names = OPERATIONS if only is None else _operations(only)
        self.report = Report() if flag(report, "report") else None
        self._follows_flag = flag(follow_flag, "follow_flag")

    def __call__(self, function: _Function) -> _Function:
        """Run a function in a block whenever it is called."""

        @wraps(function)
        def run(*arguments: Any, **keywords: Any) -> Any:
            block = deterministic(only=self._names, follow_flag=self._follows_flag)
            block.report = self.report
            with block:
                return function(*arguments, **keywords)

        run.report = self.report  # type: ignore[attr-defined]  # an attribute of a function
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
        if replacement is not None and self._replaces(replacement.operation):
            if self.report is not None:
                self.report.replaced[replacement.operation] += 1
            if not is_plainly_valid(replacement.name, args):
                refusal = error_of(function, args, keywords)
                if refusal is not None and not is_about_index_values(refusal):
                    raise refusal
            try:
                return replacement.run(*args, **keywords)
            except (IndexOutOfRangeError, MemoryError):
                raise
            except Exception as error:
                raise error_of(function, args, keywords) or error from None
        # In inference mode operators that are made of others come whole.
        if torch.is_inference_mode_enabled():
            with self:
                parts = function.decompose(*args, **keywords)
            if parts is not NotImplemented:
                return parts
        if self.report is not None and not function.is_view:
            if replacement is not None:
                self.report.excluded[replacement.operation] += 1
            else:
                self.report.others[function.overloadpacket.__name__] += 1
        return function(*args, **keywords)

    def _replaces(self, operation: str) -> bool:
        return operation in self._names and (
            not self._follows_flag or torch.are_deterministic_algorithms_enabled()
        )


def _operations(only: Any) -> frozenset[str]:
    """Check the names of operators to replace."""
    if isinstance(only, str) or not isinstance(only, Collection):
        example = f"; write only={{{only!r}}}" if only in OPERATIONS else ""
        raise ArgumentTypeError(
            f"only: expected a set of names of operators, got {short_repr(only)}{example}"
        )
    unknown = [name for name in only if name not in OPERATIONS]
    if unknown:
        got = ", ".join(f"{short_repr(name)}{did_you_mean(name, OPERATIONS)}" for name in unknown)
        raise ArgumentError(f"only: expected names among {', '.join(OPERATIONS)}, got {got}")
    return frozenset(only)
