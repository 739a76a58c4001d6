// What the host and the kernels of SPLIT and JOIN have in common.
#pragma once

#include "moving/cuda/copy.cuh"

namespace anydml::cuda {

constexpr unsigned kSlabThreads = 256;
constexpr unsigned kSlabUnroll = 4;
// Units that a warp takes; warps of a block.
constexpr unsigned kSlabRun = 32 * kSlabUnroll;
constexpr unsigned kSlabWarps = kSlabThreads / 32;
constexpr unsigned kSlabBlock = kSlabRun * kSlabWarps;
// How units lie that a block takes: in the order of the whole; a run in each of kSlabWarps rows; 32
// in each of kSlabWarps * kSlabUnroll rows.
constexpr unsigned kInOrder = 0, kEightRows = 1, kManyRows = 2;

// The whole: rows of contiguous bytes, of which each part has a piece.
struct Slabs {
  char* joined;
  Offset step;        // from row to row
  Offset part_step;   // the same of the parts, if these have one layout
  Offset row;         // the first one
  const void* table;  // of the parts, if the argument does not hold it
  unsigned count;     // entries
  unsigned rows;
  Divisor units;       // of a row
  Divisor part_units;  // units of a part, if all have one layout
  Divisor segments;    // of a row
  unsigned lanes_log;
  unsigned direct;               // whether an entry is a segment
  unsigned items;                // units, or segments, of all rows
  unsigned shape;                // kInOrder, kEightRows or kManyRows
  unsigned row_log, column_log;  // a tile
  Divisor across;                // tiles, or runs
};

// Parts of equal pieces and steps are a table of their addresses. Else an entry is a part: a last
// one says where the row ends. With segments it may be one of these.
struct SlabPart {
  char* data;
  Offset step;   // from row to row
  Offset begin;  // of the piece in the whole's row, in bytes
  Offset more;   // of a part: the number of its first segment in the row; of a segment: bytes
};
constexpr unsigned kSmallAddresses = 240, kSmallParts = 60;
struct AddressTable {
  char* data[kSmallAddresses];
};
struct PartTable {
  SlabPart parts[kSmallParts + 1];
};

}  // namespace anydml::cuda
