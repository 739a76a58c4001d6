// TOP_K of rows by the kernels that choose without sorting.
#include <algorithm>
#include <cstdint>

#include "top_k/cuda/top_k_job.hpp"

namespace anydml::cuda::selection {
namespace {

constexpr int kElementsPerThread = 16,
              kSmallElementsPerThread = 8;  // elements of a thread of top_k_short

// Whether every row starts at a multiple of this many bytes.
bool aligned(const Job& job, Int bytes) {
  const Rows& rows = job.rows;
  const char* const first = rows.source != nullptr ? rows.source : rows.input;
  if (reinterpret_cast<uintptr_t>(first) % static_cast<uintptr_t>(bytes) != 0) return false;
  if (rows.source != nullptr) return rows.n * job.width % bytes == 0;
  for (int i = 0; i < rows.rank; ++i)
    if (rows.input_strides[i] % bytes != 0) return false;
  return true;
}

void ranks(const Job& job, Queue& queue) {
  int lanes = 1;
  while (lanes < job.rows.n) lanes *= 2;
  Function& kernel = queue.function("top_k_small", "top_k_ranks",
                                    {{"width", job.width}, {"is_float", job.is_float}});
  const Int per_block = 256 / lanes;
  queue.launch(kernel, {max_blocks((job.rows.rows + per_block - 1) / per_block)}, {256}, 0,
               job.rows, lanes);
}

void rounds(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  const bool fours = rows.n % 4 == 0 && aligned(job, job.width == 8 ? 16 : 4 * job.width);
  Function& kernel = queue.function("top_k_small", "top_k_rounds",
                                    {{"width", job.width}, {"is_float", job.is_float}});
  queue.launch(kernel, {max_blocks((rows.rows + 7) / 8)}, {256}, 0, rows, fours ? 1 : 0);
}

// A dependent launch after the one whose results are the rows, if there is one.
template <class... Arguments>
void launch(const Job& job, Queue& queue, Function& kernel, Dim grid, Dim block, unsigned shared,
            Arguments... arguments) {
  if (job.rows.source != nullptr)
    queue.launch_dependent(kernel, grid, block, shared, arguments...);
  else
    queue.launch(kernel, grid, block, shared, arguments...);
}

// Threads, and how many of them may reach the bound, 0 for all elements. No threads: the case does
// not apply.
struct Short {
  Int threads, high;
  bool small_k = false;  // k is small
  Int per_thread = kElementsPerThread;
};
Short short_plan(Int n, Int k, int width, bool is_aligned) {
  const Int vector = 16 / width, max_length = is_aligned ? n : n + vector - 1;
  const Int min_threads = power_of_two((max_length + kElementsPerThread - 1) / kElementsPerThread);
  if (min_threads > 512) return {0, 0};
  // Bytes have too many ties.
  if (width > 1 && k <= 16 && 2 * k <= n / vector) {
    const Int threads =
        power_of_two((max_length + kSmallElementsPerThread - 1) / kSmallElementsPerThread);
    return {std::min<Int>(threads, 512), k + k / 2 + 4, true,
            threads > 512 ? kElementsPerThread : kSmallElementsPerThread};
  }
  const Int threads = std::max(min_threads, power_of_two(4 * k));
  // The k greatest must come from k different threads.
  if (threads <= 512 && 2 * k <= n / vector) return {threads, k + k / 2 + 4};
  if (n > 4096) return {0, 0};
  return {std::min<Int>(std::max(min_threads, power_of_two(n / 4)), 512), 0};
}

void short_rows(const Job& job, const Short& plan, Queue& queue) {
  const Rows& rows = job.rows;
  const Int capacity = plan.high == 0 ? rows.n : std::min(rows.n, plan.per_thread * plan.high);
  const bool full = plan.small_k && rows.lengths == nullptr &&
                    rows.n == plan.threads * plan.per_thread && aligned(job, 16);
  Function& kernel = queue.function("top_k_short", "top_k_short",
                                    {{"width", job.width},
                                     {"is_float", job.is_float},
                                     {"threads", plan.threads},
                                     {"small_k", plan.small_k},
                                     {"per_thread", plan.per_thread},
                                     {"full", full}});
  launch(job, queue, kernel, {max_blocks(rows.rows)}, {static_cast<unsigned>(plan.threads)},
         static_cast<unsigned>(power_of_two(capacity) * item_size(job.width)), rows,
         static_cast<int>(plan.high), static_cast<int>(capacity));
}

// Keys in the order that all kernels have: NaN last among the largest, and rows read from their
// end, become keys made beforehand.
Job prepared(Job job, Queue& queue) {
  Rows& rows = job.rows;
  void* const keys = queue.scratch(rows.rows * rows.n * job.width);
  void* places = nullptr;
  rows.wide_places = rows.n >= kWide;
  if (rows.last_first) places = queue.scratch(rows.rows * rows.n * (rows.wide_places ? 8 : 4));
  Function& kernel = queue.function("top_k_prepare", "top_k_prepare",
                                    {{"width", job.width}, {"is_float", job.is_float}});
  const Int tiles = (rows.n + 1023) / 1024;
  queue.launch(kernel, {max_blocks(rows.rows * tiles)}, {256}, 0, rows, keys, places, tiles);
  job.is_float = 0;
  rows.flip = 1ull << (8 * job.width - 1);
  rows.source = static_cast<const char*>(keys);
  rows.places = places;
  rows.nan_last = rows.last_first = false;
  return job;
}

}  // namespace

void choose(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  const bool plain = !rows.nan_last && !rows.last_first;
  const Int n = rows.n, k = rows.k;
  const bool wide = n >= kWide;
  const Short plan = short_plan(n, k, job.width, aligned(job, 16));
  const bool small = n <= 32 || (n <= 128 && k <= 32), short_row = !small && plan.threads > 0;
  const bool is_long = !small && !short_row;
  if (is_long && !wide && k <= list_capacity(job, queue)) return select(job, queue);
  if (is_long && picks(rows)) return sort(job, queue);
  if (!plain) return choose(prepared(job, queue), queue);
  if (n <= 32) return ranks(job, queue);
  if (small) return rounds(job, queue);
  if (short_row) return short_rows(job, plan, queue);
  sort(job, queue);
}

bool columns(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  const Int n = rows.n, k = rows.k, per_lane = job.width == 8 ? 8 : 16;
  const Int segments = (n + 32 * per_lane - 1) / (32 * per_lane);
  // Of more than one tile a quarter is left at most: else it is a copy.
  if (rows.lengths != nullptr || !rows.sorted || rows.nan_last || rows.last_first ||
      rows.rank == 0 || rows.input_strides[rows.rank - 1] != job.width || k > 4096 ||
      (segments > 1 && k > 4 * per_lane))
    return false;
  const Int count = rows.sizes[rows.rank - 1];
  if (count < 8) return false;
  // The results of segments are rows to choose from.
  Parts parts{};
  parts.segments = segments;
  parts.length = n / segments;
  parts.longer = n % segments;
  const Int results = rows.rows * segments * k;
  parts.keys = queue.scratch(results * job.width);
  parts.wide_places = n >= kWide;
  parts.places = queue.scratch(results * (parts.wide_places ? 8 : 4));
  Job next = job;
  next.is_float = 0;
  next.rows.flip = 1ull << (8 * job.width - 1);
  next.rows.n = segments * k;
  next.rows.source = static_cast<const char*>(parts.keys);
  next.rows.places = parts.places;
  next.rows.wide_places = parts.wide_places;
  const Int across = std::min<Int>(count, 16), bands = (count + across - 1) / across;
  Function& kernel =
      queue.function("top_k_columns", "top_k_columns",
                     {{"width", job.width}, {"is_float", job.is_float}, {"per_thread", per_lane}});
  queue.launch(kernel, {max_blocks(rows.rows / count * bands * segments)}, {256},
               static_cast<unsigned>(across * (32 * per_lane + 1) * job.width), rows, parts,
               static_cast<int>(across), count, bands);
  choose(next, queue);
  return true;
}

}  // namespace anydml::cuda::selection
