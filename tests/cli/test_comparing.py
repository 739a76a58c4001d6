"""`anydml compare`, and `run` with `--expect` and `--json`."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.core.comparison import Bounds, compare

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


_LOOSE = [Bounds(rtol=0.5), Bounds(atol=1e300), Bounds(1.0, 1.0, 2**64 - 1)]


@pytest.mark.parametrize("bounds", _LOOSE, ids=str)
@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_no_bound_accepts_a_difference_that_is_not_finite(kind, bounds):
    special = np.array([np.nan, np.inf, -np.inf], kind)
    finite = np.array([0, np.finfo(kind).max, np.finfo(kind).min], kind)
    assert compare(special, special, bounds).largest is None
    for got in (np.roll(special, 1), np.roll(special, 2), finite):
        assert compare(got, special, bounds).beyond == 3
        assert compare(special, got, bounds).beyond == 3


def test_ulps_do_not_reach_nan_and_infinity():
    largest, infinite, nan = np.array([0x7BFF, 0x7C00, 0x7C01], np.uint16).view(np.float16)[:, None]
    for one, other in ((largest, infinite), (infinite, nan), (infinite, largest)):
        found = compare(one, other, Bounds(ulp=1))
        assert found.beyond == 1
        assert found.first.ulps is None


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("u8", 2**63 + 1000, 2**63),
        ("u8", 0, 2**64 - 1),
        ("i8", 2**62 + 1, 2**62 - 9),
        ("i8", -(2**63), 2**63 - 1),
        ("i4", -(2**31), 2**31 - 1),
        ("u1", 0, 255),
    ],
)
def test_integers_differ_by_exactly(kind, one, other):
    difference = abs(one - other)
    for got, expected in ((one, other), (other, one)):
        found = compare(np.array([got], kind), np.array([expected], kind), Bounds(atol=0.5))
        assert found.beyond == 1
        assert found.first.difference == difference
        assert f"({difference})" in found.lines()[0]


@pytest.mark.parametrize("kind", ["i1", "u1", "i4", "u8"])
@pytest.mark.parametrize("option", ["--rtol", "--atol", "--ulp"])
def test_integers_are_compared_exactly_whatever_the_bounds(files, capsys, kind, option):
    got, expected = np.array([[100, 7]], kind), np.array([[101, 7]], kind)
    names = files(got, expected)
    assert cli.main(["compare", *names, option, "1"]) == 1
    out = capsys.readouterr().out
    assert "1 differ (integers are compared exactly); the first at [0, 0]: got 100" in out


def test_files_in_fortran_order(files, capsys):
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    plain, transposed, other = files(array, np.asfortranarray(array), array.T)
    assert cli.main(["compare", plain, transposed]) == 0
    assert cli.main(["compare", transposed, plain]) == 0
    assert cli.main(["compare", plain, other]) == 1
    assert "expected the same shape, got (2, 3) and (3, 2)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        *(
            (option, value, f"expected a finite number of at least 0, got '{value}'")
            for option in ("--rtol", "--atol")
            for value in ("nan", "inf", "-inf", "-1", "1e999", "x")
        ),
        *(
            ("--ulp", value, f"expected an integer of at least 0, got '{value}'")
            for value in ("1.5", "-1", "nan", "")
        ),
    ],
)
def test_bounds_that_are_refused(files, capsys, option, value, message):
    (file,) = files(np.zeros(1))
    assert cli.main(["compare", file, file, option, value]) == 2
    assert message in capsys.readouterr().err


def test_a_raw_file_has_the_type_and_shape_of_the_other(tmp_path, files, capsys):
    array = np.arange(4, dtype=np.float32).reshape(2, 2)
    (file,) = files(array)
    raw = tmp_path / "raw.bin"
    raw.write_bytes(array.tobytes())
    for pair in ((file, str(raw)), (str(raw), file)):
        assert cli.main(["compare", *pair]) == 0
        assert "4 elements (float32 of shape (2, 2)): equal" in capsys.readouterr().out
    raw.write_bytes(bytes(473))
    assert cli.main(["compare", file, str(raw)]) == 1
    assert "expected 16 bytes (float32 of shape (2, 2)), got 473" in capsys.readouterr().err
    assert cli.main(["compare", str(raw), str(raw)]) == 0


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
    size = array.nbytes
    assert f"expected {size} bytes (float32 of shape " in capsys.readouterr().err
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={same}"]) == 0
    infinite = array.copy()
    infinite.flat[0] = np.inf
    (file,) = files(infinite)
    arguments = ["run", str(MODEL), "--expect", f"{name}={file}", "--rtol", "0.1", "--atol", "9"]
    assert cli.main(arguments) == 1
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={other}"]) == 1
    assert "exceed rtol 0" in capsys.readouterr().err
    assert cli.main(["run", str(MODEL), "--expect", f"nobody={same}"]) == 2
    assert cli.main(["run", str(MODEL), "--json", "--timing"]) == 2
    assert cli.main(["run", str(MODEL), "--expect", f"{name}={tmp_path / 'none.npy'}"]) == 1
    assert cli.main(["check", str(MODEL), "--feature-level", "2.1"]) == 0


def expect(files, got, expected, *options):
    """The statuses of `compare` and of a run of a model that copies `got`, which are equal."""
    one, other = files(got, expected)
    tensor = {"DataType": dml.DataType.from_numpy(got.dtype).suffix, "Sizes": list(got.shape)}
    operator = {"type": "ELEMENT_WISE_IDENTITY", "InputTensor": tensor, "OutputTensor": tensor}
    values = {"initialValuesDataType": tensor["DataType"], "initialValues": {"sourcePath": "0.npy"}}
    bindings = {"InputTensor": "x", "OutputTensor": "y"}
    model = {
        "resources": {"x": values, "y": values},
        "dispatchables": {"copy": operator},
        "commands": [{"type": "dispatch", "dispatchable": "copy", "bindings": bindings}],
    }
    path = Path(one).with_name("model.json")
    path.write_text(json.dumps(model))
    status = cli.main(["compare", one, other, *options])
    assert cli.main(["run", str(path), "--expect", f"y={other}", *options]) == status
    return status


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3), (1, 1, 2, 3), (6,), (1, 6)])
def test_shapes_that_a_run_and_compare_accept(files, shape):
    values = np.arange(6, dtype=np.float32)
    assert expect(files, values.reshape(1, 2, 3), values.reshape(shape)) == 0
    assert expect(files, values.reshape(1, 2, 3), values.reshape(shape) + 1) == 1


@pytest.mark.parametrize("shape", [(3, 2), (2, 1, 3), (2, 3, 1)])
def test_shapes_that_neither_accepts(files, shape):
    values = np.arange(6, dtype=np.float32)
    assert expect(files, values.reshape(1, 2, 3), values.reshape(shape)) == 1


def test_types_that_are_converted_on_request(files, capsys):
    third = np.array([1 / 3, np.nan, np.inf])
    assert expect(files, third.astype(np.float32), third) == 1
    assert "expected the same dtype, got float32 and float64" in capsys.readouterr().err
    assert expect(files, third.astype(np.float32), third, "--cast") == 0
    assert expect(files, third.astype(np.float32), third * 2, "--cast") == 1
    integers = np.array([1, -2])
    assert expect(files, integers.astype(np.int8), integers, "--cast") == 0
    for other in (np.array([1, 254]), integers.astype(float)):
        assert expect(files, integers.astype(np.int8), other, "--cast") == 1
        assert "expected values that int8 holds" in capsys.readouterr().err
