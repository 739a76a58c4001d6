"""Any bytes as a model's `.npy` file: refused in one line, or read as NumPy reads them."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np

from anydml.core.errors import ModelError
from anydml.models import Limits, load_model, run_model
from fuzz.targets import watch

_FOLDER = Path(tempfile.mkdtemp(prefix="anydml-fuzz-"))
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
_FILE = _FOLDER / "x.npy"
_MODEL = _FOLDER / "model.json"
_MODEL.write_text(
    json.dumps(
        {
            "resources": {"x": {"initialValues": {"sourcePath": "x.npy"}}},
            "dispatchables": {},
            "commands": [],
        }
    )
)
_LIMITS = Limits(memory_limit=2**24)


def run(data: bytes) -> None:
    """Read the file, and compare what is accepted with `numpy.load`."""
    _FILE.write_bytes(data)
    with watch.limits():
        try:
            found = run_model(load_model(_MODEL, _LIMITS), limits=_LIMITS)["x"]
        except ModelError as error:
            watch.message(str(error))
            return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers that Python 2 wrote
        expected = np.load(_FILE, allow_pickle=False)
    expected = expected.astype(expected.dtype.newbyteorder("="))
    octets = expected.tobytes()
    assert found.tobytes() == octets, "not what NumPy reads"
