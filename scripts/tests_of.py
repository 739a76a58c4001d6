"""Run the tests of what changed, in under a minute: `python scripts/tests_of.py [REVISION]`.

What changed is what differs from REVISION, or from where this branch left `main` (or, without a
local one, `origin/main`): committed or not. A test file counts if it changed itself, is named as a
changed module or as its folder, imports it, or names something that it defines. The closest come
first; what has not begun after 45 seconds is left out, and the summary says how much that was.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 45
ALWAYS = "tests/surface/test_imports.py"
FOLDERS = {
    **{"docs": "examples", "benchmarks": "bench", "native": "surface", "core": "errors"},
    **{"engines": "properties", "functions": "properties", "devices": "graphs"},
    **dict.fromkeys(("torch", "jax", "dask"), "libraries"),
}
"""Where the tests of a folder are, if not in one of its name."""
GENERAL = {"__init__", "base", "core", "test", "tests", "types"}
"""Words that say little about what a test is of."""


def git(*arguments: str) -> list[str]:
    """Lines that git prints."""
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}\n{__doc__.splitlines()[0]}")
    return done.stdout.splitlines()


def changed(revision: str | None) -> list[Path]:
    """The files that differ from a revision, untracked ones too, relative to the root."""
    if revision is None:
        known = git("for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/remotes")
        main = "main" if "main" in known or "origin/main" not in known else "origin/main"
        (revision,) = git("merge-base", "HEAD", main)
    names = git("diff", "--name-only", revision) + git("ls-files", "--others", "--exclude-standard")
    return [Path(name) for name in dict.fromkeys(names)]


@cache
def words_of(path: Path) -> tuple[set[str], set[str]]:
    """What a test of a file may be named as, and what it may name."""
    names = {part.removesuffix(path.suffix).strip("_") for part in path.parts[-2:]} - GENERAL
    defined: set[str] = set()
    if path.suffix == ".py" and (ROOT / path).exists():
        body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        found = {getattr(node, "name", "_") for node in body}
        defined = {name for name in found if not name.startswith("_") and len(name) > 3}
    return names, defined


def closeness(test: Path, text: str, path: Path) -> int:
    """How close a test file is to a changed file; 0: it has nothing to do with it."""
    if test == path:
        return 5
    names, defined = words_of(path)
    stem = test.stem.split("_")
    if any(all(word in stem for word in name.split("_")) for name in names if name):
        return 4
    module = ".".join(path.with_suffix("").parts).removeprefix("src.").removesuffix(".__init__")
    parent, _, last = module.rpartition(".")
    imported = rf"\b{re.escape(module)}\b|\bfrom {re.escape(parent)} import .*\b{re.escape(last)}\b"
    if path.suffix == ".py" and re.search(imported, text):
        return 3
    if defined and re.search(rf"\b({'|'.join(defined)})\b", text):
        return 2
    folders = {FOLDERS.get(part, part) for part in (path.parts[0], path.parent.name)}
    return int(test.parent.name in folders)


def tests_of(paths: list[Path]) -> Iterator[str]:
    """The test files of changed files, the closest first."""
    found = {Path(ALWAYS): 1}
    for name in git("ls-files", "--cached", "--others", "--exclude-standard", "tests"):
        test = Path(name)
        if test.match("test_*.py") and (ROOT / test).exists():
            text = (ROOT / test).read_text(encoding="utf-8")
            if best := max((closeness(test, text, path) for path in paths), default=0):
                found[test] = best
    return (str(test) for test in sorted(found, key=lambda test: -found[test]))


def main() -> int:
    """Run them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("revision", nargs="?", metavar="REVISION")
    tests = [*tests_of(changed(parser.parse_args().revision))]
    print(f"{len(tests)} files:", *tests[:8], *(["…"] if len(tests) > 8 else []), flush=True)
    command = [sys.executable, "-m", "pytest", "-q", f"--seconds={SECONDS}", *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
