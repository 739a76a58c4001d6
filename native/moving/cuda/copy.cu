// Copies between two layouts of the same sizes, for units of ANYDML_SIZE bytes: 1, 2, 4, 8 or 16.
//
// Each element is read and written once, loads before stores, several a thread.
#include "moving/cuda/copy.cuh"
#include "moving/cuda/pieces.cuh"

namespace {

using namespace anydml::cuda;

constexpr int kSize = ANYDML_SIZE;
using Element = Unit<kSize>::Type;

}  // namespace

// Any strides: one element a thread.
extern "C" __global__ void __launch_bounds__(kCopyThreads)
    copy_units(char* target, const char* source, const __grid_constant__ Walk walk,
               unsigned count) {
  const unsigned first = blockIdx.x * (kCopyThreads * kCopyUnroll) + threadIdx.x;
  unsigned number[kCopyUnroll];
  Offset to[kCopyUnroll], from[kCopyUnroll];
  Element value[kCopyUnroll];
#pragma unroll
  for (int k = 0; k < kCopyUnroll; ++k) number[k] = min(first + k * kCopyThreads, count - 1);
  offsets_at(walk, number, to, from);
#pragma unroll
  for (int k = 0; k < kCopyUnroll; ++k) value[k] = read<Element>(source + from[k]);
#pragma unroll
  for (int k = 0; k < kCopyUnroll; ++k)
    if (first + k * kCopyThreads < count) write(target + to[k], value[k]);
}

namespace {

// A tile; with kFull one that lies inside the plane, of the usual sides.
template <bool kFull>
__device__ void copy_tile(char* target, const char* source, const Plane& plane, unsigned height,
                          unsigned width, Element* tile) {
  constexpr int kElementsPerThread = static_cast<int>((1u << tile_log(kSize)) / kCopyThreads);
  const unsigned row_log = kFull ? tile_row_log(kSize) : plane.row_log;
  const unsigned column_log = kFull ? tile_log(kSize) - row_log : plane.column_log;
  const unsigned rows = 1u << row_log, columns = 1u << column_log;
  const unsigned pitch = columns + tile_pad(kSize), total = rows * columns;
  Element value[kElementsPerThread];
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    const unsigned e = threadIdx.x + k * kCopyThreads;
    const unsigned r = e & (rows - 1), c = e >> row_log;
    if (kFull || (e < total && r < height && c < width))
      value[k] = read<Element>(source + r * plane.from_row + c * plane.from_column);
  }
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    const unsigned e = threadIdx.x + k * kCopyThreads;
    const unsigned r = e & (rows - 1), c = e >> row_log;
    if (kFull || (e < total && r < height && c < width)) tile[r * pitch + c] = value[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    const unsigned e = threadIdx.x + k * kCopyThreads;
    const unsigned c = e & (columns - 1), r = e >> column_log;
    if (kFull || (e < total && r < height && c < width))
      write(target + r * plane.to_row + c * plane.to_column, tile[r * pitch + c]);
  }
}

}  // namespace

// The source is densest along another dimension than the target: through shared memory, so that
// both sides are met along their own.
extern "C" __global__ void __launch_bounds__(kCopyThreads)
    copy_tiles(char* target, const char* source, const __grid_constant__ Walk outer,
               const __grid_constant__ Plane plane) {
  extern __shared__ uint4 memory[];
  Element* const tile = reinterpret_cast<Element*>(memory);
  const unsigned above = plane.across.quotient(blockIdx.x);
  unsigned number[1] = {plane.down.quotient(above)};
  const unsigned column = (blockIdx.x - above * plane.across.size) << plane.column_log;
  const unsigned row = (above - number[0] * plane.down.size) << plane.row_log;
  Offset to[1], from[1];
  offsets_at(outer, number, to, from);
  target += to[0] + row * plane.to_row + column * plane.to_column;
  source += from[0] + row * plane.from_row + column * plane.from_column;
  const unsigned height = plane.rows - row, width = plane.columns - column;
  if (plane.row_log == tile_row_log(kSize) && plane.row_log + plane.column_log == tile_log(kSize) &&
      height >= 1u << plane.row_log && width >= 1u << plane.column_log)
    copy_tile<true>(target, source, plane, height, width, tile);
  else
    copy_tile<false>(target, source, plane, height, width, tile);
}

#if ANYDML_SIZE < 4
// The same for small elements that lie in words of 4 bytes on both sides: rows contiguous in the
// source, columns in the target.
extern "C" __global__ void __launch_bounds__(kCopyThreads)
    copy_word_tiles(char* target, const char* source, const __grid_constant__ Walk outer,
                    const __grid_constant__ Plane plane) {
  constexpr unsigned kSide = word_side(kSize), kPack = 4 / kSize, kPitch = kSide + kPack;
  constexpr int kElementsPerThread = static_cast<int>(kSide * kSide / kPack / kCopyThreads);
  __shared__ alignas(4) Element tile[kSide * kPitch];
  const unsigned above = plane.across.quotient(blockIdx.x);
  unsigned number[1] = {plane.down.quotient(above)};
  const unsigned column = (blockIdx.x - above * plane.across.size) * kSide;
  const unsigned row = (above - number[0] * plane.down.size) * kSide;
  Offset to[1], from[1];
  offsets_at(outer, number, to, from);
  target += to[0] + row * plane.to_row + column * plane.to_column;
  source += from[0] + row * plane.from_row + column * plane.from_column;
  const unsigned height = plane.rows - row, width = plane.columns - column;

  // A warp takes 8 words of 4 columns: their elements go to different banks.
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  unsigned value[kElementsPerThread];
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    const unsigned w = warp + k * (kCopyThreads / 32);
    const unsigned r = ((w & 3) * 8 + (lane & 7)) * kPack, c = (w >> 2) * 4 + (lane >> 3);
    const char* const from_here = source + r * plane.from_row + c * plane.from_column;
    value[k] = 0;
    if (c < width && r + kPack <= height) {
      value[k] = read<unsigned>(from_here);
    } else if (c < width) {
#pragma unroll
      for (unsigned i = 0; i < kPack; ++i)
        if (r + i < height)
          value[k] |= static_cast<unsigned>(read<Element>(from_here + i * kSize))
                      << (8 * kSize * i);
    }
  }
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    const unsigned w = warp + k * (kCopyThreads / 32);
    const unsigned r = ((w & 3) * 8 + (lane & 7)) * kPack, c = (w >> 2) * 4 + (lane >> 3);
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i)
      tile[(r + i) * kPitch + c] = static_cast<Element>(value[k] >> (8 * kSize * i));
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    const unsigned r = warp + k * (kCopyThreads / 32), c = lane * kPack;
    if (r >= height || c >= width) continue;
    const Element* const here = tile + r * kPitch + c;
    char* const to_here = target + r * plane.to_row + c * plane.to_column;
    if (c + kPack <= width) {
      write(to_here, *reinterpret_cast<const unsigned*>(here));
    } else {
      for (unsigned i = 0; c + i < width; ++i) write(to_here + i * kSize, here[i]);
    }
  }
}
#endif

#if ANYDML_SIZE == 1
// Rows that are contiguous on both sides, at any addresses.
extern "C" __global__ void __launch_bounds__(kCopyThreads)
    copy_rows(char* target, const char* source, const __grid_constant__ Walk outer,
              const __grid_constant__ Rows rows) {
  const unsigned lanes = 1u << rows.lanes_log, length = lanes * kLaneBytes;
  const unsigned item = (blockIdx.x << (8 - rows.lanes_log)) + (threadIdx.x >> rows.lanes_log);
  if (item >= rows.items) return;
  unsigned number[1] = {rows.segments.quotient(item)};
  const Offset at = static_cast<Offset>(item - number[0] * rows.segments.size) * length;
  const Offset left = rows.bytes - at;
  Offset to[1], from[1];
  offsets_at(outer, number, to, from);
  copy_piece(target + to[0] + at, source + from[0] + at,
             left < length ? static_cast<unsigned>(left) : length, threadIdx.x & (lanes - 1),
             lanes);
}

// The same for rows that repeat one element.
extern "C" __global__ void __launch_bounds__(kCopyThreads)
    fill_rows(char* target, const char* source, const __grid_constant__ Walk outer,
              const __grid_constant__ Rows rows, int size) {
  const unsigned lanes = 1u << rows.lanes_log, length = lanes * kLaneBytes;
  const unsigned item = (blockIdx.x << (8 - rows.lanes_log)) + (threadIdx.x >> rows.lanes_log);
  if (item >= rows.items) return;
  unsigned number[1] = {rows.segments.quotient(item)};
  const Offset at = static_cast<Offset>(item - number[0] * rows.segments.size) * length;
  const Offset left = rows.bytes - at;
  Offset to[1], from[1];
  offsets_at(outer, number, to, from);
  const char* const element = source + from[0];
  uint4 value;
  if (size == 16) {
    value = read<uint4>(element);
  } else if (size == 8) {
    const uint2 half = read<uint2>(element);
    value = {half.x, half.y, half.x, half.y};
  } else {
    const unsigned word = size == 4   ? read<unsigned>(element)
                          : size == 2 ? read<unsigned short>(element) * 0x10001u
                                      : read<unsigned char>(element) * 0x1010101u;
    value = {word, word, word, word};
  }
  fill_piece(target + to[0] + at, value, left < length ? static_cast<unsigned>(left) : length,
             threadIdx.x & (lanes - 1), lanes);
}
#endif

#if ANYDML_SIZE == 16
extern "C" __global__ void __launch_bounds__(kCopyThreads)
    store_table(uint4* target, const __grid_constant__ TableBlock block, int lines) {
  for (int i = static_cast<int>(threadIdx.x); i < lines; i += static_cast<int>(kCopyThreads)) {
    const TableBlock::Line& line = block.lines[i];
    target[i] = {line.words[0], line.words[1], line.words[2], line.words[3]};
  }
}
#endif
