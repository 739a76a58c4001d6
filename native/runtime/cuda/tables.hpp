// Helpers of several families' plans: tables for kernels, and alignment of layouts.
#pragma once

#include "runtime/cuda/queue.hpp"
#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

// Copies `bytes` bytes, a multiple of 16, to the device. They travel as arguments of
// kernels, so a captured graph holds what they were.
void store_lines(void* target, const void* table, Int bytes, Queue& queue);

template <class Entry>
Entry* table_on_device(const Entry* table, Int count, Queue& queue) {
  static_assert(sizeof(Entry) % 16 == 0);
  Entry* const target = queue.scratch_of<Entry>(count);
  store_lines(target, table, count * static_cast<Int>(sizeof(Entry)), queue);
  return target;
}

// Dimensions [begin, end) of two layouts but for `without`.
Walk walk_of(const Layout& to, const Layout& from, int begin, int end, int without = -1);

// Whether row-major order reads elements well: neighbours are close to each other, or no other
// order is better.
bool reads_in_order(const Layout& layout, int element_size);

// The largest power of two, 16 at most, that divides the value.
inline Int unit_of(Int value) {
  const Int bit = value & -value;
  return bit == 0 || bit > 16 ? 16 : bit;
}
inline Int unit_of(const void* address) {
  return unit_of(static_cast<Int>(reinterpret_cast<unsigned long long>(address) & 15));
}

// The least power of two that is not below a number; its logarithm.
inline unsigned log_above(Int number) {
  unsigned log = 0;
  while ((Int{1} << log) < number) ++log;
  return log;
}

}  // namespace anydml::cuda
