"""Operators that have a kernel and a `compute`: both give the same bits."""

import numpy as np
import pytest

import anydml as dml
from anydml.devices.backends._computed import ENGINE
from anydml.devices.backends._partition import Run, partition
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS, computation
from support import Flavour, contents
from support.made import shared
from support.on_xla import flushed, without_denormals

KINDS = {
    kind.NAME: kind
    for kind in OPERATORS.values()
    if computation(getattr(kind, "KERNEL", "")) and not issubclass(kind, Computed)
}
ROUNDS = {"CAST", "ELEMENT_WISE_IDENTITY", "UPSAMPLE_2D"}
"""Operators that calculate: XLA flushes their denormal numbers."""


def types_of(kind):
    """The element types of the first tensor, at the latest level."""
    first = next(iter(kind.tensor_fields()))
    return kind.SUPPORT[-1].tensors[first.name].data_types


def descriptors(kind, count):
    """Descriptors that have each element type at least `count` times, as far as few seeds do."""
    left = dict.fromkeys(types_of(kind), count)
    for seed in range(40 * count * len(left)):
        desc = shared(kind, seed)
        data_type = next(iter(desc.tensors()))[1].data_type
        if left.get(data_type, 0):
            left[data_type] -= 1
            yield seed, desc
    assert not any(left.values()), left


def operands_of(desc, seed, flavour):
    arrays = []
    for i, (_, tensor, _) in enumerate(desc.tensors(Role.INPUT)):
        values = contents(np.random.default_rng((seed, i)), tensor.sizes,
                          tensor.data_type.numpy, flavour)  # fmt: skip
        at = tuple(slice(0, 1) if s == 0 else slice(None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(values[at], tensor.sizes))
    return arrays


def by_kernel(desc, arrays):
    compiled = dml.Device("cpu").create_operator(desc).compile()
    points = iter(arrays)
    bound = {
        point.name: [next(points) for _ in point.slots] if point.many else next(points)
        for point in compiled._inputs
    }
    results = compiled(**bound)
    return [*results] if isinstance(results, tuple) else [results]


def run_of(desc):
    program = desc.lower()
    _, runs = partition(program, lambda call, run: True)
    (run,) = runs.values()
    return program, run


def natural_operands(program, run: Run, arrays):
    by_name = {
        slot.name: array.reshape(slot.spec.shape)
        for slot, array in zip(program.inputs, arrays, strict=True)
    }
    return [by_name[name] for name in run.inputs]


def assert_same_bits(desc, results, expected):
    for got, wanted in zip(results, expected, strict=True):
        array = np.asarray(got).reshape(wanted.shape)
        assert array.dtype == wanted.dtype
        same = np.ascontiguousarray(array).tobytes() == np.ascontiguousarray(wanted).tobytes()
        assert same, (desc, array, wanted)


@pytest.mark.parametrize("name", KINDS)
def test_numpy_gives_the_bits_of_the_kernel(name):
    for seed, desc in descriptors(KINDS[name], 3):
        program, run = run_of(desc)
        (call,) = run.calls
        for flavour in (Flavour.RANDOM, Flavour.SPECIAL):
            arrays = operands_of(desc, seed, flavour)
            held = dict(zip(run.inputs, natural_operands(program, run, arrays), strict=True))
            operands = [held[name] for name in call.inputs]
            with np.errstate(all="ignore"):
                results = KINDS[name].compute(ENGINE, *operands, **dict(call.attributes))
            results = results if isinstance(results, tuple) else (results,)
            assert_same_bits(desc, results, by_kernel(desc, arrays))


def check_on_xla(kind, count):
    jax = pytest.importorskip("jax")
    from anydml.devices.backends import xla
    from anydml.engines._jax import JaxEngine

    for seed, desc in descriptors(kind, count):
        program, run = run_of(desc)
        call = jax.jit(
            lambda *arrays, run=run: xla.compute_run(JaxEngine(), run, arrays),
            compiler_options=xla.options("cpu")[0],
        )
        for flavour in (Flavour.RANDOM, Flavour.SPECIAL):
            arrays = operands_of(desc, seed, flavour)
            if kind.NAME in ROUNDS:
                arrays = [without_denormals(x) for x in arrays]
            with xla.x64():
                results = [np.asarray(x) for x in call(*natural_operands(program, run, arrays))]
            expected = by_kernel(desc, arrays)
            if kind.NAME in ROUNDS:
                results, expected = ([*map(flushed, side)] for side in (results, expected))
            assert_same_bits(desc, results, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_xla_gives_the_bits_of_the_kernel(name):
    check_on_xla(KINDS[name], 3)


def test_which_operators_have_both():
    assert {*KINDS} == {
        "CAST", "ELEMENT_WISE_IDENTITY", "FILL_VALUE_CONSTANT", "FILL_VALUE_SEQUENCE", "JOIN",
        "PADDING", "PADDING1", "REVERSE_SUBSEQUENCES", "SLICE", "SLICE1", "SPLIT", "TILE",
        "UPSAMPLE_2D",
    }  # fmt: skip
