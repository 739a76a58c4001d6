// Reverses the first elements of packed rows, in full vectors without branches: each vector is
// loaded forward and reversed, and the two are blended.
//
// A vector also reads beside a row, and writes beyond it bytes that the next row overwrites. Rows
// at the ends of the accessible memory go through a local buffer.
#pragma once

#include <utility>

#include "runtime/cpu/copy.hpp"

namespace anydml {

#if defined(__SSE4_2__)

constexpr Int kMaxReversedBytes = 8192;  // bytes of a row

// The range that may be read or written.
struct Extent {
  const char *begin, *end;
};

// Of T, a signed integer.
template <class T>
class ReversedRows {
 public:
  // Rows of `count` elements, in memory that may be read.
  ReversedRows(Int count, Extent readable)
      : count_(count), bytes_(count * kSize), readable_(readable) {}

  // Rows [0, rows), of which the first length(i) elements are reversed. Bytes after them, up to
  // `end`, may be overwritten with other values.
  template <class Length>
  void put(char* to, const char* end, Int to_step, const char* from, Int from_step, Int rows,
           Length&& length) const {
    const auto alone = [&](Int i) {
      const char* const source = from + i * from_step;
      return source - readable_.begin < kVector || readable_.end - source < bytes_ + kVector ||
             end - (to + i * to_step) < bytes_ + kVector;
    };
    Int i = 0, last = rows;
    for (; i < last && alone(i); ++i) put_alone(to + i * to_step, from + i * from_step, length(i));
    while (i < last && alone(last - 1)) --last;
    for (; i < last; ++i) turn(to + i * to_step, from + i * from_step, length(i));
    for (; i < rows; ++i) put_alone(to + i * to_step, from + i * from_step, length(i));
  }

 private:
#if defined(__AVX512BW__)
  static constexpr Int kVector = 64;
#elif defined(__AVX2__)
  static constexpr Int kVector = 32;
#else
  static constexpr Int kVector = 16;
#endif
  static constexpr Int kSize = sizeof(T), kLanes = kVector / kSize;
  typedef T Vector __attribute__((vector_size(kVector)));

  template <int... I>
  static Vector reversed(Vector v, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(v, v, (kLanes - 1 - I)...);
  }
  template <int... I>
  static Vector ascending(std::integer_sequence<int, I...>) {
    return Vector{I...};
  }

  void turn(char* to, const char* from, Int length) const {
    constexpr auto lanes = std::make_integer_sequence<int, kLanes>{};
    const Vector places = ascending(lanes);
    for (Int i = 0; i < count_; i += kLanes) {
      // The reversed elements are the last ones of a vector that may begin before the row.
      const Int back = std::max<Int>(length - i, 0);
      const Vector reversed_lanes = reversed(load<Vector>(from + (back - kLanes) * kSize), lanes);
      const Vector straight = load<Vector>(from + i * kSize);
      store(to + i * kSize,
            places < static_cast<T>(std::min(back, kLanes)) ? reversed_lanes : straight);
    }
  }

  [[gnu::noinline]] void put_alone(char* to, const char* from, Int length) const {
    alignas(64) char in[kMaxReversedBytes + 2 * kVector], out[kMaxReversedBytes + kVector];
    std::memset(in, 0, kVector);
    std::memcpy(in + kVector, from, static_cast<std::size_t>(bytes_));
    std::memset(in + kVector + bytes_, 0, kVector);
    turn(out, in + kVector, length);
    std::memcpy(to, out, static_cast<std::size_t>(bytes_));
  }

  Int count_, bytes_;
  Extent readable_;
};

#endif

}  // namespace anydml
