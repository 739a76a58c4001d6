"""DxDispatch's own models: those that need no HLSL or ONNX run.

They lie in the folder DxDispatch/models of github.com/microsoft/DirectML; none of it is in this
repository. ``ANYDML_DXDISPATCH_MODELS`` names a copy of that folder::

    ANYDML_DXDISPATCH_MODELS=…/DxDispatch/models python -m pytest -m heavy tests/models
"""

import os
from pathlib import Path

import numpy as np
import pytest

from anydml import Device, ModelError
from anydml.models import Limits, load_model, run_model

VARIABLE = "ANYDML_DXDISPATCH_MODELS"
MODELS = sorted(Path(os.environ.get(VARIABLE, os.devnull)).glob("[!_]*.json"))
OTHER_KINDS = ("hlsl", "onnx")

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no folder"),
]

# Element by element, from the operators' pages.
PRINTED = {
    "dmlSerializedGraph_matmul_add": f"Resource 'model_output': {', '.join(['12.25'] * 5)}\n",
    "dml_cumulative_product": "Resource 'Out': 2, 8, 64, 192\n",
    "dml_element_wise_add1": "Resource 'Out': 6, 10, -0.432332\n",  # (exp(-2) - 1) / 2
    "dml_element_wise_clip": "Resource 'A': -2.5, -2.5, -2, -1, 0, 1, 2, 2.5, 2.5\n",
    "dml_owned_tensors": "Resource 'Out': 6, 10, -2\n",
    "dml_slice": "Resource 'output': 7, 9, 12, 14, 17, 19\n",
    "dml_split": "Resource 'Out1': 1, 2\nResource 'Out2': 3, 4\nResource 'Out3': 5, 6\n",
}


def results(path, device, folder):
    """What a model prints, and its resources at the end."""
    limits, pieces = Limits(folder), []
    buffers = run_model(load_model(path, limits), Device(device), limits, pieces.append)
    return "".join(pieces), buffers


def test_they_run(tmp_path):
    ran = []
    for path in MODELS:
        if path.stem.startswith(OTHER_KINDS):
            with pytest.raises(ModelError, match="which needs DxDispatch"):
                load_model(path)
            continue
        text, buffers = results(path, "cpu", tmp_path / path.stem / "cpu")
        other, expected = results(path, "reference", tmp_path / path.stem / "reference")
        assert text == PRINTED.get(path.stem, text) == other
        for name, octets in buffers.items():
            np.testing.assert_allclose(
                octets[: octets.size // 4 * 4].view(np.float32),
                expected[name][: octets.size // 4 * 4].view(np.float32),
                rtol=1e-5,
            )
        ran.append(path.stem)
    assert ran
    assert set(PRINTED) <= set(ran)
    assert len(ran) == 21


def test_the_picture(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (path,) = (path for path in MODELS if path.stem == "image_io")
    results(path, "cpu", tmp_path)
    with image.open(path.parent / "chihuahua.jpg") as picture:
        pixels = np.asarray(picture.resize((512, 512), image.Resampling.BICUBIC), float)
    with image.open(tmp_path / "output.png") as written:
        grey = np.asarray(written, float)
    assert np.abs(grey - pixels @ [0.2989, 0.5870, 0.1140]).max() < 0.51
