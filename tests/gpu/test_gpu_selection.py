"""`top_k` with its options on a GPU against the CPU, for every kernel that may run."""

import numpy as np
import pytest

import anydml as dml

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

# Elements of a row: ranked in a warp, by rounds, in a block, by one block and by several.
SIZES = [1, 20, 33, 64, 100, 127, 128, 1000, 4096, 9000, 40_000, 140_000, 300_000]
TYPES = ["float32", "float16", "bfloat16", "float64", "int32", "int8", "uint8", "int64"]


def values(rng, rows, size, kind):
    """Random elements: distinct ones, ties, NaN, ascending ones or all equal."""
    x = torch.from_numpy(rng.normal(size=(rows, size)) * 3)
    how = rng.integers(5)
    if how == 1:
        x = x.round()
    elif how == 2:
        x[torch.from_numpy(rng.random((rows, size)) < 0.05)] = float("nan")
    elif how == 3:
        x = x.sort()[0]
    elif how == 4:
        x = torch.zeros_like(x)
    if getattr(torch, kind).is_floating_point:
        return x.to(getattr(torch, kind))
    return (x.nan_to_num().abs() * 10).clamp(0, 100).to(getattr(torch, kind))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", TYPES)
def test_options(kind, size):
    rng = np.random.default_rng([size, TYPES.index(kind)])
    for _ in range(24 if size < 10_000 else 6):
        rows = int(rng.integers(1, 12 if size < 10_000 else 4))
        x = values(rng, rows, size, kind)
        k = min(size, int(rng.choice([1, 2, 8, 32, 50, 512, 2048, size, size // 3 + 1])))
        options = {"largest": bool(rng.random() < 0.6), "sorted": bool(rng.random() < 0.5)}
        if rng.random() < 0.3:
            options["nan"] = "last"
        if rng.random() < 0.3:
            options["tie_break"] = "last"
        lengths = None
        if rng.random() < 0.7:
            longest = size if rng.random() < 0.6 else min(size, 2 * k)
            lengths = torch.from_numpy(rng.integers(0, longest + 1, rows))
            lengths = lengths.to([torch.int32, torch.int64][rng.integers(2)])
            options["fill_value"] = int(rng.integers(2) * 7)
        expected = dml.top_k(x, k, lengths=lengths, **options)
        on_gpu = x.cuda()
        layout = rng.integers(4)
        if layout == 0:
            on_gpu = on_gpu.t().contiguous().t()
        elif layout == 1:
            on_gpu = torch.cat([on_gpu, on_gpu], 1)[:, :size]
        counts = None if lengths is None else lengths.cuda()
        found = dml.top_k(on_gpu, k, lengths=counts, **options)
        assert torch.equal(found.indices.cpu(), expected.indices), (rows, k, options, lengths)
        bits = found.values.cpu().contiguous().view(torch.uint8)
        assert torch.equal(bits, expected.values.contiguous().view(torch.uint8)), (k, options)


@pytest.mark.parametrize(
    "options",
    [{"sorted": False}, {"nan": "last"}, {"tie_break": "last"}, {"lengths": None}, {"lengths": 7}],
    ids=str,
)
def test_options_in_a_graph(options):
    x = torch.rand(64, 1000, device="cuda")
    if options.get("lengths", 0) is None:
        options = {"lengths": torch.arange(64, device="cuda")}
    dml.top_k(x, 10, **options)  # compiled before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        values, indices = dml.top_k(x, 10, **options)
    for _ in range(3):
        x.copy_(torch.rand(64, 1000).round(decimals=1))
        graph.replay()
        expected = dml.top_k(x, 10, **options)
        assert torch.equal(values, expected.values)
        assert torch.equal(indices, expected.indices)


@pytest.mark.parametrize(
    "options", [{"sorted": False}, {"nan": "last"}, {"tie_break": "last"}, {"lengths": 7}], ids=str
)
def test_options_of_cupy(options):
    cupy = pytest.importorskip("cupy")
    x = np.random.default_rng(1).normal(size=(64, 1000)).astype(np.float32).round(1)
    on_gpu = cupy.asarray(x)
    dml.top_k(on_gpu, 10, **options)  # compiled before
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        found = dml.top_k(on_gpu, 10, **options)
        stream.end_capture().launch(stream)
        stream.synchronize()
    for got, expected in zip(found, dml.top_k(x, 10, **options), strict=True):
        assert (got.get() == expected).all()
