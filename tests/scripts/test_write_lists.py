"""The lists of operators, functions and words that are in the repository are up to date."""

import pytest

import anydml.ops
from anydml.cli import command as cli
from scripts import write_lists

WRITTEN = {**write_lists.modules(), **write_lists.documents()}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_list_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == WRITTEN[path], "run scripts/write_lists.py"


def test_what_a_new_operator_lacks_is_named(tmp_path, monkeypatch):
    definition = tmp_path / "lacking.py"
    definition.write_text("from anydml.ops._computed import Computed\n"
                          "class Lacking(Computed):\n    NAME = 'LACKING'\n")  # fmt: skip
    monkeypatch.setattr(anydml.ops, "__path__", [*anydml.ops.__path__, str(tmp_path)])
    monkeypatch.setattr(write_lists, "DEFINITIONS", tmp_path)
    before = {path: path.read_bytes() for path in WRITTEN}
    with pytest.raises(write_lists.LackingError):  # the tests of this module begin with it
        write_lists.modules()
    with pytest.raises(SystemExit) as caught:
        write_lists.main()
    assert str(caught.value).splitlines() == [
        "Nothing was written; these are missing:",
        "ops/lacking.py: FAMILY",
        "ops/lacking.py: a docstring of the module",
        "ops/_pages.json: the support table of LACKING",
        "ops/lacking.py: a docstring of Lacking",
        "ops/lacking.py: EXAMPLES of Lacking",
        "tests/conformance/page_levels.tsv: the levels of LACKING",
    ]
    definition.with_name("wrong.py").write_text("1 / 0")
    with pytest.raises(SystemExit, match="Nothing was written: ZeroDivisionError"):
        write_lists.main()
    assert {path: path.read_bytes() for path in WRITTEN} == before


def test_a_failure_after_new_imports_restores_all(tmp_path, monkeypatch):
    lists = {tmp_path / name: f"old {name}" for name in ("imports.py", "types.pyi")}
    for path, text in lists.items():
        path.write_text(text)
    log = tmp_path / "log"
    again = tmp_path / "again.py"  # fails, after it has seen what was written
    again.write_text(f"""
from pathlib import Path
Path({str(log)!r}).write_text("".join(Path(path).read_text() for path in {[*map(str, lists)]}))
raise SystemExit(1)
""")
    monkeypatch.setattr(write_lists, "modules", lambda: dict.fromkeys(lists, "new "))
    monkeypatch.setattr(write_lists.sys, "argv", [str(again)])
    with pytest.raises(SystemExit):
        write_lists.main()
    assert log.read_text() == "new new "
    assert {path: path.read_text() for path in lists} == lists


def test_every_option_of_the_command_line_is_documented():
    pages = [*(write_lists.ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    options = {
        name
        for command in cli.commands.commands.values()
        for option in command.params
        for name in option.opts
        if name.startswith("--")
    }
    assert [name for name in sorted(options) if f"`{name}" not in text] == []
