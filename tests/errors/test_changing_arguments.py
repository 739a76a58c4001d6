"""Operands that change one another, or their list, in the middle of a call."""

import gc
import json
import subprocess
import sys

import numpy as np
import pytest
from hostile_values import (
    COMPILED,
    JOINED,
    TUPLES,
    I,
    U,
    X,
)

import anydml as dml


class Changing:
    """An integer whose conversion changes an array or a list first."""

    def __init__(self, value, change):
        self.value, self.change = value, change

    def __index__(self):
        self.change()
        return self.value


def reshape(array, shape):
    def change():
        array.shape = shape

    return change


def shrink(array):
    return lambda: array.resize((1,), refcheck=False)


CHANGES = {
    "another shape": lambda x: reshape(x, (12,)),
    "another rank": lambda x: reshape(x, (1, 1, 12)),
    "transposed": lambda x: reshape(x, (4, 3)),
    "another type": lambda x: lambda: setattr(x, "dtype", "u1"),
    "strides of 0": lambda x: lambda: setattr(x, "strides", (0, 0)),
    "resized": shrink,
    "read-only": lambda x: lambda: x.setflags(write=False),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_an_index_that_changes_an_array(change):
    def fresh():
        x = np.arange(12, dtype="f4").reshape(3, 4).copy()
        out = np.zeros((3, 4), "f4")
        return x, out

    for which in (0, 1):

        def changing(value, arrays, which=which):
            return Changing(value, CHANGES[change](arrays[which]))

        for call in (
            lambda a: dml.top_k(a[0], changing(2, a), axis=1),
            lambda a: dml.top_k(a[0], 4, axis=changing(1, a), out=(a[1], np.zeros((3, 4), "u4"))),
            lambda a: dml.split(a[0], changing(2, a), axis=1),
            lambda a: dml.split(a[0], [1, changing(3, a)], axis=1),
            lambda a: dml.split(a[0], [changing(4, a)], axis=1, out=[a[1]]),
            lambda a: dml.join([a[0], a[1]], axis=changing(0, a)),
            lambda a: dml.gather(a[0], I, axis=changing(1, a)),
            lambda a: dml.gather(a[0], np.arange(4), axis=changing(1, a), out=a[1]),
            lambda a: dml.gather_elements(a[0], I, axis=changing(1, a)),
            lambda a: dml.gather_nd(a[0], TUPLES, batch_dims=changing(0, a)),
            lambda a: dml.scatter_elements(a[0], I, U, axis=changing(1, a)),
            lambda a: dml.scatter_elements(a[0], I, U, axis=changing(1, a), out=a[1]),
            lambda a: dml.scatter_elements(a[0], I, [[changing(1, a), 2]] * 3, axis=1, out=a[1]),
            lambda a: COMPILED.dispatch(InputTensor=a[0], OutputTensors=Members(a, change)),
        ):
            arrays = fresh()
            try:
                call(arrays)
            except (dml.AnyDMLError, ValueError) as error:
                # NumPy's own: an array that it may not change in this way.
                assert isinstance(error, dml.AnyDMLError) or "resize" in str(error), error  # noqa: PT017


class Members:
    """A list of one output that changes the arrays when it is read."""

    def __init__(self, arrays, change):
        self.arrays, self.change = arrays, change

    def __len__(self):
        return 1

    def __iter__(self):
        CHANGES[self.change](self.arrays[0])()
        return iter([self.arrays[1]])


@pytest.fixture
def little_garbage():
    """What has been imported is no garbage: a collection that need not look at it takes no time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("little_garbage")
@pytest.mark.parametrize("count", [2, 5, 50])
def test_a_list_that_empties_itself(count):
    parts = []

    class Emptying:
        def __index__(self):
            parts.clear()
            gc.collect()
            return 0

        def __array__(self, dtype=None, copy=None):
            parts.clear()
            gc.collect()
            return np.ones((3, 4), "f4")

    for call in (
        lambda: dml.join(parts, axis=Emptying()),
        lambda: dml.join(parts),
        lambda: dml.split(X, parts),
        lambda: dml.split(X, [1, 2], out=parts),
        lambda: dml.split(X, 3, axis=Emptying(), out=parts),
        lambda: dml.gather(X, parts),
        lambda: dml.top_k(X, 1, out=parts),
        lambda: JOINED(parts),
        lambda: JOINED.dispatch(InputTensors=parts, OutputTensor=X.copy()),
    ):
        for member in (X.copy(), 1):
            parts[:] = [np.array(member) for _ in range(count)]
            parts.insert(1, Emptying())
            try:
                call()
            except (dml.AnyDMLError, IndexError, ValueError, RuntimeError) as error:
                # NumPy's own, of a list that changes while it is converted.
                assert not isinstance(error, SystemError)  # noqa: PT017
            parts.clear()


THREADS = """
import sys, threading, time
import numpy as np
import anydml as dml

sys.setswitchinterval(1e-6)
stop = time.monotonic() + float(sys.argv[1])
parts = [np.ones((64, 256), "f4") for _ in range(40)]
spare = list(parts)
outs = [np.empty((64, 256), "f4") for _ in range(40)]
whole = np.ones((64 * 40, 256), "f4")
T = dml.TensorDesc
few = [T("FLOAT32", (64, 256))] * 4
joined = dml.Device().create_operator(
    dml.Join(input_tensors=few, output_tensor=T("FLOAT32", (256, 256)), axis=0)).compile()
four = parts[:4]

def change():
    n = 0
    while time.monotonic() < stop:
        parts.clear()
        four.clear()
        parts.extend(np.ones((64, 256), "f4") for _ in range(40))
        four.extend(np.ones((64, 256), "f4") for _ in range(4))
        outs[n % 40] = np.empty((64, 256), "f4")
        n += 1

threads = [threading.Thread(target=change) for _ in range(2)]
for thread in threads:
    thread.start()
done = 0
while time.monotonic() < stop:
    for call in (
        lambda: dml.join(parts),
        lambda: dml.join(parts, out=np.empty((64 * len(parts), 256), "f4")),
        lambda: dml.split(whole, 40, out=outs),
        lambda: joined(four),
        lambda: joined.dispatch(InputTensors=four, OutputTensor=np.empty((256, 256), "f4")),
    ):
        try:
            call()
            done += 1
        except dml.AnyDMLError:
            pass
for thread in threads:
    thread.join()
print(done)
"""


def test_lists_that_another_thread_changes():
    ran = subprocess.run(
        [sys.executable, "-c", THREADS, "2"], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) > 0


FINALIZERS = """
import gc, json
import numpy as np
import anydml as dml

parts, seen = [], []


class Bomb:
    # Garbage in a cycle: its finalizer runs when the collector does, in the middle of a call.
    def __init__(self):
        self.me = self

    def __del__(self):
        seen.append(len(parts))
        parts.clear()


gc.set_threshold(1)
for n in range(3000):
    parts[:] = [np.full((n % 7 + 1, 3), 1.0) for _ in range(n % 9 + 1)]
    Bomb()
    for call in (lambda: dml.join(parts), lambda: dml.split(np.ones((6, 2)), 3)):
        try:
            result = call()
        except dml.AnyDMLError:
            continue
        total = sum(map(float, (r.sum() for r in result)))
        assert total == total and total <= 1e6, total
print(json.dumps(len(seen)))
"""


def test_finalizers_that_empty_the_list():
    ran = subprocess.run(
        [sys.executable, "-c", FINALIZERS], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout) > 100
