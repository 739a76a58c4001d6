"""Write what follows from the definitions of operators and functions; run it after a change to one.

- src/anydml/ops/__init__.py: the imports of all definitions, the only list of them;
- src/anydml/functions/_public.py: the imports of all array functions, the only list of them;
- src/anydml/core/_literals.py: the words of native/common/*.def, for type checkers;
- docs/operators/: a page for each module of definitions;
- docs/images/operators/: a picture of each example;
- docs/names.md, docs/array-functions.md: the first table of each;
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
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from anydml import _native
from anydml.cli.tables import condition_of, meanings, sections
from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.core.tolerance import EXACT, Tolerance, Unit
from anydml.devices.device import Device
from anydml.drawing import draw_operator
from anydml.functions._attributes import PADDING_SYNONYMS
from anydml.functions._combining import NAMES as REDUCTIONS
from anydml.functions._spec import SPECS
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._examples import Example, examples_of
from anydml.ops._family import Family
from anydml.ops._fields import Role
from anydml.ops._pages import PAGES, TensorSupport
from anydml.ops._registry import OPERATORS, PREFIX

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "operators"
PICTURES = ROOT / "docs" / "images" / "operators"
MENU = ROOT / "mkdocs.yml"
DEFINITIONS = ROOT / "src" / "anydml" / "ops"
IMPORTS = DEFINITIONS / "__init__.py"
FUNCTIONS = ROOT / "src" / "anydml" / "functions"
PUBLIC = FUNCTIONS / "_public.py"
LITERALS = ROOT / "src" / "anydml" / "core" / "_literals.py"
HEADER = (
    "<!-- Written by scripts/generate_operator_pages.py from {source}: change that instead. -->"
)


def modules() -> dict[Path, str]:
    """The text of every module that is written, by its path."""
    return {IMPORTS: imports(), PUBLIC: public_functions(), LITERALS: literals()}


def imports() -> str:
    """The module that imports every definition and the enumerations."""
    found = {}
    for path in sorted(DEFINITIONS.glob("[!_]*.py")):
        module = import_module(f"anydml.ops.{path.stem}")
        found[module.__name__] = [
            name
            for name, value in vars(module).items()
            if isinstance(value, type)
            and (issubclass(value, NamedEnum) or "NAME" in dir(value))
            and value.__module__ == module.__name__
        ]
        names = {vars(module)[name].__dict__.get("NAME") for name in found[module.__name__]}
        if lacking := names - {*PAGES, None}:
            sys.exit(f"ops/_pages.json: no support table of {', '.join(lacking)}")
    return _importing(f"The operators. {_WRITTEN}; the only list of them.", found)


def public_functions() -> str:
    """The module that imports every array function."""
    paths = sorted(FUNCTIONS.glob("[!_]*.py"))
    found = {import_module(f"anydml.functions.{path.stem}").__name__: list[str]() for path in paths}
    for spec in SPECS.values():
        found[spec.general.__module__].append(spec.name)
    return _importing(f"The array functions. {_WRITTEN}; the only list of them.", found)


def documents() -> dict[Path, str]:
    """The text of every document that has a table of this script, by its path."""
    tables = {"names.md": _names_table(), "array-functions.md": _functions()}
    return {ROOT / "docs" / name: _with_table(name, table) for name, table in tables.items()}


def _with_table(name: str, table: list[str]) -> str:
    before, rest = (ROOT / "docs" / name).read_text(encoding="utf-8").split(_TABLE)
    _, after = rest.split(_TABLE_END)
    return "\n".join([before + _TABLE, "", *table, "", _TABLE_END + after])


_TABLE = "<!-- Written by scripts/generate_operator_pages.py: change the definitions instead. -->"
_TABLE_END = "<!-- end of the table -->"


def _names_table() -> list[str]:
    """The names of the operators that have native kernels."""
    titles = {"onnx": "ONNX", "numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
    libraries = {"anydml": "anydml", **titles}
    lines = [f"| DirectML | {' | '.join(libraries.values())} |", "|---" * 6 + "|"]
    for kind in dict.fromkeys(OPERATORS.values()):
        if kind.ALSO_KNOWN_AS and not issubclass(kind, Computed):
            names = [name.partition(".") for name in kind.ALSO_KNOWN_AS.split()]
            cells = [
                ", ".join(
                    f"`{short if library in ('anydml', 'onnx') else f'{library}.{short}'}`"
                    for first, _, short in names
                    if first == library
                )
                for library in libraries
            ]
            link = f"[{kind.NAME}](operators/{page_of(kind)}#{kind.__name__.lower()})"
            lines.append(f"| {' | '.join([link, *(cell or '–' for cell in cells)])} |")
    return lines


def _functions() -> list[str]:
    """The array functions: call, operator and meaning."""
    lines = ["| function | operator | what it does |", "|---|---|---|"]
    for spec in SPECS.values():
        known = inspect.signature(spec.function).parameters.values()
        shown = [
            p.replace(annotation=p.empty)
            for p in known
            if p.kind is not p.VAR_KEYWORD and p.name != "out"
        ]
        call = f"{spec.name}{inspect.Signature(shown)}"
        summary = inspect.getdoc(spec.function).partition("\n")[0].removesuffix(".")
        link = f"[{spec.operator.NAME}](operators/{page_of(spec.operator)})"
        lines.append(f"| `{call}` | {link} | {_inline(summary)} |")
    return lines


_WRITTEN = f"Written by {Path(__file__).name}"


def _importing(title: str, names: dict[str, list[str]]) -> str:
    """A module that has names of others."""
    lines = []
    for module, found in names.items():
        ordered = sorted(found, key=str.lower)
        line = f"from {module} import {', '.join(ordered)}"
        if len(line) > 100:
            line = "".join([f"from {module} import (\n", *map("    {},\n".format, ordered), ")"])
        lines.append(line)
    exported = sorted(name for found in names.values() for name in found)
    return "\n".join(
        [
            f'"""{title}"""',
            "",
            *lines,
            "",
            "__all__ = [",
            *(f'    "{name}",' for name in exported),
            "]",
            "",
        ]
    )


def literals() -> str:
    """The module of the words that public signatures take."""
    modes, types = _native.INDEX_MODES, _native.NUMBERS
    paged = [known.name.upper() for known in _native.TYPES if 0 < known.number < 64]
    words: dict[str, Iterable[str | None]] = {
        **{
            f"{kind.__name__}Name": _names(kind)
            for kind in sorted(NamedEnum.__subclasses__(), key=lambda kind: kind.__name__)
            if kind is not FeatureLevel and kind.__module__.startswith("anydml.")
        },
        "OutOfRange": modes[:2],  # of descriptors; the others are the array functions'
        "GatherMode": modes,
        "PadMode": [*_native.PADDING_MODES, *PADDING_SYNONYMS],
        "Reduction": REDUCTIONS,
        "IndexName": [*_native.INDEX_TYPES, *map(str.upper, _native.INDEX_TYPES)],
        "TypeName": [*types, *paged],
    }
    lines = [f'"""Words that public signatures take. {_WRITTEN}."""', ""]
    lines += ["from typing import Literal", ""]
    for name, members in words.items():
        lines += [f"{name} = Literal["]
        lines += [f'    "{member}",' for member in members if member is not None]
        lines += ["]"]
    return "\n".join([*lines, ""])


def _names(enumeration: type[NamedEnum]) -> list[str]:
    members = [*enumeration]
    return [*(m.suffix for m in members), *(m.full_name for m in members)]


def menu() -> str:
    """The documentation's configuration, with a line for each page of the operators by family."""
    lines = ["      - operators/index.md\n"]
    for family, modules_of in families().items():
        lines.append(f"      - {family.title}:\n")
        lines += [
            f"          - {_title(kinds)}: operators/{page_of(kinds[0])}\n" for kinds in modules_of
        ]
    text = MENU.read_text(encoding="utf-8")
    return re.sub(r" {6}- operators/index\.md\n( {6}.*\n)*", "".join(lines), text)


def _title(kinds: list[type[Descriptor]]) -> str:
    """A page's name in the menu: of a family its module's, else the operators'."""
    if issubclass(kinds[0], Computed):
        return (sys.modules[kinds[0].__module__].__doc__ or "").partition(":")[0]
    return ", ".join(kind.NAME for kind in kinds)


def operator_modules() -> dict[str, list[type[Descriptor]]]:
    """The descriptor classes by operator module, in the order of the registry."""
    found: dict[str, list[type[Descriptor]]] = {}
    for kind in dict.fromkeys(OPERATORS.values()):
        found.setdefault(kind.__module__, []).append(kind)
    return found


def families() -> dict[Family, list[list[type[Descriptor]]]]:
    """The descriptor classes of each module, by the family that the module names."""
    found: dict[Family, list[list[type[Descriptor]]]] = {family: [] for family in Family}
    for module, kinds in operator_modules().items():
        found[sys.modules[module].FAMILY].append(kinds)
    return found


def page_of(kind: type[Descriptor]) -> str:
    """The file name of the page that has an operator."""
    return kind.__module__.rpartition(".")[2] + ".md"


def pages() -> dict[str, str]:
    """The text of every page by file name."""
    written = {
        page_of(kinds[0]): _page(module, kinds) for module, kinds in operator_modules().items()
    }
    return written | {"index.md": _index()}


def _index() -> str:
    count = len(set(OPERATORS.values()))
    lines = [
        "# Operators",  # in front, where the site looks for a page's title
        "",
        HEADER.format(source="src/anydml/ops/"),
        "",
        f"anydml has {count} of DirectML's {len(PAGES)} operators. The first column has the "
        "operator and its descriptor class, the second one the feature level that introduced it.",
        "",
    ]
    for family, modules_of in families().items():
        lines += [f"## {family.title}", "", family.introduction, ""]
        lines += ["| operator | since | what it does |", "|---|---|---|"]
        lines += [
            f"| [{kind.NAME}]({page_of(kind)}#{kind.__name__.lower()})<br>`{kind.__name__}` "
            f"| {kind.SUPPORT[0].level} | {_summary(kind)} |"
            for kinds in modules_of
            for kind in kinds
        ]
        lines.append("")
    aliases = [
        f"`{name}` is `{kind.NAME}`" for name, kind in OPERATORS.items() if name != kind.NAME
    ]
    lines += [f"{'; '.join(aliases)}: two names of one operator. Names are taken with and "
              f"without the prefix `{PREFIX}`.", ""]  # fmt: skip
    return "\n".join(lines)


def _summary(kind: type[Descriptor]) -> str:
    """What an operator does: of a family each class says it, else the module."""
    if issubclass(kind, Computed):
        return _inline(inspect.getdoc(kind).partition("\n")[0])
    doc = sys.modules[kind.__module__].__doc__ or ""
    first = " ".join(doc.strip().partition("\n\n")[0].split())
    summary = first.partition(": ")[2]
    return summary[0].upper() + summary[1:]


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
    parts.append(f"Source: `{source}`.")
    return "\n\n".join(parts) + "\n"


def _operator(kind: type[Descriptor]) -> Iterator[str]:
    parts = sections(inspect.cleandoc(kind.__doc__ or ""))
    yield f"## `{kind.__name__}`"
    yield from _markdown(parts[""])
    yield f"DirectML's reference: {_reference(kind)}."
    yield "### Fields"
    yield _fields(kind, {name: _inline(text) for name, text in meanings(kind).items()})
    if issubclass(kind, Computed):
        bound = f"[`{kind.TOLERANCE}`](../specification.md#tolerance)"
        yield f"Error bound: {_error_bound(kind.TOLERANCE)} ({bound})."
    if kind.ALSO_KNOWN_AS:
        names = (f"`{name}`" for name in kind.ALSO_KNOWN_AS.split())
        yield f"In other libraries: {', '.join(names)}."
    examples = [*examples_of(kind)]
    yield "### Example" if len(examples) == 1 else "### Examples"
    if "Examples" in parts:
        yield f"```pycon\n{parts['Examples']}\n```"
    for i, (example, name) in enumerate(zip(examples, _pictures_of(kind), strict=True), 1):
        if "Examples" in parts:
            yield f"Example {i} of DirectML's page:"
        yield f"```pycon\n{_session(example)}\n```"
        what = f"Example {i} of {kind.NAME}: tensors as cells, coloured by correspondence"
        yield f"![{what}](../images/operators/{name})"
    yield "### Support"
    yield (
        "Each row applies from its feature level up to the next row. Below "
        f"level {kind.SUPPORT[0].level} the operator does not exist."
    )
    yield _support(kind)


@cache
def _pictures_of(kind: type[Descriptor]) -> dict[str, str]:
    """Pictures of an operator's examples by file name."""
    drawn = [draw_operator(example.desc, example.inputs) for example in examples_of(kind)]
    return {f"{kind.NAME.lower()}-{i}.svg": picture for i, picture in enumerate(drawn, 1)}


def pictures() -> dict[str, str]:
    """The pictures of all operators by file name."""
    kinds = dict.fromkeys(OPERATORS.values())
    return {name: picture for kind in kinds for name, picture in _pictures_of(kind).items()}


_NEW_LINE = "\n...     "
"""Within a statement of an example."""


def _literal(values: list[object]) -> str:
    return re.sub(r"-?\b(nan|inf)\b", r"float('\g<0>')", repr(values))


def _array_text(value: np.ndarray | list[np.ndarray]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_array_text, value))}]"
    return f"np.array({_literal(value.tolist())}, np.{value.dtype})"


def _session(example: Example) -> str:
    """An example as an interactive session."""
    desc, inputs = example.desc, example.inputs
    names = {
        info: [path for path, _ in info.paths(getattr(desc, info.attribute))]
        for info in desc.bind_points(Role.INPUT)
    }
    bound = [[inputs[path] for path in paths] for paths in names.values()]
    arguments = [x if info.many else x[0] for info, x in zip(names, bound, strict=True)]
    result = Device("cpu").create_operator(desc).compile()(*arguments)
    arrays = [*map(_array_text, arguments)]
    call = f">>> compiled({', '.join(arrays)})"
    if len(call) > 80:
        call = f">>> compiled({_NEW_LINE}{f',{_NEW_LINE}'.join(arrays)})"
    lines = [">>> import numpy as np", ">>> import anydml as dml"]
    shown_result = repr(result)
    if desc.TOLERANCE != EXACT:  # the last digits depend on the processor
        lines.append(">>> np.set_printoptions(precision=4)")
        with np.printoptions(precision=4):
            shown_result = repr(result)
    fields = [f"{info.attribute}=" for info in desc.fields()]
    text = repr(desc)
    for field in fields[1:]:
        text = text.replace(f", {field}", f",{_NEW_LINE}{field}")
    if len(text.partition("\n")[0]) > 58:
        text = text.replace("(", f"({_NEW_LINE}", 1)
    return "\n".join(
        [
            *lines,
            f">>> desc = {_qualified(text)}",
            '>>> compiled = dml.Device("cpu").create_operator(desc).compile()',
            call,
            re.sub(r"\n\n+", "\n", shown_result),  # an empty line would end the session
        ]
    )


def _qualified(text: str) -> str:
    return re.sub(r"\b([A-Z]\w+)\(", r"dml.\1(", text)


def _reference(kind: type[Descriptor]) -> str:
    """A link to the operator's page, which is in a place of its own for later feature levels."""
    later = kind.SUPPORT[0].level > FeatureLevel.LEVEL_5_0
    folder = "windows/ai/directml/api" if later else "windows/win32/api/directml"
    name = f"DML_{kind.NAME}_OPERATOR_DESC"
    return f"[`{name}`](https://learn.microsoft.com/{folder}/ns-directml-{name.lower()})"


def _error_bound(tolerance: Tolerance) -> str:
    unit = {
        Unit.BITS: "exact, the same bits on every device",
        Unit.ULP: "at most {} ULP of the exact result",
        Unit.PRODUCTS: "at most {} half-ULP of the sum of the products' absolute values",
        Unit.SUMS: "at most {} half-ULP of the sum or mean of the absolute values",
    }[tolerance.unit]
    return unit.format(f"{tolerance.count:g}")


def _fields(kind: type[Descriptor], meanings: dict[str, str]) -> str:
    lines = ["| Python | DirectML | type | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{info.attribute}` | {info.name} | {info.text} | {meanings[info.attribute]} |"
        for info in kind.fields()
    ]
    return "\n".join(lines)


def _support(kind: type[Descriptor]) -> str:
    conditional = any(row.when for row in kind.SUPPORT)
    heading = "| from level | tensors | ranks | data types |"
    lines = [f"{'| where ' * conditional}{heading}", "|---" * (4 + conditional) + "|"]
    for row in kind.SUPPORT:
        condition = f"| {condition_of(row)} " * conditional
        by_support: dict[TensorSupport, list[str]] = {}
        for name, accepted in row.tensors.items():
            by_support.setdefault(accepted, []).append(name)
        for accepted, names in by_support.items():
            ranks = accepted.ranks_text.replace("..", "–")
            types = ", ".join(map(str, accepted.data_types))
            lines.append(f"{condition}| {row.level} | {', '.join(names)} | {ranks} | {types} |")
    return "\n".join(lines)


def _markdown(text: str) -> Iterator[str]:
    """Paragraphs and blocks of a docstring as Markdown."""
    for literal, group in _groups(text.strip("\n").split("\n")):
        if literal:
            yield "```text\n" + textwrap.dedent("\n".join(group)).strip("\n") + "\n```"
            continue
        for paragraph in "\n".join(group).strip("\n").split("\n\n"):
            paragraph_text = re.sub(r"(?:^|(?<=\S))::$", ":", paragraph.strip("\n"))
            if paragraph_text not in ("", ":"):
                yield _inline(paragraph_text)


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
    outdated = {
        path: text for path, text in modules().items() if path.read_text(encoding="utf-8") != text
    }
    for path, text in outdated.items():
        path.write_text(text, encoding="utf-8")
    if outdated:
        os.execv(sys.executable, [sys.executable, *sys.argv])  # with the definitions that are new
    for path, text in {MENU: menu(), **documents()}.items():
        path.write_text(text, encoding="utf-8")
    for folder, pattern, written in (FOLDER, "*.md", pages()), (PICTURES, "*.svg", pictures()):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.glob(pattern):
            if path.name not in written:
                path.unlink()
        for name, text in written.items():
            (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
