"""Models and files made to do harm: clear lines, within a second and the stated memory."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from model_files import only, split_model, tensor, value_resource, zeros

import anydml as dml
from anydml import ModelError
from anydml.models import Limits, load_model, run_model
from anydml.models.report import report
from support.seconds import result_within

BIG = 2**32 - 1
SECONDS = 1.0
MEBIBYTES = 64


def split(parts, **fields):
    return {
        "type": "SPLIT", "InputTensor": tensor([parts]), "OutputCount": parts,
        "OutputTensors": [tensor([1])] * parts, "Axis": 0, **fields,
    }  # fmt: skip


def with_desc(**fields):
    model = split_model()
    model["dispatchables"]["split"]["desc"] |= fields
    return model


def with_sizes(sizes, **fields):
    return with_desc(InputTensor=tensor(sizes, **fields), OutputTensors=[tensor(sizes, **fields)])


def strides_that_defeat_the_search(count):
    # Many differences of coordinates come close to cancelling, so that none can be left out.
    sizes, strides = [30, 100, 30, 2, 2, 30, 3, 30], [
        1131441948, 2940675, 619548, 365863, 496092, 3832031, 1745625029, 11584493,
    ]  # fmt: skip
    outputs = [
        tensor(sizes, Strides=[strides[0], strides[1] + 2 * i, *strides[2:]]) for i in range(count)
    ]
    desc = {"type": "SPLIT", "InputTensor": tensor([1]), "OutputCount": count, "Axis": 0}
    return {
        "resources": {},
        "commands": [],
        "dispatchables": {"s": desc | {"OutputTensors": outputs}},
    }


def dispatchables(count):
    desc = split(1) | {"Axis": 9}
    return only() | {"dispatchables": {f"d{i}": desc for i in range(count)}}


def commands(command, count, **resources):
    return only({"r": value_resource([1, 2])} | resources, [command] * count)


WRITE = {"type": "writeFile", "resource": "r"}

MODELS = {
    # Sizes and counts.
    "valueCount 1e18": only({"r": value_resource({"value": 1, "valueCount": 10**18})}),
    "valueCount 2^32": only({"r": value_resource({"value": 1, "valueCount": 2**32})}),
    "valueCount 2^32 - 1": only({"r": value_resource({"value": 1, "valueCount": BIG}, "FLOAT64")}),
    "sizeInBytes": only({"r": value_resource([1], sizeInBytes=2**64 - 1)}),
    "offset": only({"r": value_resource([1], initialValuesOffsetInBytes=2**64 - 1)}),
    "both": only(
        {"r": value_resource([1], sizeInBytes=2**64 - 1, initialValuesOffsetInBytes=2**63)}
    ),
    "OutputCount": with_desc(OutputCount=2**32),
    "OutputCount 2^32 - 1": with_desc(OutputCount=BIG),
    "Axis": with_desc(Axis=BIG),
    "sizes": with_sizes([BIG] * 8),
    "more sizes": with_sizes([BIG] * 64),
    "thousands of sizes": with_sizes([BIG] * 30_000),
    "total size": with_sizes([2], TotalTensorSizeInBytes=2**64 - 4),
    "strides": with_sizes([BIG, 2], Strides=[BIG, BIG]),
    "strides without sizes": with_sizes([2], Strides=[1, 1, 1]),
    "strides that defeat the search": strides_that_defeat_the_search(100),
    "dimensions": commands(WRITE | {"targetPath": "a.npy", "dimensions": [BIG] * 32}, 1),
    "alignment": with_sizes([2], GuaranteedBaseOffsetAlignment=2**31),
    # Numbers.
    "1e400": '{"resources": {"r": {"initialValues": [1e400], "initialValuesDataType": "FLOAT64"}}'
    ', "dispatchables": {}, "commands": []}',
    "1e400 as a size": json.dumps(with_desc(Axis=7777)).replace("7777", "1e400"),
    "5000 digits": json.dumps(with_desc(Axis=7777)).replace("7777", "9" * 5000),
    "4000 digits": json.dumps(with_desc(Axis=7777)).replace("7777", "9" * 4000),
    "4000 digits of a float": only({"r": value_resource([10**4000])}),
    "NaN": json.dumps(with_desc(Axis=7777)).replace("7777", "NaN"),
    # Depth.
    "deep arrays": "[" * 200_000,
    "deep objects": '{"resources":' * 20_000,
    "deep values": '{"resources": {"r": {"initialValues": ' + "[" * 900 + "]" * 900 + "}}, "
    '"dispatchables": {}, "commands": []}',
    # Names.
    "long names": only(
        {"a" * 90_000: {}},
        [{"type": "print", "resource": "b" * 50_000}, {"type": "x" * 50_000}],
    ),
    "long values": with_desc(InputTensor=tensor([2], "x" * 90_000, Flags=["y" * 90_000])),
    "names of control characters": only(
        {"\x1b[2J\0\ud800": value_resource([1]) | {"\x07": 1}},
        [{"type": "print", "resource": "\x9b"}],
    ),
    "targets": only(
        {"r": value_resource([1])},
        [WRITE | {"targetPath": name} for name in ("\0", "\ud800", "a\nb", "x" * 9999, "/" * 999)],
    ),
    # Many of everything.
    "misspelt resources": only(
        {"a" * 20 + str(i): value_resource([1], "UINT8") for i in range(450)},
        [{"type": "print", "resource": "a" * 20 + f"x{i}y"} for i in range(4000)],
    ),
    "misspelt sources": only(
        {"a" * 20 + str(i): value_resource([1], "UINT8") for i in range(450)},
        [{"type": "dispatch", "dispatchable": "none",
          "bindings": {"x": ["a" * 20 + f"x{i}y" for i in range(8000)]}}],
    ),
    "misspelt operators": only()
    | {"dispatchables": {str(i): {"type": f"QUANTIZEED_LINEARX{i}"} for i in range(5500)}},
    "members that nothing reads": only() | {f"x{i}": 1 for i in range(20_000)},
    "members twice": '{"resources": {' + ",".join(['"a": {}'] * 20_000) + '}, "dispatchables": {}, '
    '"commands": []}',
    "wrong commands": only(commands=[{}] * 50_000),
    "resources": only({f"r{i}": value_resource([1]) for i in range(3000)}),
    "resources from files": only(
        {f"r{i}": {"initialValues": {"sourcePath": "sub/x.npy"}} for i in range(3000)}
    ),
    "dispatchables": dispatchables(1000),
    "prints": commands({"type": "print", "resource": "r"}, 5000),
    "bind points": split_model()
    | {
        "commands": [
            {"type": "dispatch", "dispatchable": "split",
             "bindings": {f"p{i}": "A" for i in range(10_000)}},
        ]
    },
    "overlapping parts": {
        "resources": {"r": zeros(1000)},
        "dispatchables": {"s": split(1000)},
        "commands": [
            {"type": "dispatch", "dispatchable": "s",
             "bindings": {"InputTensor": "r", "OutputTensors": ["r"] * 1000}},
        ],
    },
    "files": only(
        {"r": value_resource([1])},
        [WRITE | {"targetPath": f"{'a/' * 20}{i}"} for i in range(500)],
    ),
    "nested folders": commands(WRITE | {"targetPath": "a/" * 511 + "a"}, 1),
    "objects": '{"resources": [' + "{}," * 90_000 + '], "dispatchables": {}, "commands": []}',
    "comments": "/*" * 100_000,
    "strings": '"\\' * 100_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("untrusted")
    (path / "sub").mkdir()
    np.save(path / "sub" / "x.npy", np.zeros(2, "f4"))
    return path


def attempt(folder, name):
    """Checks and runs a model; every line that it gives."""
    model = MODELS[name]
    path = folder / "model.json"
    path.write_text(model if isinstance(model, str) else json.dumps(model), encoding="utf-8")
    limits = Limits(folder / name.replace(" ", "_"), memory_limit=2**26)
    found = report(path, dml.Device("cpu"), limits)
    lines = [*found.unreadable, *found.lines()]
    try:
        run_model(load_model(path, limits), write=lambda _: None)
    except ModelError as error:
        assert not found.good
        lines.append(str(error))
    else:
        assert found.good
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_clear_lines_within_a_second(folder, name):
    lines = result_within(2 * SECONDS, lambda: attempt(folder, name))  # a check and a run
    for line in "\n".join(lines).split("\n"):
        assert line.isprintable()
        assert len(line) < 1500


@pytest.mark.slow
def test_the_stated_memory(tmp_path):
    """All of them in a process of their own, whose peak stays near that of a harmless model."""
    code = (
        "import pathlib, resource, sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_model_untrusted as tests\n"
        "folder = pathlib.Path(sys.argv[2])\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "tests.attempt(folder, 'Axis'); before = peak()\n"
        "for name in tests.MODELS.keys() - {'Axis'}:\n"
        "    tests.attempt(folder, name)\n"
        "    assert peak() - before < tests.MEBIBYTES, (name, before, peak())\n"
    )
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "sub" / "x.npy", np.zeros(2, "f4"))
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__), str(tmp_path)],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
