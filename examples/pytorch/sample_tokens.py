"""Top-k sampling from logits in a decoding loop, which a CUDA graph replays.

Each step takes the k most likely tokens, draws one of them (the largest sum of logit and Gumbel
noise) and makes the next logits from it. On a GPU a step is captured once and replayed, so that no
time goes into launches; `top_k` and `gather_elements` can be captured after a first call. Equal
logits, which are common in 16 bits, are taken in order of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from _measured import arguments, compare

import anydml as dml

options = arguments(__doc__)
sequences, vocabulary, width, k, steps = (
    (4, 1000, 16, 20, 5) if options.small else (64, 131_072, 256, 50, 32)
)

generator = torch.Generator().manual_seed(1)
embedding = torch.randn(vocabulary, width, generator=generator).to(options.device).half()
noise = -torch.log(-torch.log(torch.rand(steps, sequences, k, generator=generator)))
noise = noise.to(options.device)

token = torch.zeros(sequences, dtype=torch.int64, device=options.device)
drawn = torch.zeros(sequences, k, device=options.device)  # the noise of this step

Step = Callable[[], None]


def with_anydml() -> None:
    """One step: `token` becomes the next one."""
    logits = embedding[token] @ embedding.T
    best, where = dml.top_k(logits, k)
    _, pick = dml.top_k(best.float() + drawn, 1)
    token.copy_(dml.gather_elements(where, pick, axis=1)[:, 0])


def with_pytorch() -> None:
    """The same by PyTorch's own operators."""
    logits = embedding[token] @ embedding.T
    best, where = torch.topk(logits, k)
    _, pick = torch.topk(best.float() + drawn, 1)
    token.copy_(torch.gather(where, 1, pick)[:, 0])


def decoder(step: Step) -> Callable[[], list[torch.Tensor]]:
    """All steps, from a graph where there is a GPU."""
    replay = step
    if options.device != "cpu":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()  # compiles kernels, allocates
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        replay = graph.replay

    def decode() -> list[torch.Tensor]:
        token.zero_()
        taken = []
        for some in noise:
            drawn.copy_(some)
            replay()
            taken.append(token.clone())
        return [torch.stack(taken)]

    return decode


ours, theirs = decoder(with_anydml), decoder(with_pytorch)
title = f"{steps} steps of {sequences} sequences, {k} of {vocabulary} tokens"
compare(title, ours, theirs, options)
