// Each line along the axis is its first elements in reverse order, followed by the others
// unchanged.
//
// Dimensions behind the axis that share their lengths move as one block. Short rows go by whole
// vectors (reverse_rows.hpp). Where the lengths differ from element to element of the output's
// innermost dimension, rows of the output are put together from elements of several rows of the
// input, in strips that keep these rows in a cache. Large outputs go past it. Each length is read
// once for each piece that it decides.
#include <algorithm>

#include "images/cpu/reverse_rows.hpp"
#include "runtime/cpu/read_once.hpp"
#include "runtime/cpu/rows.hpp"
#include "runtime/cpu/with_type.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

constexpr Int kPiece = Int{1} << 16;       // blocks of a line in one chunk
constexpr Int kRows = 4096;                // bytes of reversed rows that are written at a time
constexpr Int kMinRows = 4;                // with fewer rows, all are at an end of the memory
constexpr Int kStrip = 2048;               // bytes of a row of a strip, at most
constexpr Int kStripBytes = Int{1} << 18;  // of a strip, which stays in a cache

class Reverse {
 public:
  Reverse(const ReversePlan& plan, const void* input, const void* lengths, void* output)
      : from_(static_cast<const char*>(input)),
        lengths_(static_cast<const char*>(lengths)),
        to_(static_cast<char*>(output)),
        lengths_type_(plan.lengths.type),
        size_(plan.input.element_size),
        block_(plan.input.element_size),
        axis_(plan.input.layout.sizes[plan.axis]),
        to_step_(plan.output.layout.strides[plan.axis]),
        from_step_(plan.input.layout.strides[plan.axis]) {
    for (int i = 0; i < plan.input.layout.rank; ++i) {
      if (i == plan.axis) continue;
      const Int size = plan.input.layout.sizes[i];
      to_lines_.push(size, plan.output.layout.strides[i]);
      from_lines_.push(size, plan.input.layout.strides[i]);
      length_lines_.push(size, plan.lengths.layout.strides[i]);
    }
    total_ = to_lines_.count() * axis_ * size_;
    Layout* all[3] = {&to_lines_, &from_lines_, &length_lines_};
    collapse(all);
    const int last = to_lines_.rank - 1;
    if (last < 0 || to_lines_.strides[last] != size_ || from_lines_.strides[last] != size_) return;
    if (length_lines_.strides[last] != 0) {
      strips_ = to_step_ != size_;
      return;
    }
    block_ = to_lines_.sizes[last] * size_;
    for (Layout* lines : all) --lines->rank;
  }

  void run(int threads) const {
    if (strips_) return run_strips(threads);
#if defined(__SSE4_2__)
    if (block_ == size_ && size_ <= 8 && to_step_ == size_ && from_step_ == size_ &&
        axis_ * size_ <= kMaxReversedBytes && to_lines_.count() >= kMinRows) {
      with_element(static_cast<int>(size_), [&]<class T>(T) {
        if constexpr (sizeof(T) <= 8) run_rows<std::make_signed_t<T>>(threads);
      });
      return;
    }
#endif
    const Layout* const lines[3] = {&to_lines_, &from_lines_, &length_lines_};
    for_rows(
        lines, to_lines_.rank, axis_, kPiece, total_, threads, total_ >= kStreamBytes && packed(),
        [&](RunWriter& output, const Int(&offset)[3], Int begin, Int end) {
          put_line(to_ + offset[0], from_ + offset[1], length_at(offset[2]), begin, end, output);
        });
  }

 private:
  Int length_at(Int offset) const {
    return std::clamp<Int>(read_length(lengths_ + offset), 0, axis_);
  }

  Int read_length(const char* at) const {
    return with_index(lengths_type_, [&]<class Index>(Index) {
      const Index length = read_once<Index>(at);
      if constexpr (sizeof(Index) == 8 && std::is_unsigned_v<Index>)
        return length > static_cast<Index>(axis_) ? axis_ : static_cast<Int>(length);
      else
        return Int{length};
    });
  }

  // Whether consecutive lines make up the output's memory.
  bool packed() const {
    if (to_step_ != block_) return false;
    Int step = block_ * axis_;
    for (int i = to_lines_.rank - 1; i >= 0; --i) {
      if (to_lines_.strides[i] != step) return false;
      step *= to_lines_.sizes[i];
    }
    return true;
  }

  // Positions [begin, end) of a line.
  void put_line(char* to, const char* from, Int length, Int begin, Int end,
                RunWriter& output) const {
    const Int reversed_end = std::clamp(length, begin, end);
    const auto put = [&](Int at, Int from_at, Int step, Int count) {
      output.put(to + at * to_step_, to_step_, from + from_at * from_step_, step, block_, count,
                 static_cast<int>(size_));
    };
    put(begin, length - 1 - begin, -from_step_, reversed_end - begin);
    put(reversed_end, reversed_end, from_step_, end - reversed_end);
  }

#if defined(__SSE4_2__)
  // What lies between the elements of the input, and they.
  Extent readable() const {
    Extent extent{from_, from_ + axis_ * size_};
    for (int i = 0; i < from_lines_.rank; ++i) {
      const Int reach = (from_lines_.sizes[i] - 1) * from_lines_.strides[i];
      (reach < 0 ? extent.begin : extent.end) += reach;
    }
    return extent;
  }

  // Short rows.
  template <class T>
  void run_rows(int threads) const {
    const Int bytes = axis_ * size_, inner = to_lines_.rank - 1, row = to_lines_.sizes[inner];
    const bool one_behind_other = packed(), stream = one_behind_other && total_ >= kStreamBytes;
    const ReversedRows<T> reversed_rows(axis_, readable());
    const Int grain = std::max<Int>(1, kCopyGrain / bytes);
    parallel_ranges(to_lines_.count(), grain, threads, [&](Int begin, Int end) {
      const Layout* const walked[3] = {&to_lines_, &from_lines_, &length_lines_};
      const auto step = [&](int which) { return walked[which]->strides[inner]; };
      Walker<3> at(walked, to_lines_.rank - 1);
      at.start(begin / row);
      alignas(64) char buffer[std::max(kRows, kMaxReversedBytes) + 64];
      RunWriter output(stream);
      const char* const behind = one_behind_other ? to_ + end * bytes : nullptr;
      const Int max_rows = stream ? std::max<Int>(1, kRows / bytes) : row;
      Int first = begin % row;
      for (Int i = begin; i < end;) {
        const Int chunk = std::min({row - first, end - i, max_rows});
        const char* const from = from_ + at.offset[1] + first * step(1);
        const char* const lengths = lengths_ + at.offset[2] + first * step(2);
        const auto length = [&](Int n) { return length_at(lengths + n * step(2) - lengths_); };
        if (stream) {
          reversed_rows.put(buffer, buffer + sizeof(buffer), bytes, from, step(1), chunk, length);
          output.put(to_ + i * bytes, buffer, chunk * bytes);
        } else {
          reversed_rows.put(to_ + at.offset[0] + first * step(0), behind, step(0), from, step(1),
                            chunk, length);
        }
        i += chunk;
        first += chunk;
        if (first < row) continue;
        first = 0;
        at.next();
      }
    });
  }
#endif

  // Rows of neighbouring elements, each with a length of its own.
  void run_strips(int threads) const {
    const int last = to_lines_.rank - 1;
    const Int columns = std::clamp<Int>(kStripBytes / axis_, 128, kStrip) / size_;
    const Layout* const lines[3] = {&to_lines_, &from_lines_, &length_lines_};
    for_rows(lines, last, to_lines_.sizes[last], columns, total_, threads, total_ >= kStreamBytes,
             [&](RunWriter& output, const Int(&offset)[3], Int begin, Int end) {
               with_element(static_cast<int>(size_), [&](auto unit) {
                 put_strip<decltype(unit)>(
                     to_ + offset[0] + begin * size_, from_ + offset[1] + begin * size_,
                     offset[2] + begin * length_lines_.strides[last], end - begin, output);
               });
             });
  }

  template <class T>
  void put_strip(char* to, const char* from, Int lengths, Int count, RunWriter& output) const {
    Int length[kStrip];
    const char* next[kStrip];  // the source of each column's reversed part
    Int shortest = axis_, longest = 0;
    for (Int j = 0; j < count; ++j) {
      length[j] = length_at(lengths + j * length_lines_.strides[to_lines_.rank - 1]);
      next[j] = from + (length[j] - 1) * from_step_ + j * Int{sizeof(T)};
      shortest = std::min(shortest, length[j]);
      longest = std::max(longest, length[j]);
    }
    alignas(64) T buffer[kStrip / sizeof(T)];
    const Int bytes = count * Int{sizeof(T)};
    for (Int i = 0; i < axis_; ++i, to += to_step_) {
      const char* row = reinterpret_cast<const char*>(buffer);
      if (i >= longest) {
        row = from + i * from_step_;
      } else if (shortest == longest) {
        row = from + (longest - 1 - i) * from_step_;
      } else {
        const char* const straight = from + i * from_step_;
        for (Int j = 0; j < count; ++j) {
          const char* const reversed_from = next[j];
          next[j] = reversed_from - from_step_;
          buffer[j] = load<T>(i < length[j] ? reversed_from : straight + j * Int{sizeof(T)});
        }
      }
      output.put(to, row, bytes);
    }
  }

  const char* from_;
  const char* lengths_;
  char* to_;
  DataType lengths_type_;
  Int size_, block_;  // of an element; of what moves as one
  Int axis_, to_step_, from_step_;
  Int total_;  // bytes of the output
  bool strips_ = false;
  Layout to_lines_, from_lines_, length_lines_;
};

}  // namespace

void ReversePlan::run(const void* from, const void* counts, void* to, int threads) const {
  if (output.layout.count() == 0) return;
  Reverse(*this, from, counts, to).run(threads);
}

}  // namespace anydml
