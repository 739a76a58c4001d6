"""Key-value cache update: new keys and values of many sequences, written in place.

The cache is one pool of pages that the sequences share, as servers of language models keep it. A
step appends one token to every sequence: ``scatter_nd`` with ``out=`` the cache itself writes only
the new rows and copies nothing, ``gather`` reads a sequence's pages back. A wrong slot raises
before anything is written, so that one bad request cannot spoil the others' cache.
"""

import numpy as np

import anydml as dml

PAGES, PAGE, HEADS, WIDTH = 256, 16, 4, 32
LENGTHS = [37, 5, 64, 112, 1, 23]  # tokens that each sequence has before the steps
STEPS = 24

random = np.random.default_rng(11)
longest = -(-(max(LENGTHS) + STEPS) // PAGE)
# Every sequence's pages, anywhere in the pool.
tables = random.permutation(PAGES)[: len(LENGTHS) * longest].reshape(len(LENGTHS), longest)


def slots(positions: np.ndarray) -> np.ndarray:
    """(page, row in it) of one position in every sequence."""
    pages = dml.gather_elements(tables, positions[:, None] // PAGE, axis=1)
    return np.concatenate([pages, positions[:, None] % PAGE], axis=1)


def attend(cache: np.ndarray, sequence: int, length: int, query: np.ndarray) -> np.ndarray:
    """Attention of one query over a sequence's keys and values."""
    rows = dml.gather(cache, tables[sequence]).reshape(-1, 2, HEADS, WIDTH)[:length]
    keys, values = rows[:, 0], rows[:, 1]
    weights = np.exp(np.einsum("hw,thw->ht", query, keys) / np.sqrt(WIDTH))
    return np.einsum("ht,thw->hw", weights / weights.sum(axis=1, keepdims=True), values)


# Keys and values that each sequence will have, and the cache with those it has already.
history = random.standard_normal(
    (len(LENGTHS), max(LENGTHS) + STEPS, 2, HEADS, WIDTH), dtype=np.float32
)
cache = np.zeros((PAGES, PAGE, 2, HEADS, WIDTH), np.float32)
for sequence, length in enumerate(LENGTHS):
    for position in range(length):
        page = tables[sequence, position // PAGE]
        cache[page, position % PAGE] = history[sequence, position]
plain = cache.copy()

lengths = np.array(LENGTHS)
for _ in range(STEPS):
    fresh = dml.gather_nd(history, lengths[:, None], batch_dims=1)
    dml.scatter_nd(cache, slots(lengths), fresh, out=cache)

    for sequence, position in enumerate(lengths.tolist()):  # the same in plain NumPy
        page = tables[sequence, position // PAGE]
        plain[page, position % PAGE] = history[sequence, position]
    lengths += 1

assert np.array_equal(cache, plain)

# A slot outside the pool, among good ones: refused, and the cache is as it was.
wrong = slots(lengths - 1)
wrong[3, 0] = PAGES
try:
    dml.scatter_nd(cache, wrong, np.zeros_like(fresh), out=cache)
except dml.IndexOutOfRangeError as error:
    refusal = str(error)
else:
    raise SystemExit("a slot outside the pool was accepted")
assert np.array_equal(cache, plain)

query = random.standard_normal((HEADS, WIDTH), dtype=np.float32)
for sequence, length in enumerate(lengths.tolist()):
    keys, values = history[sequence, :length, 0], history[sequence, :length, 1]
    weights = np.exp(np.einsum("hw,thw->ht", query, keys) / np.sqrt(WIDTH))
    answer = np.einsum("ht,thw->hw", weights / weights.sum(axis=1, keepdims=True), values)
    np.testing.assert_allclose(attend(cache, sequence, length, query), answer, rtol=1e-5, atol=1e-6)

written = STEPS * fresh.nbytes
print(f"{len(LENGTHS)} sequences, {STEPS} steps: lengths {LENGTHS} -> {lengths.tolist()}")
print(f"wrote {written / 1e6:.2f} MB in place into a cache of {cache.nbytes / 1e6:.1f} MB")
print(f"refused: {refusal}")
print("the cache equals NumPy's, and attention over it that over the whole history")
