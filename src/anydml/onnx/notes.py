"""Notes on a node beside its verdict: known mistakes and limits of hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from anydml.core.dtypes import DataType
from anydml.onnx.lower.attention import IGNORED_OF_GROUPS
from anydml.onnx.nodes import Graph
from anydml.onnx.verdict import Judged
from anydml.ops._descriptor import Descriptor

_LARGEST_CHANNEL: Final = 65_535

Note = Callable[[Judged, Graph], str | None]


def _types(item: Judged, graph: Graph) -> tuple[str, str]:
    first, result = item.node.inputs[0], item.node.outputs[0]
    return graph.values[first].type, graph.values[result].type


def _cast(item: Judged, graph: Graph) -> str | None:
    source, target = _types(item, graph)
    if source in ("f16", "f32", "f64") and target == "bool":
        return "the provider truncates before it compares: 0.5 becomes false (ONNX: true)"
    return None


def _groups(item: Judged, graph: Graph) -> str | None:
    ignored = [name for name, default in IGNORED_OF_GROUPS.items()
               if item.node.attributes.get(name, default) != default]  # fmt: skip
    return f"the provider ignores {', '.join(ignored)}" if ignored else None


def _pad(item: Judged, graph: Graph) -> str | None:
    pads = graph.values[item.node.inputs[1]].data if len(item.node.inputs) > 1 else None
    if pads is not None and (pads < 0).any():
        return "the provider computes negative paddings wrongly"
    return None


def _columns(item: Judged, graph: Graph) -> str | None:
    pads = item.node.attributes.get("pads", ())
    half = len(pads) // 2
    if list(pads[:half]) != list(pads[half:]):
        return "the provider takes the paddings of the start for both ends"
    return None


def _per_axis(item: Judged, graph: Graph) -> str | None:
    scale = graph.values[item.node.inputs[1]].sizes
    if item.node.version >= 21 and scale is not None and len(scale) == 1 and scale != (1,):
        return "the provider ignores axis from version 21 on: E_INVALIDARG, or wrong values"
    return None


def _reciprocal(item: Judged, graph: Graph) -> str | None:
    found = _per_axis(item, graph)
    if found is None and item.node.operator == "QuantizeLinear":
        return (
            "hardware multiplies by the FLOAT32 reciprocal of the scale, so results may differ "
            "by 1 from a division"
        )
    return found


def _clip(item: Judged, graph: Graph) -> str | None:
    kind, _ = _types(item, graph)
    given = [name for name in item.node.inputs[1:] if name]
    if kind == "i64" and len(given) < 2:
        return "on INT64 without both bounds DirectML gives wrong values"
    return None


def _squeeze(item: Judged, graph: Graph) -> str | None:
    if item.node.version >= 13 and len(item.node.inputs) < 2:
        return "the provider fails without axes"
    return None


def _resize(item: Judged, graph: Graph) -> str | None:
    given, version = item.node.attributes, item.node.version
    if version < 11:
        scales = given.get("scales")
        if scales is None and len(item.node.inputs) > 1:
            scales = graph.values[item.node.inputs[1]].data
        whole = scales is not None and all(float(scale).is_integer() for scale in scales)
        if given.get("mode", "nearest") == "nearest" and whole:
            return None
        return "the provider takes the centres of elements (half_pixel), ONNX their begins"
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return "the provider repeats the edges, where ONNX has extrapolation_value"
    if given.get("antialias", 0) and given.get("mode", "nearest") != "nearest":
        return "DirectML's filter leaves out what lies behind an edge, where ONNX repeats the edge"
    return None


def _regions(item: Judged, graph: Graph) -> str | None:
    if item.node.version < 16:
        return "the provider shifts regions by half an element, and does not enlarge small ones"
    if item.node.attributes.get("coordinate_transformation_mode") == "output_half_pixel":
        return "the provider does not enlarge regions that are smaller than 1"
    return None


def _width(item: Judged, graph: Graph) -> str | None:
    if len(graph.values[item.node.inputs[0]].shape or ()) == 3:
        return (
            "E_INVALIDARG is reported for one spatial dimension, although the page accepts it "
            "(hexgrad/kokoro#79 and 3 more): write it with two, of sizes 1 and the width"
        )
    return None


def _equation(item: Judged, graph: Graph) -> str | None:
    if any(len(graph.values[name].shape or ()) > 4 for name in item.node.inputs):
        return (
            "a crash is reported for tensors of 5 dimensions (microsoft/onnxruntime#26842): write "
            "it as a MatMul of at most 4"
        )
    return None


def _view(item: Judged, graph: Graph) -> str | None:
    if item.place == "refused" or not item.node.attributes.get("allowzero", 0):
        return None
    sizes = graph.values[item.node.inputs[1]].data
    if sizes is not None and -1 not in sizes:
        return None
    return (
        f"E_INVALIDARG{' if a size is -1 in the run' if sizes is None else ''}: with allowzero=1, "
        "which PyTorch's exporter writes with dynamo=True, the provider takes -1 for a size "
        "(pytorch/pytorch#170176); set allowzero to 0"
    )


def _between_quantized(item: Judged, graph: Graph) -> str | None:
    first, result = item.node.inputs[0], item.node.outputs[0]
    nodes = graph.nodes
    if any(first in n.outputs and n.operator == "DequantizeLinear" for n in nodes) and any(
        result in n.inputs and n.operator == "QuantizeLinear" for n in nodes
    ):
        return (
            "ONNX Runtime fuses it with the quantization around it, and the provider has no kernel "
            "for the result: a crash is reported (microsoft/onnxruntime#26882); set the session "
            "option session.disable_quant_qdq to 1"
        )
    return None


_BY_OPERATOR: Final[dict[str, Note | str]] = {
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "Col2Im": _columns,
    "ConvTranspose": _width,
    "DequantizeLinear": _per_axis,
    "Einsum": _equation,
    "FastGelu": "DirectML computes the exact GELU, not the approximation by tanh",
    "GroupQueryAttention": _groups,
    "LeakyRelu": _between_quantized,
    "LpNormalization": "the provider divides by 1e-5 at least",
    "MeanVarianceNormalization": "the provider adds 1e-5 to the variance, ONNX 1e-9 to its root",
    "Pad": _pad,
    "QuantizeLinear": _reciprocal,
    "ReduceLogSumExp": "infinity is reported for large elements (microsoft/onnxruntime#29099)",
    "Reshape": _view,
    "Resize": _resize,
    "RoiAlign": _regions,
    "Softmax": _between_quantized,
    "Squeeze": _squeeze,
    "Upsample": _resize,
}


def _is_padded_half(fields: Mapping[str, Any]) -> bool:
    is_half = fields["input_tensor"].data_type is DataType.FLOAT16
    return is_half and any((*fields["start_padding"], *fields["end_padding"]))


def _hardware(desc: Descriptor) -> Iterator[str]:
    """Yield what drivers are known to refuse although the page allows it."""
    fields = vars(desc)
    if desc.NAME == "QUANTIZED_LINEAR_CONVOLUTION" and fields["filter_scale_tensor"].sizes[1] > 1:
        yield "drivers are known to refuse a filter that is quantized per channel"
    if desc.NAME == "ELEMENT_WISE_QUANTIZE_LINEAR" and fields["zero_point_tensor"] is None:
        yield "drivers are known to refuse quantization without a zero point"
    if desc.NAME in ("MATRIX_MULTIPLY_INTEGER", "QUANTIZED_LINEAR_MATRIX_MULTIPLY"):
        zeros = [fields[f"{side}_zero_point_tensor"] for side in "ab"]
        if any(zero is not None and any(n > 1 for n in zero.sizes[:-2]) for zero in zeros):
            yield "drivers are known to refuse zero points for each matrix of a batch"
    if desc.NAME.startswith("LP_POOLING") and _is_padded_half(fields):
        yield "infinity is reported for FLOAT16 with paddings (microsoft/onnxruntime#26533)"
    if desc.NAME == "GEMM" and fields["output_tensor"].sizes[1] > _LARGEST_CHANNEL:
        yield f"drivers are known to fail with more than {_LARGEST_CHANNEL} channels"


def notes(item: Judged, graph: Graph) -> list[str]:
    """List the provider's known mistakes and the limits of drivers for a node that runs."""
    if item.place == "cpu" or item.row is None:
        return []
    note = _BY_OPERATOR.get(item.node.operator)
    found = note(item, graph) if callable(note) else note
    return [*([found] if found else []), *(t for d in item.descriptors for t in _hardware(d))]
