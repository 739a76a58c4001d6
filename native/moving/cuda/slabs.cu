// SPLIT (ANYDML_SPLIT 1) and JOIN (0), where the whole is rows of contiguous bytes and each part a
// piece of every row, in units of ANYDML_SIZE bytes: 1, 2, 4, 8 or 16.
#include "moving/cuda/pieces.cuh"
#include "moving/cuda/slabs.cuh"

namespace {

using namespace anydml::cuda;

constexpr int kSize = ANYDML_SIZE;
constexpr bool kSplit = ANYDML_SPLIT;
using Element = Unit<kSize>::Type;

// Where the parts' bytes are: a unit of a row.
struct SameLayout {
  char* const* data;

  __device__ SameLayout meeting(const Slabs&, unsigned, unsigned) const { return *this; }
  __device__ char* at(const Slabs& slabs, Offset row, unsigned column) const {
    const unsigned p = slabs.part_units.quotient(column);
    return data[p] + row * slabs.part_step + (column - p * slabs.part_units.size) * kSize;
  }
};

struct Uneven {
  const SlabPart* parts;
  unsigned low, high;  // parts that are looked through

  // The last one that begins at or before a byte of the row.
  __device__ unsigned part_at(Offset byte) const {
    return last_that(low, high, [&](unsigned i) { return parts[i].begin <= byte; });
  }
  // The same for units between two, if they are of one row.
  __device__ Uneven meeting(const Slabs& slabs, unsigned first, unsigned last) const {
    const unsigned row = slabs.units.quotient(first);
    if (row != slabs.units.quotient(last)) return *this;
    const unsigned base = row * slabs.units.size;
    return {parts, part_at(static_cast<Offset>(first - base) * kSize),
            part_at(static_cast<Offset>(last - base) * kSize) + 1};
  }
  __device__ char* at(const Slabs&, Offset row, unsigned column) const {
    const Offset byte = static_cast<Offset>(column) * kSize;
    const SlabPart& part = parts[part_at(byte)];
    return part.data + row * part.step + (byte - part.begin);
  }
};

// A block takes kSlabBlock units: a run of the whole; or as many as its warps have of one row each,
// or of several rows each, so that of each part a longer stretch is met.
template <class Table>
__device__ void move_units(const Slabs& slabs, const Table& all) {
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const char* from[kSlabUnroll];
  char* to[kSlabUnroll];
  bool own[kSlabUnroll];
  const auto aim = [&](unsigned k, const Table& table, unsigned row, unsigned column) {
    char* const in_part = table.at(slabs, slabs.row + row, column);
    char* const in_joined =
        slabs.joined + (slabs.row + row) * slabs.step + static_cast<Offset>(column) * kSize;
    from[k] = kSplit ? in_joined : in_part;
    to[k] = kSplit ? in_part : in_joined;
  };
  if (slabs.shape == kManyRows) {
    const unsigned down = slabs.across.quotient(blockIdx.x);
    const unsigned row = (down * kSlabWarps + warp) * kSlabUnroll;
    const unsigned column = (blockIdx.x - down * slabs.across.size) * 32 + lane;
#pragma unroll
    for (unsigned k = 0; k < kSlabUnroll; ++k) {
      own[k] = row + k < slabs.rows && column < slabs.units.size;
      aim(k, all, min(row + k, slabs.rows - 1), min(column, slabs.units.size - 1));
    }
  } else {
    unsigned first = (blockIdx.x * kSlabWarps + warp) * kSlabRun, end = slabs.items;
    if (slabs.shape == kEightRows) {
      const unsigned down = slabs.across.quotient(blockIdx.x), row = down * kSlabWarps + warp;
      if (row >= slabs.rows) return;
      first = row * slabs.units.size + (blockIdx.x - down * slabs.across.size) * kSlabRun;
      end = (row + 1) * slabs.units.size;
    }
    if (first >= end) return;
    const unsigned last = min(first + kSlabRun, end) - 1;
    const Table table = all.meeting(slabs, first, last);
#pragma unroll
    for (unsigned k = 0; k < kSlabUnroll; ++k) {
      const unsigned i = min(first + k * 32 + lane, last), row = slabs.units.quotient(i);
      own[k] = first + k * 32 + lane <= last;
      aim(k, table, row, i - row * slabs.units.size);
    }
  }
  Element value[kSlabUnroll];
#pragma unroll
  for (unsigned k = 0; k < kSlabUnroll; ++k) value[k] = read<Element>(from[k]);
#pragma unroll
  for (unsigned k = 0; k < kSlabUnroll; ++k)
    if (own[k]) write(to[k], value[k]);
}

// Pieces of tens of bytes and more, at any addresses: a group of threads a segment of one.
[[maybe_unused]] __device__ void move_segments(const Slabs& slabs, const SlabPart* parts) {
  const unsigned lanes = 1u << slabs.lanes_log, length = lanes * kLaneBytes;
  const unsigned item = (blockIdx.x << (8 - slabs.lanes_log)) + (threadIdx.x >> slabs.lanes_log);
  if (item >= slabs.items) return;
  const unsigned row = slabs.segments.quotient(item);
  const unsigned segment = item - row * slabs.segments.size;
  unsigned p = segment, bytes;
  Offset into = 0;
  if (slabs.direct != 0) {
    bytes = static_cast<unsigned>(parts[p].more);
  } else {
    p = last_that(0u, slabs.count, [&](unsigned i) { return parts[i].more <= segment; });
    into = (segment - parts[p].more) * length;
    const Offset left = parts[p + 1].begin - parts[p].begin - into;
    bytes = left < length ? static_cast<unsigned>(left) : length;
  }
  char* const in_part = parts[p].data + (slabs.row + row) * parts[p].step + into;
  char* const in_joined = slabs.joined + (slabs.row + row) * slabs.step + parts[p].begin + into;
  copy_piece(kSplit ? in_part : in_joined, kSplit ? in_joined : in_part, bytes,
             threadIdx.x & (lanes - 1), lanes);
}

// Pieces of a few bytes: a tile of the whole, of which each part is then moved row after row.
template <class Table>
__device__ void move_tiles(const Slabs& slabs, const Table& table) {
  extern __shared__ uint4 memory[];
  Element* const tile = reinterpret_cast<Element*>(memory);
  constexpr int kElementsPerThread = static_cast<int>((1u << tile_log(kSize)) / kSlabThreads);
  const unsigned down = slabs.across.quotient(blockIdx.x);
  const unsigned first_column = (blockIdx.x - down * slabs.across.size) << slabs.column_log;
  const unsigned first_row = down << slabs.row_log;
  const unsigned height = slabs.rows - first_row, width = slabs.units.size - first_column;
  const unsigned rows = 1u << slabs.row_log, columns = 1u << slabs.column_log;
  const unsigned pitch = columns + tile_pad(kSize);
  char* const joined = slabs.joined + (slabs.row + first_row) * slabs.step +
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
    return table.at(slabs, slabs.row + first_row + r, first_column + c);
  };
  Element value[kElementsPerThread];
  unsigned r, c;
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    if constexpr (kSplit) {
      if (along_rows(k, r, c)) value[k] = read<Element>(joined + r * slabs.step + c * kSize);
    } else {
      if (along_parts(k, r, c)) value[k] = read<Element>(in_part(r, c));
    }
  }
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k)
    if (kSplit ? along_rows(k, r, c) : along_parts(k, r, c)) tile[r * pitch + c] = value[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kElementsPerThread; ++k) {
    if constexpr (kSplit) {
      if (along_parts(k, r, c)) write(in_part(r, c), tile[r * pitch + c]);
    } else {
      if (along_rows(k, r, c)) write(joined + r * slabs.step + c * kSize, tile[r * pitch + c]);
    }
  }
}

}  // namespace

// Each kernel for a table in the argument and for one in memory.
#define ANYDML_KERNEL(name) extern "C" __global__ void __launch_bounds__(kSlabThreads) name
#define ANYDML_WAY(way)                                                                   \
  ANYDML_KERNEL(way##_same_layout_few)                                                    \
  (const __grid_constant__ Slabs slabs, const __grid_constant__ AddressTable table) {     \
    move_##way(slabs, SameLayout{table.data});                                            \
  }                                                                                       \
  ANYDML_KERNEL(way##_same_layout)(const __grid_constant__ Slabs slabs) {                 \
    move_##way(slabs, SameLayout{static_cast<char* const*>(slabs.table)});                \
  }                                                                                       \
  ANYDML_KERNEL(way##_few)                                                                \
  (const __grid_constant__ Slabs slabs, const __grid_constant__ PartTable table) {        \
    move_##way(slabs, Uneven{table.parts, 0, slabs.count});                               \
  }                                                                                       \
  ANYDML_KERNEL(way)(const __grid_constant__ Slabs slabs) {                               \
    move_##way(slabs, Uneven{static_cast<const SlabPart*>(slabs.table), 0, slabs.count}); \
  }

ANYDML_WAY(units)
ANYDML_WAY(tiles)
#if ANYDML_SIZE == 1
ANYDML_KERNEL(segments_few)
(const __grid_constant__ Slabs slabs, const __grid_constant__ PartTable table) {
  move_segments(slabs, table.parts);
}
ANYDML_KERNEL(segments)(const __grid_constant__ Slabs slabs) {
  move_segments(slabs, static_cast<const SlabPart*>(slabs.table));
}
#endif
