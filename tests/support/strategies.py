"""Hypothesis strategies: shapes, layouts, arrays in watched memory, descriptors that are good.

What an array holds is drawn as a flavour and a seed, so that thousands of cases cost little and an
example still shrinks in everything that decides which way a kernel takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anydml.dtypes import ALL_TYPES, INDEX_TYPES, UP_TO_32_BITS, DataType
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Size2D
from anydml.ops.cast import Cast
from anydml.ops.element_wise_identity import ElementWiseIdentity
from anydml.ops.fill_value_constant import FillValueConstant
from anydml.ops.fill_value_sequence import FillValueSequence
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND, GatherND1
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.padding1 import Padding, Padding1, PaddingMode
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.slice1 import Slice, Slice1
from anydml.ops.split import Split
from anydml.ops.tile import Tile
from anydml.ops.top_k import TopK, TopK1
from anydml.ops.upsample_2d import InterpolationMode, Upsample2D
from anydml.tensor import MAX_DIMENSIONS, TensorDesc
from support.contents import Flavour, contents
from support.poison import PACKED, Layout, Poisoned
from support.samples import computed

Draw = Callable[[st.SearchStrategy[Any]], Any]

NUMERIC = tuple(data_type.numpy.name for data_type in ALL_TYPES)
"""Names of the NumPy types that have an order."""

MOVED = (*NUMERIC, "bool", "complex64", "complex128", "datetime64[s]")
"""Names of the NumPy types that are at least moved."""

ADDED_FLOATS: tuple[str, ...] = ()
"""The same of those that ml_dtypes adds to NumPy, where it is installed."""

ADDED_MOVED: tuple[str, ...] = ()
"""Likewise."""

with suppress(ImportError):
    import ml_dtypes  # noqa: F401

    ADDED_FLOATS = ("bfloat16",)
    ADDED_MOVED = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")

INDEX = tuple(data_type.numpy.name for data_type in INDEX_TYPES)
"""Names of the NumPy types of indices."""


def generators() -> st.SearchStrategy[np.random.Generator]:
    """Random generators, by their seed."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def shapes(
    min_rank: int = 0, max_rank: int = 4, *, min_side: int = 0, max_elements: int = 400
) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes with few elements, most of their sides short and one perhaps long."""

    @st.composite
    def draw_shape(draw: Draw) -> tuple[int, ...]:
        rank = draw(st.integers(min_rank, max_rank))
        shape = []
        left = max_elements
        for _ in range(rank):
            most = max(1, min(left, draw(st.sampled_from((2, 3, 5, 9, 70, max_elements)))))
            side = draw(st.integers(min(min_side, most), most))
            shape.append(side)
            left //= max(side, 1)
        return tuple(draw(st.permutations(shape)))

    return draw_shape()


def layouts(
    rank: int, *, output: bool = False, plain: bool = False, tuples: bool = False
) -> st.SearchStrategy[Layout]:
    """Layouts of arrays.

    Without repeats for an `output`, native and aligned where `plain`, with a last dimension that is
    not repeated for `tuples` of coordinates, each of which has limits of its own.
    """

    @st.composite
    def draw_layout(draw: Draw) -> Layout:
        if draw(st.booleans()):
            return PACKED
        axes = range(rank)
        return Layout(
            order=tuple(draw(st.permutations(axes))),
            gaps=tuple(draw(st.lists(st.integers(0, 2), max_size=rank))),
            reversed=tuple(draw(_some(rank))),
            repeated=() if output else tuple(draw(_repeats(rank - tuples))),
            shift=0 if plain else draw(st.sampled_from((0, 0, 1, 2, 4))),
            swapped=not (plain or output) and draw(st.integers(0, 7)) == 0,
            writeable=output or draw(st.booleans()),
        )

    return draw_layout()


def _some(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(range(count)), unique=True) if count > 0 else st.just([])


def _repeats(count: int) -> st.SearchStrategy[list[int]]:
    return st.one_of(st.just([]), _some(count))


def flavours() -> st.SearchStrategy[Flavour]:
    """What arrays are full of."""
    return st.sampled_from(Flavour)


@st.composite
def arrays(
    draw: Draw,
    shape: Sequence[int],
    dtype: str,
    flavour: Flavour | None = None,
    plain: bool = False,
) -> Poisoned:
    """An input of any layout and flavour in watched memory."""
    chosen = draw(flavours()) if flavour is None else flavour
    values = contents(draw(generators()), shape, dtype, chosen)
    return Poisoned(shape, dtype, draw(layouts(len(shape), plain=plain)), values)


def _strides(
    draw: Draw, sizes: Sequence[int], output: bool, tuples: bool
) -> tuple[int, ...] | None:
    if draw(st.integers(0, 2)) == 0:
        return None
    layout = Layout(
        order=tuple(draw(st.permutations(range(len(sizes))))),
        gaps=tuple(draw(st.lists(st.integers(0, 2), max_size=len(sizes)))),
        repeated=() if output else tuple(draw(_repeats(len(sizes) - tuples))),
    )
    return layout.strides(sizes, 1)


def _tensor(
    draw: Draw, data_type: DataType, sizes: Sequence[int], output: bool, tuples: bool = False
) -> TensorDesc:
    return TensorDesc(data_type, sizes, _strides(draw, sizes, output, tuples))


def _sizes(draw: Draw, max_rank: int = MAX_DIMENSIONS, min_rank: int = 1) -> tuple[int, ...]:
    sizes: tuple[int, ...] = draw(shapes(min_rank, max_rank, min_side=1, max_elements=200))
    return sizes


def _replaced(sizes: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*sizes[:axis], size, *sizes[axis + 1 :])


def _top_k(draw: Draw, kind: type[TopK]) -> Descriptor:
    data = draw(st.sampled_from((*UP_TO_32_BITS, DataType.INT64, DataType.UINT64)))
    index = draw(st.sampled_from((DataType.UINT32, DataType.UINT64)))
    sizes = _sizes(draw)
    axis = draw(st.integers(0, len(sizes) - 1))
    k = draw(st.integers(1, sizes[axis]))
    selected = _replaced(sizes, axis, k)
    fields: dict[str, Any] = {
        "input_tensor": _tensor(draw, data, sizes, output=False),
        "output_value_tensor": _tensor(draw, data, selected, output=True),
        "output_index_tensor": _tensor(draw, index, selected, output=True),
        "axis": axis,
        "k": k,
    }
    if kind is TopK1:
        fields["axis_direction"] = draw(st.sampled_from(("INCREASING", "DECREASING")))
    return kind(**fields)


def _nonzero(draw: Draw) -> Descriptor:
    sizes = _sizes(draw)
    count_rank, rank = draw(st.integers(1, 8)), draw(st.integers(2, 8))
    effective = next((len(sizes) - i for i, size in enumerate(sizes) if size != 1), 0)
    columns = draw(st.integers(max(1, effective), len(sizes)))
    rows = int(np.prod(sizes))
    data = draw(st.sampled_from(UP_TO_32_BITS))
    return NonzeroCoordinates(
        input_tensor=_tensor(draw, data, sizes, output=False),
        output_count_tensor=_tensor(draw, DataType.UINT32, (1,) * count_rank, output=True),
        output_coordinates_tensor=_tensor(
            draw, DataType.UINT32, (1,) * (rank - 2) + (rows, columns), output=True
        ),
    )


def _slabs(draw: Draw, kind: type[Split] | type[Join]) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES))
    sizes = _sizes(draw)
    axis = draw(st.integers(0, len(sizes) - 1))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, sizes[axis] - 1)), max_size=9)))
    cuts = [cut for cut in cuts if cut < sizes[axis]]
    edges = [0, *cuts, sizes[axis]]
    pieces = [_replaced(sizes, axis, b - a) for a, b in pairwise(edges)]
    joining = kind is Join
    whole = _tensor(draw, data, sizes, output=joining)
    parts = tuple(_tensor(draw, data, piece, output=not joining) for piece in pieces)
    if joining:
        return Join(input_tensors=parts, output_tensor=whole, axis=axis)
    return Split(input_tensor=whole, output_tensors=parts, axis=axis)


def _slice1(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES))
    windows = []
    for size in (sizes := _sizes(draw)):
        offset = draw(st.integers(0, size - 1))
        window = draw(st.integers(1, size - offset))
        stride = draw(st.sampled_from((1, -1, 2, -2, 3, -7)))
        count = draw(st.integers(1, 1 + (window - 1) // abs(stride)))
        windows.append((offset, window, stride, count))
    offsets, extents, strides, counts = zip(*windows, strict=True)
    return Slice1(
        input_tensor=_tensor(draw, data, sizes, output=False),
        output_tensor=_tensor(draw, data, counts, output=True),
        input_window_offsets=offsets,
        input_window_sizes=extents,
        input_window_strides=strides,
    )


def _slice(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES))
    slices = []
    for size in (sizes := _sizes(draw)):
        offset = draw(st.integers(0, size - 1))
        stride = draw(st.sampled_from((1, 1, 2, 3, 7, 2**32 - 1)))
        slices.append((offset, draw(st.integers(1, 1 + (size - 1 - offset) // stride)), stride))
    offsets, counts, strides = zip(*slices, strict=True)
    return Slice(
        input_tensor=_tensor(draw, data, sizes, output=False),
        output_tensor=_tensor(draw, data, counts, output=True),
        offsets=offsets,
        sizes=counts,
        strides=strides,
    )


def _tile(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES[1:]))  # all but FLOAT64
    sizes: tuple[int, ...] = draw(shapes(1, MAX_DIMENSIONS, min_side=1, max_elements=40))
    repeats: tuple[int, ...] = draw(shapes(len(sizes), len(sizes), min_side=1, max_elements=20))
    tiled = tuple(size * repeat for size, repeat in zip(sizes, repeats, strict=True))
    return Tile(
        input_tensor=_tensor(draw, data, sizes, output=False),
        output_tensor=_tensor(draw, data, tiled, output=True),
        repeats=repeats,
    )


def _cast(draw: Draw) -> Descriptor:
    sizes = _sizes(draw)
    source, target = draw(st.sampled_from(ALL_TYPES)), draw(st.sampled_from(ALL_TYPES))
    return Cast(
        input_tensor=_tensor(draw, source, sizes, output=False),
        output_tensor=_tensor(draw, target, sizes, output=True),
    )


def _identity(draw: Draw) -> Descriptor:
    sizes, data = _sizes(draw), draw(st.sampled_from(ALL_TYPES))
    numbers = st.floats(width=32)
    return ElementWiseIdentity(
        input_tensor=_tensor(draw, data, sizes, output=False),
        output_tensor=_tensor(draw, data, sizes, output=True),
        scale_bias=draw(st.none() | st.tuples(numbers, numbers)),
    )


def _scalars(data: DataType) -> st.SearchStrategy[Any]:
    if data.numpy.kind == "f":
        return st.floats(width=16 if data.bits == 16 else 32 if data.bits == 32 else 64)
    limits = np.iinfo(data.numpy)
    return st.integers(int(limits.min), int(limits.max))


def _sequence(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES[1:]))  # all but FLOAT64
    return FillValueSequence(
        output_tensor=_tensor(draw, data, _sizes(draw), output=True),
        value_data_type=data,
        value_start=draw(_scalars(data)),
        value_delta=draw(_scalars(data)),
    )


def _reverse(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES))
    lengths_type = draw(st.sampled_from((DataType.UINT32, DataType.UINT64)))
    sizes = _sizes(draw)
    axis = draw(st.integers(0, len(sizes) - 1))
    lengths = _replaced(sizes, axis, 1)
    return ReverseSubsequences(
        input_tensor=_tensor(draw, data, sizes, output=False),
        sequence_lengths_tensor=_tensor(draw, lengths_type, lengths, output=False),
        output_tensor=_tensor(draw, data, sizes, output=True),
        axis=axis,
    )


def _upsample(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from((DataType.FLOAT32, DataType.FLOAT16)))
    sizes: tuple[int, ...] = draw(shapes(4, 5, min_side=1, max_elements=40))
    height, width = draw(shapes(2, 2, min_side=1, max_elements=20))
    scaled = (*sizes[:-2], sizes[-2] * height, sizes[-1] * width)
    return Upsample2D(
        input_tensor=_tensor(draw, data, sizes, output=False),
        output_tensor=_tensor(draw, data, scaled, output=True),
        scale_size=Size2D(width, height),
        interpolation_mode=draw(st.sampled_from(InterpolationMode)),
    )


def _constant(draw: Draw) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES))
    return FillValueConstant(
        output_tensor=_tensor(draw, data, _sizes(draw), output=True),
        value_data_type=data,
        value=draw(_scalars(data)),
    )


def _padding(draw: Draw, kind: type[Padding] | type[Padding1]) -> Descriptor:
    data = draw(st.sampled_from(ALL_TYPES))
    sizes: tuple[int, ...] = draw(shapes(1, MAX_DIMENSIONS, min_side=1, max_elements=60))
    most = 7 if len(sizes) < 3 else 2 if len(sizes) < 5 else 1
    paddings = st.lists(st.integers(0, most), min_size=len(sizes), max_size=len(sizes))
    starts, ends = draw(paddings), draw(paddings)
    padded = tuple(map(sum, zip(starts, sizes, ends, strict=True)))
    fields: dict[str, Any] = {
        "input_tensor": _tensor(draw, data, sizes, output=False),
        "output_tensor": _tensor(draw, data, padded, output=True),
        "padding_mode": draw(st.sampled_from(PaddingMode)),
        "start_padding": starts,
        "end_padding": ends,
    }
    if kind is Padding:
        return Padding(**fields, padding_value=draw(st.floats(width=32)))
    return Padding1(**fields, padding_value_data_type=data, padding_value=draw(_scalars(data)))


def _elements(draw: Draw, kind: type[Scatter] | type[GatherElements]) -> Descriptor:
    data, index = draw(st.sampled_from(ALL_TYPES)), draw(st.sampled_from(INDEX_TYPES))
    sizes = _sizes(draw)
    axis = draw(st.integers(0, len(sizes) - 1))
    looked_up = _replaced(sizes, axis, draw(st.integers(1, 2 * sizes[axis])))
    source = _tensor(draw, data, sizes, output=False)
    indices = _tensor(draw, index, looked_up, output=False)
    if kind is GatherElements:
        return GatherElements(
            input_tensor=source,
            indices_tensor=indices,
            output_tensor=_tensor(draw, data, looked_up, output=True),
            axis=axis,
        )
    return Scatter(
        input_tensor=source,
        indices_tensor=indices,
        updates_tensor=_tensor(draw, data, looked_up, output=False),
        output_tensor=_tensor(draw, data, sizes, output=True),
        axis=axis,
    )


def _gather(draw: Draw) -> Descriptor:
    data, index = draw(st.sampled_from(ALL_TYPES)), draw(st.sampled_from(INDEX_TYPES))
    sizes = _sizes(draw, 4)
    lookup = draw(shapes(0, 3, min_side=1, max_elements=12))
    rank = draw(st.integers(max(len(sizes) + len(lookup) - 1, len(sizes), len(lookup), 1), 8))
    axis = draw(st.integers(0, len(sizes) - 1))
    natural = sizes[:axis] + lookup + sizes[axis + 1 :]
    padding = rank - len(sizes)
    return Gather(
        input_tensor=_tensor(draw, data, (1,) * padding + sizes, output=False),
        indices_tensor=_tensor(draw, index, (1,) * (rank - len(lookup)) + lookup, output=False),
        output_tensor=_tensor(draw, data, (1,) * (rank - len(natural)) + natural, output=True),
        axis=axis + padding,
        index_dimensions=len(lookup),
    )


def _nd(draw: Draw, kind: type[Descriptor]) -> Descriptor:
    data, index = draw(st.sampled_from(ALL_TYPES)), draw(st.sampled_from(INDEX_TYPES))
    sizes = _sizes(draw, 5)
    batch = draw(st.integers(0, min(2, len(sizes) - 1))) if kind is GatherND1 else 0
    length = draw(st.integers(1, len(sizes) - batch))
    lookup = (*sizes[:batch], *draw(shapes(0, 2, min_side=1, max_elements=24)), length)
    block = lookup[:-1] + sizes[batch + length :]
    least = max(len(sizes), len(lookup), len(block))
    if least > MAX_DIMENSIONS:
        lookup = (*sizes[:batch], length)
        block = lookup[:-1] + sizes[batch + length :]
        least = max(len(sizes), len(lookup), len(block))
    rank = draw(st.integers(least, MAX_DIMENSIONS))

    def padded(tensor: Sequence[int]) -> tuple[int, ...]:
        return (*(1 for _ in range(rank - len(tensor))), *tensor)

    fields: dict[str, Any] = {
        "input_tensor": _tensor(draw, data, padded(sizes), output=False),
        "indices_tensor": _tensor(draw, index, padded(lookup), output=False, tuples=True),
        "input_dimension_count": len(sizes),
        "indices_dimension_count": len(lookup),
    }
    if kind is ScatterND:
        fields["updates_tensor"] = _tensor(draw, data, padded(block), output=False)
        fields["output_tensor"] = _tensor(draw, data, padded(sizes), output=True)
    else:
        fields["output_tensor"] = _tensor(draw, data, padded(block), output=True)
    if kind is GatherND1:
        fields["batch_dimension_count"] = batch
    return kind(**fields)


_MOVERS: dict[type[Descriptor], Callable[[Draw], Descriptor]] = {
    Cast: _cast,
    ElementWiseIdentity: _identity,
    FillValueConstant: _constant,
    FillValueSequence: _sequence,
    Padding: lambda draw: _padding(draw, Padding),
    Padding1: lambda draw: _padding(draw, Padding1),
    ReverseSubsequences: _reverse,
    Slice: _slice,
    Slice1: _slice1,
    Tile: _tile,
    Upsample2D: _upsample,
}


def descriptors(kind: type[Descriptor]) -> st.SearchStrategy[Any]:
    """Good descriptors (at the latest feature level) of an operator, of any rank and strides.

    Parameters
    ----------
    kind : descriptor class
        As `TopK1`.
    """

    @st.composite
    def draw_descriptor(draw: Draw) -> Descriptor:
        if issubclass(kind, TopK):
            return _top_k(draw, kind)
        if kind is NonzeroCoordinates:
            return _nonzero(draw)
        if kind in _MOVERS:
            return _MOVERS[kind](draw)
        if issubclass(kind, Split | Join):
            return _slabs(draw, kind)
        if issubclass(kind, Scatter | GatherElements):
            return _elements(draw, kind)
        if kind is Gather:
            return _gather(draw)
        if issubclass(kind, ScatterND | GatherND):
            return _nd(draw, kind)
        if issubclass(kind, Computed):
            desc: Descriptor = draw(computed(kind))
            return desc
        raise NotImplementedError(f"no strategy for {kind.__name__}")

    return draw_descriptor()
