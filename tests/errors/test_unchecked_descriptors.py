"""A descriptor is checked however its operator comes to be, and a kernel's operands in any case."""

import copy
import pickle

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from anydml.core.rules import UNKNOWN, UnknownValueError

T = dml.TensorDesc
DEVICE = dml.Device("cpu")
FLOATS, INDICES = T("FLOAT32", (4,)), T("UINT32", (4,))
GOOD = dml.Split(input_tensor=FLOATS, output_tensors=[FLOATS], axis=0)
BAD = dml.Split(input_tensor=T("FLOAT32", (1000,)), output_tensors=[FLOATS], axis=0)
X = np.arange(4, dtype="f4")


def test_the_constructor_checks():
    with pytest.raises(dml.InvalidDescriptorError, match=r"SPLIT\.OutputTensors.*a sum of 1000"):
        dml.Operator(BAD, DEVICE)
    with pytest.raises(dml.InvalidDescriptorError):
        dml.Operator(BAD, device=DEVICE, out_of_range="raise")
    tensor = T("FLOAT64", (4,))
    late = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    with pytest.raises(dml.InvalidDescriptorError, match="at feature level"):
        dml.Operator(late, dml.Device("cpu", feature_level="3_0"))
    assert dml.Operator(GOOD, DEVICE).compile()(X)[0].tolist() == X.tolist()


@pytest.mark.parametrize("desc", [None, 3, "SPLIT", object(), {"type": "SPLIT"}, FLOATS, dml.Split])
def test_what_is_no_descriptor(desc):
    with pytest.raises(dml.ArgumentTypeError, match="desc: expected an operator descriptor"):
        dml.Operator(desc, DEVICE)


@pytest.mark.parametrize("device", [None, "cpu", object()])
def test_what_is_no_device(device):
    with pytest.raises(dml.ArgumentTypeError, match="device: expected a Device"):
        dml.Operator(GOOD, device)


@pytest.mark.parametrize("operator", [None, GOOD, object()])
def test_what_is_no_operator(operator):
    with pytest.raises(dml.ArgumentTypeError, match="operator: expected an Operator"):
        dml.CompiledOperator(operator)


def test_what_has_been_checked_cannot_be_exchanged():
    operator = dml.Operator(GOOD, DEVICE)
    for name in ("desc", "device", "out_of_range"):
        with pytest.raises(AttributeError):
            setattr(operator, name, BAD)


def test_copies_and_pickles_are_checked():
    operator = DEVICE.create_operator(GOOD)
    for again in (copy.copy(operator), copy.deepcopy(operator),
                  pickle.loads(pickle.dumps(operator))):  # fmt: skip
        assert again.desc == GOOD
        assert again.compile()(X)[0].tolist() == X.tolist()
    compiled = pickle.loads(pickle.dumps(operator.compile()))
    assert compiled(X)[0].tolist() == X.tolist()
    function, arguments = operator.__reduce__()
    with pytest.raises(dml.InvalidDescriptorError):
        function(BAD, *arguments[1:])
    owned = T("FLOAT32", (4,), flags="OWNED_BY_DML")
    ready = DEVICE.create_operator(
        dml.Split(input_tensor=owned, output_tensors=[FLOATS], axis=0)
    ).compile().initialize(InputTensor=X)  # fmt: skip
    assert copy.deepcopy(ready)()[0].tolist() == X.tolist()


def test_a_subclass_is_checked():
    class Mine(dml.Operator):
        pass

    with pytest.raises(dml.InvalidDescriptorError):
        Mine(BAD, DEVICE)
    assert Mine(GOOD, DEVICE).compile()(X)[0].tolist() == X.tolist()


# Descriptors that say of themselves that they are good: the kernels' own check is left.


def lenient(kind):
    return type(kind.__name__, (kind,), {"violations": lambda self, level: []})


W = 100_000


def F(*sizes):  # noqa: N802  # a type, as in a table
    return T("FLOAT32", sizes)


def I(*sizes):  # noqa: E743, N802  # the same
    return T("UINT32", sizes)


LIES = [
    (dml.Split, {"input_tensor": F(4), "output_tensors": [F(W)], "axis": 0}),
    (dml.Split, {"input_tensor": F(W), "output_tensors": [F(4)], "axis": 0}),
    (dml.Split, {"input_tensor": F(4, 2), "output_tensors": [F(4, W)], "axis": 0}),
    (dml.Split, {"input_tensor": F(4), "output_tensors": [F(4)], "axis": 7}),
    (dml.Split, {"input_tensor": F(4), "output_tensors": [T("FLOAT64", (4,))], "axis": 0}),
    (dml.Split, {"input_tensor": F(4), "output_tensors": [], "axis": 0}),
    (dml.Split, {"input_tensor": F(20), "output_tensors": [F(4)] * 20, "axis": 0}),
    (dml.Join, {"input_tensors": [F(4), F(W)], "output_tensor": F(8), "axis": 0}),
    (dml.Join, {"input_tensors": [F(4)] * 20, "output_tensor": F(8), "axis": 0}),
    (dml.TopK, {"input_tensor": F(4), "output_value_tensor": F(4), "output_index_tensor": I(4),
                "axis": 0, "k": W}),
    (dml.TopK, {"input_tensor": F(W), "output_value_tensor": F(4), "output_index_tensor": I(4),
                "axis": 0, "k": W}),
    (dml.TopK, {"input_tensor": F(W), "output_value_tensor": F(4), "output_index_tensor": I(4),
                "axis": 0, "k": 2**63}),
    (dml.TopK, {"input_tensor": F(4), "output_value_tensor": F(4), "output_index_tensor": I(4),
                "axis": 2**32 - 1, "k": 4}),
    (dml.TopK, {"input_tensor": F(4), "output_value_tensor": F(4), "output_index_tensor": I(2),
                "axis": 0, "k": 4}),
    (dml.NonzeroCoordinates, {"input_tensor": F(W), "output_count_tensor": I(1),
                              "output_coordinates_tensor": I(4, 1)}),
    (dml.NonzeroCoordinates, {"input_tensor": F(4), "output_count_tensor": I(1),
                              "output_coordinates_tensor": I(4, 9)}),
    (dml.Scatter, {"input_tensor": F(W), "indices_tensor": I(4), "updates_tensor": F(4),
                   "output_tensor": F(4), "axis": 0}),
    (dml.Scatter, {"input_tensor": F(4), "indices_tensor": I(W), "updates_tensor": F(4),
                   "output_tensor": F(4), "axis": 0}),
    (dml.Scatter, {"input_tensor": F(4, 1), "indices_tensor": I(4, W), "updates_tensor": F(4, W),
                   "output_tensor": F(4, 1), "axis": 0}),
    (dml.Scatter, {"input_tensor": F(4), "indices_tensor": F(4), "updates_tensor": F(4),
                   "output_tensor": F(4), "axis": 0}),
    (dml.ScatterND, {"input_tensor": F(4), "input_dimension_count": 1,
                     "indices_tensor": I(W, 1), "indices_dimension_count": 2,
                     "updates_tensor": F(1, 4), "output_tensor": F(4)}),
    (dml.ScatterND, {"input_tensor": F(4, 4), "input_dimension_count": 2,
                     "indices_tensor": I(4, 9), "indices_dimension_count": 2,
                     "updates_tensor": F(1, 4), "output_tensor": F(4, 4)}),
    (dml.Gather, {"input_tensor": F(4), "indices_tensor": I(W), "index_dimensions": 1,
                  "output_tensor": F(4), "axis": 0}),
    (dml.Gather, {"input_tensor": F(4), "indices_tensor": I(4), "index_dimensions": 1,
                  "output_tensor": F(W), "axis": 0}),
    (dml.GatherElements, {"input_tensor": F(4), "indices_tensor": I(4), "output_tensor": F(W),
                          "axis": 0}),
    (dml.GatherElements, {"input_tensor": F(4, 1), "indices_tensor": I(4, W),
                          "output_tensor": F(4, W), "axis": 0}),
    (dml.GatherND, {"input_tensor": F(4, 4), "input_dimension_count": 2,
                    "indices_tensor": I(W, 2), "indices_dimension_count": 2,
                    "output_tensor": F(1, 4)}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields"), LIES, ids=lambda value: getattr(value, "NAME", ""))
def test_a_descriptor_that_lies(kind, fields):
    desc = lenient(kind)(**fields)
    assert DEVICE.check(desc) == []
    # A definition that breaks its own rules is a bug, and is reported as one.
    with pytest.raises((dml.AnyDMLError, LookupError, TypeError, ValueError)):
        dispatch(desc)


def dispatch(desc):
    compiled = dml.Operator(desc, DEVICE).compile()
    arrays = {}
    for info in desc.tensor_fields():
        value = getattr(desc, info.attribute)
        members = [np.zeros(t.sizes, t.data_type.numpy) for t in (value if info.many else [value])]
        arrays[info.name] = members if info.many else members[0]
    compiled.dispatch(**arrays)


@pytest.mark.parametrize("fault", [LookupError("x"), TypeError("x"), ValueError("x")], ids=repr)
def test_a_bug_in_a_definition_is_no_fault_of_the_descriptor(fault):
    def lower(self):
        raise fault

    kind = type("Split", (dml.Split,), {"lower": lower})
    operator = dml.Operator(kind(input_tensor=F(4), output_tensors=[F(4)], axis=0), DEVICE)
    with pytest.raises(type(fault)) as error:
        operator.compile()
    assert error.value is fault


def test_a_tensor_that_was_changed_after_it_was_made():
    tensor = T("FLOAT32", (4,))
    operator = dml.Operator(dml.Split(input_tensor=tensor, output_tensors=[FLOATS], axis=0), DEVICE)
    for sizes, total in (((W,), 16), ((W,), 4 * W), ((4,), 4)):
        object.__setattr__(tensor, "sizes", sizes)
        object.__setattr__(tensor, "total_tensor_size_in_bytes", total)
        for source in (bytes(16), X, bytes(4 * W), np.zeros(W, "f4")):
            try:
                operator.compile().dispatch(InputTensor=source, OutputTensors=[X.copy()])
            except dml.AnyDMLError:
                continue
            assert sizes == (4,)


# ---- the kernels' own check, with operands of every wrong shape


def measured(x, rows):
    native.run_measured("nonzero_coordinates", x, {"columns": x.ndim}, lambda size: rows, 1)


def run(kernel, inputs, outputs, **attributes):
    return native.run(kernel, inputs, outputs, attributes, False, 1)


CALLS = {
    "top_k": lambda a, b, c: run("top_k", [a], [b, c], axis=0, k=2, largest=True),
    "nonzero": lambda a, b, c: run("nonzero_coordinates", [a], [b, c], columns=a.ndim),
    "nonzero of its size": lambda a, b, c: measured(a, b),
    "scatter": lambda a, b, c: run("scatter_elements", [a, b, c], [a.copy()], axis=0),
    "scatter_nd": lambda a, b, c: run("scatter_nd", [a, b, c], [a.copy()]),
    "gather": lambda a, b, c: run("gather", [a, b], [c], axis=0),
    "gather_elements": lambda a, b, c: run("gather_elements", [a, b], [c], axis=0, clamp=True),
    "gather_nd": lambda a, b, c: run("gather_nd", [a, b], [c], clamp=True),
    "split": lambda a, b, c: run("split", [a], [b, c], axis=0),
    "join": lambda a, b, c: run("join", [b, c], [a], axis=0),
    "reverse_subsequences": lambda a, b, c: run(
        "reverse_subsequences", [a, np.ones(b.shape, "u4")], [np.ones(c.shape, "f4")], axis=1
    ),
    "one_hot": lambda a, b, c: run(
        "one_hot", [b, a], [np.ones(c.shape, "f4")], axis=0, depth=3, inserts=True
    ),
    "upsample": lambda a, b, c: run("upsample", [a], [b], mode="linear", height=1, width=2),
    "tile": lambda a, b, c: run("tile", [a], [b], repeats=(2,) * a.ndim),
    "slice_window": lambda a, b, c: run(
        "slice_window", [a], [b], starts=(0,) * a.ndim, sizes=b.shape, strides=(1,) * a.ndim
    ),
}
SHAPES = [(), (0,), (2,), (3,), (5,), (2, 1), (2, 2), (3, 2), (5, 2), (0, 2), (2, 0), (2, 3, 2)]


@pytest.mark.parametrize("name", CALLS)
def test_operands_of_every_shape(name):
    """No call reads or writes outside: under a sanitizer this is the whole test."""
    ran = refused = 0
    for first in SHAPES:
        for second in SHAPES:
            for third in SHAPES:
                for kinds in (("f4", "i8", "f4"), ("f4", "f4", "u4"), ("f4", "f4", "f4"),
                              ("f4", "u4", "f8"), ("f4", "u4", "u4")):  # fmt: skip
                    a, b, c = map(np.ones, (first, second, third), kinds)
                    try:
                        CALLS[name](a, b, c)
                        ran += 1
                    except dml.ArgumentError:
                        refused += 1
    assert ran > 0
    assert refused > ran


@pytest.mark.parametrize(
    ("kernel", "lookup", "attributes"),
    [("gather", (2,), {"axis": 0}), ("gather_elements", (2,), {"axis": 0}),
     ("gather_nd", (2, 1), {})],
)  # fmt: skip
def test_nothing_to_clamp_to(kernel, lookup, attributes):
    empty, out = np.ones(0, "f4"), np.full(2, 7, "f4")
    with pytest.raises(dml.ArgumentError, match="no element to clamp them to"):
        run(kernel, [empty, np.zeros(lookup, "i8")], [out], clamp=True, **attributes)
    assert (out == 7).all()
    none = np.zeros((0, *lookup[1:]), "i8")
    run(kernel, [empty, none], [np.zeros(0, "f4")], clamp=True, **attributes)


def test_an_input_of_other_sizes_when_the_output_is_made():
    """The kernel takes the sizes that it saw first."""
    x = np.ones((4, 600), "f4")

    def make(size):
        x.resize((2, 3), refcheck=False)
        return np.zeros((size, 2), "u4")

    rows = native.run_measured("nonzero_coordinates", x, {"columns": 2}, make, 1)
    assert rows.tolist() == [[i, j] for i in range(4) for j in range(600)]


def test_native_outputs_are_writable():
    out = np.zeros(4, "f4")
    out.flags.writeable = False
    for call in (
        lambda: run("slice_window", [X], [out], starts=(0,), sizes=(4,), strides=(1,)),
        lambda: run("join", [X], [out], axis=0),
        lambda: run("split", [X], [out], axis=0),
        lambda: run("gather", [X, np.arange(4)], [out], axis=0),
    ):
        with pytest.raises(dml.ArgumentError, match="expected a writable array"):
            call()
    assert not out.any()


def slot(name, output=False, member=-1, kind=1, sizes=(2, 3), padding=0):
    return name, member, output, kind, sizes, padding


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, None),
        ({"sizes": (1, 2, 3), "padding": 1}, None),
        ({"sizes": (1, 1), "padding": 2}, "operands: their ranks"),
        ({"padding": 1}, "sizes and types that arrays can have"),
        ({"padding": -1}, "sizes and types that arrays can have"),
        ({"padding": 3}, "sizes and types that arrays can have"),
        ({"padding": -(2**31)}, "sizes and types that arrays can have"),
        ({"kind": 0}, "sizes and types that arrays can have"),
        ({"kind": -1}, "sizes and types that arrays can have"),
        ({"kind": 99}, "sizes and types that arrays can have"),
        ({"sizes": (2**40, 2**40)}, "sizes and types that arrays can have"),
        ({"sizes": (-2, 3)}, "sizes and types that arrays can have"),
        ({"sizes": (1,) * 65}, "sizes and types that arrays can have"),
        ({"sizes": (2, 4)}, "operands: their sizes"),
        ({"member": 0}, "wrong number of tensors"),
        ({"member": 1}, "wrong number of tensors"),
    ],
    ids=str,
)
def test_what_a_binder_takes(changes, message):
    def make():
        tensors = [slot("In"), slot("Out", output=True, **changes)]
        return native.CompiledCall("CAST", "cast", tensors, {}, False)

    if message is None:
        x, out = np.ones((2, 3), "f4"), np.zeros(changes.get("sizes", (2, 3)), "f4")
        assert make().dispatch({"In": x, "Out": out}, 1) == -1
        assert (out == 1).all()
    else:
        with pytest.raises(dml.ArgumentError, match=f"CAST: .*{message}"):
            make()


@pytest.mark.parametrize(("padding", "fits"), [(-1, False), (0, True), (1, True), (2, False)])
def test_padding_of_one_element(padding, fits):
    tensors = [slot(name, name == "Out", sizes=(1,), padding=padding) for name in ("In", "Out")]
    if fits:
        x, out = np.ones(1, "f4"), np.zeros(1, "f4")
        native.CompiledCall("CAST", "cast", tensors, {}, False).dispatch({"In": x, "Out": out}, 1)
        assert out[0] == 1
        return
    with pytest.raises(dml.ArgumentError, match=r"CAST: .*sizes and types that arrays can have"):
        native.CompiledCall("CAST", "cast", tensors, {}, False)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([0, 1], None),
        ([0], "do not add up"),
        ([0, 2], "beyond the end of its list"),
        ([], "wrong number"),
    ],
)
def test_which_lists_a_binder_takes(members, message):
    parts = [slot("Parts", True, member, sizes=(1, 3)) for member in members]
    if message is None:
        native.CompiledCall("SPLIT", "split", [slot("In"), *parts], {"axis": 0}, False)
        return
    with pytest.raises(dml.ArgumentError, match=f"SPLIT: .*{message}"):
        native.CompiledCall("SPLIT", "split", [slot("In"), *parts], {"axis": 0}, False)


def test_an_unknown_value_is_not_hashable():
    """PyTorch 2.15 hashes values of code that it traces, and expects this error."""
    for error in (TypeError, UnknownValueError):
        with pytest.raises(error):
            hash(UNKNOWN)
