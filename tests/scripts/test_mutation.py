"""The rules of the mutation tool on small pieces of code, and its data files."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPTS = str(ROOT / "scripts")
sys.path.insert(0, SCRIPTS)
try:
    from mutation import cpp_rules, mutants, python_rules
    from mutation.edit import Edit
    from mutation.runner import concern_of, concerns
finally:
    sys.path.remove(SCRIPTS)


def results(rules, text, rule):
    return {
        text[: edit.start] + edit.new + text[edit.end :]
        for edit in rules.edits(text)
        if edit.rule == rule
    }


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("comparison", "x = a < b;", {"x = a <= b;"}),
        ("comparison", "x = f(a) != b;", {"x = f(a) == b;"}),
        ("comparison", "std::vector<int> a; // a < b", set()),
        ("comparison", 'f("a < b");', set()),
        ("comparison", "x = a[i] < b.c ? a[i] : b.c;", set()),
        ("comparison", "x = a < b ? b : a;", set()),
        ("comparison", "x = a < b ? a : c;", {"x = a <= b ? a : c;"}),
        ("comparison", "template <class T> void f();", set()),
        ("comparison", "static_assert(a < b);", set()),
        ("logic", "x = a && !b;", {"x = a || !b;"}),
        ("arithmetic", "x = a + b;", {"x = a - b;"}),
        ("arithmetic", "x = -b;", set()),
        ("arithmetic", 'x = a + ": " + std::to_string(b) + c;', set()),
        ("arithmetic", "x = std::string(a) +\n    b;", set()),
        ("off by one", "x = a + 1;", {"x = a + 2;", "x = a + 0;"}),
        ("off by one", "for (int i = 0; i < n; ++i) {", {"for (int i = 1; i < n; ++i) {"}),
        ("off by one", "constexpr Int kGrain = 1 + 7;", set()),
        ("off by one", "constexpr std::size_t kMost = 1 + 7;", set()),
        ("off by one", "x = 1 << 3;", set()),
        ("off by one", "x = y[1];", {"x = y[2];", "x = y[0];"}),
        ("off by one", "  char y[7];", {"  char y[6];"}),
        ("off by one", "  char y[7][8];", {"  char y[6][8];", "  char y[7][7];"}),
        ("off by one", "  Int y[2] = {-a, -b};", set()),
        ("off by one", "  Int y[2] = {-a};", {"  Int y[1] = {-a};", "  Int y[3] = {-a};"}),
        ("min and max", "x = std::min(a, b);", {"x = std::max(a, b);"}),
        ("swapped operands", "x = end - begin;", {"x = begin - end;"}),
        ("swapped operands", "x = a - static_cast<T>(b);", set()),
        ("swapped operands", "Int n; char* at; x = at - n;", set()),
        (
            "swapped operands",
            "char* a; const char* b; x = a - b;",
            {"char* a; const char* b; x = b - a;"},
        ),
        ("swapped operands", "f(from, to);", {"f(to, from);"}),
        ("swapped operands", "char* a; const char* b; f(a, b);", set()),
        ("swapped operands", "Int n, m; char c[9]; f(c, m);", set()),
        ("swapped operands", "const Output& out; Source<Order> row; f(out, row);", set()),
        ("swapped operands", "Scan how; Int n; f(n, how);", set()),
        ("swapped operands", "Key a; Int n; f(a, n);", {"Key a; Int n; f(n, a);"}),
        ("swapped operands", "f(a - static_cast<Int>(b), 2 * a - g<Int>(b));", set()),
        ("swapped operands", "Int n, m; n = c * k; f(k, m);", {"Int n, m; n = c * k; f(m, k);"}),
        (
            "swapped operands",
            "void f(Int a) {\n}\nchar* a; f(a, b);",
            {"void f(Int a) {\n}\nchar* a; f(b, a);"},
        ),
        ("swapped operands", "std::min(a, b);", set()),
        ("swapped operands", "_mm_and_si128(a, b);", set()),
        ("swapped operands", "_mm512_maskz_mov_epi8(a, b);", set()),
        ("swapped operands", "x = __builtin_add_overflow(a, b, &c);", set()),
        ("dropped check", "if (f(a) < 0) return 1;", {"if (false) return 1;"}),
        ("dropped check", "if (a) {\n  throw b;\n}", {"if (false) {\n  throw b;\n}"}),
        ("dropped check", "if (a) b();", set()),
        ("dropped check", "if (void* const a = f()) return a;", set()),
        ("dropped condition", "if (a && f(b)) c();", {"if (f(b)) c();", "if (a) c();"}),
        ("dropped condition", "if (a || b) return;", {"if (b) return;", "if (a) return;"}),
        ("dropped condition", "if (a && b || c) d();", set()),
    ],
)
def test_rules_for_cpp(rule, text, expected):
    assert results(cpp_rules, text, rule) == expected


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("comparison", "x = a < b", {"x = (a <= b)"}),
        ("comparison", "x = 0 <= a < b", {"x = (0 < a < b)", "x = (0 <= a <= b)"}),
        ("comparison", "x = a in b", {"x = (a not in b)"}),
        ("logic", "x = a and b", {"x = (a or b)"}),
        ("dropped condition", "x = a or b", {"x = a", "x = b"}),
        ("arithmetic", "x += 'é' + a", {"x -= 'é' + a", "x = 'é' + a", "x += ('é' - a)"}),
        ("swapped operands", "x = a + 'é'", {"x = ('é' + a)"}),
        ("swapped operands", "x = a[1:] + b", {"x = (b + a[1:])"}),
        ("swapped operands", "x = a + 1", set()),
        ("off by one", "x = y[0]", {"x = y[1]"}),
        ("swapped operands", "x = a - b", {"x = (b - a)"}),
        ("swapped operands", "f(a, b, 1)", {"f(b, a, 1)"}),
        ("swapped operands", "f(a, a, 1)", set()),
        ("off by one", "x = y[2]", {"x = y[3]", "x = y[1]"}),
        ("off by one", "x: Literal[2] = y", set()),
        ("off by one", "x = f'{y[2]}'", set()),
        ("off by one", "@overload\ndef f(x=2): ...", set()),
        ("min and max", "x = min(a, b)", {"x = max(a, b)"}),
        ("dropped check", "if a:\n    raise b", {"if False:\n    raise b"}),
        ("dropped check", "if a:\n    yield b", {"if False:\n    yield b"}),
        ("dropped check", "if a:\n    b()", set()),
        ("dropped check", "x = a if b else c", {"x = a if True else c", "x = a if False else c"}),
    ],
)
def test_rules_for_python(rule, text, expected):
    assert results(python_rules, text, rule) == expected


def test_addresses_that_are_only_read_may_be_swapped():
    head = "bool same(const char* a, const char* b);\nvoid f(char* to, const char* from) {\n"
    text = head + "  same(to, from);\n  move(to, from);\n  copy(to, from);\n}\n"
    expected = text.replace("same(to, from)", "same(from, to)")
    assert results(cpp_rules, text, "swapped operands") == {expected}


def test_every_mutant_has_a_key_of_its_own_and_changes_something():
    found = mutants.all_mutants(ROOT)
    assert len(found) >= 2000
    assert len({mutant.key for mutant in found}) == len(found)
    texts = {mutant.file: (ROOT / mutant.file).read_text(encoding="utf-8") for mutant in found}
    assert all(mutant.applied(texts[mutant.file]) != texts[mutant.file] for mutant in found[::50])
    for part in ("native/cpu/", "native/python/", "src/anydml/ops/", "src/anydml/models/"):
        assert any(name.startswith(part) for name in texts)
    others = mutants.all_mutants(ROOT, gpu=True)
    assert "native/cuda/kernels/top_k_long.cu" in {mutant.file for mutant in others}
    assert not {mutant.key for mutant in others} & {mutant.key for mutant in found}


def test_what_is_queued_on_a_gpu_is_judged_there():
    text = "Int run() {\n  return a + 1;\n}\nvoid f(cuda::Queue& queue) {\n  g(a + 1);\n}\n"
    found = mutants.mutants_of("native/python/kernels/f.cpp", text)
    assert {(mutant.line, mutant.gpu) for mutant in found} == {(2, False), (5, True)}
    assert all(mutant.gpu for mutant in mutants.mutants_of("native/cuda/f.cpp", text))
    text = (
        "bool operand_of_gpu(int a) {\n  return a == 1;\n}\nbool f(int a) {\n  return a == 2;\n}\n"
    )
    found = mutants.mutants_of("native/python/f.cpp", text)
    assert {(mutant.line, mutant.gpu) for mutant in found} == {(2, True), (5, False)}
    text = (
        "void run_on_device(int a) {\n  f(a + 1);\n}\n"
        "bool NewArray::make(const Results::One& one, Operand& operand) {\n  f(a + 1);\n}\n"
        "bool NewArray::make(const Results::One& one, int device) {\n  f(a + 1);\n}\n"
        "void* stream_of(int a) {\n  f(a + 1);\n}\nbool run_there(int a) {\n  f(a + 1);\n}\n"
    )
    found = mutants.mutants_of("native/python/f.cpp", text)
    assert {(mutant.line, mutant.gpu) for mutant in found} == {
        (2, True), (5, True), (8, False), (11, True), (14, False),
    }  # fmt: skip
    text = "def f(a):\n    if _on_gpu(a):\n        return a + 1\n    return a + 2\n"
    found = mutants.mutants_of("src/anydml/f.py", text)
    assert {(mutant.line, mutant.gpu) for mutant in found} == {(2, True), (3, True), (4, False)}
    text = (
        "def _run_there(\n    a: int\n) -> int:\n    return a + 1\n\ndef f(a):\n    return a + 2\n"
    )
    found = mutants.mutants_of("src/anydml/f.py", text)
    assert {(mutant.line, mutant.gpu) for mutant in found} == {(4, True), (7, False)}
    text = (
        "def f(a, b):\n    c = a + 1 if isinstance(a, DeviceArray) else b\n"
        "    if isinstance(b[0], DeviceArray):\n        return c + 1\n    return c + 2\n"
    )
    found = mutants.mutants_of("src/anydml/f.py", text)
    assert {(mutant.line, mutant.gpu) for mutant in found} == {
        (2, True), (3, True), (4, True), (5, False),
    }  # fmt: skip


def test_a_key_outlives_changes_elsewhere():
    text = "a = b < c\n"
    (before,) = mutants.mutants_of("x.py", text)
    (after,) = mutants.mutants_of("x.py", "import d\n\n" + text)
    assert before.key == after.key
    assert (before.line, after.line) == (1, 3)
    assert before.source_hash != after.source_hash


def test_order_is_of_the_seed():
    found = mutants.all_mutants(ROOT)
    first = mutants.in_random_order(found, 1)
    assert first == mutants.in_random_order(found[::-1], 1)
    assert first != mutants.in_random_order(found, 2)
    assert sorted(first, key=lambda mutant: mutant.key) == sorted(found, key=lambda m: m.key)


CODE = """void f() {
  // Speed only: choice.
  if (a < b) {
    c = d < e;
  }
  // Speed only: sharing.
  f([] {
    if (g < h) i();
  });
  for (Int i = 0; i < n; ++i) prefetch(j + k);
  l = m < n;
}
// Speed only: stores.
Int g() {
  return h < i;
}
"""


def test_what_is_for_speed_only_is_left_out():
    lines = CODE.splitlines()
    found = {lines[mutant.line - 1].strip() for mutant in mutants.mutants_of("f.cpp", CODE)}
    assert found == {"c = d < e;", "for (Int i = 0; i < n; ++i) prefetch(j + k);", "l = m < n;"}
    assert not any("k" in m.edit.new for m in mutants.mutants_of("f.cpp", CODE))


def test_a_mark_names_its_category():
    with pytest.raises(ValueError, match="expected one of prefetch, sharing"):
        mutants.mutants_of("f.cpp", CODE.replace("choice", "luck"))
    assert not any("Speed only" in line and not mutants._MARK.match(f"{line}\n")
                   for name in ROOT.glob("native/**/*.[ch]pp")
                   for line in name.read_text(encoding="utf-8").splitlines())  # fmt: skip


@pytest.mark.parametrize("gpu", [False, True])
def test_every_file_has_tests_that_are_there(gpu):
    found = concerns()
    every = {mutant.file: mutant for mutant in mutants.all_mutants(ROOT, gpu)}
    for mutant in every.values():
        concern = concern_of(mutant, found)
        assert concern.python
        for folder in concern.python:
            stems = [path.stem for path in (ROOT / folder).glob("test_*.py")]
            assert not all(map(concern.without.fullmatch, stems)), folder
        for test in concern.native:
            assert (ROOT / "native" / "tests" / f"{test}.cpp").exists(), test


def test_list():
    command = [sys.executable, str(ROOT / "scripts" / "mutate.py"), "--list", "--files", "top_k"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "native/cpu/top_k/top_k_row.hpp" in done.stdout
    assert "slabs" not in done.stdout


def test_an_edit_is_a_range_and_a_text():
    (edit,) = (edit for edit in cpp_rules.edits("x = a < b;"))
    assert edit == Edit(6, 7, "<=", "comparison")
