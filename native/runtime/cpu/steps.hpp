// Packs strided elements with whole vectors: loads all bytes between the first and the last
// element, and shuffles the elements into place.
#pragma once

#include "runtime/cpu/memory.hpp"

namespace anydml {

class StepPacker {
 public:
  // Elements of `size` bytes (1, 2, 4, 8 or 16), `step` bytes apart.
  StepPacker(Int step, int size);

  // Packs most of `count` elements, or none if vectors do not pay, and returns the number. The last
  // ones are left over, or the first ones if the step is negative, so that memory is read upwards.
  // Reads only the elements and the gaps between them, and `more` elements that follow them in
  // memory.
  Int pack(char* target, const char* source, Int count, Int more = 0) const;

 private:
  static constexpr int kMaxLoads = 8;  // input vectors per output vector
  static constexpr int kLong = 64;     // bytes of a vector, at most

  template <int Loads>
  void pack_vectors(char* target, const char* source, Int vectors) const;

  int size_, loads_ = 0;  // 0: vectors do not apply
  int width_ = 16;        // bytes of a vector
  Int step_;
  // The shuffle of every input vector: for bytes in vectors of 16 their places or the highest bit,
  // for elements in vectors of 64 their places, and a mask.
  alignas(64) unsigned char order_[kMaxLoads][kLong];
  uint32_t taken_[kMaxLoads];
};

}  // namespace anydml
