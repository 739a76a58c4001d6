"""The conformance suite: what is written, and what the runs of right and broken runners report."""

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.ops._registry import OPERATORS
from anydml.suite import Refused, run, write
from anydml.suite.case import read_suite
from anydml.suite.cases import candidates, is_expressible
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from anydml.suite.judge import judge
from anydml.suite.runners import DeviceRunner

SOME = ("TOP_K1", "ELEMENT_WISE_EXP", "NONZERO_COORDINATES", "JOIN", "AVERAGE_POOLING", "graph")
KINDS = list(dict.fromkeys(OPERATORS.values()))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite") / "small"
    write(folder, SOME)
    return folder


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite") / "default"
    write(folder)
    return folder


def files_of(folder):
    return {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}


def records_of(folder):
    return json.loads((folder / "index.json").read_text())["cases"]


def part(folder, target, count, **wanted):
    """A copy of a suite with the first cases that have such records."""
    shutil.copytree(folder, target)
    index = json.loads((folder / "index.json").read_text())
    fits = [c for c in index["cases"] if all(c[name] == value for name, value in wanted.items())]
    (target / "index.json").write_text(json.dumps({**index, "cases": fits[:count]}))
    return target


def test_the_same_seed_gives_the_same_bytes(small, tmp_path):
    write(tmp_path / "same", SOME)
    write(tmp_path / "other", SOME, seed=1)
    contents = [
        {name: path.read_bytes() for name, path in files_of(folder).items()}
        for folder in (small, tmp_path / "same", tmp_path / "other")
    ]
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


@pytest.mark.parametrize("name", ["cpu", "reference", "xla", "onnxruntime"])
def test_our_devices_are_right(small, name):
    pytest.importorskip({"xla": "jax"}.get(name, name if name == "onnxruntime" else "numpy"))
    report = run(small, DeviceRunner(name))
    assert report.differences == []
    assert {result.status for result in report.results} == {"right"}


@pytest.mark.slow
def test_the_default_suite_has_everything(default):
    records = records_of(default)
    files = files_of(default)
    assert len(records) <= 5000
    assert sum(path.stat().st_size for path in files.values()) <= 30e6
    verdicts = Counter((record["operator"], record["verdict"]) for record in records)
    for kind in KINDS:
        assert verdicts[kind.NAME, "accepted"] >= 5
        assert verdicts[kind.NAME, "refused"] >= 3
    assert verdicts["graph", "accepted"] >= 24
    assert {record["source"] for record in records} == {"page", "observed"}
    codes = {record["code"] for record in records if record["verdict"] == "refused"}
    latest = max(dml.FeatureLevel)
    for kind in KINDS:
        desc = descriptor(Seeded(0), kind, packed=True)
        for other, level in candidates([desc], latest):
            violations = other.violations(level)
            if violations and is_expressible(other, violations):
                assert {violation.code for violation in violations} <= codes


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["cpu", "reference", "onnxruntime", pytest.param("xla", marks=pytest.mark.heavy)]
)
def test_our_devices_are_right_by_the_default_suite(default, name):
    pytest.importorskip({"xla": "jax"}.get(name, name if name == "onnxruntime" else "numpy"))
    report = run(default, name)
    counts = Counter(result.status for result in report.results)
    # XLA decides the sign of a zero, and the order of sums that cancel.
    assert counts.pop("outside", 0) <= (4 if name == "xla" else 0)
    assert counts.keys() == {"right"}
    assert counts["right"] >= 4000


def test_a_level_has_its_own_verdicts(tmp_path):
    write(tmp_path / "old", ["TOP_K1", "ACTIVATION_GELU"], "3_0")
    records = records_of(tmp_path / "old")
    assert {r["code"] for r in records if r["operator"] == "ACTIVATION_GELU"} == {
        "unsupported_operator"
    }
    assert {"unsupported_operator"} < {r["code"] for r in records if r["verdict"] == "refused"} | {
        ""
    }
    assert run(tmp_path / "old", DeviceRunner("cpu")).differences == []


def test_the_index_says_from_which_level_a_verdict_holds(small):
    for case, record in zip(read_suite(small), records_of(small), strict=True):
        if case.operator == "graph":
            continue
        desc = dml.from_json(case.document["dispatchables"]["operator"])
        since = dml.FeatureLevel.parse(record["since"])
        if case.verdict == "accepted":
            assert desc.minimum_level() is since
        else:
            codes = {violation.code for violation in desc.violations(since)}
            assert case.code in codes
            assert [[v.path, v.code] for v in desc.violations(case.level)].count(
                [case.path, case.code]
            )


# ---- planted faults ------------------------------------------------------------------------------

RUNNER = '''
import os, sys, time
import numpy as np
from anydml.suite import Refused
from anydml.suite.runners import DeviceRunner

FAULTS = {faults!r}

class Odd:
    def __array__(self, *args, **kwargs):
        raise ZeroDivisionError("odd")

class Runner:
    cpu = DeviceRunner("cpu")

    def run(self, case):
        print("rubbish", flush=True)
        os.write(1, b"more rubbish")
        fault = FAULTS.get(case.name)
        if fault == "crash": os.abort()
        if fault == "exit": os._exit(0)
        if fault == "stop": sys.exit("stopped")
        if fault == "raise": raise ValueError("no")
        if fault == "hang": time.sleep(1000)
        if fault == "refuse": return Refused("E_INVALIDARG")
        if fault == "lack": return Refused(unsupported=True)
        if fault == "accept": return {{}}
        if fault == "other reason": return Refused(rules=[("TOP_K1.Axis", "invalid_other")])
        if fault == "no reason": raise Refused
        if fault == "text": return "rubbish"
        found = self.cpu.run(case)
        if isinstance(found, dict):
            for name in case.outputs:
                if fault == "odd": found[name] = Odd()
                if fault == "type": found[name] = found[name].astype("c8")
                if fault == "short": found[name] = found[name].reshape(-1)[:0]
                if fault == "value": found[name] = found[name] + found[name].dtype.type(1)
                if fault == "imprecise": found[name] = found[name] * np.float32(1 + 2.0**-19)
        return found
'''  # fmt: skip

STATUS = {
    "crash": "crashed", "exit": "crashed", "stop": "crashed", "raise": "crashed", "hang": "hung",
    "refuse": "refused", "lack": "unsupported", "accept": "accepted", "other reason": "wrong",
    "no reason": "right", "text": "wrong", "odd": "wrong", "type": "wrong", "short": "wrong",
    "value": "wrong", "imprecise": "outside",
}  # fmt: skip


@pytest.mark.slow
def test_each_planted_fault_is_the_result_of_its_case(small, tmp_path, monkeypatch):
    cases = {case.name: case for case in read_suite(small)}
    numbers = [
        name for name, case in cases.items()
        if case.operator == "ELEMENT_WISE_EXP" and case.verdict == "accepted"
        and np.isfinite(case.stored("OutputTensor", "expected")).all()
        and case.outputs["OutputTensor"].dtype == np.float32
    ]  # fmt: skip
    others = [n for n, c in cases.items() if c.verdict == "accepted" and c.operator == "TOP_K1"]
    refused = [n for n, c in cases.items() if c.verdict == "refused" and c.operator == "TOP_K1"]
    more = [n for n, c in cases.items() if c.operator == "JOIN" and c.verdict == "accepted"]
    faults = {
        numbers[0]: "value", numbers[1]: "imprecise", others[0]: "refuse", others[1]: "lack",
        others[2]: "text", others[3]: "odd", others[4]: "type", others[5]: "short",
        others[6]: "crash", refused[0]: "accept", refused[1]: "other reason",
        refused[2]: "no reason", refused[3]: "raise", more[0]: "hang", more[1]: "exit",
        more[2]: "stop",
    }  # fmt: skip
    assert {*faults.values()} == STATUS.keys()
    (tmp_path / "planted.py").write_text(RUNNER.format(faults=faults))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    report = run(small, "planted:Runner", time_limit=4)
    found = {result.case: result.status for result in report.results}
    assert list(found) == list(cases)
    assert found == {name: STATUS[faults[name]] if name in faults else "right" for name in cases}
    details = {result.case: result.detail for result in report.results}
    assert "expected" in details[numbers[0]]
    assert "no result after 4 seconds" in details[more[0]]
    assert "E_INVALIDARG" in details[others[0]]
    first = "\n".join(report.lines())
    assert f"First difference: {report.differences[0].case}" in first
    assert first.endswith(f"{len(report.differences)} differences in {len(cases)} cases")


@pytest.mark.slow
def test_a_crash_that_takes_two_cases_is_nobody_s_result(small, tmp_path, monkeypatch):
    """Halves of the batch do not crash, and their results count."""
    (tmp_path / "together.py").write_text(
        "import os\n"
        "from anydml.suite.runners import DeviceRunner\n"
        "class Runner:\n"
        "    cpu, seen = DeviceRunner('cpu'), 0\n"
        "    def run(self, case):\n"
        "        self.seen += 1\n"
        "        if self.seen > 15: os.abort()\n"
        "        return self.cpu.run(case)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    report = run(small, "together:Runner", operators=["TOP_K1"])
    assert {result.status for result in report.results} == {"right"}
    assert len(report.results) > 15


def test_an_object_is_judged_in_this_process(small):
    class Lazy:
        def run(self, case):
            if case.verdict == "accepted":
                raise Refused("not today")
            return {}

    report = run(small, Lazy())
    counts = Counter(result.status for result in report.results)
    assert counts == {
        "refused": sum(c.verdict == "accepted" for c in read_suite(small)),
        "accepted": sum(c.verdict == "refused" for c in read_suite(small)),
    }


def test_unspecified_rows_and_gaps_do_not_count(small):
    """Coordinates behind the count, and elements between those of a strided output."""
    for case in read_suite(small, ["NONZERO_COORDINATES"]):
        if case.verdict == "refused":
            continue
        answer = dict(DeviceRunner("cpu").run(case))
        output = case.outputs["OutputCoordinatesTensor"]
        flat = np.full(output.length + 3, 77, output.dtype)
        values = np.full(output.sizes, 99, output.dtype).reshape(-1)
        values[: output.elements] = case.stored("OutputCoordinatesTensor", "expected").reshape(-1)[
            : output.elements
        ]
        strides = [stride * flat.itemsize for stride in output.strides]
        np.ndarray(output.sizes, flat.dtype, flat, 0, strides)[...] = values.reshape(output.sizes)
        answer["OutputCoordinatesTensor"] = flat
        assert judge(case, answer).status == "right"
        if output.elements:
            flat[0] += 1
            assert judge(case, answer).status == "wrong"


# ---- stand-ins for the runners of Windows -----------------------------------------------------


def executable(path, body):
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}")
    path.chmod(0o755)
    return path


RUNS = """
from anydml.cli.command import main
sys.exit(main(["run", sys.argv[1], "--output-dir", ".", "--overwrite"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["accepted", "refused"])
def test_a_stand_in_for_dxdispatch(small, tmp_path, verdict):
    folder = part(small, tmp_path / "part", 4, verdict=verdict, operator="AVERAGE_POOLING")
    tool = executable(tmp_path / "dxdispatch", RUNS)
    report = run(folder, f"dxdispatch={tool}")
    assert [result.status for result in report.results] == ["right"] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "verdict", "status"),
    [
        ("os.abort()", "accepted", "crashed"),
        ("time.sleep(1000)", "accepted", "hung"),
        ("sys.exit('E_INVALIDARG')", "accepted", "refused"),
        ("sys.exit('failed with 887A0004')", "accepted", "unsupported"),
        ("print('done')", "accepted", "wrong"),
        ("open('OutputValueTensor.npy', 'w').write('rubbish')", "accepted", "wrong"),
        ("print('done')", "refused", "accepted"),
        ("os.abort()", "refused", "crashed"),
    ],
)
def test_a_broken_stand_in_for_dxdispatch(small, tmp_path, body, verdict, status):
    folder = part(small, tmp_path / "part", 1, verdict=verdict, operator="TOP_K1")
    tool = executable(tmp_path / "dxdispatch", body)
    (result,) = run(folder, f"dxdispatch={tool}", time_limit=3).results
    assert result.status == status


@pytest.mark.slow
def test_only_the_level_of_the_suite_is_judged_by_dxdispatch(small, tmp_path):
    cases = read_suite(small, ["TOP_K1"])
    tool = executable(tmp_path / "dxdispatch", "sys.exit(1)")
    report = run(small, f"dxdispatch={tool}", operators=["TOP_K1"])
    latest = [case.name for case in cases if case.level is max(dml.FeatureLevel)]
    assert [result.case for result in report.results] == latest
    assert len(latest) < len(cases)


DIRECTML = """
import numpy as np
import anydml as dml

class Device:
    pass

class Graph:
    def __init__(self, device):
        self.builder = dml.GraphBuilder()
    def input(self, sizes, dtype=np.float32, name=""):
        return self.builder.input(name, dml.TensorDesc(dml.DataType.from_numpy(dtype), sizes))
    def compile(self, outputs):
        names = [f"y{i}" for i in range(len(outputs))]
        compiled = dml.Device("cpu").compile_graph(
            self.builder.build(**dict(zip(names, outputs, strict=True))))
        return lambda inputs: [*compiled(**inputs).values()]

def top_k(x, **attributes):
    return x.builder.top_k1(x, **attributes)

def exp(x, **attributes):
    return x.builder.exp(x, **attributes)
"""


@pytest.mark.slow
def test_a_stand_in_for_the_package(small, tmp_path, monkeypatch):
    (tmp_path / "directml.py").write_text(DIRECTML)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    report = run(small, "directml")
    assert report.differences == []
    right = {r.case.split("/")[0] for r in report.results if r.status == "right"}
    assert right == {"TOP_K1", "ELEMENT_WISE_EXP"}


# ---- known differences, bad folders, and the command ------------------------------------------


def test_known_differences(small, tmp_path, capsys, monkeypatch):
    (tmp_path / "lazy.py").write_text("class Lazy:\n    def run(self, case):\n        return {}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    command = ["suite", "run", str(small), "--operator", "TOP_K1", "--with"]
    known = str(tmp_path / "known.txt")
    assert cli.main([*command, "lazy:Lazy", "--write-expected", known]) == 1
    assert cli.main([*command, "lazy:Lazy", "--expected", known]) == 0
    assert "0 differences in 23 cases, and 23 that are expected" in capsys.readouterr().out
    assert cli.main([*command, "cpu", "--expected", known]) == 0
    out = capsys.readouterr().out
    assert out.count("no longer differs") == 23
    Path(known).write_text("TOP_K1/accepted-00\trefused\tnot today\n")
    assert cli.main([*command, "lazy:Lazy", "--expected", known, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["operators"] == {"TOP_K1": {"wrong": 9, "accepted": 14}}
    assert len(report["differences"]) == 23
    assert not any(item["expected"] for item in report["differences"])
    for line in ("TOP_K1/accepted-00 refused", "x\tright\tfine", "x\twrong\t"):
        Path(known).write_text(line)
        assert cli.main([*command, "cpu", "--expected", known]) == 1
        assert "line 1: expected a case" in capsys.readouterr().err


def changed_index(change):
    def spoil(folder):
        index = json.loads((folder / "index.json").read_text())
        change(index, index["cases"][0])
        (folder / "index.json").write_text(json.dumps(index))

    return spoil


HOSTILE = {
    "no index": lambda folder: (folder / "index.json").unlink(),
    "a folder": lambda folder: ((folder / "index.json").unlink(), (folder / "index.json").mkdir()),
    "no JSON": lambda folder: (folder / "index.json").write_text("{"),
    "deep": lambda folder: (folder / "index.json").write_text('{"cases":' + "[" * 100_000),
    "an array": lambda folder: (folder / "index.json").write_text("[]"),
    "format": changed_index(lambda index, case: index.update(format=2)),
    "cases": changed_index(lambda index, case: index.update(cases={})),
    "no cases": changed_index(lambda index, case: index.update(cases=[])),
    "a number": changed_index(lambda index, case: index.update(cases=[3])),
    "outside": changed_index(lambda index, case: case.update(name="../../etc/passwd")),
    "control": changed_index(lambda index, case: case.update(name="a/b-0\x1b[2J")),
    "verdict": changed_index(lambda index, case: case.update(verdict=["accepted"])),
    "level": changed_index(lambda index, case: case.update(level="9_9")),
    "no outputs": changed_index(lambda index, case: case.pop("outputs")),
    "unit": changed_index(lambda index, case: case["tolerance"].update(unit="miles")),
    "webnn": changed_index(lambda index, case: case.update(webnn={"ulp": 3})),
    "huge": changed_index(
        lambda index, case: case["outputs"]["OutputValueTensor"].update(
            sizes=[2**24] * 4, strides=[2**24] * 4
        )
    ),
    "other sizes": changed_index(
        lambda index, case: case["outputs"]["OutputValueTensor"].update(sizes=[9], strides=[1])
    ),
    "negative": changed_index(
        lambda index, case: case["outputs"]["OutputValueTensor"].update(sizes=[-1], strides=[1])
    ),
    "no model": lambda folder: (folder / "TOP_K1/accepted-00.json").unlink(),
    "no input": lambda folder: (folder / "TOP_K1/accepted-00.InputTensor.npy").unlink(),
    "no results": lambda folder: next(folder.glob("TOP_K1/accepted-00.*.expected.npy")).unlink(),
    "rubbish results": lambda folder: next(
        folder.glob("TOP_K1/accepted-00.*.expected.npy")
    ).write_bytes(b"rubbish"),
    "a model of another folder": lambda folder: (folder / "TOP_K1/accepted-00.json").write_text(
        '{"resources": {"x": {"initialValues": {"sourcePath": "../../x.npy"}}}}'
    ),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_bad_folder_is_one_error(small, tmp_path, capsys, hostile):
    folder = part(small, tmp_path / "bad", 3, operator="TOP_K1", verdict="accepted")
    HOSTILE[hostile](folder)
    assert cli.main(["suite", "run", str(folder), "--with", "cpu"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert "internal error" not in captured.err
    assert "\x1b" not in captured.err
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "FOLDER", "--with", "nonsense"], "expected one of cpu, "),
        (["run", "FOLDER", "--with", "json:missing"], "json:missing cannot be loaded"),
        (["run", "FOLDER", "--with", "json:dumps"], "expected an object with run(case)"),
        (["run", "FOLDER", "--with", "directml"], "directml cannot be loaded"),
        (["run", "FOLDER", "--with", "dxdispatch=/nowhere/dxdispatch"], "expected an executable"),
        (["run", "FOLDER", "--with", "cpu", "--time-limit", "0"], "expected a number above 0"),
        (["run", "FOLDER", "--with", "cpu", "--operator", "TOPK"], "did you mean 'TOP_K'?"),
        (["write", "NEW", "--operator", "TOPK"], "did you mean 'TOP_K'?"),
        (["write", "NEW", "--seed", "-1"], "expected an integer of at least 0"),
        (["write", "NEW", "--feature-level", "9_9"], "9_9"),
    ],
)
def test_wrong_usage(small, tmp_path, capsys, arguments, message):
    places = {"FOLDER": str(small), "NEW": str(tmp_path / "new")}
    assert cli.main(["suite", *(places.get(word, word) for word in arguments)]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_is_not_written_to(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert cli.main(["suite", "write", str(tmp_path), "--operator", "TOP_K1"]) == 1
    assert "expected a new or empty folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_command_writes_and_runs(tmp_path, capsys):
    folder = str(tmp_path / "suite")
    assert cli.main(["suite", "write", folder, "--operator", "SPLIT"]) == 0
    assert capsys.readouterr().out == "23 cases written\n"
    assert cli.main(["suite", "run", folder, "--with", "cpu"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 differences in 23 cases"
