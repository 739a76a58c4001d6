"""Operators by name, and the messages about unknown names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from anydml.core import _json
from anydml.core.errors import ArgumentTypeError, ModelError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.problems import Problem, members
from anydml.core.tolerance import Tolerance
from anydml.ops._computed import Computed
from anydml.ops._descriptor import DEFINED, DESCRIBED_IN, Arrays, Attributes, Descriptor
from anydml.ops._fields import PREFIX as OPERATOR_PREFIX
from anydml.ops._pages import Support

OPERATORS: Final[Mapping[str, type[Descriptor]]] = dict(sorted(DEFINED.items()))
"""The definition of each operator, by its names."""

PREFIX: Final = OPERATOR_PREFIX

_COMPUTATIONS: Final[Mapping[str, type[Descriptor]]] = {
    kind.KERNEL: kind for kind in OPERATORS.values() if kind.compute is not Descriptor.compute
}

_STRUCTURE: Final = re.compile(r"DML_(\w{1,60})_OPERATOR_DESC")
_SHORT_NAMES: Final = {
    "dml": "anydml", "np": "numpy", "jnp": "jax.numpy", "lax": "jax.lax",
    "f": "torch.nn.functional", "nn": "torch.nn",
}  # fmt: skip
_RECIPES: Final = {
    name: use
    for use, names in {
        'scatter_elements(bins, indices, 1, reduction="add")': "bincount histc histogram",
        "scatter_elements with a reduction": (
            "groupby scatter_add scatter_reduce segment_max segment_min segment_sum"
        ),
        'scatter_nd(x, index[:, None], source, reduction="add")': "index_add",
        "top_k with k the size of the axis and largest=False": "argsort sort",
    }.items()
    for name in names.split()
}
"""Array functions that do what others are called; docs/names.md has the same."""

_LONGEST: Final = 60
"""The longest name for which a similar one is suggested."""


def operator_named(name: str) -> type[Descriptor]:
    """The descriptor class of an operator, named with or without ``DML_OPERATOR_``.

    Raises
    ------
    ModelError
        DirectML has no such operator.
    """
    found = OPERATORS.get(name.removeprefix(PREFIX))
    if found is None:
        raise ModelError(unknown_operator(name))
    return found


def operator_meant(name: str) -> str | None:
    """The name in `OPERATORS` of the operator that a name means, or None.

    The name is an operator's in any case, its descriptor class's or structure's, or what ONNX,
    NumPy, PyTorch, JAX or the array functions here call it: ``top_k1``, ``TopK1``,
    ``DML_TOP_K1_OPERATOR_DESC``, ``torch.topk``, ``lax.top_k``, ``torch.nn.GELU``, ``Concat``.
    """
    plain = _plain(name)
    for known, kind in OPERATORS.items():
        if plain in (known.lower(), kind.__name__.lower()):
            return known
    full, last = _also_known()
    library, dot, rest = plain.partition(".")
    if not dot:
        return last.get(plain)
    spelled = f"{_SHORT_NAMES.get(library, library)}.{rest}"
    if spelled in full:
        return full[spelled]
    # A library has a function in several places: torch.conv2d, torch.nn.functional.conv2d.
    top, end = f"{spelled.partition('.')[0]}.", f".{spelled.rpartition('.')[2]}"
    candidates = (also for also in full if also.startswith(top) and also.endswith(end))
    return full.get(min(candidates, key=len, default=""))


def function_called(name: str) -> str | None:
    """Find what another library calls ``topk``: the array function of that meaning, else the class.

    For ``histogram`` and others that are calls of an array function, that call.
    """
    operator = _also_known()[1].get(_plain(name)) or operator_meant(name)
    if operator is None:
        recipe = _RECIPES.get(_plain(name))
        return recipe and f"anydml.{recipe}"
    also = OPERATORS[operator].ALSO_KNOWN_AS.split()
    kind = f"anydml.{OPERATORS[operator].__name__}"
    return next((full for full in also if full.startswith("anydml.")), kind)


def page_of(path: str) -> str | None:
    """The address of the page of the operator that a violation's path names; None without one.

    Examples
    --------
    >>> from anydml.ops._registry import page_of
    >>> page_of("TOP_K.Axis")
    'https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_top_k_operator_desc'
    """
    name = next((part for part in path.split(".") if part in OPERATORS), None)
    if name is None:
        return None
    # Pages of later feature levels are in a place of their own.
    later = OPERATORS[name].SUPPORT[0].level > FeatureLevel.LEVEL_5_0
    folder = "windows/ai/directml/api" if later else "windows/win32/api/directml"
    return f"https://learn.microsoft.com/{folder}/ns-directml-dml_{name.lower()}_operator_desc"


def page_lines(violations: Iterable[Violation]) -> Iterator[str]:
    """A line with the address of each page that violations are about."""
    pages = dict.fromkeys(page_of(item.path) for item in violations)
    yield from (f"Page: {address}" for address in pages if address)


def unknown_operator(name: str) -> str:
    """The message about a name that is not in `OPERATORS`, with a suggestion if one is close."""
    recipe = _RECIPES.get(_plain(name).rpartition(".")[2])
    if recipe is not None:
        return (
            f"Expected the name of a DirectML operator, got {_json.short_repr(name)}; use the "
            f"array function {recipe} (docs/names.md has more)."
        )
    plain = _plain(name).upper()
    near = operator_meant(name) or operator_meant(name.rpartition(".")[2])
    if near is None and 2 < len(plain) <= _LONGEST:
        near = _json.similar(plain, OPERATORS)
        near = near or next((known for known in OPERATORS if _is_part(plain, known)), None)
        near = near or _similar_elsewhere(plain.lower().rpartition(".")[2])
    hint = f"; did you mean {near!r}?" if near else " (`anydml ops` lists them)."
    return f"Expected the name of a DirectML operator, got {_json.short_repr(name)}{hint}"


def _similar_elsewhere(name: str) -> str | None:
    """The operator of a similar name in another library, as ``Concat``."""
    last = _also_known()[1]
    found = _json.similar(name, (known for known in last if known[:1] == name[:1]))
    return None if found is None else last[found]


def _plain(name: str) -> str:
    """A name in lower case, without what the header puts around an operator's."""
    structure = _STRUCTURE.fullmatch(name)
    return (structure[1] if structure else name.removeprefix(PREFIX)).lower()


def _is_part(name: str, known: str) -> bool:
    """Whether a name begins a known one, or is the rest of one behind its family's name."""
    return known.startswith(name) or known.endswith(f"_{name}")


@cache
def _also_known() -> tuple[dict[str, str], dict[str, str]]:
    """Operators by what they are called elsewhere, in full, and by the last part of that.

    The last part of several names stands for the shortest one: ``conv2d`` for
    ``torch.nn.functional.conv2d``, not for its quantized form.
    """
    full = {
        also.lower(): kind.NAME
        for kind in OPERATORS.values()
        for also in kind.ALSO_KNOWN_AS.split()
    }
    last: dict[str, list[str]] = {}
    for also in full:
        last.setdefault(also.rpartition(".")[2], []).append(also)
    return full, {end: full[min(names, key=len)] for end, names in last.items()}


def definition_of(kernel: str) -> type[Descriptor]:
    """The definition whose `compute` does what a kernel does."""
    return _COMPUTATIONS[kernel]


def computation(kernel: str) -> type[Descriptor] | None:
    """The definition whose `compute` does what a kernel does, if there is one."""
    return _COMPUTATIONS.get(kernel)


def is_computed(kernel: str) -> bool:
    """Whether a kernel is that of a computed operator."""
    return issubclass(OPERATORS.get(kernel, Descriptor), Computed)


def is_elementwise(kernel: str) -> bool:
    """Whether a kernel makes each element of its output from those at the same place alone."""
    kind = OPERATORS.get(kernel, Descriptor)
    return issubclass(kind, Computed) and kind.ELEMENTWISE


def evaluation(kernel: str) -> Callable[[Arrays, Arrays, Attributes], None]:
    """The reference implementation of a kernel that no `compute` describes."""
    kinds: list[type[Descriptor]] = [Descriptor]
    for kind in kinds:
        if getattr(kind, "KERNEL", None) == kernel:
            return kind.evaluate
        kinds += kind.__subclasses__()
    raise LookupError(f"{kernel}: no operator uses this kernel")


def support(operator: type[Descriptor] | Descriptor | str) -> tuple[Support, ...]:
    """An operator's support table, lowest feature level first.

    Parameters
    ----------
    operator : descriptor class, descriptor or name
        As `TopK1` or ``"TOP_K1"``.

    Returns
    -------
    tuple of Support
        Rows of a level and, by tensor name, the ranks and data types that it accepts.

    Examples
    --------
    >>> import anydml as dml
    >>> [row.level.suffix for row in dml.support(dml.Split)]
    ['1_0', '2_1', '3_0', '4_1']
    """
    return _kind_of(operator).SUPPORT


def tolerance(operator: type[Descriptor] | Descriptor | str) -> Tolerance:
    """How far an operator's results may be from the exact ones.

    Parameters
    ----------
    operator : descriptor class, descriptor or name
        As `TopK1` or ``"TOP_K1"``.

    Returns
    -------
    Tolerance
        A unit, and how many of it: ``EXACT`` for the same bits on every device.

    Examples
    --------
    >>> import anydml as dml
    >>> str(dml.tolerance("TOP_K1"))
    'EXACT'
    """
    return _kind_of(operator).TOLERANCE


def _kind_of(operator: type[Descriptor] | Descriptor | str) -> type[Descriptor]:
    if isinstance(operator, str):
        return _json.field({"operator": operator}, "operator", operator_named)
    kind = operator if isinstance(operator, type) else type(operator)
    if not issubclass(kind, Descriptor) or "NAME" not in dir(kind):
        raise ArgumentTypeError(
            f"operator: expected a descriptor class or a name, got {_json.short_repr(operator)}"
        )
    return kind


def from_json(value: Any) -> Descriptor:
    """The descriptor that a JSON object describes.

    Parameters
    ----------
    value : mapping
        ``type`` (the operator's name, with or without ``DML_OPERATOR_``), and the page's fields
        beside it or under ``desc`` or ``Desc``.

    Raises
    ------
    ModelError
        An unknown operator; fields missing, of the wrong kind or out of range: ``problems`` has
        all of them.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.from_json({"type": "SPLIT", "InputTensor": {"DataType": "FLOAT32", "Sizes": [2]},
    ...                "OutputCount": 1, "Axis": 0,
    ...                "OutputTensors": [{"DataType": "FLOAT32", "Sizes": [2]}]}).axis
    0
    """
    if isinstance(value, Mapping) and "Nodes" in value and "type" not in value:
        raise ModelError("Expected an operator, got a graph; GraphDesc.from_json reads it.")
    return _read(value, lambda problem, operator: problem.below(operator.NAME))


def read_descriptor(value: Any) -> Descriptor:
    """Read a descriptor as `from_json` does, with paths that begin below the operator's name."""
    return _read(value, lambda problem, _: problem)


def _read(value: Any, reword: Callable[[Problem, type[Descriptor]], Problem]) -> Descriptor:
    record = _json.json_object(value)
    operator = _json.operator_type(record, lambda name: operator_named(_json.json_string(name)))
    try:
        return operator.read_described(record)
    except ModelError as error:
        problems = [*_json.problems_of(error)]
        desc = _json.partial_of(error)
        if isinstance(desc, Descriptor):  # also report the rules that other fields break
            below = tuple(name for name in DESCRIBED_IN if name in record)[:1]
            for item in desc.violations(LATEST):
                path = item.path.removeprefix(f"{operator.NAME}.")
                text = str(item)[len(item.path) + 2 :]
                problems.append(Problem.at(path, text, item.code, (*below, *members(path))))
        raise ModelError(*(reword(problem, operator) for problem in problems)) from error
