"""MAX_POOLING2 against plain loops, on ties, NaNs, zeros of both signs and extreme integers."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.core.tolerance import first_difference
from support import contents
from support.strategies import descriptors, flavours, generators

DEVICES = [dml.Device("cpu"), dml.Device("reference")]


def first_largest(desc, x):
    """Each window's first NaN, or else its first largest element, and that one's place."""
    sizes = desc.output_tensor.sizes
    floats = x.dtype.kind == "f"
    values = np.full(sizes, -np.inf if floats else np.iinfo(x.dtype).min, x.dtype)
    places = np.zeros(sizes, np.int64)
    for output in np.ndindex(sizes):
        best = None
        for tap in product(*map(range, desc.window_size)):
            at = [
                o * stride + t * dilation - start
                for o, t, stride, dilation, start in zip(
                    output[2:], tap, desc.strides, desc.dilations, desc.start_padding, strict=True
                )
            ]
            if not all(0 <= place < n for place, n in zip(at, x.shape[2:], strict=True)):
                continue
            element = x[(*output[:2], *at)]
            if best is None or element > best or (element != element and best == best):
                best = element
                values[output] = best
                places[output] = np.ravel_multi_index((*output[:2], *at), x.shape)
    return values, places


@given(data=st.data())
def test_as_plain_loops(data):
    desc = data.draw(descriptors(dml.MaxPooling2))
    tensor = desc.input_tensor
    x = contents(
        data.draw(generators()), tensor.sizes, tensor.data_type.numpy, data.draw(flavours())
    )
    expected = first_largest(desc, x)
    for device in DEVICES:
        results = device.create_operator(desc).compile()(x)
        results = results if isinstance(results, tuple) else (results,)
        for got, exact in zip(results, expected, strict=False):
            assert first_difference(got, exact) is None
