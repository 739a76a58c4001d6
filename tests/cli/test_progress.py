"""What long runs say on a terminal, and only there."""

import io
import os
import pty
import select
import sys

import pytest

from anydml.cli import command as cli
from anydml.core._progress import show_progress
from anydml.models import run, run_model
from anydml.models.examples import example_model


@pytest.fixture
def terminal(monkeypatch):
    """Makes standard error a terminal of 40 columns; gives what reads all that it got."""
    outer, inner = pty.openpty()
    with os.fdopen(inner, "w") as stream:

        def connect():  # in the test itself: pytest sets the stream between setup and call
            monkeypatch.setattr(sys, "stderr", stream)
            monkeypatch.setenv("COLUMNS", "40")
            return read

        def read():
            stream.flush()
            data = b""
            while select.select([outer], [], [], 0.2)[0]:  # it arrives a little later
                data += os.read(outer, 100_000)
            return data.decode()

        yield connect
    os.close(outer)


def test_a_line_replaces_the_last_one_and_is_not_wrapped(terminal):
    read = terminal()
    show_progress("one")
    show_progress("t" * 100)
    show_progress()
    assert read() == f"\r\033[Kone\r\033[K{'t' * 39}\r\033[K"


def test_nothing_is_said_elsewhere(monkeypatch):
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        show_progress("one")
        assert stream is None or not stream.getvalue()


def test_repeated_dispatches_say_how_far_they_are(monkeypatch):
    monkeypatch.setattr(run, "_PROGRESS_SECONDS", 0)
    messages = []
    run_model(example_model("TILE"), repeat=4, write=lambda _: None, progress=messages.append)
    assert messages == [*(f"Command at index 0: {i} of 4 runs" for i in range(4)), ""]


def test_the_command_says_it_on_a_terminal(capsys, terminal, monkeypatch):
    monkeypatch.setattr(run, "_PROGRESS_SECONDS", 0)
    read = terminal()
    assert cli.main(["run", "--example", "tile", "--repeat", "3"]) == 0
    assert "Command at index 0: 2 of 3 runs\r\033[K" in read()
    assert "\033" not in capsys.readouterr().out
