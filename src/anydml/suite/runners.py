"""Implementations that are judged: our devices, DxDispatch, the package `directml`, and others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, ArgumentError, ModelError
from anydml.core.levels import FeatureLevel
from anydml.core.problems import Problem
from anydml.devices.backends import NAMES, is_name
from anydml.devices.device import Device
from anydml.graphs.directmlx import functions
from anydml.models import Limits, run_model
from anydml.models.check import model_from_text
from anydml.models.formats import read_array
from anydml.ops._fields import Role
from anydml.ops._registry import from_json
from anydml.suite.case import Case, Refused
from anydml.suite.cases import view

_UNSUPPORTED: Final = ("887A0004", "DXGI_ERROR_UNSUPPORTED")
"""How DirectML reports a data type that the hardware lacks."""
_LONGEST_OUTPUT: Final = 2000


class Runner(Protocol):
    """An implementation: it takes a case and returns outputs by resource, or `Refused`.

    A runner with an attribute `feature_level` gets the cases of that level only.
    """

    def run(self, case: Case) -> Any:
        """Run the model of a case."""


def runner_named(name: str, limit: float, level: FeatureLevel) -> Runner:
    """The runner of a name; the limit is the most seconds of a case.

    Raises
    ------
    AnyDMLError
        No runner has this name, or it cannot be loaded on this machine.
    """
    kind, _, path = name.partition("=")
    if kind == "dxdispatch":
        return DxDispatch(path or "dxdispatch", limit, level)
    if name == "directml":
        return DirectMLPackage(level)
    if is_name(name):
        return DeviceRunner(name)
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ArgumentError(
            f"runner: expected one of {', '.join(NAMES)}, dxdispatch[=PATH], directml or "
            f"MODULE:OBJECT, got {short_repr(name)}"
        )
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise ArgumentError(f"runner: {module}:{attribute} cannot be loaded: {error!r}") from error
    found = found() if isinstance(found, type) else found
    if not callable(getattr(found, "run", None)):
        raise ArgumentError(f"runner: expected an object with run(case), got {short_repr(found)}")
    runner: Runner = found
    return runner


class DeviceRunner:
    """A device of this package, which gives the reasons of refusals."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        Device(kind)  # which reports a missing library

    def run(self, case: Case) -> Any:
        """Run the model on the device, at the level of the case."""
        device = Device(self._kind, feature_level=case.level)
        commands = [item for item in case.document["commands"] if item["type"] == "dispatch"]
        text = json.dumps({**case.document, "commands": commands}).encode()
        limits = Limits(input_dir=case.model.parent)
        try:
            model = model_from_text(text, "case", limits)
            rules = [
                (violation.path, violation.code)
                for dispatchable in model.dispatchables.values()
                for violation in dispatchable.desc.violations(case.level)
            ]
            if rules:
                return Refused(f"broken rules: {rules}", rules=rules)
            return run_model(model, device, limits, lambda _: None)
        except ModelError as error:
            codes = [Problem(problem).code for problem in error.problems]
            return Refused(str(error), unsupported="missing_kernel" in codes)


class DxDispatch:
    """Microsoft's tool: a process for each case, whose outputs it writes to files."""

    def __init__(self, path: str, limit: float, level: FeatureLevel) -> None:
        found = shutil.which(path)
        if found is None:
            raise ArgumentError(f"runner: expected an executable, got {short_repr(path)}")
        self._path, self._limit, self.feature_level = os.path.abspath(found), limit, level

    def run(self, case: Case) -> Any:
        """Run the tool in an empty folder."""
        with TemporaryDirectory(prefix="anydml-") as folder:
            try:
                done = subprocess.run(
                    [self._path, str(case.model.resolve())], cwd=folder, timeout=self._limit,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise TimeoutError from error
            text = done.stdout[-_LONGEST_OUTPUT:].decode(errors="replace").strip()
            if done.returncode < 0 or done.returncode > 255:  # a signal, or an exception of Windows
                raise RuntimeError(f"exit status {done.returncode}: {text}")
            if done.returncode:
                return Refused(text, unsupported=any(word in text for word in _UNSUPPORTED))
            return {name: _written(Path(folder), name) for name in case.outputs}


def _written(folder: Path, output: str) -> Any:
    name = output.replace("[", "_").replace("]", "")
    try:
        return read_array(folder / f"{name}.npy")
    except AnyDMLError as error:
        return f"{output}: {error}"  # which is no array


class DirectMLPackage:
    """The package `directml` for Windows: graphs of one operator, by DirectMLX's functions.

    It describes tensors itself, so broken descriptors cannot be expressed. Tensors are packed.
    """

    def __init__(self, level: FeatureLevel) -> None:
        try:
            self._package: Any = import_module("directml")
        except ImportError as error:
            raise ArgumentError(
                f"runner: the package directml cannot be loaded: {error}"
            ) from error
        self._device = self._package.Device()
        self.feature_level = level

    def run(self, case: Case) -> Any:
        """Call the function of the operator."""
        if case.verdict == "refused" or case.operator == "graph":
            return Refused("the package describes outputs itself", unsupported=True)
        desc: Any = from_json(case.document["dispatchables"]["operator"])
        names = [name for name, versions in functions().items() if type(desc) in versions]
        function = next((f for n in names if (f := getattr(self._package, n, None))), None)
        if function is None:
            return Refused("no function of the package", unsupported=True)
        graph, bound, operands = self._package.Graph(self._device), {}, []
        buffers = case.buffers()
        for info in desc.tensor_fields(Role.INPUT):
            members = []
            for path, tensor in info.paths(getattr(desc, info.attribute)):
                sizes, dtype = [*tensor.sizes], tensor.data_type.numpy
                members.append(graph.input(sizes, dtype=dtype, name=path))
                strided = view(sizes, tensor.element_strides, buffers[path])
                bound[path] = np.ascontiguousarray(strided)
            operands.append(members if info.many else next(iter(members), None))
        attributes = {
            info.attribute: self._value(getattr(desc, info.attribute))
            for info in desc.fields()
            if info.role is Role.ATTRIBUTE and info.counts is None
        }
        attributes = {name: value for name, value in attributes.items() if value is not None}
        try:
            found = function(*operands, **attributes)
        except TypeError as error:
            return Refused(f"other arguments: {error}", unsupported=True)
        outputs = [*found] if isinstance(found, tuple | list) else [found]
        if len(outputs) != len(case.outputs):
            return Refused("other outputs", unsupported=True)
        results = zip(case.outputs.items(), graph.compile(outputs)(bound), strict=True)
        return {name: np.asarray(value).astype(out.dtype) for (name, out), value in results}

    def _value(self, value: Any) -> Any:
        """An attribute; a member of the package's enumeration for one of ours."""
        kind = getattr(self._package, type(value).__name__, None)
        return getattr(kind, value.suffix) if hasattr(value, "suffix") and kind else value
