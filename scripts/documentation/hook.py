"""A hook of MkDocs: puts the pages that are made from the code into the site, and links to them.

The pages are those of the operators, the API reference and the pictures of both and of the front
page. In the other pages, an operator's name as code (`TOP_K1`) becomes a link to its page, and
`anydml ops` one to the list of all; in the repository, where these pages are not, neither is one.
Addresses are those of `pyproject.toml`: the site's own, that of the repository (with a link to edit
each page), and those that a page names as "`NAME` under `[project.urls]` in `pyproject.toml`". The
first paragraph of a page describes it to search engines.
"""

from __future__ import annotations

import posixpath
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from anydml import __version__  # noqa: E402  # after the path
from anydml.ops._registry import OPERATORS  # noqa: E402
from scripts.addresses import addresses  # noqa: E402  # after the path
from scripts.documentation import api, front_page, operators  # noqa: E402

_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2$|^#.*?$", re.DOTALL | re.MULTILINE)
_SEE_ALSO = re.compile(r"(?<=<summary>See Also</summary>\n  <p>).*?(?=</p>)", re.DOTALL)
_SOURCE = re.compile(r"(?<=<p>From )<code>(\w+)</code>(?=, <code>DML_)")
_ADDRESS = re.compile(r"`(\w+)` under `\[project\.urls\]` in `pyproject\.toml`")
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
    """Add the version and the addresses, and fill the navigation's sections of made pages."""
    config.site_name = f"{config.site_name} {__version__}"
    known = addresses()
    if site := known.get("Documentation"):
        config.site_url = f"{site}/"
    if repository := known.get("Repository"):
        config.repo_url, config.repo_name = repository, repository.rpartition("/")[2]
        config.edit_uri = "edit/main/docs/"
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


def description_of(markdown: str, longest: int = 200) -> str:
    """The first paragraph of a page as plain text, or as many of its words as fit."""
    paragraphs = (block for block in markdown.split("\n\n") if re.match(r"[\w`*[]", block))
    text = " ".join(next(paragraphs, "").split())
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("`", "").replace("**", "")
    return textwrap.shorten(text, longest, placeholder=" …")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Describe the page, and add links to the operators' pages, but not to these themselves."""
    path = page.file.src_uri
    known = addresses()
    markdown = _ADDRESS.sub(lambda match: known.get(match[1], "an address not yet set"), markdown)
    page.meta.setdefault("description", description_of(markdown))
    if path.startswith("api/"):  # guides have some of these titles, too
        page.meta.setdefault("title", f"{page.title}, API reference")
    return markdown if path.startswith(("operators/", "api/")) else linked(markdown, path)


def with_links(html: str) -> str:
    """The text of a page of the API reference, with links to operators and in "See Also"."""
    descriptors = {kind.__name__: kind for kind in OPERATORS.values()}

    def operator(match: re.Match[str]) -> str:
        page, _, heading = operators.place_of(descriptors[match[1]]).partition(".md")
        return f'<a href="../../operators/{page}/{heading}">{match[0]}</a>'

    def function(match: re.Match[str]) -> str:
        name = match[1]
        if f'id="anydml.{name}"' not in html:
            return match[0]
        return f'<a href="#anydml.{name}"><code>{name}</code></a>: '

    def lines(section: re.Match[str]) -> str:
        return "<br>\n".join(
            re.sub(r"^(\w+) : ", function, line) for line in section[0].split("\n")
        )

    return _SEE_ALSO.sub(lines, _SOURCE.sub(operator, html))


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Add links to the API reference."""
    return with_links(html) if page.file.src_uri.startswith("api/") else html
