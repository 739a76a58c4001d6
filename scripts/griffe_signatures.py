"""An extension of griffe: signatures on the site have the types that the docstrings name.

The implementation behind a function's overloads takes `Any`, and other keywords only to report
them. The site shows its parameters without these keywords, and with the types of the docstring
where one is a single word.
"""

from __future__ import annotations

from typing import Any

import griffe


class Signatures(griffe.Extension):
    """Changes the signatures of functions that have overloads."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Called with each function of a package that has been loaded."""
        if not func.overloads or func.docstring is None:
            return
        if "unknown" in func.parameters:
            del func.parameters["unknown"]
        parameters: dict[str, str] = {}
        for section in func.docstring.parse("numpy"):
            if section.kind is griffe.DocstringSectionKind.parameters:
                for item in section.value:
                    parameters[item.name] = _word(item.annotation)
            elif section.kind is griffe.DocstringSectionKind.returns:
                parameters["return"] = _word(section.value[0].annotation)
        for parameter in func.parameters:
            parameter.annotation = parameters.get(parameter.name) or None
        func.returns = parameters.get("return") or None


def _word(annotation: object) -> str:
    """The type's name, or nothing where it takes more than a word."""
    word = str(annotation).partition(", ")[0]
    return word if word.isidentifier() else ""
