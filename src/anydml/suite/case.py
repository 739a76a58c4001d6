"""Cases as runners and the judge see them, read from a folder that is not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.levels import FeatureLevel
from anydml.core.tensor import MAX_DIMENSIONS
from anydml.core.tolerance import Tolerance, Unit
from anydml.models.document import read_document
from anydml.models.files import Folder, Limits, parts_below
from anydml.models.formats import read_array
from anydml.models.text import Text
from anydml.suite.write import FORMAT, INDEX

Array = np.ndarray[Any, np.dtype[Any]]

_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,80}/[a-z]{1,20}-[0-9]{1,9}")
_LARGEST: Final = 1 << 24
"""Elements of a buffer."""


class Refused(Exception):  # noqa: N818  # a result that may be returned or raised
    """A runner's answer that an implementation does not accept a case.

    Parameters
    ----------
    reason : str
        What the implementation says, for people.
    rules : iterable of (str, str)
        The path and the code of each broken rule, where they are known. A refusal without them is
        judged by the verdict alone.
    unsupported : bool
        Whether the implementation lacks the operator or its data types, which is not a fault.
    """

    def __init__(
        self, reason: str = "", *, rules: Iterable[tuple[str, str]] = (), unsupported: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rules = tuple(rules)
        self.unsupported = unsupported


@dataclass(frozen=True)
class Output:
    """One output of an accepted case.

    Attributes
    ----------
    dtype : numpy.dtype
        Its element type.
    sizes, strides : tuple of int
        Where elements are in the buffer, in elements.
    elements : int or None
        How many elements in row-major order are defined; None for all.
    """

    dtype: np.dtype[Any]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int | None

    def __post_init__(self) -> None:
        numbers = (*self.sizes, *self.strides, self.elements or 0)
        if not all(type(n) is int and 0 <= n <= _LARGEST for n in numbers) or (
            not 0 < len(self.sizes) == len(self.strides) <= MAX_DIMENSIONS
            or 0 in self.sizes
            or self.length > _LARGEST
        ):
            raise ValueError("sizes and strides of no tensor")

    @property
    def length(self) -> int:
        """Elements of the smallest buffer."""
        return 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes
    ----------
    name : str
        As ``TOP_K1/accepted-00``.
    folder : Path
        The suite's folder.
    operator : str
        An operator, or ``"graph"``.
    level : FeatureLevel
        At which the verdict holds.
    verdict : str
        ``"accepted"`` or ``"refused"``.
    source : str
        ``"page"`` for a rule of the reference page, ``"observed"`` for what DirectML does besides.
    code, path : str
        Of the first broken rule of a refused case.
    outputs : dict of str to Output
        By the resource that has the output.
    tolerance, webnn
        Our tolerance and WebNN's.
    """

    name: str
    folder: Path
    operator: str
    level: FeatureLevel
    verdict: str
    source: str
    code: str
    path: str
    outputs: Mapping[str, Output]
    tolerance: Tolerance
    webnn: Mapping[str, Any]

    @property
    def model(self) -> Path:
        """The DxDispatch model; its files are in the same folder."""
        return self.folder / f"{self.name}.json"

    @cached_property
    def document(self) -> Text:
        """The model, parsed."""
        found = read_document(self.model, Limits())
        if not isinstance(found, Text):
            raise ModelError(f"Case {self.name}: expected a JSON model, got a graph.")
        return found

    def buffers(self) -> dict[str, Array]:
        """A new buffer for each resource: the input, or zeros."""
        found = {}
        for name, record in self.document["resources"].items():
            values = record["initialValues"]
            if "sourcePath" in values:
                parts = parts_below(Folder.of(self.model.parent), values["sourcePath"])
                found[name] = read_array(self.model.parent.joinpath(*parts)).reshape(-1)
            elif 0 < values["valueCount"] <= _LARGEST:
                data_type = DataType.parse(record["initialValuesDataType"])
                found[name] = np.zeros(values["valueCount"], data_type.numpy)
        return found

    def stored(self, output: str, what: str) -> Array | None:
        """The expected elements of an output, or their magnitudes if there are any."""
        file = output.replace("[", "_").replace("]", "")
        path = self.model.with_name(f"{self.name.rpartition('/')[2]}.{file}.{what}.npy")
        if what == "magnitude" and not path.exists():
            return None
        array = read_array(path)
        if array.size != np.prod(self.outputs[output].sizes, dtype=np.int64):
            raise ModelError(f"File {str(path)!r}: expected the sizes of {output}.")
        return array.reshape(self.outputs[output].sizes)


def read_suite(folder: str | Path, operators: Iterable[str] = ()) -> list[Case]:
    """The cases of a suite, or those of some operators.

    Raises
    ------
    ModelError
        The index cannot be read, or something in it is wrong.
    """
    root, wanted = Path(folder), {*operators}
    index = read_document(root / INDEX, Limits())
    with only_written(INDEX):
        if not isinstance(index, Text) or index["format"] != FORMAT:
            raise ValueError("a file of another format")
        cases = [_case(root, record) for record in index["cases"]]
        cases = [case for case in cases if not wanted or case.operator in wanted]
        if not cases:
            raise ValueError("no cases")
    return cases


@contextmanager
def only_written(name: str) -> Iterator[None]:
    """Report whatever is wrong with the structure of a file as one error."""
    try:
        yield
    except (AnyDMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        found = str(e) if isinstance(e, AnyDMLError) else short_repr(e, 200)
        raise ModelError(f"{name}: expected what `anydml suite write` writes, got {found}") from e


def _case(root: Path, record: dict[str, Any]) -> Case:
    if not _NAME.fullmatch(record["name"]) or record["verdict"] not in ("accepted", "refused"):
        raise ValueError(f"name {record['name']!r}, verdict {record['verdict']!r}")
    is_accepted = record["verdict"] == "accepted"
    exact: dict[str, Any] = {"tolerance": {"unit": "bits", "count": 0}, "webnn": {"ulp": (0, 0)}}
    bounds = record if is_accepted else exact
    tolerance = bounds["tolerance"]
    ((unit, (single, half)),) = bounds["webnn"].items()
    outputs = {
        str(name): Output(
            DataType.parse(item["dataType"]).numpy, tuple(item["sizes"]), tuple(item["strides"]),
            item.get("elements"),
        )
        for name, item in (record["outputs"] if is_accepted else {}).items()
    }  # fmt: skip
    return Case(
        record["name"], root, str(record["operator"]), FeatureLevel.parse(record["level"]),
        record["verdict"], str(record["source"]),
        "" if is_accepted else record["code"], "" if is_accepted else record["path"],
        outputs, Tolerance(Unit(tolerance["unit"]), float(tolerance["count"])),
        {str(unit): (float(single), float(half))},
    )  # fmt: skip
