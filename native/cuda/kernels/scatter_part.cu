// The partition of updates of ANYDML_SIZE bytes into buckets (scatter_buckets.cpp).
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

constexpr unsigned kPartThreads = part_threads(ANYDML_SIZE);
constexpr unsigned kPartTile = part_tile(ANYDML_SIZE);
constexpr unsigned kWarps = kPartThreads / 32;
constexpr unsigned kOwn = kMaxBuckets / kPartThreads;  // buckets of a thread at most
constexpr unsigned kLong =
    48;  // updates of a bucket in a tile that are not put in order by counting

__device__ inline unsigned bucket_of(const Partition& part, unsigned key) {
  return key >> part.bucket_log;
}

// Ranks of a warp's own updates in their buckets, in order, whatever the buckets are.
__device__ void rank_in_order(const Partition& part, const unsigned (&key)[kPartKeysPerThread],
                              unsigned short (&rank)[kPartKeysPerThread], unsigned short* ranks) {
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  for (unsigned i = threadIdx.x; i < kWarps * part.buckets; i += kPartThreads) ranks[i] = 0;
  __syncthreads();
  unsigned short* const own_ranks = ranks + warp * part.buckets;
#pragma unroll
  for (unsigned j = 0; j < kPartKeysPerThread; ++j) {
    const bool is_valid = key[j] != kNoKey;
    const unsigned bucket = is_valid ? bucket_of(part, key[j]) : kNoKey;
    const unsigned peers = __match_any_sync(kAllLanes, bucket);
    const unsigned lower_peers = __popc(peers & ((1u << lane) - 1));
    const unsigned before = is_valid ? own_ranks[bucket] : 0;
    __syncwarp();
    if (lower_peers == 0 && is_valid)
      own_ranks[bucket] = static_cast<unsigned short>(before + __popc(peers));
    __syncwarp();
    rank[j] = static_cast<unsigned short>(before + lower_peers);
  }
  __syncthreads();
  for (unsigned bucket = threadIdx.x; bucket < part.buckets; bucket += kPartThreads) {
    unsigned sum = 0;
    for (unsigned w = 0; w < kWarps; ++w) {
      unsigned short& of_warp = ranks[w * part.buckets + bucket];
      const unsigned count = of_warp;
      of_warp = static_cast<unsigned short>(sum);
      sum += count;
    }
  }
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kPartKeysPerThread; ++j)
    if (key[j] != kNoKey)
      rank[j] = static_cast<unsigned short>(rank[j] + own_ranks[bucket_of(part, key[j])]);
  __syncthreads();
}

}  // namespace

// Moves the updates of a tile to their buckets, in order where that matters, unless they lie in
// order as they are. Places: of updates.
extern "C" __global__ void __launch_bounds__(kPartThreads,
                                             kPartThreads == 512 && ANYDML_SIZE <= 4 ? 2 : 1)
    scatter_part(const char* updates, const __grid_constant__ Places tuples,
                 const __grid_constant__ Partition part) {
  extern __shared__ uint4 memory[];
  __shared__ unsigned slots[kWarps];
  if (is_done(part) || is_ordered(part.state->seen)) return;
  unsigned* const to = reinterpret_cast<unsigned*>(memory);  // from the place in the tile
  unsigned* const starts = to + part.buckets;                // in the tile; counts at first
  Element* const staged = reinterpret_cast<Element*>(memory + (2 * part.buckets + 4) / 4);
  unsigned* const staged_keys = reinterpret_cast<unsigned*>(staged + kPartTile);
  unsigned short* const numbers = reinterpret_cast<unsigned short*>(staged_keys + kPartTile);
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const unsigned own_first = warp * (32 * kPartKeysPerThread) + lane, tile = blockIdx.x * kPartTile;
  const unsigned buckets_per_thread = (part.buckets + kPartThreads - 1) / kPartThreads;
  unsigned key[kPartKeysPerThread];
  Element value[kPartKeysPerThread];
#pragma unroll
  for (unsigned j = 0; j < kPartKeysPerThread; ++j) {
    const unsigned i = tile + own_first + 32 * j;
    key[j] = i < part.count ? part.keys[i] : kNoKey;
  }
#pragma unroll
  for (unsigned j = 0; j < kPartKeysPerThread; ++j) {
    const unsigned i = tile + own_first + 32 * j;
    if (i < part.count)
      value[j] = read<Element>(
          updates + (tuples.rank == 1 ? i * tuples.first[0] : places_of(tuples, i).first));
  }
  for (unsigned i = threadIdx.x; i < part.buckets; i += kPartThreads) starts[i] = 0;
  __syncthreads();
  const unsigned short* const before = part.before + static_cast<Offset>(blockIdx.x) * part.buckets;
  const unsigned* const of_group =
      part.counts + static_cast<Offset>(blockIdx.x / part.group) * part.buckets;
  unsigned base[kOwn];  // where the tile's updates of this thread's buckets go
#pragma unroll
  for (unsigned k = 0; k < kOwn; ++k) {
    const unsigned bucket = threadIdx.x * buckets_per_thread + k;
    if (k < buckets_per_thread && bucket < part.buckets)
      base[k] = part.bucket_offsets[bucket] + of_group[bucket] + before[bucket];
  }
  unsigned short rank[kPartKeysPerThread];
#pragma unroll
  for (unsigned j = 0; j < kPartKeysPerThread; ++j)
    if (key[j] != kNoKey)
      rank[j] = static_cast<unsigned short>(atomicAdd(starts + bucket_of(part, key[j]), 1u));
  __syncthreads();
  unsigned count[kOwn], total = 0;
  bool is_long = false;
#pragma unroll
  for (unsigned k = 0; k < kOwn; ++k) {
    const unsigned bucket = threadIdx.x * buckets_per_thread + k;
    count[k] = k < buckets_per_thread && bucket < part.buckets ? starts[bucket] : 0;
    total += count[k];
    is_long = is_long || count[k] > kLong;
  }
  unsigned all;
  unsigned start = sum_before(total, slots, all);
#pragma unroll
  for (unsigned k = 0; k < kOwn; ++k) {
    const unsigned bucket = threadIdx.x * buckets_per_thread + k;
    if (k >= buckets_per_thread || bucket >= part.buckets) break;
    starts[bucket] = start;
    to[bucket] = base[k] - start;
    start += count[k];
  }
  if (threadIdx.x == 0) starts[part.buckets] = all;
  const bool by_ranks = __syncthreads_or(part.in_order && is_long) != 0;
  if (by_ranks) rank_in_order(part, key, rank, reinterpret_cast<unsigned short*>(staged));
#pragma unroll
  for (unsigned j = 0; j < kPartKeysPerThread; ++j) {
    if (key[j] == kNoKey) continue;
    const unsigned slot = starts[bucket_of(part, key[j])] + rank[j];
    staged[slot] = value[j];
    staged_keys[slot] = key[j];
    numbers[slot] = static_cast<unsigned short>(own_first + 32 * j);
  }
  __syncthreads();
  const bool counts = part.in_order && !by_ranks;
  const unsigned mask = (1u << part.bucket_log) - 1;
  for (unsigned i = threadIdx.x; i < all; i += kPartThreads) {
    const unsigned moved = staged_keys[i], bucket = bucket_of(part, moved);
    unsigned at = i;
    if (counts) {
      const unsigned after = starts[bucket + 1], mine = numbers[i];
      at = starts[bucket];
      for (unsigned other = at; other < after; ++other) at += numbers[other] < mine ? 1 : 0;
    }
    const unsigned target = to[bucket] + at;
    part.places[target] = static_cast<unsigned short>(moved & mask);
    static_cast<Element*>(part.values)[target] = staged[i];
  }
}
