// Sizes and strides of a tensor, and the operations on them that need no memory.
//
// Strides are in bytes throughout: NumPy's views of records have strides that are not multiples of
// the element size, and a kernel that takes bytes takes them all.
//
// Why no arithmetic on sizes overflows inside: a layout comes in through Layout::normalize_checked,
// which refuses one of more than 2^48 elements, or whose elements lie more than 2^57 bytes apart.
// So elements times the bytes of one (at most 16) times threads (at most 256) is at most 2^60, and
// a stride times its size at most 2^58. A tensor without elements may have larger sizes: products
// of the sizes of one tensor, and of their bytes, fit 63 bits there as well, its strides are 0, and
// a kernel has left before it multiplies the sizes of several. Scratch checks the bytes that it
// allocates (memory.hpp), and the sizes of results are multiplied with a check where they are
// allocated (native/python/numpy.cpp).
#pragma once

#include <utility>

#include "common/order.hpp"

namespace anydml {

using Int = long long;

constexpr int kMaxRank = 64;  // NumPy's limit

// More than any memory holds; reading broadcast arrays of more elements would take days.
constexpr Int kMaxElements = Int{1} << 48;
// Bytes between two elements of a tensor, at most: more than the address space.
constexpr Int kMaxReach = Int{1} << 57;

// The dimension after this one. Kept scalar: vectorized, these short loops take longer, and a small
// call runs tens of them.
inline int after(int dimension) {
  asm("" : "+r"(dimension));
  return dimension + 1;
}

// Uninitialised on purpose above `rank`: a plan for a small call must not clear a kilobyte.
struct Layout {
  int rank = 0;
  Int sizes[kMaxRank];
  Int strides[kMaxRank];

  Layout() {}
  Layout(const Layout& other) { *this = other; }
  Layout& operator=(const Layout& other) {
    rank = other.rank;
    for (int i = 0; i < rank; i = after(i)) {
      sizes[i] = other.sizes[i];
      strides[i] = other.strides[i];
    }
    return *this;
  }

  Int count() const {
    Int total = 1;
    for (int i = 0; i < rank; i = after(i)) total *= sizes[i];
    return total;
  }

  // Whether later products cannot overflow, as explained above. Strides that no element
  // needs become 0: those of a size of 1 that are out of bounds, and all where there is no element.
  bool normalize_checked(int element_size) {
    Int total = 1, reach = 0;
    bool empty = false, wild = false;
    for (int i = 0; i < rank; i = after(i)) {
      const Int size = sizes[i], stride = strides[i];
      if (size == 1) {
        if (stride > kMaxReach || stride < -kMaxReach) strides[i] = 0;
        continue;
      }
      if (size <= 0) {
        if (size < 0) return false;
        empty = true;
        continue;
      }
      Int far = 0;
      if (__builtin_mul_overflow(total, size, &total)) return false;
      wild = wild || __builtin_mul_overflow(stride, size - 1, &far) || far > kMaxReach ||
             far < -kMaxReach;
      if (!wild) reach += far < 0 ? -far : far;
      wild = wild || reach > kMaxReach;
    }
    if (!empty) return total <= kMaxElements && !wild;
    for (int i = 0; i < rank; i = after(i)) strides[i] = 0;
    return !__builtin_mul_overflow(total, Int{element_size}, &total);
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
    for (int i = begin; i < end; i = after(i)) part.push(sizes[i], strides[i]);
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
  int fused_rank = 0;
  for (int i = 0; i < first.rank; ++i) {
    const Int size = first.sizes[i];
    if (size == 1) continue;
    bool fuse = fused_rank > 0;
    for (int n = 0; fuse && n < N; ++n)
      fuse = layouts[n]->strides[fused_rank - 1] == layouts[n]->strides[i] * size;
    for (int n = 0; n < N; ++n) {
      Layout& layout = *layouts[n];
      if (fuse) {
        layout.sizes[fused_rank - 1] *= size;
        layout.strides[fused_rank - 1] = layout.strides[i];
      } else {
        layout.sizes[fused_rank] = size;
        layout.strides[fused_rank] = layout.strides[i];
      }
    }
    if (!fuse) ++fused_rank;
  }
  for (int n = 0; n < N; ++n) layouts[n]->rank = fused_rank;
}

// Two layouts of the same sizes in the order of the target's memory: no size of 1, target strides
// positive and descending, neighbours fused. The shifts are from the given addresses to those of
// the flipped layouts.
inline void order_by_target(Layout& to, Int& to_shift, Layout& from, Int& from_shift) {
  for (int i = 0; i < to.rank; ++i) {
    if (to.sizes[i] == 1) to.strides[i] = from.strides[i] = 0;
    if (to.strides[i] >= 0) continue;
    to_shift += (to.sizes[i] - 1) * to.strides[i];
    from_shift += (to.sizes[i] - 1) * from.strides[i];
    to.strides[i] = -to.strides[i];
    from.strides[i] = -from.strides[i];
  }
  for (int i = 1; i < to.rank; ++i) {
    for (int k = i; k > 0 && to.strides[k - 1] < to.strides[k]; --k) {
      std::swap(to.sizes[k - 1], to.sizes[k]);
      std::swap(from.sizes[k - 1], from.sizes[k]);
      std::swap(to.strides[k - 1], to.strides[k]);
      std::swap(from.strides[k - 1], from.strides[k]);
    }
  }
  Layout* both[2] = {&to, &from};
  collapse(both);
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
