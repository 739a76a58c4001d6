// TOP_K by sorting whole rows, for k that is a good part of a row: a stable radix sort of keys and
// places, from the lowest digit of 8 bits to the highest. A pass counts the digits of each tile,
// sums them up, and moves every pair; the first makes keys of the elements, the last writes the
// results. Elements are read once only: what is counted has to be what is moved.
//
// Sorted keys are the complements of TOP_K's, ascending.
#include "top_k/cuda/top_k_key.cuh"
#include "top_k/cuda/top_k_sort.cuh"

namespace anydml::top_k {
namespace {

constexpr int kThreads = kSortThreads;
constexpr int kWarps = kThreads / 32;
constexpr bool kWide = ANYDML_wide != 0;  // more elements than 32 bits count
constexpr int kElementsPerThread = kSortTile / kThreads;
constexpr int kTile = kElementsPerThread * kThreads;
constexpr unsigned kAll = 0xFFFFFFFFu;

using Count = Bits<kWide ? 8 : 4>::Unsigned;  // of places too

struct Tile {
  long long row, own_row, begin;  // own_row: among those of this launch
  int size;
  RowOffsets at;
};

__device__ inline Tile tile_of(const Rows& rows, const Sort& sort) {
  Tile tile;
  tile.own_row = blockIdx.x / sort.tiles;
  tile.row = sort.first_row + tile.own_row;
  tile.begin = (blockIdx.x - tile.own_row * sort.tiles) * kTile;
  const long long left = rows.n - tile.begin;
  tile.size = static_cast<int>(left < kTile ? left : kTile);
  tile.at = offsets_of(rows, tile.row);
  return tile;
}

__device__ inline unsigned digit_of(const Sort& sort, Raw key) {
  return static_cast<unsigned>(key >> sort.shift) & 255;
}

// The lanes that have the same digit.
__device__ inline unsigned peers_of(unsigned digit) {
  unsigned peers = kAll;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const unsigned with = __ballot_sync(kAll, set);
    peers &= set ? with : ~with;
  }
  return peers;
}

// Sum of the values of the threads before this one; `slots` has one for each warp.
template <class Number>
__device__ Number sum_before(Number value, Number* slots) {
  const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
  Number sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const Number before = __shfl_up_sync(kAll, sum, step);
    if (lane >= step) sum += before;
  }
  __syncthreads();
  if (lane == 31) slots[warp] = sum;
  __syncthreads();
  Number all = 0;
  for (int i = 0; i < warp; ++i) all += slots[i];
  return all + sum - value;
}

}  // namespace
}  // namespace anydml::top_k

using namespace anydml::top_k;

// counts[row][digit][tile]
extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_sort_count(const __grid_constant__ Rows rows, const __grid_constant__ Sort sort) {
  __shared__ unsigned counts[256];
  const Tile tile = tile_of(rows, sort);
  const long long first = tile.own_row * rows.n + tile.begin;
  const Raw* const elements = keys_of(rows, tile.row, tile.at) + tile.begin;
  counts[threadIdx.x] = 0;
  __syncthreads();
  Raw key[kElementsPerThread];
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const int i = j * kThreads + static_cast<int>(threadIdx.x);
    key[j] = 0;
    if (i < tile.size)
      key[j] = sort.keys != nullptr ? static_cast<const Raw*>(sort.keys)[first + i]
               : tile.begin + i < tile.at.length
                   ? static_cast<Raw>(~key_of(elements[i], static_cast<Raw>(rows.flip)))
                   : kMaxRaw;  // behind the row's own elements
  }
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const int i = j * kThreads + static_cast<int>(threadIdx.x);
    const bool is_valid = i < tile.size;
    if (is_valid && sort.keys == nullptr) static_cast<Raw*>(sort.key_buffer)[first + i] = key[j];
    const unsigned digit = digit_of(sort, key[j]);
    // A warp of equal digits adds once; a few equal ones do not contend much.
    const unsigned its = __shfl_sync(kAll, digit, 0), with = __ballot_sync(kAll, is_valid);
    if (__all_sync(kAll, !is_valid || digit == its)) {
      if ((threadIdx.x & 31) == 0) atomicAdd(&counts[its], __popc(with));
    } else if (is_valid) {
      atomicAdd(&counts[digit], 1u);
    }
  }
  __syncthreads();
  const long long number = tile.begin / kTile;
  static_cast<Count*>(sort.counts)[(tile.own_row * 256 + threadIdx.x) * sort.tiles + number] =
      counts[threadIdx.x];
}

// Of each row and digit: the sum before each tile, and the sum of all. A warp or a block each.
extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_sort_sum(const __grid_constant__ Sort sort, long long lists) {
  __shared__ Count slots[kWarps];
  if (sort.tiles > kSortSmallTileCount) {
    const long long list = blockIdx.x;
    Count* const counts = static_cast<Count*>(sort.counts) + list * sort.tiles;
    Count carry = 0;
    for (long long first = 0; first < sort.tiles; first += kThreads) {
      const long long i = first + threadIdx.x;
      const Count count = i < sort.tiles ? counts[i] : 0;
      const Count before = sum_before(count, slots);
      if (i < sort.tiles) counts[i] = carry + before;
      __shared__ Count last;
      if (threadIdx.x == kThreads - 1) last = before + count;
      __syncthreads();
      carry += last;
    }
    if (threadIdx.x == 0) static_cast<Count*>(sort.totals)[list] = carry;
  } else {
    const long long list = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (list >= lists) return;
    const int lane = static_cast<int>(threadIdx.x & 31);
    Count* const counts = static_cast<Count*>(sort.counts) + list * sort.tiles;
    Count carry = 0;
    for (long long first = 0; first < sort.tiles; first += 32) {
      const long long i = first + lane;
      const Count count = i < sort.tiles ? counts[i] : 0;
      Count sum = count;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const Count before = __shfl_up_sync(kAll, sum, step);
        if (lane >= step) sum += before;
      }
      if (i < sort.tiles) counts[i] = carry + sum - count;
      carry += __shfl_sync(kAll, sum, 31);
    }
    if (lane == 0) static_cast<Count*>(sort.totals)[list] = carry;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    top_k_sort_move(const __grid_constant__ Rows rows, const __grid_constant__ Sort sort) {
  __shared__ unsigned ranks[kWarps][256];  // of each warp, before its elements of a digit
  __shared__ Raw keys[kTile];
  __shared__ Count places[kTile];
  __shared__ Count to[256];  // where an element of a digit goes, less its place in the tile
  __shared__ Count slots[kWarps];
  const Tile tile = tile_of(rows, sort);
  const int me = static_cast<int>(threadIdx.x), lane = me & 31, warp = me / 32;
  for (int i = 0; i < kWarps; ++i) ranks[i][me] = 0;
  __syncthreads();
  const int first = warp * 32 * kElementsPerThread + lane;
  const long long row_pairs = tile.own_row * rows.n, pairs = row_pairs + tile.begin;
  Raw key[kElementsPerThread];
  Count place[kElementsPerThread];
  unsigned rank[kElementsPerThread];
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const int i = first + 32 * j;
    key[j] = kMaxRaw;  // missing elements sort last
    place[j] = 0;
    if (i < tile.size) {
      key[j] = static_cast<const Raw*>(sort.keys)[pairs + i];
      place[j] = sort.places != nullptr
                     ? static_cast<const Count*>(sort.places)[pairs + i]
                     : static_cast<Count>(place_of(rows, tile.row, tile.begin + i));
    }
  }
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const unsigned digit = digit_of(sort, key[j]), peers = peers_of(digit);
    const unsigned lower_peers = __popc(peers & ((1u << lane) - 1));
    const unsigned before = ranks[warp][digit];
    __syncwarp();
    if (lower_peers == 0) ranks[warp][digit] = before + __popc(peers);
    __syncwarp();
    rank[j] = before + lower_peers;
  }
  __syncthreads();
  // A thread for each digit.
  unsigned of_digit = 0;
  for (int i = 0; i < kWarps; ++i) {
    const unsigned count = ranks[i][me];
    ranks[i][me] = of_digit;
    of_digit += count;
  }
  const Count begin = sum_before(static_cast<Count>(of_digit), slots);
  const Count total = static_cast<const Count*>(sort.totals)[tile.own_row * 256 + me];
  const Count before = static_cast<const Count*>(
      sort.counts)[(tile.own_row * 256 + me) * sort.tiles + tile.begin / kTile];
  to[me] = sum_before(total, slots) + before - begin;
  for (int i = 0; i < kWarps; ++i) ranks[i][me] += static_cast<unsigned>(begin);
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kElementsPerThread; ++j) {
    const unsigned at = ranks[warp][digit_of(sort, key[j])] + rank[j];
    keys[at] = key[j];
    places[at] = place[j];
  }
  __syncthreads();
  for (int i = me; i < tile.size; i += kThreads) {
    const Raw moved = keys[i];
    const Count wrapped = to[digit_of(sort, moved)] + static_cast<Count>(i);
    const long long target = static_cast<long long>(wrapped);
    if (sort.to_keys != nullptr) {
      static_cast<Raw*>(sort.to_keys)[row_pairs + target] = moved;
      static_cast<Count*>(sort.to_places)[row_pairs + target] = places[i];
    } else if (target < rows.k) {
      write_result(rows, tile.at, target, static_cast<Raw>(~moved),
                   static_cast<long long>(places[i]), static_cast<Raw>(rows.flip));
    }
  }
}
