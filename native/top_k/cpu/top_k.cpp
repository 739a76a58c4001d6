// TOP_K: the k greatest (or smallest) elements of every row along an axis, sorted, ties in
// ascending position, NaN greatest.
//
// Every type becomes a signed key whose order is the one wanted (order.hpp), "smallest" included,
// so that the algorithms know one direction only. They share one plan: find a bound that at least k
// keys reach and few more, collect what reaches it, rank or sort that, and write the elements' own
// bits.
//
//   rank       n <= 160, O(n^2 / vector): every element's rank by counting comparisons.
//   maxima     16 k <= n, O(n): the maximum of each of some groups in one branch-free reading. The
//              k-th greatest of these is a bound for certain; only chunks that reach it are read
//              again. Ends early when k groups hold the type's greatest key.
//   threshold  n <= 16384, O(n 8 W / vector): the exact bound, by bisection over the row's keys.
//   sample     longer, O(n + k): the bound from 4096 stratified samples, with a margin; should it
//              miss, which takes an input made against it, it is lowered.
//   sort       k near n, or a good part of a long row, O(n W): stable radix sort of key difference
//              and position; of many elements, after a partition into buckets.
//   vertical   maxima, for rows that lie side by side in memory: a lane is a row.
//   wide       axes of 2^32 elements and more: radix selection with 64-bit positions.
//
// Results that are wanted in the order of their positions are not ranked or sorted: candidates are
// found in that order. Rows of which the last of equal elements goes first are read from their end.
// Rows of different lengths each take the algorithm of their own length.
//
// All bounds and lists are exact for every input: ties and NaN change how much is collected, never
// what is written, and the work for an element is bounded whatever the order of the input. Results
// do not depend on threads. Many rows are shared among threads; few and long ones are split.
//
// Another thread may change the input meanwhile. The results are then unspecified: they may match
// no single state of the input. But memory stays safe, k results are written and every position
// lies on the axis: what is counted or compared twice is a copy in scratch, or is bounded by the
// count, and missing results are filled in.
//
// Speed does not depend on the order or the ties of the input by more than a factor of three, but
// for inputs that are far faster than others because their greatest key is soon found k times.
//
// Scratch: `maxima` takes at most 3/8 of a row, about 3 sqrt(2 n k) bytes in long ones, and
// `vertical` at most 1/4 of the input. Where a row's end is a sort it takes up to 20 bytes for each
// candidate (key and position are moved together, between two buffers), which is more than a
// quarter of input and output when k is a good part of n and there is one row; with many rows it is
// that much for each thread. A row that is not contiguous is read in place by `maxima`, unless it
// shares cache lines with its neighbours; all else packs it first, which is its own size once more
// for each thread.
#include "top_k/cpu/top_k.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "runtime/cpu/read_once.hpp"
#include "top_k/cpu/top_k_job.hpp"
#include "top_k/cpu/top_k_sort.hpp"

namespace anydml {
namespace top_k {

namespace {

// Rows up to this many elements apart are processed together.
constexpr Int kMaxStrideElements = 8;

// The length of each row, in row-major order.
Scratch<Int> lengths_of(const TopKPlan& plan, const void* lengths, Int n) {
  const Layout& layout = plan.lengths.layout;
  const Int rows = layout.count();
  Scratch<Int> copy(rows);
  const Layout* const layouts[1] = {&layout};
  Walker<1> walker(layouts, layout.rank);
  walker.start(0);
  for (Int row = 0; row < rows; ++row) {
    const char* const from = static_cast<const char*>(lengths) + walker.offset[0];
    copy[row] = std::clamp<Int>(index_once(plan.lengths.type, from), 0, n);
    walker.next();
  }
  return copy;
}

bool is_small_k(Int n, Int k, int width) {
  return k <= n / kSmallKRatio || (n <= kSmallKRow && width <= 4 && k <= n / (kSmallKRatio / 2));
}

}  // namespace

bool applicable(TopKAlgorithm algorithm, Int n, Int k, int width) {
  if (n >= kWideAxis) return algorithm == TopKAlgorithm::wide;
  switch (algorithm) {
    case TopKAlgorithm::rank:
      return n <= kRankLimit;
    case TopKAlgorithm::maxima:
      return n >= 64 && is_small_k(n, k, width);
    case TopKAlgorithm::vertical:
      return n >= 64 && k <= n / kSmallKRatio && k <= 512;
    case TopKAlgorithm::threshold:
      return n <= 4 * kThresholdLimit;
    case TopKAlgorithm::sample:
      return n >= kSample;
    case TopKAlgorithm::sort:
    case TopKAlgorithm::wide:
      return true;
    default:
      return false;
  }
}

TopKAlgorithm choose(Int n, Int k, int width, bool sorted) {
  if (n >= kWideAxis) return TopKAlgorithm::wide;
  if (n <= kShortRow) return TopKAlgorithm::rank;
  if (is_small_k(n, k, width)) return TopKAlgorithm::maxima;
  if (n <= kRankLimit) return TopKAlgorithm::rank;
  if (sorted && k > (n >= kBucketSort && width <= 4 ? n / 5 : n - 3 * n / 8))
    return TopKAlgorithm::sort;
  if (n <= kThresholdLimit) return TopKAlgorithm::threshold;
  return TopKAlgorithm::sample;
}

Int sample_position(Int i, Int n) {
  const Int begin = i * n / kSample, end = (i + 1) * n / kSample;
  const uint64_t hash = (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ull >> 32;
  return begin + static_cast<Int>(hash * static_cast<uint64_t>(end - begin) >> 32);
}

void run(const TopKPlan& plan, const void* input, void* values, void* indices, int threads,
         TopKAlgorithm forced, const void* lengths) {
  const Layout& layout = plan.input.layout;
  const int axis = plan.axis;
  Job job;
  job.n = layout.rank == 0 ? 1 : layout.sizes[axis];
  job.k = plan.k;
  if (job.k <= 0) return;
  const int width = plan.input.element_size;
  for (int i = 0; i < layout.rank; ++i) {
    if (layout.sizes[i] == 0) return;
    if (i == axis) continue;
    job.rows.push(layout.sizes[i], layout.strides[i]);
    job.value_rows.push(layout.sizes[i], plan.values.layout.strides[i]);
    job.index_rows.push(layout.sizes[i], plan.indices.layout.strides[i]);
  }
  Layout* layouts[3] = {&job.rows, &job.value_rows, &job.index_rows};
  collapse(layouts);
  job.input = static_cast<const char*>(input);
  job.values = static_cast<char*>(values);
  job.indices = static_cast<char*>(indices);
  const bool scalar = layout.rank == 0;
  job.wide_index = plan.indices.element_size == 8;
  job.stride = scalar || job.n == 1 ? width : layout.strides[axis];
  job.value_stride = scalar || job.k == 1 ? width : plan.values.layout.strides[axis];
  job.index_stride =
      scalar || job.k == 1 ? plan.indices.element_size : plan.indices.layout.strides[axis];
  job.stream = job.k >= 4096 && job.rows.count() * job.k * width >= kStreamBytes;
  job.threads = threads < 1 ? 1 : threads;
  job.nan_last = plan.nan_last && plan.largest;
  job.sorted = plan.sorted;
  job.from_end = plan.last_first;
  if (job.from_end) {
    job.input += (job.n - 1) * job.stride;
    job.stride = -job.stride;
  }
  job.fill = plan.fill;
  Scratch<Int> own_lengths;
  if (plan.lengths.layout.count() > 0 && lengths != nullptr) {
    own_lengths = lengths_of(plan, lengths, job.n);
    job.lengths = own_lengths.get();
  }

  job.algorithm = forced != TopKAlgorithm::automatic && applicable(forced, job.n, job.k, width) &&
                          (job.sorted || forced != TopKAlgorithm::sort)
                      ? forced
                      : choose(job.n, job.k, width, job.sorted);
  const int last = job.rows.rank - 1;
  const Int distance = last >= 0 ? std::abs(job.rows.strides[last]) : 0;
  const bool side_by_side =
      distance > 0 && distance <= kMaxStrideElements * width && job.rows.sizes[last] >= 64 / width;
  const bool vertical = side_by_side && job.lengths == nullptr &&
                        applicable(TopKAlgorithm::vertical, job.n, job.k, width);
  if (job.algorithm == TopKAlgorithm::vertical && !vertical)
    job.algorithm = choose(job.n, job.k, width, job.sorted);
  else if (forced == TopKAlgorithm::automatic && vertical && distance < std::abs(job.stride) &&
           job.algorithm == TopKAlgorithm::maxima)
    job.algorithm = TopKAlgorithm::vertical;

  const unsigned long long smallest = plan.largest ? 0 : ~0ull;
  const unsigned long long sign = 1ull << (8 * width - 1);
  switch (plan.input.type) {
    case DataType::float16:
      job.flip = smallest;
      return run_float2(job);
    case DataType::bfloat16:
      job.flip = smallest;
      return run_bfloat(job);
    case DataType::float32:
      job.flip = smallest;
      return run_float4(job);
    case DataType::float64:
      job.flip = smallest;
      return run_float8(job);
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64:
      job.flip = smallest;
      break;
    default:
      job.flip = sign ^ smallest;
  }
  switch (width) {
    case 1:
      return run_integer1(job);
    case 2:
      return run_integer2(job);
    case 4:
      return run_integer4(job);
    default:
      return run_integer8(job);
  }
}

}  // namespace top_k

void TopKPlan::run(const void* source, void* to_values, void* to_indices, int threads,
                   const void* of_rows) const {
  top_k::run(*this, source, to_values, to_indices, threads, TopKAlgorithm::automatic, of_rows);
}

}  // namespace anydml
