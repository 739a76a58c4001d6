"""Search in an array that does not fit into the memory allowed, by Dask.

A table of scores (documents × queries) lies on disk as a Zarr array. ``top_k`` finds the best
documents of every query, ``nonzero_coordinates`` all that are nearly perfect, ``scatter_nd`` takes
withdrawn documents out. The calls are those for an array in memory; they read a few chunks at a
time, while Dask shows how far it is. A limit on the process's memory, which the whole table
exceeds, shows that they do.
"""

import resource
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import zarr
from dask.diagnostics import ProgressBar

import anydml as dml

DOCUMENTS, QUERIES, CHUNK = 512 * 1024, 128, (16 * 1024, 64)
WORKERS, BEST, PERFECT = 2, 3, 0.999999
ALLOWED = 192 << 20  # bytes, beyond what the process has after its imports


def chunk_of(row: int, column: int) -> np.ndarray:
    """A chunk of the table, as if it came from elsewhere."""
    return np.random.default_rng([row, column]).random(CHUNK, np.float32)


def write(folder: str) -> zarr.Array:
    """The table on disk, chunk by chunk."""
    table = zarr.create_array(
        folder, shape=(DOCUMENTS, QUERIES), chunks=CHUNK, dtype="float32", compressors=None
    )
    for row in range(0, DOCUMENTS, CHUNK[0]):
        for column in range(0, QUERIES, CHUNK[1]):
            table.blocks[row // CHUNK[0], column // CHUNK[1]] = chunk_of(row, column)
    return table


def allow(more: int) -> None:
    """Limit the memory that the process may ask for from now on."""
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    now = 1024 * int(fields["VmData"].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, (now + more, resource.RLIM_INFINITY))


with (
    tempfile.TemporaryDirectory() as folder,
    ThreadPoolExecutor(WORKERS) as pool,
    dask.config.set(scheduler="threads", pool=pool, num_workers=WORKERS),
    dml.num_threads(1),
):
    table = write(folder)
    allow(ALLOWED)
    try:
        np.empty(table.shape, table.dtype).fill(0)
        raise SystemExit("the table fits into the memory allowed")
    except MemoryError:
        print(f"{table.nbytes >> 20} MB on disk, {ALLOWED >> 20} MB allowed")

    scores = da.from_zarr(table)
    withdrawn = np.array([[7], [DOCUMENTS - 1]])
    kept = dml.scatter_nd(scores, withdrawn, np.float32(-1))
    best = dml.top_k(kept, BEST, axis=0)
    perfect = dml.nonzero_coordinates(kept > PERFECT)
    with ProgressBar():
        values, documents, found = dask.compute(best.values, best.indices, perfect)

print(f"best of query 0: documents {documents[:, 0].tolist()} with {values[:, 0].tolist()}")
print(f"nearly perfect: {len(found)} of {DOCUMENTS * QUERIES}, the first {found[0].tolist()}")
assert not np.isin(documents, withdrawn).any()
assert (values[0] >= values[-1]).all()
assert (np.diff(found[:, 0]) >= 0).all()
for document, query in zip(documents[0], range(QUERIES), strict=True):
    row, column = document // CHUNK[0] * CHUNK[0], query // CHUNK[1] * CHUNK[1]
    if query in (0, QUERIES - 1):
        assert chunk_of(row, column)[document - row, query - column] == values[0, query]
