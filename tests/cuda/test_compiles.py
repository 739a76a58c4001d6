"""Every kernel compiles for the architectures in use, by NVRTC's own wheel: no GPU is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from anydml.backends import cuda

PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from anydml._native import native
from anydml.backends import cuda

architecture, step = sys.argv[1], int(sys.argv[2])
native.cuda.configure(cuda._compilers(), "", "test", "libcuda.so.1")


def compiled(number):
    assert native.cuda.compile(architecture, number)[:4] == b"\\x7fELF"
    return 1


with ThreadPoolExecutor(2) as pool:
    print(sum(pool.map(compiled, range(0, native.cuda.variants(), step))))
"""


@pytest.mark.skipif(
    not any(Path(path).is_absolute() and Path(path).exists() for path in cuda._compilers()),
    reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc",
)
@pytest.mark.parametrize(
    ("architecture", "step"),
    [("sm_90", 1), ("sm_80", 5), ("sm_89", 5)],
    ids=["Hopper", "Ampere", "Ada"],
)
def test_kernels_compile(architecture, step):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, architecture, str(step)],
        capture_output=True, text=True, check=False, timeout=600, env={"ANYDML_QUIET": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= cuda.variants() // step
