"""Token routing of a mixture of experts: the best experts of each token, there and back.

Every token goes to its `k` best experts. Tokens are sorted by expert, each expert works on its own
rows, and what the experts give is added up for every token. `scatter_nd` adds in the order of the
rows, so that the result has the same bits in every run; `index_add_` adds in the order in which the
GPU's threads happen to come. Everything is bfloat16, as such models are; a score often ties with
another one then, and the first of them counts, where PyTorch's `topk` says nothing.
"""

from __future__ import annotations

import torch
from _measured import arguments, compare

import anydml as dml

options = arguments(__doc__)
tokens, experts, width, k = (1024, 16, 32, 2) if options.small else (131_072, 128, 512, 4)

generator = torch.Generator().manual_seed(1)


def drawn(*sizes: int) -> torch.Tensor:
    """Random numbers on the device."""
    return torch.randn(*sizes, generator=generator).to(options.device, torch.bfloat16)


x, logits = drawn(tokens, width), drawn(tokens, experts)
scale = drawn(experts, width)  # stands for a network


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
# Of tokens whose experts no tie leaves open; sums of four terms are rounded in another order.
scores = logits.float().topk(k + 1).values
clear = scores[:, k - 1] > scores[:, k]
torch.testing.assert_close(ours[clear], theirs[clear], rtol=0.02, atol=0.1)
compare(f"{tokens} tokens to {k} of {experts} experts and back", with_anydml, with_pytorch, options)
