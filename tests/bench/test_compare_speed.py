"""The comparison of two versions finds the slower one."""

import shutil
import subprocess
import sys

import pytest

from benchmarks import compare_speed

pytestmark = pytest.mark.slow

QUICK = ("--rounds", "3", "--burst", "0.004", "--restarts", "3")
# A benchmark of two cases, of which one sleeps as long as the version of the library says.
SUITES = """
from dataclasses import dataclass, field
from types import SimpleNamespace as Case
@dataclass
class Job:
    name: str
    options: dict = field(default_factory=dict)
def suites_named(names):
    if "table" in names:
        cases = [Case(name=n, dispatch=False, job=lambda n=n: Job(n)) for n in ("same", "other")]
        yield Case(cases=lambda full: cases)
"""
OURS = """
from functools import partial
from time import sleep
from types import SimpleNamespace as Contestant
from os import environ
def function(job):
    seconds = environ["SECONDS"] if job.name == "other" else "0.002"
    return Contestant(call=partial(sleep, float(seconds)))
"""
TYPED = """
import numpy as np
from time import sleep
from types import SimpleNamespace as Contestant
from os import environ
def function(job):
    dtype = np.dtype(job.options.get("index_dtype", environ['DEFAULT']))
    def call():
        sleep(0.002 * dtype.itemsize / 4)
        return np.zeros({count}), np.zeros({count}, dtype)
    return Contestant(call=call)
"""


def version(folder, seconds, default="int64"):
    """An interpreter that stands for one with a version of the library."""
    folder.mkdir()
    python = folder / "python"
    variables = f"SECONDS={seconds} DEFAULT={default}"
    python.write_text(f'#!/bin/sh\n{variables} exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return str(python)


@pytest.fixture
def sleeping(tmp_path, monkeypatch):
    """The comparison with a benchmark that only sleeps."""
    package = tmp_path / "benchmarks"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "suites.py").write_text(SUITES)
    (package / "ours.py").write_text(OURS)
    shutil.copy(compare_speed.__file__, package)
    monkeypatch.chdir(tmp_path)
    return package


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks.compare_speed", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_slower_version_is_found(sleeping, tmp_path):
    old, new = version(tmp_path / "old", 0.002), version(tmp_path / "new", 0.006)
    done = run(old, "--new", new, "--limit", "1.8", *QUICK)
    assert done.returncode == 1, done.stdout + done.stderr
    _, first, second, verdict = done.stdout.splitlines()
    assert first.startswith("other")
    assert first.endswith("SLOWER")
    assert first.split()[3] == "3"  # what looks slow is measured with more processes
    assert second.startswith("same")
    assert second.split()[3] == "1"
    assert verdict.startswith("2 cases, geometric mean ")
    assert verdict.endswith("; 1 above 1.8")

    done = run(new, "--new", old, "--limit", "1.8", *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr


def test_cases_are_chosen(sleeping, tmp_path):
    old = version(tmp_path / "old", 0.002)
    done = run(old, "--new", old, "--cases", "ot*", "--limit", "9", *QUICK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same" not in done.stdout
    done = run(old, "--new", old, "--cases", "none", "--cases", "nor/*")
    assert done.returncode == 2
    assert done.stderr == "compare_speed: no case of both versions is named none or nor/*\n"


@pytest.mark.parametrize(("count", "status"), [(8192, 0), (8, 1)])
def test_indices_are_of_the_old_type_where_their_bytes_count(sleeping, tmp_path, count, status):
    old, new = version(tmp_path / "old", 0, "uint32"), version(tmp_path / "new", 0, "int64")
    (sleeping / "ours.py").write_text(TYPED.format(count=count))
    done = run(old, "--new", new, "--cases", "same", "--limit", "1.5", *QUICK)
    assert done.returncode == status, done.stdout + done.stderr


def test_what_cannot_be_measured_is_told(sleeping, tmp_path):
    old = version(tmp_path / "old", 0.002)
    done = run(old, "--new", str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert done.stderr == f"compare_speed: {tmp_path / 'nothing'}: No such file or directory\n"
    (sleeping / "ours.py").write_text("raise ImportError")
    done = run(old, "--new", old)
    assert done.returncode == 2
    assert done.stderr.endswith(f"compare_speed: {old} ended with status 1\n")


@pytest.mark.slow
def test_this_version_can_be_measured(monkeypatch):
    monkeypatch.chdir(compare_speed.ROOT)
    done = run(sys.executable, "--suite", "small", "--limit", "99", *QUICK, "--clock", "cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dispatch/split-16" in done.stdout


def test_outcomes():
    outcome = compare_speed.Outcome("case")
    # The median of a burst, not its mean: one pause says nothing.
    outcome.add([([1.0, 2.0, 90.0], [4.0, 4.0, 3.0]), ([2.0], [3.0]), ([2.0], [5.0])])
    assert outcome.pairs == [[2.0, 1.5, 2.5]]
    assert outcome.ratio == 2.0
    assert (outcome.old, outcome.new) == (1.0, 3.0)
    assert outcome.spread == pytest.approx(0.25)
    outcome.add([([1.0], [1.0])])
    outcome.add([([1.0], [1.2])])
    assert outcome.ratio == 1.2
    assert outcome.spread == pytest.approx(0.25)
    assert compare_speed.format_outcome(outcome, 1.25).split()[-1] != "SLOWER"
    assert compare_speed.format_outcome(outcome, 1.15).split()[-1] == "SLOWER"
