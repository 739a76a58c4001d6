"""A driver and a compiler that stand in for NVIDIA's: the host side without a GPU."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent

PREAMBLE = """
import ctypes, os, sys, types
import numpy as np
import anydml as dml
from anydml._native import native
from anydml.devices.backends import cuda

folder = os.environ["STUB_FOLDER"]
cuda.DRIVER = os.environ.get("STUB_DRIVER", folder + "/stub_driver.so")
cuda._compilers = lambda: [os.environ.get("STUB_NVRTC", folder + "/stub_nvrtc.so")]


def stub():
    library = ctypes.CDLL(folder + "/stub_driver.so")
    library.stub_log.restype = ctypes.c_char_p
    library.stub_lent.restype = ctypes.c_longlong
    return library


def log():
    return stub().stub_log().decode().splitlines()
"""


@pytest.fixture(scope="session")
def stubs(tmp_path_factory):
    """The folder of the two libraries."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-ins with")
    folder = tmp_path_factory.mktemp("stubs")
    for name in ("stub_driver", "stub_nvrtc"):
        command = [compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
        subprocess.run([*command, HERE / f"{name}.c", "-o", folder / f"{name}.so"], check=True)
    return folder


@pytest.fixture
def with_stubs(stubs, tmp_path):
    """Runs a program of its own on the stand-ins: gives what it prints, or its errors."""

    def run(code, *, errors=False, **variables):
        environment = {
            **os.environ,
            "STUB_FOLDER": str(stubs),
            "ANYDML_CACHE_DIR": str(tmp_path / "cache"),
            "STUB_COMPILED": str(tmp_path / "compiled"),
            **variables,
        }
        environment = {name: value for name, value in environment.items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(code)],
            env=environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr if errors else done.stdout

    return run
