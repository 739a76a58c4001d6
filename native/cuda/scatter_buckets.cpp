// SCATTER and SCATTER_ND by a stable partition into buckets: the passes of scatter_buckets.cu.
// Scratch: a key, a place and an element an update, and a number a bucket of every tile.
#include <algorithm>

#include "scatter_job.hpp"

namespace anydml::cuda::scatter {
namespace {

constexpr Int kFewUpdates = 1 << 16;       // below which sorting is as good
constexpr unsigned kFewestBucketLog = 12;  // of the elements of a bucket

}  // namespace

bool is_short_integer(DataType type) {
  switch (type) {
    case DataType::uint32:
    case DataType::uint16:
    case DataType::uint8:
    case DataType::int32:
    case DataType::int16:
    case DataType::int8:
      return true;
    default:
      return false;
  }
}

bool by_buckets(const Job& job, const BadIndexReport& report, Queue& queue) {
  const Int count = job.tuples(), slices = job.slices();
  const int size = job.output.element_size;
  const bool moves = job.reduction == Reduction::none;
  if (job.slice_elements() != 1 || job.size != size || size > 8) return false;
  if (!moves && !is_short_integer(job.type)) return false;
  if (!job.output.layout.packed(size) || !job.input.layout.packed(size)) return false;
  if (count < kFewUpdates || count >= Int{1} << 31 || slices > Int{kMostBuckets} << kMostBucketLog)
    return false;
  Partition part;
  part.count = static_cast<unsigned>(count);
  part.slices = static_cast<unsigned>(slices);
  part.bucket_log =
      std::max(log_above((slices + kMostBuckets - 1) / kMostBuckets), kFewestBucketLog);
  part.buckets = blocks_for(slices, 1 << part.bucket_log);
  part.tiles = blocks_for(count, kPartTile);
  part.chunks = blocks_for(part.tiles, kPartChunk);
  unsigned* const keys = queue.scratch_of<unsigned>(count);
  part.keys = keys;
  part.counts = queue.scratch_of<unsigned>(Int{part.tiles} * part.buckets);
  part.partial = queue.scratch_of<unsigned>(Int{part.chunks} * part.buckets);
  part.begins = queue.scratch_of<unsigned>(part.buckets + 1);
  part.places = queue.scratch_of<unsigned short>(count);
  part.values = queue.scratch(count * size);
  find_keys(job, keys, 4, nullptr, report, queue, moves);
  const auto kernel = [&](const char* entry, bool moving) -> Function& {
    return queue.function("scatter_buckets", entry,
                          {{"TYPE", moving ? 0 : static_cast<Int>(job.type)}, {"SIZE", size}});
  };
  const unsigned across = blocks_for(part.buckets, kScatterThreads);
  queue.launch(kernel("scatter_count", true), {part.tiles}, {kPartThreads}, 0, part);
  queue.launch(kernel("scatter_chunk_sums", true), {part.chunks * across}, {kScatterThreads}, 0,
               part);
  queue.launch(kernel("scatter_begins", true), {}, {kBeginThreads}, 0, part);
  queue.launch(kernel("scatter_offsets", true), {part.chunks * across}, {kScatterThreads}, 0, part);
  queue.launch(kernel("scatter_part", true), {part.tiles}, {kPartThreads},
               part_bytes(static_cast<unsigned>(size)), job.update_data,
               places_of(job.update_tuples), part);
  const Dim grid{part.buckets};
  const unsigned words = 4u << part.bucket_log;
  if (moves) {
    queue.launch(kernel("scatter_bucket", true), grid, {kBucketThreads}, words / 2, job.output_data,
                 job.input_data, part, report);
    if (part.count > kMostNarrow)
      queue.launch(kernel("scatter_wide_bucket", true), grid, {kWideBucketThreads}, words,
                   job.output_data, job.input_data, part, report);
  } else {
    queue.launch(kernel("scatter_sum_bucket", false), grid, {kWideBucketThreads}, words,
                 job.output_data, job.input_data, part, static_cast<int>(job.reduction), report);
  }
  return true;
}

}  // namespace anydml::cuda::scatter
