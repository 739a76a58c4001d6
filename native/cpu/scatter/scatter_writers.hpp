// The loops that write updates, for one element type and reduction; see Writer. Included by the
// files that instantiate them, which are several to keep each one's compilation short.
#pragma once

#include <algorithm>

#include "scatter_combine.hpp"
#include "scatter_parts.hpp"

namespace anydml::scatter {

// How updates of one element follow each other: separately, in a row, or alternating with those of
// one other element.
enum class Order { distinct, runs, turns };

// True where Element leaves NaNs as they come and says what it has written.
template <class T>
constexpr bool is_watched(Reduction reduction) {
#if defined(ANYDML_F16C)
  if (is_half_sum<T>(reduction)) return true;
#endif
  return is_lane_sum<T>(reduction);
}

// Writes updates one after the other, even where the compiler could batch them: a later one may go
// to the same element as an earlier one. An element that takes several in a row stays in a
// register, and so do two whose conversions take long and that take turns: the way through memory
// takes two to three times as long. Where the order is another that costs wrong guesses instead.
template <Reduction kReduction, class T, Order kOrder>
class Element {
 public:
  explicit Element(char* target) : target_(target) {}
  // Returns the sum, before it is rounded, where it is watched.
  auto take(Int offset, const char* update) {
    char* const address = target_ + offset;
    if constexpr (kReduction == Reduction::none) {
      store(address, load<T>(update));
#if defined(ANYDML_F16C)
    } else if constexpr (is_half_sum<T>(kReduction)) {
      if constexpr (kOrder == Order::turns)
        pick(address);
      else if (kOrder == Order::distinct || address != last_)
        half_ = load_half(address);
      last_ = address;
      const __m128 sum = half_sum<kReduction>(half_, load_half(update));
      const __m128i rounded = round_half(sum);
      half_ = _mm_cvtph_ps(rounded);
      store_half(address, rounded);
      return sum;
#endif
#if defined(ANYDML_SSE2)
    } else if constexpr (is_lane_sum<T>(kReduction)) {
      if (kOrder == Order::distinct || address != last_) lane_ = Lane<T>::at(address);
      last_ = address;
      lane_ = lane_.template combined<kReduction>(Lane<T>::at(update));
      lane_.put(address);
      return lane_.value;
#endif
    } else if constexpr (kOrder == Order::runs) {
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
#if defined(ANYDML_SSE2)
  std::conditional_t<is_lane_sum<T>(kReduction), Lane<T>, int> lane_{};
#endif
#if defined(ANYDML_F16C)
  __m128 half_ = _mm_setzero_ps();

  // The element at `address` to half_, the one before it to other_.
  void pick(const char* address) {
    if (address == last_) return;
    const __m128 half = half_;
    half_ = address == before_ ? other_ : load_half(address);
    other_ = half;
    before_ = last_;
  }
  const char* before_ = nullptr;
  __m128 other_ = _mm_setzero_ps();
#endif
};

// How many of `count` places are not that of the one before; and how many are, instead, that of the
// one before it.
template <class Place>
inline Int changes_of(const Place* places, Int count) {
  Int changes = 0;
  for (Int i = 1; i < count; ++i) changes += places[i] != places[i - 1];
  return changes;
}
template <class Place>
inline Int turns_of(const Place* places, Int count) {
  Int turns = 0;
  for (Int i = 2; i < count; ++i)
    turns += (places[i] != places[i - 1]) & (places[i] == places[i - 2]);
  return turns;
}

// That of at least three of four. Turns are distinguished only where that pays, and all places
// are checked only if the first ones take turns.
template <Reduction kReduction, class T, class Place>
inline Order order_of(const Place* places, Int count) {
  if (kReduction == Reduction::none) return Order::distinct;
  if (changes_of(places, count) * 4 < count) return Order::runs;
#if defined(ANYDML_F16C)
  if constexpr (is_half_sum<T>(kReduction)) {
    const Int sample = std::min<Int>(count, 32);
    if (turns_of(places, sample) * 4 > sample * 3 && turns_of(places, count) * 4 > count * 3)
      return Order::turns;
  }
#endif
  return Order::distinct;
}

// Calls body with the order as a constant.
template <Reduction kReduction, class T, class Place, class Body>
inline void with_order(const Place* places, Int count, Body&& body) {
  switch (order_of<kReduction, T>(places, count)) {
    case Order::runs:
      if constexpr (kReduction != Reduction::none)
        return body(std::integral_constant<Order, Order::runs>{});
      break;
    case Order::turns:
#if defined(ANYDML_F16C)
      if constexpr (is_half_sum<T>(kReduction))
        return body(std::integral_constant<Order, Order::turns>{});
#endif
      break;
    default:
      break;
  }
  body(std::integral_constant<Order, Order::distinct>{});
}

// Calls take(i) for i < count, which takes the i-th update of some. True when a NaN came out.
template <bool kWatched, class Take>
inline bool take_all(Int count, Take&& take) {
#if defined(ANYDML_SSE2)
  if constexpr (kWatched) {
    NanWatch watch;
    Int i = 0;
    for (; i + 4 <= count; i += 4) {
      const auto a = take(i), b = take(i + 1), c = take(i + 2), d = take(i + 3);
      watch.see(a, b);
      watch.see(c, d);
    }
    for (; i < count; ++i) {
      const auto a = take(i);
      watch.see(a, a);
    }
    return watch.any();
  }
#endif
  for (Int i = 0; i < count; ++i) take(i);
  return false;
}

// Makes NaNs canonical among elements that have taken updates. Rare, so out of line.
template <class T, class Place>
[[gnu::noinline, gnu::cold]] void canonicalize_nans(char* target, const Place* places, Int count,
                                                    Int scale) {
  for (Int i = 0; i < count; ++i) {
    char* const address = target + places[i] * scale;
    store(address, canonical(load<T>(address)));
  }
}

template <Reduction kReduction, class T, Order kOrder>
void scatter_rows(char* target, const Int* offsets, const char* updates, Int row_stride, Int stride,
                  Int rows, Int columns) {
  constexpr bool watched = is_watched<T>(kReduction);
  constexpr Int size = static_cast<Int>(sizeof(T));
  Element<kReduction, T, kOrder> element(target);
  for (Int row = 0; row < rows; ++row) {
    const char* const from = updates + row * row_stride;
    const bool nan =
        stride == size
            ? take_all<watched>(columns,
                                [&](Int i) { return element.take(offsets[i], from + i * size); })
            : take_all<watched>(columns,
                                [&](Int i) { return element.take(offsets[i], from + i * stride); });
    if constexpr (watched)
      if (nan) canonicalize_nans<T>(target, offsets, columns, 1);
    offsets += columns;
  }
}

template <Reduction kReduction, class T>
void scatter_updates(char* target, const Int* offsets, const char* updates, Int row_stride,
                     Int stride, Int rows, Int columns) {
  with_order<kReduction, T>(offsets, rows * columns, [&](auto order) {
    scatter_rows<kReduction, T, order()>(target, offsets, updates, row_stride, stride, rows,
                                         columns);
  });
}

template <Reduction kReduction, class T, Order kOrder>
void scatter_group(char* block, const uint16_t* locals, const char* values, Int count) {
  constexpr bool watched = is_watched<T>(kReduction);
  constexpr Int size = static_cast<Int>(sizeof(T));
  Element<kReduction, T, kOrder> element(block);
  const bool nan = take_all<watched>(
      count, [&](Int i) { return element.take(locals[i] * size, values + i * size); });
  if constexpr (watched)
    if (nan) canonicalize_nans<T>(block, locals, count, size);
}

template <Reduction kReduction, class T>
void scatter_block(char* block, const uint16_t* locals, const char* values, Int count) {
  with_order<kReduction, T>(locals, count, [&](auto order) {
    scatter_group<kReduction, T, order()>(block, locals, values, count);
  });
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
        const __m256 sum = kReduction == Reduction::add ? a + b : a * b;
        const __m256 nan = _mm256_cmp_ps(sum, sum, _CMP_UNORD_Q);
        store(target + i * size,
              _mm256_cvtps_ph(_mm256_blendv_ps(sum, _mm256_set1_ps(__builtin_nanf("")), nan),
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
