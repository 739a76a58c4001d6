// Element types and modes, from their tables (types.def, modes.def).
//
// Plain C++ without the standard library, so that a run-time GPU compiler takes it too.
#pragma once

namespace anydml {

enum class DataType : int {
  unknown = 0,  // moved only: any type whose element size is 1, 2, 4, 8 or 16
#define ANYDML_ELEMENT_TYPE(name, number, ...) name = number,
#include "common/types.def"
};

enum class PaddingMode {
#define ANYDML_PADDING_MODE(name) name,
#include "common/modes.def"
};

enum class OutOfRange {
#define ANYDML_INDEX_MODE(name) name,
#include "common/modes.def"
};

enum class Reduction {
#define ANYDML_REDUCTION(name, synonym) name,
#include "common/modes.def"
};

struct TypeFacts {
  const char* name;
  DataType type;  // unknown: elements are only moved
  int size;       // bytes
  char kind;
  bool in_numpy;
  int dlpack_code, xla_number;

  // Complex numbers are moved as plain bytes, except by the reductions that combine them.
  constexpr DataType operand_type() const { return kind == 'c' ? DataType::unknown : type; }
};

constexpr TypeFacts kElementTypes[] = {
#define ANYDML_ELEMENT_TYPE(name, number, ...) {#name, DataType::name, __VA_ARGS__},
#define ANYDML_MOVED_TYPE(name, ...) {#name, DataType::unknown, __VA_ARGS__},
#include "common/types.def"
};

constexpr DataType kIndexTypes[] = {
#define ANYDML_INDEX_TYPE(name) DataType::name,
#include "common/types.def"
};

constexpr TypeFacts facts_of(DataType type) {
  if (type != DataType::unknown)
    for (const TypeFacts& facts : kElementTypes)
      if (facts.type == type) return facts;
  return {nullptr, DataType::unknown, 0, 0, false, 0, 0};
}

// Switches, as a loop over the table would take longer than what a small call has to choose.
constexpr bool is_kind(DataType type, char expected) {
  switch (type) {
#define ANYDML_ELEMENT_TYPE(name, number, bytes, kind, ...) \
  case DataType::name:                                      \
    return kind == expected;
#include "common/types.def"
    default:
      return false;
  }
}
constexpr bool is_float_type(DataType type) { return is_kind(type, 'f'); }
constexpr bool is_complex_type(DataType type) { return is_kind(type, 'c'); }
constexpr bool is_signed_type(DataType type) { return is_kind(type, 'i'); }
constexpr bool is_integer_type(DataType type) { return is_kind(type, 'i') || is_kind(type, 'u'); }

constexpr bool is_index_type(DataType type) {
  switch (type) {
#define ANYDML_INDEX_TYPE(name) case DataType::name:
#include "common/types.def"
    return true;
    default:
      return false;
  }
}

}  // namespace anydml
