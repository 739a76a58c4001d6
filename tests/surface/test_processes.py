"""Forks, the end of the interpreter, sub-interpreters, builds without the interpreter lock."""

import os
import subprocess
import sys
import sysconfig

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

# What the scripts do: several kernels, with workers, by both doors.
WORK = """
import os, signal, sys, threading, time
import numpy as np, anydml as dml
x = np.random.default_rng(0).random((64, 50_000), np.float32)
scanning = dml.NonzeroCoordinates(
    input_tensor=dml.TensorDesc("FLOAT32", x.shape),
    output_count_tensor=dml.TensorDesc("UINT32", (1,)),
    output_coordinates_tensor=dml.TensorDesc("UINT32", (x.size, 2)),
)
compiled = dml.Device("cpu").create_operator(scanning).compile()
def work():
    count, rows = np.zeros(1, "u4"), np.zeros((x.size, 2), "u4")
    with dml.num_threads(4):
        compiled.dispatch(
            InputTensor=x, OutputCountTensor=count, OutputCoordinatesTensor=rows
        )
        best = dml.top_k(x, 10).indices
        parts = dml.split(x, 4)
    return count.tobytes(), rows[-9:].tobytes(), best.tobytes(), parts[3].tobytes()
def good(child):
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""


def run(script):
    # Warnings off: newer versions of Python warn of any fork while there are threads.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORK + script],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "good\n", "")


@needs_fork
def test_fork():
    run("""
expected = work()
for generation in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if work() == expected and work() == expected else 1)
    assert work() == expected
    good(child)
print("good")
""")


@needs_fork
def test_fork_while_other_threads_are_in_calls():
    run("""
expected = work()
stop = threading.Event()
def busy():
    while not stop.is_set():
        assert work() == expected
threads = [threading.Thread(target=busy, daemon=True) for _ in range(2)]
[t.start() for t in threads]
for _ in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if work() == expected else 1)
    good(child)
stop.set()
[t.join() for t in threads]
print("good")
""")


@needs_fork
def test_a_forked_child_ends_like_any_interpreter():
    run("""
expected = work()
child = os.fork()
if child == 0:
    signal.alarm(60)
    sys.exit(0 if work() == expected else 1)
good(child)
print("good")
""")


@needs_fork
def test_multiprocessing():
    run("""
import multiprocessing
expected = work()
with multiprocessing.get_context("fork").Pool(2) as pool:
    results = [pool.apply_async(work) for _ in range(4)]
    assert work() == expected
    assert all(result.get(60) == expected for result in results)
print("good")
""")


@pytest.mark.parametrize("last", ["", "os.kill(os.getpid(), signal.SIGINT)"], ids=["end", "signal"])
def test_exit_while_threads_are_in_calls(last):
    """The exit finds them in kernels, waiting for the interpreter lock, or in between."""
    run(f"""
def forever():
    while True: work()
for _ in range(3): threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
print("good", flush=True)
try: {last or "pass"}
except KeyboardInterrupt: pass
""")


def test_exit_while_the_callers_executor_is_in_calls():
    run("""
from concurrent.futures import ThreadPoolExecutor
expected = work()
executor = ThreadPoolExecutor(2)
results = [executor.submit(work) for _ in range(6)]
import atexit
def last():
    assert all(result.result() == expected for result in results)
    assert work() == expected
atexit.register(last)
print("good")
""")


IN_A_SUB_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
body = '''
try:
    import anydml
except ImportError as error:
    assert "anydml runs in the main interpreter only" in str(error), error
else:
    raise AssertionError("not refused")
import os
os.write(1, b"refused ")
'''
other = interpreters.create()
failure = interpreters.run_string(other, body)
assert failure is None, failure
interpreters.destroy(other)
"""


@pytest.mark.parametrize("before", [False, True], ids=["first", "after the main one"])
def test_sub_interpreters_are_refused(before):
    pytest.importorskip("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    script = IN_A_SUB_INTERPRETER + "import anydml as dml\nprint(*dml.top_k([1, 3], 1))"
    done = subprocess.run(
        [sys.executable, "-c", ("import anydml\n" if before else "") + script],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused [3] [1]\n", "")


# By the build: in this process other tests' imports have the lock back on already.
@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a build with the interpreter lock"
)
def test_free_threaded_builds_get_the_lock_back():
    """By a module that does not say it can do without: CPython warns and takes the lock again."""
    script = (
        "import sys, warnings, numpy  # which can do without\n"
        "assert not sys._is_gil_enabled()\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import anydml\n"
        "assert sys._is_gil_enabled()\n"
        "print(any('_native' in str(warning.message) for warning in caught))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    done = subprocess.run(
        [sys.executable, "-X", "gil=default", "-c", script],
        capture_output=True, text=True, check=False, timeout=60, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
