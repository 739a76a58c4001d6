// The algorithms of SCATTER behind ScatterPlan::run, for it and for its test, which forces each.
#pragma once

#include "scatter/cpu/scatter_sums.hpp"

namespace anydml::scatter {

// direct: the whole input is copied, then updates are written into the output.
// blocks: some whole fibres (lines along the axis) at a time, copied into packed scratch, updated
//         there and written out once.
// buckets: each plane of a packed output by the stable partition of scatter_buckets.cpp.
// shares: as direct, but threads share the updates of one line.
enum class Method { automatic, direct, blocks, buckets, shares };

// Parameters that the test lowers so that small data covers every case.
struct Tuning {
  Int block_bytes = Int{1} << 20;   // scratch of a block, where the axis is not the last
  Int max_bytes = Int{4} << 20;     // the same, at most, for the sake of wide strips
  Int strip_bytes = 256;            // width of strips that are worth more scratch
  Int row_bytes = Int{512} << 10;   // rows that fit a block, however few they are
  Int small_bytes = Int{16} << 10;  // smaller blocks take several fibres
  Int stream_bytes = kStreamBytes;
  Int share_updates = 2 * kParallelElements;  // of a line whose updates are shared
  int bucket_bits = 0;
  Int round = Int{32} << 20;
};

Status run_scatter(const ScatterPlan& plan, const void* input, const void* indices,
                   const void* updates, void* output, bool output_is_private, int threads,
                   Method method, const Tuning& tuning);

// The four tensors, in the order of a Problem's arrays.
enum { kIn, kOut, kIndex, kUpdate, kTensors };

// SCATTER as a list of equal problems that do not touch each other:
// rest[..] x groups x (axis x columns). Dimensions off the axis are reordered by the output's
// strides, which is allowed because lines along the axis are independent.
struct Problem {
  Int axis_size;  // of the output
  Int length;     // of the indices along the axis
  Int columns, groups, rest_count;
  Int axis[kTensors], column[kTensors], group[kTensors];  // strides
  Layout rest[kTensors];
  bool full;  // the indices reach every line of the output
  int element_size;
  int target_size;  // of an element while it takes updates
  Reduction reduction;
  bool any_order;  // the reduction gives the same bits in any order
  const IndexReader* reader;
  const Writer* writer;
};

// The destination of the updates of some lines: an output with strides of its own.
struct Target {
  char* base;
  Int axis, column, group;
  bool far;              // not in a cache
  Sums* sums = nullptr;  // of elements that are float32 meanwhile
};

// Writes the updates of groups x columns lines. `indices` and `updates` point at the first. Returns
// false if an index is bad: a piece that contains one is not written.
bool update_lines(const Problem& problem, const char* indices, const char* updates, Int groups,
                  Int columns, const Target& target);

// Returns false if an index is bad.
bool run_direct(const Problem& problem, const char* indices, const char* updates, char* output,
                int threads);
bool run_blocks(const Problem& problem, const char* input, const char* indices, const char* updates,
                char* output, int threads, const Tuning& tuning);

bool shares_apply(const Problem& problem, int threads, const Tuning& tuning);
bool run_shares(const Problem& problem, const char* indices, const char* updates, char* output,
                int threads);

}  // namespace anydml::scatter
