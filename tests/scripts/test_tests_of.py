"""What changed leads to its tests, the closest first."""

from pathlib import Path

import pytest

from scripts import tests_of


@pytest.mark.parametrize(
    ("changed", "first", "also"),
    [
        ("src/anydml/ops/cast.py", "tests/ops/test_cast.py", "tests/ops/test_tile.py"),
        (
            "src/anydml/cli/command.py",
            "tests/cli/test_command_line.py",
            "tests/cli/test_hostile.py",
        ),
        ("tests/ops/test_tile.py", "tests/ops/test_tile.py", "tests/surface/test_imports.py"),
        ("scripts/write_lists.py", "tests/scripts/test_write_lists.py", tests_of.ALWAYS),
        ("docs/names.md", "tests/examples/test_names.py", "tests/examples/test_docs.py"),
    ],
)
def test_the_tests_of_a_file(changed, first, also):
    found = [*tests_of.tests_of([Path(changed)])]
    assert first in found[:5]
    assert also in found
    assert len(found) == len({*found})


def test_a_file_without_tests_has_the_general_ones():
    assert [*tests_of.tests_of([Path("LICENSE")])] == [tests_of.ALWAYS]


def test_what_has_not_begun_in_time_is_left_out(pytestconfig, tmp_path):
    path = tmp_path / "test_two.py"
    path.write_text(
        "import time\ndef test_a(): time.monotonic = lambda: 1e9\ndef test_b(): assert False\n"
    )
    command = ["-q", "-p", "no:cacheprovider", f"-c{pytestconfig.inipath}", str(path)]
    conftest = (pytestconfig.rootpath / "tests" / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(conftest)
    done = tests_of.subprocess.run(
        [tests_of.sys.executable, "-m", "pytest", *command, "--seconds", "60"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 passed, 1 skipped" in done.stdout, done.stdout


def test_a_revision_that_does_not_exist_is_one_message():
    done = tests_of.subprocess.run(
        [tests_of.sys.executable, tests_of.__file__, "no-such-revision"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("git diff --name-only no-such-revision: ")
    assert "Traceback" not in done.stderr


def test_a_clone_without_a_local_main_is_compared_with_the_remote_one(monkeypatch):
    calls = []

    def git(*arguments):
        calls.append(arguments)
        return ["origin/main", "topic"] if arguments[0] == "for-each-ref" else ["abc"]

    monkeypatch.setattr(tests_of, "git", git)
    tests_of.changed(None)
    assert ("merge-base", "HEAD", "origin/main") in calls
