"""The operators' pages in the documentation are what the operator modules say now."""

import importlib.util

import pytest
from running import ROOT

from anydml.ops._registry import OPERATORS

_SPEC = importlib.util.spec_from_file_location(
    "generate_operator_pages", ROOT / "scripts" / "generate_operator_pages.py"
)
generator = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generator)

PAGES = generator.pages()


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name):
    committed = (ROOT / "docs" / "operators" / name).read_text()
    assert committed == PAGES[name], "run scripts/generate_operator_pages.py"


def test_pictures_are_up_to_date():
    committed = {path.name: path.read_text() for path in generator.PICTURES.glob("*.svg")}
    assert committed == generator.pictures(), "run scripts/generate_operator_pages.py"


def test_no_page_is_left_over():
    folder = ROOT / "docs" / "operators"
    assert sorted(path.name for path in folder.glob("*.md")) == sorted(PAGES)


def test_lists_and_literals_are_up_to_date():
    written = {**generator.modules(), generator.MENU: generator.menu(), **generator.documents()}
    for path, text in written.items():
        assert path.read_text(encoding="utf-8") == text, "run scripts/generate_operator_pages.py"


def test_every_operator_is_in_the_menu_and_the_index():
    menu = generator.menu()
    for kind in OPERATORS.values():
        assert f"[{kind.NAME}]" in PAGES["index.md"]
        assert f"operators/{generator.page_of(kind)}" in menu
