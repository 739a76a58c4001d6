"""What other libraries have and the functions do not take: masks, labels, strings, many axes."""

import subprocess
import sys

import numpy as np
import pytest

import anydml as dml

X = np.arange(6.0).reshape(2, 3)
I = np.array([[0, 1, 0]])  # noqa: E741  # beside X


def calls(odd):
    """Calls with the object in each place where an array may stand."""
    return {
        "x": [
            lambda: dml.top_k(odd, 1),
            lambda: dml.nonzero_coordinates(odd),
            lambda: dml.scatter_elements(odd, I, 0),
            lambda: dml.scatter_nd(odd, I, 0),
            lambda: dml.split(odd, 1),
            lambda: dml.gather(odd, [0]),
            lambda: dml.gather_elements(odd, I),
            lambda: dml.gather_nd(odd, I),
            lambda: dml.cast(odd, "int32"),
            lambda: dml.pad(odd, 1),
            lambda: dml.tile(odd, 1),
            lambda: dml.slice_window(odd, [0], [1]),
            lambda: dml.reverse_subsequences(odd, [1], axis=0),
        ],
        "x[1]": [lambda: dml.top_k([X, odd], 1)],
        "x[0][1]": [lambda: dml.cast([(X, odd)], "int32")],
        "indices": [
            lambda: dml.gather(X, odd),
            lambda: dml.gather_elements(X, odd),
            lambda: dml.gather_nd(X, odd),
            lambda: dml.scatter_nd(X, odd, 0),
        ],
        "updates": [
            lambda: dml.scatter_elements(X, I, odd),
            lambda: dml.scatter_nd(X, [[0]], odd),
        ],
        "lengths": [lambda: dml.reverse_subsequences(X, odd, axis=1)],
        "constant": [lambda: dml.pad(X, 1, "constant", odd)],
        "arrays[1]": [lambda: dml.join([X, odd])],
        "out": [
            lambda: dml.gather(X, [0, 1], out=odd),
            lambda: dml.join([X[:1], X[1:]], out=odd),
            lambda: dml.scatter_elements(X, I, 0, out=odd),
            lambda: dml.nonzero_coordinates(X, out=odd),
        ],
        "out[1]": [
            lambda: dml.split(X, 2, out=(None, odd)),
            lambda: dml.top_k(X, 1, out=(None, odd)),
        ],
    }


def refused_everywhere(odd, *parts):
    for place, cases in calls(odd).items():
        for case in cases:
            with pytest.raises(dml.ArgumentTypeError) as raised:
                case()
            message = str(raised.value)
            assert message.startswith(f"{place}: "), message
            assert all(part in message for part in parts), message
    tensor = dml.TensorDesc("FLOAT64", (2, 3))
    identity = dml.ElementWiseIdentity(input_tensor=tensor, output_tensor=tensor)
    compiled = dml.Device("cpu").create_operator(identity).compile()
    for bindings in ((odd, np.empty((2, 3))), (X, odd)):
        with pytest.raises(dml.BindingError) as raised:
            compiled.dispatch(InputTensor=bindings[0], OutputTensor=bindings[1])
        assert all(part in str(raised.value) for part in parts), raised.value


@pytest.mark.parametrize("mask", [False, np.ma.nomask, X > 2], ids=["no", "none", "some"])
def test_masks(mask):
    odd = np.ma.masked_array(X.copy(), mask)
    refused_everywhere(odd, "without a mask", "use .filled(..) or .data")
    assert odd.data.tolist() == X.tolist()


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("kind", ["DataArray", "Variable"])
def test_arrays_of_xarray(kind, chunked):
    xarray = pytest.importorskip("xarray")
    data = pytest.importorskip("dask.array").from_array(X) if chunked else X
    odd = getattr(xarray, kind)(dims=("a", "b"), data=data)
    refused_everywhere(odd, f"got an object of class xarray.{kind}", "use .data")


@pytest.mark.parametrize(
    "make",
    [
        lambda pandas: pandas.Series([1.0, 2.0]),
        lambda pandas: pandas.DataFrame(X),
        lambda pandas: pandas.Index([0, 1]),
        lambda pandas: pandas.Categorical([0, 1]),
        lambda pandas: pandas.array([1, None, 2]),
    ],
)
def test_objects_of_pandas(make):
    odd = make(pytest.importorskip("pandas"))
    refused_everywhere(
        odd, f"got an object of class pandas.{type(odd).__name__}", "use .to_numpy()"
    )


def test_beside_arrays_of_other_libraries():
    odd = pytest.importorskip("pandas").Series([1.0])
    torch = pytest.importorskip("torch")
    x = torch.tensor(X)
    for tensor in (x, x.clone().requires_grad_()):
        with pytest.raises(dml.ArgumentTypeError, match=r"updates: .* use \.to_numpy"):
            dml.scatter_elements(tensor, torch.tensor(I), odd)


@pytest.mark.parametrize("kind", ["matrix", "recarray", "memmap"])
def test_other_classes_of_numpy(kind, tmp_path):
    x = X.copy().view(np.recarray) if kind == "recarray" else X
    if kind == "matrix":
        with pytest.warns(PendingDeprecationWarning):
            x = np.matrix(X)
    if kind == "memmap":
        x = np.memmap(tmp_path / "x", X.dtype, "w+", shape=X.shape)
        x[:] = X
    assert dml.gather(x, [1], axis=1).tolist() == [[1], [4]]
    assert dml.gather(X, [0, 1], out=x) is x


ODD_MODULES = """
import sys, types
from unittest.mock import MagicMock
import numpy as np, anydml as dml

class Odd(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.fails:
            raise RuntimeError(name)
        return 5

odd, failing = Odd(NAME), Odd(NAME)
odd.fails, failing.fails = False, True
for module in (types.ModuleType(NAME), odd, failing, MagicMock(), None, np):
    sys.modules[NAME] = module
    assert dml.top_k([3, 1, 2], 1).values.tolist() == [3]
    assert dml.top_k(np.arange(4.0), 1, index_dtype="int32").indices.tolist() == [3]
    assert dml.scatter_elements([1, 2], [0], [5]).tolist() == [5, 2]
    assert dml.join([np.float32([1]), np.float32([2])]).tolist() == [1, 2]
    assert dml.slice_window(range(5), [1], [2]).tolist() == [1, 2]
    assert dml.pad([1, 2], 1).tolist() == [0, 1, 2, 0]
    try:
        dml.cast([1, 2], "bfloat16")
    except dml.ArgumentTypeError:
        pass
"""


@pytest.mark.parametrize(
    "name",
    [
        "torch",
        "dask.array",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("jax", "jax.core", "cupy", "ml_dtypes")
        ),
    ],
)
def test_modules_with_a_librarys_name(name):
    code = f"NAME = {name!r}\n{ODD_MODULES}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has these")
def test_strings_of_any_length():
    odd = np.array(["a", "b"], np.dtypes.StringDType())
    for place, cases in calls(odd).items():
        if place.startswith("x["):  # beside numbers of another shape
            continue
        for case in cases:
            with pytest.raises(dml.ArgumentTypeError) as raised:
                case()
            assert str(raised.value).startswith(place), raised.value
            assert "StringDType" in str(raised.value)
    with pytest.raises(dml.ArgumentTypeError, match="array: expected"):
        dml.TensorDesc.from_array(odd)


def test_more_axes_than_numpy_has():
    torch = pytest.importorskip("torch")
    maximum = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
    got = f"expected at most {maximum} axes, got {maximum + 1}"
    odd = torch.zeros((1,) * (maximum + 1))
    for x in (odd, odd.bfloat16(), odd.clone().requires_grad_()):
        with pytest.raises(dml.ArgumentTypeError, match=f"x: {got}"):
            dml.top_k(x, 1)
    with pytest.raises(dml.ArgumentTypeError, match=rf"arrays\[1\]: {got}"):
        dml.join([torch.zeros(1), odd])
    with pytest.raises(dml.ArgumentTypeError, match=f"indices: {got}"):
        dml.gather(torch.zeros(1), odd.long())
    with pytest.raises(dml.ArgumentTypeError, match=f"out: {got}"):
        dml.cast(torch.zeros(1), "float32", out=odd)


def test_dask_over_tensors():
    torch = pytest.importorskip("torch")
    dask = pytest.importorskip("dask.array")
    odd = dask.from_array(np.arange(4.0), chunks=2).map_blocks(torch.from_numpy)
    got = (
        r"got chunks of class torch\.Tensor; use \w+(\[1\])?\.map_blocks\(np\.asarray, dtype=\.\.\)"
    )
    for call in (
        lambda: dml.top_k(odd, 1),
        lambda: dml.gather(np.arange(3), odd),
        lambda: dml.scatter_elements(np.zeros(4), [0, 1, 2, 3], odd),
        lambda: dml.join([np.zeros(2), odd]),
    ):
        with pytest.raises(dml.ArgumentTypeError, match=got):
            call()
    numbers = odd.map_blocks(np.asarray, dtype=np.float64)
    assert dml.top_k(numbers, 1).values.compute().tolist() == [3]


@pytest.mark.parametrize("stride", [-(2**63), 2**63, -(2**64), 2**70])
def test_strides_that_no_kernel_counts(stride):
    with pytest.raises(dml.ArgumentError, match=rf"strides\[0\]: expected .*, got {stride}"):
        dml.slice_window(np.arange(5), [0], [3], [stride])
    assert dml.slice_window(np.arange(5), [0], [3], [1 - 2**63]).tolist() == [2]
