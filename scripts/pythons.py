"""Print the CPythons from 3.11 on that this machine has: `python scripts/pythons.py`.

They are `python3.N` on the path and those of pyenv, one for each minor version, without
free-threaded builds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from pathlib import Path

FIRST = 11
"""The minor version of pyproject.toml's `requires-python`."""
_ASKED = (
    "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:2], "
    "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
)


def interpreters() -> dict[int, Path]:
    """The interpreters by minor version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[int, Path] = {}
    for minor in range(FIRST, FIRST + 10):
        on_path = shutil.which(f"python3.{minor}")
        for path in [*([on_path] if on_path else []), *pyenv.glob(f"3.{minor}.*/bin/python")]:
            command = [path, "-c", _ASKED]
            asked = subprocess.run(command, capture_output=True, text=True, check=False)
            if asked.stdout.split() == ["cpython", "3", str(minor), "0"]:
                found[minor] = Path(path)
    return found


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    for interpreter in interpreters().values():
        print(interpreter)
