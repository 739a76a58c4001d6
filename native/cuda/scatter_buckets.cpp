// SCATTER and SCATTER_ND by a partition into buckets that fit shared memory: the passes of
// scatter_bin.cu, scatter_part.cu and scatter_buckets.cu. Indices that are in order as they lie are
// seen to before (scatter_ordered.cpp).
//
//   bin      reads the indices, once: keys, and how many of each tile go into each bucket; whether
//            keys ascend or descend
//   offsets, begins: where each group of tiles begins in each bucket
//   part     moves the updates there; not where keys are in order
//   bucket   every element of the output once
//   overfull   buckets of more updates than one block takes, by several
//
// Scratch: a key, a place and an element an update, and what crowded buckets need.
#include <algorithm>

#include "scatter_job.hpp"

namespace anydml::cuda::scatter {
namespace {

constexpr Int kMinUpdates = 1 << 16;    // below which sorting is as good
constexpr unsigned kMinBucketLog = 12;  // of the elements of a bucket

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
  const unsigned max_log = log_above(kBucketBytes / (size <= 4 ? 4 : 8));
  if (count < kMinUpdates || count >= Int{1} << 31 || slices > Int{kMaxBuckets} << max_log)
    return false;
  // Few buckets keep the updates of a tile together; of small outputs, as many as blocks can be.
  const Int max_buckets = kMaxBuckets / 2;
  Partition part;
  part.order = nullptr;
  part.count = static_cast<unsigned>(count);
  part.slices = static_cast<unsigned>(slices);
  part.bucket_log =
      std::clamp(log_above((slices + max_buckets - 1) / max_buckets), kMinBucketLog, max_log);
  part.buckets = blocks_for(slices, 1 << part.bucket_log);
  const unsigned part_shared = part_bytes(size, part.buckets);
  if (std::max(part_shared, kBucketBytes) > queue.max_shared()) return false;
  part.order = by_order(job, queue);
  part.tile = part_tile(size);
  part.tiles = blocks_for(count, part.tile);
  part.group = std::clamp(part.tiles / (4 * static_cast<unsigned>(queue.multiprocessors())), 1u,
                          kMaxGroup / part.tile);
  part.groups = blocks_for(part.tiles, part.group);
  part.last_only = moves ? 1 : 0;
  part.in_order = moves || is_float_type(job.type) ? 1 : 0;
  part.keys = queue.scratch_of<unsigned>(count);
  part.before = queue.scratch_of<unsigned short>(Int{part.tiles} * part.buckets);
  part.counts = queue.scratch_of<unsigned>(Int{part.groups} * part.buckets);
  part.totals = queue.scratch_of<unsigned>(part.buckets);
  part.firsts = queue.scratch_of<unsigned>(part.buckets);
  part.bucket_offsets = queue.scratch_of<unsigned>(part.buckets);
  part.edges = queue.scratch_of<PartEdge>(part.groups);
  part.state = queue.scratch_of<PartState>(1);
  const Int overfull = count / kOverfullBucketSize,
            capacity = count + Int{kUpdatesPerRead} * part.buckets;
  part.pieces = queue.scratch_of<PartPiece>(2 * overfull + 1);
  part.left = queue.scratch_of<unsigned>(overfull + 1);
  part.maps = queue.scratch(overfull * map_bytes(!moves && is_float_type(job.type), size));
  part.places = queue.scratch_of<unsigned short>(capacity);
  part.values = queue.scratch(capacity * size);

  Layout from = job.index_tuples, base = job.base;
  Layout* both[2] = {&from, &base};
  collapse(both);
  const Places updates = places_of(job.update_tuples);
  const auto bin = [&](const char* entry) -> Function& {
    return queue.function("scatter_bin", entry, {{"INDEX", static_cast<Int>(job.indices.type)}});
  };
  queue.launch(bin("scatter_bin"), {part.groups}, {kBinThreads}, 0, job.index_data,
               places_of(from, &base), tuples_of(job), part, report);
  queue.launch(bin("scatter_offsets"), {blocks_for(part.buckets, 32)}, {kBeginThreads}, 0, part);
  queue.launch(bin("scatter_bucket_offsets"), {}, {kBeginThreads}, 0, part);
  queue.launch(queue.function("scatter_part", "scatter_part", {{"SIZE", size}}), {part.tiles},
               {part_threads(size)}, part_shared, job.update_data, updates, part);
  const unsigned words = (size <= 4 ? 4u : 8u) << part.bucket_log;
  const auto bucket = [&](const char* entry, unsigned blocks) {
    queue.launch(queue.function("scatter_buckets", entry,
                                {{"TYPE", moves ? 0 : static_cast<Int>(job.type)}, {"SIZE", size}}),
                 {blocks}, {kBucketThreads}, words, job.output_data, job.input_data,
                 job.update_data, updates, part, static_cast<int>(job.reduction), report);
  };
  bucket("scatter_bucket", part.buckets);
  if (overfull > 0)
    bucket("scatter_overfull_buckets", static_cast<unsigned>(queue.multiprocessors()));
  return true;
}

}  // namespace anydml::cuda::scatter
