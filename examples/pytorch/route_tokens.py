"""Token routing of a mixture of experts: the best experts of each token, there and back.

Every token goes to its `k` best experts. Tokens are sorted by expert, each expert works on its own
rows, and what the experts give is added up for every token. `scatter_nd` adds in the order of the
rows, so that the result has the same bits in every run; `index_add_` adds in the order in which the
GPU's threads happen to come.
"""

from __future__ import annotations

import torch
from _measured import arguments, compare

import anydml as dml

options = arguments(__doc__)
tokens, experts, width, k = (1024, 16, 32, 2) if options.small else (131_072, 128, 512, 4)

generator = torch.Generator().manual_seed(1)
x = torch.randn(tokens, width, generator=generator).to(options.device)
logits = torch.randn(tokens, experts, generator=generator).to(options.device)
scale = torch.randn(experts, width, generator=generator).to(options.device)  # stands for a network


def weighted(rows: torch.Tensor, expert: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """What the experts give for rows that are sorted by expert."""
    return rows * scale[expert] * weight[:, None]


def with_anydml() -> list[torch.Tensor]:
    """Ties go to the first expert, rows of an expert stay in the order of tokens."""
    scores, chosen = dml.top_k(logits, k)
    weights = scores.softmax(-1).reshape(-1)
    # All elements, the smallest first: a stable sort.
    expert, order = dml.top_k(chosen.reshape(-1), tokens * k, largest=False)
    token = order // k
    rows = weighted(dml.gather(x, token), expert, dml.gather(weights, order))
    return [dml.scatter_nd(torch.zeros_like(x), token[:, None], rows, reduction="add")]


def with_pytorch() -> list[torch.Tensor]:
    """The same by PyTorch's own operators."""
    scores, chosen = torch.topk(logits, k)
    weights = scores.softmax(-1).reshape(-1)
    expert, order = torch.sort(chosen.reshape(-1), stable=True)
    token = order // k
    rows = weighted(x.index_select(0, token), expert, weights.index_select(0, order))
    return [torch.zeros_like(x).index_add_(0, token, rows)]


(ours,), (theirs,) = with_anydml(), with_pytorch()
torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
compare(f"{tokens} tokens to {k} of {experts} experts and back", with_anydml, with_pytorch, options)
