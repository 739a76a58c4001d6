"""The pictures of the front page are those of the code beside them."""

import importlib.util

import pytest
from running import ROOT

_SPEC = importlib.util.spec_from_file_location(
    "draw_front_page", ROOT / "scripts" / "draw_front_page.py"
)
generator = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generator)


def test_pictures_are_up_to_date():
    pytest.importorskip("igraph")
    committed = {path.name: path.read_text() for path in generator.IMAGES.glob("*.svg")}
    assert generator.pictures().items() <= committed.items(), "run scripts/draw_front_page.py"
