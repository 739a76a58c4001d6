// Transposition of one square tile: 64 / W rows of 64 bytes become 64 / W lines of 64 bytes, for
// elements of W bytes (1, 2, 4, 8, 16). Every row is read and every line is written as a whole.
//
// Vectors are seen as lanes of 16 bytes. Interleaving 16 / W registers log2(16 / W) times
// transposes each lane by itself; what is left is a transposition of lanes, done in registers with
// AVX-512 and through a buffer of one tile elsewhere. Interleaving within 16 bytes is one
// instruction on every machine, which is why the same code serves them all.
#pragma once

#include "runtime/cpu/copy.hpp"

namespace anydml {

#if defined(__AVX512F__) && defined(__AVX512BW__)
using Vector = __m512i;
#elif defined(__AVX2__)
using Vector = __m256i;
#else
typedef unsigned char Vector __attribute__((vector_size(16)));
#endif

namespace tile {

// Interleaves the low (high) halves of each 16-byte lane, W bytes at a time.
template <int W, bool High>
inline Vector zip(Vector a, Vector b) {
#if defined(__AVX512F__) && defined(__AVX512BW__)
  // With a full mask: the plain forms make GCC 12 warn of its own uninitialised variable.
  constexpr __mmask64 all = ~__mmask64{0};
  if constexpr (W == 1)
    return High ? _mm512_maskz_unpackhi_epi8(all, a, b) : _mm512_maskz_unpacklo_epi8(all, a, b);
  if constexpr (W == 2)
    return High ? _mm512_maskz_unpackhi_epi16(__mmask32(all), a, b)
                : _mm512_maskz_unpacklo_epi16(__mmask32(all), a, b);
  if constexpr (W == 4)
    return High ? _mm512_maskz_unpackhi_epi32(__mmask16(all), a, b)
                : _mm512_maskz_unpacklo_epi32(__mmask16(all), a, b);
  if constexpr (W == 8)
    return High ? _mm512_maskz_unpackhi_epi64(__mmask8(all), a, b)
                : _mm512_maskz_unpacklo_epi64(__mmask8(all), a, b);
#elif defined(__AVX2__)
  if constexpr (W == 1) return High ? _mm256_unpackhi_epi8(a, b) : _mm256_unpacklo_epi8(a, b);
  if constexpr (W == 2) return High ? _mm256_unpackhi_epi16(a, b) : _mm256_unpacklo_epi16(a, b);
  if constexpr (W == 4) return High ? _mm256_unpackhi_epi32(a, b) : _mm256_unpacklo_epi32(a, b);
  if constexpr (W == 8) return High ? _mm256_unpackhi_epi64(a, b) : _mm256_unpacklo_epi64(a, b);
#else
  constexpr int h = High ? 16 / W / 2 : 0, n = 16 / W;  // in elements; b's come after a's n
  if constexpr (W == 1)
    return __builtin_shufflevector(a, b, h, h + n, h + 1, h + 1 + n, h + 2, h + 2 + n, h + 3,
                                   h + 3 + n, h + 4, h + 4 + n, h + 5, h + 5 + n, h + 6, h + 6 + n,
                                   h + 7, h + 7 + n);
  if constexpr (W == 2) {
    typedef unsigned short V __attribute__((vector_size(16)));
    return (Vector)__builtin_shufflevector((V)a, (V)b, h, h + n, h + 1, h + 1 + n, h + 2, h + 2 + n,
                                           h + 3, h + 3 + n);
  }
  if constexpr (W == 4) {
    typedef unsigned int V __attribute__((vector_size(16)));
    return (Vector)__builtin_shufflevector((V)a, (V)b, h, h + n, h + 1, h + 1 + n);
  }
  if constexpr (W == 8) {
    typedef unsigned long long V __attribute__((vector_size(16)));
    return (Vector)__builtin_shufflevector((V)a, (V)b, h, h + n);
  }
#endif
  return a;
}

#if defined(__AVX512F__)
// Two lanes of a, then two of b.
template <int Lanes>
inline __m512i pick_lanes(__m512i a, __m512i b) {
  return _mm512_maskz_shuffle_i32x4(__mmask16(0xFFFF), a, b, Lanes);
}
#endif

// Transposes every lane of 16 / W registers: register c gets element c of each of them.
template <int W>
inline void transpose_lanes(Vector* rows) {
  constexpr int count = 16 / W;
  Vector other[count];
  // Each round rotates the position by one bit; log2(count) rounds swap register and element.
  for (int round = 1; round < count; round *= 2) {
    for (int i = 0; i < count / 2; ++i) {
      other[2 * i] = zip<W, false>(rows[i], rows[i + count / 2]);
      other[2 * i + 1] = zip<W, true>(rows[i], rows[i + count / 2]);
    }
    for (int i = 0; i < count; ++i) rows[i] = other[i];
  }
}

}  // namespace tile

// lines[c] + to gets bytes [c * W, (c + 1) * W) of every rows[r] + from, r and c in [0, 64 / W).
// `stream`: every line is 64-byte aligned and goes past the cache.
template <int W>
inline void transpose_tile(const void* const* rows, Int from, void* const* lines, Int to,
                           bool stream) {
  constexpr int per_lane = 16 / W;  // rows of a group; a tile has four groups
  const auto row = [&](int i) { return static_cast<const char*>(rows[i]) + from; };
#if defined(__AVX512F__) && defined(__AVX512BW__)
  Vector block[4][per_lane];  // group, register: lane k holds column k * per_lane + register
  for (int group = 0; group < 4; ++group) {
    for (int i = 0; i < per_lane; ++i)
      block[group][i] = _mm512_loadu_si512(row(group * per_lane + i));
    tile::transpose_lanes<W>(block[group]);
  }
  const auto put = [&](int line, Vector value) {
    char* const target = static_cast<char*>(lines[line]) + to;
    if (stream)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(target), value);
    else
      _mm512_storeu_si512(target, value);
  };
  for (int i = 0; i < per_lane; ++i) {
    const Vector low01 = tile::pick_lanes<0x44>(block[0][i], block[1][i]);
    const Vector high01 = tile::pick_lanes<0xEE>(block[0][i], block[1][i]);
    const Vector low23 = tile::pick_lanes<0x44>(block[2][i], block[3][i]);
    const Vector high23 = tile::pick_lanes<0xEE>(block[2][i], block[3][i]);
    put(i, tile::pick_lanes<0x88>(low01, low23));
    put(i + per_lane, tile::pick_lanes<0xDD>(low01, low23));
    put(i + 2 * per_lane, tile::pick_lanes<0x88>(high01, high23));
    put(i + 3 * per_lane, tile::pick_lanes<0xDD>(high01, high23));
  }
#else
  constexpr int lanes = static_cast<int>(sizeof(Vector)) / 16;
  alignas(64) char buffer[64 / W][64];
  for (int group = 0; group < 4; ++group) {
    for (int start = 0; start < 4; start += lanes) {
      Vector block[per_lane];
      for (int i = 0; i < per_lane; ++i)
        std::memcpy(&block[i], row(group * per_lane + i) + start * 16, sizeof(Vector));
      tile::transpose_lanes<W>(block);
      for (int i = 0; i < per_lane; ++i) {
        char lane[sizeof(Vector)];
        std::memcpy(lane, &block[i], sizeof(Vector));
        for (int k = 0; k < lanes; ++k)
          std::memcpy(buffer[(start + k) * per_lane + i] + group * 16, lane + k * 16, 16);
      }
    }
  }
  for (int c = 0; c < 64 / W; ++c) {
    char* const target = static_cast<char*>(lines[c]) + to;
    if (stream)
      stream_line(target, buffer[c]);
    else
      std::memcpy(target, buffer[c], 64);
  }
#endif
}

}  // namespace anydml
