"""The reference's order of a sequence, written out: NaN is greatest, ties keep their order."""

import numpy as np
import pytest

import anydml as dml

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("kind", ["cpu", "reference"])
@pytest.mark.parametrize(
    ("direction", "order"),
    [("DECREASING", [1, 4, 6, 2, 0, 5, 7, 3]), ("INCREASING", [3, 7, 0, 5, 2, 6, 1, 4])],
)
def test_order(kind, direction, order):
    x = np.array([0.0, NAN, 2.0, -INF, -NAN, -0.0, INF, -1.0], "f4")
    for k in (1, 3, 8):
        output_tensor = dml.TensorDesc("FLOAT32", (k,))
        desc = dml.TopK1(
            input_tensor=dml.TensorDesc("FLOAT32", (8,)), output_value_tensor=output_tensor,
            output_index_tensor=dml.TensorDesc("UINT32", (k,)), axis=0, k=k,
            axis_direction=direction,
        )  # fmt: skip
        values, indices = dml.Device(kind).create_operator(desc).compile()(x)
        assert indices.tolist() == order[:k]
        assert values.tobytes() == x[order[:k]].tobytes()
