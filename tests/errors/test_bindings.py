"""Bindings that are missing, unknown, too small, read-only, misaligned or overlapping."""

import array

import numpy as np
import pytest

import anydml as dml
from anydml.devices.backends import _base, cpu
from support import Layout, Poisoned

T = dml.TensorDesc
DEVICE = dml.Device("cpu")


def scatter(**changes):
    fields = {
        "input_tensor": T("FLOAT32", (3, 4)),
        "indices_tensor": T("UINT32", (3, 2)),
        "updates_tensor": T("FLOAT32", (3, 2)),
        "output_tensor": T("FLOAT32", (3, 4)),
        "axis": 1,
    }
    return DEVICE.create_operator(dml.Scatter(**fields | changes)).compile()


def operands():
    return {
        "InputTensor": np.arange(12, dtype="f4").reshape(3, 4),
        "IndicesTensor": np.array([[0, 1], [2, 3], [1, 0]], "u4"),
        "UpdatesTensor": np.ones((3, 2), "f4"),
    }


def refused(compiled, bindings, *parts, output="OutputTensor", watched=None):
    """The dispatch fails with a BindingError whose message starts with the first part."""
    before = {name: np.array(value, copy=True) for name, value in bindings.items()
              if isinstance(value, np.ndarray)}  # fmt: skip
    with pytest.raises(dml.BindingError) as error:
        compiled.dispatch(**bindings)
    message = str(error.value)
    assert message.startswith(parts[0]), message
    for part in parts:
        assert part in message, message
    for name, value in before.items():
        assert np.array_equal(bindings[name], value)
    if watched is not None:
        assert watched.untouched()


@pytest.mark.parametrize("name", ["InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor"])
def test_missing(name):
    bindings = {**operands(), "OutputTensor": np.zeros((3, 4), "f4")}
    del bindings[name]
    refused(scatter(), bindings, f"{name}: expected a binding, got none")


@pytest.mark.parametrize("wrong", range(1, 16))
def test_all_that_is_wrong_is_reported_at_once(wrong):
    bindings = {**operands(), "OutputTensor": np.zeros((3, 4), "f4")}
    unfit = {name: np.zeros((5, 5), "f8") for name in bindings}
    names = [name for i, name in enumerate(bindings) if wrong >> i & 1]
    with pytest.raises(dml.BindingError) as error:
        scatter().dispatch(**bindings | {name: unfit[name] for name in names})
    assert [line.partition(":")[0] for line in str(error.value).splitlines()] == names
    with pytest.raises(dml.BindingError) as error:
        scatter().dispatch(**{name: unfit[name] for name in bindings if name not in names})
    lines = str(error.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == list(bindings)
    assert [line.endswith("got none") for line in lines] == [name in names for name in bindings]


def test_many_wrong_members_have_some_lines():
    desc = dml.Join(
        input_tensors=[T("FLOAT32", (1, 1))] * 50, output_tensor=T("FLOAT32", (50, 1)), axis=0
    )
    compiled = DEVICE.create_operator(desc).compile()
    with pytest.raises(dml.BindingError) as error:
        compiled(InputTensors=[np.zeros(7)] * 50)
    first, *_, last = str(error.value).splitlines()
    assert first.startswith("InputTensors[0]: expected float32")
    assert last == "and 30 more"


@pytest.mark.parametrize("name", ["Input", "inputTensor", "Axis", "OutputTensors", ""])
def test_unknown(name):
    bindings = {**operands(), "OutputTensor": np.zeros((3, 4), "f4"), name: np.zeros(1)}
    refused(scatter(), bindings, f"{name}: expected one of InputTensor, IndicesTensor")


WRONG = [
    (None, ("got None",)),
    (np.zeros((3, 4), "f8"), ("expected float32 of shape (3, 4)", "got float64 of shape (3, 4)")),
    (np.zeros((3, 4), "i4"), ("expected float32 of shape (3, 4)", "got int32 of shape (3, 4)")),
    (np.zeros((4, 3), "f4"), ("expected float32 of shape (3, 4)", "got float32 of shape (4, 3)")),
    (np.zeros((1, 3, 4), "f4"), ("expected float32 of shape (3, 4)", "of shape (1, 3, 4)")),
    (np.zeros((3, 4), ">f4"), ("expected float32 in native byte order", "got >f4")),
    (np.zeros(11, "f4"), ("expected at least 48 bytes (TotalTensorSizeInBytes), got 44",)),
    (np.zeros(0, "f4"), ("expected at least 48 bytes", "got 0")),
    (np.zeros(24, "f4")[::2], ("or a flat contiguous buffer",)),
    (np.zeros(12, "f8"), ("or a flat buffer of float32 or bytes, got a flat buffer of float64",)),
    (bytearray(47), ("expected at least 48 bytes (TotalTensorSizeInBytes), got 47",)),
    (bytearray(0), ("got 0",)),
    (np.ma.masked_array(np.zeros((3, 4), "f4"), False), ("expected an array without a mask",)),
    ("text", ()),
    (3.5, ()),
    ({}, ()),
]


@pytest.mark.parametrize("name", ["InputTensor", "UpdatesTensor", "OutputTensor"])
@pytest.mark.parametrize(("value", "parts"), WRONG, ids=lambda value: str(value)[:30])
def test_wrong_memory(name, value, parts):
    compiled = scatter(indices_tensor=T("UINT32", (3, 4)), updates_tensor=T("FLOAT32", (3, 4)))
    output = Poisoned((3, 4), "f4")
    bindings = {
        "InputTensor": np.zeros((3, 4), "f4"),
        "IndicesTensor": np.zeros((3, 4), "u4"),
        "UpdatesTensor": np.zeros((3, 4), "f4"),
        "OutputTensor": output.array,
        name: value,
    }
    refused(compiled, bindings, f"{name}: ", *parts, watched=output)


def test_read_only_output():
    for value in (np.zeros((3, 4), "f4"), np.zeros(48, "u1")):
        value.flags.writeable = False
        refused(scatter(), {**operands(), "OutputTensor": value},
                "OutputTensor: expected writable memory")  # fmt: skip
    refused(scatter(), {**operands(), "OutputTensor": bytes(48)},
            "OutputTensor: expected writable memory")  # fmt: skip


def test_read_only_inputs_are_good():
    bindings = operands()
    for value in bindings.values():
        value.flags.writeable = False
    output = np.zeros((3, 4), "f4")
    scatter().dispatch(**bindings, OutputTensor=output)
    assert output[1].tolist() == [4, 5, 1, 1]
    raw = {name: value.tobytes() for name, value in bindings.items()}
    again = bytearray(48)
    scatter().dispatch(**raw, OutputTensor=again)
    assert again == output.tobytes()


@pytest.mark.parametrize("name", ["InputTensor", "UpdatesTensor", "OutputTensor"])
def test_misaligned(name):
    compiled = scatter(indices_tensor=T("UINT32", (3, 4)), updates_tensor=T("FLOAT32", (3, 4)))
    bindings = {
        "InputTensor": np.zeros((3, 4), "f4"),
        "IndicesTensor": np.zeros((3, 4), "u4"),
        "UpdatesTensor": np.zeros((3, 4), "f4"),
        "OutputTensor": np.zeros((3, 4), "f4"),
    }
    memory = Poisoned((3, 4), "f4", Layout(shift=1))
    for value in (memory.array, Poisoned((48,), "u1", Layout(shift=2)).array):
        refused(compiled, bindings | {name: value},
                f"{name}: expected memory aligned to the element size (4 bytes)",
                watched=memory)  # fmt: skip


def test_output_that_overlaps_itself():
    target = np.lib.stride_tricks.as_strided(np.zeros(20, "f4"), (3, 4), (4, 4))
    refused(scatter(), {**operands(), "OutputTensor": target},
            "OutputTensor: expected an output that does not overlap itself")  # fmt: skip


@pytest.mark.parametrize("other", ["InputTensor", "UpdatesTensor", "IndicesTensor"])
@pytest.mark.parametrize("raw", [False, True], ids=["arrays", "buffers"])
def test_output_that_overlaps_an_input(other, raw):
    memory = np.zeros(100, np.uint8)
    memory = np.zeros(25, np.uint32).view(np.uint8)
    bindings = operands()
    shape, kind = bindings[other].shape, bindings[other].dtype
    size = bindings[other].nbytes
    held = memory[:size].view(kind).reshape(shape)
    held[...] = bindings[other]
    bindings[other] = memory[:size] if raw else held
    target = memory[size - 4 : size + 44]
    bindings["OutputTensor"] = target if raw else target.view("f4").reshape(3, 4)
    refused(scatter(), bindings, "OutputTensor: expected memory that does not overlap",
            f"does not overlap {other}", "got an overlap")  # fmt: skip


def test_in_place_is_exactly_the_input():
    memory = np.zeros(32, "f4")
    x = memory[:12].reshape(3, 4)
    bindings = operands() | {"InputTensor": x}
    for target in (memory[4:16].reshape(3, 4), memory[12:0:-1].reshape(3, 4), x[::-1]):
        refused(scatter(), bindings | {"OutputTensor": target},
                "OutputTensor: expected memory that does not overlap InputTensor (only exactly",
                "got an overlap")  # fmt: skip
    scatter().dispatch(**bindings | {"OutputTensor": x})
    assert x[1].tolist() == [0, 0, 1, 1]
    # The same through two raw views of one buffer.
    raw = bytearray(48)
    scatter().dispatch(**operands() | {"InputTensor": raw, "OutputTensor": memoryview(raw)})
    assert np.frombuffer(raw, "f4").reshape(3, 4)[1].tolist() == [0, 0, 1, 1]


def test_a_strided_input_over_the_output_is_not_in_place():
    """It begins at the output's address and has its sizes; only the strides differ."""
    memory = np.zeros(64, "f4")
    output = memory[:12].reshape(3, 4)
    for source in (
        np.lib.stride_tricks.as_strided(memory, (3, 4), (32, 4)),  # gaps between rows
        np.lib.stride_tricks.as_strided(memory, (3, 4), (4, 12)),  # transposed
        np.lib.stride_tricks.as_strided(memory, (3, 4), (0, 4)),  # one row three times
    ):
        refused(scatter(), operands() | {"InputTensor": source, "OutputTensor": output},
                "OutputTensor: expected memory that does not overlap InputTensor (only exactly",
                "got an overlap")  # fmt: skip
    assert not memory.any()


def test_interleaved_but_disjoint_arrays_are_good():
    memory = np.zeros((3, 8), "f4")
    memory[:, ::2] = operands()["InputTensor"]
    scatter().dispatch(
        **operands() | {"InputTensor": memory[:, ::2], "OutputTensor": memory[:, 1::2]}
    )
    assert memory[1, 1::2].tolist() == [4, 5, 1, 1]


def test_only_scatters_run_in_place():
    tensor = T("FLOAT32", (4,))
    index = T("UINT32", (4,))
    x = np.arange(4, dtype="f4")
    split = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    with pytest.raises(dml.BindingError, match=r"OutputTensors\[0\]: .*overlap"):
        DEVICE.create_operator(split).compile().dispatch(InputTensor=x, OutputTensors=[x])
    top = dml.TopK(input_tensor=tensor, output_value_tensor=tensor, output_index_tensor=index,
                   axis=0, k=4)  # fmt: skip
    with pytest.raises(dml.BindingError, match="not overlap OutputValueTensor"):
        DEVICE.create_operator(top).compile().dispatch(
            InputTensor=x, OutputValueTensor=(y := np.zeros(4, "f4")),
            OutputIndexTensor=y.view("u4"),
        )  # fmt: skip
    assert x.tolist() == [0, 1, 2, 3]


def test_tensor_lists():
    tensor = T("FLOAT32", (4,))
    halves = [T("FLOAT32", (2,))] * 2
    compiled = DEVICE.create_operator(
        dml.Split(input_tensor=tensor, output_tensors=halves, axis=0)
    ).compile()
    x = np.arange(4, dtype="f4")
    good = np.zeros(2, "f4")
    for bad, start in (
        ([good], "OutputTensors: expected 2 arrays, got 1"),
        ([good, np.zeros(2, "f4"), good], "OutputTensors: expected 2 arrays, got 3"),
        (3, "OutputTensors: expected a sequence of arrays"),
        ("ab", "OutputTensors: expected a sequence of arrays"),
        ([good, np.zeros(3, "f8")], "OutputTensors[1]: expected"),
        ([good, good], "OutputTensors[1]: expected memory that does not overlap"),
        ([good, None], "OutputTensors[1]: expected an array or buffer, got None"),
    ):
        refused(compiled, {"InputTensor": x, "OutputTensors": bad}, start)
    assert not good.any()


def test_call_takes_inputs_only():
    compiled = scatter()
    arrays = list(operands().values())
    with pytest.raises(dml.BindingError, match=r"inputs: expected at most 3"):
        compiled(*arrays, np.zeros((3, 4), "f4"))
    with pytest.raises(dml.BindingError, match=r"InputTensor: .*two"):
        compiled(*arrays, InputTensor=arrays[0])
    with pytest.raises(dml.BindingError, match="OutputTensor: expected no binding"):
        compiled(*arrays, OutputTensor=np.zeros((3, 4), "f4"))
    with pytest.raises(dml.BindingError, match=r"UpdatesTensor: .*none"):
        compiled(*arrays[:2])
    with pytest.raises(dml.BindingError, match="Unknown: expected one of"):
        compiled(*arrays, Unknown=3)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_another_number_of_arrays_is_told(count):
    desc = dml.Join(
        input_tensors=[T("FLOAT32", (2,))] * 2, output_tensor=T("FLOAT32", (4,)), axis=0
    )
    compiled = dml.Device("cpu").create_operator(desc).compile()
    with pytest.raises(dml.BindingError, match=f"InputTensors: expected 2 arrays, got {count}"):
        compiled([np.ones(2, "f4")] * count)


def test_owned_tensors_of_a_list():
    part = T("FLOAT32", (2,), flags="OWNED_BY_DML")
    desc = dml.Join(input_tensors=[part, part], output_tensor=T("FLOAT32", (4,)), axis=0)
    parts, output = [np.array([1, 2], "f4"), np.array([3, 4], "f4")], np.zeros(4, "f4")
    ready = dml.Device("cpu").create_operator(desc).compile().initialize(InputTensors=parts)
    parts[1][:] = -1
    ready.dispatch(OutputTensor=output)
    assert output.tolist() == [1, 2, 3, 4]
    assert parts[1].tolist() == [-1, -1]


def test_owned_tensors_are_bound_when_initialised():
    owned = T("FLOAT32", (3, 4), flags="OWNED_BY_DML")
    compiled = scatter(input_tensor=owned)
    bindings = operands()
    x = bindings.pop("InputTensor")
    output = np.zeros((3, 4), "f4")
    with pytest.raises(dml.BindingError, match="InputTensor: expected an initialized input"):
        compiled.dispatch(**bindings, OutputTensor=output)
    with pytest.raises(dml.BindingError, match=r"InputTensor: .*none"):
        compiled.initialize()
    with pytest.raises(dml.BindingError, match="UpdatesTensor: expected an OWNED_BY_DML input"):
        compiled.initialize(InputTensor=x, UpdatesTensor=x)
    with pytest.raises(dml.BindingError, match="InputTensor: expected float32 of shape"):
        compiled.initialize(InputTensor=x.T)
    ready = compiled.initialize(InputTensor=x)
    with pytest.raises(dml.BindingError, match="InputTensor: expected no binding"):
        ready.dispatch(**bindings, InputTensor=x, OutputTensor=output)
    x[...] = -1  # it has a copy
    ready.dispatch(**bindings, OutputTensor=output)
    assert output[1].tolist() == [4, 5, 1, 1]
    assert ready(*bindings.values())[1].tolist() == [4, 5, 1, 1]


def test_exactly_the_elements_is_enough_where_only_rounding_is_missing():
    tensor = T("FLOAT16", (3,))  # 6 bytes, rounded up to 8
    compiled = DEVICE.create_operator(
        dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    ).compile()
    source = np.array([1, 2, 3], "f2").tobytes()
    target = bytearray(6)
    compiled.dispatch(InputTensor=source, OutputTensors=[target])
    assert bytes(target) == source
    padded = T("FLOAT16", (3,), total_tensor_size_in_bytes=16)
    compiled = DEVICE.create_operator(
        dml.Split(input_tensor=padded, output_tensors=[tensor], axis=0)
    ).compile()
    for size in (6, 8, 15):
        with pytest.raises(dml.BindingError, match="InputTensor: expected at least 16 bytes"):
            compiled.dispatch(InputTensor=source.ljust(size), OutputTensors=[target])
    target[:] = bytes(6)
    compiled.dispatch(InputTensor=source.ljust(16), OutputTensors=[target])
    assert bytes(target) == source


def test_which_arrays_are_bytes():
    """Bools are bytes in any shape; signed bytes are raw memory, which is flat."""
    tensor = T("UINT8", (2, 2))
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    compiled = DEVICE.create_operator(desc).compile()
    for x in (np.eye(2, dtype=bool), np.eye(2, dtype="i1").ravel(), np.eye(2, dtype="u1")):
        assert compiled(x)[0].tolist() == [[1, 0], [0, 1]]
    for kind in ("i1", "i4", "S1"):
        with pytest.raises(dml.BindingError, match=r"InputTensor: expected uint8 of shape"):
            compiled(np.zeros((2, 2), kind))
    bools = T("INT8", (2, 2))
    compiled = DEVICE.create_operator(
        dml.Split(input_tensor=bools, output_tensors=[bools], axis=0)
    ).compile()
    with pytest.raises(dml.BindingError, match="InputTensor: expected int8 of shape"):
        compiled(np.eye(2, dtype=bool))


def test_memory_larger_than_the_tensor_is_left_alone():
    tensor = T("INT32", (2, 2), (4, 1))
    compiled = DEVICE.create_operator(
        dml.Split(input_tensor=T("INT32", (2, 2)), output_tensors=[tensor], axis=0)
    ).compile()
    target = np.full(20, -1, "i4")
    compiled.dispatch(InputTensor=np.array([[1, 2], [3, 4]], "i4"), OutputTensors=[target])
    assert target.tolist() == [1, 2, -1, -1, 3, 4] + [-1] * 14


@pytest.mark.parametrize("arguments", [1, 3])
def test_a_list_of_other_arrays_than_it_says(arguments):
    class Lying(list):
        def __len__(self):
            return 2

    part = dml.TensorDesc("FLOAT32", (2,))
    desc = dml.Split(
        input_tensor=dml.TensorDesc("FLOAT32", (4,)), output_tensors=[part, part], axis=0
    )
    compiled = dml.Device("cpu").create_operator(desc).compile()
    outputs = Lying(np.zeros(2, "f4") for _ in range(arguments))
    with pytest.raises(
        dml.BindingError, match=f"OutputTensors: expected 2 arrays, got {arguments}"
    ):
        compiled.dispatch(InputTensor=np.zeros(4, "f4"), OutputTensors=outputs)


def test_results_are_of_the_kind_of_the_first_of_a_list():
    torch = pytest.importorskip("torch")
    part = T("FLOAT32", (2,))
    for count in (1, 2):
        joined_tensor = T("FLOAT32", (2 * count,))
        desc = dml.Join(input_tensors=[part] * count, output_tensor=joined_tensor, axis=0)
        compiled = DEVICE.create_operator(desc).compile()
        with pytest.raises(dml.BindingError, match=rf"expected {count} arrays, got 0"):
            compiled(InputTensors=[])
        others = [np.ones(2, "f4")] * (count - 1)
        assert type(compiled([torch.ones(2), *others])) is torch.Tensor
        assert type(compiled([np.ones(2, "f4"), *map(torch.tensor, others)])) is np.ndarray


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_index_out_of_range_on_every_backend(device):
    desc = dml.GatherElements(
        input_tensor=T("FLOAT32", (3,)), indices_tensor=T("INT32", (2,)),
        output_tensor=T("FLOAT32", (2,)), axis=0,
    )  # fmt: skip
    x, on = np.arange(3, dtype="f4"), dml.Device(device)
    compiled = on.create_operator(desc).compile()
    assert compiled(x, np.array([-3, 2], "i4")).tolist() == [0, 2]
    assert compiled(x, np.array([0, -1], "i4")).tolist() == [0, 2]
    for at, bad in ((0, 3), (1, 3), (0, -4), (1, -4)):
        indices = np.array([1, 1], "i4")
        indices[at] = bad
        with pytest.raises(dml.IndexOutOfRangeError) as error:
            compiled(x, indices)
        assert str(error.value) == (
            f"GATHER_ELEMENTS.IndicesTensor[{at}]: expected -3..2 (axis 0 of size 3), got {bad}"
        )
    clamping = on.create_operator(desc, out_of_range="clamp").compile()
    assert clamping(x, np.array([-4, 3], "i4")).tolist() == [0, 2]
    assert clamping(x, np.array([-9, 1], "i4")).tolist() == [0, 1]


def test_plain_arrays_are_dispatched_once_and_by_the_quick_way(monkeypatch):
    tensor = T("FLOAT32", (3,))
    desc = dml.ElementWiseIdentity(input_tensor=tensor, output_tensor=tensor, scale_bias=(2, 1))
    compiled = DEVICE.create_operator(desc).compile()
    monkeypatch.setattr(type(compiled._executable), "run", None)  # the long way's
    x, out = np.ones(3, "f4"), np.zeros(3, "f4")
    compiled.dispatch(InputTensor=x, OutputTensor=out)
    assert out.tolist() == [3, 3, 3]


def test_nothing_left_over_in_memory_is_shown(monkeypatch):
    def used(shape, dtype, *_):
        return np.full(shape, 7, dtype)

    desc = dml.NonzeroCoordinates(
        input_tensor=T("FLOAT32", (4,)),
        output_count_tensor=T("UINT32", (1,)),
        output_coordinates_tensor=T("UINT32", (4, 1)),
    )
    monkeypatch.setattr(cpu, "allocate", used)
    result = DEVICE.create_operator(desc).compile()(np.array([0, 3, 0, 0], "f4"))
    assert result.output_coordinates_tensor.tolist() == [[1], [0], [0], [0]]


def test_no_memory_for_a_result_of_the_reference(monkeypatch):
    def joined_tensor(*_):
        raise MemoryError

    tensor = T("FLOAT32", (6,))
    desc = dml.Cast(input_tensor=tensor, output_tensor=tensor)
    compiled = dml.Device("reference").create_operator(desc).compile()
    x = np.ones(6, "f4")
    monkeypatch.setattr(_base.np, "zeros", joined_tensor)
    with pytest.raises(dml.AllocationError, match=r"^CAST: ") as error:
        compiled(x)
    assert (error.value.bytes, error.value.purpose) == (24, "OutputTensor")


@pytest.mark.parametrize("data_type", ["UINT8", "INT8", "UINT16"])
def test_bytes_like_objects_are_laid_out_by_the_strides(data_type):
    """Also where a buffer has as many elements of the tensor's type as the tensor."""
    repeated, packed = T(data_type, (4,), strides=(0,)), T(data_type, (4,))
    desc = dml.ElementWiseIdentity(input_tensor=repeated, output_tensor=packed)
    compiled = DEVICE.create_operator(desc).compile()
    elements = np.array([1, 2, 3, 4], data_type.lower())
    kind = {"UINT8": "B", "INT8": "b", "UINT16": "H"}[data_type]
    buffers = (elements.tobytes(), bytearray(elements), elements.data, array.array(kind, elements))
    for buffer in buffers:
        assert compiled(buffer).tolist() == [1, 1, 1, 1]
    assert compiled(elements).tolist() == [1, 2, 3, 4]
    assert compiled(elements.data[::-1]).tolist() == [4, 3, 2, 1]  # it is not contiguous
