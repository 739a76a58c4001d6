"""PyTorch tensors by DLPack's exchange table: what the quick calls take, and what they leave alone.

The table checks nothing, so what is not plain must not get that far.
"""

import resource
import subprocess
import sys
import warnings

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from anydml.arrays import _torch
from support import assert_same_bits

torch = pytest.importorskip("torch")

if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    pytest.skip("this PyTorch has no exchange table", allow_module_level=True)

dml.gather(torch.zeros(2), torch.tensor([0]))  # tells the quick calls of it
elements = native.quick("gather_elements")
INDICES = torch.tensor([1, 0, -1])


def learn(samples):
    return native.learn_tensors(samples, torch._C.TensorBase.requires_grad)


def samples():
    return _torch._samples(torch, torch._C._dispatch_keys)


@pytest.fixture(autouse=True, params=["libtorch", "methods"])
def way(request):
    """What is not in the table is told by PyTorch's libraries, or by methods where they do not."""
    learn(samples() if request.param == "libtorch" else [])
    yield request.param
    learn(samples())


def taken(x, indices=INDICES):
    """What the quick call gives; None where it leaves the call to the general path."""
    return elements(None, x, indices, 0, "raise")


def plain():
    return torch.tensor([5.0, 6.0, 7.0])


def freed():
    x = plain()
    x.untyped_storage().resize_(0)
    return x


def cut():
    x = plain()[1:]
    x.untyped_storage().resize_(8)
    return x


def quantized():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch is about to drop them
        return torch.quantize_per_tensor(plain(), 0.1, 0, torch.quint8)


def half_complex():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few operators take them
        return torch.zeros(3, dtype=torch.complex32)


class Mode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
     "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_plain_tensors_are_taken(dtype):
    values = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
    for x in (values, torch.stack([values, values], 1)[:, 1]):
        result = taken(x)
        assert type(result) is torch.Tensor
        assert result.dtype == x.dtype
        assert result.tolist() == [x[1], x[0], x[-1]]


@pytest.mark.parametrize("attribute", [5, property(lambda tensor: False), "requires_grad"])
def test_another_attribute_than_pytorchs_own_teaches_nothing(attribute):
    assert not native.learn_tensors(samples(), attribute)
    assert taken(plain()).tolist() == [6, 5, 7]


def test_tensors_without_elements_are_taken():
    x = torch.empty((2, 0))
    assert x.data_ptr() == 0
    assert taken(x, torch.empty((2, 0), dtype=torch.int64)).shape == (2, 0)


def test_inside_inference_mode_and_without_gradients():
    with torch.inference_mode():
        assert taken(plain()).tolist() == [6, 5, 7]
    with torch.no_grad():
        assert taken(plain()).tolist() == [6, 5, 7]


@pytest.mark.parametrize(
    "make",
    [
        lambda: plain().requires_grad_(),
        lambda: torch.nn.Parameter(plain(), requires_grad=False),
        lambda: torch.tensor([1 + 1j, 2, 3]).conj(),
        lambda: torch.tensor([1 + 1j, 2, 3]).conj().imag,
        lambda: torch._efficientzerotensor(3),
        lambda: plain().to_sparse(),
        lambda: plain().to("meta"),
        quantized,
        lambda: plain().numpy(),
        lambda: [5.0, 6.0, 7.0],
        freed,
        cut,
        half_complex,
        lambda: torch.zeros((1,) * 65),
        lambda: torch.empty((2, 0), requires_grad=True),
    ],
    ids=["requires grad", "parameter", "conjugate", "negative", "zero", "sparse", "meta",
         "quantized", "an array among tensors", "a list", "storage freed", "storage cut",
         "a type that NumPy lacks", "more axes", "empty with a gradient"],
)  # fmt: skip
def test_others_are_left_alone(make):
    x = make()
    indices = torch.zeros(x.shape, dtype=torch.int64) if isinstance(x, torch.Tensor) else INDICES
    assert taken(x) is None
    assert taken(x, indices) is None


def test_what_is_not_aligned_is_taken():
    x = torch.frombuffer(bytearray(13), dtype=torch.float32, count=3, offset=1)
    assert taken(x).tolist() == [0, 0, 0]


def test_forward_gradients_are_left_alone():
    with torch.autograd.forward_ad.dual_level():
        assert taken(plain()) is None
    assert taken(plain()) is not None


def test_types_that_are_known_are_taken():
    cast = native.quick("cast")
    dml.cast(plain(), torch.int32)
    assert cast(None, plain(), torch.int32).dtype == torch.int32


def test_transformations_and_modes_are_left_alone():
    seen = []

    def look(x):
        seen.append(taken(x))
        return x

    torch.vmap(look)(torch.stack([plain(), plain()]))
    torch.func.functionalize(look)(plain())
    torch.func.grad(lambda x: look(x).sum())(plain())
    escaped = []
    torch.func.functionalize(lambda x: escaped.append(x) or x)(plain())
    seen.append(taken(escaped[0]))
    with Mode():
        seen.append(taken(plain()))
    with torch._subclasses.fake_tensor.FakeTensorMode():
        seen.append(taken(torch.zeros(3)))
    assert seen == [None] * 6


def test_a_bad_index_is_left_to_the_general_path():
    assert taken(plain(), torch.tensor([0, 3, 0])) is None
    with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[1\]: expected -3..2"):
        dml.gather_elements(plain(), torch.tensor([0, 3, 0]), axis=0)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1025])
def test_lists_of_tensors(count):
    join, split = native.quick("join"), native.quick("split")
    x = torch.stack([plain()] * count)
    parts = [x[i] for i in range(count)]
    for given in (parts, tuple(parts)):
        joined = join(None, given, 0)
        assert (joined is None) == (count > 1024)
        if joined is not None:
            assert joined.tolist() == [5, 6, 7] * count
    cut = split(None, x, count, 0)
    assert (cut is None) == (count > 1024)
    if cut is not None:
        assert [part.tolist() for part in cut] == [[[5, 6, 7]]] * count


def test_lists_of_other_tensors_are_left_alone():
    join, x = native.quick("join"), plain()
    others = (x.to(torch.int32), x[:, None], x.numpy(), x.requires_grad_(False).tolist(), None)
    for other in others:
        assert join(None, [x, other], 0) is None
        assert join(None, [other, x], 0) is None
    wide = torch.zeros(2, 3)
    assert join(None, [wide, wide[:, :2]], 0) is None
    assert join(None, [wide, wide[:, :2]], 1).shape == (2, 5)
    assert join(None, [wide, wide.to(torch.int32)], 1) is None
    for none in ([], (), iter([x]), x, None):
        assert join(None, none, 0) is None


def test_large_results_are_the_pools():
    x = torch.zeros(20_000)
    assert taken(x, torch.zeros(20_000, dtype=torch.int64)) is None
    assert taken(x, torch.zeros(1_000, dtype=torch.int64)) is not None
    assert taken(x[None].mT, torch.zeros((1_000, 1), dtype=torch.int64)) is not None
    assert taken(x[None].mT, torch.zeros((20_000, 1), dtype=torch.int64)) is None
    top_k, split = native.quick("top_k"), native.quick("split")
    wide = torch.zeros(6_000, dtype=torch.float64)  # 48 KB, and as many of indices
    assert top_k(dml.TopKResult, wide, 0, 6_000, True, None) is None
    assert top_k(dml.TopKResult, wide, 0, 3_000, True, None) is not None
    assert split(None, x[:16_384], 8, 0) is None
    assert split(None, x[:16_000], 8, 0) is not None


def test_coordinates_are_taken():
    x = torch.tensor([[0, 1, 0], [2, 0, 3]])
    assert native.quick("nonzero_coordinates")(None, x, None).tolist() == [[0, 1], [1, 0], [1, 2]]


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (0, 3), (1,)])
def test_results_are_those_of_arrays(shape):
    rng = np.random.default_rng(5)
    array = rng.integers(-3, 3, shape).astype(np.float32)
    x = torch.from_numpy(array)
    calls = [
        lambda a: dml.top_k(a, min(2, shape[-1])),
        dml.nonzero_coordinates,
        lambda a: dml.split(a, shape[0] or 1),
        lambda a: dml.join([a, a, a], axis=-1),
        lambda a: dml.split(a, [0, shape[0]]),
        lambda a: dml.cast(a, "int32"),
        lambda a: dml.pad(a, (2, 1), constant=1.5),
        lambda a: dml.slice_window(a, (0,) * a.ndim, shape, (-1,) * a.ndim),
        lambda a: dml.tile(a, 2),
    ]
    for call in calls:
        ours, theirs = call(x), call(array)
        ours = ours if isinstance(ours, tuple) else (ours,)
        theirs = theirs if isinstance(theirs, tuple) else (theirs,)
        for got, expected in zip(ours, theirs, strict=True):
            assert isinstance(got, torch.Tensor)
            assert_same_bits(got.numpy(), expected)


def test_places_that_differ_are_not_used(way):
    good = samples()
    for field in (1, 2, 3):  # the implementation's address, the keys, the bytes of the storage
        bad = list(good[1])
        bad[field] += 8
        assert not learn([good[0], tuple(bad), *good[2:]])
        assert taken(plain()).tolist() == [6, 5, 7]
    assert learn(good)
    assert taken(plain()).tolist() == [6, 5, 7]


def test_samples_that_are_other_tensors_are_not_used():
    good = samples()
    swapped = [(a[0], *b[1:]) for a, b in zip(good, [*good[1:], good[0]], strict=True)]
    assert not learn(swapped)
    assert taken(plain()).tolist() == [6, 5, 7]
    assert learn(good)


def test_what_does_not_tell_of_gradients_leaves_no_error(way):
    if way == "libtorch":
        assert native.learn_tensors(samples(), torch._C.TensorBase.imag)  # an error for real ones
        assert taken(plain()) is None


def test_results_own_their_memory(way):
    result = taken(plain())
    if way == "libtorch":
        assert result.untyped_storage().resizable()
    assert result.untyped_storage().nbytes() == 12
    assert not result.requires_grad
    assert result._version == 0


def test_nothing_is_left_behind():
    x, bad = plain(), torch.tensor([0, 3, 0])
    counts = [sys.getrefcount(value) for value in (x, INDICES, torch.Tensor, False)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(30_000):
        taken(x)
        taken(x, bad)
    # A tensor is some 300 bytes, beside its 64 of memory.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5_000
    now = [sys.getrefcount(value) for value in (x, INDICES, torch.Tensor, False)]
    assert [b - a for a, b in zip(counts, now, strict=True)] == pytest.approx([0] * 4, abs=50)


def test_inside_of_a_mode_nothing_is_learnt():
    code = """
import torch, anydml as dml
from anydml._native import native
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.append(function)
        return function(*args, **(kwargs or {}))
x, i = torch.zeros(2), torch.tensor([0])
quick = native.quick("gather")
with Mode():
    dml.slice_window(x, [0], [1])
    assert not [f for f in seen if "empty" in str(f) or "conj" in str(f)], seen
    assert quick(None, x, i, 0, "raise") is None
dml.gather(x, i)
assert quick(None, x, i, 0, "raise") is not None
"""
    subprocess.run([sys.executable, "-c", code], check=True)
