// SPLIT (ANYDML_SPLIT 1) and JOIN (0), where the whole is rows of contiguous bytes and each part a
// piece of every row, in units of ANYDML_SIZE bytes: 1, 2, 4, 8 or 16.
#include "pieces.cuh"
#include "slabs.cuh"

namespace {

using namespace anydml::cuda;

constexpr int kSize = ANYDML_SIZE;
constexpr bool kSplit = ANYDML_SPLIT;
using Element = Unit<kSize>::Type;

// The last part of [low, high) that begins at or before a byte of the row.
__device__ unsigned part_at(const SlabPart* parts, unsigned low, unsigned high, Offset byte) {
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    if (parts[middle].begin <= byte)
      low = middle;
    else
      high = middle;
  }
  return low;
}

[[maybe_unused]] __device__ unsigned part_of_segment(const SlabPart* parts, unsigned count,
                                                     Offset segment) {
  unsigned low = 0, high = count;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    if (parts[middle].segment <= segment)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// A warp takes 128 units, one after the other in the whole.
__device__ void move_units(const Slabs& slabs, const SlabPart* parts) {
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const unsigned first = blockIdx.x * (kSlabThreads * kSlabUnroll) + warp * (32 * kSlabUnroll);
  if (first >= slabs.items) return;
  const unsigned last = min(first + 32 * kSlabUnroll, slabs.items) - 1;
  const char* from[kSlabUnroll];
  char* to[kSlabUnroll];
  // The parts that the warp meets, where it meets only one row.
  unsigned low = 0, high = slabs.count;
  if (slabs.each.size == 0) {
    const unsigned row = slabs.units.quotient(first);
    if (row == slabs.units.quotient(last)) {
      const Offset base = static_cast<Offset>(row) * slabs.units.size;
      low = part_at(parts, 0, slabs.count, (first - base) * kSize);
      high = part_at(parts, low, slabs.count, (last - base) * kSize) + 1;
    }
  }
#pragma unroll
  for (unsigned k = 0; k < kSlabUnroll; ++k) {
    const unsigned i = min(first + k * 32 + lane, last);
    const unsigned row = slabs.units.quotient(i), column = i - row * slabs.units.size;
    const Offset byte = static_cast<Offset>(column) * kSize;
    const unsigned p =
        slabs.each.size != 0 ? slabs.each.quotient(column) : part_at(parts, low, high, byte);
    char* const in_part =
        parts[p].data + (slabs.row + row) * parts[p].step + (byte - parts[p].begin);
    char* const in_whole = slabs.whole + (slabs.row + row) * slabs.step + byte;
    from[k] = kSplit ? in_whole : in_part;
    to[k] = kSplit ? in_part : in_whole;
  }
  Element value[kSlabUnroll];
#pragma unroll
  for (unsigned k = 0; k < kSlabUnroll; ++k) value[k] = read<Element>(from[k]);
#pragma unroll
  for (unsigned k = 0; k < kSlabUnroll; ++k)
    if (first + k * 32 + lane <= last) write(to[k], value[k]);
}

// Pieces of hundreds of bytes, at any addresses: a group of threads a segment of one.
[[maybe_unused]] __device__ void move_segments(const Slabs& slabs, const SlabPart* parts) {
  const unsigned lanes = 1u << slabs.lanes_log;
  const unsigned item = (blockIdx.x << (8 - slabs.lanes_log)) + (threadIdx.x >> slabs.lanes_log);
  if (item >= slabs.items) return;
  const unsigned row = slabs.segments.quotient(item);
  const unsigned segment = item - row * slabs.segments.size;
  const unsigned p = part_of_segment(parts, slabs.count, segment);
  const Offset into = (segment - parts[p].segment) * (lanes * kSegmentLane);
  const Offset bytes = min(parts[p + 1].begin - parts[p].begin - into, lanes * kSegmentLane);
  char* const in_part = parts[p].data + (slabs.row + row) * parts[p].step + into;
  char* const in_whole = slabs.whole + (slabs.row + row) * slabs.step + parts[p].begin + into;
  copy_piece(kSplit ? in_part : in_whole, kSplit ? in_whole : in_part, bytes,
             threadIdx.x & (lanes - 1), lanes);
}

// Pieces of a few bytes: a tile of the whole, of which each part is then moved row after row.
__device__ void move_tiles(const Slabs& slabs, const SlabPart* parts) {
  extern __shared__ uint4 memory[];
  Element* const tile = reinterpret_cast<Element*>(memory);
  constexpr int kEach = static_cast<int>((1u << tile_log(kSize)) / kSlabThreads);
  const unsigned down = slabs.across.quotient(blockIdx.x);
  const unsigned first_column = (blockIdx.x - down * slabs.across.size) << slabs.column_log;
  const unsigned first_row = down << slabs.row_log;
  const unsigned height = slabs.rows - first_row, width = slabs.units.size - first_column;
  const unsigned rows = 1u << slabs.row_log, columns = 1u << slabs.column_log;
  const unsigned pitch = columns + tile_pad(kSize);
  char* const whole = slabs.whole + (slabs.row + first_row) * slabs.step +
                      static_cast<Offset>(first_column) * kSize;
  const auto along_rows = [&](int k, unsigned& r, unsigned& c) {
    const unsigned e = threadIdx.x + k * kSlabThreads;
    c = e & (columns - 1);
    r = e >> slabs.column_log;
    return r < rows && r < height && c < width;
  };
  const auto along_parts = [&](int k, unsigned& r, unsigned& c) {
    const unsigned e = threadIdx.x + k * kSlabThreads;
    r = e & (rows - 1);
    c = e >> slabs.row_log;
    return c < columns && r < height && c < width;
  };
  const auto in_part = [&](unsigned r, unsigned c) {
    const unsigned column = first_column + c;
    const Offset byte = static_cast<Offset>(column) * kSize;
    const unsigned p =
        slabs.each.size != 0 ? slabs.each.quotient(column) : part_at(parts, 0, slabs.count, byte);
    return parts[p].data + (slabs.row + first_row + r) * parts[p].step + (byte - parts[p].begin);
  };
  Element value[kEach];
  unsigned r, c;
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if constexpr (kSplit) {
      if (along_rows(k, r, c)) value[k] = read<Element>(whole + r * slabs.step + c * kSize);
    } else {
      if (along_parts(k, r, c)) value[k] = read<Element>(in_part(r, c));
    }
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (kSplit ? along_rows(k, r, c) : along_parts(k, r, c)) tile[r * pitch + c] = value[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    if constexpr (kSplit) {
      if (along_parts(k, r, c)) write(in_part(r, c), tile[r * pitch + c]);
    } else {
      if (along_rows(k, r, c)) write(whole + r * slabs.step + c * kSize, tile[r * pitch + c]);
    }
  }
}

}  // namespace

// Each way for few parts and for many in the argument, and for a table in memory.
#define ANYDML_WAY(way)                                                                           \
  extern "C" __global__ void __launch_bounds__(kSlabThreads) way##_few(                           \
      const __grid_constant__ Slabs slabs, const __grid_constant__ SlabTable<kFewParts> table) {  \
    move_##way(slabs, table.parts);                                                               \
  }                                                                                               \
  extern "C" __global__ void __launch_bounds__(kSlabThreads) way##_many(                          \
      const __grid_constant__ Slabs slabs, const __grid_constant__ SlabTable<kManyParts> table) { \
    move_##way(slabs, table.parts);                                                               \
  }                                                                                               \
  extern "C" __global__ void __launch_bounds__(kSlabThreads)                                      \
      way##_table(const __grid_constant__ Slabs slabs) {                                          \
    move_##way(slabs, slabs.table);                                                               \
  }

ANYDML_WAY(units)
ANYDML_WAY(tiles)
#if ANYDML_SIZE == 1
ANYDML_WAY(segments)
#endif
