// SCATTER and SCATTER_ND that update few of many slices of units of ANYDML_SIZE bytes at one step,
// which are only moved.
//
//   clear    two bits for each slice
//   mark     keys; the first bit of each slice that an update names, and the second one of each
//            that several name; other blocks copy the input meanwhile
//   put      updates that are alone; of the other slices the last update, in a map
//   settle   the last updates of the other slices
#include "runtime/cuda/order.cuh"
#include "scatter/cuda/scatter_device.cuh"

namespace {

using namespace anydml;
using namespace anydml::cuda;

using Element = Unit<ANYDML_SIZE>::Type;

__device__ Offset number_of_thread() {
  return static_cast<Offset>(blockIdx.x) * kScatterThreads + threadIdx.x;
}

// Sets a slice's bit; whether it was set. Atomic operations on one word take long, so that a bit
// that is set is only read.
__device__ bool set_bit(unsigned* bits, unsigned slice) {
  const unsigned bit = 1u << (slice & 31);
  unsigned* const word = bits + slice / 32;
  return (__ldcg(word) & bit) != 0 || (atomicOr(word, bit) & bit) != 0;
}
// Whether several updates name a slice; to be called once all are marked.
__device__ bool is_repeated(const Marks& marks, unsigned slice) {
  return (marks.repeated[slice / 32] >> (slice & 31) & 1) != 0;
}

// Lines of 16 bytes, by a block of those that copy.
__device__ void copy_lines(char* output, const char* input, Offset bytes, unsigned block) {
  const Offset lines = bytes / 16;
  const Offset first =
      static_cast<Offset>(block) * (kCopiedLinesPerThread * kScatterThreads) + threadIdx.x;
  uint4 line[kCopiedLinesPerThread];
#pragma unroll
  for (unsigned k = 0; k < kCopiedLinesPerThread; ++k)
    if (first + k * kScatterThreads < lines)
      line[k] = __ldcs(reinterpret_cast<const uint4*>(input) + first + k * kScatterThreads);
#pragma unroll
  for (unsigned k = 0; k < kCopiedLinesPerThread; ++k)
    if (first + k * kScatterThreads < lines)
      reinterpret_cast<uint4*>(output)[first + k * kScatterThreads] = line[k];
  const Offset rest = lines * 16 + threadIdx.x;
  if (block == 0 && rest < bytes) output[rest] = input[rest];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_clear_marks(const __grid_constant__ Marks marks) {
  let_next_begin();
  const unsigned first = blockIdx.x * (kClearedPerThread * kScatterThreads) + threadIdx.x;
#pragma unroll
  for (unsigned k = 0; k < kClearedPerThread; ++k)
    if (first + k * kScatterThreads < marks.lines)
      reinterpret_cast<uint4*>(marks.repeats)[first + k * kScatterThreads] = {0, 0, 0, 0};
}

// Blocks between those for updates copy `bytes` bytes at addresses of whole lines: if no index is
// bad, where an earlier kernel has checked them. Fewer updates are then marked at a time, so that
// fewer atomic operations wait for the same word. Places of the tuples: in the indices, and what
// the key begins with.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_mark(const char* indices, const __grid_constant__ Tuples tuples,
                 const __grid_constant__ Places places, const __grid_constant__ Marks marks,
                 char* output, const char* input, Offset bytes, int checked,
                 const __grid_constant__ BadIndexReport report) {
  let_next_begin();
  const Offset blocks = (marks.count + kScatterThreads - 1) / kScatterThreads;
  const auto marking_before = [&](Offset block) {
    const Offset marking = block * marks.share >> 32;
    return marking < blocks ? marking : blocks;
  };
  const Offset before = marking_before(blockIdx.x);
  if (before == marking_before(blockIdx.x + Offset{1})) {
    if (!checked || !bad_index_found(report))
      copy_lines(output, input, bytes, blockIdx.x - static_cast<unsigned>(before));
    return;
  }
  const Offset i = before * kScatterThreads + threadIdx.x;
  FirstBad bad;
  unsigned key = kNoKey;
  if (i < marks.count) {
    const Offset found = key_of(indices, tuples, places_of(places, i), i, bad);
    if (found >= 0) key = static_cast<unsigned>(found);
  }
  // Of equal keys in a warp only the last one counts.
  if (__match_any_sync(kAllLanes, key) >> (threadIdx.x & 31) != 1) key = kNoKey;
  if (i < marks.count) marks.keys[i] = key;
  await_previous();
  if (key != kNoKey && set_bit(marks.named, key) && !set_bit(marks.repeated, key)) {
    marks.winners[key] = 0;
    if (__ldcg(marks.repeats) == 0) *marks.repeats = 1;
  }
  bad.publish(report);
}

// Nothing is put if an index is bad. The first threads take the last updates: most of the others
// then read that a later update of their slice is known, and need no atomic operation. Places:
// `outer` of slices in the output, `from` of updates.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_put(const __grid_constant__ Marks marks, char* output, const char* updates,
                const __grid_constant__ Slices slices, const __grid_constant__ Places outer,
                const __grid_constant__ Places from,
                const __grid_constant__ BadIndexReport report) {
  let_next_begin();
  const unsigned lanes = 1u << slices.lanes_log, lane = threadIdx.x & (lanes - 1);
  const Offset number = number_of_thread() >> slices.lanes_log;
  const bool is_update = number < marks.count;
  const Offset i = is_update ? marks.count - 1 - number : 0;
  const char* const source = updates + places_of(from, i).first;
  Element value{};
  if (is_update && lane < slices.elements) value = read<Element>(source + lane * slices.update);
  await_previous();
  const unsigned key = is_update ? __ldcg(marks.keys + i) : kNoKey;
  const unsigned repeats = __ldcg(marks.repeats);
  if (key == kNoKey || bad_index_found(report)) return;
  if (repeats != 0 && is_repeated(marks, key)) {
    if (lane == 0 && __ldcg(marks.winners + key) < i + 1)
      win(marks.winners + key, static_cast<unsigned>(i + 1));
    return;
  }
  char* const target = output + places_of(outer, key).first;
  if (lane < slices.elements) write(target + lane * slices.output, value);
  for (Offset e = lane + lanes; e < slices.elements; e += lanes)
    write(target + e * slices.output, read<Element>(source + e * slices.update));
}

// The same for what scatter_put leaves. The last block ends the call if `publishes`.
extern "C" __global__ void __launch_bounds__(kScatterThreads)
    scatter_settle(const __grid_constant__ Marks marks, char* output, const char* updates,
                   const __grid_constant__ Slices slices, const __grid_constant__ Places outer,
                   const __grid_constant__ Places from,
                   const __grid_constant__ BadIndexReport report, int publishes,
                   Offset result_bytes) {
  await_previous();
  if (__ldcg(marks.repeats) != 0 && !bad_index_found(report)) {
    const unsigned lanes = 1u << slices.lanes_log, lane = threadIdx.x & (lanes - 1);
    const Offset step = static_cast<Offset>(gridDim.x) * (kScatterThreads >> slices.lanes_log);
    for (Offset first = number_of_thread() >> slices.lanes_log; first < marks.count;
         first += kSettledPerThread * step) {
      unsigned key[kSettledPerThread];
      bool repeated[kSettledPerThread];
#pragma unroll
      for (unsigned k = 0; k < kSettledPerThread; ++k)
        key[k] = first + k * step < marks.count ? marks.keys[first + k * step] : kNoKey;
#pragma unroll
      for (unsigned k = 0; k < kSettledPerThread; ++k)
        repeated[k] = key[k] != kNoKey && is_repeated(marks, key[k]);
#pragma unroll
      for (unsigned k = 0; k < kSettledPerThread; ++k) {
        const Offset i = first + k * step;
        if (!repeated[k] || marks.winners[key[k]] != i + 1) continue;
        const char* const source = updates + places_of(from, i).first;
        char* const target = output + places_of(outer, key[k]).first;
        for (Offset e = lane; e < slices.elements; e += lanes)
          write(target + e * slices.output, read<Element>(source + e * slices.update));
      }
    }
  }
  if (publishes) publish_report_by_last_block(report, output, result_bytes);
}
