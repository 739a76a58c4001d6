// A TOP_K call without its type: what top_k.cpp passes to the kernels of each key order.
#pragma once

#include "top_k/cpu/top_k.hpp"

namespace anydml::top_k {

struct Job {
  const char* input;
  char* values;
  char* indices;
  Int n, k;
  // All dimensions but the axis, collapsed together; and the strides on the axis.
  Layout rows, value_rows, index_rows;
  Int stride, value_stride, index_stride;
  bool wide_index;
  bool stream;
  unsigned long long flip;
  bool nan_last, sorted;
  bool from_end;  // `input` is the last element of a row, `stride` leads to its first
  const Int* lengths = nullptr;  // of each row; null: all have n elements
  uint64_t fill;                 // the bits of values without an element
  int threads;
  TopKAlgorithm algorithm;
};

// What makes keys of elements.
template <class Order>
typename Order::Flip flip_of(const Job& job) {
  const auto bits = static_cast<typename Order::Unsigned>(job.flip);
  if constexpr (Order::is_float)
    return {bits, job.nan_last};
  else
    return bits;
}

void run_float2(const Job& job);
void run_bfloat(const Job& job);
void run_float4(const Job& job);
void run_float8(const Job& job);
void run_integer1(const Job& job);
void run_integer2(const Job& job);
void run_integer4(const Job& job);
void run_integer8(const Job& job);

}  // namespace anydml::top_k
