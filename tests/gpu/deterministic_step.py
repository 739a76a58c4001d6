"""Training steps of a mixture of experts and a graph network on a GPU: what repeats, at what cost.

``python tests/gpu/deterministic_step.py [FILE.json]`` trains each model several times from the same
start, with PyTorch alone, with ``torch.use_deterministic_algorithms`` and inside
``anydml.torch.deterministic()``; it counts the distinct results and times a step.
"""

import json
import os
import statistics
import sys
from contextlib import AbstractContextManager, contextmanager, nullcontext

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as PyTorch's switch wants it

import torch

import anydml.torch

STEPS, RUNS, TIMED = 5, 6, 30


class Experts(torch.nn.Module):
    """Every token goes to its two best of 8 experts, whose answers are added in its place."""

    def __init__(self, words=200, width=256, experts=8):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.router = torch.nn.Linear(width, experts)
        self.layers = torch.nn.Parameter(torch.randn(experts, width, width) / width**0.5)
        self.answer = torch.nn.Linear(width, 1)

    def forward(self, text):
        tokens = self.words(text)
        scores, chosen = self.router(tokens).topk(2)
        order = chosen.reshape(-1).argsort()
        weights = scores.softmax(-1).reshape(-1, 1)
        rows = order // 2
        sizes = torch.bincount(chosen.reshape(-1), minlength=len(self.layers)).tolist()
        parts = tokens[rows].split(sizes)
        answers = torch.cat([(p @ w).relu() for p, w in zip(parts, self.layers, strict=True)])
        return self.answer(tokens.index_add(0, rows, answers * weights[order])).squeeze(-1)

    @staticmethod
    def inputs(device, generator):
        text = torch.randint(200, (16384,), generator=generator)
        return (text.to(device),), (text % 7 - 3.0).to(device)


class Graph(torch.nn.Module):
    """Two rounds of messages along edges, summed and averaged at the nodes."""

    def __init__(self, width=128):
        super().__init__()
        self.layer = torch.nn.Linear(16, width)
        self.rounds = torch.nn.ModuleList(torch.nn.Linear(2 * width, width) for _ in range(2))
        self.answer = torch.nn.Linear(width, 1)

    def forward(self, nodes, edges):
        source, target = edges
        state = self.layer(nodes)
        for layer in self.rounds:
            sent = state[source]
            at = target[:, None].expand_as(sent)
            mean = torch.zeros_like(state).scatter_reduce(0, at, sent, "mean", include_self=False)
            total = torch.zeros_like(state).scatter_add(0, at, sent)
            state = layer(torch.cat([mean, total / 16], -1)).relu()
        return self.answer(state).squeeze(-1)

    @staticmethod
    def inputs(device, generator):
        nodes = torch.randn(4096, 16, generator=generator)
        edges = torch.randint(4096, (2, 65536), generator=generator)
        return (nodes.to(device), edges.to(device)), nodes.sum(-1).to(device)


def trained(kind, device, steps=STEPS):
    """The parameters after some steps from the same start, as one tensor; and a step to time."""
    generator = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    model = kind().to(device)
    arguments, expected = kind.inputs(device, generator)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step():
        optimizer.zero_grad()
        (model(*arguments) - expected).square().mean().backward()
        optimizer.step()

    for _ in range(steps):
        step()
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    return flat.clone(), step


@contextmanager
def switched_on():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


WAYS = {
    "PyTorch": nullcontext,
    "use_deterministic_algorithms": switched_on,
    "deterministic()": anydml.torch.deterministic,
}


def distinct(results):
    """How many of the results differ in a bit from all before."""
    found = []
    for result in results:
        if not any(torch.equal(result.view(torch.int32), f.view(torch.int32)) for f in found):
            found.append(result)
    return len(found)


def milliseconds(step):
    """The median time of a step on the GPU."""
    times = []
    for _ in range(TIMED):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def measured(kind, way):
    """One row: distinct results of several runs, and what a step takes."""
    block: AbstractContextManager = WAYS[way]()
    row = {"model": kind.__name__, "way": way}
    try:
        with block:
            results, step = [], None
            for _ in range(RUNS):
                result, step = trained(kind, "cuda")
                results.append(result)
            row |= {"runs": RUNS, "distinct": distinct(results), "ms": milliseconds(step)}
    except RuntimeError as error:  # PyTorch has no deterministic kernel for something
        row["error"] = str(error).partition("\n")[0][:160]
    return row


def main():
    rows = [measured(kind, way) for kind in (Experts, Graph) for way in WAYS]
    for row in rows:
        print(row)
    if len(sys.argv) > 1:
        about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "steps": STEPS}
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump({**about, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
