"""Rules of one page, broken in the page's first example: what the check says.

What follows from fields, tables and `infer` alone is broken in tests/conformance/test_rules.py.
"""

import dataclasses
from pathlib import Path

import pytest

import anydml as dml
from support.examples import page_example

# Tensors of FLOAT32, FLOAT16 and UINT32; `T` and `page` stand for any tensor and the example.
TENSORS = {
    name: lambda *sizes, kind=kind: dml.TensorDesc(kind, sizes)
    for name, kind in (("F", "FLOAT32"), ("H", "FLOAT16"), ("U", "UINT32"))
} | {"T": dml.TensorDesc}
RULES = Path(__file__).with_name("page_rules.txt")


def cases():
    for line in RULES.read_text().splitlines():
        if not line.startswith(" "):
            expected = []
            yield line, expected
        else:
            expected.append(line.strip())


@pytest.mark.parametrize(("case", "expected"), [*cases()], ids=lambda value: str(value)[:60])
def test_rule(case, expected):
    name, changes = case[:-1].split("(", 1)
    good = page_example(name)
    assert dml.Device("cpu").check(good) == []
    broken = dataclasses.replace(good, **eval(f"dict({changes})", TENSORS | {"page": good}))
    found = [str(item).removeprefix(f"{name}.") for item in dml.Device("cpu").check(broken)]
    assert found == expected
