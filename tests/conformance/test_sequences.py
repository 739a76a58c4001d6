"""Programs of several calls: intermediates, reuse of memory, constants, errors that name a call.

`chain` pads, gathers from the result and pads again, which NumPy computes in one line each.
"""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.core.program import (
    ArraySpec,
    Constant,
    IndexUse,
    Intermediate,
    KernelCall,
    Program,
    Slot,
)
from anydml.devices.backends import backend_named
from anydml.devices.backends._sequence import ALIGNMENT, lay_out, staged_outputs
from anydml.ops._numbers import bits_of

F4, I4 = np.dtype("f4"), np.dtype("i4")
BACKENDS = ["cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu)]


def slot(name, shape, dtype=F4):
    return Slot(name, ArraySpec(shape, dtype), shape)


def pad(source, target, value=0.0):
    value = bits_of(value, F4)
    attributes = {"mode": "constant", "starts": (1, 0), "ends": (0, 1), "value": value}
    return KernelCall("pad", (source,), (target,), tuple(attributes.items()), source="pad_1")


def copy(source, target):
    return KernelCall("identity", (source,), (target,), (("scaled", False),))


def gather(data, indices, target, rows):
    return KernelCall(
        "gather", (data, indices), (target,), (("axis", 0), ("clamp", False)),
        indices=IndexUse(indices, (0,), (rows,), "IndicesTensor"), source="gather_1",
    )  # fmt: skip


def chain():
    """[2, 3] → pad → [3, 4] → gather 2 rows → [2, 4] → pad → [3, 5]."""
    return Program(
        "chain",
        (slot("X", (2, 3)), slot("I", (2,), I4)),
        (slot("Y", (3, 5)),),
        (
            pad("X", "padded", 7.0),
            gather("padded", "I", "rows", 3),
            pad("rows", "Y"),
        ),
        (
            Intermediate("padded", ArraySpec((3, 4), F4)),
            Intermediate("rows", ArraySpec((2, 4), F4)),
        ),
    )


def expected(x, indices):
    padded = np.pad(x, ((1, 0), (0, 1)), constant_values=7)
    return np.pad(padded[indices], ((1, 0), (0, 1)))


def run(program, backend, private=False, **arrays):
    backend_named(backend)[1].compile(program).run(arrays, private, 1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("private", [False, True])
def test_calls_run_in_order_on_what_earlier_ones_wrote(backend, private):
    x = np.arange(6, dtype=F4).reshape(2, 3)
    indices = np.array([2, -3], I4)
    y = np.full((3, 5), np.nan, F4)
    run(pickle.loads(pickle.dumps(chain())), backend, private, X=x, I=indices, Y=y)
    np.testing.assert_array_equal(y, expected(x, indices))


@pytest.mark.parametrize("backend", BACKENDS)
def test_strided_arrays_are_taken(backend):
    x = np.arange(12, dtype=F4).reshape(3, 4).T[1:3]
    memory = np.full((5, 3), np.nan, F4)
    run(chain(), backend, X=x, I=np.array([1, 1], I4), Y=memory.T)
    np.testing.assert_array_equal(memory.T, expected(x, [1, 1]))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_bad_index_names_the_call_and_leaves_outputs_alone(backend):
    y = np.full((3, 5), 5, F4)
    with pytest.raises(dml.IndexOutOfRangeError) as caught:
        run(chain(), backend, X=np.ones((2, 3), F4), I=np.array([0, 3], I4), Y=y)
    message = "gather_1.IndicesTensor[1]: expected -3..2 (axis 0 of size 3), got 3"
    assert str(caught.value) == message
    assert caught.value.position == (1,)
    assert (y == 5).all()


def first_writes_an_output():
    """The output P is written before the indices are checked."""
    return Program(
        "first",
        (slot("X", (2, 3)), slot("I", (2,), I4)),
        (slot("P", (3, 4)), slot("Y", (2, 4))),
        (pad("X", "P", 7.0), gather("P", "I", "Y", 3)),
    )


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_an_output_of_an_earlier_call_is_left_alone_too(backend):
    program = first_writes_an_output()
    assert staged_outputs(program) == {"P"}
    assert staged_outputs(chain()) == set()
    p, y = np.full((3, 4), 5, F4), np.full((2, 4), 5, F4)
    x = np.ones((2, 3), F4)
    with pytest.raises(dml.IndexOutOfRangeError):
        run(program, backend, X=x, I=np.array([0, 3], I4), P=p, Y=y)
    assert (p == 5).all()
    assert (y == 5).all()
    run(program, backend, X=x, I=np.array([0, 2], I4), P=p, Y=y)
    assert p[0].tolist() == [7] * 4
    assert y.tolist() == [[7] * 4, [1, 1, 1, 7]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_intermediates_over_other_bytes(backend):
    """A transposed view of a constant, the bits of an input, and an output's bytes."""
    program = Program(
        "views",
        (slot("X", (2, 3)),),
        (slot("Y", (3, 2)), slot("Z", (2, 3), I4), slot("W", (6,), I4)),
        (
            copy("turned", "Y"),
            copy("bits", "Z"),
            copy("all", "W"),
        ),
        (
            Intermediate("turned", ArraySpec((3, 2), F4), "C", (1, 3)),
            Intermediate("bits", ArraySpec((2, 3), I4), "X"),
            Intermediate("all", ArraySpec((6,), I4), "Z"),
        ),
        (Constant("C", ArraySpec((2, 3), F4), np.arange(6, dtype=F4).tobytes()),),
    )
    x = np.asfortranarray(np.linspace(0, 1, 6, dtype=F4).reshape(2, 3))
    y, z, w = np.empty((3, 2), F4), np.empty((3, 2), I4).T, np.empty(12, I4)[::2]
    run(program, backend, X=x, Y=y, Z=z, W=w)
    np.testing.assert_array_equal(y, np.arange(6).reshape(2, 3).T)
    np.testing.assert_array_equal(z, x.copy().view(I4))
    np.testing.assert_array_equal(w, z.ravel())


def test_what_is_not_needed_at_the_same_time_shares_memory():
    calls = tuple(copy(f"t{i}", f"t{i + 1}") for i in range(9))
    spec = ArraySpec((1000,), F4)
    program = Program(
        "long", (slot("t0", (1000,)),), (slot("t9", (1000,)),), calls,
        tuple(Intermediate(f"t{i}", spec) for i in range(1, 9)),
    )  # fmt: skip
    layout = lay_out(program)
    assert layout.nbytes == 4032 + 4000  # two at a time
    assert len(set(layout.offsets.values())) == 2


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 300)), max_size=12))
def test_memory_of_intermediates_that_live_together_is_disjoint(spans):
    spans = [(min(a, b), max(a, b), size) for a, b, size in spans]
    calls = [
        KernelCall(
            "none",
            tuple(f"t{i}" for i, (_, last, _) in enumerate(spans) if last == at),
            tuple(f"t{i}" for i, (first, _, _) in enumerate(spans) if first == at),
        )
        for at in range(10)
    ]
    u1 = np.dtype("u1")
    items = tuple(Intermediate(f"t{i}", ArraySpec((n,), u1)) for i, (_, _, n) in enumerate(spans))
    layout = lay_out(Program("spans", (), (), tuple(calls), items))
    placed = [(layout.offsets[f"t{i}"], *span) for i, span in enumerate(spans)]
    for offset, first, last, size in placed:
        assert offset % ALIGNMENT == 0
        assert offset + size <= layout.nbytes
        for other, begin, end, length in placed:
            if (other, begin, end, length) != (offset, first, last, size):
                overlaps = begin <= last and first <= end
                assert not (overlaps and offset < other + length and other < offset + size)
    assert layout.nbytes <= sum(-(-size // ALIGNMENT) * ALIGNMENT for _, _, size in spans)


def test_what_a_kernel_leaves_undefined_is_cleared_between_calls():
    """The rows that NONZERO_COORDINATES does not write are zero for the next call, on every run."""
    nonzero = KernelCall(
        "nonzero_coordinates", ("X",), ("N", "rows"), (("columns", 1),), leaves_undefined=("rows",)
    )
    program = Program(
        "undefined",
        (slot("X", (64,)),),
        (slot("N", (1,), np.dtype("u4")), slot("Y", (64, 1), np.dtype("u4"))),
        (nonzero, copy("rows", "Y")),
        (Intermediate("rows", ArraySpec((64, 1), np.dtype("u4"))),),
    )
    x, n, y = np.ones(64, F4), np.zeros(1, "u4"), np.empty((64, 1), "u4")
    executable = backend_named("cpu")[1].compile(program)
    for ones in (64, 3):
        x[ones:] = 0
        executable.run({"X": x, "N": n, "Y": y}, False, 1)
        assert n == ones
        assert y.ravel().tolist() == [*range(ones), *[0] * (64 - ones)]


def test_in_place_pairs_end_where_the_input_is_read_again():
    def scatter(data, target):
        use = IndexUse("I", (0,), (4,))
        attributes = (("axis", 0), ("reduction", "none"), ("include_self", True))
        return KernelCall("scatter", (data, "I", "U"), (target,), attributes,
                          ((target, data),), use)  # fmt: skip

    inputs = (slot("X", (4,)), slot("I", (2,), I4), slot("U", (2,)))
    outputs = (slot("Y", (4,)), slot("Z", (4,)))
    once = Program("once", inputs, outputs[:1], (scatter("X", "Y"),))
    again = Program("again", inputs, outputs, (scatter("X", "Y"), scatter("X", "Z")))
    assert once.in_place() == (("Y", "X"),)
    assert again.in_place() == (("Z", "X"),)


def test_in_place_pairs_may_name_an_input_that_an_earlier_call_reads():
    inputs = (slot("X", (4,)), slot("W", (4,)))
    between = (Intermediate("scaled", ArraySpec((4,), np.dtype(F4))),)
    scale, later = copy("X", "scaled"), copy("X", "Z")
    add = KernelCall("ELEMENT_WISE_ADD", ("scaled", "W"), ("Y",), (), (("Y", "X"), ("Y", "W")))
    outputs = (slot("Y", (4,)), slot("Z", (4,)))
    short = Program("short", inputs, outputs[:1], (scale, add), between)
    again = Program("again", inputs, outputs, (scale, add, later), between)
    assert short.in_place() == (("Y", "X"), ("Y", "W"))
    assert again.in_place() == (("Y", "W"),)


def test_several_threads_run_one_program():
    executable = backend_named("cpu")[1].compile(chain())
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            x, indices = rng.random((2, 3), F4), rng.integers(-3, 3, 2, I4)
            y = np.empty((3, 5), F4)
            executable.run({"X": x, "I": indices, "Y": y}, False, 1)
            if not (y == expected(x, indices)).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_program_is_printed_call_by_call():
    assert str(chain()).splitlines()[1] == (
        "rows: float32[2, 4] = gather(padded: float32[3, 4], I: int32[2], axis=0, clamp=False)"
    )
