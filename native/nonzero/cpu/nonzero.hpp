// The parts of NONZERO_COORDINATES that its files share and its test forces; not for other code.
#pragma once

#include "runtime/plans.hpp"

namespace anydml::nonzero {

// Elements of one chunk: the unit whose count the scan keeps. Offsets within a chunk stay below
// 2^15, so that the write divides them in single precision, exactly.
constexpr Int kChunk = Int{1} << 15;
constexpr Int kWord = 64;

enum class Scan { automatic, packed, gathered, transposed };
// direct and streamed: packed rows; grouped: packed columns; strided: any rows.
enum class Write { automatic, direct, streamed, grouped, strided };

// The two steps. A test names the path to take; a path that does not apply is not taken.
NonzeroPlan::Found scan(const NonzeroPlan& plan, const void* data, int threads, Scan scan_mode);
void write(const NonzeroPlan& plan, const NonzeroPlan::Found& found, const Tensor& rows,
           void* coordinates, int threads, Write write_mode);

// The address of the elements, and which of their bits count.
struct Source {
  Layout layout;  // collapsed
  const char* data;
  int element_size;
  uint64_t mask;  // of an element of up to 8 bytes, in its low bits; 16 bytes: all ones
};

// Bits [begin, end) into words[0..]; begin is a multiple of 64, bits from end on are zero.
void fill_packed(const Source& source, Int begin, Int end, uint64_t* words);
void fill_gathered(const Source& source, Int begin, Int end, uint64_t* words);

// A transposed input is read along the dimension that is contiguous, in tiles of 64 rows, where a
// row is all that lies inside that dimension. `words` is the whole bitmap; a tile owns its words.
struct Tiling {
  int dimension = -1;  // the contiguous one, or -1: not transposed
  Int rows;            // outer sizes times the size of the dimension
  Int row_length;      // product of the sizes inside
  Int tiles() const { return (rows + kWord - 1) / kWord; }
};
Tiling transposed_tiling(const Source& source, bool force);
void fill_transposed(const Source& source, const Tiling& tiling, Int first_tile, Int last_tile,
                     uint64_t* words);

// The result of the scan.
struct Bitmap {
  const uint64_t* bits;
  const Int* starts;  // rows before each chunk; not read when there is one chunk
  Int elements, chunks, count;
  Int rows_before(Int chunk) const {
    return chunk == 0 ? 0 : chunk < chunks ? starts[chunk] : count;
  }
};

// The rows of the chunks [first, last).
struct RowTarget {
  char* data;
  Int row_stride, column_stride;
  int element_size;  // 4 or 8
  const Int* sizes;  // of the last `columns` dimensions
  int columns;
  Write write_mode;
};
void write_chunks(const RowTarget& target, const Bitmap& bitmap, Int first, Int last);

}  // namespace anydml::nonzero
