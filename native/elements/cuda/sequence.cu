// FILL_VALUE_SEQUENCE of elements of ANYDML_SIZE bytes, one after the other in memory: integers of
// any size, floats of 2 and 4 bytes.
//
// Lines begin before the first element, where that is not at the beginning of one; positions count
// from there.
#include "elements/cuda/data_movement.cuh"
#include "common/order.hpp"

namespace {

using namespace anydml::cuda;

constexpr int kSize = ANYDML_SIZE, kElementsPerVector = 16 / kSize;

using Element = anydml::Bits<kSize>::Unsigned;

union Line {
  uint4 vector;
  Element items[kElementsPerVector];
};

__device__ void put(uint4* lines, Offset line, unsigned skip, Offset end, const Line& output) {
  const Offset position = line * kElementsPerVector;
  if (position >= skip && position + kElementsPerVector <= end) {
    lines[line] = output.vector;
    return;
  }
  Element* const here = reinterpret_cast<Element*>(lines + line);
#pragma unroll
  for (int i = 0; i < kElementsPerVector; ++i)
    if (position + i >= skip && position + i < end) here[i] = output.items[i];
}

#if ANYDML_SIZE == 2 || ANYDML_SIZE == 4
__device__ int segment_at(const SequenceSegment* segments, int low, int high, Offset element) {
  return last_that(low, high, [=](int i) { return segments[i].begin <= element; });
}

__device__ Element float_of(const SequenceSegment& segment, Offset element) {
  return static_cast<Element>(segment.bits +
                              static_cast<unsigned>(element - segment.begin) * segment.step);
}
#endif

}  // namespace

extern "C" __global__ void __launch_bounds__(kSequenceThreads)
    sequence_integers(uint4* lines, unsigned skip, Offset end, unsigned long long start,
                      unsigned long long delta) {
#pragma unroll
  for (unsigned k = 0; k < kSequenceUnroll; ++k) {
    const Offset line =
        (static_cast<Offset>(blockIdx.x) * kSequenceUnroll + k) * kSequenceThreads + threadIdx.x;
    if (line * kElementsPerVector >= end) return;
    unsigned long long value =
        start + static_cast<unsigned long long>(line * kElementsPerVector - skip) * delta;
    Line output;
#pragma unroll
    for (int i = 0; i < kElementsPerVector; ++i, value += delta)
      output.items[i] = static_cast<Element>(value);
    put(lines, line, skip, end, output);
  }
}

#if ANYDML_SIZE == 2 || ANYDML_SIZE == 4
extern "C" __global__ void __launch_bounds__(kSequenceThreads)
    sequence_floats(uint4* lines, unsigned skip, Offset end, const SequenceSegment* segments,
                    int count) {
  // The segments that the block meets, mostly one.
  const Offset first = static_cast<Offset>(blockIdx.x) * kSequenceUnroll * kSequenceThreads;
  const Offset begin = max(first * kElementsPerVector - skip, Offset{0});
  const Offset behind = (first + kSequenceUnroll * kSequenceThreads) * kElementsPerVector - skip;
  const int low = segment_at(segments, 0, count, begin);
  const int high = segment_at(segments, low, count, behind - 1) + 1;
  const SequenceSegment only = segments[low];
#pragma unroll
  for (unsigned k = 0; k < kSequenceUnroll; ++k) {
    const Offset line = first + k * kSequenceThreads + threadIdx.x;
    if (line * kElementsPerVector >= end) return;
    const Offset element = line * kElementsPerVector - skip;
    Line output;
    if (high - low == 1) {
#pragma unroll
      for (int i = 0; i < kElementsPerVector; ++i) output.items[i] = float_of(only, element + i);
    } else {
      int at = segment_at(segments, low, high, element);
#pragma unroll
      for (int i = 0; i < kElementsPerVector; ++i) {
        while (at + 1 < high && segments[at + 1].begin <= element + i) ++at;
        output.items[i] = float_of(segments[at], element + i);
      }
    }
    put(lines, line, skip, end, output);
  }
}
#endif
