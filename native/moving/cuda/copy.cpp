// One copy between two layouts.
//
// The dimensions are brought into the order of the target's memory, and what is contiguous on both
// sides is moved in units as large as addresses and strides allow. Then:
//   one run:   the driver's copy, where both addresses allow lines of 16 bytes;
//   rows:      contiguous on both sides, but at addresses that allow no lines: lines are put
//              together from two; or one element all along;
//   tiles:     the source is densest along another dimension: through shared memory;
//   units:     everything else, a source stride of zero included.
#include "runtime/cpu/copy.hpp"

#include <algorithm>
#include <cstring>

#include "moving/cuda/copy.cuh"
#include "runtime/cuda/plans.hpp"
#include "runtime/cuda/tables.hpp"

namespace anydml::cuda {
namespace {

// Elements with larger strides than this are not dense along any dimension.
constexpr Int kDense = 128;

}  // namespace

Walk walk_of(const Layout& to, const Layout& from, int begin, int end, int without) {
  Walk walk;
  walk.rank = 0;
  for (int i = begin; i < end; ++i) {
    if (i == without) continue;
    walk.sizes[walk.rank] = divisor_of(to.sizes[i]);
    walk.to[walk.rank] = to.strides[i];
    walk.from[walk.rank] = from.strides[i];
    ++walk.rank;
  }
  return walk;
}

void store_lines(void* target, const void* table, Int bytes, Queue& queue) {
  Function& store = queue.function("copy", "store_table", {{"SIZE", 16}});
  constexpr Int table_bytes = TableBlock::kLines * 16;
  for (Int at = 0; at < bytes; at += table_bytes) {
    const Int chunk = std::min(table_bytes, bytes - at);
    TableBlock block;
    std::memcpy(&block, static_cast<const char*>(table) + at, static_cast<std::size_t>(chunk));
    queue.launch(store, {}, {kCopyThreads}, 0, static_cast<void*>(static_cast<char*>(target) + at),
                 block, static_cast<int>(chunk / 16));
  }
}

bool reads_in_order(const Layout& original, int element_size) {
  Layout layout = original;
  Layout* only[1] = {&layout};
  collapse(only);
  const auto step = [&](int i) {
    return layout.strides[i] < 0 ? -layout.strides[i] : layout.strides[i];
  };
  const int inner = layout.rank - 1;
  if (inner < 0 || step(inner) <= 4 * Int{element_size}) return true;
  for (int i = 0; i < inner; ++i)
    if (step(i) != 0 && step(i) < step(inner) && step(i) < kDense) return false;
  return true;
}

namespace {

// Shorter rows are copied in units, even if these are small.
constexpr Int short_row(Int unit) { return unit <= 2 ? 64 : unit == 4 ? 128 : 256; }
struct Job {
  Layout to, from;
  char* target;
  const char* source;
  Int unit;

  int inner() const { return to.rank - 1; }
  bool contiguous() const { return to.strides[inner()] == unit && from.strides[inner()] == unit; }

  // The largest unit for all addresses, and for the strides of the first `dimensions`.
  Int common(int dimensions) const {
    Int unit_bytes = std::min(unit_of(target), unit_of(source));
    for (int i = 0; i < dimensions; ++i)
      unit_bytes = std::min({unit_bytes, unit_of(to.strides[i]), unit_of(from.strides[i])});
    return unit_bytes;
  }

  void order() {
    Int to_shift = 0, from_shift = 0;
    order_by_target(to, to_shift, from, from_shift);
    target += to_shift;
    source += from_shift;
  }

  // Units of 1 to 16 bytes.
  void resolve(Int element_size) {
    order();
    unit = std::min(common(to.rank), unit_of(element_size));
    if (unit < element_size) {
      to.push(element_size / unit, unit);
      from.push(element_size / unit, unit);
      order();
    }
    if (to.rank == 0 || !contiguous()) return;
    const Int row = to.sizes[inner()] * unit;
    const Int wide = std::min(common(inner()), unit_of(row));
    if (to.rank == 1 || wide <= unit) return;
    to.sizes[inner()] = from.sizes[inner()] = row / wide;
    to.strides[inner()] = from.strides[inner()] = unit = wide;
    if (row == wide) --to.rank, --from.rank;
  }
};

Rows rows_of(const Job& job, Int bytes, int outer) {
  Rows rows;
  rows.bytes = bytes;
  rows.lanes_log = std::clamp(log_above((bytes + kLaneBytes - 1) / kLaneBytes), kMinLanesLog, 8u);
  const Int segment = Int{kLaneBytes} << rows.lanes_log, segments = (bytes + segment - 1) / segment;
  Int count = segments;
  for (int i = 0; i < outer; ++i) count *= job.to.sizes[i];
  rows.segments = divisor_of(segments);
  rows.items = static_cast<unsigned>(count);
  return rows;
}

Dim blocks_of(const Rows& rows) {
  return {blocks_for(Int{rows.items} << rows.lanes_log, kCopyThreads)};
}

void copy_rows(const Job& job, Int bytes, int outer, Queue& queue) {
  const Rows rows = rows_of(job, bytes, outer);
  queue.launch(queue.function("copy", "copy_rows", {{"SIZE", 1}}), blocks_of(rows), {kCopyThreads},
               0, job.target, job.source, walk_of(job.to, job.from, 0, outer), rows);
}

void fill_rows(const Job& job, Queue& queue) {
  const Rows rows = rows_of(job, job.to.sizes[job.inner()] * job.unit, job.inner());
  queue.launch(queue.function("copy", "fill_rows", {{"SIZE", 1}}), blocks_of(rows), {kCopyThreads},
               0, job.target, job.source, walk_of(job.to, job.from, 0, job.inner()), rows,
               static_cast<int>(job.unit));
}

// The dimension along which the source's elements are closest together.
int densest(const Job& job) {
  const auto step = [&](int i) {
    return job.from.strides[i] < 0 ? -job.from.strides[i] : job.from.strides[i];
  };
  int best = job.inner();
  for (int i = job.inner() - 1; i >= 0; --i)
    if (step(i) != 0 && step(i) < step(best) && step(i) < kDense) best = i;
  return best;
}

void copy_tiles(const Job& job, int row, Queue& queue) {
  const int column = job.inner(), size = static_cast<int>(job.unit);
  Plane plane;
  plane.rows = static_cast<unsigned>(job.to.sizes[row]);
  plane.columns = static_cast<unsigned>(job.to.sizes[column]);
  plane.to_row = job.to.strides[row];
  plane.to_column = job.to.strides[column];
  plane.from_row = job.from.strides[row];
  plane.from_column = job.from.strides[column];

  const unsigned rows = log_above(plane.rows), columns = log_above(plane.columns);
  bool words = size < 4 && plane.to_column == size && plane.from_row == size && rows >= 4 &&
               columns >= 4 && std::min(unit_of(job.target), unit_of(job.source)) >= 4;
  for (int i = 0; words && i < job.to.rank; ++i)
    words = (i == column || unit_of(job.to.strides[i]) >= 4) &&
            (i == row || unit_of(job.from.strides[i]) >= 4);
  unsigned shared = 0;
  if (words) {
    plane.row_log = plane.column_log = log_above(word_side(size));
  } else {
    const unsigned all = tile_log(size);
    plane.row_log = std::min(rows, tile_row_log(size));
    plane.column_log = std::min(columns, all - plane.row_log);
    plane.row_log = std::min(rows, all - plane.column_log);
    shared = ((1u << plane.column_log) + tile_pad(size)) * static_cast<unsigned>(size)
             << plane.row_log;
  }
  const auto tiles = [](Int count, unsigned log) { return (count + (Int{1} << log) - 1) >> log; };
  const Int across = tiles(plane.columns, plane.column_log),
            down = tiles(plane.rows, plane.row_log);
  plane.across = divisor_of(across);
  plane.down = divisor_of(down);
  Int count = across * down;
  for (int i = 0; i < column; ++i)
    if (i != row) count *= job.to.sizes[i];
  queue.launch(queue.function("copy", words ? "copy_word_tiles" : "copy_tiles", {{"SIZE", size}}),
               {static_cast<unsigned>(count)}, {kCopyThreads}, shared, job.target, job.source,
               walk_of(job.to, job.from, 0, column, row), plane);
}

void run(const Job& job, Queue& queue) {
  const Int units = job.to.count();
  const bool contiguous = job.to.rank == 0 || job.contiguous();
  if (job.to.rank == 0 || (job.to.rank == 1 && contiguous)) {
    const Int bytes = units * job.unit;
    const Int distance = static_cast<Int>(job.target - static_cast<char*>(nullptr)) -
                         static_cast<Int>(job.source - static_cast<const char*>(nullptr));
    if (unit_of(distance) == 16 || bytes < short_row(1))
      queue.copy(job.target, job.source, bytes);
    else
      copy_rows(job, bytes, 0, queue);
    return;
  }
  if (units > kMaxUnits) {  // the outermost dimension in two halves
    Job first = job, second = job;
    const Int half = job.to.sizes[0] / 2;
    first.to.sizes[0] = first.from.sizes[0] = half;
    second.to.sizes[0] = second.from.sizes[0] = job.to.sizes[0] - half;
    second.target += half * job.to.strides[0];
    second.source += half * job.from.strides[0];
    for (Job* part : {&first, &second}) {
      Layout* both[2] = {&part->to, &part->from};
      collapse(both);
      run(*part, queue);
    }
    return;
  }
  const Int row_bytes = job.to.sizes[job.inner()] * job.unit;
  if (row_bytes >= short_row(job.unit)) {
    if (contiguous && job.unit < 16) return copy_rows(job, row_bytes, job.inner(), queue);
    if (job.to.strides[job.inner()] == job.unit && job.from.strides[job.inner()] == 0)
      return fill_rows(job, queue);
  }
  const int row = densest(job);
  if (row != job.inner()) return copy_tiles(job, row, queue);
  queue.launch(queue.function("copy", "copy_units", {{"SIZE", job.unit}}),
               {blocks_for(units, kCopyThreads * kCopyUnroll)}, {kCopyThreads}, 0, job.target,
               job.source, walk_of(job.to, job.from, 0, job.to.rank), static_cast<unsigned>(units));
}

}  // namespace

void copy_elements(const Layout& target_layout, void* target, const Layout& source_layout,
                   const void* source, int element_size, Queue& queue) {
  if (target_layout.count() == 0) return;
  Job job{target_layout, source_layout, static_cast<char*>(target),
          static_cast<const char*>(source), 0};
  job.resolve(element_size);
  run(job, queue);
}

std::vector<Variant> copy_variants() {
  std::vector<Variant> all;
  for (Int size : {1, 2, 4, 8, 16}) {
    all.push_back({"copy", {{"SIZE", size}}});
    for (Int split : {0, 1}) all.push_back({"slabs", {{"SIZE", size}, {"SPLIT", split}}});
  }
  return all;
}

}  // namespace anydml::cuda
