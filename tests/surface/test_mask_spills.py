"""The check of compiled code for masks that are spilled narrower than they are read back."""

import platform
import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_mask_spills.py"
HEAD = "Disassembly of section .text:\n\n0000000000001000 <kernel>:\n"
X86_64 = platform.machine() in ("x86_64", "AMD64")


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("check_mask_spills", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listing(*instructions):
    """As objdump prints it; addresses 1000, 1010, 1020, ..."""
    lines = [f"    {0x1000 + 16 * i:x}:\t{text}" for i, text in enumerate(instructions)]
    return (HEAD + "\n".join(lines) + "\n").splitlines()


# From what GCC 12 made of filter() for v4 with -O1 and sanitizers.
FOUND = [
    "vpcmpnltd -0xc80(%rbx),%zmm0,%k0",
    "kmovw  %k0,0xc0(%rsp)",
    "imul   $0x10,0x180(%rsp),%r12d",
    "jo     1070 <kernel+0x70>",
    "cmp    $0x3f,%eax",
    "ja     1070 <kernel+0x70>",
    "shlx   %r12,0xc0(%rsp),%r12",
    "ret",
]
BAD = {
    "as found": FOUND,
    "8 bits": ["kmovb  %k3,0x78(%rsp)", "mov    0x78(%rsp),%rax"],
    "32 bits, to a mask": ["kmovd  %k1,-0x20(%rbp)", "call   2000 <f>", "kmovq  -0x20(%rbp),%k2"],
    "16 bits as 32": ["kmovw  %k1,(%rsp)", "or     (%rsp),%eax"],
    "on one branch": [
        "kmovw  %k1,0x8(%rsp)",
        "je     1030 <kernel+0x30>",
        "movq   $0x0,0x8(%rsp)",
        "popcnt 0x8(%rsp),%rax",
    ],
    "backwards": [
        "jmp    1020 <kernel+0x20>",
        "add    0x10(%rsp),%rdx",
        "kmovw  %k1,0x10(%rsp)",
        "jne    1010 <kernel+0x10>",
    ],
    "only a part is stored": [
        "kmovb  %k1,0x8(%rsp)",
        "mov    %al,0x9(%rsp)",
        "mov    0x8(%rsp),%rax",
    ],
    "an operation in place": ["kmovw  %k1,0x8(%rsp)", "orq    $0x1,0x8(%rsp)"],
}
GOOD = {
    "the whole is stored": ["kmovq  %k1,0xc0(%rsp)", "shlx   %r12,0xc0(%rsp),%r12"],
    "read as narrow": ["kmovw  %k1,0xc0(%rsp)", "movzwl 0xc0(%rsp),%eax", "ret"],
    "a mask again": ["kmovw  %k1,0xc0(%rsp)", "kmovw  0xc0(%rsp),%k2", "ret"],
    "another slot": ["kmovw  %k1,0xc0(%rsp)", "mov    0xc8(%rsp),%rax", "ret"],
    "below the slot": ["kmovw  %k1,0xc8(%rsp)", "mov    0xc0(%rsp),%rax", "ret"],
    "stored anew": ["kmovw  %k1,0xc0(%rsp)", "mov    %rbx,0xc0(%rsp)", "mov    0xc0(%rsp),%rax"],
    "not reached": ["kmovw  %k1,0xc0(%rsp)", "ret", "mov    0xc0(%rsp),%rax"],
    "another register by then": [
        "kmovb  %k0,(%rbp)",
        "lea    0x8(%rax),%rbp",
        "mov    (%rbp),%rax",
    ],
    "to a register": ["kmovw  %k1,%eax", "mov    %rax,0x8(%rsp)", "mov    0x8(%rsp),%rax"],
    "one element of a vector": ["kmovw  %k1,0x8(%rsp)", "vpbroadcastw 0x8(%rsp),%zmm0", "ret"],
}


@pytest.mark.parametrize("name", BAD)
def test_a_mask_that_is_read_back_too_wide_is_found(script, name):
    found, _ = script.faults(listing(*BAD[name]))
    ((store, _),) = found
    assert "kmov" in store.name
    assert store.where == "kernel"


@pytest.mark.parametrize("name", GOOD)
def test_what_is_right_passes(script, name):
    found, _ = script.faults(listing(*GOOD[name]))
    assert found == []


def test_the_place_is_told_and_the_status_says_it(script, tmp_path, capsys):
    file = tmp_path / "kernel.dis"
    file.write_text("\n".join(listing(*FOUND)))
    if not shutil.which("objdump"):
        pytest.skip("needs objdump")
    assert script.main([str(file)]) == 1
    output = capsys.readouterr().out
    assert "1010: kmovw %k0,0xc0(%rsp)" in output
    assert "1060: shlx %r12,0xc0(%rsp),%r12" in output
    file.write_text("\n".join(listing(*GOOD["read as narrow"])))
    assert script.main([str(file)]) == 0


@pytest.mark.slow
@pytest.mark.skipif(not X86_64 or not shutil.which("objdump"), reason="needs objdump, x86-64")
def test_the_modules_that_are_installed_are_right(script, capsys):
    assert script.main([]) == 0, capsys.readouterr().out
