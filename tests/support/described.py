"""Operators on the arrays of another project's test data, described as the page's tables allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import anydml as dml
from anydml.ops._computed import Computed
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]


def run_described(
    kind: type[Computed],
    inputs: Sequence[Array | None],
    fields: Mapping[str, Any],
    expected: Iterable[Array],
    device: dml.Device,
) -> tuple[tuple[Array, ...], list[Array]]:
    """Run an operator on arrays, None for a tensor that is left out.

    Returns what comes out, and what was wanted in the types of the page's tables; skips a case of
    types that they do not have.
    """
    names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
    operands = {
        name: described_as(kind, array)
        for name, array in zip(names, inputs, strict=False)
        if array is not None
    }
    expected = [described_as(kind, array) for array in expected]
    skip_other_types(kind, [*operands.values(), *expected])
    tensors = {name: described(array) for name, array in operands.items()}
    output_type = dml.DataType.from_numpy(expected[0].dtype)
    desc = kind.with_outputs(**tensors, **fields, output_type=output_type)
    results = device.create_operator(desc).compile()(*operands.values())
    return results if isinstance(results, tuple) else (results,), expected


def described(array: Array) -> dml.TensorDesc:
    """The array's description, with its strides."""
    strides = [stride // array.itemsize for stride in array.strides]
    return dml.TensorDesc(dml.DataType.from_numpy(array.dtype), array.shape, strides)


def described_as(kind: type[Computed], array: Array) -> Array:
    """The array in a type that the operator's first table has: bool is uint8, float64 float32."""
    array = np.atleast_1d(array)
    accepted = kind.SUPPORT[-1].tensors[kind.tensor_fields()[0].name].data_types
    wide = dml.DataType.FLOAT64 in accepted
    others = {"?": np.uint8} if wide else {"?": np.uint8, "d": np.float32}
    return array.astype(others.get(array.dtype.char, array.dtype))


def skip_other_types(kind: type[Computed], arrays: Iterable[Array]) -> None:
    """Skip a case of types that the page's tables do not have."""
    tables = kind.SUPPORT[-1].tensors.values()
    known = {data_type.numpy for table in tables for data_type in table.data_types}
    for array in arrays:
        if array.dtype not in known:
            pytest.skip(f"{kind.NAME} has no {array.dtype}")
