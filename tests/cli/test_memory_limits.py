"""`--memory-limit`: every size that a user may write, and models that need more than there is."""

import json
import resource

import pytest

from anydml.cli import command as cli

FLOATS = {"initialValuesDataType": "FLOAT32", "initialValues": {"value": 1, "valueCount": 300}}
TENSOR = {"DataType": "FLOAT32", "Sizes": [300]}
COPY = {"type": "ELEMENT_WISE_IDENTITY", "InputTensor": TENSOR, "OutputTensor": TENSOR}


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    """Runs the command on a model of two resources of 1,200 bytes each; status and errors."""
    monkeypatch.chdir(tmp_path)

    def run(command, limit, output="B", **resource):
        bindings = {"InputTensor": "A", "OutputTensor": output}
        model = {
            "resources": {"A": FLOATS | resource, "B": FLOATS},
            "dispatchables": {"copy": COPY},
            "commands": [{"type": "dispatch", "dispatchable": "copy", "bindings": bindings}],
        }
        (tmp_path / "model.json").write_text(json.dumps(model))
        status = cli.main([command, "model.json", f"--memory-limit={limit}"])
        out, err = capfd.readouterr()
        return status, out if command == "check" and not err else err

    return run


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("limit", "fits"),
    [("2400", 1), ("2400B", 1), ("3K", 1), (" 3 kib ", 1), ("3KB", 1), ("2399", 0), ("2K", 0),
     ("0", 0), ("0E", 0)],
)  # fmt: skip
def test_a_limit(call, command, limit, fits):
    status, text = call(command, limit)
    assert status == (0 if fits else 1)
    assert ("(--memory-limit)" in text) is not bool(fits)


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    "limit", ["2T", "3PiB", "9E", "16EB", "999999999999999T", 2**63, 10**30, "9" * 640]
)
def test_a_limit_of_any_size(call, command, limit):
    assert call(command, limit)[0] == 0


def test_a_large_limit_allocates_nothing(call):
    call("run", "1M")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert call("run", "100G")[0] == 0  # the text may have a 64th of it
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18  # KiB


@pytest.mark.parametrize(
    "limit", ["", "x", "-1", "+1", "1.5G", "3X", "K", "1e9", "inf", "0x10", "1,000", "1_000",
              "3 K B", "9" * 641, "9" * 5000],
)  # fmt: skip
def test_what_is_no_limit(call, limit):
    status, text = call("run", limit)
    assert status == 2
    assert "'--memory-limit': expected a number of bytes, or one with a unit of K" in text
    assert "such as 1000000, 512M or 4GiB, got " in text
    assert len(text) < 500


@pytest.mark.parametrize("size", [2**50, 2**63 - 1, 2**63, 2**64 - 1])
def test_more_memory_than_there_is(call, size):
    wrong = f"Resource 'A': {size} bytes could not be allocated."
    status, text = call("run", 10**30, sizeInBytes=size)
    assert (status, text) == (1, f"Error: {wrong}\n")
    # Where two tensors are in one resource, their places are compared before anything runs.
    same = {"name": "A", "elementOffset": 300}
    for command in ("run", "check"):
        status, text = call(command, 10**30, same, sizeInBytes=size)
        assert (status, wrong in text) == (1, True)
