// What the kernels of scatters share: reading indices, finding places, combining elements.
#pragma once

#include "bad_index.cuh"
#include "indexing.hpp"
#include "numbers.cuh"
#include "scatter.cuh"

namespace anydml::cuda {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// The value, read in one access that is not repeated: another stream may change it.
template <class T>
__device__ inline T read_once(const char* from) {
  return *reinterpret_cast<const volatile T*>(from);
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
  // By all lanes of a warp.
  __device__ void tell(const BadIndexReport& report) const {
    constexpr Offset none = 0x7FFFFFFFFFFFFFFFll;
    if (!__any_sync(kAllLanes, position != none)) return;
    Offset least = position;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      const Offset other = __shfl_xor_sync(kAllLanes, least, step);
      if (other < least) least = other;
    }
    if (position == least && position != none) report_bad_index(report, position, value);
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

// Notes an update, counted from 1, where it is later than the one that is known.
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
