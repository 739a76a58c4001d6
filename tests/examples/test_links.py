"""Links between the pages lead somewhere: the file is there, and the heading is in it."""

import re
import unicodedata

import pytest
from running import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "fuzz/*.md", "benchmarks/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
)
FRONT_PAGE = ROOT / "docs" / "index.md"
"""Of the site; nobody reads it in the repository."""
_CODE = re.compile(r"^ *(```|~~~).*?^ *\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(
    r"(?<!\\)\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]: (\S+)", re.MULTILINE
)
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +\{#([\w-]+)\})?$", re.MULTILINE)


def anchors_of(page_text):
    """What the site makes of a page's headings, and places within a page."""
    text = re.sub(r"^ *(```|~~~).*?^ *\1", "", page_text, flags=re.DOTALL | re.MULTILINE)
    yield from re.findall(r'<a id="([\w-]+)">', text)
    for heading, explicit_id in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        plain = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        yield explicit_id or re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def dead_links(page):
    for written, reference in LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        link = written or reference
        if re.match(r"[a-z]+:", link):
            continue  # elsewhere
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if page == FRONT_PAGE and name.startswith(("operators/", "api/", "images/")):
            continue  # made by the site, whose build checks it
        if not target.exists() or (anchor and anchor not in {*anchors_of(target.read_text())}):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert not list(dead_links(page))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_library_is_installed_from_a_clone(page):
    """No package index has it."""
    commands = re.findall(r"pip install[^\n`]*", page.read_text(encoding="utf-8"))
    assert not [command for command in commands if "anydml" in command.partition("&&")[0]]


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "other.md").write_text('# Two `words`, and more\n\n<a id="place"></a>\n')
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#two-words-and-more) [c](https://x.org/y) `[d](none.md)`\n"
        "[e](none.md) [f](other.md#none) [g](#here) [h](other.md#place)\n"
        "\n# Here\n\n```md\n[i](none.md)\n```\n"
    )
    assert list(dead_links(page)) == ["none.md", "other.md#none"]
