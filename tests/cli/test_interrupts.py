"""Ctrl-C: the command ends at the next dispatch, with status 130 and one line."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time

import pytest

from anydml import _command

# Where the tests run in the background, SIGINT is ignored, and children inherit that.
HEED = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
# The installed script.
RUN = (
    f"import runpy; runpy.run_path({sysconfig.get_path('scripts') + '/anydml'!r}, None, '__main__')"
)
INTERRUPTED = "\nError: interrupted\n"
SPLIT = {
    "type": "SPLIT",
    "InputTensor": {"DataType": "FLOAT32", "Sizes": [2**20]},
    "OutputCount": 1,
    "OutputTensors": [{"DataType": "FLOAT32", "Sizes": [2**20]}],
    "Axis": 0,
}
MILLION = {"initialValuesDataType": "FLOAT32", "initialValues": {"value": 0, "valueCount": 2**20}}
BOUND = {
    "type": "dispatch",
    "dispatchable": "s",
    "bindings": {"InputTensor": "a", "OutputTensors": "b"},
}
SHOW = {"type": "print", "resource": "c"}
SMALL = {"initialValuesDataType": "FLOAT32", "initialValues": [1]}
RESOURCES = {"a": MILLION, "b": MILLION, "c": SMALL}


@pytest.fixture
def start(tmp_path):
    """Starts the command; whatever still runs at the end of a test is ended."""
    started = []

    def run(*arguments, code=RUN):
        process = subprocess.Popen(
            [sys.executable, "-c", f"{HEED}; import sys; {code}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            encoding="utf-8",
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """Interrupts and gives the exit status, what was printed and how long it took."""
    start = time.perf_counter()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err, time.perf_counter() - start


def write_model(folder, commands):
    model = {"resources": RESOURCES, "dispatchables": {"s": SPLIT}, "commands": commands}
    (folder / "model.json").write_text(json.dumps(model))


@pytest.mark.slow
def test_a_run_ends_at_the_next_dispatch(start, tmp_path):
    written = {"type": "writeFile", "resource": "a", "targetPath": "a.bin"}
    write_model(tmp_path, [SHOW, *[BOUND] * 30_000, written])
    process = start("run", "model.json")
    while process.stdout.readline() != "Resource 'c': 1\n":
        assert process.poll() is None, process.stderr.read()
    status, out, err, taken = ended(process)
    assert (status, out, err) == (130, "", INTERRUPTED)
    assert taken < 5
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize("command", ["check", "run"])
def test_while_a_model_is_read(start, command):
    process = start(command, "-")
    time.sleep(0.3)  # somewhere in its imports, or waiting for the text
    assert ended(process)[:3] == (130, "", INTERRUPTED)


@pytest.mark.parametrize("module", ["anydml._processor", "numpy", "click", "anydml.models"])
def test_while_the_package_is_imported(start, module):
    code = (
        "import os, signal\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.meta_path.insert(0, Interrupt())\n{RUN}"
    )
    process = start("ops", code=code)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", INTERRUPTED)


def test_at_the_end(start):
    code = (
        "import atexit, os, signal\n"
        f"atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n{RUN}"
    )
    process = start("--version", code=code)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


def test_while_a_class_is_made(capsys):
    """Before 3.12, Python makes a RuntimeError of an interrupt in `__set_name__`."""
    error = RuntimeError("Error calling __set_name__ on 'cached_property'")
    error.__cause__ = KeyboardInterrupt()
    with pytest.raises(SystemExit) as caught:
        _command._report(RuntimeError, error, None)
    assert caught.value.code == 130
    assert capsys.readouterr().err == "\nError: interrupted\n"
