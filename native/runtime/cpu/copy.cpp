// Copies between any two layouts of the same sizes.
//
// The dimensions are brought into the order of the target's memory and fused, so that equal
// permutations and flips on both sides cost nothing. What is left is one of
//   rows      both sides contiguous along the innermost dimension: row copies, past the cache when
//             the output is large;
//   planes    the source's smallest stride is along another dimension: square blocks of these two,
//             transposed in registers where both sides are contiguous, so that each cache line is
//             read and written once;
//   strided   everything else, a source stride of zero (broadcast) included; small steps by
//             shuffles (steps.hpp); past the cache as rows are.
// One read and one write an element, no scratch.
#include "runtime/cpu/copy.hpp"

#include <cstdlib>

#include "runtime/cpu/rows.hpp"
#include "runtime/cpu/steps.hpp"
#include "runtime/cpu/transpose.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

// Rows shorter than this are not streamed.
constexpr Int kStreamRow = 512;
// The least count of elements for which a packer pays.
constexpr Int kPacked = 256;

// The two dimensions of a blocked copy: `column` is the target's innermost, `row` is the one along
// which the source is densest.
struct Plane {
  Int columns, rows;
  Int to_column, to_row, from_column, from_row;
};

template <class T>
void copy_run(char* __restrict target, Int to_step, const char* __restrict source, Int from_step,
              Int count) {
  constexpr Int size = sizeof(T);
  if (to_step != size) {
    for (Int i = 0; i < count; ++i) store(target + i * to_step, load<T>(source + i * from_step));
  } else if (from_step == size) {
    copy_short(target, source, count * size);
  } else if (from_step == 0) {
    const T value = load<T>(source);
    for (Int i = 0; i < count; ++i) store(target + i * size, value);
  } else if (from_step == 2 * size) {
    // A step that the compiler knows becomes shuffles of whole vectors, which end before the last
    // element: three to ten times as fast.
    for (Int i = 0; i < count; ++i) store(target + i * size, load<T>(source + i * 2 * size));
  } else if (from_step == -size) {
    for (Int i = 0; i < count; ++i) store(target + i * size, load<T>(source - i * size));
  } else {
    for (Int i = 0; i < count; ++i) store(target + i * size, load<T>(source + i * from_step));
  }
}

// The same with the packer. `more` elements lie above these in memory.
template <class T>
void copy_packed(const StepPacker& packer, char* target, const char* source, Int from_step,
                 Int count, Int more = 0) {
  constexpr Int size = sizeof(T);
  const Int done = packer.pack(target, source, count, more), next = from_step < 0 ? 0 : done;
  copy_run<T>(target + next * size, size, source + next * from_step, from_step, count - done);
}

// Elements of a block in the nearest cache, before they are streamed. At most half of it, because
// prefetched lines have to stay in that cache as well.
constexpr Int kBlock = 4096;
Int block_count(Int step, Int size) {
  return std::max<Int>(1, 128 * size / std::max(2 * size, std::abs(step))) * 64 / size;
}

// A row past the cache, upwards in the source's memory.
template <class T>
void stream_packed(const StepPacker& packer, char* target, const char* source, Int step,
                   Int count) {
  constexpr Int size = sizeof(T);
  alignas(64) char buffer[kBlock];
  const Int per_block = block_count(step, size);
  LineWriter writer(target);
  const auto put = [&](Int begin, Int end, Int more, Int next, Int next_count) {
    copy_packed<T>(packer, buffer, source + begin * step, step, end - begin, more);
    writer.append(
        buffer, (end - begin) * size,
        prefetcher_for(source + next * step, step, next_count, size, per_block * size / 64));
  };
  if (step >= 0) {
    for (Int at = 0; at < count; at += per_block) {
      const Int end = std::min(at + per_block, count);
      put(at, end, count - end, end, std::min(per_block, count - end));
    }
    return;
  }
  for (Int end = count; end > 0;) {
    const Int begin = (end - 1) / per_block * per_block, next = std::max<Int>(0, begin - per_block);
    writer.start(target + begin * size);
    put(begin, end, begin, next, begin - next);
    writer.finish();
    end = begin;
  }
}

template <class T>
void copy_block(const Plane& plane, char* target, const char* source, Int height, Int width) {
  // Copies of the steps: a store of bytes could alias the plane.
  const Int to_column = plane.to_column, from_column = plane.from_column;
  const Int to_row = plane.to_row, from_row = plane.from_row;
  for (Int r = 0; r < height; ++r, target += to_row, source += from_row)
    for (Int c = 0; c < width; ++c)
      store(target + c * to_column, load<T>(source + c * from_column));
}

// The same where both sides are contiguous, the source along rows and the target along columns.
template <class T>
void transpose_block(const Plane& plane, char* target, const char* source, Int height, Int width,
                     bool stream) {
  constexpr Int size = sizeof(T), side = 64 / size;
  const void* rows[side];
  void* lines[side];
  const Int full_height = height - height % side, full_width = width - width % side;
  if (full_height > 0 && full_width > 0) {
    for (Int i = 0; i < side; ++i) {
      rows[i] = source + i * plane.from_column;
      lines[i] = target + i * plane.to_row;
    }
  }
  for (Int r = 0; r < full_height; r += side)
    for (Int c = 0; c < full_width; c += side)
      transpose_tile<size>(rows, r * size + c * plane.from_column, lines,
                           r * plane.to_row + c * size, stream);
  if (full_width < width)
    copy_block<T>(plane, target + full_width * size, source + full_width * plane.from_column,
                  full_height, width - full_width);
  if (full_height < height)
    copy_block<T>(plane, target + full_height * plane.to_row, source + full_height * size,
                  height - full_height, width);
}

Int grain_of(Int bytes, Int items) {
  return std::max<Int>(1, kCopyGrain / std::max<Int>(1, bytes / items));
}

}  // namespace

CopyPlan::CopyPlan(const Layout& target, const Layout& source, int element_size)
    : to_(target), from_(source), size_(element_size), bytes_(target.count() * element_size) {
  if (bytes_ == 0) return;
  if (!is_element_size(element_size)) {  // a run of bytes
    // Fused first: an output that does not overlap itself then can have one dimension more.
    normalize();
    to_.push(element_size, 1);
    from_.push(element_size, 1);
    size_ = 1;
  }
  normalize();
  const int last = to_.rank - 1;
  // A contiguous run of a few bytes moves as one element.
  if (last >= 0 && to_.strides[last] == size_ && from_.strides[last] == size_ &&
      is_element_size(to_.sizes[last] * size_)) {
    size_ *= static_cast<int>(to_.sizes[last]);
    to_.rank = from_.rank = last;
  }
  densest_ = to_.rank - 1;
  const auto step = [&](int i) {
    return from_.strides[i] < 0 ? -from_.strides[i] : from_.strides[i];
  };
  for (int i = to_.rank - 2; i >= 0; --i)
    if (step(i) != 0 && step(i) < step(densest_)) densest_ = i;
}

// Calls body(to, from, length) with the offsets of pieces of the innermost dimension.
template <class Body>
void CopyPlan::for_pieces(int threads, bool stream, Body&& body) const {
  const int inner = to_.rank - 1;
  const Layout* const layouts[2] = {&to_, &from_};
  for_rows(layouts, inner, to_.sizes[inner], kCopyGrain / 4 / size_, bytes_, threads, stream,
           [&](RunWriter&, const Int(&offset)[2], Int begin, Int end) {
             body(offset[0] + begin * to_.strides[inner], offset[1] + begin * from_.strides[inner],
                  end - begin);
           });
}

void CopyPlan::copy_rows(char* target, const char* source, int threads, bool stream) const {
  stream = stream && to_.sizes[to_.rank - 1] * size_ >= kStreamRow;
  for_pieces(threads, stream, [&](Int to, Int from, Int length) {
    if (stream)
      stream_copy(target + to, source + from, static_cast<std::size_t>(length * size_));
    else
      copy_short(target + to, source + from, length * size_);
  });
}

template <class T>
void CopyPlan::copy_strided(char* target, const char* source, int threads, bool stream) const {
  constexpr Int size = sizeof(T);
  const Int to_step = to_.strides[to_.rank - 1], from_step = from_.strides[to_.rank - 1];
  if (to_step != size)
    return for_pieces(threads, false, [&](Int to, Int from, Int length) {
      copy_run<T>(target + to, to_step, source + from, from_step, length);
    });
  const StepPacker packer(from_step, static_cast<int>(size));
  stream = stream && to_.sizes[to_.rank - 1] * size >= kStreamRow;
  for_pieces(threads, stream, [&](Int to, Int from, Int length) {
    if (stream)
      stream_packed<T>(packer, target + to, source + from, from_step, length);
    else
      copy_packed<T>(packer, target + to, source + from, from_step, length);
  });
}

template <class T>
void CopyPlan::copy_plane(char* target, const char* source, int threads, bool stream) const {
  constexpr Int size = sizeof(T);
  const int inner = to_.rank - 1, other = densest_;
  const Plane plane{to_.sizes[inner],   to_.sizes[other],     to_.strides[inner],
                    to_.strides[other], from_.strides[inner], from_.strides[other]};
  Layout to, from;
  for (int i = 0; i < inner; ++i) {
    if (i == other) continue;
    to.push(to_.sizes[i], to_.strides[i]);
    from.push(from_.sizes[i], from_.strides[i]);
  }
  const bool tiles = plane.to_column == size && plane.from_row == size &&
                     plane.columns >= 64 / size && plane.rows >= 64 / size;
  // A tile is streamed by whole lines or not at all.
  stream = stream && reinterpret_cast<uintptr_t>(target) % 64 == 0 && plane.to_row % 64 == 0;
  for (int i = 0; i < to.rank; ++i) stream = stream && to.strides[i] % 64 == 0;
  // Blocks of 256 bytes a side; longer where the other dimension is short, by whole lines: a block
  // that begins within one could not be streamed.
  constexpr Int side = 256 / size, line = 64 / size;
  const Int wide = std::max(side, 16384 / 64 / plane.rows * line);
  const Int high = std::max(side, 16384 / 64 / plane.columns * line);
  const Int across = (plane.columns + wide - 1) / wide, down = (plane.rows + high - 1) / high;
  const Int total = to.count() * across * down;
  parallel_ranges(total, grain_of(bytes_, total), threads, [&](Int begin, Int end) {
    for (Int i = begin; i < end; ++i) {
      const Int column = i % across * wide, rest = i / across;
      const Int row = rest % down * high, number = rest / down;
      char* const out =
          target + offset_at(to, number) + row * plane.to_row + column * plane.to_column;
      const char* const in =
          source + offset_at(from, number) + row * plane.from_row + column * plane.from_column;
      const Int height = std::min(high, plane.rows - row);
      const Int width = std::min(wide, plane.columns - column);
      if (tiles)
        transpose_block<T>(plane, out, in, height, width, stream);
      else
        copy_block<T>(plane, out, in, height, width);
    }
    stream_fence();
  });
}

void CopyPlan::run(void* target, const void* source, int threads, bool stream) const {
  if (bytes_ == 0) return;
  char* const out = static_cast<char*>(target) + to_shift_;
  const char* const in = static_cast<const char*>(source) + from_shift_;
  const int inner = to_.rank - 1;
  if (inner < 0) {
    std::memcpy(out, in, static_cast<std::size_t>(size_));
    return;
  }
  if (to_.strides[inner] == size_ && from_.strides[inner] == size_)
    return copy_rows(out, in, threads, stream);
  with_element(size_, [&](auto unit) {
    using T = decltype(unit);
    if (densest_ == inner)
      copy_strided<T>(out, in, threads, stream);
    else
      copy_plane<T>(out, in, threads, stream);
  });
}

void copy_steps(char* target, Int to_step, const char* source, Int from_step, Int count, int size) {
  with_element(size, [&](auto unit) {
    using T = decltype(unit);
    if (to_step == size && from_step != size && count >= kPacked)
      copy_packed<T>(StepPacker(from_step, size), target, source, from_step, count);
    else
      copy_run<T>(target, to_step, source, from_step, count);
  });
}

// Not inlined: GCC 12 then takes the writer's line for too short.
[[gnu::noinline]] void append_steps(LineWriter& writer, const char* source, Int step, Int count,
                                    int size) {
  alignas(64) char buffer[kBlock];
  if (step == 0) {  // one repeated element
    const Int per_block = std::min(kBlock / size, count);
    copy_steps(buffer, size, source, 0, per_block, size);
    for (Int at = 0; at < count; at += per_block)
      writer.append(buffer, std::min(per_block, count - at) * size);
    return;
  }
  const Int per_block = block_count(step, size);
  for (Int at = 0; at < count; at += per_block) {
    const Int chunk = std::min(per_block, count - at),
              next = std::min(per_block, count - at - chunk);
    copy_steps(buffer, size, source + at * step, step, chunk, size);
    writer.append(
        buffer, chunk * size,
        prefetcher_for(source + (at + chunk) * step, step, next, size, chunk * size / 64));
  }
}

void RunWriter::put(char* target, Int to_step, const char* source, Int from_step, Int bytes,
                    Int count, int size) {
  if (count <= 0) return;
  if (count == 1 || (from_step == bytes && to_step == bytes)) {
    put(target, source, count * bytes);
  } else if (bytes != size) {
    for (Int i = 0; i < count; ++i) put(target + i * to_step, source + i * from_step, bytes);
  } else if (stream_) {
    seek(target);
    append_steps(writer_, source, from_step, count, size);
  } else {
    copy_steps(target, to_step, source, from_step, count, size);
  }
}

namespace {

template <int N>
struct Bytes {
  typedef char Type __attribute__((vector_size(N), aligned(1), may_alias));
};

template <int N>
inline void move(char* target, const char* source) {
  using Type = typename Bytes<N>::Type;
  *reinterpret_cast<Type*>(target) = *reinterpret_cast<const Type*>(source);
}

// Of N bytes each.
template <int N>
void move_units(char* target, Int to_step, const char* source, Int from_step, Int count) {
  for (Int i = 0; i < count; ++i) move<N>(target + i * to_step, source + i * from_step);
}

// Of N to 2 N bytes each, by two moves, which may overlap.
template <int N>
void move_pairs(char* target, Int to_step, const char* source, Int from_step, Int bytes,
                Int count) {
  const Int last = bytes - N;
  for (Int i = 0; i < count; ++i, target += to_step, source += from_step) {
    move<N>(target, source);
    move<N>(target + last, source + last);
  }
}

}  // namespace

void copy_pieces(char* target, Int to_step, const char* source, Int from_step, Int bytes,
                 Int count) {
  switch (bytes) {
    case 0:
      return;
    case 1:
      return move_units<1>(target, to_step, source, from_step, count);
    case 2:
      return move_units<2>(target, to_step, source, from_step, count);
    case 4:
      return move_units<4>(target, to_step, source, from_step, count);
    case 8:
      return move_units<8>(target, to_step, source, from_step, count);
    case 16:
      return move_units<16>(target, to_step, source, from_step, count);
    case 32:
      return move_units<32>(target, to_step, source, from_step, count);
    case 64:
      return move_units<64>(target, to_step, source, from_step, count);
    default:
      break;
  }
  if (bytes < 4) return move_pairs<2>(target, to_step, source, from_step, bytes, count);
  if (bytes < 8) return move_pairs<4>(target, to_step, source, from_step, bytes, count);
  if (bytes < 16) return move_pairs<8>(target, to_step, source, from_step, bytes, count);
  if (bytes < 32) return move_pairs<16>(target, to_step, source, from_step, bytes, count);
  if (bytes < 64) return move_pairs<32>(target, to_step, source, from_step, bytes, count);
  if (bytes <= 128) return move_pairs<64>(target, to_step, source, from_step, bytes, count);
  for (Int i = 0; i < count; ++i, target += to_step, source += from_step) {
    if (bytes > 4096) {  // the cost of a call is negligible
      std::memcpy(target, source, static_cast<std::size_t>(bytes));
      continue;
    }
    for (Int at = 0; at < bytes - 64; at += 64) move<64>(target + at, source + at);
    move<64>(target + bytes - 64, source + bytes - 64);
  }
}

void copy_elements(const Layout& target_layout, void* target, const Layout& source_layout,
                   const void* source, int element_size, int threads) {
  const CopyPlan plan(target_layout, source_layout, element_size);
  plan.run(target, source, threads, plan.bytes() >= kStreamBytes);
}

}  // namespace anydml
