// SCATTER and SCATTER_ND that only move elements: from maps of the last update of each.
#include <algorithm>

#include "scatter/cuda/scatter_job.hpp"

namespace anydml::cuda::scatter {
namespace {

// The tensors of SCATTER; positions are those in row-major order of the indices.
enum { kOut, kIn, kIndex, kUpdate, kPosition, kTensors };

struct Problem {
  Lines lines;
  Layout rest[kTensors];  // what lies outside lines and columns
  bool full;              // the indices reach every line of the output
};

Int distance(Int stride) { return stride < 0 ? -stride : stride; }

Problem problem_of(const ScatterPlan& plan, const Job& job) {
  Layout positions = plan.indices.layout;
  set_packed_strides(positions, 1);
  const Layout* const layouts[kTensors] = {&plan.output.layout, &job.input.layout,
                                           &plan.indices.layout, &plan.updates.layout, &positions};
  Problem problem;
  problem.full = true;
  Line* const line[kTensors] = {&problem.lines.output, &problem.lines.input, &problem.lines.indices,
                                &problem.lines.updates, &problem.lines.position};
  const int rank = plan.output.layout.rank;
  for (int t = 0; t < kTensors; ++t) *line[t] = {rank == 0 ? 0 : layouts[t]->strides[plan.axis], 0};
  for (int d = 0; d < rank; ++d) {
    if (d == plan.axis) continue;
    const Int size = plan.indices.layout.sizes[d];
    problem.full = problem.full && size == plan.output.layout.sizes[d];
    for (int t = 0; t < kTensors; ++t) problem.rest[t].push(size, layouts[t]->strides[d]);
  }
  Layout* all[kTensors];
  for (int t = 0; t < kTensors; ++t) all[t] = &problem.rest[t];
  collapse(all);
  // Columns are the dimension along which the output is densest, if it is denser than the axis.
  const Layout& out = problem.rest[kOut];
  int best = -1;
  for (int i = 0; i < out.rank; ++i)
    if (distance(out.strides[i]) < distance(best < 0 ? line[kOut]->axis : out.strides[best]))
      best = i;
  problem.lines.columns = 1;
  if (best < 0) return problem;
  if (out.sizes[best] > Int{1} << 30) {
    problem.lines.columns = 0;  // too many to be counted here
    return problem;
  }
  problem.lines.columns = static_cast<unsigned>(out.sizes[best]);
  for (int t = 0; t < kTensors; ++t) {
    Layout& layout = problem.rest[t];
    line[t]->column = layout.strides[best];
    for (int i = best; i + 1 < layout.rank; ++i) {
      layout.sizes[i] = layout.sizes[i + 1];
      layout.strides[i] = layout.strides[i + 1];
    }
    --layout.rank;
  }
  return problem;
}

// Bytes of shared memory of a multiprocessor that blocks share, about.
constexpr Int kSharedBytes = 220 << 10;

struct Tiling {
  unsigned width_log, threads;
  bool wide, staged;
  Int map, bytes;
};

// Chooses the width of strips and the size of winner counts; false if they do not fit shared
// memory.
bool choose_tiling(const Lines& lines, int size, bool moves, Int max_bytes, Tiling& tiling) {
  const Int axis = lines.size, length = lines.length;
  const bool narrow = moves && length < 0xFFFF;
  const auto fits = [&](unsigned log, bool wide, bool staged) {
    tiling.width_log = log;
    tiling.wide = wide;
    tiling.staged = staged;
    tiling.map = ((axis << log) * (wide ? 4 : 2) + 15) / 16 * 16;
    tiling.bytes = tiling.map + (staged ? length * size : 0);
    tiling.threads = tiling.bytes > kSharedBytes / 2   ? 1024
                     : tiling.bytes > kSharedBytes / 4 ? 512
                                                       : 256;
    return tiling.bytes <= max_bytes;
  };
  if (lines.columns == 1)
    return (moves && fits(0, true, true)) || fits(0, true, false) ||
           (narrow && fits(0, false, false));
  const unsigned columns = log_above(lines.columns);
  // A sector of each tensor in every row; wider where that is cheap.
  const unsigned sector = std::max(log_above(std::max(32 / size, 4)), 2u);
  unsigned log = std::min(columns, 5u);
  while (log > std::min(columns, sector) &&
         !(fits(log, !narrow, false) && tiling.bytes <= kSharedBytes / 4))
    --log;
  if (fits(log, !narrow, false)) return true;
  while (log > std::min(columns, 2u))
    if (fits(--log, !narrow, false)) return true;
  return false;
}

// Below which rows do not fill the threads of a block.
constexpr Int kMinPacked = 1024;

// Whether each line is packed in every tensor, and begins and ends at a line of 16 bytes.
bool is_packed(const ScatterPlan& plan, const Job& job, const Problem& problem,
               const Tiling& tiling, bool moves) {
  const Lines& lines = problem.lines;
  const Int size = job.size, index_size = plan.indices.element_size;
  if (!tiling.wide || lines.columns != 1 || (moves && !tiling.staged)) return false;
  if (lines.length < kMinPacked || lines.size % 4 != 0 || lines.length % 4 != 0 ||
      lines.size * size % 16 != 0 || lines.length * size % 16 != 0)
    return false;
  if (lines.output.axis != size || lines.input.axis != size || lines.updates.axis != size ||
      lines.indices.axis != index_size)
    return false;
  Int unit = std::min(std::min(unit_of(job.output_data), unit_of(job.input_data)),
                      std::min(unit_of(job.update_data), unit_of(job.index_data)));
  for (int t : {kOut, kIn, kIndex, kUpdate})
    for (int i = 0; i < problem.rest[t].rank; ++i)
      unit = std::min(unit, unit_of(problem.rest[t].strides[i]));
  return unit == 16;
}

}  // namespace

bool by_lines(const ScatterPlan& plan, const Job& job, const BadIndexReport& report, Queue& queue,
              bool& published) {
  const bool moves = job.reduction == Reduction::none;
  if (job.size != plan.output.element_size) return false;
  if (!moves && (!in_any_order(job) || job.size > 4)) return false;
  const int rank = plan.output.layout.rank;
  const Int size = rank == 0 ? 1 : plan.output.layout.sizes[plan.axis];
  const Int length = rank == 0 ? 1 : plan.indices.layout.sizes[plan.axis];
  const Int longest = !moves && is_float_type(job.type) ? 1 << 22 : 1 << 24;  // codes count updates
  if (size > 1 << 20 || length > longest) return false;
  Problem problem = problem_of(plan, job);
  Lines& lines = problem.lines;
  if (lines.columns == 0) return false;
  lines.type = static_cast<int>(plan.indices.type);
  lines.reports_bad_indices = job.output_is_private;
  lines.size = static_cast<unsigned>(size);
  lines.length = static_cast<unsigned>(length);
  Tiling tiling;
  if (!choose_tiling(lines, job.size, moves, queue.max_shared(), tiling)) return false;
  lines.width_log = tiling.width_log;
  lines.width = 1u << tiling.width_log;
  lines.staged = tiling.staged ? static_cast<unsigned>(tiling.map) : 0;
  const Int strips = (lines.columns + lines.width - 1) >> tiling.width_log;
  const Int blocks = strips * problem.rest[kOut].count();
  if (blocks >= Int{1} << 31) return false;
  // Few long lines leave most of the GPU idle.
  const Int work = (size + length) << tiling.width_log;
  if (blocks < queue.multiprocessors() && work > 1 << 16) return false;
  lines.strips = divisor_of(strips);
  if (!job.output_is_private) check_indices(job, report, queue);
  lines.copies = problem.full && !job.in_place;
  const char* input = job.input_data;
  if (!problem.full) {
    copy_input(job, report, queue);
    input = job.output_data;
    problem.rest[kIn] = problem.rest[kOut];
    lines.input = lines.output;
  }
  const bool packed = is_packed(plan, job, problem, tiling, moves);
  if (packed) tiling.threads = kPackedThreads;
  Function& kernel = queue.function("scatter_lines", packed ? "scatter_packed" : "scatter_lines",
                                    {{"TYPE", moves ? 0 : static_cast<Int>(job.type)},
                                     {"SIZE", job.size},
                                     {"WIDE", tiling.wide ? 1 : 0}});
  // With few blocks the kernel ends the call itself; a separate kernel costs more.
  published = job.output_is_private && plan.output.layout.packed(job.size) &&
              blocks <= queue.multiprocessors();
  const Int bytes = published ? plan.output.layout.count() * job.size : 0;
  queue.launch(kernel, {static_cast<unsigned>(blocks)}, {tiling.threads},
               static_cast<unsigned>(tiling.bytes), job.output_data, input, job.index_data,
               job.update_data, lines, places_of(problem.rest[kOut], &problem.rest[kIn]),
               places_of(problem.rest[kIndex], &problem.rest[kUpdate]),
               places_of(problem.rest[kPosition]), static_cast<int>(job.reduction), report,
               Offset{bytes});
  return true;
}

namespace {

// Moved slices of one step.
Slices slices_of(const Job& job, Int count) {
  const Layout &in = job.slice_in, &out = job.slice_out, &update = job.slice_update;
  Slices of;
  of.elements = out.count();
  of.input = out.rank == 0 ? 0 : in.strides[0];
  of.output = out.rank == 0 ? 0 : out.strides[0];
  of.update = out.rank == 0 ? 0 : update.strides[0];
  of.lanes_log = std::min(log_above(of.elements), 5u);
  of.count = count;
  return of;
}

// With fewer slices for each update, other ways are as fast as a copy of the input and few updates.
constexpr Int kSlicesPerUpdate = 16;

Int map_bytes_of(Int slices) { return slices * Int{sizeof(unsigned)}; }

bool are_rows(const Job& job) { return job.slice_elements() * job.size >= 32; }

// Whether two bits of each slice are cleared in little time, and a map of all of them stays in the
// pool between calls.
bool has_bits(const Job& job) {
  return !are_rows(job) && map_bytes_of(job.slices()) <= Int{256} << 20;
}

// Whether a map of the last update of each slice stays in the second-level cache, or costs little
// beside the slices.
bool has_cheap_map(const Job& job) {
  return map_bytes_of(job.slices()) <= Int{32} << 20 || are_rows(job);
}

}  // namespace

bool by_few(const Job& job, const BadIndexReport& report, Queue& queue, bool& published) {
  const Int count = job.tuples();
  if (job.reduction != Reduction::none || job.slice_out.rank > 1 || count > Int{kFewUpdates} ||
      job.slices() < kSlicesPerUpdate * count)
    return false;
  if (!job.in_place && has_bits(job)) return false;  // by_sparse takes less time
  if (!job.output_is_private && !job.in_place) check_indices(job, report, queue);
  copy_input(job, report, queue);
  published = !job.output_is_private || job.output.layout.packed(job.output.element_size);
  const Int bytes = job.output_is_private ? job.output.layout.count() * job.output.element_size : 0;
  Layout from = job.index_tuples, base = job.base;
  Layout* both[2] = {&from, &base};
  collapse(both);
  queue.launch(queue.function("scatter_few", "scatter_few", {{"SIZE", job.size}}),
               {blocks_for(count, kScatterThreads / 32)}, {kScatterThreads}, 0, job.output_data,
               job.index_data, job.update_data, tuples_of(job), places_of(from, &base),
               slices_of(job, count), places_of(job.outer_out), places_of(job.update_tuples),
               report, published ? 1 : 0, Offset{bytes});
  return true;
}

bool by_sparse(const Job& job, const BadIndexReport& report, Queue& queue, bool& published) {
  // Of more updates, or of rows, other ways take less time.
  constexpr Int kSlicesPerMark = 4, kMaxMarks = 1 << 20;  // where buckets do not apply
  constexpr unsigned kBlocksToSettle = 4;                 // of a multiprocessor
  const Int count = job.tuples(), slices = job.slices();
  if (job.reduction != Reduction::none || job.slice_out.rank > 1 || count >= kNoKey ||
      slices >= kNoKey)
    return false;
  const bool few = has_bits(job) && count <= kMaxMarks && count * kSlicesPerMark <= slices;
  if (!few && !(job.in_place && has_cheap_map(job))) return false;
  const Int size = job.output.element_size, bytes = job.output.layout.count() * size;
  const bool packed = job.output.layout.packed(size);
  const bool copies = !job.in_place && packed && job.input.layout.packed(size) &&
                      std::min(unit_of(job.output_data), unit_of(job.input_data)) == 16;
  const bool checks = copies && !job.output_is_private;
  if (checks) check_indices(job, report, queue);
  const Int words = (slices + 31) / 32, lines = blocks_for(2 * words + 1, 4);
  unsigned* const repeats = queue.scratch_of<unsigned>(4 * lines);
  const Int copied = copies ? bytes : 0, marking = blocks_for(count, kScatterThreads);
  const Int blocks = marking + blocks_for(copied, 16 * kCopiedLinesPerThread * kScatterThreads);
  constexpr Int kWhole = Int{1} << 32;
  const Marks marks{std::max((marking * kWhole + blocks - 1) / blocks, kWhole / 4),
                    static_cast<unsigned>(count),
                    static_cast<unsigned>(lines),
                    repeats,
                    repeats + 1,
                    repeats + 1 + words,
                    queue.scratch_of<unsigned>(count),
                    queue.scratch_of<unsigned>(slices)};
  Layout from = job.index_tuples, base = job.base;
  Layout* both[2] = {&from, &base};
  collapse(both);
  const auto kernel = [&](const char* entry) -> Function& {
    return queue.function("scatter_sparse", entry, {{"SIZE", job.size}});
  };
  queue.launch(kernel("scatter_clear_marks"),
               {blocks_for(lines, kClearedPerThread * kScatterThreads)}, {kScatterThreads}, 0,
               marks);
  queue.launch_dependent(kernel("scatter_mark"), {static_cast<unsigned>(blocks)}, {kScatterThreads},
                         0, job.index_data, tuples_of(job), places_of(from, &base), marks,
                         job.output_data, job.input_data, Offset{copied}, checks ? 1 : 0, report);
  if (!copies) copy_input(job, report, queue);
  const Slices of = slices_of(job, count);
  const Places outer = places_of(job.outer_out), tuples = places_of(job.update_tuples);
  const unsigned putting = blocks_for(count << of.lanes_log, kScatterThreads);
  queue.launch_dependent(kernel("scatter_put"), {putting}, {kScatterThreads}, 0, marks,
                         job.output_data, job.update_data, of, outer, tuples, report);
  published = !job.output_is_private || packed;
  queue.launch_dependent(
      kernel("scatter_settle"),
      {std::min(putting, kBlocksToSettle * static_cast<unsigned>(queue.multiprocessors()))},
      {kScatterThreads}, 0, marks, job.output_data, job.update_data, of, outer, tuples, report,
      published ? 1 : 0, Offset{job.output_is_private ? bytes : 0});
  return true;
}

bool by_winners(const Job& job, const BadIndexReport& report, Queue& queue) {
  const Int count = job.tuples(), slices = job.slices();
  if (job.in_place || job.reduction != Reduction::none || job.slice_out.rank > 1 ||
      count >= kNoKey || !has_cheap_map(job))
    return false;
  unsigned* const winners = queue.scratch_of<unsigned>(slices);
  queue.zero(winners, map_bytes_of(slices));
  find_keys(job, nullptr, 0, winners, report, queue);
  const Slices of = slices_of(job, slices);
  queue.launch(queue.function("scatter_rows", "scatter_rows", {{"SIZE", job.size}}),
               {blocks_for(of.count, kSlicesPerThread * (kScatterThreads >> of.lanes_log))},
               {kScatterThreads}, 0, job.output_data, job.input_data, job.update_data, winners, of,
               places_of(job.outer_out, &job.outer_in), places_of(job.update_tuples), report);
  return true;
}

}  // namespace anydml::cuda::scatter
