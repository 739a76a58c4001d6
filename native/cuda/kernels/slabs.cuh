// What the host and the kernels of SPLIT and JOIN have in common.
#pragma once

#include "copy.cuh"

namespace anydml::cuda {

constexpr unsigned kSlabThreads = 256;
constexpr unsigned kSlabUnroll = 4;

// One part: a piece of every row of the whole. In the table a last entry says where the row ends.
struct SlabPart {
  char* data;
  Offset step;     // from row to row
  Offset begin;    // of the piece in the whole's row, in bytes
  Offset segment;  // the number of its first segment in the row
};

// The whole, rows of contiguous bytes; and the parts, in the argument itself where they are few.
struct Slabs {
  char* whole;
  Offset step;
  Offset row;  // the first one
  const SlabPart* table;
  unsigned count;  // of parts
  unsigned rows;
  Divisor units;     // of a row
  Divisor each;      // units of a part, where all have the same; else its size is 0
  Divisor segments;  // of a row
  unsigned lanes_log;
  unsigned items;                // units, or segments, of all rows
  unsigned row_log, column_log;  // a tile
  Divisor across;                // tiles
};
constexpr unsigned kFewParts = 60, kManyParts = 480;
template <unsigned N>
struct SlabTable {
  SlabPart parts[N + 1];
};

constexpr Offset kSegmentLane = 64;  // bytes of a segment, a lane
}  // namespace anydml::cuda
