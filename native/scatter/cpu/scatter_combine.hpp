// How SCATTER's reductions (native/common/elements.hpp) compute on the CPU.
#pragma once

#include <bit>
#include <type_traits>

#include "common/elements.hpp"
#include "elements/cpu/convert.hpp"
#include "runtime/plans.hpp"

#if defined(__SSE2__)
#define ANYDML_SSE2 1
#include <immintrin.h>
#endif
#if defined(__F16C__) && defined(__AVX2__)
#define ANYDML_F16C 1
#endif

namespace anydml::scatter {

inline float number(Half half) {
#if defined(ANYDML_F16C)
  return _cvtsh_ss(half.bits);
#else
  return half_to_float(half.bits);
#endif
}
inline float number(Bfloat value) { return bfloat_to_float(value.bits); }
template <class T>
inline T number(T value) {
  return value;
}

// Floats of 16 bits as float32, and back. A NaN becomes a signalling one with all of its bits,
// which arithmetic makes quiet: that of an element without updates gets its bits back, any other
// becomes the canonical NaN.
constexpr uint32_t kQuiet = 0x400000;
template <class T>
constexpr int kFraction = kIsSame<T, Half> ? 10 : 7;

template <class T>
inline float widened(T element) {
  constexpr uint32_t fraction = (1u << kFraction<T>)-1;
  if ((element.bits & 0x7FFF) <= kInfinity<T>) return number(element);
  return std::bit_cast<float>(static_cast<uint32_t>(element.bits & 0x8000) << 16 |
                              kInfinity<float> | (element.bits & fraction) << (22 - kFraction<T>));
}
template <class T>
inline T rounded(float value) {
  return {std::is_same_v<T, Half> ? float_to_half(value) : float_to_bfloat(value)};
}
template <class T>
inline T narrowed(float value) {
  constexpr uint32_t fraction = (1u << kFraction<T>)-1;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value == value || (bits & kQuiet) != 0) return rounded<T>(value);
  return {static_cast<uint16_t>((bits >> 16 & 0x8000) | kInfinity<T> |
                                (bits >> (22 - kFraction<T>)&fraction))};
}

struct Numbers {
  template <class T>
  static auto number(T value) {
    return scatter::number(value);
  }
  template <class T>
  static T sum(T a, T b) {
    return a + b;
  }
  template <class T>
  static T product(T a, T b) {
    return a * b;
  }
  // GCC 12 fuses products and sums of pairs of doubles (fmaddsub) regardless of -ffp-contract=off.
  template <class T>
  static T rounded_product(T a, T b) {
    T product = a * b;
#if defined(ANYDML_SSE2)
    asm("" : "+x"(product));
#endif
    return product;
  }
  template <class T>
  static T finished(T value) {
    return canonical(value);
  }
  template <class T>
  static T quotient(T sum, Int count) {
    return canonical(sum / static_cast<T>(count));
  }
};
// Whether elements are float32 while they take updates.
template <class T>
constexpr bool is_half_sum(Reduction reduction) {
  return kIsShortFloat<T> && is_arithmetic(reduction);
}
// Whether sums and products stay in vector registers, for which Lane exists.
template <class T>
constexpr bool is_lane_sum(Reduction reduction) {
#if defined(ANYDML_SSE2)
  return std::is_floating_point_v<T> && is_arithmetic(reduction);
#else
  return (void)reduction, false;
#endif
}

#if defined(ANYDML_SSE2)
// One number in a vector register. NaNs keep their payload.
template <class T>
struct Lane;
template <>
struct Lane<float> {
  __m128 value;
  static Lane at(const char* address) { return {_mm_set_ss(load<float>(address))}; }
  template <Reduction kReduction>
  Lane combined(Lane update) const {
    return {kReduction == Reduction::add ? _mm_add_ss(value, update.value)
                                         : _mm_mul_ss(value, update.value)};
  }
  void put(char* address) const { store(address, _mm_cvtss_f32(value)); }
};
template <>
struct Lane<double> {
  __m128d value;
  static Lane at(const char* address) { return {_mm_set_sd(load<double>(address))}; }
  template <Reduction kReduction>
  Lane combined(Lane update) const {
    return {kReduction == Reduction::add ? _mm_add_sd(value, update.value)
                                         : _mm_mul_sd(value, update.value)};
  }
  void put(char* address) const { store(address, _mm_cvtsd_f64(value)); }
};

// Whether a NaN was among some numbers, two at a time and outside of the chain of sums: choosing
// the canonical NaN at every step would make that chain longer.
class NanWatch {
 public:
  void see(__m128 a, __m128 b) { seen_ = _mm_or_ps(seen_, _mm_cmpunord_ss(a, b)); }
  void see(__m128d a, __m128d b) { seen_ = _mm_or_ps(seen_, _mm_castpd_ps(_mm_cmpunord_sd(a, b))); }
  bool any() const { return (_mm_movemask_ps(seen_) & 1) != 0; }

 private:
  __m128 seen_ = _mm_setzero_ps();
};
#endif

}  // namespace anydml::scatter
