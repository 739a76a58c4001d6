"""The output of `anydml ops` and `anydml devices`, as tables and as data for JSON."""

from __future__ import annotations

import inspect
import platform
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from anydml.devices.backends import backends_here, why_no_gpu
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import EnumerationKind, FieldInfo
from anydml.ops._pages import PAGES, Page, Support
from anydml.ops._registry import OPERATORS

_GAP: Final = "  "
_NARROWEST: Final = 12


def table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]],
          width: int | None) -> Iterator[str]:  # fmt: skip
    """The lines of a table.

    Parameters
    ----------
    title : str
        The first line.
    heading, rows
        Cells as text.
    width : int or None
        Cells are wrapped, between words, so that lines are no longer than this where that can be.
        No column is left out, however narrow a terminal is.
    """
    columns = [*zip(heading, *rows, strict=True)]
    widths = _widths(columns, width)
    yield title
    yield ""
    for row in (heading, ["-" * size for size in widths], *rows):
        cells = [
            textwrap.wrap(cell, size, break_long_words=False, break_on_hyphens=False) or [""]
            for cell, size in zip(row, widths, strict=True)
        ]
        for i in range(max(map(len, cells))):
            pieces = (cell[i] if i < len(cell) else "" for cell in cells)
            line = _GAP.join(f"{text:{size}}" for text, size in zip(pieces, widths, strict=True))
            yield f"{_GAP}{line}".rstrip()


def _widths(columns: Sequence[Sequence[str]], width: int | None) -> list[int]:
    widths = [max(map(len, column)) for column in columns]
    if width is None:
        return widths
    minimum = [
        max(min(_NARROWEST, maximum), *(len(word) for cell in column for word in cell.split()))
        for column, maximum in zip(columns, widths, strict=True)
    ]
    for _ in range(sum(widths) + len(_GAP) * len(widths) - width):
        wide = [i for i, size in enumerate(widths) if size > minimum[i]]
        if wide:
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def operators(width: int | None) -> Iterator[str]:
    """Every operator in a line."""
    rows = []
    for name, operator in OPERATORS.items():
        latest = next(iter(operator.SUPPORT[-1].tensors.values()))
        types = " ".join(map(str, latest.data_types))
        rows.append([name, str(operator.SUPPORT[0].level), latest.ranks_text, types])
    heading = ["name", "from level", "ranks", "data types of the first tensor"]
    yield from table("Operators", heading, rows, width)


def fields(operator: type[Descriptor], width: int | None) -> Iterator[str]:
    """The fields of an operator, with what each means."""
    full_texts = _in_full(operator)
    rows = [[info.name, info.choices, full_texts[info.attribute]] for info in operator.fields()]
    yield from table("Fields", ["name", "kind", "meaning"], rows, width)


def support(operator: type[Descriptor], width: int | None) -> Iterator[str]:
    """The support table of an operator."""
    rows = []
    for row in operator.SUPPORT:
        level, condition = str(row.level), condition_of(row)
        for name, accepted in row.tensors.items():
            types = " ".join(map(str, accepted.data_types))
            rows.append([condition, level, name, accepted.ranks_text, types])
            level = condition = ""
    heading = ["where", "level", "tensor", "ranks", "data types"]
    begin = 0 if any(row.when for row in operator.SUPPORT) else 1
    rows = [row[begin:] for row in rows]
    yield from table("Support, from feature level", heading[begin:], rows, width)


def condition_of(row: Support) -> str:
    """The condition of a row of a support table: values of fields; empty if there is none."""
    fields = row.when or {}
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in fields.items())


def meaning_of(operator: type[Descriptor]) -> str:
    """The meaning of an operator as plain text, from its class, or its module if it is alone."""
    computed = issubclass(operator, Computed)
    doc = operator.__doc__ if computed else inspect.getmodule(operator).__doc__
    text = sections(inspect.cleandoc(doc or ""))[""]
    return re.sub(r"::$", ":", text, flags=re.MULTILINE).replace("`", "")


def devices(width: int | None) -> Iterator[str]:
    """The devices that are here."""
    rows = [[kind, *backend.describe()] for kind, backend in backends_here().items()]
    yield from table("Devices", ["device", "computes with", "threads"], rows, width)
    yield ""
    yield f"Processor: {_processor_name()}"
    missing = why_no_gpu()
    if missing:
        yield f"GPUs: none ({missing})"


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = (line.partition(":")[2] for line in file if line.startswith("model name"))
            name = next(names, "").strip()
    except OSError:
        name = ""
    return name or platform.machine()


def operators_data() -> list[dict[str, Any]]:
    """Every operator as JSON."""
    return [operator_data(name) for name in OPERATORS]


def operator_data(name: str) -> dict[str, Any]:
    """An operator as JSON: what it means, its fields, its support table."""
    operator = OPERATORS[name]
    full_texts = _in_full(operator)
    page = PAGES[operator.NAME]
    return {
        "name": name,
        "feature_level": page.level.suffix,
        "in_place": operator.IN_PLACE,
        "support": _support_data(page),
        "descriptor": operator.__name__,
        "text": meaning_of(operator),
        "also_known_as": operator.ALSO_KNOWN_AS.split(),
        "fields": [_field_data(info, full_texts[info.attribute]) for info in operator.fields()],
    }


def _support_data(page: Page) -> list[dict[str, Any]]:
    return [
        {
            "feature_level": row.level.suffix,
            **({"when": row.when} if row.when else {}),
            "tensors": {
                tensor: {
                    "ranks": [accepted.ranks[0], accepted.ranks[-1]],
                    "data_types": [str(item) for item in accepted.data_types],
                }
                for tensor, accepted in row.tensors.items()
            },
        }
        for row in page.support
    ]


def _field_data(info: FieldInfo, meaning: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": info.name,
        "attribute": info.attribute,
        "kind": info.text,
        "optional": info.optional,
        "meaning": meaning,
    }
    if isinstance(info.kind, EnumerationKind):
        data["values"] = [member.suffix for member in info.kind.members]
    return data


def devices_data() -> list[dict[str, Any]]:
    """The devices as JSON."""
    found = []
    for kind, backend in backends_here().items():
        computes_with, threads = backend.describe()
        number = int(threads) if threads.isdecimal() else threads
        found.append({"device": kind, "computes_with": computes_with, "threads": number})
    return found


def sections(doc: str) -> dict[str, str]:
    """A NumPy-style docstring by section; what comes before the first one is under ''."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    names = ["", *parts[1::2]]
    return {name: text.strip() for name, text in zip(names, parts[::2], strict=True)}


def meanings(operator: type[Descriptor]) -> dict[str, str]:
    """The text about each field in the docstrings of an operator and its bases, by attribute."""
    found: dict[str, str] = {}
    for kind in reversed(operator.__mro__):
        section = sections(inspect.cleandoc(kind.__doc__ or "")).get("Parameters", "")
        entries = re.findall(r"^(\S[^\n]*)\n((?:[ ]+[^\n]*\n?|\n)*)", section, re.MULTILINE)
        for names, text in entries:
            meaning = " ".join(textwrap.dedent(text).split())
            found |= dict.fromkeys(names.partition(" : ")[0].split(", "), meaning)
    return found


def _in_full(operator: type[Descriptor]) -> dict[str, str]:
    """The text about each field as plain text, without references to other operators' fields."""
    full_texts = {info.attribute: "" for info in operator.fields()} | meanings(operator)
    for attribute, text in full_texts.items():
        if referred := re.fullmatch(r"As for `(\w+)`\.", text):
            other = next(o for o in OPERATORS.values() if o.__name__ == referred[1])
            full_texts[attribute] = meanings(other)[attribute]
    names = {info.attribute: info.name for info in operator.fields()}
    return {
        attribute: re.sub(r"`(\w+)`", lambda m: names.get(m[1], m[1]), text).replace("`", "")
        for attribute, text in full_texts.items()
    }
