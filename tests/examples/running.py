"""Where the repository is, and how its command line and scripts are run."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "examples" / "models"

_CLI = "import sys; from anydml.cli import main; sys.argv[0] = 'anydml'; sys.exit(main())"


def run_python(
    *arguments: str, cwd: Path = ROOT, strict: bool = True
) -> subprocess.CompletedProcess[str]:
    """Python, with warnings as errors if `strict`, on a wide and colourless terminal."""
    return subprocess.run(
        [sys.executable, *(["-W", "error"] if strict else []), *arguments],
        cwd=cwd,
        env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def run_anydml(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """The command `anydml`."""
    return run_python("-c", _CLI, *arguments, cwd=cwd)
