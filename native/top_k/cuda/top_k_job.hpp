// TOP_K on a GPU, inside: which kernels do what. The public face is anydml::cuda::top_k.
#pragma once

#include "runtime/cuda/plans.hpp"
#include "top_k/cuda/top_k_arguments.cuh"

namespace anydml::cuda::selection {

using anydml::top_k::Parts;
using anydml::top_k::Rows;

constexpr Int kMaxBlocks = Int{1} << 30;  // of a launch; the kernels go on from there
constexpr Int kWide = Int{1} << 32;       // axes from here on have places of 64 bits

// The rows of a call, or of a step of it: whose keys are of this type.
struct Job {
  Rows rows;
  int width;
  int is_float;  // 0, 1, or 2 for bfloat16
};

inline unsigned max_blocks(Int count) {
  return static_cast<unsigned>(count < kMaxBlocks ? count : kMaxBlocks);
}

// At least 64.
inline Int power_of_two(Int minimum) {
  Int size = 64;
  while (size < minimum) size *= 2;
  return size;
}

// Bytes of a candidate: a key and a place.
inline Int item_size(int width) { return width == 8 ? 16 : 8; }

// Rows of packed keys, by the size of a row and of k.
void choose(const Job& job, Queue& queue);

// Long rows, several blocks a row. `list_capacity`: the largest k that `select` takes, in rows of
// fewer than kWide elements.
Int list_capacity(const Job& job, Queue& queue);
void select(const Job& job, Queue& queue);
// The k elements of some rows: as pairs of the complement of the key and the place, in the order of
// places (descending where the last of equals goes first); or into the results if these are by
// place.
void pick(const Job& job, Int first_row, Int count, void* keys, void* places, bool wide,
          Queue& queue);

// Rows along a strided axis whose starts are neighbours in memory. False: the case does not apply.
bool columns(const Job& job, Queue& queue);

// Whole rows, or what is picked of them, sorted. Picking knows all orders, a whole row's sort only
// that of packed keys.
bool picks(const Rows& rows);
void sort(const Job& job, Queue& queue);

}  // namespace anydml::cuda::selection
