"""Write what follows from the operators' definitions; run it after a change to one.

- src/anydml/ops/__init__.py: the imports of all definitions, the only list of them;
- docs/operators/: a page for each module of definitions;
- mkdocs.yml: the navigation to these pages.

A test compares the committed files with what it gives.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

from anydml._named import NamedEnum
from anydml.device import Device
from anydml.lookup import meanings, sections
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops._pages import TensorSupport
from anydml.registry import OPERATORS, PREFIX
from anydml.tensor import TensorDesc

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "operators"
MENU = ROOT / "mkdocs.yml"
DEFINITIONS = ROOT / "src" / "anydml" / "ops"
IMPORTS = DEFINITIONS / "__init__.py"
HEADER = (
    "<!-- Written by scripts/generate_operator_pages.py from {source}: change that instead. -->"
)


def imports() -> str:
    """The module that imports every definition and the enumerations beside it."""
    lines, names = [], list[str]()
    for path in sorted(DEFINITIONS.glob("[!_]*.py")):
        module = import_module(f"anydml.ops.{path.stem}")
        found = sorted(
            name
            for name, value in vars(module).items()
            if isinstance(value, type)
            and (issubclass(value, NamedEnum) or "NAME" in dir(value))
            and value.__module__ == module.__name__
        )
        line = f"from {module.__name__} import {', '.join(found)}"
        if len(line) > 100:
            line = "".join(
                [f"from {module.__name__} import (\n", *map("    {},\n".format, found), ")"]
            )
        lines.append(line)
        names += found
    return "\n".join(
        [
            f'"""The operators. Written by {Path(__file__).name}; the only list of them."""',
            "",
            *lines,
            "",
            "__all__ = [",
            *(f'    "{name}",' for name in sorted(names)),
            "]",
            "",
        ]
    )


def menu() -> str:
    """The documentation's configuration, with a line for each page of the operators."""
    lines = [
        f"      - {_title(kinds)}: operators/{page_of(kinds[0])}\n" for kinds in rooms().values()
    ]
    text = MENU.read_text(encoding="utf-8")
    return re.sub(r"(      - [A-Z][^\n:]+: operators/\w+\.md\n)+", "".join(lines), text)


def _title(kinds: list[type[Descriptor]]) -> str:
    """A page's name in the menu: of a family its module's, else the operators'."""
    if issubclass(kinds[0], Computed):
        return (sys.modules[kinds[0].__module__].__doc__ or "").partition(":")[0]
    return ", ".join(kind.NAME for kind in kinds)


def rooms() -> dict[str, list[type[Descriptor]]]:
    """The descriptor classes by their room's module, in the order of the registry."""
    found: dict[str, list[type[Descriptor]]] = {}
    for kind in dict.fromkeys(OPERATORS.values()):
        found.setdefault(kind.__module__, []).append(kind)
    return found


def page_of(kind: type[Descriptor]) -> str:
    """The file name of the page that has an operator."""
    return kind.__module__.rpartition(".")[2] + ".md"


def pages() -> dict[str, str]:
    """The text of every page by file name."""
    written = {page_of(kinds[0]): _page(module, kinds) for module, kinds in rooms().items()}
    return written | {"index.md": _index()}


def _index() -> str:
    lines = [
        HEADER.format(source="src/anydml/ops/"),
        "",
        "# Operators",
        "",
        "| operator | descriptor | since | what it does |",
        "|---|---|---|---|",
    ]
    for kinds in rooms().values():
        lines += [
            f"| [{kind.NAME}]({page_of(kind)}) | `{kind.__name__}` "
            f"| {kind.SUPPORT[0].level} | {_summary(kind)} |"
            for kind in kinds
        ]
    aliases = [
        f"`{name}` is `{kind.NAME}`" for name, kind in OPERATORS.items() if name != kind.NAME
    ]
    lines += ["", f"{'; '.join(aliases)}: two names of one operator. Names are taken with and "
              f"without the prefix `{PREFIX}`.", ""]  # fmt: skip
    return "\n".join(lines)


def _summary(kind: type[Descriptor]) -> str:
    """What an operator does: of a family each class says it, else the module."""
    if issubclass(kind, Computed):
        return _inline(inspect.getdoc(kind).partition("\n")[0])
    doc = sys.modules[kind.__module__].__doc__ or ""
    first = " ".join(doc.strip().partition("\n\n")[0].split())
    return first.partition(": ")[2]


def _page(module: str, kinds: list[type[Descriptor]]) -> str:
    doc = inspect.cleandoc(sys.modules[module].__doc__ or "")
    title, _, rest = doc.partition("\n")
    names, _, summary = title.partition(": ")
    source = f"src/{module.replace('.', '/')}.py"
    parts = [
        HEADER.format(source=source),
        f"# {names}",
        summary[0].upper() + summary[1:],
        *_markdown(rest),
    ]
    for kind in kinds:
        parts += _operator(kind)
    printed = [kind.NAME for kind in kinds if not issubclass(kind, Computed)]
    if printed:
        parts += [
            "## Examples of the page",
            "The examples that the page prints, with their results:",
            "\n".join(
                f"- `{name}`: `examples/{name.lower()}.py` in Python, "
                f"`examples/models/{name.lower()}.json` as a JSON model"
                for name in printed
            ),
        ]
    parts.append(f"The whole definition, with the rules as code, is one file: `{source}`.")
    return "\n\n".join(parts) + "\n"


def _operator(kind: type[Descriptor]) -> Iterator[str]:
    parts = sections(inspect.cleandoc(kind.__doc__ or ""))
    yield f"## `{kind.__name__}`"
    yield from _markdown(parts[""])
    yield "### Fields"
    yield _fields(kind, {name: _inline(text) for name, text in meanings(kind).items()})
    if issubclass(kind, Computed):
        yield f"Tolerance: `{kind.TOLERANCE}`."
        if kind.ALSO_KNOWN_AS:
            yield f"Elsewhere: {', '.join(f'`{name}`' for name in kind.ALSO_KNOWN_AS.split())}."
    yield "### Example"
    example = parts.get("Examples") or _computed_example(kind)
    yield f"```pycon\n{example}\n```"
    yield "### Support"
    yield (
        "Each row holds from its feature level up to the next row. Ranks are DimensionCount. Below "
        f"level {kind.SUPPORT[0].level} the operator does not exist."
    )
    yield _support(kind)


def _computed_example(kind: type[Computed]) -> str:
    given = kind.example()
    inputs = {
        info.attribute: np.array(given.pop(info.attribute), np.float32)
        for info in kind.tensor_fields(Role.INPUT)
        if info.attribute in given
    }
    tensors = {name: TensorDesc.from_array(array) for name, array in inputs.items()}
    desc = kind.with_outputs(**tensors, **given)
    result = Device("cpu").create_operator(desc).compile()(*inputs.values())
    arguments = ", ".join(f"np.array({a.tolist()}, np.float32)" for a in inputs.values())
    fields = [f"{info.attribute}=" for info in desc.fields()]
    shown = repr(desc)
    for field in fields[1:]:
        shown = shown.replace(f", {field}", f",\n...     {field}")
    return "\n".join(
        [
            ">>> import numpy as np",
            ">>> import anydml as dml",
            f">>> desc = {_qualified(shown)}",
            '>>> compiled = dml.Device("cpu").create_operator(desc).compile()',
            f">>> compiled({arguments})",
            repr(result),
        ]
    )


def _qualified(shown: str) -> str:
    return re.sub(r"\b([A-Z]\w+)\(", r"dml.\1(", shown)


def _fields(kind: type[Descriptor], told: dict[str, str]) -> str:
    lines = ["| in Python | on the page | kind | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{info.attribute}` | {info.name} | {info.text} | {told[info.attribute]} |"
        for info in kind.fields()
    ]
    return "\n".join(lines)


def _support(kind: type[Descriptor]) -> str:
    lines = ["| from level | tensors | ranks | data types |", "|---|---|---|---|"]
    for row in kind.SUPPORT:
        alike: dict[TensorSupport, list[str]] = {}
        for name, accepted in row.tensors.items():
            alike.setdefault(accepted, []).append(name)
        for accepted, names in alike.items():
            ranks = accepted.ranks_text.replace("..", "–")
            types = ", ".join(map(str, accepted.data_types))
            lines.append(f"| {row.level} | {', '.join(names)} | {ranks} | {types} |")
    return "\n".join(lines)


def _markdown(text: str) -> Iterator[str]:
    """Paragraphs and blocks of a docstring as Markdown."""
    for literal, group in _groups(text.strip("\n").split("\n")):
        if literal:
            yield "```text\n" + textwrap.dedent("\n".join(group)).strip("\n") + "\n```"
            continue
        for paragraph in "\n".join(group).strip("\n").split("\n\n"):
            shown = re.sub(r"(?:^|(?<=\S))::$", ":", paragraph.strip("\n"))
            if shown not in ("", ":"):
                yield _inline(shown)


def _groups(lines: Iterable[str]) -> Iterator[tuple[bool, list[str]]]:
    literal, group = False, list[str]()
    for line in lines:
        indented = line.startswith("    ") or (literal and not line)
        if indented != literal and group:
            yield literal, group
            group = []
        literal = indented
        group.append(line)
    if group:
        yield literal, group


def _inline(text: str) -> str:
    return re.sub(r"``?([^`]+)``?", r"`\1`", text)


def main() -> None:
    """Write everything, and remove the pages that no definition has."""
    listed = imports()
    if listed != IMPORTS.read_text(encoding="utf-8"):
        IMPORTS.write_text(listed, encoding="utf-8")
        os.execv(sys.executable, [sys.executable, *sys.argv])  # with the definitions that are new
    MENU.write_text(menu(), encoding="utf-8")
    FOLDER.mkdir(parents=True, exist_ok=True)
    written = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
