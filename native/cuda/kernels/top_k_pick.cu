// The k greatest of long rows, in the order of their places, for k that is too large for one block
// and too small for a sort of the whole row: the k-th key by counting digits, from the highest,
// then a packing of what reaches it.
#include "top_k_key.cuh"
#include "top_k_sort.cuh"

namespace anydml::top_k {
namespace {

constexpr int kThreads = kSortThreads;
constexpr int kWarps = kThreads / 32;
constexpr bool kWide = ANYDML_wide != 0;
constexpr int kElementsPerThread = kSortTile / kThreads;
constexpr int kTile = kElementsPerThread * kThreads;
constexpr unsigned kAll = 0xFFFFFFFFu;

template <bool Wide>
struct CountOf {
  using Type = unsigned;
};
template <>
struct CountOf<true> {
  using Type = unsigned long long;
};
using Count = CountOf<kWide>::Type;

struct Tile {
  long long own_row, begin, first;  // first: its first key
  int size;
};

__device__ inline Tile tile_of(const Rows& rows, const Pick& pick) {
  Tile tile;
  tile.own_row = blockIdx.x / pick.tiles;
  tile.begin = (blockIdx.x - tile.own_row * pick.tiles) * kTile;
  const long long left = rows.n - tile.begin;
  tile.size = static_cast<int>(left < kTile ? left : kTile);
  tile.first = tile.own_row * rows.n + tile.begin;
  return tile;
}

__device__ inline Key key_at(const Pick& pick, long long at) {
  return static_cast<Raw>(~static_cast<const Raw*>(pick.keys)[at]);
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

extern "C" __global__ void top_k_pick_start(const __grid_constant__ Rows rows,
                                            const __grid_constant__ Pick pick, long long own_rows) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < own_rows) pick.choices[i] = {0, rows.k};
}

extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_pick_count(const __grid_constant__ Rows rows, const __grid_constant__ Pick pick) {
  __shared__ unsigned counts[256];
  const Tile tile = tile_of(rows, pick);
  const long long row = pick.first_row + tile.own_row;
  const RowOffsets at = offsets_of(rows, row);
  const Raw* const elements = keys_of(rows, row, at) + tile.begin;
  const Key known = static_cast<Key>(pick.choices[tile.own_row].key);
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < tile.size; i += kThreads) {
    Key key;
    if (pick.key_buffer != nullptr) {
      // What lies behind a row's own elements has the least key, and later places.
      key = 0;
      if (tile.begin + i < at.length) key = key_of(elements[i], static_cast<Raw>(rows.flip));
      static_cast<Raw*>(pick.key_buffer)[tile.first + i] = static_cast<Raw>(~key);
    } else {
      key = key_at(pick, tile.first + i);
    }
    if ((key >> pick.shift >> 8) != (known >> pick.shift >> 8)) continue;
    const unsigned digit = static_cast<unsigned>(key >> pick.shift) & 255;
    const unsigned same = __match_any_sync(__activemask(), digit);
    if (__ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x & 31))
      atomicAdd(&counts[digit], __popc(same));
  }
  __syncthreads();
  const unsigned count = counts[threadIdx.x];
  if (count != 0)
    atomicAdd(static_cast<Count*>(pick.histogram) + tile.own_row * 256 + threadIdx.x,
              static_cast<Count>(count));
}

// A block a row: which digit the k-th has. Leaves the histogram empty.
extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_pick_digit(const __grid_constant__ Pick pick) {
  __shared__ Count counts[256];
  Count* const histogram = static_cast<Count*>(pick.histogram) + blockIdx.x * 256ll;
  counts[threadIdx.x] = histogram[threadIdx.x];
  histogram[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x != 0) return;
  Choice choice = pick.choices[blockIdx.x];
  int digit = 255;
  for (; digit > 0 && static_cast<long long>(counts[digit]) < choice.need; --digit)
    choice.need -= static_cast<long long>(counts[digit]);
  choice.key |= static_cast<unsigned long long>(digit) << pick.shift;
  pick.choices[blockIdx.x] = choice;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_pick_tally(const __grid_constant__ Rows rows, const __grid_constant__ Pick pick) {
  __shared__ unsigned counts[2];
  const Tile tile = tile_of(rows, pick);
  const Key bound = static_cast<Key>(pick.choices[tile.own_row].key);
  if (threadIdx.x < 2) counts[threadIdx.x] = 0;
  __syncthreads();
  unsigned greater = 0, equal = 0;
  for (int i = static_cast<int>(threadIdx.x); i < tile.size; i += kThreads) {
    const Key key = key_at(pick, tile.first + i);
    greater += key > bound ? 1 : 0;
    equal += key == bound ? 1 : 0;
  }
  greater = __reduce_add_sync(kAll, greater);
  equal = __reduce_add_sync(kAll, equal);
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(&counts[0], greater);
    atomicAdd(&counts[1], equal);
  }
  __syncthreads();
  if (threadIdx.x < 2)
    static_cast<Count*>(
        pick.counts)[(tile.own_row * 2 + threadIdx.x) * pick.tiles + tile.begin / kTile] =
        counts[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_pick_move(const __grid_constant__ Rows rows, const __grid_constant__ Pick pick) {
  __shared__ unsigned counts[kWarps][2];
  const Tile tile = tile_of(rows, pick);
  const long long row = pick.first_row + tile.own_row;
  const Choice choice = pick.choices[tile.own_row];
  const Key bound = static_cast<Key>(choice.key);
  const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
  const int first = warp * 32 * kElementsPerThread + lane;
  Key key[kElementsPerThread];
  unsigned greater_lanes[kElementsPerThread], equal_lanes[kElementsPerThread], greater = 0,
                                                                               equal = 0;
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const bool is_valid = first + 32 * j < tile.size;
    key[j] = is_valid ? key_at(pick, tile.first + first + 32 * j) : 0;
    greater_lanes[j] = __ballot_sync(kAll, is_valid && key[j] > bound);
    equal_lanes[j] = __ballot_sync(kAll, is_valid && key[j] == bound);
    greater += __popc(greater_lanes[j]);
    equal += __popc(equal_lanes[j]);
  }
  if (lane == 0) counts[warp][0] = greater, counts[warp][1] = equal;
  __syncthreads();
  const Count* const before =
      static_cast<const Count*>(pick.counts) + tile.own_row * 2 * pick.tiles + tile.begin / kTile;
  long long greater_before = static_cast<long long>(before[0]);
  long long equal_before = static_cast<long long>(before[pick.tiles]);
  for (int i = 0; i < warp; ++i) greater_before += counts[i][0], equal_before += counts[i][1];
  const unsigned lower = (1u << lane) - 1, me = 1u << lane;
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const long long equals = equal_before + __popc(equal_lanes[j] & lower);
    const long long greaters = greater_before + __popc(greater_lanes[j] & lower);
    const bool taken = (equal_lanes[j] & me) != 0 && equals < choice.need;
    if (taken || (greater_lanes[j] & me) != 0) {
      const long long to =
          tile.own_row * rows.k + greaters + (equals < choice.need ? equals : choice.need);
      static_cast<Raw*>(pick.to_keys)[to] = static_cast<Raw>(~key[j]);
      static_cast<Count*>(pick.to_places)[to] =
          static_cast<Count>(place_of(rows, row, tile.begin + first + 32 * j));
    }
    greater_before += __popc(greater_lanes[j]);
    equal_before += __popc(equal_lanes[j]);
  }
}

// Writes the picked elements as results by position. pick.tiles: of the picked pairs.
extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_pick_write(const __grid_constant__ Rows rows, const __grid_constant__ Pick pick) {
  const long long own_row = blockIdx.x / pick.tiles, row = pick.first_row + own_row;
  const long long begin = (blockIdx.x - own_row * pick.tiles) * kTile;
  const RowOffsets at = offsets_of(rows, row);
  const long long found = at.length < rows.k ? at.length : rows.k;
  for (long long i = begin + threadIdx.x; i < begin + kTile && i < rows.k; i += kThreads) {
    const long long pair = own_row * rows.k + i, r = rows.from_end && i < found ? found - 1 - i : i;
    write_result(rows, at, r, static_cast<Raw>(~static_cast<const Raw*>(pick.to_keys)[pair]),
                 static_cast<long long>(static_cast<const Count*>(pick.to_places)[pair]),
                 static_cast<Raw>(rows.flip));
  }
}
