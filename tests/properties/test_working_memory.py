"""What a computed operator says it takes is at least what a call takes, and not far from it."""

import tracemalloc

import numpy as np
import pytest

import anydml as dml
from anydml.devices.backends._blocks import block_count, blocks
from anydml.devices.backends._computed import call_nbytes
from anydml.ops._fields import Role
from anydml.ops.activations import FUSABLE

X = (2, 32, 40, 40)
PADS = {"start_padding": (1, 1), "end_padding": (1, 1)}
WINDOW = {"strides": (1, 1), "window_size": (3, 3), **PADS}
FILTER = {"strides": (1, 1), "dilations": (1, 1), "output_padding": (0, 0), "group_count": 1,
          "mode": "CROSS_CORRELATION", "direction": "FORWARD", **PADS}  # fmt: skip
GEMM = {"trans_a": "NONE", "trans_b": "NONE", "alpha": 2.0, "beta": 2.0}

NARROW, WIDE = (1, 8, 10, 160), (1, 8, 160, 10)
PLACES = {"scales": (1, 1, 16, 1 / 16), "input_pixel_offsets": (0.5,) * 4,
          "output_pixel_offsets": (-0.5,) * 4, "interpolation_mode": "LINEAR"}  # fmt: skip

ATTENTION = {"scale": 0.5, "mask_filter_value": -1e4, "mask_type": "NONE"}
REGIONS = {"interpolation_mode": "LINEAR", "spatial_scale_x": 20.0, "spatial_scale_y": 20.0,
           "input_pixel_offset": 0.5, "output_pixel_offset": -0.5, "minimum_samples_per_output": 3,
           "maximum_samples_per_output": 9, "align_regions_to_corners": False}  # fmt: skip
IMAGES, MADE = (2, 1, 40, 40), (300, 1, 7, 7)
PICKED = {"output_tensor": dml.TensorDesc("FLOAT32", MADE), "out_of_bounds_input_value": 0.0,
          **REGIONS}  # fmt: skip
BLOCKS = {"window_sizes": (3, 3), "strides": (1, 1), "dilations": (1, 1), **PADS}

CASES = {
    "gemm": (dml.Gemm, [(300, 300), (300, 300), (300, 300)], {**GEMM, "trans_a": "TRANSPOSE"}),
    "outer product": (dml.Gemm, [(500, 1), (1, 500), (500, 500)], GEMM),
    "convolution": (dml.Convolution, [X, (32, 32, 3, 3), (1, 32, 1, 1)], FILTER),
    "one output channel": (dml.Convolution, [X, (1, 32, 3, 3)], FILTER),
    "flipped": (dml.Convolution, [X, (32, 32, 3, 3)], {**FILTER, "mode": "CONVOLUTION"}),
    "output padding": (
        dml.Convolution, [X, (32, 32, 1, 1), (1, 32, 1, 1)], {**FILTER, "output_padding": (1, 1)}
    ),
    "depthwise": (
        dml.Convolution, [X, (32, 1, 3, 3), (1, 32, 1, 1)], {**FILTER, "group_count": 32}
    ),
    "transposed": (
        dml.Convolution, [X, (32, 16, 3, 3), (1, 16, 1, 1)],
        {**FILTER, "direction": "BACKWARD", "strides": (2, 2)},
    ),
    "resampled": (
        dml.Resample1, [NARROW], {**PLACES, "output_tensor": dml.TensorDesc("FLOAT32", WIDE)}
    ),
    "resampled backward": (
        dml.ResampleGrad, [WIDE],
        {**PLACES, "output_gradient_tensor": dml.TensorDesc("FLOAT32", NARROW)},
    ),
    "batch normalization": (
        dml.BatchNormalization, [X, *[(1, 32, 1, 1)] * 4], {"spatial": True, "epsilon": 0.5}
    ),
    "mean backward": (
        dml.AveragePoolingGrad, [X],
        {**WINDOW, "include_padding": False,
         "output_gradient_tensor": dml.TensorDesc("FLOAT32", X)},
    ),
    "maximum backward": (dml.MaxPoolingGrad, [X, X], {**WINDOW, "dilations": (1, 1)}),
    "average": (dml.AveragePooling, [X], {**WINDOW, "include_padding": False}),
    "power": (dml.LpPooling, [X], {**WINDOW, "p": 3}),
    "high power": (dml.LpPooling, [X], {**WINDOW, "p": 600}),
    "maximum": (dml.MaxPooling, [X], WINDOW),
    "indices": (dml.MaxPooling1, [X], WINDOW),
    "attention": (dml.MultiheadAttention, [(1, 200, 256)] * 3, {**ATTENTION, "head_count": 4}),
    "maxima of regions": (
        dml.RoiPooling, [IMAGES, (1, 1, 300, 5)], {"spatial_scale": 1.0, "pooled_size": (7, 7)}
    ),
    "mean of samples": (
        dml.RoiAlign1, [IMAGES, (300, 4), (300,)], {**PICKED, "reduction_function": "AVERAGE"}
    ),
    "maximum of samples": (
        dml.RoiAlign1, [IMAGES, (300, 4), (300,)], {**PICKED, "reduction_function": "MAX"}
    ),
    "mean of samples backward": (
        dml.RoiAlignGrad, [IMAGES, MADE, (300, 4), (300,)],
        {**REGIONS, "reduction_function": "AVERAGE"},
    ),
    "maximum of samples backward": (
        dml.RoiAlignGrad, [IMAGES, MADE, (300, 4), (300,)],
        {**REGIONS, "reduction_function": "MAX"},
    ),
    "windows as columns": (dml.Unfold, [X], BLOCKS),
    "columns as windows": (
        dml.Fold, [(2, 288, 1600)], {**BLOCKS, "output_tensor": dml.TensorDesc("FLOAT32", X)}
    ),
    "indices of large windows": (dml.MaxPooling1, [X], {**WINDOW, "window_size": (42, 41)}),
}  # fmt: skip


SCORES = {
    # Products of all queries and keys, which only XLA holds at once, are 200 times the inputs.
    "long sequences": (
        dml.MultiheadAttention, [(1, 900, 12)] * 3, {**ATTENTION, "head_count": 12}
    ),
    "many heads": (
        dml.MultiheadAttention1, [(1, 1, 3000), (1, 900, 1), (1, 900, 1)],
        {**ATTENTION, "query_head_count": 3000, "key_value_head_count": 1},
    ),
}  # fmt: skip


def type_of(info, data_type):
    return "UINT32" if info.name == "BatchIndicesTensor" else data_type


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("case", [*CASES, *SCORES])
def test_a_call_takes_what_is_said_at_most(case, data_type, device):
    kind, sizes, arguments = {**CASES, **SCORES}[case]
    infos = kind.tensor_fields(Role.INPUT)
    inputs = {
        info.attribute: dml.TensorDesc(type_of(info, data_type), size)
        for info, size in zip(infos, sizes, strict=False)
    }
    desc = kind.with_outputs(**inputs, **arguments)
    bound = {
        path: np.ones(tensor.sizes, tensor.data_type.numpy) for path, tensor, _ in desc.tensors()
    }
    compiled = dml.Device(device).create_operator(desc).compile()
    (call,) = compiled.program.calls
    slots = (*compiled.program.inputs, *compiled.program.outputs)
    messages = call_nbytes(call, [slot.spec for slot in slots])
    compiled.dispatch(**bound)
    tracemalloc.start()
    compiled.dispatch(**bound)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert messages / 40 < peak <= messages


LARGE = (1, 1, 500, 601)
KERNELS = {
    dml.Cast: [("FLOAT32", LARGE), ("UINT8", LARGE)],
    dml.ElementWiseIdentity: [("UINT8", LARGE), ("UINT8", LARGE)],
    dml.Upsample2D: [("FLOAT16", LARGE), ("FLOAT16", (1, 1, 500, 1202))],
    dml.ReverseSubsequences: [("UINT8", LARGE), ("UINT32", (1, 1, 500, 1)), ("UINT8", LARGE)],
}
ATTRIBUTES = {
    dml.ElementWiseIdentity: {"scale_bias": (2.0, 1.0)},
    dml.Upsample2D: {"scale_size": (2, 1), "interpolation_mode": "LINEAR"},
    dml.ReverseSubsequences: {"axis": 3},
}


@pytest.mark.parametrize("kind", KERNELS, ids=lambda kind: kind.NAME)
def test_native_operators_on_the_reference_device_take_what_is_said_at_most(kind):
    names = [info.attribute for info in kind.tensor_fields()]
    tensors = {n: dml.TensorDesc(*t) for n, t in zip(names, KERNELS[kind], strict=True)}
    desc = kind(**tensors, **ATTRIBUTES.get(kind, {}))
    bound = {
        path: np.ones(tensor.sizes, tensor.data_type.numpy) for path, tensor, _ in desc.tensors()
    }
    compiled = dml.Device("reference").create_operator(desc).compile()
    tracemalloc.start()
    compiled.dispatch(**bound)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert compiled.working_nbytes / 40 < peak <= compiled.working_nbytes


def chain(tensor):
    graph = dml.GraphBuilder()
    x = graph.input("x", tensor)
    value = graph.activation_sigmoid(graph.subtract(graph.multiply(x, x), x))
    return graph.build(y=graph.clip(value, min=0.25, max=0.75))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("sizes", [(2_000_003,), (30, 70_001), (4, 9, 60_000), (2_000_000, 1)])
def test_elementwise_calls_take_a_block_for_each_thread(sizes, data_type, threads):
    tensor = dml.TensorDesc(data_type, sizes)
    x, y = (np.ones(sizes, tensor.data_type.numpy) for _ in range(2))
    cpu, reference = dml.Device("cpu"), dml.Device("reference")
    power = dml.ElementWiseConstantPow(input_tensor=tensor, output_tensor=tensor, exponent=3.5)
    for compile_on, bound in (
        (
            lambda device: device.create_operator(power).compile(),
            {"InputTensor": x, "OutputTensor": y},
        ),
        (lambda device: device.compile_graph(chain(tensor)), {"x": x, "y": y}),
    ):
        compiled = compile_on(cpu)
        with dml.num_threads(threads):
            messages = compiled.working_nbytes
            tracemalloc.start()
            compiled.dispatch(**bound)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert messages / 40 < peak <= messages
        assert messages < threads * compile_on(reference).working_nbytes / 10


def test_other_devices_compute_all_elements_at_once():
    tensor = dml.TensorDesc("FLOAT32", (1000, 1000))
    desc = dml.ElementWiseAbs(input_tensor=tensor, output_tensor=tensor)
    compiled = dml.Device("reference").create_operator(desc).compile()
    assert compiled.working_nbytes == 2 * 16 * 10**6


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("parameter", [1.0, 1000.0])  # the second one needs FLOAT64
@pytest.mark.parametrize("kind", FUSABLE, ids=lambda kind: kind.NAME)
def test_an_activation_takes_what_is_said_at_most(kind, parameter, device):
    tensor = dml.TensorDesc("FLOAT32", (100_000,))
    names = {info.attribute for info in kind.fields()} - {"input_tensor", "output_tensor"}
    arguments = dict.fromkeys(names, parameter)
    desc = kind(input_tensor=tensor, output_tensor=tensor, **arguments)
    compiled = dml.Device(device).create_operator(desc).compile()
    x, y = (np.ones(tensor.sizes, np.float32) for _ in range(2))
    compiled.dispatch(InputTensor=x, OutputTensor=y)
    tracemalloc.start()
    compiled.dispatch(InputTensor=x, OutputTensor=y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= compiled.working_nbytes


@pytest.mark.parametrize("sizes", [(), (7,), (5, 7), (3, 1, 4), (2, 9, 3), (1, 1, 50)])
def test_blocks_are_counted_without_making_them(sizes):
    for maximum in range(1, 60):
        assert block_count(sizes, maximum) == len([*blocks(sizes, maximum)])


@pytest.mark.slow
@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("case", CASES)
def test_xla_takes_no_more(case, data_type):
    """Besides inputs and outputs, and results before they are copied there."""
    jax = pytest.importorskip("jax")
    from anydml.devices.backends import xla
    from anydml.devices.backends._partition import partition
    from anydml.engines._jax import JaxEngine

    kind, sizes, arguments = CASES[case]
    inputs = {
        info.attribute: dml.TensorDesc(type_of(info, data_type), size)
        for info, size in zip(kind.tensor_fields(Role.INPUT), sizes, strict=False)
    }
    compiled = dml.Device("xla").create_operator(kind.with_outputs(**inputs, **arguments)).compile()
    _, runs = partition(compiled.program, xla.joins)
    (run,) = runs.values()
    specs = [run.specs[name] for name in run.inputs]
    operands = [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in specs]
    with xla.x64():
        options = xla.options("cpu")[0]
        call = jax.jit(
            lambda *arrays: xla.compute_run(JaxEngine(), run, arrays), compiler_options=options
        )
        lowered = call.lower(*operands)
        memory = lowered.compile().memory_analysis()
    taken = memory.temp_size_in_bytes + memory.output_size_in_bytes
    assert 0 < taken <= compiled.working_nbytes
