// Whether the indices of one axis, packed and in whole lines, ascend or descend as they lie
// (scatter_ordered.cpp).
#include "scatter_device.cuh"

namespace {

using namespace anydml::cuda;

template <class Index>
struct alignas(16) IndexLine {
  static constexpr unsigned kCount = 16 / sizeof(Index);
  Index values[kCount];
};

// What two positions side by side show.
__device__ inline unsigned seen_of(unsigned long long before, unsigned long long position) {
  return before < position ? kRises : before > position ? kFalls : kEqual;
}

template <class Index>
__device__ void look(const char* indices, const InOrder& job, unsigned* lasts) {
  const unsigned long long size = job.slices;
  const unsigned span = job.count - kLookIndicesPerThread;
  const unsigned first = static_cast<unsigned>(static_cast<unsigned long long>(span) * threadIdx.x /
                                               (kLookThreads - 1));
  unsigned seen = 0;
  unsigned long long before = 0, begin = 0;
#pragma unroll
  for (unsigned k = 0; k < kLookIndicesPerThread; ++k) {
    const Index value = read_once<Index>(indices + (Offset{first} + k) * Offset{sizeof(Index)});
    const unsigned long long position = anydml::wrap_index(value, size);
    if (position >= size) seen |= kOutside;
    if (k == 0)
      begin = position;
    else
      seen |= seen_of(before, position);
    before = position;
  }
  lasts[threadIdx.x] = static_cast<unsigned>(before);
  __syncthreads();
  if (threadIdx.x > 0) seen |= seen_of(lasts[threadIdx.x - 1], begin);
  const bool rises = __syncthreads_or((seen & kRises) != 0) != 0;
  const bool falls = __syncthreads_or((seen & kFalls) != 0) != 0;
  const bool equal = __syncthreads_or((seen & kEqual) != 0) != 0;
  const bool has_bad_index = __syncthreads_or((seen & kOutside) != 0) != 0;
  if (threadIdx.x != 0) return;
  job.order->looks = (rises && falls) || has_bad_index || (job.once && equal) ? 0 : 1;
  job.order->seen = 0;
}

template <class Index>
__device__ void check_order(const char* indices, const InOrder& job) {
  using Line = IndexLine<Index>;
  const unsigned long long size = job.slices;
  const unsigned lines = job.count / Line::kCount, lane = threadIdx.x & 31;
  const Line* const all = reinterpret_cast<const Line*>(indices);
  const unsigned step = gridDim.x * kOrderThreads * kOrderPerThread;
  unsigned seen = 0;
  // Loops by whole warps, for the shuffle below.
  for (unsigned base = blockIdx.x * kOrderThreads * kOrderPerThread; base < lines; base += step) {
    const unsigned first = base + threadIdx.x;
    Line line[kOrderPerThread];
    Index previous[kOrderPerThread];  // of lane 0: the last value before its line
#pragma unroll
    for (unsigned k = 0; k < kOrderPerThread; ++k) {
      const unsigned at = first + k * kOrderThreads;
      if (at < lines) line[k] = all[at];
      if (at < lines && lane == 0 && at > 0) previous[k] = all[at - 1].values[Line::kCount - 1];
    }
#pragma unroll
    for (unsigned k = 0; k < kOrderPerThread; ++k) {
      const unsigned at = first + k * kOrderThreads;
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
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (unsigned i = lines * Line::kCount; i < job.count; ++i) {
      const Index* const values = reinterpret_cast<const Index*>(indices);
      const unsigned long long position = anydml::wrap_index(values[i], size);
      if (position >= size) seen |= kOutside;
      seen |= seen_of(anydml::wrap_index(values[i - 1], size), position);
    }
  seen = __reduce_or_sync(kAllLanes, seen);
  if (lane == 0 && (seen & ~*const_cast<volatile unsigned*>(&job.order->seen)) != 0)
    atomicOr(&job.order->seen, seen);
}

}  // namespace

// Checks a sample of the indices, by one block.
extern "C" __global__ void __launch_bounds__(kLookThreads)
    scatter_look(const char* indices, const __grid_constant__ InOrder job) {
  __shared__ unsigned lasts[kLookThreads];
  with_index_type(job.type, [&](auto index) { look<decltype(index)>(indices, job, lasts); });
}

// Checks all of them, and whether each is in range.
extern "C" __global__ void __launch_bounds__(kOrderThreads)
    scatter_order(const char* indices, const __grid_constant__ InOrder job) {
  if (job.order->looks == 0) return;
  with_index_type(job.type, [&](auto index) { check_order<decltype(index)>(indices, job); });
}
