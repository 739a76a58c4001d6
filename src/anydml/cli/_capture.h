// Include DirectML.h before this file. In a program that DirectML refuses:
//
//   std::ofstream("operator.json") << anydml::to_json(desc);        // a DML_OPERATOR_DESC
//
//   anydml::Operators operators;                                    // for a graph: what each of
//   operators[node_operator] = anydml::to_json(desc);               // its operators was made of
//   std::ofstream("graph.json") << anydml::to_json(graph_desc, operators);
//
// `anydml check operator.json` then prints every rule that it breaks. Descriptions are read as
// DirectML reads them: a pointer or a count that is wrong in the program is wrong here, too.
#ifndef ANYDML_CAPTURE_H
#define ANYDML_CAPTURE_H

#ifndef DML_TARGET_VERSION
#error "include DirectML.h before this file"
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

namespace anydml {

using Operators = std::map<const IDMLOperator*, std::string>;

inline std::string to_json(const DML_OPERATOR_DESC& desc);

namespace capture {

struct Name {
  int value;
  const char* name;
};

inline std::string quoted(const char* text) {
  std::string out = "\"";
  for (; *text != '\0'; ++text) {
    const unsigned char c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += *text;
    } else if (c < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += *text;
    }
  }
  return out + '"';
}

// The number itself for a value without a name, which no reader accepts.
template <std::size_t N>
std::string named(const Name (&names)[N], int value) {
  for (const Name& item : names) {
    if (item.value == value) return quoted(item.name);
  }
  return std::to_string(value);
}

inline std::string json(std::uint32_t value) { return std::to_string(value); }
inline std::string json(std::int32_t value) { return std::to_string(value); }
inline std::string json(std::uint64_t value) { return std::to_string(value); }
inline std::string json(std::int64_t value) { return std::to_string(value); }

inline std::string real(double value, int digits) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value < 0 ? "\"-inf\"" : "\"inf\"";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  for (char* c = text; *c != '\0'; ++c) {
    if (*c == ',') *c = '.';  // of the program's locale
  }
  return text;
}
inline std::string json(float value) { return real(value, 9); }
inline std::string json(double value) { return real(value, 17); }

inline std::string json(const DML_TENSOR_DESC& desc);
inline std::string json(const DML_OPERATOR_DESC& desc) { return to_json(desc); }
inline std::string json(const DML_SCALE_BIAS& value);

template <class T, class Write>
std::string list(const T* values, std::uint32_t count, Write write) {
  std::string out = "[";
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i != 0) out += ", ";
    out += write(values[i]);
  }
  return out + "]";
}

class Object {
 public:
  void put(const char* name, const std::string& value) {
    text_ += text_.size() == 1 ? "" : ", ";
    text_ += quoted(name) + ": " + value;
  }
  template <class T>
  void put_array(const char* name, const T* values, std::uint32_t count) {
    if (values != nullptr || count == 0)
      put(name, list(values, count, [](const T& v) { return json(v); }));
  }
  std::string done() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

inline std::string data_type(int value);

inline std::string json(const DML_TENSOR_DESC& desc) {
  Object out;
  if (desc.Type != DML_TENSOR_TYPE_BUFFER || desc.Desc == nullptr) {
    out.put("Type", std::to_string(static_cast<int>(desc.Type)));
    return out.done();
  }
  const auto& buffer = *static_cast<const DML_BUFFER_TENSOR_DESC*>(desc.Desc);
  out.put("DataType", data_type(static_cast<int>(buffer.DataType)));
  const int flags = static_cast<int>(buffer.Flags);
  out.put("Flags", flags == 0   ? quoted("NONE")
                   : flags == 1 ? quoted("OWNED_BY_DML")
                                : std::to_string(flags));
  out.put("DimensionCount", json(static_cast<std::uint32_t>(buffer.DimensionCount)));
  out.put_array("Sizes", buffer.Sizes, buffer.DimensionCount);
  out.put_array("Strides", buffer.Strides, buffer.DimensionCount);
  const auto total = static_cast<std::uint64_t>(buffer.TotalTensorSizeInBytes);
  // The number 0 stands for a size that the reader computes.
  out.put("TotalTensorSizeInBytes", total == 0 ? quoted("0") : json(total));
  out.put("GuaranteedBaseOffsetAlignment",
          json(static_cast<std::uint32_t>(buffer.GuaranteedBaseOffsetAlignment)));
  return out.done();
}

inline std::string json(const DML_SCALE_BIAS& value) {
  Object out;
  out.put("Scale", json(value.Scale));
  out.put("Bias", json(value.Bias));
  return out.done();
}

inline std::string json(const DML_SIZE_2D& value) {
  Object out;
  out.put("Width", json(static_cast<std::uint32_t>(value.Width)));
  out.put("Height", json(static_cast<std::uint32_t>(value.Height)));
  return out.done();
}

// A tensor of type INVALID is one that is left out.
inline void put_tensor(Object& out, const char* name, const DML_TENSOR_DESC* desc) {
  if (desc != nullptr && desc->Type != DML_TENSOR_TYPE_INVALID) out.put(name, json(*desc));
}
template <class T>
void put_optional(Object& out, const char* name, const T* value) {
  if (value != nullptr) out.put(name, json(*value));
}

inline std::string base64(const void* data, std::size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::string out;
  for (std::size_t i = 0; i < size; i += 3) {
    const unsigned second = i + 1 < size ? bytes[i + 1] : 0u, third = i + 2 < size ? bytes[i + 2] : 0u;
    const unsigned bits = (static_cast<unsigned>(bytes[i]) << 16) | (second << 8) | third;
    out += digits[bits >> 18];
    out += digits[(bits >> 12) & 63];
    out += i + 1 < size ? digits[(bits >> 6) & 63] : '=';
    out += i + 2 < size ? digits[bits & 63] : '=';
  }
  return out;
}

#if DML_TARGET_VERSION >= 0x2100

inline std::string with_name(Object& out, const char* name) {
  if (name != nullptr && *name != '\0') out.put("Name", quoted(name));
  return out.done();
}

inline std::string edge(const DML_GRAPH_EDGE_DESC& desc) {
  Object out;
  const char* name = nullptr;
  const auto number = [&out](const char* member, UINT value) {
    out.put(member, json(static_cast<std::uint32_t>(value)));
  };
  if (desc.Type == DML_GRAPH_EDGE_TYPE_INPUT) {
    const auto& d = *static_cast<const DML_INPUT_GRAPH_EDGE_DESC*>(desc.Desc);
    number("GraphInputIndex", d.GraphInputIndex);
    number("ToNodeIndex", d.ToNodeIndex);
    number("ToNodeInputIndex", d.ToNodeInputIndex);
    name = d.Name;
  } else if (desc.Type == DML_GRAPH_EDGE_TYPE_OUTPUT) {
    const auto& d = *static_cast<const DML_OUTPUT_GRAPH_EDGE_DESC*>(desc.Desc);
    number("FromNodeIndex", d.FromNodeIndex);
    number("FromNodeOutputIndex", d.FromNodeOutputIndex);
    number("GraphOutputIndex", d.GraphOutputIndex);
    name = d.Name;
  } else if (desc.Type == DML_GRAPH_EDGE_TYPE_INTERMEDIATE) {
    const auto& d = *static_cast<const DML_INTERMEDIATE_GRAPH_EDGE_DESC*>(desc.Desc);
    number("FromNodeIndex", d.FromNodeIndex);
    number("FromNodeOutputIndex", d.FromNodeOutputIndex);
    number("ToNodeIndex", d.ToNodeIndex);
    number("ToNodeInputIndex", d.ToNodeInputIndex);
    name = d.Name;
  }
  return with_name(out, name);
}

inline std::string node(const DML_GRAPH_NODE_DESC& desc, const Operators& operators) {
  Object out;
  const char* name = nullptr;
  if (desc.Type == DML_GRAPH_NODE_TYPE_OPERATOR) {
    const auto& d = *static_cast<const DML_OPERATOR_GRAPH_NODE_DESC*>(desc.Desc);
    const auto found = operators.find(d.Operator);
    out.put("Type", quoted("OPERATOR"));
    if (found != operators.end()) out.put("Operator", found->second);
    name = d.Name;
  }
#if DML_TARGET_VERSION >= 0x6200
  if (desc.Type == DML_GRAPH_NODE_TYPE_CONSTANT) {
    const auto& d = *static_cast<const DML_CONSTANT_DATA_GRAPH_NODE_DESC*>(desc.Desc);
    out.put("Type", quoted("CONSTANT"));
    out.put("Data", quoted(base64(d.Data, d.DataSize).c_str()));
    name = d.Name;
  }
#endif
  return with_name(out, name);
}
#endif

}  // namespace capture

#if DML_TARGET_VERSION >= 0x2100
// `operators` has the JSON of each operator of the graph, by its pointer.
inline std::string to_json(const DML_GRAPH_DESC& desc, const Operators& operators) {
  capture::Object out;
  out.put("Nodes", capture::list(desc.Nodes, desc.NodeCount, [&](const DML_GRAPH_NODE_DESC& n) {
            return capture::node(n, operators);
          }));
  out.put("InputEdges", capture::list(desc.InputEdges, desc.InputEdgeCount, capture::edge));
  out.put("IntermediateEdges",
          capture::list(desc.IntermediateEdges, desc.IntermediateEdgeCount, capture::edge));
  out.put("OutputEdges", capture::list(desc.OutputEdges, desc.OutputEdgeCount, capture::edge));
  out.put("InputCount", capture::json(static_cast<std::uint32_t>(desc.InputCount)));
  out.put("OutputCount", capture::json(static_cast<std::uint32_t>(desc.OutputCount)));
  return out.done();
}
#endif
