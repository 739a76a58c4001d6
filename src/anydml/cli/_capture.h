// Include DirectML.h before this file. In a program that DirectML refuses:
//
//   std::ofstream("operator.json") << anydml::to_json(desc);        // a DML_OPERATOR_DESC
//
//   anydml::Operators operators;                                    // for a graph: what each of
//   operators[node_operator] = anydml::to_json(desc);               // its operators was made of
//   std::ofstream("graph.json") << anydml::to_json(graph_desc, operators);
//
// `anydml check operator.json` then prints every rule that it breaks. A null pointer becomes null,
// and an array with a count that no operator or graph has is not read. Other pointers and counts
// are read as DirectML reads them.
#ifndef ANYDML_CAPTURE_H
#define ANYDML_CAPTURE_H

#ifndef DML_TARGET_VERSION
#error "include DirectML.h before this file"
#endif

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <type_traits>

namespace anydml {

using Operators = std::map<const IDMLOperator*, std::string>;

inline std::string to_json(const DML_OPERATOR_DESC& desc);

namespace capture {

struct Name {
  int value;
  const char* name;
};

// The bytes of the character that a text begins with in UTF-8; 0 if it begins with none.
inline int utf8_length(const unsigned char* c) {
  if (c[0] < 0x80) return 1;
  const int length = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : 2;
  std::uint32_t code = c[0] & (0xFFu >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if ((c[i] & 0xC0) != 0x80) return 0;  // the text's end, too
    code = (code << 6) | (c[i] & 0x3Fu);
  }
  static const std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = c[0] >= 0xC2 && c[0] <= 0xF4 && code >= least[length] && code <= 0x10FFFF;
  return valid && (code < 0xD800 || code > 0xDFFF) ? length : 0;
}

// A byte that is not UTF-8 is taken for Latin-1.
inline std::string quoted(const char* text) {
  std::string out = "\"";
  const auto* c = reinterpret_cast<const unsigned char*>(text);
  while (*c != '\0') {
    const int length = utf8_length(c);
    if (length == 0 || *c < 0x20 || *c == '"' || *c == '\\') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(*c++));
      out += escape;
    } else {
      for (int i = 0; i < length; ++i) out += static_cast<char>(*c++);
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

// Larger counts are errors, uninitialized memory perhaps. DirectML has 8 dimensions at most.
constexpr std::uint32_t most_dimensions = 8, most_parts = 65536;

// An array as JSON. Where it cannot be read, a string in its place says why.
template <class T, class Write>
std::string list(const T* values, std::uint32_t count, std::uint32_t most, Write write) {
  if (values == nullptr && count != 0) return "null";
  if (count > most)
    return quoted((std::to_string(count) + " values, at most " + std::to_string(most)).c_str());
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
    const std::uint32_t most = std::is_arithmetic<T>::value ? most_dimensions : most_parts;
    put(name, list(values, count, most, [](const T& v) { return json(v); }));
  }
  std::string done() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

inline std::string data_type(int value);

inline std::string json(const DML_TENSOR_DESC& desc) {
  Object out;
  if (desc.Type != DML_TENSOR_TYPE_BUFFER) {
    out.put("Type", quoted(std::to_string(static_cast<int>(desc.Type)).c_str()));
    return out.done();
  }
  if (desc.Desc == nullptr) return "{\"Desc\": null}";
  const auto& buffer = *static_cast<const DML_BUFFER_TENSOR_DESC*>(desc.Desc);
  out.put("DataType", data_type(static_cast<int>(buffer.DataType)));
  const int flags = static_cast<int>(buffer.Flags);
  out.put("Flags", flags == 0   ? quoted("NONE")
                   : flags == 1 ? quoted("OWNED_BY_DML")
                                : std::to_string(flags));
  out.put("DimensionCount", json(static_cast<std::uint32_t>(buffer.DimensionCount)));
  out.put_array("Sizes", buffer.Sizes, buffer.DimensionCount);
  if (buffer.Strides != nullptr) out.put_array("Strides", buffer.Strides, buffer.DimensionCount);
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
  if (data == nullptr && size != 0) return "null";
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::string out = "\"";
  for (std::size_t i = 0; i < size; i += 3) {
    const unsigned second = i + 1 < size ? bytes[i + 1] : 0u,
                   third = i + 2 < size ? bytes[i + 2] : 0u;
    const unsigned bits = (static_cast<unsigned>(bytes[i]) << 16) | (second << 8) | third;
    out += digits[bits >> 18];
    out += digits[(bits >> 12) & 63];
    out += i + 1 < size ? digits[(bits >> 6) & 63] : '=';
    out += i + 2 < size ? digits[bits & 63] : '=';
  }
  return out + '"';
}

#if DML_TARGET_VERSION >= 0x2100

using Names = std::set<std::string>;

// Names are unique in JSON, and not in a program: only the first part with a name has it.
inline std::string with_name(Object& out, const char* name, Names& used) {
  if (name != nullptr && *name != '\0' && used.insert(name).second) out.put("Name", quoted(name));
  return out.done();
}

inline std::string edge(const DML_GRAPH_EDGE_DESC& desc, DML_GRAPH_EDGE_TYPE type, Names& used) {
  if (desc.Type != type) {
    const int is = static_cast<int>(desc.Type), expected = static_cast<int>(type);
    return quoted(
        ("type " + std::to_string(is) + " in place of " + std::to_string(expected)).c_str());
  }
  if (desc.Desc == nullptr) return "null";
  Object out;
  const char* name = nullptr;
  const auto number = [&out](const char* member, UINT value) {
    out.put(member, json(static_cast<std::uint32_t>(value)));
  };
  if (type == DML_GRAPH_EDGE_TYPE_INPUT) {
    const auto& d = *static_cast<const DML_INPUT_GRAPH_EDGE_DESC*>(desc.Desc);
    number("GraphInputIndex", d.GraphInputIndex);
    number("ToNodeIndex", d.ToNodeIndex);
    number("ToNodeInputIndex", d.ToNodeInputIndex);
    name = d.Name;
  } else if (type == DML_GRAPH_EDGE_TYPE_OUTPUT) {
    const auto& d = *static_cast<const DML_OUTPUT_GRAPH_EDGE_DESC*>(desc.Desc);
    number("FromNodeIndex", d.FromNodeIndex);
    number("FromNodeOutputIndex", d.FromNodeOutputIndex);
    number("GraphOutputIndex", d.GraphOutputIndex);
    name = d.Name;
  } else {
    const auto& d = *static_cast<const DML_INTERMEDIATE_GRAPH_EDGE_DESC*>(desc.Desc);
    number("FromNodeIndex", d.FromNodeIndex);
    number("FromNodeOutputIndex", d.FromNodeOutputIndex);
    number("ToNodeIndex", d.ToNodeIndex);
    number("ToNodeInputIndex", d.ToNodeInputIndex);
    name = d.Name;
  }
  return with_name(out, name, used);
}

inline std::string edges(const DML_GRAPH_EDGE_DESC* values, UINT count, DML_GRAPH_EDGE_TYPE type,
                         Names& used) {
  const auto one = [&](const DML_GRAPH_EDGE_DESC& value) { return edge(value, type, used); };
  return list(values, count, most_parts, one);
}

inline std::string node(const DML_GRAPH_NODE_DESC& desc, const Operators& operators, Names& used) {
  Object out;
  const char* name = nullptr;
  if (desc.Desc == nullptr) return "null";
  if (desc.Type == DML_GRAPH_NODE_TYPE_OPERATOR) {
    const auto& d = *static_cast<const DML_OPERATOR_GRAPH_NODE_DESC*>(desc.Desc);
    const auto found = operators.find(d.Operator);
    out.put("Type", quoted("OPERATOR"));
    if (found != operators.end() && !found->second.empty()) out.put("Operator", found->second);
    name = d.Name;
#if DML_TARGET_VERSION >= 0x6200
  } else if (desc.Type == DML_GRAPH_NODE_TYPE_CONSTANT) {
    const auto& d = *static_cast<const DML_CONSTANT_DATA_GRAPH_NODE_DESC*>(desc.Desc);
    out.put("Type", quoted("CONSTANT"));
    out.put("Data", base64(d.Data, d.DataSize));
    name = d.Name;
#endif
  } else {
    out.put("Type", quoted(std::to_string(static_cast<int>(desc.Type)).c_str()));
  }
  return with_name(out, name, used);
}
#endif

}  // namespace capture

#if DML_TARGET_VERSION >= 0x2100
// `operators` has the JSON of each operator of the graph, by its pointer.
inline std::string to_json(const DML_GRAPH_DESC& desc, const Operators& operators) {
  capture::Object out;
  capture::Names nodes, tensors, intermediates;
  const auto node = [&](const DML_GRAPH_NODE_DESC& n) {
    return capture::node(n, operators, nodes);
  };
  out.put("Nodes", capture::list(desc.Nodes, desc.NodeCount, capture::most_parts, node));
  out.put("InputEdges",
          capture::edges(desc.InputEdges, desc.InputEdgeCount, DML_GRAPH_EDGE_TYPE_INPUT, tensors));
  out.put("IntermediateEdges", capture::edges(desc.IntermediateEdges, desc.IntermediateEdgeCount,
                                              DML_GRAPH_EDGE_TYPE_INTERMEDIATE, intermediates));
  out.put("OutputEdges", capture::edges(desc.OutputEdges, desc.OutputEdgeCount,
                                        DML_GRAPH_EDGE_TYPE_OUTPUT, tensors));
  out.put("InputCount", capture::json(static_cast<std::uint32_t>(desc.InputCount)));
  out.put("OutputCount", capture::json(static_cast<std::uint32_t>(desc.OutputCount)));
  return out.done();
}
#endif
