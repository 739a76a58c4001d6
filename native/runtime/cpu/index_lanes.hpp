// Index values to byte offsets, some at a time, straight from where the values are: a register
// holds what is checked, used, and named when it is bad (read_once.hpp). A copy of the values first
// would cost a fifth of the time where reads of elements are short and far apart, and where updates
// go to lines in a near cache.
//
// For sizes and strides of 32 bits, so that one short multiplication does.
#pragma once

#include <bit>

#include "common/indexing.hpp"
#include "runtime/cpu/read_once.hpp"

namespace anydml {

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ANYDML_LANES 8
struct Lanes {
  __m512i of;

  template <class Index>
  static Lanes read(const char* values) {
    if constexpr (sizeof(Index) == 8)
      return {read_once_512<Index>(values)};
    else if constexpr (static_cast<Index>(-1) < 0)
      return {_mm512_maskz_cvtepi32_epi64(0xFF, read_once_256<Index>(values))};
    else
      return {_mm512_maskz_cvtepu32_epi64(0xFF, read_once_256<Index>(values))};
  }
  // The first and second values of pairs.
  template <class Index>
  static void read(const char* values, Lanes& first, Lanes& second) {
    const __m512i low = read_once_512<Index>(values);
    if constexpr (sizeof(Index) == 8) {
      const __m512i high = read_once_512<Index>(values + 64);
      const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
      const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
      first.of = _mm512_permutex2var_epi64(low, even, high);
      second.of = _mm512_permutex2var_epi64(low, odd, high);
    } else if constexpr (static_cast<Index>(-1) < 0) {
      first.of = _mm512_maskz_srai_epi64(0xFF, _mm512_maskz_slli_epi64(0xFF, low, 32), 32);
      second.of = _mm512_maskz_srai_epi64(0xFF, low, 32);
    } else {
      first.of = _mm512_maskz_srli_epi64(0xFF, _mm512_maskz_slli_epi64(0xFF, low, 32), 32);
      second.of = _mm512_maskz_srli_epi64(0xFF, low, 32);
    }
  }
  static Lanes all(Int value) { return {_mm512_set1_epi64(value)}; }
  static Lanes counting(Int from, Int by) {
    return {_mm512_setr_epi64(from, from + by, from + 2 * by, from + 3 * by, from + 4 * by,
                              from + 5 * by, from + 6 * by, from + 7 * by)};
  }

  void wrap(Lanes size) { of = _mm512_mask_add_epi64(of, _mm512_movepi64_mask(of), of, size.of); }
  // The product with values in [0, size), else 0; `good`: the lanes in range.
  Lanes offset(Lanes size, Lanes stride, unsigned& good) const {
    const __mmask8 in = _mm512_cmplt_epu64_mask(of, size.of);
    good = in;
    return {_mm512_maskz_mul_epu32(in, of, stride.of)};
  }
  Lanes plus(Lanes other) const { return {_mm512_add_epi64(of, other.of)}; }
  void store(Int* to) const { _mm512_storeu_si512(to, of); }
};
#elif defined(__AVX2__)
#define ANYDML_LANES 4
struct Lanes {
  __m256i of;

  template <class Index>
  static Lanes read(const char* values) {
    if constexpr (sizeof(Index) == 8)
      return {read_once_256<Index>(values)};
    else
      return {widened<Index>(read_once_128<Index>(values))};
  }
  // The first and second values of pairs.
  template <class Index>
  static void read(const char* values, Lanes& first, Lanes& second) {
    const __m256i low = read_once_256<Index>(values);
    if constexpr (sizeof(Index) == 8) {
      const __m256i high = read_once_256<Index>(values + 32);
      first.of = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xD8);
      second.of = _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(low, high), 0xD8);
    } else {
      const __m256i even_odd = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
      const __m256i separated = _mm256_permutevar8x32_epi32(low, even_odd);
      first.of = widened<Index>(_mm256_castsi256_si128(separated));
      second.of = widened<Index>(_mm256_extracti128_si256(separated, 1));
    }
  }
  static Lanes all(Int value) { return {_mm256_set1_epi64x(value)}; }
  static Lanes counting(Int from, Int by) {
    return {_mm256_setr_epi64x(from, from + by, from + 2 * by, from + 3 * by)};
  }

  void wrap(Lanes size) {
    const __m256i below = _mm256_cmpgt_epi64(_mm256_setzero_si256(), of);
    of = _mm256_add_epi64(of, _mm256_and_si256(below, size.of));
  }
  Lanes offset(Lanes size, Lanes stride, unsigned& good) const {
    const __m256i below = _mm256_cmpgt_epi64(_mm256_setzero_si256(), of);
    const __m256i in = _mm256_andnot_si256(below, _mm256_cmpgt_epi64(size.of, of));
    good = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(in)));
    return {_mm256_mul_epu32(_mm256_and_si256(of, in), stride.of)};
  }
  Lanes plus(Lanes other) const { return {_mm256_add_epi64(of, other.of)}; }
  void store(Int* to) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), of); }

 private:
  template <class Index>
  static __m256i widened(__m128i values) {
    return static_cast<Index>(-1) < 0 ? _mm256_cvtepi32_epi64(values)
                                      : _mm256_cvtepu32_epi64(values);
  }
};
#endif

#if defined(ANYDML_LANES)
// Whether the loops below support tuples of this width, and axes of these sizes and strides.
inline bool lanes_apply(int width, const Int* sizes, const Int* strides) {
  constexpr Int narrow = Int{1} << 32;
  bool small = width == 1 || width == 2;
  for (int k = 0; small && k < width; ++k)
    small = sizes[k] <= narrow && strides[k] >= 0 && strides[k] < narrow;
  return small;
}

// Offsets of `count` tuples of kWidth, 0 for a value out of range; to the i-th is added base + i *
// step. The position of the first value that is out of range, or -1.
template <class Index, int kWidth>
Int lane_offsets(const char* values, Int count, const Int* sizes, const Int* strides, Int base,
                 Int step, Int* offsets) {
  constexpr Int bytes = kWidth * Int{sizeof(Index)};
  constexpr unsigned all = (1u << ANYDML_LANES) - 1;
  Lanes limits[kWidth], factors[kWidth];
  for (int k = 0; k < kWidth; ++k) {
    limits[k] = Lanes::all(sizes[k]);
    factors[k] = Lanes::all(strides[k]);
  }
  Lanes start = Lanes::counting(base, step);
  const Lanes steps = Lanes::all(ANYDML_LANES * step);
  Int bad = -1, i = 0;
  for (; i + ANYDML_LANES <= count; i += ANYDML_LANES) {
    Lanes at[kWidth];
    if constexpr (kWidth == 1)
      at[0] = Lanes::read<Index>(values + i * bytes);
    else
      Lanes::read<Index>(values + i * bytes, at[0], at[1]);
    unsigned good[kWidth], both = all;
    Lanes sum = start;
    for (int k = 0; k < kWidth; ++k) {
      if constexpr (static_cast<Index>(-1) < static_cast<Index>(0)) at[k].wrap(limits[k]);
      sum = sum.plus(at[k].offset(limits[k], factors[k], good[k]));
      both &= good[k];
    }
    sum.store(offsets + i);
    start = start.plus(steps);
    if (both != all && bad < 0) [[unlikely]] {
      const int lane = std::countr_one(both);
      bad = (i + lane) * kWidth + (kWidth == 1 || (good[0] >> lane & 1) == 0 ? 0 : 1);
    }
  }
  for (; i < count; ++i) {
    Int sum = base + i * step;
    for (int k = 0; k < kWidth; ++k) {
      const unsigned long long limit = static_cast<unsigned long long>(sizes[k]);
      const Int place = i * kWidth + k;
      const unsigned long long at =
          wrap_index(read_once<Index>(values + place * Int{sizeof(Index)}), limit);
      if (at < limit)
        sum += static_cast<Int>(at) * strides[k];
      else if (bad < 0)
        bad = place;
    }
    offsets[i] = sum;
  }
  return bad;
}

// The position of the first of `count` values that is out of range, or -1.
template <class Index>
Int lane_check(const char* values, Int count, Int size) {
  constexpr Int bytes = sizeof(Index);
  constexpr unsigned all = (1u << ANYDML_LANES) - 1;
  const Lanes limit = Lanes::all(size);
  Int i = 0;
  for (; i + ANYDML_LANES <= count; i += ANYDML_LANES) {
    Lanes at = Lanes::read<Index>(values + i * bytes);
    if constexpr (static_cast<Index>(-1) < static_cast<Index>(0)) at.wrap(limit);
    unsigned good;
    at.offset(limit, limit, good);
    if (good != all) return i + std::countr_one(good);
  }
  const unsigned long long bound = static_cast<unsigned long long>(size);
  for (; i < count; ++i)
    if (wrap_index(read_once<Index>(values + i * bytes), bound) >= bound) return i;
  return -1;
}
#endif

}  // namespace anydml
