"""The comparison of levels tells what differs."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare_levels.py"
spec = spec_from_file_location("compare_levels", SCRIPT)
compare_levels = module_from_spec(spec)
spec.loader.exec_module(compare_levels)


def test_differences():
    same = ["1\tcall\tthreads=1", "1\tcall\tthreads=3", "2\tother\tthreads=1"]
    assert compare_levels.differences({"v2": same, "v3": list(same)}) == []
    levels = compare_levels.differences({"v2": same, "v3": [*same[:2], "3\tother\tthreads=1"]})
    assert levels == ["v3: 3, not 2: other\tthreads=1"]
    threads = [same[0], "4\tcall\tthreads=3", same[2]]
    assert len(compare_levels.differences({"v2": threads, "v3": threads})) == 2
    assert compare_levels.differences({"v2": same, "v3": same[:2]}) == [
        "not the same number of calls"
    ]


def test_a_run():
    command = [sys.executable, str(SCRIPT), "--count", "16"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("16 calls at ")
