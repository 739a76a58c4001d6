"""Writes the suite: a model with files for each case, and the index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ArgumentError, ModelError
from anydml.core.levels import LATEST, FeatureLevel
from anydml.models.files import system_reason
from anydml.models.formats import npy_pieces
from anydml.ops._descriptor import Descriptor
from anydml.ops._registry import OPERATORS
from anydml.suite.cases import GRAPHS, Draft, graph_case, operator_cases

FORMAT: Final = 1
INDEX: Final = "index.json"
GRAPH: Final = "graph"
"""In place of an operator's name, for the cases that are graphs."""


def write(
    folder: str | Path,
    operators: Iterable[str] = (),
    feature_level: FeatureLevel | str = LATEST,
    seed: int = 0,
) -> int:
    """Write the conformance suite into a new or empty folder.

    Parameters
    ----------
    folder : str or Path
        The folder.
    operators : iterable of str
        Names of operators, and ``"graph"``; all if left out.
    feature_level : FeatureLevel or str
        The level that implementations are judged at.
    seed : int
        Another seed makes other cases. The same one makes the same bytes, with one version of
        anydml and NumPy on one processor.

    Returns
    -------
    int
        The number of cases.

    Raises
    ------
    ArgumentError
        An operator or level that does not exist.
    ModelError
        The folder is not empty, or cannot be written.
    """
    level = FeatureLevel.parse(feature_level)
    chosen = chosen_operators(operators)
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise ModelError(f"Folder {short_repr(str(target))}: expected a new or empty folder.")
        records = [_write_case(target, draft) for draft in _drafts(chosen, level, seed)]
        head = {"format": FORMAT, "featureLevel": level.suffix, "seed": seed}
        lines = ",\n".join(json.dumps(record) for record in records)
        text = f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n'
        (target / INDEX).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        reason = system_reason(error)
        raise ModelError(
            f"Folder {short_repr(str(target))} cannot be written: {reason}."
        ) from error
    return len(records)


def chosen_operators(names: Iterable[str]) -> Sequence[str]:
    """Names of operators that exist, and of graphs; all if there are none.

    Raises
    ------
    ArgumentError
        One does not exist.
    """
    known = [*dict.fromkeys(kind.NAME for kind in OPERATORS.values()), GRAPH]
    names = list(names)
    for name in names:
        if name not in known:
            raise ArgumentError(
                f"operators: expected names of DirectML's operators or {GRAPH!r}, got "
                f"{short_repr(name)}{did_you_mean(name, known)}"
            )
    return names or known


def _drafts(names: Sequence[str], level: FeatureLevel, seed: int) -> Iterator[Draft]:
    for name in names:
        if name == GRAPH:
            yield from (graph_case(i, level, seed) for i in range(GRAPHS))
        else:
            kind: type[Descriptor] = OPERATORS[name]
            yield from operator_cases(kind, level, seed)


def _write_case(folder: Path, draft: Draft) -> dict[str, Any]:
    place = folder / draft.name
    place.parent.mkdir(exist_ok=True)
    place.with_name(f"{place.name}.json").write_text(
        json.dumps(draft.document), encoding="utf-8", newline="\n"
    )
    for name, array in draft.arrays.items():
        with place.with_name(f"{place.name}.{name}.npy").open("xb") as file:
            file.writelines(npy_pieces(np.ascontiguousarray(array)))
    return {"name": draft.name, **draft.record}
