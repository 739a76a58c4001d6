"""Turns, budgets, statistics and the plain copy."""

import gc
import time

import numpy as np
import pytest

from benchmarks import measure
from benchmarks.gate import Gate
from benchmarks.jobs import Job
from benchmarks.measure import FEWEST, Budget, Contestant, PlainCopy, take_turns


@pytest.fixture(autouse=True)
def settle_for_a_moment(monkeypatch):
    """Nothing here leaves threads spinning."""
    monkeypatch.setattr(measure, "_SETTLE", 0.002)


def test_contestants_alternate():
    order = []

    def turn(name):
        order.append(name)
        time.sleep(0.003)  # longer than a turn's untimed part, so that a turn is two calls

    contestants = [Contestant(name, call=lambda name=name: turn(name)) for name in "AB"]
    take_turns(contestants, Budget(runs=4, seconds=10))
    assert "".join(order) == "AABB" * 4
    assert [len(c.samples) for c in contestants] == [4, 4]
    assert all(0.003 <= s < 1 for c in contestants for s in c.samples)


def test_calls_alternate_directly_where_nobody_is_alone():
    order = []
    contestants = [Contestant(name, call=lambda name=name: order.append(name)) for name in "AB"]
    take_turns(contestants, Budget(runs=4, seconds=10), alone=False)
    assert "".join(order) == "AB" * 4
    assert [len(c.samples) for c in contestants] == [4, 4]


def test_a_slow_contestant_gets_the_fewest_turns_and_others_more():
    slow = Contestant("slow", call=lambda: time.sleep(0.01))
    fast = Contestant("quick", call=lambda: time.sleep(0.001))
    take_turns([slow, fast], Budget(runs=8, seconds=0.05))
    assert len(slow.samples) == FEWEST
    assert FEWEST < len(fast.samples) <= 8


def test_a_very_slow_contestant_gets_one_turn(monkeypatch):
    monkeypatch.setattr(measure, "LONGEST", 0.01)
    slow = Contestant("slow", call=lambda: time.sleep(0.011))
    take_turns([slow], Budget(runs=8, seconds=0))
    assert len(slow.samples) == 1


def test_short_calls_are_timed_many_at_a_time():
    calls = 0

    def call():
        nonlocal calls
        calls += 1

    contestant = Contestant("short", call=call)
    take_turns([contestant], Budget(runs=3, seconds=1))
    assert calls > 1000
    assert max(contestant.samples) < 1e-4


def test_whoever_was_wrong_gets_no_time():
    job = Job("join", (np.array([1, 2]),), {"axis": 0})
    wrong = Contestant("wrong", call=lambda: np.array([2, 1]), results=lambda got: (got,))
    wrong.pass_gate(Gate(job))
    assert wrong.problem == "wrong: wrong values"
    assert wrong.wrong
    take_turns([wrong], Budget(runs=3, seconds=0))
    assert wrong.samples == []


def test_garbage_collection_is_as_it_was():
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            take_turns([Contestant("nothing")], Budget(runs=3, seconds=0))
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


def test_statistics():
    contestant = Contestant("A", samples=[float(n) for n in range(11, 0, -1)])
    assert contestant.statistic("median") == 6
    assert contestant.statistic("minimum") == 1
    assert contestant.statistic("p90") == 10


def test_plain_copies_copy_half_the_traffic():
    copy = PlainCopy(2)
    try:
        for traffic, ways in ((2**16, 1), (2**22, 2)):
            contestants = copy.contestants(traffic)
            assert len(contestants) == ways
            for contestant in contestants:
                copy._to[:] = 0
                contestant.call()
                assert copy._to[: traffic // 2].all()
                assert not copy._to[traffic // 2 :].any()
        assert len(copy.contestants(2**16)) == 1
        assert copy._to.size == 2**21  # the memory is used again
    finally:
        copy.close()
