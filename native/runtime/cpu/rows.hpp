// Rows of several layouts, cut into pieces that threads share.
#pragma once

#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/threads.hpp"

namespace anydml {

// Calls body(output, offset, begin, end) for each position of the outermost `rank` dimensions of
// layouts of the same sizes, in row-major order within a thread, and for each piece [begin, end) of
// at most `piece` of the `row` elements there; `offset` is in bytes from the first element of each
// layout. `bytes` are written in all, by a writer of each range of pieces.
template <int N, class Body>
void for_rows(const Layout* const (&layouts)[N], int rank, Int row, Int piece, Int bytes,
              int threads, bool stream, Body&& body) {
  const Int pieces = (row + piece - 1) / piece;
  Int all = pieces;
  for (int i = 0; i < rank; ++i) all *= layouts[0]->sizes[i];
  const Int grain = std::max<Int>(1, kCopyGrain / std::max<Int>(1, bytes / std::max<Int>(1, all)));
  parallel_ranges(all, grain, threads, [&](Int begin, Int end) {
    RunWriter output(stream);
    Walker<N> walker(layouts, rank);
    walker.start(begin / pieces);
    Int at = begin % pieces;
    for (Int i = begin; i < end; ++i) {
      body(output, walker.offset, at * piece, std::min(row, (at + 1) * piece));
      if (++at < pieces) continue;
      at = 0;
      walker.next();
    }
  });
}

}  // namespace anydml
