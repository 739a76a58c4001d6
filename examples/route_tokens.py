"""Mixture-of-experts routing: every token goes to its two best experts, if they have room.

``top_k`` chooses experts from the router's scores, ``scatter_nd`` sorts the tokens into one buffer
for each expert, ``gather_nd`` fetches what the experts made of them, ``scatter_elements`` counts.
Ties between experts always fall the same way, so that a run can be repeated to the bit.
"""

import numpy as np

import anydml as dml

TOKENS, WIDTH, EXPERTS, CHOICES = 512, 32, 8, 2
CAPACITY = 160  # tokens that one expert takes; later ones are dropped


def route(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Experts and weights of every token's choices, and each choice's place at its expert."""
    best, experts = dml.top_k(scores, CHOICES, axis=-1)
    weights = np.exp(best - best[:, :1])
    weights /= weights.sum(axis=-1, keepdims=True)

    # chosen[t, e] is 1 where token t goes to expert e; running totals are places in the queue.
    chosen = dml.scatter_elements(
        np.zeros((TOKENS, EXPERTS), np.int64), experts, np.ones_like(experts), axis=1
    )
    queue = np.cumsum(chosen, axis=0) - chosen
    return experts, weights, dml.gather_elements(queue, experts, axis=1)


def mix(
    tokens: np.ndarray, scores: np.ndarray, layers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the chosen experts make of every token, and the experts' loads."""
    experts, weights, places = route(scores)
    kept = dml.nonzero_coordinates(places < CAPACITY)  # rows of (token, choice)
    slots = np.stack([dml.gather_nd(experts, kept), dml.gather_nd(places, kept)], axis=-1)

    buffers = np.zeros((EXPERTS, CAPACITY, WIDTH), np.float32)
    dml.scatter_nd(buffers, slots, dml.gather(tokens, kept[:, 0]), out=buffers)
    answers = np.maximum(buffers @ layers, 0)

    share = dml.gather_nd(weights, kept)[:, None] * dml.gather_nd(answers, slots)
    mixed = dml.scatter_nd(np.zeros_like(tokens), kept[:, :1], share, reduction="add")
    loads = dml.scatter_elements(
        np.zeros(EXPERTS, np.int64), slots[:, 0], np.ones(len(slots), np.int64), reduction="add"
    )
    return mixed, loads


def expected(tokens: np.ndarray, scores: np.ndarray, layers: np.ndarray) -> np.ndarray:
    """The same, one token at a time in plain NumPy."""
    mixed, loads = np.zeros_like(tokens), [0] * EXPERTS
    for t, row in enumerate(scores):
        experts = np.argsort(-row, kind="stable")[:CHOICES]
        weights = np.exp(row[experts] - row[experts[0]])
        weights /= weights.sum()
        for expert, weight in zip(experts, weights, strict=True):
            if loads[expert] < CAPACITY:
                mixed[t] += weight * np.maximum(tokens[t] @ layers[expert], 0)
            loads[expert] += 1
    return mixed


random = np.random.default_rng(7)
tokens = random.standard_normal((TOKENS, WIDTH), dtype=np.float32)
layers = random.standard_normal((EXPERTS, WIDTH, WIDTH), dtype=np.float32) / np.float32(6)
popular = np.linspace(1.5, 0, EXPERTS, dtype=np.float32)
scores = random.standard_normal((TOKENS, EXPERTS), dtype=np.float32) + popular
scores = np.round(scores * 4) / 4  # coarse scores, as low precision gives them: many ties

mixed, loads = mix(tokens, scores, layers)
np.testing.assert_allclose(mixed, expected(tokens, scores, layers), rtol=1e-4, atol=1e-5)
assert loads.max() == CAPACITY

dropped = TOKENS * CHOICES - int(loads.sum())
print(f"{TOKENS} tokens, {CHOICES} of {EXPERTS} experts each, at most {CAPACITY} tokens per expert")
for expert, load in enumerate(loads.tolist()):
    print(f"expert {expert}  {load:4d}  {'#' * (load // 4)}")
print(f"dropped {dropped} of {TOKENS * CHOICES} choices; results equal the token-by-token ones")
