"""What fits together, said again in a line for each kernel: the kernels' own check agrees exactly.

Descriptors and shape rules come before that check, so that no other test sees what it lets through.
"""

import itertools
from math import prod

import numpy as np
import pytest

import anydml as dml
from anydml._native import native

SHAPES = [(), (0,), (1,), (2,), (3,), (1, 2), (2, 1), (2, 2), (3, 2), (0, 2), (2, 0), (2, 2, 2)]
FEW = [(), (1,), (0,), (2,), (3,), (2, 1), (2, 2), (2, 0), (3, 2), (2, 2, 2)]
KINDS = [("f4", "f4", "f4"), ("f4", "u4", "f4"), ("f4", "f4", "u4"), ("f4", "u4", "i4"),
         ("c8", "i8", "c8"), ("c8", "c8", "u8"), ("f8", "u4", "c8"), ("u4",) * 3]  # fmt: skip
INDICES = ("i4", "i8", "u4", "u8")


def without(shape, axis):
    return shape[:axis] + shape[axis + 1 :]


def at_most(shape, maximum, axis):
    pairs = zip(without(shape, axis), without(maximum, axis), strict=True)
    return len(shape) == len(maximum) and all(n <= m for n, m in pairs)


def numbers(a):
    return a.dtype.kind != "c"


def same(a, b):
    return a.dtype == b.dtype


def index(a):
    return a.dtype.str[1:] in INDICES


def top_k(a, b, c, axis, k):
    if not (0 <= axis < a.ndim and 0 <= k <= a.shape[axis] and numbers(a) and same(a, b)):
        return False
    expected = (*a.shape[:axis], k, *a.shape[axis + 1 :])
    return b.shape == c.shape == expected and index(c)


def nonzero(a, b, c, columns):
    return (
        0 <= columns <= a.ndim and numbers(a) and b.dtype == "u4" and b.size == 1
        and c.ndim == 2 and c.shape[0] >= a.size and c.shape[1] == columns and index(c)
    )  # fmt: skip


def scatter(a, b, c, axis):
    return (
        (0 <= axis < a.ndim or (axis == 0 and a.ndim == 0)) and b.ndim == a.ndim
        and b.shape == c.shape and at_most(b.shape, a.shape, axis) and same(a, c) and index(b)
    )  # fmt: skip


def scatter_nd(a, b, c):
    if b.ndim == 0 or b.shape[-1] > a.ndim:
        return False
    return c.shape == b.shape[:-1] + a.shape[b.shape[-1] :] and same(a, c) and index(b)


def gather(a, b, c, axis, clamp):
    if not 0 <= axis < a.ndim or (clamp and a.shape[axis] == 0 and b.size):
        return False
    expected = a.shape[:axis] + b.shape + a.shape[axis + 1 :]
    return c.shape == expected and same(a, c) and index(b)


def gather_elements(a, b, c, axis, clamp):
    if not 0 <= axis < a.ndim or (clamp and a.shape[axis] == 0 and b.size):
        return False
    fits = b.ndim == a.ndim and at_most(b.shape, a.shape, axis) and b.shape == c.shape
    return fits and same(a, c) and index(b)


def gather_nd(a, b, c, batch_dims, clamp):
    if b.ndim == 0 or not 0 <= batch_dims <= min(a.ndim, b.ndim - 1):
        return False
    behind = batch_dims + b.shape[-1]
    if behind > a.ndim or b.shape[:batch_dims] != a.shape[:batch_dims]:
        return False
    if clamp and b.size and prod(a.shape[batch_dims:behind]) == 0:
        return False
    return c.shape == b.shape[:-1] + a.shape[behind:] and same(a, c) and index(b)


def slabs(a, b, c, axis):
    if not (0 <= axis < a.ndim == b.ndim == c.ndim and same(a, b) and same(a, c)):
        return False
    off = without(a.shape, axis)
    fits = without(b.shape, axis) == off == without(c.shape, axis)
    return fits and b.shape[axis] + c.shape[axis] == a.shape[axis]


def reverse(a, b, c, axis):
    if not (0 <= axis < a.ndim and a.shape == c.shape and same(a, c)):
        return False
    return index(b) and b.shape == (*a.shape[:axis], 1, *a.shape[axis + 1 :])


def run(kernel, inputs, outputs, **attributes):
    return native.run(kernel, inputs, outputs, attributes, False, 1)


AXES = (-1, 0, 1, 2)
THREE = {
    # kernel: how it is called, whether it fits, values of its attributes
    "top_k": (
        lambda a, b, c, axis, k: run("top_k", [a], [b, c], axis=axis, k=k, largest=True),
        top_k, (AXES, (-1, 0, 2, 3)),
    ),
    "nonzero_coordinates": (
        lambda a, b, c, n: run("nonzero_coordinates", [a], [b, c], columns=n),
        nonzero, ((-1, 0, 1, 2, 3),),
    ),
    "scatter_elements": (
        lambda a, b, c, axis: run("scatter_elements", [a, b, c], [a.copy()], axis=axis),
        scatter, (AXES,),
    ),
    "scatter_nd": (lambda a, b, c: run("scatter_nd", [a, b, c], [a.copy()]), scatter_nd, ()),
    "gather": (
        lambda a, b, c, axis, clamp: run("gather", [a, b], [c], axis=axis, clamp=clamp),
        gather, (AXES, (False, True)),
    ),
    "gather_elements": (
        lambda a, b, c, axis, clamp: run("gather_elements", [a, b], [c], axis=axis, clamp=clamp),
        gather_elements, (AXES, (False, True)),
    ),
    "gather_nd": (
        lambda a, b, c, n, clamp: run("gather_nd", [a, b], [c], batch_dims=n, clamp=clamp),
        gather_nd, ((-1, 0, 1, 2), (False, True)),
    ),
    "split": (lambda a, b, c, axis: run("split", [a], [b, c], axis=axis), slabs, (AXES,)),
    "join": (lambda a, b, c, axis: run("join", [b, c], [a], axis=axis), slabs, (AXES,)),
    "reverse_subsequences": (
        lambda a, b, c, axis: run("reverse_subsequences", [a, b], [c], axis=axis),
        reverse, (AXES,),
    ),
}  # fmt: skip


def decisions(call, fits, operands, values):
    """How many calls ran; each ran if, and only if, it fits."""
    ran = 0
    for attributes in itertools.product(*values):
        accepted = fits(*operands, *attributes)
        try:
            call(*operands, *attributes)
            took = True
        except dml.IndexOutOfRangeError:
            took = True
        except dml.ArgumentError:
            took = False
        if took != accepted:
            pytest.fail(f"{[f'{a.dtype}{a.shape}' for a in operands]}, {attributes}: ran: {took}")
        ran += took
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("kernel", THREE)
def test_three_operands(kernel):
    call, fits, values = THREE[kernel]
    ran = 0
    for kinds in KINDS:
        arrays = [[np.zeros(shape, kind) for shape in FEW] for kind in kinds]
        for operands in itertools.product(*arrays):
            ran += decisions(call, fits, operands, values)
    assert ran > 5


def test_scatters_of_another_output():
    x, at, updates = np.zeros((2, 3), "f4"), np.zeros((1, 3), "i8"), np.zeros((1, 3), "f4")
    tuples = np.zeros((1, 1), "i8")
    for shape, kind, fits in (((2, 3), "f4", True), ((3, 3), "f4", False), ((2, 2), "f4", False),
                              ((2, 3, 1), "f4", False), ((6,), "f4", False),
                              ((2, 3), "i4", False), ((2, 3), "f8", False)):  # fmt: skip
        for call in (
            lambda out: run("scatter_elements", [x, at, updates], [out], axis=0),
            lambda out: run("scatter_nd", [x, tuples, updates], [out]),
        ):
            decisions(call, lambda _, fits=fits: fits, [np.zeros(shape, kind)], ())


@pytest.mark.parametrize(("kind", "reduction", "fits"), [
    ("f4", "add", True), ("f4", "max", True), ("i8", "min", True), ("c8", "none", True),
    ("c8", "add", True), ("c16", "mul", True), ("c8", "max", False),
    ("M8[s]", "add", False)])  # fmt: skip
def test_reductions_of_what_has_none(kind, reduction, fits):
    x = np.zeros((2, 2), kind)
    for call in (
        lambda out: run("scatter_elements", [x, np.zeros((2, 2), "u4"), x], [out], axis=0,
                        reduction=reduction, include_self=True),
        lambda out: run("scatter_nd", [x, np.zeros((2, 1), "u4"), x], [out], reduction=reduction,
                        include_self=True),
    ):  # fmt: skip
        decisions(call, lambda _: fits, [x.copy()], ())


@pytest.mark.parametrize(
    ("reduction", "include_self", "kind", "known"),
    [("mean", True, "f4", True), ("mean", False, "f4", True), ("mean", True, "u8", True),
     ("mean", True, "c8", True), ("mean", True, "f2", False), ("mean", True, "i4", False),
     ("mean", True, "?", False), ("none", False, "?", True), ("add", False, "f4", False),
     ("min", False, "f4", False)])  # fmt: skip
def test_only_means_leave_out_the_element(reduction, include_self, kind, known):
    """Means of other types are calls of kernels with wider ones."""
    x = np.ones((2, 2), kind)
    for call in (
        lambda out: run("scatter_elements", [x, np.zeros((2, 2), "u4"), x], [out], axis=0,
                        reduction=reduction, include_self=include_self),
        lambda out: run("scatter_nd", [x, np.zeros((2, 1), "u4"), x], [out],
                        reduction=reduction, include_self=include_self),
    ):  # fmt: skip
        decisions(call, lambda _: known, [x.copy()], ())


# ---- what moves: an input and an output


def window(a, b, start, size, stride):
    fits = a.ndim == b.ndim and same(a, b) and start >= 0 and size >= 0
    if a.ndim == 0:
        return b.ndim == 0 and same(a, b)  # of no numbers
    if not fits or stride in (0, LEAST):
        return False
    return all(
        start + size <= have and (want == 0 or 1 + (want - 1) * abs(stride) <= size)
        for have, want in zip(a.shape, b.shape, strict=True)
    )


def upsample(a, b, mode, height, width):
    if a.ndim < 2 or b.ndim != a.ndim or not same(a, b) or not (0 < height <= 2**32 >= width > 0):
        return False
    if mode == "linear" and a.dtype.str[1:] not in ("f2", "f4"):
        return False
    return b.shape == (*a.shape[:-2], a.shape[-2] * height, a.shape[-1] * width)


def tile(a, b, repeats):
    return (
        same(a, b)
        and (repeats >= 0 or a.ndim == 0)
        and b.shape == tuple(n * repeats for n in a.shape)
    )


def pad(a, b, mode, start, end):
    if a.ndim == 0:
        return b.ndim == 0 and same(a, b)
    if not same(a, b) or start < 0 or end < 0 or b.shape != tuple(n + start + end for n in a.shape):
        return False
    return mode == "constant" or all(n > 0 or start + end == 0 for n in a.shape)


LEAST, MOST = -(2**63), 2**63 - 1
LARGE = (LEAST, 2**62, MOST)
TWO = {
    "slice_window": (
        lambda a, b, start, size, stride: run(
            "slice_window", [a], [b], starts=(start,) * a.ndim, sizes=(size,) * a.ndim,
            strides=(stride,) * a.ndim,
        ),
        window,
        ((-1, 0, 1, 2, LEAST, MOST), (-1, 0, 1, 2, 3, LEAST, MOST), (-2, -1, 0, 1, 2, LEAST, MOST)),
    ),
    "upsample": (
        lambda a, b, mode, height, width: run(
            "upsample", [a], [b], mode=mode, height=height, width=width
        ),
        upsample,
        (("nearest_neighbor", "linear"), (-1, 0, 1, 2, 2**32, 2**32 + 1, 2**63 - 1), (0, 1, 2)),
    ),
    "tile": (
        lambda a, b, n: run("tile", [a], [b], repeats=(n,) * a.ndim),
        tile, ((-1, 0, 1, 2, 3, *LARGE),),
    ),
    "pad": (
        lambda a, b, mode, start, end: run(
            "pad", [a], [b], mode=mode, value=(0, 0), starts=(start,) * a.ndim, ends=(end,) * a.ndim
        ),
        pad, (("constant", "edge", "wrap"), (-1, 0, 1, 2, *LARGE), (-1, 0, 1, *LARGE)),
    ),
    "cast": (
        lambda a, b: run("cast", [a], [b]),
        lambda a, b: a.shape == b.shape and numbers(a) and numbers(b), (),
    ),
    "identity": (
        lambda a, b, scaled: run("identity", [a], [b], scaled=scaled, scale=2.0, bias=1.0),
        lambda a, b, scaled: a.shape == b.shape and same(a, b) and (numbers(a) or not scaled),
        ((False, True),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kernel", TWO)
def test_two_operands(kernel):
    call, fits, values = TWO[kernel]
    ran = 0
    for kinds in (
        ("f4", "f4"),
        ("c8", "c8"),
        ("f4", "u4"),
        ("f8", "c8"),
        ("c8", "f8"),
        ("f8", "f8"),
    ):
        arrays = [[np.zeros(shape, kind) for shape in SHAPES] for kind in kinds]
        for operands in itertools.product(*arrays):
            ran += decisions(call, fits, operands, values)
    assert ran > 20


@pytest.mark.parametrize(
    ("kernel", "attributes"),
    [
        ("slice_window", {"starts": (0, 0), "sizes": (2, 2), "strides": (1, 1)}),
        ("tile", {"repeats": (1, 1)}),
        ("pad", {"mode": "edge", "value": (0, 0), "starts": (0, 0), "ends": (0, 0)}),
    ],
)
def test_attributes_of_other_lengths(kernel, attributes):
    x = np.zeros((2, 2))
    run(kernel, [x], [x.copy()], **attributes)
    for name, arguments in attributes.items():
        if isinstance(arguments, tuple):
            for other in (arguments[:1], (*arguments, 0), ()):
                with pytest.raises(dml.ArgumentError):
                    run(kernel, [x], [x.copy()], **attributes | {name: other})
    for count in (1, 3):  # of each
        lists = {n: v[:1] * count for n, v in attributes.items() if isinstance(v, tuple)}
        with pytest.raises(dml.ArgumentError):
            run(kernel, [x], [x.copy()], **attributes | lists)


def test_other_numbers_of_operands():
    x, at = np.zeros(2), np.zeros(2, "i8")
    arguments = {
        "gather": ([x, at], [x.copy()]), "scatter_elements": ([x, at, x], [x.copy()]),
        "top_k": ([x], [x.copy(), at]), "split": ([x], [x.copy()]), "join": ([x], [x.copy()]),
    }  # fmt: skip
    for kernel, (inputs, outputs) in arguments.items():
        attributes = {"axis": 0} | ({"k": 2, "largest": True} if kernel == "top_k" else {})
        run(kernel, inputs, outputs, **attributes)
        many = [x] * 9
        for others in (([], outputs), (inputs[1:], outputs), ([*inputs, x], outputs),
                       (inputs, []), (inputs, [*outputs, x.copy()]), (many, outputs),
                       (inputs, many)):  # fmt: skip
            with pytest.raises(dml.ArgumentError):
                run(kernel, *others, **attributes)


def test_positions_that_32_bits_do_not_hold():
    """Of no elements, so that only the check is looked at."""
    rows = np.zeros((0, 2), "u4"), np.zeros((0, 2), "i4")
    for size, fits in ((2**31, (True, True)), (2**31 + 1, (True, False)),
                       (2**32, (True, False)), (2**32 + 1, (False, False))):  # fmt: skip
        x = np.zeros((0, size), "u1")
        for to, accepted in zip(rows, fits, strict=True):
            for call in (
                lambda rows_made, x=x: run(
                    "nonzero_coordinates", [x], [np.zeros(1, "u4"), rows_made], columns=2
                ),
                lambda rows_made, x=x: run(
                    "top_k", [x], [np.zeros((0, 2), "u1"), rows_made], axis=1, k=2, largest=True
                ),
            ):
                decisions(call, lambda _, accepted=accepted: accepted, [to], ())


X, HIGHER, AT = np.zeros((2, 2), "f4"), np.zeros((2, 2, 1), "f4"), np.zeros((2, 2), "i8")


@pytest.mark.parametrize(
    "call",
    {
        "split": lambda: run("split", [X], [HIGHER], axis=0),
        "join": lambda: run("join", [HIGHER], [X], axis=0),
        "top_k values": lambda: run("top_k", [X], [HIGHER, AT], axis=0, k=2, largest=True),
        "top_k indices": lambda: run(
            "top_k", [X], [X.copy(), np.zeros((2, 2, 1), "i8")], axis=0, k=2, largest=True
        ),
        "scatter": lambda: run(
            "scatter_elements", [X, np.zeros((2, 2, 1), "i8"), HIGHER], [X.copy()], axis=0
        ),
        "scatter_nd": lambda: run("scatter_nd", [X, np.zeros((1, 3), "i8"), X], [X.copy()]),
        "gather": lambda: run("gather", [X, AT], [HIGHER[..., 0]], axis=0),
        "gather_elements": lambda: run(
            "gather_elements", [X, np.zeros((2, 2, 1), "i8")], [HIGHER], axis=0
        ),
        "gather_nd": lambda: run("gather_nd", [X, np.zeros((1, 3), "i8")], [X.copy()]),
        "reverse": lambda: run(
            "reverse_subsequences", [X, np.ones((2, 1), "u4")], [HIGHER], axis=1
        ),
        "lengths": lambda: run(
            "reverse_subsequences", [X, np.ones((2, 1, 1), "u4")], [X.copy()], axis=1
        ),
        "upsample": lambda: run("upsample", [X], [HIGHER], mode="linear", height=1, width=1),
        "upsample of an axis": lambda: run(
            "upsample", [X[0]], [X[0].copy()], mode="linear", height=1, width=1
        ),
        "cast": lambda: run("cast", [X], [HIGHER]),
        "identity": lambda: run("identity", [X], [HIGHER], scaled=False, scale=1.0, bias=0.0),
        "tile": lambda: run("tile", [X], [HIGHER], repeats=(1, 1)),
        "pad": lambda: run(
            "pad", [X], [HIGHER], mode="edge", value=(0, 0), starts=(0, 0), ends=(0, 0)
        ),
        "slice_window": lambda: run(
            "slice_window", [X], [HIGHER], starts=(0, 0), sizes=(2, 2), strides=(1, 1)
        ),
    }.items(),
    ids=lambda item: item[0],
)
def test_ranks_are_named(call):
    with pytest.raises(dml.ArgumentError, match="operands: their ranks"):
        call[1]()


@pytest.mark.parametrize("axis", [-1, 2, 63])
def test_axes_are_named(axis):
    # Before anything is read there.
    at, one = np.zeros((2, 2), "i8"), np.ones((2, 1), "u4")
    for kernel, inputs, outputs, attributes in (
        ("top_k", [X], [X.copy(), at], {"k": 2, "largest": True}),
        ("gather_elements", [X, at], [X.copy()], {}),
        ("scatter_elements", [X, at, X], [X.copy()], {}),
        ("reverse_subsequences", [X, one], [X.copy()], {}),
        ("split", [X], [X.copy()], {}),
        ("join", [X], [X.copy()], {}),
    ):
        with pytest.raises(dml.ArgumentError, match="axis: out of range"):
            run(kernel, inputs, outputs, axis=axis, **attributes)


def test_attributes_of_another_kind():
    at = np.zeros(2, "i8")
    calls = {
        "identity": ([X], [X.copy()], {"scaled": True, "scale": 2.0, "bias": 1.0}),
        "gather": ([X, at], [X.copy()], {"axis": 0, "clamp": True}),
        "split": ([X], [X.copy()], {"axis": 0}),
        "top_k": ([X], [X.copy(), AT.copy()], {"axis": 0, "k": 2, "largest": True}),
        "upsample": ([X], [X.copy()], {"mode": "linear", "height": 1, "width": 1}),
        "gather_elements": ([X, AT], [X.copy()], {"axis": 0, "clamp": True}),
        "gather_nd": ([X, AT[:, :1]], [X.copy()], {"batch_dims": 0, "clamp": True}),
        "scatter_elements": (
            [X, AT, X],
            [X.copy()],
            {"axis": 0, "reduction": "add", "include_self": True},
        ),
        "scatter_nd": (
            [X, AT[:1, :1], X[:1]],
            [X.copy()],
            {"reduction": "add", "include_self": True},
        ),
        "reverse_subsequences": ([X, np.ones((2, 1), "u4")], [X.copy()], {"axis": 1}),
        "nonzero_coordinates": ([X], [np.zeros(1, "u4"), np.zeros((4, 2), "u4")], {"columns": 2}),
        "fill_sequence": ([], [X.copy()], {"start": 0.0, "delta": 1.0}),
        "fill_constant": ([], [X.copy()], {"value": (0, 0)}),
    }
    for kernel, (inputs, outputs, attributes) in calls.items():
        run(kernel, inputs, outputs, **attributes)
        for name, value in attributes.items():
            for other in ((value, value), (), [value] * 3):
                with pytest.raises((dml.ArgumentError, dml.ArgumentTypeError)):
                    run(kernel, inputs, outputs, **attributes | {name: other})
    for repeats in ((1, 1), [1, 1]):
        run("tile", [X], [X.copy()], repeats=repeats)


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        ("?", True),
        ("u1", True),
        ("V2", False),
        ("M8[s]", False),
        ("g", np.dtype("g") == np.dtype("f8")),
    ],
)
def test_what_is_zero_or_not(kind, fits):
    x = np.zeros(3, kind)
    decisions(
        lambda out: run("nonzero_coordinates", [x], [np.zeros(1, "u4"), out], columns=1),
        lambda _: fits, [np.zeros((3, 1), "u4")], (),
    )  # fmt: skip
