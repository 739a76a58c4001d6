// The output is written in order, row by row; a row is a few runs of the input's.
//
// Dimensions that are not padded are fused with their neighbours: the innermost ones into the block
// of bytes that moves as one. Along a padded dimension the places in the input form runs:
// ascending, descending, one place for ever, or none, where the value is. They are computed as the
// row goes, so that neither short rows nor long paddings cost memory. Large outputs go past the
// cache.
#include <algorithm>

#include "../plans.hpp"
#include "../runtime/copy.hpp"
#include "../runtime/threads.hpp"

namespace anydml {
namespace {

constexpr Int kNowhere = -1;            // where the value is
constexpr Int kForever = Int{1} << 62;  // longer than any row
constexpr Int kPiece = Int{1} << 16;    // blocks that a thread takes of a long row

// Consecutive places of a dimension, in blocks of the input.
struct Run {
  Int place, step, length;
};

// The run from a position on; the input begins at position 0.
Run run_from(PaddingMode mode, Int at, Int size) {
  if (at >= 0 && at < size) return {at, 1, size - at};
  if (mode == PaddingMode::constant) return {kNowhere, 0, at < 0 ? -at : kForever};
  if (mode == PaddingMode::edge) return at < 0 ? Run{0, 0, -at} : Run{size - 1, 0, kForever};
  if (size == 1) return {0, 0, at < 0 ? -at : kForever};
  const Int period = mode == PaddingMode::wrap         ? size
                     : mode == PaddingMode::reflection ? 2 * size - 2
                                                       : 2 * size;
  Int within = at % period;
  if (within < 0) within += period;
  if (mode == PaddingMode::wrap) return {within, 1, size - within};
  if (mode == PaddingMode::reflection)
    return within < size - 1 ? Run{within, 1, size - 1 - within}
                             : Run{period - within, -1, period - within};
  return within < size ? Run{within, 1, size - within}
                       : Run{period - 1 - within, -1, period - within};
}

struct Dimension {
  Int size, from_size, start, to_step, from_step;
};

class Padding {
 public:
  Padding(const PaddingPlan& plan, const void* input, void* output)
      : mode_(plan.mode),
        value_(reinterpret_cast<const char*>(plan.value)),
        from_(static_cast<const char*>(input)),
        to_(static_cast<char*>(output)),
        size_(plan.input.element_size),
        block_(plan.input.element_size) {
    const Layout &to = plan.output.layout, &from = plan.input.layout;
    total_ = to.count();
    for (int i = 0; i < to.rank; ++i)
      add({to.sizes[i], from.sizes[i], plan.starts[i], to.strides[i], from.strides[i]});
    // What is left of the innermost dimension, where it moves as one.
    if (rank_ > 0 && unpadded(inner()) && inner().to_step == size_ && inner().from_step == size_) {
      block_ = inner().size * size_;
      --rank_;
    }
    if (rank_ == 0) dimensions_[rank_++] = {1, 1, 0, block_, block_};
  }

  void run(int threads) const {
    const Int row = inner().size, rows = total_ * size_ / block_ / row;
    const Int pieces = (row + kPiece - 1) / kPiece, all = rows * pieces;
    const bool stream = total_ * size_ >= kStreamBytes && packed();
    const Int each = std::max<Int>(1, total_ * size_ / all);
    parallel_ranges(all, std::max<Int>(1, kCopyGrain / each), threads, [&](Int begin, Int end) {
      const Int first = begin % pieces * kPiece;
      if (stream) {
        LineWriter writer(to_ + (begin / pieces * row + first) * block_);
        write(begin, end, pieces, &writer);
      } else {
        write(begin, end, pieces, nullptr);
      }
      stream_fence();
    });
  }

 private:
  static bool unpadded(const Dimension& d) { return d.size == d.from_size; }
  const Dimension& inner() const { return dimensions_[rank_ - 1]; }

  void add(const Dimension& next) {
    if (next.size == 1 && unpadded(next)) return;
    if (rank_ > 0) {
      Dimension& last = dimensions_[rank_ - 1];
      // Whole rows of the next dimension: with all of them, a row is a place of the last one.
      if (unpadded(next) && unpadded(last) && last.to_step == next.to_step * next.size &&
          last.from_step == next.from_step * next.size) {
        last = {last.size * next.size, last.size * next.size, 0, next.to_step, next.from_step};
        return;
      }
    }
    dimensions_[rank_++] = next;
  }

  bool packed() const {
    Int step = block_;
    for (int i = rank_ - 1; i >= 0; --i) {
      if (dimensions_[i].to_step != step) return false;
      step *= dimensions_[i].size;
    }
    return true;
  }

  // Pieces [begin, end) of all rows.
  void write(Int begin, Int end, Int pieces, LineWriter* writer) const {
    const Int row = inner().size;
    Int piece = begin % pieces;
    Int places[kMaxRank + 1], rest = begin / pieces;
    for (int n = rank_ - 2; n >= 0; --n) {
      places[n] = rest % dimensions_[n].size;
      rest /= dimensions_[n].size;
    }
    for (Int i = begin; i < end; ++i) {
      Int to = 0, from = 0;
      bool nowhere = false;
      for (int n = 0; n < rank_ - 1; ++n) {
        const Dimension& d = dimensions_[n];
        const Int place = run_from(mode_, places[n] - d.start, d.from_size).place;
        nowhere = nowhere || place == kNowhere;
        to += places[n] * d.to_step;
        from += place * d.from_step;
      }
      const Int first = piece * kPiece, last = std::min(row, first + kPiece);
      write_row(to_ + to, nowhere ? nullptr : from_ + from, first, last, writer);
      if (++piece < pieces) continue;
      piece = 0;
      for (int n = rank_ - 2; n >= 0 && ++places[n] == dimensions_[n].size; --n) places[n] = 0;
    }
  }

  void write_row(char* to, const char* from, Int begin, Int end, LineWriter* writer) const {
    const Dimension& d = inner();
    for (Int at = begin; at < end;) {
      Run run =
          from == nullptr ? Run{kNowhere, 0, kForever} : run_from(mode_, at - d.start, d.from_size);
      run.length = std::min(run.length, end - at);
      char* const target = to + at * d.to_step;
      if (run.place == kNowhere)
        put_value(target, run.length, writer);
      else
        put(target, from + run.place * d.from_step, run.step * d.from_step, run.length, writer);
      at += run.length;
    }
  }

  void put(char* target, const char* source, Int step, Int count, LineWriter* writer) const {
    const Int to_step = inner().to_step;
    if (count == 1) {  // as most paddings are
      if (writer != nullptr)
        writer->append(source, block_);
      else
        copy_short(target, source, block_);
    } else if (step == block_ && (writer != nullptr || to_step == block_)) {
      if (writer != nullptr)
        writer->append(source, count * block_);
      else
        copy_short(target, source, count * block_);
    } else if (block_ == size_) {
      if (writer != nullptr)
        append_steps(*writer, source, step, count, static_cast<int>(size_));
      else
        copy_steps(target, to_step, source, step, count, static_cast<int>(size_));
    } else {
      for (Int i = 0; i < count; ++i, source += step, target += to_step) {
        if (writer != nullptr)
          writer->append(source, block_);
        else
          copy_short(target, source, block_);
      }
    }
  }

  void put_value(char* target, Int count, LineWriter* writer) const {
    const Int to_step = inner().to_step, each = block_ / size_;
    const int size = static_cast<int>(size_);
    if (count * each == 1) {
      if (writer != nullptr)
        writer->append(value_, size_);
      else
        copy_short(target, value_, size_);
      return;
    }
    if (writer != nullptr) return append_steps(*writer, value_, 0, count * each, size);
    if (to_step == block_) return copy_steps(target, size_, value_, 0, count * each, size);
    for (Int i = 0; i < count; ++i, target += to_step)
      copy_steps(target, size_, value_, 0, each, size);
  }

  PaddingMode mode_;
  const char* value_;
  const char* from_;
  char* to_;
  Int size_, block_, total_;  // of an element; of what moves as one; elements of the output
  int rank_ = 0;
  Dimension dimensions_[kMaxRank + 1];
};

}  // namespace

void PaddingPlan::run(const void* from, void* to, int threads) const {
  if (output.layout.count() == 0) return;
  Padding(*this, from, to).run(threads);
}

}  // namespace anydml
