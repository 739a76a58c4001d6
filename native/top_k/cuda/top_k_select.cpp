// TOP_K of long rows by selection (top_k_select.cu): how many blocks share a row, and where they
// meet.
#include "top_k/cuda/top_k_select.cuh"

#include <algorithm>

#include "top_k/cuda/top_k_job.hpp"

namespace anydml::cuda::selection {
namespace {

using namespace anydml::top_k;

constexpr Int kBytesPerBlock = Int{1} << 15;  // of a row that has several blocks, at least
constexpr Int kMaxOfMany = 512;               // k of rows that have small blocks

unsigned shared_bytes(Int capacity, int width, int team) {
  return static_cast<unsigned>(capacity * (item_size(width) + 2) + (4 << order_bits(team)));
}

// The blocks of a row, and where they meet.
struct Shape {
  int team;
  Int blocks;
};
Shape shape_for(const Job& job, bool lists, Int rows, Queue& queue) {
  const Int all = queue.multiprocessors(), n = job.rows.n;
  if (n >= kWide) return {kTeamWide, std::max<Int>(all / rows, 1)};
  const Int blocks =
      std::clamp<Int>(n * job.width / kBytesPerBlock, 1, std::max<Int>(all / rows, 1));
  if (blocks == 1) {
    const bool many = lists && rows >= 2 * all && job.rows.k <= kMaxOfMany && job.width <= 4;
    return {many ? kTeamMany : kTeamAlone, 1};
  }
  // Half of the multiprocessors have room for clusters of more than two.
  if (lists && blocks < 3 * kMaxCluster && queue.has_clusters()) {
    Int size = 2;
    while (2 * size <= std::min<Int>(blocks, kMaxCluster) && 4 * size * rows <= all) size *= 2;
    return {kTeamCluster, size};
  }
  return {kTeamGrid, blocks};
}

void launch(const Job& job, Selection selection, Int rows, Queue& queue) {
  const int width = job.width;
  const bool lists = selection.keys == nullptr && !selection.by_place;
  const auto [team, blocks] = shape_for(job, lists, rows, queue);
  selection.capacity = static_cast<unsigned>(std::min<Int>(selection.capacity, max_listed(team)));
  selection.blocks = static_cast<unsigned>(blocks);
  Function& kernel = queue.function("top_k_select", "top_k_select",
                                    {{"width", width}, {"is_float", job.is_float}, {"team", team}});
  const unsigned shared = shared_bytes(selection.capacity, width, team);
  const Dim block{static_cast<unsigned>(select_threads(team))};
  if (team == kTeamGrid || team == kTeamWide) {
    const Int resident = Int{queue.resident(kernel, block.x, shared)} * queue.multiprocessors();
    selection.blocks = static_cast<unsigned>(std::max<Int>(std::min(blocks, resident / rows), 1));
    const Int zeros = kWorkHead + work_sums(width);
    const Int bytes = zeros + 16 * selection.blocks + selection.capacity * item_size(width);
    selection.work_bytes = (bytes + 255) / 256 * 256;
    selection.work = static_cast<char*>(queue.scratch(rows * selection.work_bytes));
    // Counters and sums of one row, or all of several rows.
    queue.zero(selection.work, rows == 1 ? zeros : rows * selection.work_bytes);
  }
  const Dim grid{static_cast<unsigned>(rows * selection.blocks)};
  if (team == kTeamCluster)
    queue.launch_cluster(kernel, grid, block, shared, selection.blocks, job.rows, selection);
  else if (selection.blocks > 1)
    queue.launch_cooperative(kernel, grid, block, shared, job.rows, selection);
  else
    queue.launch(kernel, grid, block, shared, job.rows, selection);
}

// Rows of a launch: as many as blocks are resident, and any number where each has one block.
Int rows_at_once(Int rows, Queue& queue) {
  return rows < queue.multiprocessors() ? rows : std::min<Int>(rows, kMaxBlocks / 1024);
}

}  // namespace

Int list_capacity(const Job& job, Queue& queue) {
  constexpr Int kMost = max_listed(kTeamAlone);
  const bool small = job.width == 8 && job.rows.k <= kMost / 4;
  for (Int capacity = small ? kMost / 2 : kMost; capacity >= 1024; capacity /= 2)
    if (shared_bytes(capacity, job.width, kTeamAlone) + (12u << 10) <= queue.max_shared())
      return capacity;
  return 0;
}

void select(const Job& job, Queue& queue) {
  Selection selection{};
  selection.capacity = static_cast<unsigned>(list_capacity(job, queue));
  const Int step = rows_at_once(job.rows.rows, queue);
  for (Int first = 0; first < job.rows.rows; first += step) {
    selection.first_row = first;
    launch(job, selection, std::min(step, job.rows.rows - first), queue);
  }
}

void pick(const Job& job, Int first_row, Int count, void* keys, void* places, bool wide,
          Queue& queue) {
  Selection selection{};
  selection.keys = keys;
  selection.places = places;
  selection.wide_places = wide;
  selection.by_place = !job.rows.sorted;
  selection.first_row = first_row;
  launch(job, selection, count, queue);
}

}  // namespace anydml::cuda::selection
