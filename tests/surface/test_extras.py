"""A missing package is named with the command that installs it, for every extra."""

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
DEVELOPMENT = {"docs", "fuzz", "test"}
"""Extras for this repository, not for the package."""
ELSEWHERE = {"cuda"}
"""NVRTC is asked for after the driver: tests/cuda/test_host.py has one."""
NEVER = {"cupy"}
"""Only arrays of the library need the library."""

USES = {
    "bfloat16": ["dml.cast([1.0], 'bfloat16')"],
    "dask": ["import anydml.dask", "dml.dask", "from anydml import dask"],
    "image": ["load_model('a.json')"],
    "jax": ["import anydml.jax", "dml.jax", "from anydml import jax"],
    "onnx": ["dml.read_onnx('a.onnx')", "dml.to_onnx(graph)"],
    "onnxruntime": ["dml.Device('onnxruntime')"],
    "show": ["draw_graph(graph)"],
    "torch": ["import anydml.torch", "dml.torch.deterministic", "from anydml import torch"],
    "xla": ["dml.Device('xla')", "dml.Device('xla:cpu')"],
}
"""What needs an extra, in Python."""
WRAPPED = {"dml.cast([1.0], 'bfloat16')", "load_model('a.json')"}
"""Uses whose errors are about an argument or about a file, too."""
PICTURE = """{"resources": {"a": {"initialValuesDataType": "FLOAT32",
    "initialValues": {"sourcePath": "a.png"}}}, "dispatchables": {}, "commands": [
    {"type": "writeFile", "resource": "a", "targetPath": "a.png", "dimensions": [1, 1, 1, 1]}]}"""

SCRIPT = """
import json, sys
sys.modules.update(dict.fromkeys(json.loads(sys.argv[1])))  # as if these were not installed
import anydml as dml
from anydml.drawing import draw_graph
from anydml.models import load_model
pair = dml.TensorDesc("FLOAT32", (2,))
node = dml.OperatorNode(dml.ElementWiseAbs(input_tensor=pair, output_tensor=pair))
graph = dml.GraphDesc([node], [dml.InputEdge(0, 0, 0)], [], [dml.OutputEdge(0, 0, 0)])
for use in sys.argv[2:]:
    try:
        exec(use)
    except dml.AnyDMLError as error:
        print(type(error).__name__, getattr(error, "name", None), str(error).replace("\\n", " "))
"""


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def cases():
    """An extra and a package that it installs."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for extra in extras.keys() - DEVELOPMENT - ELSEWHERE - NEVER:
        for requirement in extras[extra]:
            yield extra, canonical(re.match(r"[\w.-]+", requirement)[0])


owners = cache(packages_distributions)


def modules_of(package):
    return [module for module, names in owners().items() if package in map(canonical, names)]


@pytest.mark.parametrize(("extra", "package"), sorted(cases()))
def test_a_package_that_is_missing(tmp_path, extra, package):
    modules = modules_of(package)
    (tmp_path / "a.json").write_text(PICTURE)
    (tmp_path / "a.onnx").touch()
    command = [sys.executable, "-c", SCRIPT, json.dumps(modules), *USES[extra]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(USES[extra])
    for line, use in zip(lines, USES[extra], strict=True):
        kind, name, message = line.split(" ", 2)
        assert f"pip install 'anydml[{extra}]'" in message
        if use not in WRAPPED:
            assert kind == "MissingPackageError"
            assert name in modules if modules else find_spec(name) is None
