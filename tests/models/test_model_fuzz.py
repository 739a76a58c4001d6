"""Whatever stands in a model, what comes out is a result or a `ModelError`."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_files import gather, split_model

import anydml as dml
from anydml import ModelError
from anydml.core.levels import LATEST
from anydml.documents import Options, UsageError
from anydml.documents.models import ModelDocument
from anydml.models import Limits, load_model, run_model
from anydml.models.report import report
from anydml.models.text import plain

pytestmark = pytest.mark.slow

NAMES = ["A", "Out1", "split", "value", "valueCount", "valueStart", "valueDelta", "sourcePath",
         "name", "elementOffset", "elementSizeInBytes", "Strides", "Flags", "Desc", "desc",
         "bindings", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment", "dimensions",
         "targetPath", "verbose", "sizeInBytes", "InputTensor", "IndicesTensor"]  # fmt: skip
WORDS = ["FLOAT32", "UINT8", "INT64", "UNKNOWN", "OWNED_BY_DML", "dispatch", "print", "writeFile",
         "hlsl", "TOP_K1", "JOIN", "deferred", "nan", "out.npy", "..", "/dev/zero", ".", "\0",
         "\ud800", "\x1b["]  # fmt: skip

leaves = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, 2, 3, 4, 6, 8, 16, -1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**400])
    | st.sampled_from([0.0, 0.5, -1.0, 1e300])
    | st.sampled_from(NAMES + WORDS)
)
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value):
    """Every container in a JSON value, with each key or index in it."""
    keys = range(len(value)) if isinstance(value, list) else value
    for key in keys:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from places(value[key])


@st.composite
def mutated(draw, model=None):
    model = copy.deepcopy(model or split_model())
    model["resources"]["B"] = {
        "initialValuesDataType": "INT16",
        "initialValues": {"valueStart": 1, "valueDelta": 2, "valueCount": 3},
    }
    model["commands"].append({"type": "writeFile", "resource": "B", "targetPath": "b.npy"})
    for _ in range(draw(st.integers(1, 4))):
        container, key = draw(st.sampled_from([*places(model)]))
        if draw(st.booleans()):
            container[key] = draw(json_values)
        elif isinstance(container, dict):
            moved = container.pop(key)
            if draw(st.booleans()):
                container[draw(st.sampled_from(NAMES))] = moved
        else:
            container.insert(key, copy.deepcopy(draw(st.sampled_from([*container, 0]))))
        if not model:
            break
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def attempt(folder, text):
    """Load, check and run; True where it ran."""
    path = folder / "model.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    limits = Limits(folder / "out", memory_limit=2**20, overwrite=True)
    device = dml.Device("cpu")
    found = report(path, device, limits)
    json.dumps(found.as_json())
    try:
        run_model(load_model(path, limits), device, write=lambda piece: None)
    except ModelError:
        return False
    assert found.good, [*found.lines()]  # what the check refuses does not run
    return True


def test_the_model_itself_runs(folder):
    assert attempt(folder, json.dumps(split_model()))


@given(model=mutated())
def test_mutated_models(folder, model):
    attempt(folder, json.dumps(model))


@given(model=mutated(gather([1, 2])))
def test_mutated_models_are_fixed_or_refused(folder, model):
    (folder / "gather.json").write_text(json.dumps(model))
    document = ModelDocument(folder / "gather.json", Limits(memory_limit=2**20), Options())
    try:
        text, lines = document.fixed(LATEST)
    except (ModelError, UsageError):
        return
    assert (json.loads(text) == model) is not bool(lines)


@given(data=st.data())
def test_mutated_texts(folder, data):
    text = json.dumps(split_model(), indent=1)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 8, len(text))))
        piece = data.draw(st.text(alphabet="{}[]\",:/*\\\n 0e-.#'aN", max_size=4))
        text = text[:start] + piece + text[end:]
    attempt(folder, text)


@given(st.text(alphabet='{}[]",/*\\\n 1a'))
def test_comments_of_anything(text):
    try:
        stripped = plain(text)
    except ModelError:
        stripped = text
        assert "/*" in text
    assert len(stripped) == len(text)


@given(data=st.binary(max_size=40))
def test_any_bytes(folder, data):
    (folder / "bytes.json").write_bytes(data)
    with pytest.raises(ModelError):
        load_model(folder / "bytes.json")
