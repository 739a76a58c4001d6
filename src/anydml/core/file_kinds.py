"""Recognizing files that are not JSON models, by their content."""

from __future__ import annotations

import codecs
from typing import Final

# First bytes, and what files that begin so are. Longer ones come first.
_BEGINNINGS: Final = (
    (b"\x93NUMPY", "a NumPy array (.npy): name it as the 'sourcePath' of a resource"),
    (b"PK\x03\x04", "a ZIP archive (as .npz files and PyTorch checkpoints are)"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "gzip-compressed data: decompress it first"),
    (b"BZh", "bzip2-compressed data: decompress it first"),
    (b"\xfd7zXZ\x00", "xz-compressed data: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data: decompress it first"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF-", "a PDF document"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x7fELF", "an ELF binary"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"version https://git-lfs", "a Git LFS pointer: fetch the file with `git lfs pull`"),
    (codecs.BOM_UTF32_LE, "UTF-32 text: save it as UTF-8"),
    (codecs.BOM_UTF32_BE, "UTF-32 text: save it as UTF-8"),
    (codecs.BOM_UTF16_LE, "UTF-16 text: save it as UTF-8"),
    (codecs.BOM_UTF16_BE, "UTF-16 text: save it as UTF-8"),
    (b"{\x00\x00\x00", "UTF-32 text: save it as UTF-8"),
    (b"\x00\x00\x00{", "UTF-32 text: save it as UTF-8"),
    (b"{\x00", "UTF-16 text: save it as UTF-8"),
    (b"\x00{", "UTF-16 text: save it as UTF-8"),
    (b"<", "HTML or XML"),
)

# Members of ONNX's ModelProto by the wire types of protobuf; `graph` is in every model.
_INTEGER: Final = 0
_LENGTH: Final = 2
_ONNX_INTEGERS: Final = {1, 5}
_ONNX_MESSAGES: Final = {2, 3, 4, 6, 7, 8, 14, 20, 25, 26}
_ONNX_GRAPH: Final = 7


def kind_of(data: bytes, complete: bool = True) -> str | None:
    """Describe a file's content and what to do with it; None for unknown content.

    Parameters
    ----------
    data : bytes
        The content, or its beginning.
    complete : bool
        Whether it is all of it.
    """
    if complete and not data:
        return "an empty file"
    if complete and not data.strip():
        return "nothing but blanks"
    known = (kind for start, kind in _BEGINNINGS if data.startswith(start))
    found = next(known, None)
    if found is None and _is_onnx(data, complete):
        found = "an ONNX model (protobuf), which `anydml check FILE` and dml.read_onnx read"
    if found is None and is_flatbuffer(data):
        found = "a FlatBuffers file, as serialized graphs (dmlSerializedGraph) are"
    return found


def _is_onnx(data: bytes, complete: bool) -> bool:
    """Whether it is a protobuf message with the members of a model, up to its end."""
    members = set()
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        value, at = _number(data, at)
        member, wire = tag >> 3, tag & 7
        known = {_INTEGER: _ONNX_INTEGERS, _LENGTH: _ONNX_MESSAGES}.get(wire, set())
        if member not in known:
            return False
        if value:
            members.add(member)
        at += value if wire == _LENGTH else 0
    return _ONNX_GRAPH in members and (at == len(data) or not complete)


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return value, at


def is_flatbuffer(data: bytes) -> bool:
    """Whether an offset leads to a root table, and from there another to the table's layout."""
    root = int.from_bytes(data[:4], "little")
    if not 4 <= root <= len(data) - 4:
        return False
    layout = root - int.from_bytes(data[root : root + 4], "little", signed=True)
    if not 4 <= layout <= len(data) - 4:
        return False
    length = int.from_bytes(data[layout : layout + 2], "little")
    size = int.from_bytes(data[layout + 2 : layout + 4], "little")
    if length < 4 or length % 2 or layout + length > len(data):
        return False
    if size < 4 or root + size > len(data):
        return False
    members = range(layout + 4, layout + length, 2)
    offsets = [int.from_bytes(data[i : i + 2], "little") for i in members]
    return all(not offset or 4 <= offset < size for offset in offsets)
