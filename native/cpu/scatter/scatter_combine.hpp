// What one contribution does to one element: the meaning of SCATTER's reductions.
//
// Integers wrap modulo 2^w. Sums and products of float16 and bfloat16 are those of the float32 that
// their elements are widened to, rounded to nearest even once all updates have been taken; an
// element that took none keeps its bits. A sum or product that is NaN is the canonical one,
// whatever came in: which operand's NaN an instruction gives depends on the order that a compiler
// puts them in. min and max follow NumPy's minimum and maximum: a NaN on either side gives a NaN
// (the element's, when both are). Complex numbers are summed part by part, and a product's parts
// are a difference and a sum of rounded products; they have no minima. Where the two are equal the
// element stays as it is, so that a -0 is not replaced by a +0, nor a +0 by a -0; the result is
// always one of the two, bit by bit.
#pragma once

#include <bit>
#include <type_traits>

#include "../data_movement/convert.hpp"
#include "../plans.hpp"

#if defined(__SSE2__)
#define ANYDML_SSE2 1
#include <immintrin.h>
#endif
#if defined(__F16C__) && defined(__AVX2__)
#define ANYDML_F16C 1
#endif

namespace anydml::scatter {

struct Float16 {
  static constexpr int kFraction = 10;
  static constexpr uint16_t kInfinity = 0x7C00;
  uint16_t bits;
};
struct Bfloat16 {
  static constexpr int kFraction = 7;
  static constexpr uint16_t kInfinity = 0x7F80;
  uint16_t bits;
};
template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

inline float number(Float16 half) {
#if defined(ANYDML_F16C)
  return _cvtsh_ss(half.bits);
#else
  return half_to_float(half.bits);
#endif
}
inline float number(Bfloat16 value) { return bfloat_to_float(value.bits); }
template <class T>
inline T number(T value) {
  return value;
}

// Floats of 16 bits as float32, and back. A NaN becomes a signalling one with all of its bits,
// which arithmetic makes quiet: that of an element without updates gets its bits back, any other
// becomes the canonical NaN.
constexpr uint32_t kInfinity = 0x7F800000, kQuiet = 0x400000;

template <class T>
inline float widened(T element) {
  constexpr uint32_t fraction = (1u << T::kFraction) - 1;
  if ((element.bits & 0x7FFF) <= T::kInfinity) return number(element);
  return std::bit_cast<float>(static_cast<uint32_t>(element.bits & 0x8000) << 16 | kInfinity |
                              (element.bits & fraction) << (22 - T::kFraction));
}
template <class T>
inline T rounded(float value) {
  return {std::is_same_v<T, Float16> ? float_to_half(value) : float_to_bfloat(value)};
}
template <class T>
inline T narrowed(float value) {
  constexpr uint32_t fraction = (1u << T::kFraction) - 1;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value == value || (bits & kQuiet) != 0) return rounded<T>(value);
  return {static_cast<uint16_t>((bits >> 16 & 0x8000) | T::kInfinity |
                                (bits >> (22 - T::kFraction) & fraction))};
}

template <class Part>
struct Complex {
  Part real, imaginary;
};
template <class T>
constexpr bool kIsComplex = false;
template <class Part>
constexpr bool kIsComplex<Complex<Part>> = true;

// A product that is rounded before it is added: GCC 12 fuses products and sums of pairs of doubles
// (fmaddsub) regardless of -ffp-contract=off.
template <class Part>
inline Part rounded_product(Part a, Part b) {
  Part product = a * b;
#if defined(ANYDML_SSE2)
  asm("" : "+x"(product));
#endif
  return product;
}

constexpr bool is_arithmetic(Reduction reduction) {
  return reduction == Reduction::add || reduction == Reduction::mul;
}
// Whether elements are float32 while they take updates.
template <class T>
constexpr bool is_half_sum(Reduction reduction) {
  return kIsHalf<T> && is_arithmetic(reduction);
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

template <Reduction kReduction, class T>
inline T combined(T element, T update) {
  if constexpr (kReduction == Reduction::none) {
    return update;
  } else if constexpr (kIsComplex<T>) {
    static_assert(is_arithmetic(kReduction));
    const T &a = element, &b = update;
    if constexpr (kReduction == Reduction::add)
      return {canonical(a.real + b.real), canonical(a.imaginary + b.imaginary)};
    else
      return {
          canonical(rounded_product(a.real, b.real) - rounded_product(a.imaginary, b.imaginary)),
          canonical(rounded_product(a.real, b.imaginary) + rounded_product(a.imaginary, b.real))};
  } else if constexpr (kReduction == Reduction::min || kReduction == Reduction::max) {
    const auto a = number(element), b = number(update);
    const bool keeps_element = kReduction == Reduction::min ? a <= b : a >= b;
    if constexpr (std::is_integral_v<T>)
      return keeps_element ? element : update;
    else
      return (keeps_element | (a != a)) ? element
                                        : update;  // a comparison with a NaN update is false
  } else if constexpr (std::is_floating_point_v<T>) {
    return canonical(kReduction == Reduction::add ? element + update : element * update);
  } else {
    // Unsigned and at least 32 bits wide: neither signed overflow nor promotion to int.
    using Wide = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    const Wide a = static_cast<Wide>(element), b = static_cast<Wide>(update);
    return static_cast<T>(static_cast<Wide>(kReduction == Reduction::add ? a + b : a * b));
  }
}

}  // namespace anydml::scatter
