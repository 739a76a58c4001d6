"""The operators' pages of the site, one for each module, and pictures of their examples.

`hook.py` puts them into the site; nothing of them is in the repository.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from anydml.cli.tables import condition_of, meanings, sections
from anydml.core.tolerance import EXACT, Tolerance, Unit
from anydml.devices.device import Device
from anydml.drawing import draw_operator
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._examples import Example, examples_of
from anydml.ops._family import Family
from anydml.ops._fields import Role
from anydml.ops._pages import PAGES, TensorSupport
from anydml.ops._registry import OPERATORS, PREFIX
from anydml.ops._registry import page_of as address_of


def menu() -> list[str | dict[str, list[dict[str, str]]]]:
    """The part of the navigation that leads to the pages, by family."""
    return ["operators/index.md"] + [
        {family.title: [{_title(kinds): f"operators/{page_of(kinds[0])}"} for kinds in modules_of]}
        for family, modules_of in families().items()
    ]


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


def place_of(kind: type[Descriptor]) -> str:
    """The page that has an operator, and its heading there."""
    return f"{page_of(kind)}#{kind.__name__.lower()}"


@cache
def pages() -> dict[str, str]:
    """The text of every page by file name."""
    written = {
        page_of(kinds[0]): _page(module, kinds) for module, kinds in operator_modules().items()
    }
    return written | {"index.md": _index()}


def _index() -> str:
    count = len(set(OPERATORS.values()))
    lines = [
        "# Operators",
        "",
        f"anydml has {count} of DirectML's {len(PAGES)} operators. The first column has the "
        "operator and its descriptor class, the second one the feature level that introduced it.",
        "",
        '<div class="filter"></div>',  # site.js has it
        "",
    ]
    for family, modules_of in families().items():
        lines += [f"## {family.title}", "", family.introduction, ""]
        lines += ["| operator | since | what it does |", "|---|---|---|"]
        lines += [
            f"| [{kind.NAME}]({place_of(kind)})<br>`{kind.__name__}`"
            f"<span hidden> {kind.ALSO_KNOWN_AS}</span> "
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
    parts = [f"# {names}", summary[0].upper() + summary[1:]]
    parts += [_picture(kind, 1) for kind in kinds if examples_of(kind)][:1]
    parts += _markdown(rest)
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
    for i, example in enumerate(examples, 1):
        if "Examples" in parts:
            yield f"Example {i} of DirectML's page:"
        yield f"```pycon\n{_session(example)}\n```"
        yield _picture(kind, i)
    yield "### Support"
    yield (
        "Each row applies from its feature level up to the next row. Below "
        f"level {kind.SUPPORT[0].level} the operator does not exist."
    )
    yield _support(kind)


def _picture(kind: type[Descriptor], i: int) -> str:
    """The picture of an operator's i-th example."""
    what = f"Example {i} of {kind.NAME}: tensors as cells, coloured by correspondence"
    return f"![{what}](../images/operators/{[*_pictures_of(kind)][i - 1]})"


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
    """A link to the operator's page."""
    return f"[`DML_{kind.NAME}_OPERATOR_DESC`]({address_of(kind.NAME)})"


def _error_bound(tolerance: Tolerance) -> str:
    unit = {
        Unit.BITS: "exact, the same bits on every device",
        Unit.ULP: "at most {} ULP of the exact result",
        Unit.PRODUCTS: "at most {} half-ULP of the sum of the products' absolute values",
        Unit.SUMS: "at most {} half-ULP of the sum or mean of the absolute values",
        Unit.RUNNING: "what errors of {} half-ULP on the way may become",
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
