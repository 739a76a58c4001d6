"""The node tests of the `onnx` package: each passes, or has one reason why it does not run."""

import warnings
from collections import Counter

import numpy as np
import pytest

import anydml as dml
from anydml.core.errors import ModelError
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


def array(value):
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


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
