// TOP_K by sorting: the passes of top_k_sort.cu, and before them the picking of top_k_pick.cu.
#include "kernels/top_k_sort.cuh"

#include <algorithm>
#include <cstring>

#include "top_k_job.hpp"

namespace anydml::cuda::selection {
namespace {

using anydml::top_k::Choice;
using anydml::top_k::kSortSmallTileCount;
using anydml::top_k::kSortThreads;
using anydml::top_k::Pick;
using anydml::top_k::Sort;

constexpr Int kScratch = Int{1} << 29;  // limit in bytes for rows that are sorted together

// Keys and places of some rows.
struct Pairs {
  void* keys = nullptr;
  void* places = nullptr;
};

Pairs pairs_for(Int count, int width, bool wide, Queue& queue) {
  return {queue.scratch(count * width), queue.scratch(count * (wide ? 8 : 4))};
}

void sum_up(Function& kernel, const Sort& sort, Int lists, Queue& queue) {
  const Int blocks = sort.tiles > kSortSmallTileCount ? lists : (lists + 7) / 8;
  queue.launch(kernel, {static_cast<unsigned>(blocks)}, {kSortThreads}, 0, sort, lists);
}

// The scratch of a call, for `rows_at_once` rows at a time.
struct Workspace {
  Int rows_at_once;
  bool wide, picks;
  Int tiles, picked_tiles;  // of a row; of what is picked of it
  Pairs first, second;      // `first` has the keys that are made of the elements, or what is picked
  void* key_buffer = nullptr;  // keys to pick from
  void* counts = nullptr;
  void* totals = nullptr;
  Choice* choices = nullptr;
};

Workspace workspace_for(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  Workspace space;
  space.wide = rows.n >= kWide || (rows.places != nullptr && rows.wide_places);
  space.picks = rows.k < rows.n / 8 || !rows.sorted;
  const Int tile = anydml::top_k::kSortTile;
  const Int sorted = space.picks ? rows.k : rows.n, counter = space.wide ? 8 : 4;
  space.tiles = (rows.n + tile - 1) / tile;
  space.picked_tiles = (sorted + tile - 1) / tile;
  const Int bytes = 2 * sorted * (job.width + counter) + (space.picks ? rows.n * job.width : 0);
  space.rows_at_once = std::max<Int>(std::min(rows.rows, kScratch / bytes), 1);
  const Int pairs = space.rows_at_once * sorted;
  // A single pass needs neither a second place nor places of its own.
  if (job.width > 1 || space.picks)
    space.first = pairs_for(pairs, job.width, space.wide, queue);
  else
    space.first.keys = queue.scratch(pairs);
  if (job.width > 1) space.second = pairs_for(pairs, job.width, space.wide, queue);
  const Int lists = std::max(256 * space.picked_tiles, space.picks ? 2 * space.tiles : 0);
  space.counts = queue.scratch(space.rows_at_once * lists * counter);
  space.totals = queue.scratch(space.rows_at_once * 256 * counter);
  if (space.picks) {
    space.key_buffer = queue.scratch(space.rows_at_once * rows.n * job.width);
    space.choices = queue.scratch_of<Choice>(space.rows_at_once);
  }
  return space;
}

// The k greatest of each row, as pairs in the order of their places.
void pick(const Job& job, Int first_row, Int count, const Workspace& space, Queue& queue) {
  const auto kernel = [&](const char* source, const char* entry) -> Function& {
    return queue.function(source, entry,
                          {{"width", job.width}, {"is_float", job.is_float}, {"wide", space.wide}});
  };
  const Rows& rows = job.rows;
  const auto grid = static_cast<unsigned>(count * space.tiles);
  Pick step{};
  step.first_row = first_row;
  step.tiles = space.tiles;
  step.choices = space.choices;
  step.histogram = space.totals;
  step.counts = space.counts;
  step.to_keys = space.first.keys;
  step.to_places = space.first.places;
  queue.zero(space.totals, count * 256 * (space.wide ? 8 : 4));
  queue.launch(kernel("top_k_pick", "top_k_pick_start"), {blocks_for(count, 256)}, {256}, 0, rows,
               step, count);
  for (int shift = 8 * (job.width - 1); shift >= 0; shift -= 8) {
    step.shift = shift;
    step.key_buffer = step.keys == nullptr ? space.key_buffer : nullptr;
    queue.launch(kernel("top_k_pick", "top_k_pick_count"), {grid}, {kSortThreads}, 0, rows, step);
    queue.launch(kernel("top_k_pick", "top_k_pick_digit"), {static_cast<unsigned>(count)},
                 {kSortThreads}, 0, step);
    step.keys = space.key_buffer;
  }
  queue.launch(kernel("top_k_pick", "top_k_pick_tally"), {grid}, {kSortThreads}, 0, rows, step);
  Sort sums{};
  sums.tiles = space.tiles;
  sums.counts = space.counts;
  sums.totals = space.totals;
  sum_up(kernel("top_k_sort", "top_k_sort_sum"), sums, 2 * count, queue);
  queue.launch(kernel("top_k_pick", "top_k_pick_move"), {grid}, {kSortThreads}, 0, rows, step);
  if (rows.sorted) return;
  step.tiles = space.picked_tiles;
  queue.launch(kernel("top_k_pick", "top_k_pick_write"),
               {static_cast<unsigned>(count * space.picked_tiles)}, {kSortThreads}, 0, rows, step);
}

// Sorts rows of elements, or the pairs that were picked.
void passes(const Job& job, Int first_row, Int count, const Workspace& space, Queue& queue) {
  const auto kernel = [&](const char* entry) -> Function& {
    return queue.function("top_k_sort", entry,
                          {{"width", job.width}, {"is_float", job.is_float}, {"wide", space.wide}});
  };
  Rows rows = job.rows;
  if (space.picks) rows.n = rows.k;
  const auto grid = static_cast<unsigned>(count * space.picked_tiles);
  Pairs from = space.first, to = space.second;
  for (int pass = 0; pass < job.width; ++pass) {
    const bool elements = pass == 0 && !space.picks;
    Sort sort{};
    sort.first_row = first_row;
    sort.tiles = space.picked_tiles;
    sort.keys = elements ? nullptr : from.keys;
    sort.key_buffer = from.keys;
    sort.places = elements ? nullptr : from.places;
    if (pass + 1 < job.width) {
      sort.to_keys = to.keys;
      sort.to_places = to.places;
    }
    sort.counts = space.counts;
    sort.totals = space.totals;
    sort.shift = 8 * pass;
    queue.launch(kernel("top_k_sort_count"), {grid}, {kSortThreads}, 0, rows, sort);
    sum_up(kernel("top_k_sort_sum"), sort, 256 * count, queue);
    sort.keys = from.keys;
    queue.launch(kernel("top_k_sort_move"), {grid}, {kSortThreads}, 0, rows, sort);
    std::swap(from, to);
  }
}

}  // namespace

void sort(const Job& job, Queue& queue) {
  const Workspace space = workspace_for(job, queue);
  for (Int first = 0; first < job.rows.rows; first += space.rows_at_once) {
    const Int count = std::min(space.rows_at_once, job.rows.rows - first);
    if (space.picks) pick(job, first, count, space, queue);
    if (job.rows.sorted) passes(job, first, count, space, queue);
  }
}

}  // namespace anydml::cuda::selection
