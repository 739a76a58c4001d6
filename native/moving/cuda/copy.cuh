// What the host and the kernels of copies have in common.
#pragma once

#include "moving/cuda/pieces.cuh"

namespace anydml::cuda {

constexpr unsigned kCopyThreads = 256;
constexpr int kCopyUnroll = 4;

// Rows of bytes, each cut into segments of kLaneBytes for each of 2^lanes_log threads.
struct Rows {
  Offset bytes;      // of a row
  Divisor segments;  // of a row
  unsigned items;    // segments of all rows
  unsigned lanes_log;
};

// Tiles of two dimensions: `row` is the one along which the source is densest, `column` the
// target's innermost.
struct Plane {
  unsigned rows, columns;
  Offset to_row, to_column, from_row, from_column;
  Divisor across, down;  // tiles
  unsigned row_log, column_log;
};
// Elements of a tile, and what its rows have more in shared memory, so that columns of it lie in
// different banks.
ANYDML_BOTH constexpr unsigned tile_log(int size) { return size <= 4 ? 12 : size == 8 ? 11 : 10; }
ANYDML_BOTH constexpr unsigned tile_row_log(int size) { return tile_log(size) / 2; }
ANYDML_BOTH constexpr unsigned tile_pad(int size) {
  return size < 4 ? 4u / static_cast<unsigned>(size) : 1;
}
// A side of the tiles of words, for elements of 1 and 2 bytes: a row is 128 bytes.
ANYDML_BOTH constexpr unsigned word_side(int size) { return 128u / static_cast<unsigned>(size); }

// A table on its way to the device as an argument of a kernel.
struct TableBlock {
  static constexpr int kLines = 1000;
  struct alignas(16) Line {
    unsigned words[4];
  } lines[kLines];
};

}  // namespace anydml::cuda
