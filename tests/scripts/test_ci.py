"""What CI runs is what CONTRIBUTING.md says."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

if not (ROOT / ".ci").exists():
    pytest.skip("an sdist has no .ci", allow_module_level=True)

NAMES = subprocess.run(
    [ROOT / ".ci" / "extra"], capture_output=True, text=True, check=True
).stdout.split()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def test_every_configuration_is_described():
    table = CONTRIBUTING[CONTRIBUTING.index("| name | what (`.ci/extra`)") :].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.M)))) == (
        sorted(NAMES)
    )


def test_what_runs_where_ci_is_true_is_described():
    (run,) = re.findall(r"^  extras=\(([\w ]+)\)", (ROOT / ".ci" / "run").read_text(), re.M)
    (row,) = re.findall(r"^\| further \| where `CI=true`: (.*?) of the", CONTRIBUTING, re.M)
    assert re.findall(r"`(\w+)`", row) == run.split()
    assert {*run.split()} < {*NAMES}


def test_a_configuration_that_is_none_is_refused_before_anything_runs():
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "run"],
        env={"PATH": "/usr/bin:/bin", "ANYDML_CI_EXTRA": "slow nonsense"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "got nonsense" in done.stderr
