"""Write what follows from the definitions of operators and functions; run it after a change to one.

- src/anydml/ops/__init__.py: the imports of all definitions, the only list of them;
- src/anydml/functions/_public.py: the imports of all array functions, the only list of them;
- src/anydml/core/_literals.py: the words of native/common/*.def, for type checkers;
- src/anydml/portable/_tables.py: their tables, for an installation without native modules;
- src/anydml/graphs/_functions.pyi, src/anydml/devices/_results.pyi: the functions of `GraphBuilder`
  and the results of compiled operators, for type checkers and editors;
- docs/names.md, docs/array-functions.md: the first table of each.

A test compares the committed files with what it gives.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import inspect
import keyword
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from anydml import _native
from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.functions._function import function_specs
from anydml.functions._scatter import NAMES as REDUCTIONS
from anydml.functions.pad import PADDING_SYNONYMS
from anydml.graphs.directmlx import functions, names_of, output_name
from anydml.graphs.signatures import function_named
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import Role
from anydml.ops._pages import PAGES
from anydml.ops._registry import OPERATORS

ROOT = Path(__file__).resolve().parents[1]
DEFINITIONS = ROOT / "src" / "anydml" / "ops"
IMPORTS = DEFINITIONS / "__init__.py"
FUNCTIONS = ROOT / "src" / "anydml" / "functions"
PUBLIC = FUNCTIONS / "_public.py"
LITERALS = ROOT / "src" / "anydml" / "core" / "_literals.py"
TABLES = ROOT / "src" / "anydml" / "portable" / "_tables.py"
GRAPH_FUNCTIONS = ROOT / "src" / "anydml" / "graphs" / "_functions.pyi"
RESULTS = ROOT / "src" / "anydml" / "devices" / "_results.pyi"
LEVELS = ROOT / "tests" / "conformance" / "page_levels.tsv"


class LackingError(Exception):
    """A definition lacks facts."""


def modules() -> dict[Path, str]:
    """The text of every module that is written, by its path."""
    return {
        IMPORTS: imports(),
        PUBLIC: public_functions(),
        LITERALS: literals(),
        TABLES: tables(),
        GRAPH_FUNCTIONS: graph_functions(),
        RESULTS: results(),
    }


def imports() -> str:
    """The module that imports every definition and the enumerations."""
    found = {}
    lacking: list[str] = []
    for path in sorted(DEFINITIONS.glob("[!_]*.py")):
        module = import_module(f"anydml.ops.{path.stem}")
        found[module.__name__] = [
            name
            for name, value in vars(module).items()
            if isinstance(value, type)
            and (issubclass(value, NamedEnum) or "NAME" in dir(value))
            and value.__module__ == module.__name__
        ]
        lacking += _lacking(path, module, found[module.__name__])
    if lacking:
        raise LackingError("these are missing:\n" + "\n".join(lacking))
    return _importing(f"The operators. {_WRITTEN}; the only list of them.", found)


def _lacking(path: Path, module: Any, names: list[str]) -> Iterator[str]:
    """The facts that the definitions of a module lack, each with the file that it belongs in."""
    file = path.name
    kinds = {name: vars(module)[name] for name in names}
    operators = {name: kind for name, kind in kinds.items() if "NAME" in vars(kind)}
    if operators and not isinstance(vars(module).get("FAMILY"), Family):
        yield f"ops/{file}: FAMILY"
    if not inspect.cleandoc(module.__doc__ or ""):
        yield f"ops/{file}: a docstring of the module"
    for name, kind in operators.items():
        if kind.NAME not in PAGES:
            yield f"ops/_pages.json: the support table of {kind.NAME}"
        if not vars(kind).get("__doc__") or kind.__doc__.startswith(f"{name}("):
            yield f"ops/{file}: a docstring of {name}"  # a dataclass makes one of its signature
        if not kind.examples():
            yield f"ops/{file}: EXAMPLES of {name}"
        if kind.NAME not in LEVELS.read_text(encoding="utf-8").split():
            yield f"tests/conformance/{LEVELS.name}: the levels of {kind.NAME}"


def public_functions() -> str:
    """The module that imports every array function."""
    paths = sorted(FUNCTIONS.glob("[!_]*.py"))
    found = {import_module(f"anydml.functions.{path.stem}").__name__: list[str]() for path in paths}
    for spec in function_specs().values():
        found[spec.prepare.__module__].append(spec.name)
    return _importing(f"The array functions. {_WRITTEN}; the only list of them.", found)


def documents() -> dict[Path, str]:
    """The text of every document that has a table of this script, by its path."""
    tables = {"names.md": _names_table(), "array-functions.md": _functions()}
    return {ROOT / "docs" / name: _with_table(name, table) for name, table in tables.items()}


def _with_table(name: str, table: list[str]) -> str:
    before, rest = (ROOT / "docs" / name).read_text(encoding="utf-8").split(_TABLE)
    _, after = rest.split(_TABLE_END)
    return "\n".join([before + _TABLE, "", *table, "", _TABLE_END + after])


_TABLE = "<!-- Written by scripts/write_lists.py: change the definitions instead. -->"
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
            name = f"`{kind.NAME}`"
            lines.append(f"| {' | '.join([name, *(cell or '–' for cell in cells)])} |")
    return lines


def _functions() -> list[str]:
    """The array functions: call, operator and meaning."""
    lines = ["| function | operator | what it does |", "|---|---|---|"]
    for spec in function_specs().values():
        known = inspect.signature(spec.function).parameters.values()
        shown = [
            p.replace(annotation=p.empty)
            for p in known
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name != "out"
        ]
        call = f"{spec.name}{inspect.Signature(shown)}"
        summary = inspect.getdoc(spec.function).partition("\n")[0].removesuffix(".")
        lines.append(f"| `{call}` | `{spec.operator.NAME}` | {summary} |")
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


def tables() -> str:
    """The module with the tables of native/common/*.def."""
    codes = {name: code for name, (_, code) in _native.native.added_types().items()}
    return "\n".join(
        [
            f'"""The element types and modes of native/common/*.def. {_WRITTEN}."""',
            "",
            "from typing import Any, Final",
            "",
            f"TABLES: Final[dict[str, Any]] = {_literal(_native.native.tables())}",
            f"DLPACK_CODES: Final = {_literal(codes)}",
            "",
        ]
    )


def _literal(value: Any, indent: str = "") -> str:
    """The text of a table, a line for each member."""
    more = indent + "    "
    if isinstance(value, dict):
        lines = [f"{more}{_literal(k)}: {_literal(v, more)}," for k, v in value.items()]
        return "\n".join(["{", *lines, indent + "}"])
    if isinstance(value, list):
        return "\n".join(["[", *(f"{more}{_literal(member)}," for member in value), indent + "]"])
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def graph_functions() -> str:
    """The stub of the functions of `GraphBuilder`."""
    names: dict[tuple[type[Descriptor], ...], list[str]] = {}
    for name, kinds in functions().items():
        names.setdefault(kinds, []).append(f"{name}_" if keyword.iskeyword(name) else name)
    body: list[str] = []
    imports = {"Expression": "anydml.graphs.build"}
    tuples: set[tuple[str, ...]] = set()
    for kinds, spellings in names.items():
        first, *others = sorted(spellings, key=lambda name: (len(name), name))
        parameters = inspect.signature(function_named(first)).parameters.values()
        for item in parameters:
            imports.update(_sources(kinds, str(item.annotation)))
        outputs = kinds[-1].tensor_fields(Role.OUTPUT)
        wanted = [names_of(info)[-1] for info in outputs if info.optional]
        forms = [*product((False, True), repeat=len(wanted))]
        if len(wanted) == len(outputs):
            forms.remove((False,) * len(outputs))
        results = []
        for form in forms:
            chosen = dict(zip(wanted, form, strict=True))
            made = [info for info in outputs if chosen.get(names_of(info)[-1], True)]
            result = "tuple[Expression, ...]" if outputs[0].many else "Expression"
            if len(made) > 1:
                fields = tuple(map(output_name, made))
                tuples.add(fields)
                result = _tuple_name(fields)
            results.append(result)
            body += ["    @overload"] * (len(forms) > 1)
            body += _method(first, parameters, chosen, result)
        if len(forms) > 1:  # of bools that are variables
            body += [
                "    @overload",
                *_method(first, parameters, {}, " | ".join(dict.fromkeys(results))),
            ]
        body += [f"    {name} = {first}" for name in others]
    lines = [
        f'"""Functions of `GraphBuilder`. {_WRITTEN}."""',
        "",
        "# fmt: off",
        "# ruff: noqa: A003, I001, E501",
        "from collections.abc import Sequence",
        "from typing import Literal, NamedTuple, overload",
        "",
        *(
            f"from {module} import {name}"
            for module, name in sorted((m, n) for n, m in imports.items())
        ),
        "",
    ]
    for fields in sorted(tuples):
        lines += [f"class {_tuple_name(fields)}(NamedTuple):"]
        hides = dict.fromkeys(dir(tuple), "  # type: ignore[assignment]")  # `index`
        lines += [f"    {name}: Expression{hides.get(name, '')}" for name in fields]
    return "\n".join([*lines, "class Functions:", *body, ""])


def _method(
    name: str, parameters: Iterable[inspect.Parameter], chosen: dict[str, bool], result: str
) -> list[str]:
    """The lines of a stub's method, with the optional outputs that are chosen."""
    shown = ["self"]
    for item in parameters:
        if item.kind is item.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        annotation, default = item.annotation, f" = {_literal(item.default)}"
        if item.name in chosen:
            annotation = f"Literal[{chosen[item.name]}]"
        if item.default is item.empty or chosen.get(item.name):
            default = ""
        if item.name != "self":
            shown.append(f"{item.name}: {annotation}{default}")
    items = [f"{item}," for item in shown[:-1]] + [f"{shown[-1]}) -> {result}: ..."]
    whole = " ".join(item.replace(" ", "\0") for item in items)  # lines end between parameters
    lines = textwrap.wrap(
        f"def\0{name}({whole}",
        98,
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [f"    {line}".replace("\0", " ") for line in lines]


def _sources(kinds: Iterable[type[Descriptor]], annotation: str) -> Iterator[tuple[str, str]]:
    """The names in an annotation of operators, each with the module that defines it."""
    names = {*re.findall(r"[A-Za-z]\w+", annotation)} - {"Expression", "None", "Sequence"}
    for name in names - {*dir(builtins)}:
        for base in (base for kind in kinds for base in kind.__mro__):
            module = sys.modules[base.__module__]
            if name in vars(module):
                tree = ast.parse(inspect.getsource(module))
                yield (
                    name,
                    next(
                        (
                            node.module or ""
                            for node in tree.body
                            if isinstance(node, ast.ImportFrom)
                            and any(alias.name == name for alias in node.names)
                        ),
                        module.__name__,
                    ),
                )
                break


def _tuple_name(fields: Iterable[str]) -> str:
    return "_" + "".join(field.title().replace("_", "") for field in fields)


def results() -> str:
    """The stub of the results of compiled operators."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for kind in dict.fromkeys(OPERATORS.values()):
        outputs = kind.tensor_fields(Role.OUTPUT)
        if not any(info.optional for info in outputs):  # those depend on the descriptor
            is_one = len(outputs) == 1 and not outputs[0].many
            fields = () if is_one else tuple(info.attribute for info in outputs)
            kinds.setdefault(fields, []).append(kind.__name__)
    types, calls = list[str](), list[str]()
    for fields, names in kinds.items():
        made = "{}" if not fields else "tuple[{}, ...]"
        if len(fields) > 1:
            made = f"{_tuple_name(fields)}[{{}}]"
            types += [f"class {_tuple_name(fields)}(NamedTuple, Generic[_Member]):"]
            types += [f"    {name}: _Member" for name in fields]
        for bound, member in (("Plain", "NDArray[Any]"), ("Other", "Other")):
            calls += ["    @overload", "    def __call__("]
            calls += _filled(f"self: Results[{' | '.join(names)}], /,", 8)
            calls += [f"        *inputs: {bound} | Sequence[{bound}],"]
            calls += [f"        **bindings: {bound} | Sequence[{bound}],"]
            calls += [f"    ) -> {made.format(member)}: ..."]
    listed = ", ".join(sorted(name for names in kinds.values() for name in names))
    return _RESULTS.format(
        written=_WRITTEN,
        names="\n".join(_filled(listed, 4)),
        types="\n".join(types),
        calls="\n".join(calls),
    )


_RESULTS = '''"""Results of compiled operators. {written}."""

# fmt: off
# ruff: noqa: I001, E501, PLC0105
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, overload

from numpy.typing import NDArray
from typing_extensions import TypeVar

from anydml.ops import (
{names},
)
from anydml.ops._descriptor import Descriptor

class Exporter(Protocol):
    def __dlpack__(self) -> Any: ...

Plain: TypeAlias = NDArray[Any] | bytes | bytearray | memoryview
Other = TypeVar("Other", bound=Exporter)
Desc = TypeVar("Desc", bound=Descriptor, covariant=True, default=Descriptor)
_Member = TypeVar("_Member")

{types}

class Results(Generic[Desc]):
{calls}
    @overload
    def __call__(
        self, /,
        *inputs: Plain | Exporter | Sequence[Plain | Exporter],
        **bindings: Plain | Exporter | Sequence[Plain | Exporter],
    ) -> Any: ...
'''


def _filled(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=" " * indent, subsequent_indent=" " * indent)


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


def main() -> None:
    """Write everything, or nothing."""
    try:
        texts = modules()
        before = {path: path.read_text(encoding="utf-8") for path in texts}
        if texts == before:
            texts = documents()
    except LackingError as error:
        sys.exit(f"Nothing was written; {error}")
    except Exception as error:  # of a definition that is wrong
        sys.exit(f"Nothing was written: {type(error).__name__}: {error}")
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    if texts.keys() != before.keys():
        return
    again = subprocess.run(
        [sys.executable, *sys.argv], check=False
    )  # with definitions that are new
    if again.returncode:
        for path, text in before.items():
            path.write_text(text, encoding="utf-8")
        sys.exit(1)


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
