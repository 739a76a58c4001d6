"""ONNX Runtime: a session on a model of one node."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from benchmarks.jobs import Array
from benchmarks.peers._peer import Call, Peer, Ways

_QUIET: Final = 4
_OLDER_OPSET: Final = 18
"""The first with every operator and reduction used here; some kernels stop at older ones."""


class ONNXRuntime(Peer):
    """Sessions are made beforehand; what is timed is ``session.run`` on NumPy arrays."""

    name = "ONNX Runtime"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.runtime: Any = import_module("onnxruntime")
        self.onnx: Any = import_module("onnx")
        self.version = self.runtime.__version__

    def top_k(self, x: Array, k: int, axis: int, largest: bool, out: Any = None) -> Ways:
        """TopK."""
        constants = {"k": np.array([k])}
        yield self._node("TopK", [x], out, 2, constants, axis=axis, largest=int(largest))

    def nonzero_coordinates(self, x: Array) -> Ways:
        """NonZero, which has a row for each axis: transposed for the check, untimed."""
        name, run = self._node("NonZero", [x])
        yield name, lambda: [rows.T for rows in run()]

    def scatter_elements(
        self,
        x: Array,
        indices: Array,
        updates: Array,
        axis: int,
        reduction: str | None,
        out: Any = None,
    ) -> Ways:
        """ScatterElements."""
        inputs, mode = [x, indices, updates], reduction or "none"
        yield self._node("ScatterElements", inputs, out, axis=axis, reduction=mode)

    def scatter_nd(
        self, x: Array, indices: Array, updates: Array, reduction: str | None, out: Any = None
    ) -> Ways:
        """ScatterND."""
        yield self._node("ScatterND", [x, indices, updates], out, reduction=reduction or "none")

    def split(self, x: Array, sections: int, axis: int, out: Any = None) -> Ways:
        """Split."""
        yield self._node("Split", [x], out, sections, axis=axis, num_outputs=sections)

    def join(self, *parts: Array, axis: int, out: Any = None) -> Ways:
        """Concat."""
        yield self._node("Concat", parts, out, axis=axis)

    def gather(self, x: Array, indices: Array, axis: int, out: Any = None) -> Ways:
        """Gather."""
        yield self._node("Gather", [x, indices], out, axis=axis)

    def gather_elements(self, x: Array, indices: Array, axis: int, out: Any = None) -> Ways:
        """GatherElements."""
        yield self._node("GatherElements", [x, indices], out, axis=axis)

    def gather_nd(self, x: Array, indices: Array, batch_dims: int, out: Any = None) -> Ways:
        """GatherND."""
        yield self._node("GatherND", [x, indices], out, batch_dims=batch_dims)

    def _node(
        self,
        operator: str,
        inputs: Sequence[Array],
        out: Any = None,
        outputs: int = 1,
        constants: dict[str, Array] | None = None,
        **attributes: Any,
    ) -> tuple[str, Call]:
        """The operator, and a call that runs one node on the inputs.

        `out` is bound beforehand, as the inputs then are; constants are inputs that the model has.
        """
        helper = self.onnx.helper
        fed = {f"input{i}": array for i, array in enumerate(inputs)}
        names = [f"output{i}" for i in range(outputs)]
        held = constants or {}
        node = helper.make_node(operator, [*fed, *held], names, **attributes)
        graph = helper.make_graph(
            [node],
            operator,
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in fed.items()
            ],
            [helper.make_empty_tensor_value_info(name) for name in names],
            [self.onnx.numpy_helper.from_array(value, name) for name, value in held.items()],
        )
        session = self._session(graph)
        if out is None:
            return operator, functools.partial(session.run, names, fed)
        bound = session.io_binding()
        for name, array in fed.items():
            bound.bind_cpu_input(name, array)
        for name, array in zip(names, out if isinstance(out, tuple) else [out], strict=True):
            bound.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        return f"{operator}, IOBinding", functools.partial(session.run_with_iobinding, bound)

    def _session(self, graph: Any) -> Any:
        """On the newest opset that is taken, or on an older one where only that has a kernel."""
        try:
            return self._open(graph, self._newest_opset)
        except Exception:  # its exceptions share no class of their own
            with contextlib.suppress(Exception):
                return self._open(graph, _OLDER_OPSET)
            raise

    @functools.cached_property
    def _newest_opset(self) -> int:
        helper = self.onnx.helper
        value = functools.partial(
            helper.make_tensor_value_info, elem_type=self.onnx.TensorProto.FLOAT, shape=[1]
        )
        graph = helper.make_graph(
            [helper.make_node("Identity", ["x"], ["y"])], "identity", [value("x")], [value("y")]
        )
        for opset in range(self.onnx.defs.onnx_opset_version(), _OLDER_OPSET, -1):
            try:
                self._open(graph, opset)
            except Exception:  # newer than this runtime
                continue
            return opset
        return _OLDER_OPSET

    def _open(self, graph: Any, opset: int) -> Any:
        helper = self.onnx.helper
        opsets = [helper.make_opsetid("", opset)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets)
        )
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = _QUIET
        return self.runtime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
