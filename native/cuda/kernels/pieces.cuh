// Runs of bytes at any two addresses, by whole lines of 16 bytes.
#pragma once

#include "walk.cuh"

namespace anydml::cuda {

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

// Copies `bytes` bytes by `lanes` threads, of which this is number `lane`. Stores are aligned
// lines; a line that lies across two of the source is put together from both. Nothing is read
// outside the source's bytes: what the lines at the ends would reach is copied byte by byte.
__device__ inline void copy_piece(char* to, const char* from, Offset bytes, unsigned lane,
                                  unsigned lanes) {
  constexpr int kUnroll = 4;
  const unsigned long long to_address = reinterpret_cast<unsigned long long>(to);
  const unsigned long long from_address = reinterpret_cast<unsigned long long>(from);
  const unsigned shift = static_cast<unsigned>(from_address - to_address) & 15;
  Offset head = static_cast<Offset>((16 - to_address) & 15);
  if (head < shift) head += 16;
  Offset lines = (bytes - head + shift) / 16 - (shift != 0 ? 1 : 0);
  if (bytes < head || lines < 0) lines = 0;
  if (bytes < head) head = bytes;
  for (Offset i = lane; i < head; i += lanes) to[i] = from[i];
  for (Offset i = head + lines * 16 + lane; i < bytes; i += lanes) to[i] = from[i];

  uint4* const target = reinterpret_cast<uint4*>(to + head);
  const uint4* const source = reinterpret_cast<const uint4*>(from + head - shift);
  for (Offset at = lane; at < lines; at += kUnroll * lanes) {
    uint4 value[kUnroll];
    if (shift == 0) {
#pragma unroll
      for (int k = 0; k < kUnroll; ++k)
        if (at + k * lanes < lines) value[k] = source[at + k * lanes];
    } else {
      uint4 high[kUnroll];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k)
        if (at + k * lanes < lines) {
          value[k] = source[at + k * lanes];
          high[k] = source[at + k * lanes + 1];
        }
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) value[k] = line_between(value[k], high[k], shift);
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k)
      if (at + k * lanes < lines) target[at + k * lanes] = value[k];
  }
}

}  // namespace anydml::cuda
