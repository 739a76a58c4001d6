"""Where is measured: the CPU here, a GPU in `gpu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchmarks import ours, peers
from benchmarks.jobs import Job
from benchmarks.measure import Budget, Contestant, PlainCopy, take_turns
from benchmarks.peers import Peer


class Place(Protocol):
    """What a measurement takes of the place where it runs."""

    def peers(self, threads: int) -> list[Peer]:
        """Those that are installed."""

    def function(self, job: Job) -> Contestant:
        """The array function of this library."""

    def copies(self, traffic: int) -> list[Contestant]:
        """Plain copies that move this many bytes."""

    def take_turns(self, contestants: Sequence[Contestant], budget: Budget) -> None:
        """Time those without a problem."""

    def describe(self) -> str:
        """What is measured on, for people."""

    def close(self) -> None:
        """Give back what it holds."""


class Cpu:
    """The processor."""

    def __init__(self, threads: int) -> None:
        self._copy = PlainCopy(threads)

    def peers(self, threads: int) -> list[Peer]:
        """Those that are installed."""
        return peers.installed(threads)

    def function(self, job: Job) -> Contestant:
        """The array function of this library."""
        return ours.function(job)

    def copies(self, traffic: int) -> list[Contestant]:
        """On one thread and on all."""
        return self._copy.contestants(traffic)

    def take_turns(self, contestants: Sequence[Contestant], budget: Budget) -> None:
        """By the clock."""
        take_turns(contestants, budget)

    def describe(self) -> str:
        """Nothing besides what is said of the machine."""
        return ""

    def close(self) -> None:
        """End the copying threads."""
        self._copy.close()
