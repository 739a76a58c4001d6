"""The command under odd circumstances: one message and a status, and never a traceback."""

import json
import os
import pty
import subprocess
import sys
import sysconfig

import pytest

from anydml.cli import command as cli
from anydml.documents import models
from anydml.ops._registry import OPERATORS

MODEL = {
    "resources": {"Größe": {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3]}},
    "dispatchables": {},
    "commands": [{"type": "print", "resource": "Größe"}],
}


# The command as a module, and as the script that is installed.
FUNCTIONS = f"""
anydml() {{ "$0" -P -m anydml "$@"; }}
installed() {{ {sysconfig.get_path("scripts")}/anydml "$@"; }}
"""


def slow(*values):
    """Cases that run only with the slow tests: each starts the command once more."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


COMMANDS = ["anydml", *slow("installed")]


@pytest.fixture
def anydml(tmp_path):
    """Runs the command in a shell, with more variables; status, output and errors."""
    (tmp_path / "m.json").write_text(json.dumps(MODEL))
    (tmp_path / "extra.json").write_text(json.dumps(MODEL | {"x": 1}))
    (tmp_path / "bad.json").write_text("{")

    def run(arguments, status, **variables):
        script = arguments if "anydml" in arguments else f"anydml {arguments}"
        done = subprocess.run(
            ["sh", "-c", f"{FUNCTIONS}\n{script}", sys.executable],
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **variables},
            check=False,
            timeout=60,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        assert done.returncode == status, done.stderr.decode()
        return done.stdout.decode("latin1"), done.stderr.decode("latin1")

    return run


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("value", ["abc", "0", "257", "-1", "1.5", " ", "٣", "1" * 5000])
def test_a_malformed_number_of_threads(anydml, command, value):
    out, err = anydml(f"{command} ops # anydml", 2, ANYDML_NUM_THREADS=value)
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("Error: ANYDML_NUM_THREADS: expected 1..256, got ")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_malformed_instruction_set(anydml, command):
    out, err = anydml(f"{command} devices # anydml", 2, ANYDML_INSTRUCTION_SET="v9")
    assert out == ""
    assert err.startswith("Error: ANYDML_INSTRUCTION_SET: expected one of ")


@pytest.mark.parametrize("command", COMMANDS)
def test_it_says_nothing_with_its_standard_error_closed(anydml, command):
    assert anydml(f"{command} ops 2>&- # anydml", 2, ANYDML_NUM_THREADS="x") == ("", "")


def test_other_modules_that_import_it_keep_their_tracebacks(tmp_path):
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool" / "__init__.py").write_text("import anydml")
    (tmp_path / "tool" / "__main__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "tool"],
        env={**os.environ, "ANYDML_NUM_THREADS": "x", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"Traceback" in done.stderr


def test_a_package_that_is_missing(anydml, tmp_path):
    (tmp_path / "click.py").write_text("raise ImportError('No click here')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert anydml("ops", 1, PYTHONPATH=path) == ("", "Error: No click here\n")


WRITTEN = {
    "ascii": "Gr\\xf6\\xdfe", "latin1": "Gr\xf6\xdfe", "cp437": "Gr\x94\xe1e",
    "ascii:strict": "Gr\\xf6\\xdfe",
}  # fmt: skip


@pytest.mark.parametrize("encoding", ["ascii", "cp437", *slow("latin1", "ascii:strict")])
def test_encodings(anydml, encoding):
    text = WRITTEN[encoding]
    out, err = anydml("run m.json", 0, PYTHONIOENCODING=encoding)
    assert (out, err) == (f"Resource '{text}': 1, 2, 3\n", "")


@pytest.mark.parametrize("encoding", ["undefined", *slow("idna", "punycode", "utf-16")])
def test_encodings_that_cannot_write(anydml, encoding):
    for arguments, status in (("ops", {0, 1}), ("run bad.json", {1})):
        process = subprocess.run(
            [sys.executable, "-m", "anydml", *arguments.split()],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert process.returncode in status
        assert b"Traceback" not in process.stderr.replace(b"\0", b"")


def test_plain_letters_stand_for_those_that_a_terminal_lacks(anydml):
    out, _ = anydml("ops PADDING1", 0, PYTHONIOENCODING="ascii")
    assert "\\u" not in out
    assert anydml("run m.json --timing", 0, LC_ALL="C", PYTHONUTF8="0")[1] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "xx_YY.none"}, {"LANG": "", "LC_ALL": ""}, {"TERM": ""}, {"TERM": "none"},
        {"TERM": "dumb", "FORCE_COLOR": "1"}, {"NO_COLOR": "1"}, {"HOME": "/none"},
        {"PYTHONWARNINGS": "error"}, {"PYTHONOPTIMIZE": "2"}, {"PYTHONDEVMODE": "1"},
    ],
)  # fmt: skip
def test_environments(anydml, variables):
    for arguments in ("ops", "ops TOP_K1", "devices", "run m.json"):
        out, err = anydml(arguments, 0, **variables)
        assert (bool(out), err) == (True, "")
        assert "\x1b" not in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("ops >&-", 0), ("ops TOP_K1 2>&-", 0), ("ops >&- 2>&-", 0), ("devices <&- >&- 2>&-", 0),
        ("check bad.json >&-", 1), ("check bad.json 2>&-", 1), ("run extra.json 2>&-", 0),
        ("check --json bad.json >&-", 1), ("check - <&-", 1), ("ops x 2>&-", 2), ("x >&- 2>&-", 2),
        ("run - <&-", 1), ("run 2>&-", 2), ("--help >&-", 0), ("--version >&-", 0),
    ],
)  # fmt: skip
def test_closed_streams(anydml, arguments, status):
    anydml(arguments, status)


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["stdout", "stderr", "both"])
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("run m.json", 0), ("run extra.json", 0), ("check extra.json", 0), ("check bad.json", 1),
        ("run none.json", 1), ("run", 2), ("ops", 0), ("ops --json", 0), ("x", 2), ("--help", 0),
    ],
)  # fmt: skip
def test_pipes_that_nobody_reads(anydml, tmp_path, arguments, status, gone):
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [sys.executable, "-m", "anydml", *arguments.split()],
        stdout=subprocess.PIPE if gone == "stderr" else writing,
        stderr=subprocess.PIPE if gone == "stdout" else writing,
        cwd=tmp_path,
        check=False,
    )
    os.close(writing)
    assert process.returncode in {status, 1}
    output = (process.stdout or b"") + (process.stderr or b"")
    assert b"Traceback" not in output
    assert b"Exception" not in output
    if gone == "stderr":
        assert process.returncode == status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("'a\nb.json'", "'a\\nb.json' cannot be read"),
        ("\"$(printf '\\377')\"", "cannot be read"),
        ("$(printf 'x%.0s' $(seq 5000))", "File name too long"),
        ("/dev/null", "Expected a regular file"),
        ("/proc/self/mem", "cannot be read"),
        ("m.json/x", "Not a directory"),
    ],
)
def test_odd_paths(anydml, path, message):
    for command in ("run", "check"):
        _, err = anydml(f"{command} {path}", 1)
        assert err.startswith("Error: ")
        assert message in err
        assert err.count("\n") == 1


def test_a_folder_that_is_gone(anydml, tmp_path):
    (tmp_path / "gone").mkdir()
    anydml("cd gone; rmdir ../gone; anydml ops", 0)
    (tmp_path / "gone").mkdir()
    _, err = anydml(f"cd gone; rmdir ../gone; anydml check {tmp_path}/m.json", 1)
    assert err.startswith("Error: ")
    assert "No such file or directory" in err


def test_standard_input_twice(anydml):
    _, err = anydml("check - - < m.json", 2)
    assert "standard input (-) can be read only once" in err


@pytest.mark.parametrize("kibibytes", [400_000, *slow(150_000, 700_000, 1_000_000)])
def test_little_memory(anydml, tmp_path, kibibytes):
    large = {"initialValuesDataType": "UINT8", "initialValues": {"value": 0, "valueCount": 2**29}}
    (tmp_path / "large.json").write_text(
        json.dumps(MODEL | {"resources": {"x": large}, "commands": []})
    )
    script = f"ulimit -v {kibibytes}; OPENBLAS_NUM_THREADS=1 anydml run large.json >/dev/null; true"
    anydml(script, 0)  # whatever the system says of it


def test_a_fault_of_the_command_itself(monkeypatch, capsys, tmp_path):
    def broken(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(models, "load_model", broken)
    assert cli.main(["run", "x"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "Error: internal error (ZeroDivisionError: oh); please report it with what "
        "`python -X dev -m anydml` shows\n"
    )


def on_a_terminal(width, *arguments):
    """What the command writes to a terminal of some width."""
    leader, follower = pty.openpty()
    subprocess.run(["stty", "cols", str(width)], stdin=follower, check=True)
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "anydml", *arguments], stdout=follower, stderr=follower,
        stdin=follower, env=environment,
    )  # fmt: skip
    os.close(follower)
    pieces = []
    try:
        while piece := os.read(leader, 65536):
            pieces.append(piece)
    except OSError:  # how a terminal ends
        pass
    os.close(leader)
    assert process.wait(60) == 0
    return b"".join(pieces).decode().replace("\r\n", "\n")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 20, 40, 79, 200])
def test_narrow_terminals_keep_every_column(width):
    title, _, *body = on_a_terminal(width, "ops").splitlines()
    assert title == "Operators"
    starts = [i for i, line in enumerate(body) if not line.startswith("   ")]
    entries = {
        body[a].split()[0]: " ".join(body[a:b])
        for a, b in zip(starts, [*starts[1:], len(body)], strict=True)
    }
    for name, operator in OPERATORS.items():
        latest = next(iter(operator.SUPPORT[-1].tensors.values()))
        types = [*map(str, latest.data_types)]
        level = str(operator.SUPPORT[0].level)
        assert entries[name].split() == [name, level, latest.ranks_text, *types]
    assert max(map(len, body)) <= max(width, 80)
    text = on_a_terminal(width, "ops", "TOP_K1")
    for word in ("AxisDirection", "DECREASING", "OutputIndexTensor", "UINT64", "5_0", "1..8"):
        assert word in text


def test_a_wide_terminal_has_a_line_for_each_row():
    assert len(on_a_terminal(300, "ops").splitlines()) == 4 + len(OPERATORS)
