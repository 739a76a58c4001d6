"""The examples of a definition as descriptors and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from anydml.core.tensor import TensorDesc
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]


class Example(NamedTuple):
    """One example of an operator.

    Attributes
    ----------
    desc : Descriptor
        The descriptor, with packed tensors.
    inputs : dict
        The input arrays by the paths of the tensors (``InputTensors[0]``).
    outputs : dict
        The outputs that DirectML's page prints, by the paths of the tensors; empty if it prints
        none.
    """

    desc: Descriptor
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def examples_of(kind: type[Descriptor]) -> Iterator[Example]:
    """The examples of an operator, `Descriptor.EXAMPLES`.

    Lists of floats become FLOAT32. Lists of integers become the narrowest type of the support table
    that contains their values.
    """
    for example in kind.examples():
        fields: dict[str, Any] = dict(example)
        arrays: dict[Role, dict[str, Array]] = {Role.INPUT: {}, Role.OUTPUT: {}}
        for info in kind.tensor_fields():
            values = fields.get(info.attribute)
            if values is None or isinstance(values, TensorDesc):
                continue
            found = {path: _array(kind, info.name, value) for path, value in info.paths(values)}
            arrays[info.role] |= found
            tensors = [*map(TensorDesc.from_array, found.values())]
            fields[info.attribute] = tensors if info.many else tensors[0]
        if issubclass(kind, Computed) and not arrays[Role.OUTPUT]:
            desc: Descriptor = kind.with_outputs(**fields)
        else:
            desc = kind(**fields)
        yield Example(desc, arrays[Role.INPUT], arrays[Role.OUTPUT])


def _array(kind: type[Descriptor], name: str, values: Any) -> Array:
    if isinstance(values, np.ndarray):
        return values
    array: Array = np.array(values)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    types = [t.numpy for t in kind.SUPPORT[-1].tensors[name].data_types if t.bits >= 8]
    return next(array.astype(t) for t in types[::-1] if (array.astype(t) == array).all())
