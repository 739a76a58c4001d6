"""Training a small mixture of experts in PyTorch: the same bits at every run, the model unchanged.

Tokens go to their two best experts, which add what they make of them to the tokens' places. On a
GPU PyTorch adds in whatever order its threads come by, so that two runs drift apart; inside
``anydml.torch.deterministic()`` they are equal to the bit, the backward pass included. The
router chooses with ``anydml.top_k``, which has a gradient.

On a GPU where there is one: ``python examples/train_experts.py``.
"""

import torch

import anydml as dml
import anydml.torch

TOKENS, WORDS, WIDTH, EXPERTS, CHOICES, STEPS = 512, 40, 16, 4, 2, 8


class Experts(torch.nn.Module):
    """Embeds words, sends each token to its best experts, and adds up their answers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.router = torch.nn.Linear(WIDTH, EXPERTS)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS))
        self.answer = torch.nn.Linear(WIDTH, 1)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        tokens = self.words(text)
        scores, chosen = dml.top_k(self.router(tokens), CHOICES)
        weights = scores.softmax(-1)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, choice = (chosen == number).nonzero(as_tuple=True)
            share = weights[rows, choice].unsqueeze(-1) * expert(tokens[rows]).relu()
            mixed = mixed.index_add(0, rows, share)
        return self.answer(tokens + mixed).squeeze(-1)


def train(device: str) -> tuple[list[float], list[torch.Tensor]]:
    """Losses of all steps, and the trained parameters."""
    torch.manual_seed(3)
    text = torch.randint(WORDS, (TOKENS,))
    wanted = (text % 7 - 3.0).to(device)
    text, model = text.to(device), Experts().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (model(text) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.detach() for parameter in model.parameters()]


device = "cuda" if torch.cuda.is_available() else "cpu"
plain, _ = train(device)
with anydml.torch.deterministic():
    losses, trained = train(device)
    again, once_more = train(device)

assert losses == again
assert all(torch.equal(a, b) for a, b in zip(trained, once_more, strict=True))
assert losses[-1] < losses[0]
torch.testing.assert_close(torch.tensor(losses), torch.tensor(plain), rtol=1e-3, atol=1e-4)

print(f"{EXPERTS} experts, {TOKENS} tokens, {STEPS} steps on {device}")
for step, loss in enumerate(losses):
    print(f"step {step}  loss {loss:.4f}")
print("two runs inside deterministic(): equal to the bit, parameters included")
