// TOP_K on a GPU, inside: which kernels do what. The public face is anydml::cuda::top_k.
#pragma once

#include "kernels/top_k_arguments.cuh"
#include "plans.hpp"

namespace anydml::cuda::selection {

using anydml::top_k::Cooperation;
using anydml::top_k::Parts;
using anydml::top_k::Rows;
using anydml::top_k::Sampling;

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

// Rows of packed keys, by the size of a row and of k.
void choose(const Job& job, Queue& queue);

// Rows along a strided axis whose starts are neighbours in memory. False: the case does not apply.
bool columns(const Job& job, Queue& queue);

// Whole rows, or what was picked of them, sorted.
void sort(const Job& job, Queue& queue);

}  // namespace anydml::cuda::selection
