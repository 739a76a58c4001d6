"""Random comparison with NumPy, PyTorch and ONNX Runtime where they define the same thing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from support import Flavour, assert_same_bits, contents, indices, strategies

SHAPES = strategies.shapes(min_rank=1, max_rank=4, min_side=1)
FLOATS = st.sampled_from(("float32", "float64", "float16"))
KINDS = st.sampled_from(("float32", "float64", "int32", "int64", "uint8", "int8"))


def drawn(data, shape, kind, flavours=(Flavour.RANDOM, Flavour.TIED, Flavour.SPARSE)):
    flavour = data.draw(st.sampled_from(flavours))
    return contents(data.draw(strategies.generators()), shape, kind, flavour)


def without_nan(x):
    return np.nan_to_num(x, nan=3.0) if x.dtype.kind == "f" else x


def on_axis(data, shape, kind="int64"):
    axis = data.draw(st.integers(0, len(shape) - 1))
    looked_up = (*shape[:axis], data.draw(st.integers(1, 9)), *shape[axis + 1 :])
    return axis, indices(data.draw(strategies.generators()), looked_up, shape[axis], kind)


class TestNumPy:
    @given(st.data(), KINDS, SHAPES)
    def test_top_k_is_the_end_of_a_sort(self, data, kind, shape):
        x = drawn(data, shape, kind)
        axis = data.draw(st.integers(0, len(shape) - 1))
        k = data.draw(st.integers(1, shape[axis]))
        smallest = dml.top_k(x, k, axis=axis, largest=False).values
        # NumPy sorts NaN last as well; where values tie, only the numbers can be compared.
        expected = np.take(np.sort(x, axis=axis), range(k), axis)
        assert np.array_equal(smallest, expected, equal_nan=x.dtype.kind == "f")

    @given(st.data(), KINDS, SHAPES)
    def test_nonzero_is_argwhere(self, data, kind, shape):
        x = drawn(data, shape, kind)
        assert_same_bits(dml.nonzero_coordinates(x), np.argwhere(x))

    @given(st.data(), KINDS, SHAPES)
    def test_gathers(self, data, kind, shape):
        x = drawn(data, shape, kind)
        axis, lookup = on_axis(data, shape)
        assert_same_bits(
            dml.gather_elements(x, lookup, axis=axis), np.take_along_axis(x, lookup, axis)
        )
        assert_same_bits(dml.gather(x, lookup, axis=axis), np.take(x, lookup, axis))
        clamped = indices(data.draw(strategies.generators()), (5,), 9, "int64")
        clamped = np.abs(clamped)  # np.take clips negative values to 0, the page counts them
        assert_same_bits(
            dml.gather(x, clamped, axis=axis, mode="clamp"), np.take(x, clamped, axis, mode="clip")
        )

    @given(st.data(), KINDS, SHAPES, st.integers(1, 5))
    def test_split_and_join(self, data, kind, shape, sections):
        axis = data.draw(st.integers(0, len(shape) - 1))
        x = np.repeat(drawn(data, shape, kind), sections, axis)
        parts = dml.split(x, sections, axis=axis)
        for part, expected in zip(parts, np.split(x, sections, axis), strict=True):
            assert_same_bits(part, expected)
        assert_same_bits(dml.join(parts, axis=axis), np.concatenate(parts, axis))


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        pytest.importorskip("torch")

    @given(st.data(), KINDS, SHAPES, st.booleans())
    def test_top_k(self, data, kind, shape, largest):
        import torch

        x = drawn(data, shape, kind)
        axis = data.draw(st.integers(0, len(shape) - 1))
        k = data.draw(st.integers(1, shape[axis]))
        values, chosen = dml.top_k(torch.from_numpy(x), k, axis=axis, largest=largest)
        expected = torch.topk(torch.from_numpy(x), k, axis, largest).values
        torch.testing.assert_close(values, expected, rtol=0, atol=0, equal_nan=True)
        again = torch.from_numpy(x).gather(axis, chosen)
        assert_same_bits(again.numpy(), values.numpy())

    @given(st.data(), KINDS, SHAPES)
    def test_nonzero_gather_scatter(self, data, kind, shape):
        import torch

        x = torch.from_numpy(drawn(data, shape, kind))
        found = dml.nonzero_coordinates(x)
        assert torch.equal(found, x.nonzero())
        axis, lookup = on_axis(data, shape)
        places = torch.from_numpy(np.where(lookup < 0, lookup + shape[axis], lookup))
        gathered = dml.gather_elements(x, torch.from_numpy(lookup), axis=axis)
        assert_same_bits(gathered.numpy(), x.gather(axis, places).numpy())
        order = torch.argsort(torch.from_numpy(np.random.default_rng(1).random(shape)), axis)
        updates = torch.from_numpy(drawn(data, shape, kind))
        scattered = dml.scatter_elements(x, order, updates, axis=axis)
        assert_same_bits(scattered.numpy(), x.scatter(axis, order, updates).numpy())

    @given(
        st.data(),
        st.sampled_from(("int32", "int64", "uint8")),
        SHAPES,
        st.sampled_from((("add", "sum"), ("mul", "prod"), ("min", "amin"), ("max", "amax"))),
    )
    def test_reductions_of_integers(self, data, kind, shape, names):
        import torch

        x = torch.from_numpy(drawn(data, shape, kind))
        axis, lookup = on_axis(data, shape)
        updates = torch.from_numpy(drawn(data, lookup.shape, kind))
        places = torch.from_numpy(np.where(lookup < 0, lookup + shape[axis], lookup))
        got = dml.scatter_elements(x, lookup, updates, axis=axis, reduction=names[0])
        expected = x.scatter_reduce(axis, places, updates, names[1], include_self=True)
        assert torch.equal(got, expected)


class TestOnnxRuntime:
    @pytest.fixture(autouse=True)
    def runtime(self):
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")

    def run(self, operator, inputs, outputs, opset=18, **attributes):
        import onnx
        import onnxruntime
        from onnx import helper

        names = [f"i{n}" for n in range(len(inputs))]
        results = [f"o{n}" for n in range(outputs)]
        node = helper.make_node(operator, names, results, **attributes)
        graph = helper.make_graph(
            [node],
            "one",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in zip(names, inputs, strict=True)
            ],
            [helper.make_value_info(name, onnx.TypeProto()) for name in results],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return session.run(None, dict(zip(names, inputs, strict=True)))

    EXAMPLES = 25

    @pytest.mark.parametrize("case", range(EXAMPLES))
    def test_top_k_orders_ties_alike(self, case):
        generator = np.random.default_rng(case)
        kind = ("float32", "float64", "int64", "int32")[case % 4]
        shape = tuple(generator.integers(1, 9, generator.integers(1, 4)))
        x = generator.integers(0, 4, shape).astype(kind)
        axis = int(generator.integers(0, len(shape)))
        k = int(generator.integers(1, shape[axis] + 1))
        largest = bool(case % 3)
        values, chosen = self.run("TopK", [x, np.array([k])], 2, axis=axis, largest=int(largest))
        got = dml.top_k(x, k, axis=axis, largest=largest)
        assert_same_bits(got.values, values)
        assert_same_bits(got.indices, chosen)

    @pytest.mark.parametrize("case", range(EXAMPLES))
    def test_the_rest(self, case):
        generator = np.random.default_rng(100 + case)
        kind = ("float32", "float64", "int64", "int32", "uint8")[case % 5]
        shape = tuple(map(int, generator.integers(1, 9, generator.integers(1, 4))))
        axis = int(generator.integers(0, len(shape)))
        x = generator.integers(0, 3, shape).astype(kind)
        looked_up = (*shape[:axis], int(generator.integers(1, 9)), *shape[axis + 1 :])
        lookup = indices(generator, looked_up, shape[axis], "int64")
        length = int(generator.integers(1, len(shape) + 1))
        tuples = indices(generator, (3, 2, length), shape[:length], "int64")

        if kind != "float64":  # which it does not run
            (expected,) = self.run("NonZero", [x], 1)
            assert_same_bits(dml.nonzero_coordinates(x).T, expected)
        (expected,) = self.run("GatherElements", [x, lookup], 1, axis=axis)
        assert_same_bits(dml.gather_elements(x, lookup, axis=axis), expected)
        (expected,) = self.run("Gather", [x, lookup], 1, axis=axis)
        assert_same_bits(dml.gather(x, lookup, axis=axis), expected)
        (expected,) = self.run("GatherND", [x, tuples], 1)
        assert_same_bits(dml.gather_nd(x, tuples), expected)
        (expected,) = self.run("Concat", [x, x, x], 1, axis=axis)
        assert_same_bits(dml.join([x, x, x], axis=axis), expected)
        sizes = np.array([1, shape[axis] - 1]) if shape[axis] > 1 else np.array([1])
        expected = self.run("Split", [x, sizes], len(sizes), axis=axis)
        for part, reference in zip(dml.split(x, sizes, axis=axis), expected, strict=True):
            assert_same_bits(part, reference)
        order = np.argsort(generator.random(shape), axis)
        (expected,) = self.run("ScatterElements", [x, order, x[::-1].copy()], 1, axis=axis)
        assert_same_bits(dml.scatter_elements(x, order, x[::-1], axis=axis), expected)
        rows = generator.permutation(shape[0])[:, None]
        (expected,) = self.run("ScatterND", [x, rows, x + 1], 1)
        assert_same_bits(dml.scatter_nd(x, rows, x + 1), expected)
