// Rows of 2^32 elements or more: positions of 64 bits. A radix selection from the top byte down
// finds the k-th greatest key in W readings of the row, one more collects what reaches it, and a
// radix sort of (key, position) pairs ends it. O(W n + W k); scratch 32 bytes for each of the k.
#pragma once

#include "top_k/cpu/top_k_finish.hpp"

namespace anydml::top_k {

struct WideItem {
  uint64_t rest;  // greatest key - key
  uint64_t position;
};

template <class Order>
inline void run_wide(const Source<Order>& row, const Output& out, Int n, Int k, WideItem* items,
                     WideItem* other) {
  constexpr int W = Order::width;
  using Unsigned = typename Order::Unsigned;
  constexpr Unsigned max_key =
      static_cast<Unsigned>(std::numeric_limits<typename Order::Key>::max());
  // Ascending in result order.
  const auto rest_of = [&](Int i) {
    return static_cast<Unsigned>(max_key - static_cast<Unsigned>(row.key(i)));
  };
  Int counts[256];
  uint64_t prefix = 0;  // of the k-th, the bytes above `shift`
  Int missing = k;
  for (int shift = 8 * (W - 1); shift >= 0; shift -= 8) {
    std::memset(counts, 0, sizeof(counts));
    for (Int i = 0; i < n; ++i) {
      const uint64_t rest = rest_of(i);
      if (shift == 8 * (W - 1) || rest >> (shift + 8) == prefix) ++counts[rest >> shift & 255];
    }
    uint64_t digit = 0;
    while (digit < 255 && counts[digit] < missing) missing -= counts[digit++];
    prefix = prefix << 8 | digit;
  }
  // The first `missing` of those that equal the k-th are taken.
  Int count = 0;
  for (Int i = 0; i < n && count < k; ++i) {
    const uint64_t rest = rest_of(i);
    if (rest < prefix || (rest == prefix && missing-- > 0))
      items[count++] = {rest, static_cast<uint64_t>(i)};
  }
  // The row changed since it was counted: any others are taken.
  for (; count < k; ++count) items[count] = {rest_of(count), static_cast<uint64_t>(count)};
  for (int shift = 0; out.sorted && shift < 8 * W; shift += 8) {
    std::memset(counts, 0, sizeof(counts));
    for (Int i = 0; i < k; ++i) ++counts[items[i].rest >> shift & 255];
    if (counts[items[0].rest >> shift & 255] == k) continue;
    Int sum = 0;
    for (Int& place : counts) {
      const Int own = place;
      place = sum;
      sum += own;
    }
    for (Int i = 0; i < k; ++i) other[counts[items[i].rest >> shift & 255]++] = items[i];
    std::swap(items, other);
  }
  for (Int i = 0; i < k; ++i) put(out, i, row, static_cast<Int>(items[i].position));
}

}  // namespace anydml::top_k
