"""bfloat16 and floats of 8 bits on a GPU: the CPU's results, to the bit."""

from itertools import product

import pytest

import anydml as dml

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
NUMBERS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
SHAPES = ((5,), (7, 33), (4, 1000), (3, 70_000), (2, 3, 4, 65), (600, 513))


def random_elements(shape, dtype=torch.bfloat16, maximum=256):
    """Any bits: zeros of both signs, subnormals, infinities and NaNs among them."""
    generator = torch.Generator().manual_seed(sum(shape))
    size = torch.empty(0, dtype=dtype).element_size()
    count = size * int(torch.tensor(shape).prod())
    raw = torch.randint(0, maximum, (count,), dtype=torch.uint8, generator=generator)
    return raw.view(dtype).reshape(shape)


def ties(shape):
    """Few values, so that many tie."""
    numbers = torch.tensor([0.0, -0.0, 1.5, -2, torch.nan, torch.inf]).bfloat16()
    generator = torch.Generator().manual_seed(7)
    return numbers[torch.randint(0, len(numbers), shape, generator=generator)]


def layouts(x):
    yield x
    if x.ndim > 1:
        yield x.transpose(0, -1)
        yield x[..., ::2]


def agree(call, *operands):
    """The same call on both devices."""
    expected = call(*operands)
    got = call(*(operand.cuda() for operand in operands))
    dml.synchronize()
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else ((got, expected),)
    for ours, theirs in pairs:
        assert ours.is_cuda
        assert ours.dtype == theirs.dtype
        bits = BITS[ours.element_size()]
        assert torch.equal(ours.cpu().contiguous().view(bits), theirs.contiguous().view(bits))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [random_elements, ties])
def test_selection(shape, make):
    for x in layouts(make(shape)):
        agree(dml.nonzero_coordinates, x)
        for largest, axis in product((True, False), range(x.ndim)):
            for k in {1, min(50, x.shape[axis]), x.shape[axis]}:
                agree(lambda a, k=k, d=axis, w=largest: dml.top_k(a, k, axis=d, largest=w), x)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize(("rows", "updates"), [(3, 40), (500, 2000), (5000, 20)])
def test_scatters(rows, updates, reduction, include_self):
    generator = torch.Generator().manual_seed(rows)
    for maximum in (256, 64):  # any bits, and numbers that meet in others of their size
        x, new = (
            random_elements((rows, 9), maximum=maximum),
            random_elements((updates, 9), maximum=maximum),
        )
        places = torch.randint(0, rows, (updates, 9), generator=generator)
        arguments = {"reduction": reduction, "include_self": include_self}
        agree(lambda *a, g=arguments: dml.scatter_elements(*a, **g), x, places, new)
        agree(lambda *a, g=arguments: dml.scatter_nd(*a, **g), x, places[:, :1], new)


@pytest.mark.parametrize("kind", NUMBERS)
def test_cast(kind):
    every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    other = getattr(torch, kind)
    wide = (
        random_elements((40_000,)).bool()
        if other == torch.bool
        else random_elements((40_000,), other)
    )
    for x in layouts(every.reshape(256, 256)):
        if other != torch.bool:
            agree(lambda a: dml.cast(a, kind), x)
    for x in layouts(wide.reshape(200, 200)):
        agree(lambda a: dml.cast(a, "bfloat16"), x)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_moved(kind):
    for x in layouts(random_elements((6, 40), getattr(torch, kind))):
        rows = torch.tensor([0, -1, 2])
        agree(dml.gather, x, rows)
        agree(dml.gather_elements, x, torch.zeros_like(x, dtype=torch.int64))
        agree(dml.gather_nd, x, rows[:, None])
        agree(lambda a, i: dml.scatter_nd(a, i, a[:1]), x, rows[1:2, None])
        agree(lambda a: dml.split(a, [1, len(a) - 1]), x)
        agree(lambda a: dml.join([a, a]), x)
        agree(lambda a: dml.tile(a, (2, 3)), x)
        agree(lambda a: dml.pad(a, 2, "edge"), x)
        agree(lambda a: dml.slice_window(a, (0, 1), (4, 3), (1, -1)), x)
        agree(lambda a: dml.tile(a, 1, out=torch.empty(a.shape, dtype=a.dtype, device=a.device)), x)
        if kind != "float8_e8m0fnu":
            agree(lambda a: dml.pad(a, 1), x)
