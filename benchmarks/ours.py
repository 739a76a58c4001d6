"""Our own library as a contestant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

import anydml as dml
from benchmarks.gate import Results
from benchmarks.jobs import MANY_RESULTS, Array, Job
from benchmarks.measure import Contestant

NAME: Final = "anydml"
_DEFAULTS: Final = {"axis": 0, "largest": True, "reduction": None, "batch_dims": 0}


def function(job: Job, outputs: Results | None = None) -> Contestant:
    """The array function, with required arguments only.

    `outputs` are arrays for the results, one for each.
    """
    options = {name: value for name, value in job.options.items() if _needed(job, name, value)}
    called = getattr(dml, job.operation)
    if outputs is not None:
        called = partial(called, out=outputs if job.operation in MANY_RESULTS else outputs[0])
    match job.operation:
        case "top_k":
            call = partial(called, *job.arrays, options.pop("k"), **options)
        case "split":
            call = partial(called, *job.arrays, options.pop("sections"), **options)
        case "join":
            call = partial(called, job.arrays, **options)
        case _:
            call = partial(called, *job.arrays, **options)
    return Contestant(NAME, f"dml.{job.operation}", call, results, strict=True)


def dispatch(job: Job) -> Contestant:
    """A compiled operator's dispatch, into outputs that are there already."""
    call, outputs = _compiled(job)

    def got(_: Any) -> Results:
        if job.operation != "nonzero_coordinates":
            return outputs
        count, rows = outputs
        return (rows[: int(count[0])],)

    return Contestant(NAME, "dispatch", call, got, strict=True)


def results(result: Any) -> Results:
    """What an array function returned, as a plain tuple of arrays."""
    return tuple(result) if isinstance(result, tuple) else (result,)


def _needed(job: Job, name: str, value: Any) -> bool:
    if job.operation == "top_k" and name == "axis":
        return bool(value != -1)
    return name not in _DEFAULTS or value != _DEFAULTS[name]


def _compiled(job: Job) -> tuple[Callable[[], None], Results]:
    tensor = dml.TensorDesc.from_array
    x, *others = job.arrays
    desc: dml.Descriptor
    bindings: dict[str, Any]
    outputs: Results
    match job.operation:
        case "top_k":
            k, axis = job.options["k"], job.options["axis"]
            outputs = results(dml.top_k(x, k, axis=axis, index_dtype="uint32"))
            desc = dml.TopK1(
                input_tensor=tensor(x),
                output_value_tensor=tensor(outputs[0]),
                output_index_tensor=tensor(outputs[1]),
                axis=axis % x.ndim,
                k=k,
                axis_direction=dml.AxisDirection(int(job.options["largest"])),
            )
            bindings = {"OutputValueTensor": outputs[0], "OutputIndexTensor": outputs[1]}
        case "nonzero_coordinates":
            outputs = (np.zeros((1,) * x.ndim, np.uint32), np.zeros((x.size, x.ndim), np.uint32))
            desc = dml.NonzeroCoordinates(
                input_tensor=tensor(x),
                output_count_tensor=tensor(outputs[0]),
                output_coordinates_tensor=tensor(outputs[1]),
            )
            bindings = {"OutputCountTensor": outputs[0], "OutputCoordinatesTensor": outputs[1]}
        case "split":
            outputs = dml.split(x, job.options["sections"], axis=job.options["axis"])
            desc = dml.Split(
                input_tensor=tensor(x),
                output_tensors=tuple(map(tensor, outputs)),
                axis=job.options["axis"],
            )
            bindings = {"OutputTensors": outputs}
        case "scatter_elements" | "scatter_nd":
            outputs = (np.zeros_like(x),)
            indices, updates = others
            # A descriptor's tensors are all of one rank.
            updates = updates.reshape((1,) * (x.ndim - updates.ndim) + updates.shape)
            desc = _scatter(job, x, indices, updates)
            bindings = {
                "IndicesTensor": indices,
                "UpdatesTensor": updates,
                "OutputTensor": outputs[0],
            }
        case _:
            raise ValueError(f"operation: no dispatch is measured for {job.operation!r}")
    compiled = dml.Device("cpu").create_operator(desc).compile()
    return partial(compiled.dispatch, InputTensor=x, **bindings), outputs


def _scatter(job: Job, x: Array, indices: Array, updates: Array) -> dml.Descriptor:
    data = dml.TensorDesc.from_array(x)
    tensors = {
        "input_tensor": data,
        "indices_tensor": dml.TensorDesc.from_array(indices),
        "updates_tensor": dml.TensorDesc.from_array(updates),
        "output_tensor": data,
    }
    if job.operation == "scatter_elements":
        return dml.Scatter(**tensors, axis=job.options["axis"])
    return dml.ScatterND(
        **tensors, input_dimension_count=x.ndim, indices_dimension_count=indices.ndim
    )
