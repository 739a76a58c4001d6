"""One call checked in every way that must not make a difference."""

import numpy as np
from hypothesis import strategies as st

import anydml as dml
from support import Poisoned, assert_same_bits, strategies


class Subclass(np.ndarray):
    """What no quick path takes."""


def as_list(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def native(poisoned):
    """What an operand holds, packed and in native byte order, bit by bit."""
    array = poisoned.array
    return np.array(array.astype(array.dtype.newbyteorder("="), copy=False), order="C")


def agree(data, call, operands, expected):
    """Check `call(operands, **out)` against the expected results.

    Quick path, general path through a subclass, and ``out=`` in memory of any layout give the same
    bits at any number of threads; nothing but the elements of `out` is written.
    """
    arrays = [operand.array for operand in operands]
    with dml.num_threads(data.draw(st.integers(1, 4), "threads")):
        results = as_list(call(*arrays))
        for got, reference in zip(results, expected, strict=True):
            assert_same_bits(got, reference)
            assert got.dtype.isnative
            assert got.flags.c_contiguous
            assert got.flags.writeable
            assert got.flags.owndata or got.base is not None
            assert not any(np.may_share_memory(got, operand.block) for operand in operands)
        general = as_list(call(*[array.view(Subclass) for array in arrays]))
        for got, reference in zip(general, expected, strict=True):
            assert_same_bits(got, reference)
        outs = [
            Poisoned(
                reference.shape,
                reference.dtype,
                data.draw(strategies.layouts(reference.ndim, output=True), "layout of out"),
            )
            for reference in expected
        ]
        arguments = tuple(out.array for out in outs)
        returns_tuple = isinstance(call(*arrays), tuple)
        raw_results = as_list(call(*arrays, out=arguments if returns_tuple else arguments[0]))
        for result, out, reference in zip(raw_results, outs, expected, strict=True):
            assert result is out.array
            assert_same_bits(out.array, reference)
            assert out.gaps_intact()
    assert all(operand.untouched() for operand in operands)


def writable_twin(poisoned):
    """An operand's values in packed watched memory."""
    values = native(poisoned)
    return Poisoned(values.shape, values.dtype, values=values)
