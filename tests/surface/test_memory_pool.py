"""The pool: capped, given back, switched off, never handing out what is still referenced."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import anydml as dml

COUNT = 1 << 20  # 4 MB of float32
SOURCE = np.arange(COUNT, dtype=np.float32)


@pytest.fixture(autouse=True)
def fresh_pool():
    usual = dml.memory_pool().limit
    gc.collect()
    dml.set_memory_pool_limit(0)
    dml.set_memory_pool_limit(usual)
    assert dml.memory_pool().held == 0
    yield
    dml.set_memory_pool_limit(usual)


def test_it_keeps_no_more_than_the_machine_can_spare():
    script = "import anydml as dml; print(dml.memory_pool().limit)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    assert 0 < int(done.stdout) <= min(2**30, physical // 8)


def copy():
    return dml.split(SOURCE, 1)[0]


def address(array):
    return array.__array_interface__["data"][0]


def test_blocks_come_back_and_are_used_again():
    before = dml.memory_pool().lent
    first = copy()
    assert dml.memory_pool().lent >= before + SOURCE.nbytes
    place = address(first)
    assert place % 64 == 0
    del first
    assert dml.memory_pool().lent == before
    assert dml.memory_pool().held >= SOURCE.nbytes
    second = copy()
    assert address(second) == place
    assert np.array_equal(second, SOURCE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kept_blocks",
    [
        lambda array: array[10:20],
        lambda array: array.reshape(2, -1).T,
        memoryview,
        lambda array: np.asarray(memoryview(array)),
        np.from_dlpack,
    ],
    ids=["slice", "transposed", "memoryview", "buffer", "DLPack"],
)
def test_what_is_referenced_is_not_handed_out(kept_blocks):
    array = copy()
    kept = kept_blocks(array)
    place, values = address(array), np.array(kept, copy=True)
    del array
    others = [copy() for _ in range(4)]
    for other in others:
        other[...] = -1
        assert address(other) != place
    assert np.array_equal(np.asarray(kept), values)
    del kept
    gc.collect()
    del others


def test_what_a_tensor_references_is_not_handed_out():
    torch = pytest.importorskip("torch")
    array = copy()
    tensor = torch.from_numpy(array)
    del array
    other = copy()
    other[...] = -1
    assert torch.equal(tensor, torch.from_numpy(SOURCE))


def test_limit_caps_what_is_kept():
    dml.set_memory_pool_limit(SOURCE.nbytes + (1 << 20))
    arrays = [copy() for _ in range(5)]
    del arrays
    assert dml.memory_pool().held <= SOURCE.nbytes + (1 << 20)
    dml.set_memory_pool_limit(1 << 20)
    assert dml.memory_pool().held <= 1 << 20


def test_zero_switches_it_off():
    dml.set_memory_pool_limit(0)
    array = copy()
    assert np.array_equal(array, SOURCE)
    del array
    assert dml.memory_pool() == (0, 0, dml.memory_pool().lent)


def test_nothing_left_over_leaks_into_undefined_rows():
    """Blocks full of old data, then outputs of which most is undefined."""
    old = [copy() for _ in range(4)]
    for array in old:
        array.view(np.uint32)[...] = 0xDEADBEEF
    del old, array
    rows = COUNT // 4
    desc = dml.NonzeroCoordinates(
        input_tensor=dml.TensorDesc("INT8", (rows, 1)),
        output_count_tensor=dml.TensorDesc("UINT32", (1,)),
        output_coordinates_tensor=dml.TensorDesc("UINT32", (rows, 2)),
    )
    x = np.zeros((rows, 1), np.int8)
    x[5] = 1
    result = dml.Device("cpu").create_operator(desc).compile()(x)
    assert result.output_count_tensor.tolist() == [1]
    assert result.output_coordinates_tensor[0].tolist() == [5, 0]
    assert not result.output_coordinates_tensor[1:].any()


def test_memory_returns_at_interpreter_exit():
    script = (
        "import numpy as np, anydml as dml\n"
        "kept = dml.split(np.zeros(1 << 20), 2)\n"
        "class Late:\n"
        "    def __init__(self, parts): self.parts = parts\n"
        "    def __del__(self): self.parts = None\n"
        "late = Late(kept); late.itself = late\n"
        "print('good')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "good", "")


def test_too_large_is_a_memory_error():
    tiny = np.broadcast_to(np.zeros(1, np.uint8), (1,))
    huge = np.broadcast_to(tiny, (1 << 46,))
    with pytest.raises(MemoryError):
        dml.split(huge, 1)


def test_small_parts_that_share_a_block_outlive_each_other():
    x = np.arange(4096 * 1024, dtype=np.float32).reshape(1024, 4096)
    expected = [x[:, 4 * i : 4 * i + 4].copy() for i in range(1024)]
    parts = dml.split(x, 1024, axis=1)  # 16 KiB each: too small for a block of its own
    kept = {i: parts[i] for i in (0, 63, 64, 500, 1023)}
    del parts
    again = dml.split(np.zeros_like(x), 1024, axis=1)  # takes what has been given back
    for i, part in kept.items():
        np.testing.assert_array_equal(part, expected[i])
        assert not any(np.may_share_memory(part, other) for other in again)
