"""top_k while another thread rewrites its input: any values, but every index on the axis.

In a process of its own, which a stray access would end. The cases where the input changes between
two given readings are in ``native/tests/top_k_changes_test.cpp``.
"""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
import threading
import time

import numpy as np

import anydml as dml

name, sizes, k, axis, threads, seconds = sys.argv[1:]
sizes = tuple(map(int, sizes.split(",")))
k, axis, threads, seconds = int(k), int(axis), int(threads), float(seconds)
dtype = np.dtype(name)
generator = np.random.default_rng(7)
count = int(np.prod(sizes))
bits = np.frombuffer(generator.bytes(count * dtype.itemsize), dtype).reshape(sizes)
if dtype.kind == "f":
    plain, most = generator.random(sizes).astype(dtype), np.nan
else:
    plain, most = bits, np.iinfo(dtype).max
falling = np.sort(plain, axis=axis)
falling = np.flip(falling, axis)
contents = [plain, np.zeros(sizes, dtype), falling, np.full(sizes, most, dtype), bits]
x = plain.copy()
stop = threading.Event()


def rewrite():
    turn = 0
    while not stop.is_set():
        turn += 1
        np.copyto(x, contents[turn % len(contents)])


writer = threading.Thread(target=rewrite, daemon=True)
writer.start()
sys.setswitchinterval(1e-4)
out_sizes = list(sizes)
out_sizes[axis] = k
calls, bad = 0, 0
until = time.perf_counter() + seconds
with dml.num_threads(threads):
    while time.perf_counter() < until or calls < 4:
        values = np.empty(out_sizes, dtype)
        indices = np.full(out_sizes, 2**32 - 1, np.uint32)
        dml.top_k(x, k, axis=axis, largest=calls % 2 == 0, out=(values, indices))
        bad += int(indices.max()) >= sizes[axis]
        calls += 1
stop.set()
writer.join()
print(f"{bad} of {calls} calls gave indices off the axis")
raise SystemExit(bad != 0)
"""

CASES = {
    "rank": ("float32", (200000, 16), 8, 1),
    "rows of 1,000": ("float32", (4000, 1000), 20, 1),
    "rows of 1,000, half of it": ("int16", (4000, 1000), 500, 1),
    "a long row, few": ("float32", (4_000_000,), 1000, 0),
    "a long row, few, 8 bits": ("uint8", (4_000_000,), 1000, 0),
    "a long row, few, 16 bits": ("float16", (4_000_000,), 1000, 0),
    "a long row, a tenth": ("float64", (1_000_000,), 100_000, 0),
    "a long row, a tenth, 16 bits": ("int16", (1_000_000,), 100_000, 0),
    "a long row, half of it": ("int64", (400_000,), 200_000, 0),
    "a long row, sorted": ("float32", (1_000_000,), 1_000_000, 0),
    "a long row, sorted, 8 bits": ("int8", (1_000_000,), 1_000_000, 0),
    "along axis 0, few": ("float32", (20000, 64), 10, 0),
    "along axis 0, few, 8 bits": ("uint8", (20000, 64), 10, 0),
    "along axis 0, half of it": ("float64", (20000, 8), 10000, 0),
    "two long rows": ("float64", (2, 600_000), 60_000, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_every_index_is_on_the_axis(name, threads, moments):
    dtype, sizes, k, axis = CASES[name]
    arguments = [dtype, ",".join(map(str, sizes)), str(k), str(axis), str(threads), str(moments(1))]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
