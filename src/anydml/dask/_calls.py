"""Calls of the array functions on dask arrays, by their specifications."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from dask.array import zeros_like
from dask.array.utils import meta_from_array
from dask.task_spec import List

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.dask import _graphs, _indexed
from anydml.dask._graphs import Lazy
from anydml.dask._namespace import Namespace
from anydml.functions import _blocks
from anydml.functions._block_tasks import call_chunk
from anydml.functions._function import Attributes, FunctionSpec

FAN_IN: Final = 4
"""Partial results that one task merges."""


def call(spec: FunctionSpec, operands: Sequence[Any], attributes: Any) -> Sequence[Lazy]:
    """The results of a function of normalized operands."""
    outputs, blocks = spec.outputs_of(operands, attributes), spec.blocks
    if isinstance(blocks, _blocks.Indexed):
        run = _indexed.write if blocks.writes else _indexed.read_indexed
        return run(spec, operands, attributes)
    if isinstance(blocks, _blocks.Blockwise):
        ((_, kind),) = outputs
        options = {"dtype": kind, "meta": _graphs.like(operands[0], operands[0].ndim, kind)}
        return [operands[0].map_blocks(call_chunk, spec.name, attributes, **options)]
    if isinstance(blocks, _blocks.Tree):
        return _merged(spec, operands[0], attributes, outputs)
    if isinstance(blocks, _blocks.Rows):
        return _rows(spec, operands[0], attributes, outputs)
    if len(outputs) == 1 and 0 in outputs[0][0]:
        ((shape, kind),) = outputs
        return [zeros_like(operands[0], shape=shape, dtype=kind, chunks=-1)]
    rule: Any = blocks.rule if isinstance(blocks, _blocks.Composed) else blocks
    return rule(namespace, operands, attributes)  # type: ignore[no-any-return]  # rules are untyped


namespace: Final = Namespace(call)


def call_of(spec: FunctionSpec) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the call of a function on dask arrays: of arguments without ``out``, and ``out``."""

    def run(arguments: tuple[Any, ...], out: Any) -> Any:
        if out is not None:  # dask arrays are computed later, and never written
            raise ArgumentTypeError(
                f"out: expected None for dask arrays, got {short_repr(type(out).__name__)}; "
                f"write the result with dask.array.store"
            )
        operands, attributes, is_scalar = spec.prepare(namespace, *arguments)
        spec.check(operands, attributes)
        operands = list(operands)
        for i, check in spec.value_checks.items():
            operands[i] = _checked(operands[i], check)
        results = call(spec, operands, attributes)
        return spec.finished([namespace.reshape(y, ()) for y in results] if is_scalar else results)

    return run


def _checked(operand: Any, check: Callable[[Any], None]) -> Any:
    if _graphs.is_lazy(operand):
        options = {"dtype": operand.dtype, "meta": meta_from_array(operand)}
        return operand.map_blocks(_check, check, **options)
    check(operand)
    return operand


def _check(chunk: Any, check: Callable[[Any], None]) -> Any:
    check(chunk)
    return chunk


def _merged(
    spec: FunctionSpec, x: Lazy, attributes: Attributes, outputs: Sequence[Any]
) -> list[Lazy]:
    tree = spec.blocks
    axis = attributes[tree.axis]
    chunks = (*x.chunks[:axis], (outputs[0][0][axis],), *x.chunks[axis + 1 :])
    name = _graphs.layer_name(spec.name, x.name, attributes)
    layer: _graphs.Layer = {}
    starts = [start for start, _ in _graphs.bounds(x.chunks[axis])]
    for at in _graphs.blocks(chunks):
        found = []
        for i, start in enumerate(starts):
            place = (*at[:axis], i, *at[axis + 1 :])
            arguments = (tree.of_block, _graphs.block(x, place), start, attributes)
            found.append(_graphs.put(layer, (f"{name}-of-block", *place), *arguments))
        level = 0
        while len(found) > 1:
            groups = [found[i : i + FAN_IN] for i in range(0, len(found), FAN_IN)]
            found = [
                _graphs.put(layer, (f"{name}-merged", level, i, *at), tree.merge,
                            List(*group), attributes)
                for i, group in enumerate(groups)
            ]  # fmt: skip
            level += 1
        _graphs.same(layer, (name, *at), found[0])
    results = []
    parts = _graphs.new_array(name, layer, [x], chunks, x, x.dtype)
    for i, (_, kind) in enumerate(outputs):
        meta = _graphs.like(x, len(chunks), kind)
        result_name = _graphs.layer_name(f"{spec.name}-result", name, i, str(kind))
        results.append(parts.map_blocks(_part, i, kind, name=result_name, dtype=kind, meta=meta))
    return results


def _part(found: tuple[Any, ...], i: int, kind: np.dtype[Any]) -> Any:
    return found[i].astype(kind, copy=False)


def _rows(
    spec: FunctionSpec, x: Lazy, attributes: Attributes, outputs: Sequence[Any]
) -> list[Lazy]:
    for attribute in spec.attributes:
        value = attributes[attribute.name]
        if attribute.kind == "size" and value != attribute.default:
            raise ArgumentError(
                f"{attribute.name}: expected None for a dask array, got {short_repr(value)}; "
                f"take the first rows of the result when its chunk sizes are known"
            )
    rows, ((shape, kind),) = spec.blocks, outputs
    source = x
    if not _graphs.is_in_order(x.chunks):
        meta = _graphs.like(x, x.ndim, bool)
        source = _graphs.in_order(x.map_blocks(rows.mark, dtype=bool, meta=meta), x.ndim)
    name = _graphs.layer_name(spec.name, source.name, str(kind))
    layer: _graphs.Layer = {}
    limits = [_graphs.bounds(sizes) for sizes in source.chunks]
    for i, at in enumerate(_graphs.blocks(source.chunks)):
        starts, _ = _graphs.corners(limits, at)
        arguments = (rows.of_block, _graphs.block(source, at), starts, attributes)
        _graphs.put(layer, (name, i, 0), *arguments)
    chunks = ((math.nan,) * len(layer), (shape[-1],))
    return [_graphs.new_array(name, layer, [source], chunks, x, kind)]
