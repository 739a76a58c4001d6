"""Every block of code in the README and the documentation runs and shows what it says.

Each block stands on its own, so that it can be copied from the page and run. ``pycon`` and
``console`` blocks are compared with what they show; a ``json`` block is a model that runs. A guide
is one session: its blocks run in order in one folder, and a block with a title is a file there.
Excerpts of C++ programs do not run.
"""

import doctest
import re
import shlex
from importlib.util import find_spec

import numpy as np
import pytest
from running import ROOT, needed, run_anydml, run_python

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "guides"),
]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDE_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page, *kinds):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def name(page):
    return str(page.relative_to(ROOT))


def with_blocks(*kinds):
    return [page for page in PAGES if blocks(page, *kinds)]


def python_blocks():
    """The blocks of each page, by the libraries that they need: a process for each of these."""
    found = {}
    for page in PAGES:
        for text in blocks(page, "python"):
            found.setdefault((page, tuple(needed(text))), []).append(text)
    return [
        pytest.param(libraries, texts, id="-".join((name(page), *libraries)))
        for (page, libraries), texts in found.items()
    ]


@pytest.mark.parametrize(("libraries", "texts"), python_blocks())
def test_python_blocks_run(libraries, texts, tmp_path):
    for package in libraries:
        if not find_spec(package):
            pytest.skip(f"{package} is not installed")
    lines = ["import os"]
    for i, text in enumerate(texts):  # each in a folder and with names of its own
        (tmp_path / str(i)).mkdir()
        lines.append(f"os.chdir({str(tmp_path / str(i))!r})")
        lines.append(f"exec(compile({text!r}, 'block {i}', 'exec'), {{'__name__': '__main__'}})")
    done = run_python("-c", "\n".join(lines), strict=not libraries)
    assert (done.returncode, done.stderr) == (0, "")


def run_session(title, *texts):
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report = []
    for text in texts:
        session = parser.get_doctest(text, {}, title, title, 0)
        assert session.examples
        with np.printoptions():  # a session may set others
            runner.run(session, out=report.append)
    assert runner.failures == 0, "".join(report)


def run_commands(text, cwd=ROOT):
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, drawing = session.partition("\n")
        program, *arguments = shlex.split(command)
        run = {"anydml": run_anydml, "python": run_python}[program]
        done = run(*arguments, cwd=cwd)
        assert done.stdout + done.stderr == drawing, command


@pytest.mark.parametrize("page", with_blocks("pycon"), ids=name)
def test_interpreter_sessions_show_what_they_say(page):
    texts = blocks(page, "pycon")
    for library in ("torch", "jax", "dask"):
        if any(f"import {library}" in text for text in texts):
            pytest.importorskip(library)
    run_session(name(page), *texts)


@pytest.mark.parametrize("page", with_blocks("console"), ids=name)
def test_commands_show_what_they_say(page):
    for text in blocks(page, "console"):
        run_commands(text)


@pytest.mark.parametrize("page", with_blocks("json"), ids=name)
def test_models_run(page, tmp_path):
    for text in blocks(page, "json"):
        path = tmp_path / "model.json"
        path.write_text(text)
        done = run_anydml("run", str(path), "--output-dir", str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, marks=pytest.mark.slow if needed(page.read_text()) else (), id=name(page)
        )
        for page in GUIDES
    ],
)
def test_guide_works_from_top_to_bottom(page, tmp_path):
    page_text = page.read_text()
    found = GUIDE_BLOCK.findall(page_text)
    assert len(found) == page_text.count("\n```") // 2, "a block that is not understood"
    sessions = "".join(text for kind, _, text in found if kind == "console")
    for command in re.findall(r"- run: (anydml .*)", page_text):
        assert f"$ {command}\n" in sessions, "a step of a workflow that the page does not run"
    libraries = needed(page_text)
    for library in libraries:
        pytest.importorskip(library)
    for kind, title, text in found:
        if title:
            (tmp_path / title).write_text(text)
        runs_later = title and re.search(rf"^\$ python .*\b{re.escape(title)}$", page_text, re.M)
        if kind == "python" and not runs_later:
            done = run_python("-c", text, cwd=tmp_path, strict=not libraries)
            assert (done.returncode, done.stderr) == (0, "")
        elif kind == "pycon":
            run_session(name(page), text)
        elif kind == "console":
            run_commands(text, tmp_path)
        else:
            assert kind in ("cpp", "python", "text") or title, f"a {kind} block is a file"
