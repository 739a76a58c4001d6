// Moves updates of ANYDML_SIZE bytes to the buckets of their elements (scatter_buckets.cpp): into
// records, in any order, that say which update is later. A block puts a tile in the order of its
// buckets first, so that neighbouring threads write side by side.
#include "scatter/cuda/scatter_record.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;
using Record = RecordOf<Element, ANYDML_NUMBERED != 0>;

constexpr unsigned kHeld = 5;  // buckets of a thread whose offsets are asked for early

struct alignas(ANYDML_SIZE == 1 ? 8 : 16) Group {
  Element of[kGroup];
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kMaxAppendThreads, 1)
    scatter_append(const char* updates, const __grid_constant__ Places tuples,
                   const __grid_constant__ Buckets of) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ unsigned slots[kMaxAppendThreads / 32];
  Record* const stage = reinterpret_cast<Record*>(memory);
  const unsigned tile_size = blockDim.x * kAppendGroups * kGroup;
  unsigned short* const bucket_of = reinterpret_cast<unsigned short*>(stage + tile_size);
  unsigned* const starts = reinterpret_cast<unsigned*>(bucket_of + tile_size);  // in the tile
  unsigned* const to = starts + of.buckets + 1;  // from the place in the tile
  anydml::let_next_begin();
  for (unsigned i = threadIdx.x; i <= of.buckets; i += blockDim.x) starts[i] = 0;
  const unsigned tile = blockIdx.x * tile_size, epoch = tile / of.span;
  Group value[kAppendGroups];
#pragma unroll
  for (unsigned g = 0; g < kAppendGroups; ++g) {
    const unsigned first = tile + (g * blockDim.x + threadIdx.x) * kGroup;
    if (of.packed_updates && first + kGroup <= of.count) {
      value[g] = reinterpret_cast<const Group*>(updates)[first / kGroup];
    } else {
#pragma unroll
      for (unsigned j = 0; j < kGroup; ++j)
        if (first + j < of.count)
          value[g].of[j] = read<Element>(updates + places_of(tuples, first + j).first);
    }
  }
  anydml::await_previous();
  if (is_done(of.order, of.moves == 0)) return;
  unsigned key[kAppendGroups][kGroup];
#pragma unroll
  for (unsigned g = 0; g < kAppendGroups; ++g) {
    const unsigned first = tile + (g * blockDim.x + threadIdx.x) * kGroup;
    const uint4* const keys = reinterpret_cast<const uint4*>(of.keys + first);
    const bool any = first < of.count;  // keys are kNoKey up to the end of their group
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const uint4 x = any ? keys[half] : uint4{kNoKey, kNoKey, kNoKey, kNoKey};
      key[g][4 * half] = x.x, key[g][4 * half + 1] = x.y;
      key[g][4 * half + 2] = x.z, key[g][4 * half + 3] = x.w;
    }
  }
  // What has no key gets a bucket behind the others: branches would make threads wait.
  const auto bucket_of_key = [&](unsigned key) {
    const unsigned bucket = key >> of.bucket_log;
    return bucket < of.buckets ? bucket : of.buckets;
  };
  __syncthreads();
#pragma unroll
  for (unsigned g = 0; g < kAppendGroups; ++g) {
    if (is_one_bucket(key[g], of)) {
      atomicAdd(starts + bucket_of_key(key[g][0]), kGroup);
      continue;
    }
#pragma unroll
    for (unsigned j = 0; j < kGroup; ++j) atomicAdd(starts + bucket_of_key(key[g][j]), 1u);
  }
  __syncthreads();
  // The global counters answer while the tile is put in order.
  unsigned held[kHeld];
#pragma unroll
  for (unsigned h = 0; h < kHeld; ++h) {
    const unsigned bucket = threadIdx.x + h * blockDim.x;
    const unsigned count = bucket < of.buckets ? starts[bucket] : 0;
    held[h] = count == 0 ? 0 : atomicAdd(of.counts + bucket * of.epochs + epoch, count);
  }
  for (unsigned bucket = threadIdx.x + kHeld * blockDim.x; bucket < of.buckets;
       bucket += blockDim.x) {
    const unsigned count = starts[bucket];
    to[bucket] = count == 0 ? 0 : atomicAdd(of.counts + bucket * of.epochs + epoch, count);
  }
  const unsigned bins = of.buckets + 1, each = (bins + blockDim.x - 1) / blockDim.x;
  const unsigned begin = threadIdx.x * each < bins ? threadIdx.x * each : bins;
  const unsigned end = begin + each < bins ? begin + each : bins;
  unsigned sum = 0, all = 0;
  for (unsigned b = begin; b < end; ++b) sum += starts[b];
  unsigned before = sum_before(sum, slots, all);
  for (unsigned b = begin; b < end; ++b) {
    const unsigned count = starts[b];
    starts[b] = before;
    before += count;
  }
  __syncthreads();
#pragma unroll
  for (unsigned h = 0; h < kHeld; ++h) {
    const unsigned bucket = threadIdx.x + h * blockDim.x;
    if (bucket < of.buckets) to[bucket] = held[h] - starts[bucket];
  }
  for (unsigned bucket = threadIdx.x + kHeld * blockDim.x; bucket < of.buckets;
       bucket += blockDim.x)
    to[bucket] -= starts[bucket];
  const unsigned kept = starts[of.buckets];
  __syncthreads();
  const unsigned mask = (1u << of.bucket_log) - 1;
#pragma unroll
  for (unsigned g = 0; g < kAppendGroups; ++g) {
    unsigned slot[kGroup];  // all are asked for before one is awaited
    if (is_one_bucket(key[g], of)) {
      slot[0] = atomicAdd(starts + bucket_of_key(key[g][0]), kGroup);
#pragma unroll
      for (unsigned j = 1; j < kGroup; ++j) slot[j] = slot[0] + j;
    } else {
#pragma unroll
      for (unsigned j = 0; j < kGroup; ++j)
        slot[j] = atomicAdd(starts + bucket_of_key(key[g][j]), 1u);
    }
#pragma unroll
    for (unsigned j = 0; j < kGroup; ++j) {
      const unsigned number = tile + (g * blockDim.x + threadIdx.x) * kGroup + j;
      stage[slot[j]] = Record::make(key[g][j] & mask, number, number - epoch * of.span,
                                    of.bucket_log, value[g].of[j]);
      bucket_of[slot[j]] = static_cast<unsigned short>(bucket_of_key(key[g][j]));
    }
  }
  __syncthreads();
  Record* const records = static_cast<Record*>(of.records);
#pragma unroll 4
  for (unsigned slot = threadIdx.x; slot < kept; slot += blockDim.x)
    records[to[bucket_of[slot]] + slot] = stage[slot];
}
