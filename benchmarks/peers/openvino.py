"""OpenVINO on the CPU: a compiled model of one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from benchmarks.jobs import Array
from benchmarks.peers._peer import Call, Peer, Ways

_REDUCE: Final = {None: "none", "add": "sum", "mul": "prod", "min": "min", "max": "max"}

_MOST_COMPARED: Final = 2**28


class OpenVINO(Peer):
    """Models are compiled beforehand; what is timed is a request's ``infer`` on NumPy arrays."""

    name = "OpenVINO"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.openvino: Any = import_module("openvino")
        self.opset: Any = import_module("openvino.opset15")
        self.core = self.openvino.Core()
        self.version = self.openvino.__version__.partition("-")[0]

    def top_k(self, x: Array, k: int, axis: int, largest: bool, out: Any = None) -> Ways:
        """TopK-11, whose ties are in order of their indices if it is stable.

        The stable one compares each element with k others; it is left out where that takes seconds.
        """
        mode = "max" if largest else "min"
        for stable in (True, False) if x.size * k < _MOST_COMPARED else (False,):
            yield self._model(
                "TopK, stable" if stable else "TopK", [x], out,
                lambda x, s=stable: self.opset.topk(x, k, axis, mode, "value", "i64", s),
            )  # fmt: skip

    def nonzero_coordinates(self, x: Array) -> Ways:
        """NonZero, which has a row for each axis: transposed for the check, untimed."""
        name, run = self._model("NonZero", [x], None, lambda x: self.opset.non_zero(x, "i64"))
        yield name, lambda: [rows.T for rows in run()]

    def scatter_elements(
        self, x: Array, indices: Array, updates: Array, axis: int, reduction: str | None,
        out: Any = None,
    ) -> Ways:  # fmt: skip
        """ScatterElementsUpdate-12."""
        mode = _REDUCE[reduction]
        yield self._model(
            "ScatterElementsUpdate", [x, indices, updates], out,
            lambda *nodes: self.opset.scatter_elements_update(*nodes, axis, mode),
        )  # fmt: skip

    def scatter_nd(
        self, x: Array, indices: Array, updates: Array, reduction: str | None, out: Any = None
    ) -> Ways:
        """ScatterNDUpdate-15; ScatterUpdate for rows."""
        yield self._model(
            "ScatterNDUpdate", [x, indices, updates], out,
            lambda *nodes: self.opset.scatter_nd_update(*nodes, _REDUCE[reduction]),
        )  # fmt: skip
        if reduction is None and indices.shape[-1] == 1:
            rows = [x, indices[..., 0], updates]
            update = self.opset.scatter_update
            yield self._model("ScatterUpdate", rows, out, lambda *nodes: update(*nodes, 0))

    def split(self, x: Array, sections: int, axis: int, out: Any = None) -> Ways:
        """VariadicSplit."""
        sizes = [x.shape[axis] // sections] * sections
        split = self.opset.variadic_split
        yield self._model("VariadicSplit", [x], out, lambda x: split(x, axis, sizes))

    def join(self, *parts: Array, axis: int, out: Any = None) -> Ways:
        """Concat."""
        concat = self.opset.concat
        yield self._model("Concat", parts, out, lambda *nodes: concat(nodes, axis))

    def gather(self, x: Array, indices: Array, axis: int, out: Any = None) -> Ways:
        """Gather."""
        gather = self.opset.gather
        yield self._model("Gather", [x, indices], out, lambda x, i: gather(x, i, axis))

    def gather_elements(self, x: Array, indices: Array, axis: int, out: Any = None) -> Ways:
        """GatherElements."""
        gather = self.opset.gather_elements
        yield self._model("GatherElements", [x, indices], out, lambda x, i: gather(x, i, axis))

    def gather_nd(self, x: Array, indices: Array, batch_dims: int, out: Any = None) -> Ways:
        """GatherND."""
        gather = self.opset.gather_nd
        yield self._model("GatherND", [x, indices], out, lambda x, i: gather(x, i, batch_dims))

    def _model(
        self, name: str, inputs: Sequence[Array], out: Any, build: Callable[..., Any]
    ) -> tuple[str, Call]:
        """The operation, and a call that runs it on the inputs.

        Inputs are bound beforehand, and `out` is; otherwise the call copies the results.
        """
        if inputs[0].dtype.kind in "iu" and inputs[0].dtype.itemsize == 8:
            raise TypeError("the CPU plug-in converts integers of 64 bits to 32")
        tensor, parameter = self.openvino.Tensor, self.opset.parameter
        parameters = [parameter(array.shape, array.dtype) for array in inputs]
        outputs = build(*parameters).outputs()
        # Floats of 16 and 32 bits stay what they are.
        settings = {"INFERENCE_NUM_THREADS": self.threads, "INFERENCE_PRECISION_HINT": "f32"}
        compiled = self.core.compile_model(
            self.openvino.Model(outputs, parameters), "CPU", settings
        )
        request = compiled.create_infer_request()
        for i, array in enumerate(inputs):
            request.set_input_tensor(i, tensor(np.ascontiguousarray(array), shared_memory=True))
        if out is None:
            return name, lambda: [*request.infer().values()]
        for i, array in enumerate(out if isinstance(out, tuple) else [out]):
            request.set_output_tensor(i, tensor(array, shared_memory=True))
        return f"{name}, bound", lambda: request.infer(share_outputs=True)
