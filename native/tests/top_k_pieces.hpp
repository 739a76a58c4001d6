// Helpers of the tests of TOP_K's building blocks.
#pragma once

#include <memory>
#include <numeric>

#include "harness.hpp"
#include "top_k/cpu/top_k_row.hpp"

namespace anydml::test {

using namespace anydml::top_k;

template <int W>
using Key = typename Bits<W>::Signed;
template <int W>
constexpr Key<W> kMin = std::numeric_limits<Key<W>>::min();
template <int W>
constexpr Key<W> kMax = std::numeric_limits<Key<W>>::max();

// Positions in result order: greater keys first, earlier ones among equals.
template <class T>
std::vector<Int> order_of(const T* keys, Int count) {
  std::vector<Int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Int{0});
  std::stable_sort(order.begin(), order.end(), [&](Int a, Int b) { return keys[a] > keys[b]; });
  return order;
}

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};
using Items = std::unique_ptr<uint64_t[], Freed>;
// Lines of the cache, without a spare byte.
inline Items items_of(Int count) {
  void* memory = nullptr;
  EXPECT(posix_memalign(&memory, 64, static_cast<std::size_t>(count * 8)) == 0, "memory");
  return Items(static_cast<uint64_t*>(memory));
}

}  // namespace anydml::test
