"""Runs one mutant: in a copy of the tree, the tests that concern its file, until one fails.

The tests run in the order in which a failure is likely to be seen soon: the native tests, then the
Python files that killed mutants of the same file, then others by the time that they take.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutants import Mutant

_NO_TESTS = 5  # pytest: all of a file's tests are heavy, say
_NATIVE = {
    "ANYDML_TEST_SHORT": "1",
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0:hard_rss_limit_mb=6000",
}
_TEST_SECONDS = 300.0  # a Python test that takes longer is ended


@dataclass(frozen=True)
class Concern:
    """The tests of a set of files."""

    files: re.Pattern[str]
    native: tuple[str, ...]
    python: tuple[str, ...]
    without: re.Pattern[str]  # Python test files that add nothing to others
    gpu: bool  # tests on a GPU too, which run only on request


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    result: str  # killed, survived, or not viable: it does not compile
    by: str  # what killed it
    seconds: float


def concerns() -> list[Concern]:
    """What the data file says."""
    path = Path(__file__).with_name("concerns.toml")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Concern(
            re.compile(entry["files"]),
            tuple(entry.get("native", ())),
            tuple(entry["python"]),
            re.compile(entry.get("without", data["without"])),
            entry.get("gpu", False),
        )
        for entry in data["concern"]
    ]


def concern_of(mutant: Mutant, entries: Iterable[Concern]) -> Concern:
    """The first entry for the mutant's file, of those that a GPU judges or of the others."""
    return next(
        entry for entry in entries if entry.gpu == mutant.gpu and entry.files.fullmatch(mutant.file)
    )


class Tree:
    """A copy of the working tree with builds of its own; the user's files are only read."""

    def __init__(self, root: Path, folder: Path, level: str, timeout: float) -> None:
        self.root, self.level, self.timeout = root, level, timeout
        self.tree = folder / "tree"
        self.native, self.extension = folder / "native", folder / "extension"
        self.log, self.watched = folder / "log", folder / "watched"
        self.concerns = concerns()
        self.built = False  # the extension is that of the unchanged sources
        self.machine_code = "", ""  # of the unchanged kernels, and of the extension
        self.sources = ""  # what stands for the contents of all sources
        # Tests that were seen to pass on unchanged code: of which sources, and in how many seconds.
        self.sound_path = folder / "sound.json"
        self.sound: dict[str, tuple[str, float]] = {}
        if self.sound_path.exists():
            self.sound = {
                test: (sources, seconds)
                for test, (sources, seconds) in json.loads(self.sound_path.read_text()).items()
            }
        self.kills = dict[tuple[str, str], int]()  # by mutated file and test
        self.marks: list[str] = []  # of the tests that run

    def learn(self, file: str, by: str) -> None:
        """A mutant of `file` was killed by this test: its like are tried with it first."""
        key = file, by.partition("::")[0]
        self.kills[key] = self.kills.get(key, 0) + 1

    def copy(self) -> None:
        """Make the copy equal to the working tree; what is equal keeps its time stamp."""
        paths = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=self.root, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        expected = set(paths)
        for name in paths:
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
            if path.is_file() and name not in expected and not built:
                path.unlink()

    def prepare(self) -> None:
        """Configure and build once, and see that the tests run the copy."""
        self.copy()
        common = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        # Assertions of the library, bounds of all memory, stores past the cache for little data;
        # not the release's optimisation: cheap.
        native = ["-DANYDML_SANITIZE=address,shift,bounds,alignment",
                  f"-DANYDML_LEVEL={self.level}",
                  "-DCMAKE_CXX_FLAGS=-D_GLIBCXX_ASSERTIONS -gno-column-info",
                  "-DANYDML_STREAM_BYTES=32768", "-DANYDML_WERROR=OFF"]  # fmt: skip
        extension = [f"-DANYDML_LEVELS={self.level}", f"-DPython_EXECUTABLE={sys.executable}",
                     f"-DCMAKE_INSTALL_PREFIX={self.tree / 'src'}",
                     "-DANYDML_OPTIMIZE=-O1"]  # fmt: skip
        self._must(["cmake", "-S", self.tree / "native/tests", "-B", self.native, *common, *native])
        self._must(["cmake", "-S", self.tree, "-B", self.extension, *common, *extension])
        self._must(["cmake", "--build", self.native, "--target", "kernels"])
        self._build_extension()
        self.machine_code = self._machine_code(".o"), self._machine_code(".so")
        self.sources = _digest(
            path
            for part in ("src", "native", "tests/conftest.py")
            for path in ((self.tree / part).rglob("*") if "." not in part else [self.tree / part])
            if path.suffix in (".py", ".c", ".cpp", ".hpp", ".cu", ".cuh")
        )
        script = "import anydml, sys; sys.exit(anydml.__file__ != sys.argv[1])"
        expected = self.tree / "src/anydml/__init__.py"
        if self._run([sys.executable, "-c", script, expected], 60) != 0:
            raise SystemExit(
                "anydml is not imported from the copy: use an environment without an editable "
                "install of it"
            )

    def run(self, mutant: Mutant) -> Outcome:
        """The mutant's outcome; the copy is as before afterwards."""
        begin = time.monotonic()
        concern = concern_of(mutant, self.concerns)
        self.marks = ["-m", "not heavy"] if concern.gpu else []
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
            self._must_pass(by.partition("::")[0])
            self.learn(mutant.file, by)
        return Outcome(result, by, round(time.monotonic() - begin, 1))

    def _must_pass(self, test: str) -> None:
        """A test that also fails without the mutant would kill everything."""
        signature = self.sources
        if test.startswith("tests/"):
            signature += _digest([self.tree / test])
        if self.sound.get(test, ("", 0.0))[0] == signature:
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
        self.sound[test] = signature, time.monotonic() - begin
        self.sound_path.write_text(json.dumps(self.sound, indent=1))

    def _judge(self, file: str, concern: Concern) -> tuple[str, str]:
        if file.startswith("native/"):
            for name in concern.native:
                if self._run(["cmake", "--build", self.native, "--target", name], 1800) != 0:
                    return "not viable", "the compiler"
                if self._machine_code(".o") == self.machine_code[0]:
                    break  # then it may still be in the bindings, by a header
                # A loop without end is found soon.
                maximum = min(self.timeout, 20 + 6 * self.sound[name][1])
                if self._run([self.native / name], maximum, _NATIVE) != 0:
                    return "killed", name
            if not self._build_extension(must=False):
                return "not viable", "the compiler"
            if self._machine_code(".so") == self.machine_code[1]:
                return "not viable", "the same machine code"
        elif not self.built:
            self._build_extension()
        by = self._failing_test(self._in_order(file, concern))
        return ("killed", by) if by else ("survived", "")

    def _in_order(self, file: str, concern: Concern) -> list[str]:
        """The files of Python tests, those first that are likely to fail soon."""
        folder = file.rpartition("/")[0]

        def rank(test: str) -> tuple[int, int, float]:
            near = sum(
                count
                for (other, by), count in self.kills.items()
                if by == test and other.rpartition("/")[0] == folder
            )
            # A file of which nothing is known is new, and may be about this.
            return -self.kills.get((file, test), 0), -near, self.sound.get(test, ("", 0.0))[1]

        files = {
            path.relative_to(self.tree).as_posix()
            for tests in concern.python
            for path in (self.tree / tests).glob("test_*.py")
            if not concern.without.fullmatch(path.stem)
        }
        return sorted(files, key=lambda test: (*rank(test), test))

    def _failing_test(self, files: list[str]) -> str:
        """The first test that fails, also when it runs without those before it."""
        while files:
            if self._pytest(files) == 0:
                return ""
            test = self._watched()[0]
            name = test.partition("::")[0]
            if name not in files:
                return files[0]  # not one of them can be read
            if self._pytest([test]) != 0 or self._pytest([name]) != 0:
                return test
            files = files[files.index(name) + 1 :]
        return ""

    def _pytest(self, files: Sequence[str]) -> int:
        self.watched.write_text("")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                   "-p", "mutation.watch", *self.marks, *files]  # fmt: skip
        extra = {
            "PYTHONPATH": f"{self.tree / 'src'}{os.pathsep}{self.root / 'scripts'}",
            "ANYDML_MUTATION_WATCH": str(self.watched),
            "ANYDML_MUTATION_SECONDS": str(_TEST_SECONDS),
        }
        status = self._run(command, 4 * self.timeout, extra)
        good = status in (0, _NO_TESTS)
        last, taken = self._watched()
        for name, seconds in taken.items():
            if good or name != last.partition("::")[0]:
                self.sound[name] = self.sound.get(name, ("", 0.0))[0], seconds
        self.sound_path.write_text(json.dumps(self.sound, indent=1))
        return 0 if good else status

    def _watched(self) -> tuple[str, dict[str, float]]:
        """The test that ran last, and the seconds of each file; see `watch.py`."""
        last, seconds = "", dict[str, float]()
        for line in self.watched.read_text().splitlines():
            if line.startswith("> "):
                last = line[2:]
            else:
                name = last.partition("::")[0]
                seconds[name] = seconds.get(name, 0.0) + float(line)
        if not last:
            found = re.search(r"\b(tests/\w+/test_\w+\.py)", self._logged())
            last = found[1] if found else ""
        return last, seconds

    def _machine_code(self, suffix: str) -> str:
        """Without places in lines: no mutant moves a line."""
        kernels = self.native / "CMakeFiles" / "kernels.dir"
        folder = kernels if suffix == ".o" else self.tree / "src" / "anydml"
        return _digest(folder.rglob("*" + suffix))

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


def _digest(paths: Iterable[Path]) -> str:
    """What stands for the contents of files."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]
