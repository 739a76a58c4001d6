"""The same calls on PyTorch's tensors that are watched or batched, lazy and traced arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from corner_calls import CASES

from support import assert_same_bits, jax_64_bits

# Where memory is made, places beyond it are none.
MOST = ("gather: the most axes", "tile: the most axes")
SPARSE = ("gather: far away", "top_k: indices that hold the last place")
SIZED = "nonzero_coordinates: rows without columns"
HELD = {name: case for name, case in CASES.items() if name not in (*SPARSE, SIZED)}


def map_arrays(operand: Any, change: Callable[[Any], Any]) -> Any:
    """An operand whose arrays are changed; those of a list one by one."""
    if isinstance(operand, list) and operand and isinstance(operand[0], np.ndarray):
        return [change(array) for array in operand]
    return change(operand) if isinstance(operand, np.ndarray | np.generic) else operand


def compare(got: Any, expected: Any) -> None:
    got, expected = (
        member if isinstance(member, tuple) else (member,) for member in (got, expected)
    )
    for ours, theirs in zip(got, expected, strict=True):
        assert_same_bits(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("name", HELD)
def test_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    modes = pytest.importorskip("torch.utils._python_dispatch")

    class Watched(modes.TorchDispatchMode):  # type: ignore[misc]  # PyTorch's, without types
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    function, arguments, keywords, expected = HELD[name]
    operands = [
        map_arrays(operand, lambda array: torch.from_numpy(np.array(array)))
        for operand in arguments
    ]
    seen: list[str] = []
    with Watched():
        result = function(*operands, **keywords)
    assert any(kernel.startswith("anydml.") for kernel in seen)
    compare(result, expected)
    if name in MOST:  # a batch would be one more
        return
    first = operands[0]
    batches = (
        [torch.stack([a, a]) for a in first]
        if isinstance(first, list)
        else torch.stack([first, first])
    )
    result = torch.vmap(lambda x: function(x, *operands[1:], **keywords))(batches)
    twice = (
        tuple(np.stack([a, a]) for a in expected)
        if isinstance(expected, tuple)
        else np.stack([expected, expected])
    )
    compare(tuple(result) if isinstance(result, list) else result, twice)


LOOKUPS = [name for name in HELD if name.startswith(("gather", "scatter"))]


@pytest.mark.parametrize(
    ("name", "all_of_them"),
    [*((name, True) for name in HELD), *((name, False) for name in LOOKUPS)],
)
def test_lazy_arrays(name: str, all_of_them: bool) -> None:
    lazy = pytest.importorskip("dask.array")
    function, arguments, keywords, expected = HELD[name]

    def chunked(array: Any) -> Any:
        return lazy.from_array(np.array(array), chunks=2 if np.ndim(array) else -1)

    first, *others = arguments
    if all_of_them:
        others = [map_arrays(operand, chunked) for operand in others]
    result = function(map_arrays(first, chunked), *others, **keywords)
    result = result if isinstance(expected, tuple) else (result,)
    reference = expected if isinstance(expected, tuple) else (expected,)
    assert [(array.shape, array.dtype) for array in result] == [
        (np.shape(array), array.dtype) for array in reference
    ]
    compare(tuple(array.compute() for array in result), reference)


@pytest.mark.parametrize("name", HELD)
def test_traced_arrays(name: str) -> None:
    jax = pytest.importorskip("jax")
    function, arguments, keywords, expected = HELD[name]
    with jax_64_bits(True):
        compare(jax.jit(lambda x: function(x, *arguments[1:], **keywords))(arguments[0]), expected)
