"""Threads of the caller and of the library, the interpreter lock, forks."""

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import anydml as dml
from anydml.testing import Flavour, assert_same_bits, contents


def compiled_top_k(rows, length, k):
    sizes = (rows, k)
    return (
        dml.Device("cpu")
        .create_operator(
            dml.TopK1(
                input_tensor=dml.TensorDesc("FLOAT32", (rows, length)),
                output_value_tensor=dml.TensorDesc("FLOAT32", sizes),
                output_index_tensor=dml.TensorDesc("UINT32", sizes),
                axis=1,
                k=k,
                axis_direction="DECREASING",
            )
        )
        .compile()
    )


@pytest.mark.parametrize("inner", [1, 2, 4])
@pytest.mark.parametrize("shape", [(3, 50), (40, 20_000)], ids=str)
def test_one_compiled_operator_from_eight_threads(shape, inner):
    compiled = compiled_top_k(*shape, 7)
    generator = np.random.default_rng(0)
    inputs = [contents(generator, shape, "f4", Flavour.RANDOM) for _ in range(8)]
    expected = [dml.top_k(x, 7) for x in inputs]
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        with dml.num_threads(inner):
            for repeat in range(12):
                x, wanted = inputs[(number + repeat) % 8], expected[(number + repeat) % 8]
                values, indices = np.empty((shape[0], 7), "f4"), np.empty((shape[0], 7), "u4")
                compiled.dispatch(
                    InputTensor=x, OutputValueTensor=values, OutputIndexTensor=indices
                )
                assert_same_bits(values, wanted.values)
                assert_same_bits(indices, wanted.indices)
                called = compiled(x)
                assert_same_bits(called.output_index_tensor, wanted.indices)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, number) for number in range(8)]:
            done.result(timeout=120)


def test_array_functions_from_eight_threads():
    generator = np.random.default_rng(1)
    x = contents(generator, (300, 400), "f4", Flavour.SPARSE)
    order = np.argsort(generator.random(x.shape), axis=1)
    wanted = np.argwhere(x).astype(np.uint32), np.take_along_axis(x, order, 1)

    def work(_):
        for _ in range(10):
            assert_same_bits(dml.nonzero_coordinates(x), wanted[0])
            assert_same_bits(dml.gather_elements(x, order, axis=1), wanted[1])
            assert_same_bits(dml.join(dml.split(x, 4, axis=1), axis=1), x)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8), timeout=120))


def test_interpreter_lock_is_released_while_a_kernel_runs():
    x = np.random.default_rng(0).random(6_000_000, np.float32)
    counter = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counter[0] += 1

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    thread.start()
    try:
        # Held locks would only be given up when the call has returned.
        sys.setswitchinterval(1000)
        with dml.num_threads(1):
            sys.setswitchinterval(interval)
            before = counter[0]
            dml.top_k(x, x.size)
            after = counter[0]
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert after - before > 10_000


def test_num_threads_is_of_the_context():
    outside = dml.get_num_threads()
    seen = []

    def other():
        seen.append(dml.get_num_threads())

    with dml.num_threads(3):
        assert dml.get_num_threads() == 3
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        block = dml.num_threads(5)
        with block, block:
            assert dml.get_num_threads() == 5
        assert dml.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError), dml.num_threads(2):
            raise ZeroDivisionError
        assert dml.get_num_threads() == 3
    assert seen == [outside]
    assert dml.get_num_threads() == outside


def test_num_threads_is_of_the_task():
    async def task(count):
        with dml.num_threads(count):
            await asyncio.sleep(0)
            return dml.get_num_threads()

    async def all_tasks():
        return await asyncio.gather(*map(task, (1, 2, 3)))

    assert asyncio.run(all_tasks()) == [1, 2, 3]


def test_set_num_threads():
    usual = dml.get_num_threads()
    try:
        dml.set_num_threads(7)
        assert dml.get_num_threads() == 7
        with dml.num_threads(2):
            assert dml.get_num_threads() == 2
            dml.set_num_threads(9)
            assert dml.get_num_threads() == 2
        assert dml.get_num_threads() == 9
    finally:
        dml.set_num_threads(usual)


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True,
        check=False, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("text", ["1", "3", "256"])
def test_environment_variable(text):
    done = run("import anydml; print(anydml.get_num_threads())", ANYDML_NUM_THREADS=text)
    assert done.stdout.strip() == text


@pytest.mark.parametrize("text", ["0", "257", "two", "-1", "1.5"])
def test_environment_variable_that_makes_no_sense(text):
    done = run("import anydml", ANYDML_NUM_THREADS=text)
    assert done.returncode != 0
    assert "ANYDML_NUM_THREADS: expected 1..256, got" in done.stderr


FORK = """
import os, signal, sys, numpy as np, anydml as dml
x = np.random.default_rng(0).random((64, 100_000), np.float32)
def work():
    with dml.num_threads(4):
        v, i = dml.top_k(x, 10)
        rows = dml.nonzero_coordinates(x)
        parts = dml.split(x, 4)
    return i.tobytes(), rows.shape, parts[3].tobytes()
expected = work()
for generation in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if work() == expected and work() == expected else 1)
    assert work() == expected
    _, status = os.waitpid(child, 0)
    assert status == 0, (generation, status)
# A fork while another thread is in a kernel.
import threading
stop = threading.Event()
def busy():
    while not stop.is_set():
        work()
threads = [threading.Thread(target=busy) for _ in range(2)]
[t.start() for t in threads]
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if work() == expected else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
stop.set()
[t.join() for t in threads]
print("good")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork():
    done = run(FORK)
    assert done.stdout.strip() == "good", (done.returncode, done.stderr)


def test_exit_while_threads_of_the_caller_still_run():
    done = run(
        "import threading, time, numpy as np, anydml as dml\n"
        "x = np.ones((64, 100_000), np.float32)\n"
        "def work():\n"
        "    while True: dml.top_k(x, 5)\n"
        "for _ in range(2): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.3); print('leaving')\n"
    )
    assert done.stdout.strip() == "leaving"
    assert done.returncode == 0, done.stderr


def test_results_do_not_depend_on_the_number_of_threads():
    generator = np.random.default_rng(5)
    x = contents(generator, (300, 3000), "f4", Flavour.TIED)
    lookup = generator.integers(-300, 300, x.shape)
    updates = generator.normal(size=x.shape).astype("f4")
    results = []
    for count in (1, 2, 3, 4, 8):
        with dml.num_threads(count):
            added = dml.scatter_elements(updates, lookup, updates, axis=0, reduction="add")
            put = dml.scatter_elements(x, lookup, updates, axis=0)
            results.append((dml.top_k(x, 100), dml.nonzero_coordinates(x), added, put))
    first = results[0]
    for other in results[1:]:
        assert_same_bits(other[0].values, first[0].values)
        assert_same_bits(other[0].indices, first[0].indices)
        for got, wanted in zip(other[1:], first[1:], strict=True):
            assert_same_bits(got, wanted)
