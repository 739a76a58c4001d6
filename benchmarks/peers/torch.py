"""PyTorch on the CPU."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from benchmarks.jobs import Array
from benchmarks.peers._peer import Peer, Ways

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

    def top_k(self, x: Any, k: int, axis: int, largest: bool) -> Ways:
        """The result needs no conversion; a full sort for large k."""
        torch = self.torch
        yield "topk", lambda: tuple(torch.topk(x, k, axis, largest, True))

        def sorted_whole() -> Any:
            values, indices = torch.sort(x, axis, largest)
            return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)

        if 4 * k >= x.shape[axis]:
            yield "sort", sorted_whole

    def nonzero_coordinates(self, x: Any) -> Ways:
        """The result needs no conversion."""
        yield "nonzero", lambda: self.torch.nonzero(x)

    def scatter_elements(
        self, x: Any, indices: Any, updates: Any, axis: int, reduction: str | None
    ) -> Ways:
        """The result needs no conversion; it does not take negative indices."""
        torch = self.torch
        if reduction is None:
            yield "scatter", lambda: torch.scatter(x, axis, indices, updates)
            return
        mode = _REDUCE[reduction]
        yield "scatter_reduce", lambda: torch.scatter_reduce(x, axis, indices, updates, mode)
        if reduction == "add":
            yield "scatter_add", lambda: torch.scatter_add(x, axis, indices, updates)

    def scatter_nd(self, x: Any, indices: Any, updates: Any, reduction: str | None) -> Ways:
        """Rows by index_copy and its like, scalars by index_put."""
        torch = self.torch
        rows = indices[..., 0].reshape(-1) if indices.shape[-1] == 1 else None
        columns = indices.unbind(-1)
        if reduction in (None, "add"):
            add = reduction == "add"
            yield "index_put", lambda: torch.index_put(x, columns, updates, add)
        if rows is None:
            return
        if reduction is None:
            yield "index_copy", lambda: torch.index_copy(x, 0, rows, updates)
        elif reduction == "add":
            yield "index_add", lambda: torch.index_add(x, 0, rows, updates)
        else:
            mode = _REDUCE[reduction]
            yield "index_reduce", lambda: torch.index_reduce(x, 0, rows, updates, mode)

    def split(self, x: Any, sections: int, axis: int) -> Ways:
        """Views, and copies of them."""
        torch = self.torch
        form = torch.contiguous_format

        def cloned() -> list[Any]:
            return [v.clone(memory_format=form) for v in torch.tensor_split(x, sections, axis)]

        size = x.shape[axis] // sections
        yield "tensor_split, clone", cloned
        yield "split_copy", lambda: torch.split_copy(x, size, axis)

    def join(self, *parts: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "cat", lambda: self.torch.cat(parts, axis)

    def gather(self, x: Any, indices: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "index_select", lambda: self.torch.index_select(x, axis, indices)

    def gather_elements(self, x: Any, indices: Any, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "gather", lambda: self.torch.gather(x, axis, indices)

    def gather_nd(self, x: Any, indices: Any, batch_dims: int) -> Ways:
        """Fancy indexing."""
        count = indices.ndim - 1
        batches = tuple(
            self.torch.arange(indices.shape[i]).reshape((-1, *(1,) * (count - 1 - i)))
            for i in range(batch_dims)
        )
        at = (*batches, *indices.unbind(-1))
        yield "x[i, ..]", lambda: x[at]
        if not batch_dims and indices.shape[-1] == 1 and count == 1:
            rows = indices[:, 0]
            yield "index_select", lambda: self.torch.index_select(x, 0, rows)

    def top_k_into(self, outs: Any, x: Any, k: int, axis: int, largest: bool) -> Ways:
        """The same."""
        yield "topk", lambda: self.torch.topk(x, k, axis, largest, True, out=outs)

    def nonzero_coordinates_into(self, outs: Any, x: Any) -> Ways:
        """The same."""
        yield "nonzero", lambda: self.torch.nonzero(x, out=outs[0])

    def scatter_elements_into(
        self, outs: Any, x: Any, indices: Any, updates: Any, axis: int, reduction: str | None
    ) -> Ways:
        """The same."""
        torch, out = self.torch, outs[0]
        if reduction is None:
            yield "scatter", lambda: torch.scatter(x, axis, indices, updates, out=out)
            return
        mode = _REDUCE[reduction]
        yield (
            "scatter_reduce",
            lambda: torch.scatter_reduce(x, axis, indices, updates, mode, out=out),
        )
        if reduction == "add":
            yield "scatter_add", lambda: torch.scatter_add(x, axis, indices, updates, out=out)

    def scatter_nd_into(
        self, outs: Any, x: Any, indices: Any, updates: Any, reduction: str | None
    ) -> Ways:
        """A copy and `index_put_`, or `index_copy` and its like."""
        torch, out = self.torch, outs[0]
        columns, add = indices.unbind(-1), reduction == "add"
        if reduction in (None, "add"):
            yield "copy_, index_put_", lambda: out.copy_(x).index_put_(columns, updates, add)
        if indices.shape[-1] > 1:
            return
        rows = indices[..., 0].reshape(-1)
        if reduction is None:
            yield "index_copy", lambda: torch.index_copy(x, 0, rows, updates, out=out)
        elif add:
            yield "index_add", lambda: torch.index_add(x, 0, rows, updates, out=out)
        else:
            mode = _REDUCE[reduction]
            yield "index_reduce", lambda: torch.index_reduce(x, 0, rows, updates, mode, out=out)

    def split_into(self, outs: Any, x: Any, sections: int, axis: int) -> Ways:
        """Copies of views."""
        torch, size = self.torch, x.shape[axis] // sections

        def copied() -> None:
            for out, view in zip(outs, torch.tensor_split(x, sections, axis), strict=True):
                out.copy_(view)

        yield "tensor_split, copy_", copied
        yield "split_copy", lambda: torch.split_copy(x, size, axis, out=outs)

    def join_into(self, outs: Any, *parts: Any, axis: int) -> Ways:
        """The same."""
        yield "cat", lambda: self.torch.cat(parts, axis, out=outs[0])

    def gather_into(self, outs: Any, x: Any, indices: Any, axis: int) -> Ways:
        """The same."""
        yield "index_select", lambda: self.torch.index_select(x, axis, indices, out=outs[0])

    def gather_elements_into(self, outs: Any, x: Any, indices: Any, axis: int) -> Ways:
        """The same."""
        yield "gather", lambda: self.torch.gather(x, axis, indices, out=outs[0])

    def gather_nd_into(self, outs: Any, x: Any, indices: Any, batch_dims: int) -> Ways:
        """Rows only: indexing has no form for it."""
        if not batch_dims and indices.shape[-1] == 1 and indices.ndim == 2:
            rows = indices[:, 0]
            yield "index_select", lambda: self.torch.index_select(x, 0, rows, out=outs[0])
