// The output is written in order, row by row; a row is a few runs of the input's.
//
// Dimensions that are not padded are fused with their neighbours: the innermost ones into the block
// of bytes that moves as one. Along a padded dimension the places in the input form runs:
// ascending, descending, one repeated place, or none, where the value is. They are computed while
// the row is written, so that neither short rows nor long paddings cost memory. Large outputs go
// past the cache.
//
// Short rows of a few runs are written many at a time, run by run, which shares the cost of finding
// a run, or by vectors in which a row's elements have their order; those that go past the cache in
// a block of the nearest one, whose places of the value are filled once.
#include <algorithm>
#include <numeric>
#include <optional>

#include "moving/cpu/repeat_rows.hpp"
#include "moving/cpu/row_shuffle.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

constexpr Int kNowhere = -1;            // where the value is
constexpr Int kForever = Int{1} << 62;  // longer than any row
constexpr Int kPiece = Int{1} << 16;    // blocks that a thread takes of a long row
constexpr Int kShortRow = RowShuffle::kMaxBytes;
constexpr Int kShuffledRow = 256;   // bytes of a row of bytes, whose vectors are short
constexpr Int kRepeatedRow = 1024;  // the same, if the repeated part is shorter than a vector
constexpr Int kMaxRuns = 32;        // of a short row that is written run by run
constexpr Int kMaxShuffledRuns = 256;
constexpr Int kRowsBytes = 8192;  // of short rows that are written at a time
constexpr Int kColumns = 8;       // of several short rows that are written one by one
constexpr Int kMinCycle = 17,
              kMaxCycle = 128;                  // bytes of a period of a short row that repeats it
constexpr Int kMinShuffleBytes = Int{1} << 19;  // bytes that are worth several rows at a time

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
    // The remainder of the innermost dimension, if it moves as one block.
    if (rank_ > 0 && unpadded(inner()) && inner().to_step == size_ && inner().from_step == size_) {
      block_ = inner().size * size_;
      --rank_;
    }
    if (rank_ == 0) dimensions_[rank_++] = {1, 1, 0, block_, block_};
  }

  void run(int threads) const {
    const Int row = inner().size, rows = total_ * size_ / block_ / row;
    if (rank_ > 1 && row * block_ <= kShortRow && inner().to_step == block_) {
      const ShortRows short_rows(*this);
      if (short_rows.apply()) return run_short(short_rows, rows, threads);
    }
    const Int pieces = (row + kPiece - 1) / kPiece, all = rows * pieces;
    const bool stream = total_ * size_ >= kStreamBytes && packed();
    const Int piece_bytes = std::max<Int>(1, total_ * size_ / all);
    parallel_ranges(all, std::max<Int>(1, kCopyGrain / piece_bytes), threads,
                    [&](Int begin, Int end) {
                      RunWriter output(stream);
                      write(begin, end, pieces, output);
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

  // Bytes into a period with which a row of a padding that wraps begins.
  Int first_byte() const {
    const Int before = inner().start % inner().from_size;
    return before == 0 ? 0 : (inner().from_size - before) * block_;
  }

  // The runs of a row, of so few bytes that many rows are written at a time.
  class ShortRows {
   public:
    explicit ShortRows(const Padding& padding)
        : padding_(padding),
          row_(padding.inner().size * padding.block_),
          from_row_(padding.inner().from_size * padding.block_) {
      const Dimension& d = padding.inner();
      const bool packed = d.from_step == padding.block_;
      if (packed && padding.mode_ == PaddingMode::wrap && from_row_ >= kMinCycle &&
          from_row_ <= kMaxCycle && d.start == 0 && row_ % from_row_ == 0) {
        cycle_.emplace(from_row_, 0);
        return;
      }
      for (Int at = 0; at < d.size;) {
        if (count_ == kMaxShuffledRuns) {
          count_ = 0;
          return;
        }
        Run run = run_from(padding.mode_, at - d.start, d.from_size);
        run.length = std::min(run.length, d.size - at);
        runs_[count_++] = run;
        at += run.length;
      }
      if (padding.mode_ == PaddingMode::constant)
        copy_steps(values_, padding.size_, padding.value_, 0, row_ / padding.size_,
                   static_cast<int>(padding.size_));
      else if (packed) {
        if (row_ < 64 && padding.total_ * padding.size_ >= kMinShuffleBytes)
          rows_per_shuffle_ = choose_rows_per_shuffle();
        if (rows_per_shuffle_ == 0 &&
            (padding.size_ > 1 || row_ <= (from_row_ <= 16 ? kRepeatedRow : kShuffledRow)))
          rows_per_shuffle_ = shuffle(1) ? 1 : 0;
      }
      if (count_ > kMaxRuns && rows_per_shuffle_ == 0) count_ = 0;
    }

    bool apply() const { return count_ > 0 || cycle_; }
    Int bytes() const { return row_; }

    // `count` rows of the value only.
    void put_values(char* target, Int step, Int count) const {
      copy_pieces(target, step, values_, 0, row_, count);
    }

    // `count` rows; the value is already written if `filled`. After them `more` rows of the source
    // may be read.
    void put(char* target, Int to_step, const char* source, Int from_step, Int count, Int more,
             bool filled) const {
      if (cycle_) return cycle_->run(target, to_step, source, from_step, row_, count);
      if (rows_per_shuffle_ == 1)
        return shuffle_.run(target, to_step, source, from_step, count, more);
      if (rows_per_shuffle_ > 1 && to_step == row_ && from_step == from_row_) {
        const Int all = count / rows_per_shuffle_, rows = all * rows_per_shuffle_;
        shuffle_.run(target, rows_per_shuffle_ * row_, source, rows_per_shuffle_ * from_row_, all,
                     (count - rows + more) / rows_per_shuffle_);
        target += rows * row_;
        source += rows * from_row_;
        count -= rows;
      }
      const Int block = padding_.block_, step = padding_.inner().from_step;
      for (Int i = 0; i < count_; ++i) {
        const Run& run = runs_[i];
        const Int bytes = run.length * block;
        if (run.place == kNowhere) {
          if (!filled) copy_pieces(target, to_step, values_, 0, bytes, count);
        } else if (run.length == 1 || run.step * step == block) {
          copy_pieces(target, to_step, source + run.place * step, from_step, bytes, count);
        } else if (run.length > kColumns && block == padding_.size_) {
          for (Int n = 0; n < count; ++n)
            copy_steps(target + n * to_step, block, source + n * from_step + run.place * step,
                       run.step * step, run.length, static_cast<int>(block));
        } else {
          for (Int n = 0; n < run.length; ++n)
            copy_pieces(target + n * block, to_step, source + (run.place + n * run.step) * step,
                        from_step, block, count);
        }
        target += bytes;
      }
    }

   private:
    // Prepares the shuffle for this many packed rows of the input.
    bool shuffle(Int rows) {
      const Int block = padding_.block_;
      shuffle_.begin(rows * row_, rows * from_row_, padding_.size_);
      Int to = 0;
      for (Int row = 0; row < rows; ++row)
        for (int i = 0; i < count_; ++i)
          for (Int n = 0; n < runs_[i].length; ++n) {
            const Int from = row * from_row_ + (runs_[i].place + n * runs_[i].step) * block;
            for (Int at = 0; at < block; at += shuffle_.unit(), to += shuffle_.unit())
              shuffle_.put(to, from + at);
          }
      return shuffle_.finish();
    }

    // The number of rows, shorter than a vector, that together fill whole vectors or nearly so; 0
    // if shuffles do not apply.
    Int choose_rows_per_shuffle() {
      const Int rows_per_line = 64 / std::gcd(row_, Int{64}),
                min_rows = (64 + from_row_ - 1) / from_row_;
      const Int rows = std::min((min_rows + rows_per_line - 1) / rows_per_line * rows_per_line,
                                RowShuffle::kMaxBytes / row_);
      // If rows come in short series, they are written one by one.
      if (padding_.dimensions_[padding_.rank_ - 2].from_size < 4 * rows) return 0;
      return shuffle(rows) ? rows : 0;
    }

    const Padding& padding_;
    Int row_, from_row_;
    int count_ = 0;
    Int rows_per_shuffle_ = 0;  // rows that are shuffled at a time
    RowShuffle shuffle_;
    std::optional<RepeatedRows> cycle_;
    Run runs_[kMaxShuffledRuns];
    alignas(64) char values_[kShortRow];
  };

  void run_short(const ShortRows& short_rows, Int rows, int threads) const {
    const bool stream = total_ * size_ >= kStreamBytes && packed();
    const Int grain = std::max<Int>(1, kCopyGrain / short_rows.bytes());
    parallel_ranges(rows, grain, threads, [&](Int begin, Int end) {
      RunWriter output(stream);
      write_short(short_rows, begin, end, output);
    });
  }

  // Rows [begin, end).
  void write_short(const ShortRows& short_rows, Int begin, Int end, RunWriter& output) const {
    alignas(64) char block[kRowsBytes];
    const Int row = short_rows.bytes(), max_rows = kRowsBytes / row;
    const bool stream = output.streams(), filled = stream && mode_ == PaddingMode::constant;
    if (filled) short_rows.put_values(block, row, max_rows);
    const Dimension& d = dimensions_[rank_ - 2];
    const Int from_row = inner().from_size * block_;
    Int places[kMaxRank], rest = begin / d.size, at = begin % d.size, held = 0;
    for (int n = rank_ - 3; n >= 0; --n) {
      places[n] = rest % dimensions_[n].size;
      rest /= dimensions_[n].size;
    }
    for (Int i = begin; i < end;) {
      const Offsets offsets = offsets_of(places, rank_ - 2);
      const Run run = run_from(mode_, at - d.start, d.from_size);
      const Int count = std::min({run.length, d.size - at, end - i, max_rows - held});
      char* const target = stream ? block + held * row : to_ + offsets.to + at * d.to_step;
      const Int step = stream ? row : d.to_step;
      const char* next = nullptr;
      if (offsets.nowhere || run.place == kNowhere) {
        short_rows.put_values(target, step, count);
      } else {
        const char* const from = from_ + offsets.from + run.place * d.from_step;
        short_rows.put(target, step, from, run.step * d.from_step, count,
                       run.step > 0 ? std::min(run.length, d.size - at) - count : 0, filled);
        next = from + (run.step > 0 ? count : -max_rows) * d.from_step;
      }
      i += count;
      at += count;
      held += stream ? count : 0;
      if (stream && (held == max_rows || i == end)) {
        // Most rows continue where these end.
        const bool rows_packed = next != nullptr && d.from_step == from_row;
        output.put(
            to_ + (i - held) * row, block, held * row,
            rows_packed ? Prefetcher(next, max_rows * from_row, held * row / 64) : Prefetcher());
        held = 0;
      }
      if (at < d.size) continue;
      at = 0;
      for (int n = rank_ - 3; n >= 0 && ++places[n] == dimensions_[n].size; --n) places[n] = 0;
    }
  }

  // The byte offset of a place in the outermost dimensions.
  struct Offsets {
    Int to = 0, from = 0;
    bool nowhere = false;
  };

  Offsets offsets_of(const Int* places, int rank) const {
    Offsets offsets;
    for (int n = 0; n < rank; ++n) {
      const Dimension& d = dimensions_[n];
      const Int place = run_from(mode_, places[n] - d.start, d.from_size).place;
      offsets.nowhere = offsets.nowhere || place == kNowhere;
      offsets.to += places[n] * d.to_step;
      offsets.from += place * d.from_step;
    }
    return offsets;
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
  void write(Int begin, Int end, Int pieces, RunWriter& output) const {
    const Int row = inner().size;
    Int piece = begin % pieces;
    Int places[kMaxRank], rest = begin / pieces;
    for (int n = rank_ - 2; n >= 0; --n) {
      places[n] = rest % dimensions_[n].size;
      rest /= dimensions_[n].size;
    }
    for (Int i = begin; i < end; ++i) {
      const Offsets at = offsets_of(places, rank_ - 1);
      const Int first = piece * kPiece, last = std::min(row, first + kPiece);
      write_row(to_ + at.to, at.nowhere ? nullptr : from_ + at.from, first, last, output);
      if (++piece < pieces) continue;
      piece = 0;
      for (int n = rank_ - 2; n >= 0 && ++places[n] == dimensions_[n].size; --n) places[n] = 0;
    }
  }

  void write_row(char* to, const char* from, Int begin, Int end, RunWriter& output) const {
    const Dimension& d = inner();
    if (mode_ == PaddingMode::wrap && d.to_step == block_ &&
        d.from_size * block_ <= RepeatedRows::kMaxPeriod && end - begin > 2 * d.from_size)
      return write_cycle(to, from, begin, end, output);
    for (Int at = begin; at < end;) {
      Run run =
          from == nullptr ? Run{kNowhere, 0, kForever} : run_from(mode_, at - d.start, d.from_size);
      run.length = std::min(run.length, end - at);
      char* const target = to + at * d.to_step;
      if (run.place == kNowhere)
        put_value(target, run.length, output);
      else
        output.put(target, d.to_step, from + run.place * d.from_step, run.step * d.from_step,
                   block_, run.length, static_cast<int>(size_));
      at += run.length;
    }
  }

  // A row of many short periods.
  void write_cycle(char* to, const char* from, Int begin, Int end, RunWriter& output) const {
    const Dimension& d = inner();
    char period[RepeatedRows::kMaxPeriod];
    if (d.from_step != block_) {
      if (block_ == size_)
        copy_steps(period, block_, from, d.from_step, d.from_size, static_cast<int>(size_));
      else
        copy_pieces(period, block_, from, d.from_step, block_, d.from_size);
      from = period;
    }
    const Int first = (begin % d.from_size * block_ + first_byte()) % (d.from_size * block_);
    RepeatedRows(d.from_size * block_, first)
        .run(to + begin * block_, output, from, (end - begin) * block_);
  }

  void put_value(char* target, Int count, RunWriter& output) const {
    const Int to_step = inner().to_step, elements_per_block = block_ / size_;
    const bool packed = to_step == block_;
    const Int rows = packed ? 1 : count,
              elements = packed ? count * elements_per_block : elements_per_block;
    for (Int i = 0; i < rows; ++i)
      output.put(target + i * to_step, size_, value_, 0, size_, elements, static_cast<int>(size_));
  }

  PaddingMode mode_;
  const char* value_;
  const char* from_;
  char* to_;
  Int size_, block_, total_;  // of an element; of what moves as one; elements of the output
  int rank_ = 0;
  Dimension dimensions_[kMaxRank];
};

}  // namespace

void PaddingPlan::run(const void* from, void* to, int threads) const {
  if (output.layout.count() == 0) return;
  Padding(*this, from, to).run(threads);
}

}  // namespace anydml
