"""What a model's print commands show: numbers, types, names."""

import pytest
from model_files import only, run, value_resource

from anydml import ModelError


class TestPrint:
    def text(self, folder, resource, **fields):
        commands = [{"type": "print", "resource": "r", **fields}]
        return run(folder, only({"r": resource}, commands))[0]

    @pytest.mark.parametrize(
        ("values", "data_type", "expected"),
        [
            ([1, 2], "FLOAT32", "1, 2"),
            ([0.1, 1 / 3, 1e6, 999999.5, 123456, 1e-5, 1e20], "FLOAT32",
             "0.1, 0.333333, 1e+06, 1e+06, 123456, 1e-05, 1e+20"),
            ([0.1, 1 / 3, -0.0, "nan", "inf", "-inf"], "FLOAT64",
             "0.1, 0.333333, -0, nan, inf, -inf"),
            ([0.1, 65504, 2048.5], "FLOAT16", "0.0999756, 65504, 2048"),
            ([65, 0, 255], "UINT8", "65, 0, 255"),
            ([65, -128, 10], "INT8", "65, -128, 10"),
            ([2**64 - 1], "UINT64", "18446744073709551615"),
            ([-(2**63)], "INT64", "-9223372036854775808"),
        ],
    )  # fmt: skip
    def test_numbers(self, tmp_path, values, data_type, expected):
        text = self.text(tmp_path, value_resource(values, data_type, sizeInBytes=256))
        assert text == f"Resource 'r': {expected}\n"

    def test_many(self, tmp_path):
        values = [*range(50_000)]
        text = self.text(tmp_path, value_resource(values, "UINT16"))
        assert text == f"Resource 'r': {', '.join(map(str, values))}\n"

    def test_verbose(self, tmp_path):
        lines = [f"[{i:2}] {i % 3} (0x{i % 3:04X})" for i in range(12)]
        values = value_resource([i % 3 for i in range(12)], "INT16")
        text = self.text(tmp_path, values, verbose=True)
        assert text == "Resource 'r':\n" + "\n".join(lines) + "\n"
        text = self.text(tmp_path, value_resource([1, -2]), verbose=True)
        assert text == "Resource 'r':\n[0] 1 (0x3F800000)\n[1] -2 (0xC0000000)\n"

    def test_no_type(self, tmp_path):
        values = {"initialValues": [{"type": "UINT8", "value": 1}]}
        with pytest.raises(ModelError, match="index 0: Resource 'r' needs an 'initialValuesData"):
            self.text(tmp_path, values)

    def test_a_name_does_nothing_to_a_terminal(self, tmp_path):
        model = only({"\x1b[2J\ud800é": value_resource([1])}, [])
        model["commands"] = [{"type": "print", "resource": "\x1b[2J\ud800é"}]
        assert run(tmp_path, model)[0] == "Resource '\\x1b[2J\\ud800\\xe9': 1\n"
        text = [{"type": "print", "resource": "é"}]
        assert run(tmp_path, only({"é": value_resource([1])}, text))[0] == "Resource 'é': 1\n"
