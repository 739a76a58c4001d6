// Several elements at once, as vectors of a type to compute with: read from memory as one type,
// made another one, written to memory. The same bits as the functions of convert.hpp, one element
// after the other.
//
// With AVX-512 every pair of types has lanes: sixteen where neither has more than 32 bits, eight
// otherwise. With AVX2 and F16C those pairs have, eight, that neither hold 64 bits nor make UINT32
// a float or a float UINT32. Integers of up to 32 bits are computed with as 32 bits, FLOAT16 as
// FLOAT32.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/elements.hpp"
#include "runtime/cpu/copy.hpp"

namespace anydml {

template <class To, class From>
constexpr bool has_bfloat = std::is_same_v<To, Bfloat> || std::is_same_v<From, Bfloat>;

template <class T>
constexpr bool is_float = std::is_floating_point_v<T> || std::is_same_v<T, Half>;

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__) && defined(__F16C__)
template <class To, class From>
constexpr int kLanes = has_bfloat<To, From>                   ? 0
                       : sizeof(To) == 8 || sizeof(From) == 8 ? 8
                                                              : 16;
#elif defined(__AVX2__) && defined(__F16C__)
template <class To, class From>
constexpr int kLanes = has_bfloat<To, From>                   ? 0
                       : sizeof(To) == 8 || sizeof(From) == 8 ? 0
                       : (std::is_same_v<To, uint32_t> && is_float<From>) ||
                               (std::is_same_v<From, uint32_t> && is_float<To>)
                           ? 0
                           : 8;
#else
template <class To, class From>
constexpr int kLanes = 0;  // none
#endif

namespace lanes {
// kLanes<To, From> elements, where that is not 0.
template <class To, class From>
inline void convert(const char* from, char* to);
}  // namespace lanes

#if defined(__AVX2__) && defined(__F16C__)
namespace lanes {

inline __m128i bytes_8(const char* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
inline __m128i bytes_16(const char* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
inline __m256i bytes_32(const char* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void put_8(char* to, __m128i value) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), value);
}
inline void put_16(char* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}
inline void put_32(char* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}

// ---- eight elements of up to 32 bits ------------------------------------------------------------

template <class T>
inline auto read_eight(const char* from) {
  if constexpr (std::is_same_v<T, float>)
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  else if constexpr (std::is_same_v<T, Half>)
    return _mm256_cvtph_ps(bytes_16(from));
  else if constexpr (sizeof(T) == 4)
    return bytes_32(from);
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? _mm256_cvtepi16_epi32(bytes_16(from))
                               : _mm256_cvtepu16_epi32(bytes_16(from));
  else
    return std::is_signed_v<T> ? _mm256_cvtepi8_epi32(bytes_8(from))
                               : _mm256_cvtepu8_epi32(bytes_8(from));
}

// The same, and every NaN the canonical one.
inline __m256 canonical_eight(__m256 values) {
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
  return _mm256_blendv_ps(values, nan, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
}

// Low bits of integers.
template <class T>
inline void write_eight(char* to, __m256i values) {
  if constexpr (sizeof(T) == 4) {
    put_32(to, values);
  } else {
    constexpr char no = -128;
    constexpr int size = sizeof(T);
    const __m256i low =
        size == 2 ? _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, no, no, no, no, no, no, no, no, 0, 1,
                                     4, 5, 8, 9, 12, 13, no, no, no, no, no, no, no, no)
                  : _mm256_setr_epi8(0, 4, 8, 12, no, no, no, no, no, no, no, no, no, no, no, no, 0,
                                     4, 8, 12, no, no, no, no, no, no, no, no, no, no, no, no);
    const __m256i packed = _mm256_shuffle_epi8(values, low);
    const __m128i first = _mm256_castsi256_si128(packed);
    const __m128i second = _mm256_extracti128_si256(packed, 1);
    if constexpr (size == 2)
      put_16(to, _mm_unpacklo_epi64(first, second));
    else
      put_8(to, _mm_unpacklo_epi32(first, second));
  }
}
template <class T>
inline void write_eight(char* to, __m256 values) {
  if constexpr (std::is_same_v<T, float>)
    _mm256_storeu_ps(reinterpret_cast<float*>(to), values);
  else
    put_16(to, _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#if !defined(__AVX512F__)

// As a type to compute with: __m256 for a float, __m256i for an integer.
template <class To, class From>
inline auto converted_eight(const char* from) {
  const auto values = read_eight<From>(from);
  if constexpr (is_float<To> && is_float<From>) {
    return canonical_eight(values);
  } else if constexpr (is_float<To>) {
    return _mm256_cvtepi32_ps(values);
  } else if constexpr (is_float<From>) {
    const __m256 ordered = _mm256_cmp_ps(values, values, _CMP_ORD_Q);
    if constexpr (sizeof(To) == 4) {
      const __m256 over = _mm256_cmp_ps(values, _mm256_set1_ps(0x1p31F), _CMP_GE_OQ);
      // Out-of-range values become the lowest number; the highest is its complement.
      const __m256i integers = _mm256_cvttps_epi32(_mm256_and_ps(values, ordered));
      return _mm256_xor_si256(integers, _mm256_castps_si256(over));
    } else {
      using Limits = std::numeric_limits<To>;
      const __m256 number = _mm256_and_ps(values, ordered);
      const __m256 above = _mm256_max_ps(number, _mm256_set1_ps(Limits::min()));
      return _mm256_cvttps_epi32(_mm256_min_ps(above, _mm256_set1_ps(Limits::max())));
    }
  } else {
    return values;
  }
}

template <class To, class From>
inline void convert(const char* from, char* to) {
  write_eight<To>(to, converted_eight<To, From>(from));
}

#else

// ---- sixteen elements of up to 32 bits ----------------------------------------------------------

// Every operation here is masked: the plain ones make GCC 12 warn about its own uninitialised
// variables.
constexpr __mmask16 kSixteen = 0xFFFF;
constexpr __mmask8 kEight = 0xFF;

template <class T>
inline auto read_sixteen(const char* from) {
  if constexpr (std::is_same_v<T, float>)
    return _mm512_loadu_ps(from);
  else if constexpr (std::is_same_v<T, Half>)
    return _mm512_maskz_cvtph_ps(kSixteen, bytes_32(from));
  else if constexpr (sizeof(T) == 4)
    return _mm512_loadu_si512(from);
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? _mm512_maskz_cvtepi16_epi32(kSixteen, bytes_32(from))
                               : _mm512_maskz_cvtepu16_epi32(kSixteen, bytes_32(from));
  else
    return std::is_signed_v<T> ? _mm512_maskz_cvtepi8_epi32(kSixteen, bytes_16(from))
                               : _mm512_maskz_cvtepu8_epi32(kSixteen, bytes_16(from));
}

template <class T>
inline void write_sixteen(char* to, __m512i values) {
  if constexpr (sizeof(T) == 4)
    _mm512_storeu_si512(to, values);
  else if constexpr (sizeof(T) == 2)
    put_32(to, _mm512_maskz_cvtepi32_epi16(kSixteen, values));
  else
    put_16(to, _mm512_maskz_cvtepi32_epi8(kSixteen, values));
}
template <class T>
inline void write_sixteen(char* to, __m512 values) {
  if constexpr (std::is_same_v<T, float>)
    _mm512_storeu_ps(to, values);
  else
    put_32(to,
           _mm512_maskz_cvtps_ph(kSixteen, values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

inline __m512 canonical_sixteen(__m512 values) {
  const __mmask16 nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(values, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

// max and min give their second operand where one is NaN.
template <class To>
inline __m512i to_sixteen_integers(__m512 values) {
  using Limits = std::numeric_limits<To>;
  const __mmask16 ordered = _mm512_cmp_ps_mask(values, values, _CMP_ORD_Q);
  if constexpr (std::is_same_v<To, uint32_t>) {  // values that are too large give all ones
    return _mm512_maskz_cvttps_epu32(kSixteen,
                                     _mm512_maskz_max_ps(kSixteen, values, _mm512_setzero_ps()));
  } else if constexpr (std::is_same_v<To, int32_t>) {  // out-of-range values give the lowest
    const __mmask16 over = _mm512_cmp_ps_mask(values, _mm512_set1_ps(0x1p31F), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(_mm512_maskz_cvttps_epi32(ordered, values), over,
                                 _mm512_set1_epi32(Limits::max()));
  } else {
    const __m512 above = _mm512_maskz_max_ps(ordered, values, _mm512_set1_ps(Limits::min()));
    return _mm512_maskz_cvttps_epi32(
        kSixteen, _mm512_maskz_min_ps(kSixteen, above, _mm512_set1_ps(Limits::max())));
  }
}

template <class To, class From>
inline auto converted_sixteen(const char* from) {
  const auto values = read_sixteen<From>(from);
  if constexpr (is_float<To> && is_float<From>)
    return canonical_sixteen(values);
  else if constexpr (is_float<To>)
    return std::is_same_v<From, uint32_t> ? _mm512_maskz_cvtepu32_ps(kSixteen, values)
                                          : _mm512_maskz_cvtepi32_ps(kSixteen, values);
  else if constexpr (is_float<From>)
    return to_sixteen_integers<To>(values);
  else
    return values;
}

// ---- eight elements, of which one side has 64 bits ----------------------------------------------

template <class T>
inline auto read_wide(const char* from) {
  if constexpr (std::is_same_v<T, double>)
    return _mm512_loadu_pd(from);
  else if constexpr (sizeof(T) == 8)
    return _mm512_loadu_si512(from);
  else
    return read_eight<T>(from);
}

inline __m512d canonical_wide(__m512d values) {
  const __mmask8 nan = _mm512_cmp_pd_mask(values, values, _CMP_UNORD_Q);
  const __m512i bits = _mm512_set1_epi64(0x7FF8000000000000);
  return _mm512_mask_mov_pd(values, nan, _mm512_castsi512_pd(bits));
}

// Rounds to odd: the float above or below whose last bit is set if bits are lost, so that a second
// rounding is exact.
inline __m256 odd_wide(__m512d values) {
  const __m256 near =
      _mm512_maskz_cvt_roundpd_ps(kEight, values, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __m512d back = _mm512_maskz_cvtps_pd(kEight, near);
  const __mmask8 lost = _mm512_cmp_pd_mask(back, values, _CMP_NEQ_UQ);
  const __m256i bits = _mm256_castps_si256(near);
  return _mm256_castsi256_ps(_mm256_mask_or_epi32(bits, lost, bits, _mm256_set1_epi32(1)));
}

// Integers of 64 bits from floats of 64 or 32.
template <class To>
inline __m512i to_integers_64(__m512d values) {
  if constexpr (std::is_signed_v<To>) {
    const __mmask8 ordered = _mm512_cmp_pd_mask(values, values, _CMP_ORD_Q);
    const __mmask8 over = _mm512_cmp_pd_mask(values, _mm512_set1_pd(0x1p63), _CMP_GE_OQ);
    return _mm512_mask_mov_epi64(_mm512_maskz_cvttpd_epi64(ordered, values), over,
                                 _mm512_set1_epi64(std::numeric_limits<To>::max()));
  } else {
    return _mm512_maskz_cvttpd_epu64(kEight,
                                     _mm512_maskz_max_pd(kEight, values, _mm512_setzero_pd()));
  }
}
template <class To>
inline __m512i to_integers_64(__m256 values) {
  if constexpr (std::is_signed_v<To>) {
    const __mmask8 ordered = _mm256_cmp_ps_mask(values, values, _CMP_ORD_Q);
    const __mmask8 over = _mm256_cmp_ps_mask(values, _mm256_set1_ps(0x1p63F), _CMP_GE_OQ);
    return _mm512_mask_mov_epi64(_mm512_maskz_cvttps_epi64(ordered, values), over,
                                 _mm512_set1_epi64(std::numeric_limits<To>::max()));
  } else {
    return _mm512_maskz_cvttps_epu64(kEight, _mm256_max_ps(values, _mm256_setzero_ps()));
  }
}

// Integers of up to 32 bits from floats of 64.
template <class To>
inline __m256i to_integers_32(__m512d values) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_same_v<To, uint32_t>) {
    return _mm512_maskz_cvttpd_epu32(kEight,
                                     _mm512_maskz_max_pd(kEight, values, _mm512_setzero_pd()));
  } else {
    const __mmask8 ordered = _mm512_cmp_pd_mask(values, values, _CMP_ORD_Q);
    const __m512d above = _mm512_maskz_max_pd(ordered, values, _mm512_set1_pd(Limits::min()));
    return _mm512_maskz_cvttpd_epi32(
        kEight, _mm512_maskz_min_pd(kEight, above, _mm512_set1_pd(Limits::max())));
  }
}

// As integers of a type: in 64 bits, or in 32.
template <class To, class Values>
inline auto to_wide_integers(Values values) {
  if constexpr (sizeof(To) == 8)
    return to_integers_64<To>(values);
  else
    return to_integers_32<To>(values);
}

// As doubles.
template <class From, class Values>
inline __m512d doubles(Values values) {
  if constexpr (std::is_same_v<From, double>)
    return values;
  else if constexpr (is_float<From>)
    return _mm512_maskz_cvtps_pd(kEight, values);
  else if constexpr (sizeof(From) == 8)
    return std::is_signed_v<From> ? _mm512_maskz_cvtepi64_pd(kEight, values)
                                  : _mm512_maskz_cvtepu64_pd(kEight, values);
  else
    return std::is_same_v<From, uint32_t> ? _mm512_maskz_cvtepu32_pd(kEight, values)
                                          : _mm512_maskz_cvtepi32_pd(kEight, values);
}

template <class To, class From>
inline auto converted_wide(const char* from) {
  const auto values = read_wide<From>(from);
  if constexpr (std::is_same_v<To, double>) {
    const __m512d numbers = doubles<From>(values);
    if constexpr (is_float<From>)
      return canonical_wide(numbers);
    else
      return numbers;
  } else if constexpr (is_float<To>) {  // from 64 bits
    if constexpr (!std::is_same_v<From, double>)
      return std::is_signed_v<From> ? _mm512_maskz_cvtepi64_ps(kEight, values)
                                    : _mm512_maskz_cvtepu64_ps(kEight, values);
    else
      return canonical_eight(std::is_same_v<To, Half> ? odd_wide(values)
                                                      : _mm512_maskz_cvtpd_ps(kEight, values));
  } else if constexpr (is_float<From>) {
    return to_wide_integers<To>(values);
  } else if constexpr (sizeof(To) == 8) {
    if constexpr (sizeof(From) == 8)
      return values;
    else
      return std::is_signed_v<From> ? _mm512_maskz_cvtepi32_epi64(kEight, values)
                                    : _mm512_maskz_cvtepu32_epi64(kEight, values);
  } else {
    return _mm512_maskz_cvtepi64_epi32(kEight, values);
  }
}

template <class T>
inline void write_wide(char* to, __m512i values) {
  _mm512_storeu_si512(to, values);
}
template <class T>
inline void write_wide(char* to, __m512d values) {
  _mm512_storeu_pd(to, values);
}
template <class T, class Values>
inline void write_wide(char* to, Values values) {
  write_eight<T>(to, values);
}

// ---- a scale and a bias -------------------------------------------------------------------------

// Sixteen integers of 16 bits times a scale plus a bias, rounded once, as T. No sum is NaN.
template <class T>
inline void scale_sixteen(const char* from, char* to, __m512d scale, __m512d bias) {
  const auto half = [&](const char* eight) {
    // As the last bits of a large double: cheaper than an integer conversion.
    const __m512i wide = std::is_signed_v<T> ? _mm512_maskz_cvtepi16_epi64(kEight, bytes_16(eight))
                                             : _mm512_maskz_cvtepu16_epi64(kEight, bytes_16(eight));
    const __m512d large = _mm512_castsi512_pd(wide + _mm512_set1_epi64(0x4338000000000000));
    const __m512d numbers = large - 0x1.8p52;
    const __m512d sums = _mm512_fmadd_pd(numbers, scale, bias);
    // Values that are too low give the lowest integer of 32 bits.
    const __m512d high = _mm512_set1_pd(std::numeric_limits<T>::max());
    return _mm512_maskz_cvttpd_epi32(kEight, _mm512_maskz_min_pd(kEight, sums, high));
  };
  const __m256i first = half(from), second = half(from + 16);
  const __m256i packed =
      std::is_signed_v<T> ? _mm256_packs_epi32(first, second) : _mm256_packus_epi32(first, second);
  put_32(to, _mm256_permute4x64_epi64(packed, 0xD8));
}

// 256 bytes, of which 64 are looked up at once: by the low half of the index in sixteen parts, of
// which the bits of the high half choose one.
class ByteTable {
 public:
  explicit ByteTable(const char* bytes) {
    for (int i = 0; i < 16; ++i)
      parts_[i] = _mm512_maskz_broadcast_i32x4(kSixteen, bytes_16(bytes + 16 * i));
  }
  __m512i at(__m512i indices) const {
    constexpr __mmask64 all = ~__mmask64{0};
    const auto bit = [&](char value) {
      return _mm512_test_epi8_mask(indices, _mm512_set1_epi8(value));
    };
    const __mmask64 first = bit(0x10), second = bit(0x20), third = bit(0x40), fourth = bit(-0x80);
    const __m512i low = indices & _mm512_set1_epi8(15);
    __m512i found[8];
    for (int i = 0; i < 8; ++i) {
      found[i] = _mm512_maskz_shuffle_epi8(all, parts_[2 * i], low);
      found[i] = _mm512_mask_shuffle_epi8(found[i], first, parts_[2 * i + 1], low);
    }
    for (int i = 0; i < 4; ++i)
      found[i] = _mm512_mask_mov_epi8(found[2 * i], second, found[2 * i + 1]);
    for (int i = 0; i < 2; ++i)
      found[i] = _mm512_mask_mov_epi8(found[2 * i], third, found[2 * i + 1]);
    return _mm512_mask_mov_epi8(found[0], fourth, found[1]);
  }

 private:
  __m512i parts_[16];
};

template <class To, class From>
inline void convert(const char* from, char* to) {
  if constexpr (kLanes<To, From> == 16)
    write_sixteen<To>(to, converted_sixteen<To, From>(from));
  else
    write_wide<To>(to, converted_wide<To, From>(from));
}

#endif  // AVX-512

}  // namespace lanes
#endif  // AVX2

// body(from, to) for all of `count` elements, `lanes` at a time; the remainder goes through a
// buffer of one vector.
template <int lanes, class To, class From, class Body>
inline void for_lanes(const char* source, char* target, Int count, Body&& body) {
  constexpr Int from_size = sizeof(From), to_size = sizeof(To);
  Int i = 0;
  for (; i + lanes <= count; i += lanes) body(source + i * from_size, target + i * to_size);
  const Int rest = (count - i) % lanes;
  if (rest == 0) return;
  alignas(64) char from[lanes * from_size] = {}, to[lanes * to_size];
  copy_short(from, source + i * from_size, rest * from_size);
  body(from, to);
  copy_short(target + i * to_size, to, rest * to_size);
}

}  // namespace anydml
