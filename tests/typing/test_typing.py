"""What type checkers make of the public functions (`uses.py`, `wrong_uses.py`)."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def checked(*names, cache):
    """Lines that mypy has something to say about, by file."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=",
               f"--cache-dir={cache}", *(str(HERE / name) for name in names)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_uses_have_the_types_that_they_say(cache):
    assert checked("uses.py", cache=cache) == []


def test_wrong_uses_are_found(cache):
    lines = (HERE / "wrong_uses.py").read_text(encoding="utf-8").splitlines()
    expected = {number for number, line in enumerate(lines, 1) if "# error: " in line}
    found = {int(line.split(":")[1]) for line in checked("wrong_uses.py", cache=cache)}
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_the_libraries_own_arrays(library, cache):
    pytest.importorskip(library)
    assert checked(f"uses_{library}.py", cache=cache) == []
