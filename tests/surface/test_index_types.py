"""The types of the indices that functions return: what users of a library index with."""

import numpy as np
import pytest

import anydml as dml
from support import jax_64_bits, strategies

X = np.array([[3.0, 0.0, 9.0], [0.0, 5.0, 7.0]], np.float32)
KINDS = strategies.INDEX


def indices_of(x, **options):
    """Of both functions."""
    return dml.top_k(x, 2, **options).indices, dml.nonzero_coordinates(x, **options)


def test_numpy_indexes_with_what_comes_back():
    best, places = indices_of(X)
    assert best.dtype == places.dtype == np.intp
    assert np.array_equal(X[np.arange(2)[:, None], best], [[9, 3], [7, 5]])
    assert (places - 1).min() == -1  # no wrapping below 0
    for x in ([[3, 1, 2]], np.int8([[3, 1, 2]]), memoryview(b"\x03\x01\x02"), X[:, ::2], X.T):
        assert {i.dtype for i in indices_of(x)} == {np.dtype(np.intp)}


@pytest.mark.parametrize("kind", KINDS)
def test_any_index_type_by_name_or_type(kind):
    reference = [i.astype(kind) for i in indices_of(X)]
    for form in (kind, kind.upper(), np.dtype(kind), getattr(np, kind), dml.DataType[kind.upper()],
                  np.dtype(kind).str):  # fmt: skip
        for x in (X, X.tolist(), X[::-1][::-1]):
            for got, expected in zip(indices_of(x, index_dtype=form), reference, strict=True):
                assert got.dtype == kind
                assert np.array_equal(got, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_to_write_to_decides(kind):
    best, places = np.zeros((2, 2), kind), np.zeros((4, 2), kind)
    dml.top_k(X, 2, out=(None, best))
    assert best.tolist() == [[2, 0], [2, 1]]
    dml.nonzero_coordinates(X, out=places)
    assert places.tolist() == np.argwhere(X).tolist()
    other = next(k for k in KINDS if k != kind)
    with pytest.raises(dml.ArgumentTypeError, match=rf"out\[1\]: expected {other}, got {kind}"):
        dml.top_k(X, 2, index_dtype=other, out=(None, best))
    with pytest.raises(dml.ArgumentTypeError, match=f"out: expected {other}, got {kind}"):
        dml.nonzero_coordinates(X, index_dtype=other, out=places)
    with pytest.raises(dml.ArgumentTypeError, match=r"out\[1\]: expected int64, got float32"):
        dml.top_k(X, 2, out=(None, np.zeros((2, 2), "f4")))


def test_a_type_that_does_not_hold_the_axis_is_refused():
    for kind, maximum in (("int32", 2**31), ("uint32", 2**32)):
        held = np.broadcast_to(np.uint8(1), (0, maximum))
        longer = np.broadcast_to(np.uint8(1), (0, maximum + 1))
        assert [i.dtype for i in indices_of(held, index_dtype=kind)] == [kind, kind]
        empty = np.zeros((0, 2), kind)
        for call in (
            lambda x, kind=kind: dml.top_k(x, 2, index_dtype=kind),
            lambda x, kind=kind: dml.nonzero_coordinates(x, index_dtype=np.dtype(kind)),
        ):
            call(held)
            with pytest.raises(
                dml.ArgumentError, match=rf"index_dtype.*up to {maximum}, got {kind}"
            ):
                call(longer)
        for call, name in (
            (lambda x, out=empty: dml.top_k(x, 2, out=(None, out)), r"out\[1\]"),
            (lambda x, out=empty: dml.nonzero_coordinates(x, out=out), "out"),
        ):
            call(held)
            with pytest.raises(dml.ArgumentError, match=rf"^{name}: .*up to {maximum}, got {kind}"):
                call(longer)


def test_torch_indexes_with_what_comes_back():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X)
    best, places = indices_of(x)
    assert best.dtype == places.dtype == torch.int64
    assert torch.equal(x.gather(1, best), torch.topk(x, 2).values)
    assert torch.equal(x[places.unbind(1)], x[x != 0])
    for kind in (torch.int64, torch.int32, torch.uint32, torch.uint64):
        name = str(kind).removeprefix("torch.")
        for arguments in (kind, name, np.dtype(name)):
            assert [i.dtype for i in indices_of(x, index_dtype=arguments)] == [kind, kind]
        out = torch.zeros(4, 2, dtype=kind)
        assert dml.nonzero_coordinates(x, out=out) is out
        assert out.tolist() == places.tolist()
    for kind in (torch.int16, torch.float32, torch.bool):
        with pytest.raises(dml.ArgumentTypeError, match="expected one of int64, int32, uint"):
            dml.top_k(x, 2, index_dtype=kind)


def test_jax_has_its_own_default():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(X)
    for wide in (False, True):
        with jax_64_bits(wide):
            default = jax.numpy.arange(3).dtype
            best, places = indices_of(x)
            assert best.dtype == places.dtype == default
            assert np.array_equal(jax.numpy.take_along_axis(x, best, 1), jax.lax.top_k(x, 2)[0])
            for kind in ("int32", jax.numpy.int32, "uint32"):
                name = np.dtype(kind).name
                assert [i.dtype.name for i in indices_of(x, index_dtype=kind)] == [name, name]
            for kind in ("int64", "uint64", np.int64):
                if wide:
                    assert {i.dtype for i in indices_of(x, index_dtype=kind)} == {np.dtype(kind)}
                    continue
                with pytest.raises(dml.ArgumentTypeError, match=r"^index_dtype: .*jax_enable_x64"):
                    dml.top_k(x, 2, index_dtype=kind)
                with pytest.raises(dml.ArgumentTypeError, match=r"^index_dtype: .*jax_enable_x64"):
                    dml.nonzero_coordinates(x, index_dtype=kind)


def test_jax_refuses_a_cast_that_it_would_undo():
    jax = pytest.importorskip("jax")
    with jax_64_bits(False), pytest.raises(dml.ArgumentTypeError, match=r"^dtype: .*enable_x64"):
        dml.cast(jax.numpy.arange(3), "float64")


def test_producers_of_other_libraries_index_with_intp():
    class Producer:
        def __dlpack__(self, **options):
            return X.__dlpack__(**options)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    assert [i.dtype for i in indices_of(Producer())] == [np.intp, np.intp]
