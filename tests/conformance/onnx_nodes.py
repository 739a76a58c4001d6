"""The node tests of the `onnx` package, and what running one takes."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest


def node_cases(operators):
    """The cases of these operators."""
    onnx = pytest.importorskip("onnx")
    # Importing an operator's module registers its cases; `collect_testcases` would import all.
    node = import_module("onnx.backend.test.case.node")
    modules = {item.name.replace("_", ""): item.name for item in iter_modules(node.__path__)}
    for operator in operators:
        with np.errstate(all="ignore"):  # cases with infinities
            import_module(f"{node.__name__}.{modules[operator.lower()]}")
    assert onnx
    return [
        case
        for case in node._NodeTestCases
        # Every case comes again with its operator expanded into others, where there is such a form.
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in operators
    ]


def attributes_of(case):
    """The attributes of a case's node by name."""
    from onnx.helper import get_attribute_value

    (node,) = case.model.graph.node
    return {item.name: get_attribute_value(item) for item in node.attribute}


def check(case, run, equal=np.testing.assert_array_equal):
    """Run a case's data and compare what comes out."""
    (node,) = case.model.graph.node
    assert case.data_sets
    for arguments, expected in case.data_sets:
        inputs = [np.asarray(array) for array in arguments]
        results = run(inputs, attributes_of(case), len(node.output))
        for got, reference in zip(results, map(np.asarray, expected), strict=True):
            assert got.dtype == reference.dtype
            assert got.shape == reference.shape
            equal(got, reference)
