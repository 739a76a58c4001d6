// How the whole and the parts of a split or a join lie in memory.
#pragma once

#include "common/layout.hpp"

namespace anydml {

// The whole or a part as rows of contiguous bytes; `length` is its size on the axis, the other
// sizes are the whole's.
inline bool as_rows(const Layout& layout, Int element_size, int axis, Int length,
                    const Int* strides, Int& bytes, Int& step) {
  bytes = step = 0;
  if (length == 0) return true;  // its strides mean nothing
  bytes = element_size;
  for (int i = layout.rank - 1; i >= axis; --i) {
    const Int size = i == axis ? length : layout.sizes[i];
    if (size > 1 && strides[i] != bytes) return false;
    bytes *= size;
  }
  Int expected = 0;
  bool first = true;  // a broadcast dimension expects 0, so 0 cannot mean "none yet"
  step = bytes;
  for (int i = axis - 1; i >= 0; --i) {
    if (layout.sizes[i] == 1) continue;
    if (first)
      step = strides[i];
    else if (strides[i] != expected)
      return false;
    first = false;
    expected = strides[i] * layout.sizes[i];
  }
  return true;
}

}  // namespace anydml
