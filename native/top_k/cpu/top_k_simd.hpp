// The few vector primitives of TOP_K, at the width of the instruction set that this file is
// compiled for. Everything is counted in lines of 64 bytes, so that the algorithms look the same
// everywhere: a line holds 64 / W keys, and 64 keys (a unit) are W lines.
//
// GCC's vector extension does the arithmetic; only the step from a comparison to a bit mask needs
// intrinsics.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/order.hpp"
#include "runtime/cpu/mask.hpp"
#include "runtime/cpu/memory.hpp"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ANYDML_TOP_K_AVX512 1
#endif

namespace anydml::top_k {

constexpr int kLineBytes = 64;
constexpr Int kUnit = 64;

#if defined(ANYDML_TOP_K_AVX512)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kLineVectors = kLineBytes / kVectorBytes;

// Called before elements of a row are read, which another thread may change between two readings:
// native/tests/top_k_changes_test.cpp does so here.
#if defined(ANYDML_TEST_READS)
void before_reading(const void* from, Int stride, Int count, int width);
#else
inline void before_reading(const void*, Int, Int, int) {}
#endif

// A compiler barrier: from here on the array's contents come from this memory, not from another
// read of the row, which may have changed.
template <class T, std::size_t count>
inline void pin(T (&array)[count]) {
  asm("" : "+m"(array));
}

template <int W>
struct Vectors;
#define ANYDML_VECTORS(W, SIGNED, UNSIGNED)                               \
  template <>                                                             \
  struct Vectors<W> {                                                     \
    typedef SIGNED Signed __attribute__((vector_size(kVectorBytes)));     \
    typedef UNSIGNED Unsigned __attribute__((vector_size(kVectorBytes))); \
  };
ANYDML_VECTORS(1, signed char, unsigned char)
ANYDML_VECTORS(2, short, unsigned short)
ANYDML_VECTORS(4, int, unsigned int)
ANYDML_VECTORS(8, long long, unsigned long long)
#undef ANYDML_VECTORS

// Keys of one line, in registers.
template <int W>
struct Line {
  using Vector = typename Vectors<W>::Signed;
  using Key = typename Bits<W>::Signed;
  static constexpr int lanes = kLineBytes / W;
  Vector part[kLineVectors];

  static inline Line read(const void* from) {
    Line line;
    for (int i = 0; i < kLineVectors; ++i)
      std::memcpy(&line.part[i], static_cast<const char*>(from) + i * kVectorBytes, kVectorBytes);
    return line;
  }
  static inline Line splat(Key key) {
    Line line;
    for (int i = 0; i < kLineVectors; ++i) line.part[i] = Vector{} + key;
    return line;
  }
  inline void write(void* to) const {
    for (int i = 0; i < kLineVectors; ++i)
      std::memcpy(static_cast<char*>(to) + i * kVectorBytes, &part[i], kVectorBytes);
  }
  // The same for values read from a row: see pin() of arrays.
  inline void pin() {
    for (int i = 0; i < kLineVectors; ++i) {
#if defined(ANYDML_TOP_K_AVX512)
      asm("" : "+v"(part[i]));
#elif defined(__SSE2__)
      asm("" : "+x"(part[i]));
#else
      asm("" : "+m"(part[i]));
#endif
    }
  }
  inline void raise_to(const Line& other) {
    for (int i = 0; i < kLineVectors; ++i)
      part[i] = part[i] > other.part[i] ? part[i] : other.part[i];
  }
  // Adds one to every lane whose key is at least, or above, the other's.
  inline void count_at_least(const Line& keys, const Line& bound) {
    for (int i = 0; i < kLineVectors; ++i) {
#if defined(ANYDML_TOP_K_AVX512)
      part[i] = keys.part[i] >= bound.part[i] ? part[i] + 1 : part[i];
#else
      part[i] -= static_cast<Vector>(keys.part[i] >= bound.part[i]);
#endif
    }
  }
  inline void count_above(const Line& keys, const Line& bound) {
    for (int i = 0; i < kLineVectors; ++i) {
#if defined(ANYDML_TOP_K_AVX512)
      part[i] = keys.part[i] > bound.part[i] ? part[i] + 1 : part[i];
#else
      part[i] -= static_cast<Vector>(keys.part[i] > bound.part[i]);
#endif
    }
  }
};

template <class Order>
inline Line<Order::width> line_of_keys(const void* from, typename Order::Flip flip) {
  constexpr int W = Order::width;
  using Signed = typename Vectors<W>::Signed;
  using Unsigned = typename Vectors<W>::Unsigned;
  using Key = typename Order::Key;
  before_reading(from, W, Line<W>::lanes, W);
  Line<W> line = Line<W>::read(from);
  for (int i = 0; i < kLineVectors; ++i) {
    Signed key = line.part[i];
    if constexpr (Order::is_float) {  // FloatOrder::key, lane by lane
      constexpr Key max_key = std::numeric_limits<Key>::max();
      const Signed magnitude = key & (Signed{} + max_key);
      const Unsigned sign = (Unsigned)(key >> (8 * W - 1));
      const Signed ordered = (Signed)(((Unsigned)magnitude ^ sign) - sign);
      key = magnitude > (Signed{} + static_cast<Key>(Order::infinity))
                ? (Signed{} + static_cast<Key>(flip.nan))
                : ordered ^ (Signed{} + static_cast<Key>(flip.bits));
    } else {
      key ^= Signed{} + static_cast<Key>(flip);
    }
    line.part[i] = key;
  }
  return line;
}

template <class Order>
inline typename Order::Key key_at(const char* from, typename Order::Flip flip) {
  before_reading(from, 0, 1, Order::width);
  return Order::key(load<typename Order::Unsigned>(from), flip);
}

// Every other element of two vectors, of which the second begins one element early: so nothing
// behind the last element is read.
template <int W, std::size_t... kLane>
inline typename Vectors<W>::Signed every_other(const char* from, std::index_sequence<kLane...>) {
  constexpr int lanes = sizeof...(kLane);
  typename Vectors<W>::Signed low, high;
  std::memcpy(&low, from, kVectorBytes);
  std::memcpy(&high, from + kVectorBytes - W, kVectorBytes);
  return __builtin_shufflevector(low, high, (kLane < lanes / 2 ? 2 * kLane : 2 * kLane + 1)...);
}

// Copies elements at any stride to where they are contiguous: copy_steps() for pieces of a line or
// a few, inlined, of which the last elements too are done by vectors.
template <int W>
inline void pack_elements(const char* __restrict from, Int stride, Int count, char* __restrict to) {
  using Unsigned = typename Bits<W>::Unsigned;
  constexpr int lanes = kVectorBytes / W;
  before_reading(from, stride, count, W);
  Int i = 0;
  if (stride == 2 * W) {
    for (; i + lanes <= count; i += lanes) {
      const auto packed = every_other<W>(from + i * stride, std::make_index_sequence<lanes>());
      std::memcpy(to + i * W, &packed, kVectorBytes);
    }
  } else if (stride == -W) {  // reversed by a constant shuffle
    for (; i < count; ++i) store(to + i * W, load<Unsigned>(from - i * W));
  }
  for (; i < count; ++i) store(to + i * W, load<Unsigned>(from + i * stride));
}

// One bit a lane: key >= bound.
template <int W>
inline uint64_t at_least(const Line<W>& keys, const Line<W>& bound) {
#if defined(ANYDML_TOP_K_AVX512)
  const __m512i a = (__m512i)keys.part[0], b = (__m512i)bound.part[0];
  if constexpr (W == 1) return mask_bits(_mm512_cmpge_epi8_mask(a, b));
  if constexpr (W == 2) return mask_bits(_mm512_cmpge_epi16_mask(a, b));
  if constexpr (W == 4) return mask_bits(_mm512_cmpge_epi32_mask(a, b));
  if constexpr (W == 8) return mask_bits(_mm512_cmpge_epi64_mask(a, b));
#elif defined(__SSE2__)
  constexpr int lanes = kVectorBytes / W;
  uint64_t mask = 0;
  for (int i = 0; i < kLineVectors; ++i) {
    const auto reached = keys.part[i] >= bound.part[i];
    uint64_t bits;
#if defined(__AVX2__)
    const __m256i r = (__m256i)reached;
    if constexpr (W == 1) {
      bits = static_cast<uint32_t>(_mm256_movemask_epi8(r));
    } else if constexpr (W == 2) {
      bits = static_cast<uint32_t>(_mm_movemask_epi8(
          _mm_packs_epi16(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1))));
    } else if constexpr (W == 4) {
      bits = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(r)));
    } else {
      bits = static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(r)));
    }
#else
    const __m128i r = (__m128i)reached;
    if constexpr (W == 1) {
      bits = static_cast<uint32_t>(_mm_movemask_epi8(r));
    } else if constexpr (W == 2) {
      bits = static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(r, _mm_setzero_si128())));
    } else if constexpr (W == 4) {
      bits = static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(r)));
    } else {
      bits = static_cast<uint32_t>(_mm_movemask_pd(_mm_castsi128_pd(r)));
    }
#endif
    mask |= bits << (i * lanes);
  }
  return mask;
#else
  // No mask instruction: first test for any lane, which is rare.
  typename Line<W>::Vector any{};
  for (int i = 0; i < kLineVectors; ++i)
    any |= static_cast<typename Line<W>::Vector>(keys.part[i] >= bound.part[i]);
  uint64_t words[kVectorBytes / 8];
  std::memcpy(words, &any, kVectorBytes);
  uint64_t hit = 0;
  for (uint64_t word : words) hit |= word;
  if (hit == 0) return 0;
  typename Line<W>::Key key[Line<W>::lanes], limits[Line<W>::lanes];
  keys.write(key);
  bound.write(limits);
  uint64_t mask = 0;
  for (int i = 0; i < Line<W>::lanes; ++i) mask |= static_cast<uint64_t>(key[i] >= limits[i]) << i;
  return mask;
#endif
}

// One bit an element for the 64 elements from `from` on.
template <class Order>
inline uint64_t reaching_in_unit(const char* from, typename Order::Flip flip,
                                 const Line<Order::width>& bound) {
  constexpr int W = Order::width;
  uint64_t mask = 0;
  for (int i = 0; i < W; ++i)
    mask |= at_least<W>(line_of_keys<Order>(from + i * kLineBytes, flip), bound)
            << (i * Line<W>::lanes % 64);
  return mask;
}

// Writes base + (position of each set bit), ascending; may write up to 16 values past the last.
inline Int expand_bits(uint64_t mask, uint32_t base, uint32_t* out) {
#if defined(ANYDML_TOP_K_AVX512)
  const __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  // Without branches: the positions of the bits cannot be predicted. No piece depends on another's
  // count.
  for (int piece = 0; piece < 64; piece += 16) {
    const unsigned bits = static_cast<unsigned>(mask >> piece) & 0xFFFF;
    const __m512i index = _mm512_add_epi32(iota, _mm512_set1_epi32(static_cast<int>(base) + piece));
    const int before = __builtin_popcountll(mask & ((uint64_t{1} << piece) - 1));
    _mm512_storeu_si512(out + before,
                        _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), index));
  }
  return __builtin_popcountll(mask);
#else
  Int count = 0;
  for (; mask != 0; mask &= mask - 1)
    out[count++] = base + static_cast<uint32_t>(__builtin_ctzll(mask));
  return count;
#endif
}

// Writes the keys of the lanes whose bits are set, in order; may write a line past the last.
template <int W>
inline void compress_line(const Line<W>& line, uint64_t mask, typename Bits<W>::Signed* out) {
#if defined(ANYDML_TOP_K_AVX512)
  const __m512i all = (__m512i)line.part[0];
  if constexpr (W == 4) {
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), all));
    return;
  }
  if constexpr (W == 8) {
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(static_cast<__mmask8>(mask), all));
    return;
  }
#endif
  typename Bits<W>::Signed lane[Line<W>::lanes];
  line.write(lane);
  for (; mask != 0; mask &= mask - 1) *out++ = lane[__builtin_ctzll(mask)];
}

// Appends base + the positions in [begin, end) of contiguous elements whose key reaches the bound.
// All from 0 to `end` can be read; `out` has capacity for end - begin + 64.
template <class Order>
inline Int filter(const char* row, Int begin, Int end, typename Order::Flip flip,
                  typename Order::Key bound, uint32_t* out, uint32_t base = 0) {
  constexpr int W = Order::width;
  const Line<W> bound_line = Line<W>::splat(bound);
  Int count = 0, i = begin;
  for (; i + kUnit <= end; i += kUnit) {
    const uint64_t mask = reaching_in_unit<Order>(row + i * W, flip, bound_line);
    if (mask != 0) count += expand_bits(mask, base + static_cast<uint32_t>(i), out + count);
  }
  if (i < end && end >= kUnit) {
    // The last unit overlaps the previous one.
    const Int from = end - kUnit;
    const uint64_t mask =
        reaching_in_unit<Order>(row + from * W, flip, bound_line) >> (i - from) << (i - from);
    if (mask != 0) count += expand_bits(mask, base + static_cast<uint32_t>(from), out + count);
  } else {
    for (; i < end; ++i) {
      out[count] = base + static_cast<uint32_t>(i);
      count += key_at<Order>(row + i * W, flip) >= bound;
    }
  }
  return count;
}

// How many keys reach the bound. `count` is a multiple of 64: see pad().
template <int W>
inline Int count_at_least(const typename Bits<W>::Signed* keys, Int count,
                          typename Bits<W>::Signed bound) {
  constexpr int lanes = Line<W>::lanes;
  const Line<W> bound_line = Line<W>::splat(bound);
  Int total = 0;
  if constexpr (W <= 2) {
    for (Int i = 0; i < count; i += kUnit) {
      uint64_t mask = 0;
      for (int n = 0; n < W; ++n)
        mask |= at_least<W>(Line<W>::read(keys + i + n * lanes), bound_line) << (n * lanes % 64);
      total += __builtin_popcountll(mask);
    }
    return total;
  }
  Line<W> sums[2] = {Line<W>::splat(0), Line<W>::splat(0)};
  for (Int i = 0; i < count; i += 2 * lanes) {
    sums[0].count_at_least(Line<W>::read(keys + i), bound_line);
    sums[1].count_at_least(Line<W>::read(keys + i + lanes), bound_line);
  }
  for (const Line<W>& sum : sums) {
    typename Bits<W>::Signed lane[lanes];
    sum.write(lane);
    for (int n = 0; n < lanes; ++n) total += lane[n];
  }
  return total;
}

// Fills up to a multiple of 64 with the least key, which no bound above it counts.
template <class Key>
inline Int pad(Key* keys, Int count) {
  const Int padded = (count + kUnit - 1) / kUnit * kUnit;
  for (Int i = count; i < padded; ++i) keys[i] = std::numeric_limits<Key>::min();
  return padded;
}

template <class Order>
inline void keys_of(const char* row, Int count, typename Order::Flip flip,
                    typename Order::Key* keys) {
  constexpr int W = Order::width;
  Int i = 0;
  for (; i + Line<W>::lanes <= count; i += Line<W>::lanes)
    line_of_keys<Order>(row + i * W, flip).write(keys + i);
  for (; i < count; ++i) keys[i] = key_at<Order>(row + i * W, flip);
}

}  // namespace anydml::top_k
