"""Exchange tables of other libraries than PyTorch's: which are used, and what of a tensor is taken.

Each test is a program of its own, as a process takes one table and keeps it.
"""

import subprocess
import sys
import textwrap
from pathlib import Path

STAND_IN = Path(__file__).with_name("exchange_stand_in.py")


def run(code):
    done = subprocess.run(
        [sys.executable, STAND_IN], input=textwrap.dedent(code), capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_tables_of_another_version_or_without_a_function_are_not_used():
    code = """
    x = Tensor(np.arange(3, dtype="f4"))
    for changes in ({"major": 0}, {"major": 2}, {"minor": 2}, {"allocate": None},
                    {"object_of": None}, {"tensor_of": None}, {"current_stream": None}):
        take(**changes)
        print(tiled(x))
    take("no type")
    print(tiled(x))
    try:
        take(name=b"another")
    except ValueError as error:
        print(error)
    take(minor=4, managed_of=None)
    print(tiled(x))
    class Other(Tensor): pass
    take(Other)
    print(tiled(x), tiled(Other(x.array)))
    """
    *refused, misnamed, taken, once = run(code)
    assert refused == ["(None, 0)"] * 8
    assert "PyCapsule_GetPointer called with incorrect name" in misnamed
    assert taken == "([0.0, 1.0, 2.0], 1)"
    assert once == "([0.0, 1.0, 2.0], 1) (None, 0)"


def test_tensors_are_taken_where_nothing_changes_what_they_are():
    code = """
    x = Tensor(np.arange(3, dtype="f4"))
    take()
    for level, mode in ((-1, 0), (0, 0), (-1, 1), (-1, 0.0), (-1.0, 0), (None, 0), (-2, 0)):
        forward["_current_level"], modes[0] = level, mode
        print(level, mode, tiled(x))
    forward.clear()
    print(tiled(x))
    forward["_current_level"] = -1
    modes.clear()
    print(tiled(x))
    """
    assert run(code) == [
        "-1 0 ([0.0, 1.0, 2.0], 1)",
        "0 0 (None, 0)",
        "-1 1 (None, 0)",
        "-1 0.0 (None, 0)",
        "-1.0 0 (None, 0)",
        "None 0 (None, 0)",
        "-2 0 ([0.0, 1.0, 2.0], 1)",
        "(None, 0)",
        "(None, 0)",
    ]


def test_what_is_taken_of_a_tensor():
    """Elements within the storage, of a known type and layout."""
    code = """
    take()
    x = np.arange(1, 7, dtype="f4")
    def shown(**changes):
        print(tiled(Tensor(x, **changes))[0])
    shown()
    shown(offset=4, sizes=(5,), bytes=24)
    print("refused")
    for changes in (
        {"fails": True}, {"keys": 3}, {"keys": 5}, {"keys": "1"}, {"bytes": 23}, {"bytes": "24"},
        {"bytes": -1}, {"strides": None}, {"data": None}, {"device_type": 7}, {"rank": 65},
        {"type": (2, 32, 2)}, {"type": (3, 32, 1)}, {"type": (2, 33, 1)}, {"sizes": (-1,)},
        {"sizes": (7,)}, {"strides": (2,)}, {"strides": (2**61,)}, {"strides": (2**63 - 1,)},
        {"sizes": (2**62,), "strides": (4,)}, {"sizes": (2**62 + 1,), "strides": (1,)},
        {"keys": None}, {"storage": None}, {"bytes": None}, {"first": None}, {"first": "0"},
        {"first": 1}, {"first": 2**63 - 1}, {"requires_grad": True}, {"requires_grad": None},
    ):
        if tiled(Tensor(x, **changes))[0] is not None:
            print(changes)
    print("taken")
    shown(sizes=(0,), bytes=0)
    shown(sizes=(0,), data=None)
    shown(sizes=(0,), strides=(2**40,))
    shown(sizes=(1,), strides=(2**40,))
    shown(sizes=(3,), strides=(2,), bytes=20)
    shown(sizes=(3,), first=3)
    most = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
    print(tiled(Tensor(np.ones((1,) * most, "u1")))[0] is not None)
    print(tiled(Tensor(np.array(5.0))))
    print(asked["device"], asked["asks of an error"] == asked["allocate"] == asked["object_of"])
    """
    assert run(code) == [
        "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]",
        "[2.0, 3.0, 4.0, 5.0, 6.0]",
        "refused",
        "taken",
        "[]",
        "[]",
        "[]",
        "[1.0]",
        "[1.0, 3.0, 5.0]",
        "[1.0, 2.0, 3.0]",
        "True",
        "(5.0, 1)",
        "0 True",
    ]
