"""Calls of the array functions in traced code: a primitive, and its rules for transformations.

Its batches, tangents and transposes are calls again, so derivatives are of any order, forward and
in reverse, and have the same bits on every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from anydml._native import MOST_ELEMENTS
from anydml.core.errors import ArgumentError
from anydml.core.program import Dynamic
from anydml.functions._blocks import Composed
from anydml.functions._function import SPECS, Attributes, FunctionSpec
from anydml.jax import _namespace
from anydml.jax._namespace import Namespace, Traced

PRIMITIVE: Final[Any] = Primitive("anydml")
"""A call as JAX knows it: the function's name, its attributes, and the most threads it may use."""
PRIMITIVE.multiple_results = True


class UnknownSizeError(ArgumentError):
    """A size of a result that the data decide."""


def call(
    spec: FunctionSpec, operands: Sequence[Traced], attributes: Attributes
) -> Sequence[Traced]:
    """The results of a function of normalized operands."""
    limit = _namespace.threads.get()
    if limit is None and isinstance(spec.blocks, Composed):
        # Code that JAX can fuse and differentiate.
        return spec.blocks.rule(namespace, operands, attributes)
    values = attributes.values()
    frozen = tuple(tuple(value) if isinstance(value, list) else value for value in values)
    parameters = {"function": spec.name, "attributes": frozen, "threads": limit or 0}
    return PRIMITIVE.bind(*operands, **parameters)  # type: ignore[no-any-return]  # untyped


namespace: Final = Namespace(call)


def trace(spec: FunctionSpec, arguments: tuple[Any, ...]) -> Any:
    """Call the function in traced code, with its arguments without ``out``."""
    operands, attributes, is_scalar = spec.prepare(namespace, *arguments)
    spec.check(operands, attributes)
    for shape, _ in spec.outputs_of(operands, attributes):
        if prod(size for size in shape if not isinstance(size, Dynamic)) > MOST_ELEMENTS:
            raise ArgumentError(f"{spec.name}: expected at most 2^48 elements, got shape {shape}")
        if any(isinstance(size, Dynamic) for size in shape):
            unset = next(a.name for a in spec.attributes if a.kind == "size" and a.default == -1)
            raise UnknownSizeError(
                f"{unset}: expected a number of rows, which traced code must know beforehand, "
                f"got None"
            )
    results = call(spec, operands, attributes)
    return spec.finished([namespace.reshape(y, ()) for y in results] if is_scalar else results)


def _call_of(parameters: Mapping[str, Any]) -> tuple[FunctionSpec, Attributes]:
    """Return the function and the attributes that the primitive's parameters name."""
    spec = SPECS[parameters["function"]]
    return spec, spec.named(parameters["attributes"])


def _computed(*operands: Traced, **parameters: Any) -> Sequence[Traced]:
    spec, attributes = _call_of(parameters)
    with _namespace.at_most(parameters["threads"]):
        return spec.program(namespace, spec, operands, attributes)


def _avals(*operands: Any, **parameters: Any) -> Sequence[Any]:
    spec, attributes = _call_of(parameters)
    outputs = spec.outputs_of(operands, attributes)
    sources = spec.results[:1] * len(outputs) if spec.lists_results else spec.results
    return [
        jax.core.ShapedArray(shape, np.dtype(kind), weak_type=_is_weak(spec, operands, source))
        for (shape, kind), source in zip(outputs, sources, strict=True)
    ]


def _is_weak(spec: FunctionSpec, operands: Sequence[Any], source: Any) -> bool:
    """Whether a result has a weak type, which it takes from operands as in JAX's own functions."""
    if source not in spec.operands:
        return False
    if spec.lists_operands:
        return all(x.weak_type for x in operands)
    return bool(operands[spec.operands.index(source)].weak_type)


def _batched(operands: Sequence[Traced], dims: Sequence[int | None], **parameters: Any) -> Any:
    spec, attributes = _call_of(parameters)
    pairs = zip(operands, dims, strict=True)
    size = next(operand.shape[dim] for operand, dim in pairs if dim is not None)
    return spec.batch(namespace, operands, dims, size, attributes)


def _tangents(primals: Sequence[Traced], tangents: Sequence[Any], **parameters: Any) -> Any:
    """The results, and what becomes of tangents: `Zero` if there is none."""
    spec, attributes = _call_of(parameters)
    results = PRIMITIVE.bind(*primals, **parameters)
    known = [None if type(tangent) is ad.Zero else tangent for tangent in tangents]
    moved: Sequence[Traced | None] = [None] * len(results)
    rule = spec.derivatives
    if rule is not None and namespace.is_real_or_complex(results[0]):
        chosen = known if spec.lists_operands else [known[i] for i in rule.of]
        if any(tangent is not None for tangent in chosen):
            saved = spec.saved(primals, results, attributes)
            moved = rule.tangent(namespace, saved, known)
    return results, [
        ad.Zero(jax.typeof(result).to_tangent_aval()) if tangent is None else tangent
        for result, tangent in zip(results, moved, strict=True)
    ]


def _transposed(
    cotangents: Sequence[Any], *operands: Any, **parameters: Any
) -> Sequence[Traced | None]:
    """The cotangents of the operands in which a call is linear, which are those not known."""
    needs = [ad.is_undefined_primal(operand) for operand in operands]
    if type(cotangents[0]) is ad.Zero:
        return [None] * len(operands)
    spec, attributes = _call_of(parameters)
    known = [x.aval if need else x for x, need in zip(operands, needs, strict=True)]
    saved = spec.saved(known, (), attributes)
    assert spec.derivatives is not None
    found = spec.derivatives.gradient(namespace, saved, cotangents, needs)
    return [one if need else None for one, need in zip(found, needs, strict=True)]


# Through the primitive itself, which knows the results' weak types.
PRIMITIVE.def_impl(jax.jit(PRIMITIVE.bind, static_argnames=("function", "attributes", "threads")))
PRIMITIVE.def_abstract_eval(_avals)
mlir.register_lowering(PRIMITIVE, mlir.lower_fun(_computed, multiple_results=True))
batching.primitive_batchers[PRIMITIVE] = _batched
ad.primitive_jvps[PRIMITIVE] = _tangents
ad.primitive_transposes[PRIMITIVE] = _transposed
