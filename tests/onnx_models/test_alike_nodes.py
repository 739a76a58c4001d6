"""Nodes that are alike share what follows from them; those that differ in anything do not."""

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, compare, floats, model_of
from onnx import AttributeProto

node = oh.make_node
WEIGHTS = {
    "a": np.float32([0.5, -0.5]), "b": np.float32([1, 2]), "low": np.float32(-1),
    "high": np.float32(1), "slope": floats(0, 3, 2), "first": np.int64([0]),
    "second": np.int64([1]), "both": np.int64([0, 1]),
}  # fmt: skip
IMPORTS = [oh.make_opsetid("", 17)]
LEAKY = node("LeakyRelu", ["x"], ["y"])
LEAKY.attribute.append(
    AttributeProto(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
)
FUNCTIONS = [
    oh.make_function("f", "Leaky", ["x"], ["y"], [LEAKY], IMPORTS, ["slope"]),
    oh.make_function("f", "Bound", ["x", "low", "high"], ["y"],
                     [node("Clip", ["x", "low", "high"], ["y"])], IMPORTS),
]  # fmt: skip
CHOICES = (
    ("LeakyRelu", "x"), ("LeakyRelu", "x", {"alpha": 0.5}), ("LeakyRelu", "x", {"alpha": 1.5}),
    ("f.Leaky", "x", {"slope": 0.25}), ("f.Leaky", "x", {"slope": 2.0}),
    ("Softmax", "x"), ("Softmax", "x", {"axis": 0}),
    ("Clip", "x low"), ("Clip", "x high"), ("Clip", "x . low"), ("Clip", "x . high"),
    ("f.Bound", "x low ."), ("f.Bound", "x high ."), ("f.Bound", "x . high"),
    ("Clip", "x low high"), ("f.Bound", "x low high"),
    ("Add", "x a"), ("Add", "x b"), ("Add", "x x"), ("Add", "a x"), ("Add", "folded a"),
    ("Add", "x folded"), ("Sub", "x a"), ("Sub", "a x"), ("Sub", "x slope"),
    ("ReduceMean", "x"), ("ReduceMean", "x", {"axes": [0]}),
    ("ReduceMean", "x", {"axes": [0], "keepdims": 0}),
    ("ReduceSum", "x first"), ("ReduceSum", "x second"), ("ReduceSum", "x both"),
    ("LayerNormalization", "x0 b"), ("LayerNormalization", "x0 b a"),
)  # fmt: skip
"""Operators, inputs (x is any value before, a point none, folded a constant) and attributes."""


def random_model(seed):
    generator = np.random.default_rng(seed)
    nodes = [node("Mul", ["a", "b"], ["c0"]), node("Mul", ["b", "b"], ["c1"])]
    folded, made = ["c0", "c1"], ["x0"]
    for i in range(60):
        name, inputs, *attributes = CHOICES[generator.integers(len(CHOICES))]
        domain, _, operator = name.rpartition(".")
        known = {"x": made[generator.integers(len(made))], "folded": generator.choice(folded),
                 ".": ""}  # fmt: skip
        names = [known.get(part, part) for part in inputs.split()]
        results = [f"y{i}", f"mean{i}"][: 2 if operator == "LayerNormalization" and i % 2 else 1]
        nodes.append(node(operator, names, results, domain=domain, **dict(*attributes)))
        is_matrix = "x" in inputs.split() and "keepdims" not in dict(*attributes)
        if is_matrix and len(nodes) % 2:
            made.append(f"y{i}")
    outputs = {name: FLOAT for item in nodes[2:] for name in item.output}
    return model_of(nodes, {"x0": [3, 2]}, outputs, WEIGHTS, domains=["f"], functions=FUNCTIONS)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("exact", [False, True])
def test_nodes_that_are_almost_alike(seed, exact):
    read = compare(random_model(seed), {"x0": floats(seed, 3, 2)}, as_onnxruntime=exact)
    assert all(item.is_checked for item in read.verdicts)
