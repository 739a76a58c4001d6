// The input of SCATTER and SCATTER_ND, which is left out where an index is bad, and results that
// are cleared then: in units of ANYDML_SIZE bytes.
#include "scatter/cuda/scatter_device.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

__device__ void copy_units(char* target, const char* source, const Places& places, Offset count) {
  const Offset step = static_cast<Offset>(gridDim.x) * kScatterThreads;
  for (Offset i = static_cast<Offset>(blockIdx.x) * kScatterThreads + threadIdx.x; i < count;
       i += step) {
    const PlacePair at = places_of(places, i);
    write(target + at.first, source == nullptr ? Element{} : read<Element>(source + at.second));
  }
}

}  // namespace

// A copy, if all indices are good.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_copy(char* target, const char* source, const __grid_constant__ Places places,
                 Offset count, const __grid_constant__ BadIndexReport report) {
  if (!bad_index_found(report)) copy_units(target, source, places, count);
}

// Zeros, if an index is bad.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_clear(char* target, const __grid_constant__ Places places, Offset count,
                  const __grid_constant__ BadIndexReport report) {
  if (bad_index_found(report)) copy_units(target, nullptr, places, count);
}
