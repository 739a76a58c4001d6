"""TOP_K of keys that are sorted by their upper 32 bits first."""

import numpy as np
import pytest

import anydml as dml


@pytest.mark.parametrize("bits", range(30, 38))
@pytest.mark.parametrize("largest", [True, False])
def test_neighbours_in_the_last_bit(bits, largest):
    """Values 2 m and 2 m + 1 within so many bits, in the order that positions would not give."""
    random = np.random.default_rng(bits)
    for size, k in ((100, 60), (300, 200), (1000, 900), (5000, 2000)):
        even = 2 * np.sort(random.integers(0, 2 ** (bits - 1), size // 2))
        even[0], even[-1] = 0, 2**bits - 2
        x = np.stack([even, even + 1], 1).ravel()
        if not largest:
            x = x[::-1].copy()
        expected = np.argsort(-x if largest else x, kind="stable")[:k]
        values, indices = dml.top_k(x, k, largest=largest)
        assert indices.tolist() == expected.tolist()
        assert values.tolist() == x[expected].tolist()
