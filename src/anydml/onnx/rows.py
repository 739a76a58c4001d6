"""`Row`: what the provider registers for one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from anydml.onnx.lower.node import Lower

Types = Mapping[int, str]
"""From a version on, the types of each type parameter: ``T=f16 f32; I=i64``."""


@dataclass(frozen=True)
class Row:
    """An operator for which the provider has a kernel.

    Attributes
    ----------
    name : str
        The operator.
    versions : tuple of int
        Those in which it was revised and for which there is a kernel; a kernel is for one alone.
    types : mapping
        By the version from which they hold.
    lower : callable or None
        Adds the operators of a node; None for an operator that no DirectML operator computes.
    constants : mapping
        By version, the positions of inputs that the CPU reads.
    graph : bool or str
        Whether a node may be part of a graph; ``"pair"`` if it has exactly two inputs.
    query : callable or None
        Why a node is left to the CPU, or an empty string.
    domain : str
        ``""`` is ai.onnx.
    formals : tuple of str
        Type parameters of the inputs, then ``->`` and those of the outputs, for an operator that
        the `onnx` package does not define; ``?`` follows that of an input that may be left out,
        ``*`` the last one if there may be several.
    infer : callable or None
        Type and shape of each output, for such an operator.
    """

    name: str
    versions: tuple[int, ...]
    types: Types
    lower: Lower | None
    constants: Mapping[int, Sequence[int]]
    graph: bool | str = True
    query: Callable[[Any, Any], str] | None = None
    domain: str = ""
    formals: tuple[str, ...] = ()
    infer: Callable[[Any, Any], Any] | None = None

    def types_at(self, version: int) -> dict[str, tuple[str, ...]]:
        """The types of each type parameter in a version."""
        return _types_in(_at(self.types, version) or "")

    def constants_at(self, version: int) -> tuple[int, ...]:
        """The positions of inputs that must be constant in a version."""
        return tuple(_at(self.constants, version) or ())


@cache
def _types_in(text: str) -> dict[str, tuple[str, ...]]:
    return {
        name.strip(): tuple(types.split())
        for name, _, types in (part.partition("=") for part in text.split(";"))
    }


def _at(table: Mapping[int, Any], version: int) -> Any:
    return next((table[since] for since in sorted(table, reverse=True) if since <= version), None)
