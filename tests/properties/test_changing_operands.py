"""Operands that another process changes while a kernel reads them decide values and nothing else.

The calls run in a process of their own, so that a crash is a failure and not the end of the tests.
A fork of it changes the operands, which lie in memory that both see, as fast as it can.
"""

import mmap
import os
import subprocess
import sys
import time
from itertools import product

import numpy as np
import pytest

import anydml as dml
from support import Poisoned

pytestmark = pytest.mark.slow

BAD = 2**40


class Changing:
    """Arrays whose elements a child process keeps changing between two contents."""

    def __init__(self, *pairs):
        self.arrays = []
        for first, _ in pairs:
            memory = mmap.mmap(-1, max(first.nbytes, 1))
            array = np.frombuffer(memory, first.dtype, first.size).reshape(first.shape)
            array[...] = first
            self.arrays.append(array)
        self.pairs = pairs

    def __enter__(self):
        parent = os.getpid()
        self.child = os.fork()
        if self.child == 0:
            while os.getppid() == parent:
                for turn in (1, 0):
                    for array, pair in zip(self.arrays, self.pairs, strict=True):
                        array[...] = pair[turn]
            os._exit(0)
        return self.arrays

    def __exit__(self, *error):
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


def repeat(call):
    """Often enough that the other process gets its turn in the middle of some."""
    end = time.monotonic() + float(sys.argv[2])
    call()
    while time.monotonic() < end:
        call()


def poisoned(shape, dtype):
    """Watched memory of a value that nothing here comes to."""
    return Poisoned(shape, dtype, values=np.full(shape, -77, dtype))


def nonzero():
    generator = np.random.default_rng(1)
    for shape, kind, density in (
        ((1 << 20,), "u1", 0.5), ((5, 33250), "f4", 0.001), ((300, 700), "f8", 0.05),
        ((40, 50, 60), "f2", 0.9), ((900,), "i4", 0.5), ((200_000,), "c16", 0.1),
    ):  # fmt: skip
        contents = [(generator.random(shape) < density).astype(kind) for _ in range(2)]
        with Changing(contents) as (x,):
            for view in (x, x.T, x[..., ::2], x[::-1]):
                if kind != "c16":
                    repeat(lambda view=view: check_rows(dml.nonzero_coordinates(view), view.shape))
            if x.ndim > 1 and x.dtype.itemsize <= 4:
                desc = dml.NonzeroCoordinates(
                    input_tensor=dml.TensorDesc(str(x.dtype).upper(), shape),
                    output_count_tensor=dml.TensorDesc("UINT32", (1,) * len(shape)),
                    output_coordinates_tensor=dml.TensorDesc(
                        "UINT32", (1,) * (len(shape) - 2) + (x.size, len(shape))
                    ),
                )
                run = dml.Device("cpu").create_operator(desc).compile()

                def call(run=run, x=x, shape=shape):
                    result = run(x)
                    rows = result.output_coordinates_tensor.reshape(-1, len(shape))
                    count = int(result.output_count_tensor.reshape(()))
                    assert 0 <= count <= x.size
                    check_rows(rows[:count], shape)
                    assert not rows[count:].any()

                repeat(call)


def check_rows(rows, shape):
    assert rows.shape[1] == len(shape)
    if len(rows) == 0:
        return
    assert np.all(rows < np.array(shape))
    flat = np.ravel_multi_index(tuple(rows.T.astype(np.int64)), shape)
    assert np.all(np.diff(flat) > 0)


def scatter_elements():
    generator = np.random.default_rng(2)
    for shape, length, axis in (
        ((60,), 300_000, 0), ((3000,), 40_000, 0), ((1 << 20,), 400_000, 0),
        ((700, 90), 500, 0), ((90, 5000), 5000, 1), ((3, 400_000), 300_000, 1), ((200,), 40, 0),
    ):  # fmt: skip
        at = (*shape[:axis], length, *shape[axis + 1 :])
        check_scatter(
            generator, shape, at, at, shape[axis],
            lambda x, lookup, updates, axis=axis, **options: dml.scatter_elements(
                x, lookup, updates, axis=axis, **options
            ),
        )  # fmt: skip


def scatter_nd():
    generator = np.random.default_rng(3)
    for shape, tuples, length in (
        ((1 << 20,), 400_000, 1), ((5000, 64), 9000, 1), ((900, 800), 200_000, 2),
        ((50_000, 3), 60_000, 1), ((70, 9000), 90, 1), ((300,), 100, 1),
    ):  # fmt: skip
        at = (tuples, *shape[length:])
        check_scatter(generator, shape, (tuples, length), at, min(shape[:length]), dml.scatter_nd)


def check_scatter(generator, shape, lookup, updates, size, scatter):
    for kind, reduction, bad in (
        ("f4", None, True), ("f8", "add", False), ("f2", "mul", True), ("i8", "add", True),
        ("i1", None, False), ("i4", "max", False), ("c16", None, True),
    ):  # fmt: skip
        indices = [generator.integers(0, size, lookup) for _ in range(2)]
        if bad:
            indices[1].reshape(-1)[indices[1].size // 2] = BAD
        pairs = [
            [generator.integers(0, 9, shape).astype(kind) for _ in range(2)],
            indices,
            [generator.integers(0, 9, updates).astype(kind) for _ in range(2)],
        ]
        out = poisoned(shape, kind)
        with Changing(*pairs) as (x, index, values):

            def call(x=x, index=index, values=values, out=out, reduction=reduction):
                arguments = {} if reduction is None else {"reduction": reduction}
                out.array[...] = -77
                try:
                    scatter(x, index, values, **arguments, out=out.array)
                    assert not np.any(out.array == -77), "an element is not written"
                except dml.IndexOutOfRangeError:
                    assert np.all(out.array == -77), "failed after it had written"
                try:
                    assert not np.any(scatter(x, index, values, **arguments) == -77)
                    scatter(x, index, values, **arguments, out=x)
                except dml.IndexOutOfRangeError:
                    pass

            repeat(call)
            assert out.gaps_intact()


def slabs():
    generator = np.random.default_rng(4)
    for shape, kind, parts, axis in (
        ((1000, 66), "i1", 66, 1), ((500, 512), "f4", 32, 1), ((400, 900), "f8", 3, 1),
        ((1 << 20,), "i2", 4, 0), ((128, 64, 16), "c16", 64, 1),
    ):  # fmt: skip
        contents = [generator.integers(0, 9, shape).astype(kind) for _ in range(2)]
        with Changing(contents) as (x,):
            for view in (x, x[::-1], x[..., ::-1]):
                outs = [poisoned(p.shape, kind) for p in np.split(view, parts, axis)]
                full = poisoned(shape, kind)

                def call(view=view, outs=outs, full=full, parts=parts, axis=axis):
                    for out in (*outs, full):
                        out.array[...] = -77
                    dml.split(view, parts, axis=axis, out=[out.array for out in outs])
                    dml.join(np.split(view, parts, axis), axis=axis, out=full.array)
                    for out in (*outs, full):
                        assert not np.any(out.array == -77)
                        assert out.gaps_intact()

                repeat(call)


GROUPS = {
    function.__name__: function for function in (nonzero, scatter_elements, scatter_nd, slabs)
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("group", "threads"), list(product(GROUPS, (1, 3))))
def test_values_are_all_that_changes(group, threads, moments):
    done = subprocess.run(
        [sys.executable, __file__, group, str(moments(0.1))],  # seconds of calls of one kind
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"ANYDML_NUM_THREADS": str(threads)},
    )
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"


if __name__ == "__main__":
    GROUPS[sys.argv[1]]()
