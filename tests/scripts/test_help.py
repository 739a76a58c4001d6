"""Every script has `--help`, and refuses options that it does not have, before it does anything."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
COMMANDS = [*sorted(SCRIPTS.glob("*.py")), "benchmarks", "benchmarks.show", "fuzz"]


@pytest.mark.parametrize("option", ["--help", "--no-such-option"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: Path(command).name)
def test_a_script_has_help(command, option, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(command), option])
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.delitem(sys.modules, str(command), raising=False)  # imported by another test
    run = runpy.run_path if isinstance(command, Path) else runpy.run_module
    with pytest.raises(SystemExit) as ended:
        run(str(command), run_name="__main__")
    assert ended.value.code == (0 if option == "--help" else 2)
    shown = capsys.readouterr()
    assert (shown.out or shown.err).lower().startswith("usage:")
