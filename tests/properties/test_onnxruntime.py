"""Computed operators on ONNX Runtime: every kind, type and layout within the tolerance."""

from collections import Counter
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import anydml as dml
from anydml.devices.backends._computed import computed_step
from anydml.engines._numpy import NumpyEngine
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from support import Flavour
from support.computed import KINDS, bindings
from support.on_xla import check

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from anydml.devices.backends import onnxruntime as backend  # noqa: E402  # needs ONNX Runtime
from anydml.engines._onnx import OnnxEngine  # noqa: E402
from anydml.engines._onnx_arrays import Traced, value_of  # noqa: E402
from anydml.engines._onnx_gaps import TYPES  # noqa: E402  # needs ONNX
from anydml.engines._onnx_graph import (  # noqa: E402  # needs ONNX
    OPSET,
    Graph,
    NotTraced,
    Spec,
)

NAMES = {kind.NAME: kind for kind in KINDS}
ROOT = Path(__file__).parents[2]
TABLE = ROOT / "tests" / "conformance" / "onnxruntime_traced.tsv"
SCRIPT = ROOT / "scripts" / "write_traced.py"
ENGINE = OnnxEngine()


@pytest.fixture(autouse=True)
def sessions_for_all(monkeypatch):
    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)


@pytest.mark.parametrize("name", [*NAMES][::8])
def test_some_kinds(name):
    check("onnxruntime", NAMES[name], 0, Flavour)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_kind(name):
    for seed in range(6):
        check("onnxruntime", NAMES[name], seed, Flavour)


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_many_of_every_kind(name):
    for seed in range(6, 40):
        check("onnxruntime", NAMES[name], seed, Flavour)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("CONVOLUTION", 32),  # the start padding crops the whole input
        ("DYNAMIC_QUANTIZE_LINEAR", 21),  # more axes than ONNX Runtime pools
        ("ELEMENT_WISE_POW", 15),  # a NaN to the power of 0
    ],
)
def test_rare_descriptors(name, seed):
    check("onnxruntime", NAMES[name], seed, Flavour)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_transposed_convolutions_of_which_only_padding_remains(size, stride):
    start, more = (size - 1) * stride + 2, 4
    sizes = {
        "input_tensor": (2, 1, 1, size), "filter_tensor": (1, 1, 1, 1),
        "output_tensor": (2, 1, 1, (size - 1) * stride + 1 - start + more),
    }  # fmt: skip
    desc = dml.Convolution(
        **{name: dml.TensorDesc("FLOAT32", shape) for name, shape in sizes.items()},
        mode="CROSS_CORRELATION", direction="BACKWARD", dilations=(1, 1), group_count=1,
        strides=(1, stride), start_padding=(0, start), end_padding=(0, 0),
        output_padding=(0, more),
    )  # fmt: skip
    data = np.ones(sizes["input_tensor"], np.float32), np.full((1, 1, 1, 1), 3, np.float32)
    compiled = dml.Device("onnxruntime").create_operator(desc).compile()
    assert not compiled(**bindings(desc, data)).any()


def test_what_is_traced_is_not_computed_by_numpy(monkeypatch):
    """Else the tests here would say nothing about ONNX Runtime."""
    made = []
    monkeypatch.setattr(backend, "computed_step", lambda *a: made.append(a) or computed_step(*a))
    check("onnxruntime", dml.Gemm, 0, [Flavour.RANDOM])
    assert not made
    check("onnxruntime", dml.RoiAlign, 0, [Flavour.RANDOM])
    assert made


def test_the_table_of_types():
    """Each type that the engine uses has a kernel; the table need not have all."""
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    kernels = [
        k for k in get_all_opkernel_def() if k.provider == "CPUExecutionProvider" and k.domain == ""
    ]
    for name, types in TYPES.items():
        version = onnx.defs.get_schema(name, OPSET).since_version
        known = set()
        for kernel in kernels:
            first, last = kernel.version_range
            if kernel.op_name == name and first <= version <= last:
                constraints = kernel.type_constraints
                key = next(k for k in ("T", "T1", "V") if k in constraints)
                known |= {text[len("tensor(") : -1] for text in constraints[key]}
        spelled = {"float32": "float", "float64": "double"}
        assert {spelled.get(t, t) for t in types} <= known, name


def table():
    return [line.split("\t") for line in TABLE.read_text().splitlines()]


def test_most_pairs_of_an_operator_and_a_type_are_traced():
    """The share may grow; a lower one is a loss."""
    states = Counter(state for _, _, state in table())
    assert states["traced"] >= 0.94 * states.total()


@pytest.mark.slow
def test_the_table_of_what_is_traced():
    script = run_path(str(SCRIPT))
    expected = [[*row] for kind in script["traced_kinds"]() for row in script["rows"](kind)]
    assert table() == expected, f"{TABLE.name} is out of date: run {SCRIPT.name}"


def test_a_part_of_the_table_of_what_is_traced():
    script = run_path(str(SCRIPT))
    for kind in (dml.ElementWiseAdd, dml.RoiPooling, dml.ElementWiseBitAnd):
        assert [list(r) for r in script["rows"](kind)] == [r for r in table() if r[0] == kind.NAME]


def input_of(dtype, shape):
    graph, spec = Graph(), Spec(np.dtype(dtype), shape)
    return Traced(graph, graph.input("x", spec), spec)


def computed(function, x):
    """A function of the engine's arrays on one array, by ONNX Runtime."""
    array = input_of(x.dtype, x.shape)
    result = function(array)
    model = array.graph.model({"y": value_of(array.graph, result)}).proto
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (got,) = session.run(None, {"x": x})
    assert (got.dtype, got.shape) == (result.dtype, result.shape)
    return got


INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_wrap_around_and_divide_as_numpys(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.min + 1, 0, 1, 7, limits.max, limits.max - 5], dtype)
    x = np.concatenate([x, x[::-1]])
    for divisor in (-1, 0, 1, 3, -7):
        if limits.min <= divisor:
            with np.errstate(all="ignore"):
                expected = x // dtype.type(divisor)
            np.testing.assert_array_equal(
                computed(lambda a, d=divisor: a // dtype.type(d), x), expected
            )
    with np.errstate(all="ignore"):
        for name in ("sum", "prod"):
            got = computed(lambda a, n=name: getattr(ENGINE.xp, n)(a, axis=0, dtype=dtype), x)
            assert got == getattr(np, name)(x, axis=0, dtype=dtype), name


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_floats_saturate(dtype):
    limits = np.iinfo(dtype)
    x = np.array([np.nan, -np.inf, np.inf, -1e30, 1e30, -1.5, 1.5, 0.25, limits.max, limits.min])
    for kind in (np.float64, np.float32):
        values = x.astype(kind)
        with np.errstate(all="ignore"):
            expected = dml.cast(values, dtype.name)
        np.testing.assert_array_equal(computed(lambda a: ENGINE.cast(a, dtype), values), expected)


def test_the_error_function_of_float64():
    x = np.concatenate([np.linspace(-7, 7, 1001), [np.nan, np.inf, -np.inf, 1e-300, -0.0, 0.0]])
    got = computed(ENGINE.erf, x)
    np.testing.assert_allclose(got, NumpyEngine().erf(x), 1e-14)


def test_float64_rounds_to_float16_once():
    halves = np.arange(1, 0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([middles * (1 + near) for near in (0, 1e-15, -1e-15)])
    x = np.concatenate([x, -x, [0.0, np.inf, 1e300, -1e300, 1e-300, np.nan]])
    with np.errstate(over="ignore", under="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(computed(lambda a: ENGINE.cast(a, np.float16), x), expected)


@pytest.mark.parametrize("seed", range(40))
def test_an_index(seed):
    """Slices with steps, integers, new axes and an ellipsis, as NumPy has them."""
    rng = np.random.default_rng(seed)
    x = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    key = []
    for size in x.shape[: rng.integers(1, 4)]:
        start, stop = rng.integers(-size - 1, size + 2, 2)
        step = int(rng.choice([-3, -2, -1, 1, 2]))
        bounds = [None if rng.random() < 0.3 else int(b) for b in (start, stop)]
        key.append(slice(*bounds, step) if rng.random() < 0.7 else int(rng.integers(-size, size)))
        if rng.random() < 0.3:
            key.append(None)
    if rng.random() < 0.5:
        key.insert(int(rng.integers(len(key) + 1)), Ellipsis)
    expected = x[tuple(key)]
    if expected.size:
        np.testing.assert_array_equal(computed(lambda a: a[tuple(key)] + 0, x), expected)
    else:
        assert input_of(x.dtype, x.shape)[tuple(key)].shape == expected.shape


def test_equal_nodes_are_made_once():
    x = input_of(np.float32, (3,))
    assert (x + np.float32(1)).value == (x + np.float32(1)).value
    assert (x + np.float32(1)).value != (x + np.float32(2)).value
    assert len(x.graph.nodes) == 2


def test_what_has_no_graph_says_why():
    x = input_of(np.float32, (3,))
    for function in (bool, [0, 1].__getitem__, np.asarray, ENGINE.bits, ENGINE.xp.histogram):
        with pytest.raises(NotTraced):
            function(x)


def test_an_operator_without_a_graph_runs_as_on_the_cpu():
    desc = descriptor(Seeded(2), dml.ElementWiseBitAnd)
    arrays = [np.full(t.sizes, 3, t.data_type.numpy) for t in (desc.a_tensor, desc.b_tensor)]
    got, expected = (
        dml.Device(name).create_operator(desc).compile()(*arrays) for name in ("onnxruntime", "cpu")
    )
    assert got.tobytes() == expected.tobytes()
