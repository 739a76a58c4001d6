// The second phase of NONZERO_COORDINATES: where each granule's rows begin, and how many there are.
#include "nonzero/cuda/nonzero.cuh"
#include "runtime/cuda/order.cuh"

namespace {

using namespace anydml::cuda;

constexpr unsigned kAll = 0xFFFFFFFFu;

// The sum before this thread in a block of kScanThreads, and the sum of the block.
template <class T>
__device__ T scan_block(T value, T& total) {
  constexpr unsigned kScanWarps = kScanThreads / 32;
  __shared__ T sums[kScanWarps];
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  T sum = value;
#pragma unroll
  for (unsigned d = 1; d < 32; d *= 2) {
    const T other = __shfl_up_sync(kAll, sum, d);
    if (lane >= d) sum += other;
  }
  __syncthreads();  // before another use of `sums`
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  T before = lane < warp ? sums[lane] : 0, all = sums[lane];
#pragma unroll
  for (unsigned d = 16; d > 0; d /= 2) {
    before += __shfl_xor_sync(kAll, before, d);
    all += __shfl_xor_sync(kAll, all, d);
  }
  total = all;
  return before + sum - value;
}

}  // namespace

// Non-zero elements before each granule, a group a block; behind the last one there are all.
// `groups` is null where there are few: then each block adds up all counts before its own.
extern "C" __global__ void __launch_bounds__(kScanThreads)
    nonzero_starts(const unsigned* counts, const unsigned long long* groups, Offset granules,
                   Starts to) {
  anydml::await_previous();
  unsigned long long previous_groups = 0, before = 0;
  const Offset first = static_cast<Offset>(blockIdx.x) * kGroup + threadIdx.x * 4;
  uint4 own = {0, 0, 0, 0};
  if (first + 4 <= granules) {
    own = *reinterpret_cast<const uint4*>(counts + first);
  } else {
    if (first < granules) own.x = counts[first];
    if (first + 1 < granules) own.y = counts[first + 1];
    if (first + 2 < granules) own.z = counts[first + 2];
  }
  if (groups != nullptr) {
    for (unsigned g = threadIdx.x; g < blockIdx.x; g += kScanThreads) previous_groups += groups[g];
  } else {
    for (unsigned i = threadIdx.x; i < blockIdx.x * (kGroup / 4); i += kScanThreads) {
      const uint4 loaded = reinterpret_cast<const uint4*>(counts)[i];
      previous_groups += loaded.x + loaded.y + loaded.z + loaded.w;
    }
  }
  if (blockIdx.x > 0) scan_block(previous_groups, before);
  unsigned total;
  const unsigned inside = scan_block(own.x + own.y + own.z + own.w, total);
  const unsigned counts_of_thread[4] = {own.x, own.y, own.z, own.w};
  Offset at = static_cast<Offset>(before) + inside;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first + i < granules) to.starts[first + i] = at;
    at += counts_of_thread[i];
  }
  if (threadIdx.x == 0 && blockIdx.x == gridDim.x - 1)
    publish_count(to, granules, static_cast<Offset>(before) + total);
}

// The count as a number of some bytes.
extern "C" __global__ void nonzero_count(const Offset* count, char* target, int size) {
  const Offset value = *count;
  if (size == 8)
    write(target, value);
  else if (size == 4)
    write(target, static_cast<unsigned>(value));
  else if (size == 2)
    write(target, static_cast<unsigned short>(value));
  else
    write(target, static_cast<unsigned char>(value));
}
