"""Pages of libraries' documentation that make the promises which are judged.

Each row names the function that is judged, its promises, and where they are made.
"""

from __future__ import annotations

from typing import Final

_ROWS: Final = {
    "numpy": [
        ("nonzero", "order", "https://numpy.org/doc/stable/reference/generated/numpy.nonzero.html"),
        ("gather scatter", "negative, bad index",
         "https://numpy.org/doc/stable/user/basics.indexing.html"),
    ],
    "torch": [
        ("top_k", "set, order, k", "https://docs.pytorch.org/docs/stable/generated/torch.topk.html"),
        ("nonzero", "order", "https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html"),
        ("scatter scatter_into scatter_add", "places, sums",
         "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html"),
    ],
    "jax": [
        ("top_k", "set, order, ties, boundary, zeros",
         "https://docs.jax.dev/en/latest/_autosummary/jax.lax.top_k.html"),
        ("scatter gather", "negative",
         "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html"),
    ],
    "onnxruntime": [
        ("top_k", "set, order, ties, boundary", "https://onnx.ai/onnx/operators/onnx__TopK.html"),
        ("nonzero", "order", "https://onnx.ai/onnx/operators/onnx__NonZero.html"),
        ("scatter", "places, negative, bad index",
         "https://onnx.ai/onnx/operators/onnx__ScatterElements.html"),
        ("gather", "bits, negative, bad index",
         "https://onnx.ai/onnx/operators/onnx__Gather.html"),
    ],
    "openvino": [
        ("top_k", "set, order", "https://docs.openvino.ai/2025/documentation/openvino-ir-format/"
                                "operation-sets/operation-specs/sort/top-k-11.html"),
    ],
    "dask": [
        ("top_k", "set, order",
         "https://docs.dask.org/en/stable/generated/dask.array.topk.html"),
    ],
}  # fmt: skip

_DOCUMENTED: Final = {
    (library, function, name): address
    for library, rows in _ROWS.items()
    for functions, names, address in rows
    for function in functions.split()
    for name in names.split(", ")
}


def page_of(library: str, function: str, name: str) -> str | None:
    """Return the page of the library's documentation that makes a promise; None if none does."""
    # anydml makes every promise that is tried here.
    return (
        "docs/specification.md"
        if library == "anydml"
        else _DOCUMENTED.get((library, function, name))
    )
