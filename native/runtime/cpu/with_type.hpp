// The C++ type of an element type.
#pragma once

#include <cstdint>

#include "common/types.hpp"

namespace anydml {

// body(T{}) with the type of a number that is not complex; `float16` and `bfloat16` are the
// caller's own.
template <class float16, class bfloat16, class Body>
inline decltype(auto) with_type(DataType type, Body&& body) {
  using float64 = double;
  using float32 = float;
  using int64 = int64_t;
  using int32 = int32_t;
  using int16 = int16_t;
  using int8 = int8_t;
  using uint64 = uint64_t;
  using uint32 = uint32_t;
  using uint16 = uint16_t;
  using uint8 = uint8_t;
  switch (type) {
#define ANYDML_ELEMENT_TYPE(name, ...) \
  case DataType::name:                 \
    return body(name{});
#define ANYDML_COMPLEX_TYPE(...)
#include "common/types.def"
    default:
      return body(uint8{});
  }
}

// The same with the type of an index.
template <class Body>
inline decltype(auto) with_index(DataType type, Body&& body) {
  using int64 = long long;
  using int32 = int;
  using uint32 = unsigned int;
  using uint64 = unsigned long long;
  switch (type) {
#define ANYDML_INDEX_TYPE(name) \
  case DataType::name:          \
    return body(name{});
#include "common/types.def"
    default:
      return body(int64{});
  }
}

}  // namespace anydml
