// The meaning of an index value, in one place for every backend: negative values of signed types
// count from the end, anything else outside the axis is out of range.
#pragma once

#include "common/order.hpp"
#include "common/types.hpp"

namespace anydml {

// The wrapped position, or `size` and above (as unsigned) when the value is out of range. Works for
// every index type: an unsigned 64-bit value of 2^63 or more stays out of range, because no axis is
// that long and unsigned types never wrap.
template <class Index>
ANYDML_HD inline unsigned long long wrap_index(Index value, unsigned long long size) {
  if constexpr (static_cast<Index>(-1) < static_cast<Index>(0)) {
    const long long wide = static_cast<long long>(value);
    return static_cast<unsigned long long>(wide) + (wide < 0 ? size : 0ull);
  } else {
    return static_cast<unsigned long long>(value);
  }
}

// The valid position that a value stands for in a mode without errors: the nearest one, negative
// values counting from the end (`clamp`, what the page of GATHER documents for invalid indices),
// the value modulo the size (`wrap`), or the nearest one where no value counts from the end
// (`clip`). The size is not 0.
template <OutOfRange kMode, class Index>
ANYDML_HD inline unsigned long long move_inside(Index value, unsigned long long size) {
  static_assert(kMode != OutOfRange::raise);
  constexpr bool is_signed = static_cast<Index>(-1) < static_cast<Index>(0);
  const unsigned long long position = static_cast<unsigned long long>(value);
  if constexpr (kMode == OutOfRange::wrap) {
    if (position < size) return position;
    if constexpr (!is_signed) return position % size;
    const long long rest = static_cast<long long>(value) % static_cast<long long>(size);
    return static_cast<unsigned long long>(rest < 0 ? rest + static_cast<long long>(size) : rest);
  } else {
    if constexpr (is_signed) {
      long long wide = static_cast<long long>(value);
      if (kMode == OutOfRange::clamp && wide < 0) wide += static_cast<long long>(size);
      if (wide < 0) return 0ull;
      const unsigned long long place = static_cast<unsigned long long>(wide);
      return place < size ? place : size - 1;
    }
    return position < size ? position : size - 1;
  }
}

}  // namespace anydml
