// TOP_K of rows by the kernels that choose without sorting.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "top_k_job.hpp"

namespace anydml::cuda::selection {
namespace {

constexpr int kElementsPerThread = 16,
              kSmallElementsPerThread = 8;  // elements of a thread of top_k_short
constexpr int kLongThreads = 512, kLongBlocks = 2, kLongUnroll = 4;
constexpr Int kMaxPublished = 32 * kLongThreads;  // of a row's sample

Int item_size(int width) { return width == 8 ? 16 : 8; }

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

// How many candidates of a sample may reach the bound so that almost certainly k of n do, and not
// many more. The k greatest are k / n of the sample, with a standard deviation of its square root;
// neighbouring elements are sampled together.
bool sampling_plan(Int n, Int k, int width, int threads, Sampling& sampling) {
  const Int vector = 16 / width, sampled_per_vector = std::min<Int>(vector, 4);
  const Int max_capacity = width == 8 ? 4096 : 8192;
  const double size =
      static_cast<double>(sampled_per_vector * std::min<Int>(threads, n / vector - 1));
  const double part = static_cast<double>(k) / static_cast<double>(n), expected = size * part;
  const double low =
      expected + 3.5 * std::sqrt(expected * (1 - part)) + static_cast<double>(sampled_per_vector);
  const double high = low + std::max(2.0, low / 8);
  double capacity = (high + 4 * std::sqrt(high) + static_cast<double>(sampled_per_vector)) *
                    static_cast<double>(n) / size;
  sampling.low = static_cast<int>(low);
  sampling.high = static_cast<int>(high);
  if (low > 0.8 * size || capacity > 0.9 * static_cast<double>(n)) {
    sampling.low = sampling.high = 0;
    capacity = static_cast<double>(n);
  }
  sampling.capacity = capacity <= 4096 ? 4096 : 8192;
  return capacity <= static_cast<double>(max_capacity);
}

// Where there are many rows that are not very long, twice as many blocks are faster, each of half
// the threads: while some compute bounds, others read.
int long_threads(const Rows& rows, Int segments, Queue& queue) {
  const bool many = rows.rows >= kLongBlocks * queue.multiprocessors() && segments == 1;
  return many && rows.n < 98304 && rows.k <= 128 ? kLongThreads / 2 : kLongThreads;
}

// Segments of each row: enough to fill the GPU, few enough that their results are not many.
Int segments_of(const Rows& rows, int width, Queue& queue) {
  const Int n = rows.n, k = rows.k;
  const Int longest = k > 512 || width == 8 ? Int{1} << 17 : Int{1} << 18;
  Int segments = 1;
  if (n >= 65536) {
    const Int blocks = kLongBlocks * queue.multiprocessors();
    segments = rows.rows < blocks ? blocks / rows.rows : 1;
    const double balanced = 1.5 * std::sqrt(static_cast<double>(n) / static_cast<double>(k));
    segments = std::min(segments, static_cast<Int>(balanced));
  }
  segments = std::max(segments, (n + longest - 1) / longest);
  return std::max<Int>(std::min({segments, n / 4096, n / (4 * k)}), 1);
}

void long_rows(const Job& job, const Sampling& sampling, const Parts& parts, Queue& queue) {
  const int threads = long_threads(job.rows, parts.segments, queue);
  Function& kernel = queue.function("top_k_long", "top_k_long",
                                    {{"width", job.width},
                                     {"is_float", job.is_float},
                                     {"smallest", job.is_float != 0 && job.rows.flip != 0},
                                     {"threads", threads},
                                     {"blocks", kLongBlocks * kLongThreads / threads},
                                     {"unroll", kLongUnroll}});
  launch(job, queue, kernel, {max_blocks(job.rows.rows * parts.segments)},
         {static_cast<unsigned>(threads)},
         static_cast<unsigned>(sampling.capacity * item_size(job.width)), job.rows, parts,
         sampling);
}

// Of whole rows.
Parts parts_of(Int n, Int segments) {
  Parts parts{};
  parts.segments = segments;
  parts.length = n / segments;
  parts.longer = n % segments;
  return parts;
}

// Allocates the results of parts, and makes the job that chooses among them.
Parts parts_for(const Job& job, Int segments, bool ordered, Queue& queue, Job& next) {
  const Int count = job.rows.rows * segments * job.rows.k;
  Parts parts = parts_of(job.rows.n, segments);
  parts.keys = queue.scratch(count * job.width);
  parts.wide_places = job.rows.places != nullptr ? job.rows.wide_places : job.rows.n >= kWide;
  parts.places = queue.scratch(count * (parts.wide_places ? 8 : 4));
  parts.ordered = ordered || parts.wide_places;
  next = job;
  next.is_float = 0;
  next.rows.flip = 1ull << (8 * job.width - 1);
  next.rows.n = segments * job.rows.k;
  next.rows.source = static_cast<const char*>(parts.keys);
  next.rows.places = parts.places;
  next.rows.wide_places = parts.wide_places;
  next.rows.ordered = parts.ordered;
  if (job.rows.lengths != nullptr) {
    parts.lengths = queue.scratch_of<Int>(job.rows.rows);
    next.rows.lengths = parts.lengths;
    next.rows.length_stride = sizeof(Int);
    next.rows.wide_lengths = true;
    next.rows.unsigned_lengths = false;
  }
  return parts;
}

// Segments short enough for a sample to represent. False if there are none.
bool long_plan(const Rows& rows, int width, Queue& queue, Int& segments, Sampling& sampling) {
  segments = segments_of(rows, width, queue);
  while (!sampling_plan(rows.n / segments, rows.k, width, long_threads(rows, segments, queue),
                        sampling)) {
    segments *= 2;
    if (segments > rows.n / (4 * rows.k) || segments > rows.n / 4096) return false;
  }
  return true;
}

// Plans a cooperative launch for few long rows. False: the case does not apply.
bool plan_cooperation(const Job& job, Int blocks, Cooperation& cooperation) {
  const Rows& rows = job.rows;
  const Int vector = 16 / job.width, sampled_per_vector = std::min<Int>(vector, 4);
  cooperation = {};
  cooperation.segments = std::min(blocks / rows.rows, rows.n / 16384);
  if (cooperation.segments < 4) return false;
  cooperation.length = rows.n / cooperation.segments;
  cooperation.longer = rows.n % cooperation.segments;
  const double n = static_cast<double>(rows.n);
  const double size = static_cast<double>(cooperation.segments * kLongThreads * sampled_per_vector);
  const double part = static_cast<double>(rows.k) / n, expected = size * part;
  const double low =
      expected + 3.5 * std::sqrt(expected * (1 - part)) + static_cast<double>(sampled_per_vector);
  const double high = low + std::max(2.0, low / 8);
  const double capacity =
      (high + 4 * std::sqrt(high) + static_cast<double>(sampled_per_vector)) * n / size;
  cooperation.low = static_cast<int>(low);
  cooperation.high = static_cast<int>(high);
  cooperation.groups = 16;
  while (cooperation.groups < cooperation.low) cooperation.groups *= 2;
  cooperation.capacity = 4096;
  // Each block reads all results of the row's blocks.
  return cooperation.groups * cooperation.segments <= kMaxPublished &&
         cooperation.groups <= kLongThreads && capacity <= 0.9 * cooperation.capacity;
}

// Few long rows, in one cooperative launch. False: the case does not apply.
bool select_cooperatively(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  if (rows.source != nullptr || rows.n < 65536 || rows.n >= kWide || rows.k > 1024) return false;
  const Int max_blocks = kLongBlocks * queue.multiprocessors();
  Cooperation cooperation;
  if (!plan_cooperation(job, max_blocks, cooperation)) return false;
  Function& kernel = queue.function("top_k_cooperative", "top_k_cooperative",
                                    {{"width", job.width},
                                     {"is_float", job.is_float},
                                     {"smallest", job.is_float != 0 && rows.flip != 0},
                                     {"threads", kLongThreads},
                                     {"blocks", kLongBlocks},
                                     {"unroll", kLongUnroll}});
  const Int item = item_size(job.width);
  const auto shared = static_cast<unsigned>(cooperation.capacity * item);
  const Int resident = Int{queue.resident(kernel, kLongThreads, shared)} * queue.multiprocessors();
  if (resident < max_blocks && !plan_cooperation(job, resident, cooperation)) return false;
  const Int words =
      rows.rows * anydml::top_k::kCooperationWords * static_cast<Int>(sizeof(unsigned));
  cooperation.work = static_cast<unsigned*>(queue.scratch(words));
  queue.zero(cooperation.work, words);
  cooperation.sample = queue.scratch(rows.rows * cooperation.segments * cooperation.groups * item);
  cooperation.found = queue.scratch(rows.rows * 2 * cooperation.capacity * item);
  queue.launch_cooperative(kernel, {static_cast<unsigned>(rows.rows * cooperation.segments)},
                           {kLongThreads}, shared, rows, cooperation);
  return true;
}

}  // namespace

void choose(const Job& job, Queue& queue) {
  const Int n = job.rows.n, k = job.rows.k;
  if (!job.rows.sorted && n >= kWide) return sort(job, queue);  // positions do not fit short keys
  if (n <= 32) return ranks(job, queue);
  if (n <= 128 && k <= 32) return rounds(job, queue);
  const Short plan = short_plan(n, k, job.width, aligned(job, 16));
  if (plan.threads > 0) return short_rows(job, plan, queue);
  if (select_cooperatively(job, queue)) return;
  Int segments;
  Sampling sampling;
  if (!long_plan(job.rows, job.width, queue, segments, sampling)) return sort(job, queue);
  if (segments == 1) return long_rows(job, sampling, parts_of(n, 1), queue);
  // Unordered segments need the kernel of long rows with one block a row: several blocks could
  // split the ties of one segment between them.
  Rows rest = job.rows;
  rest.n = segments * k;
  Int of_rest;
  Sampling sampling_of_rest;
  const bool by_blocks =
      rest.n > 8192 && long_plan(rest, job.width, queue, of_rest, sampling_of_rest) && of_rest == 1;
  // Pairs are sorted by position only while they are in the order of their positions.
  if (!rest.sorted && !by_blocks && rest.n > 4096 &&
      short_plan(rest.n, k, job.width, false).threads == 0)
    return sort(job, queue);
  // The places of rows that are read from their end descend, so that they are no order of ties.
  const bool ordered = !by_blocks || rest.from_end;
  Job next;
  const Parts parts = parts_for(job, segments, ordered, queue, next);
  long_rows(job, sampling, parts, queue);
  choose(next, queue);
}

bool columns(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  const Int n = rows.n, k = rows.k, per_lane = job.width == 8 ? 8 : 16;
  const Int segments = (n + 32 * per_lane - 1) / (32 * per_lane);
  // Of more than one tile a quarter is left at most: else it is a copy.
  if (rows.lengths != nullptr || !rows.sorted || rows.rank == 0 ||
      rows.input_strides[rows.rank - 1] != job.width || k > 4096 ||
      (segments > 1 && k > 4 * per_lane))
    return false;
  const Int count = rows.sizes[rows.rank - 1];
  if (count < 8) return false;
  Job next;
  const Parts parts = parts_for(job, segments, true, queue, next);
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
