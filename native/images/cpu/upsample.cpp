// Pieces of a row are made in the nearest cache and written to every row of the output that they
// are in.
//
// Nearest: an element again and again. Linear: rows of the input, as long as the output's, are kept
// in FLOAT32, two at a time, and each output row is made of them. Where elements lie along a row is
// computed once for each piece of columns. Large outputs go past the cache.
#include <algorithm>

#include "elements/cpu/cast.hpp"
#include "elements/cpu/convert.hpp"
#include "runtime/cpu/copy.hpp"
#include "runtime/cpu/threads.hpp"
#include "runtime/plans.hpp"

namespace anydml {
namespace {

constexpr Int kColumns = kMapBlock;  // elements of a piece of an output row

// The elements between which the middle of an output element lies, and its distance from the first.
struct Between {
  Int first;
  float part;  // 0: it is the first one
};

Between between(Int at, Int scale, Int size) {
  const Int middle = 2 * at + 1 - scale;  // in units of half an output element
  if (middle <= 0) return {0, 0};
  const Int first = middle / (2 * scale);
  if (first >= size - 1) return {size - 1, 0};
  const double rest = static_cast<double>(middle % (2 * scale));
  return {first, static_cast<float>(rest / static_cast<double>(2 * scale))};
}

class Upsample {
 public:
  Upsample(const UpsamplePlan& plan, const void* input, void* output)
      : plan_(plan),
        from_(static_cast<const char*>(input)),
        to_(static_cast<char*>(output)),
        size_(plan.input.element_size),
        outer_(plan.input.layout.rank - 2),
        high_(plan.input.layout.sizes[outer_]),
        wide_(plan.input.layout.sizes[outer_ + 1]),
        from_row_(plan.input.layout.strides[outer_]),
        from_step_(plan.input.layout.strides[outer_ + 1]),
        to_row_(plan.output.layout.strides[outer_]),
        to_step_(plan.output.layout.strides[outer_ + 1]),
        row_(plan.output.layout.sizes[outer_ + 1]),
        to_float_(DataType::float16, DataType::float32),
        from_float_(DataType::float32, DataType::float16) {
    const Int total = plan.output.layout.count();
    stream_ = total * size_ >= kStreamBytes && to_step_ == size_;
    images_ = total / (row_ * plan.output.layout.sizes[outer_]);
  }

  void run(int threads) const {
    // Nearest: one row of the input at a time; linear: one image.
    const Int pieces = (row_ + kColumns - 1) / kColumns;
    if (stream_ && pieces == 1 && plan_.output.layout.packed(size_)) return run_packed(threads);
    const Int rows = plan_.linear ? 1 : high_, output_rows = high_ * plan_.height / rows;
    const Int bytes = std::max<Int>(1, std::min(row_, kColumns) * size_ * output_rows);
    parallel_ranges(images_ * rows * pieces, std::max<Int>(1, kCopyGrain / bytes), threads,
                    [&](Int begin, Int end) {
                      for (Int i = begin; i < end; ++i) put(i / pieces, i % pieces, nullptr);
                      stream_fence();
                    });
  }

  // Short packed rows, written consecutively.
  void run_packed(int threads) const {
    const Int rows = plan_.linear ? 1 : high_,
              bytes_per_row = high_ * plan_.height / rows * row_ * size_;
    parallel_ranges(images_ * rows, std::max<Int>(1, kCopyGrain / bytes_per_row), threads,
                    [&](Int begin, Int end) {
                      LineWriter writer(to_ + begin * bytes_per_row);
                      for (Int i = begin; i < end; ++i) put(i, 0, &writer);
                      writer.finish();
                      stream_fence();
                    });
  }

 private:
  void put(Int which, Int piece, LineWriter* writer) const {
    const Int rows = plan_.linear ? 1 : high_, first = piece * kColumns;
    const Int count = std::min(kColumns, row_ - first);
    const Int image = which / rows, row = which % rows;
    const char* from = from_;
    char* to = to_ + first * to_step_;
    Int rest = image;
    for (int i = outer_ - 1; i >= 0; --i) {
      const Int size = plan_.input.layout.sizes[i], at = rest % size;
      from += at * plan_.input.layout.strides[i];
      to += at * plan_.output.layout.strides[i];
      rest /= size;
    }
    if (plan_.linear) return put_image(from, to, first, count, writer);
    with_element(static_cast<int>(size_), [&](auto unit) {
      repeat_row<decltype(unit)>(from + row * from_row_, to + row * plan_.height * to_row_, first,
                                 count, writer);
    });
  }

  void write(char* to, const void* results, Int count, LineWriter* writer) const {
    const char* const source = static_cast<const char*>(results);
    if (writer != nullptr)
      writer->append(source, count * size_);
    else if (stream_)
      LineWriter(to).append(source, count * size_);
    else if (to_step_ == size_)
      copy_short(to, source, count * size_);
    else
      copy_steps(to, to_step_, source, size_, count, static_cast<int>(size_));
  }

  // Columns [first, first + count) of all output rows of a row of the input.
  template <class T>
  void repeat_row(const char* from, char* to, Int first, Int count, LineWriter* writer) const {
    alignas(64) T results[kColumns + 4];
    const Int scale = plan_.width;
    Int at = first / scale, within = first % scale, done = 0;
    const char* source = from + at * from_step_;
    const auto repeat_value = [&](Int limit) {  // of one element
      const T value = load<T>(source);
      const Int last = std::min(done + limit, count);
      for (; done < last; ++done) results[done] = value;
      source += from_step_;
    };
    if (within > 0) repeat_value(scale - within);
    if (scale <= 4) {
      const Int full_repeats = (count - done) / scale;
      repeat<T>(results + done, source, full_repeats, static_cast<int>(scale));
      done += full_repeats * scale;
      source += full_repeats * from_step_;
    }
    while (done < count) repeat_value(scale);
    for (Int i = 0; i < plan_.height; ++i, to += to_row_) write(to, results, count, writer);
  }

  template <class T>
  void repeat(T* __restrict target, const char* __restrict source, Int count, int scale) const {
    const auto times = [&]<int N>(std::integral_constant<int, N>, Int step) {
      for (Int i = 0; i < count; ++i) {
        const T value = load<T>(source + i * step);
        for (int n = 0; n < N; ++n) target[i * N + n] = value;
      }
    };
    const auto any = [&](Int step) {
      if (scale == 1) return times(std::integral_constant<int, 1>{}, step);
      if (scale == 2) return times(std::integral_constant<int, 2>{}, step);
      if (scale == 3) return times(std::integral_constant<int, 3>{}, step);
      return times(std::integral_constant<int, 4>{}, step);
    };
    if (from_step_ == size_)
      any(Int{sizeof(T)});
    else
      any(from_step_);
  }

  // ---- linear

  struct Columns {
    Int begin, count;  // the input's elements that the piece is computed from
    int32_t first[kColumns];
    float part[kColumns];
  };

  // The same columns of every row of an image.
  void put_image(const char* from, char* to, Int first, Int count, LineWriter* writer) const {
    Columns columns;
    columns.begin = between(first, plan_.width, wide_).first;
    columns.count =
        std::min(wide_, between(first + count - 1, plan_.width, wide_).first + 2) - columns.begin;
    for (Int i = 0; i < count; ++i) {
      const Between place = between(first + i, plan_.width, wide_);
      columns.first[i] = static_cast<int32_t>(place.first - columns.begin);
      columns.part[i] = place.part;
    }
    alignas(64) float rows[2][kColumns];
    Int held[2] = {-1, -1};
    const auto row = [&](Int at) {
      if (held[at % 2] != at) stretch(rows[at % 2], from + at * from_row_, columns, count);
      held[at % 2] = at;
      return rows[at % 2];
    };
    const Int all = high_ * plan_.height;
    alignas(64) float results[kColumns];
    alignas(64) char halves[kColumns * 2];
    for (Int i = 0; i < all; ++i, to += to_row_) {
      const Between place = between(i, plan_.height, high_);
      const float* const upper = row(place.first);
      if (place.part == 0)
        for (Int j = 0; j < count; ++j) results[j] = canonical(upper[j]);
      else
        mix(results, upper, row(place.first + 1), place.part, count);
      if (plan_.input.type != DataType::float16) {
        write(to, results, count, writer);
        continue;
      }
      from_float_.run(reinterpret_cast<const char*>(results), halves, count);
      write(to, halves, count, writer);
    }
  }

  static void mix(float* __restrict results, const float* __restrict a, const float* __restrict b,
                  float part, Int count) {
    const float rest = 1 - part;
    for (Int j = 0; j < count; ++j) results[j] = canonical(a[j] * rest + b[j] * part);
  }

  // A row of the input at the output's length, in FLOAT32.
  void stretch(float* __restrict target, const char* from, const Columns& columns,
               Int count) const {
    alignas(64) float numbers[kColumns + 2];
    alignas(64) char packed[(kColumns + 2) * 2];
    const char* source = from + columns.begin * from_step_;
    const int size = static_cast<int>(size_);
    if (plan_.input.type == DataType::float16) {
      copy_steps(packed, size_, source, from_step_, columns.count, size);
      // Limited by the block size of a map.
      const Int chunk = std::min(columns.count, kMapBlock);
      to_float_.run(packed, reinterpret_cast<char*>(numbers), chunk);
      if (chunk < columns.count)
        to_float_.run(packed + chunk * 2, reinterpret_cast<char*>(numbers + chunk),
                      columns.count - chunk);
    } else {
      copy_steps(reinterpret_cast<char*>(numbers), size_, source, from_step_, columns.count, size);
    }
    numbers[columns.count] = 0;  // is read after the last one, with weight 0
    for (Int j = 0; j < count; ++j) {
      const float part = columns.part[j], a = numbers[columns.first[j]];
      const float mixed = a * (1 - part) + numbers[columns.first[j] + 1] * part;
      target[j] = part == 0 ? a : mixed;
    }
  }

  const UpsamplePlan& plan_;
  const char* from_;
  char* to_;
  Int size_;
  int outer_;  // dimensions in front of the last two
  Int high_, wide_, from_row_, from_step_, to_row_, to_step_;
  Int row_;     // elements of an output row
  Int images_;  // of the dimensions in front
  bool stream_;
  CastMap to_float_, from_float_;
};

}  // namespace

void UpsamplePlan::run(const void* from, void* to, int threads) const {
  if (output.layout.count() == 0) return;
  Upsample(*this, from, to).run(threads);
}

}  // namespace anydml
