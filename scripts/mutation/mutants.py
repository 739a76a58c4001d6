"""What a mutant is, which files are mutated, and which places are left out and why."""

from __future__ import annotations

import difflib
import hashlib
import random
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation import cpp_rules, python_rules
from mutation.edit import Edit

HERE = Path(__file__).parent
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
    "src/anydml/backends/*.py",
    "src/anydml/models/*.py",
    "src/anydml/arrays/*.py",
    "src/anydml/bridges/*.py",
    "src/anydml/bridges/*/*.py",
    "src/anydml/binding.py",
    "src/anydml/lifecycle.py",
    "src/anydml/program.py",
    "src/anydml/tensor.py",
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


@dataclass(frozen=True)
class Exclusion:
    """Code in which a change alters no result, no memory access and no error."""

    file: str
    reason: str
    line: re.Pattern[str] | None  # lines that match
    block: re.Pattern[str] | None  # from a line that matches to the end of its block
    rule: str | None
    mutant: re.Pattern[str] | None  # only mutants whose line matches this

    def spans(self, text: str, blank: str) -> Iterator[tuple[int, int]]:
        """Where it holds in a file; `blank` is the text without comments and strings."""
        if self.line is None and self.block is None:
            yield 0, len(text)
        for pattern in (self.line, self.block):
            for match in pattern.finditer(text) if pattern else ():
                begin = text.rfind("\n", 0, match.start()) + 1
                end = text.find("\n", match.end())
                if pattern is self.block:
                    end = _block_end(text, blank, begin, match.end())
                yield begin, len(text) if end < 0 else end


def _block_end(text: str, blank: str, begin: int, after: int) -> int:
    """The end of the block that is opened behind `after`: by braces, or by indentation."""
    brace = blank.find("{", after - 1)
    if blank is text:  # Python
        indent = len(re.match(r" *", text[begin:])[0])  # type: ignore[index]  # always matches
        for match in re.finditer(r"^( *)[^\s)]", text[text.find("\n", after) + 1 :], re.MULTILINE):
            if len(match[1]) <= indent:
                return text.find("\n", after) + match.start()
        return len(text)
    depth = 0
    for at in range(brace, len(blank)):
        depth += {"{": 1, "}": -1}.get(blank[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def exclusions(path: Path = HERE / "equivalent.toml") -> list[Exclusion]:
    """What the data file says."""
    found = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("exclude", []):
        unknown = set(entry) - {"file", "reason", "line", "block", "rule", "mutant"}
        if unknown or not entry["reason"].strip():
            raise ValueError(f"{path}: {entry}: a reason, and no {sorted(unknown)}")
        line, block, mutant = (
            re.compile(entry[name], re.MULTILINE) if name in entry else None
            for name in ("line", "block", "mutant")
        )
        rule = entry.get("rule")
        found.append(Exclusion(entry["file"], entry["reason"], line, block, rule, mutant))
    return found


def mutants_of(name: str, text: str, excluded: Iterable[Exclusion] = ()) -> list[Mutant]:
    """All mutants of a file, in order."""
    rules = python_rules if name.endswith(".py") else cpp_rules
    blank = text if name.endswith(".py") else cpp_rules.blanked(text)
    left_out = [
        (entry, span)
        for entry in excluded
        if entry.file == name
        for span in entry.spans(text, blank)
    ]
    source_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    on_a_gpu = list(_gpu_spans(name, text, blank))
    found, seen = [], dict[str, int]()
    for edit in sorted(set(rules.edits(text)), key=lambda edit: (edit.start, edit.end, edit.new)):
        begin = text.rfind("\n", 0, edit.start) + 1
        mutated = text[begin : edit.start] + edit.new + text[edit.end : text.find("\n", edit.end)]
        if any(
            first <= edit.start < last
            and entry.rule in (None, edit.rule)
            and (entry.mutant is None or entry.mutant.search(mutated))
            for entry, (first, last) in left_out
        ):
            continue
        end = text.find("\n", edit.start)
        label = f"{name}|{edit.rule}|{text[begin:end].strip()}|{edit.start - begin}|{edit.new}"
        seen[label] = seen.get(label, 0) + 1
        key = hashlib.sha256(f"{label}|{seen[label]}".encode()).hexdigest()[:12]
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
    excluded = exclusions()
    files = sorted({path for pattern in SOURCES for path in root.glob(pattern)})
    names = [path.relative_to(root).as_posix() for path in files]
    unknown = {entry.file for entry in excluded} - set(names)
    if unknown:
        raise ValueError(f"equivalent.toml names files that are not there: {sorted(unknown)}")
    return [
        mutant
        for path, name in zip(files, names, strict=True)
        for mutant in mutants_of(name, path.read_text(encoding="utf-8"), excluded)
        if mutant.gpu == gpu
    ]


def in_random_order(mutants: list[Mutant], seed: int) -> list[Mutant]:
    """The order in which a run takes them: each file's share by its number of mutants."""
    order = sorted(mutants, key=lambda mutant: mutant.key)
    random.Random(seed).shuffle(order)
    return order
