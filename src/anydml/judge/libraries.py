"""The functions of each library that are judged, on the library's own arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import numpy as np

import anydml
from anydml.judge.promises import UntriedError

Functions = Mapping[str, Callable[..., Any]]


class Library:
    """A library on one device: its arrays, and its functions by what is judged."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.functions: Functions = {}

    def array(self, x: Any) -> Any:
        """Return a new array of the library, of NumPy's elements and strides where it has them."""
        return x

    def numpy(self, x: Any) -> Any:
        """Return NumPy's array of a result."""
        return np.asarray(x)

    def threads(self, count: int) -> contextlib.AbstractContextManager[None]:
        """Set the number of threads; raise `UntriedError` if the library cannot."""
        raise UntriedError

    def gradient(self, function: Callable[..., Any], of: int, weights: Any, given: Any) -> Any:
        """Return a function's gradient; raise `UntriedError` if the library has none."""
        raise UntriedError

    def replay(self, function: Callable[..., Any], other: Any, given: Any) -> Any:
        """Return what a CUDA graph gives for another first array, or raise `UntriedError`."""
        raise UntriedError

    def taken(self, x: Any) -> Any:
        """Return arguments with the library's arrays, which a function may write into."""
        if isinstance(x, list | tuple):
            return [self.taken(one) for one in x]
        if isinstance(x, np.ndarray):
            return self.array(x if x.base is not None else x.copy())
        return x


@contextlib.contextmanager
def _set_threads(set_count: Callable[[int], object], count: int, before: int) -> Iterator[None]:
    set_count(count)
    try:
        yield
    finally:
        set_count(before)


def _of_numpy(xp: Any, add_at: Callable[..., Any]) -> Functions:
    """Return the functions of NumPy, which CuPy has too."""

    def put(x: Any, indices: Any, updates: Any) -> Any:
        x[indices] = updates
        return x

    def add(x: Any, indices: Any, updates: Any) -> Any:
        y = x.copy()
        add_at(y, indices, updates)
        return y

    return {
        "nonzero": xp.argwhere,
        "scatter": lambda x, indices, updates: put(x.copy(), indices, updates),
        "scatter_into": put,
        "scatter_add": add,
        "gather": lambda x, indices: xp.take(x, indices, 0),
        "split": xp.split,
        "join": xp.concatenate,
    }


class NumPy(Library):
    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self.functions = _of_numpy(np, np.add.at)

    def threads(self, count: int) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # these functions have one thread


class CuPy(Library):
    def __init__(self, device: str = "cuda") -> None:
        super().__init__(device)
        self.xp: Any = import_module("cupy")
        self.functions = _of_numpy(self.xp, self.xp.add.at)

    def array(self, x: Any) -> Any:
        return self.xp.asarray(x)

    def numpy(self, x: Any) -> Any:
        return self.xp.asnumpy(x)


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, tuple | list) else found


class PyTorch(Library):
    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self.torch: Any = (torch := import_module("torch"))
        self.functions = {
            "top_k": torch.topk,
            "nonzero": torch.nonzero,
            "scatter": lambda x, indices, updates: x.scatter(0, indices, updates),
            "scatter_into": lambda x, indices, updates: x.scatter_(0, indices, updates),
            "scatter_add": lambda x, indices, updates: x.scatter_add(0, indices, updates),
            "gather": lambda x, indices: torch.index_select(x, 0, indices),
            "split": lambda x, count: x.tensor_split(count),
            "join": torch.cat,
        }

    def array(self, x: Any) -> Any:
        # PyTorch has no negative strides; a device gets a packed copy.
        if any(stride < 0 for stride in x.strides):
            x = x.copy()
        return self.torch.from_numpy(np.asarray(x)).to(self.device)

    def numpy(self, x: Any) -> Any:
        return x.detach().cpu().numpy()

    def gradient(self, function: Callable[..., Any], of: int, weights: Any, given: Any) -> Any:
        arrays = self.taken(given)
        arrays[of].requires_grad_()
        result = _first(function(*arrays))
        return self.torch.autograd.grad(result, arrays[of], self.array(weights))[0]

    def replay(self, function: Callable[..., Any], other: Any, given: Any) -> Any:
        if self.device != "cuda":
            raise UntriedError
        arrays, cuda = self.taken(given), self.torch.cuda
        function(*arrays)  # what is compiled or chosen in a first call
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            found = function(*arrays)
        arrays[0].copy_(self.array(other))
        graph.replay()
        return found

    def threads(self, count: int) -> contextlib.AbstractContextManager[None]:
        return _set_threads(self.torch.set_num_threads, count, self.torch.get_num_threads())


class JAX(Library):
    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        jax = import_module("jax")
        if not jax.config.jax_enable_x64:
            jax.config.update("jax_enable_x64", True)
        self.jnp: Any = import_module("jax.numpy")
        self.vjp = jax.vjp
        self.place = jax.devices("gpu" if device == "cuda" else "cpu")[0]
        self.put = jax.device_put
        jnp, lax = self.jnp, import_module("jax.lax")
        self.functions = {
            "top_k": lax.top_k,
            "nonzero": jnp.argwhere,
            "scatter": lambda x, indices, updates: x.at[indices].set(updates),
            "scatter_add": lambda x, indices, updates: x.at[indices].add(updates),
            "gather": lambda x, indices: jnp.take(x, indices, 0),
            "split": jnp.split,
            "join": jnp.concatenate,
        }

    def array(self, x: Any) -> Any:
        return self.put(x, self.place)

    def gradient(self, function: Callable[..., Any], of: int, weights: Any, given: Any) -> Any:
        before, (x, *behind) = self.taken(given[:of]), self.taken(given[of:])
        _, back = self.vjp(lambda x: _first(function(*before, x, *behind)), x)
        return back(self.array(weights))[0]


class Dask(Library):
    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self.da: Any = (da := import_module("dask.array"))
        self.functions = {
            "top_k": lambda x, k: (da.topk(x, k), da.argtopk(x, k)),
            "nonzero": da.argwhere,
            "gather": lambda x, indices: da.take(x, indices, 0),
            "join": da.concatenate,
        }

    def array(self, x: Any) -> Any:
        return self.da.from_array(x, chunks=max(1, -(-max(x.shape, default=1) // 2)))

    def numpy(self, x: Any) -> Any:
        return np.asarray(x.compute())


class OnnxRuntime(Library):
    """Models of one node, which ONNX Runtime runs on the CPU."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self.onnx: Any = import_module("onnx")
        self._ready: dict[Any, Callable[[list[Any]], list[Any]]] = {}
        self._threads = 0  # the library's own choice
        self._load()
        self.functions = {
            "top_k": lambda x, k: self.node("TopK", [x], 2, np.array([k])),
            "nonzero": lambda x: self.node("NonZero", [x]).T,
            "scatter": lambda *arrays: self.node("ScatterElements", [*arrays]),
            "scatter_add": lambda *arrays: self.node("ScatterElements", [*arrays], reduction="add"),
            "gather": lambda x, indices: self.node("Gather", [x, indices], axis=0),
            "split": lambda x, count: self.node("Split", [x], count, num_outputs=count, axis=0),
            "join": lambda arrays: self.node("Concat", [*arrays], axis=0),
        }

    def _load(self) -> None:
        self.runtime: Any = import_module("onnxruntime")

    def _compile(self, model: bytes) -> Callable[[list[Any]], list[Any]]:
        options = self.runtime.SessionOptions()
        options.log_severity_level = 4  # errors are answers here
        options.intra_op_num_threads = self._threads
        session = self.runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [x.name for x in session.get_inputs()]
        return lambda arrays: session.run(None, dict(zip(names, arrays, strict=True)))

    def threads(self, count: int) -> contextlib.AbstractContextManager[None]:
        return _set_threads(partial(setattr, self, "_threads"), count, 0)

    def node(
        self, kind: str, arrays: list[Any], count: int = 1, constant: Any = None, **attributes: Any
    ) -> Any:
        """Run one node of opset 18, whose last input may be constant."""
        helper = self.onnx.helper
        types = tuple((helper.np_dtype_to_tensor_dtype(x.dtype), x.ndim) for x in arrays)
        data = None if constant is None else constant.tobytes()
        key = kind, types, count, data, self._threads, *attributes.items()
        if key not in self._ready:
            inputs = [helper.make_tensor_value_info(f"x{i}", of, [f"d{i}_{a}" for a in range(rank)])
                      for i, (of, rank) in enumerate(types)]  # fmt: skip
            held = [] if data is None else [self.onnx.numpy_helper.from_array(constant, "c")]
            outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(count)]
            names = [x.name for x in (*inputs, *held)]
            node = helper.make_node(kind, names, [y.name for y in outputs], **attributes)
            graph = helper.make_graph([node], "judged", inputs, outputs, held)
            opset = [helper.make_opsetid("", 18)]
            model = helper.make_model(graph, opset_imports=opset, ir_version=9)
            self._ready[key] = self._compile(model.SerializeToString())
        found = self._ready[key]([np.ascontiguousarray(x) for x in arrays])
        return found[0] if count == 1 else found


class OpenVINO(OnnxRuntime):
    """Models of one node, which OpenVINO runs on the CPU."""

    def _load(self) -> None:
        self.core: Any = import_module("openvino").Core()

    def _compile(self, model: bytes) -> Callable[[list[Any]], list[Any]]:
        settings = {"INFERENCE_NUM_THREADS": self._threads} if self._threads else {}
        compiled = self.core.compile_model(self.core.read_model(model), "CPU", settings)
        return lambda arrays: [x.copy() for x in compiled(arrays).values()]


class AnyDML(Library):
    """anydml, on NumPy's arrays, or on PyTorch's where they are on a GPU."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self._of = NumPy() if device == "cpu" else PyTorch(device)
        self.functions = {
            "top_k": anydml.top_k,
            "nonzero": anydml.nonzero_coordinates,
            "scatter": anydml.scatter_elements,
            "scatter_into": lambda x, *rest: anydml.scatter_elements(x, *rest, out=x),
            "scatter_add": lambda *arrays: anydml.scatter_elements(*arrays, reduction="add"),
            "gather": anydml.gather,
            "split": anydml.split,
            "join": anydml.join,
        }

    def array(self, x: Any) -> Any:
        return self._of.array(x)

    def numpy(self, x: Any) -> Any:
        if self.device == "cuda":
            anydml.synchronize()  # which raises what kernels have found
        return self._of.numpy(x)

    def gradient(self, *arguments: Any) -> Any:
        return self._with_torch().gradient(*arguments)

    def replay(self, *arguments: Any) -> Any:
        return self._with_torch().replay(*arguments)

    def _with_torch(self) -> Library:  # whose arrays have gradients and graphs
        if _version("torch") is None:
            raise UntriedError
        return PyTorch(self.device)

    def threads(self, count: int) -> contextlib.AbstractContextManager[None]:
        return _set_threads(anydml.set_num_threads, count, anydml.get_num_threads())


LIBRARIES: Final[Mapping[str, tuple[type[Library], tuple[str, ...], tuple[str, ...]]]] = {
    "anydml": (AnyDML, ("anydml",), ("cpu", "cuda")),
    "numpy": (NumPy, ("numpy",), ("cpu",)),
    "torch": (PyTorch, ("torch",), ("cpu", "cuda")),
    "jax": (JAX, ("jax",), ("cpu", "cuda")),
    "onnxruntime": (OnnxRuntime, ("onnxruntime", "onnx"), ("cpu",)),
    "openvino": (OpenVINO, ("openvino", "onnx"), ("cpu",)),
    "dask": (Dask, ("dask",), ("cpu",)),
    "cupy": (CuPy, ("cupy",), ("cuda",)),
}
"""Each library's class, the packages that it needs, and its devices."""


def versions_here(device: str = "cpu") -> dict[str, str]:
    """The libraries that are installed and work on a kind of device, with their versions."""
    found = {}
    for name, (_, packages, devices) in LIBRARIES.items():
        # CuPy has a distribution for each version of CUDA.
        every = [
            ("cupy", "cupy-cuda12x", "cupy-cuda13x") if p == "cupy" else (p,) for p in packages
        ]
        here = [next(filter(None, map(_version, names)), None) for names in every]
        if device in devices and all(here):
            found[name] = str(here[0])
    return found


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
