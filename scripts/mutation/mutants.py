"""What a mutant is, which files are mutated, and which places are left out."""

from __future__ import annotations

import difflib
import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation import cpp_rules, python_rules
from mutation.edit import Edit

SOURCES = (
    "native/common/*.hpp",
    "native/cpu/**/*.[ch]pp",
    "native/cuda/**/*.[ch]pp",
    "native/cuda/kernels/*.cu",
    "native/cuda/kernels/*.cuh",
    "native/python/**/*.[ch]pp",
    "native/python/*.c",
    "src/anydml/ops/*.py",
    "src/anydml/ops/_fields/*.py",
    "src/anydml/functions/*.py",
    "src/anydml/devices/backends/*.py",
    "src/anydml/models/*.py",
    "src/anydml/libraries/*.py",
    "src/anydml/bridges/*.py",
    "src/anydml/bridges/*/*.py",
    "src/anydml/devices/binding.py",
    "src/anydml/devices/operators.py",
    "src/anydml/core/program.py",
    "src/anydml/core/tensor.py",
)
ON_A_GPU = re.compile(
    r"native/cuda/.*|native/python/cuda\.cpp|src/anydml/(backends/cuda|arrays/(_cupy|_device))\.py"
)
"""Files that only tests on a GPU can judge."""
_GPU_BLOCKS = {
    "cpp": re.compile(
        r"^\w.*\bcuda::Queue& queue\) \{$"
        r"|^(?:\w[\w:]* (?:\w+_on_device|waits)|bool operand_of_gpu|void take_gpu|PyObject\* gpu"
        r"|void\* stream(?:_of)?|bool NewArray::make)\((?!const Results::One& one, int)",
        re.MULTILINE,
    ),
    "py": re.compile(
        r"^ *(?:def _(?:from_cuda|on_cuda|placed|run_there|fill_there|offer_gpu|wrap_cuda)\("
        r"|_CODES = |_MEAN, _MEAN_OF_UPDATES = |_CUDA = "
        r"|\w[^\n]* if isinstance\(\w+, DeviceArray\) else "
        r"|if (?:any\()?isinstance\([\w\[\]]+, DeviceArray\)[^:\n]*:"
        r"|if _on_gpu\(\w+\):|if getattr\(\w+\.device, .*\) == \"cuda\":)",
        re.MULTILINE,
    ),
}
"""Blocks of the other files that run on a GPU only."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    key: str  # the same as long as the line, its rule and its place among equal lines are
    file: str
    line: int
    edit: Edit
    source_hash: str
    gpu: bool = False  # only tests on a GPU can judge it

    def applied(self, text: str) -> str:
        """The file's text with the change."""
        return text[: self.edit.start] + self.edit.new + text[self.edit.end :]

    def diff(self, text: str) -> str:
        """The change as a unified diff without context."""
        lines = difflib.unified_diff(
            text.splitlines(),
            self.applied(text).splitlines(),
            self.file,
            self.file,
            lineterm="",
            n=0,
        )
        return "\n".join(lines)


CATEGORIES = ("prefetch", "sharing", "stores", "choice")
"""What alters no result, no memory access and no error, as `// Speed only: CATEGORY.` marks it.

What is asked for ahead of its use; how work is divided among threads, blocks and passes; whether
stores go past the cache; which of several algorithms is taken where each is right.
"""
_MARK = re.compile(r"^ *// Speed only: (\w+)\.\n", re.MULTILINE)
_PREFETCH = re.compile(r"\b\w*prefetch\w*\(")


def speed_only(text: str, blank: str) -> Iterator[tuple[int, int]]:
    """What the marks of a C++ file cover, and prefetches; `blank` is it without comments.

    A mark stands before a definition at the margin, and covers all of it, or before a statement, of
    which it covers what stands in front of a block.
    """
    for match in _MARK.finditer(text):
        if match[1] not in CATEGORIES:
            raise ValueError(f"{match[0].strip()}: expected one of {', '.join(CATEGORIES)}")
        ends = "}" if blank[match.end()] != " " else ";{"
        yield match.end(), _until(blank, match.end(), ends)
    for match in _PREFETCH.finditer(blank):
        yield match.start(), _until(blank, match.start(), ";{")


def _until(blank: str, at: int, ends: str) -> int:
    """Behind the first of some characters that no bracket holds, which opened behind `at`."""
    depth = 0
    for end in range(at, len(blank)):
        depth -= blank[end] in ")}"
        if depth <= 0 and blank[end] in ends:
            return end + 1
        depth += blank[end] in "({"
    return len(blank)


def _block_end(text: str, blank: str, begin: int, after: int) -> int:
    """The end of the block that is opened behind `after`: by braces, or by indentation."""
    if blank is not text:
        return _until(blank, blank.find("{", after - 1), "}")
    indent = len(re.match(r" *", text[begin:])[0])  # type: ignore[index]  # always matches
    for match in re.finditer(r"^( *)[^\s)]", text[text.find("\n", after) + 1 :], re.MULTILINE):
        if len(match[1]) <= indent:
            return text.find("\n", after) + match.start()
    return len(text)


def mutants_of(name: str, text: str) -> list[Mutant]:
    """All mutants of a file, in order."""
    rules = python_rules if name.endswith(".py") else cpp_rules
    blank = text if name.endswith(".py") else cpp_rules.blanked(text)
    left_out = list(speed_only(text, blank)) if blank is not text else []
    source_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    on_a_gpu = list(_gpu_spans(name, text, blank))
    found, counts = [], dict[str, int]()
    for edit in sorted(set(rules.edits(text)), key=lambda edit: (edit.start, edit.end, edit.new)):
        begin = text.rfind("\n", 0, edit.start) + 1
        if any(first <= edit.start < last for first, last in left_out):
            continue
        end = text.find("\n", edit.start)
        label = f"{name}|{edit.rule}|{text[begin:end].strip()}|{edit.start - begin}|{edit.new}"
        counts[label] = counts.get(label, 0) + 1
        key = hashlib.sha256(f"{label}|{counts[label]}".encode()).hexdigest()[:12]
        line = text.count("\n", 0, edit.start) + 1
        gpu = any(first <= edit.start < last for first, last in on_a_gpu)
        found.append(Mutant(key, name, line, edit, source_hash, gpu))
    return found


def _gpu_spans(name: str, text: str, blank: str) -> Iterator[tuple[int, int]]:
    if ON_A_GPU.fullmatch(name):
        yield 0, len(text)
    else:
        for match in _GPU_BLOCKS["py" if name.endswith(".py") else "cpp"].finditer(text):
            yield match.start(), _block_end(text, blank, match.start(), match.end())


def all_mutants(root: Path, gpu: bool = False) -> list[Mutant]:
    """The mutants that any machine judges, or those that a GPU does; without those left out."""
    files = sorted({path for pattern in SOURCES for path in root.glob(pattern)})
    return [
        mutant
        for path in files
        for mutant in mutants_of(path.relative_to(root).as_posix(), path.read_text("utf-8"))
        if mutant.gpu == gpu
    ]


def in_random_order(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """The order in which a run takes them: each file's share by its number of mutants."""
    order = sorted(mutants, key=lambda mutant: mutant.key)
    random.Random(seed).shuffle(order)
    return order
