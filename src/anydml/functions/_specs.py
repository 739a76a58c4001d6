"""The array functions, each by its `FunctionSpec`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from anydml.core.errors import ArgumentError
from anydml.functions import _attributes, _blocks, _combining
from anydml.functions import _spec_compose as compose
from anydml.functions import _spec_prepare as prepare
from anydml.functions import _spec_programs as programs
from anydml.functions import _spec_rules as rules
from anydml.functions._spec import Array, Attribute, FunctionSpec
from anydml.ops.cast import Cast
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.padding1 import Padding1
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.slice1 import Slice1
from anydml.ops.split import Split
from anydml.ops.tile import Tile
from anydml.ops.top_k import TopK1

Values = TypeVar("Values")
Indices = TypeVar("Indices")


class TopKResult(NamedTuple, Generic[Values, Indices]):
    """What `top_k` returns: the values and their indices along the axis."""

    values: Values
    indices: Indices


def _indices(attributes: Any) -> tuple[Sequence[int], Sequence[int]]:
    return (1,), ()


_AXIS: Final = Attribute("axis", "integer")
_CLAMP: Final = Attribute("clamp", "flag")
_REDUCTION: Final = (Attribute("reduction", "word"), Attribute("include_self", "flag"))


def _mode(attributes: Any) -> str:
    return "clamp" if attributes[1] else "raise"


def _point_along(operands: Sequence[Array], attributes: Any) -> _blocks.Pointing:
    return 0, tuple(None if i == attributes[0] else i for i in range(operands[0].ndim)), False


def _point_by_tuples(operands: Sequence[Array], batch: int) -> _blocks.Pointing:
    return 0, (*range(batch), *(None,) * operands[1].shape[-1]), True


TOP_K: Final = FunctionSpec(
    "top_k",
    TopK1,
    ("x",),
    (
        Attribute("k", "size"),
        _AXIS,
        Attribute("largest", "flag"),
        Attribute("index_dtype", "type"),
    ),
    prepare.top_k,
    prepare.one_array,
    arguments=lambda operands, a: (a[1], a[0], a[2], a[3]),
    keywords=lambda a: {"k": a[0], "axis": a[1], "largest": a[2], "index_dtype": a[3]},
    batch=rules.batch_along("top_k", 1),
    tangent=rules.tangent_top_k,
    gradient=rules.gradient_top_k,
    saves=lambda a: ((), (1,)),
    result_types=(0, "index_dtype"),
    result_class=TopKResult,
    program=programs.call_with_numbers,
    check=lambda operands, a: _attributes.check_type(operands[0], _attributes.ORDERED),
    chunking=_blocks.Tree(1, _blocks.select, _blocks.merge_selected),
    bounds=lambda operands, a: (a[0] >= 0, a[0] <= operands[0].shape[a[1]]),
)

NONZERO_COORDINATES: Final = FunctionSpec(
    "nonzero_coordinates",
    NonzeroCoordinates,
    ("x",),
    (
        Attribute("index_dtype", "type"),
        Attribute("size", "size", -1),
        Attribute("fill_value", "integer", 0),
    ),
    prepare.nonzero_coordinates,
    prepare.one_array,
    arguments=lambda operands, a: (a[0],) if a[1] < 0 else None,
    keywords=lambda a: {
        "index_dtype": a[0],
        "size": None if a[1] < 0 else a[1],
        "fill_value": a[2],
    },
    batch=rules.batch_nonzero,
    result_types=("index_dtype",),
    inferred=lambda operands, attribute_values: {**attribute_values, "columns": operands[0].ndim},
    program=programs.nonzero_coordinates,
    check=lambda operands, a: _attributes.check_type(operands[0], _attributes.COMPARED),
    chunking=_blocks.Rows(_blocks.mark_nonzero, _blocks.find_nonzero),
)

GATHER: Final = FunctionSpec(
    "gather",
    Gather,
    ("x", "indices"),
    (_AXIS, _CLAMP),
    prepare.gather,
    prepare.array_and_indices,
    arguments=lambda operands, a: (a[0], _mode(a)),
    keywords=lambda a: {"axis": a[0], "mode": _mode(a)},
    batch=rules.batch_gather,
    tangent=rules.linear("gather"),
    gradient=rules.gradient_gather,
    saves=_indices,
    chunking=_blocks.Indexed(lambda operands, a: (a[0], (None,), False)),
)

GATHER_ELEMENTS: Final = FunctionSpec(
    "gather_elements",
    GatherElements,
    ("x", "indices"),
    (_AXIS, _CLAMP),
    prepare.gather_elements,
    prepare.array_and_indices,
    arguments=lambda operands, a: (a[0], _mode(a)),
    keywords=lambda a: {"axis": a[0], "mode": _mode(a)},
    batch=rules.batch_along("gather_elements", 0),
    tangent=rules.linear("gather_elements"),
    gradient=rules.gradient_gather_elements,
    saves=_indices,
    chunking=_blocks.Indexed(_point_along),
)

GATHER_ND: Final = FunctionSpec(
    "gather_nd",
    GatherND,
    ("x", "indices"),
    (Attribute("batch_dims", "integer"), _CLAMP),
    prepare.gather_nd,
    prepare.array_and_indices,
    arguments=lambda operands, a: (a[0], _mode(a)),
    keywords=lambda a: {"batch_dims": a[0], "mode": _mode(a)},
    batch=rules.batch_along("gather_nd", 0),
    tangent=rules.linear("gather_nd"),
    gradient=rules.gradient_gather_nd,
    saves=_indices,
    chunking=_blocks.Indexed(lambda operands, a: _point_by_tuples(operands, a[0])),
)

SCATTER_ELEMENTS: Final = FunctionSpec(
    "scatter_elements",
    Scatter,
    ("x", "indices", "updates"),
    (_AXIS, *_REDUCTION),
    prepare.scatter_elements,
    prepare.array_indices_and_updates,
    arguments=lambda operands, a: (a[0], a[1]) if a[2] else None,
    keywords=lambda a: {"axis": a[0], "reduction": a[1], "include_self": a[2]},
    batch=rules.batch_along("scatter_elements", 0),
    tangent=rules.tangent_scatter,
    gradient=rules.gradient_scatter,
    saves=rules.saves_scatter,
    moves=(0, 2),
    program=programs.scatter,
    check=lambda operands, a: _combining.check_type(a[1], operands[0]),
    chunking=_blocks.Indexed(_point_along, writes=True),
)

SCATTER_ND: Final = FunctionSpec(
    "scatter_nd",
    ScatterND,
    ("x", "indices", "updates"),
    _REDUCTION,
    prepare.scatter_nd,
    prepare.array_indices_and_updates,
    arguments=lambda operands, a: (a[0],) if a[1] else None,
    keywords=lambda a: {"reduction": a[0], "include_self": a[1]},
    batch=rules.batch_scatter_nd,
    tangent=rules.tangent_scatter,
    gradient=rules.gradient_scatter,
    saves=rules.saves_scatter,
    moves=(0, 2),
    program=programs.scatter,
    check=lambda operands, a: _combining.check_type(a[0], operands[0]),
    chunking=_blocks.Indexed(lambda operands, a: _point_by_tuples(operands, 0), writes=True),
)


def _split_arguments(operands: Sequence[Array], attributes: Any) -> tuple[Any, ...]:
    sizes, axis = attributes
    # Sections need no list of their own, which a native call takes only up to a length.
    equal = len(sizes) > 1 and sizes.count(sizes[0]) == len(sizes)
    if equal and sizes[0] * len(sizes) == operands[0].shape[axis]:
        return len(sizes), axis
    return sizes, axis


SPLIT: Final = FunctionSpec(
    "split",
    Split,
    ("x",),
    (Attribute("sizes", "sizes"), _AXIS),
    prepare.split,
    prepare.one_array,
    arguments=_split_arguments,
    keywords=lambda a: {"sections_or_sizes": list(a[0]), "axis": a[1]},
    batch=rules.batch_along("split", 1),
    tangent=rules.linear("split"),
    gradient=rules.gradient_split,
    lists_results=True,
    bounds=lambda operands, a: (
        *(size >= 0 for size in a[0]),
        sum(a[0]) == operands[0].shape[a[1]],
    ),
    composed=compose.split,
)

JOIN: Final = FunctionSpec(
    "join",
    Join,
    ("arrays",),
    (_AXIS,),
    prepare.join,
    prepare.arrays_of_one_type,
    arguments=lambda operands, a: a,
    keywords=lambda a: {"axis": a[0]},
    batch=rules.batch_along("join", 0),
    tangent=rules.linear("join"),
    gradient=rules.gradient_join,
    lists_operands=True,
    composed=compose.join,
)

CAST: Final = FunctionSpec(
    "cast",
    Cast,
    ("x",),
    (Attribute("dtype", "type"),),
    prepare.cast,
    prepare.one_array,
    arguments=lambda operands, a: a,
    keywords=lambda a: {"dtype": a[0]},
    batch=rules.batch_by("cast", lambda attributes, size: attributes),
    tangent=rules.linear("cast"),
    gradient=rules.gradient_cast,
    result_types=("dtype",),
    inferred=lambda operands, attribute_values: {
        "to": _attributes.type_named(attribute_values["dtype"])
    },
    program=programs.call_with_numbers,
    check=lambda operands, a: _attributes.check_numbers(operands[0]),
    chunking=_blocks.Blockwise(),
)


def _pairs(attributes: Any) -> list[tuple[Any, Any]]:
    starts, ends = attributes[:2]
    if len(starts) != len(ends):
        raise ArgumentError(f"ends: expected {len(starts)} (as starts has), got {len(ends)}")
    return [*zip(starts, ends, strict=True)]


def _check_constant(operands: Sequence[Array], attributes: Any) -> None:
    _attributes.constant_of(attributes[3], operands[0], attributes[2])


PAD: Final = FunctionSpec(
    "pad",
    Padding1,
    ("x",),
    (
        Attribute("starts", "sizes"),
        Attribute("ends", "sizes"),
        Attribute("mode", "word"),
        Attribute("constant", "number"),
    ),
    prepare.pad,
    prepare.one_array,
    arguments=lambda operands, a: (_pairs(a), a[2], a[3]),
    keywords=lambda a: {
        "pad_width": _pairs(a),
        "mode": a[2],
        "constant": a[3],
    },
    batch=rules.batch_by("pad", lambda a, size: ((0, *a[0]), (0, *a[1]), *a[2:])),
    tangent=rules.linear("pad", lambda a: (*a[:3], 0)),  # the constant does not move
    gradient=rules.gradient_pad,
    bounds=lambda operands, a: [size >= 0 for size in (*a[0], *a[1])],
    composed=compose.pad,
    program=programs.pad,
    check=_check_constant,
)


def _window_bounds(operands: Sequence[Array], attributes: Any) -> list[Any]:
    bounds = []
    for start, size, limit in zip(attributes[0], attributes[1], operands[0].shape, strict=False):
        bounds += [start >= 0, start <= limit, size >= 0, size <= limit - start]
    return bounds


SLICE_WINDOW: Final = FunctionSpec(
    "slice_window",
    Slice1,
    ("x",),
    (
        Attribute("starts", "sizes"),
        Attribute("sizes", "sizes"),
        Attribute("strides", "integers"),
    ),
    prepare.slice_window,
    prepare.one_array,
    arguments=lambda operands, a: a,
    keywords=lambda a: {"starts": a[0], "sizes": a[1], "strides": a[2]},
    batch=rules.batch_by("slice_window", lambda a, size: ((0, *a[0]), (size, *a[1]), (1, *a[2]))),
    tangent=rules.linear("slice_window"),
    gradient=rules.gradient_slice,
    bounds=_window_bounds,
    composed=compose.slice_window,
)

TILE: Final = FunctionSpec(
    "tile",
    Tile,
    ("x",),
    (Attribute("repeats", "sizes"),),
    prepare.tile,
    prepare.one_array,
    arguments=lambda operands, a: a,
    keywords=lambda a: {"repeats": a[0]},
    batch=rules.batch_by("tile", lambda a, size: ((1, *a[0]),)),
    tangent=rules.linear("tile"),
    gradient=rules.gradient_tile,
    bounds=lambda operands, a: [count >= 0 for count in a[0]],
    composed=compose.tile,
)

REVERSE_SUBSEQUENCES: Final = FunctionSpec(
    "reverse_subsequences",
    ReverseSubsequences,
    ("x", "lengths"),
    (_AXIS,),
    prepare.reverse_subsequences,
    prepare.array_and_lengths,
    arguments=lambda operands, a: a,
    keywords=lambda a: {"axis": a[0]},
    batch=rules.batch_along("reverse_subsequences", 0),
    tangent=rules.linear("reverse_subsequences"),
    gradient=rules.gradient_reverse,
    saves=_indices,
    program=programs.reverse_subsequences,
    check=lambda operands, a: _attributes.check_lengths(operands[1]),
    chunking=compose.reverse_subsequences,
    value_checks={1: _attributes.refuse_negative},
)
