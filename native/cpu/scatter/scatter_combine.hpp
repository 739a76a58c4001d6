// What one contribution does to one element: the meaning of SCATTER's reductions.
//
// Integers wrap modulo 2^w. float16 and bfloat16 are computed in float32 and rounded to nearest
// even after every contribution. A sum or product that is NaN is the canonical one, whatever came
// in: which operand's NaN an instruction gives depends on the order that a compiler puts them in.
// min and max follow NumPy's minimum and maximum: a NaN on either side gives a NaN (the element's,
// when both are). Complex numbers are summed part by part, and a product's parts are a difference
// and a sum of rounded products; they have no minima. Where the two are equal the element stays as
// it is, so that a -0 is not replaced by a +0, nor a +0 by a -0; the result is always one of the
// two, bit by bit.
#pragma once

#include <bit>
#include <type_traits>

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
  uint16_t bits;
};

// The canonical NaN: quiet, positive, without a payload.
constexpr Float16 kHalfNan{0x7E00};

inline float canonical(float value) { return value == value ? value : __builtin_nanf(""); }
inline double canonical(double value) { return value == value ? value : __builtin_nan(""); }
inline Float16 canonical(Float16 value) {
  return (value.bits & 0x7FFFu) > 0x7C00u ? kHalfNan : value;
}

// The bits of F16C's instructions: a signalling NaN becomes quiet, payloads keep their upper bits.
inline float to_float(Float16 half) {
#if defined(ANYDML_F16C)
  return _cvtsh_ss(half.bits);
#else
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  const uint32_t magnitude = half.bits & 0x7FFFu;
  uint32_t bits;
  if (magnitude >= 0x7C00u) {
    bits = 0x7F800000u | ((magnitude & 0x3FFu) << 13);
    if (magnitude > 0x7C00u) bits |= 0x400000u;
  } else if (magnitude >= 0x400u) {
    bits = (magnitude << 13) + (uint32_t{127 - 15} << 23);
  } else {
    // A subnormal: its integer is exact in float32, and so is the power of two.
    const float value = static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f;
    std::memcpy(&bits, &value, sizeof(bits));
  }
  bits |= sign;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
#endif
}

// A NaN becomes the canonical one.
inline Float16 to_half(float value) {
#if defined(ANYDML_F16C)
  return canonical(Float16{static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))});
#else
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half;
  if (magnitude > 0x7F800000u) return kHalfNan;
  if (magnitude >= 0x477FF000u) {  // 65520 and above round to infinity
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // normal: add half of the last place, ties to even
    half = (magnitude - (uint32_t{127 - 15} << 23) + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else if (magnitude <= 0x33000000u) {  // 2^-25 and below round to zero
    half = 0;
  } else {
    const uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t shift = 126u - (magnitude >> 23);  // 14 to 24
    const uint32_t rest = fraction & ((1u << shift) - 1u), tie = 1u << (shift - 1u);
    half = fraction >> shift;
    half += rest > tie || (rest == tie && (half & 1u) != 0) ? 1u : 0u;
  }
  return {static_cast<uint16_t>(sign | half)};
#endif
}

// The upper half of a float32.
struct Bfloat16 {
  uint16_t bits;
};
inline float to_float(Bfloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
// A NaN becomes the canonical one.
inline Bfloat16 to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(value == value ? rounded : 0x7FC0u)};
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
template <class T>
constexpr bool is_half_sum(Reduction reduction) {
  return std::is_same_v<T, Float16> && is_arithmetic(reduction);
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

#if defined(ANYDML_F16C)
// The same in vector registers from load to store: the way through general ones doubles the time
// that an element which takes many updates needs. NaNs are left as they come.
inline __m128 load_half(const char* address) {
  return _mm_cvtph_ps(_mm_set1_epi16(load<short>(address)));
}
template <Reduction kReduction>
inline __m128 half_sum(__m128 element, __m128 update) {  // before it is rounded
  return kReduction == Reduction::add ? _mm_add_ps(element, update) : _mm_mul_ps(element, update);
}
inline __m128i round_half(__m128 sum) { return _mm_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT); }
inline void store_half(char* address, __m128i half) {
  store(address, static_cast<uint16_t>(_mm_extract_epi16(half, 0)));
}
#endif

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

template <class T>
inline auto number(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>)
    return to_float(value);
  else
    return value;
}

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
  } else if constexpr (std::is_same_v<T, Float16>) {
    const float a = to_float(element), b = to_float(update);
    return to_half(kReduction == Reduction::add ? a + b : a * b);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    const float a = to_float(element), b = to_float(update);
    return to_bfloat(kReduction == Reduction::add ? a + b : a * b);
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
