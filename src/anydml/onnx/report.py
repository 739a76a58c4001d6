"""The report of `anydml check MODEL.onnx`, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from anydml.core._json import counted, short_repr
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.problems import Problem
from anydml.core.releases import RUNTIMES, WINDOWS, Runtime, describe, first_release, first_windows
from anydml.onnx.model import OnnxModel
from anydml.onnx.notes import notes
from anydml.onnx.partition import stages
from anydml.onnx.table import ROWS
from anydml.onnx.verdict import Judged
from anydml.ops._deviations import deviations_of
from anydml.ops._registry import page_lines, page_of

LOWEST_DEVICE: Final = FeatureLevel.LEVEL_5_0
"""The level at which ONNX Runtime's provider creates its device."""

_LATER: Final = (
    "ONNX Runtime fuses further operators after it has placed the nodes (activations, GELU, "
    "attention, quantized pairs); this changes rounding, and is not imitated"
)
_BODIES: Final = (
    "nodes of bodies are judged one by one, with the shapes of the values around them; a run "
    "leaves a node with bodies to ONNX Runtime on the CPU as a whole"
)
_MOST_NAMES: Final = 3

_WAITING: Final = ("shape_not_known", "input_not_constant", "shape_arithmetic", "no_operator")
"""Codes of nodes that have no line while dimensions of the model are free: most of a model."""


@dataclass(frozen=True)
class Unreadable:
    """The report of a model that cannot be read."""

    name: str
    unreadable: tuple[str, ...]

    good: ClassVar[bool] = False

    def lines(self) -> Iterator[str]:
        """Nothing else is known."""
        yield from ()

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""
        details = [Problem(text).as_json() for text in self.unreadable]
        return {
            "model": self.name, "good": False, "problems": self.unreadable, "details": details,
        }  # fmt: skip


class Report:
    """The verdicts on a model at a feature level.

    Parameters
    ----------
    model : OnnxModel
        The model.
    level : FeatureLevel
        What operators are checked against.
    """

    def __init__(self, model: OnnxModel, level: FeatureLevel) -> None:
        self.unreadable: tuple[str, ...] = ()
        self.model = model
        self.level = level
        self.judged = model.verdicts_at(level)
        self.unchecked = [item for item in self.judged if not item.is_checked]

    @property
    def good(self) -> bool:
        """Whether every node is checked, and none refused."""
        stops = self.unchecked or self.model.input_problems() or self.model.memory_problems()
        return not stops and not any(item.place == "refused" for item in self.judged)

    @property
    def lowest(self) -> FeatureLevel | None:
        """The lowest level that accepts all operators; None if none does, or not all are known."""
        found = [item.lowest for item in self.judged
                 if item.descriptors or item.place == "refused"]  # fmt: skip
        levels = [level for level in found if level is not None]
        if len(levels) < len(found) or self.unchecked:
            return None
        return max(levels, default=min(FeatureLevel))

    def graph_count(self) -> int:
        """How many graphs the provider makes."""
        member = [item.place == "graph" for item in self.judged]
        found = zip(stages(self.judged, member), member, strict=True)
        return len({stage for stage, inside in found if inside})

    def counts(self) -> Counter[str]:
        """How many nodes have each place."""
        return Counter(item.place for item in self.judged)

    def warnings(self) -> list[str]:
        """List warnings about the whole model."""
        found = [*self.model.source.warnings]
        if self.unchecked:
            names = [f"{short_repr(item.node.name)} ({item.node.title})" for item in self.unchecked]
            more = ", …" if len(names) > _MOST_NAMES else ""
            found.append(
                f"{counted(len(names), 'node')} not checked ({', '.join(names[:_MOST_NAMES])}{more}"
                "): their shapes or constants are not known, so no feature level is"
            )
        problems = [*self.model.input_problems(), *self.model.memory_problems()]
        found += [text.removesuffix(".") for text in problems]
        if self.level < LOWEST_DEVICE:
            found.append(
                f"ONNX Runtime's provider creates its device at level {LOWEST_DEVICE.suffix} or "
                f"above; at {self.level.suffix} it cannot be created, and only the rules of the "
                "operators are checked here"
            )
        return found

    def lines(self) -> Iterator[str]:
        """The report as text."""
        for item in self.judged:
            yield from self._node_lines(item)
        for warning in self.warnings():
            yield f"Warning: {warning}."
        if self.model.free_dimensions():
            yield "  Nodes that wait for a size have no line (--json has all); none is guessed."
        yield from self._summary()

    def _node_lines(self, item: Judged) -> Iterator[str]:
        said = notes(item, self.model.graph)
        waits = item.code in _WAITING and self.model.free_dimensions()
        if (item.place == "graph" or waits) and not said and not _observed(item):
            return
        name = f"{short_repr(item.node.name)} ({item.node.title})"
        yield f"{name}: {item.place}" + (f": {item.reason}" if item.reason else "")
        for violation in item.violations:
            yield f"  {violation}"
        yield from (f"  {line}" for line in page_lines(item.violations))
        if item.violations:
            accepted = "none" if item.lowest is None else describe(item.lowest)
            yield f"  Lowest feature level that accepts it: {accepted}"
        for text in _observed(item):
            yield f"  Accepted by DirectML, not on its page: {text}"
        for note in said:
            yield f"  Note: {note}."

    def _summary(self) -> Iterator[str]:
        removed = Counter(
            item.operator if item.why != "a constant" else "constant" for item in self.model.removed
        )
        if removed:
            names = ", ".join(f"{count} {name}" for name, count in removed.most_common(_MOST_NAMES))
            more = "" if len(removed) <= _MOST_NAMES else ", …"
            total = counted(removed.total(), "node")
            yield f"Removed before nodes are placed: {total} ({names}{more})"
        counts = self.counts()
        yield (
            f"{counted(len(self.judged), 'node')}: {counts['graph']} in "
            f"{counted(self.graph_count(), 'graph')}, {counts['alone']} alone, {counts['cpu']} on "
            f"the CPU, {counts['refused']} refused (feature level {self.level.suffix})"
        )
        if (runtime := self.model.runtime) is not None:
            as_new = "; types and DirectML operators are those of 1.21" if runtime.missing else ""
            yield f"Kernels of {runtime}, up to those of opset {_newest_opset(runtime)}{as_new}"
        lowest = self.lowest
        if lowest is not None and any(item.descriptors for item in self.judged):
            yield f"Lowest feature level that accepts the operators: {describe(lowest)}"
            if self.good and self.level is LATEST:
                yield _other_machines(lowest)
        elif not self.unchecked and not self.good:
            yield "No feature level accepts the model"
        if any(item.node.is_inside for item in self.judged):
            yield f"Note: {_BODIES}."
        yield f"Note: {_LATER}."

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""
        counts, lowest, runtime = self.counts(), self.lowest, self.model.runtime
        return {
            "model": self.model.name,
            "good": self.good,
            "feature_level": self.level.suffix,
            "minimum_feature_level": None if lowest is None else lowest.suffix,
            "minimum_directml": None if lowest is None else first_release(lowest).version,
            "runtime": None if runtime is None else str(runtime),
            "newest_opset": _newest_opset(runtime or RUNTIMES[-1]),
            "minimum_windows": None if lowest is None else first_windows(lowest) or None,
            "summary": {
                "nodes": len(self.judged),
                "graphs": self.graph_count(),
                **{place: counts[place] for place in ("graph", "alone", "cpu", "refused")},
                "unchecked": len(self.unchecked),
            },
            "warnings": self.warnings(),
            "nodes": [self._node_json(item) for item in self.judged],
            "removed": [
                {"name": item.name, "operator": item.operator, "reason": item.why}
                for item in self.model.removed
            ],
        }

    def _node_json(self, item: Judged) -> dict[str, Any]:
        return {
            "name": item.node.name,
            "operator": item.node.title,
            "version": item.node.version,
            "place": item.place,
            "checked": item.is_checked,
            "code": item.code or None,
            "reason": item.reason or None,
            "operators": [desc.NAME for desc in item.descriptors],
            "minimum_feature_level": None if item.lowest is None else item.lowest.suffix,
            "notes": notes(item, self.model.graph),
            "observed_deviations": _observed(item),
            "violations": [
                {**found.as_json(), "page": page_of(found.path)} for found in item.violations
            ],
        }


def _newest_opset(runtime: Runtime) -> int:
    """The newest opset of which a release has a kernel."""
    return max(n for row in ROWS.values() if not row.domain
               for n in row.versions if f"{row.name}-{n}" not in runtime.missing)  # fmt: skip


def _other_machines(lowest: FeatureLevel) -> str:
    """Say with which options a model is checked for a machine other than one with the latest."""
    release = next((str(item) for item in WINDOWS if item.level >= lowest), "")
    windows = f'--windows "{release}" or later' if release else "no Windows alone"
    return (
        f"This is checked for level {LATEST.suffix}, which no Windows contains: give the --windows "
        f"or --directml of your machine ({windows}, and --directml {first_release(lowest).version} "
        "or later, accept the model)"
    )


def _observed(item: Judged) -> list[str]:
    """List what DirectML accepts of a node although a page forbids it."""
    found = [
        (desc, deviation) for desc in item.descriptors for deviation in desc.deviations(LATEST)
    ]
    if item.node.operator in ("Cast", "CastLike"):  # whose bounds the provider gives no type
        found += [(desc, observed) for desc in item.descriptors
                  for observed in deviations_of(desc.NAME)]  # fmt: skip
    return list(dict.fromkeys(f"{desc.NAME}: {d.accepted} ({d.evidence})" for desc, d in found))
