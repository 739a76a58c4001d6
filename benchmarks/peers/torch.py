"""PyTorch on the CPU."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from benchmarks.jobs import Array
from benchmarks.peers._peer import Peer, Ways, calling

_REDUCE: Final = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}


class PyTorch(Peer):
    """Tensors share memory with the job's arrays."""

    name = "PyTorch"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.torch: Any = import_module("torch")
        self.version = self.torch.__version__
        self.torch.set_num_threads(threads)

    def take(self, array: Array) -> Any:
        """A tensor."""
        return self.torch.from_numpy(array)

    def give(self, value: Any) -> Array:
        """The tensor's array."""
        array: Array = value.numpy()
        return array

    def top_k(self, x: Any, k: int, axis: int, largest: bool, out: Any = None) -> Ways:
        """The result needs no conversion; a full sort for large k."""
        torch = self.torch
        yield "topk", calling(torch.topk, x, k, axis, largest, True, out=out)

        def sorted_whole() -> Any:
            values, indices = torch.sort(x, axis, largest)
            return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)

        if 4 * k >= x.shape[axis] and out is None:
            yield "sort", sorted_whole

    def nonzero_coordinates(self, x: Any, out: Any = None) -> Ways:
        """The result needs no conversion."""
        yield "nonzero", calling(self.torch.nonzero, x, out=out)

    def scatter_elements(
        self, x: Any, indices: Any, updates: Any, axis: int, reduction: str | None, out: Any = None
    ) -> Ways:
        """The result needs no conversion; it does not take negative indices."""
        torch, operands = self.torch, (x, axis, indices, updates)
        if reduction is None:
            yield "scatter", calling(torch.scatter, *operands, out=out)
            return
        mode = _REDUCE[reduction]
        yield "scatter_reduce", calling(torch.scatter_reduce, *operands, mode, out=out)
        if reduction == "add":
            yield "scatter_add", calling(torch.scatter_add, *operands, out=out)

    def scatter_nd(
        self, x: Any, indices: Any, updates: Any, reduction: str | None, out: Any = None
    ) -> Ways:
        """Rows by index_copy and its like, scalars by index_put; into an array after a copy."""
        torch = self.torch
        columns, add = indices.unbind(-1), reduction == "add"
        if reduction in (None, "add"):
            if out is None:
                yield "index_put", lambda: torch.index_put(x, columns, updates, add)
            else:
                yield "copy_, index_put_", lambda: out.copy_(x).index_put_(columns, updates, add)
        if indices.shape[-1] > 1:
            return
        operands = x, 0, indices[..., 0].reshape(-1), updates
        if reduction is None:
            yield "index_copy", calling(torch.index_copy, *operands, out=out)
        elif add:
            yield "index_add", calling(torch.index_add, *operands, out=out)
        else:
            mode = _REDUCE[reduction]
            yield "index_reduce", calling(torch.index_reduce, *operands, mode, out=out)

    def split(self, x: Any, sections: int, axis: int, out: Any = None) -> Ways:
        """Views, and copies of them."""
        torch, form = self.torch, self.torch.contiguous_format

        def cloned() -> list[Any]:
            return [v.clone(memory_format=form) for v in torch.tensor_split(x, sections, axis)]

        def copied() -> None:
            for part, view in zip(out, torch.tensor_split(x, sections, axis), strict=True):
                part.copy_(view)

        if out is None:
            yield "tensor_split, clone", cloned
        else:
            yield "tensor_split, copy_", copied
        yield "split_copy", calling(torch.split_copy, x, x.shape[axis] // sections, axis, out=out)

    def join(self, *parts: Any, axis: int, out: Any = None) -> Ways:
        """The result needs no conversion."""
        yield "cat", calling(self.torch.cat, parts, axis, out=out)

    def gather(self, x: Any, indices: Any, axis: int, out: Any = None) -> Ways:
        """The result needs no conversion."""
        yield "index_select", calling(self.torch.index_select, x, axis, indices, out=out)

    def gather_elements(self, x: Any, indices: Any, axis: int, out: Any = None) -> Ways:
        """The result needs no conversion."""
        yield "gather", calling(self.torch.gather, x, axis, indices, out=out)

    def gather_nd(self, x: Any, indices: Any, batch_dims: int, out: Any = None) -> Ways:
        """Fancy indexing; rows only into an array: indexing has no form for it."""
        count = indices.ndim - 1
        batches = tuple(
            self.torch.arange(indices.shape[i]).reshape((-1, *(1,) * (count - 1 - i)))
            for i in range(batch_dims)
        )
        at = (*batches, *indices.unbind(-1))
        if out is None:
            yield "x[i, ..]", lambda: x[at]
        if not batch_dims and indices.shape[-1] == 1 and count == 1:
            select = self.torch.index_select
            yield "index_select", calling(select, x, 0, indices[:, 0], out=out)
