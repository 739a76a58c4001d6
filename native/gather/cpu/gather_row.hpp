// Elements of one short row, read in the order of an index chunk: check, wrap and read in one pass.
//
// With AVX-512 sixteen elements at a time; the row is in a near cache, so the reads themselves are
// cheap and turning indices into offsets first would cost as much again. Indices are taken from
// where they are: what a register holds is checked, used, and named when it is bad.
#pragma once

#include <bit>

#include "gather/cpu/gather.hpp"
#include "runtime/cpu/mask.hpp"

namespace anydml::gather {

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define ANYDML_GATHER_ROW 1

// Sixteen indices as wrapped positions, 0 where one is out of range; `good`: those in range.
template <class Index>
inline __m512i positions16(const char* values, unsigned size, __mmask16& good) {
  constexpr bool is_signed = static_cast<Index>(-1) < static_cast<Index>(0);
  if constexpr (sizeof(Index) == 4) {
    const __m512i limit = _mm512_set1_epi32(static_cast<int>(size));
    __m512i at = read_once_512<Index>(values);
    if constexpr (is_signed) at = _mm512_mask_add_epi32(at, _mm512_movepi32_mask(at), at, limit);
    good = _mm512_cmplt_epu32_mask(at, limit);
    return _mm512_maskz_mov_epi32(good, at);
  } else {
    const __m512i limit = _mm512_set1_epi64(static_cast<long long>(size));
    __m512i low = read_once_512<Index>(values), high = read_once_512<Index>(values + 64);
    if constexpr (is_signed) {
      low = _mm512_mask_add_epi64(low, _mm512_movepi64_mask(low), low, limit);
      high = _mm512_mask_add_epi64(high, _mm512_movepi64_mask(high), high, limit);
    }
    const __mmask8 low_in = _mm512_cmplt_epu64_mask(low, limit),
                   high_in = _mm512_cmplt_epu64_mask(high, limit);
    good = static_cast<__mmask16>(mask_bits(low_in) | mask_bits(high_in) << 8);
    const __m256i low32 = _mm512_maskz_cvtepi64_epi32(low_in, low),
                  high32 = _mm512_maskz_cvtepi64_epi32(high_in, high);
    return _mm512_maskz_inserti64x4(0xFF, _mm512_maskz_broadcast_i64x4(0xFF, low32), high32, 1);
  }
}

// Whether rows of this many elements of this size, and indices of a signed 31-bit range, qualify.
inline bool row_applies(Int size, int element_size) {
  return size >= 4 && size < (Int{1} << 31) && (element_size == 4 || element_size == 2);
}

// Elements at `count` indices into a row of `size` contiguous ones. The first bad index, or -1;
// its element is that of position 0.
template <class T, class Index>
inline Int gather_row(char* target, const char* row, const char* values, Int count, Int size) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 2);
  const unsigned limit = static_cast<unsigned>(size);
  Int bad = -1, i = 0;
  for (; i + 16 <= count; i += 16) {
    __mmask16 good;
    const __m512i at = positions16<Index>(values + i * Int{sizeof(Index)}, limit, good);
    if (good != 0xFFFF && bad < 0) [[unlikely]]
      bad = i + std::countr_one(good);
    if constexpr (sizeof(T) == 4) {
      const __m512i read = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xFFFF, at, row, 4);
      _mm512_storeu_si512(target + i * 4, read);
    } else {
      // Pairs of elements; the last element is the upper half of the last pair.
      const __m512i last = _mm512_set1_epi32(static_cast<int>(size) - 2);
      const __m512i pair = _mm512_maskz_min_epi32(0xFFFF, at, last);
      const __m512i read =
          _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xFFFF, pair, row, 2);
      const __m512i upper =
          _mm512_maskz_slli_epi32(0xFFFF, _mm512_maskz_sub_epi32(0xFFFF, at, pair), 4);
      const __m512i value = _mm512_maskz_srlv_epi32(0xFFFF, read, upper);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i * 2),
                          _mm512_maskz_cvtepi32_epi16(0xFFFF, value));
    }
  }
  for (; i < count; ++i) {
    const unsigned long long at =
        wrap_index(read_once<Index>(values + i * Int{sizeof(Index)}), limit);
    if (at >= limit && bad < 0) bad = i;
    store(target + i * Int{sizeof(T)}, load<T>(row + (at < limit ? at : 0) * sizeof(T)));
  }
  return bad;
}
#else
#define ANYDML_GATHER_ROW 0
inline bool row_applies(Int, int) { return false; }
template <class T, class Index>
inline Int gather_row(char*, const char*, const char*, Int, Int) {
  return -1;
}
#endif

}  // namespace anydml::gather
