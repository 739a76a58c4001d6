"""`capture_header`: a C++ header that writes the descriptions of a DirectML program as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

from anydml.core.dtypes import DataType
from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import (
    PREFIX,
    BoolKind,
    EnumerationKind,
    FieldInfo,
    FloatKind,
    FloatsKind,
    IntegersKind,
    IntKind,
    Kind,
    NestedKind,
    ScalarKind,
    ScaleBiasKind,
    Size2DKind,
    TensorKind,
)
from anydml.ops._fields.scalars import MEMBERS
from anydml.ops._registry import OPERATORS

_GUARDED_LATER: Final = {"SCATTER": FeatureLevel.parse("2_0")}
"""Operators that DirectML.h declares at a higher level than their page says."""


def capture_header(version: str) -> str:
    """Write the header, generated from the definitions of all operators.

    Parameters
    ----------
    version : str
        The version of anydml that its first line has.

    Returns
    -------
    str
        C++17. ``anydml::to_json`` takes a ``DML_OPERATOR_DESC``, or a ``DML_GRAPH_DESC`` and the
        JSON of its operators. Operators of a feature level above ``DML_TARGET_VERSION`` are left
        out.
    """
    kinds = [*dict.fromkeys(OPERATORS.values())]
    return "\n".join(
        (
            f"// Written by `anydml capture-header`, anydml {version}.",
            files("anydml.cli").joinpath("_capture.h").read_text(encoding="utf-8"),
            "namespace capture {\n",
            *map(_names, _enumerations(kinds)),
            _scalar(),
            *map(_operator, kinds),
            "\n}  // namespace capture\n",
            "inline std::string to_json(const DML_OPERATOR_DESC& desc) {",
            "  switch (desc.Type) {",
            *map(_case, kinds),
            "    default: break;",
            "  }",
            "  const std::string type = std::to_string(static_cast<int>(desc.Type));",
            '  return "{\\"type\\": \\"" + type + "\\"}";',
            "}",
            "",
            "}  // namespace anydml",
            "",
            "#endif",
            "",
        )
    )


def _guarded(kind: type[Descriptor], lines: Iterable[str]) -> str:
    level = _GUARDED_LATER.get(kind.NAME, kind.SUPPORT[0].level)
    guard = f"#if DML_TARGET_VERSION >= {level.value:#x}"
    return "\n".join((guard, *lines, "#endif"))


def _case(kind: type[Descriptor]) -> str:
    name = f"{PREFIX}{kind.NAME}"
    return _guarded(kind, [f"    case {name}: return capture::{kind.NAME}(desc.Desc);"])


def _enumerations(kinds: Iterable[type[Descriptor]]) -> Iterator[type[NamedEnum]]:
    found = [
        i.kind.members for k in kinds for i in k.fields() if isinstance(i.kind, EnumerationKind)
    ]
    return iter(dict.fromkeys((DataType, *found)))


def _names(members: type[NamedEnum]) -> str:
    pairs = ", ".join(f'{{{int(member)}, "{member.suffix}"}}' for member in members)
    return (
        f"inline std::string {_function(members)}(int value) {{\n"
        f"  static const Name names[] = {{{pairs}}};\n"
        "  return named(names, value);\n"
        "}"
    )


def _scalar() -> str:
    return "\n".join(
        (
            "#if DML_TARGET_VERSION >= 0x2100",
            "inline std::string scalar(const DML_SCALAR_UNION& value, int type) {",
            "  Object bits;",
            "  switch (type) {",
            *(f"    case {int(kind)}: {_member(kind, name)}" for kind, name in MEMBERS.items()),
            "    default: return std::to_string(value.Int64);",
            "  }",
            "}",
            "#endif",
        )
    )


def _member(kind: DataType, name: str) -> str:
    if kind is DataType.FLOAT16:
        member = f"json(static_cast<std::uint32_t>(value.{name}))"
        return f'bits.put("{name}", {member}); return bits.done();'
    kind_of_number = "std::uint64_t" if name.startswith("U") else "std::int64_t"
    exact = (
        f"value.{name}" if name.startswith("F") else f"static_cast<{kind_of_number}>(value.{name})"
    )
    return f"return json({exact});"


def _function(members: type[NamedEnum]) -> str:
    return members.prefix().removeprefix("DML_TENSOR_").removeprefix("DML_").lower().rstrip("_")


def _operator(kind: type[Descriptor]) -> str:
    fields = kind.fields()
    count = next((info.name for info in fields if info.counts is not None), "")
    lines = (
        f"inline std::string {kind.NAME}(const void* desc) {{",
        "  Object out;",
        f'  out.put("type", quoted("{PREFIX}{kind.NAME}"));',
        '  if (desc == nullptr) { out.put("Desc", "null"); return out.done(); }',
        f"  const auto& d = *static_cast<const DML_{kind.NAME}_OPERATOR_DESC*>(desc);",
        *(f"  {_statement(info, count, fields)}" for info in fields),
        "  return out.done();",
        "}",
    )
    return _guarded(kind, lines)


def _statement(info: FieldInfo, count: str, fields: Iterable[FieldInfo]) -> str:
    name, kind = info.name, info.kind
    quoted, value = f'"{name}"', f"d.{name}"
    if (isinstance(kind, TensorKind | NestedKind) and kind.many) or isinstance(
        kind, IntegersKind | FloatsKind
    ):
        return f"out.put_array({quoted}, {value}, d.{count});"
    if isinstance(kind, TensorKind):
        return f"put_tensor(out, {quoted}, {value});"
    if isinstance(kind, NestedKind | ScaleBiasKind):
        return f"put_optional(out, {quoted}, {value});"
    return f"out.put({quoted}, {_value(kind, value, fields)});"


def _value(kind: Kind, value: str, fields: Iterable[FieldInfo]) -> str:
    match kind:
        case BoolKind():
            return f'{value} ? "true" : "false"'
        case EnumerationKind():
            return f"{_function(kind.members)}(static_cast<int>({value}))"
        case ScalarKind():
            typed_by = next(info.name for info in fields if info.attribute == kind.typed_by)
            return f"scalar({value}, static_cast<int>(d.{typed_by}))"
        case FloatKind() | Size2DKind():
            return f"json({value})"
        case IntKind():
            return f"json(static_cast<std::int32_t>({value}))"
    return f"json(static_cast<std::uint32_t>({value}))"
