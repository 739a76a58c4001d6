"""Mutants of C++, found in code as clang-format lays it out.

A binary operator stands between spaces, which tells `a < b` from `vector<int>`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from mutation.edit import Edit

_SKIPPED = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'"
    r"|^[ ]*\#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
# Judged by the compiler, or of no effect at run time.
_COMPILE_TIME = re.compile(
    r"^[^\n]*\b(?:(?:static_assert|requires|alignas|using|concept|template)\b"
    r"|constexpr [\w:]+ k[A-Z])[^\n]*",
    re.MULTILINE,
)
_OPERATORS = {
    "comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    "logic": {"&&": "||", "||": "&&"},
    "arithmetic": {"+": "-", "-": "+", "+=": "-=", "-=": "+="},
}
_OPERATOR = re.compile(r"(?<=[\w)\]}] )(<=|>=|==|!=|<|>|&&|\|\||\+=|-=|\+|-)(?= |\n)")
# Texts that are joined: no other operator takes them.
_TEXT_BEHIND = re.compile(r"\s*(?:\"|\(?' ' \+|std::(?:to_)?string\()")
_TEXT_BEFORE = re.compile(r"(?:\"|std::(?:to_)?string\([^()]*\))\s*$")
# Bounds and neighbours: what is compared, added, subtracted, returned, an index, a loop's start.
_NUMBER = re.compile(
    r"(?:(?:[<>=!]=|(?<![<>])[<>+\-]|\breturn) |\[|\bfor \([^;]*?= )(\d+)(?=[ ;,)\]}:])"
)
# A buffer may be larger than it needs to be, so only smaller ones are mutants. With all elements
# given it cannot be smaller.
_BUFFER = re.compile(
    r"^ *(?:alignas\(\d+\) )?[\w:<>]+ \w+(?:\[[^\]\n]*\])+(?: = \{\})?;", re.MULTILINE
)
_GIVEN = re.compile(r"^ *[\w:<>*& ]+\b\w+\[(\d+)\] = \{([^{}]*)\};", re.MULTILINE)
_MIN_MAX = re.compile(r"\bstd::(min|max)\b")
_DIFFERENCE = re.compile(r"(?<![\w.>\])] [*/%] )(?<![\w.>])([a-z]\w*) - ([a-z]\w*)\b(?![.(\[<]|->)")
_ARGUMENTS = re.compile(r"\b(\w+)\(((?:[^()]*?, )??)([a-z_]\w*), ([a-z_]\w*)(?=[,)])")
_COMMUTATIVE = {
    "min", "max", "swap", "if", "for", "while", "move",
    "__builtin_add_overflow", "__builtin_mul_overflow", "same_element",
}  # fmt: skip
# Vector operations with commutable operands; those that take a mask or an address and a vector.
_EITHER = re.compile(r"_mm\d*_(?:and|or|xor)_\w+")
_UNLIKE = re.compile(r"_mm\d*_(?:maskz?|store|stream)\w*")
# A declaration of a name, perhaps behind others: what stands in front, and an array's brackets.
_DECLARED = (
    r"(?<![\w:>.])(?!return|else|new|delete|throw|case|goto|typename|operator)"
    r"((?:const )?(?:unsigned |long )*[A-Za-z_][\w:]*(?:<[\w:, *]*>)?"
    r"(?:[*&]| (?:const|__restrict)\b)*) "
    r"(?:\w+(?: = [^,;(){}]*)?, )*\b%s\b(\[[^\]]*\])?(?= ?[,;=)({])"
)
_NUMBERS = re.compile(
    r"(?:unsigned |long )*(?:Int|int|long|unsigned|bool|char|float|double|std::size_t"
    r"|u?int(?:8|16|32|64|ptr)_t|__mmask\d+)"
)
# Our own classes and enumerations, by their names: other capitals are of numbers, or of any type.
_CLASS = re.compile(
    r"(?:\w+::)*(?!(?:Bits|Element|From|Handle|Index|Key|Number|RankKey|Signed|T|To|Type|Unsigned"
    r"|Value|Wide|Word)\b)[A-Z]\w*[a-z]\w*(?:<.*>)?"
)
# The greater or smaller of two, `a < b ? a : b`: with equal ones it is the same.
_CHOICE = re.compile(
    r"(?P<a>\w+(?:\.\w+)*(?:\[\w+\])?) (?P<op>[<>]=?) (?P<b>\w+(?:\.\w+)*(?:\[\w+\])?) \? "
    r"(?:(?P=a) : (?P=b)|(?P=b) : (?P=a))(?![\w.\[(])"
)
_GUARD = re.compile(r"\bif \(")
_LEAVES = re.compile(r"\s*\{?\s*(?:return|throw|break|continue|PyErr_|raise)\b")


def blanked(text: str) -> str:
    """The text with comments, strings and preprocessor lines as spaces, at the same places."""
    return _COMPILE_TIME.sub(_spaces, _SKIPPED.sub(_spaces, text))


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def edits(text: str) -> Iterator[Edit]:
    """All changes that the rules make."""
    code = blanked(text)
    declared = _SKIPPED.sub(_spaces, text)
    choices = {match.start("op") for match in _CHOICE.finditer(code)}
    for match in _OPERATOR.finditer(code):
        if match.start() in choices:
            continue
        if match[1] == "+" and (
            _TEXT_BEHIND.match(text, match.end())
            or _TEXT_BEFORE.search(text, max(0, match.start() - 60), match.start())
        ):
            continue
        for rule, table in _OPERATORS.items():
            if match[1] in table:
                yield Edit(match.start(1), match.end(1), table[match[1]], rule)
    buffers = [match.span() for match in _BUFFER.finditer(code)]
    full = {
        match.start(1)
        for match in _GIVEN.finditer(code)
        if match[2].count(",") + 1 == int(match[1])
    }
    for match in _NUMBER.finditer(code):
        if match.start(1) in full:
            continue
        number = int(match[1])
        size = any(begin <= match.start(1) < end for begin, end in buffers)
        for other in (number - 1,) if size else (number + 1, number - 1):
            if other >= 0:
                yield Edit(match.start(1), match.end(1), str(other), "off by one")
    for match in _MIN_MAX.finditer(code):
        other_name = "max" if match[1] == "min" else "min"
        yield Edit(match.start(1), match.end(1), other_name, "min and max")
    for match in _DIFFERENCE.finditer(code):
        if match[1] != match[2] and not _differ(declared, match, (1, 2)):
            swapped = f"{match[2]} - {match[1]}"
            yield Edit(match.start(1), match.end(2), swapped, "swapped operands")
    for match in _ARGUMENTS.finditer(code):
        if (
            match[1] not in _COMMUTATIVE
            and not _EITHER.fullmatch(match[1])
            and not (match[2] == "" and _UNLIKE.fullmatch(match[1]))
            and match[3] != match[4]
            and not _differ(declared, match, (3, 4))
        ):
            swapped = f"{match[4]}, {match[3]}"
            yield Edit(match.start(3), match.end(4), swapped, "swapped operands")
    for match in _GUARD.finditer(code):
        yield from _guard(text, code, match.end() - 1)


def _differ(code: str, call: re.Match[str], operands: tuple[int, int]) -> bool:
    """Whether two operands are numbers, addresses or of classes, and not the same of these.

    They cannot be swapped then: it would not compile.
    """
    a, b = (_kinds(code, call[n], call.start(n)) for n in operands)
    if a | b == {"source", "target"}:  # but for a difference, and a function that only reads
        if operands == (1, 2):
            return False
        reads = rf"\b{call[1]}\((?:[^()]*, )?const [\w:<>]+\* \w+, const [\w:<>]+\*"
        return len(a) == len(b) == 1 and re.search(reads, code) is None
    known = (a | b) - {"number", "source", "target"}
    return len(a) == len(b) == 1 and a != b and all(map(_CLASS.fullmatch, known))


def _kinds(code: str, name: str, at: int) -> frozenset[str]:
    """What a name is declared to be in the function or class around a place, a member anywhere."""
    around = code[max(0, code.rfind("\n}", 0, at)) : code.find("\n}", at) % (len(code) + 1)]
    member = name.endswith("_") or re.match(r"k[A-Z]", name) is not None
    return _declared(around, name) or (_declared(code, name) if member else frozenset())


@functools.cache
def _declared(code: str, name: str) -> frozenset[str]:
    found = set()
    for match in re.finditer(_DECLARED % re.escape(name), code):
        written = re.sub(r" ?&+$", "", match[1])
        plain = written.removeprefix("const ")
        if "*" in written or match[2]:
            found.add("target" if written == plain else "source")
        else:
            found.add("number" if _NUMBERS.fullmatch(plain) else plain)
    return frozenset(found)


def _guard(text: str, code: str, opening: int) -> Iterator[Edit]:
    """The check as a whole, and each part of its condition, dropped."""
    closing = _closing(code, opening)
    inner = opening + 1, closing
    declares = re.match(r"(?:const )?[\w:<>]+[*& ]+(?:const )?\w+ = ", code[slice(*inner)])
    if _LEAVES.match(code, closing + 1) and not declares:
        yield Edit(*inner, "false", "dropped check")
    for operator in ("&&", "||"):
        parts = _parts(code, *inner, operator)
        if len(parts) < 2 or ";" in code[slice(*inner)]:
            continue
        for dropped in range(len(parts)):
            rest = [text[slice(*part)] for n, part in enumerate(parts) if n != dropped]
            yield Edit(*inner, f" {operator} ".join(rest), "dropped condition")
        return


def _closing(code: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code)


def _parts(code: str, begin: int, end: int, operator: str) -> list[tuple[int, int]]:
    """The operands of `operator` in a condition that has no other logical operator outside."""
    parts, depth, start = [], 0, begin
    for at in range(begin, end):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
        pair = code[at : at + 2]
        if depth == 0 and pair in ("&&", "||"):
            if pair != operator:
                return []
            parts.append((start, at))
            start = at + 2
    parts.append((start, end))

    def trimmed(part: tuple[int, int]) -> tuple[int, int]:
        piece = code[slice(*part)]
        return (
            part[0] + len(piece) - len(piece.lstrip()),
            part[1] - len(piece) + len(piece.rstrip()),
        )

    return [trimmed(part) for part in parts]
