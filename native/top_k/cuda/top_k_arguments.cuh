// What the host gives to the kernels of TOP_K: plain C++, read by both sides.
#pragma once

namespace anydml::top_k {

// Dimensions of the rows, after fusing; a tensor with more is copied first.
constexpr int kDims = 4;

// Sizes are in elements, strides in bytes.
struct Rows {
  long long rows, n, k;  // n: elements of a row to choose from
  // Where the keys are: rows of the input where `source` is null, else packed rows of n keys, with
  // the position on the axis of each of them in `places` (or null: its position in the row).
  const char* source;
  const void* places;
  bool wide_places;  // of 64 bits
  // Values are copied from the input.
  const char* input;
  unsigned long long flip;  // order.hpp, for the keys' type
  long long stride;         // on the axis; kernels that read rows of the input need packed ones
  char* values;
  char* indices;
  long long value_stride, index_stride;
  bool wide_indices;
  bool sorted;      // by key; else by the positions on the axis
  bool nan_last;    // among the largest, too
  bool last_first;  // of equals the one at the greatest position
  // How many keys each row has (null: n), at this stride; results without a key are `fill` and -1.
  const void* lengths;
  long long length_stride;
  bool wide_lengths, unsigned_lengths;
  unsigned long long fill;
  int rank;
  long long sizes[kDims], input_strides[kDims], value_strides[kDims], index_strides[kDims];
};

// Results of segments of rows: k keys of each and where on the axis they lie, equal keys in the
// order of their places.
struct Parts {
  long long segments;        // of each row
  long long length, longer;  // elements of a segment, and how many segments have one more
  void* keys;
  void* places;
  bool wide_places;
};

}  // namespace anydml::top_k
