// Elements at a step, packed, by whole vectors: all bytes between the first and the last element
// are loaded, and those of the elements put in order.
#pragma once

#include "memory.hpp"

namespace anydml {

class StepPacker {
 public:
  // Elements of `size` bytes (1, 2, 4, 8 or 16), `step` bytes apart.
  StepPacker(Int step, int size);

  // Packs most of `count` elements, or none where vectors do not pay, and says how many: but for
  // the last ones, or for the first ones where the step is negative, so that memory is read
  // upwards. Reads nothing outside of the elements and the gaps between them; `more` elements,
  // which may be read too, lie above them in memory.
  Int pack(char* target, const char* source, Int count, Int more = 0) const;

 private:
  static constexpr int kMaxLoads = 8;  // vectors that are loaded for one of output
  static constexpr int kLong = 64;     // bytes of a vector, at most

  template <int Loads>
  void pack_vectors(char* target, const char* source, Int vectors) const;

  int size_, loads_ = 0;  // 0: there are no vectors
  int width_ = 16;        // bytes of a vector
  Int step_;
  // Of every vector that is loaded, what goes where: for bytes in vectors of 16 their places or the
  // highest bit, for elements in vectors of 64 their places, and a mask.
  alignas(64) unsigned char order_[kMaxLoads][kLong];
  uint32_t taken_[kMaxLoads];
};

}  // namespace anydml
