// SCATTER and SCATTER_ND of single elements by buckets of neighbouring ones that fit shared memory:
// moves, and what may be combined in any order. Indices that are in order as they lie are seen to
// before (scatter_ordered.cpp).
//
//   count    reads the indices, once: keys, and how many updates each bucket has (scatter_count.cu)
//   append   moves the updates to their buckets, in any order (scatter_append.cu)
//   bucket   every element of the output once (scatter_bucket.cu)
//   crowded  buckets of more updates than one block takes, by several
//
// Scratch: a key and a record an update, and what crowded buckets need.
#include <algorithm>

#include "scatter/cuda/scatter_job.hpp"

namespace anydml::cuda::scatter {
namespace {

// Of fewer updates, other ways take less time.
constexpr Int kMinMoves = 100'000, kMinCombined = 1 << 16;
// Buckets are as small as their number allows; large ones have room for one block only.
constexpr Int kWantedBuckets = 1024;
constexpr unsigned kMinBucketLog = 12, kUsualLog = 13;
constexpr Int kSparse = 24;  // elements of an update, from which on these are put in place

// Whether a list has the elements side by side, in whole units.
bool is_packed(const Layout& layout, Int size, const void* data, Int unit) {
  return layout.rank == 1 && layout.strides[0] == size && unit_of(data) >= unit;
}

}  // namespace

bool in_any_order(const Job& job) {
  const bool ordered = job.reduction == Reduction::min || job.reduction == Reduction::max;
  return job.reduction != Reduction::none &&
         (is_integer_type(job.type) || (ordered && is_float_type(job.type)));
}

bool by_buckets(const Job& job, const BadIndexReport& report, Queue& queue) {
  const Int count = job.tuples(), slices = job.slices();
  const int size = job.output.element_size;
  const bool moves = job.reduction == Reduction::none;
  if (job.slice_elements() != 1 || job.size != size || size > 8) return false;
  if (!moves && !in_any_order(job)) return false;
  if (!job.output.layout.packed(size) || !job.input.layout.packed(size)) return false;
  if (count < (moves ? kMinMoves : kMinCombined) || count >= Int{1} << 31) return false;
  const bool numbered = size == 8 || (!moves && is_float_type(job.type));
  const Int cell = moves ? 4 : numbered ? 8 : 4, record = numbered ? 16 : 8;
  const Int of_element = moves ? cell + size : cell;
  Buckets of{};
  of.bucket_log = std::clamp(log_above((slices + kWantedBuckets - 1) / kWantedBuckets),
                             kMinBucketLog, kUsualLog);
  if (slices > Int{kMaxBuckets} << kUsualLog) of.bucket_log = kMaxBucketLog;
  while (of.bucket_log > kMinBucketLog && of_element << of.bucket_log > Int{queue.max_shared()})
    --of.bucket_log;
  of.buckets = blocks_for(slices, 1 << of.bucket_log);
  const auto shared = static_cast<unsigned>(of_element << of.bucket_log);
  unsigned append_threads = kAppendThreads, append_shared = 0;
  const auto append_with = [&](unsigned threads) {
    append_threads = threads;
    append_shared = static_cast<unsigned>(Int{threads} * kAppendGroups * kGroup * (record + 2) +
                                          8 * Int{of.buckets} + 8);
  };
  // Of many buckets, a larger tile has several updates of each.
  append_with(of.buckets > 2 * kWantedBuckets ? kMaxAppendThreads : kAppendThreads);
  if (append_shared > queue.max_shared()) append_with(kAppendThreads);
  if (of.buckets > kMaxBuckets || std::max(shared, append_shared) > queue.max_shared())
    return false;
  of.count = static_cast<unsigned>(count);
  of.slices = static_cast<unsigned>(slices);
  of.span = numbered || !moves ? of.count : std::min(of.count, epoch_span(of.bucket_log));
  of.epochs = blocks_for(count, of.span);
  of.moves = moves ? 1 : 0;
  of.in_place = moves && job.in_place && count < slices / kSparse ? 1 : 0;
  Layout from = job.index_tuples, base = job.base, updates = job.update_tuples;
  Layout* both[2] = {&from, &base};
  collapse(both);
  Layout* only[1] = {&updates};
  collapse(only);
  of.packed = job.length == 1 && job.scales[0] == 1 && from.rank == 1 && base.strides[0] == 0 &&
              is_packed(from, job.indices.element_size, job.index_data, 16);
  of.packed_updates = is_packed(updates, size, job.update_data, size == 1 ? 8 : 16);
  const Int bins = Int{of.buckets} * of.epochs, crowded = count / kCrowded;
  const Int zeros = Int{sizeof(BucketState)} + bins * Int{sizeof(unsigned)};
  of.state = static_cast<BucketState*>(queue.scratch(zeros));
  of.counts = reinterpret_cast<unsigned*>(of.state + 1);
  of.order = may_be_ordered(job) ? &of.state->order : nullptr;
  of.offsets = queue.scratch_of<unsigned>(bins + 1);
  of.keys = queue.scratch_of<unsigned>(count + kGroup);
  of.pieces = queue.scratch_of<Piece>(2 * crowded + 1);
  of.left = queue.scratch_of<unsigned>(crowded + 1);
  of.slots = queue.scratch_of<unsigned>(of.buckets);
  of.maps = queue.scratch((crowded * cell) << of.bucket_log);
  of.records = queue.scratch(count * record);
  queue.zero(of.state, zeros);

  const Int groups = blocks_for(of.span, kGroup * kCountThreads);
  const Int columns = std::clamp<Int>(queue.multiprocessors() / of.epochs, 1, groups);
  Function& count_kernel = queue.function("scatter_count", "scatter_count",
                                          {{"INDEX", static_cast<Int>(job.indices.type)}});
  const Dim grid{static_cast<unsigned>(columns), of.epochs};
  queue.launch(count_kernel, grid, {kCountThreads}, 4 * of.buckets, job.index_data,
               places_of(from, &base), tuples_of(job), of, 0, report);
  if (of.order != nullptr) {
    put_in_order(job, of.order, queue);
    queue.launch_dependent(count_kernel, grid, {kCountThreads}, 4 * of.buckets, job.index_data,
                           places_of(from, &base), tuples_of(job), of, 1, report);
  }
  const Places places = places_of(updates);
  queue.launch_dependent(
      queue.function("scatter_append", "scatter_append", {{"SIZE", size}, {"NUMBERED", numbered}}),
      {blocks_for(count, append_threads * kAppendGroups * kGroup)}, {append_threads}, append_shared,
      job.update_data, places, of);
  const Dim threads{of.bucket_log > kUsualLog ? max_bucket_threads(moves, size) : kBucketThreads};
  const auto bucket = [&](const char* entry, unsigned blocks) {
    queue.launch_dependent(
        queue.function("scatter_bucket", entry,
                       {{"TYPE", moves ? 0 : static_cast<Int>(job.type)}, {"SIZE", size}}),
        {blocks}, threads, shared, job.output_data, job.input_data, job.update_data, places, of,
        static_cast<int>(job.reduction), report);
  };
  bucket("scatter_bucket", of.buckets);
  bucket("scatter_crowded", static_cast<unsigned>(2 * queue.multiprocessors()));
  return true;
}

}  // namespace anydml::cuda::scatter
