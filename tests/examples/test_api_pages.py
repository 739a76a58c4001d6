"""The API reference has every public name once."""

import importlib.util
import re

import pytest
from running import ROOT

import anydml as dml
from anydml.ops._registry import OPERATORS

_SPEC = importlib.util.spec_from_file_location(
    "generate_api_pages", ROOT / "scripts" / "generate_api_pages.py"
)
generator = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generator)

PAGES = generator.pages()
FOLDER = ROOT / "docs" / "api"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name):
    assert (FOLDER / name).read_text() == PAGES[name], "run scripts/generate_api_pages.py"
    assert f"api/{name}\n" in (ROOT / "mkdocs.yml").read_text()


def test_no_page_is_left_over():
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(PAGES)


def test_every_public_name_has_its_place():
    text = re.findall(r"^::: anydml\.(\w+)$", "".join(PAGES.values()), re.MULTILINE)
    operators = {kind.__name__ for kind in OPERATORS.values()} | {"ScatterElements"}
    modules = {module.removeprefix("anydml.") for module in generator.MODULES}
    assert sorted(text) == sorted({*dml.__all__, *modules} - operators)
