// SCATTER and SCATTER_ND of single elements into a long packed output: a stable partition of the
// updates into buckets, each of which fits shared memory, and then every element once. For elements
// of type ANYDML_TYPE by a reduction that gives the same in any order, or for ones of ANYDML_SIZE
// bytes that are only moved (ANYDML_TYPE 0).
#include "scatter_combine.cuh"
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

#if ANYDML_TYPE == 0
using Element = Unit<ANYDML_SIZE>::Type;
#else
using Element = Number<ANYDML_TYPE>::Type;
#endif
#if ANYDML_TYPE == 0
constexpr unsigned kWarps = kPartThreads / 32;
constexpr unsigned kNone = 0xFFFFFFFFu;

__device__ inline unsigned bucket_of(const Partition& part, unsigned key) {
  return key < part.slices ? key >> part.bucket_log : kNone;
}

// Sum of the values of the threads before this one, and of all.
__device__ inline unsigned sum_before(unsigned value, unsigned* slots, unsigned& all) {
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  unsigned sum = value;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned before = __shfl_up_sync(kAllLanes, sum, step);
    if (lane >= step) sum += before;
  }
  if (lane == 31) slots[warp] = sum;
  __syncthreads();
  unsigned ahead = 0;
  all = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) {
    if (i < warp) ahead += slots[i];
    all += slots[i];
  }
  __syncthreads();
  return ahead + sum - value;
}
#endif

}  // namespace

#if ANYDML_TYPE == 0
// How many updates of each tile go into each bucket.
extern "C" __global__ void __launch_bounds__(kPartThreads)
    scatter_count(const __grid_constant__ Partition part) {
  __shared__ unsigned counts[kMostBuckets];
  for (unsigned i = threadIdx.x; i < part.buckets; i += kPartThreads) counts[i] = 0;
  __syncthreads();
  const unsigned first = blockIdx.x * kPartTile + threadIdx.x;
  unsigned bucket[kPartEach];
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j) {
    const unsigned i = first + j * kPartThreads;
    bucket[j] = i < part.count ? part.keys[i] : kNone;
  }
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j) {
    const unsigned own = bucket_of(part, bucket[j]);
    // A warp of equals adds once.
    if (__all_sync(kAllLanes, own == __shfl_sync(kAllLanes, own, 0))) {
      if ((threadIdx.x & 31) == 0 && own != kNone) atomicAdd(counts + own, 32u);
    } else if (own != kNone) {
      atomicAdd(counts + own, 1u);
    }
  }
  __syncthreads();
  unsigned* const row = part.counts + static_cast<Offset>(blockIdx.x) * part.buckets;
  for (unsigned i = threadIdx.x; i < part.buckets; i += kPartThreads) row[i] = counts[i];
}

// Sums of chunks of tiles; a thread a bucket.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_chunk_sums(const __grid_constant__ Partition part) {
  const unsigned across = (part.buckets + kScatterThreads - 1) / kScatterThreads;
  const unsigned chunk = blockIdx.x / across;
  const unsigned bucket = (blockIdx.x - chunk * across) * kScatterThreads + threadIdx.x;
  if (bucket >= part.buckets) return;
  const unsigned tile = chunk * kPartChunk;
  const unsigned* const counts = part.counts + static_cast<Offset>(tile) * part.buckets + bucket;
  unsigned sum = 0;
#pragma unroll 16
  for (unsigned i = 0; i < kPartChunk; ++i)
    if (tile + i < part.tiles) sum += counts[static_cast<Offset>(i) * part.buckets];
  part.partial[static_cast<Offset>(chunk) * part.buckets + bucket] = sum;
}

// Sums before each chunk, and where buckets begin; one block.
extern "C" __global__ void __launch_bounds__(kBeginThreads)
    scatter_begins(const __grid_constant__ Partition part) {
  constexpr unsigned kBatch = 16;
  __shared__ unsigned slots[kBeginThreads / 32];
  unsigned carry = 0;
  for (unsigned first = 0; first < part.buckets; first += kBeginThreads) {
    const unsigned bucket = first + threadIdx.x;
    const bool there = bucket < part.buckets;
    unsigned sum = 0;
    for (unsigned chunk = 0; there && chunk < part.chunks; chunk += kBatch) {
      unsigned* const at = part.partial + static_cast<Offset>(chunk) * part.buckets + bucket;
      unsigned count[kBatch];
#pragma unroll
      for (unsigned i = 0; i < kBatch; ++i)
        count[i] = chunk + i < part.chunks ? at[static_cast<Offset>(i) * part.buckets] : 0;
#pragma unroll
      for (unsigned i = 0; i < kBatch; ++i) {
        if (chunk + i < part.chunks) at[static_cast<Offset>(i) * part.buckets] = sum;
        sum += count[i];
      }
    }
    unsigned all;
    const unsigned before = sum_before(sum, slots, all);
    if (there) part.begins[bucket] = carry + before;
    carry += all;
  }
  if (threadIdx.x == 0) part.begins[part.buckets] = carry;
}

// Where each tile's updates of each bucket begin; a thread a bucket of a chunk.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_offsets(const __grid_constant__ Partition part) {
  constexpr unsigned kBatch = 16;
  const unsigned across = (part.buckets + kScatterThreads - 1) / kScatterThreads;
  const unsigned chunk = blockIdx.x / across;
  const unsigned bucket = (blockIdx.x - chunk * across) * kScatterThreads + threadIdx.x;
  if (bucket >= part.buckets) return;
  unsigned sum =
      part.begins[bucket] + part.partial[static_cast<Offset>(chunk) * part.buckets + bucket];
  for (unsigned first = 0; first < kPartChunk; first += kBatch) {
    const unsigned tile = chunk * kPartChunk + first;
    unsigned* const at = part.counts + static_cast<Offset>(tile) * part.buckets + bucket;
    unsigned count[kBatch];
#pragma unroll
    for (unsigned i = 0; i < kBatch; ++i)
      count[i] = tile + i < part.tiles ? at[static_cast<Offset>(i) * part.buckets] : 0;
#pragma unroll
    for (unsigned i = 0; i < kBatch; ++i) {
      if (tile + i < part.tiles) at[static_cast<Offset>(i) * part.buckets] = sum;
      sum += count[i];
    }
  }
}

// Moves the updates of a tile to their buckets, in order. Places: of updates.
extern "C" __global__ void __launch_bounds__(kPartThreads, ANYDML_SIZE <= 4 ? 2 : 1)
    scatter_part(const char* updates, const __grid_constant__ Places tuples,
                 const __grid_constant__ Partition part) {
  extern __shared__ uint4 memory[];
  __shared__ unsigned slots[kWarps];
  unsigned* const starts = reinterpret_cast<unsigned*>(memory);
  unsigned* const to = starts + kMostBuckets;
  // Ranks of each warp, before its updates of a bucket; then the updates in the order of buckets.
  unsigned short* const ranks = reinterpret_cast<unsigned short*>(to + kMostBuckets);
  Element* const staged = reinterpret_cast<Element*>(to + kMostBuckets);
  unsigned* const staged_keys = reinterpret_cast<unsigned*>(staged + kPartTile);
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  unsigned short* const own_ranks = ranks + warp * kMostBuckets;
  for (unsigned i = lane; i < kMostBuckets / 2; i += 32)
    reinterpret_cast<unsigned*>(own_ranks)[i] = 0;
  const unsigned first = blockIdx.x * kPartTile + warp * (32 * kPartEach) + lane;
  unsigned key[kPartEach], at[kPartEach];
  Element value[kPartEach];
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j)
    key[j] = first + 32 * j < part.count ? part.keys[first + 32 * j] : kNone;
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j)
    if (bucket_of(part, key[j]) != kNone)
      value[j] = read<Element>(updates + places_of(tuples, first + 32 * j).first);
  __syncwarp();
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j) {
    const unsigned bucket = bucket_of(part, key[j]);
    const unsigned peers = __match_any_sync(kAllLanes, bucket);
    const unsigned ahead = __popc(peers & ((1u << lane) - 1));
    const unsigned before = bucket != kNone ? own_ranks[bucket] : 0;
    __syncwarp();
    if (ahead == 0 && bucket != kNone)
      own_ranks[bucket] = static_cast<unsigned short>(before + __popc(peers));
    __syncwarp();
    at[j] = before + ahead;
  }
  __syncthreads();
  constexpr unsigned kOwn = kMostBuckets / kPartThreads;  // buckets of a thread
  unsigned of_bucket[kOwn], total = 0;
#pragma unroll
  for (unsigned k = 0; k < kOwn; ++k) {
    const unsigned bucket = threadIdx.x * kOwn + k;
    unsigned sum = 0;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) {
      unsigned short& rank = ranks[w * kMostBuckets + bucket];
      const unsigned count = rank;
      rank = static_cast<unsigned short>(sum);
      sum += count;
    }
    of_bucket[k] = sum;
    total += sum;
  }
  unsigned all;
  unsigned start = sum_before(total, slots, all);
  const unsigned* const row = part.counts + static_cast<Offset>(blockIdx.x) * part.buckets;
#pragma unroll
  for (unsigned k = 0; k < kOwn; ++k) {
    const unsigned bucket = threadIdx.x * kOwn + k;
    starts[bucket] = start;
    if (bucket < part.buckets) to[bucket] = row[bucket] - start;
    start += of_bucket[k];
  }
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j) {
    const unsigned bucket = bucket_of(part, key[j]);
    if (bucket != kNone) at[j] += starts[bucket] + own_ranks[bucket];
  }
  __syncthreads();
#pragma unroll
  for (unsigned j = 0; j < kPartEach; ++j)
    if (bucket_of(part, key[j]) != kNone) {
      staged[at[j]] = value[j];
      staged_keys[at[j]] = key[j];
    }
  __syncthreads();
  const unsigned mask = (1u << part.bucket_log) - 1;
  for (unsigned i = threadIdx.x; i < all; i += kPartThreads) {
    const unsigned moved = staged_keys[i], target = to[moved >> part.bucket_log] + i;
    part.places[target] = static_cast<unsigned short>(moved & mask);
    static_cast<Element*>(part.values)[target] = staged[i];
  }
}
#endif

namespace {

constexpr unsigned kEach = 8;  // updates or elements of a thread at a time

#if ANYDML_TYPE == 0
template <class Word>
#else
template <Combine kCombine>
#endif
__device__ void fill_bucket(char* output, const char* input, const Partition& part) {
  extern __shared__ uint4 memory[];
#if ANYDML_TYPE != 0
  using Word = unsigned;
#endif
  Word* const words = reinterpret_cast<Word*>(memory);
  const unsigned begin = part.begins[blockIdx.x], end = part.begins[blockIdx.x + 1];
#if ANYDML_TYPE == 0
  if ((end - begin > kMostNarrow) != (sizeof(Word) == 4)) return;
#endif
  const unsigned first = blockIdx.x << part.bucket_log, left = part.slices - first;
  const unsigned size = left < 1u << part.bucket_log ? left : 1u << part.bucket_log;
  const Element* const values = static_cast<const Element*>(part.values);
  const Element* const from = reinterpret_cast<const Element*>(input) + first;
  Element* const to = reinterpret_cast<Element*>(output) + first;
  if (begin == end && input == output) return;
#pragma unroll 4
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x)
#if ANYDML_TYPE == 0
    words[i] = 0;
#else
    words[i] = static_cast<unsigned>(from[i]);
#endif
  __syncthreads();
  for (unsigned base = begin + threadIdx.x; base < end; base += kEach * blockDim.x) {
    unsigned place[kEach];
#if ANYDML_TYPE != 0
    Element value[kEach];
#endif
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {
      const unsigned i = base + k * blockDim.x;
      if (i >= end) continue;
      place[k] = part.places[i];
#if ANYDML_TYPE != 0
      value[k] = values[i];
#endif
    }
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {
      const unsigned i = base + k * blockDim.x;
      if (i >= end) continue;
#if ANYDML_TYPE == 0
      win(words + place[k], i - begin + 1);
#else
      take<kCombine>(words + place[k], value[k]);
#endif
    }
  }
  __syncthreads();
  for (unsigned base = threadIdx.x; base < size; base += kEach * blockDim.x) {
    Element value[kEach];
    bool there[kEach];
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k) {
      const unsigned i = base + k * blockDim.x;
      there[k] = i < size;
      if (!there[k]) continue;
#if ANYDML_TYPE == 0
      const unsigned winner = words[i];
      if (winner != 0)
        value[k] = values[begin + winner - 1];
      else if (input != output)
        value[k] = from[i];
      else
        there[k] = false;
#else
      value[k] = static_cast<Element>(words[i]);
#endif
    }
#pragma unroll
    for (unsigned k = 0; k < kEach; ++k)
      if (there[k]) to[base + k * blockDim.x] = value[k];
  }
}

}  // namespace

#if ANYDML_TYPE == 0
// Every element of a bucket with as many updates as 16 bits count.
extern "C" __global__ void __launch_bounds__(kBucketThreads, 3)
    scatter_bucket(char* output, const char* input, const __grid_constant__ Partition part,
                   const __grid_constant__ BadIndexReport report) {
  if (!bad_index_found(report)) fill_bucket<unsigned short>(output, input, part);
}

// Of the others.
extern "C" __global__ void __launch_bounds__(kWideBucketThreads)
    scatter_wide_bucket(char* output, const char* input, const __grid_constant__ Partition part,
                        const __grid_constant__ BadIndexReport report) {
  if (!bad_index_found(report)) fill_bucket<unsigned>(output, input, part);
}
#else
// Every element of a bucket.
extern "C" __global__ void __launch_bounds__(kWideBucketThreads)
    scatter_sum_bucket(char* output, const char* input, const __grid_constant__ Partition part,
                       int reduction, const __grid_constant__ BadIndexReport report) {
  if (bad_index_found(report)) return;
  with_reduction(reduction, [&](auto constant) {
    fill_bucket<decltype(constant)::value>(output, input, part);
  });
}
#endif
