"""Matrix products on NumPy: their pieces, and the threads of BLAS."""

import time

import numpy as np
import pytest

from anydml.engines._convolution import multiply


def normal(seed, *sizes):
    return np.random.default_rng(seed).normal(0, 1, sizes).astype("f4")


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((16, 144), (144, 1024)), ((1024, 144), (144, 16)), ((3, 128, 128), (128, 128)),
        ((128, 128), (2, 1, 128, 129)), ((2, 700), (700, 900)), ((701, 700), (700, 2)),
        ((1, 700), (700, 900)),
    ],
)  # fmt: skip
def test_products_in_pieces(a, b, kind):
    """Of any sizes, they are those of NumPy, and their memory may be part of another array."""
    x, y = normal(0, *a).astype(kind), normal(1, *b).astype(kind)
    expected = np.matmul(x, y)
    close = {"rtol": 1e-4 if kind == "f4" else 1e-12, "atol": 1e-4 if kind == "f4" else 1e-12}
    np.testing.assert_allclose(multiply(x, y), expected, **close)
    memory = np.full((*expected.shape[:-1], expected.shape[-1] + 5), 7, kind)
    multiply(x, y, out=memory[..., 2:-3])
    np.testing.assert_allclose(memory[..., 2:-3], expected, **close)
    assert (memory[..., :2] == 7).all()
    assert (memory[..., -3:] == 7).all()


def test_small_products_wake_no_threads_of_blas():
    """On a busy machine each one would wait for a thread that does not run."""
    x, y = normal(0, 16, 144), normal(1, 144, 1024)
    multiply(x, y)
    time.sleep(0.5)  # until threads of earlier products sleep
    process, own = time.process_time(), time.thread_time()
    for _ in range(300):
        multiply(x, y)
    process, own = time.process_time() - process, time.thread_time() - own
    assert process < 1.3 * own
