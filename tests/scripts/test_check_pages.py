"""What `scripts/check_pages.py` reads out of its sources, and that it reports each difference."""

import importlib.util
from pathlib import Path

import pytest

from anydml.ops._pages import PAGES

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_pages.py"
spec = importlib.util.spec_from_file_location("check_pages", SCRIPT)
check_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_pages)

PAGE = """
This operator was introduced in **DML_FEATURE_LEVEL_2_1**.
## Tensor support
### DML_FEATURE_LEVEL_4_0 and above
| Tensor | Kind | Dimensions | Supported dimension counts | Supported data types |
| ------ | ---- | ---------- | -------------------------- | -------------------- |
| OutputTensor | Output | { } | 1 to 8 | LOW |
### DML_FEATURE_LEVEL_4_1 and above
| Tensor | Kind | Supported dimension counts | Supported data types |
| OutputTensor | Output | 1 to 8 | ALL |
### DML_FEATURE_LEVEL_2_1 and above
| Tensor | Kind | Supported dimension counts | Supported data types |
| OutputTensor | Output | 4 | LOW |
"""
LOW = "FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8"
ALL = "FLOAT64, FLOAT32, FLOAT16, INT64, INT32, INT16, INT8, UINT64, UINT32, UINT16, UINT8"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("| 4 |", "| 4 to 5 |", ["2_1 OutputTensor"]),
        ("UINT16, UINT8 |\n### DML_FEATURE_LEVEL_4_1", "UINT8 |\n### DML_FEATURE_LEVEL_4_1",
         ["4_0 OutputTensor"]),
        ("LEVEL_4_1", "LEVEL_5_0", ["4_1 OutputTensor", "5_0 OutputTensor"]),
        ("in **DML_FEATURE_LEVEL_2_1", "in **DML_FEATURE_LEVEL_3_0", ["introduced"]),
        ("This", "It supports in-place execution. This", ["in-place"]),
    ],
)  # fmt: skip
def test_differences_of_a_page(old, new, found):
    page = PAGE.replace("LOW", LOW).replace("ALL", ALL)
    assert old in page
    name = "FILL_VALUE_CONSTANT"
    lines = [*check_pages.page_differences(name, page.replace(old, new, 1), PAGES[name])]
    assert len(lines) == len(found)
    for line, word in zip(lines, found, strict=True):
        assert word in line


def test_history():
    text = """
## DML_FEATURE_LEVEL_6_1
The operator types mentioned below are documented in [**DML_OPERATOR_TYPE**](x).
* Added **DML_OPERATOR_A**.
* **DML_OPERATOR_B**. It now fuses **DML_OPERATOR_C**.
## DML_FEATURE_LEVEL_4_0
Added support for the following operator types, documented in [**DML_OPERATOR_TYPE**](x).
* **DML_OPERATOR_B**
* **DML_OPERATOR_A1**

Extended data type support for the following operators.
* **DML_OPERATOR_C**
"""
    assert check_pages.history_facts(text).splitlines() == [
        "6_1 adds A", "6_1 extends B C", "4_0 adds A1 B", "4_0 extends C",
    ]  # fmt: skip


def test_fields(monkeypatch):
    monkeypatch.setattr(check_pages, "PAGES", ["JOINED", "NEWER"])
    schema = """
constexpr DML_SCHEMA_FIELD DML_JOINED_OPERATOR_SCHEMA_FIELDS[3] {
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_INPUT_TENSOR, DML_SCHEMA_FIELD_TYPE_TENSOR_DESC_ARRAY, "InputTensors", false },
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_OUTPUT_TENSOR, DML_SCHEMA_FIELD_TYPE_TENSOR_DESC, "OutputTensor", true },
    DML_SCHEMA_FIELD { DML_SCHEMA_FIELD_KIND_ATTRIBUTE, DML_SCHEMA_FIELD_TYPE_UINT, "Axis", false },
};
    "DML_OPERATOR_JOINED",
    DML_OPERATOR_JOINED,
    DML_SCHEMA_OPERATOR_SUPPORT_FLAG_IN_PLACE_EXECUTION,
"""  # noqa: E501
    page = """
```cpp
struct DML_NEWER_OPERATOR_DESC
{
    const DML_TENSOR_DESC* InputTensor;
    const DML_TENSOR_DESC* OutputTensor;
    DML_INTERPOLATION_MODE Mode;
    UINT DimensionCount;
    _Field_size_(DimensionCount) const FLOAT* Scales;
    BOOL Smooth;
};
```
"""
    assert check_pages.schema_facts(schema, {"NEWER": page}).splitlines() == [
        "JOINED (in place): inputs InputTensors, output? OutputTensor, UINT Axis",
        "NEWER: input InputTensor, output OutputTensor, UINT Mode, UINT DimensionCount, "
        "FLOAT_ARRAY Scales, BOOL Smooth",
    ]
