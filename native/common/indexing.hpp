// The meaning of an index value, in one place for every backend: negative values of signed types
// count from the end, anything else outside the axis is out of range.
#pragma once

#include "order.hpp"

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

// The nearest valid position (what the page of GATHER documents for invalid indices): below the
// range is 0, above it is size - 1.
template <class Index>
ANYDML_HD inline unsigned long long clamp_index(Index value, unsigned long long size) {
  if constexpr (static_cast<Index>(-1) < static_cast<Index>(0)) {
    const long long wide = static_cast<long long>(value);
    const long long wrapped = wide < 0 ? wide + static_cast<long long>(size) : wide;
    if (wrapped < 0) return 0ull;
    const unsigned long long position = static_cast<unsigned long long>(wrapped);
    return position < size ? position : size - 1;
  } else {
    const unsigned long long position = static_cast<unsigned long long>(value);
    return position < size ? position : size - 1;
  }
}

}  // namespace anydml
