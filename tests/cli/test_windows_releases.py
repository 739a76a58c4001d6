"""`--windows`: the releases that it takes, and that nothing else is one."""

import json
from collections import Counter

import onnx.helper as oh
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml import ArgumentError
from anydml.cli.command import main
from anydml.core.releases import WINDOWS, first_windows, level_of_windows

LEVELS = {
    "10 1903": "1_0", "10 1909": "1_0", "10 2004": "2_0", "10 20H2": "2_0", "10 21H1": "2_0",
    "10 21H2": "2_0", "10 22H2": "2_0", "11 21H2": "4_0", "11 22H2": "5_0", "11 23H2": "5_0",
    "11 24H2": "6_2", "11 25H2": "6_2", "18362": "1_0", "19041": "2_0", "19045": "2_0",
    "22000": "4_0", "22621": "5_0", "22631": "5_0", "26100": "6_2", "26200": "6_2",
    "1903": "1_0", "2004": "2_0", "23H2": "5_0", "24H2": "6_2", "25H2": "6_2",
    "10.0.19045.3803": "2_0", "Windows 11, version 22H2": "5_0", "windows10 22h2": "2_0",
    "Windows 11 build 26100": "6_2", " Windows 10 19045 ": "2_0",
}  # fmt: skip
SHARED = [name for name, count in Counter(item.release for item in WINDOWS).items() if count > 1]


@pytest.mark.parametrize(("text", "level"), LEVELS.items())
def test_releases_and_builds(text, level):
    assert level_of_windows(text).suffix == level


def test_a_release_that_two_systems_have_lists_both():
    assert SHARED == ["21H2", "22H2"]
    for name in SHARED:
        message = rf"contains DirectML \(10 {name}, 11 {name}\), got '{name}'"
        with pytest.raises(ArgumentError, match=message):
            level_of_windows(name)


@pytest.mark.parametrize("system", ["10", "11"])
def test_a_system_alone_lists_its_releases(system):
    names = ", ".join(str(item) for item in WINDOWS if item.system == system)
    for text in (system, f"Windows {system}"):
        with pytest.raises(ArgumentError, match=rf"\({names}\), got '{text}'"):
            level_of_windows(text)


@pytest.mark.parametrize(
    "text", ["", "Windows", "XP", "Windows 95 24H2", "12 24H2", "11 2004", "10 24H2", "10 1809",
             "17763", "1022H2", "11 19045", "24H2 11", "２４Ｈ２", "24H2\n11 24H2"],
)  # fmt: skip
def test_nonsense(text):
    with pytest.raises(ArgumentError, match="or the number of a build"):
        level_of_windows(text)


@given(st.lists(st.sampled_from(["Windows", "version", "build", *{part for item in WINDOWS
                for part in item[:3]}, "95", "1809", "x", "10.0."])).map(" ".join))  # fmt: skip
def test_a_text_has_the_level_of_all_its_parts_or_none(text):
    numbers = [word for word in text.split() if word not in ("Windows", "version", "build")]
    meant = [item for item in WINDOWS if set(numbers) <= {*item[:3]}]
    try:
        level = level_of_windows(text)
    except ArgumentError:
        return
    assert [item.level for item in meant] == [level]


def test_the_first_release_of_each_level():
    assert first_windows(level_of_windows("10 1909")) == "Windows 10 1903"
    assert first_windows(level_of_windows("11 25H2")) == "Windows 11 24H2"


def test_every_kind_of_model(tmp_path):
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 2]}
    (tmp_path / "gelu.json").write_text(
        json.dumps({"type": "ACTIVATION_GELU", "InputTensor": tensor, "OutputTensor": tensor})
    )
    x, y = (oh.make_tensor_value_info(name, 1, [2]) for name in "xy")
    graph = oh.make_graph([oh.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")], "g", [x],
                          [y])  # fmt: skip
    opsets = [oh.make_opsetid("", 17), oh.make_opsetid("com.microsoft", 1)]
    data = oh.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    (tmp_path / "gelu.onnx").write_bytes(data)
    for name in ("gelu.json", "gelu.onnx"):
        for release, status in (("22H2", 2), ("10 22H2", 1), ("11 22H2", 1), ("11 24H2", 0)):
            assert main(["check", str(tmp_path / name), "--windows", release]) == status, release
