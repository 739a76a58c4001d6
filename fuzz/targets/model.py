"""Any bytes as a JSON model: checked and run, or refused in clear lines, with nothing touched."""

from __future__ import annotations

import atexit
import copy
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import anydml as dml
from anydml.core.errors import ModelError
from anydml.models import Limits, load_model, run_model
from anydml.models.report import report
from anydml.ops._registry import OPERATORS
from fuzz.targets import watch

_ROOT = Path(tempfile.mkdtemp(prefix="anydml-fuzz-"))
atexit.register(shutil.rmtree, _ROOT, ignore_errors=True)
_FOLDER, _OUT = _ROOT / "model", _ROOT / "out"
_DEVICE = dml.Device("cpu")


def _prepare() -> set[str]:
    (_FOLDER / "sub").mkdir(parents=True)
    np.save(_FOLDER / "x.npy", np.arange(6, dtype="f4"))
    np.save(_FOLDER / "sub" / "i.npy", np.array([1, 0], dtype="u4"))
    (_FOLDER / "raw.bin").write_bytes(bytes(range(24)))
    (_FOLDER / ".hidden").write_bytes(b"secret12")
    (_FOLDER / "link.bin").symlink_to("/etc/hostname")
    os.mkfifo(_FOLDER / "fifo.bin")
    (_FOLDER / "model.json").write_bytes(b"{}")
    return _files()


def _files() -> set[str]:
    return {str(path) for path in _ROOT.rglob("*") if _OUT not in (path, *path.parents)}


_BEFORE = _prepare()
_LIMITS = Limits(_OUT, memory_limit=2**20)


def run(data: bytes) -> None:
    """Check and run the model; what the check finds does not run, and the other way round."""
    path = _FOLDER / "model.json"
    path.write_bytes(data)
    with watch.limits():
        try:
            wrong = _wrong(path)
            run_model(load_model(path, _LIMITS), _DEVICE, _LIMITS, write=_check_printable)
        except ModelError as error:
            watch.message(str(error))
        else:
            assert not wrong, f"it ran, in spite of {wrong}"
    if _OUT.exists():
        shutil.rmtree(_OUT)
    assert _files() == _BEFORE, "other files than the output were touched"


def _wrong(path: Path) -> list[str]:
    found = report(path, _DEVICE, _LIMITS)
    json.dumps(found.as_json())
    for line in found.lines():
        watch.message(line)
    return [] if found.good else [*found.unreadable, *found.problems, "or something else"]


def _check_printable(text: str) -> None:
    assert text.replace("\n", "").isprintable(), f"not printable: {text!r}"


_WORDS = [
    "FLOAT32", "FLOAT16", "FLOAT64", "UINT8", "INT8", "UINT32", "INT64", "UNKNOWN", "INT4",
    "OWNED_BY_DML", "dispatch", "print", "writeFile", "hlsl", "deferred", "nan", "-inf",
    "INCREASING", "DECREASING", "DmlCompileOp", "x.npy", "sub/i.npy", "raw.bin", ".hidden",
    "link.bin", "fifo.bin", "../x", "/dev/zero", ".", "a/b.npy", "out.bin", "\0", "\ud800", "\x1b[",
    "x" * 300, *OPERATORS,
]  # fmt: skip
_NAMES = [
    "initialValues", "initialValuesDataType", "initialValuesOffsetInBytes", "sizeInBytes", "value",
    "valueCount", "valueStart", "valueDelta", "sourcePath", "type", "desc", "Desc", "bindings",
    "executionFlags", "dmlCompileType", "dispatchable", "resource", "verbose", "targetPath",
    "dimensions", "name", "elementOffset", "elementCount", "elementSizeInBytes", "counter",
    "DataType", "Sizes", "Strides", "Flags", "DimensionCount", "TotalTensorSizeInBytes",
    "GuaranteedBaseOffsetAlignment", "Type", "InputTensor", "InputTensors", "InputCount",
    "OutputTensor", "OutputTensors", "OutputCount", "IndicesTensor", "UpdatesTensor",
    "OutputValueTensor", "OutputIndexTensor", "OutputCountTensor", "OutputCoordinatesTensor",
    "Axis", "K", "AxisDirection", "IndexDimensions", "InputDimensionCount",
    "IndicesDimensionCount", "BatchDimensionCount",
]  # fmt: skip
_NUMBERS = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 24, -1, 255, 256, 2**16, 2**20, 2**31 - 1, 2**31, 2**32 - 1,
    2**32, 2**63, 2**64 - 1, 2**64, 10**18, 10**400, 0.5, -0.0, 1e300, 1e-300, True, False, None,
]  # fmt: skip


def mutated(
    data: bytes, maximum: int, seed: int, any_bytes: Callable[[bytes, int], bytes]
) -> bytes:
    """Another model: a change of its tree mostly, of its bytes now and then."""
    chance = random.Random(seed)
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict) or chance.random() < 0.1:
        return any_bytes(data, maximum)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5))):
        _change(tree, chance)
    try:
        text = json.dumps(tree).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return any_bytes(data, maximum)
    return text if len(text) <= maximum else any_bytes(data, maximum)


def _change(tree: Any, chance: random.Random) -> None:
    places = [*_places(tree)]
    if not places:
        return
    container, key = chance.choice(places)
    other = copy.deepcopy(chance.choice(places))  # a copy, so that no tree holds itself
    match chance.randrange(8):
        case 0 | 1:
            container[key] = _leaf(chance, container[key])
        case 2:
            container[key] = other[0][other[1]]
        case 3:
            del container[key]
        case 4 if isinstance(container, dict):
            container[chance.choice([*_NAMES, *_WORDS])] = container[key]
        case 5 if isinstance(container, dict):
            container[chance.choice(_NAMES)] = container.pop(key)
        case 6 if isinstance(container, list):
            container[key:key] = [container[key]] * chance.choice((1, 1, 2, 9))
        case _:
            container[key] = [container[key]] if chance.random() < 0.5 else {"desc": container[key]}


def _leaf(chance: random.Random, old: Any) -> Any:
    if isinstance(old, int) and not isinstance(old, bool) and chance.random() < 0.4:
        return old + chance.choice((-1, 1, 4, -4, old))
    if chance.random() < 0.2:
        return [chance.choice(_NUMBERS[:10]) for _ in range(chance.randrange(5))]
    return chance.choice(chance.choice((_WORDS, _NAMES, _NUMBERS)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree: its container, and the key or index there."""
    pending = [value]
    while pending:
        container = pending.pop()
        for key in [*(container if isinstance(container, dict) else range(len(container)))]:
            yield container, key
            if isinstance(container[key], dict | list):
                pending.append(container[key])
