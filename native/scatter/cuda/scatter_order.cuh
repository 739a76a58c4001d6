// Whether the indices of one axis, packed and in whole lines, ascend or descend as they lie
// (scatter_ordered.cpp).
#pragma once

#include "scatter/cuda/scatter_device.cuh"

namespace anydml::cuda {

template <class Index>
struct alignas(16) IndexLine {
  static constexpr unsigned kCount = 16 / sizeof(Index);
  Index values[kCount];
};

// What two positions side by side show.
__device__ inline unsigned seen_of(unsigned long long before, unsigned long long position) {
  return before < position ? kRises : before > position ? kFalls : kEqual;
}

// Whether a sample is in order, by one warp: every block finds the same.
template <class Index>
__device__ inline bool look(const char* indices, const Buckets& of) {
  __shared__ bool ordered;
  if (threadIdx.x < 32) {
    const unsigned long long size = of.slices;
    const unsigned span = of.count - kLookIndicesPerThread;
    const unsigned first =
        static_cast<unsigned>(static_cast<unsigned long long>(span) * threadIdx.x / 31);
    Index value[kLookIndicesPerThread];
#pragma unroll
    for (unsigned k = 0; k < kLookIndicesPerThread; ++k)
      value[k] = read_once<Index>(indices + (Offset{first} + k) * Offset{sizeof(Index)});
    unsigned seen = 0;
    unsigned long long before = 0, begin = 0;
#pragma unroll
    for (unsigned k = 0; k < kLookIndicesPerThread; ++k) {
      const unsigned long long position = anydml::wrap_index(value[k], size);
      if (position >= size) seen |= kOutside;
      if (k == 0)
        begin = position;
      else
        seen |= seen_of(before, position);
      before = position;
    }
    before = __shfl_up_sync(kAllLanes, before, 1);
    if (threadIdx.x > 0) seen |= seen_of(before, begin);
    seen = __reduce_or_sync(kAllLanes, seen);
    if (threadIdx.x == 0)
      ordered =
          is_ordered(seen) && (seen & kOutside) == 0 && !(of.moves == 0 && (seen & kEqual) != 0);
  }
  __syncthreads();
  return ordered;
}

// Looks at all of them, and whether each is in range.
template <class Index>
__device__ inline void check_order(const char* indices, const Buckets& of) {
  using Line = IndexLine<Index>;
  const unsigned long long size = of.slices;
  const unsigned lines = of.count / Line::kCount, lane = threadIdx.x & 31;
  const Line* const all = reinterpret_cast<const Line*>(indices);
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  const unsigned step = gridDim.x * gridDim.y * kCountThreads * kCheckedPerThread;
  unsigned seen = 0;
  // Loops by whole warps, for the shuffle below.
  for (unsigned base = block * kCountThreads * kCheckedPerThread; base < lines; base += step) {
    const unsigned first = base + threadIdx.x;
    Line line[kCheckedPerThread];
    Index previous[kCheckedPerThread];  // of lane 0: the last value before its line
#pragma unroll
    for (unsigned k = 0; k < kCheckedPerThread; ++k) {
      const unsigned at = first + k * kCountThreads;
      if (at < lines) line[k] = all[at];
      if (at < lines && lane == 0 && at > 0) previous[k] = all[at - 1].values[Line::kCount - 1];
    }
#pragma unroll
    for (unsigned k = 0; k < kCheckedPerThread; ++k) {
      const unsigned at = first + k * kCountThreads;
      const Index around = __shfl_up_sync(kAllLanes, line[k].values[Line::kCount - 1], 1);
      if (at >= lines) continue;
      const unsigned long long before = anydml::wrap_index(lane == 0 ? previous[k] : around, size);
      unsigned long long known = at == 0 ? 0 : before;
#pragma unroll
      for (unsigned i = 0; i < Line::kCount; ++i) {
        const unsigned long long position = anydml::wrap_index(line[k].values[i], size);
        if (position >= size) seen |= kOutside;
        if (at > 0 || i > 0) seen |= seen_of(known, position);
        known = position;
      }
    }
    if (__any_sync(kAllLanes, !is_ordered(seen) || (seen & kOutside) != 0)) break;
  }
  // What does not fill a line.
  if (block == 0 && threadIdx.x == 0)
    for (unsigned i = lines * Line::kCount; i < of.count; ++i) {
      const Index* const values = reinterpret_cast<const Index*>(indices);
      const unsigned long long position = anydml::wrap_index(values[i], size);
      if (position >= size) seen |= kOutside;
      seen |= seen_of(anydml::wrap_index(values[i - 1], size), position);
    }
  seen = __reduce_or_sync(kAllLanes, seen);
  if (lane == 0 && (seen & ~*const_cast<volatile unsigned*>(&of.order->seen)) != 0)
    atomicOr(&of.order->seen, seen);
}

}  // namespace anydml::cuda
