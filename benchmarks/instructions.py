"""Instruction counts of a fixed set of calls: a regression check that noise does not touch.

    python -m benchmarks.instructions            compare with instructions.json in this folder
    python -m benchmarks.instructions --update   write it anew

The calls run on one thread under ``valgrind --tool=callgrind``, with the kernels built for
x86-64-v3, the newest that it can run. Counts cover everything between the call in Python and its
return, so those of the small calls hold for one version of Python and NumPy; the file says which.
Exit status 0, 1 when a count is off by more than the tolerance, 2 when nothing could be counted.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ours, recipes
from benchmarks.cases import Case
from benchmarks.suites import small

FILE = Path(__file__).resolve().with_suffix(".json")
TOLERANCE = 0.05
LEVEL = "v3"
MANY, FEW = 200, 3
LARGE = 2**14


def main() -> int:
    """Count, and compare or write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the counts anew")
    parser.add_argument("--file", type=Path, default=FILE, help="another file")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="0.05 by default")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return 0
    if platform.machine() not in ("x86_64", "AMD64") or not shutil.which("valgrind"):
        print("instructions: needs valgrind on an x86-64 machine", file=sys.stderr)
        return 2
    file: Path = options.file
    if not options.update and not file.exists():
        print(f"instructions: no {file.name} to compare with; --update writes it", file=sys.stderr)
        return 2
    counts = count()
    if counts is None:
        return 2
    if options.update:
        file.write_text(json.dumps({"with": versions(), "counts": counts}, indent=1) + "\n")
        print(f"{len(counts)} counts written to {file.name}")
        return 0
    return compare(json.loads(file.read_text()), counts, options.tolerance)


def versions() -> dict[str, str]:
    """What the counts depend on besides this library."""
    return {"python": platform.python_version(), "numpy": np.__version__, "level": LEVEL}


def compare(recorded: dict[str, Any], counts: dict[str, int], tolerance: float) -> int:
    """Print every count and the recorded one; 1 if one differs."""
    off = False
    print(f"{'call':<40}{'recorded':>14}{'now':>14}{'change':>9}")
    for name in sorted({*recorded["counts"], *counts}):
        before, now = recorded["counts"].get(name), counts.get(name)
        if before is None or now is None:
            off = True
            print(f"{name:<40}{before or '-':>14}{now or '-':>14}  not in both: --update")
            continue
        change = now / before - 1
        bad = abs(change) > tolerance
        off |= bad
        print(f"{name:<40}{before:>14,}{now:>14,}{change:>+9.1%}{'  OFF' if bad else ''}")
    if recorded["with"] != versions():
        print(f"recorded with {recorded['with']}, counted with {versions()}")
    return int(off)


def count() -> dict[str, int] | None:
    """Instructions for one call, by name; None when the worker failed."""
    environment = {
        **os.environ,
        "ANYDML_INSTRUCTION_SET": LEVEL,
        "ANYDML_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"),
            f"--callgrind-out-file={folder}/out",
            *(sys.executable, "-m", "benchmarks.instructions", "--worker"),
        ]
        done = subprocess.run(command, env=environment, cwd=FILE.parents[1], check=False)
        if done.returncode:
            return None
        counts: dict[str, int] = {}
        for dump in Path(folder).glob("out.*"):
            text = dump.read_text(errors="replace")
            trigger = re.search(r"^desc: Trigger: Client Request: (\S+) (\d+)$", text, re.MULTILINE)
            total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
            if trigger and total:
                counts[trigger[1]] = round(int(total[1]) / int(trigger[2]))
        return dict(sorted(counts.items()))


def work() -> None:
    """Under valgrind: do every call, and have its instructions dumped under its name."""
    requests = Requests()
    gc.disable()
    for case in cases():
        job = case.job()
        call = (ours.dispatch(job) if case.dispatch else ours.function(job)).call
        requests.count(case.name, call, FEW if job.traffic > LARGE else MANY)


def cases() -> Iterator[Case]:
    """The calls: small ones, and for every kernel sizes that take its large path."""
    yield from small()
    square = (512, 512)
    calls = (
        ("top_k/few-256k-k100", recipes.top_k, {"shape": (2**18,), "k": 100}),
        ("top_k/middle-64k-k8192", recipes.top_k, {"shape": (2**16,), "k": 8192}),
        ("top_k/sort-16k", recipes.top_k, {"shape": (2**14,), "k": 2**14}),
        ("top_k/rows-1024x128-k8", recipes.top_k, {"shape": (1024, 128), "k": 8}),
        ("top_k/axis0-4096x64-k10", recipes.top_k, {"shape": (4096, 64), "k": 10, "axis": 0}),
        (
            "top_k/float16-64x4096-k50",
            recipes.top_k,
            {"shape": (64, 4096), "k": 50, "dtype": "float16"},
        ),
        ("nonzero/512x512-1%", recipes.nonzero_coordinates, {"shape": square, "density": 0.01}),
        ("nonzero/512x512-50%", recipes.nonzero_coordinates, {"shape": square, "density": 0.5}),
        ("scatter/512x512-axis1", recipes.scatter_elements, {"shape": square, "axis": 1}),
        ("scatter/512x512-axis0", recipes.scatter_elements, {"shape": square}),
        ("scatter/256k", recipes.scatter_elements, {"shape": (2**18,)}),
        ("scatter/add-256k", recipes.scatter_elements, {"shape": (2**18,), "reduction": "add"}),
        (
            "scatter_nd/4096x64-rows",
            recipes.scatter_nd,
            {"shape": (4096, 64), "count": 4096, "coordinates": 1},
        ),
        (
            "scatter_nd/512x512-scalars",
            recipes.scatter_nd,
            {"shape": square, "count": 2**16, "coordinates": 2},
        ),
        ("split/512x512-axis1-4", recipes.split, {"shape": square, "sections": 4, "axis": 1}),
        (
            "split/int8-512x512-axis1-128",
            recipes.split,
            {"shape": square, "sections": 128, "axis": 1, "dtype": "int8"},
        ),
        ("join/4-of-512x128-axis1", recipes.join, {"shapes": ((512, 128),) * 4, "axis": 1}),
        ("gather/4096x64-rows", recipes.gather, {"shape": (4096, 64), "count": 4096}),
        ("gather_elements/512x512-axis1", recipes.gather_elements, {"shape": square, "axis": 1}),
        ("gather_elements/512x512-axis0", recipes.gather_elements, {"shape": square}),
        (
            "gather_nd/512x512-scalars",
            recipes.gather_nd,
            {"shape": square, "count": 2**16, "coordinates": 2},
        ),
    )
    for name, recipe, parameters in calls:
        yield Case(name, name, recipe, parameters)


class Requests:
    """Callgrind's client requests, by the instruction sequence that ``valgrind.h`` documents.

    Without valgrind the sequence does nothing.
    """

    # mov rax, rdi; xor edx, edx; rol rdi by 3, 13, 61, 51; xchg rbx, rbx; mov rax, rdx; ret
    CODE = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
    BASE = (ord("C") << 24) + (ord("T") << 16)

    def __init__(self) -> None:
        self._page = mmap.mmap(
            -1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        )
        self._page.write(self.CODE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._call = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(address)

    def count(self, name: str, call: Callable[[], object], times: int) -> None:
        """Dump the instructions of this many calls under a name."""
        text = ctypes.create_string_buffer(f"{name} {times}".encode())
        start, zero, stop = map(self._block, (4, 1, 5))
        dump = self._block(3, ctypes.addressof(text))
        for _ in repeat(None, FEW):
            call()
        # Everything that the requests need exists already: between them there is only the loop.
        request, calls = self._call, repeat(None, times)
        request(start)
        call()
        request(zero)
        for _ in calls:
            call()
        request(dump)
        request(stop)

    def _block(self, request: int, argument: int = 0) -> ctypes.Array[ctypes.c_size_t]:
        return (ctypes.c_size_t * 6)(self.BASE + request, argument)


if __name__ == "__main__":
    sys.exit(main())
