"""Observed deviations: what DirectML accepts although the page of the operator forbids it.

`_deviations.json` lists them with their evidence. Every check of a descriptor uses the list, so
that graphs which DirectML runs are not refused; the support tables remain those of the pages. An
entry has names of operators, regular expressions for the path, the value and, where the path has
several rules, the rule of a violation that is no error, and the level from which this holds.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from anydml.core.errors import Violation
from anydml.core.levels import FeatureLevel


class Deviation(NamedTuple):
    """A fact that contradicts the page of an operator.

    Attributes
    ----------
    accepted : str
        What DirectML accepts.
    evidence : str
        How that is known.
    """

    path: re.Pattern[str]
    got: re.Pattern[str]
    rule: re.Pattern[str]
    since: FeatureLevel
    accepted: str
    evidence: str


@cache
def _load() -> dict[str, tuple[Deviation, ...]]:
    path = os.path.join(os.path.dirname(__file__), "_deviations.json")
    with open(path, encoding="utf-8") as file:
        data: list[dict[str, Any]] = json.load(file)
    found: dict[str, tuple[Deviation, ...]] = {}
    for item in data:
        deviation = Deviation(
            re.compile(item["path"]), re.compile(item["got"]), re.compile(item.get("rule", "")),
            FeatureLevel.parse(item["since"]), item["accepted"], item["evidence"],
        )  # fmt: skip
        for name in item["operators"].split():
            found[name] = (*found.get(name, ()), deviation)
    return found


def deviations_of(name: str) -> tuple[Deviation, ...]:
    """The deviations of an operator."""
    return _load().get(name, ())


def observed(name: str, violation: Violation, level: FeatureLevel) -> Deviation | None:
    """The deviation by which a violation is no error.

    Parameters
    ----------
    name : str
        The operator.
    violation : Violation
        With a path relative to the operator.
    level : FeatureLevel
        That of the device.
    """
    for item in deviations_of(name):
        matches = item.got.fullmatch(str(violation.got)) and item.rule.search(violation.rule)
        if matches and level >= item.since and item.path.fullmatch(violation.path):
            return item
    return None


def split(
    name: str, violations: Iterable[Violation], level: FeatureLevel
) -> tuple[list[Violation], list[Deviation]]:
    """The violations that are errors, and the deviations by which the others are none."""
    errors: list[Violation] = []
    accepted: list[Deviation] = []
    for violation in violations:
        found = observed(name, violation, level)
        if found is None:
            errors.append(violation)
        elif found not in accepted:
            accepted.append(found)
    return errors, accepted


__all__: Final = ["Deviation", "deviations_of", "observed", "split"]
