// Runs of bytes at any two addresses, by whole lines of 16 bytes.
#pragma once

#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

// Bytes of a piece, for each of the threads that copy it, at most; and the fewest threads.
constexpr unsigned kLaneBytes = 64;
constexpr unsigned kMinLanesLog = 3;

#if defined(__CUDACC__)
// The 16 bytes that begin `shift` bytes into two neighbouring lines.
__device__ inline uint4 line_between(uint4 low, uint4 high, unsigned shift) {
  const unsigned w0 = low.x, w1 = low.y, w2 = low.z, w3 = low.w;
  const unsigned w4 = high.x, w5 = high.y, w6 = high.z, w7 = high.w;
  const bool two = (shift & 8) != 0, one = (shift & 4) != 0;
  const unsigned a0 = two ? w2 : w0, a1 = two ? w3 : w1, a2 = two ? w4 : w2;
  const unsigned a3 = two ? w5 : w3, a4 = two ? w6 : w4, a5 = two ? w7 : w5;
  const unsigned b0 = one ? a1 : a0, b1 = one ? a2 : a1, b2 = one ? a3 : a2;
  const unsigned b3 = one ? a4 : a3, b4 = one ? a5 : a4;
  const unsigned bits = (shift & 3) * 8;
  return {__funnelshift_r(b0, b1, bits), __funnelshift_r(b1, b2, bits),
          __funnelshift_r(b2, b3, bits), __funnelshift_r(b3, b4, bits)};
}

// Where whole lines lie in a piece of up to `lanes` * kLaneBytes bytes, by the addresses alone.
struct PieceLines {
  unsigned shift;        // of the target's lines against the source's
  unsigned head, lines;  // bytes before the first line; lines
};
__device__ inline PieceLines lines_of(const char* to, const char* from, unsigned bytes) {
  const unsigned long long to_address = reinterpret_cast<unsigned long long>(to);
  const unsigned long long from_address = reinterpret_cast<unsigned long long>(from);
  PieceLines result;
  result.shift = static_cast<unsigned>(from_address - to_address) & 15;
  result.head = static_cast<unsigned>(0 - to_address) & 15;
  if (result.head < result.shift) result.head += 16;
  result.lines = 0;
  const unsigned others = result.shift != 0 ? 1 : 0, min_bytes = result.head + 16 + 16 * others;
  if (bytes + result.shift >= min_bytes)
    result.lines = (bytes - result.head + result.shift) / 16 - others;
  if (bytes < result.head) result.head = bytes;
  return result;
}

// Copies `bytes` bytes by `lanes` threads, of which this is number `lane`: first all loads, then
// all stores. Stores are aligned lines; a line that lies across two of the source is put together
// from both. Nothing is read outside the source's bytes: what the lines at the ends would reach is
// copied byte by byte.
__device__ inline void copy_piece(char* to, const char* from, unsigned bytes, unsigned lane,
                                  unsigned lanes) {
  constexpr int kLines = kLaneBytes / 16, kEdges = 32 >> kMinLanesLog;
  const PieceLines where = lines_of(to, from, bytes);
  const unsigned tail = where.head + where.lines * 16;
  uint4* const target = reinterpret_cast<uint4*>(to + where.head);
  const char* const source = from + where.head - where.shift;
  const uint4* const lines = reinterpret_cast<const uint4*>(source);
  uint4 value[kLines];
  unsigned char before[kEdges], behind[kEdges];
#pragma unroll
  for (int k = 0; k < kLines; ++k)
    if (lane + k * lanes < where.lines) value[k] = lines[lane + k * lanes];
#pragma unroll
  for (int k = 0; k < kEdges; ++k) {
    const unsigned i = lane + k * lanes;
    if (i < where.head) before[k] = read<unsigned char>(from + i);
    if (tail + i < bytes) behind[k] = read<unsigned char>(from + tail + i);
  }
  if (where.shift != 0) {
#pragma unroll
    for (int k = 0; k < kLines; ++k)
      if (lane + k * lanes < where.lines)
        value[k] = line_between(value[k], lines[lane + k * lanes + 1], where.shift);
  }
#pragma unroll
  for (int k = 0; k < kLines; ++k)
    if (lane + k * lanes < where.lines) target[lane + k * lanes] = value[k];
#pragma unroll
  for (int k = 0; k < kEdges; ++k) {
    const unsigned i = lane + k * lanes;
    if (i < where.head) write(to + i, before[k]);
    if (tail + i < bytes) write(to + tail + i, behind[k]);
  }
}

// The same with one element, repeated: `value` is 16 bytes of it.
__device__ inline void fill_piece(char* to, uint4 value, unsigned bytes, unsigned lane,
                                  unsigned lanes) {
  constexpr int kLines = kLaneBytes / 16, kEdges = 32 >> kMinLanesLog;
  const PieceLines where = lines_of(to, to, bytes);
  const unsigned tail = where.head + where.lines * 16;
  uint4* const target = reinterpret_cast<uint4*>(to + where.head);
  // The element lies at multiples of its size, from the first byte on.
  const unsigned words[4] = {value.x, value.y, value.z, value.w};
  const unsigned turn = static_cast<unsigned>(reinterpret_cast<unsigned long long>(to)) & 15;
  const uint4 rotated = turn == 0 ? value : line_between(value, value, 16 - turn);
#pragma unroll
  for (int k = 0; k < kLines; ++k)
    if (lane + k * lanes < where.lines) target[lane + k * lanes] = rotated;
  const auto byte_at = [&](unsigned i) {
    const unsigned word = i & 8 ? (i & 4 ? words[3] : words[2]) : (i & 4 ? words[1] : words[0]);
    return static_cast<unsigned char>(word >> ((i & 3) * 8));
  };
#pragma unroll
  for (int k = 0; k < kEdges; ++k) {
    const unsigned i = lane + k * lanes;
    if (i < where.head) write(to + i, byte_at(i));
    if (tail + i < bytes) write(to + tail + i, byte_at(tail + i));
  }
}
#endif

}  // namespace anydml::cuda
