// SCATTER and SCATTER_ND that update few of many slices of units of ANYDML_SIZE bytes at one step,
// which are only moved: by a map of the last update of each slice, of which only what updates name
// is written and read.
//
//   mark   the keys of updates, and zeros in the map where they point
//   win    the last update of each slice; other blocks copy the input meanwhile
//   put    updates that are the last of their slice
#include "order.cuh"
#include "scatter_device.cuh"

namespace {

using namespace anydml;
using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

__device__ Offset number_of_thread() {
  return static_cast<Offset>(blockIdx.x) * kScatterThreads + threadIdx.x;
}

}  // namespace

// Places of the tuples: in the indices, and what the key begins with.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_mark(const char* indices, const __grid_constant__ Tuples tuples,
                 const __grid_constant__ Places places, const __grid_constant__ Marks marks,
                 const __grid_constant__ BadIndexReport report) {
  let_next_begin();
  const Offset i = number_of_thread();
  FirstBad bad;
  if (i < marks.count) {
    const Offset key = key_of(indices, tuples, places_of(places, i), i, bad);
    marks.keys[i] = key < 0 ? kNoKey : static_cast<unsigned>(key);
    if (key >= 0) marks.winners[key] = 0;
  }
  bad.publish(report);
}

// The blocks behind those for updates copy `bytes` bytes at addresses of whole lines of 16 bytes:
// if all indices are good, where the output is the caller's.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_win(const __grid_constant__ Marks marks, char* output, const char* input, Offset bytes,
                int output_is_private, const __grid_constant__ BadIndexReport report) {
  let_next_begin();
  const unsigned blocks = (marks.count + kScatterThreads - 1) / kScatterThreads;
  if (blockIdx.x < blocks) {
    await_previous();
    const Offset i = number_of_thread();
    const unsigned key = i < marks.count ? marks.keys[i] : kNoKey;
    // Of equal keys in a warp only the last one counts.
    const unsigned equal = __match_any_sync(kAllLanes, key);
    if (key != kNoKey && equal >> (threadIdx.x & 31) == 1)
      win(marks.winners + key, static_cast<unsigned>(i + 1));
    return;
  }
  if (!output_is_private) {
    await_previous();
    if (bad_index_found(report)) return;
  }
  const Offset lines = bytes / 16;
  const Offset first =
      static_cast<Offset>(blockIdx.x - blocks) * (kCopiedLinesPerThread * kScatterThreads) +
      threadIdx.x;
  uint4 line[kCopiedLinesPerThread];
#pragma unroll
  for (unsigned k = 0; k < kCopiedLinesPerThread; ++k)
    if (first + k * kScatterThreads < lines)
      line[k] = reinterpret_cast<const uint4*>(input)[first + k * kScatterThreads];
#pragma unroll
  for (unsigned k = 0; k < kCopiedLinesPerThread; ++k)
    if (first + k * kScatterThreads < lines)
      reinterpret_cast<uint4*>(output)[first + k * kScatterThreads] = line[k];
  const Offset rest = lines * 16 + threadIdx.x;
  if (blockIdx.x == gridDim.x - 1 && rest < bytes) output[rest] = input[rest];
}

// Places: `outer` of slices in the output, `from` of updates. The last block ends the call if
// `publishes`.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_put(const __grid_constant__ Marks marks, char* output, const char* updates,
                const __grid_constant__ Slices slices, const __grid_constant__ Places outer,
                const __grid_constant__ Places from, const __grid_constant__ BadIndexReport report,
                int publishes, Offset result_bytes) {
  await_previous();
  if (!bad_index_found(report)) {
    const unsigned lanes = 1u << slices.lanes_log, lane = threadIdx.x & (lanes - 1);
    const Offset i = number_of_thread() >> slices.lanes_log;
    const unsigned key = i < marks.count ? marks.keys[i] : kNoKey;
    if (key != kNoKey && marks.winners[key] == i + 1) {
      const char* const source = updates + places_of(from, i).first;
      char* const target = output + places_of(outer, key).first;
      for (Offset e = lane; e < slices.elements; e += lanes)
        write(target + e * slices.output, read<Element>(source + e * slices.update));
    }
  }
  if (publishes) publish_report_by_last_block(report, output, result_bytes);
}
