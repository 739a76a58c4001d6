"""A hook of MkDocs: puts the pages that are made from the code into the site, and links to them.

The pages are those of the operators, the API reference and the pictures of both and of the front
page. In the other pages, an operator's name as code (`TOP_K1`) becomes a link to its page, and
`anydml ops` one to the list of all; in the repository, where these pages are not, neither is one.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from anydml.ops._registry import OPERATORS  # noqa: E402
from scripts.documentation import api, front_page, operators  # noqa: E402

_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2$|^#.*?$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<![`\[])`(anydml ops|[A-Z][A-Z0-9_]+)`(?![`\]])")


def pages() -> Iterator[tuple[str, str]]:
    """Every page and picture that is made, by its path below `docs/`."""
    for folder, made in {
        "operators": operators.pages(),
        "images/operators": operators.pictures(),
        "api": api.pages(),
        "images": front_page.pictures(),
    }.items():
        for name, text in made.items():
            yield f"{folder}/{name}", text


def linked(markdown: str, path: str) -> str:
    """The text of the page at a path below `docs/`, with links to the operators' pages."""

    def link(match: re.Match[str]) -> str:
        kind = OPERATORS.get(match[1])
        if kind is None and match[1] != "anydml ops":
            return match[0]
        place = "index.md" if kind is None else operators.place_of(kind)
        return f"[{match[0]}]({posixpath.relpath('operators', posixpath.dirname(path))}/{place})"

    parts, end = [], 0
    for kept in _FENCED.finditer(markdown):
        parts += [_CODE.sub(link, markdown[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*parts, _CODE.sub(link, markdown[end:])])


def on_config(config: Any) -> Any:
    """Fill the sections of the navigation whose pages are made."""
    made = {"Operators": operators.menu(), "API reference": api.menu()}
    config.nav = [
        {title: made.get(title, entry) for title, entry in section.items()}
        for section in config.nav
    ]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages and the pictures."""
    from mkdocs.structure.files import File

    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Add links to the operators' pages, but not to these pages themselves."""
    path = page.file.src_uri
    return markdown if path.startswith(("operators/", "api/")) else linked(markdown, path)
