"""Descriptors from the arguments that DirectMLX's functions take.

Almost everything comes from the operators' definitions: a function's name is the operator's, its
arguments are the fields, and `infer` makes the outputs. What is written here is what no definition
says: names that differ, values of attributes that are left out, and outputs that inputs and
attributes do not determine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from anydml.core.dtypes import DataType
from anydml.core.errors import ArgumentTypeError, InvalidDescriptorError, Violation
from anydml.core.levels import LATEST
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import FieldInfo, Role, ScalarKind
from anydml.ops._registry import OPERATORS
from anydml.ops._shapes import fixed

Values = Mapping[str, Any]
TensorPolicy = Callable[[DataType, tuple[int, ...]], TensorDesc]
"""Makes the descriptor of an output of a type and sizes."""

_LEFT_OUT: Final = ("ELEMENT_WISE_", "ELEMENT_WISE_LOGICAL_")
"""The parts of operators' names that DirectMLX leaves out: ``add``, ``equals``."""

_OTHER_NAMES: Final = {"non_zero_coordinates": "nonzero_coordinates"}

_HINTS: Final = ("output_sizes", "output_data_type", "output_axis_sizes")
"""Arguments that say what outputs are; the last is SPLIT's."""

_WINDOWS: Final = {
    "strides": 1, "dilations": 1, "start_padding": 0, "end_padding": 0, "output_padding": 0,
}  # fmt: skip
"""For each dimension of a window or filter."""

_DEFAULTS: Final[Mapping[str, Values]] = {
    "ACTIVATION_CELU": {"alpha": 1.0},
    "ACTIVATION_ELU": {"alpha": 1.0},
    "ACTIVATION_HARD_SIGMOID": {"alpha": 0.2, "beta": 0.5},
    "ACTIVATION_LEAKY_RELU": {"alpha": 0.01},
    "ACTIVATION_SCALED_ELU": {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323},
    "ACTIVATION_SCALED_TANH": {"alpha": 1.0, "beta": 0.5},
    "ACTIVATION_SHRINK": {"bias": 0.0, "threshold": 0.5},
    "ACTIVATION_SOFTPLUS": {"steepness": 1.0},
    "ACTIVATION_THRESHOLDED_RELU": {"alpha": 1.0},
    "CONVOLUTION": {"mode": "CROSS_CORRELATION", "direction": "FORWARD", "group_count": 1},
    "CONVOLUTION_INTEGER": {"group_count": 1},
    "DEPTH_TO_SPACE": {"order": "DEPTH_COLUMN_ROW"},
    "ELEMENT_WISE_ROUND": {"rounding_mode": "HALVES_TO_NEAREST_EVEN"},
    "GEMM": {"trans_a": "NONE", "trans_b": "NONE", "alpha": 1.0, "beta": 1.0},
    "QUANTIZED_LINEAR_CONVOLUTION": {"group_count": 1},
    "SPACE_TO_DEPTH": {"order": "DEPTH_COLUMN_ROW"},
    "TOP_K": {"axis_direction": "DECREASING"},
}
"""DirectMLX's, by the operator's name without its version; for TOP_K, those of version 0."""

_AXES: Final[Mapping[str, Callable[[int], tuple[int, ...]]]] = {
    "REDUCE": lambda rank: tuple(range(rank)),
    "ACTIVATION_HARDMAX": lambda rank: (rank - 1,),
    "ACTIVATION_LOG_SOFTMAX": lambda rank: (rank - 1,),
    "ACTIVATION_SOFTMAX": lambda rank: (rank - 1,),
}
"""Axes that are left out, for a rank; of the softmax family, those of the first version."""


def _slices(fields: Values) -> list[tuple[int, ...]]:
    sizes = fields.get("input_window_sizes", fields.get("sizes", ()))
    strides = fields.get("input_window_strides", fields.get("strides", ()))
    return [tuple(1 + (n - 1) // max(abs(s), 1) for n, s in zip(sizes, strides, strict=False))]


def _coordinates(fields: Values) -> list[tuple[int, ...]]:
    tensor = fields["input_tensor"]
    rank = tensor.dimension_count
    return [(1,) * rank, (*(1,) * (rank - 2), tensor.element_count, rank)]


_OUTPUTS: Final[Mapping[str, Callable[[Values], list[tuple[int, ...]]]]] = {
    "NONZERO_COORDINATES": _coordinates,  # which may leave out leading coordinates
    "SLICE": _slices,  # an output may be smaller
    "SLICE1": _slices,
}
"""Sizes of the outputs of operators that take them from their output tensors."""


@cache
def functions() -> Mapping[str, tuple[type[Descriptor], ...]]:
    """The operators that a function stands for, by its name: versions, the lowest first."""
    found: dict[str, list[type[Descriptor]]] = {}
    for name, kind in OPERATORS.items():
        for prefix in ("", *_LEFT_OUT):
            if name.startswith(prefix):
                short = name.removeprefix(prefix).lower()
                found.setdefault(short, []).append(kind)
    for name in list(found):
        base = _base(name)
        if base != name:
            found.setdefault(base, []).extend(found[name])
    for other, name in _OTHER_NAMES.items():
        found[other] = found[name]
    return {name: tuple(sorted(set(kinds), key=_version)) for name, kinds in found.items()}


def _base(name: str) -> str:
    return re.sub(r"\d+$", "", name)


def _version(kind: type[Descriptor]) -> tuple[int, str]:
    return int(kind.NAME[len(_base(kind.NAME)) :] or 0), kind.NAME


def versions(
    kinds: Sequence[type[Descriptor]], inputs: int, arguments: Values
) -> Sequence[type[Descriptor]]:
    """The versions of an operator that have all arguments; if none has, the last one."""
    return [kind for kind in kinds if _takes(kind, inputs, arguments)] or kinds[-1:]


def _takes(kind: type[Descriptor], inputs: int, arguments: Values) -> bool:
    known = {name for info in kind.fields() for name in names_of(info)}
    needed = {
        info.attribute
        for info in kind.fields()
        if info.role is Role.ATTRIBUTE and not info.optional and info.counts is None
    }
    have = {*arguments, *_HINTS, *_defaults(kind, arguments, None)}
    return (
        inputs <= len(kind.tensor_fields(Role.INPUT))
        and arguments.keys() <= known.union(_HINTS)
        and needed <= have
    )


def names_of(info: FieldInfo) -> tuple[str, ...]:
    """The names of an argument for a field: ``filter`` for ``filter_tensor``."""
    if info.role is Role.ATTRIBUTE:
        return (info.attribute,)
    return info.attribute, info.attribute.removesuffix("_tensor")


def output_name(info: FieldInfo) -> str:
    """The name of an output in the tuple of several."""
    return info.attribute.removesuffix("_tensor").removeprefix("output_")


def _defaults(
    kind: type[Descriptor], arguments: Values, first: TensorDesc | None
) -> dict[str, Any]:
    """Values of attributes that are left out; `first` is the first input."""
    attributes = {info.attribute: info for info in kind.fields() if info.role is Role.ATTRIBUTE}
    found = dict(_DEFAULTS.get(_base(kind.NAME), {}))
    rank = first.dimension_count if first else 0
    if "window_size" in attributes or "filter_tensor" in {i.attribute for i in kind.fields()}:
        count = len(arguments.get("window_size", range(rank - 2)))
        found |= {name: (value,) * count for name, value in _WINDOWS.items()}
    if _base(kind.NAME) in _AXES:
        found["axes"] = _AXES[_base(kind.NAME)](rank)
    for info in attributes.values():  # a scalar has the type of what it is combined with
        if isinstance(info.kind, ScalarKind):
            found[info.kind.typed_by] = arguments.get(
                "output_data_type", first.data_type if first else None
            )
    return {name: value for name, value in found.items() if name in attributes}


def defaults_of(kind: type[Descriptor]) -> dict[str, Any]:
    """Values of attributes that are left out; None where the inputs determine them."""
    found = _defaults(kind, {}, None)
    return {name: None if isinstance(value, tuple) else value for name, value in found.items()}


def describe(
    kind: type[Descriptor], inputs: Values, arguments: Values, policy: TensorPolicy
) -> Descriptor:
    """A descriptor on input tensors, with the outputs that it makes.

    Parameters
    ----------
    kind : type
        The operator.
    inputs : mapping of str to TensorDesc or list of TensorDesc
        By field.
    arguments : mapping
        Attributes; which optional outputs there are; and what the outputs are, where inputs and
        attributes do not determine it.
    policy : callable
        Makes the outputs' descriptors.

    Raises
    ------
    InvalidDescriptorError
        The inputs and attributes break rules, so that there are no outputs.
    """
    hints = {name: arguments[name] for name in _HINTS if name in arguments}
    fields = {name: value for name, value in arguments.items() if name not in hints}
    first = next(_tensors(inputs), None)
    infos = kind.tensor_fields(Role.OUTPUT)
    outputs = [info for info in infos if _is_wanted(info, fields)]
    if not outputs:
        names = [names_of(info)[-1] for info in infos]
        raise ArgumentTypeError(
            f"{kind.NAME}: expected at least one of {', '.join(names)}, got none; "
            f"pass {names[0]}=True"
        )
    for info in infos:
        for name in names_of(info):
            fields.pop(name, None)
    fields = {**_defaults(kind, arguments, first), **fields, **inputs}
    data_type = hints.get("output_data_type") or (first.data_type if first else None)
    data_type = data_type or next((v for k, v in fields.items() if k.endswith("data_type")), None)
    sizes = tuple(hints.get("output_sizes") or (first.sizes if first else (1,)))
    drafts = _drafts(kind, fields, hints, sizes, len(outputs))
    tensors = [TensorDesc(data_type or DataType.FLOAT32, draft) for draft in drafts]
    draft = kind(**fields, **_by_field(outputs, tensors))
    specs = list(_inferred(draft))
    if not outputs[0].many:  # of all outputs, those that are left out included
        specs = [spec for info, spec in zip(infos, specs, strict=True) if info in outputs]
    described = []
    for spec, tensor in zip(specs, tensors, strict=True):
        shape = fixed(spec.shape)
        if kind.NATURAL:  # others have exactly the inferred DimensionCount
            shape = (*(1,) * (tensor.dimension_count - len(shape)), *shape)
        own = spec.dtype if len(tensors) > 1 or "output_data_type" not in hints else None
        found = DataType.from_numpy(own) if own is not None else hints.get("output_data_type")
        sizes = hints.get("output_sizes", shape)
        described.append(policy(DataType.parse(found or "UINT32"), tuple(sizes)))
    return kind(**fields, **_by_field(outputs, described))


def _is_wanted(info: FieldInfo, arguments: Values) -> bool:
    return not info.optional or any(arguments.get(name) for name in names_of(info))


def _tensors(inputs: Values) -> Iterator[TensorDesc]:
    for value in inputs.values():
        yield from value if isinstance(value, list) else [] if value is None else [value]


def _drafts(
    kind: type[Descriptor], fields: Values, hints: Values, sizes: tuple[int, ...], count: int
) -> list[tuple[int, ...]]:
    if "output_axis_sizes" in hints:
        axis = fields["axis"]
        return [(*sizes[:axis], n, *sizes[axis + 1 :]) for n in hints["output_axis_sizes"]]
    return _OUTPUTS[kind.NAME](fields) if kind.NAME in _OUTPUTS else [sizes] * count


def _by_field(outputs: Sequence[FieldInfo], tensors: Sequence[TensorDesc]) -> dict[str, Any]:
    if outputs and outputs[0].many:
        return {outputs[0].attribute: list(tensors)}
    return {info.attribute: tensor for info, tensor in zip(outputs, tensors, strict=True)}


def _inferred(draft: Descriptor) -> Sequence[Any]:
    try:
        found = draft.inferred()
    except Exception as error:  # of a descriptor that is not checked: its rules say why
        broken = draft.violations(LATEST)
        raise InvalidDescriptorError(broken) if broken else error from None
    if found.violations:
        outputs = tuple(path for path, _, _ in draft.tensors(Role.OUTPUT))
        broken = [v for v in draft.violations(LATEST) if not _is_of(v, draft, outputs)]
        raise InvalidDescriptorError(broken or found.violations)
    return found.outputs


def _is_of(violation: Violation, draft: Descriptor, tensors: tuple[str, ...]) -> bool:
    return violation.path.removeprefix(f"{draft.NAME}.").startswith(tensors)
