"""bfloat16 and floats of 8 bits, which NumPy lacks: of every library, without ml_dtypes too."""

import math
import subprocess
import sys
import textwrap
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from support import assert_same_bits

ml_dtypes = pytest.importorskip("ml_dtypes")
BFLOAT = np.dtype(ml_dtypes.bfloat16)
ALL = np.arange(2**16, dtype=np.uint16).view(BFLOAT)
FLOATS_OF_8_BITS = (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


def random_elements(kind, shape=(5, 6)):
    dtype = np.dtype(getattr(ml_dtypes, kind))
    raw = np.random.default_rng(5).bytes(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)


def nearest(number):
    """The nearest bfloat16, ties to even, by exact arithmetic."""
    if number == 0:
        return 0.0
    size = abs(Fraction(number))
    power = max(math.frexp(float(size))[1], -125) - 8
    if size >= Fraction(2) ** (power + 8):
        power += 1
    units = round(size / Fraction(2) ** power)  # ties to even
    found = units * Fraction(2) ** power
    found = math.inf if found >= 2**128 else float(found)
    return -found if number < 0 else found


@pytest.mark.parametrize(("values", "fits"), [([1, 2.5], True), ([True], False), ([1j], False)])
def test_lists_that_take_the_type_of_the_data(values, fits):
    def call():
        return dml.scatter_elements(np.zeros(3, BFLOAT), list(range(len(values))), values)

    if fits:
        assert call().tolist() == [1, 2.5, 0]
    else:
        with pytest.raises(dml.ArgumentTypeError, match=r"updates: expected bfloat16 .* not fit"):
            call()


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_quick_calls_take_them(kind):
    x, order = random_elements(kind), np.array([4, 0])
    result = native.function_call("gather")(None, x, order, 0, "raise")
    if result is None:  # a type is known once an array of it has been seen
        dml.gather(x, order)
        result = native.function_call("gather")(None, x, order, 0, "raise")
    assert_same_bits(result, x[order])
    assert result.dtype == x.dtype
    native.know_added_type(5, kind)  # not a type
    native.know_added_type(x.dtype, "float16")  # not one of these
    assert native.function_call("gather")(None, x, order, 0, "raise") is not None


class TestCast:
    def test_a_name_means_each_librarys_own_type(self):
        torch = pytest.importorskip("torch")
        for name in ("bfloat16", BFLOAT, ml_dtypes.bfloat16):
            for _ in range(2):  # what one library has made of a name is not kept for another
                assert dml.cast(torch.ones(3), "bfloat16").dtype == torch.bfloat16
                assert dml.cast(np.ones(3), name).dtype == BFLOAT

    @pytest.mark.parametrize("kind", ["float64", "float32", "float16"])
    def test_every_bfloat16_as_a_float(self, kind):
        with np.errstate(all="ignore"):
            expected = ALL.astype(np.float32).astype(kind)
        expected[np.isnan(expected)] = np.nan  # the canonical one
        assert_same_bits(dml.cast(ALL, kind), expected)

    @pytest.mark.parametrize("kind", ["int64", "uint64", "int32", "int16", "uint8"])
    def test_every_bfloat16_as_an_integer(self, kind):
        wide = (ALL.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        assert_same_bits(dml.cast(ALL, kind), dml.cast(wide, kind))

    @pytest.mark.parametrize("kind", ["int64", "uint64", "int32", "uint32", "int16", "uint16"])
    def test_integers_round_once(self, kind):
        limits = np.iinfo(kind)
        middles = [(2 * m + 1) << e for m in (128, 129, 200, 255) for e in range(55)]
        near = [s * (m + d) for m in middles for d in (-1, 0, 1) for s in (1, -1)]
        arguments = [0, limits.min, limits.max, *(n for n in near if limits.min <= n <= limits.max)]
        got = dml.cast(np.array(arguments, kind), "bfloat16").astype(np.float64)
        assert got.tolist() == [nearest(number) for number in arguments]

    @pytest.mark.parametrize("kind", ["float32", "float64"])
    def test_floats_round_once(self, kind):
        generator = np.random.default_rng(3)
        x = np.frombuffer(generator.bytes(40_000), kind)
        maximum = np.array([float.fromhex("0x1.ffp127"), 2.0**-134, 2.0**-126], kind)
        x = np.concatenate([x[np.isfinite(x)], maximum, np.nextafter(maximum, np.array(0, kind)),
                            -np.nextafter(maximum, np.array(np.inf, kind))])  # fmt: skip
        got = dml.cast(x, "bfloat16").astype(np.float64)
        assert got.tolist() == [nearest(number) for number in x.tolist()]

    def test_nan_infinity_and_signs(self):
        nans = np.array([0x7FC00001, 0xFF800001, 0xFFFFFFFF], np.uint32).view(np.float32)
        assert dml.cast(nans, "bfloat16").view(np.uint16).tolist() == [0x7FC0] * 3
        x = np.array([np.inf, -np.inf, -0.0, 1e39], np.float64)
        got = dml.cast(x, BFLOAT)
        assert got.view(np.uint16).tolist() == [0x7F80, 0xFF80, 0x8000, 0x7F80]
        assert_same_bits(dml.cast(ALL, "bfloat16"), ALL)  # a copy, payloads and all


class TestLibraries:
    def test_torch(self):
        torch = pytest.importorskip("torch")
        x = torch.from_numpy(ALL.view(np.int16).reshape(256, 256).copy()).view(torch.bfloat16)
        for y in (x, x.t(), x[::3, 1::2], x[4], x[:0]):
            assert torch.equal(dml.nonzero_coordinates(y), y.nonzero())
            found = dml.top_k(y, min(7, y.shape[-1]))
            assert found.values.dtype == torch.bfloat16
            assert torch.equal(found.indices, dml.top_k(y.float(), min(7, y.shape[-1])).indices)
            rows = dml.gather(y, torch.arange(len(y)).flip(0))
            assert torch.equal(rows.view(torch.int16), y.contiguous().view(torch.int16).flip(0))
        out = torch.empty(256, 256, dtype=torch.bfloat16)
        version = out._version
        assert dml.tile(x, 1, out=out) is out
        assert torch.equal(out.view(torch.int16), x.view(torch.int16))
        assert out._version > version

    @pytest.mark.parametrize("include_self", [True, False])
    @pytest.mark.parametrize("name", ["sum", "prod", "amin", "amax", "mean"])
    def test_reductions_are_those_of_torch(self, name, include_self):
        torch = pytest.importorskip("torch")
        generator = torch.Generator().manual_seed(1)
        x = torch.randint(-9, 9, (5, 6), generator=generator).bfloat16()
        updates = torch.randint(-2, 3, (9, 6), generator=generator).bfloat16()
        places = torch.randint(0, 5, (9, 6), generator=generator)
        got = dml.scatter_elements(x, places, updates, reduction=name, include_self=include_self)
        expected = x.scatter_reduce(0, places, updates, name, include_self=include_self)
        assert torch.equal(got, expected)

    def test_jax(self):
        jax = pytest.importorskip("jax")
        jnp = jax.numpy
        x = jnp.asarray(random_elements("bfloat16"))
        found = dml.top_k(x, 3)
        assert isinstance(found.values, jax.Array)
        assert found.values.dtype == jnp.bfloat16
        traced = jax.jit(lambda a: dml.top_k(a, 3))(x)
        for pair in zip(found, traced, strict=True):
            assert_same_bits(*map(np.asarray, pair))
        one = jnp.ones((1, 6), jnp.bfloat16)
        got = dml.scatter_elements(x, jnp.zeros((1, 6), int), one, reduction="add")
        assert_same_bits(np.asarray(got), np.asarray(x.at[0].add(one[0])))
        for kind in ("float8_e4m3fn", "float8_e5m2"):
            y = jnp.asarray(random_elements(kind))
            assert dml.tile(y, 2).dtype == y.dtype
            assert_same_bits(np.asarray(dml.gather(y, [1, 0])), random_elements(kind)[[1, 0]])

    def test_one_type_whatever_library_it_is_from(self):
        torch = pytest.importorskip("torch")
        x, updates = random_elements("bfloat16"), torch.ones(1, 6, dtype=torch.bfloat16)
        assert dml.scatter_nd(x, [[0]], updates).dtype == BFLOAT
        got = dml.scatter_nd(updates, [[0]], x[2:3])
        assert got.dtype == torch.bfloat16
        assert_same_bits(got.view(torch.int16).numpy(), x[2:3].view(np.int16))

    @pytest.mark.parametrize("kind", ["bfloat16", "float8_e5m2"])
    @pytest.mark.parametrize("imports", [True, False])
    def test_any_library_with_dlpack(self, kind, imports, monkeypatch):
        """Results are of the library where it imports them, and NumPy's otherwise."""
        torch = pytest.importorskip("torch")
        dtype = getattr(torch, kind)

        class Exporter:
            def __init__(self, tensor):
                self.tensor = tensor

            def __dlpack__(self, **options):
                return self.tensor.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.tensor.__dlpack_device__()

        library = ModuleType("library_of_exporters")
        if imports:
            library.from_dlpack = lambda one: Exporter(torch.from_dlpack(one))
        Exporter.__module__ = library.__name__
        monkeypatch.setitem(sys.modules, library.__name__, library)
        x = torch.tensor([[1.0, 3.0], [2.0, -0.0]], dtype=dtype)
        result = dml.gather(Exporter(x.t()), [1, 0])
        if imports:
            assert type(result) is Exporter
            assert result.tensor.dtype == dtype
            assert result.tensor.tolist() == [[3, 0], [1, 2]]
        else:
            assert result.dtype == np.dtype(getattr(ml_dtypes, kind))
            assert result.astype(np.float32).tolist() == [[3, 0], [1, 2]]
        with pytest.raises(dml.ArgumentTypeError, match=f"expected float32 .*, got {kind}"):
            dml.scatter_nd(np.zeros((2, 2), np.float32), [[0]], Exporter(x[:1]))

    def test_foreign_byte_order(self):
        x = random_elements("bfloat16")
        swapped = x.astype(BFLOAT.newbyteorder("S"))
        assert_same_bits(dml.tile(swapped, 1), x)
        with pytest.raises(dml.ArgumentTypeError, match="out: expected bfloat16, got >V2"):
            dml.tile(x, 1, out=swapped)

    def test_torch_without_ml_dtypes(self):
        """PyTorch's types need no other package; NumPy's results need one, which is named."""
        pytest.importorskip("torch")
        assert printed(
            """
            import sys, torch, numpy as np, anydml as dml
            sys.modules["ml_dtypes"] = None  # as if it was not installed
            x = torch.tensor([1, 3, 2], dtype=torch.bfloat16)
            assert dml.top_k(x, 2).values.tolist() == [3, 2]
            assert dml.cast(torch.tensor([1, 3]), "bfloat16").dtype == torch.bfloat16
            assert dml.join([x, torch.ones(1)], promote=True).dtype == torch.float32
            got = dml.scatter_elements(x, [1, 1], [2.5, 1], reduction="mean")
            assert got.tolist() == [1, 2.171875, 2] and got.dtype == torch.bfloat16
            assert dml.tile(x.to(torch.float8_e5m2), 2).dtype == torch.float8_e5m2
            for call in (lambda: dml.cast(np.ones(3), "bfloat16"),
                         lambda: dml.tile(dml.tile(x, 1, out=np.empty(3, "f2")), 1)):
                try:
                    call()
                except dml.ArgumentTypeError as error:
                    print(error)
            """
        ) == [
            "dtype: expected a type that NumPy has, got bfloat16; "
            "`pip install 'anydml[bfloat16]'` adds it",
            "out: expected bfloat16, got float16",
        ]

    def test_ml_dtypes_is_imported_where_a_result_needs_it(self):
        assert printed(
            """
            import sys, numpy as np, anydml as dml
            assert "ml_dtypes" not in sys.modules
            print(dml.cast(np.ones(3), "bfloat16").dtype, "ml_dtypes" in sys.modules)
            """
        ) == ["bfloat16 True"]

    def test_numpy_is_left_as_it_is(self):
        """Nothing is registered with NumPy, whose first user-defined type is the next package's."""
        assert printed(
            """
            import anydml as dml, numpy as np
            dml.tile(np.ones(2), 2)
            import ml_dtypes
            print(np.dtype(ml_dtypes.bfloat16).num)
            """
        ) == ["256"]


def printed(program):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


class TestArguments:
    def test_numbers(self):
        x = random_elements("bfloat16")
        assert dml.pad(x, 1, constant=2.5)[0, 0] == 2.5
        assert dml.scatter_nd(x, [[0, 0]], [1.25])[0, 0] == 1.25
        assert dml.pad(x, 1, constant=np.float16(2.5))[0, 0] == 2.5
        for constant in (3.4e38, 1j):
            with pytest.raises(dml.ArgumentTypeError, match=r"constant: expected bfloat16"):
                dml.pad(x, 1, constant=constant)

    def test_types_are_not_mixed(self):
        x = random_elements("bfloat16")
        with pytest.raises(dml.ArgumentTypeError, match=r"arrays\[1\]: expected bfloat16"):
            dml.join([x, x.astype(np.float16)])
        wide = dml.join([x, np.ones((1, 6), np.float32)], promote=True)
        assert_same_bits(wide[5], np.ones(6, np.float32))
        assert_same_bits(wide[:5], x.astype(np.float32))
        assert dml.join([np.ones((1, 6), np.int8), x], promote=True).dtype == BFLOAT

    def test_bindings_keep_the_descriptors_types(self):
        desc = dml.TensorDesc("FLOAT16", (1, 1, 1, 4))
        compiled = dml.Device("cpu").create_operator(
            dml.ElementWiseIdentity(input_tensor=desc, output_tensor=desc)
        ).compile()  # fmt: skip
        with pytest.raises(dml.BindingError, match="InputTensor: expected float16"):
            compiled(np.zeros((1, 1, 1, 4), BFLOAT))

    @pytest.mark.parametrize("kind", FLOATS_OF_8_BITS)
    def test_floats_of_8_bits_are_moved(self, kind):
        x = random_elements(kind)
        for y in (x, x.T, x[::2]):
            assert_same_bits(dml.gather(y, [0, -1]), y[[0, -1]])
            assert_same_bits(dml.scatter_nd(y, [[0]], y[1:2]), y[[1, *range(1, len(y))]])
            assert_same_bits(dml.join(dml.split(y, [1, len(y) - 1])), y.copy())
            assert_same_bits(dml.tile(y, 2), np.tile(y, 2))
            assert_same_bits(dml.slice_window(y, (0, 1), (2, 2)), y[:2, 1:3].copy())
            assert_same_bits(dml.pad(y, 1, "edge")[1:-1, 1:-1].copy(), y.copy())
            assert_same_bits(
                dml.pad(y, 1, constant=y[:1, 0].reshape(()))[0], y[0, [0] * (y.shape[1] + 2)]
            )
            lengths = np.full((1, y.shape[1]), 9)
            assert_same_bits(dml.reverse_subsequences(y, lengths, axis=0), y[::-1].copy())
            assert_same_bits(dml.tile(y, 1, out=np.empty(y.shape, y.dtype)), y.copy())

    @pytest.mark.parametrize(
        "call",
        [
            lambda x: dml.top_k(x, 1),
            dml.nonzero_coordinates,
            lambda x: dml.cast(x, "float32"),
            lambda x: dml.scatter_nd(x, [[0]], x[:1], reduction="add"),
        ],
        ids=["top_k", "nonzero_coordinates", "cast", "scatter_nd"],
    )
    def test_floats_of_8_bits_are_refused_elsewhere(self, call):
        with pytest.raises(dml.ArgumentTypeError, match=r"x: .*float16, bfloat16.*float8_e5m2"):
            call(random_elements("float8_e5m2"))

    def test_floats_of_8_bits_take_no_numbers(self):
        x = random_elements("float8_e4m3fn")
        assert not dml.pad(x, 1)[0].view(np.uint8).any()
        with pytest.raises(dml.ArgumentTypeError, match="give an array of that type"):
            dml.pad(x, 1, constant=2)
        with pytest.raises(dml.ArgumentTypeError, match="constant: expected float8_e8m0fnu"):
            dml.pad(random_elements("float8_e8m0fnu"), 1)
        with pytest.raises(dml.ArgumentTypeError, match=r"dtype: expected one of .*bfloat16"):
            dml.cast(np.ones(3), "float8_e5m2")

    @pytest.mark.parametrize("kind", ["int4", "uint4", "float4_e2m1fn"])
    def test_others_of_ml_dtypes_are_refused(self, kind):
        with pytest.raises(dml.ArgumentTypeError, match=rf"x: expected numbers .*, got {kind}"):
            dml.tile(np.zeros(3, getattr(ml_dtypes, kind)), 2)
