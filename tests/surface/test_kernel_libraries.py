"""Libraries of kernels: what they export, and which of them are refused."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anydml import _bindings
from anydml._native import LEVEL, built_levels, kernels_path

# The extension module alone, before it has loaded any kernels.
LOAD = """
import sys, types
package = types.ModuleType("anydml")
package.__path__ = [sys.argv[1]]
sys.modules["anydml"] = package
from anydml import _bindings
try:
    print(_bindings.load_kernels(sys.argv[2]))
except ImportError as error:
    print("ImportError:", error)
"""


def loaded(library):
    """What a process of its own says that loads this library."""
    folder = Path(_bindings.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(folder), str(library)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_library_of_this_build():
    assert loaded(kernels_path(LEVEL)) == LEVEL


def test_a_library_of_another_build(tmp_path):
    content = Path(kernels_path(LEVEL)).read_bytes()
    hashes = set(re.findall(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", content))
    assert len(hashes) == 1
    library = tmp_path / "other.so"
    library.write_bytes(content.replace(hashes.pop(), b"0" * 64))
    message = loaded(library)
    assert message.startswith(f"ImportError: {library}: expected a library of kernels")
    assert "another build" in message


def test_a_library_without_kernels():
    assert "it has no kernels" in loaded(_bindings.__file__)


def test_a_library_that_is_not_there(tmp_path):
    assert loaded(tmp_path / "none.so").startswith(f"ImportError: {tmp_path / 'none.so'}: ")


def test_the_kernels_in_use_stay():
    assert _bindings.load_kernels("/no/such/library.so") == LEVEL


@pytest.mark.skipif(not shutil.which("nm"), reason="needs nm")
@pytest.mark.parametrize("level", built_levels())
def test_a_library_exports_nothing_but_its_table(level):
    command = ["nm", "--dynamic", "--defined-only", kernels_path(level)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["anydml_kernels"]
