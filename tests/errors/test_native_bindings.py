"""Which arrays the native dispatch takes, and what the native calls say of wrong arguments."""

import itertools

import numpy as np
import pytest

import anydml as dml
from anydml._native import native

RANK_64 = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy has 32 axes at most"
)


def slot(name, sizes=(2, 3), output=False, member=-1, kind=1):
    return name, member, output, kind, sizes, 0


def cast(sizes=(2, 3), kind=1):
    tensors = [slot("In", sizes, kind=kind), slot("Out", sizes, True, kind=kind)]
    return native.CompiledCall("CAST", "cast", tensors, {}, False)


def join(count, size=2):
    parts = [slot("Parts", (size,), member=member) for member in range(count)]
    tensors = [*parts, slot("Out", (count * size,), True)]
    return native.CompiledCall("JOIN", "join", tensors, {"axis": 0}, False)


def scatter(in_place=True):
    tensors = [slot("In", (4,)), slot("At", (2,), kind=3), slot("Updates", (2,)),
               slot("Out", (4,), True)]  # fmt: skip
    return native.CompiledCall("SCATTER", "scatter_elements", tensors, {"axis": 0}, in_place)


def test_arrays_that_only_lie_side_by_side_are_taken():
    memory = np.zeros(12, "f4")
    for x, out in ((memory[:6], memory[6:]), (memory[6:], memory[:6])):
        bindings = {"In": x.reshape(2, 3), "Out": out.reshape(2, 3)}
        assert cast().dispatch(bindings, 1) == -1


@pytest.mark.parametrize("shift", [0, 2, 5])
def test_overlapping_arrays_are_left(shift):
    memory = np.arange(16, dtype="f4")
    out = memory[shift : shift + 6].reshape(2, 3)
    for x in (memory[:6], memory[5::-1], memory[:12:2], memory[11::-2]):
        before = memory.copy()
        assert cast().dispatch({"In": x.reshape(2, 3), "Out": out}, 1) is None
        assert (memory == before).all()


@pytest.mark.parametrize("count", [1, 2, 8, 15, 16])
@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_inputs_are_taken(count, kind):
    x, out = np.array([1, 2], "f4"), np.zeros(2 * count, "f4")
    done = join(count).dispatch({"Parts": kind([x] * count), "Out": out}, 1)
    assert done == (-1 if count < 16 else None)  # more operands than it takes
    if done == -1:
        assert out.tolist() == [1, 2] * count


@pytest.mark.parametrize("count", [1, 2, 7])
def test_what_is_no_such_list_is_left(count):
    x, out = np.ones(2, "f4"), np.zeros(2 * count, "f4")
    for parts in (x, iter([x] * count), [x] * (count + 1), [x] * (count - 1), [[x]] * count):
        assert join(count).dispatch({"Parts": parts, "Out": out}, 1) is None
    assert not out.any()


def test_in_place_is_the_first_inputs_own_memory():
    at, updates = np.array([1, 3], "u4"), np.array([5, 6], "f4")
    x = np.zeros(4, "f4")
    bindings = {"In": x, "At": at, "Updates": updates, "Out": x}
    assert scatter(in_place=False).dispatch(bindings, 1) is None
    assert scatter().dispatch(bindings, 1) == -1
    assert x.tolist() == [0, 5, 0, 6]
    for other in ({"Updates": x[:2]}, {"At": x[2:].view("u4")}):
        assert scatter().dispatch(bindings | other, 1) is None
    assert x.tolist() == [0, 5, 0, 6]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[None],
        lambda x: x[..., None],
        lambda x: x[:, :2],
        lambda x: x[:1],
        lambda x: np.concatenate([x, x]),
        lambda x: x.astype("f8"),
        lambda x: x.astype(">f4"),
        lambda x: x.tolist(),
        lambda x: None,
        lambda x: x.view(type("Own", (np.ndarray,), {})),
        lambda x: np.frombuffer(b"\0" * 25, "f4", 6, 1).reshape(2, 3),
    ],
)
def test_other_arrays_than_the_descriptors_are_left(change):
    call, x, out = cast(), np.ones((2, 3), "f4"), np.zeros((2, 3), "f4")
    for _ in range(2):  # what is left of a good call means nothing
        assert call.dispatch({"In": x, "Out": out}, 1) == -1
        out[:] = 0
        assert call.dispatch({"In": change(x), "Out": out}, 1) is None
        assert not out.any()
        assert call.dispatch({"In": x, "Out": change(out)}, 1) is None


def test_outputs_are_contiguous_and_writable():
    x = np.ones((2, 3), "f4")
    read_only = np.zeros((2, 3), "f4")
    read_only.flags.writeable = False
    for out in (np.zeros((3, 2), "f4").T, np.zeros((2, 6), "f4")[:, ::2], read_only):
        assert cast().dispatch({"In": x, "Out": out}, 1) is None
        assert not out.any()


def test_other_names_are_left():
    x, out = np.ones((2, 3), "f4"), np.zeros((2, 3), "f4")
    for bindings in ({}, {"In": x}, {"In": x, "Output": out}, {"In": x, "Out": out, "More": x}):
        assert cast().dispatch(bindings, 1) is None


class Unequal:
    """A key that cannot be compared with a name."""

    def __hash__(self):
        return hash("In")

    def __eq__(self, other):
        raise KeyError("compared")


def test_a_key_that_cannot_be_compared_is_told():
    with pytest.raises(KeyError, match="compared"):
        cast().dispatch({Unequal(): np.ones((2, 3), "f4"), "Out": np.zeros((2, 3), "f4")}, 1)


def test_the_first_and_last_types_and_ranks():
    for kind, dtype in ((1, "f4"), (11, "i8")):
        x, out = np.ones((2, 3), dtype), np.zeros((2, 3), dtype)
        assert cast(kind=kind).dispatch({"In": x, "Out": out}, 1) == -1
        assert (out == 1).all()
    with pytest.raises(dml.ArgumentError, match="sizes and types that arrays can have"):
        cast(kind=12)
    assert cast((1,) * 64) is not None


def test_eight_tensors_that_do_not_fit_together():
    parts = [slot("Parts", (2,), member=member) for member in range(7)]
    with pytest.raises(dml.ArgumentError, match="JOIN: operands: their sizes"):
        native.CompiledCall("JOIN", "join", [*parts, slot("Out", (13,), True)], {"axis": 0}, False)


@pytest.mark.parametrize("count", [0, 2])
def test_another_number_of_tensors(count):
    inputs = [slot(f"In{i}") for i in range(count)]
    with pytest.raises(dml.ArgumentError, match="CAST: wrong number of tensors"):
        native.CompiledCall("CAST", "cast", [*inputs, slot("Out", output=True)], {}, False)


# ---- calls by name


X, AT = np.arange(4, dtype="f4"), np.array([3, 0], "i8")


def run(kernel, inputs, outputs, **attributes):
    return native.run(kernel, inputs, outputs, attributes, False, 1)


class Broken(list):
    def __iter__(self):
        raise ZeroDivisionError("no members")


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("0", dml.ArgumentError, "gather: expected a number of 64 bits for axis"),
        (object(), dml.ArgumentError, "gather: expected a number of 64 bits for axis"),
        (2**63, dml.ArgumentError, "gather: expected a number of 64 bits for axis"),
        ([0, 2**63], dml.ArgumentError, "gather: expected a number of 64 bits for axis"),
        (2**32, dml.ArgumentError, "axis: out of range"),
        (-(2**32), dml.ArgumentError, "axis: out of range"),
        ([0, 0], dml.ArgumentError, "attributes: wrong number"),
        ([0] * 300, dml.ArgumentError, "gather: expected a number of 64 bits for axis"),
    ],
)
def test_attributes_that_are_no_numbers(value, error, message):
    with pytest.raises(error, match=message):
        run("gather", [X, AT], [np.zeros(2, "f4")], axis=value)


@pytest.mark.parametrize("kernel", ["gather", "gather_elements"])
@pytest.mark.parametrize("mode", [-1, 0, 1, 2, 3, 4, 2**32])
def test_modes_by_their_number(kernel, mode):
    out = np.zeros(2, "f4")
    if 0 <= mode <= 3:
        run(kernel, [X, AT], [out], axis=0, clamp=mode)
        assert out.tolist() == [3, 0]
    else:
        with pytest.raises(dml.ArgumentError, match="attributes: wrong number or value"):
            run(kernel, [X, AT], [out], axis=0, clamp=mode)


def test_operands_that_are_no_sequence():
    for inputs, outputs in ((5, [X]), ([X, AT], 5)):
        with pytest.raises(TypeError, match="not iterable"):
            run("gather", inputs, outputs, axis=0)
    with pytest.raises(ZeroDivisionError, match="no members"):
        run("join", Broken([X]), [X.copy()], axis=0)


def test_operands_of_no_kernel_are_named():
    for bad in (np.array(["a"]), np.zeros(2, object), 3, [1.0], None):
        with pytest.raises(dml.ArgumentError, match="gather: input 0: expected an ndarray of a"):
            run("gather", [bad, AT], [np.zeros(2, "f4")], axis=0)
    huge = np.broadcast_to(np.float32(0), (2**48 + 1,))
    with pytest.raises(dml.ArgumentError, match=r"input 0: expected at most 2\^48 elements"):
        run("gather", [huge, AT], [np.zeros(2, "f4")], axis=0)


@pytest.mark.parametrize(
    ("kernel", "inputs", "outputs", "attributes", "message"),
    [
        ("top_k", [X], [X[:2], X[:2].view("u4")], {"axis": 0, "k": -1}, r"k: expected 0 to"),
        ("nonzero_coordinates", [X], [np.zeros(1, "u4"), np.zeros((4, 1), "u4")],
         {"columns": -1}, r"columns: expected 0 to"),
        ("split", [X], [], {"axis": 0}, "parts: expected at least one"),
        ("join", [], [X], {"axis": 0}, "parts: expected at least one"),
    ],
)  # fmt: skip
def test_the_rule_that_is_broken_first_is_told(kernel, inputs, outputs, attributes, message):
    with pytest.raises(dml.ArgumentError, match=message):
        run(kernel, inputs, outputs, **attributes)


def test_columns_of_a_scan_are_those_of_the_input():
    for columns in (-1, 2):
        with pytest.raises(dml.ArgumentError, match=r"columns: expected 0 to"):
            native.run_measured("nonzero_coordinates", X, {"columns": columns}, pytest.fail, 1)


@pytest.mark.parametrize("include_self", [-1, 0, 1, 2])
@pytest.mark.parametrize("reduction", [-1, 0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("kernel", ["scatter_elements", "scatter_nd"])
def test_reductions_by_their_number(kernel, reduction, include_self):
    at = AT if kernel == "scatter_elements" else AT[:, None]
    inputs = [X, at, np.array([5, -6], "f4")]
    arguments = {"reduction": reduction, "include_self": include_self}
    if kernel == "scatter_elements":
        arguments["axis"] = 0
    out = np.zeros(4, "f4")
    if reduction == 5:  # the mean
        run(kernel, inputs, [out], **arguments)
        assert out.tolist() == ([-3, 1, 2, 4] if include_self else [-6, 1, 2, 5])
        return
    if reduction == 0 or (1 <= reduction <= 4 and include_self):
        run(kernel, inputs, [out], **arguments)
        at_0, at_3 = {0: (-6, 5), 1: (-6, 8), 2: (0, 15), 3: (-6, 3), 4: (0, 5)}[reduction]
        assert out.tolist() == [at_0, 1, 2, at_3]
        return
    message = "include_self" if 1 <= reduction <= 4 else "attributes"
    with pytest.raises(dml.ArgumentError, match=message):
        run(kernel, inputs, [out], **arguments)
    assert not out.any()


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_complex_numbers_have_no_order(reduction):
    x, out = np.array([1, 2j], "c8"), np.zeros(2, "c8")
    inputs = [x, np.array([1], "i8"), np.array([3], "c8")]
    if reduction in ("min", "max"):
        with pytest.raises(dml.ArgumentError, match="reduction: not one that"):
            run("scatter_elements", inputs, [out], axis=0, reduction=reduction, include_self=1)
    else:
        run("scatter_elements", inputs, [out], axis=0, reduction=reduction, include_self=1)
        assert out.tolist() == [1, {"none": 3, "add": 3 + 2j, "mul": 6j}[reduction]]


def test_a_kernel_whose_output_has_a_size():
    with pytest.raises(dml.ArgumentError, match="gather: the size of this kernel's output"):
        native.run_measured("gather", X, {}, pytest.fail, 1)


def test_what_making_the_output_raises():
    with pytest.raises(ZeroDivisionError):
        native.run_measured("nonzero_coordinates", X, {"columns": 1}, lambda size: 1 / 0, 1)


def test_parts_that_are_longer_than_any_array():
    part = np.zeros((2**62, 0), "u1")
    with pytest.raises(dml.ArgumentError, match="longer than any array"):
        run("join", [part] * 3, [part], axis=0)
    with pytest.raises(dml.ArgumentError):
        dml.join([part] * 3)
    ((shape, _),) = native.shapes("join", [part, part[1:]], 0)
    assert shape == (2**63 - 1, 0)
    assert native.shapes("join", [part, part], 0) is None


def test_new_arrays_of_no_size_or_type():
    assert native.empty((2, 0, 3), "i4", "f", "it").shape == (2, 0, 3)
    with pytest.raises(TypeError):
        native.empty((2,), "no type", "f", "it")
    with pytest.raises(TypeError, match="integer"):
        native.empty((2, "3"), "f4", "f", "it")
    with pytest.raises(dml.AllocationError, match="for it"):
        native.empty((-1,), "f4", "f", "it")
    with pytest.raises(dml.AllocationError, match=r"f: .*for it"):
        native.empty((2**70,), "f4", "f", "it")
    with pytest.raises(dml.ArgumentError, match="f: expected at most 64 axes of it, got 65"):
        native.empty((1,) * 65, "f4", "f", "it")
    with pytest.raises(dml.ArgumentError, match="f: expected sizes that a NumPy array can have"):
        native.empty((2**70, 0), "f4", "f", "it")


@RANK_64
def test_most_axes():
    x = np.ones((1,) * 64, "f4")
    assert native.empty(x.shape, "f4", "f", "it").shape == x.shape
    out = np.zeros_like(x)
    assert cast(x.shape).dispatch({"In": x, "Out": out}, 1) == -1
    assert out.item() == 1
    assert native.shapes("nonzero_coordinates", x, None)[0][0] == (-1, 64)
    assert dml.nonzero_coordinates(x).tolist() == [[0] * 64]
    with pytest.raises(ValueError, match=r"dim|ndim|axes"):
        native.empty(x.shape, np.dtype("(2,)f4"), "f", "it")


def test_windows_of_the_least_stride():
    for stride in (0, -(2**63)):
        with pytest.raises(dml.ArgumentError):
            dml.slice_window(X, [0], [3], [stride])
        assert native.shapes("slice_window", X, [0], [3], [stride]) is None


@pytest.mark.parametrize("stride", [-(2**63), -3, -2, -1, 0, 1, 2, 3, 2**63 - 1])
def test_windows_are_within_the_input(stride):
    for start, size, expected in itertools.product(range(-1, 6), range(-1, 6), range(6)):
        out = np.full(expected, -1, "f4")
        inside = start >= 0 and size >= 0 and start + size <= 4 and stride not in (0, -(2**63))
        if inside and (expected == 0 or expected <= len(X[start : start + size][::stride])):
            run("slice_window", [X], [out], starts=[start], sizes=[size], strides=[stride])
            assert out.tolist() == X[start : start + size][::stride][:expected].tolist()
        else:
            with pytest.raises(dml.ArgumentError, match="slice_window: "):
                run("slice_window", [X], [out], starts=[start], sizes=[size], strides=[stride])
            assert (out == -1).all()


def test_repeats_and_paddings_of_another_kind():
    x = np.ones((2, 2), "f4")
    for repeats in ([(1, 2)], [(1, 2), (1, 2)], None, (2, 2, 2), [2**40, 1.5]):
        assert native.shapes("tile", x, repeats) is None
    for width in ([(1, 2), 3], [(1, 2), 2**40], [(1, 2, 3), (1, 2)], [1, 2, 3], [(1, 2)], None,
                  [(1, 2), (1, 2**70)], [(1, 2), (-1, 0)], [(1, 2), (1, 1.5)],
                  [(1, 2), (True, 1)], [(1, 2), (None, None)]):  # fmt: skip
        assert native.shapes("pad", x, width, "constant", 0) is None
    assert native.shapes("pad", x, [(1, 2), (3, 4)], "constant", 0)[0][0] == (5, 9)
    assert native.shapes("pad", x[0], [(1, 2)], "constant", 0)[0][0] == (5,)
    assert native.shapes("pad", x[0], (1, 2), "edge", 0)[0][0] == (5,)


def test_a_clamped_index_into_an_empty_axis():
    ones, pairs = np.zeros((1, 1), "i8"), np.zeros((1, 2), "i8")
    for shape, tuples in (((0, 3), ones), ((0, 3), pairs), ((3, 0), pairs)):
        assert native.shapes("gather_nd", np.zeros(shape, "f4"), tuples, 0, "clamp") is None
    with pytest.raises(dml.ArgumentError):
        dml.gather_nd(np.zeros((0, 3)), [[0]], mode="clamp")


EMPTY, WHOLE = np.zeros((0, 3), "f4"), np.zeros((2, 3), "f4")


@pytest.mark.parametrize("mode", ["raise", "clamp"])
@pytest.mark.parametrize(
    ("kernel", "x", "indices", "number"),
    [
        ("gather", EMPTY, np.zeros(1, "i8"), 0),
        ("gather_elements", EMPTY, np.zeros((1, 3), "i8"), 0),
        ("gather", WHOLE, np.zeros(1, "f4"), 0),
        ("gather", WHOLE, np.zeros(1, "i2"), 1),
        ("gather_elements", WHOLE, np.zeros((1, 3), "f8"), 0),
        ("gather_elements", WHOLE, np.zeros((1, 3), "u1"), -2),
        ("gather_nd", WHOLE, np.zeros((1, 1), "f4"), 0),
        ("gather_nd", WHOLE, np.zeros((1, 2), "i2"), 0),
        ("gather_nd", WHOLE, np.zeros((3, 1), "i8"), 1),
        ("gather_nd", WHOLE, np.zeros((1, 1), "i8"), 1),
    ],
)
def test_indices_of_no_quick_call(kernel, x, indices, number, mode):
    if x.size or mode == "clamp":  # else the kernel finds a bad index
        assert native.shapes(kernel, x, indices, number, mode) is None
    assert native.function_call(kernel)(None, x, indices, number, mode) is None


@pytest.mark.parametrize("halves", [(1, 2), (2, 1), (0, 3)])
def test_a_constant_of_16_bytes_has_two_halves(halves):
    out = np.zeros(3, "c16")
    bits = np.array(halves, "u8")
    native.run("fill_constant", [], [out], {"value": bits.tolist()}, False, 1)
    assert out.view("u8").tolist() == [*halves] * 3


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 1), (0,)])
def test_a_constant_fills_every_rank(shape):
    out = np.zeros(shape, "f4")
    bits = int(np.float32(2.5).view("u4"))
    native.run("fill_constant", [], [out], {"value": [bits, bits]}, False, 1)
    assert (out == 2.5).all()


@pytest.mark.parametrize("count", [0, 2, 3])
def test_shapes_take_as_many_values_as_the_kernel(count):
    assert native.shapes("nonzero_coordinates", *[np.zeros(2), None, None][:count]) == (
        None if count != 2 else [((-1, 1), np.dtype("i8"))]
    )
