// Rows that are made of the bytes of others, always in the same order: whole vectors of the source,
// put in order, are whole vectors of the target. Of 16 bytes that make all of a longer vector, each
// part of it gets its own.
#pragma once

#include "runtime/cpu/copy.hpp"

namespace anydml {

class RowShuffle {
 public:
  static constexpr Int kMaxBytes = 2048;  // of a row

  // Begins rows of `bytes` bytes from rows of `from_bytes`, of units of `size` bytes.
  void begin(Int bytes, Int from_bytes, Int size) {
    bytes_ = bytes;
    from_bytes_ = from_bytes;
    unit_ = static_cast<int>(std::min<Int>(size, 8));
    count_ = 0;
  }
  // The unit of the row at byte `to` is that of the source at byte `from`.
  void put(Int to, Int from) { from_[to / unit_] = static_cast<int16_t>(from); }
  Int unit() const { return unit_; }
  // Called after all units are put: returns whether vectors can do it.
  bool finish();

  // Writes `count` rows and nothing between them. Reads nothing before the first or after the last,
  // except `more` rows that follow in memory if the step is positive.
  void run(char* target, Int to_step, const char* source, Int from_step, Int count, Int more) const;

 private:
  bool order_vectors(int width, int window);
  void run_all(char* target, Int to_step, const char* source, Int from_step, Int count) const;
  template <int N>
  void run_vectors(int first, char* target, Int to_step, const char* source, Int from_step,
                   Int count) const;

  Int bytes_ = 0, from_bytes_ = 0;
  int unit_ = 1, count_ = 0;      // of vectors
  int width_ = 16, window_ = 16;  // bytes that one writes and reads
  int16_t from_[kMaxBytes];
  struct Vector {
    int16_t to, from;  // where it is written and read
  };
  Vector vectors_[kMaxBytes / 16];
  alignas(64) unsigned char order_[kMaxBytes];
};

}  // namespace anydml
