"""The pages and pictures that the site makes from the code: all of them are made, and are right."""

import re
from xml.etree import ElementTree

import pytest
from running import ROOT
from test_docs import run_session
from test_links import LINK, anchors_of

import anydml as dml
from anydml.ops._registry import OPERATORS
from scripts.documentation import api, front_page, hook, operators

PAGES = operators.pages()
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_show_what_they_say(name):
    sessions = SESSION.findall(PAGES[name])
    assert sessions or name == "index.md"
    for session in sessions:
        run_session(name, session)


def test_every_picture_is_a_picture_and_is_shown():
    pictures = operators.pictures()
    shown = re.findall(
        r"^!\[[^\]]+\]\(\.\./images/operators/([^)]+)\)$", "".join(PAGES.values()), re.M
    )
    assert {*shown} == {*pictures}
    for name, page in PAGES.items():
        assert name == "index.md" or page.index("\n![") < page.index("\n## "), name
    for picture in pictures.values():
        root = ElementTree.fromstring(picture)
        assert root.tag.endswith("svg")
        assert root.get("aria-label")


def test_the_pictures_of_the_front_page_are_shown():
    pytest.importorskip("igraph")
    text = (ROOT / "docs" / "index.md").read_text()
    for name, picture in front_page.pictures().items():
        assert f"(images/{name})" in text
        assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_every_operator_is_in_the_menu_and_the_index():
    menu = str(operators.menu())
    for kind in OPERATORS.values():
        assert f"[{kind.NAME}]({operators.place_of(kind)})" in PAGES["index.md"]
        assert f" {kind.ALSO_KNOWN_AS}</span>" in PAGES["index.md"]  # for its filter
        assert f"'operators/{operators.page_of(kind)}'" in menu
    assert len(re.findall(r"'operators/", menu)) == len(PAGES)


def test_links_between_operators_lead_to_pages_and_headings():
    for name, page in PAGES.items():
        for link, _ in LINK.findall(page):
            target, _, anchor = link.partition("#")
            if target in PAGES or not target:
                assert not anchor or anchor in {*anchors_of(PAGES[target or name])}, link
            elif not re.match("https:|../images/operators/", target):
                assert target == "../specification.md"


def test_every_public_name_has_its_place_in_the_api_reference():
    pages = api.pages()
    text = re.findall(r"^::: anydml\.(\w+)$", "".join(pages.values()), re.MULTILINE)
    descriptors = {kind.__name__ for kind in OPERATORS.values()} | {"ScatterElements"}
    modules = {module.removeprefix("anydml.") for module in api.MODULES}
    assert sorted(text) == sorted({*dml.__all__, *modules} - descriptors)
    assert sorted(pages) == sorted(
        path.removeprefix("api/") for entry in api.menu() for path in entry.values()
    )


def test_the_first_paragraph_describes_a_page():
    page = "# Title\n\n<div>\n\n**Bold** `code` and\na [link](x.md).\n\nMore."
    assert hook.description_of(page) == "Bold code and a link."
    assert hook.description_of(page, 12) == "Bold code …"
    for text in (*PAGES.values(), *api.pages().values()):
        assert hook.description_of(text)


def test_the_reference_has_links():
    before, after = '<h2 id="anydml.tile"></h2>\n<summary>See Also</summary>\n  <p>', "</p>"
    assert hook.with_links(f"{before}tile : it.\nx : no.{after}") == (
        f'{before}<a href="#anydml.tile"><code>tile</code></a>: it.<br>\nx : no.{after}'
    )
    source = "<code>Tile</code>, <code>DML_TILE_OPERATOR_DESC</code>"
    linked = source.replace("<code>Tile", '<a href="../../operators/tile/#tile"><code>Tile')
    linked = linked.replace("</code>, ", "</code></a>, ", 1)
    assert hook.with_links(f"<p>From {source}; x.</p>") == f"<p>From {linked}; x.</p>"


def test_names_of_operators_become_links():
    text = (
        "# `TILE`\n\n`TILE`, [`TILE`](x), `NAME`, `anydml ops`, ``TILE``\n\n"
        "```sh\n`TILE`\n```\n\n`JOIN`\n"
    )
    assert hook.linked(text, "names.md") == (
        "# `TILE`\n\n[`TILE`](operators/tile.md#tile), [`TILE`](x), `NAME`, "
        "[`anydml ops`](operators/index.md), ``TILE``\n\n```sh\n`TILE`\n```\n\n"
        "[`JOIN`](operators/join.md#join)\n"
    )
    assert hook.linked("`TILE`", "guides/speed.md") == "[`TILE`](../operators/tile.md#tile)"
