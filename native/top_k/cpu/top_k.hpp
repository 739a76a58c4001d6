// TOP_K inside: its algorithms by name, and how to force one. The public face is TopKPlan.
#pragma once

#include "runtime/plans.hpp"

namespace anydml {

enum class TopKAlgorithm {
  automatic,
  rank,       // every element's rank by counting: short rows
  maxima,     // bound from the maxima of groups, read what reaches it: few of many
  threshold,  // exact bound by bisection over the row's keys: middle-sized rows
  sample,     // bound from a sample, then one filtering pass: long rows
  sort,       // everything
  vertical,   // maxima across neighbouring rows, for axes that are not contiguous
  wide,       // 64-bit positions: axes of 2^32 elements or more
};

namespace top_k {

// Longest row and longest candidate list that are ranked by counting.
constexpr Int kRankLimit = 160;
// Longest list that is ranked for k of it; longer ones are cut to k before.
constexpr Int max_ranked(Int k) {
  const Int limit = k + k / 2 + 40;
  return limit < kRankLimit ? limit : kRankLimit;
}
// Up to here `rank` goes before `maxima`.
constexpr Int kShortRow = 63;
// `maxima` needs this many elements for each one that is wanted; half of it in short rows of types
// of at most 4 bytes, where a line has enough lanes.
constexpr Int kSmallKRatio = 16;
constexpr Int kSmallKRow = 512;
// Rows up to here are bisected whole; longer ones are sampled.
constexpr Int kThresholdLimit = 16384;
constexpr Int kSample = 4096;
// Positions are 32-bit below this, and so are places in the buffer of a sort, which has some slack.
constexpr Int kWideAxis = (Int{1} << 32) - (Int{1} << 13);

// Whether the algorithm can do this row; `vertical` also depends on the layout.
bool applicable(TopKAlgorithm algorithm, Int n, Int k, int width);
TopKAlgorithm choose(Int n, Int k, int width, bool sorted = true);

// Where the i-th of kSample sampled elements of a row lies: one in each stratum, scattered in it.
Int sample_position(Int i, Int n);

void run(const TopKPlan& plan, const void* input, void* values, void* indices, int threads,
         TopKAlgorithm forced, const void* lengths = nullptr);

}  // namespace top_k
}  // namespace anydml
