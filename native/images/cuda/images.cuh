// What the host and the kernels of REVERSE_SUBSEQUENCES and UPSAMPLE_2D have in common.
#pragma once

#include "runtime/cuda/walk.cuh"

namespace anydml::cuda {

constexpr unsigned kImageThreads = 256;

// Units of the output with the lines' axis among the dimensions; positions on it count from
// `begin`, of `size` in all.
struct Turning {
  Walk walk;
  Offset lengths[kMaxDims];
  int axis;
  Offset begin, size;
  Offset from_step;  // of the input along the axis
};
constexpr int kReverseUnroll = 4;

// The same where lines lie side by side in the output: a warp goes down the lines of 32 columns.
constexpr unsigned kReversePerThread = 16;  // positions of a thread
constexpr unsigned kReverseRowsPerBlock = kImageThreads / 32 * kReversePerThread;
struct ReverseLines {
  Walk columns;  // of all dimensions but the axis
  Offset lengths[kMaxDims];
  Offset begin, size;
  Offset to_step, from_step;
  unsigned count, positions;  // columns; positions on the axis
  Divisor chunks;             // of positions
};
// And where lines are packed rows of whole lines of 16 bytes.
constexpr int kReverseRowUnroll = 2;
struct ReverseRows {
  Walk rows;
  Offset lengths[kMaxDims];
  Offset size;
  Divisor lines;  // of 16 bytes, of a row
  unsigned items;
};

// A block makes rows of a piece of the columns: 2^columns_log side by side, its other threads other
// rows, `kUpsampleRows` one after the other each.
constexpr int kUpsampleRows = 8, kWideRows = 16;  // of single elements, of 16 bytes of them
struct Stretching {
  Offset high, wide;     // of the input's images
  Offset rows, columns;  // of the output's
  Offset height, width;  // how many times as long
  Offset from_row, from_column, to_row, to_column;
  unsigned columns_log;
  Offset across, down;  // blocks of an image
};

// Elements that repeat, in an output whose rows are whole lines of 16 bytes: a thread makes one
// line of all rows that are the same.
struct Repeating {
  Divisor lines, rows, width;  // lines of an output's row; the input's rows; columns of an element
  unsigned height, items;
  Offset from_row, from_column, to_row;
};

}  // namespace anydml::cuda
