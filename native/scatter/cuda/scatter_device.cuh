// What the kernels of scatters share: reading indices, finding places, combining elements.
#pragma once

#include "runtime/cuda/bad_index.cuh"
#include "common/indexing.hpp"
#include "runtime/cuda/numbers.cuh"
#include "scatter/cuda/scatter.cuh"

namespace anydml::cuda {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// The value, read in one access that is not repeated: another stream may change it.
template <class T>
__device__ inline T read_once(const char* from) {
  return *reinterpret_cast<const volatile T*>(from);
}

// Brings a line into the second-level cache.
__device__ inline void prefetch(const void* line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}

struct PlacePair {
  Offset first, second;
};
__device__ inline PlacePair places_of(const Places& places, Offset number) {
  PlacePair at{0, 0};
  if (places.narrow) {
    unsigned left = static_cast<unsigned>(number);
#pragma unroll 1
    for (int i = places.rank - 1; i > 0; --i) {
      const unsigned next = places.divisors[i].quotient(left);
      const Offset position = left - next * places.divisors[i].size;
      at.first += position * places.first[i];
      at.second += position * places.second[i];
      left = next;
    }
    number = left;
  } else {
#pragma unroll 1
    for (int i = places.rank - 1; i > 0; --i) {
      const Offset next = number / places.sizes[i], position = number - next * places.sizes[i];
      at.first += position * places.first[i];
      at.second += position * places.second[i];
      number = next;
    }
  }
  if (places.rank > 0) {
    at.first += number * places.first[0];
    at.second += number * places.second[0];
  }
  return at;
}

// Calls body with a value of the type of the indices.
template <class Body>
__device__ inline void with_index_type(int type, Body&& body) {
  switch (type) {
    case 3:
      return body(0u);
    case 6:
      return body(0);
    case 10:
      return body(0ull);
    default:
      return body(0ll);
  }
}

// The first bad index that a thread has met.
struct FirstBad {
  Offset position = 0x7FFFFFFFFFFFFFFFll;
  Offset value = 0;

  __device__ void see(Offset at, Offset bad) {
    if (at < position) {
      position = at;
      value = bad;
    }
  }
  // Called by all lanes of a warp.
  __device__ void publish(const BadIndexReport& report) const {
    constexpr Offset none = 0x7FFFFFFFFFFFFFFFll;
    if (!__any_sync(kAllLanes, position != none)) return;
    Offset first = position;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const Offset other = __shfl_xor_sync(kAllLanes, first, step);
      if (other < first) first = other;
    }
    if (position == first && position != none) report_bad_index(report, position, value);
  }
};

__device__ inline Offset number_at(const void* list, int width, Offset i) {
  switch (width) {
    case 1:
      return static_cast<const unsigned char*>(list)[i];
    case 2:
      return static_cast<const unsigned short*>(list)[i];
    case 4:
      return static_cast<const unsigned*>(list)[i];
    default:
      return static_cast<const Offset*>(list)[i];
  }
}

// By a whole block: the sum of the values of the threads before this one, and of all.
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
  unsigned previous_warps = 0;
  all = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) {
    if (i < warp) previous_warps += slots[i];
    all += slots[i];
  }
  __syncthreads();
  return previous_warps + sum - value;
}

// Whether keys with these observed orders ascend or descend.
__device__ inline bool is_ordered(unsigned seen) {
  return (seen & (kRises | kFalls)) != (kRises | kFalls);
}

// Whether a group is of one bucket, as where indices are in order: threads count it at once.
__device__ inline bool is_one_bucket(const unsigned (&key)[kGroup], const Buckets& of) {
  bool same = true;
#pragma unroll
  for (unsigned j = 1; j < kGroup; ++j) same = same && (key[j] ^ key[0]) >> of.bucket_log == 0;
  return same;
}

// Whether updates have been put in place by the order of their indices (scatter_ordered.cpp).
__device__ inline bool is_done(const Order* order, bool once) {
  if (order == nullptr || order->looks == 0) return false;
  const unsigned seen = order->seen;
  return is_ordered(seen) && (seen & kOutside) == 0 && !(once && (seen & kEqual) != 0);
}

// The key of tuple i, which is at a place in the indices; -1 if one of its coordinates is bad.
__device__ inline Offset key_of(const char* indices, const Tuples& tuples, PlacePair at, Offset i,
                                FirstBad& bad) {
  Offset key = at.second;
  for (int d = 0; d < tuples.length; ++d) {
    const auto size = static_cast<unsigned long long>(tuples.sizes[d]);
    with_index_type(tuples.type, [&](auto kind) {
      const auto value = read_once<decltype(kind)>(indices + at.first + d * tuples.step);
      const unsigned long long position = anydml::wrap_index(value, size);
      if (position >= size) {
        bad.see(i * tuples.length + d, static_cast<Offset>(value));
        key = -1;
      } else if (key >= 0) {
        key += static_cast<Offset>(position) * tuples.scales[d];
      }
    });
  }
  return key;
}

// Records an update, counted from 1, if it is later than the recorded one.
__device__ inline void win(unsigned* winner, unsigned update) { atomicMax(winner, update); }
__device__ inline void win(unsigned short* winner, unsigned update) {
  const auto mine = static_cast<unsigned short>(update);
  unsigned short known = *const_cast<volatile unsigned short*>(winner);
  while (known < mine) {
    const unsigned short found = atomicCAS(winner, known, mine);
    if (found == known) return;
    known = found;
  }
}

}  // namespace anydml::cuda
