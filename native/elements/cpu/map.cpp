// Blocks of packed elements for a map, from any layout to any layout.
//
// The dimensions are brought into the order of the output's memory. Rows that are packed on both
// sides are handed to the map where they lie; others go through blocks in the nearest cache,
// several short rows at a time. One read and one write an element.
#include "elements/cpu/map.hpp"

#include <algorithm>

#include "runtime/cpu/rows.hpp"

namespace anydml {
namespace {

// Rows shorter than this share a block.
constexpr Int kShortRow = 64;
// Rows shorter than this many bytes are not streamed.
constexpr Int kStreamRow = 512;
// Elements of a long row in one chunk.
constexpr Int kPiece = Int{1} << 16;

struct Pair {
  Layout to, from;
  Int to_shift = 0, from_shift = 0;
  int to_size, from_size;
  Int row, rows;  // of the innermost dimension

  Pair(const Tensor& output, const Tensor& input)
      : to(output.layout),
        from(input.layout),
        to_size(output.element_size),
        from_size(input.element_size) {
    const Int total = to.count();
    order_by_target(to, to_shift, from, from_shift);
    if (to.rank == 0) {
      to.push(1, to_size);
      from.push(1, from_size);
    }
    row = to.sizes[to.rank - 1];
    rows = total / row;
  }
  Int to_step() const { return to.strides[to.rank - 1]; }
  Int from_step() const { return from.strides[from.rank - 1]; }
};

void map_long_row(const ElementMap& map, const Pair& pair, char* target, const char* source,
                  Int count, RunWriter& output) {
  alignas(64) char read[kMapBlock * 8], results[kMapBlock * 8];
  const bool to_packed = pair.to_step() == pair.to_size, own = output.streams() || !to_packed;
  const bool from_packed = pair.from_step() == pair.from_size;
  for (Int at = 0; at < count; at += kMapBlock) {
    const Int chunk = std::min(kMapBlock, count - at);
    const char* in = source + at * pair.from_step();
    char* const out = target + at * pair.to_step();
    if (!from_packed) {
      copy_steps(read, pair.from_size, in, pair.from_step(), chunk, pair.from_size);
      in = read;
    }
    map.run(in, own ? results : out, chunk);
    if (output.streams())
      output.put(out, results, chunk * pair.to_size,
                 prefetcher_for(source + (at + chunk) * pair.from_step(), pair.from_step(),
                                std::min(kMapBlock, count - at - chunk), pair.from_size,
                                chunk * pair.to_size / 64));
    else if (!to_packed)
      copy_steps(out, pair.to_step(), results, pair.to_size, chunk, pair.to_size);
  }
}

void map_short_rows(const ElementMap& map, const Pair& pair, char* target, const char* source,
                    Int begin, Int end) {
  alignas(64) char read[kMapBlock * 8], results[kMapBlock * 8];
  const Layout* const layouts[2] = {&pair.to, &pair.from};
  Walker<2> in(layouts, pair.to.rank - 1), out(layouts, pair.to.rank - 1);
  in.start(begin);
  out.start(begin);
  const Int max_rows = kMapBlock / pair.row;
  for (Int at = begin; at < end; at += max_rows) {
    const Int chunk = std::min(max_rows, end - at);
    for (Int i = 0; i < chunk; ++i, in.next())
      copy_steps(read + i * pair.row * pair.from_size, pair.from_size, source + in.offset[1],
                 pair.from_step(), pair.row, pair.from_size);
    map.run(read, results, chunk * pair.row);
    for (Int i = 0; i < chunk; ++i, out.next())
      copy_steps(target + out.offset[0], pair.to_step(), results + i * pair.row * pair.to_size,
                 pair.to_size, pair.row, pair.to_size);
  }
}

}  // namespace

void map_elements(const ElementMap& map, const Tensor& output, void* target, const Tensor& input,
                  const void* source, int threads) {
  const Int total = output.layout.count();
  if (total == 0) return;
  const Pair pair(output, input);
  char* const out = static_cast<char*>(target) + pair.to_shift;
  const char* const in = static_cast<const char*>(source) + pair.from_shift;
  const Int grain = kCopyGrain / std::max(pair.to_size, pair.from_size);
  if (pair.row < kShortRow) {
    parallel_ranges(pair.rows, std::max<Int>(1, grain / pair.row), threads,
                    [&](Int begin, Int end) { map_short_rows(map, pair, out, in, begin, end); });
    return;
  }
  const bool stream = total * pair.to_size >= kStreamBytes && pair.to_step() == pair.to_size &&
                      pair.row * pair.to_size >= kStreamRow && target != source;
  const Layout* const layouts[2] = {&pair.to, &pair.from};
  for_rows(layouts, pair.to.rank - 1, pair.row, kPiece,
           total * std::max(pair.to_size, pair.from_size), threads, stream,
           [&](RunWriter& writer, const Int(&offset)[2], Int begin, Int end) {
             map_long_row(map, pair, out + offset[0] + begin * pair.to_step(),
                          in + offset[1] + begin * pair.from_step(), end - begin, writer);
           });
}

}  // namespace anydml
