// The loops that write updates, for one element type and reduction; see Writer. Included by the
// files that instantiate them, which are several to keep each one's compilation short.
#pragma once

#include "scatter_combine.hpp"
#include "scatter_parts.hpp"

namespace anydml::scatter {

// Writes updates one after the other, even where the compiler could batch them: later ones may meet
// earlier ones. With kRuns an element that takes several in a row stays in a register: the way
// through memory takes three times as long. Where runs are short that costs wrong guesses instead.
template <Reduction kReduction, class T, bool kRuns>
class Element {
 public:
  explicit Element(char* target) : target_(target) {}
  void take(Int offset, const char* update) {
    char* const address = target_ + offset;
    if constexpr (kReduction == Reduction::none) {
      store(address, load<T>(update));
#if defined(ANYDML_F16C)
    } else if constexpr (is_half_sum<T>(kReduction)) {
      if (!kRuns || address != last_) half_ = load_half(address);
      last_ = address;
      const __m128i sum = half_sum<kReduction>(half_, load_half(update));
      half_ = _mm_cvtph_ps(sum);
      store_half(address, sum);
#endif
    } else if constexpr (kRuns) {
      if (address != last_) value_ = load<T>(address);
      last_ = address;
      value_ = combined<kReduction, T>(value_, load<T>(update));
      store(address, value_);
    } else {
      store(address, combined<kReduction, T>(load<T>(address), load<T>(update)));
    }
  }

 private:
  char* target_;
  char* last_ = nullptr;
  T value_{};
#if defined(ANYDML_F16C)
  __m128 half_ = _mm_setzero_ps();
#endif
};

// True when at least three of four go where the one before went.
template <class Place>
inline bool has_runs(const Place* places, Int count) {
  Int changes = 0;
  for (Int i = 1; i < count; ++i) changes += places[i] != places[i - 1];
  return changes * 4 < count;
}

template <Reduction kReduction, class T, bool kRuns>
void scatter_rows(char* target, const Int* offsets, const char* updates, Int row_stride, Int stride,
                  Int rows, Int columns) {
  const Int size = static_cast<Int>(sizeof(T));
  Element<kReduction, T, kRuns> element(target);
  for (Int row = 0; row < rows; ++row) {
    const char* const from = updates + row * row_stride;
    if (stride == size) {
      for (Int i = 0; i < columns; ++i) element.take(offsets[i], from + i * size);
    } else {
      for (Int i = 0; i < columns; ++i) element.take(offsets[i], from + i * stride);
    }
    offsets += columns;
  }
}

template <Reduction kReduction, class T>
void scatter_updates(char* target, const Int* offsets, const char* updates, Int row_stride,
                     Int stride, Int rows, Int columns) {
  if (kReduction != Reduction::none && has_runs(offsets, rows * columns))
    scatter_rows<kReduction, T, true>(target, offsets, updates, row_stride, stride, rows, columns);
  else
    scatter_rows<kReduction, T, false>(target, offsets, updates, row_stride, stride, rows, columns);
}

template <Reduction kReduction, class T, bool kRuns>
void scatter_group(char* block, const uint16_t* locals, const char* values, Int count) {
  const Int size = static_cast<Int>(sizeof(T));
  Element<kReduction, T, kRuns> element(block);
  for (Int i = 0; i < count; ++i) element.take(locals[i] * size, values + i * size);
}

template <Reduction kReduction, class T>
void scatter_block(char* block, const uint16_t* locals, const char* values, Int count) {
  if (kReduction != Reduction::none && has_runs(locals, count))
    scatter_group<kReduction, T, true>(block, locals, values, count);
  else
    scatter_group<kReduction, T, false>(block, locals, values, count);
}

template <Reduction kReduction, class T>
void combine_row(char* __restrict target, Int target_stride, const char* __restrict updates,
                 Int stride, Int count) {
  const Int size = static_cast<Int>(sizeof(T));
  if (target_stride == size && stride == size) {
    Int i = 0;
#if defined(ANYDML_F16C)
    if constexpr (is_half_sum<T>(kReduction)) {
      for (; i + 8 <= count; i += 8) {
        const __m256 a = _mm256_cvtph_ps(load<__m128i>(target + i * size));
        const __m256 b = _mm256_cvtph_ps(load<__m128i>(updates + i * size));
        store(target + i * size, _mm256_cvtps_ph(kReduction == Reduction::add ? a + b : a * b,
                                                 _MM_FROUND_TO_NEAREST_INT));
      }
    }
#endif
    for (; i < count; ++i)
      store(target + i * size,
            combined<kReduction, T>(load<T>(target + i * size), load<T>(updates + i * size)));
  } else {
    for (Int i = 0; i < count; ++i)
      store(target + i * target_stride, combined<kReduction, T>(load<T>(target + i * target_stride),
                                                                load<T>(updates + i * stride)));
  }
}

template <Reduction kReduction, class T>
constexpr Writer kWriter = {scatter_updates<kReduction, T>, scatter_block<kReduction, T>,
                            combine_row<kReduction, T>};

}  // namespace anydml::scatter
