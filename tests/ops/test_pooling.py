"""MAX_POOLING2 against plain loops, on ties, NaNs, zeros of both signs and extreme integers."""

from itertools import product

import numpy as np
import pytest
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


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize(("start", "more"), [(0, 0), (0, 3), (5, 0)])
def test_windows_of_as_many_elements_as_the_image(dilation, start, more, monkeypatch):
    """Too many for ONNX Runtime's pooling; dilated ones do not meet all elements."""
    backend = pytest.importorskip("anydml.devices.backends.onnxruntime")
    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)
    size = 80
    end = (size - 1) * (dilation - 1) + more
    x = np.random.default_rng(0).random((1, 2, size, 1), np.float32)
    desc = dml.AveragePooling1.with_outputs(
        input_tensor=dml.TensorDesc.from_array(x), strides=(size, 1), window_size=(size, 1),
        start_padding=(start, 0), end_padding=(end, 0), dilations=(dilation, 1),
        include_padding=True,
    )  # fmt: skip
    results = [
        np.asarray(dml.Device(name).create_operator(desc).compile()(x))
        for name in ("reference", "cpu", "onnxruntime")
    ]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-5)
