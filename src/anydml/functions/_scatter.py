"""Reductions of scattered updates: their names and types, programs, and derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml._native import NUMBERS, REDUCTIONS
from anydml.core._json import check_word
from anydml.core.errors import ArgumentTypeError
from anydml.functions._function import SPECS, Attributes, Derivatives, FunctionSpec, Kinds, Saved
from anydml.functions._library import Array, Library, call_kernel
from anydml.functions._rules import Arrays, Derived, call, or_zeros
from anydml.libraries._types import as_type, dtype_name, is_added

# Other libraries' names.
_SYNONYMS: Final = {theirs: own for own, theirs in REDUCTIONS.items() if theirs != own}
NAMES: Final = (None, *REDUCTIONS, *_SYNONYMS, "mean")

KINDS: Final[Kinds] = {"reduction": "word", "include_self": "flag"}

# 0 and 1 stand for bools: or, and.
_OF_BOOLS: Final = {"add": "max", "mul": "min", "min": "min", "max": "max"}

_WIDE: Final = {
    **dict.fromkeys(("float16", "bfloat16"), np.dtype(np.float32)),
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16", "uint32"), np.dtype(np.int64)),
}


def sum_type(dtype: Any) -> Any:
    """Return the type in which a mean sums up: at least float32, and int64 for integers."""
    return _WIDE.get(dtype_name(dtype), dtype)


def carried_type(reduction: str, dtype: Any) -> Any:
    """Return the type of sums and products that take further updates: float32 for 16-bit floats."""
    wide = sum_type(dtype)
    is_rounded = reduction in ("add", "mul") and wide == np.float32
    return wide if is_rounded or reduction == "mean" else dtype


def name_of(reduction: Any) -> str:
    """Return the kernel's name of a reduction."""
    if reduction is None:
        return "none"
    name = check_word("reduction", reduction, NAMES)
    return _SYNONYMS.get(name, name)


def check_type(operands: Arrays, attributes: Attributes) -> None:
    """Refuse a reduction that the type of `x` does not have."""
    name, dtype = attributes["reduction"], operands[0].dtype
    types: tuple[str, ...] = NUMBERS
    if name != "mean":
        types += ("bool",)
    if name in ("add", "mul", "mean"):
        types += ("complex64", "complex128")
    if name != "none" and dtype_name(dtype) not in types:
        raise ArgumentTypeError(
            f"x: reduction {name!r} expected one of {', '.join(types)}, got {dtype_name(dtype)}"
        )


def identity(reduction: str, dtype: np.dtype[Any]) -> Any:
    """Return the identity element of a reduction."""
    if is_added(dtype):
        return as_type(np.asarray(identity(reduction, np.dtype(np.float32))), dtype, "x")
    if dtype == np.bool_:
        return np.bool_(_OF_BOOLS[reduction] == "min")
    if reduction in ("add", "mean"):
        return dtype.type(0)
    if reduction == "mul":
        return dtype.type(1)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return dtype.type(np.inf if reduction == "min" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if reduction == "min" else limits.min)


# ---- calls of kernels ---------------------------------------------------------------------------


def program(lib: Library, spec: FunctionSpec, operands: Arrays, attributes: Attributes) -> Arrays:
    """Scatter by the kernel, which knows no bools and no narrow sums of means.

    Other reductions than means leave out the element itself (``include_self=False``) by scattering
    their identity element first.
    """
    x, indices, updates = operands
    reduction, include_self = attributes["reduction"], attributes["include_self"]

    inferred = spec.infer(operands, attributes)
    shape = inferred.outputs[0].shape

    def once(data: Array, values: Array, scratch: bool = False, **changed: Any) -> Array:
        inputs, now = (data, indices, values), {**attributes, **changed}
        axes, outputs = inferred.coordinates, [(shape, data.dtype)]
        return lib.run(spec.operator, inputs, outputs, now, axes, scratch)[0]

    if reduction != "none" and x.dtype == np.bool_:
        bits = lib.as_numbers(x), indices, lib.as_numbers(updates)
        on_bits = {**attributes, "reduction": _OF_BOOLS[reduction]}
        if bits[0] is not x:
            return [lib.as_bools(program(lib, spec, bits, on_bits)[0])]
        attributes, reduction = on_bits, on_bits["reduction"]
    if reduction == "mean" and sum_type(x.dtype) != x.dtype:
        with lib.wide_types():
            indices = lib.kept(indices)
            sums, terms = (_cast(lib, array, sum_type(x.dtype)) for array in (x, updates))
            means = _cast(lib, once(sums, terms, scratch=True), x.dtype)
            found = _read(lib, means, indices, attributes)
            return [once(x, found, reduction="none")]  # elements without updates keep their bits
    if include_self or reduction in ("none", "mean"):
        return [once(x, updates)]
    indices = lib.kept(indices)
    start = lib.full(updates.shape, identity(reduction, x.dtype), x)
    emptied = once(x, start, scratch=True, reduction="none")
    return [once(emptied, updates, include_self=True)]


def _cast(lib: Library, x: Array, to: Any) -> Array:
    once = x
    if isinstance(x, np.ndarray) and x.size:  # without the repetitions of a broadcast array
        once = x[(..., *(slice(1) if stride == 0 else slice(None) for stride in x.strides))]
    (result,) = call_kernel(lib, SPECS["cast"], (once,), {"to": to}, True)
    return result if once.shape == x.shape else lib.broadcast_to(result, x.shape)


def _read(lib: Library, x: Array, indices: Array, attributes: Attributes) -> Array:
    where = {"axis": attributes["axis"]} if "axis" in attributes else {"batch_dims": 0}
    reader = SPECS["gather_elements" if "axis" in attributes else "gather_nd"]
    return call_kernel(lib, reader, (x, indices), {**where, "clamp": True}, True)[0]


# ---- derivatives: every reduction is linear in x and the updates, by weights ---------------------


def _saves(attributes: Attributes) -> tuple[Sequence[int], Sequence[int]]:
    """Keep the values that decide the weights."""
    return ((0, 1, 2), (0,)) if attributes["reduction"] in ("mul", "min", "max") else ((1,), ())


class _Scatter:
    """Calls with the indices of one scatter, and the weights of its operands in the result."""

    def __init__(self, lib: Library, saved: Saved, like: Array) -> None:
        self.lib, self.saved, self.like = lib, saved, like
        self.indices = saved.operands[1]
        self.attributes = saved.attributes
        self.reduction = saved.attributes["reduction"]
        self.include_self = saved.attributes["include_self"]
        self.shape, _, self.updates_shape = saved.shapes

    def scatter(self, x: Array, updates: Array, reduction: str, include_self: bool = True) -> Array:
        name = "scatter_elements" if "axis" in self.attributes else "scatter_nd"
        changed = {**self.attributes, "reduction": reduction, "include_self": include_self}
        return call(self.lib, name, (x, self.indices, updates), **changed)[0]

    def gather(self, x: Array) -> Array:
        operands, axis = (x, self.indices), self.attributes.get("axis")
        if axis is None:
            return call(self.lib, "gather_nd", operands, batch_dims=0, clamp=False)[0]
        return call(self.lib, "gather_elements", operands, axis=axis, clamp=False)[0]

    def zeros(self, shape: Sequence[Any]) -> Array:
        return self.lib.zeros(shape, self.like)

    def counts(self) -> Array:
        """Return how many updates meet in each element, as integers."""
        ones = self.lib.zeros(self.updates_shape, self.lib.arange(1, self.indices)) + 1
        return self.scatter(self.lib.zeros(self.shape, ones), ones, "add")

    def weights(self) -> tuple[Array | None, Array | None]:
        """Return the weights of x and of the updates; None for 1."""
        if self.reduction == "none":
            return self.counts() == 0, self._winners()
        if self.reduction == "add":
            return None if self.include_self else self.counts() == 0, None
        if self.reduction == "mean":
            counts = self.counts()
            ones = self.zeros(self.shape) + 1
            share = ones / self.lib.where(counts == 0, 1, counts + int(self.include_self))
            own = share if self.include_self else counts == 0
            return own, self.gather(share)
        return self._of_products() if self.reduction == "mul" else self._of_extremes()

    def _winners(self) -> Array:
        """Find the updates that are the last ones of their element."""
        numbers = self.lib.arange(prod(self.updates_shape), self.indices)
        numbers = self.lib.reshape(numbers, self.updates_shape)
        placed = self.scatter(self.lib.zeros(self.shape, numbers), numbers, "none")
        return self.gather(placed) == numbers

    def _of_extremes(self) -> tuple[Array, Array]:
        """Return equal shares for all that equal the result."""
        lib, (x, _, updates) = self.lib, self.saved.operands
        result = self.saved.results[0]
        ours = lib.where(x == result, self.zeros(self.shape) + 1, 0)
        if not self.include_self:
            ours = lib.where(self.counts() == 0, self.zeros(self.shape) + 1, 0)
        theirs = lib.where(updates == self.gather(result), self.zeros(self.updates_shape) + 1, 0)
        share = 1 / self.scatter(ours, theirs, "add")
        return ours * share, theirs * self.gather(share)

    def _of_products(self) -> tuple[Array, Array]:
        """Return the product of the others, also where one of them is 0."""
        lib, (x, _, updates) = self.lib, self.saved.operands
        filled = lib.where(x == 0, 1, x)
        ours = self.scatter(filled, updates, "mul", self.include_self) / filled
        if not self.include_self:
            ours = lib.where(self.counts() == 0, self.zeros(self.shape) + 1, 0)
        zero = updates == 0
        zeros = lib.where(zero, self.zeros(self.updates_shape) + 1, 0)
        alone = zero & (self.gather(self.scatter(self.zeros(self.shape), zeros, "add")) == 1)
        others = self.scatter(x, lib.where(alone, 1, updates), "mul", self.include_self)
        shares = self.gather(self.saved.results[0]) / lib.where(zero, 1, updates)
        return ours, lib.where(alone, self.gather(others), shares)


def _weighted(lib: Library, weight: Array | None, x: Array) -> Array:
    if weight is None:
        return x
    chosen = str(weight.dtype).endswith("bool")  # then infinite values outside do not matter
    return lib.where(weight, x, 0) if chosen else weight * x


def _tangent(lib: Library, saved: Saved, tangents: Derived) -> Derived:
    """Add up the weighted tangents."""
    moved = [or_zeros(lib, saved, tangents, i) for i in (0, 2)]
    one = _Scatter(lib, saved, moved[0])
    parts = [_weighted(lib, *pair) for pair in zip(one.weights(), moved, strict=True)]
    return [one.scatter(parts[0], parts[1], "add")]


def _gradient(lib: Library, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """Return the weighted gradient, and for the updates what is read from it.

    The gradients are those of PyTorch's own operators. Of updates that replace one element only the
    last one counts, so only it has a gradient.
    """
    grad = grads[0]
    one = _Scatter(lib, saved, grad)
    own, others = (None if w is None else lib.adjoint_weight(w) for w in one.weights())
    return [
        _weighted(lib, own, grad) if needs[0] else None,
        None,
        _weighted(lib, others, one.gather(grad)) if needs[2] else None,
    ]


DERIVATIVES: Final = Derivatives(_gradient, _tangent, _saves, of=(0, 2))


# ---- arguments ----------------------------------------------------------------------------------


def as_arrays(
    lib: Library, x: Any, indices: Any, updates: Any, *others: Any
) -> tuple[Array, Array, Array]:
    """Convert the operands of a scatter."""
    data = lib.array(x, "x")
    return data, lib.indices(indices, data), lib.same_type(updates, data, "updates")
