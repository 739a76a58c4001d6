"""The tensors of a model on a device, or in ONNX Runtime with any provider; a model of one node."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from anydml.core._json import short_repr
from anydml.core.errors import DeviceError, ModelError
from anydml.core.extras import name_missing_package
from anydml.devices.backends import NAMES, is_name
from anydml.devices.device import Device
from anydml.onnx.cpu import message_of
from anydml.onnx.model import OnnxModel
from anydml.onnx.read import load_onnx
from anydml.onnx.shapes import tensor_of
from anydml.onnx.table import operand_names

_PLUG_IN = "onnxruntime_ep_"
"""The beginning of the names of packages that contain one provider each."""

_CPU = "CPUExecutionProvider"


def tensors_of(
    model: OnnxModel, side: str, inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], set[str]]:
    """Run a model on one of our devices, or in ONNX Runtime: see `provider_tensors`."""
    if not is_name(side):
        return provider_tensors(model, side, inputs)
    names = [name for name in computed_names(model) if name not in model.outputs]
    return dict(model.compile(Device(side), names)(**inputs)), set()


def provider_tensors(
    model: OnnxModel, provider: str, inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], set[str]]:
    """Run a model in ONNX Runtime with a provider.

    ONNX Runtime ends the process for some invalid models: run the model here first.

    Returns
    -------
    tensors : dict of str to array
        Every tensor that a node computes, by name, in the order of the model, and the outputs.
    on_cpu : set of str
        Names of nodes that the provider leaves to the CPU.

    Raises
    ------
    DeviceError
        There is no such provider here.
    ModelError
        The provider fails; the message is its own.
    """
    proto = _copied(model)
    for tensor in proto.graph.initializer:
        if tensor.data_location == 1:  # EXTERNAL
            tensor.CopyFrom(tensor_of(model.source.constants[tensor.name], load_onnx()))
    known = {output.name for output in proto.graph.output}
    names = [*dict.fromkeys([*computed_names(model), *model.outputs])]
    for name in names:
        if name not in known:
            proto.graph.output.add().name = name
    options, providers = session_options(provider)
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers)
        results = session.run(names, dict(inputs))
    except Exception as error:  # ONNX Runtime's exceptions have no public base
        raise ModelError(f"{provider} fails: {message_of(error)}.") from error
    on_cpu = {
        node.name
        for part in session.get_provider_graph_assignment_info()
        for node in (part.get_nodes() if part.ep_name == _CPU != provider else ())
    }
    return dict(zip(names, results, strict=True)), on_cpu


def _copied(model: OnnxModel) -> Any:
    """A copy of the message with a name for every node, and every input that its kernel reads."""
    proto = load_onnx().ModelProto()
    proto.CopyFrom(model.source.proto)
    known = {name: node for node in model.graph.nodes for name in node.outputs}
    for node in proto.graph.node:
        node.name = node.name or next(iter(node.output), "")
        own = next((known[name] for name in node.output if name in known), None)
        if own is not None:
            node.input.extend(operand_names(own)[len(node.input) :])
    return proto


def computed_names(model: OnnxModel) -> list[str]:
    """The names of the tensors that nodes of the file compute, in the order of the model."""
    computed = {name for node in model.source.proto.graph.node for name in node.output}
    return [name for name in model.names() if name in computed]


def session_options(provider: str, option: str = "--against") -> tuple[Any, list[str] | None]:
    """Options of a session with a provider, and the names of providers if it is built in.

    Raises
    ------
    DeviceError
        There is no such provider here.
    """
    with name_missing_package(option, "anydml[onnxruntime]"):
        import onnxruntime
    if not hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        got = onnxruntime.__version__
        raise DeviceError(f"{option}: expected ONNX Runtime 1.24 or newer, got {got}")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    built_in = onnxruntime.get_available_providers()
    if provider in built_in:
        return options, list(dict.fromkeys([provider, _CPU]))
    found = (m.name for m in pkgutil.iter_modules() if m.name.startswith(_PLUG_IN))
    plug_ins = {name: module for module in map(import_module, found)
                for name in module.get_ep_names()}  # fmt: skip
    if provider not in plug_ins:
        ours = NAMES if option == "--against" else ()
        choices = ", ".join(dict.fromkeys([*built_in, *plug_ins, *ours]))
        raise DeviceError(f"{option}: expected one of {choices}, got {short_repr(provider)}")
    plug_in = plug_ins[provider]
    try:
        onnxruntime.register_execution_provider_library(
            plug_in.__name__, plug_in.get_library_path()
        )
    except Exception as error:  # registered before, or a library that it needs is not there
        if "already registered" not in str(error):
            raise DeviceError(f"{option}: {provider}: {message_of(error)}") from error
    devices = [item for item in onnxruntime.get_ep_devices() if item.ep_name == provider]
    if not devices:
        raise DeviceError(f"{option}: {provider} finds no device on this machine")
    options.add_provider_for_devices(devices, {})
    return options, None


def one_node(
    model: OnnxModel, name: str, tensors: Mapping[str, Any]
) -> tuple[str, bytes, dict[str, Any]]:
    """Return the name of the node that computes a tensor, a model of it alone, and its inputs."""
    onnx = load_onnx()
    proto = _copied(model)
    node = onnx.NodeProto()
    node.CopyFrom(next(item for item in proto.graph.node if name in item.output))
    proto.graph.Clear()
    proto.graph.name = "node"
    proto.graph.node.append(node)
    inputs = {item: tensors[item] for item in node.input if item in tensors}
    for item in node.input:
        if item in model.source.constants and item not in inputs:
            proto.graph.initializer.append(tensor_of(model.source.constants[item], onnx))
    for item, array in inputs.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        proto.graph.input.append(onnx.helper.make_tensor_value_info(item, kind, array.shape))
    proto.graph.output.add().name = name
    return node.name, proto.SerializeToString(), inputs
