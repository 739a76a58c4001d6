"""Look into compiled code for mask registers that are spilled narrower than they are read back.

    python scripts/check_mask_spills.py             the installed package's extension modules
    python scripts/check_mask_spills.py FILE...     object files, libraries, listings (.dis)

GCC 12 stores a spilled AVX-512 mask with the width of the mask, and may read the slot back as the
wider number that the program made of it: the upper bytes are whatever was there. From every store
of a mask on the stack the code is followed, over all its branches, until the slot is stored anew;
a wider read of it is reported with its address. See native/runtime/cpu/mask.hpp.

Exit status 0, 1 when such a place was found, 2 when nothing could be disassembled.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

WIDTHS = {"b": 1, "w": 2, "d": 4, "l": 4, "q": 8}
LINE = re.compile(r"\s*([0-9a-f]+):\t(?:repz |notrack |bnd )?(\S+) *([^#<]*)")
SLOT = re.compile(r"(?:-?0x[0-9a-f]+)?\((%r[sb]p)\)")
MASK_TO_SLOT = "%k.," + SLOT.pattern
STORE = re.compile(r"mov|kmov|vmov|set|pop|vp?extr")
NAMED_WIDTH = re.compile(r"kmov(.)|mov[sz](.)[wlq]|v?p?(?:broadcast|insr|extr)(.)|v?mov([dq])$")
REGISTERS = {"[xyz]mm": 16, r"%r(..|\d+)\b": 8, r"%(e..|r\d+d)\b": 4, r"%(.[xip]|r\d+w)\b": 2}
UNCHANGED = re.compile(r"cmp|test|push")


class Instruction(NamedTuple):
    """One line of a listing, and the symbol before it."""

    where: str
    address: int
    name: str
    operands: str

    def __str__(self) -> str:
        return f"{self.address:x}: {self.name} {self.operands}"

    @property
    def width(self) -> int:
        """Bytes of memory that the instruction reads or writes."""
        if found := NAMED_WIDTH.match(self.name):
            return WIDTHS[found[found.lastindex or 0]]
        others = SLOT.sub("", self.operands)
        widths = (width for name, width in REGISTERS.items() if re.search(name, others))
        return next(widths, WIDTHS.get(self.name[-1], 1))


def sections(lines: Iterable[str]) -> Iterator[list[Instruction]]:
    """The instructions of a listing, for each section: its addresses may begin anew."""
    where, code = "", list[Instruction]()
    for line in lines:
        if line.startswith("Disassembly of section"):
            yield code
            code = []
        elif found := re.match("[0-9a-f]+ <(.*)>:", line):
            where = found[1]
        elif found := LINE.match(line):
            code.append(Instruction(where, int(found[1], 16), found[2], found[3].strip()))
    yield code


def too_wide(code: list[Instruction], places: dict[int, int], start: int) -> Instruction | None:
    """The instruction that reads more of a slot than its store at `start` wrote."""
    slot = SLOT.search(code[start].operands)
    assert slot is not None
    waiting, visited = [start + 1], set[int]()
    while waiting:
        index = waiting.pop()
        if index in visited or index >= len(code):
            continue
        visited.add(index)
        instruction = code[index]
        name, operands = instruction.name, instruction.operands
        used = SLOT.search(operands)
        if used and used[0] == slot[0] and not name.startswith("lea"):
            if operands.endswith(slot[0]) and STORE.match(name):
                continue
            if instruction.width > code[start].width:
                return instruction
        if name.startswith("j") and re.fullmatch("[0-9a-f]+", operands):
            waiting += [places[at] for at in [int(operands, 16)] if at in places]
        moves = operands.endswith(slot[1]) and not UNCHANGED.match(name)
        if not moves and not name.startswith(("jmp", "ret", "ud2", "leave")):
            waiting.append(index + 1)
    return None


def faults(lines: Iterable[str]) -> tuple[list[tuple[Instruction, Instruction]], int]:
    """Stores and reads that do not fit, and how many stores of masks were followed."""
    found, followed = [], 0
    for code in sections(lines):
        places = {instruction.address: i for i, instruction in enumerate(code)}
        for i, store in enumerate(code):
            if re.fullmatch("kmov[bwd]", store.name) and re.match(MASK_TO_SLOT, store.operands):
                followed += 1
                if read := too_wide(code, places, i):
                    found.append((store, read))
    return found, followed


def listing(file: Path) -> list[str]:
    """The disassembly of a file, or the file itself when it is one."""
    if file.suffix == ".dis":
        return file.read_text().splitlines()
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main(arguments: list[str]) -> int:
    """Check all files; print what is wrong."""
    from anydml._native import built_levels, kernels_path

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    files = parser.parse_args(arguments).files or [
        Path(kernels_path(level)) for level in built_levels()
    ]
    if not files or not shutil.which("objdump"):
        print("check_mask_spills: needs objdump and a compiled module", file=sys.stderr)
        return 2
    bad = 0
    for file in files:
        found, followed = faults(listing(file))
        bad += len(found)
        print(f"{file.name}: {followed} stores of masks, {len(found)} read back too wide")
        for store, read in found:
            print(f"  {store.where}\n    {store}\n    {read}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
