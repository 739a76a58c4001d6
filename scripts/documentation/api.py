"""The API reference of the site: pages that show the docstrings of all public names.

A page lists names, and mkdocstrings puts their signatures and docstrings in their place. The names
are those of `anydml.__all__`; descriptors of operators have pages of their own. `hook.py` puts the
pages into the site; nothing of them is in the repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import anydml
from anydml import models
from anydml.core.enums import NamedEnum
from anydml.devices.dispatch import Compiled
from anydml.ops._descriptor import Descriptor
from anydml.pydirectml import _functions, _graph, _types


class Page(NamedTuple):
    """A page, and the modules below `anydml` whose public names it has."""

    name: str
    title: str
    text: str
    modules: tuple[str, ...] = ()


ERRORS = Page("errors", "Errors", "Every error derives from `anydml.AnyDMLError`.")
ENUMERATIONS = Page(
    "enumerations",
    "Enumerations",
    'An enumeration\'s value is also taken by its name: `"FLOAT32"` for `DataType.FLOAT32`.',
)
OTHERS = Page(
    "descriptors",
    "Devices and descriptors",
    "A class for each operator, with its fields and its support table, is on the pages of the "
    "[operators](../operators/index.md).",
)
PAGES = (
    Page(
        "functions",
        "Array functions",
        "They take and return arrays of NumPy, PyTorch, JAX, CuPy and Dask. "
        "[Array functions](../array-functions.md) shows their use.\n\n"
        "The **overloads** below each signature are what type checkers use. In their tables "
        "`NDArray` is a NumPy array, `Array` an array of another library, and `ArrayLike` a "
        "number, list or buffer. `T` and `I` are element types, `DType` names an element type, "
        "and `Out` is the type of the array in `out=`. A dash means that the argument is not "
        "passed.",
        ("functions",),
    ),
    OTHERS,
    Page("graphs", "Graphs", "[Graphs](../graphs.md) shows their use.", ("graphs",)),
    Page(
        "settings",
        "Threads and memory",
        "[Performance](../performance.md) has what a call takes of both.",
        ("threads", "memory"),
    ),
    ENUMERATIONS,
    ERRORS,
)
MODULES: dict[str, list[str]] = {
    "anydml.torch": ["deterministic"],
    "anydml.jax": ["TARGET"],
    "anydml.dask": [],
    "anydml.judge": ["judge", "Answer", "Promise"],
    "anydml.models": models.__all__,
    "anydml.pydirectml": [*_types.__all__, *_graph.__all__, *_functions.__all__],
}
"""Public modules besides the package itself, and the names that are shown of each."""
OPTIONS = """\
      filters: ["!^_"]
      show_attribute_values: false
      show_bases: false
"""
"""Of these modules: without what a program does not call."""


def page_of(name: str) -> Page | None:
    """The page that has a public name; None for a descriptor of an operator."""
    value = getattr(anydml, name)
    if isinstance(value, type) and issubclass(value, NamedEnum):
        return ENUMERATIONS
    if isinstance(value, type) and issubclass(value, Descriptor) and value is not Descriptor:
        return None
    if value.__module__ == "anydml":  # errors, as core/errors.py sets it
        return ERRORS
    parts = value.__module__.split(".")
    return next((page for page in PAGES if set(parts) & {*page.modules}), OTHERS)


def menu() -> list[dict[str, str]]:
    """The part of the navigation that leads to the pages."""
    return [{page.title: f"api/{page.name}.md"} for page in PAGES] + [{"Modules": "api/modules.md"}]


def pages() -> dict[str, str]:
    """The text of every page by file name."""
    names: dict[Page | None, list[str]] = {page: [] for page in PAGES}
    for name in anydml.__all__:
        names.setdefault(page_of(name), []).append(name)
    return {f"{page.name}.md": "\n\n".join(_text(page, names[page])) + "\n" for page in PAGES} | {
        "modules.md": "\n\n".join(_modules()) + "\n"
    }


def _text(page: Page, names: list[str]) -> Iterator[str]:
    yield f"# {page.title}"
    yield page.text
    for name in names:
        value = getattr(anydml, name)
        inherits = isinstance(value, type) and issubclass(value, Compiled)
        options = "\n    options:\n      inherited_members: true" if inherits else ""
        yield f"::: anydml.{name}{options}"


def _modules() -> Iterator[str]:
    yield "# Modules"
    yield "`import anydml` does not import these modules: import each by its name."
    for module, names in MODULES.items():
        yield f"::: {module}\n    options:\n{OPTIONS}      members: {json.dumps(names)}"
