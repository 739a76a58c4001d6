"""Files that resources are read from: raw ones and `.npy` files, good and made to do harm."""

import io

import numpy as np
import pytest
from model_files import first_values, only, run

import anydml as dml
from anydml import ModelError
from anydml.models import Limits, formats
from support.seconds import refusal_of, result_within

HEADER = b"{'descr': %s, 'fortran_order': False, 'shape': (1,), }\n"
TYPES = [t.suffix for t in dml.DataType if t.element_size]


def load(folder, resource, **limits):
    return run(folder, only({"r": resource}), Limits(output_dir=folder, **limits))


def npy_file(header, version, data=bytes(8)):
    text = header.encode("utf-8" if version == 3 else "latin1").ljust(117) + b"\n"
    size = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(size, "little") + text + data


class TestFiles:
    def source(self, name, **fields):
        return {"initialValues": {"sourcePath": name}, **fields}

    def test_raw(self, tmp_path):
        (tmp_path / "raw.dat").write_bytes(bytes(range(6)))
        resource = self.source("raw.dat", initialValuesDataType="UINT16")
        octets, _ = first_values(tmp_path, resource, "u2")
        assert octets == bytes(range(6)) + bytes(2)

    @pytest.mark.parametrize("name", TYPES)
    @pytest.mark.parametrize("order", "<>")
    def test_npy(self, tmp_path, name, order):
        array = np.arange(6).reshape(2, 3).astype(np.dtype(name.lower()).newbyteorder(order))
        np.save(tmp_path / "a.npy", array)
        _, values = first_values(tmp_path, self.source("a.npy"), name.lower())
        assert values[:6].tolist() == [0, 1, 2, 3, 4, 5]
        first_values(tmp_path, self.source("a.npy", initialValuesDataType=name), name.lower())
        other = "INT8" if name != "INT8" else "UINT8"
        with pytest.raises(ModelError, match=f"expected {other} .* got {name}"):
            load(tmp_path, self.source("a.npy", initialValuesDataType=other))

    def test_npy_of_bool_is_uint8(self, tmp_path):
        np.save(tmp_path / "a.npy", np.array([True, False, True, True]))
        _, values = first_values(tmp_path, self.source("a.npy"), "u1")
        assert values.tolist() == [1, 0, 1, 1]

    @pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
    def test_npy_versions(self, tmp_path, version):
        with open(tmp_path / "A.NPY", "wb") as file:
            np.lib.format.write_array(file, np.arange(3, dtype="i4"), version)
        _, values = first_values(tmp_path, self.source("A.NPY"), "i4")
        assert values.tolist() == [0, 1, 2]

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.asfortranarray(np.zeros((2, 3), "f4")), "Fortran"),
            (np.zeros(3, "c8"), "complex64"),
            (np.array([{}], object), "object"),
            (np.zeros(2, [("a", "f4")]), "tensor's type"),
            (np.zeros(0, "f4"), "at least one value"),
        ],
    )
    def test_npy_that_is_no_tensor(self, tmp_path, array, message):
        np.save(tmp_path / "a.npy", array, allow_pickle=True)
        with pytest.raises(ModelError, match=message):
            load(tmp_path, self.source("a.npy"))

    @pytest.mark.parametrize(
        ("octets", "message"),
        [
            (b"\x93NUMPY\x01\x00", "ends within its header"),
            (b"\x93NUMPY\x01\x00\x05", "ends within its header"),
            (b"\x93NUMPY\x02\x00\x00\x00\x00", "ends within its header"),
            (b"\x93NUMPY\x01\x00\x02\x00{", "ends within its header"),
            (b"\x93NUMPY\x04\x00", "version 1.0, 2.0 or 3.0, got 4.0"),
            (b"\x93NUMPY\x01", "version 1.0, 2.0 or 3.0, got 1"),
            (b"\x93NUMPY", "version 1.0, 2.0 or 3.0, got none"),
            (b"\x93NUMPY\x01\x00\x11\x27", "at most 10000 bytes, got 10001"),
            (HEADER % b"'f3'", "a tensor's type: got 'f3'"),
            (HEADER % b"'c8'", "a tensor's type: .*complex64"),
            (HEADER % b"[<f4]", "a tensor's type: got '.<f4.'"),
            (b"PK\x03\x04" * 9, "Expected an .npy file, got something else"),
            (b"[" + HEADER[1:] % b"'<f4'", "a header with 'descr'.* got .\\['descr'"),
        ],
    )
    def test_why_an_npy_file_is_refused(self, octets, message):
        if octets.endswith(b"}\n"):
            octets = b"\x93NUMPY\x01\x00" + len(octets).to_bytes(2, "little") + octets
        with pytest.raises(ModelError, match=message):
            formats.read_header(io.BytesIO(octets))

    @pytest.mark.parametrize(
        "header",
        [
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,) * 9, }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }" % ("9" * 5000),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % ("1," * 65),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (0x1,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (01,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': 3, }",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } + {}",
            "{'descr': 'nonsense', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': 'f3', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': 'a4', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '(1000000,1000000)f4', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': [('a', '<f4', ((",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
            "__import__('os').abort()",
            "(" * 5000,
            "{" * 9000,
            "-" * 9000 + "1",
            "1" + "+1" * 4000,
            "{'descr': " + "[" * 9000,
            "{'shape': (" + " " * 9000,
            "{'shape': (1," + " " * 9000 + "}",
            " " * 9000,
            " " * 60_000,
            "{'descr': '\xff', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': '<f4\x1b[2J', 'fortran_order': False, 'shape': (1,), }",
        ],
        ids=lambda header: header[:70].strip() or "blanks",
    )
    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_npy_with_a_bad_header(self, tmp_path, header, version):
        (tmp_path / "a.npy").write_bytes(npy_file(header, version))
        text = result_within(0.5, lambda: refusal_of(load, tmp_path, self.source("a.npy")))
        assert "Resource 'r': init" in text
        assert text.isprintable()
        assert len(text) < 500

    @pytest.mark.parametrize(
        "header",
        [
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
            '{"shape":(1,2),"fortran_order":False,"descr":"i4"}',
            "{'descr': '<i4', 'fortran_order': True, 'shape': (2L,)}",
            "{ 'descr' : '=i4' ,\n\t'fortran_order': False, 'shape': ( 2 , 1 , ) , } ",
            "{'descr': '<f2', 'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
        ],
    )
    @pytest.mark.parametrize("version", [1, 2, 3])
    def test_headers_that_numpy_reads(self, tmp_path, header, version):
        content = npy_file(header, version, np.array([7, 8], "<i4").tobytes())
        (tmp_path / "a.npy").write_bytes(content)
        _, buffers = load(tmp_path, self.source("a.npy"))
        assert buffers["r"].view("i4").tolist() == [7, 8]
        if "L" not in header:  # what Python 2 wrote needs pickles' permission or a warning
            assert np.load(io.BytesIO(content)).ravel().tolist() == [7, 8]

    @pytest.mark.parametrize("count", [64, 65])
    def test_the_most_dimensions(self, count):
        header = "{'descr': 'u1', 'fortran_order': False, 'shape': (%s), }" % ("1," * count)
        file = io.BytesIO(npy_file(header.ljust(300), 1, b"7"))
        if count == 64:
            assert formats.read_header(file).size == 1
        else:
            with pytest.raises(ModelError, match="at most 64 dimensions, got 65"):
                formats.read_header(file)

    @pytest.mark.parametrize("length", [10_000, 10_001])
    def test_the_longest_header(self, tmp_path, length):
        header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }".ljust(length - 1)
        (tmp_path / "a.npy").write_bytes(npy_file(header, 1))
        if length == 10_000:
            assert load(tmp_path, self.source("a.npy"))[1]["r"].nbytes == 8
        else:
            with pytest.raises(ModelError, match="header of at most 10000 bytes, got 10001"):
                load(tmp_path, self.source("a.npy"))

    @pytest.mark.parametrize("missing", [1, 2, 3, 4, 7, 8, 9, 16])
    def test_npy_with_too_little_data(self, tmp_path, missing):
        np.save(tmp_path / "a.npy", np.arange(4))
        content = (tmp_path / "a.npy").read_bytes()
        (tmp_path / "a.npy").write_bytes(content[:-missing])
        message = rf"Expected 32 bytes of data \(shape \(4,\), int64\), got {32 - missing} "
        with pytest.raises(ModelError, match=message):
            load(tmp_path, self.source("a.npy"))

    def test_a_length_of_the_header_that_lies(self, tmp_path):
        for length in (10_001, 2**16 - 1, 2**32 - 1):
            with open(tmp_path / "a.npy", "wb") as file:
                file.write(b"\x93NUMPY\x02\x00" + length.to_bytes(4, "little"))
                file.truncate(2**33)  # holes: no memory and no disk
            with pytest.raises(ModelError, match=f"header of at most 10000 bytes, got {length}"):
                load(tmp_path, self.source("a.npy"))
        for cut in range(1, 128):
            content = npy_file("{'descr': '<i4', 'fortran_order': False, 'shape': (0,), }", 1)
            (tmp_path / "a.npy").write_bytes(content[: 128 - cut])
            with pytest.raises(ModelError, match=r"Expected an .npy file"):
                load(tmp_path, self.source("a.npy"))

    @pytest.mark.parametrize(
        "content", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", b"PK\x03\x04" * 9]
    )
    def test_not_npy(self, tmp_path, content):
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(ModelError, match=r"Expected an .npy file"):
            load(tmp_path, self.source("a.npy"))

    def test_the_memory_limit_holds_for_files(self, tmp_path):
        (tmp_path / "raw").write_bytes(bytes(64))
        with pytest.raises(ModelError, match="--memory-limit"):
            load(tmp_path, self.source("raw", initialValuesDataType="UINT8"), memory_limit=63)
