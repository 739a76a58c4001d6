// Sequences of floats whose sums are rounded one after the other, cut into segments that give any
// element at once.
//
// Let u be the distance between neighbours of a value. Within a binade, where u does not change,
// every sum moves by the same whole number of u: delta rounded to a multiple of u. Only a tie
// (delta ends in half a u) depends on the value, on whether its last bit is even; but a sum that
// was a tie is even, so from the second value in a binade on all steps are equal. So the sequence
// is cut into segments, of one element or of equal steps inside a binade and on one side of zero,
// where the bits of the floats, taken for integers, have equal steps as well: floats are written as
// integers are. The cuts are found by adding: there are a few for each binade, whatever the length.
// Once a sum equals its value, the value never changes again.
#pragma once

#include <cstdint>

#include "common/layout.hpp"

namespace anydml {

// More segments than the binades of two formats can need.
constexpr Int kMaxSegments = 8192;

// From element `begin` on: the bits of the float, incremented by `step` from element to element.
struct Segment {
  Int begin;
  uint32_t bits, step;
};

// The segment capacity that `count` elements need.
inline Int segment_capacity(Int count) {
  return 2 * count + 2 < kMaxSegments ? 2 * count + 2 : kMaxSegments;
}

// The segments of `count` elements of FLOAT16 or FLOAT32, in order; returns their number.
Int cut_sequence(bool half, double start, double delta, Int count, Segment* segments);

}  // namespace anydml
