// SCATTER_ND from the last update of every slice, for slices of units of ANYDML_SIZE bytes at one
// step that are only moved.
#include "scatter/cuda/scatter_device.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

}  // namespace

// Every slice of the output: its last update, or the input's slice. Places: `outer` of slices in
// the output and in the input, `tuples` of updates.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_rows(char* output, const char* input, const char* updates, const unsigned* winners,
                 const __grid_constant__ Slices slices, const __grid_constant__ Places outer,
                 const __grid_constant__ Places tuples,
                 const __grid_constant__ BadIndexReport report) {
  if (bad_index_found(report)) return;
  const unsigned lanes = 1u << slices.lanes_log, lane = threadIdx.x & (lanes - 1);
  const Offset slices_at_once = kScatterThreads >> slices.lanes_log;
  const Offset first = static_cast<Offset>(blockIdx.x) * (kSlicesPerThread * slices_at_once) +
                       (threadIdx.x >> slices.lanes_log);
  const char* from[kSlicesPerThread];
  char* to[kSlicesPerThread];
  Offset step[kSlicesPerThread];
  unsigned winner[kSlicesPerThread];
#pragma unroll
  for (unsigned k = 0; k < kSlicesPerThread; ++k)
    winner[k] = first + k * slices_at_once < slices.count ? winners[first + k * slices_at_once] : 0;
#pragma unroll
  for (unsigned k = 0; k < kSlicesPerThread; ++k) {
    const Offset slice = first + k * slices_at_once;
    const bool is_valid = slice < slices.count;
    const PlacePair at = places_of(outer, is_valid ? slice : 0);
    to[k] = is_valid ? output + at.first : nullptr;
    from[k] = input + at.second;
    step[k] = slices.input;
    if (winner[k] != 0) {
      from[k] = updates + places_of(tuples, winner[k] - 1).first;
      step[k] = slices.update;
    }
  }
  for (Offset e = lane; e < slices.elements; e += lanes) {
    Element value[kSlicesPerThread];
#pragma unroll
    for (unsigned k = 0; k < kSlicesPerThread; ++k)
      if (to[k] != nullptr) value[k] = read<Element>(from[k] + e * step[k]);
#pragma unroll
    for (unsigned k = 0; k < kSlicesPerThread; ++k)
      if (to[k] != nullptr) write(to[k] + e * slices.output, value[k]);
  }
}
