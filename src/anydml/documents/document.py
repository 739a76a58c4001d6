"""`Document`: what the command does with a file, whatever kind of model it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

from anydml.core.errors import AnyDMLError
from anydml.core.levels import FeatureLevel
from anydml.core.releases import Runtime
from anydml.devices.device import Device
from anydml.graphs.desc import GraphDesc
from anydml.models.files import Limits

Write = Callable[[str], object]
Arrays = Mapping[str, Any]

Converted = tuple[GraphDesc, Arrays]
"""A graph, and the elements of inputs: of all that it owns, and of others."""


Expected = tuple[str, Callable[[], Any]]
"""Where an array is from, and what reads it."""


class UsageError(AnyDMLError):
    """Options that do not fit a document."""


@dataclass(frozen=True)
class Options:
    """Options that not every kind of document takes, by their names on the command line."""

    input: tuple[tuple[str, Path], ...] = ()
    random: int | None = None
    expect_all: Path | None = None
    against: str | None = None
    provider: str | None = None  # that of --device onnxruntime:PROVIDER
    shape: tuple[tuple[str, tuple[int, ...]], ...] = ()
    dim: tuple[tuple[str, int], ...] = ()
    as_onnxruntime: bool = False
    runtime: Runtime | None = None

    def refuse(self, *documents: Document) -> None:
        """Raise for an option that is given and that none of the documents takes.

        Raises
        ------
        UsageError
            There is one.
        """
        if not any(document.TAKES_OPTIONS for document in documents):
            for field in fields(self):
                if getattr(self, field.name) != field.default:
                    name = field.name.replace("_", "-")
                    raise UsageError(f"--{name}: expected an ONNX model (.onnx)")


class Report(Protocol):
    """Findings of a check."""

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Why nothing is known of the document."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""

    def lines(self) -> Iterator[str]:
        """The report as text."""

    def as_json(self) -> dict[str, Any]:
        """The report as JSON."""


@dataclass(eq=False)
class Document(ABC):
    """A model or graph in a file, which is read when it is first needed.

    Parameters
    ----------
    path : Path
        The file, or ``-`` for standard input.
    limits : Limits
        What may be read, written and allocated.
    options : Options
        Further options.
    """

    path: Path
    limits: Limits
    options: Options

    TAKES_OPTIONS: ClassVar[bool] = False
    """Whether `Options` have an effect."""
    TENSOR: ClassVar[str]
    """The word of messages for one of `names`."""

    @property
    def warnings(self) -> Sequence[str]:
        """Oddities of the document, which are said before a run."""
        return ()

    @property
    def default_device(self) -> str:
        """The device of a run for which none is chosen."""
        return "cpu"

    @abstractmethod
    def names(self) -> Collection[str]:
        """The names of what a run may return."""

    def expected(self) -> Mapping[str, Expected]:
        """The tensors to compare with, in the order in which they are computed."""
        return {}

    def alone(self, name: str, device: Device) -> Any:
        """The tensor that its node makes of the expected inputs; None if these are not known."""
        del name, device

    def explain(self, name: str) -> Iterable[str]:
        """Lines about a tensor that is the first to differ from the expected one."""
        del name
        return ()

    def producer(self, name: str) -> str:
        """The node that computes a tensor; empty if none does."""
        del name
        return ""

    @abstractmethod
    def check(self, device: Device) -> Report:
        """Report on the document, valid or not, without running it."""

    def fixed(self, level: FeatureLevel) -> tuple[str, list[str]]:
        """Return it as text with the repairs that keep what it computes, and a line for each.

        Raises
        ------
        UsageError
            It is not a JSON model of operators.
        """
        del level
        raise UsageError("--fix: expected a JSON model of operators")

    @abstractmethod
    def run(
        self, device: Device, write: Write, names: Sequence[str], repeat: int, timing: bool
    ) -> Arrays:
        """Run it and return arrays, among them those of some names.

        Parameters
        ----------
        device : Device
            What runs it.
        write : callable
            Takes what the run prints, in pieces.
        names : sequence of str
            Tensors to return.
        repeat : int
            The number of runs.
        timing : bool
            Whether it prints how long these take.
        """

    @abstractmethod
    def results_data(self, results: Arrays) -> dict[str, Any]:
        """Results of a run, as JSON."""

    @abstractmethod
    def draw(self, level: FeatureLevel) -> str:
        """Draw it as SVG; what the feature level refuses is red."""

    @abstractmethod
    def graph(self, arrays: Arrays) -> Converted:
        """Return it as one graph; the arrays, of inputs, become part of that."""
