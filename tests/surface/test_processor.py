"""Which instruction-set levels a processor runs: every feature that a level's code may use."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from anydml import _processor

if not hasattr(_processor, "levels_with"):
    pytest.skip("levels exist on x86-64 only", allow_module_level=True)

# The registers, and by level: the macro with which a compiler says that its code may use a feature
# (none: the system's part of one), the register and the bit.
REGISTERS = ("leaf 1 ecx", "leaf 7 ebx", "leaf 0x80000001 ecx", "XCR0")
FEATURES = {
    "v2": [
        ("__SSE3__", 0, 0), ("__SSSE3__", 0, 9), ("__SSE4_1__", 0, 19), ("__SSE4_2__", 0, 20),
        ("__CRC32__", 0, 20), ("__POPCNT__", 0, 23), ("__LAHF_SAHF__", 2, 0),
        ("__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16", 0, 13),
    ],
    "v3": [
        ("__AVX__", 0, 28), ("__AVX2__", 1, 5), ("__BMI__", 1, 3), ("__BMI2__", 1, 8),
        ("__F16C__", 0, 29), ("__FMA__", 0, 12), ("__LZCNT__", 2, 5), ("__MOVBE__", 0, 22),
        ("__XSAVE__", 0, 26), (None, 0, 27), (None, 3, 1), (None, 3, 2),
    ],
    "v4": [
        ("__AVX512F__", 1, 16), ("__AVX512BW__", 1, 30), ("__AVX512CD__", 1, 28),
        ("__AVX512DQ__", 1, 17), ("__AVX512VL__", 1, 31), (None, 3, 5), (None, 3, 6), (None, 3, 7),
    ],
}  # fmt: skip
LEVELS = list(FEATURES)

# Follow from the features, or say nothing about instructions. __EVEX256__ and __EVEX512__ are
# parts of AVX-512.
DERIVED = re.compile(
    r"__FP_FAST_\w+|__BIGGEST_ALIGNMENT__|__EVEX\d+__|__SSE\d?_MATH__|__k8__?|__tune_\w+|"
    r"__GCC_ASM_FLAG_OUTPUTS__"
)


def having(*levels):
    registers = [0] * len(REGISTERS)
    for level in levels:
        for _, register, bit in FEATURES[level]:
            registers[register] |= 1 << bit
    return registers


def test_a_level_needs_all_of_its_features_and_those_before_it():
    assert _processor.levels_with(0, 0, 0, 0) == ()
    for count in range(1, len(LEVELS) + 1):
        assert _processor.levels_with(*having(*LEVELS[:count])) == tuple(LEVELS[:count][::-1])
    assert _processor.levels_with(*having("v3", "v4")) == ()
    assert _processor.levels_with(*[2**32 - 1] * 4) == tuple(LEVELS[::-1])


@pytest.mark.parametrize(
    ("level", "register", "bit"),
    [(level, register, bit) for level in LEVELS for _, register, bit in FEATURES[level]],
)
def test_without_one_feature_the_level_before_it_runs(level, register, bit):
    registers = [2**32 - 1] * 4
    registers[register] &= ~(1 << bit)
    assert _processor.levels_with(*registers) == tuple(LEVELS[: LEVELS.index(level)][::-1])


def test_this_processor():
    registers = _processor.registers()
    assert _processor.levels() == _processor.levels_with(*registers)
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return
    flags = re.search(r"^flags\s*:(.*)$", path.read_text(), re.M)[1].split()
    for name, register, bit in (
        ("movbe", 0, 22), ("f16c", 0, 29), ("abm", 2, 5), ("bmi1", 1, 3), ("avx512vl", 1, 31),
    ):  # fmt: skip
        assert (registers[register] >> bit & 1) == (name in flags), name


def macros(compiler, march):
    done = subprocess.run(
        [compiler, f"-march={march}", "-dM", "-E", "-x", "c", "/dev/null"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"{compiler} does not know {march}")
    return {line.split()[1] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("level", LEVELS)
def test_what_the_compiler_uses_is_asked_for(level, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    before = LEVELS[LEVELS.index(level) - 1] if level != "v2" else None
    added = macros(compiler, f"x86-64-{level}") - macros(
        compiler, f"x86-64-{before}" if before else "x86-64"
    )
    used = {name for name in added if not DERIVED.fullmatch(name)}
    assert used <= {name for name, *_ in FEATURES[level]}
    if compiler == "gcc" and level != "v2":  # each entry has its reason
        assert used == {name for name, *_ in FEATURES[level] if name}
