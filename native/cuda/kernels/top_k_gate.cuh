// A quick test of 16 bytes of elements: false only if no key among them reaches a bound. It works
// on the elements themselves, for a key of each would take longer than the memory does.
#pragma once

#include "top_k_key.cuh"

namespace anydml::top_k {

// The general gate, and the one of integers.
template <bool Float, bool Smallest>
struct Gate {
  unsigned limit, flip;
  unsigned long long wide_limit, wide_flip;

  __device__ Gate(Key bound, Raw flip_bits) {
    const Raw change = static_cast<Raw>(flip_bits ^ kSign);
    constexpr unsigned all = W == 1 ? 0x01010101u : W == 2 ? 0x00010001u : 1u;
    limit = static_cast<unsigned>(bound) * all;
    flip = static_cast<unsigned>(change) * all;
    wide_limit = bound;
    wide_flip = change;
  }

  __device__ void take(const Gate& other) {
    limit = other.limit;
    wide_limit = other.wide_limit;
  }

  __device__ bool any(const uint4& x) const {
    if constexpr (W == 8) {
      const unsigned long long low = x.x | static_cast<unsigned long long>(x.y) << 32;
      const unsigned long long high = x.z | static_cast<unsigned long long>(x.w) << 32;
      return (low ^ wide_flip) >= wide_limit || (high ^ wide_flip) >= wide_limit;
    } else if constexpr (W == 4) {
      return (x.x ^ flip) >= limit || (x.y ^ flip) >= limit || (x.z ^ flip) >= limit ||
             (x.w ^ flip) >= limit;
    } else {
      // Each lane of a word: compared below the top bit by a difference that borrows from it only.
      constexpr unsigned tops = W == 1 ? 0x80808080u : 0x80008000u;
      const auto reach = [&](unsigned word) {
        const unsigned a = word ^ flip;
        const unsigned difference = (a | tops) - (limit & ~tops);
        return (a & ~limit) | (~(a ^ limit) & difference);
      };
      return ((reach(x.x) | reach(x.y) | reach(x.z) | reach(x.w)) & tops) != 0;
    }
  }
};

// The least that `ordered` keys of floats (order.hpp, without a flip) stand for.
__device__ inline Raw float_bits(Raw ordered) {
  return ordered & kSign ? static_cast<Raw>(kSign | static_cast<Raw>(~ordered + 1)) : ordered;
}

// Floats. Largest: greater than the one below the bound, or NaN. Smallest: at most the bound; where
// NaN is wanted too, everything.
template <bool Smallest>
struct Gate<true, Smallest> {
  Raw limit;
  bool everything;

  __device__ Gate(Key bound, Raw) {
    constexpr Signed infinity = static_cast<Signed>(Bits<W>::infinity);
    constexpr Raw nan = static_cast<Raw>(Bits<W>::infinity | 1);
    if constexpr (Smallest) {
      const Signed most = static_cast<Signed>(static_cast<Raw>(~(static_cast<Raw>(bound) ^ kSign)));
      everything = most == static_cast<Signed>(static_cast<Raw>(~kSign));
      limit = most > infinity    ? static_cast<Raw>(infinity)
              : most < -infinity ? nan
                                 : float_bits(static_cast<Raw>(most));
    } else {
      const Signed least = static_cast<Signed>(static_cast<Raw>(static_cast<Raw>(bound) ^ kSign));
      everything = least <= -infinity;
      const Signed below = static_cast<Signed>(least - (everything ? 0 : 1));
      limit = below > infinity ? static_cast<Raw>(infinity) : float_bits(static_cast<Raw>(below));
    }
    if constexpr (W == 2) pair = static_cast<unsigned>(limit) * 0x00010001u;
  }

  __device__ void take(const Gate& other) {
    limit = other.limit;
    everything = other.everything;
    pair = other.pair;
  }

  unsigned pair = 0;

  __device__ static bool one(float x, float y) { return Smallest ? x <= y : !(x <= y); }
  __device__ static bool one(double x, double y) { return Smallest ? x <= y : !(x <= y); }
  __device__ unsigned two(unsigned x) const {
    unsigned mask;
    if constexpr (Smallest)
      asm("set.le.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(x), "r"(pair));
    else
      asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(x), "r"(pair));
    return mask;
  }

  __device__ bool any(const uint4& x) const {
    if constexpr (W == 2) {
      return everything || (two(x.x) | two(x.y) | two(x.z) | two(x.w)) != 0;
    } else if constexpr (W == 4) {
      const float y = __uint_as_float(limit);
      return everything || one(__uint_as_float(x.x), y) || one(__uint_as_float(x.y), y) ||
             one(__uint_as_float(x.z), y) || one(__uint_as_float(x.w), y);
    } else {
      const double y = __longlong_as_double(static_cast<long long>(limit));
      return everything || one(__hiloint2double(static_cast<int>(x.y), static_cast<int>(x.x)), y) ||
             one(__hiloint2double(static_cast<int>(x.w), static_cast<int>(x.z)), y);
    }
  }
};

}  // namespace anydml::top_k
