"""Reading an array in another layout is reading its bytes."""

from itertools import permutations, product

import numpy as np
import pytest

from anydml.devices.backends._partition import Layout, relayout

SHAPES = [(), (6,), (2, 3), (3, 1, 2), (2, 2, 3), (1, 12), (2, 1, 5)]


def memory_of(array, strides):
    """The elements where they lie, from the first to the last."""
    count = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    flat = np.full(count, -1)
    np.lib.stride_tricks.as_strided(flat, array.shape, [8 * s for s in strides])[...] = array
    return flat


def layouts(shape):
    """Packed and transposed ones, one with gaps, and one that repeats an axis."""
    for order in permutations(range(len(shape))):
        strides = [0] * len(shape)
        step = 1
        for axis in reversed(order):
            strides[axis] = step
            step *= shape[axis]
        yield Layout(shape, tuple(strides))
        if step > 1:
            yield Layout(shape, tuple(2 * s for s in strides))
        for axis in order:
            if strides[axis] * shape[axis] == step:
                yield Layout(shape, tuple(0 if i == axis else s for i, s in enumerate(strides)))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_pair(shape):
    found = 0
    for other in SHAPES:
        for source, target in product(layouts(shape), layouts(other)):
            read = relayout(source, target)
            is_written_once = 0 not in (
                s for s, n in zip(source.strides, shape, strict=True) if n > 1
            )
            reach = 1 + sum((n - 1) * s for n, s in zip(other, target.strides, strict=True))
            if not is_written_once:
                assert read is None
                continue
            array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
            memory = memory_of(array, source.strides)
            if reach > memory.size or -1 in memory:
                assert read is None or -1 not in memory[:reach]
                continue
            expected = np.lib.stride_tricks.as_strided(
                memory, other, [8 * s for s in target.strides]
            )
            if read is not None:
                assert (read(np, array) == expected).all()
                found += 1
    assert found


def test_what_graphs_need():
    packed = Layout((2, 3, 4), None)
    assert relayout(packed, Layout((4, 6), None))
    assert relayout(packed, Layout((4, 3, 2), (1, 4, 12)))
    assert relayout(packed, Layout((5, 24), (0, 1)))
    assert relayout(Layout((2, 3, 4), (12, 1, 3)), Layout((24,), None))
    assert relayout(packed, Layout((2, 3), None))  # of the first half
    assert relayout(packed, Layout((3, 3), (1, 1))) is None
    assert relayout(packed, Layout((25,), None)) is None
    assert relayout(packed, Layout((3, 4), (8, 1))) is None
