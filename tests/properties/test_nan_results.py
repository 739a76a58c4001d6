"""A sum or product that is NaN is the canonical NaN, at every level and number of threads.

Which operand's NaN an instruction passes on depends on the order that a compiler puts them in, and
what it makes of inf - inf and 0 * inf on the processor. `min` and `max` move bits.
"""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import anydml as dml
from anydml._native import usable_levels
from support import references

KINDS = ("f2", "f4", "f8")
BITS = {"f2": (0x7C00, 0x0200), "f4": (0x7F800000, 0x400000), "f8": (0x7FF << 52, 1 << 51)}


def special(kind):
    """Infinities, NaNs of both signs (quiet and signalling, with payloads), zeros, numbers."""
    width = np.dtype(kind).itemsize
    infinity, quiet = BITS[kind]
    sign = 1 << (8 * width - 1)
    nans = [infinity | quiet, infinity | quiet | 5, infinity | quiet | quiet // 2, infinity | 3]
    ours = np.array(nans + [sign | bits for bits in nans], f"u{width}").view(kind)
    return np.concatenate([ours, np.array([np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5], kind)])


def mixed(generator, shape, kind, share):
    """Numbers, and among them a share of the special ones."""
    x = generator.integers(-9, 9, shape).astype(kind)
    chosen = generator.random(shape) < share
    x[chosen] = generator.choice(special(kind), chosen.sum())
    return x


def cases():
    """Name and operands of a call for every algorithm; an index names a place on axis 0."""
    generator = np.random.default_rng(6)
    sizes = {
        "few": (50, (), 400),
        "in a row": (3, (), 9000),
        "blocks": (3000, (40,), 2500),
        "one line": (150_000, (), 200_000),
        "long line": (1_500_000, (), 400_000),
        "short rows": (40_000, (3,), 90_000),
        "rows": (5000, (67,), 6000),
    }
    for kind in KINDS:
        for name, (count, behind, updates) in sizes.items():
            share = 0.3 if name == "few" else 0.001
            lookup = generator.integers(0, count, updates)
            if name == "in a row":
                lookup = np.sort(lookup)
            yield (
                f"{kind}, {name}",
                mixed(generator, (count, *behind), kind, share),
                lookup,
                mixed(generator, (updates, *behind), kind, share),
            )


def expected(x, lookup, updates, reduction):
    """NumPy's sequential sum or product, in float32 for float16, its NaNs replaced."""
    result = x.astype(np.result_type(x, np.float32))
    with np.errstate(all="ignore"):
        (np.add if reduction == "add" else np.multiply).at(result, lookup, updates)
        result = result.astype(x.dtype)
    touched = np.zeros(len(x), bool)
    touched[lookup] = True
    touched = touched.reshape(-1, *[1] * (x.ndim - 1))
    result[np.isnan(result) & touched] = references.canonical_nan(x.dtype)
    return np.where(touched, result, x)


def digests():
    """Of the results of all cases, every way that they can be had."""
    found = {}
    for name, x, lookup, updates in cases():
        strided = np.repeat(updates, 2, axis=-1)[..., ::2]
        for reduction in ("add", "mul", "min", "max"):
            options = {"reduction": reduction}
            results = [
                dml.scatter_nd(x, lookup[:, None], updates, **options),
                dml.scatter_nd(x, lookup[:, None], strided, **options),
                dml.scatter_nd(x.copy(), lookup[:, None], updates, **options, out=x.copy()),
            ]
            index = np.broadcast_to(lookup.reshape(-1, *[1] * (x.ndim - 1)), updates.shape)
            results.append(dml.scatter_elements(x, index, updates, **options))
            backwards = x[::-1].copy()[::-1]
            results.append(dml.scatter_elements(backwards, index, strided, **options))
            bits = {hashlib.sha256(result.tobytes()).hexdigest() for result in results}
            if reduction in ("add", "mul"):
                reference = expected(x, lookup, updates, reduction).tobytes()
                bits.add(hashlib.sha256(reference).hexdigest())
            found[f"{name}, {reduction}"] = sorted(bits)
    return found


def at(level, threads):
    """The digests of a process at a level and number of threads."""
    environment = os.environ | {
        "ANYDML_INSTRUCTION_SET": level,
        "ANYDML_NUM_THREADS": str(threads),
    }
    done = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=environment,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_same_bits_at_every_level_and_number_of_threads():
    first = None
    for level in usable_levels():
        for threads in (1, 3):
            found = at(level, threads)
            differing = [name for name, bits in found.items() if len(bits) != 1]
            assert not differing, (level, threads)
            first = first or found
            assert found == first, (level, threads)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
def test_every_pair_of_special_values(kind, reduction):
    values = special(kind)
    x, updates = np.repeat(values, len(values)), np.tile(values, len(values))
    lookup = np.arange(len(x))
    reference = references.scatter_elements(x, lookup, updates, 0, reduction)
    for got in (
        dml.scatter_elements(x, lookup, updates, reduction=reduction),
        dml.scatter_nd(x, lookup[:, None], updates, reduction=reduction),
        dml.scatter_nd(x[None], [[0]], updates[None], reduction=reduction)[0],
    ):
        assert got.tobytes() == reference.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_an_element_without_an_update_keeps_its_bits(kind):
    x = special(kind)
    for lookup in ([], [3]):
        got = dml.scatter_elements(x, lookup, np.ones(len(lookup), kind), reduction="add")
        rest = np.delete(np.arange(len(x)), lookup)
        assert got[rest].tobytes() == x[rest].tobytes()
        assert np.all(
            got[lookup].tobytes() == references.canonical_nan(kind).tobytes() * len(lookup)
        )


if __name__ == "__main__":
    print(json.dumps(digests()))
