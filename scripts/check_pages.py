"""Compare what is kept of DirectML's reference with the sources that can be had as files.

    python scripts/check_pages.py --docs windows-ai-docs/docs/directml --schema DirectMLSchema.h

The sources are clones of the repositories MicrosoftDocs/windows-ai-docs and microsoft/DirectML,
there in DxDispatch/src/dxdispatch/DirectMLHelpers. What is kept of them:

- src/anydml/ops/_pages.json: the support tables of all pages. The pages that windows-ai-docs has
  are parsed and compared with it.
- tests/conformance/directml_schema.txt: the fields of all operators, from the schema, and from the
  pages of the operators that it lacks.
- tests/conformance/directml_history.txt: which level added and which extended an operator.

The last two are written with ``--write``; the tests compare them with the tables and with the
definitions of the operators. Prints each difference; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from anydml.ops._pages import PAGES, Page

FACTS = Path(__file__).resolve().parents[1] / "tests" / "conformance"
SCHEMA = FACTS / "directml_schema.txt"
HISTORY = FACTS / "directml_history.txt"

_TENSORS = {"INPUT_TENSOR": "input", "OUTPUT_TENSOR": "output"}
_MEMBER = re.compile(r"(?:_Field_size_\w*\(\w+\) )?(?:const )?(\w+)(\*?) (\w+);")
_NO_ENUMERATIONS = {"BOOL", "FLOAT", "INT", "UINT", "UINT64"}


def schema_facts(schema: str, pages: Mapping[str, str]) -> str:
    """A line for each operator: its name, whether it may run in place, and its fields.

    A field is its kind and its name; ``?`` marks what is optional. Operators that the schema lacks
    are read from the syntax on their pages.
    """
    lines = []
    for name in PAGES:
        head = re.search(rf'"DML_OPERATOR_{name}",\s+\w+,\s+(\w+),', schema)
        if head is None:
            lines.append(f"{name}: {', '.join(_fields_of_syntax(pages[name]))}")
            continue
        in_place = " (in place)" if head[1].endswith("IN_PLACE_EXECUTION") else ""
        lines.append(f"{name}{in_place}: {', '.join(_fields_of_schema(schema, name))}")
    return "\n".join(lines) + "\n"


def _fields_of_schema(schema: str, name: str) -> Iterator[str]:
    body = re.search(rf" DML_{name}_OPERATOR_SCHEMA_FIELDS\[\d+\] \{{(.*?)\n\}};", schema, re.S)
    assert body is not None, name
    found = re.findall(r'KIND_(\w+), \w+_TYPE_(\w+), "(\w+)", (true|false) \}', body[1])
    for role, kind, field, optional in found:
        word = kind
        if role in _TENSORS:
            word = _TENSORS[role] + ("s" if kind.endswith("ARRAY") else "")
        yield f"{word}{'?' if optional == 'true' else ''} {field}"


def _fields_of_syntax(page: str) -> Iterator[str]:
    body = re.search(r"```(?:cpp)?\nstruct \w+\n\{(.*?)\}", page, re.S)
    assert body is not None
    for kind, pointer, field in _MEMBER.findall(body[1]):
        if kind == "DML_TENSOR_DESC":
            yield f"{'output' if field.startswith('Output') else 'input'} {field}"
        else:
            word = kind if kind in _NO_ENUMERATIONS else "UINT"
            yield f"{word}{'_ARRAY' if pointer else ''} {field}"


def history_facts(history: str) -> str:
    """Two lines for each level: the operators that it added, and those that it extended."""
    lines = []
    for section in re.split(r"^## DML_FEATURE_LEVEL_", history, flags=re.M)[1:]:
        level, _, text = section.partition("\n")
        added: set[str] = set()
        extended: set[str] = set()
        adds = False
        for line in text.splitlines():
            names = set(re.findall(r"\*\*DML_OPERATOR_(\w+)\*\*", line)) - {"TYPE"}
            if line.strip() and not line.lstrip().startswith("*"):
                adds = (
                    re.match(r"Added (support for )?the following operator types", line) is not None
                )
            only = re.fullmatch(r"\* Added \*\*DML_OPERATOR_\w+\*\*\.", line.strip()) is not None
            (added if adds or only else extended).update(names)
        for verb, found in (("adds", added), ("extends", extended)):
            if found:
                lines.append(f"{level.strip()} {verb} {' '.join(sorted(found))}")
    return "\n".join(lines) + "\n"


def page_differences(name: str, text: str, kept: Page) -> Iterator[str]:
    """What a page's text has otherwise than what is kept of it."""
    came = re.search(r"introduced in \**`?DML_FEATURE_LEVEL_(\d_\d)", text)
    if came is None or came[1] != kept.level.suffix:
        yield f"{name}: introduced at {came and came[1]} on the page, {kept.level} here"
    if (re.search(r"in.place", text, re.I) is not None) != kept.in_place:
        yield f"{name}: in-place execution is {not kept.in_place} on the page, {kept.in_place} here"
    page = {
        (level, tensor): (ranks, types)
        for level, tensor, ranks, types in _table(text, kept.level.suffix)
    }
    here = {
        (row.level.suffix, tensor): (accepted.ranks_text, [*map(str, accepted.data_types)])
        for row in kept.support
        for tensor, accepted in row.tensors.items()
    }
    for key in sorted(page.keys() | here.keys()):
        if page.get(key) != here.get(key):
            yield f"{name} {' '.join(key)}: {page.get(key)} on the page, {here.get(key)} here"


def _table(text: str, level: str) -> Iterator[tuple[str, str, str, list[str]]]:
    columns: list[str] = []
    for line in text.partition("## Tensor support")[2].splitlines():
        if heading := re.match(r"#+ DML_FEATURE_LEVEL_(\d_\d)", line):
            level = heading[1]
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == "Tensor":
            columns = cells
        elif re.fullmatch(r"\w+Tensors?", cells[0]) and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            ranks = row["Supported dimension counts"].replace(" to ", "..")
            types = row["Supported data types"].split(",")
            yield level, cells[0], ranks, [kind.strip() for kind in types if kind.strip()]


def pages_of(docs: Path) -> dict[str, str]:
    """The text of every operator's page in a folder of windows-ai-docs."""
    return {
        path.stem.removeprefix("ns-directml-dml_").removesuffix("_operator_desc").upper():
        path.read_text(encoding="utf-8-sig")
        for path in sorted((docs / "api").glob("*_operator_desc.md"))
    }  # fmt: skip


def differences(docs: Path, schema: Path, *, write: bool) -> Iterator[str]:
    """Every difference, one after another; ``write`` brings the two files of facts up to date."""
    pages = pages_of(docs)
    facts = {
        SCHEMA: schema_facts(schema.read_text(encoding="utf-8-sig"), pages),
        HISTORY: history_facts(
            (docs / "dml-feature-level-history.md").read_text(encoding="utf-8-sig")
        ),
    }
    for path, text in facts.items():
        if write:
            path.write_text(text, encoding="ascii")
        yield from difflib.unified_diff(
            path.read_text(encoding="ascii").splitlines(), text.splitlines(), path.name, "source",
            lineterm="", n=0,
        )  # fmt: skip
    for name, text in pages.items():
        yield from page_differences(name, text, PAGES[name])


def main() -> int:
    """Print the differences; 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--docs", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--schema", type=Path, required=True, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    found = [*differences(arguments.docs, arguments.schema, write=arguments.write)]
    print("\n".join(found) or "no differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
