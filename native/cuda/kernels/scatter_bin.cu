// How many updates go into each bucket (scatter_buckets.cpp), from each range of them: the keys of
// SCATTER and SCATTER_ND, their counts, and what comes before each.
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

constexpr unsigned kWarps = kBinThreads / 32;
constexpr unsigned kRow = 32 * kBinKeysPerThread;

using Index = Number<ANYDML_INDEX>::Type;

// Two in one access, each read once.
template <class T>
__device__ inline void read_pair(const char* from, T (&value)[2]) {
  if constexpr (sizeof(T) == 8)
    asm volatile("ld.global.v2.b64 {%0, %1}, [%2];" : "=l"(value[0]), "=l"(value[1]) : "l"(from));
  else
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(value[0]), "=r"(value[1]) : "l"(from));
}

// The keys of rows of 32 updates; of all of them (`kFull`), or of those before `end`.
template <bool kFull>
__device__ inline void read_keys(const char* indices, const Places& places, const Tuples& tuples,
                                 unsigned row, unsigned end, unsigned (&key)[kBinKeysPerThread],
                                 FirstBad& bad) {
  const unsigned first = row + (threadIdx.x & 31);
  Offset from[kBinKeysPerThread];
#pragma unroll
  for (unsigned k = 0; k < kBinKeysPerThread; ++k) {
    const unsigned i = first + 32 * k;
    key[k] = kNoKey;
    from[k] = 0;
    if (!kFull && i >= end) continue;
    PlacePair at{i * places.first[0], i * places.second[0]};
    if (places.rank != 1) at = places_of(places, i);
    from[k] = at.first;
    key[k] = static_cast<unsigned>(at.second);
  }
  const auto add = [&](unsigned k, int d, Index value) {
    const auto size = static_cast<unsigned long long>(tuples.sizes[d]);
    const unsigned long long position = anydml::wrap_index(value, size);
    if (position >= size) {
      bad.see(static_cast<Offset>(first + 32 * k) * tuples.length + d, static_cast<Offset>(value));
      key[k] = kNoKey;
    } else if (key[k] != kNoKey) {
      key[k] += static_cast<unsigned>(position) * static_cast<unsigned>(tuples.scales[d]);
    }
  };
  if (tuples.paired) {  // both loads at once: volatile loads do not combine in the first cache
    Index value[kBinKeysPerThread][2] = {};
#pragma unroll
    for (unsigned k = 0; k < kBinKeysPerThread; ++k)
      if (kFull || first + 32 * k < end) read_pair(indices + from[k], value[k]);
#pragma unroll
    for (unsigned k = 0; k < kBinKeysPerThread; ++k) {
      if (!kFull && first + 32 * k >= end) continue;
      add(k, 0, value[k][0]);
      add(k, 1, value[k][1]);
    }
    return;
  }
#pragma unroll 1
  for (int d = 0; d < tuples.length; ++d) {
    const char* const coordinate = indices + d * tuples.step;
    Index value[kBinKeysPerThread] = {};
#pragma unroll
    for (unsigned k = 0; k < kBinKeysPerThread; ++k)
      if (kFull || first + 32 * k < end) value[k] = read_once<Index>(coordinate + from[k]);
#pragma unroll
    for (unsigned k = 0; k < kBinKeysPerThread; ++k)
      if (kFull || first + 32 * k < end) add(k, d, value[k]);
  }
}

// Some rows of a warp: keys, counts, and what is seen of them; lane 0 has the key before.
template <bool kFull>
__device__ inline void bin_rows(const char* indices, const Places& places, const Tuples& tuples,
                                const Partition& part, unsigned row, unsigned end, bool starts_row,
                                unsigned* counts, PartEdge& edge, FirstBad& bad) {
  const unsigned lane = threadIdx.x & 31;
  unsigned key[kBinKeysPerThread];
  read_keys<kFull>(indices, places, tuples, row, end, key, bad);
  if (starts_row) edge.first = edge.last = key[0];
#pragma unroll
  for (unsigned k = 0; k < kBinKeysPerThread; ++k) {
    const unsigned i = row + 32 * k + lane;
    if (!kFull && row + 32 * k >= end) continue;
    const bool is_valid = kFull || i < end;
    unsigned own = key[k];
    const unsigned around = __shfl_sync(kAllLanes, own, static_cast<int>(lane - 1) & 31);
    const unsigned before = lane == 0 ? edge.last : around;
    edge.last =
        kFull ? around : __shfl_sync(kAllLanes, own, static_cast<int>(end - 1 - row - 32 * k) & 31);
    if (!kFull && end - row - 32 * k > 32) edge.last = around;
    const bool first = starts_row && k == 0 && lane == 0, known = is_valid && !first;
    if (known && before < own) edge.seen |= kRises;
    if (known && before > own) edge.seen |= kFalls;
    const bool equal = known && before == own;
    if (equal) edge.seen |= kEqual;
    if (part.last_only && kFull && __any_sync(kAllLanes, equal && lane != 0)) {
      // Of equal keys of a row only the last one counts, and none that the next row ends with. It
      // is not searched for in ordered rows of many keys, which are best left in place.
      const unsigned rises = __ballot_sync(kAllLanes, lane != 0 && before < own);
      const unsigned falls = __ballot_sync(kAllLanes, lane != 0 && before > own);
      if ((rises != 0 && falls != 0) || __popc(rises | falls) < 4) {
        const unsigned peers = __match_any_sync(kAllLanes, own);
        bool later = peers >> lane != 1;
        if (k + 1 < kBinKeysPerThread)
          later = __shfl_sync(kAllLanes, key[(k + 1) % kBinKeysPerThread], 31) == own || later;
        if (later) {
          own = kNoKey;
          edge.seen = kRises | kFalls | kEqual;
        }
      }
    }
    if (is_valid) part.keys[i] = own;
    const unsigned bucket = own == kNoKey ? kNoKey : own >> part.bucket_log;
    const bool same_bucket = own == key[k] && (lane == 0 || before >> part.bucket_log == bucket);
    if (kFull && __all_sync(kAllLanes, same_bucket)) {
      if (lane == 0 && bucket != kNoKey) atomicAdd(counts + bucket, 32u);
    } else if (bucket != kNoKey) {
      atomicAdd(counts + bucket, 1u);
    }
  }
}

__device__ inline void join_edges(PartEdge& edge, const PartEdge& next) {
  edge.seen |= next.seen | (edge.last < next.first   ? kRises
                            : edge.last > next.first ? kFalls
                                                     : kEqual);
  edge.last = next.last;
}

}  // namespace

// The keys of a group of tiles, and how many go into each bucket. Places of the tuples: first in
// the indices, second what the key begins with.
extern "C" __global__ void __launch_bounds__(kBinThreads, 2)
    scatter_bin(const char* indices, const __grid_constant__ Places places,
                const __grid_constant__ Tuples tuples, const __grid_constant__ Partition part,
                const __grid_constant__ BadIndexReport report) {
  __shared__ unsigned counts[kMaxBuckets], known[kMaxBuckets];
  __shared__ PartEdge warps[kWarps];
  if (is_done(part)) return;
  for (unsigned i = threadIdx.x; i < part.buckets; i += kBinThreads) counts[i] = known[i] = 0;
  __syncthreads();
  const unsigned warp = threadIdx.x / 32, span = part.tile / kWarps;
  FirstBad bad;
  PartEdge all{kNoKey, kNoKey, 0};  // of thread 0
  const unsigned first = blockIdx.x * part.group;
  for (unsigned tile = first; tile < first + part.group && tile < part.tiles; ++tile) {
    const unsigned begin = tile * part.tile + warp * span;
    const unsigned end = begin + span < part.count ? begin + span : part.count;
    PartEdge edge{kNoKey, kNoKey, 0};
    for (unsigned row = begin; row < end; row += kRow)
      if (end - row >= kRow)
        bin_rows<true>(indices, places, tuples, part, row, end, row == begin, counts, edge, bad);
      else
        bin_rows<false>(indices, places, tuples, part, row, end, row == begin, counts, edge, bad);
    edge.seen = __reduce_or_sync(kAllLanes, edge.seen);
    if ((threadIdx.x & 31) == 0) warps[warp] = edge;
    __syncthreads();
    unsigned short* const before = part.before + static_cast<Offset>(tile) * part.buckets;
    for (unsigned i = threadIdx.x; i < part.buckets; i += kBinThreads) {
      before[i] = static_cast<unsigned short>(known[i]);
      known[i] = counts[i];
    }
    if (threadIdx.x == 0)
      for (unsigned w = 0; w < kWarps; ++w) {
        if (tile * part.tile + w * span >= part.count) break;
        if (w == 0 && tile == first)
          all = warps[0];
        else
          join_edges(all, warps[w]);
      }
    __syncthreads();
  }
  unsigned* const row = part.counts + static_cast<Offset>(blockIdx.x) * part.buckets;
  for (unsigned i = threadIdx.x; i < part.buckets; i += kBinThreads) row[i] = counts[i];
  if (threadIdx.x == 0) part.edges[blockIdx.x] = all;
  bad.publish(report);
}

// What the groups before put into each bucket, and all together: 32 buckets a block, some groups
// a warp.
extern "C" __global__ void __launch_bounds__(kBeginThreads)
    scatter_offsets(const __grid_constant__ Partition part) {
  constexpr unsigned kRows = kBeginThreads / 32;
  __shared__ unsigned sums[kRows][32];
  if (is_done(part)) return;
  const unsigned lane = threadIdx.x & 31, own_row = threadIdx.x / 32;
  const unsigned bucket = blockIdx.x * 32 + lane;
  const unsigned groups_per_row = (part.groups + kRows - 1) / kRows;
  const unsigned first = own_row * groups_per_row;
  const unsigned end = first + groups_per_row < part.groups ? first + groups_per_row : part.groups;
  const bool is_valid = bucket < part.buckets;
  unsigned* const counts = part.counts + bucket;
  unsigned sum = 0;
  if (is_valid) {
#pragma unroll 8
    for (unsigned i = first; i < end; ++i) sum += counts[static_cast<Offset>(i) * part.buckets];
  }
  sums[own_row][lane] = sum;
  __syncthreads();
  unsigned before = 0;
  for (unsigned i = 0; i < own_row; ++i) before += sums[i][lane];
  if (!is_valid) return;
  if (own_row == kRows - 1) part.totals[bucket] = before + sum;
#pragma unroll 8
  for (unsigned i = first; i < end; ++i) {
    unsigned& count = counts[static_cast<Offset>(i) * part.buckets];
    const unsigned own = count;
    count = before;
    before += own;
  }
}

// Where buckets begin, those that have more updates than one block takes, and whether all keys are
// in order; one block.
extern "C" __global__ void __launch_bounds__(kBeginThreads)
    scatter_bucket_offsets(const __grid_constant__ Partition part) {
  constexpr unsigned kBucketsPerThread = kMaxBuckets / kBeginThreads;
  __shared__ unsigned slots[kBeginThreads / 32];
  if (is_done(part)) return;
  unsigned count[kBucketsPerThread], total = 0, capacity = 0, pieces = 0, overfull_buckets = 0;
  const auto capacity_of = [](unsigned updates) {
    return (updates + kUpdatesPerRead - 1) / kUpdatesPerRead * kUpdatesPerRead;
  };
#pragma unroll
  for (unsigned k = 0; k < kBucketsPerThread; ++k) {
    const unsigned bucket = threadIdx.x * kBucketsPerThread + k;
    count[k] = bucket < part.buckets ? part.totals[bucket] : 0;
    total += count[k];
    capacity += capacity_of(count[k]);
    if (count[k] <= kOverfullBucketSize) continue;
    pieces += (count[k] + kOverfullBucketSize - 1) / kOverfullBucketSize;
    ++overfull_buckets;
  }
  unsigned all, all_capacities, all_pieces, all_overfull_buckets;
  unsigned first = sum_before(total, slots, all);
  unsigned begin = sum_before(capacity, slots, all_capacities);
  unsigned piece = sum_before(pieces, slots, all_pieces);
  unsigned slot = sum_before(overfull_buckets, slots, all_overfull_buckets);
#pragma unroll
  for (unsigned k = 0; k < kBucketsPerThread; ++k) {
    const unsigned bucket = threadIdx.x * kBucketsPerThread + k;
    if (bucket >= part.buckets) break;
    part.firsts[bucket] = first;
    part.bucket_offsets[bucket] = begin;
    first += count[k];
    begin += capacity_of(count[k]);
    if (count[k] <= kOverfullBucketSize) continue;
    part.left[slot] = (count[k] + kOverfullBucketSize - 1) / kOverfullBucketSize;
    for (unsigned at = 0; at < count[k]; at += kOverfullBucketSize)
      part.pieces[piece++] = {bucket, slot, at};
    ++slot;
  }
  unsigned seen = 0;
  for (unsigned i = threadIdx.x; i < part.groups; i += kBeginThreads) {
    PartEdge edge = part.edges[i];
    if (i + 1 < part.groups) join_edges(edge, part.edges[i + 1]);
    seen |= edge.seen;
  }
  const bool rises = __syncthreads_or((seen & kRises) != 0) != 0;
  const bool falls = __syncthreads_or((seen & kFalls) != 0) != 0;
  const bool equal = __syncthreads_or((seen & kEqual) != 0) != 0;
  if (threadIdx.x != 0) return;
  part.state->seen = all < part.count
                         ? kRises | kFalls | kEqual
                         : (rises ? kRises : 0) | (falls ? kFalls : 0) | (equal ? kEqual : 0);
  part.state->pieces = all_pieces;
}
