"""An extension of griffe: signatures of functions with overloads are as one would call them.

The implementation behind a function's overloads takes `Any`, and other keywords only to report
them. The site shows its parameters without these keywords and types, which the list of parameters
below has. The overloads become a table of what differs between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import griffe

_NOT_PASSED: Final = "–"
_SHORT: Final = {
    r"\bt\.": "",
    r"\bTypeOf\b": "dtype",
    r"Given(?:Index)?Type": "DType",
    r"\bArrayOf\b": "NDArray",
    r"\bOperand\b": "ArrayLike | Array",
    r"\bPlain\b": "ArrayLike",
    r"\bOther\b": "Array",
    r"\bScalar\b": "T",
    r"\bIndex\b": "I",
    r"\bOutIndices\b": "OutI",
    r"ArrayLike \| ArrayLike": "ArrayLike",
    r"^None$": _NOT_PASSED,
}
"""Names of `anydml.functions._types` as the site shows and explains them."""


class Signatures(griffe.Extension):
    """Changes the signatures of functions that have overloads."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Called with each function of a package that has been loaded."""
        if not func.overloads or func.docstring is None:
            return
        if "unknown" in func.parameters:
            del func.parameters["unknown"]
        for parameter in func.parameters:
            parameter.annotation = None
        func.returns = None
        func.extra["anydml"]["overloads"] = [*_table(func.overloads)]


def _table(overloads: list[griffe.Function]) -> Iterator[list[str]]:
    """A heading, and a row for each overload: the parameters that differ, and the result."""
    rows = [dict(_parameters(overload)) for overload in overloads]
    names = [name for name in rows[0] if len({row.get(name) for row in rows}) > 1]
    yield [*names, "returns"]
    for overload, row in zip(overloads, rows, strict=True):
        yield [*(row.get(name, _NOT_PASSED) for name in names), _type(overload.returns)]


def _parameters(overload: griffe.Function) -> Iterator[tuple[str, str]]:
    """Parameters with their types; of those in `Options`, the ones that overloads differ in."""
    for item in overload.parameters:
        options = re.fullmatch(r"Unpack\[\w+\[(.*)\]\]", str(item.annotation))
        types = options[1].split(", ", 1) if options else []
        names = ("index_dtype", "out")[-len(types) :] if options else (item.name,)
        yield from zip(names, map(_type, types or [item.annotation]), strict=True)


def _type(annotation: object) -> str:
    text = str(annotation)
    for name, short in _SHORT.items():
        text = re.sub(name, short, text)
    return text
