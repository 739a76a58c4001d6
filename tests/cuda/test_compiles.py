"""Every kernel compiles for the architectures in use, by NVRTC's own wheel: no GPU is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from anydml.devices.backends import cuda

PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
import anydml as dml
from anydml._native import native
from anydml.devices.backends import cuda

architecture, step, *options = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
native.cuda.configure(cuda._compilers(), "", "test", "libcuda.so.1")


def compiled(number):
    try:
        code = native.cuda.compile(architecture, number, options)
    except dml.DeviceError as error:
        if "unrecognized option" not in str(error):
            raise
        code = native.cuda.compile(architecture, number, [])  # an older compiler
    assert code[:4] == b"\\x7fELF"
    return 1


with ThreadPoolExecutor(2) as pool:
    print(sum(pool.map(compiled, range(0, native.cuda.variants(), step))))
"""

# What is right is judged without most optimisations too, in a quarter of the time.
FAST = ("-Ofc=max",)


@pytest.mark.skipif(
    not any(Path(path).is_absolute() and Path(path).exists() for path in cuda._compilers()),
    reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc",
)
@pytest.mark.parametrize(
    ("architecture", "step", "options"),
    [
        pytest.param("sm_90", 1, FAST, id="Hopper", marks=pytest.mark.slow),
        pytest.param("sm_90", 10, (), id="Hopper, as they run", marks=pytest.mark.slow),
        pytest.param("sm_80", 5, FAST, id="Ampere"),
        pytest.param("sm_89", 5, FAST, id="Ada", marks=pytest.mark.slow),
    ],
)
def test_kernels_compile(architecture, step, options):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, architecture, str(step), *options],
        capture_output=True, text=True, check=False, timeout=600, env={"ANYDML_QUIET": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) >= cuda.variants() // step
