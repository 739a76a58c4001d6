// SCATTER's inner loops: some lines along the axis, in the output itself or in packed scratch.
//
// run_direct is O(updates) after the copy, without scratch. run_blocks reads and writes every
// operand once, each thread with scratch of one block (Tuning); blocks are what keeps power-of-two
// strides, which all fall into the same few cache sets, away from the random writes.

#include <algorithm>

#include "scatter/cpu/scatter.hpp"

namespace anydml::scatter {
namespace {

// Lines of the indices below which a row of them is converted together with its neighbours.
constexpr Int kShortRow = 64;

// rows x count index values: offsets = position * scale + row * row_step + i * step.
bool convert_rows(const IndexReader& reader, const char* source, Int row_stride, Int stride,
                  Int rows, Int count, Int size, Int scale, Int row_step, Int step, Int* offsets) {
  if (rows > 1 && count < kShortRow && row_stride == count * stride) {
    if (!reader.convert(source, stride, rows * count, size, scale, 0, 0, offsets)) return false;
    for (Int row = 0; row < rows; ++row, offsets += count)
      for (Int i = 0; i < count; ++i) offsets[i] += row * row_step + i * step;
    return true;
  }
  bool good = true;
  for (Int row = 0; row < rows; ++row)
    good &= reader.convert(source + row * row_stride, stride, count, size, scale, row * row_step,
                           step, offsets + row * count);
  return good;
}

struct Piece {
  const Problem& problem;
  const Target& target;
  Int offsets[kPiece];  // not cleared

  Piece(const Problem& a_problem, const Target& a_target) : problem(a_problem), target(a_target) {}

  // rows x count updates, rows at row strides and counted in `row_step` bytes of the target.
  bool write(char* base, const char* indices, Int index_row, Int index_stride, const char* updates,
             Int update_row, Int update_stride, Int rows, Int count, Int row_step, Int step) {
    if (!convert_rows(*problem.reader, indices, index_row, index_stride, rows, count,
                      problem.axis_size, target.axis, row_step, step, offsets))
      return false;
    if (target.far)
      for (Int i = 0; i < rows * count; ++i) prefetch_write(base + offsets[i]);
    if (target.sums != nullptr) base = target.sums->locate(base, offsets, rows * count);
    problem.writer->scatter(base, offsets, updates, update_row, update_stride, rows, count);
    return true;
  }
};

// The next rows of a strip lie on pages of their own, where no hardware prefetcher looks.
ANYDML_INLINE void prefetch_rows(const char* source, Int row_stride, Int rows, Int bytes) {
  for (Int row = 0; row < rows; ++row)
    for (Int at = 0; at < bytes; at += 64) prefetch_read(source + row * row_stride + at);
}

// Bytes of `count` elements that are worth prefetching: none when there is less than one a line.
inline Int span_of(Int count, Int step) { return step <= 64 ? count * step : 0; }

// Copies rows x bytes between strided rows.
void copy_rows(char* target, Int target_stride, const char* source, Int source_stride, Int rows,
               Int bytes, bool streams) {
  if (target_stride == bytes && source_stride == bytes) {
    bytes *= rows;
    rows = 1;
  }
  for (Int row = 0; row < rows; ++row) {
    if (streams)
      stream_copy(target + row * target_stride, source + row * source_stride,
                  static_cast<std::size_t>(bytes));
    else
      std::memcpy(target + row * target_stride, source + row * source_stride,
                  static_cast<std::size_t>(bytes));
  }
}

Layout lines_of(const Int (&strides)[3], Int groups, Int length, Int columns) {
  Layout lines;
  lines.push(groups, strides[0]);
  lines.push(length, strides[1]);
  lines.push(columns, strides[2]);
  return lines;
}

// Copies groups x axis x columns elements, any strides.
void copy_lines(char* target, const Int (&to)[3], const char* source, const Int (&from)[3],
                Int groups, Int length, Int columns, int size, bool streams) {
  const bool packed = (columns == 1 || (to[2] == size && from[2] == size));
  if (packed && columns == 1 && (to[1] != size || from[1] != size) && length > 1) {
    // Strided elements: no row to copy.
  } else if (packed) {
    const Int row = columns * size;
    if (to[1] == row && from[1] == row) {
      copy_rows(target, to[0], source, from[0], groups, length * row, streams);
    } else {
      for (Int g = 0; g < groups; ++g)
        copy_rows(target + g * to[0], to[1], source + g * from[0], from[1], length, row, streams);
    }
    return;
  }
  copy_elements(lines_of(to, groups, length, columns), target,
                lines_of(from, groups, length, columns), source, size, 1);
}

}  // namespace

bool update_lines(const Problem& problem, const char* indices, const char* updates, Int groups,
                  Int columns, const Target& target) {
  Piece piece(problem, target);
  const Int length = problem.length;
  const Int* const axis = problem.axis;
  const Int* const column = problem.column;
  const Int* const group = problem.group;
  bool good = true;
  if (columns == 1) {
    const Int chunk = std::min(length, kPiece);
    const Int rows_per_piece = std::max<Int>(1, kPiece / chunk);
    for (Int g = 0; g < groups; g += rows_per_piece) {
      const Int rows = std::min(rows_per_piece, groups - g);
      for (Int i = 0; i < length; i += kPiece) {
        if (length >= kPiece) {
          // The piece after this one: a hardware prefetcher stops at the end of a page.
          const Int next = i + kPiece;
          prefetch_rows(indices + g * group[kIndex] + next * axis[kIndex], 0, 1,
                        span_of(kPiece, axis[kIndex]));
          prefetch_rows(updates + g * group[kUpdate] + next * axis[kUpdate], 0, 1,
                        span_of(kPiece, axis[kUpdate]));
        }
        good &= piece.write(
            target.base + g * target.group, indices + g * group[kIndex] + i * axis[kIndex],
            group[kIndex], axis[kIndex], updates + g * group[kUpdate] + i * axis[kUpdate],
            group[kUpdate], axis[kUpdate], rows, std::min(kPiece, length - i), target.group, 0);
      }
    }
    return good;
  }
  for (Int c = 0; c < columns; c += kPiece) {
    const Int chunk = std::min(kPiece, columns - c);
    const Int rows_per_piece = kPiece / chunk;
    for (Int g = 0; g < groups; ++g) {
      const char* index = indices + g * group[kIndex] + c * column[kIndex];
      const char* update = updates + g * group[kUpdate] + c * column[kUpdate];
      for (Int i = 0; i < length; i += rows_per_piece) {
        const Int rows = std::min(rows_per_piece, length - i);
        const Int next_rows = std::min(rows_per_piece, length - i - rows);
        prefetch_rows(index + rows * axis[kIndex], axis[kIndex], next_rows,
                      span_of(chunk, column[kIndex]));
        prefetch_rows(update + rows * axis[kUpdate], axis[kUpdate], next_rows,
                      span_of(chunk, column[kUpdate]));
        good &= piece.write(target.base + g * target.group + c * target.column, index, axis[kIndex],
                            column[kIndex], update, axis[kUpdate], column[kUpdate], rows, chunk, 0,
                            target.column);
        index += rows * axis[kIndex];
        update += rows * axis[kUpdate];
      }
    }
  }
  return good;
}

bool run_direct(const Problem& problem, const char* indices, const char* updates, char* output,
                int threads) {
  const Int lines = problem.groups * problem.columns;
  const Int plane = lines * problem.length;
  // About 32 K updates at a time: columns are split where one group has more than that.
  const Int goal = std::max<Int>(1, (Int{32} << 10) / problem.length);
  const Int columns = std::min(problem.columns, goal);
  const Int groups = std::min(problem.groups, std::max<Int>(1, goal / columns));
  const Int strips = (problem.columns + columns - 1) / columns;
  const Int bands = (problem.groups + groups - 1) / groups;
  Target full{output, problem.axis[kOut], problem.column[kOut], problem.group[kOut], false};
  full.far = std::abs(full.axis) * problem.axis_size >= kPrefetchBytes;
  const Int items = problem.rest_count * bands * strips;
  const Int workers = plane * problem.rest_count < kParallelElements
                          ? 1
                          : std::min<Int>(std::max(1, threads), items);
  std::vector<Sums> sums;
  if (problem.writer->widen != nullptr)
    for (Int worker = 0; worker < workers; ++worker)
      sums.emplace_back(*problem.writer, groups * columns * problem.length,
                        groups * columns * problem.axis_size);
  std::atomic<bool> good{true};
  const auto run = [&](Int worker, Int item) {
    const Int strip = item % strips, band = item / strips % bands, at = item / strips / bands;
    const Int c = strip * columns, g = band * groups;
    const auto moved = [&](int tensor) {
      return offset_at(problem.rest[tensor], at) + g * problem.group[tensor] +
             c * problem.column[tensor];
    };
    Target target = full;
    target.base += moved(kOut);
    if (!sums.empty()) target.sums = &sums[static_cast<std::size_t>(worker)];
    if (!update_lines(problem, indices + moved(kIndex), updates + moved(kUpdate),
                      std::min(groups, problem.groups - g), std::min(columns, problem.columns - c),
                      target))
      good.store(false, std::memory_order_relaxed);
    if (target.sums != nullptr) target.sums->finish();
  };
  if (items == 1)
    run(0, 0);
  else
    parallel_items(items, workers, threads, run, [](Int) {});
  return good.load(std::memory_order_relaxed);
}

bool run_blocks(const Problem& problem, const char* input, const char* indices, const char* updates,
                char* output, int threads, const Tuning& tuning) {
  const int size = problem.target_size;
  const Int length = problem.axis_size;
  const Int line_bytes = length * size;
  // Strips of whole cache lines, or all columns. Wide strips suit the memory, so they may take more
  // scratch, but every thread should get some.
  Int columns = problem.columns;
  const Int unit = std::max<Int>(1, 64 / problem.element_size);
  if (columns > 1 && line_bytes * columns > tuning.block_bytes) {
    const Int wide = tuning.block_bytes / (line_bytes * unit);
    columns = std::min(columns, std::max({wide, tuning.strip_bytes / 64, Int{1}}) * unit);
    const Int all = problem.rest_count * problem.groups;
    while (columns > unit && all * (problem.columns / columns) < 2 * threads)
      columns = (columns / unit + 1) / 2 * unit;
  }
  Int groups = 1;
  if (columns == problem.columns)
    groups = std::min(problem.groups, std::max<Int>(1, tuning.small_bytes /
                                                           std::max<Int>(1, line_bytes * columns)));
  const Int strips = (problem.columns + columns - 1) / columns;
  const Int bands = (problem.groups + groups - 1) / groups;
  const Int items = problem.rest_count * bands * strips;
  const Int block_bytes = (line_bytes * columns * groups + 63) / 64 * 64;
  const Int elements = problem.rest_count * problem.groups * problem.columns * length;
  const Int all_updates = problem.rest_count * problem.groups * problem.columns * problem.length;
  const Int workers = threads <= 1 || elements + all_updates < kParallelElements
                          ? 1
                          : std::min<Int>(threads, items);
  // Past the cache only where whole cache lines are written: a part of one costs a read.
  const bool rows_stream = problem.columns == 1 || columns == problem.columns;
  const bool aligned = reinterpret_cast<std::uintptr_t>(output) % 64 == 0 &&
                       problem.axis[kOut] % 64 == 0 && problem.group[kOut] % 64 == 0 &&
                       columns * size % 64 == 0;
  const bool widens = problem.writer->widen != nullptr;
  const bool streams =
      !widens && elements * size >= tuning.stream_bytes && (rows_stream || aligned);

  Scratch<char> blocks(workers * block_bytes);
  std::atomic<bool> good{true};
  parallel_items(
      items, workers, threads,
      [&](Int worker, Int item) {
        const Int strip = item % strips, band = item / strips % bands, at = item / strips / bands;
        const Int c = strip * columns, g = band * groups;
        const Int chunk_groups = std::min(groups, problem.groups - g);
        const Int chunk = std::min(columns, problem.columns - c);
        const auto moved = [&](int tensor) {
          return offset_at(problem.rest[tensor], at) + g * problem.group[tensor] +
                 c * problem.column[tensor];
        };
        const Target block{blocks.get() + worker * block_bytes, chunk * size, size,
                           length * chunk * size, false};
        const Int packed[3] = {block.group, block.axis, block.column};
        const Int count = chunk_groups * length * chunk;
        const Int from[3] = {problem.group[kIn], problem.axis[kIn], problem.column[kIn]};
        const Int to[3] = {problem.group[kOut], problem.axis[kOut], problem.column[kOut]};
        if (widens)
          widen(*problem.writer, lines_of(from, chunk_groups, length, chunk), input + moved(kIn), 0,
                count, block.base);
        else
          copy_lines(block.base, packed, input + moved(kIn), from, chunk_groups, length, chunk,
                     size, false);
        if (!update_lines(problem, indices + moved(kIndex), updates + moved(kUpdate), chunk_groups,
                          chunk, block))
          good.store(false, std::memory_order_relaxed);
        if (widens)
          narrow(*problem.writer, lines_of(to, chunk_groups, length, chunk), output + moved(kOut),
                 0, count, block.base);
        else
          copy_lines(output + moved(kOut), to, block.base, packed, chunk_groups, length, chunk,
                     size, streams);
      },
      [&](Int) {
        if (streams) stream_fence();
      });
  return good.load(std::memory_order_relaxed);
}

}  // namespace anydml::scatter
