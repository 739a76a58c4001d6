// ONE_HOT of elements of ANYDML_SIZE bytes (1, 2, 4, 8 or 16) by indices of the type that
// ANYDML_INDEX is the DML_TENSOR_DATA_TYPE of.
//
// A thread writes ANYDML_UNROLL elements, each of which compares its place on the axis with an
// index: neighbours share indices, which come from the cache.
#include "common/indexing.hpp"
#include "runtime/cuda/numbers.cuh"
#include "runtime/cuda/walk.cuh"

using namespace anydml::cuda;

// `walk` goes over the output and, at stride 0 on the axis, the indices. `begin`: of the part on
// the axis, whose whole size is `size`.
extern "C" __global__ void __launch_bounds__(ANYDML_THREADS)
    one_hot(char* target, const char* indices, const char* off, const char* on,
            const __grid_constant__ Walk walk, int axis, Offset begin, Offset size,
            unsigned count) {
  using Element = Unit<ANYDML_SIZE>::Type;
  using Index = Number<ANYDML_INDEX>::Type;
  constexpr int kUnroll = ANYDML_UNROLL;
  const unsigned first = blockIdx.x * (ANYDML_THREADS * kUnroll) + threadIdx.x;
  unsigned number[kUnroll];
  Offset to[kUnroll], from[kUnroll], place[kUnroll];
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    number[k] = min(first + k * ANYDML_THREADS, count - 1);
    to[k] = from[k] = 0;
    place[k] = begin;
  }
#pragma unroll 1
  for (int i = walk.rank - 1; i >= 0; --i) {
    const Divisor divisor = walk.sizes[i];
    const Offset to_step = walk.to[i], from_step = walk.from[i];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const unsigned next = divisor.quotient(number[k]);
      const Offset position = number[k] - next * divisor.size;
      to[k] += position * to_step;
      from[k] += position * from_step;
      if (i == axis) place[k] += position;
      number[k] = next;
    }
  }
  const Element low = read<Element>(off), high = read<Element>(on);
#pragma unroll
  for (int k = 0; k < kUnroll; ++k) {
    const auto hot_place =
        anydml::wrap_index(read<Index>(indices + from[k]), static_cast<unsigned long long>(size));
    const bool hot = hot_place == static_cast<unsigned long long>(place[k]);
    if (first + k * ANYDML_THREADS < count) write(target + to[k], hot ? high : low);
  }
}
