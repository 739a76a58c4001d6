// SCATTER and SCATTER_ND of few updates of slices of units of ANYDML_SIZE bytes at one step, which
// are only moved: every block reads all indices, so that it knows the last update of each slice,
// and whether an index is bad.
#include "scatter/cuda/scatter_device.cuh"

namespace {

using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

// A warp for each update, which looks for a later one of the same slice.
constexpr unsigned kUpdatesPerBlock = kScatterThreads / 32;

}  // namespace

// Places: `tuples` in the indices, and what the key begins with; `outer` of slices in the output;
// `from` of updates. The last block ends the call if `publishes`.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_few(char* output, const char* indices, const char* updates,
                const __grid_constant__ Tuples tuples, const __grid_constant__ Places places,
                const __grid_constant__ Slices slices, const __grid_constant__ Places outer,
                const __grid_constant__ Places from, const __grid_constant__ BadIndexReport report,
                int publishes, Offset result_bytes) {
  __shared__ Offset keys[kFewUpdates];
  const unsigned count = static_cast<unsigned>(tuples.count);
  FirstBad bad;
  for (unsigned i = threadIdx.x; i < count; i += kScatterThreads) {
    keys[i] = key_of(indices, tuples, places_of(places, i), i, bad);
  }
  const bool is_bad = __syncthreads_or(bad.position != FirstBad{}.position);
  if (is_bad) {
    if (blockIdx.x == 0) bad.publish(report);
  } else {
    const unsigned update = blockIdx.x * kUpdatesPerBlock + threadIdx.x / 32;
    const unsigned lane = threadIdx.x & 31;
    const Offset key = update < count ? keys[update] : 0;
    bool later = update >= count;
    for (unsigned i = update + 1 + lane; i < count; i += 32) later = later || keys[i] == key;
    if (!__any_sync(kAllLanes, later)) {
      const char* const source = updates + places_of(from, update).first;
      char* const target = output + places_of(outer, key).first;
      for (Offset e = lane; e < slices.elements; e += 32)
        write(target + e * slices.output, read<Element>(source + e * slices.update));
    }
  }
  if (publishes) publish_report_by_last_block(report, output, result_bytes);
}
