"""The header that prints a program's descriptions: compiled, filled with values, and read back.

Against declarations made from the definitions here, and against the public ``DirectML.h`` where
``ANYDML_DIRECTX_HEADERS`` is the folder ``include`` of a checkout of DirectX-Headers.
"""

import itertools
import json
import os
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml import DataType
from anydml.cli.capture import capture_header
from anydml.cli.command import main
from anydml.ops._examples import examples_of
from anydml.ops._fields import (
    BoolKind,
    EnumerationKind,
    FloatKind,
    FloatsKind,
    IntegersKind,
    IntKind,
    NestedKind,
    ScalarKind,
    ScaleBiasKind,
    Size2DKind,
    TensorKind,
)
from anydml.ops._registry import OPERATORS

KINDS = [*dict.fromkeys(OPERATORS.values())]
COMPILER = shutil.which("c++") or shutil.which("g++")
HEADERS = os.environ.get("ANYDML_DIRECTX_HEADERS")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

DECLARATIONS = """
#include <cstddef>
#include <cstdint>
#define DML_TARGET_VERSION 0x6400
typedef std::uint32_t UINT; typedef std::int32_t INT; typedef std::uint64_t UINT64;
typedef int BOOL; typedef float FLOAT;
struct IDMLOperator {};
enum DML_TENSOR_TYPE { DML_TENSOR_TYPE_INVALID, DML_TENSOR_TYPE_BUFFER };
enum DML_TENSOR_FLAGS { DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_OWNED_BY_DML };
struct DML_TENSOR_DESC { DML_TENSOR_TYPE Type; const void* Desc; };
struct DML_SCALE_BIAS { FLOAT Scale; FLOAT Bias; };
struct DML_SIZE_2D { UINT Width; UINT Height; };
union DML_SCALAR_UNION {
  std::int8_t Int8; std::uint8_t UInt8; std::int16_t Int16; std::uint16_t UInt16;
  std::int32_t Int32; std::uint32_t UInt32; std::int64_t Int64; std::uint64_t UInt64;
  float Float32; double Float64;
};
enum DML_GRAPH_EDGE_TYPE {
  DML_GRAPH_EDGE_TYPE_INVALID, DML_GRAPH_EDGE_TYPE_INPUT, DML_GRAPH_EDGE_TYPE_OUTPUT,
  DML_GRAPH_EDGE_TYPE_INTERMEDIATE,
};
enum DML_GRAPH_NODE_TYPE {
  DML_GRAPH_NODE_TYPE_INVALID, DML_GRAPH_NODE_TYPE_OPERATOR, DML_GRAPH_NODE_TYPE_CONSTANT,
};
struct DML_GRAPH_EDGE_DESC { DML_GRAPH_EDGE_TYPE Type; const void* Desc; };
struct DML_INPUT_GRAPH_EDGE_DESC {
  UINT GraphInputIndex; UINT ToNodeIndex; UINT ToNodeInputIndex; const char* Name;
};
struct DML_OUTPUT_GRAPH_EDGE_DESC {
  UINT FromNodeIndex; UINT FromNodeOutputIndex; UINT GraphOutputIndex; const char* Name;
};
struct DML_INTERMEDIATE_GRAPH_EDGE_DESC {
  UINT FromNodeIndex; UINT FromNodeOutputIndex; UINT ToNodeIndex; UINT ToNodeInputIndex;
  const char* Name;
};
struct DML_GRAPH_NODE_DESC { DML_GRAPH_NODE_TYPE Type; const void* Desc; };
struct DML_OPERATOR_GRAPH_NODE_DESC { IDMLOperator* Operator; const char* Name; };
struct DML_CONSTANT_DATA_GRAPH_NODE_DESC {
  const void* Data; std::size_t DataSize; const char* Name;
};
struct DML_GRAPH_DESC {
  UINT InputCount; UINT OutputCount;
  UINT NodeCount; const DML_GRAPH_NODE_DESC* Nodes;
  UINT InputEdgeCount; const DML_GRAPH_EDGE_DESC* InputEdges;
  UINT OutputEdgeCount; const DML_GRAPH_EDGE_DESC* OutputEdges;
  UINT IntermediateEdgeCount; const DML_GRAPH_EDGE_DESC* IntermediateEdges;
};
"""


def declarations():
    """Declare the enumerations and structures that the definitions have."""
    enums = [i.kind.members for k in KINDS for i in k.fields() if type(i.kind) is EnumerationKind]
    lines = [DECLARATIONS]
    for members in dict.fromkeys((DataType, *enums)):
        values = ", ".join(f"{member.full_name} = {int(member)}" for member in members)
        lines.append(f"enum {members.prefix()[:-1]} {{ {values} }};")
    lines.append(
        "struct DML_BUFFER_TENSOR_DESC { DML_TENSOR_DATA_TYPE DataType; DML_TENSOR_FLAGS Flags; "
        "UINT DimensionCount; const UINT* Sizes; const UINT* Strides; "
        "UINT64 TotalTensorSizeInBytes; UINT GuaranteedBaseOffsetAlignment; };"
    )
    values = ", ".join(f"DML_OPERATOR_{kind.NAME} = {i}" for i, kind in enumerate(KINDS, 1))
    lines.append(f"enum DML_OPERATOR_TYPE {{ DML_OPERATOR_INVALID, {values} }};")
    lines.append("struct DML_OPERATOR_DESC { DML_OPERATOR_TYPE Type; const void* Desc; };")
    for kind in KINDS:
        members = " ".join(f"{c_type(info.kind)} {info.name};" for info in kind.fields())
        lines.append(f"struct DML_{kind.NAME}_OPERATOR_DESC {{ {members} }};")
    return "\n".join(lines)


def c_type(kind):
    match kind:
        case EnumerationKind():
            return kind.members.prefix()[:-1]
        case IntegersKind():
            return "const INT*" if kind.signed else "const UINT*"
    return {
        TensorKind: "const DML_TENSOR_DESC*", NestedKind: "const DML_OPERATOR_DESC*",
        BoolKind: "BOOL", FloatsKind: "const FLOAT*", FloatKind: "FLOAT", IntKind: "INT",
        ScalarKind: "DML_SCALAR_UNION", ScaleBiasKind: "const DML_SCALE_BIAS*",
        Size2DKind: "DML_SIZE_2D",
    }.get(type(kind), "UINT")  # fmt: skip


class Program:
    """Statements of C++ that fill structures with the values of descriptors."""

    def __init__(self):
        self.lines = []
        self._numbers = itertools.count()

    def variable(self, declared, value):
        name = f"v{next(self._numbers)}"
        self.lines.append(f"static {declared.replace('@', name)} = {value};")
        return name

    def array(self, kind, values):
        found = ", ".join(values)
        return self.variable(f"const {kind} @[]", f"{{{found}}}") if found else "nullptr"

    def tensor(self, desc):
        sizes = self.array("UINT", map(str, desc.sizes))
        strides = "nullptr"
        if desc.strides is not None:
            strides = self.array("UINT", map(str, desc.strides))
        buffer = self.variable(
            "const DML_BUFFER_TENSOR_DESC @",
            f"{{{desc.data_type.full_name}, static_cast<DML_TENSOR_FLAGS>({int(desc.flags)}), "
            f"{len(desc.sizes)}u, {sizes}, {strides}, {desc.total_tensor_size_in_bytes}ull, "
            f"{desc.guaranteed_base_offset_alignment}u}}",
        )
        return f"{{DML_TENSOR_TYPE_BUFFER, &{buffer}}}"

    def operator(self, desc):
        struct_name = f"DML_{desc.NAME}_OPERATOR_DESC"
        fields = self.variable(f"{struct_name} @", "{}")
        for info in desc.fields():
            value = getattr(desc, info.attribute)
            if value is not None and not (info.many and not value):
                self.lines.append(f"{fields}.{info.name} = {self.value(info.kind, value, desc)};")
        return f"{{DML_OPERATOR_{desc.NAME}, &{fields}}}"

    def value(self, kind, value, desc):
        match kind:
            case TensorKind() | NestedKind():
                one = self.tensor if isinstance(kind, TensorKind) else self.operator
                many = [one(item) for item in (value if kind.many else (value,))]
                return self.array(c_type(kind)[6:-1], many)
            case EnumerationKind():
                return value.full_name
            case IntegersKind() | FloatsKind():
                numbers = map(self.real if isinstance(kind, FloatsKind) else str, value)
                return self.array(c_type(kind)[6:-1], numbers) if value else "nullptr"
            case ScaleBiasKind():
                return self.array("DML_SCALE_BIAS", ["{" + ", ".join(map(self.real, value)) + "}"])
            case Size2DKind():
                return f"DML_SIZE_2D{{{value.width}u, {value.height}u}}"
            case FloatKind():
                return self.real(value)
            case BoolKind():
                return str(int(value))
            case ScalarKind():
                return self.scalar(value, getattr(desc, kind.typed_by))
        return f"{value}u" if c_type(kind) == "UINT" else str(value)

    def real(self, value):
        (bits,) = struct.unpack("=I", np.float32(value).tobytes())
        return f"real({bits}u)"

    def scalar(self, value, data_type):
        octets = np.array(value, data_type.numpy).tobytes().ljust(8, b"\0")
        (bits,) = struct.unpack("=Q", octets)
        return f"scalar({bits}ull)"


START = """
#include <cstring>
#include <iostream>
[[maybe_unused]] static FLOAT real(std::uint32_t bits) {
  FLOAT v; std::memcpy(&v, &bits, 4); return v;
}
[[maybe_unused]] static DML_SCALAR_UNION scalar(std::uint64_t bits) {
  DML_SCALAR_UNION v; std::memcpy(&v, &bits, 8); return v;
}
int main() {
"""


@pytest.fixture(scope="module", params=["declarations", "DirectML.h"])
def printed(request, tmp_path_factory):
    """Return a function that compiles a program with the header and returns its lines."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / "anydml_capture.h").write_text(capture_header("test"))
    if request.param == "DirectML.h":
        if HEADERS is None:
            pytest.skip("ANYDML_DIRECTX_HEADERS is not set")
        below = [HEADERS, f"{HEADERS}/directx", f"{HEADERS}/wsl/stubs"]
        include = [part for path in below for part in ("-isystem", path)]
        first = "#include <wsl/winadapter.h>\n#include <directx/DirectML.h>\n"
    else:
        include, first = [], declarations()

    def run(body):
        (folder / "a.cpp").write_text(f'{first}\n#include "anydml_capture.h"\n{START}{body}}}\n')
        subprocess.run(
            [COMPILER, "-std=c++17", "-Wall", "-Wextra", "-Werror", *include, "a.cpp", "-o", "a"],
            cwd=folder, check=True,
        )  # fmt: skip
        done = subprocess.run([folder / "a"], capture_output=True, encoding="utf-8", check=True)
        return done.stdout.removesuffix("\n").split("\n")

    return run


def unusual(desc):
    """Return a descriptor with a value that is hard to write in each field that takes one."""
    changes = {}
    for info in desc.fields():
        match info.kind:
            case FloatKind():
                changes[info.attribute] = [-0.1, float("nan"), float("-inf"), 1e-45][
                    len(info.name) % 4
                ]
            case ScaleBiasKind():
                changes[info.attribute] = dml.ScaleBias(1 / 3, float("inf"))
            case ScalarKind(typed_by=name) if getattr(desc, name).suffix == "FLOAT32":
                changes[info.attribute] = float("nan")
            case TensorKind(many=False) if getattr(desc, info.attribute) is not None:
                tensor = getattr(desc, info.attribute)
                changes[info.attribute] = dml.TensorDesc(
                    tensor.data_type, tensor.sizes, [*range(len(tensor.sizes))],
                    flags="OWNED_BY_DML", guaranteed_base_offset_alignment=16,
                    total_tensor_size_in_bytes=[0, 2**40][len(info.name) % 2],
                )  # fmt: skip
    return replace(desc, **changes)


@pytest.mark.slow
def test_every_operator_comes_back(printed):
    examples = [next(examples_of(kind)).desc for kind in KINDS]
    descs = [*examples, *map(unusual, examples)]
    program = Program()
    for desc in descs:
        variable = program.variable("const DML_OPERATOR_DESC @", program.operator(desc))
        program.lines.append(f'std::cout << anydml::to_json({variable}) << "\\n";')
    lines = printed("\n".join(program.lines))
    assert len(lines) == len(descs) == 2 * len(KINDS)
    for line, desc in zip(lines, descs, strict=True):
        assert dml.from_json(json.loads(line)) == desc


def test_an_empty_array_may_be_null(printed):
    tensor = dml.TensorDesc("FLOAT32", (2,))
    desc = dml.Reduce(function="SUM", input_tensor=tensor, output_tensor=tensor, axes=())
    program = Program()
    variable = program.variable("const DML_OPERATOR_DESC @", program.operator(desc))
    program.lines.append(f"std::cout << anydml::to_json({variable});")
    (line,) = printed("\n".join(program.lines))
    assert dml.from_json(json.loads(line)) == desc


def problems_in(text, read=dml.from_json):
    """Return what is wrong with the JSON that a program has printed."""
    with pytest.raises(dml.ModelError) as raised:
        read(json.loads(text))
    return raised.value.problems


@pytest.mark.slow
def test_every_pointer_of_an_operator_may_be_null(printed):
    program, cases = Program(), []
    show = 'std::cout << anydml::to_json({}) << "\\n";'
    for kind in KINDS:
        desc = next(examples_of(kind)).desc
        operator = program.variable("const DML_OPERATOR_DESC @", program.operator(desc))
        fields = program.lines[-1].split("&")[1].rstrip("};")
        program.lines.append(show.format(f"DML_OPERATOR_DESC{{{operator}.Type, nullptr}}"))
        cases.append((desc, None))
        for info in desc.fields():
            value = getattr(desc, info.attribute)
            if (
                c_type(info.kind).endswith("*")
                and value is not None
                and not (info.many and not value)
            ):
                place = f"{fields}.{info.name}"
                program.lines.append(f"{{ const auto kept = {place}; {place} = nullptr;")
                program.lines.append(f"{show.format(operator)} {place} = kept; }}")
                cases.append((desc, info))
    lines = printed("\n".join(program.lines))
    for line, (desc, info) in zip(lines, cases, strict=True):
        if info is not None and type(desc)._may_lack(info):
            assert dml.from_json(json.loads(line)) == replace(desc, **{info.attribute: None})
        else:
            path = f"{desc.NAME}.{info.name if info else 'Desc'}"
            assert any(item.startswith(f"{path}: expected") for item in problems_in(line))


WRONG_PARTS = {
    "join.InputCount = 0xCDCDCDCD": [
        "JOIN.InputTensors: expected an array, got '3452816845 values, at most 65536'"
    ],
    "reduce.AxisCount = 9": ["REDUCE.Axes: expected an array, got '9 values, at most 8'"],
    "buffer.DimensionCount = 9": [
        "REDUCE.InputTensor.Sizes: expected an array, got '9 values, at most 8'",
        "REDUCE.InputTensor.Strides: expected an array, got '9 values, at most 8'",
    ],
    "buffer.Sizes = nullptr": ["REDUCE.InputTensor.Sizes: expected an array, got null"],
    "buffer_desc.Desc = nullptr": ["REDUCE.InputTensor.Desc: expected an object, got null"],
    "buffer_desc.Type = static_cast<DML_TENSOR_TYPE>(7)": [
        "REDUCE.InputTensor.Type: expected BUFFER, got '7'",
        "REDUCE.InputTensor.DataType: expected a value, got none",
        "REDUCE.InputTensor.Sizes: expected a value, got none",
    ],
}


@pytest.mark.slow
def test_wrong_counts_and_tensors_are_not_followed(printed):
    tensor = dml.TensorDesc("FLOAT32", (1, 2), (2, 1))
    program = Program()
    for name, desc in (
        ("join", dml.Join(input_tensors=[tensor], output_tensor=tensor, axis=1)),
        ("reduce", dml.Reduce(function="SUM", input_tensor=tensor, output_tensor=tensor, axes=[1])),
    ):
        operator = program.variable("const DML_OPERATOR_DESC @", program.operator(desc))
        program.lines.append(
            f"auto make_{name} = [&]() {{ std::cout << anydml::to_json({operator}) << '\\n'; }};"
            f"auto& {name} = *static_cast<DML_{desc.NAME}_OPERATOR_DESC*>("
            f"const_cast<void*>({operator}.Desc));"
        )
    program.lines.append(
        "DML_TENSOR_DESC buffer_desc = *reduce.InputTensor; reduce.InputTensor = &buffer_desc;"
        "auto buffer = *static_cast<const DML_BUFFER_TENSOR_DESC*>(buffer_desc.Desc);"
        "buffer_desc.Desc = &buffer;"
    )
    for change in WRONG_PARTS:
        place, changed = change.split(" = ")[0], change.split(".")[0]
        shown = "join" if changed == "join" else "reduce"
        program.lines.append(
            f"{{ const auto kept = {place}; {change}; make_{shown}(); {place} = kept; }}"
        )
    lines = printed("\n".join(program.lines))
    for line, problems in zip(lines, WRONG_PARTS.values(), strict=True):
        assert [*problems_in(line)] == problems


@pytest.mark.slow
def test_a_value_that_no_enumeration_has_is_named(printed, tmp_path, capsys):
    desc = next(examples_of(dml.TopK1)).desc
    program = Program()
    operator = program.operator(desc)
    fields = operator.split("&")[1].rstrip("}")
    program.lines += [
        f"{fields}.AxisDirection = static_cast<DML_AXIS_DIRECTION>(7);",
        f"{fields}.OutputIndexTensor = nullptr;",
        f"const DML_OPERATOR_DESC desc = {operator};",
        "std::cout << anydml::to_json(desc);",
    ]
    (tmp_path / "operator.json").write_text("".join(printed("\n".join(program.lines))))
    assert main(["check", str(tmp_path / "operator.json")]) == 1
    shown = "".join(capsys.readouterr())
    for word in ("AxisDirection", "7", "OutputIndexTensor", "got none"):
        assert word in shown


TENSOR = dml.TensorDesc("FLOAT32", (2,))
RELU = dml.ActivationRelu(input_tensor=TENSOR, output_tensor=TENSOR)
ADD = dml.ElementWiseAdd.with_outputs(a_tensor=TENSOR, b_tensor=TENSOR)
GRAPH = dml.GraphDesc(
    [dml.OperatorNode(RELU, 'a "quoted"\n name'), dml.OperatorNode(ADD),
     dml.ConstantNode(b"12345678", "c")],
    [dml.InputEdge(0, 0, 0, "x")],
    [dml.IntermediateEdge(0, 0, 1, 0, "between"), dml.IntermediateEdge(2, 0, 1, 1)],
    [dml.OutputEdge(1, 0, 0, "y")],
)  # fmt: skip


def graph_program():
    """Return a program that has the structures of `GRAPH`, and `show()` to print it."""
    program = Program()
    for name, desc in (("first", RELU), ("second", ADD)):
        program.lines.append(f"const DML_OPERATOR_DESC {name} = {program.operator(desc)};")
    program.lines.append(r"""
    char places[2];
    auto* one = reinterpret_cast<IDMLOperator*>(places);
    auto* two = reinterpret_cast<IDMLOperator*>(places + 1);
    anydml::Operators operators;
    operators[one] = anydml::to_json(first);
    operators[two] = anydml::to_json(second);
    DML_OPERATOR_GRAPH_NODE_DESC a{one, "a \"quoted\"\n name"}, b{two, nullptr};
    DML_CONSTANT_DATA_GRAPH_NODE_DESC c{"12345678", 8, "c"};
    DML_GRAPH_NODE_DESC nodes[] = {{DML_GRAPH_NODE_TYPE_OPERATOR, &a},
      {DML_GRAPH_NODE_TYPE_OPERATOR, &b}, {DML_GRAPH_NODE_TYPE_CONSTANT, &c}};
    DML_INPUT_GRAPH_EDGE_DESC in{0, 0, 0, "x"};
    DML_INTERMEDIATE_GRAPH_EDGE_DESC p{0, 0, 1, 0, "between"}, q{2, 0, 1, 1, nullptr};
    DML_OUTPUT_GRAPH_EDGE_DESC out{1, 0, 0, "y"};
    DML_GRAPH_EDGE_DESC ins[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &in}};
    DML_GRAPH_EDGE_DESC between[] = {{DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &p},
      {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &q}};
    DML_GRAPH_EDGE_DESC outs[] = {{DML_GRAPH_EDGE_TYPE_OUTPUT, &out}};
    DML_GRAPH_DESC graph{1, 1, 3, nodes, 1, ins, 1, outs, 2, between};
    const auto show = [&] { std::cout << anydml::to_json(graph, operators) << "\n"; };
    """)
    return program


def test_a_graph_comes_back(printed, tmp_path, capsys):
    program = graph_program()
    program.lines += [
        "show(); graph.InputCount = graph.OutputCount = 5; show();",
        "graph.InputCount = graph.OutputCount = 1;",
        'a.Name = b.Name = c.Name = "n"; in.Name = p.Name = out.Name = "x"; show();',
    ]
    line, other, same_names = printed("\n".join(program.lines))
    assert dml.GraphDesc.from_json(json.loads(line)) == GRAPH
    more = dml.GraphDesc.from_json(json.loads(other))
    assert [len(more.inputs), len(more.outputs)] == [5, 5]
    assert not dml.Device("cpu").check(dml.GraphDesc.from_json(json.loads(same_names)))
    path = tmp_path / "graph.json"
    path.write_text(line)
    assert main(["check", str(path)]) == 0  # without files for its inputs
    assert "accepted" in capsys.readouterr().out
    assert main(["run", str(path)]) == 1
    assert "'x.npy'" in capsys.readouterr().err


WRONG_GRAPHS = {
    "graph.Nodes = nullptr": "Nodes: expected an array, got null",
    "graph.InputEdges = nullptr": "InputEdges: expected an array, got null",
    "graph.IntermediateEdges = nullptr": "IntermediateEdges: expected an array, got null",
    "graph.OutputEdges = nullptr": "OutputEdges: expected an array, got null",
    "graph.NodeCount = 0xCDCDCDCD": (
        "Nodes: expected an array, got '3452816845 values, at most 65536'"
    ),
    "nodes[0].Desc = nullptr": "Nodes[0]: expected an object, got null",
    "nodes[2].Desc = nullptr": "Nodes[2]: expected an object, got null",
    "nodes[0].Type = static_cast<DML_GRAPH_NODE_TYPE>(7)": (
        "Nodes[0].Type: expected OPERATOR or CONSTANT, got '7'"
    ),
    "b.Operator = nullptr": "Nodes[1].Operator: expected a value, got none",
    "operators[two] = std::string()": "Nodes[1].Operator: expected a value, got none",
    "c.Data = nullptr": "Nodes[2] ('c').Data: expected a string, got null",
    "ins[0].Desc = nullptr": "InputEdges[0]: expected an object, got null",
    "between[1].Desc = nullptr": "IntermediateEdges[1]: expected an object, got null",
    "outs[0].Desc = nullptr": "OutputEdges[0]: expected an object, got null",
    "outs[0].Type = DML_GRAPH_EDGE_TYPE_INPUT": (
        "OutputEdges[0]: expected an object, got 'type 1 in place of 2'"
    ),
}


@pytest.mark.slow
def test_pointers_and_types_of_a_graph_may_be_wrong(printed):
    program = graph_program()
    for change in WRONG_GRAPHS:
        place = change.split(" = ")[0]
        program.lines.append(f"{{ const auto kept = {place}; {change}; show(); {place} = kept; }}")
    lines = printed("\n".join(program.lines))
    for line, problem in zip(lines, WRONG_GRAPHS.values(), strict=True):
        assert problems_in(line, dml.GraphDesc.from_json) == (problem,)


@pytest.mark.slow
def test_a_name_of_any_bytes_can_be_read(printed):
    rng = np.random.default_rng(5)
    characters = ['"', "\\", "\n", "\x7f", "é", "\u2028", "€", "\ud7ff", "𝄞", "\U0010ffff"]
    parts = [character.encode() for character in characters]
    parts += [bytes([octet]) for octet in range(0x80, 0x100)]
    parts += [
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xe0\x82\x80",
        b"\xf4\x90\x80\x80",
        b"\xfc\x80\x80\x80",
    ]
    names = [b"".join(rng.choice(parts, rng.integers(1, 9))) for _ in range(1000)]
    names += [b"a" + part for part in parts]
    program = Program()
    for name in names:
        octets = "".join(f"\\{octet:03o}" for octet in name)
        program.lines.append(f'std::cout << anydml::capture::quoted("{octets}") << "\\n";')
    for line, name in zip(printed("\n".join(program.lines)), names, strict=True):
        escaped = name.decode("utf-8", "surrogateescape")  # bytes that are not UTF-8, in U+DC80..
        latin = [chr(ord(c) & 0xFF) if "\udc80" <= c <= "\udcff" else c for c in escaped]
        assert json.loads(line) == "".join(latin)


def test_an_operator_alone_can_be_checked_but_not_run(tmp_path, capsys):
    desc = next(examples_of(dml.Convolution)).desc
    path = tmp_path / "operator.json"
    path.write_text(json.dumps(desc.to_json()))
    assert main(["check", str(path)]) == 0
    assert "(CONVOLUTION): accepted" in capsys.readouterr().out
    assert main(["run", str(path)]) == 1
    assert "operator alone" in capsys.readouterr().err
    path.write_text(json.dumps(replace(desc, group_count=0).to_json()))
    assert main(["check", str(path)]) == 1
    assert "CONVOLUTION.GroupCount: expected" in capsys.readouterr().out


def test_the_command_writes_the_header_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["capture-header"]) == 0
    assert Path("anydml_capture.h").read_text() == capture_header(dml.__version__)
    assert main(["capture-header"]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main(["capture-header", "--overwrite"]) == 0
    assert main(["capture-header", "-o", "-"]) == 0
    assert capsys.readouterr().out == capture_header(dml.__version__)
