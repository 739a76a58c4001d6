// The first bad index in row-major order, of those that several threads find.
#pragma once

#include <atomic>
#include <limits>

#include "runtime/plans.hpp"

namespace anydml {

constexpr Int kNoBadIndex = std::numeric_limits<Int>::max();

// Lowers `first_bad` to `value`, from any thread; a negative value means none.
inline void lower(std::atomic<Int>& first_bad, Int value) {
  if (value < 0) return;
  Int seen = first_bad.load(std::memory_order_relaxed);
  while (value < seen && !first_bad.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

inline Status status_of(const std::atomic<Int>& first_bad) {
  const Int bad = first_bad.load(std::memory_order_relaxed);
  return {bad == kNoBadIndex ? -1 : bad};
}

}  // namespace anydml
