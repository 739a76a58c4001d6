// What the host and the kernels of NONZERO_COORDINATES have in common.
#pragma once

#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

// Elements whose count the scan keeps: as many as a warp of the writer takes.
constexpr unsigned kGranule = 8192;
constexpr unsigned kGranuleWords = kGranule / 32;
// Elements of which a warp takes one word a lane.
constexpr unsigned kSlice = 1024;
constexpr unsigned kSlices = kGranule / kSlice;
// Granules whose sum the scan keeps: four a thread of a block.
constexpr unsigned kScanThreads = 1024;
constexpr unsigned kGroup = 4 * kScanThreads;

constexpr unsigned kNonzeroThreads = 256;

// A dimension of the walk. A place inside a granule moves a position by less than kGranule: a
// dimension that is too long for a Divisor is passed at most once.
constexpr Offset kLongAxis = Offset{1} << 30;
struct Axis {
  Offset size;
  Offset inside;  // product of the sizes of the dimensions inside
  Offset stride;  // bytes
  Divisor divisor;
  unsigned is_long;
};
struct Axes {
  int count;
  int narrow;  // whether all numbers of elements fit 32 bits
  Axis axes[kMaxDims];
};

// The results of the scan, and the mapped counter for the total, if any: written as soon as all
// are counted where there is a word to add them up in.
struct Starts {
  Offset* starts;
  Offset* count;
  Offset* host_count;
  unsigned long long* sum;  // granules from bit kCountBits on, elements below it
};
constexpr unsigned kCountBits = 40;
constexpr Offset kMaxSummedGranules = Offset{1} << 23;  // granules
static_assert(kMaxSummedGranules * kGranule < Offset{1} << kCountBits);

#if defined(__CUDACC__)
// By one thread, once.
__device__ inline void publish_to_host(const Starts& to, Offset all) {
  *static_cast<volatile Offset*>(to.host_count) = all;  // memory of the host's
  __threadfence_system();
}
__device__ inline void publish_count(const Starts& to, Offset granules, Offset all) {
  to.starts[granules] = *to.count = all;
  if (to.host_count != nullptr) publish_to_host(to, all);
}

// The position of an element in an axis, of the `first` one of a granule.
__device__ inline Offset position_of(const Axis& axis, bool narrow, Offset first) {
  if (narrow)
    return static_cast<unsigned>(first) / static_cast<unsigned>(axis.inside) %
           static_cast<unsigned>(axis.size);
  return first / axis.inside % axis.size;
}

// Moves a position on by `carry`, which becomes what the next axis outside moves on by.
__device__ inline Offset advance(const Axis& axis, Offset position, unsigned& carry) {
  const Offset sum = position + carry;
  if (axis.is_long) {
    carry = sum >= axis.size ? 1 : 0;
    return carry != 0 ? sum - axis.size : sum;
  }
  carry = axis.divisor.quotient(static_cast<unsigned>(sum));
  return static_cast<unsigned>(sum) - carry * axis.divisor.size;
}
#endif

}  // namespace anydml::cuda
