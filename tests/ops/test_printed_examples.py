"""The pages' examples: descriptors on arrays and raw buffers, and the reference device.

As models they run in tests/cli/test_run_example.py.
"""

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role
from support import Poisoned, assert_same_bits, by_reference
from support.examples import page_examples


@pytest.fixture(params=page_examples(), ids=str)
def example(request):
    return request.param


def to_list(value):
    return value if isinstance(value, list | tuple) else [value]


def change_arrays(example, change):
    """Every array replaced, in and out."""
    return [
        {
            name: [*map(change, value)] if isinstance(value, list) else change(value)
            for name, value in arrays.items()
        }
        for arrays in (example.inputs, example.outputs)
    ]


def expect(example, results):
    for name, value in example.outputs.items():
        for got, printed in zip(to_list(results[name]), to_list(value), strict=True):
            text = np.frombuffer(got, printed.dtype) if isinstance(got, bytearray) else got
            defined = slice(None)
            if name == "OutputCoordinatesTensor":  # rows from the count on are undefined
                defined = slice(example.outputs["OutputCountTensor"].item())
            rows = [array.reshape(-1, *printed.shape[-1:])[defined] for array in (text, printed)]
            assert_same_bits(*rows, name)
            assert isinstance(got, bytearray) or got.shape == printed.shape


def test_dispatch_to_arrays(example):
    watched = []

    def poisoned(array):
        watched.append(Poisoned(array.shape, array.dtype))
        return watched[-1].array

    inputs, _ = change_arrays(example, np.copy)
    _, outputs = change_arrays(example, poisoned)
    assert dml.Device("cpu").check(example.desc) == []
    compiled = dml.Device("cpu").create_operator(example.desc).compile()
    compiled.dispatch(**inputs, **outputs)
    expect(example, outputs)
    assert all(item.gaps_intact() for item in watched)


def test_dispatch_to_raw_buffers(example):
    def raw(array):
        return bytearray(array.tobytes().ljust(-(-array.nbytes // 4) * 4, b"\xa5"))

    inputs, outputs = change_arrays(example, raw)
    for buffers in outputs.values():
        for buffer in to_list(buffers):
            buffer[:] = b"\xa5" * len(buffer)
    dml.Device("cpu").create_operator(example.desc).compile().dispatch(**inputs, **outputs)
    for name, printed in example.outputs.items():
        for buffer, array in zip(to_list(outputs[name]), to_list(printed), strict=True):
            del buffer[array.nbytes :]
    expect(example, outputs)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_call_allocates(example, device):
    compiled = dml.Device(device).create_operator(example.desc).compile()
    results = compiled(**example.inputs)
    points = example.desc.bind_points(Role.OUTPUT)
    result_list = results if len(points) > 1 else [results]
    expect(example, {info.name: value for info, value in zip(points, result_list, strict=True)})
    expect(example, by_reference(example.desc, example.inputs))
