// The first phase of NONZERO_COORDINATES, for elements of ANYDML_SIZE bytes (1, 2, 4, 8 or 16), of
// which the sign does not count with ANYDML_FLOAT: a bit an element, in the order of the elements,
// and how many there are before each granule.
#include "nonzero/cuda/nonzero.cuh"
#include "runtime/cuda/order.cuh"

namespace {

using namespace anydml::cuda;

constexpr unsigned kSize = ANYDML_SIZE;
constexpr bool kFloat = ANYDML_FLOAT;
constexpr unsigned kBits = 16 / kSize;         // elements of a line
constexpr unsigned kLanes = 32 / kBits;        // lines of a word of the bitmap
constexpr unsigned kBatch = 8;                 // lines of a thread at a time
constexpr unsigned kLines = kGranule / kBits;  // of a granule
// A block takes one granule, or as many as one batch holds.
constexpr unsigned kBatchLines = kBatch * kNonzeroThreads;
constexpr unsigned kGranules = kLines < kBatchLines ? kBatchLines / kLines : 1;
constexpr unsigned kBatches = kGranules * kLines / kBatchLines;

// Bit i: whether element i of a word of 4 bytes is not zero.
__device__ unsigned bits_of(unsigned word) {
  if constexpr (kSize == 1) {
    const unsigned high = (((word & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | word) & 0x80808080u;
    return ((high >> 7) * 0x10204080u) >> 28;
  } else if constexpr (kSize == 2) {
    const unsigned sum = (word & 0x7FFF7FFFu) + 0x7FFF7FFFu;
    const unsigned high = (kFloat ? sum : sum | word) & 0x80008000u;
    return (high >> 15 & 1u) | (high >> 30);
  } else {
    return (kFloat && kSize == 4 ? word & 0x7FFFFFFFu : word) != 0 ? 1u : 0u;
  }
}

// Bit i: whether element i of a line is not zero.
__device__ unsigned bits_of(uint4 line) {
  if constexpr (kSize <= 4) {
    constexpr unsigned step = 4 / kSize;
    return bits_of(line.x) | bits_of(line.y) << step | bits_of(line.z) << 2 * step |
           bits_of(line.w) << 3 * step;
  } else if constexpr (kSize == 8) {
    const unsigned mask = kFloat ? 0x7FFFFFFFu : 0xFFFFFFFFu;
    return ((line.x | (line.y & mask)) != 0 ? 1u : 0u) |
           ((line.z | (line.w & mask)) != 0 ? 2u : 0u);
  } else {
    return (line.x | line.y | line.z | line.w) != 0 ? 1u : 0u;
  }
}

// Whether one element is not zero.
[[maybe_unused]] __device__ bool is_set(unsigned value) {
  constexpr unsigned sign = kSize == 2 ? 0x8000u : 0x80000000u;
  return (kFloat ? value & ~sign : value) != 0;
}
[[maybe_unused]] __device__ bool is_set(uint2 value) {
  return (value.x | (kFloat ? value.y & 0x7FFFFFFFu : value.y)) != 0;
}
[[maybe_unused]] __device__ bool is_set(uint4 value) {
  return (value.x | value.y | value.z | value.w) != 0;
}
__device__ bool is_nonzero(const char* element) {
  return is_set(read<Unit<static_cast<int>(kSize)>::Type>(element));
}

__device__ void keep_count(unsigned long long granule, unsigned count, unsigned* counts,
                           unsigned long long* groups) {
  counts[granule] = count;
  if (groups != nullptr && count != 0) atomicAdd(groups + granule / kGroup, 1ull * count);
}

// The end of either kernel: a single granule needs no other kernel to know where it begins.
__device__ void finish(unsigned long long granule, Offset granules, unsigned count,
                       unsigned* counts, unsigned long long* groups, const Starts& to) {
  if (granules == 1) {
    to.starts[0] = 0;
    return publish_count(to, 1, count);
  }
  keep_count(granule, count, counts, groups);
  if (to.sum == nullptr) return;
  const unsigned long long before = atomicAdd(to.sum, (1ull << kCountBits) + count);
  if (static_cast<Offset>(before >> kCountBits) != granules - 1) return;
  *to.sum = 0;
  __threadfence();  // the host may reuse the word as soon as it has the count
  publish_to_host(to, static_cast<Offset>(before & ((1ull << kCountBits) - 1)) + count);
}
}  // namespace

// The elements lie one after the other: `skip` elements behind an address of whole lines. Positions
// count from there, up to `end`; those before `skip` are not elements.
extern "C" __global__ void __launch_bounds__(kNonzeroThreads)
    nonzero_lines(const uint4* lines, unsigned skip, Offset end, Offset granules, unsigned* bits,
                  unsigned* counts, unsigned long long* groups, Starts to) {
  anydml::let_next_begin();
  __shared__ unsigned sums[kGranules];
  if (threadIdx.x < kGranules) sums[threadIdx.x] = 0;
  __syncthreads();
  const Offset first = static_cast<Offset>(blockIdx.x) * (kGranules * kLines);
  const bool is_full = first * kBits >= skip && (first + kGranules * kLines) * kBits <= end;
  const unsigned lane = threadIdx.x & 31;
  unsigned own[kGranules] = {};
#pragma unroll 1
  for (unsigned batch = 0; batch < kBatches; ++batch) {
    const Offset at = first + batch * kBatchLines + threadIdx.x;
    unsigned found[kBatch];
    if (is_full) {
      uint4 line[kBatch];
#pragma unroll
      for (unsigned j = 0; j < kBatch; ++j) line[j] = __ldcs(lines + at + j * kNonzeroThreads);
#pragma unroll
      for (unsigned j = 0; j < kBatch; ++j) found[j] = bits_of(line[j]);
    } else {
#pragma unroll 1
      for (unsigned j = 0; j < kBatch; ++j) {
        const Offset position = (at + j * kNonzeroThreads) * kBits;
        unsigned line_bits = 0;
        for (unsigned i = 0; i < kBits; ++i)
          if (position + i >= skip && position + i < end &&
              is_nonzero(reinterpret_cast<const char*>(lines) + (position + i) * kSize))
            line_bits |= 1u << i;
#pragma unroll
        for (unsigned n = 0; n < kBatch; ++n)  // no index into registers at run time
          if (n == j) found[n] = line_bits;
      }
    }
#pragma unroll
    for (unsigned j = 0; j < kBatch; ++j) {
      constexpr unsigned kLinesPerThread = kLines / kNonzeroThreads;  // of a granule
      own[kGranules == 1 ? 0 : j / kLinesPerThread] += __popc(found[j]);
      unsigned word;
      if constexpr (kBits == 1) {
        word = __ballot_sync(0xFFFFFFFFu, found[j] != 0);
      } else {
        word = found[j] << (lane % kLanes * kBits);
#pragma unroll
        for (unsigned d = 1; d < kLanes; d *= 2) word |= __shfl_xor_sync(0xFFFFFFFFu, word, d);
      }
      const Offset index = (at + j * kNonzeroThreads) / kLanes;
      if (lane % kLanes == 0 && index < granules * kGranuleWords) bits[index] = word;
    }
  }
#pragma unroll
  for (unsigned g = 0; g < kGranules; ++g) {
    const unsigned sum = __reduce_add_sync(0xFFFFFFFFu, own[g]);
    if (lane == 0 && sum != 0) atomicAdd(sums + g, sum);
  }
  __syncthreads();
  const Offset granule = static_cast<Offset>(blockIdx.x) * kGranules + threadIdx.x;
  if (threadIdx.x < kGranules && granule < granules)
    finish(granule, granules, sums[threadIdx.x], counts, groups, to);
}

// Any strides: a thread an element, a block a granule.
extern "C" __global__ void __launch_bounds__(kNonzeroThreads)
    nonzero_elements(const char* data, const __grid_constant__ Axes axes, Offset end,
                     unsigned* bits, unsigned* counts, unsigned long long* groups, Starts to) {
  anydml::let_next_begin();
  constexpr int kUnroll = 4;
  __shared__ Offset starts[kMaxDims];
  __shared__ unsigned total;
  const Offset first = static_cast<Offset>(blockIdx.x) * kGranule;
  if (threadIdx.x < axes.count)
    starts[threadIdx.x] = position_of(axes.axes[threadIdx.x], axes.narrow, first);
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  unsigned own = 0;
#pragma unroll 1
  for (unsigned batch = 0; batch < kGranule; batch += kUnroll * kNonzeroThreads) {
    Offset offset[kUnroll] = {};
    unsigned carry[kUnroll];
    bool set[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) carry[k] = batch + k * kNonzeroThreads + threadIdx.x;
#pragma unroll 1
    for (int i = axes.count - 1; i >= 0; --i) {
      const Axis& axis = axes.axes[i];
      const Offset start = starts[i];
#pragma unroll
      for (int k = 0; k < kUnroll; ++k) offset[k] += advance(axis, start, carry[k]) * axis.stride;
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k)
      set[k] =
          first + batch + k * kNonzeroThreads + threadIdx.x < end && is_nonzero(data + offset[k]);
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const unsigned word = __ballot_sync(0xFFFFFFFFu, set[k]);
      if ((threadIdx.x & 31) == 0) {
        bits[(first + batch + k * kNonzeroThreads + threadIdx.x) / 32] = word;
        own += __popc(word);
      }
    }
  }
  if ((threadIdx.x & 31) == 0 && own != 0) atomicAdd(&total, own);
  __syncthreads();
  if (threadIdx.x == 0) finish(blockIdx.x, gridDim.x, total, counts, groups, to);
}
