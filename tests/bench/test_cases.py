"""Every case of every suite, small: the jobs are what they say, and this library does them."""

import numpy as np
import pytest
from small_cases import shrunk

from benchmarks import ours
from benchmarks.cases import chosen, table
from benchmarks.gate import Gate
from benchmarks.jobs import Job
from benchmarks.suites import SUITES, suites_named

EVERY = [case for suite in SUITES.values() for case in suite.cases]
COUNTERPARTS = ("gather", "join", "scatter_add", "scatter_m", "scatter_nd_")


@pytest.mark.parametrize("name", SUITES)
def test_names_differ_and_start_with_a_family(name):
    names = [case.name for case in SUITES[name].cases]
    assert len(set(names)) == len(names)
    assert all("/" in n and " " not in n for n in names)


def test_the_table_has_the_five_operators_and_twenty_cases_of_their_counterparts():
    names = [case.name for case in table()]
    counterparts = [name for name in names if name.startswith(COUNTERPARTS)]
    assert len(counterparts) >= 20
    assert len(names) - len(counterparts) == 27


@pytest.mark.parametrize("case", table(), ids=lambda case: case.name)
def test_this_library_does_the_jobs_of_the_table(case):
    job = shrunk(case).job()
    contestant = ours.function(job)
    contestant.pass_gate(Gate(job))
    assert contestant.problem == ""


@pytest.mark.parametrize("case", table(), ids=lambda case: case.name)
def test_this_library_writes_the_results_of_the_table_into_arrays_that_are_there(case):
    job = shrunk(case).job()
    targets = Gate(job).outputs()
    contestant = ours.function(job, targets)
    contestant.pass_gate(Gate(job))
    assert contestant.problem == ""
    assert Gate(job).problem(targets, strict=True) is None


@pytest.mark.parametrize(
    "case", [c for c in SUITES["small"].cases if c.dispatch], ids=lambda case: case.name
)
def test_compiled_operators_do_the_small_jobs(case):
    job = case.job()
    contestant = ours.dispatch(job)
    contestant.pass_gate(Gate(job))
    assert contestant.problem == ""


def test_the_same_case_gives_the_same_job():
    for case in map(shrunk, table()):
        assert all(map(np.array_equal, case.job().arrays, case.job().arrays))


def test_permutations_have_no_duplicates():
    case = next(c for c in table() if c.name == "scatter/4096x4096-axis0")
    indices = shrunk(case).job().arrays[1]
    assert (np.sort(indices, axis=0) == np.arange(len(indices))[:, None]).all()


def test_patterns_choose_by_name_and_title():
    assert {c.operation for c in chosen(EVERY, ["top_k/*"])} == {"top_k"}
    assert [c.name for c in chosen(table(), ["top_k 16 M*"])] == ["top_k/16M-k100"]
    assert chosen(table(), ["nothing"]) == []
    assert chosen(table(), []) == list(table())


def test_all_is_every_suite_once():
    assert [suite.name for suite in suites_named(["all", "table"])] == list(SUITES)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (Job("top_k", (np.zeros((2, 8), "f4"),), {"k": 3, "axis": -1}), 64 + 6 * 12),
        (Job("nonzero_coordinates", (np.eye(4, dtype="f4"),), {}), 64 + 4 * 2 * 8),
        (
            Job("scatter_elements", (np.zeros(8, "f4"), np.zeros(2, "i8"), np.zeros(2, "f4")), {}),
            32 + 16 + 8 + 32,
        ),
        (  # the rows that are replaced need not be read
            Job(
                "scatter_nd",
                (np.zeros((4, 16), "f4"), np.zeros((2, 1), "i8"), np.zeros((2, 16), "f4")),
                {"reduction": None},
            ),
            128 + 16 + 128 + 256,
        ),
        (Job("split", (np.zeros(8, "f4"),), {"sections": 2, "axis": 0}), 64),
        (Job("join", (np.zeros(8, "f4"),) * 2, {"axis": 0}), 128),
        (  # nor is what a gather does not pick
            Job("gather", (np.zeros((8, 4), "f4"), np.zeros(2, "i8")), {"axis": 0}),
            16 + 32 + 32,
        ),
        (Job("gather_elements", (np.zeros(8, "f4"), np.zeros(2, "i8")), {"axis": 0}), 16 + 8 + 8),
        (
            Job(
                "gather_nd",
                (np.zeros((2, 3, 4), "f4"), np.zeros((2, 5, 1), "i8")),
                {"batch_dims": 1},
            ),
            80 + 96 + 160,
        ),
    ],
    ids=lambda value: value.operation if isinstance(value, Job) else None,
)
def test_traffic_is_inputs_read_once_and_outputs_written_once(job, expected):
    assert job.traffic == expected
