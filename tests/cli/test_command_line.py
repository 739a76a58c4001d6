"""The command `anydml`: what it prints, where, and its exit status."""

import json
import os
import re
import subprocess
import sys

import pytest

import anydml as dml
from anydml import cli
from anydml.registry import OPERATORS

TENSOR = {"DataType": "FLOAT32", "Sizes": [4]}
LONG = {"DataType": "FLOAT32", "Sizes": [300]}


def model(**tensor):
    return {
        "resources": {
            "A": {
                "initialValuesDataType": "FLOAT32",
                "initialValues": {"valueStart": 0.5, "valueDelta": 1, "valueCount": 300},
            },
            "Out": {
                "initialValuesDataType": "FLOAT32",
                "initialValues": {"value": 0, "valueCount": 300},
            },
        },
        "dispatchables": {
            "[bold]copy": {
                "type": "SPLIT",
                "InputTensor": LONG | tensor,
                "OutputCount": 1,
                "OutputTensors": [LONG],
                "Axis": 0,
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "[bold]copy",
                "bindings": {"InputTensor": "A", "OutputTensors": "Out"},
            },
            {"type": "print", "resource": "Out"},
            {"type": "writeFile", "resource": "Out", "targetPath": "out.dat"},
        ],
    }


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(model()))

    def run(*arguments, **change):
        if change:
            (tmp_path / "model.json").write_text(json.dumps(model() | change))
        status = cli.main(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return run


PRINTED = "Resource 'Out': " + ", ".join(f"{i + 0.5:g}" for i in range(300)) + "\n"


class TestRun:
    def test_it_prints_and_writes(self, call, tmp_path):
        assert call("run", "model.json") == (0, PRINTED, "")
        assert (tmp_path / "out.dat").stat().st_size == 1200

    def test_output_dir(self, call, tmp_path):
        assert call("run", "model.json", "--output-dir", "made/here")[0] == 0
        assert (tmp_path / "made" / "here" / "out.dat").exists()

    def test_devices(self, call):
        for device in ("cpu", "reference", "auto"):
            assert call("run", "model.json", "--device", device)[0] == 0
        status, _, err = call("run", "model.json", "--device", "tpu")
        assert (status, "'tpu' is not one of" in err) == (2, True)

    def test_feature_level(self, call):
        for level in ("3_0", "DML_FEATURE_LEVEL_3_0"):
            assert call("run", "model.json", "--feature-level", level)[0] == 0
        status, out, err = call("run", "model.json", "--feature-level", "2_1")
        assert (status, out) == (1, "")
        assert err.startswith("Error: Dispatchable '[bold]copy' (SPLIT): refused at feature level")
        status, _, err = call("run", "model.json", "--feature-level", "2_7")
        assert (status, "expected one of 1_0, 2_0" in err) == (2, True)

    @pytest.mark.parametrize(("size", "fits"), [("2400", 1), ("2400B", 1), ("3K", 1), ("2399", 0)])
    def test_memory_limit(self, call, size, fits):
        status, _, err = call("run", "model.json", "--memory-limit", size)
        assert (status, "--memory-limit" in err) == ((0, False) if fits else (1, True))

    @pytest.mark.parametrize("size", ["", "x", "-1", "1.5G", "3X", "K"])
    def test_wrong_memory_limit(self, call, size):
        status, _, err = call("run", "model.json", "--memory-limit", size)
        assert (status, "--memory-limit" in err) == (2, True)

    def test_allow_outside_paths(self, call, tmp_path):
        out = {"type": "writeFile", "resource": "Out", "targetPath": str(tmp_path.parent / "o.dat")}
        status, _, err = call("run", "model.json", commands=[out])
        assert status == 1
        assert "--allow-outside-paths" in err
        assert call("run", "model.json", "--allow-outside-paths")[0] == 0

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("none.json", None, "none.json' cannot be read: No such file or directory"),
            (".", None, "Expected a regular file"),
            ("m.json", b"", "JSON parse error at line 1, column 1"),
            ("m.json", b"\xff\xfe{\0}\0", "Expected UTF-8"),
            ("m.json", b"{}", "Field 'resources' is required"),
            ("m.json", b"[" * 100_000, "nested too deeply"),
        ],
    )
    def test_errors_are_one_message(self, call, tmp_path, name, content, message):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        for command in ("run", "check"):
            status, out, err = call(command, name)
            assert (status, out) == (1, "")
            assert err.startswith("Error: ")
            assert message in err
            assert err.count("\n") == 1

    def test_it_prints_what_came_before_a_failure(self, call):
        commands = model()["commands"]
        bad = {"type": "writeFile", "resource": "Out", "targetPath": "model.json/x"}
        status, out, err = call("run", "model.json", commands=[*commands[:2], bad])
        assert (status, out) == (1, PRINTED)
        assert err.startswith("Error: Command at index 2: File ")


class TestCheck:
    def test_good(self, call):
        assert call("check", "model.json") == (
            0,
            "Dispatchable '[bold]copy' (SPLIT): accepted at feature level 6_4\n"
            "  Lowest feature level that accepts it: 3_0\n",
            "",
        )

    def test_every_dispatchable_and_every_violation(self, call, tmp_path):
        good, broken = model()["dispatchables"]["[bold]copy"], {"type": "GEMM"}
        wide = good | {"InputTensor": LONG | {"DataType": "FLOAT64"}, "OutputTensors": []}
        many = {"broken": broken, "wide": wide, "good": good}
        status, out, _ = call("check", "model.json", "--feature-level", "3_0", dispatchables=many)
        assert status == 1
        assert out.splitlines() == [
            "Dispatchable 'wide' (SPLIT): refused at feature level 3_0",
            "  SPLIT.InputTensor.DataType: expected one of FLOAT32, FLOAT16, INT32, INT16, INT8, "
            "UINT32, UINT16, UINT8 at feature level 3_0 (FLOAT64 from 4_1), got FLOAT64",
            "  SPLIT.OutputCount: expected 0 (the length of OutputTensors), got 1",
            "  SPLIT.OutputCount: expected at least 1, got 0",
            "  Lowest feature level that accepts it: none",
            "Dispatchable 'good' (SPLIT): accepted at feature level 3_0",
            "  Lowest feature level that accepts it: 3_0",
            f"Dispatchable 'broken': Expected an operator that anydml has ({', '.join(OPERATORS)}),"
            " got 'GEMM'.",
            "Command at index 0: dispatches '[bold]copy', which the model lacks.",
        ]

    def test_what_a_level_lacks(self, call, tmp_path):
        (tmp_path / "model.json").write_text(json.dumps(model(DataType="INT64")))
        status, out, _ = call("check", "model.json")
        assert status == 1
        assert "SPLIT.OutputTensors[0].DataType: expected INT64 (InputTensor.DataType)" in out

    def test_bindings(self, call):
        commands = model()["commands"]
        commands[0]["bindings"]["OutputTensors"] = []
        status, out, _ = call("check", "model.json", commands=commands)
        assert status == 1
        assert "Command at index 0: Bind point 'OutputTensors' takes 1 resources, but 0 were" in out

    def test_nothing_runs(self, call, tmp_path):
        call("check", "model.json")
        assert not (tmp_path / "out.dat").exists()


class TestLookingUp:
    def test_ops(self, call):
        status, out, _ = call("ops")
        assert status == 0
        for name in OPERATORS:
            assert re.search(rf"^\s*{name}\s+\d_\d\s+1\.\.8\s+FLOAT", out, re.MULTILINE), name

    @pytest.mark.parametrize("name", ["TOP_K1", "DML_OPERATOR_TOP_K1", "TopK1", "top_k1"])
    def test_one_operator(self, call, name):
        status, out, _ = call("ops", name)
        assert status == 0
        assert out.startswith("DML_OPERATOR_TOP_K1  (anydml.TopK1)\n")
        for text in ("Worked example", "AxisDirection", "one of INCREASING, DECREASING", "5_0"):
            assert text in out

    @pytest.mark.parametrize("name", OPERATORS)
    def test_every_operator(self, call, name):
        _, out, _ = call("ops", name)
        for info in OPERATORS[name].fields():
            assert info.name in out
        assert "[]" not in out

    def test_no_such_operator(self, call):
        status, _, err = call("ops", "GEMM")
        assert (status, "expected one of GATHER, " in err) == (2, True)

    def test_devices(self, call):
        with dml.num_threads(3):
            status, out, _ = call("devices")
        assert status == 0
        assert re.search(r"cpu\s+\S+\s+3\b", out)
        assert re.search(r"reference\s+Python\s+1\b", out)

    def test_version(self, call):
        assert call("--version") == (0, f"anydml {dml.__version__}\n", "")

    def test_help(self, call):
        status, out, _ = call("--help")
        assert status == 0
        for command in ("run", "check", "ops", "devices", "bench"):
            assert re.search(rf"^  {command}\s", out, re.MULTILINE)

    @pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["run", "a", "b"], ["--what"]])
    def test_wrong_usage(self, call, arguments):
        status, out, err = call(*arguments)
        assert (status, out) == (2, "")
        assert "Usage: anydml" in err


class TestBench:
    def test_it_is_there(self, call):
        status, out, _ = call("bench", "--help")
        assert (status, "Usage: anydml bench" in out) == (0, True)

    def test_what_it_needs_is_missing(self, call, monkeypatch):
        monkeypatch.setitem(sys.modules, "anydml.bench.command", None)
        status, _, err = call("bench", "--peers", "x")
        assert (status, "bench needs the extra anydml[bench]" in err) == (1, True)


class TestProcess:
    def python(self, *arguments, **options):
        return subprocess.run(
            [sys.executable, *arguments], stderr=subprocess.PIPE, check=False, **options
        )

    def test_a_reader_that_goes_away(self, call, tmp_path):
        for arguments in (["run", "model.json"], ["ops"]):
            reading, writing = os.pipe()
            os.close(reading)
            done = self.python("-m", "anydml", *arguments, stdout=writing)
            os.close(writing)
            assert (done.returncode, done.stderr) == (1, b"")

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_full_disk(self, call, unbuffered):
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        with open("/dev/full", "wb") as full:
            done = self.python("-m", "anydml", "run", "model.json", stdout=full, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith(b"Error: ")
        assert done.stderr.count(b"\n") == 1

    def test_output_is_plain_text_without_a_terminal(self, call):
        done = self.python("-m", "anydml", "run", "model.json", stdout=subprocess.PIPE)
        assert done.stdout.decode() == PRINTED

    def test_a_name_that_the_terminal_cannot_show(self, call, tmp_path):
        changed = json.loads(json.dumps(model()).replace('"Out"', '"Größe"'))
        (tmp_path / "model.json").write_text(json.dumps(changed))
        environment = os.environ | {"PYTHONIOENCODING": "ascii"}
        done = self.python(
            "-m", "anydml", "run", "model.json", stdout=subprocess.PIPE, env=environment
        )
        assert done.returncode == 0
        assert done.stdout.startswith(b"Resource 'Gr\\xf6\\xdfe': 0.5, ")

    def test_importing_the_package_loads_no_command_line(self):
        code = (
            "import sys, anydml; print([m for m in ('click', 'rich', 'json5') if m in sys.modules])"
        )
        assert self.python("-c", code, stdout=subprocess.PIPE).stdout == b"[]\n"


def test_interrupt(call, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_model", interrupted)
    assert call("run", "model.json") == (1, "", "\nError: interrupted\n")


def test_no_memory(call, monkeypatch):
    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr(cli, "run_model", exhausted)
    assert call("run", "model.json") == (1, "", "Error: not enough memory\n")
