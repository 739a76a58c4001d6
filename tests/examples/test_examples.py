"""Every example runs: models print what is expected, scripts pass their own checks."""

import ast

import numpy as np
import pytest
from running import MODELS, ROOT, needed, run_anydml, run_python

import anydml as dml

SCRIPTS = sorted(path for path in (ROOT / "examples").glob("[a-z]*.py"))
BESIDE_PYTORCH = sorted((ROOT / "examples" / "pytorch").glob("[a-z]*.py"))
GRAPHS = sorted((ROOT / "examples" / "graphs").glob("[a-z]*.py"))
PRINTED = sorted(MODELS.glob("*.out"))
REFUSED = sorted(MODELS.glob("*.check"))


@pytest.mark.parametrize("script", [*SCRIPTS, *GRAPHS], ids=lambda path: path.stem)
def test_script_runs_and_shows_a_result(script):
    libraries = needed(script.read_text())
    for library in libraries:
        pytest.importorskip(library)
    done = run_python(str(script), strict=not libraries)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("script", BESIDE_PYTORCH, ids=lambda path: path.stem)
def test_script_beside_pytorch_repeats_itself(script):
    pytest.importorskip("torch")
    done = run_python(str(script), "--device", "cpu", "--runs", "2")
    assert done.returncode == 0, done.stderr
    assert "the same bits in 2 runs" in done.stdout


@pytest.mark.parametrize("printed", PRINTED, ids=lambda path: path.stem)
def test_model_prints_its_expected_text(printed):
    done = run_anydml("run", str(printed.with_suffix(".json")))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed.read_text()


@pytest.mark.parametrize("printed", PRINTED, ids=lambda path: path.stem)
def test_check_finds_nothing_wrong_with_a_model_that_runs(printed):
    done = run_anydml("check", str(printed.with_suffix(".json")))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("explained", REFUSED, ids=lambda path: path.stem)
def test_check_explains_a_refused_model(explained):
    model = explained.with_suffix(".json")
    done = run_anydml("check", "--feature-level", "2_1", str(model))
    assert done.returncode == 1
    assert done.stdout == explained.read_text()
    assert run_anydml("run", "--feature-level", "2_1", str(model)).returncode == 1


def test_every_model_has_its_expected_text():
    assert sorted(path.stem for path in MODELS.glob("*.json")) == sorted(
        path.stem for path in [*PRINTED, *REFUSED]
    )


def test_scripts_use_names_that_the_package_exports():
    for script in SCRIPTS:
        tree = ast.parse(script.read_text())
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "dml"
        }
        assert used <= set(dml.__all__), script.name


def test_a_picture_is_sharpened(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(100, 140, (20, 30, 3), np.uint8)
    image.fromarray(pixels).save(tmp_path / "in.png")
    script = ROOT / "examples" / "graphs" / "sharpen_picture.py"
    done = run_python(str(script), "in.png", "out.png", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    with image.open(tmp_path / "out.png") as found:
        assert found.size == (30, 20)
        assert np.asarray(found).std() > 1.5 * pixels.std()
