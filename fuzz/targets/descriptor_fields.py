"""Descriptors from decisions: sound ones, and sound ones with something changed."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import anydml as dml
from anydml.dtypes import ALL_TYPES, INDEX_TYPES, UP_TO_32_BITS
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from fuzz.targets.decisions import Decisions

Fields = dict[str, Any]
Sizes = tuple[int, ...]

TYPES = tuple(dml.DataType)


def descriptor(decide: Decisions) -> Descriptor | None:
    """A descriptor, or None where one of its fields is not even of the right kind."""
    kind, make = decide.among(_MAKERS)
    given = make(decide, kind)
    for _ in range(decide.below(3) if decide.chance(150) else 0):
        _spoil(decide, kind, given)
    try:
        made = {name: _made(value) for name, value in given.items()}
        return kind(**made)
    except dml.InvalidDescriptorError as error:
        violations = error.violations
    assert violations
    assert all(str(violation) for violation in violations)
    return None


def index_sizes(desc: Any) -> int | Sizes:
    """What the values of the index tensor point into: an axis, or one for each coordinate."""
    if isinstance(desc, dml.Scatter | dml.GatherElements | dml.Gather):
        return int(desc.input_tensor.sizes[desc.axis])
    sizes = desc.input_tensor.sizes[-desc.input_dimension_count :]
    batch = getattr(desc, "batch_dimension_count", 0)
    return tuple(sizes[batch : batch + desc.indices_tensor.sizes[-1]])


def attribute_of(desc: Descriptor, name: str) -> str:
    """The attribute of a field that the page calls `name`."""
    return next(info.attribute for info in desc.fields() if info.name == name)


# ---- tensors ------------------------------------------------------------------------------------


def _made(value: Any) -> Any:
    """Tensors are dicts of their fields until all changes are made."""
    if isinstance(value, list):
        return [_made(item) for item in value]
    if isinstance(value, dict) and "sizes" in value:
        given = dict(value)
        return dml.TensorDesc(given.pop("data_type"), given.pop("sizes"), **given)
    return value


def _tensor(decide: Decisions, data_type: Any, sizes: Sizes, output: bool = False) -> Fields:
    fields: Fields = {"data_type": data_type, "sizes": sizes}
    if decide.chance(110):
        strides = [0] * len(sizes)
        step = 1
        for axis in reversed(decide.shuffled(range(len(sizes))) if decide.chance(60)
                             else range(len(sizes))):  # fmt: skip
            if not output and decide.chance(40):
                continue
            step += decide.below(3) if decide.chance(60) else 0
            strides[axis] = step
            step *= sizes[axis]
        fields["strides"] = tuple(strides)
    if not output and decide.chance(16):
        fields["flags"] = "OWNED_BY_DML"
    if decide.chance(16):
        fields["guaranteed_base_offset_alignment"] = 1 << decide.below(8)
    return fields


def _sizes(decide: Decisions, most_rank: int = 8, most: int = 200) -> Sizes:
    sizes = []
    for _ in range(1 + decide.below(most_rank)):
        limit = (2, 4, 9, 70, most)[decide.below(5)]
        sizes.append(1 + decide.below(max(1, min(limit, most))))
        most //= sizes[-1]
    return tuple(decide.shuffled(sizes)) if decide.chance(80) else tuple(sizes)


def _replaced(sizes: Sizes, axis: int, size: int) -> Sizes:
    return (*sizes[:axis], size, *sizes[axis + 1 :])


def _padded(sizes: Sizes, rank: int) -> Sizes:
    return (1,) * (rank - len(sizes)) + sizes


# ---- sound descriptors --------------------------------------------------------------------------


def _top_k(decide: Decisions, kind: Any) -> Fields:
    data = decide.among((*UP_TO_32_BITS, dml.DataType.INT64, dml.DataType.UINT64))
    index = decide.among((dml.DataType.UINT32, dml.DataType.UINT64))
    sizes = _sizes(decide)
    axis = decide.below(len(sizes))
    k = 1 + decide.below(sizes[axis])
    selected = _replaced(sizes, axis, k)
    fields = {
        "input_tensor": _tensor(decide, data, sizes),
        "output_value_tensor": _tensor(decide, data, selected, output=True),
        "output_index_tensor": _tensor(decide, index, selected, output=True),
        "axis": axis,
        "k": k,
    }
    if kind is dml.TopK1:
        fields["axis_direction"] = decide.among(("INCREASING", "DECREASING"))
    return fields


def _nonzero(decide: Decisions, kind: Any) -> Fields:
    sizes = _sizes(decide)
    effective = next((len(sizes) - i for i, size in enumerate(sizes) if size != 1), 0)
    least = max(1, effective)
    columns = least + decide.below(len(sizes) - least + 1)
    rows = _padded((prod(sizes), columns), 2 + decide.below(7))
    index = dml.DataType.UINT32
    return {
        "input_tensor": _tensor(decide, decide.among(UP_TO_32_BITS), sizes),
        "output_count_tensor": _tensor(decide, index, (1,) * (1 + decide.below(8)), output=True),
        "output_coordinates_tensor": _tensor(decide, index, rows, output=True),
    }


def _slabs(decide: Decisions, kind: Any) -> Fields:
    data, sizes = decide.among(ALL_TYPES), _sizes(decide)
    axis = decide.below(len(sizes))
    count = 1 + decide.below(min(sizes[axis], 12))
    cuts = sorted({decide.below(sizes[axis]) for _ in range(count)} - {0})
    edges = [0, *cuts, sizes[axis]]
    lengths = [b - a for a, b in pairwise(edges)]
    joining = kind is dml.Join
    whole = _tensor(decide, data, sizes, output=joining)
    parts = [_tensor(decide, data, _replaced(sizes, axis, length), output=not joining)
             for length in lengths]  # fmt: skip
    if joining:
        return {"input_tensors": parts, "output_tensor": whole, "axis": axis}
    return {"input_tensor": whole, "output_tensors": parts, "axis": axis}


def _slice1(decide: Decisions, kind: Any) -> Fields:
    data, sizes = decide.among(ALL_TYPES), _sizes(decide)
    offsets = [decide.below(size) for size in sizes]
    windows = [1 + decide.below(size - offset) for size, offset in zip(sizes, offsets, strict=True)]
    strides = [decide.among((1, -1, 2, -2, 3, -7)) for _ in sizes]
    counts = tuple(
        1 + decide.below(1 + (window - 1) // abs(stride))
        for window, stride in zip(windows, strides, strict=True)
    )
    return {
        "input_tensor": _tensor(decide, data, sizes),
        "output_tensor": _tensor(decide, data, counts, output=True),
        "input_window_offsets": offsets,
        "input_window_sizes": windows,
        "input_window_strides": strides,
    }


def _slice(decide: Decisions, kind: Any) -> Fields:
    data, sizes = decide.among(ALL_TYPES), _sizes(decide)
    offsets = [decide.below(size) for size in sizes]
    strides = [decide.among((1, 2, 3, 7)) for _ in sizes]
    triples = zip(sizes, offsets, strides, strict=True)
    counts = tuple(1 + decide.below(1 + (n - 1 - at) // step) for n, at, step in triples)
    return {
        "input_tensor": _tensor(decide, data, sizes),
        "output_tensor": _tensor(decide, data, counts, output=True),
        "offsets": offsets,
        "sizes": counts,
        "strides": strides,
    }


def _tile(decide: Decisions, kind: Any) -> Fields:
    data, sizes = decide.among(ALL_TYPES[1:]), _sizes(decide, 4, 40)  # all but FLOAT64
    repeats = [1 + decide.below(4) for _ in sizes]
    tiled = tuple(n * repeat for n, repeat in zip(sizes, repeats, strict=True))
    return {
        "input_tensor": _tensor(decide, data, sizes),
        "output_tensor": _tensor(decide, data, tiled, output=True),
        "repeats": repeats,
    }


def _reverse(decide: Decisions, kind: Any) -> Fields:
    data = decide.among(ALL_TYPES)
    lengths_type = decide.among((dml.DataType.UINT32, dml.DataType.UINT64))
    sizes = tuple(1 + decide.below(5) for _ in range(1 + decide.below(6)))
    axis = decide.below(len(sizes))
    lengths = _replaced(sizes, axis, 1)
    return {
        "input_tensor": _tensor(decide, data, sizes),
        "sequence_lengths_tensor": _tensor(decide, lengths_type, lengths),
        "output_tensor": _tensor(decide, data, sizes, output=True),
        "axis": axis,
    }


def _upsample(decide: Decisions, kind: Any) -> Fields:
    data = decide.among((dml.DataType.FLOAT32, dml.DataType.FLOAT16))
    sizes = tuple(1 + decide.below(4) for _ in range(4 + decide.below(2)))
    width, height = 1 + decide.below(5), 1 + decide.below(4)
    scaled = (*sizes[:-2], sizes[-2] * height, sizes[-1] * width)
    return {
        "input_tensor": _tensor(decide, data, sizes),
        "output_tensor": _tensor(decide, data, scaled, output=True),
        "scale_size": (width, height),
        "interpolation_mode": decide.among(tuple(dml.InterpolationMode)),
    }


def _constant(decide: Decisions, kind: Any) -> Fields:
    data = decide.among(ALL_TYPES)
    return {
        "output_tensor": _tensor(decide, data, _sizes(decide), output=True),
        "value_data_type": data,
        "value": _number(decide) if data is dml.DataType.FLOAT64 else decide.below(100),
    }


def _cast(decide: Decisions, kind: Any) -> Fields:
    sizes = _sizes(decide)
    return {
        "input_tensor": _tensor(decide, decide.among(ALL_TYPES), sizes),
        "output_tensor": _tensor(decide, decide.among(ALL_TYPES), sizes, output=True),
    }


def _identity(decide: Decisions, kind: Any) -> Fields:
    data, sizes = decide.among(ALL_TYPES), _sizes(decide)
    fields: Fields = {
        "input_tensor": _tensor(decide, data, sizes),
        "output_tensor": _tensor(decide, data, sizes, output=True),
    }
    if decide.chance(128):
        fields["scale_bias"] = (_number(decide), _number(decide))
    return fields


def _sequence(decide: Decisions, kind: Any) -> Fields:
    data = decide.among(ALL_TYPES[1:])  # all but FLOAT64
    return {
        "output_tensor": _tensor(decide, data, _sizes(decide), output=True),
        "value_data_type": data,
        "value_start": decide.below(100),
        "value_delta": _number(decide) if data.numpy.kind == "f" else decide.below(100),
    }


def _padding(decide: Decisions, kind: Any) -> Fields:
    data, sizes = decide.among(ALL_TYPES), _sizes(decide, 4, 40)
    starts, ends = [decide.below(4) for _ in sizes], [decide.below(4) for _ in sizes]
    padded = tuple(map(sum, zip(starts, sizes, ends, strict=True)))
    typed: Fields = {"padding_value_data_type": data} if kind is dml.Padding1 else {}
    return typed | {
        "input_tensor": _tensor(decide, data, sizes),
        "output_tensor": _tensor(decide, data, padded, output=True),
        "padding_mode": decide.among(tuple(dml.PaddingMode)),
        "padding_value": decide.below(100),
        "start_padding": starts,
        "end_padding": ends,
    }


def _number(decide: Decisions) -> float:
    return decide.among((0.1, -0.3, 1.0, 0.0, -0.0, 3e38, 1e-45, float("inf"), float("nan")))


def _elements(decide: Decisions, kind: Any) -> Fields:
    data, index, sizes = decide.among(ALL_TYPES), decide.among(INDEX_TYPES), _sizes(decide)
    axis = decide.below(len(sizes))
    lookup = _replaced(sizes, axis, 1 + decide.below(2 * sizes[axis]))
    fields = {
        "input_tensor": _tensor(decide, data, sizes),
        "indices_tensor": _tensor(decide, index, lookup),
        "axis": axis,
    }
    if kind is dml.Scatter:
        fields["updates_tensor"] = _tensor(decide, data, lookup)
        return fields | {"output_tensor": _tensor(decide, data, sizes, output=True)}
    return fields | {"output_tensor": _tensor(decide, data, lookup, output=True)}


def _gather(decide: Decisions, kind: Any) -> Fields:
    data, index = decide.among(ALL_TYPES), decide.among(INDEX_TYPES)
    sizes = _sizes(decide, 4)
    lookup = _sizes(decide, 3, 12)[decide.below(2) :]
    axis = decide.below(len(sizes))
    natural = sizes[:axis] + lookup + sizes[axis + 1 :]
    least = max(len(natural), len(sizes), len(lookup))
    rank = least + decide.below(9 - least)
    return {
        "input_tensor": _tensor(decide, data, _padded(sizes, rank)),
        "indices_tensor": _tensor(decide, index, _padded(lookup, rank)),
        "output_tensor": _tensor(decide, data, _padded(natural, rank), output=True),
        "axis": axis + rank - len(sizes),
        "index_dimensions": len(lookup),
    }


def _nd(decide: Decisions, kind: Any) -> Fields:
    data, index = decide.among(ALL_TYPES), decide.among(INDEX_TYPES)
    sizes = _sizes(decide, 5)
    batch = decide.below(min(3, len(sizes))) if kind is dml.GatherND1 else 0
    length = 1 + decide.below(len(sizes) - batch)
    room = 8 - batch - (len(sizes) - batch - length)
    more = _sizes(decide, 2, 24)[: min(decide.below(3), room, 7 - batch)]
    lookup = (*sizes[:batch], *more, length)
    block = lookup[:-1] + sizes[batch + length :]
    least = max(len(sizes), len(lookup), len(block))
    rank = least + decide.below(9 - least)
    fields = {
        "input_tensor": _tensor(decide, data, _padded(sizes, rank)),
        "indices_tensor": _tensor(decide, index, _padded(lookup, rank)),
        "input_dimension_count": len(sizes),
        "indices_dimension_count": len(lookup),
    }
    output = sizes if kind is dml.ScatterND else block
    if kind is dml.ScatterND:
        fields["updates_tensor"] = _tensor(decide, data, _padded(block, rank))
    if kind is dml.GatherND1:
        fields["batch_dimension_count"] = batch
    return fields | {"output_tensor": _tensor(decide, data, _padded(output, rank), output=True)}


_MAKERS = (
    (dml.TopK, _top_k),
    (dml.TopK1, _top_k),
    (dml.NonzeroCoordinates, _nonzero),
    (dml.Split, _slabs),
    (dml.Join, _slabs),
    (dml.Scatter, _elements),
    (dml.GatherElements, _elements),
    (dml.Gather, _gather),
    (dml.ScatterND, _nd),
    (dml.GatherND, _nd),
    (dml.GatherND1, _nd),
    (dml.Slice1, _slice1),
    (dml.Cast, _cast),
    (dml.ElementWiseIdentity, _identity),
    (dml.FillValueSequence, _sequence),
    (dml.FillValueConstant, _constant),
    (dml.Padding, _padding),
    (dml.Padding1, _padding),
    (dml.Slice, _slice),
    (dml.Tile, _tile),
    (dml.ReverseSubsequences, _reverse),
    (dml.Upsample2D, _upsample),
)


# ---- changes ------------------------------------------------------------------------------------


def _spoil(decide: Decisions, kind: Any, given: Fields) -> None:
    """One change, after which the descriptor may still be sound."""
    info = decide.among(kind.fields())
    if info.role is Role.ATTRIBUTE:
        given[info.attribute] = _any_value(decide)
        return
    value = given[info.attribute]
    if info.many and isinstance(value, list):
        if not value or decide.chance(40):
            given[info.attribute] = value[1:] if decide.chance(128) else value + value[:1]
            return
        value = decide.among(value)
    if not isinstance(value, dict):
        return
    field = decide.among(("data_type", "sizes", "strides", "flags", "total_tensor_size_in_bytes",
                          "guaranteed_base_offset_alignment"))  # fmt: skip
    if field == "data_type" and decide.chance(200):
        value[field] = decide.among(TYPES)
    elif field == "flags" and decide.chance(200):
        value[field] = decide.among(tuple(dml.TensorFlags))
    elif field in ("sizes", "strides") and decide.chance(240):
        numbers = value.get(field) or value["sizes"]
        if not isinstance(numbers, list | tuple):
            return
        numbers = list(numbers)
        way = decide.below(4)
        if way == 0 or not numbers:
            numbers.insert(decide.below(len(numbers) + 1), decide.integer())
        elif way == 1:
            numbers.pop(decide.below(len(numbers)))
        else:
            numbers[decide.below(len(numbers))] = decide.integer()
        value[field] = numbers
    elif field == "total_tensor_size_in_bytes" and decide.chance(128):
        value[field] = 4 * decide.below(4000)
    else:
        value[field] = _any_value(decide)


def _any_value(decide: Decisions) -> Any:
    if decide.chance(200):
        return decide.integer()
    return decide.among((None, True, 1.5, "FLOAT32", "", (), [1, 2], [None], {}, b"4", 2.0,
                         dml.DataType.INT8, "DECREASING", float("nan")))  # fmt: skip
