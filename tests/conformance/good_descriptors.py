"""One good descriptor of every operator for given ranks and data types, by the page's names."""

import re

import anydml as dml
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.registry import OPERATORS

T = dml.TensorDesc

CLASSES = {kind.NAME: kind for kind in OPERATORS.values()}


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def descriptor(operator, fields):
    return CLASSES[operator](**{snake(name): value for name, value in fields.items()})


def padded(rank, *sizes):
    """The sizes behind leading ones; the last ones where the rank is too small for all."""
    return (1,) * (rank - len(sizes)) + sizes[max(0, len(sizes) - rank) :]


def fields_of(operator, rank=4, data="FLOAT32", index="UINT32", ranks=None):
    """Fields of a descriptor that breaks no rule but perhaps the support table's.

    `ranks` gives NONZERO_COORDINATES its three ranks; the other operators have one for all.
    """
    if issubclass(CLASSES[operator], Computed):
        return _computed(CLASSES[operator], T(data, padded(rank, 2, 3)))
    if operator == "NONZERO_COORDINATES":
        r, c, o = ranks or (rank, rank, max(rank, 2))
        sizes = padded(r, 1, 3)
        return {
            "InputTensor": T(data, sizes),
            "OutputCountTensor": T(index, (1,) * c),
            # A row for every element; with a rank of 1 there is no place for the coordinates.
            "OutputCoordinatesTensor": T(index, padded(o, 3, 1) if o > 1 else (3,)),
        }
    last = rank - 1
    if operator in ("TOP_K", "TOP_K1"):
        fields = {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputValueTensor": T(data, padded(rank, 2, 3)),
            "OutputIndexTensor": T(index, padded(rank, 2, 3)),
            "Axis": last,
            "K": 3,
        }
        return fields if operator == "TOP_K" else {**fields, "AxisDirection": "DECREASING"}
    if operator == "SCATTER":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "IndicesTensor": T(index, padded(rank, 2, 3)),
            "UpdatesTensor": T(data, padded(rank, 2, 3)),
            "OutputTensor": T(data, padded(rank, 2, 5)),
            "Axis": last,
        }
    if operator == "GATHER_ELEMENTS":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "IndicesTensor": T(index, padded(rank, 2, 3)),
            "OutputTensor": T(data, padded(rank, 2, 3)),
            "Axis": last,
        }
    if operator == "GATHER":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "IndicesTensor": T(index, padded(rank, 3)),
            "OutputTensor": T(data, padded(rank, 2, 3)),
            "Axis": last,
            "IndexDimensions": 1,
        }
    if operator == "SLICE1":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputTensor": T(data, padded(rank, 2, 2)),
            "DimensionCount": rank,
            "InputWindowOffsets": (0,) * (rank - 1) + (1,),
            "InputWindowSizes": padded(rank, 2, 4),
            "InputWindowStrides": (1,) * (rank - 1) + (-2,),
        }
    if operator == "SLICE":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputTensor": T(data, padded(rank, 2, 2)),
            "DimensionCount": rank,
            "Offsets": (0,) * (rank - 1) + (1,),
            "Sizes": padded(rank, 2, 2),
            "Strides": (1,) * (rank - 1) + (3,),
        }
    if operator == "TILE":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputTensor": T(data, padded(rank, 4, 15)),
            "RepeatsCount": rank,
            "Repeats": padded(rank, 2, 3),
        }
    if operator == "REVERSE_SUBSEQUENCES":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "SequenceLengthsTensor": T(index, padded(rank, 2, 1)),
            "OutputTensor": T(data, padded(rank, 2, 5)),
            "Axis": last,
        }
    if operator == "UPSAMPLE_2D":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputTensor": T(data, padded(rank, 4, 15)),
            "ScaleSize": (3, 2),
            "InterpolationMode": "LINEAR",
        }
    if operator == "FILL_VALUE_CONSTANT":
        return {"OutputTensor": T(data, padded(rank, 2, 5)), "ValueDataType": data, "Value": 3}
    if operator == "FILL_VALUE_SEQUENCE":
        return {
            "OutputTensor": T(data, padded(rank, 2, 5)),
            "ValueDataType": data,
            "ValueStart": 3,
            "ValueDelta": 2,
        }
    if operator in ("PADDING", "PADDING1"):
        typed = {"PaddingValueDataType": data} if operator == "PADDING1" else {}
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputTensor": T(data, padded(rank, 3, 9)),
            "PaddingMode": "EDGE",
            **typed,
            "PaddingValue": 7,
            "DimensionCount": rank,
            "StartPadding": ((0,) * rank + (1, 3))[-rank:],
            "EndPadding": (0,) * (rank - 1) + (1,),
        }
    if operator in ("CAST", "ELEMENT_WISE_IDENTITY"):
        tensor = T(data, padded(rank, 2, 5))
        return {"InputTensor": tensor, "OutputTensor": tensor}
    if operator == "SPLIT":
        return {
            "InputTensor": T(data, padded(rank, 2, 5)),
            "OutputCount": 2,
            "OutputTensors": [T(data, padded(rank, 2, 2)), T(data, padded(rank, 2, 3))],
            "Axis": last,
        }
    if operator == "JOIN":
        return {
            "InputCount": 2,
            "InputTensors": [T(data, padded(rank, 2, 2)), T(data, padded(rank, 2, 3))],
            "OutputTensor": T(data, padded(rank, 2, 5)),
            "Axis": last,
        }
    # The ND operators: tuples of one coordinate into one dimension at rank 1 (one tuple, so that
    # nothing is left of the indices), tuples of two into two dimensions above.
    length = min(rank, 2)
    batch = 1 if operator == "GATHER_ND1" and rank >= 3 else 0
    data_sizes = padded(rank, 4, 2, 5) if batch else padded(rank, 2, 5)
    lookup = padded(rank, 4, 3, length) if batch else padded(rank, 3, length)
    block = padded(rank, 4, 3) if batch else padded(rank, 3)
    if rank == 1:
        lookup, block = (1,), (1,)
    fields = {
        "InputTensor": T(data, data_sizes),
        "IndicesTensor": T(index, lookup),
        "InputDimensionCount": length + batch,
        "IndicesDimensionCount": min(rank, 2) + batch,
    }
    if operator == "SCATTER_ND":
        fields["UpdatesTensor"] = T(data, block)
        fields["OutputTensor"] = T(data, data_sizes)
    else:
        fields["OutputTensor"] = T(data, block)
    if operator == "GATHER_ND1":
        fields["BatchDimensionCount"] = batch
    return fields


def _computed(kind, tensor):
    """All inputs alike, and the attributes of the operator's example."""
    given = kind.example() | {info.attribute: tensor for info in kind.tensor_fields(Role.INPUT)}
    if "min_max_data_type" in given:
        given["min_max_data_type"] = tensor.data_type
    desc = kind.with_outputs(**given)
    values = {info.name: getattr(desc, info.attribute) for info in desc.fields()}
    return {name: value for name, value in values.items() if value is not None}


INDEX_TENSORS = {
    "IndicesTensor",
    "SequenceLengthsTensor",
    "OutputIndexTensor",
    "OutputCountTensor",
    "OutputCoordinatesTensor",
}


def types_of(operator_row, data, index):
    """Data types by tensor name."""
    return {name: index if name in INDEX_TENSORS else data for name in operator_row}
