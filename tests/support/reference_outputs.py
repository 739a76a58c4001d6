"""A descriptor's outputs by its operator module's reference implementation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anydml.core.tolerance import EXACT, first_difference
from anydml.devices.backends import backend_named
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from support.bits import assert_same_bits


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


def assert_agrees(desc: Descriptor, got: Any, expected: Any, what: str) -> None:
    """A result has the reference's bits, where the operator promises them.

    How far others may be apart depends on sizes of what is computed on the way:
    tests/properties/test_computed.py compares them.
    """
    if not isinstance(desc, Computed):
        assert desc.TOLERANCE is EXACT
        assert_same_bits(got, expected, what)
        return
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype), what
    if getattr(desc, "fused_activation", None) is None and desc.TOLERANCE is EXACT:
        assert first_difference(got, expected) is None, (what, desc)
