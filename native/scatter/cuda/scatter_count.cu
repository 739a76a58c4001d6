// The keys of updates of single elements, with indices of type ANYDML_INDEX, and how many updates
// each bucket of elements has (scatter_buckets.cpp). A thread takes groups of neighbouring updates;
// where updates only move, those that a later one of their group replaces are left out.
#include "runtime/cuda/order.cuh"
#include "scatter/cuda/scatter_device.cuh"
#include "scatter/cuda/scatter_order.cuh"

namespace {

using namespace anydml::cuda;

using Index = Number<ANYDML_INDEX>::Type;

// 16 bytes, read once.
__device__ inline uint4 line_at(const char* from) {
  uint4 x;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

// Packed indices of one axis, in whole lines.
__device__ inline void packed_keys(const char* indices, unsigned long long size, unsigned first,
                                   unsigned (&key)[kGroup], FirstBad& bad) {
  constexpr unsigned kPerLine = 16 / sizeof(Index);
  union {
    uint4 line;
    Index value[kPerLine];
  } read[kGroup / kPerLine];
#pragma unroll
  for (unsigned j = 0; j < kGroup / kPerLine; ++j)
    read[j].line = line_at(indices + first * Offset{sizeof(Index)} + j * 16);
#pragma unroll
  for (unsigned j = 0; j < kGroup; ++j) {
    const Index value = read[j / kPerLine].value[j % kPerLine];
    const unsigned long long position = anydml::wrap_index(value, size);
    if (position >= size) bad.see(first + j, static_cast<Offset>(value));
    key[j] = position >= size ? kNoKey : static_cast<unsigned>(position);
  }
}

}  // namespace

// Places of the tuples: first in the indices, second what the key begins with. Blocks of a column
// of the grid count updates of one epoch; the last block of all finds out where bins begin. Where
// the indices seem to be in order, they are checked instead, and counted in a launch after that if
// they are not (`again`).
extern "C" __global__ void __launch_bounds__(kCountThreads, 1)
    scatter_count(const char* indices, const __grid_constant__ Places places,
                  const __grid_constant__ Tuples tuples, const __grid_constant__ Buckets of,
                  int again, const __grid_constant__ BadIndexReport report) {
  extern __shared__ unsigned counts[];
  __shared__ unsigned slots[kCountThreads / 32];
  __shared__ bool last;
  anydml::let_next_begin();
  if (again != 0) {
    anydml::await_previous();
    if (of.order->looks == 0 || is_done(of.order, of.moves == 0)) return;
  } else if (of.order != nullptr && look<Index>(indices, of)) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) of.order->looks = 1;
    return check_order<Index>(indices, of);
  }
  for (unsigned i = threadIdx.x; i < of.buckets; i += kCountThreads) counts[i] = 0;
  __syncthreads();
  const unsigned epoch = blockIdx.y, step = gridDim.x * kCountThreads * kGroup;
  const unsigned begin = epoch * of.span, left = of.count - begin;
  const unsigned end = begin + (left < of.span ? left : of.span);
  FirstBad bad;
  for (unsigned first = begin + (blockIdx.x * kCountThreads + threadIdx.x) * kGroup; first < end;
       first += step) {
    unsigned key[kGroup];
    if (of.packed && end - first >= kGroup) {
      packed_keys(indices, static_cast<unsigned long long>(tuples.sizes[0]), first, key, bad);
    } else {
#pragma unroll
      for (unsigned j = 0; j < kGroup; ++j) {
        const Offset i = first + j;
        key[j] = kNoKey;
        if (i < end)
          key[j] = static_cast<unsigned>(key_of(indices, tuples, places_of(places, i), i, bad));
      }
    }
    if (of.moves) {
#pragma unroll
      for (unsigned j = 0; j + 1 < kGroup; ++j)
#pragma unroll
        for (unsigned later = j + 1; later < kGroup; ++later)
          if (key[j] == key[later]) key[j] = kNoKey;
    }
    uint4* const to = reinterpret_cast<uint4*>(of.keys + first);
    to[0] = {key[0], key[1], key[2], key[3]};
    to[1] = {key[4], key[5], key[6], key[7]};
    if (is_one_bucket(key, of)) {
      if (key[0] != kNoKey) atomicAdd(counts + (key[0] >> of.bucket_log), kGroup);
      continue;
    }
#pragma unroll
    for (unsigned j = 0; j < kGroup; ++j)
      if (key[j] != kNoKey) atomicAdd(counts + (key[j] >> of.bucket_log), 1u);
  }
  bad.publish(report);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < of.buckets; i += kCountThreads)
    if (counts[i] != 0) atomicAdd(of.counts + i * of.epochs + epoch, counts[i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&of.state->counted, 1u) == gridDim.x * gridDim.y - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  constexpr unsigned kBins = 4;  // of a thread at a time
  const unsigned bins = of.buckets * of.epochs;
  unsigned before = 0;
  for (unsigned base = 0; base < bins; base += kBins * kCountThreads) {
    const unsigned first = base + threadIdx.x * kBins;
    unsigned own[kBins], sum = 0, all = 0;
#pragma unroll
    for (unsigned j = 0; j < kBins; ++j) {
      own[j] = first + j < bins ? __ldcg(of.counts + first + j) : 0;
      sum += own[j];
    }
    unsigned offset = before + sum_before(sum, slots, all);
    before += all;
#pragma unroll
    for (unsigned j = 0; j < kBins; ++j)
      if (first + j < bins) {
        of.offsets[first + j] = of.counts[first + j] = offset;
        offset += own[j];
      }
  }
  if (threadIdx.x == 0) of.offsets[bins] = before;
  __syncthreads();
  // Buckets of more updates than one block takes.
  for (unsigned bucket = threadIdx.x; bucket < of.buckets; bucket += kCountThreads) {
    const unsigned first = of.offsets[bucket * of.epochs];
    const unsigned count = of.offsets[(bucket + 1) * of.epochs] - first;
    if (count <= kCrowded) continue;
    const unsigned slot = atomicAdd(&of.state->crowded, 1u), pieces = blocks_of_crowded(count);
    of.left[slot] = pieces;
    of.slots[bucket] = slot;
    unsigned piece = atomicAdd(&of.state->pieces, pieces);
    for (unsigned at = 0; at < count; at += kCrowded) of.pieces[piece++] = {bucket, slot, at};
  }
}
