// A quick test of 16 bytes of elements: false only if no key among them reaches a bound. It works
// on the elements themselves, for a key of each would take longer than the memory does.
#pragma once

#include "top_k_key.cuh"

namespace anydml::top_k {

// The general gate, and the one of integers.
template <bool Float, bool Smallest>
struct Gate {
  static constexpr unsigned kTops = W == 1 ? 0x80808080u : 0x80008000u;
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

  // Where a lane of a word reaches the limit its top bit is set; compared below that bit by a
  // difference that borrows from it only.
  __device__ unsigned reached(unsigned word) const {
    const unsigned a = word ^ flip;
    const unsigned difference = (a | kTops) - (limit & ~kTops);
    return (a & ~limit) | (~(a ^ limit) & difference);
  }

  // A bit for each element of a word.
  __device__ unsigned lanes(unsigned word) const {
    if constexpr (W == 4) return one(word) ? 1 : 0;
    const unsigned tops = reached(word);
    return W == 2 ? (tops >> 15 & 1) | (tops >> 30 & 2)
                  : (tops >> 7 & 1) | (tops >> 14 & 2) | (tops >> 21 & 4) | (tops >> 28 & 8);
  }
  __device__ bool one(unsigned word) const { return (word ^ flip) >= limit; }
  __device__ bool one(unsigned low, unsigned high) const {
    const unsigned long long word = low | static_cast<unsigned long long>(high) << 32;
    return (word ^ wide_flip) >= wide_limit;
  }

  __device__ bool any(const uint4& x) const {
    if constexpr (W == 8)
      return one(x.x, x.y) || one(x.z, x.w);
    else if constexpr (W == 4)
      return one(x.x) || one(x.y) || one(x.z) || one(x.w);
    else
      return ((reached(x.x) | reached(x.y) | reached(x.z) | reached(x.w)) & kTops) != 0;
  }
};

// The least that `ordered` keys of floats (order.hpp, without a flip) stand for.
__device__ inline Raw float_bits(Raw ordered) {
  return ordered & kSign ? static_cast<Raw>(kSign | static_cast<Raw>(~ordered + 1)) : ordered;
}

// Floats. Largest: greater than the one below the bound, or NaN; everything where that is NaN.
// Smallest: at most the bound; where NaN is wanted too, everything.
template <bool Smallest>
struct Gate<true, Smallest> {
  Raw limit;
  bool everything;

  __device__ Gate(Key bound, Raw) {
    constexpr Signed infinity = static_cast<Signed>(Order::infinity);
    constexpr Raw nan = static_cast<Raw>(Order::infinity | 1);
    if constexpr (Smallest) {
      const Signed signed_bound =
          static_cast<Signed>(static_cast<Raw>(~(static_cast<Raw>(bound) ^ kSign)));
      everything = signed_bound == static_cast<Signed>(static_cast<Raw>(~kSign));
      limit = signed_bound > infinity    ? static_cast<Raw>(infinity)
              : signed_bound < -infinity ? nan
                                         : float_bits(static_cast<Raw>(signed_bound));
    } else {
      const Signed bound_number =
          static_cast<Signed>(static_cast<Raw>(static_cast<Raw>(bound) ^ kSign));
      const Signed below = static_cast<Signed>(bound_number - (bound_number > -infinity ? 1 : 0));
      everything = false;
      limit = bound_number <= -infinity ? nan
              : below > infinity        ? static_cast<Raw>(infinity)
                                        : float_bits(static_cast<Raw>(below));
    }
    if constexpr (W == 2) pair = static_cast<unsigned>(limit) * 0x00010001u;
  }

  __device__ void take(const Gate& other) {
    limit = other.limit;
    everything = other.everything;
    pair = other.pair;
  }

  unsigned pair = 0;

  __device__ static bool within(float x, float y) { return Smallest ? x <= y : !(x <= y); }
  __device__ static bool within(double x, double y) { return Smallest ? x <= y : !(x <= y); }
  // Of the lower element bit 0, of the upper one bit 31 at least.
  __device__ unsigned two(unsigned x) const {
    if constexpr (kBfloat) {  // which is the upper half of a float
      const float bound = __uint_as_float(pair & 0xFFFF0000u);
      return (within(__uint_as_float(x << 16), bound) ? 1u : 0u) |
             (within(__uint_as_float(x & 0xFFFF0000u), bound) ? 0x80000000u : 0u);
    }
    unsigned mask;
    if constexpr (Smallest)
      asm("set.le.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(x), "r"(pair));
    else
      asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(x), "r"(pair));
    return mask;
  }

  __device__ unsigned lanes(unsigned word) const {
    if constexpr (W == 4) return one(word) ? 1 : 0;
    const unsigned mask = Smallest && everything ? ~0u : two(word);
    return (mask & 1) | (mask >> 30 & 2);
  }
  __device__ bool one(unsigned word) const {
    return (Smallest && everything) ||
           within(__uint_as_float(word), __uint_as_float(static_cast<unsigned>(limit)));
  }
  __device__ bool one(unsigned low, unsigned high) const {
    return (Smallest && everything) ||
           within(__hiloint2double(static_cast<int>(high), static_cast<int>(low)),
                  __longlong_as_double(static_cast<long long>(limit)));
  }

  __device__ bool any(const uint4& x) const {
    if constexpr (W == 8)
      return one(x.x, x.y) || one(x.z, x.w);
    else if constexpr (W == 4)
      return one(x.x) || one(x.y) || one(x.z) || one(x.w);
    else
      return (Smallest && everything) || (two(x.x) | two(x.y) | two(x.z) | two(x.w)) != 0;
  }
};

}  // namespace anydml::top_k
