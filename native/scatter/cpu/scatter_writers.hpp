// The loops that write updates, for one element type and reduction; see Writer. Included by the
// files that instantiate them, which are several to keep each one's compilation short.
#pragma once

#include <algorithm>

#include "scatter/cpu/scatter_combine.hpp"
#include "scatter/cpu/scatter_parts.hpp"

namespace anydml::scatter {

// How updates of one element follow each other: separately, or in a row.
enum class Order { distinct, runs };

// Writes updates one after the other, even where the compiler could batch them: a later one may go
// to the same element as an earlier one. An element that takes several in a row stays in a
// register: the way through memory takes two to three times as long. Where the order is another
// that costs wrong guesses instead. NaNs of lanes are left as they come.
template <Reduction kReduction, class T, Order kOrder>
class Element {
 public:
  explicit Element(char* target) : target_(target) {}
  // Returns the sum, before it is rounded, where it is watched.
  auto take(Int offset, const char* update) {
    char* const address = target_ + offset;
    if constexpr (kReduction == Reduction::none) {
      store(address, load<T>(update));
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
      value_ = combined<kReduction, Numbers>(value_, load<T>(update));
      store(address, value_);
    } else {
      store(address, combined<kReduction, Numbers>(load<T>(address), load<T>(update)));
    }
  }

 private:
  char* target_;
  char* last_ = nullptr;
  T value_{};
#if defined(ANYDML_SSE2)
  std::conditional_t<is_lane_sum<T>(kReduction), Lane<T>, int> lane_{};
#endif
};

// How many of `count` places are not that of the one before.
template <class Place>
inline Int changes_of(const Place* places, Int count) {
  Int changes = 0;
  for (Int i = 1; i < count; ++i) changes += places[i] != places[i - 1];
  return changes;
}

// Calls body with the order of at least three of four places, as a constant.
template <Reduction kReduction, class Place, class Body>
inline void with_order(const Place* places, Int count, Body&& body) {
  if constexpr (kReduction != Reduction::none)
    if (changes_of(places, count) * 4 < count)
      return body(std::integral_constant<Order, Order::runs>{});
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
  constexpr bool watched = is_lane_sum<T>(kReduction);
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
  with_order<kReduction>(offsets, rows * columns, [&](auto order) {
    scatter_rows<kReduction, T, order()>(target, offsets, updates, row_stride, stride, rows,
                                         columns);
  });
}

template <Reduction kReduction, class T, Order kOrder>
void scatter_group(char* block, const uint16_t* locals, const char* values, Int count) {
  constexpr bool watched = is_lane_sum<T>(kReduction);
  constexpr Int size = static_cast<Int>(sizeof(T));
  Element<kReduction, T, kOrder> element(block);
  const bool nan = take_all<watched>(
      count, [&](Int i) { return element.take(locals[i] * size, values + i * size); });
  if constexpr (watched)
    if (nan) canonicalize_nans<T>(block, locals, count, size);
}

template <Reduction kReduction, class T>
void scatter_block(char* block, const uint16_t* locals, const char* values, Int count) {
  with_order<kReduction>(locals, count, [&](auto order) {
    scatter_group<kReduction, T, order()>(block, locals, values, count);
  });
}

template <Reduction kReduction, class T>
void combine_row(char* __restrict target, Int target_stride, const char* __restrict updates,
                 Int stride, Int count) {
  const Int size = static_cast<Int>(sizeof(T));
  if (target_stride == size && stride == size) {
    for (Int i = 0; i < count; ++i)
      store(target + i * size,
            combined<kReduction, Numbers>(load<T>(target + i * size), load<T>(updates + i * size)));
  } else {
    for (Int i = 0; i < count; ++i)
      store(target + i * target_stride,
            combined<kReduction, Numbers>(load<T>(target + i * target_stride),
                                          load<T>(updates + i * stride)));
  }
}

// ---- Sums and products of floats of 16 bits: those of float32, of widened updates --------------

// The greatest bits of packed numbers without their signs, which are above infinity's where one is
// NaN.
template <class Bits>
inline Bits greatest(const char* numbers, Int count) {
  Bits most = 0;
  for (Int i = 0; i < count; ++i) {
    const Bits size =
        load<Bits>(numbers + i * static_cast<Int>(sizeof(Bits))) & (Bits(~Bits{0}) >> 1);
    most = size > most ? size : most;
  }
  return most;
}

template <class T>
void widen(char* __restrict sums, const char* __restrict elements, Int stride, Int count) {
  Int i = 0;
  if (stride == 2 && greatest<uint16_t>(elements, count) <= kInfinity<T>) {
#if defined(ANYDML_F16C)
    if constexpr (std::is_same_v<T, Half>)
      for (; i + 8 <= count; i += 8)
        store(sums + i * 4, _mm256_cvtph_ps(load<__m128i>(elements + i * 2)));
#endif
    for (; i < count; ++i) store(sums + i * 4, number(load<T>(elements + i * 2)));
  }
  for (; i < count; ++i) store(sums + i * 4, widened(load<T>(elements + i * stride)));
}

template <class T>
void narrow(char* __restrict elements, Int stride, const char* __restrict sums, Int count) {
  Int i = 0;
  if (stride == 2 && greatest<uint32_t>(sums, count) <= kInfinity<float>) {
#if defined(ANYDML_F16C)
    if constexpr (std::is_same_v<T, Half>)
      for (; i + 8 <= count; i += 8)
        store(elements + i * 2,
              _mm256_cvtps_ph(load<__m256>(sums + i * 4), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; ++i) store(elements + i * 2, rounded<T>(load<float>(sums + i * 4)));
  }
  for (; i < count; ++i) store(elements + i * stride, narrowed<T>(load<float>(sums + i * 4)));
}

template <Reduction kReduction, class T>
void add_updates(char* sums, const Int* offsets, const char* updates, Int row_stride, Int stride,
                 Int rows, Int columns) {
  alignas(64) char wide[kPiece * 4];
  for (Int row = 0; row < rows; ++row)
    widen<T>(wide + row * columns * 4, updates + row * row_stride, stride, columns);
  scatter_updates<kReduction, float>(sums, offsets, wide, columns * 4, 4, rows, columns);
}

template <Reduction kReduction, class T>
void add_block(char* sums, const uint16_t* locals, const char* values, Int count) {
  alignas(64) char wide[kPiece * 4];
  widen<T>(wide, values, 2, count);
  scatter_block<kReduction, float>(sums, locals, wide, count);
}

template <Reduction kReduction>
inline auto sum_of(auto a, auto b) {
  return kReduction == Reduction::add ? a + b : a * b;
}

template <Reduction kReduction, class T>
void add_row(char* __restrict sums, Int sums_stride, const char* __restrict updates, Int stride,
             Int count) {
  Int i = 0;
  if (sums_stride == 4 && stride == 2) {
#if defined(ANYDML_F16C)
    if constexpr (std::is_same_v<T, Half>)
      for (; i + 8 <= count; i += 8)
        store(sums + i * 4, sum_of<kReduction>(load<__m256>(sums + i * 4),
                                               _mm256_cvtph_ps(load<__m128i>(updates + i * 2))));
#endif
    for (; i < count; ++i)
      store(sums + i * 4,
            sum_of<kReduction>(load<float>(sums + i * 4), number(load<T>(updates + i * 2))));
  }
  for (; i < count; ++i)
    store(sums + i * sums_stride, sum_of<kReduction>(load<float>(sums + i * sums_stride),
                                                     number(load<T>(updates + i * stride))));
}

template <Reduction kReduction, class T>
void add_once(char* __restrict target, Int target_stride, const char* __restrict updates,
              Int stride, Int count) {
  const auto sum = [](const char* a, const char* b) {
    return rounded<T>(sum_of<kReduction>(number(load<T>(a)), number(load<T>(b))));
  };
  Int i = 0;
  if (target_stride == 2 && stride == 2) {
#if defined(ANYDML_F16C)
    if constexpr (std::is_same_v<T, Half>)
      for (; i + 8 <= count; i += 8) {
        const __m256 eight = sum_of<kReduction>(_mm256_cvtph_ps(load<__m128i>(target + i * 2)),
                                                _mm256_cvtph_ps(load<__m128i>(updates + i * 2)));
        const __m256 nan = _mm256_cmp_ps(eight, eight, _CMP_UNORD_Q);
        store(target + i * 2,
              _mm256_cvtps_ph(_mm256_blendv_ps(eight, _mm256_set1_ps(__builtin_nanf("")), nan),
                              _MM_FROUND_TO_NEAREST_INT));
      }
#endif
    for (; i < count; ++i) store(target + i * 2, sum(target + i * 2, updates + i * 2));
  }
  for (; i < count; ++i)
    store(target + i * target_stride, sum(target + i * target_stride, updates + i * stride));
}

template <Reduction kReduction, class T>
constexpr Writer writer_of() {
  if constexpr (is_half_sum<T>(kReduction))
    return {add_updates<kReduction, T>,
            add_block<kReduction, T>,
            add_row<kReduction, T>,
            add_once<kReduction, T>,
            widen<T>,
            narrow<T>};
  else
    return {scatter_updates<kReduction, T>, scatter_block<kReduction, T>,
            combine_row<kReduction, T>, combine_row<kReduction, T>};
}
template <Reduction kReduction, class T>
constexpr Writer kWriter = writer_of<kReduction, T>();

}  // namespace anydml::scatter
