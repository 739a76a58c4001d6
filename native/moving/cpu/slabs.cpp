// SPLIT and JOIN: a whole tensor and the slabs that it consists of along one axis.
//
// Where the dimensions behind the axis are packed and those before it have one common step, the
// whole is a matrix of bytes, and each part a few of its columns: a piece of every row. Pieces of
// some hundred bytes are copied in the order of the source; the output goes past the cache when it
// is large. Smaller ones are moved a block of rows at a time, so that a cache line which
// holds several pieces is read and written once; equal pieces of 1, 2, 4, 8 or 16 bytes are
// transposed in registers. All other strides: one general copy a part.
//
// One read and one write an element; scratch is 32 bytes a part.
#include "moving/cpu/slabs.hpp"

#include "common/slab_rows.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/cpu/transpose.hpp"

namespace anydml {
namespace {

// One part: a piece of `bytes` in every row.
struct Part {
  char* data;
  Int bytes, step;  // step: from row to row
  Int offset;       // of the piece in the whole's row
};

struct Matrix {
  char* joined;
  Int rows, bytes, step;  // bytes of one row of the whole, and from row to row
  const Part* parts;
  Int count;
  void* const* data;  // of the parts
  bool equal;         // parts of equal bytes and with rows without gaps

  Int total() const { return rows * bytes; }
};

// The mean piece size at which row copies beat blocks.
constexpr Int kRowPiece = 192;
// A block: at least this many rows and at most this many bytes of a row of the whole; more rows if
// a row is short.
constexpr Int kBlockRows = 64, kBlockBytes = 2048, kBlockTotal = 8192;
// Pieces above this are copied one by one even in a block.
constexpr Int kLongPiece = 256;

// ---- rows ---------------------------------------------------------------------------------------

// The part that holds byte `at` of something in which part p begins at scale * offset.
Int part_at(const Matrix& matrix, Int at, Int scale) {
  Int low = 0, high = matrix.count;
  while (high - low > 1) {
    const Int middle = (low + high) / 2;
    (matrix.parts[middle].offset * scale <= at ? low : high) = middle;
  }
  return low;
}

// The bytes [at, end) in the order of the source: for a join, of all parts one after the other.
// Many sequential outputs cost nothing, many inputs outrun the prefetcher and cost half the speed.
template <bool Split>
void copy_range(const Matrix& matrix, Int at, Int end, bool stream) {
  RunWriter output(stream);
  constexpr bool by_parts = !Split;
  const Int scale = by_parts ? matrix.rows : 1;
  Int row = by_parts ? 0 : at / matrix.bytes;
  Int base = by_parts ? 0 : row * matrix.bytes;  // of the row
  Int p = part_at(matrix, at - base, scale);
  while (at < end) {
    const Part& part = matrix.parts[p];
    if (part.bytes > 0) {
      Int into = at - base - part.offset * scale;
      if constexpr (by_parts) {
        row = into / part.bytes;
        into -= row * part.bytes;
      }
      do {
        const Int run = std::min(part.bytes - into, end - at);
        char* const in_joined = matrix.joined + row * matrix.step + part.offset + into;
        char* const in_part = part.data + row * part.step + into;
        if constexpr (Split)
          output.put(in_part, in_joined, run);
        else
          output.put(in_joined, in_part, run);
        at += run;
        into = 0;
      } while (by_parts && ++row < matrix.rows && at < end);
    }
    if (++p == matrix.count) {
      p = 0;
      ++row;
      base += matrix.bytes;
    }
  }
}

template <bool Split>
void by_rows(const Matrix& matrix, int threads) {
  constexpr Int unit = 4096;
  const Int total = matrix.total();
  const bool stream = total >= kStreamBytes;
  parallel_ranges((total + unit - 1) / unit, kCopyGrain / unit, threads, [&](Int begin, Int end) {
    copy_range<Split>(matrix, begin * unit, std::min(end * unit, total), stream);
  });
}

// ---- blocks -------------------------------------------------------------------------------------

// Rows [row, row + height) of parts [begin, end).
template <bool Split>
void copy_block(const Matrix& matrix, Int row, Int height, Int begin, Int end, bool stream) {
  alignas(64) char buffer[kBlockRows * kLongPiece];
  if constexpr (Split) {
    for (Int p = begin; p < end; ++p) {
      const Part& part = matrix.parts[p];
      const char* const source = matrix.joined + row * matrix.step + part.offset;
      char* const target = part.data + row * part.step;
      if (stream && part.step == part.bytes && height * part.bytes <= Int{sizeof buffer}) {
        copy_pieces(buffer, part.bytes, source, matrix.step, part.bytes, height);
        stream_copy(target, buffer, static_cast<std::size_t>(height * part.bytes));
      } else {
        copy_pieces(target, part.step, source, matrix.step, part.bytes, height);
      }
    }
  } else {
    // A buffer full of rows at a time, written row by row.
    const Int offset = matrix.parts[begin].offset;
    const Int width = matrix.parts[end - 1].offset + matrix.parts[end - 1].bytes - offset;
    const bool packed = width == matrix.step;  // rows without gaps: written as one
    const bool buffered = stream && (packed || width >= 512) && width * 4 <= Int{sizeof buffer};
    const Int step = packed || !buffered ? matrix.step : (width + 63) / 64 * 64;
    const Int max_rows = buffered ? Int{sizeof buffer} / step : height;
    for (Int r = row; r < row + height; r += max_rows) {
      const Int count = std::min(max_rows, row + height - r);
      char* const joined = matrix.joined + r * matrix.step + offset;
      char* const target = buffered ? buffer : joined;
      for (Int p = begin; p < end; ++p) {
        const Part& part = matrix.parts[p];
        copy_pieces(target + part.offset - offset, step, part.data + r * part.step, part.step,
                    part.bytes, count);
      }
      if (!buffered) continue;
      if (packed) {
        stream_copy(joined, buffer, static_cast<std::size_t>(count * width));
        continue;
      }
      for (Int i = 0; i < count; ++i)
        stream_copy(joined + i * matrix.step, buffer + i * step, static_cast<std::size_t>(width));
    }
  }
}

template <bool Split>
void by_blocks(const Matrix& matrix, Int row, Int part, int threads, bool stream) {
  const Int rows = matrix.rows - row, parts = matrix.count - part;
  if (rows <= 0 || parts <= 0) return;
  const Int mean = std::max<Int>(1, matrix.bytes / matrix.count);
  const Int group = std::clamp<Int>(kBlockBytes / mean, 1, parts);
  const Int groups = (parts + group - 1) / group;
  const Int high = std::max(kBlockRows, kBlockTotal / (group * mean) / 64 * 64);
  const Int total = (rows + high - 1) / high * groups;
  const Int unit = high * group * mean;
  parallel_ranges(total, std::max<Int>(1, kCopyGrain / unit), threads, [&](Int begin, Int end) {
    for (Int i = begin; i < end; ++i) {
      const Int r = row + i / groups * high, p = part + i % groups * group;
      copy_block<Split>(matrix, r, std::min(high, matrix.rows - r), p,
                        std::min(p + group, matrix.count), stream);
    }
    if (stream) stream_fence();
  });
}

// ---- tiles --------------------------------------------------------------------------------------

template <bool Split, int W>
void by_tiles(const Matrix& matrix, int threads) {
  constexpr Int side = 64 / W;
  // Rows of a strip: each part's run in it is 256 bytes.
  constexpr Int high = 4 * side;
  const Int rows = matrix.rows - matrix.rows % side, count = matrix.count - matrix.count % side;
  bool stream = matrix.total() >= kStreamBytes;
  if constexpr (Split) {
    for (Int p = 0; p < count; ++p)
      stream = stream && reinterpret_cast<uintptr_t>(matrix.data[p]) % 64 == 0;
  } else {
    stream =
        stream && (reinterpret_cast<uintptr_t>(matrix.joined) | uintptr_t(matrix.step)) % 64 == 0;
  }
  const Int strips = (rows + high - 1) / high;
  const Int grain = std::max<Int>(1, kCopyGrain / (high * W * count));
  parallel_ranges(strips, grain, threads, [&](Int begin, Int end) {
    void* lines[high];  // rows of the whole
    for (Int strip = begin; strip < end; ++strip) {
      const Int first = strip * high, height = std::min(high, rows - first);
      for (Int i = 0; i < height; ++i) lines[i] = matrix.joined + (first + i) * matrix.step;
      for (Int p = 0; p < count; p += side) {
        for (Int r = 0; r < height; r += side) {
          if constexpr (Split)
            transpose_tile<W>(lines + r, p * W, matrix.data + p, (first + r) * W, stream);
          else
            transpose_tile<W>(matrix.data + p, (first + r) * W, lines + r, p * W, stream);
        }
      }
    }
    if (stream) stream_fence();
  });
  // The remainder that no tile covers: the last parts, and the last rows of the others.
  by_blocks<Split>(matrix, 0, count, threads, false);
  Matrix rest = matrix;
  rest.count = count;
  by_blocks<Split>(rest, rows, 0, threads, false);
}

template <bool Split>
bool tiles_apply(const Matrix& matrix, int threads, bool run) {
  if (!matrix.equal || !is_element_size(matrix.parts[0].bytes)) return false;
  const Int side = 64 / matrix.parts[0].bytes;
  if (matrix.count < side || matrix.rows < side) return false;
  if (run)
    with_element(static_cast<int>(matrix.parts[0].bytes), [&](auto unit) {
      by_tiles<Split, static_cast<int>(sizeof(unit))>(matrix, threads);
    });
  return true;
}

// ---- layouts ------------------------------------------------------------------------------------

template <bool Split>
void by_layouts(const SlabsPlan& plan, char* joined, void* const* parts, int threads) {
  const Int count = plan.count();
  const int size = plan.joined.element_size, axis = plan.axis;
  const Int bytes = plan.joined.layout.count() * size;
  const auto copy = [&](Int begin, Int end, int max_threads) {
    Layout slab = plan.joined.layout, part = plan.joined.layout;
    for (Int p = begin; p < end; ++p) {
      slab.sizes[axis] = part.sizes[axis] = plan.length(p);
      std::copy_n(plan.strides(p), part.rank, part.strides);
      char* const at = joined + plan.begin(p) * slab.strides[axis];
      if constexpr (Split)
        copy_elements(part, parts[p], slab, at, size, max_threads);
      else
        copy_elements(slab, at, part, parts[p], size, max_threads);
    }
  };
  // Many parts are distributed among the threads; few are each split among them.
  if (count >= 8 * Int{threads})
    parallel_ranges(count, std::max<Int>(1, kCopyGrain / std::max<Int>(1, bytes / count)), threads,
                    [&](Int begin, Int end) { copy(begin, end, 1); });
  else
    copy(0, count, threads);
}

// ---- choice -------------------------------------------------------------------------------------

template <bool Split>
bool run_by(const SlabsPlan& plan, SlabMethod method, char* joined, void* const* parts,
            int threads) {
  const Int count = plan.count();
  const Layout& layout = plan.joined.layout;
  if (layout.count() == 0) return true;
  const auto layouts = [&] {
    if (method != SlabMethod::choose && method != SlabMethod::layouts) return false;
    by_layouts<Split>(plan, joined, parts, threads);
    return true;
  };
  if (method == SlabMethod::layouts) return layouts();

  Matrix matrix;
  if (!as_rows(layout, plan.joined.element_size, plan.axis, layout.sizes[plan.axis], layout.strides,
               matrix.bytes, matrix.step))
    return layouts();
  matrix.rows = layout.count() * plan.joined.element_size / matrix.bytes;
  matrix.joined = joined;
  matrix.count = count;
  matrix.data = parts;
  constexpr Int kStackParts = 32;
  Part on_stack[kStackParts];
  Scratch<Part> on_heap;
  if (count > kStackParts) on_heap.reset(count);
  Part* const described = count > kStackParts ? on_heap.get() : on_stack;
  matrix.parts = described;
  matrix.equal = true;
  Int offset = 0;
  for (Int p = 0; p < count; ++p) {
    Part& part = described[p];
    if (!as_rows(layout, plan.joined.element_size, plan.axis, plan.length(p), plan.strides(p),
                 part.bytes, part.step))
      return layouts();
    part.data = static_cast<char*>(parts[p]);
    part.offset = offset;
    offset += part.bytes;
    matrix.equal = matrix.equal && part.bytes == described[0].bytes &&
                   (part.step == part.bytes || matrix.rows == 1);
  }

  if (method == SlabMethod::choose) {
    if (matrix.bytes >= kRowPiece * count || matrix.rows == 1 || matrix.total() <= 1024)
      method = SlabMethod::rows;
    else
      method = tiles_apply<Split>(matrix, threads, false) ? SlabMethod::tiles : SlabMethod::blocks;
  }
  switch (method) {
    case SlabMethod::rows:
      by_rows<Split>(matrix, threads);
      return true;
    case SlabMethod::tiles:
      return tiles_apply<Split>(matrix, threads, true);
    default:
      by_blocks<Split>(matrix, 0, 0, threads, matrix.total() >= kStreamBytes);
      return true;
  }
}

}  // namespace

bool split_by(const SlabsPlan& plan, SlabMethod method, const void* joined, void* const* parts,
              int threads) {
  return run_by<true>(plan, method, static_cast<char*>(const_cast<void*>(joined)), parts, threads);
}

bool join_by(const SlabsPlan& plan, SlabMethod method, const void* const* parts, void* joined,
             int threads) {
  return run_by<false>(plan, method, static_cast<char*>(joined), const_cast<void* const*>(parts),
                       threads);
}

void SlabsPlan::split(const void* joined_data, void* const* parts_data, int threads) const {
  split_by(*this, SlabMethod::choose, joined_data, parts_data, threads);
}

void SlabsPlan::join(const void* const* parts_data, void* joined_data, int threads) const {
  join_by(*this, SlabMethod::choose, parts_data, joined_data, threads);
}

}  // namespace anydml
