// What the host and the kernel of PADDING have in common.
#pragma once

#include "moving/cuda/pieces.cuh"

namespace anydml::cuda {

constexpr unsigned kPadThreads = 256;
constexpr unsigned kPadUnroll = 4;
constexpr unsigned kPadThreadsLog = 8;

// A dimension of the output: position `start` is the input's first.
struct PadAxis {
  Divisor size;
  Offset from_size, start;
  Offset to, from;  // strides
};

// Rows of the innermost dimension, cut into segments: of kPadUnroll units for each of 2^lanes_log
// threads, or of kLaneBytes bytes.
struct Pad {
  int rank;  // of the dimensions outside
  int mode;  // a PaddingMode
  unsigned items, lanes_log;
  Divisor segments;
  unsigned value[4];  // of the elements, repeated
  PadAxis inner;
  PadAxis axes[kMaxDims];
};

}  // namespace anydml::cuda
