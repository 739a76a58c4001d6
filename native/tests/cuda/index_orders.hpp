// Orders of indices for timings.
#pragma once

#include <vector>

#include "tests/harness.hpp"

namespace anydml::test {

enum class Order { permutation, repeats, ascending, reversed, one, few_indices, window, runs };
inline constexpr const char* kOrders[] = {"permutation", "repeats", "ascending", "reversed",
                                          "one",         "few",     "window",    "runs"};

// A permutation of 2^bits numbers.
inline uint64_t mixed(uint64_t x, int bits) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (uint64_t factor : {0x9E3779B97F4A7C15u, 0xBF58476D1CE4E5B9u, 0x94D049BB133111EBu}) {
    x = x * factor & mask;
    x ^= x >> (bits / 2 + 1);
  }
  return x & mask;
}

// Positions among 2^bits of `count` updates.
inline std::vector<int64_t> positions(Order order, Int count, int bits, uint64_t seed) {
  std::vector<int64_t> indices(static_cast<std::size_t>(count));
  const Int size = Int{1} << bits;
  Random random(seed);
  for (Int i = 0; i < count; ++i)
    indices[static_cast<std::size_t>(i)] =
        order == Order::permutation
            ? static_cast<int64_t>(mixed(static_cast<uint64_t>(i) ^ (seed & 4095), bits))
        : order == Order::repeats   ? random.between(0, size - 1)
        : order == Order::ascending ? i * size / count
        : order == Order::reversed  ? size - 1 - i * size / count
        : order == Order::one       ? size / 2
        : order == Order::window    ? size / 3 + random.between(0, size / 2048)
        : order == Order::runs      ? i / 3 * 3 * size / count
                                    : random.between(0, 7) * (size / 8);
  return indices;
}

}  // namespace anydml::test
