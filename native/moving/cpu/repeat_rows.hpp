// Rows that repeat a few bytes of the input.
//
// Short ones are written by vectors that begin with a period and overlap. For long ones the period
// is kept in the nearest cache, followed by another vector of it, so that each line of the row is
// one read, wherever in a period it begins.
#pragma once

#include <type_traits>

#include "runtime/cpu/copy.hpp"

namespace anydml {

class RepeatedRows {
 public:
  static constexpr Int kMaxPeriod = 512;

  // Rows that begin `first` bytes into a period.
  RepeatedRows(Int period, Int first)
      : period_(period),
        piece_(period < kVector ? kVector / period * period : period),
        round_(period < kVector ? (kVector + period - 1) / period * period : period),
        first_(first) {}

  // `count` rows of `bytes` bytes, which are whole periods of 16 to 128 bytes, from the first one
  // on, each from a period that is packed.
  void run(char* target, Int to_step, const char* source, Int from_step, Int bytes,
           Int count) const {
    const auto rows = [&]<int size>(std::integral_constant<int, size>) {
      using V = typename Bytes<size>::Type;
      const Int last = period_ - size;
      for (Int i = 0; i < count; ++i, target += to_step, source += from_step) {
        const V head = *reinterpret_cast<const V*>(source);
        const V tail = *reinterpret_cast<const V*>(source + last);
        for (Int at = 0; at < bytes; at += period_) {
          *reinterpret_cast<V*>(target + at) = head;
          *reinterpret_cast<V*>(target + at + last) = tail;
        }
      }
    };
    if (period_ < 32)
      rows(std::integral_constant<int, 16>{});
    else if (period_ < 64)
      rows(std::integral_constant<int, 32>{});
    else
      rows(std::integral_constant<int, 64>{});
  }

  // A row of any length.
  void run(char* target, RunWriter& output, const char* source, Int bytes) const {
    alignas(64) char all[kMaxPeriod + 2 * kVector];
    if (period_ >= kVector) {
      for (Int i = 0; i < period_ - kVector; i += kVector) move(all + i, source + i);
      move(all + period_ - kVector, source + period_ - kVector);
      move(all + period_, source);
    } else {
      // As many periods as a vector holds, in one.
      alignas(64) char piece[2 * kVector];
      copy_short(piece, source, period_);
      for (Int held = period_; held < piece_; held *= 2) move(piece + held, piece);
      for (Int at = 0; at < round_ + kVector; at += piece_) move(all + at, piece);
    }
    if (output.streams()) return output.put_round(target, all, round_, first_, bytes);
    Int at = first_;
    for (; bytes >= kVector; bytes -= kVector, target += kVector) {
      move(target, all + at);
      at += kVector - (at + kVector < round_ ? 0 : round_);
    }
    copy_short(target, all + at, bytes);
  }

 private:
  static constexpr Int kVector = 64;
  template <int N>
  struct Bytes {
    typedef char Type __attribute__((vector_size(N), aligned(1), may_alias));
  };

  static void move(char* target, const char* source) {
    using V = Bytes<kVector>::Type;
    *reinterpret_cast<V*>(target) = *reinterpret_cast<const V*>(source);
  }

  Int period_, piece_, round_;  // bytes of whole periods: in a vector, or one; of a vector or more
  Int first_;
};

}  // namespace anydml
