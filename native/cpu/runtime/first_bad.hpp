// The first bad index in row-major order, of what several threads find.
#pragma once

#include <atomic>
#include <limits>

#include "../plans.hpp"

namespace anydml {

constexpr Int kNoBadIndex = std::numeric_limits<Int>::max();

// Lowers `least` to `value`, from any thread; a negative value means none.
inline void lower(std::atomic<Int>& least, Int value) {
  if (value < 0) return;
  Int seen = least.load(std::memory_order_relaxed);
  while (value < seen && !least.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

inline Status status_of(const std::atomic<Int>& least) {
  const Int bad = least.load(std::memory_order_relaxed);
  return {bad == kNoBadIndex ? -1 : bad};
}

}  // namespace anydml
