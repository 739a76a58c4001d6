"""The instruction counts: what is compared, and that it counts where valgrind is installed."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anydml._native import usable_levels
from benchmarks import instructions as script

ROOT = Path(__file__).parents[2]
X86_64 = platform.machine() in ("x86_64", "AMD64")


def test_counts_within_the_tolerance_pass(capsys):
    recorded = {"with": script.versions(), "counts": {"a": 100, "b": 1000}}
    assert script.compare(recorded, {"a": 104, "b": 960}, 0.05) == 0
    assert script.compare(recorded, {"a": 106, "b": 1000}, 0.05) == 1
    assert script.compare(recorded, {"a": 94, "b": 1000}, 0.05) == 1
    assert "OFF" in capsys.readouterr().out


def test_a_call_on_one_side_only_is_told(capsys):
    recorded = {"with": script.versions(), "counts": {"a": 100}}
    assert script.compare(recorded, {"a": 100, "b": 1}, 0.05) == 1
    assert script.compare(recorded, {}, 0.05) == 1
    assert "--update" in capsys.readouterr().out


def test_other_versions_are_told(capsys):
    assert script.compare({"with": {"python": "0"}, "counts": {"a": 1}}, {"a": 1}, 0.05) == 0
    assert "recorded with {'python': '0'}" in capsys.readouterr().out


@pytest.mark.skipif(not X86_64, reason="the requests are x86-64 instructions")
def test_without_valgrind_the_requests_do_nothing():
    calls = []
    script.Requests().count("name", lambda: calls.append(None), 5)
    assert len(calls) == 5 + 1 + script.FEW


def test_the_calls_have_names_of_their_own():
    names = [case.name for case in script.cases()]
    assert len(set(names)) == len(names)
    assert not any(" " in name for name in names)  # a dump's name ends at the space


@pytest.mark.heavy
@pytest.mark.skipif(not X86_64 or not shutil.which("valgrind"), reason="needs valgrind on x86-64")
@pytest.mark.skipif("v3" not in usable_levels(), reason="not built for x86-64-v3")
def test_counting_twice_gives_the_same(tmp_path):
    file = tmp_path / "counts.json"
    for arguments in (["--update"], []):
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.instructions", "--file", file, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(file.read_text())["counts"]
    assert counts["top_k/16"] < counts["top_k/few-256k-k100"]
