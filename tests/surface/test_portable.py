"""Without native modules: the kernels on NumPy, and what an installation then can do."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import pytest

import anydml
from anydml._native import has_extension, native
from anydml.ops._computed import Computed
from anydml.ops._registry import OPERATORS
from anydml.portable import bindings
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from support import Flavour, assert_same_bits, contents, indices

NATIVE = [kind for kind in dict.fromkeys(OPERATORS.values()) if not issubclass(kind, Computed)]

# Names of the other systems that Windows and Pyodide lack.
LACKING = """
import os, signal, sys
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_PATH", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "fchmod",
             "fstatvfs", "statvfs", "ST_RDONLY", "sched_getaffinity", "geteuid", "getuid", "getgid",
             "fork", "register_at_fork", "sysconf", "mkfifo", "killpg", "setsid", "nice"):
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd = os.supports_fd = os.supports_follow_symlinks = set()
for name in ("SIGPIPE", "SIGHUP", "SIGALRM", "SIGUSR1", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios", "tty", "pty"):
    sys.modules[name] = None
"""
WITHOUT_MODULES = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("anydml._bindings", "anydml._processor"):
            raise ModuleNotFoundError(name, name=name)
import importlib.util
import os
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: (
    None if name == "anydml._bindings" else found(name, *rest))
listed = os.listdir
os.listdir = lambda *folder: [name for name in listed(*folder) if not name.endswith(".so")]
sys.meta_path.insert(0, Missing())
"""


def run(script, *arguments, cwd=None):
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(before, *arguments, cwd=None):
    script = f"{before}\nfrom anydml.__main__ import main\nsys.exit(main())"
    return run(script, *arguments, cwd=cwd)


@pytest.mark.skipif(not has_extension(), reason="there are no native kernels to compare with")
@pytest.mark.parametrize("kind", NATIVE, ids=lambda kind: kind.__name__)
def test_kernels_have_the_bits_of_the_native_ones(kind):
    flavours = [*Flavour]
    for seed in range(len(flavours)):
        desc = descriptor(Seeded(seed), kind)
        (call,), generator = desc.lower().calls, np.random.default_rng(seed)
        slots = {slot.name: slot for slot in (*desc.lower().inputs, *desc.lower().outputs)}
        inputs = []
        for name in call.inputs:
            spec = slots[name].spec
            if call.indices is not None and name == call.indices.slot:
                sizes = call.indices.sizes
                inputs.append(
                    indices(
                        generator, spec.shape, sizes if len(sizes) > 1 else sizes[0], spec.dtype
                    )
                )
            else:
                inputs.append(contents(generator, spec.shape, spec.dtype, flavours[seed]))
        results = []
        for module in (native, bindings):
            outputs = [np.zeros(slots[n].spec.shape, slots[n].spec.dtype) for n in call.outputs]
            bad = module.run(call.kernel, inputs, outputs, dict(call.attributes), True, 1)
            results.append((bad, outputs))
        assert results[0][0] == results[1][0]
        for one, other in zip(results[0][1], results[1][1], strict=True):
            assert_same_bits(other, one)


@pytest.mark.skipif(not has_extension(), reason="there are no native kernels to compare with")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint64", "complex64"])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "mean", "min", "max"])
def test_reductions_have_the_bits_of_the_native_ones(reduction, dtype):
    if dtype == "float16" and reduction == "mean":
        pytest.skip("kernels have means of wide types")
    if dtype == "complex64" and reduction in ("min", "max"):
        pytest.skip("complex numbers have no order")
    generator = np.random.default_rng(3)
    for include_self in (True, False) if reduction == "mean" else (True,):
        x, updates = (
            contents(generator, shape, np.dtype(dtype), Flavour.SPECIAL) for shape in ((40,), (90,))
        )
        index = generator.integers(-30, 30, 90)
        attributes = {"axis": 0, "reduction": reduction, "include_self": include_self}
        results = [np.zeros_like(x) for _ in range(2)]
        for module, result in zip((native, bindings), results, strict=True):
            assert (
                module.run("scatter_elements", [x, index, updates], [result], attributes, True, 1)
                < 0
            )
        assert_same_bits(results[1], results[0])


@pytest.mark.skipif(not has_extension(), reason="there are no native kernels to compare with")
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("flavour", Flavour, ids=lambda flavour: flavour.name)
def test_top_k_with_options_has_the_bits_of_the_native_one(flavour, dtype):
    generator = np.random.default_rng(2)
    for _ in range(40):
        rows, size = generator.integers(1, [20, 300])
        x = contents(generator, (rows, size), np.dtype(dtype), flavour)
        names = ("largest", "sorted", "nan_last", "last_first")
        attributes = dict(
            zip(names, generator.integers(0, 2, 4).astype(bool).tolist(), strict=True)
        )
        attributes |= {"axis": 1, "k": int(generator.integers(1, size + 1)), "fill": (7, 0)}
        lengths = generator.integers(0, size + 1, (rows if generator.random() < 0.5 else 0))
        shape, before, results = (rows, attributes["k"]), x.copy(), []
        for module in (native, bindings):
            outputs = [np.empty(shape, x.dtype), np.empty(shape, np.int64)]
            assert module.run("top_k_rows", [x, lengths], outputs, attributes, True, 1) < 0
            results.append(outputs)
        assert_same_bits(x, before, "the operand")
        for one, other in zip(*results, strict=True):
            assert_same_bits(other, one)


def test_every_native_kernel_has_one_on_numpy():
    assert {*native.kernels()} == {*bindings.kernels()}


def test_an_installation_without_native_modules():
    assert run(
        WITHOUT_MODULES
        + """
import anydml as dml, numpy as np
x = np.array([3.0, np.nan, 1.0], np.float32)
print(dml.top_k(x, 2).indices, dml.gather(x, [-1]), dml.scatter_elements(x, [0, 0], x[1:] * 0 + 7))
desc = dml.Split(input_tensor=dml.TensorDesc("FLOAT32", (2,)),
                 output_tensors=[dml.TensorDesc("FLOAT32", (1,))] * 2, axis=0)
print(dml.Device("cpu").create_operator(desc).compile()(np.array([1, 2], np.float32)))
try:
    dml.Device("cuda")
except dml.DeviceError as error:
    print(error)
"""
    ).splitlines() == [
        "[1 0] [1.] [ 7. nan  1.]",
        "(array([1.], dtype=float32), array([2.], dtype=float32))",
        "GPUs need the native modules, which this installation of anydml lacks; install a wheel "
        "for this platform, or build it with a C++20 compiler: pip install .",
    ]
    out = command(WITHOUT_MODULES, "run", "--example", "ELEMENT_WISE_ADD1")  # with an activation
    assert "OutputTensor" in out
    devices = command(WITHOUT_MODULES, "devices")
    assert "NumPy (no native modules installed)" in devices


AGAIN = "; install anydml again: pip install --force-reinstall"
FOREIGN = ".cpython-399-aarch64-linux-gnu.so"


def empty(path):
    path.unlink()
    path.touch()


@pytest.fixture
def copy(tmp_path):
    """A folder with a copy of the package, of links."""
    shutil.copytree(Path(anydml.__file__).parent, tmp_path / "anydml", copy_function=os.symlink)
    for path in map(Path, (native.__file__, import_module("anydml._processor").__file__)):
        if not (tmp_path / "anydml" / path.name).exists():  # an editable installation
            for other in path.parent.glob("*.so"):
                (tmp_path / "anydml" / other.name).symlink_to(other)
    return tmp_path


@pytest.mark.skipif(not has_extension(), reason="there are no native modules")
@pytest.mark.parametrize(
    ("names", "change", "reason"),
    [
        ("_bindings.*so", Path.unlink, f"expected _bindings{EXTENSION_SUFFIXES[0]}, of this"),
        ("_[bp]*so", lambda path: path.rename(path.with_name(path.name.split(".")[0] + FOREIGN)),
         f"got _bindings{FOREIGN}, _kernels_"),
        ("_bindings.*so", empty, "file too short"),
        ("_processor.*so", Path.unlink, "No module named 'anydml._processor'"),
        ("_processor.*so", empty, "file too short"),
        ("_kernels_*so", Path.unlink, "no kernel library, _kernels_*.so"),
        ("_kernels_*so", empty, "file too short"),
        ("functions/gather.py", Path.unlink, "No module named 'anydml.functions.gather'"),
    ],
)  # fmt: skip
def test_a_half_installed_package(copy, names, change, reason):
    for path in list((copy / "anydml").glob(names)):
        change(path)
    # Without the module `site`: an editable installation makes Python find the package by a hook.
    path = os.pathsep.join([".", *sys.path])
    done = subprocess.run(
        [sys.executable, "-S", "-m", "anydml", "ops"], cwd=copy,
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    (message,) = done.stderr.splitlines()
    assert message.startswith("Error: ")
    assert reason in message
    assert message.count(AGAIN) == 1


def test_other_libraries_without_native_modules():
    pytest.importorskip("torch")
    assert run(
        WITHOUT_MODULES
        + """
import anydml as dml, torch
values, indices = dml.top_k(torch.tensor([3.0, 1.0, 2.0]), 2)
print(values, indices)
try:
    dml.top_k(torch.ones(3, requires_grad=True), 2)
except dml.ArgumentTypeError as error:
    print(error)
try:
    dml.torch.deterministic
except ImportError as error:
    print(error)
"""
    ).splitlines() == [
        "tensor([3., 2.]) tensor([0, 2])",
        "x: expected a tensor without a gradient, got one that requires grad; use .detach(); to "
        "keep the gradient, install anydml's native modules, which this installation lacks",
        "anydml.torch needs the native modules of anydml, which this installation lacks; install a "
        "wheel for this platform, or build it with a C++20 compiler: pip install .",
    ]


def test_the_commands_need_no_name_of_a_posix_system(tmp_path):
    pytest.importorskip("igraph")
    before = LACKING + WITHOUT_MODULES
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", np.arange(4, dtype=np.float32))
    (tmp_path / "model.json").write_text(MODEL)
    assert command(before, "check", "model.json", cwd=tmp_path)
    out = command(before, "run", "model.json", "--output-dir", "out", cwd=tmp_path)
    assert "3, 2" in out
    assert np.load(tmp_path / "out" / "sub" / "y.npy").tolist() == [3.0, 2.0]
    assert command(before, "show", "model.json", cwd=tmp_path).startswith("<svg")
    assert "TOP_K1" in command(before, "ops", "TOP_K1")
    assert "NumPy" in command(before, "devices")


MODEL = r"""{
"resources": {
    "x": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "data\\x.npy"}},
    "y": {"initialValuesDataType": "FLOAT32", "initialValues": {"value": 0, "valueCount": 2}},
    "i": {"initialValuesDataType": "UINT32", "initialValues": {"value": 0, "valueCount": 2}}},
"dispatchables": {"top": {"type": "DML_OPERATOR_TOP_K1", "desc": {
    "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 4]},
    "OutputValueTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 2]},
    "OutputIndexTensor": {"DataType": "UINT32", "Sizes": [1, 1, 1, 2]},
    "Axis": 3, "K": 2, "AxisDirection": "DECREASING"}}},
"commands": [
    {"type": "dispatch", "dispatchable": "top", "bindings": {
        "InputTensor": "x", "OutputValueTensor": "y", "OutputIndexTensor": "i"}},
    {"type": "print", "resource": "y"},
    {"type": "writeFile", "resource": "y", "targetPath": "sub\\y.npy"}]
}"""
