"""Files that are no JSON models: recognised by their content, whatever they are called."""

import bz2
import gzip
import io
import json
import lzma
import os
import socket
import struct

import numpy as np
import pytest
from model_files import split_model

from anydml.cli import command as cli
from anydml.core.file_kinds import kind_of
from anydml.models import Limits, load_model
from anydml.models.text import parse

TEXT = json.dumps(split_model())


def onnx(**fields):
    """A ModelProto by hand: ir_version, producer, graph, opset."""
    graph = b"\x12\x01g" + b"\x0a\x03abc" * fields.pop("nodes", 1)
    length = bytes([len(graph) & 127 | 128, len(graph) >> 7])
    return (
        b"\x08\x0a\x12\x07pytorch" * fields.pop("head", 1)
        + b":"
        + length
        + graph
        + b"B\x02\x10\x12"
    )


def flatbuffer():
    layout = struct.pack("<HHHH", 8, 12, 4, 8)
    return struct.pack("<I", 12) + layout + struct.pack("<iII", 8, 0, 0) + bytes(16)


def saved(save, *arguments):
    file = io.BytesIO()
    save(file, *arguments)
    return file.getvalue()


FILES = {
    "called.json": (onnx(), "an ONNX model (protobuf)"),
    "headless.json": (onnx(head=0), "an ONNX model (protobuf)"),
    "long.json": (onnx(nodes=400), "an ONNX model (protobuf)"),
    "a.npy": (saved(np.save, np.zeros(3)), "a NumPy array (.npy)"),
    "a.npz": (saved(np.savez, np.zeros(3)), "a ZIP archive"),
    "m.json.gz": (gzip.compress(TEXT.encode()), "gzip-compressed data"),
    "m.json.bz2": (bz2.compress(TEXT.encode()), "bzip2-compressed data"),
    "m.json.xz": (lzma.compress(TEXT.encode()), "xz-compressed data"),
    "p.png": (b"\x89PNG\r\n\x1a\n" + bytes(9), "a PNG image"),
    "empty": (b"", "an empty file"),
    "blank": (b" \n\t\r\n", "nothing but blanks"),
    "page.html": (b"<!DOCTYPE html><html></html>", "HTML or XML"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
    "pickle": (b"\x80\x05K\x01.", "a Python pickle"),
    "u16": (TEXT.encode("utf-16"), "UTF-16 text"),
    "u16le": (TEXT.encode("utf-16-le"), "UTF-16 text"),
    "u16be": (TEXT.encode("utf-16-be"), "UTF-16 text"),
    "u32": (TEXT.encode("utf-32"), "UTF-32 text"),
    "u32le": (TEXT.encode("utf-32-le"), "UTF-32 text"),
    "u32be": (TEXT.encode("utf-32-be"), "UTF-32 text"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["run", "check"])
def test_what_a_file_is(name, command, tmp_path, capfd):
    content, kind = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert cli.main([command, str(tmp_path / name)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"Error: Expected a JSON model of DxDispatch, got {kind}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "check"])
def test_the_suffix_makes_an_onnx_model(command, tmp_path, capfd):
    pytest.importorskip("onnx")
    (tmp_path / "m.onnx").write_bytes(b"\x08\x07\x12\xff")
    assert cli.main([command, str(tmp_path / "m.onnx")]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("Error: Expected an ONNX model, got 'm.onnx'")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "check"])
def test_flatbuffers_are_graphs(command, tmp_path, capfd):
    (tmp_path / "table").write_bytes(flatbuffer())
    assert cli.main([command, str(tmp_path / "table")]) == 1
    assert capfd.readouterr() == (
        "", "Error: Expected a serialized graph, got a FlatBuffers file without nodes.\n"
    )  # fmt: skip


def test_models_are_models(tmp_path):
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "m.json").write_text("\n" + TEXT if encoding == "utf-8" else TEXT, encoding)
        assert load_model(tmp_path / "m.json").resources.keys() == {"A", "Out1", "Out2"}


@pytest.mark.parametrize("data", [b"{", b":", b":\x01", b"B", b"x: 1\n", b"hello, world\n", b"{}}",
                                  b"\x08", b"\xff", b"\0" * 40, onnx()[:-1], onnx() + b"\x03",
                                  b"[1, 2", b"\x0c\0\0\0" * 9, flatbuffer()[:20],
                                  *(bytes([n]) * 50 for n in range(0, 256, 7))])  # fmt: skip
def test_what_is_not_known_keeps_its_own_message(data, tmp_path):
    assert kind_of(data) is None
    (tmp_path / "m.json").write_bytes(data)
    wrong = r"JSON parse error at line \d+, column \d+: |Expected an object, got [18]+"
    with pytest.raises(ValueError, match=wrong) as own:
        parse(data)
    with pytest.raises(ValueError, match=wrong) as error:
        load_model(tmp_path / "m.json")
    assert str(error.value) == str(own.value)


def test_every_beginning_is_looked_at_safely():
    rng = np.random.default_rng(9)
    for start in (b"", onnx(), flatbuffer()):
        for length in range(60):
            for _ in range(20):
                data = start[:length] + rng.bytes(length)
                kind_of(data)
                kind_of(data, complete=False)
    assert kind_of(b"\x80" * 10**6) is None


def test_a_large_file(tmp_path):
    (tmp_path / "large.onnx").write_bytes(onnx(nodes=3)[:11] + b":\xff\xff\xff\x07" + bytes(2**21))
    with pytest.raises(ValueError, match="got an ONNX model"):
        load_model(tmp_path / "large.onnx", Limits(memory_limit=2**20))


def test_what_is_no_file(tmp_path, capfd):
    os.mkfifo(tmp_path / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(tmp_path / "socket"))
    for path, kind in ((tmp_path, "a folder"), (tmp_path / "pipe", "a pipe"),
                       ("/dev/null", "a device")):  # fmt: skip
        assert cli.main(["check", str(path)]) == 1
        assert f"Expected a regular file, got '{path}' ({kind})." in capfd.readouterr().err
    assert cli.main(["check", str(tmp_path / "socket")]) == 1
    assert capfd.readouterr().err.startswith("Error: File ")
    server.close()
