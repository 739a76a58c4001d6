"""The exception tree: what derives from what, survives pickling, and says all it knows."""

import inspect
import pickle

import numpy as np
import pytest

import anydml as dml
from anydml.core import errors


def kinds():
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, Exception)
    ]


def test_every_exception_is_public_and_in_the_printed_tree():
    for kind in kinds():
        assert kind.__name__ in dml.__all__
        assert issubclass(kind, dml.AnyDMLError)
        assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize(
    ("what", "kind", "builtin"),
    [
        (lambda: dml.Device("tpu"), dml.DeviceError, RuntimeError),
        (lambda: dml.Device("cpu", feature_level="9_9"), dml.ArgumentError, ValueError),
        (lambda: dml.Device("cpu", feature_level=5.0), dml.ArgumentError, ValueError),
        (lambda: dml.Device("cpu").check(3), dml.ArgumentTypeError, TypeError),
        (lambda: dml.Device("cpu").create_operator("x"), dml.ArgumentTypeError, TypeError),
        (lambda: dml.Device("cpu").minimum_feature_level(None), dml.ArgumentTypeError, TypeError),
        (lambda: dml.support(3), dml.ArgumentTypeError, TypeError),
        (lambda: dml.support("NO_SUCH"), dml.ModelError, ValueError),
        (lambda: dml.from_json([]), dml.ModelError, ValueError),
        (lambda: dml.TensorDesc("X", (1,)), dml.InvalidDescriptorError, ValueError),
        (lambda: dml.set_num_threads(0), dml.ArgumentError, ValueError),
        (lambda: dml.set_num_threads(257), dml.ArgumentError, ValueError),
        (lambda: dml.set_num_threads(2.0), dml.ArgumentTypeError, TypeError),
        (lambda: dml.num_threads(True), dml.ArgumentTypeError, TypeError),
        (lambda: dml.set_memory_pool_limit(-1), dml.ArgumentError, ValueError),
        (lambda: dml.set_memory_pool_limit("1"), dml.ArgumentTypeError, TypeError),
        (lambda: dml.gather([1, 2], [2]), dml.IndexOutOfRangeError, IndexError),
        (lambda: _operator(out_of_range="wrap"), dml.ArgumentError, ValueError),
        (lambda: _operator(out_of_range=np.array(["raise", "clamp"])), dml.ArgumentError,
         ValueError),
        (lambda: _operator(out_of_range="clamp"), dml.ArgumentError, ValueError),
    ],
)  # fmt: skip
def test_derives_from_the_documented_builtin(what, kind, builtin):
    with pytest.raises(kind) as error:
        what()
    assert isinstance(error.value, builtin)
    assert isinstance(error.value, dml.AnyDMLError)
    assert str(error.value)
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is kind
    assert str(again) == str(error.value)


def _operator(**arguments):
    tensor = dml.TensorDesc("FLOAT32", (2,))
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    return dml.Device("cpu").create_operator(desc, **arguments)


def test_attributes_survive_pickling():
    with pytest.raises(dml.IndexOutOfRangeError) as error:
        dml.gather_elements(np.zeros((2, 3)), np.array([[0, 1], [5, 0]]), axis=1)
    again = pickle.loads(pickle.dumps(error.value))
    for one in (error.value, again):
        assert (one.position, one.value, one.size) == ((1, 0), 5, 3)
        assert (
            str(one) == "gather_elements: indices[1, 0]: expected -3..2 (axis 1 of size 3), got 5"
        )
    with pytest.raises(dml.IndexOutOfRangeError, match=r"^gather: indices: expected -2\.\.1 "):
        dml.gather([1, 2], 5)
    tensor = dml.TensorDesc("FLOAT32", (0,))
    with pytest.raises(dml.InvalidDescriptorError) as error:
        dml.Device("cpu").create_operator(
            dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
        )
    again = pickle.loads(pickle.dumps(error.value))
    assert again.violations == error.value.violations
    assert len(again.violations) >= 2


@pytest.mark.parametrize(
    ("name", "meant"), [("CPU", "cpu"), ("GPU", "cuda"), ("onnx", "onnxruntime")]
)
def test_a_device_that_is_none_gets_a_suggestion(name, meant):
    with pytest.raises(dml.DeviceError, match=f"^kind: .*, got {name!r}; did you mean {meant!r}"):
        dml.Device(name)


def test_a_graph_is_no_operator():
    with pytest.raises(dml.ModelError, match=r"got a graph; GraphDesc\.from_json reads it"):
        dml.from_json({"Nodes": []})
