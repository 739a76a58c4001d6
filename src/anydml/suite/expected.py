"""Exact results of operators: moved elements by their reference, numbers in FLOAT64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from anydml.core.tolerance import Unit
from anydml.devices.backends import backend_named
from anydml.engines._numpy import NumpyEngine
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops.normalization import BatchNormalization
from anydml.suite.recurrent_layers import layer

Array = np.ndarray[Any, np.dtype[Any]]


def by_reference(desc: Descriptor, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a descriptor, which has been checked, on arrays of its sizes.

    Parameters
    ----------
    desc : Descriptor
        Any operator's.
    arrays : mapping of str to array
        The inputs by the page's names; a tensor list is a sequence of arrays. Indices are in range.

    Returns
    -------
    dict
        The outputs by the page's names, a tensor list as a list. What the page leaves undefined is
        zero.
    """
    slots: dict[str, Any] = {}
    for info in desc.bind_points(Role.INPUT):
        value = arrays[info.name]
        members = enumerate(value) if info.many else ()
        slots |= {f"{info.name}[{i}]": array for i, array in members} or {info.name: value}
    outputs: dict[str, Any] = {}
    for path, tensor, info in desc.tensors(Role.OUTPUT):
        slots[path] = np.zeros(tensor.sizes, tensor.data_type.numpy)
        if info.many:
            outputs.setdefault(info.name, []).append(slots[path])
        else:
            outputs[info.name] = slots[path]
    backend_named("reference")[1].compile(desc.lower()).run(slots, private=True, threads=1)
    return outputs


def _batch_normalized(
    x: Any, mean: Any, variance: Any, scale: Any, bias: Any, spatial: bool, epsilon: float
) -> Any:
    """|scale| (|x| + |mean|) / sqrt(variance + epsilon) + |bias|.

    NaN where the difference from the mean is beyond FLOAT32, though the mean and x are not.
    """
    factor = np.abs(scale) / np.sqrt(variance + epsilon)
    size = (np.abs(x) + np.abs(mean)) * factor + np.abs(bias)
    is_beyond = np.isfinite(x - mean) & (np.abs(x - mean) > np.finfo(np.float32).max)
    return np.where(is_beyond, np.nan, size)


MAGNITUDES: Final[dict[Any, Callable[..., Any]]] = {BatchNormalization: _batch_normalized}
"""Magnitudes for `products` and `sums` that are not the operator on absolute values."""


def exact(desc: Any, arrays: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """The results in float64 without a scale and bias, and those on absolute values.

    The latter are infinite where they overflow on the way in float32, and NaN where the
    specification leaves a result open. For running error bounds they are these bounds, and the
    results are those of a second definition.
    """
    desc_attributes, present = desc.attributes(), iter(arrays)
    operands = [None if slot is None else next(present) for slot in desc._slots(Role.INPUT)]
    absolute = {
        n: abs(value) if isinstance(value, float) else value for n, value in desc_attributes.items()
    }
    kept = [getattr(desc, info.attribute) is not None for info in desc.tensor_fields(Role.OUTPUT)]

    def compute(
        dtype: type, attributes: Any, change: Callable[[Array], Array] = lambda x: x
    ) -> list[Array]:
        wide = []
        for x in operands:
            if x is not None and x.dtype.kind == "f":
                x = change(x.astype(dtype) if desc.WIDENS else x)  # noqa: PLW2901  # widened
            wide.append(x)
        results = type(desc).compute(NumpyEngine(), *wide, **attributes)
        results = results if isinstance(results, tuple) else (results,)
        return [result for result, is_kept in zip(results, kept, strict=True) if is_kept]

    with np.errstate(all="ignore"):
        if desc.TOLERANCE.unit is Unit.RUNNING:
            bounded = layer(desc, operands, count=desc.TOLERANCE.count)
            found = [b for b, is_kept in zip(bounded, kept, strict=True) if is_kept]
            return [b.value for b in found], [b.error for b in found]
        expected = compute(np.float64, desc_attributes)
        if type(desc) in MAGNITUDES:
            wide = [x if x is None else x.astype(np.float64) for x in operands]
            return expected, [MAGNITUDES[type(desc)](*wide, **desc_attributes)]
        magnitudes = compute(np.float64, absolute, np.abs)
        narrow = compute(np.float32, absolute, np.abs)
    pairs = zip(magnitudes, narrow, strict=True)
    return expected, [np.where(np.isfinite(n), np.abs(m), np.inf) for m, n in pairs]
