// Sizes and strides of a tensor, and the operations on them that need no memory.
//
// Strides are in bytes throughout: NumPy's views of records have strides that are no multiple of
// the element size, and a kernel that takes bytes takes them all.
#pragma once

#include "order.hpp"

namespace anydml {

using Int = long long;

constexpr int kMaxRank = 64;  // NumPy's limit

// Uninitialised on purpose above `rank`: a plan for a small call must not clear a kilobyte.
struct Layout {
  int rank = 0;
  Int sizes[kMaxRank];
  Int strides[kMaxRank];

  Layout() {}
  Layout(const Layout& other) { *this = other; }
  Layout& operator=(const Layout& other) {
    rank = other.rank;
    for (int i = 0; i < rank; ++i) {
      sizes[i] = other.sizes[i];
      strides[i] = other.strides[i];
    }
    return *this;
  }

  Int count() const {
    Int total = 1;
    for (int i = 0; i < rank; ++i) total *= sizes[i];
    return total;
  }

  void push(Int size, Int stride) {
    sizes[rank] = size;
    strides[rank] = stride;
    ++rank;
  }

  // True when the elements lie without gaps in row-major order.
  bool packed(Int element_size) const {
    Int expected = element_size;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }

  // Dimensions [begin, end) as a layout of their own.
  Layout slice(int begin, int end) const {
    Layout part;
    for (int i = begin; i < end; ++i) part.push(sizes[i], strides[i]);
    return part;
  }
};

// Row-major packed strides for the sizes that are set.
inline void set_packed_strides(Layout& layout, Int element_size) {
  Int stride = element_size;
  for (int i = layout.rank - 1; i >= 0; --i) {
    layout.strides[i] = stride;
    stride *= layout.sizes[i];
  }
}

// Byte offset of the element at `flat` in row-major order.
inline Int offset_at(const Layout& layout, Int flat) {
  Int offset = 0;
  for (int i = layout.rank - 1; i >= 0; --i) {
    const Int next = flat / layout.sizes[i];
    offset += (flat - next * layout.sizes[i]) * layout.strides[i];
    flat = next;
  }
  return offset;
}

// Several layouts of the same sizes, stripped of sizes of 1 and with neighbouring dimensions fused
// where every layout allows it. Row-major order is kept. N is the number of layouts.
template <int N>
inline void collapse(Layout* (&layouts)[N]) {
  Layout& first = *layouts[0];
  int kept = 0;
  for (int i = 0; i < first.rank; ++i) {
    const Int size = first.sizes[i];
    if (size == 1) continue;
    bool fuse = kept > 0;
    for (int n = 0; fuse && n < N; ++n)
      fuse = layouts[n]->strides[kept - 1] == layouts[n]->strides[i] * size;
    for (int n = 0; n < N; ++n) {
      Layout& layout = *layouts[n];
      if (fuse) {
        layout.sizes[kept - 1] *= size;
        layout.strides[kept - 1] = layout.strides[i];
      } else {
        layout.sizes[kept] = size;
        layout.strides[kept] = layout.strides[i];
      }
    }
    if (!fuse) ++kept;
  }
  for (int n = 0; n < N; ++n) layouts[n]->rank = kept;
}

// Walks N layouts of the same sizes in row-major order, one element of the outermost `rank`
// dimensions at a time; start() jumps anywhere, next() is cheap.
template <int N>
class Walker {
 public:
  Walker(const Layout* const (&layouts)[N], int rank) : rank_(rank) {
    for (int n = 0; n < N; ++n) layouts_[n] = layouts[n];
  }

  void start(Int flat) {
    for (int n = 0; n < N; ++n) offset[n] = 0;
    for (int i = rank_ - 1; i >= 0; --i) {
      const Int size = layouts_[0]->sizes[i];
      const Int next = flat / size;
      position_[i] = flat - next * size;
      for (int n = 0; n < N; ++n) offset[n] += position_[i] * layouts_[n]->strides[i];
      flat = next;
    }
  }

  void next() {
    for (int i = rank_ - 1; i >= 0; --i) {
      ++position_[i];
      for (int n = 0; n < N; ++n) offset[n] += layouts_[n]->strides[i];
      if (position_[i] < layouts_[0]->sizes[i]) return;
      for (int n = 0; n < N; ++n) offset[n] -= position_[i] * layouts_[n]->strides[i];
      position_[i] = 0;
    }
  }

  Int offset[N];  // bytes from each layout's first element

 private:
  const Layout* layouts_[N];
  int rank_;
  Int position_[kMaxRank];
};

}  // namespace anydml
