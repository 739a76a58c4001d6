// One element as another type, in forms that the compiler turns into vectors at every level.
//
// The result does not depend on the level: rounding is the hardware's to nearest even, every NaN
// that comes out is the canonical one, and a float is brought into an integer's range before it is
// converted, as what hardware makes of others differs.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace anydml {

inline float canonical(float value) {
  return value == value ? value : std::bit_cast<float>(uint32_t{0x7FC00000});
}
inline double canonical(double value) {
  return value == value ? value : std::bit_cast<double>(uint64_t{0x7FF8000000000000});
}

// All bits of a number, or none, without a branch: a branch would keep the loop from being
// vectorized, and random numbers would mispredict it.
template <class T>
inline T select(T value, bool is_selected) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return std::bit_cast<T>(std::bit_cast<Bits>(value) & (Bits{0} - static_cast<Bits>(is_selected)));
}

template <class T>
inline T joined(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return std::bit_cast<T>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));
}

// Truncates, saturates out-of-range values, and maps NaN to 0.
template <class To, class From>
inline To to_integer(From value) {
  using Limits = std::numeric_limits<To>;
  constexpr int digits = Limits::digits;  // without the sign
  constexpr From low = static_cast<From>(Limits::min());
  if constexpr (digits < std::numeric_limits<From>::digits) {
    constexpr From high = static_cast<From>(Limits::max());  // which the float type can represent
    const From number = select(value, value == value);
    const From above = number < low ? low : number;
    const From inside = above > high ? high : above;
    if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>)
      return static_cast<To>(static_cast<int32_t>(inside));
    else
      return static_cast<To>(static_cast<int64_t>(inside));  // uint32 of a double
  } else {
    constexpr From end = static_cast<From>(To{1} << (digits - 1)) * 2;  // above the largest
    using Signed = std::make_signed_t<To>;
    using Unsigned = std::make_unsigned_t<To>;
    const bool over = value >= end, inside = (value >= low) & (value < end);
    const From number = select(value, inside);
    const Unsigned max_value = static_cast<Unsigned>(Limits::max());
    const Unsigned past = max_value & (Unsigned{0} - static_cast<Unsigned>(over));
    if constexpr (std::is_signed_v<To>) {
      const Unsigned min_value = static_cast<Unsigned>(value < low) << digits;
      return static_cast<To>(static_cast<Unsigned>(static_cast<To>(number)) | past | min_value);
    } else {  // in two halves: only signed conversions have vectors everywhere
      constexpr From half = end / 2;
      const bool upper = number >= half;
      const Signed rest = static_cast<Signed>(number - select(half, upper));
      return static_cast<To>(
          (static_cast<Unsigned>(rest) + (static_cast<Unsigned>(upper) << (digits - 1))) | past);
    }
  }
}

// The nearest float, ties to even.
template <class To, class From>
inline To to_float(From value) {
  if constexpr (std::is_same_v<From, uint32_t>) {
    // Signed conversions have vectors everywhere; exact in a double, then rounded once.
    const int32_t low = static_cast<int32_t>(value ^ 0x80000000U);
    return static_cast<To>(static_cast<double>(low) + 2147483648.0);
  } else {
    return static_cast<To>(value);
  }
}

// Selects one of two without a branch, which would keep the loop from being vectorized.
inline uint32_t choose(bool first, uint32_t a, uint32_t b) {
  const uint32_t mask = 0U - static_cast<uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

// FLOAT16 by its bits, without instructions for it.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(half & 0x7FFF) << 13;
  constexpr uint32_t up = 112U << 23;  // between the exponents' biases
  const uint32_t infinite = rest >= (31U << 23) ? up : 0;
  const uint32_t normal = rest + up + infinite;
  const float tiny = std::bit_cast<float>(rest + (113U << 23)) - std::bit_cast<float>(113U << 23);
  const uint32_t bits = choose(rest < (1U << 23), std::bit_cast<uint32_t>(tiny), normal);
  const uint32_t number = choose(rest > (31U << 23), 0x7FC00000U, bits | sign);
  return std::bit_cast<float>(number);
}

inline uint16_t float_to_half(float value) {
  const uint32_t all = std::bit_cast<uint32_t>(value), rest = all & 0x7FFFFFFFU;
  const uint32_t sign = (all >> 16) & 0x8000U;
  // Below the normal numbers an addition rounds; above, the carry of an addition does.
  constexpr uint32_t magic = (112U + 14U) << 23;
  const float sum = std::bit_cast<float>(rest) + std::bit_cast<float>(magic);
  const uint32_t tiny = std::bit_cast<uint32_t>(sum) - magic;
  const uint32_t odd = (rest >> 13) & 1;
  const uint32_t normal = (rest - (112U << 23) + 0xFFFU + odd) >> 13;
  const uint32_t finite = choose(rest < (113U << 23), tiny, normal);
  const uint32_t bits = choose(rest >= (143U << 23), 0x7C00U, finite);  // from 65536 on
  return static_cast<uint16_t>(choose(rest > 0x7F800000U, 0x7E00U, bits | sign));
}

// bfloat16 is the upper half of a FLOAT32.
inline float bfloat_to_float(uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}
inline uint16_t float_to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), rest = bits & 0x7FFFFFFFU;
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>(choose(rest > 0x7F800000U, 0x7FC0U, rounded));
}

// Rounds a double to odd: the float above or below it whose last bit is set if bits are lost.
// Rounding that to 16 bits gives the same as rounding the double once.
inline float to_odd(double value) {
  const float near = static_cast<float>(value);
  const double back = static_cast<double>(near);
  const double size = value < 0 ? -value : value, back_size = back < 0 ? -back : back;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  bits -= back_size > size ? 1 : 0;
  bits |= back != value ? 1 : 0;
  return std::bit_cast<float>(bits);
}

// The same for an integer.
template <class From>
inline float to_odd_float(From value) {
  const uint64_t wide = static_cast<uint64_t>(value);
  const bool negative = std::is_signed_v<From> && value < 0;
  const uint64_t size = negative ? 0 - wide : wide;
  const int lost = std::bit_width(size) - 24;  // the last bits, which a float cannot hold
  if (lost <= 0) return static_cast<float>(value);
  const uint64_t rest = size & ((uint64_t{1} << lost) - 1);
  const float truncated =
      static_cast<float>(static_cast<uint32_t>(size >> lost) | (rest != 0 ? 1U : 0U));
  const float scaled = std::bit_cast<float>(std::bit_cast<uint32_t>(truncated) +
                                            (static_cast<uint32_t>(lost) << 23));
  return negative ? -scaled : scaled;
}

}  // namespace anydml
