"""Descriptors that break one rule each, and what must come of it."""

from dataclasses import dataclass, field
from typing import Any

from good_descriptors import CLASSES, fields_of

import anydml as dml

T = dml.TensorDesc


@dataclass(frozen=True)
class Broken:
    """A good descriptor's fields changed, and what must come of it."""

    operator: str
    what: str
    changes: dict[str, Any]
    path: str
    rule: str
    got: Any
    others: tuple[str, ...] = field(default=())
    """Further paths, where one change cannot help breaking several rules."""

    def __str__(self):
        return f"{self.operator}: {self.what}"


# The base is rank 4: sizes {1,1,2,5}, indices {1,1,2,3} and so on (good_descriptors.py).
F, U = "FLOAT32", "UINT32"


def _axis(operator, tensor):
    for axis in (4, 7, 2**32 - 1):
        yield Broken(
            operator, f"Axis {axis}", {"Axis": axis}, "Axis", f"0..3 (within {tensor}", axis
        )


def _top_k(op):
    small, data = (1, 1, 2, 3), (1, 1, 2, 5)
    yield from _axis(op, "InputTensor")
    values, indices = "OutputValueTensor", "OutputIndexTensor"
    yield Broken(
        op,
        "K 0",
        {"K": 0, values: T(F, small), indices: T(U, small)},
        "K",
        "1..5 (InputTensor.Sizes[3])",
        0,
        (f"{values}.Sizes[3]", f"{indices}.Sizes[3]"),
    )
    yield Broken(
        op,
        "K above the axis",
        {"K": 6, values: T(F, (1, 1, 2, 6)), indices: T(U, (1, 1, 2, 6))},
        "K",
        "1..5 (InputTensor.Sizes[3])",
        6,
    )
    yield Broken(op, "values of another K", {values: T(F, data)}, f"{values}.Sizes[3]", "3 (K)", 5)
    yield Broken(
        op, "indices of another K", {indices: T(U, data)}, f"{indices}.Sizes[3]", "3 (K)", 5
    )
    yield Broken(
        op,
        "values of another size",
        {values: T(F, (1, 1, 4, 3))},
        f"{values}.Sizes[2]",
        "2 (InputTensor.Sizes[2])",
        4,
    )
    yield Broken(
        op,
        "indices of another size",
        {indices: T(U, (7, 1, 2, 3))},
        f"{indices}.Sizes[0]",
        "1 (InputTensor.Sizes[0])",
        7,
    )
    yield Broken(
        op,
        "values of another type",
        {values: T("FLOAT16", small)},
        f"{values}.DataType",
        "FLOAT32 (InputTensor.DataType)",
        "FLOAT16",
    )
    yield Broken(
        op,
        "values of another rank",
        {values: T(F, (1, *small))},
        f"{values}.DimensionCount",
        "4 (InputTensor.DimensionCount)",
        5,
    )
    yield Broken(
        op,
        "indices of another rank",
        {indices: T(U, small[1:])},
        f"{indices}.DimensionCount",
        "4 (InputTensor.DimensionCount)",
        3,
    )


def _scatter():
    op = "SCATTER"
    yield from _axis(op, "OutputTensor")
    for name in ("IndicesTensor", "UpdatesTensor", "OutputTensor"):
        kind, sizes = (U if name == "IndicesTensor" else F), (1, 1, 1, 2, 3)
        yield Broken(
            op,
            f"rank of {name}",
            {name: T(kind, sizes)},
            f"{name}.DimensionCount",
            "4 (InputTensor.DimensionCount)",
            5,
        )
    yield Broken(
        op,
        "type of the updates",
        {"UpdatesTensor": T("INT32", (1, 1, 2, 3))},
        "UpdatesTensor.DataType",
        "FLOAT32 (InputTensor.DataType)",
        "INT32",
    )
    yield Broken(
        op,
        "type of the output",
        {"OutputTensor": T("INT8", (1, 1, 2, 5))},
        "OutputTensor.DataType",
        "FLOAT32 (InputTensor.DataType)",
        "INT8",
    )
    yield Broken(
        op,
        "size of the indices",
        {"IndicesTensor": T(U, (1, 1, 1, 3)), "UpdatesTensor": T(F, (1, 1, 1, 3))},
        "IndicesTensor.Sizes[2]",
        "2 (InputTensor.Sizes[2])",
        1,
    )
    yield Broken(
        op,
        "size of the updates",
        {"UpdatesTensor": T(F, (1, 1, 2, 4))},
        "UpdatesTensor.Sizes[3]",
        "3 (IndicesTensor.Sizes[3])",
        4,
    )
    yield Broken(
        op,
        "size of the output",
        {"OutputTensor": T(F, (1, 1, 2, 4))},
        "OutputTensor.Sizes[3]",
        "5 (InputTensor.Sizes[3])",
        4,
    )


def _gather_elements():
    op = "GATHER_ELEMENTS"
    yield from _axis(op, "InputTensor")
    for name in ("IndicesTensor", "OutputTensor"):
        kind = U if name == "IndicesTensor" else F
        yield Broken(
            op,
            f"rank of {name}",
            {name: T(kind, (2, 3))},
            f"{name}.DimensionCount",
            "4 (InputTensor.DimensionCount)",
            2,
        )
    yield Broken(
        op,
        "type of the output",
        {"OutputTensor": T(U, (1, 1, 2, 3))},
        "OutputTensor.DataType",
        "FLOAT32 (InputTensor.DataType)",
        U,
    )
    yield Broken(
        op,
        "size of the indices",
        {"IndicesTensor": T(U, (1, 9, 2, 3)), "OutputTensor": T(F, (1, 9, 2, 3))},
        "IndicesTensor.Sizes[1]",
        "1 (InputTensor.Sizes[1])",
        9,
    )
    yield Broken(
        op,
        "size of the output",
        {"OutputTensor": T(F, (1, 1, 2, 5))},
        "OutputTensor.Sizes[3]",
        "3 (IndicesTensor.Sizes[3])",
        5,
    )


def _gather():
    op = "GATHER"
    yield Broken(op, "Axis", {"Axis": 4}, "Axis", "0..3 (within InputTensor", 4)
    yield Broken(
        op,
        "IndexDimensions",
        {"IndexDimensions": 5},
        "IndexDimensions",
        "0..4 (IndicesTensor.DimensionCount)",
        5,
    )
    yield Broken(
        op,
        "left-out sizes",
        {"IndicesTensor": T(U, (2, 1, 1, 3))},
        "IndicesTensor.Sizes[0]",
        "1 (left out by IndexDimensions = 1)",
        2,
    )
    yield Broken(
        op,
        "size of the output",
        {"OutputTensor": T(F, (1, 1, 2, 4))},
        "OutputTensor.Sizes[3]",
        "3 (from the sizes of InputTensor",
        4,
    )
    yield Broken(
        op,
        "a leading size of the output",
        {"OutputTensor": T(F, (6, 1, 2, 3))},
        "OutputTensor.Sizes[0]",
        "1 (from the sizes of InputTensor",
        6,
    )
    yield Broken(
        op,
        "type of the output",
        {"OutputTensor": T("FLOAT16", (1, 1, 2, 3))},
        "OutputTensor.DataType",
        "FLOAT32 (InputTensor.DataType)",
        "FLOAT16",
    )
    yield Broken(
        op,
        "rank of the indices",
        {"IndicesTensor": T(U, (1, 1, 3))},
        "IndicesTensor.DimensionCount",
        "4 (InputTensor.DimensionCount)",
        3,
    )
    # {3,2} with a 1x2 array of indices on axis 1 has three relevant dimensions, not two.
    yield Broken(
        op,
        "no room for the output",
        {
            "InputTensor": T(F, (3, 2)),
            "IndicesTensor": T(U, (1, 2)),
            "OutputTensor": T(F, (3, 2)),
            "Axis": 1,
            "IndexDimensions": 2,
        },
        "OutputTensor.DimensionCount",
        "at least 3",
        2,
    )


def _slabs(op, whole, parts, count):
    yield from _axis(op, whole)
    good = (T(F, (1, 1, 2, 2)), T(F, (1, 1, 2, 3)))
    yield Broken(op, "a wrong count", {count: 3}, count, f"2 (the length of {parts})", 3)
    yield Broken(op, "nothing", {count: 0, parts: []}, count, "at least 1", 0)
    yield Broken(
        op,
        "a wrong sum",
        {parts: [*good, T(F, (1, 1, 2, 1))], count: 3},
        f"{parts}[..].Sizes[3]",
        f"a sum of 5 ({whole}.Sizes[3])",
        6,
    )
    yield Broken(
        op,
        "a part of another size",
        {parts: [good[0], T(F, (1, 1, 9, 3))]},
        f"{parts}[1].Sizes[2]",
        f"2 ({whole}.Sizes[2])",
        9,
    )
    yield Broken(
        op,
        "a part of another type",
        {parts: [T("INT32", (1, 1, 2, 2)), good[1]]},
        f"{parts}[0].DataType",
        f"FLOAT32 ({whole}.DataType)",
        "INT32",
    )
    yield Broken(
        op,
        "a part of another rank",
        {parts: [good[0], T(F, (1, 1, 1, 2, 3))]},
        f"{parts}[1].DimensionCount",
        f"4 ({whole}.DimensionCount)",
        5,
        (f"{parts}[..].Sizes[3]",),
    )


def _nonzero():
    op = "NONZERO_COORDINATES"
    count, rows = "OutputCountTensor", "OutputCoordinatesTensor"
    yield Broken(
        op,
        "a count that is no scalar",
        {count: T(U, (1, 2, 1, 1))},
        f"{count}.Sizes[1]",
        "1 (a scalar)",
        2,
    )
    yield Broken(
        op,
        "too few rows",
        {rows: T(U, (1, 1, 2, 1))},
        f"{rows}.Sizes[-2]",
        "3 (the elements of InputTensor)",
        2,
    )
    yield Broken(
        op,
        "too many rows",
        {rows: T(U, (1, 1, 4, 1))},
        f"{rows}.Sizes[-2]",
        "3 (the elements of InputTensor)",
        4,
    )
    yield Broken(
        op,
        "too many rows of a matrix",
        {rows: T(U, (4, 1))},
        f"{rows}.Sizes[-2]",
        "3 (the elements of InputTensor)",
        4,
    )
    yield Broken(op, "leading sizes", {rows: T(U, (1, 5, 3, 1))}, f"{rows}.Sizes[1]", "1", 5)
    yield Broken(
        op,
        "too many columns",
        {rows: T(U, (1, 1, 3, 5))},
        f"{rows}.Sizes[-1]",
        "1..4 (effective rank",
        5,
    )
    yield Broken(
        op,
        "too many columns for one element",
        {"InputTensor": T(F, (1, 1, 1, 1)), rows: T(U, (1, 1, 1, 5))},
        f"{rows}.Sizes[-1]",
        "1..4 (effective rank",
        5,
    )
    yield Broken(
        op,
        "fewer columns than the effective rank",
        {"InputTensor": T(F, (1, 2, 3, 4)), rows: T(U, (1, 1, 24, 2))},
        f"{rows}.Sizes[-1]",
        "3..4 (effective rank",
        2,
    )
    yield Broken(
        op,
        "inner ones count for the effective rank",
        {"InputTensor": T(F, (1, 2, 1, 1)), rows: T(U, (1, 1, 2, 2))},
        f"{rows}.Sizes[-1]",
        "3..4 (effective rank",
        2,
    )


BROKEN = [
    *_top_k("TOP_K"), *_top_k("TOP_K1"), *_scatter(), *_nonzero(), *_gather(), *_gather_elements(),
    *_slabs("SPLIT", "InputTensor", "OutputTensors", "OutputCount"),
    *_slabs("JOIN", "OutputTensor", "InputTensors", "InputCount"),
]  # fmt: skip


def _tensor_rules():
    """Rules of tensors, on every tensor of every operator."""
    for operator in CLASSES:
        for name, value in fields_of(operator).items():
            tensor = value[0] if isinstance(value, list) else value
            if not isinstance(tensor, dml.TensorDesc):
                continue
            output = name.startswith("Output")
            where = f"{name}[0]" if isinstance(value, list) else name
            least = tensor.minimum_size_in_bytes

            def broken(what, path, rule, got, *, t=tensor, v=value, n=name, w=where,
                       op=operator, **arguments):  # fmt: skip
                changed = dml.TensorDesc(
                    t.data_type, t.sizes, arguments.pop("strides", None), **arguments
                )
                new = [changed, *v[1:]] if isinstance(v, list) else changed
                return Broken(op, f"{w} {what}", {n: new}, f"{w}.{path}", rule, got)

            yield broken("too small", "TotalTensorSizeInBytes", f"at least {least}", least - 4,
                         total_tensor_size_in_bytes=least - 4)  # fmt: skip
            yield broken("odd size", "TotalTensorSizeInBytes", "a multiple of 4", least + 2,
                         total_tensor_size_in_bytes=least + 2)  # fmt: skip
            yield broken("alignment 2", "GuaranteedBaseOffsetAlignment", "of at least 4", 2,
                         guaranteed_base_offset_alignment=2)  # fmt: skip
            yield broken("alignment 12", "GuaranteedBaseOffsetAlignment", "a power of two", 12,
                         guaranteed_base_offset_alignment=12)  # fmt: skip
            yield broken("too few strides", "Strides", "4 strides (DimensionCount)", 3,
                         strides=(100, 10, 1), total_tensor_size_in_bytes=1 << 20)  # fmt: skip
            yield broken("a stride too large", "Strides[0]", "0..2^32 - 1", 2**32,
                         strides=(2**32, 100, 10, 1),
                         total_tensor_size_in_bytes=1 << 40)  # fmt: skip
            if output:
                yield broken("owned", "Flags", "NONE", dml.TensorFlags.OWNED_BY_DML,
                             flags="OWNED_BY_DML")  # fmt: skip
            if output and tensor.sizes[-2] > 1:
                yield broken("repeats", "Strides", "give each element its own place",
                             (9, 9, 0, 1), strides=(9, 9, 0, 1))  # fmt: skip


BROKEN_TENSORS = list(_tensor_rules())
