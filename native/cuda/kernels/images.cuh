// What the host and the kernels of REVERSE_SUBSEQUENCES and UPSAMPLE_2D have in common.
#pragma once

#include "walk.cuh"

namespace anydml::cuda {

constexpr unsigned kImageThreads = 256;

// Units of the output with the lines' axis among the dimensions; positions on it count from
// `begin`, of `size` in all.
struct Turning {
  Walk walk;
  Offset lengths[kMostDims];
  int axis;
  Offset begin, size;
  Offset from_step;  // of the input along the axis
};
constexpr int kReverseUnroll = 4;

// A block makes rows of a piece of the columns: 2^columns_log side by side, its other threads other
// rows, `kUpsampleRows` one after the other each.
constexpr int kUpsampleRows = 8;
struct Stretching {
  Offset high, wide;     // of the input's images
  Offset rows, columns;  // of the output's
  Offset height, width;  // how many times as long
  Offset from_row, from_column, to_row, to_column;
  unsigned columns_log;
  Offset across, down;  // blocks of an image
};

}  // namespace anydml::cuda
