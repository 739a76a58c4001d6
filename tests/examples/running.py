"""Where the repository is, and how its command line and scripts are run."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "examples" / "models"

# Libraries that code may need and that an installation may lack.
OPTIONAL = ("torch", "jax", "onnx", "onnxruntime", "dask", "zarr", "PIL")

_CLI = "import sys; from anydml.cli.command import main; sys.argv[0] = 'anydml'; sys.exit(main())"


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


def needed(text: str) -> list[str]:
    """The optional libraries that a text imports; they may warn of their own code."""
    return [p for p in OPTIONAL if re.search(rf"^(?:import|from) {p}\b", text, re.MULTILINE)]
