"""Operator name → room: the one table of all operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from anydml import _json
from anydml.errors import ArgumentTypeError, ModelError
from anydml.exactness import Tolerance
from anydml.ops._descriptor import Arrays, Attributes, Descriptor
from anydml.ops._fields import PREFIX as OPERATOR_PREFIX
from anydml.ops._pages import Support
from anydml.ops.cast import Cast
from anydml.ops.element_wise_identity import ElementWiseIdentity
from anydml.ops.fill_value_constant import FillValueConstant
from anydml.ops.fill_value_sequence import FillValueSequence
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND, GatherND1
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.padding1 import Padding, Padding1
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.slice1 import Slice, Slice1
from anydml.ops.split import Split
from anydml.ops.tile import Tile
from anydml.ops.top_k import TopK, TopK1
from anydml.ops.upsample_2d import Upsample2D

OPERATORS: Final[Mapping[str, type[Descriptor]]] = {
    "CAST": Cast,
    "ELEMENT_WISE_IDENTITY": ElementWiseIdentity,
    "FILL_VALUE_CONSTANT": FillValueConstant,
    "FILL_VALUE_SEQUENCE": FillValueSequence,
    "GATHER": Gather,
    "GATHER_ELEMENTS": GatherElements,
    "GATHER_ND": GatherND,
    "GATHER_ND1": GatherND1,
    "JOIN": Join,
    "NONZERO_COORDINATES": NonzeroCoordinates,
    "PADDING": Padding,
    "PADDING1": Padding1,
    "REVERSE_SUBSEQUENCES": ReverseSubsequences,
    "SCATTER": Scatter,
    "SCATTER_ELEMENTS": Scatter,
    "SCATTER_ND": ScatterND,
    "SLICE": Slice,
    "SLICE1": Slice1,
    "SPLIT": Split,
    "TILE": Tile,
    "TOP_K": TopK,
    "TOP_K1": TopK1,
    "UPSAMPLE_2D": Upsample2D,
}


PREFIX: Final = OPERATOR_PREFIX


def operator_named(name: str) -> type[Descriptor]:
    """The descriptor class of an operator, named with or without ``DML_OPERATOR_``.

    Raises
    ------
    ModelError
        No such operator here.
    """
    found = OPERATORS.get(name.removeprefix(PREFIX))
    if found is None:
        known = ", ".join(OPERATORS)
        near = _json.meant(name.removeprefix(PREFIX), OPERATORS)
        raise ModelError(
            f"Expected an operator that anydml has ({known}), got {_json.shown(name)}{near or '.'}"
        )
    return found


def evaluation(kernel: str) -> Callable[[Arrays, Arrays, Attributes], None]:
    """The reference implementation of a kernel: the room's own."""
    return next(kind.evaluate for kind in OPERATORS.values() if kernel == kind.KERNEL)


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
        return operator_named(operator)
    kind = operator if isinstance(operator, type) else type(operator)
    if not issubclass(kind, Descriptor) or kind is Descriptor:
        raise ArgumentTypeError(
            f"operator: expected a descriptor class or a name, got {_json.shown(operator)}"
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
    given = _json.json_object(value)
    operator = operator_named(_json.field(given, "type", _json.json_string))
    return operator.read_described(given)
