// A quick test of elements: whether a key reaches a bound. It works on the elements themselves, for
// a key of each would take longer than the memory does. NaN passes, also where it is the last.
#pragma once

#include "top_k/cuda/top_k_key.cuh"

namespace anydml::top_k {

// A bit for each of the elements.
template <class Any>
__device__ inline unsigned bits_of_all(const Any& gate, const uint4& x) {
  if constexpr (W == 8) {
    return (gate.reaches(x.x, x.y) ? 1 : 0) | (gate.reaches(x.z, x.w) ? 2 : 0);
  } else {
    constexpr int kPerWord = 4 / W;
    return gate.bits_of(x.x) | gate.bits_of(x.y) << kPerWord | gate.bits_of(x.z) << 2 * kPerWord |
           gate.bits_of(x.w) << 3 * kPerWord;
  }
}

#if ANYDML_is_float == 0

__device__ inline bool takes_smallest(const Flip&) { return false; }  // keys do

template <bool>
struct Gate {
  static constexpr unsigned kTops = W == 1 ? 0x80808080u : 0x80008000u;
  unsigned limit, change;
  unsigned long long wide_limit, wide_change;

  static constexpr bool passes_nan = false;

  __device__ Gate(Key bound, const Flip& flip) {
    constexpr unsigned all = W == 1 ? 0x01010101u : W == 2 ? 0x00010001u : 1u;
    wide_limit = bound;
    wide_change = static_cast<Raw>(flip ^ kSign);
    limit = static_cast<unsigned>(bound) * all;
    change = static_cast<unsigned>(wide_change) * all;
  }

  // Where a lane of a word reaches the limit its top bit is set; compared below that bit by a
  // difference that borrows from it only.
  __device__ unsigned reached(unsigned word) const {
    const unsigned a = word ^ change;
    if constexpr (W == 4) return a >= limit;
    const unsigned difference = (a | kTops) - (limit & ~kTops);
    return ((a & ~limit) | (~(a ^ limit) & difference)) & kTops;
  }
  __device__ bool reaches(unsigned low, unsigned high) const {
    return ((low | static_cast<unsigned long long>(high) << 32) ^ wide_change) >= wide_limit;
  }
  __device__ bool any(const uint4& x) const {
    if constexpr (W == 8)
      return reaches(x.x, x.y) || reaches(x.z, x.w);
    else
      return (reached(x.x) | reached(x.y) | reached(x.z) | reached(x.w)) != 0;
  }
  // A bit for each element of a word.
  __device__ unsigned bits_of(unsigned word) const {
    const unsigned tops = reached(word);
    return W == 4   ? tops
           : W == 2 ? (tops >> 15 & 1) | (tops >> 30 & 2)
                    : (tops >> 7 & 1) | (tops >> 14 & 2) | (tops >> 21 & 4) | (tops >> 28 & 8);
  }
  __device__ unsigned each(const uint4& x) const { return bits_of_all(*this, x); }
};

#else

__device__ inline bool takes_smallest(const Flip& flip) { return (flip.bits & kSign) != 0; }

// Greater than the number below the bound, or NaN. The smallest are the greatest with the
// other sign, where a bound is one more.
template <bool kSmallest>
struct Gate {
  static constexpr Raw sign = kSmallest ? kSign : 0;
  Raw limit;
  bool passes_nan;  // though its key is the least

  __device__ Gate(Key bound, const Flip& flip) {
    constexpr Signed infinity = static_cast<Signed>(Order::infinity);
    passes_nan = flip.nan == kSign;
    if (sign != 0 && bound != static_cast<Key>(kMaxRaw)) ++bound;
    const Signed number = static_cast<Signed>(static_cast<Raw>(static_cast<Raw>(bound) ^ kSign));
    const Raw below = static_cast<Raw>(number - 1);
    limit = number <= -infinity     ? static_cast<Raw>(Order::infinity | 1)  // NaN: everything
            : number - 1 > infinity ? static_cast<Raw>(infinity)
            : (below & kSign) != 0  ? static_cast<Raw>(kSign | static_cast<Raw>(~below + 1))
                                    : below;
  }

  __device__ bool reaches(unsigned x) const {
    return !(__uint_as_float(x ^ static_cast<unsigned>(sign)) <=
             __uint_as_float(static_cast<unsigned>(limit)));
  }
  __device__ bool reaches(unsigned low, unsigned high) const {
    const unsigned long long bits = low | static_cast<unsigned long long>(high) << 32;
    return !(__longlong_as_double(static_cast<long long>(bits ^ sign)) <=
             __longlong_as_double(static_cast<long long>(limit)));
  }
  // Of the lower half bit 0, of the upper one bit 31 at least.
  __device__ unsigned two_reach(unsigned x) const {
    const unsigned signs = static_cast<unsigned>(sign) * 0x00010001u;
    const unsigned limits = static_cast<unsigned>(limit) * 0x00010001u;
    if constexpr (kBfloat) {  // which is the upper half of a float
      const float bound = __uint_as_float(limits & 0xFFFF0000u);
      return (!(__uint_as_float((x ^ signs) << 16) <= bound) ? 1u : 0u) |
             (!(__uint_as_float((x ^ signs) & 0xFFFF0000u) <= bound) ? 0x80000000u : 0u);
    } else {
      return halves_above(x ^ signs, limits);
    }
  }
  // All bits of each half of x that is above that of y, or NaN.
  static __device__ unsigned halves_above(unsigned x, unsigned y) {
    unsigned mask;
    asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(x), "r"(y));
    return mask;
  }
  __device__ bool any(const uint4& x) const {
    if constexpr (W == 8)
      return reaches(x.x, x.y) || reaches(x.z, x.w);
    else if constexpr (W == 4)
      return reaches(x.x) || reaches(x.y) || reaches(x.z) || reaches(x.w);
    else
      return (two_reach(x.x) | two_reach(x.y) | two_reach(x.z) | two_reach(x.w)) != 0;
  }
  __device__ unsigned bits_of(unsigned word) const {
    if constexpr (W == 4) return reaches(word) ? 1 : 0;
    const unsigned mask = two_reach(word);
    return (mask & 1) | (mask >> 30 & 2);
  }
  __device__ unsigned each(const uint4& x) const { return bits_of_all(*this, x); }
};

#endif

}  // namespace anydml::top_k
