"""Many threads and processes at once: every result right, and an end however it comes."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from random import Random

import pytest

import anydml as dml
from anydml.ops._registry import OPERATORS
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from fuzz.targets.descriptor import Dispatch

pytestmark = pytest.mark.slow

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@pytest.mark.parametrize(
    "seconds", [2, pytest.param(120, marks=pytest.mark.heavy)], ids=["short", "long"]
)
def test_shared_and_separate_operators_under_changing_settings(seconds):
    """From six threads, while the number of threads and the pool's limit change."""
    kinds = list(dict.fromkeys(OPERATORS.values()))

    def make_operator(seed):
        desc = descriptor(Seeded(seed), kinds[seed % len(kinds)])
        return desc, dml.Device("cpu").create_operator(desc).compile()

    shared = [make_operator(seed) for seed in range(2 * len(kinds))]
    end = time.monotonic() + seconds
    counts = [Counter() for _ in range(6)]
    failures = []
    interval, usual = sys.getswitchinterval(), (dml.get_num_threads(), dml.memory_pool().limit)

    def work(number):
        chance = Random(number)
        try:
            # On a busy machine the time may be over before a thread has begun: each does something.
            while (not counts[number] or time.monotonic() < end) and not failures:
                own = chance.random() < 0.3
                desc, compiled = (
                    make_operator(chance.getrandbits(20)) if own else chance.choice(shared)
                )
                for _ in range(4):
                    choose = Seeded(number, chance.random())
                    Dispatch(choose, desc, False).run(compiled)
                    counts[number][desc.NAME] += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    try:
        sys.setswitchinterval(1e-5)
        for thread in threads:
            thread.start()
        chance = Random(0)
        while any(thread.is_alive() for thread in threads):
            dml.set_num_threads(chance.choice((1, 2, 3, 4, 8)))
            dml.set_memory_pool_limit(chance.choice((0, 1 << 20, 1 << 28)))
            if chance.random() < 0.1:
                gc.collect()
            time.sleep(0.002)
    finally:
        end = 0
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        dml.set_num_threads(usual[0])
        dml.set_memory_pool_limit(usual[1])
    if failures:
        raise failures[0]
    assert all(sum(count.values()) > 0 for count in counts)


# ---- processes ----------------------------------------------------------------------------------

MODULE = """
import os, signal, sys, threading, time
import numpy as np, anydml as dml

x = np.random.default_rng(0).random((64, 30_000), np.float32)
lookup = np.random.default_rng(1).integers(-64, 64, x.shape)


def work(_=None):
    best = dml.top_k(x, 10)
    put = dml.scatter_elements(x, lookup, x, axis=0)
    return best.indices.tobytes(), hash(put.tobytes()), dml.nonzero_coordinates(x).shape


def same(expected):
    # Hashes of bytes differ between processes that were not forked.
    mine = work()
    return mine[0] == expected[0] and mine[2] == expected[2]


stop = threading.Event()


def busy(count, daemon=True):
    expected = work()

    def forever():
        while not stop.is_set():
            assert work() == expected

    def change():
        number = 0
        while not stop.is_set():
            number += 1
            dml.set_num_threads(1 + number % 4)
            time.sleep(0.0005)

    threads = [threading.Thread(target=forever, daemon=daemon) for _ in range(count)]
    threads.append(threading.Thread(target=change, daemon=daemon))
    for thread in threads:
        thread.start()
    return expected, threads
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "inflight.py").write_text(MODULE)

    def run(script, expected=0):
        path = tmp_path / "script.py"
        path.write_text("from inflight import *\n\n" + script)
        # Warnings off: newer versions of Python warn of any fork while there are threads.
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(path)],
            capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (expected, "good\n", "")

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [one for one in ("spawn", "forkserver", "fork")
               if one in multiprocessing.get_all_start_methods()],
)  # fmt: skip
def test_processes_started_in_mid_work(run, method):
    run(f"""
import multiprocessing
if __name__ == "__main__":
    expected, threads = busy(2)
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        assert all(pool.map(same, [expected] * 4))
    stop.set()
    for thread in threads: thread.join()
    print("good")
""")


FORKS = """
expected, threads = busy(2)
wrong = []
def fork_often():
    for number in range(ROUNDS):
        child = os.fork()
        if child == 0:
            signal.alarm(100)
            stop.clear()
            dml.set_num_threads(1 + number % 4)
            results = []
            own = [threading.Thread(target=lambda: results.append(work())) for _ in range(2)]
            for thread in own: thread.start()
            grandchild = os.fork() if number % 2 else None
            if grandchild == 0:
                os._exit(0 if work() == expected else 1)
            for thread in own: thread.join()
            good = results == [expected] * 2
            if grandchild:
                good &= os.waitpid(grandchild, 0)[1] == 0
            os._exit(0 if good else 1)
        wrong.append(os.waitpid(child, 0)[1])
forking = [threading.Thread(target=fork_often) for _ in range(2)]
for thread in forking: thread.start()
for thread in forking: thread.join()
stop.set()
for thread in threads: thread.join()
assert wrong == [0] * 2 * ROUNDS, wrong
print("good")
"""


@needs_fork
def test_forks_from_threads_in_mid_work(run):
    """Children with threads and children of their own, while the number of threads changes."""
    run(FORKS.replace("ROUNDS", "3"))


@needs_fork
@pytest.mark.heavy
def test_many_forks_from_threads_in_mid_work(run):
    run(FORKS.replace("ROUNDS", "40"))


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ("sys.exit(3)", 3),
        ("os._exit(4)", 4),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM),
        ("stop.set()", 0),  # threads that are no daemons: the exit waits for them
    ],
    ids=["sys.exit", "os._exit", "SIGTERM", "end"],
)
def test_exit_with_work_in_flight(run, last, status):
    run(
        f"""
busy(3, daemon={last != "stop.set()"})
time.sleep(0.2)
print("good", flush=True)
{last}
""",
        status,
    )


@needs_fork
def test_a_child_exits_with_work_in_flight(run):
    run("""
child = os.fork()
if child == 0:
    signal.alarm(100)
    busy(2)
    time.sleep(0.2)
    sys.exit(5)
expected, threads = busy(1)
status = os.waitpid(child, 0)[1]
stop.set()
for thread in threads: thread.join()
assert os.waitstatus_to_exitcode(status) == 5, status
print("good")
""")
