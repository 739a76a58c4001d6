"""PyDirectML's own programs, with their weights, on real pictures.

They lie in the folder Python/samples of github.com/microsoft/DirectML; none of it is in this
repository. ``ANYDML_PYDIRECTML_SAMPLES`` names a copy of that folder::

    ANYDML_PYDIRECTML_SAMPLES=…/Python/samples python -m pytest -m heavy tests/graphs
"""

import gc
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
image = pytest.importorskip("PIL.Image")

from support.pydirectml_programs import run_program  # noqa: E402
from support.torch_graphs import difference, run_graph  # noqa: E402

VARIABLE = "ANYDML_PYDIRECTML_SAMPLES"
SAMPLES = Path(os.environ.get(VARIABLE, "."))

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no folder"),
    pytest.mark.filterwarnings("ignore"),  # of the programs
]

STYLES = ("candy", "la_muse", "mosaic", "udnie")
PICTURE = "DefaultImage.jpg"


def run(script, *arguments):
    """A program's exit status is 0, and its results are PyTorch's; the times of both."""
    start = time.perf_counter()
    status, computed = run_program(script, *arguments)
    seconds = time.perf_counter() - start
    assert status == 0
    (one,) = computed
    reference = run_graph(one.graph, one.inputs)
    for found, expected in zip(one.outputs, reference.values(), strict=True):
        error = difference(np.array(found), expected)
        print(f"{script.stem} {' '.join(arguments)}: {seconds:.2f} s, {error:.1e} from PyTorch")
        assert error <= 1e-4
    return one


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    text = []

    def show(self):
        text.append(self)

    monkeypatch.setattr(image.Image, "show", show)
    yield text
    gc.collect()  # programs leave files to the collector, which warns


def test_mnist(capsys):
    run(SAMPLES / "mnist.py")
    assert "Number is: 1\n" in capsys.readouterr().out


def test_squeezenet(capsys):
    run(SAMPLES / "squeezenet.py")
    printed = capsys.readouterr().out
    assert any(breed in printed for breed in ("poodle", "terrier", "spaniel", "Shih-Tzu")), printed


def test_superres(no_windows):
    run(SAMPLES / "superres.py")
    assert [text.size for text in no_windows] == [(672, 672)]


@pytest.mark.parametrize("style", STYLES)
def test_candy(style, no_windows):
    run(SAMPLES / "candy.py", PICTURE, f"{style}_tensor_data")
    (text,) = no_windows
    assert text.size == (720, 720)
    assert np.array(text).std() > 30


def test_mobilenet(tmp_path, capsys):
    """The last weights are in no public storage: seeded random ones stand in for them."""
    folder = tmp_path / "samples"
    folder.mkdir()
    for path in SAMPLES.iterdir():
        if path.name == "mobile_net_data":
            shutil.copytree(path, folder / path.name)
        else:
            (folder / path.name).symlink_to(path.resolve())
    weights = np.random.default_rng(0).normal(0, 0.05, (1000, 1280, 1, 1)).astype(np.float32)
    np.save(folder / "mobile_net_data" / "mobilenetv20_output_pred_weight.npy", weights)
    one = run(folder / "mobilenet.py")
    assert one.outputs[0].size == 1000
    assert "Category: " in capsys.readouterr().out
