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
  bool ordered;      // they ascend
  // Values are copied from the input.
  const char* input;
  unsigned long long flip;  // order.hpp, for the keys' type
  long long stride;         // on the axis; kernels that read rows of the input need packed ones
  char* values;
  char* indices;
  long long value_stride, index_stride;
  bool wide_indices;
  bool sorted;    // by key; else by the positions on the axis
  bool from_end;  // positions descend
  // How many keys each row has (null: n), at this stride; results without a key are `fill` and -1.
  const void* lengths;
  long long length_stride;
  bool wide_lengths, unsigned_lengths;
  unsigned long long fill;
  int rank;
  long long sizes[kDims], input_strides[kDims], value_strides[kDims], index_strides[kDims];
};

// Results of a part of a row: k keys and where on the axis they lie.
struct Parts {
  long long segments;        // of each row
  long long length, longer;  // elements of a segment, and how many segments have one more
  void* keys;                // null: the results are those of the whole row
  void* places;
  bool wide_places;
  bool ordered;  // as results are, so that equal keys are in the order of their places
  // How many results each row has, for rows with lengths: a short one is cut into fewer segments,
  // so that none has less than k elements.
  long long* lengths;
};

// How a long row's bound is found, from a sample (top_k_long.cu).
struct Sampling {
  int low, high;  // how many of the sample reach the bound; low 0: all are candidates
  int capacity;   // of the candidate list
};

// The cooperation of a row's blocks (top_k_cooperative.cu).
struct Cooperation {
  long long segments, length, longer;  // as of Parts
  int groups;                          // maxima of its sample that a block gives, 16 to 512
  int low, high;                       // how many of the row reach the bound
  int capacity;                        // of the list of candidates of a row, less one
  unsigned* work;                      // kCooperationWords of each row, zero
  void* sample;                        // items: segments * groups of each row
  void* found;                         // items: 2 * capacity of each row
};

// Of a row: blocks that have arrived and counts in the first 32, and histograms of digits.
constexpr int kCooperationWords = 32 + 12 * 256;

}  // namespace anydml::top_k
