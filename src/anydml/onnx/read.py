"""Reading an ONNX file: the message, its constants, and data in other files of its folder.

A file is not trusted: every size is checked against the data that are there before memory is
allocated, and data files are opened without following a link out of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.core.extras import name_missing_package
from anydml.models.files import GIBIBYTE, Folder, Place, open_file, parts_below, state
from anydml.onnx.types import Value, type_name

_LARGEST_MESSAGE: Final = 2 * GIBIBYTE - 1
"""The largest message of protobuf."""

_MOST_OPERANDS: Final = 4096
"""Inputs, and outputs, of a node: each may become an operator."""

_DEPTH: Final = 64
"""How deep subgraphs may be nested."""


def load_onnx() -> Any:
    """The package `onnx`.

    Raises
    ------
    MissingPackageError
        It is not installed.
    """
    with name_missing_package("ONNX models", "anydml[onnx]"):
        import onnx
    return onnx


@dataclass
class Source:
    """A model as its file has it.

    Attributes
    ----------
    name : str
        The name of the file.
    proto : onnx.ModelProto
        The message.
    constants : dict of str to Value
        The initializers of the main graph.
    opsets : dict of str to int
        The version of each domain; ``""`` is ai.onnx.
    warnings : list of str
        What the file has that means nothing.
    """

    name: str
    proto: Any
    folder: Folder | None
    memory_limit: int
    constants: dict[str, Value] = field(default_factory=dict)
    opsets: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    taken: int = 0

    def array(self, tensor: Any, label: str) -> Value:
        """The value of a TensorProto; every size is checked before memory is allocated."""
        name, shape = type_name(tensor.data_type), tuple(tensor.dims)
        if name == "string":
            return self._strings(tensor, shape, label)
        bits = _BITS.get(name)
        if bits is None:
            raise ModelError(f"{label}: expected a tensor type of ONNX, got {tensor.data_type}.")
        count, size = self._take(shape, bits, label)
        if tensor.data_location == 1:  # EXTERNAL
            data = self._external(tensor, size, label)
        elif tensor.HasField("raw_data"):
            data = tensor.raw_data
        else:
            return self._from_fields(tensor, name, shape, count, size, label)
        if len(data) != size:
            raise ModelError(f"{label}: expected {size} bytes for {name} {shape}, got {len(data)}.")
        if bits < 8 or name not in _STORED:
            return Value(tensor.name, name, shape, np.frombuffer(data, np.uint8))
        array = np.frombuffer(data, _STORED[name].newbyteorder("<")).reshape(shape)
        return Value(tensor.name, name, shape, array.astype(_STORED[name], copy=False))

    def _strings(self, tensor: Any, shape: tuple[int, ...], label: str) -> Value:
        texts = tensor.string_data
        count, _ = self._take(shape, 0, label)
        self._take((sum(map(len, texts)),), 8, label)
        if len(texts) != count:
            raise ModelError(f"{label}: expected {count} strings for {shape}, got {len(texts)}.")
        try:
            data = np.array([text.decode() for text in texts], object).reshape(shape)
        except UnicodeDecodeError as error:
            raise ModelError(f"{label}: expected strings in UTF-8: {error}.") from None
        return Value(tensor.name, "string", shape, data)

    def _take(self, shape: tuple[int, ...], bits: int, label: str) -> tuple[int, int]:
        """The elements and bytes of a constant, which is counted."""
        if any(size < 0 for size in shape) or len(shape) > 64:
            raise ModelError(f"{label}: expected sizes of at least 0, got {short_repr(shape)}.")
        count = prod(shape)
        size = -(-count * bits // 8)
        self.taken += size
        if self.taken > self.memory_limit:
            raise ModelError(
                f"{label}: expected constants of at most {self.memory_limit} bytes together "
                f"(--memory-limit), got more."
            )
        return count, size

    def sparse_array(self, tensor: Any, label: str) -> Value:
        """The value of a SparseTensorProto, with its zeros."""
        values, indices = self.array(tensor.values, label), self.array(tensor.indices, label)
        shape = tuple(tensor.dims)
        if values.data is None or values.type not in _STORED or indices.type != "i64":
            raise ModelError(
                f"{label}: expected elements of 8 bits at least and indices of i64, got "
                f"{values.type} and {indices.type}."
            )
        count, _ = self._take(shape, _BITS[values.type], label)
        places: Any = indices.data
        stored, rank = values.data.size, len(shape)
        if places.shape == (stored, rank):
            sizes = np.array(shape, np.int64)
            good = bool(((places >= 0) & (places < sizes)).all())
            steps = [prod(shape[i + 1 :]) for i in range(rank)]
            places = places @ np.array(steps, np.int64) if good else np.full(1, -1)
        elif places.shape != (stored,):
            raise ModelError(
                f"{label}: expected indices of shape {(stored,)} or {(stored, rank)}, got "
                f"{places.shape}."
            )
        if places.size and not 0 <= places.min() <= places.max() < count:
            raise ModelError(f"{label}: expected indices in the shape {shape}, got others.")
        array = np.zeros(count, values.data.dtype)
        array[places] = values.data.reshape(-1)
        return Value(values.name, values.type, shape, array.reshape(shape))

    def _from_fields(
        self, tensor: Any, name: str, shape: Any, count: int, size: int, label: str
    ) -> Value:
        field_name = _FIELDS.get(name, "int32_data")
        numbers = getattr(tensor, field_name)
        packed = size if _BITS[name] < 8 else count
        expected = packed * (2 if name in ("c64", "c128") else 1)
        if len(numbers) != expected:
            raise ModelError(
                f"{label}: expected {expected} elements for {name} {shape}, got {len(numbers)}."
            )
        if name in ("f16", "bf16") or _BITS[name] < 8 or name.startswith("f8"):
            raw = np.asarray(numbers, np.int64).astype(np.uint16 if "16" in name else np.uint8)
            if name == "f16":
                return Value(tensor.name, name, shape, raw.view(np.float16).reshape(shape))
            return Value(tensor.name, name, shape, raw.view(np.uint8))
        if name in ("c64", "c128"):
            return Value(tensor.name, name, shape, np.asarray(numbers).view(np.uint8))
        array = np.asarray(numbers).astype(_STORED[name]).reshape(shape)
        return Value(tensor.name, name, shape, array)

    def _external(self, tensor: Any, size: int, label: str) -> bytes:
        entries = {item.key: item.value for item in tensor.external_data}
        if self.folder is None:
            raise ModelError(
                f"{label}: expected data in the model (a model from memory has no folder), got "
                f"external data in {short_repr(entries.get('location'))}."
            )
        offset, length = (_count(entries, key, label) for key in ("offset", "length"))
        if length not in (None, size):
            raise ModelError(f"{label}: expected a length of {size} bytes, got {length}.")
        try:
            location = entries.get("location", "")
            if location.startswith(("/", "\\")):
                raise ModelError(f"Expected a relative path, got {short_repr(location)}.")
            with Place(self.folder, parts_below(self.folder, location)).open_file() as file:
                available = max(state(file).size - (offset or 0), 0)
                if available >= size:
                    file.seek(offset or 0)
                    data = file.read(size)
        except ModelError as error:
            raise ModelError(f"{label}: external data: {error}") from error
        if available < size:
            raise ModelError(
                f"{label}: expected {size} bytes at offset {offset or 0} of "
                f"{short_repr(location)}, got {available}."
            )
        return data


_STORED: Final[dict[str, np.dtype[Any]]] = {
    "f32": np.dtype("f4"), "f16": np.dtype("f2"), "f64": np.dtype("f8"), "bool": np.dtype("?"),
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
}  # fmt: skip
_BITS: Final = {
    **{name: 8 * kind.itemsize for name, kind in _STORED.items()},
    "c64": 64, "c128": 128, "bf16": 16, "f8e4m3fn": 8, "f8e4m3fnuz": 8, "f8e5m2": 8,
    "f8e5m2fnuz": 8, "f8e8m0": 8, "u4": 4, "i4": 4, "f4e2m1": 4,
    "u2": 2, "i2": 2,
}  # fmt: skip
_FIELDS: Final = {
    "f32": "float_data", "c64": "float_data", "f64": "double_data", "c128": "double_data",
    "i64": "int64_data", "u32": "uint64_data", "u64": "uint64_data",
}  # fmt: skip


def _count(entries: Mapping[str, str], key: str, label: str) -> int | None:
    text = entries.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ModelError(f"{label}: expected a number of bytes as {key}, got {short_repr(text)}.")
    return int(text)


def read_file(path: str | Path, memory_limit: int) -> Source:
    """The model in a file."""
    path = Path(path)
    with open_file(path) as file:
        data = file.read(min(memory_limit, _LARGEST_MESSAGE) + 1)
    if len(data) > min(memory_limit, _LARGEST_MESSAGE):
        raise ModelError(
            f"Expected at most {min(memory_limit, _LARGEST_MESSAGE)} bytes, got {str(path)!r}: use "
            "external data, or --memory-limit."
        )
    return read_bytes(data, path.name, Folder.of(path.parent), memory_limit)


def read_bytes(data: bytes, name: str, folder: Folder | None, memory_limit: int) -> Source:
    """The model that a message holds.

    Parameters
    ----------
    data : bytes
        The message.
    name : str
        What messages call the model.
    folder : Folder or None
        Where external data are read from; None refuses them.
    memory_limit : int
        The most bytes of its constants.
    """
    proto = load_onnx().ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # DecodeError of protobuf, which has no other public base
        raise ModelError(f"Expected an ONNX model, got {name!r}: {error}.") from None
    return read_proto(proto, name, folder, memory_limit)


def read_proto(proto: Any, name: str, folder: Folder | None, memory_limit: int) -> Source:
    """The model of a ModelProto."""
    if not proto.HasField("graph"):
        raise ModelError(f"Expected an ONNX model, got {name!r}: it has no graph.")
    _check_names(proto)
    source = Source(name, proto, folder, memory_limit)
    for item in proto.opset_import:
        source.opsets.setdefault("" if item.domain == "ai.onnx" else item.domain, item.version)
    source.opsets.setdefault("", 1)
    check_opsets(source.opsets)
    source.constants = constants_of(source, proto.graph)
    return source


def check_opsets(opsets: Mapping[str, int]) -> None:
    """Raise for versions of domains that no model can have."""
    newest = load_onnx().defs.onnx_opset_version()
    for domain, version in opsets.items():
        if version < 1 or (not domain and version > newest):
            accepted = "at least 1" if domain else f"1..{newest} (of the installed `onnx`)"
            raise ModelError(
                f"Operators of {domain or 'ai.onnx'}: expected version {accepted}, got {version}."
            )


def constants_of(source: Source, graph: Any) -> dict[str, Value]:
    """The initializers of a graph."""
    found: dict[str, Value] = {}
    dense = ((tensor, tensor.name, source.array) for tensor in graph.initializer)
    sparse = ((item, item.values.name, source.sparse_array) for item in graph.sparse_initializer)
    for i, (item, name, read) in enumerate(chain(dense, sparse)):
        label = f"Initializer {short_repr(name or i)}"
        if name in found:
            raise ModelError(f"{label}: expected a unique name, got it twice.")
        found[name] = read(item, label)
    return found


def subgraphs(node: Any) -> Iterator[Any]:
    """The graphs in the attributes of a NodeProto."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _check_names(proto: Any) -> None:
    """Raise unless all names are text, and nothing has too many parts.

    A name with other bytes is no string for protobuf, which would fail anywhere.
    """
    level: list[Any] = [proto.graph, *proto.functions]
    names: list[Any] = [item.domain for item in (*proto.opset_import, *proto.functions)]
    for _ in range(_DEPTH):
        if not level:
            break
        nodes = [node for graph in level for node in graph.node]
        for graph in level:
            names += [getattr(item, "name", item) for item in (*graph.input, *graph.output)]
            names += [item.name for item in getattr(graph, "initializer", ())]
            names += [item.name for item in getattr(graph, "value_info", ())]
        for node in nodes:
            if max(len(node.input), len(node.output)) > _MOST_OPERANDS:
                raise ModelError(
                    f"Node {short_repr(node.name)} ({short_repr(node.op_type)}): expected at most "
                    f"{_MOST_OPERANDS} inputs and outputs, got {len(node.input)} and "
                    f"{len(node.output)}."
                )
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            names += [text for item in node.attribute for text in (item.name, item.ref_attr_name)]
        level = [graph for node in nodes for graph in subgraphs(node)]
    else:
        raise ModelError(f"Expected subgraphs that are nested at most {_DEPTH} deep, got more.")
    for item in names:
        if not isinstance(item, str):
            raise ModelError(f"Expected names in UTF-8, got {short_repr(item)}.")
