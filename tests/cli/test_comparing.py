"""`anydml compare`, and `run` with `--expect` and `--json`."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from anydml import cli
from anydml.comparison import Bounds, compare

MODEL = Path(__file__).parents[2] / "examples" / "models" / "split.json"


@pytest.fixture
def files(tmp_path):
    def save(*arrays):
        paths = [tmp_path / f"{i}.npy" for i in range(len(arrays))]
        for path, array in zip(paths, arrays, strict=True):
            np.save(path, array)
        return list(map(str, paths))

    return save


def test_the_largest_and_the_first(files, capsys):
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = expected.copy()
    got[0, 1] += 0.25
    got[1, 2] += 1
    names = files(got, expected)
    assert cli.main(["compare", *names]) == 1
    largest, first = capsys.readouterr().out.splitlines()
    assert "largest difference at [1, 2]: got 6.0, expected 5.0 (1, " in largest
    assert "2 exceed rtol 0, atol 0, ulp 0; the first at [0, 1]: got 1.25, expected 1.0" in first
    assert cli.main(["compare", *names, "--atol", "1"]) == 0
    assert cli.main(["compare", *names, "--rtol", "0.3"]) == 0
    assert cli.main(["compare", *names, "--ulp", str(2**22)]) == 0
    assert cli.main(["compare", names[1], names[1]]) == 0
    assert capsys.readouterr().out.endswith(": equal\n")


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_ulps_across_zero(kind):
    tiny = np.nextafter(np.zeros(1, kind), np.ones(1, kind))
    found = compare(tiny, -tiny, Bounds(ulp=3))
    assert found.first is None
    assert found.largest.ulps == 3  # -tiny, -0, 0, tiny
    assert compare(tiny, -tiny, Bounds(ulp=2)).beyond == 1


def test_special_values():
    x = np.array([np.nan, np.inf, -np.inf, 0.0])
    assert compare(x, -x * [1, -1, -1, 1]).largest is None
    assert compare(x, np.array([0, -np.inf, -np.inf, 0])).beyond == 2


def test_large_integers_that_are_one_float():
    found = compare(np.array([2**63 - 1]), np.array([2**63 - 2]))
    assert found.beyond == 1
    assert found.first.difference == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (np.zeros((3, 2), np.float32), r"the same shape, got (2, 3) and (3, 2)"),
        (np.zeros((2, 3)), "the same dtype, got float32 and float64"),
        (np.array([None]), "File '"),
        (np.array([1 + 2j]), "Expected elements of a tensor's type"),
    ],
)
def test_what_cannot_be_compared(files, capsys, other, message):
    assert cli.main(["compare", *files(np.zeros((2, 3), np.float32), other)]) == 1
    assert message in capsys.readouterr().err


def test_a_pipe_is_no_file(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.npy")
    assert cli.main(["compare", str(tmp_path / "pipe.npy"), str(tmp_path / "pipe.npy")]) == 1
    assert "Expected a regular file" in capsys.readouterr().err


def test_a_run_is_compared_with_a_file(files, capsys, monkeypatch, tmp_path):
    assert cli.main(["run", str(MODEL), "--json"]) == 0
    resources = json.loads(capsys.readouterr().out)["resources"]
    name, resource = next(iter(resources.items()))
    assert {"dataType", "sizes", "values"} == set(resource)
    array = np.array(resource["values"], resource["dataType"].lower()).reshape(resource["sizes"])
    same, other, flat, swapped = files(array, array + 1, array.ravel(), array.astype(">f4"))
    raw = tmp_path / "raw.bin"
    raw.write_bytes(array.tobytes())
    for path in (flat, swapped, raw):
        assert cli.main(["run", str(MODEL), "--expect", f"{name}={path}"]) == 0
    raw.write_bytes(array.tobytes() + b"1234")
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={raw}"]) == 1
    assert "expected the same shape" in capsys.readouterr().err
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={same}"]) == 0
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={other}"]) == 1
    assert "exceed rtol 0" in capsys.readouterr().err
    assert cli.main(["run", str(MODEL), "--expect", f"nobody={same}"]) == 2
    assert cli.main(["run", str(MODEL), "--json", "--timing"]) == 2
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={tmp_path / 'none.npy'}"]) == 1
    assert cli.main(["check", str(MODEL), "--feature-level", "2.1"]) == 0
