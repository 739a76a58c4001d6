"""The gate lets right results through and no wrong one."""

import numpy as np
import pytest

import anydml as dml
from anydml.portable.kernels import KERNELS
from benchmarks import ours
from benchmarks.gate import Gate, reference
from benchmarks.jobs import Job

NAN = np.nan
X = np.array([2, NAN, 5, 5, -0.0, 0.0, 5, NAN], np.float32)


def top_k(values, indices, k=4, largest=True, strict=True, x=X):
    gate = Gate(Job("top_k", (x,), {"k": k, "axis": -1, "largest": largest}))
    return gate.problem((np.array(values, x.dtype), np.array(indices)), strict)


def test_the_right_top_k_passes():
    assert top_k([NAN, NAN, 5, 5], [1, 7, 2, 3]) is None
    assert top_k([-0.0, 0.0, 2, 5], [4, 5, 0, 2], largest=False) is None


@pytest.mark.parametrize(
    ("values", "indices", "of_peer"),
    [
        ([NAN, NAN, 5], [1, 7, 2], "shape"),
        ([NAN, NAN, 5, 5], [1, 7, 2, 8], "outside"),
        ([NAN, NAN, 5, 5], [1, 7, 2, 2], "twice"),
        ([NAN, NAN, 5, 6], [1, 7, 2, 3], "wrong values"),
        ([NAN, NAN, 5, 5], [1, 7, 2, 0], "names"),
        ([5, NAN, NAN, 5], [2, 1, 7, 3], "wrong values"),  # out of order
        ([NAN, 5, 5, 5], [1, 2, 3, 6], "wrong values"),  # a better element was left out
        ([NAN, NAN, 5, 5], [7, 1, 2, 3], None),
        ([NAN, NAN, 5, 5], [1, 7, 2, 6], None),
        ([NAN, NAN, 5, 5], [7, 1, 6, 2], None),
    ],
)
def test_peers_may_order_ties_as_they_like_but_must_be_right(values, indices, of_peer):
    strict = top_k(values, indices)
    assert strict is not None
    assert strict == "wrong values" or "shape" in strict
    complaint = top_k(values, indices, strict=False)
    assert complaint is of_peer is None or of_peer in complaint


def test_zeros_tie_but_keep_their_sign():
    x = np.array([0.0, -0.0], np.float32)
    assert top_k([0.0, -0.0], [0, 1], k=2, x=x) is None
    assert top_k([-0.0, 0.0], [0, 1], k=2, x=x) == "wrong values"
    assert top_k([-0.0, 0.0], [0, 1], k=2, x=x, strict=False) is None


@pytest.mark.parametrize("strict", [True, False])
def test_integers_at_the_ends_of_their_range(strict):
    x = np.array([2**64 - 1, 0, 2**63, 2**64 - 2], np.uint64)
    assert top_k([2**64 - 1, 2**64 - 2], [0, 3], k=2, x=x, strict=strict) is None
    assert top_k([2**64 - 1, 2**63], [0, 2], k=2, x=x, strict=strict) == "wrong values"
    assert top_k([2**64 - 1, 2**64 - 1], [0, 3], k=2, x=x, strict=strict) is not None


SCATTER = (np.zeros(4, np.float32), np.array([1, 1, -1]), np.array([5, 6, 7], np.float32))


@pytest.mark.parametrize(
    ("job", "right", "wrong"),
    [
        (Job("nonzero_coordinates", (np.array([0.0, -0.0, 3.0]),), {}), [[2]], [[1]]),
        (
            Job("scatter_elements", SCATTER, {"axis": 0, "reduction": None}),
            [0.0, 6.0, 0.0, 7.0],
            [0.0, 5.0, 0.0, 7.0],
        ),
        (
            Job("scatter_elements", SCATTER, {"axis": 0, "reduction": "add"}),
            [0.0, 11.0, 0.0, 7.0],
            [0.0, 6.0, 0.0, 7.0],
        ),
        (
            Job(
                "scatter_nd", (*SCATTER[:1], SCATTER[1][:, None], SCATTER[2]), {"reduction": "max"}
            ),
            [0.0, 6.0, 0.0, 7.0],
            [0.0, 11.0, 0.0, 7.0],
        ),
        (Job("join", (np.array([1, 2]), np.array([3])), {"axis": 0}), [1, 2, 3], [1, 3, 2]),
        (Job("gather", (np.array([4, 5]), np.array([1, -2])), {"axis": 0}), [5, 4], [4, 5]),
        (
            Job("gather_elements", (np.array([[4, 5]]), np.array([[1, -2]])), {"axis": 1}),
            [[5, 4]],
            [[4, 5]],
        ),
        (
            Job(
                "gather_nd",
                (np.array([[4, 5], [6, 7]]), np.array([[[1]], [[-2]]])),
                {"batch_dims": 1},
            ),
            [[5], [6]],
            [[5], [7]],
        ),
    ],
    ids=lambda value: value.operation if isinstance(value, Job) else None,
)
def test_right_passes_and_wrong_does_not(job, right, wrong):
    gate = Gate(job)
    kind = np.int64 if job.operation == "nonzero_coordinates" else job.arrays[0].dtype
    right, wrong = np.array(right, kind), np.array(wrong, kind)
    assert gate.problem((right,), strict=True) is None
    assert gate.problem((right,), strict=False) is None
    assert gate.problem((wrong,), strict=True) == "wrong values"
    assert gate.problem((wrong,), strict=False) == "wrong values"
    assert "shape" in gate.problem((right[:-1],), strict=False)
    assert "results" in gate.problem((right, right), strict=False)
    ours_ = ours.function(job)
    ours_.pass_gate(gate)
    assert ours_.problem == ""


def test_index_types_are_a_peers_own_affair_value_types_are_not():
    gate = Gate(Job("nonzero_coordinates", (np.array([1, 0]),), {}))
    for kind in ("int64", "uint32", "int16"):
        assert gate.problem((np.array([[0]], kind),), strict=False) is None
    assert gate.problem((np.array([[0]]),), strict=True) is None
    assert "type" in gate.problem((np.array([[0]], "int16"),), strict=True)
    gate = Gate(Job("join", (np.array([1.0]),), {"axis": 0}))
    assert "type" in gate.problem((np.array([1.0], np.float32),), strict=False)


def test_only_peers_may_round_their_sums_in_their_own_way():
    job = Job("scatter_elements", SCATTER, {"axis": 0, "reduction": "add"})
    nearly = np.nextafter(np.array([0.0, 11.0, 0.0, 7.0], np.float32), np.float32(100))
    assert Gate(job).problem((nearly,), strict=False) is None
    assert Gate(job).problem((nearly,), strict=True) == "wrong values"


def test_the_parts_of_a_split():
    x = np.arange(6)
    gate = Gate(Job("split", (x,), {"sections": 3, "axis": 0}))
    assert gate.problem(dml.split(x, 3), strict=True) is None
    assert gate.problem(dml.split(x, 3)[::-1], strict=True) == "wrong values"
    assert "results" in gate.problem(dml.split(x, 2), strict=True)


def test_a_reference_is_computed_without_the_native_kernels(monkeypatch):
    def wrong(inputs, outputs, attributes):
        outputs[0][...] = 7
        return -1

    job = Job("join", (np.array([1, 2]),), {"axis": 0})
    monkeypatch.setitem(KERNELS, "join", wrong)
    assert reference(job)[0].tolist() == [7, 7]
    with pytest.raises(IndexError, match="indices"):
        reference(Job("gather", (np.array([4, 5]), np.array([2])), {"axis": 0}))


def test_outputs_are_like_the_results_and_hold_others():
    gate = Gate(Job("top_k", (X,), {"k": 4, "axis": -1, "largest": True}))
    outputs = gate.outputs()
    assert [(y.shape, y.dtype) for y in outputs] == [(y.shape, y.dtype) for y in gate.expected]
    assert gate.problem(outputs, strict=False) == "wrong values"


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match="array function"):
        Gate(Job("sort", (X,), {}))
