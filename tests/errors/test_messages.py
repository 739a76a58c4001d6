"""What messages say: what would be accepted, what helps, what may have been meant, each once."""

import re
from itertools import pairwise

import numpy as np
import pytest

import anydml as dml
from anydml import AnyDMLError
from anydml.core import _json

X = np.arange(6, dtype=np.float32).reshape(2, 3)
I = np.array([[0], [1]])  # noqa: E741
U = np.zeros((2, 1), np.float32)
TENSOR = dml.TensorDesc("FLOAT32", (2, 3))
SPLIT = {"input_tensor": TENSOR, "output_tensors": [TENSOR], "axis": 0}
COMPILED = dml.Device("cpu").create_operator(dml.Split(**SPLIT)).compile()


def message(call):
    with pytest.raises(AnyDMLError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize(
    ("call", "suggestion"),
    [
        (lambda: dml.scatter_elements(X, I, U, axis=1, reduction="ad"), "add"),
        (lambda: dml.scatter_nd(X, I, X, reduction="MAX"), "max"),
        (lambda: dml.gather(X, I, mode="rase"), "raise"),
        (lambda: dml.gather_nd(X, I, mode="clmap"), "clamp"),
        (lambda: dml.pad(X, 1, "reflexion"), "reflection"),
        (lambda: dml.cast(X, "flaot32"), "float32"),
        (lambda: dml.top_k(X, 1, index_dtype="unit32"), "uint32"),
        (lambda: COMPILED.dispatch(InputTensr=X, OutputTensors=[X]), "InputTensor"),
        (lambda: COMPILED(input_tensors=X), "input_tensor"),
        (lambda: dml.support("TOPK1"), "TOP_K1"),
        (lambda: dml.support("DML_OPERATOR_SCATER"), "SCATTER"),
        (lambda: dml.from_json({"type": "gatherelements"}), "GATHER_ELEMENTS"),
        (lambda: dml.DataType.parse("FLOAT_32"), "FLOAT32"),
        (lambda: dml.DataType.parse("DML_TENSOR_DATA_TYPE_UNIT8"), "UINT8"),
        (lambda: dml.AxisDirection.parse("DECREASNG"), "DECREASING"),
        (lambda: dml.Split(**SPLIT, axes=1), "axis"),
        (lambda: dml.Device("cpu").create_operator(dml.Split(**SPLIT), out_of_range="clam"),
         "clamp"),
    ],
)  # fmt: skip
def test_a_misspelt_name(call, suggestion):
    assert message(call).endswith(f"; did you mean {suggestion!r}?")


def test_nothing_is_suggested_for_what_is_near_to_nothing():
    for call in (
        lambda: dml.gather(X, I, mode="zzz"),
        lambda: dml.gather(X, I, mode=3),
        lambda: dml.cast(X, "x" * 10_000),
        lambda: dml.support("A"),
        lambda: COMPILED(weights=X),
    ):
        assert "did you mean" not in message(call)


def test_a_misspelt_field_of_json_is_named():
    record = {**dml.Split(**SPLIT).to_json()}
    record["axis"] = record.pop("Axis")
    assert (
        message(lambda: dml.from_json(record))
        == "SPLIT.Axis: expected a value, got none (there is 'axis')"
    )
    del record["axis"]
    assert message(lambda: dml.from_json(record)) == "SPLIT.Axis: expected a value, got none"


def test_a_json_field_is_named_once():
    record = {**TENSOR.to_json(), "DataType": "FLOAT31"}
    text = message(lambda: dml.TensorDesc.from_json(record))
    assert text.startswith("DataType: expected one of FLOAT32, ")
    assert text.endswith("got 'FLOAT31'; did you mean 'FLOAT32'?")
    desc = dml.TopK1(input_tensor=TENSOR, output_value_tensor=TENSOR, output_index_tensor=TENSOR,
                     axis=0, k=1, axis_direction="INCREASING")  # fmt: skip
    record = {**desc.to_json(), "AxisDirection": "UP"}
    first, *rules = message(lambda: dml.from_json(record)).split("\n")
    assert first == ("TOP_K1.AxisDirection: expected one of INCREASING, DECREASING, got 'UP'")
    assert rules[0].startswith("TOP_K1.OutputIndexTensor.DataType: expected one of UINT64, ")


def test_fields_of_a_descriptor():
    assert message(lambda: dml.Split(TENSOR, [TENSOR], 0)) == (
        "Split: expected fields by keyword, got 3 by position"
    )
    assert message(lambda: dml.Split(input_tensor=TENSOR)) == (
        "Split: expected a value for output_tensors, axis, got none"
    )
    assert message(dml.Split) == (
        "Split: expected a value for input_tensor, output_tensors, axis, got none"
    )
    assert message(lambda: dml.Split(**SPLIT, k=2)) == (
        "Split: unexpected field 'k'; the fields are input_tensor, output_count, output_tensors, "
        "axis"
    )


def test_a_range_of_nothing_is_none():
    empty = dml.TensorDesc("FLOAT32", ())
    found = [
        *dml.Device("cpu").check(dml.Split(input_tensor=empty, output_tensors=[empty], axis=0)),
        *dml.Device("cpu").check(
            dml.GatherND(input_tensor=empty, indices_tensor=empty, output_tensor=empty,
                         input_dimension_count=1, indices_dimension_count=1)
        ),
        *dml.Device("cpu").check(
            dml.TopK(input_tensor=dml.TensorDesc("FLOAT32", (0,)), output_value_tensor=TENSOR,
                     output_index_tensor=TENSOR, axis=0, k=1)
        ),
    ]  # fmt: skip
    texts = [str(violation) for violation in found]
    for text in texts:
        for low, high in re.findall(r"(-?\d+)\.\.(-?\d+)", text):
            assert int(low) <= int(high), text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "x: expected numbers or an array of them, got None"),
        (object(), "x: expected numbers or an array of them, got an object of class object"),
        ([1, None], "x: expected numbers or an array of them, got [1, None]"),
        ({"a": 1}, "x: expected numbers or an array of them, got {'a': 1}"),
        (np.array([None]), "timedelta64), got Python objects (object)"),
        (np.array(["ab"]), "got strings (<U2); numpy.unique"),
        (np.zeros(2, "S3"), "got bytes (|S3); numpy.unique"),
        (np.zeros(2, "i4,f4"), "timedelta64), got records ("),
        (np.zeros(2, "clongdouble"), "got complex256"),
    ],
)
def test_what_is_no_array_of_numbers(value, words):
    for call in (dml.nonzero_coordinates, lambda x: dml.gather(x, [0])):
        assert words in message(lambda call=call: call(value))


@pytest.mark.filterwarnings("ignore::UserWarning")  # experimental, says PyTorch
def test_tensors_that_are_refused_are_told_what_helps():
    torch = pytest.importorskip("torch")
    x = torch.ones(3)
    for value, words in (
        (x.to_sparse(), "use .to_dense()"),
        (x.to("meta"), "device='cpu'"),
        (torch.ones(3, dtype=torch.complex32), "torch.uint8, torch.complex64"),
    ):
        if value.device.type != "meta":  # which gives results on meta
            text = message(lambda value=value: dml.split(value, 1))
            assert text.startswith("x: expected ")
            assert words in text
        text = message(lambda value=value: dml.gather(X, I[:, 0], out=value))
        assert text.startswith("out: expected ")
        assert words in text
    out = torch.ones(3, requires_grad=True)
    assert "use .detach()" in message(lambda: dml.gather(X, I[:, 0], out=out))


def test_sparse_arrays_are_told_what_helps():
    class Sparse:  # as SciPy's and JAX's
        def todense(self):
            raise AssertionError("not to be called")

    assert message(lambda: dml.top_k(Sparse(), 1)).endswith("Sparse; use .todense()")
    sparse = pytest.importorskip("jax.experimental.sparse")
    value = sparse.BCOO.fromdense(np.eye(3, dtype="f4"))
    assert message(lambda: dml.gather(X, value)).endswith("class BCOO; use .todense()")


def test_enumerations_by_call():
    assert dml.DataType("FLOAT32") is dml.DataType.FLOAT32 is dml.DataType(1)
    assert dml.AxisDirection("DML_AXIS_DIRECTION_INCREASING") is dml.AxisDirection.INCREASING
    assert message(lambda: dml.FeatureLevel(3)).startswith("FeatureLevel: expected one of 1_0, ")
    assert message(lambda: dml.DataType("FLOAT31")).endswith("; did you mean 'FLOAT32'?")


def test_a_type_that_a_library_adds_is_named():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    text = message(lambda: dml.gather(np.zeros(2, ml_dtypes.int4), [0]))
    assert text.endswith(", got int4")


def test_an_inference_tensor_can_be_written():
    torch = pytest.importorskip("torch")
    with torch.inference_mode():
        out = torch.zeros(2)
        dml.gather(torch.ones(3), [0, 1], out=out)
    assert out.tolist() == [1, 1]
    assert dml.gather(torch.ones(3), [0, 2], out=out) is out


def test_no_prefix_comes_twice():
    bad = [None, object(), "abc", [1, None], np.zeros(2, "S3"), {1}, 10**400, np.float64(-1)]
    calls = [
        lambda v: dml.top_k(v, 1),
        lambda v: dml.top_k(X, v),
        lambda v: dml.top_k(X, 1, axis=v),
        lambda v: dml.top_k(X, 1, index_dtype=v if v is not None else "q"),
        lambda v: dml.top_k(X, 1, out=v if v is not None else 3),
        lambda v: dml.gather(X, v),
        lambda v: dml.gather(X, I, mode=v),
        lambda v: dml.scatter_elements(X, I, v, axis=1),
        lambda v: dml.join([X, v]),
        lambda v: dml.split(X, v),
        lambda v: dml.pad(X, 1, constant=v if not isinstance(v, float) else None),
        lambda v: dml.cast(X, v),
        lambda v: dml.slice_window(X, v, (1, 1)),
        lambda v: COMPILED.dispatch(InputTensor=v, OutputTensors=[X.copy()]),
        lambda v: COMPILED.dispatch(InputTensor=X, OutputTensors=v),
        lambda v: dml.TensorDesc(v, (1,)),
        dml.TensorDesc.from_array,
        dml.from_json,
        lambda v: dml.Device(v if v is not None else 3),
        dml.support,
    ]  # fmt: skip
    output = 0
    for call in calls:
        for value in bad:
            try:
                call(value)
            except AnyDMLError as error:
                text = str(error)
            else:
                continue
            output += 1
            parts = text.split(": ")
            assert all(a != b for a, b in pairwise(parts)), text
            assert "got object" not in text, text
            assert "0x" not in text, text
    assert output > 100


def test_suggestions_are_not_made_of_everything():
    assert _json.did_you_mean("ab", ["abc", "xyz"]) == "; did you mean 'abc'?"
    assert _json.did_you_mean("", ["abc"]) == ""
    assert _json.did_you_mean(b"abc", ["abc"]) == ""
    assert _json.did_you_mean("abd" * 1000, ["abc" * 1000]) == ""
