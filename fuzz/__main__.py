"""Fuzz one target for a time, guided by coverage: `python -m fuzz model --seconds 60`.

Targets are the modules of `fuzz/targets/` (run with atheris) and libFuzzer programs (given by
`--binary`). Both take the same options. What a run finds stays in `build/fuzz/TARGET/`: inputs that
reach new code, inputs that fail, and how many seconds and executions there have been in all, so
that the next run goes on where this one ended. See `fuzz/README.md`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from anydml.core._progress import show_progress
from fuzz import corpora

ROOT = Path(__file__).resolve().parents[1]
DICTIONARIES = ROOT / "fuzz" / "dictionaries"

# A part of the time, after which figures are written: little is lost when a run is killed.
_SLICE = 300
_MOST_FINDINGS = 20
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz, replay or minimise; 0 when nothing was found."""
    settings = _parser().parse_args(arguments)
    folder = settings.state / settings.target
    for name in ("corpus", "findings"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder / "committed", ignore_errors=True)
    (folder / "committed").mkdir()
    for name, data in corpora.inputs(settings.target).items():
        (folder / "committed" / name).write_bytes(data)
    if settings.minimise:
        return _minimise(settings, folder)
    return _fuzz(settings, folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m fuzz", description=__doc__, formatter_class=_Formatter
    )
    parser.add_argument("target", help="a module of fuzz/targets/, or a name for --binary")
    parser.add_argument("--seconds", type=int, default=60, help="how long (default: 60)")
    parser.add_argument("--binary", type=Path, help="a libFuzzer program, for native targets")
    parser.add_argument(
        "--timeout", type=int, default=10, help="seconds for one input (default: 10)"
    )
    parser.add_argument("--memory", type=int, default=2048, help="MiB for all (default: 2048)")
    parser.add_argument("--max-len", type=int, default=8192, help="bytes of one input")
    parser.add_argument(
        "--state", type=Path, default=ROOT / "build" / "fuzz", help="where everything is kept"
    )
    parser.add_argument(
        "--minimise",
        action="store_true",
        help="put the smallest set of inputs that reaches as much into fuzz/corpus/TARGET.tar.xz",
    )
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    pass


def _command(settings: argparse.Namespace) -> list[str]:
    if settings.binary:
        return [str(settings.binary.resolve())]
    return [sys.executable, "-m", "fuzz", "--child", settings.target]


def _options(settings: argparse.Namespace, folder: Path) -> list[str]:
    options = [
        f"-artifact_prefix={folder / 'findings'}{os.sep}",
        f"-timeout={settings.timeout}",
        f"-rss_limit_mb={settings.memory}",
        f"-max_len={settings.max_len}",
        "-print_final_stats=1",
        "-reload=0",
    ]
    dictionary = DICTIONARIES / f"{settings.target}.dict"
    return options + ([f"-dict={dictionary}"] if dictionary.exists() else [])


def _fuzz(settings: argparse.Namespace, folder: Path) -> int:
    found = 0
    end = time.monotonic() + settings.seconds
    while (left := end - time.monotonic()) >= 1:
        start = time.monotonic()
        done = _run(
            [
                *_command(settings),
                *_options(settings, folder),
                f"-max_total_time={max(1, min(round(left), _SLICE))}",
                str(folder / "corpus"),
                str(folder / "committed"),
            ],
            folder / "log.txt",
        )
        failed = done.returncode != 0
        found += failed
        executed = sum(map(int, _EXECUTED.findall(done.stdout)))
        taken = time.monotonic() - start
        print(_add_figures(settings.target, folder, taken, executed, failed), flush=True)
        if failed:
            print(done.stdout[-4000:], flush=True)
            if not executed or found >= _MOST_FINDINGS:
                break
    return 1 if found else 0


def _run(command: list[str], log: Path) -> subprocess.CompletedProcess[str]:
    lines = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if line.startswith("#"):  # executions, coverage, size of the corpus
                show_progress(" ".join(line.split()))
    show_progress()
    output = "".join(lines)
    log.write_text(output, encoding="utf-8")
    return subprocess.CompletedProcess(command, process.returncode, output)


def _add_figures(target: str, folder: Path, seconds: float, executed: int, failed: bool) -> str:
    """Write the sums over all runs to figures.json; one line that says them."""
    path = folder / "figures.json"
    sums = {"seconds": 0, "executions": 0, "findings": 0}
    if path.exists():
        sums |= json.loads(path.read_text())
    sums["seconds"] += round(seconds)
    sums["executions"] += executed
    sums["findings"] += failed
    path.write_text(json.dumps(sums) + "\n")
    inputs = sum(1 for _ in (folder / "corpus").iterdir())
    return (
        f"{target}: {sums['seconds']} s, {sums['executions']} executions, "
        f"{sums['findings']} findings in all; {inputs} inputs kept"
    )


def _minimise(settings: argparse.Namespace, folder: Path) -> int:
    with tempfile.TemporaryDirectory() as kept:
        done = _run(
            [
                *_command(settings),
                "-merge=1",
                f"-max_len={settings.max_len}",
                f"-timeout={settings.timeout}",
                kept,
                str(folder / "committed"),
                str(folder / "corpus"),
            ],
            folder / "log.txt",
        )
        if done.returncode or not any(Path(kept).iterdir()):
            print(done.stdout[-4000:])
            return 1
        smallest = {path.name: path.read_bytes() for path in Path(kept).iterdir()}
    corpora.write(settings.target, smallest)
    size = sum(map(len, smallest.values()))
    print(f"{settings.target}: {len(smallest)} inputs of {size} bytes in all")
    return 0


def _child(target: str, options: list[str]) -> None:
    """What `_command` starts: the target under atheris; never returns."""
    import atheris

    sys.path.append(str(ROOT / "tests"))
    with atheris.instrument_imports(include=["anydml", "fuzz"]):
        module = importlib.import_module(f"fuzz.targets.{target}")
    mutators = {}
    if hasattr(module, "mutated"):

        def mutator(data: bytes, maximum: int, seed: int) -> bytes:
            return bytes(module.mutated(data, maximum, seed, atheris.Mutate))

        mutators["custom_mutator"] = mutator
    # libFuzzer starts itself again to merge, by a shell.
    own = shlex.join([sys.executable, "-m", "fuzz", "--child", target])
    atheris.Setup([own, *options], module.run, **mutators)
    atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main())
