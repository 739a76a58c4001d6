// The ways to move slabs; slabs.cpp chooses, and the tests force each.
#pragma once

#include "runtime/plans.hpp"

namespace anydml {

enum class SlabMethod {
  choose,
  layouts,  // one general copy a part: any strides
  rows,     // pieces of some hundred bytes and more: row copies, in the order of the source
  blocks,   // small pieces: a block of rows at a time, part by part
  tiles,    // equal small pieces of 1, 2, 4, 8 or 16 bytes: transposed in registers
};

// Runs split (join) by the given method and returns true, or returns false if it does not apply.
bool split_by(const SlabsPlan& plan, SlabMethod method, const void* joined, void* const* parts,
              int threads);
bool join_by(const SlabsPlan& plan, SlabMethod method, const void* const* parts, void* joined,
             int threads);

}  // namespace anydml
