"""`anydml run MODEL.onnx --against PROVIDER`: the first node that differs from ONNX Runtime's."""

import re

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from building import FLOAT, UINT8, floats, model_of
from test_models import attention, classifier

import anydml as dml
from anydml.cli.command import main
from anydml.onnx import against
from anydml.onnx.against import provider_tensors

CPU = "CPUExecutionProvider"
BOOL = onnx.TensorProto.BOOL


def to_bool():
    """A model whose third node differs with the provider's mistakes: 0.5 becomes false."""
    nodes = [
        oh.make_node("MatMul", ["x", "w"], ["a"], name="project"),
        oh.make_node("Relu", ["a"], ["b"]),
        oh.make_node("Cast", ["b"], ["c"], name="to_bool", to=BOOL),
        oh.make_node("Cast", ["c"], ["y"], to=FLOAT),
    ]
    return model_of(nodes, {"x": ["n", 4]}, {"y": FLOAT}, {"w": floats(0, 4, 3)})


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that runs a model in a new folder: status, output and messages."""
    monkeypatch.chdir(tmp_path)

    def call(model, *options, provider=CPU, device="cpu"):
        if not isinstance(model, str):
            onnx.save(model, "model.onnx")
            model = "model.onnx"
        given = ["--random", "0", "--device", device, "--against", provider]
        status = main(["run", model, *given, *options])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.mark.parametrize(
    ("make", "options"), [(classifier, ["--dim", "n=2"]), (attention, []), (to_bool, ["--dim=n=2"])]
)
def test_models_that_agree(run, make, options):
    status, _, error = run(make(), *options)
    assert status == 0
    assert error.endswith(" tensors are equal within the bounds\n")
    assert int(error.split()[0]) >= 4


def test_the_first_node_that_differs_is_written_with_its_inputs(run, tmp_path):
    status, _, error = run(to_bool(), "--dim", "n=2", "--as-onnxruntime")
    assert status == 1
    assert "The first tensor that differs is 'c', of node 'to_bool' (Cast)\n" in error
    (folder,) = tmp_path.glob("*.out")
    assert {path.name for path in folder.iterdir()} == {"node.onnx", "b.npy"}
    (node,) = onnx.load(folder / "node.onnx").graph.node
    assert node.name == "to_bool"
    given = f"b={folder / 'b.npy'}"
    again = run(str(folder / "node.onnx"), "--input", given, "--as-onnxruntime", "--overwrite")
    assert again[0] == 1
    assert "The first tensor that differs is 'c', of node 'to_bool' (Cast)\n" in again[2]
    assert run(str(folder / "node.onnx"), "--input", given)[0] == 0


def test_bounds_decide(run):
    model = model_of([oh.make_node("Exp", ["x"], ["y"])], {"x": [1000]}, {"y": FLOAT})
    assert run(model)[0] == 0
    status, _, error = run(model, "--ulp", "0", "--rtol", "1e-30")
    assert (status == 1) is ("The first tensor that differs is 'y'" in error)
    assert run(model, "--rtol", "1e-5")[0] == 0


def test_differences_that_add_up_are_no_nodes_fault(run):
    nodes, last = [], "x"
    for i in range(60):  # a chaotic network: each layer doubles a difference, or more
        nodes += [oh.make_node("MatMul", [last, "w"], [f"m{i}"]),
                  oh.make_node("Tanh", [f"m{i}"], [f"t{i}"])]  # fmt: skip
        last = f"t{i}"
    model = model_of(nodes, {"x": [64, 64]}, {last: FLOAT}, {"w": floats(0, 64, 64)})
    status, _, error = run(model)
    assert status == 0
    assert "differ by what adds up from node to node: no node differs by itself" in error


def test_weights_in_other_files(run, tmp_path):
    onnx.save(to_bool(), tmp_path / "big.onnx", save_as_external_data=True, location="w.bin",
              size_threshold=0)  # fmt: skip
    assert run("big.onnx", "--dim", "n=1")[0] == 0
    status, _, _ = run("big.onnx", "--dim", "n=1", "--as-onnxruntime", "--output-dir", "out")
    assert status == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"y.npy", "node.onnx", "b.npy"}


def test_nodes_that_the_provider_leaves_to_the_cpu():
    """Azure's provider, which is in every package of ONNX Runtime, computes no node itself."""
    model = dml.read_onnx(to_bool(), dims={"n": 1})
    inputs = {"x": floats(1, 1, 4)}
    tensors, on_cpu = provider_tensors(model, "AzureExecutionProvider", inputs)
    assert on_cpu == {"project", "b", "to_bool", "y"}
    assert [*tensors] == ["a", "b", "c", "y"]
    assert provider_tensors(model, CPU, inputs)[1] == set()


def test_the_message_says_that_a_node_is_on_the_cpu(run):
    status, _, error = run(
        to_bool(), "--dim", "n=2", "--as-onnxruntime", provider="AzureExecutionProvider"
    )
    assert status == 1
    assert "AzureExecutionProvider leaves this node to the CPU\n" in error


def test_a_node_without_inputs_that_its_kernel_reads():
    """ONNX Runtime ends the process for such a node, so the names are completed."""
    nodes = [oh.make_node("QLinearSigmoid", ["x", "s", "z", "t"], ["y"], domain="com.microsoft")]
    weights = {"s": np.float32(0.1), "z": np.uint8(3), "t": np.float32(0.01)}
    model = model_of(nodes, {"x": (UINT8, [4])}, {"y": UINT8}, weights, domains=["com.microsoft"])
    inputs = {"x": np.arange(4, dtype=np.uint8)}
    tensors, _ = provider_tensors(dml.read_onnx(model), CPU, inputs)
    assert tensors["y"].shape == (4,)


def test_providers_that_are_not_there(run, tmp_path, monkeypatch):
    status, _, error = run(to_bool(), "--dim", "n=1", provider="DmlExecutionProvider")
    assert status == 1
    assert error.count("\n") == 1
    assert error.startswith("Error: --against: expected one of ")
    assert "CPUExecutionProvider" in error
    assert error.endswith("got 'DmlExecutionProvider'\n")
    plug_in = tmp_path / "onnxruntime_ep_none.py"
    plug_in.write_text(
        "def get_ep_names():\n    return ['NoneExecutionProvider']\n\n"
        "def get_library_path():\n    return 'none.so'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    status, _, error = run(to_bool(), "--dim", "n=1", provider="NoneExecutionProvider")
    assert status == 1
    assert error.startswith("Error: --against: NoneExecutionProvider: ")
    assert error.count("\n") == 1


def test_what_the_provider_refuses_is_one_message(run, monkeypatch):
    import onnxruntime

    def fail(*_):
        raise RuntimeError("[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : 80070057\nparameter")

    monkeypatch.setattr(onnxruntime.InferenceSession, "__init__", fail)
    status, _, error = run(to_bool(), "--dim", "n=1")
    assert (status, error) == (1, f"Error: {CPU} fails: 80070057 parameter.\n")


@pytest.mark.parametrize(
    ("device", "against"),
    [("cpu", "reference"), (f"onnxruntime:{CPU}", "AzureExecutionProvider"),
     (f"onnxruntime:{CPU}", "cpu")],
)  # fmt: skip
def test_any_two_sides_are_compared(run, device, against):
    status, _, error = run(to_bool(), "--dim", "n=2", provider=against, device=device)
    assert (status, error) == (0, "4 tensors are equal within the bounds\n")


@pytest.mark.parametrize(
    ("device", "provider"), [(CPU, "AzureExecutionProvider"), ("AzureExecutionProvider", CPU)]
)
def test_a_provider_that_differs_from_the_other_is_found(
    run, tmp_path, monkeypatch, device, provider
):
    real = against.provider_tensors

    def wrong(model, side, inputs):
        tensors, on_cpu = real(model, CPU, inputs)
        if side == "AzureExecutionProvider" and "c" in tensors:
            tensors["c"] = ~tensors["c"]
        return tensors, on_cpu

    monkeypatch.setattr(against, "provider_tensors", wrong)
    status, _, error = run(
        to_bool(), "--dim", "n=2", device=f"onnxruntime:{device}", provider=provider
    )
    assert status == 1
    assert "The first tensor that differs is 'c', of node 'to_bool' (Cast)\n" in error
    (folder,) = tmp_path.glob("*.out")
    assert {path.name for path in folder.iterdir()} == {"node.onnx", "b.npy"}


def test_an_output_that_no_node_computes(run):
    nodes = [oh.make_node("Relu", ["x"], ["y"])]
    model = model_of(nodes, {"x": [3]}, {"y": FLOAT, "x": FLOAT})
    status, out, error = run(model, device=f"onnxruntime:{CPU}", provider=CPU)
    assert (status, error) == (0, "1 tensor is equal within the bounds\n")
    assert "x: float32 (3,)" in out


@pytest.mark.parametrize(
    ("device", "options", "status", "message"),
    [
        ("onnxruntime:None", ["--against", CPU], 1, "--device: expected one of .*got 'None'"),
        (f"onnxruntime:{CPU}", [], 2, "expected --against, and no --timing"),
        (f"onnxruntime:{CPU}", ["--against", CPU, "--timing"], 2, "no --timing"),
        ("onnxruntim", ["--against", CPU], 2, "expected one of cpu, "),
        ("cpu", ["--against", "xla:nothing"], 1, "xla"),
        (
            "cpu",
            ["--against", "nothing"],
            1,
            "--against: expected one of .*reference.*got 'nothing'",
        ),
    ],
)
def test_sides_that_are_not_there(tmp_path, monkeypatch, capsys, device, options, status, message):
    monkeypatch.chdir(tmp_path)
    onnx.save(to_bool(), "model.onnx")
    given = ["--dim", "n=2", "--random", "0", "--device", device, *options]
    assert main(["run", "model.onnx", *given]) == status
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert "Traceback" not in error
    assert main(["check", "model.onnx", "--dim", "n=2", "--device", f"onnxruntime:{CPU}"]) == 2


def test_wrong_uses(run, tmp_path):
    onnx.save(to_bool(), tmp_path / "model.onnx")
    (tmp_path / "model.json").write_text("{}")
    assert main(["run", "model.json", "--against", CPU]) == 2
    both = run("model.onnx", "--dim", "n=1", "--expect-all", str(tmp_path))
    assert both[0] == 2
    assert "--against and --expect-all cannot be combined" in both[2]
    assert "--dim n=1" in run("model.onnx")[2]
    assert main(["run", "model.onnx", "--against", CPU]) == 2


def test_names_that_no_file_can_have(run, tmp_path):
    nodes = [oh.make_node("Cast", ["../x:0"], ["y"], to=BOOL)]
    model = model_of(nodes, {"../x:0": [4]}, {"y": BOOL})
    status, _, _ = run(model, "--as-onnxruntime")
    assert status == 1
    (folder,) = tmp_path.glob("*.out")
    (array,) = folder.glob("*.npy")
    assert np.load(array).shape == (4,)


def test_the_tensors_of_both_sides_are_within_the_memory_limit(run, capsys):
    """Of the model, with 55 bytes for each of n, and those of its weights."""
    limit = ["--dim", "n=20000", "--memory-limit"]
    assert run(to_bool(), *limit, "3M")[0] == 0
    assert main(["run", "model.onnx", "--random", "0", *limit, "1500K"]) == 0
    capsys.readouterr()
    refused = run("model.onnx", *limit, "1500K")
    assert refused[0] == 1
    assert "Expected tensors of at most 1536000 bytes together (--memory-limit)" in refused[2]
