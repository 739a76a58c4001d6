"""Look into compiled code for mask registers that are spilled narrower than they are read back.

    python scripts/check_mask_spills.py             the installed package's extension modules
    python scripts/check_mask_spills.py FILE...     object files, libraries, listings (.dis)

GCC 12 stores a spilled AVX-512 mask with the width of the mask, and may read the slot back as the
wider number that the program made of it: the upper bytes are whatever was there. From every store
of a mask register the code is followed, over all its branches, to what reads the slot next; a read
of bytes that were never stored is reported with its address. See native/cpu/runtime/mask.hpp.

Exit status 0, 1 when such a place was found, 2 when nothing could be disassembled.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

WIDTHS = {"b": 1, "w": 2, "d": 4, "l": 4, "q": 8}
LONGEST = 8  # bytes of a number that a mask is made into
MOST_STEPS = 20000
PREFIXES = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16",
            "cs", "ds", "es", "fs", "gs"}  # fmt: skip
NO_WRITE = ("cmp", "test", "bt", "push", "call", "jmp", "prefetch", "vptest", "kortest", "ktest")
ENDS = {"ret", "retq", "ud2", "hlt", "leave"}
LINE = re.compile(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )*\s*(\S+)\s*(.*)$")
MEMORY = re.compile(r"^\*?(-?0x[0-9a-f]+|-?\d+)?\((%\w+)(,%\w+)?(?:,\d)?\)")
SYMBOL = re.compile(r"^[0-9a-f]+ <(.*)>:$")
EIGHT = {"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp"}
LOST_BY_CALLS = {"%rax", "%rcx", "%rdx", "%rsi", "%rdi", "%r8", "%r9", "%r10", "%r11"}


class Slot(NamedTuple):
    """Where a memory operand points to: a register and what is added to it."""

    base: str
    at: int


class Instruction(NamedTuple):
    """One line of a listing."""

    address: int
    name: str
    operands: tuple[str, ...]
    text: str


class Fault(NamedTuple):
    """A mask that is stored narrower than it is read back."""

    where: str
    store: str
    load: str


def operands_of(text: str) -> tuple[str, ...]:
    """The operands of an instruction: separated by commas outside parentheses."""
    text = re.sub(r"\s*[#<].*$", "", text).strip()
    return tuple(part.strip() for part in re.split(r",(?![^(]*\))", text)) if text else ()


def units(lines: Iterable[str]) -> Iterator[tuple[str, list[Instruction]]]:
    """The instructions of a listing by its sections, each with the first symbol's name."""
    name, code = "", []
    for line in lines:
        if line.startswith("Disassembly of section"):
            if code:
                yield name, code
            name, code = "", []
        elif symbol := SYMBOL.match(line):
            name = name or symbol[1]
        elif found := LINE.match(line):
            address, mnemonic, rest = found.groups()
            while mnemonic in PREFIXES and rest:
                mnemonic, _, rest = rest.partition(" ")
                rest = rest.strip()
            text = re.sub(r"\s+", " ", f"{mnemonic} {rest}").strip()
            code.append(Instruction(int(address, 16), mnemonic, operands_of(rest), text))
    if code:
        yield name, code


def slot_of(operand: str) -> Slot | None:
    """The slot of a memory operand without an index: no spill has one."""
    found = MEMORY.match(operand)
    if found is None or found[3]:
        return None
    return Slot(found[2], int(found[1] or "0", 0))


def register_width(register: str) -> int:
    """Bytes of a register; 0 for anything else."""
    name = re.sub(r"\{.*", "", register).removeprefix("%")
    for prefix, width in (("xmm", 16), ("ymm", 32), ("zmm", 64)):
        if name.startswith(prefix):
            return width
    if name in EIGHT or re.fullmatch(r"r\d+", name):
        return 8
    if re.fullmatch(r"e\w\w|r\d+d", name):
        return 4
    if re.fullmatch(r"[abcd]x|[sd]i|[bs]p|r\d+w", name):
        return 2
    return 1 if re.fullmatch(r"[abcd][lh]|[sd]il|[bs]pl|r\d+b", name) else 0


def memory_width(instruction: Instruction) -> int:
    """Bytes of memory that an instruction reads or writes."""
    name, operands = instruction.name, instruction.operands
    if found := re.fullmatch(r"kmov([bwdq])", name):
        return WIDTHS[found[1]]
    if found := re.fullmatch(r"mov[sz]([bw])[wlq]|movs(l)q|movsx(d)", name):
        return WIDTHS[found[1] or found[2] or found[3]]
    if found := re.fullmatch(r"v?p?(?:broadcast|insr|extr)([bwdq])|v?mov([dq])", name):
        vector = any("mm" in operand for operand in operands)
        if vector:
            return WIDTHS[found[1] or found[2]]
    if found := re.fullmatch(r"v?(?:mov|broadcast)s([sd])", name):
        return 4 if found[1] == "s" else 8
    if any("{1to" in operand for operand in operands):
        return 8 if name.endswith(("q", "pd")) else 4
    if re.fullmatch(r"(?:sh[lr]|sa[lr]|ro[lr])[bwlq]", name):
        return WIDTHS[name[-1]]
    widest = max((register_width(operand) for operand in operands), default=0)
    if widest:
        return widest
    return WIDTHS.get(name[-1], 8)


def accesses(instruction: Instruction) -> tuple[Slot | None, bool, bool]:
    """The slot that an instruction uses, and whether it reads and writes it."""
    name, operands = instruction.name, instruction.operands
    slots = [slot_of(operand) for operand in operands]
    slot = next((slot for slot in slots if slot is not None), None)
    if slot is None or name.startswith(("lea", "nop", "prefetch", "clflush")):
        return None, False, False
    last = slots[-1] is not None
    if not last or name.startswith(NO_WRITE):
        return slot, True, False
    moves = name.startswith(("mov", "kmov", "vmov", "set", "pop", "vextract", "vpextr", "pextr"))
    return slot, not moves, "{%k" not in operands[-1]


def moved(instruction: Instruction, base: str) -> int | None:
    """What is to be added to a slot's place behind the instruction; None when its base is lost."""
    name, operands = instruction.name, instruction.operands
    if base == "%rsp":
        if name.startswith("push"):
            return 8
        if name.startswith("pop"):
            return -8
    if name.startswith("call"):
        return None if base in LOST_BY_CALLS else 0
    if not operands or not operands[-1].startswith("%") or name.startswith(NO_WRITE):
        return 0
    if operands[-1].removeprefix("%").lstrip("re") != base.removeprefix("%").lstrip("re"):
        return 0
    if base == "%rsp" and name in ("add", "sub") and operands[0].startswith("$"):
        by = int(operands[0][1:], 0)
        by -= (by >> 63) << 64  # as objdump prints negative ones
        return -by if name == "add" else by
    return None


def follow(code: list[Instruction], places: dict[int, int], start: int) -> Instruction | None:
    """The instruction that reads bytes that the mask's store at `start` did not write."""
    store = code[start]
    slot = slot_of(store.operands[1])
    assert slot is not None
    width = WIDTHS[store.name[-1]]
    stale = ((1 << LONGEST) - 1) ^ ((1 << width) - 1)
    visited: dict[tuple[int, int], int] = {}
    waiting = [(start + 1, slot.at, stale)]
    while waiting and len(visited) < MOST_STEPS:
        index, at, stale = waiting.pop()
        while index < len(code):
            before = visited.get((index, at), 0)
            if stale | before == before:
                break
            visited[index, at] = stale = stale | before
            instruction = code[index]
            used, reads, writes = accesses(instruction)
            if used is not None and used.base == slot.base and -64 < used.at - at < LONGEST:
                bits = (1 << memory_width(instruction)) - 1
                offset = used.at - at
                touched = bits << offset if offset >= 0 else bits >> -offset
                if reads and touched & 1 and touched & stale:
                    return instruction
                if writes:
                    if touched & 1:
                        break
                    stale &= ~touched
                    if not stale:
                        break
            name = instruction.name
            if name in ENDS:
                break
            by = moved(instruction, slot.base)
            if by is None:
                break
            at += by
            if name.startswith("j"):
                target = places.get(target_of(instruction))
                if name.startswith("jmp"):
                    if target is None:
                        break
                    index = target
                    continue
                if target is not None:
                    waiting.append((target, at, stale))
            index += 1
    return None


def target_of(instruction: Instruction) -> int:
    """Where a jump goes to; -1 when that is not in the code."""
    operand = instruction.operands[0] if instruction.operands else ""
    return int(operand, 16) if re.fullmatch(r"[0-9a-f]+", operand) else -1


def faults(lines: Iterable[str]) -> tuple[list[Fault], int]:
    """What is wrong in a listing, and how many stores of masks were followed."""
    found, followed = [], 0
    for name, code in units(lines):
        places = {instruction.address: i for i, instruction in enumerate(code)}
        for i, instruction in enumerate(code):
            if not re.fullmatch(r"kmov[bwd]", instruction.name):
                continue
            if slot_of(instruction.operands[1]) is None:
                continue
            followed += 1
            load = follow(code, places, i)
            if load is not None:
                found.append(
                    Fault(
                        name,
                        f"{instruction.address:x}: {instruction.text}",
                        f"{load.address:x}: {load.text}",
                    )
                )
    return found, followed


def listing(file: Path) -> list[str]:
    """The disassembly of a file, or the file itself when it is one."""
    if file.suffix == ".dis":
        return file.read_text().splitlines()
    command = ["objdump", "--disassemble", "--no-show-raw-insn", str(file)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def modules() -> list[Path]:
    """The kernels of the package that is installed."""
    from anydml._native import built_levels, kernels_path

    return [Path(kernels_path(level)) for level in built_levels()]


def main(arguments: list[str]) -> int:
    """Check all files; print what is wrong."""
    files = [Path(argument) for argument in arguments] or modules()
    if not files or not shutil.which("objdump"):
        print("check_mask_spills: needs objdump and a compiled module", file=sys.stderr)
        return 2
    bad = 0
    for file in files:
        found, followed = faults(listing(file))
        bad += len(found)
        print(f"{file.name}: {followed} stores of masks, {len(found)} read back too wide")
        for fault in found:
            print(f"  {fault.where}\n    {fault.store}\n    {fault.load}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
