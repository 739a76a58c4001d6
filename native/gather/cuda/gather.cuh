// What the host and the kernels of the gathers have in common.
#pragma once

#include "runtime/cuda/bad_index.cuh"
#include "moving/cuda/pieces.cuh"

namespace anydml::cuda {

constexpr unsigned kGatherThreads = 256;
constexpr int kGatherUnroll = 4;
constexpr int kGatherBlocks = 4;  // that a multiprocessor runs at a time
constexpr int kRun = 4, kRunUnroll = 2;

// What a kernel of gather.cu does; gather.cpp says how.
enum class GatherWay { units, runs, rows, check };

// A dimension of the output, innermost last: what a step along it is, in bytes, in the output, in
// the input and in the indices; and in positions of the index tensor.
struct GatherDim {
  Divisor size;
  Offset to, from, index, flat;
};

// What a coordinate of an index tuple points into.
struct GatherAxis {
  Offset size, stride;
};

struct GatherHead {
  char* target;
  const char* source;
  const char* indices;
  Offset first;       // position of the first index in the index tensor
  Offset index_step;  // bytes between the coordinates of a tuple
  int rank, tuple;
  bool is_signed;
  int mode;                // an OutOfRange
  bool output_is_private;  // the output is discarded if an index is bad
  bool alone;              // one block does the whole call
  bool last;               // this kernel is the last one of the call
  unsigned items, tiles;   // one a block
  // Rows of bytes: an item is a segment of one, for 2^lanes_log threads.
  unsigned lanes_log;
  Divisor segments;
  Offset bytes;
  // Runs: elements of the innermost dimension, kRun of which are one item; what one of them is.
  Offset inner, from_step, flat_step;
  // What becomes zeros when an index is bad.
  char* result;
  Offset result_bytes;
};

// With space for few dimensions, or for the maximum.
template <int kDims>
struct Gather {
  GatherHead head;
  GatherDim dims[kDims];
  GatherAxis axes[kDims];
};
constexpr int kSmallDims = 6;

// The values of an index tensor, for checks only.
struct IndexCheck {
  const char* indices;
  Offset count, first;
  int rank;
  unsigned tuple, coordinate;  // of the first value
  bool is_signed;
  Divisor sizes[kMaxDims];
  Offset strides[kMaxDims];
  Offset bounds[kMaxDims];  // of the coordinates
};

}  // namespace anydml::cuda
