// One element as another type: what native/elements/cpu/convert.hpp says, to the bit. Rounding
// is to nearest even, every NaN that comes out is the canonical one, integers saturate.
#pragma once

#include "common/elements.hpp"

namespace anydml::cuda {

using namespace anydml;  // for kernels, which are in no namespace

// By the values of DataType.
template <int N>
struct Number;
namespace names {
using float64 = double;
using float32 = float;
using float16 = Half;
using bfloat16 = Bfloat;
using int64 = long long;
using int32 = int;
using int16 = short;
using int8 = signed char;
using uint64 = unsigned long long;
using uint32 = unsigned int;
using uint16 = unsigned short;
using uint8 = unsigned char;
using complex64 = Complex<float>;
using complex128 = Complex<double>;
}  // namespace names
#define ANYDML_ELEMENT_TYPE(name, number, ...) \
  template <>                                  \
  struct Number<number> {                      \
    using Type = names::name;                  \
  };
#include "common/types.def"

__device__ inline float canonical(float value) {
  return value == value ? value : __uint_as_float(0x7FC00000u);
}
__device__ inline double canonical(double value) {
  return value == value ? value : __longlong_as_double(0x7FF8000000000000ll);
}

__device__ inline float widen(Half half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half.bits));
  return value;
}
__device__ inline Half narrow(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return {value == value ? bits : static_cast<unsigned short>(0x7E00)};
}
__device__ inline Half narrow(double value) {
  unsigned short bits;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
  return {value == value ? bits : static_cast<unsigned short>(0x7E00)};
}

__device__ inline float widen(Bfloat value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
__device__ inline Bfloat to_bfloat(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  return {static_cast<unsigned short>(value == value ? rounded : 0x7FC0u)};
}
// Rounds to odd: a float whose last bit is set if bits are lost, so that a second rounding is
// exact.
__device__ inline float odd(float truncated, bool exact) {
  return __uint_as_float(__float_as_uint(truncated) | (exact ? 0u : 1u));
}
__device__ inline Bfloat to_bfloat(double value) {
  const float near = __double2float_rz(value);
  return to_bfloat(odd(near, !(value == value) || static_cast<double>(near) == value));
}
__device__ inline Bfloat to_bfloat(long long value) {
  const float near = __ll2float_rz(value);
  return to_bfloat(odd(near, static_cast<long long>(near) == value));
}
__device__ inline Bfloat to_bfloat(unsigned long long value) {
  const float near = __ull2float_rz(value);
  return to_bfloat(odd(near, static_cast<unsigned long long>(near) == value));
}
template <class Integer>
__device__ inline Bfloat to_bfloat(Integer value) {
  return to_bfloat(static_cast<double>(value));
}

// Truncates, saturates out-of-range values, and maps NaN to 0.
template <class To, class From>
__device__ inline To to_integer(From value) {
  constexpr int bits = 8 * static_cast<int>(sizeof(To));
  constexpr unsigned long long top = 1ull << (bits - 1);
  constexpr From end = static_cast<From>(top) * (kIsSigned<To> ? 1 : 2);
  constexpr From low = kIsSigned<To> ? -static_cast<From>(top) : static_cast<From>(0);
  constexpr To min_value = kIsSigned<To> ? static_cast<To>(top) : static_cast<To>(0);
  if (!(value == value)) return 0;
  if (value >= end) return static_cast<To>(static_cast<To>(~0ull) ^ min_value);
  if (value < low) return min_value;
  return static_cast<To>(value);
}

template <class T>
__device__ inline auto number_of(T value) {
  if constexpr (kIsShortFloat<T>)
    return widen(value);
  else
    return value;
}

template <class To, class From>
__device__ inline To convert(From value) {
  if constexpr (kIsShortFloat<From>) {
    return convert<To>(widen(value));
  } else if constexpr (kIsSame<To, Bfloat>) {
    return to_bfloat(value);
  } else if constexpr (kIsSame<To, Half>) {
    if constexpr (kIsFloat<From>)
      return narrow(value);
    else
      return narrow(static_cast<float>(value));
  } else if constexpr (kIsFloat<To>) {
    if constexpr (kIsFloat<From>)
      return canonical(static_cast<To>(value));
    else
      return static_cast<To>(value);
  } else if constexpr (kIsFloat<From>) {
    return to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace anydml::cuda
