"""Runs one mutant: in a copy of the tree, the tests that concern its file, until one fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutants import HERE, Mutant

# Any file that fails is enough; the least expensive come first within a folder.
_LAST = ("test_large", "test_machine", "test_huge", "test_processes", "test_busy_core")
_NO_TESTS = 5  # pytest: all of a file's tests are heavy, say
_NATIVE = {
    "ANYDML_TEST_SHORT": "1",
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0",
}


@dataclass(frozen=True)
class Concern:
    """The tests of a set of files."""

    files: re.Pattern[str]
    native: tuple[str, ...]
    python: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    result: str  # killed, survived, or not viable: it does not compile
    by: str  # what killed it
    seconds: float


def concerns(path: Path = HERE / "concerns.toml") -> list[Concern]:
    """What the data file says."""
    return [
        Concern(re.compile(entry["files"]), tuple(entry.get("native", ())), tuple(entry["python"]))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["concern"]
    ]


class Tree:
    """A copy of the working tree with builds of its own; the user's files are only read."""

    def __init__(self, root: Path, folder: Path, level: str, timeout: float) -> None:
        self.root, self.level, self.timeout = root, level, timeout
        self.tree = folder / "tree"
        self.native, self.extension = folder / "native", folder / "extension"
        self.log = folder / "log"
        self.concerns = concerns()
        self.built = False  # the extension is that of the unchanged sources
        # Tests that were seen to pass on the unchanged code, and in how many seconds.
        self.sound = dict[str, float]()

    def copy(self) -> None:
        """Make the copy equal to the working tree; what is equal keeps its time stamp."""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=self.root, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        wanted = set(listed)
        for name in listed:
            source, target = self.root / name, self.tree / name
            if not source.is_file():
                continue
            data = source.read_bytes()
            if not target.exists() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                target.chmod(source.stat().st_mode)
        for path in self.tree.rglob("*"):
            name = path.relative_to(self.tree).as_posix()
            built = "__pycache__" in name or path.suffix == ".so"
            if path.is_file() and name not in wanted and not built:
                path.unlink()

    def prepare(self) -> None:
        """Configure and build once, and see that the tests run the copy."""
        self.copy()
        common = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        # Assertions of the library, bounds of all memory; not the release's optimisation: cheap.
        native = ["-DANYDML_SANITIZE=address", f"-DANYDML_LEVEL={self.level}",
                  "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_ASSERTIONS", "-DANYDML_WERROR=OFF"]  # fmt: skip
        extension = [f"-DANYDML_LEVELS={self.level}", f"-DPython_EXECUTABLE={sys.executable}",
                     f"-DCMAKE_INSTALL_PREFIX={self.tree / 'src'}"]  # fmt: skip
        self._must(["cmake", "-S", self.tree / "native/tests", "-B", self.native, *common, *native])
        self._must(["cmake", "-S", self.tree, "-B", self.extension, *common, *extension])
        self._build_extension()
        script = "import anydml, sys; sys.exit(anydml.__file__ != sys.argv[1])"
        wanted = self.tree / "src/anydml/__init__.py"
        if self._run([sys.executable, "-c", script, wanted], 60) != 0:
            raise SystemExit(
                "anydml is not imported from the copy: use an environment without an editable "
                "install of it"
            )

    def run(self, mutant: Mutant) -> Outcome:
        """The mutant's outcome; the copy is as before afterwards."""
        begin = time.monotonic()
        concern = next(entry for entry in self.concerns if entry.files.fullmatch(mutant.file))
        for name in concern.native:
            self._must_pass(name)
        path = self.tree / mutant.file
        text = (self.root / mutant.file).read_text(encoding="utf-8")
        path.write_text(mutant.applied(text), encoding="utf-8")
        try:
            result, by = self._judge(mutant.file, concern)
        finally:
            path.write_text(text, encoding="utf-8")
            if mutant.file.startswith("native/"):
                self.built = False
        if result == "killed":
            self._must_pass(by)
        return Outcome(result, by, round(time.monotonic() - begin, 1))

    def _must_pass(self, test: str) -> None:
        """A test that also fails without the mutant would kill everything."""
        if test in self.sound:
            return
        begin = time.monotonic()
        if test.startswith("tests/"):
            good = self._build_extension() and self._pytest([test]) == 0
        else:
            self._must(["cmake", "--build", self.native, "--target", test])
            begin = time.monotonic()
            good = self._run([self.native / test], self.timeout, _NATIVE) == 0
        if not good:
            raise SystemExit(f"{test} fails on the unchanged code:\n{self._logged()}")
        self.sound[test] = time.monotonic() - begin

    def _judge(self, file: str, concern: Concern) -> tuple[str, str]:
        if file.startswith("native/"):
            for name in concern.native:
                if self._run(["cmake", "--build", self.native, "--target", name], 1800) != 0:
                    return "not viable", "the compiler"
                # A loop without end is found soon.
                most = min(self.timeout, 30 + 8 * self.sound[name])
                if self._run([self.native / name], most, _NATIVE) != 0:
                    return "killed", name
            if not self._build_extension(must=False):
                return "not viable", "the compiler"
        elif not self.built:
            self._build_extension()
        for tests in concern.python:
            files = sorted(
                (path.relative_to(self.tree) for path in (self.tree / tests).glob("test_*.py")),
                key=lambda path: (path.stem in _LAST, path.name),
            )
            for file_of_tests in files:
                if self._pytest([file_of_tests]) != 0:
                    return "killed", str(file_of_tests)
        return "survived", ""

    def _pytest(self, files: Sequence[str | Path]) -> int:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
        status = self._run(command, self.timeout)
        return 0 if status == _NO_TESTS else status

    def _logged(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def _build_extension(self, must: bool = True) -> bool:
        done = self._run(["cmake", "--build", self.extension], 1800) == 0 and (
            self._run(["cmake", "--install", self.extension], 60) == 0
        )
        if must and not done:
            raise SystemExit(self.log.read_text(errors="replace"))
        self.built = done
        return done

    def _must(self, command: Sequence[str | Path]) -> None:
        if self._run(command, 3600) != 0:
            raise SystemExit(self.log.read_text(errors="replace"))

    def _run(
        self, command: Sequence[str | Path], timeout: float, extra: dict[str, str] | None = None
    ) -> int:
        """The exit status; that of a killed process when it takes too long."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.tree / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "ANYDML_INSTRUCTION_SET": self.level,
            **(extra or {}),
        }
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [str(part) for part in command], cwd=self.tree, env=environment, stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                return -signal.SIGKILL
            finally:
                # What a test started and a mutant left running.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
