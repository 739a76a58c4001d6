"""The node tests of the `onnx` package: each passes, or has one reason why it does not run.

Whatever of them ONNX Runtime's CPU runs, runs here with the same values, except for named cases.
"""

import warnings
from collections import Counter
from ctypes import string_at
from itertools import repeat

import numpy as np
import pytest

import anydml as dml
from anydml import ModelError
from anydml.core.levels import LATEST

onnx = pytest.importorskip("onnx")

DIFFERENT = {
    "test_clip_min_greater_than_max": "CLIP is max(Min, min(x, Max)); ONNX gives Max",
    "test_maxunpool_export_with_output_shape": "indices into the result before it is padded",
    "test_resize_downsample_scales_linear_align_corners": "with integer sizes, as in ONNX Runtime",
    **dict.fromkeys(
        ("test_attention_4d_causal_fp16", "test_attention_4d_causal_fp16_expanded"),
        "an expanded function in FLOAT16: each of its operators rounds once",
    ),
}
"""Tests whose values differ, with the decision."""

CODES = {
    "no_kernel", "no_kernel_for_version", "no_kernel_for_type", "not_supported", "not_a_tensor",
    "control_flow", "refused", "shader", "no_kernel_on_cpu",
}  # fmt: skip
"""Why a model does not run by DirectML's operators alone."""


@pytest.fixture(scope="module")
def cases():
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


REFUSED = dict.fromkeys(
    (f"test_qlinearmatmul_{rank}_{kind}_float16"
     for rank in ("2D", "3D") for kind in ("int8", "uint8")),
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY has FLOAT32 scales, and the provider registers FLOAT16",
)  # fmt: skip
"""Tests that ONNX Runtime's CPU runs and DirectML refuses, with the reason."""


def array(value):
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def given(value):
    """An input: an array, a sequence or None."""
    if isinstance(value, list | tuple):
        return [given(item) for item in value]
    return value if value is None else array(value)


def free_shapes(model, inputs):
    """The shapes of inputs with free dimensions."""
    kinds = {item.name: item.type.tensor_type.shape.dim for item in model.graph.input}
    return {name: value.shape for name, value in inputs.items() if isinstance(value, np.ndarray)
            if not all(size.HasField("dim_value") for size in kinds[name])}  # fmt: skip


def by_onnx_runtime(model, inputs):
    """The outputs by ONNX Runtime's CPU; None if it cannot run the model."""
    from building import session

    try:
        made = session(model)
        kinds = " ".join(end.type for end in (*made.get_inputs(), *made.get_outputs()))
        if any(word in kinds for word in ("seq(", "optional(", "map(", "string")):
            return made.run(None, inputs)
        feeds = {name: bound(value) for name, value in inputs.items()}
        return [elements(value) for value in made.run_with_ort_values(None, feeds)]
    except Exception:  # which have no public base
        return None


def bound(value):
    """An array for ONNX Runtime, of any type: elements of few bits are packed."""
    import onnxruntime

    tensor = onnx.numpy_helper.from_array(value)
    data = np.zeros(value.nbytes, np.uint8)
    raw = np.frombuffer(tensor.raw_data, np.uint8)
    data[: raw.size] = raw
    array = data.view(value.dtype).reshape(value.shape)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, tensor.data_type)


def elements(value):
    """The array of a result of ONNX Runtime."""
    tensor = onnx.TensorProto(data_type=value.element_type(), dims=value.shape())
    tensor.raw_data = string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return onnx.numpy_helper.to_array(tensor)


def same(one, other, case):
    """Whether results are equal within the tolerance of a test."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, repeat(case)))
    if one is None or other is None:
        return one is other
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == object:
        return one.tolist() == other.tolist()
    if one.dtype.kind not in "biufc":
        one, other = one.astype(np.float64), other.astype(np.float64)
    rtol, atol = max(case.rtol, 1e-5), max(case.atol, 1e-6)
    return np.allclose(one, other, rtol, atol, equal_nan=True)


def outcome(case):
    """``"passed"``, or the reason why the case does not run."""
    model = dml.read_onnx(case.model)
    for item in model.judged_for_run(LATEST):
        runs = item.on_device or item.code in ("no_operator", "empty_tensor")
        if not runs:
            return item.code
    compiled = model.compile(dml.Device("cpu"))
    for inputs, expected in case.data_sets:
        names = [item.name for item in case.model.graph.input]
        results = compiled(**dict(zip(names, map(array, inputs), strict=False)))
        for result, reference in zip(results.values(), map(array, expected), strict=True):
            assert result.dtype == reference.dtype
            assert result.shape == reference.shape
            np.testing.assert_allclose(result, reference, rtol=case.rtol, atol=case.atol)
    return "passed"


@pytest.mark.slow
def test_every_node_test_passes_or_has_one_reason(cases):
    found, wrong = Counter(), {}
    for case in cases:
        try:
            found[outcome(case)] += 1
        except AssertionError as error:
            found["different"] += 1
            if case.name not in DIFFERENT:
                wrong[case.name] = str(error)
        except ModelError as error:
            found["cpu"] += 1
            if "ONNX Runtime" not in str(error):
                wrong[case.name] = str(error)
    print(found)
    assert not wrong
    assert found.keys() <= CODES | {"passed", "different", "cpu"}
    assert found["passed"] >= 700
    assert found["different"] <= len(DIFFERENT)
    assert found["cpu"] <= 5
    assert sum(found.values()) == len(cases)


@pytest.mark.slow
def test_what_onnx_runtime_runs_has_its_values(cases):
    pytest.importorskip("onnxruntime")
    wrong, ran, refused = {}, Counter(), set()
    for case in cases:
        names = [item.name for item in case.model.graph.input]
        for values, reference in case.data_sets:
            inputs = dict(zip(names, map(given, values), strict=True))
            expected = by_onnx_runtime(case.model, inputs)
            if expected is None:
                continue
            try:
                model = dml.read_onnx(case.model, shapes=free_shapes(case.model, inputs))
                results = [*model.compile(dml.Device("cpu"))(**inputs).values()]
            except dml.AnyDMLError as error:
                refused.add(case.name)
                if case.name not in REFUSED:
                    wrong[case.name] = str(error)
                continue
            ran.update({node.operator for node in model.nodes if node.place == "cpu"})
            # ONNX's own values count where ONNX Runtime's differ.
            accepted = expected, [*map(given, reference)]
            if case.name not in DIFFERENT and not any(same(results, x, case) for x in accepted):
                wrong[case.name] = results, expected
    assert not wrong
    assert refused == REFUSED.keys()
    assert {"If", "Loop", "Scan", "SequenceMap", "SplitToSequence", "StringConcat"} <= ran.keys()
