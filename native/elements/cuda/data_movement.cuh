// What the host and the kernels of CAST, ELEMENT_WISE_IDENTITY and FILL_VALUE_SEQUENCE have in
// common.
#pragma once

#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

constexpr unsigned kMapThreads = 256;
constexpr int kMapUnroll = 4;
// Elements that a thread takes at once where both sides are contiguous: 16 bytes of the larger.
ANYDML_BOTH constexpr int map_elements_at_once(int a, int b) { return 16 / (a > b ? a : b); }

// As native/elements/cpu/segments.hpp, in lines.
struct alignas(16) SequenceSegment {
  Offset begin;
  unsigned bits, step;
};
constexpr unsigned kSequenceThreads = 256;
constexpr unsigned kSequenceUnroll = 4;  // lines of a thread

}  // namespace anydml::cuda
