"""Reports of `anydml check` on a model, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.core.problems import Problem
from anydml.devices.device import Device
from anydml.models.check import Checked, Checks, Target, reading_problems, run_problems, targets
from anydml.models.constant_indices import index_problems
from anydml.models.files import Limits
from anydml.models.model import read_model


@dataclass(frozen=True)
class Report:
    """Report on a model that has not run.

    Attributes
    ----------
    path : Path
        The model.
    unreadable : tuple of str
        Why nothing is known of it.
    problems, warnings : tuple of str
        What would stop a run, refused dispatchables apart; and what does nothing.
    dispatchables : tuple of Checked
        Those that could be read.
    targets : tuple of Target
        The files that a run would write.
    """

    path: Path
    unreadable: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    dispatchables: tuple[Checked, ...] = ()
    targets: tuple[Target, ...] = ()

    @property
    def good(self) -> bool:
        """Return whether the model would run, as far as can be known."""
        refused = any(item.violations for item in self.dispatchables)
        return not self.unreadable and not self.problems and not refused

    def lines(self) -> Iterator[str]:
        """Describe the report as text."""
        for item in self.dispatchables:
            yield item.text()
        yield from (Problem(problem).line for problem in self.problems)
        for warning in self.warnings:
            yield f"Warning: {warning}"
        for target in self.targets:
            resource = short_repr(target.command.resource)
            yield f"Command at index {target.at} writes resource {resource} to {target.place}."

    def as_json(self) -> dict[str, Any]:
        """Describe the report as JSON."""
        return {
            "model": str(self.path),
            "good": self.good,
            "problems": (*self.unreadable, *self.problems),
            "details": [Problem(text).as_json() for text in (*self.unreadable, *self.problems)],
            "warnings": self.warnings,
            "dispatchables": [item.as_json() for item in self.dispatchables],
            "writes": [
                {
                    "command": target.at,
                    "resource": target.command.resource,
                    "path": target.place.display_path,
                }
                for target in self.targets
            ],
        }


def _without_kernel(dispatchables: Iterable[Checked]) -> Iterator[str]:
    for item in dispatchables:
        if not item.violations:
            try:
                item.compiled  # noqa: B018  # for its error
            except ModelError as error:
                yield from error.problems


def report(path: Path, device: Device, limits: Limits) -> Report:
    """Check a model, valid or not, without running it."""
    try:
        model = read_model(path, limits)
        checks = Checks(model, device, limits)
        checked = (*checks.checked.values(),)
        problems = [*reading_problems(model), *_without_kernel(checked)]
        if model.alone:  # what a run would need is no problem of a description
            problems = [text for text in problems if Problem(text).code != "missing_file"]
        else:
            problems += run_problems(checks)
        if checks.fits:
            problems += index_problems(checks)
        return Report(
            path, (), tuple(problems), model.warnings, checked, (*targets(model, limits),)
        )
    except ModelError as error:
        return Report(path, error.problems)
