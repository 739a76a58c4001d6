"""The examples beside PyTorch, on a GPU and at full size."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
SCRIPTS = sorted((Path(__file__).parents[2] / "examples" / "pytorch").glob("[a-z]*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_repeats_itself(script):
    done = subprocess.run(
        [sys.executable, str(script), "--device", "cuda"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "the same bits in 20 runs" in done.stdout
