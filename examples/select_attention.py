"""Sparse attention: every query attends to the keys with its best scores, 2,048 of them on a GPU.

``top_k`` selects from the scores of an indexer, as many of each row as ``lengths`` says, which is a
tensor on the same device: causal attention and sequences of different lengths need no mask. Indices
are int32, results go to tensors that exist, and nothing waits for the host. So on a GPU the step is
one CUDA graph, which is replayed with other scores and lengths. Where a row has fewer keys than k,
the rest of its indices is -1. Ties go to the first key, in every run and every replay.

Run it on a CPU, smaller and without a graph, or on a GPU with ``--device cuda``. Where FlashInfer
is installed, its ``top_k`` is compared: the values that it selects, and the time.
"""

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import torch

import anydml as dml

parser = argparse.ArgumentParser(description="Sparse attention with top_k.")
parser.add_argument("--device", default="cpu", help="cpu or cuda")
device = torch.device(parser.parse_args().device)
on_gpu = device.type == "cuda"
QUERIES, KEYS, K, WIDTH = (512, 32_768, 2_048, 128) if on_gpu else (48, 1_024, 128, 32)

torch.manual_seed(0)
keys, contents = torch.randn(2, KEYS, WIDTH, device=device)
queries = torch.randn(QUERIES, WIDTH, device=device)
scores = torch.empty(QUERIES, KEYS, device=device)
lengths = torch.empty(QUERIES, dtype=torch.int32, device=device)
best = torch.empty(QUERIES, K, device=device)
indices = torch.empty(QUERIES, K, dtype=torch.int32, device=device)
attended = torch.empty(QUERIES, WIDTH, device=device)


def fill(longest: int) -> None:
    """New scores, coarse so that many are equal, and new lengths: some shorter than k."""
    scores.copy_(torch.randn_like(scores).mul_(16).round_().div_(16))
    lengths.copy_(torch.randint(1, longest + 1, lengths.shape, dtype=torch.int32))
    lengths[0] = 1
    lengths[-1] = longest


def select() -> None:
    """Write the best scores of each row and the keys that have them; -1 where there are no more."""
    dml.top_k(scores, K, lengths=lengths, index_dtype="int32", out=(best, indices))


def attend() -> None:
    """Attend to the selected keys. The key that -1 fetches has no weight."""
    select()
    picked = dml.gather(keys, indices)  # queries × k × width
    weights = torch.einsum("qd,qkd->qk", queries, picked) / WIDTH**0.5
    weights = weights.masked_fill(indices < 0, -torch.inf).softmax(-1)
    attended.copy_(torch.einsum("qk,qkd->qd", weights, dml.gather(contents, indices)))


def check() -> None:
    """Compare with one row at a time: a stable sort, and attention to what it puts first."""
    for row, length in enumerate(lengths.tolist()):
        order = torch.sort(scores[row, :length], descending=True, stable=True).indices[:K]
        assert indices[row, : len(order)].tolist() == order.tolist()
        assert (indices[row, len(order) :] == -1).all()
        weights = (keys[order] @ queries[row] / WIDTH**0.5).softmax(-1)
        torch.testing.assert_close(attended[row], weights @ contents[order], rtol=1e-3, atol=1e-4)


def milliseconds(call: Callable[[], object], runs: int = 20) -> float:
    """The least time of a call."""
    best_time = float("inf")
    for _ in range(runs):
        if on_gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if on_gpu:
            torch.cuda.synchronize()
        best_time = min(best_time, time.perf_counter() - begin)
    return 1e3 * best_time


fill(KEYS)
attend()  # compiles the kernels
check()
run: Callable[[], None] = attend
if on_gpu:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        attend()
    run = graph.replay
for longest in (KEYS, K // 2, KEYS):
    fill(longest)
    run()
    check()
    first = indices.clone()
    run()
    assert torch.equal(first, indices)

what = "replays of one CUDA graph" if on_gpu else "calls"
print(f"{QUERIES} queries attend to at most {K} of {KEYS} keys, in 6 {what}: all as row by row")
if on_gpu:
    print(f"top_k with lengths: {milliseconds(select):.3f} ms")
if on_gpu and find_spec("flashinfer"):
    flashinfer = import_module("flashinfer")
    masked = scores.masked_fill(torch.arange(KEYS, device=device) >= lengths[:, None], -torch.inf)
    values, _ = flashinfer.top_k(masked, K)
    fetched = best.masked_fill(indices < 0, -torch.inf)
    assert torch.equal(values.sort(-1, descending=True).values, fetched)
    least = milliseconds(lambda: flashinfer.top_k(masked, K))
    print(f"FlashInfer's top_k of masked rows: {least:.3f} ms, the same values")
