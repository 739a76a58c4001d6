"""Every block of code in the README and the documentation runs and shows what it says.

``python`` blocks run in order, those of one page sharing their names. ``pycon`` and ``console``
blocks are compared with what they show; a ``json`` block is a model that runs.
"""

import doctest
import re
import shlex

import pytest
from running import ROOT, run_anydml, run_python

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def blocks(page, *kinds):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def name(page):
    return str(page.relative_to(ROOT))


def with_blocks(*kinds):
    return [page for page in PAGES if blocks(page, *kinds)]


@pytest.mark.parametrize("page", with_blocks("python"), ids=name)
def test_python_blocks_run(page, tmp_path):
    if "import torch" in page.read_text():
        pytest.importorskip("torch")
    done = run_python("-c", "\n".join(blocks(page, "python")), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", with_blocks("pycon"), ids=name)
def test_interpreter_sessions_show_what_they_say(page):
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names = {}
    report = []
    for text in blocks(page, "pycon"):
        session = parser.get_doctest(text, names, name(page), name(page), 0)
        assert session.examples
        runner.run(session, out=report.append, clear_globs=False)
        names = session.globs
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("page", with_blocks("console"), ids=name)
def test_commands_show_what_they_say(page):
    for text in blocks(page, "console"):
        for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "anydml"
            done = run_anydml(*arguments)
            assert done.stdout + done.stderr == shown, command


@pytest.mark.parametrize("page", with_blocks("json"), ids=name)
def test_models_run(page, tmp_path):
    for text in blocks(page, "json"):
        path = tmp_path / "model.json"
        path.write_text(text)
        done = run_anydml("run", str(path), "--output-dir", str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page):
    for target in LINK.findall(BLOCK.sub("", page.read_text())):
        assert (page.parent / target).exists(), target
