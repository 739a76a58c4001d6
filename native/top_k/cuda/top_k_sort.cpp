// TOP_K by sorting: the passes of top_k_sort.cu, of whole rows or of what is picked of them.
#include "top_k/cuda/top_k_sort.cuh"

#include <algorithm>
#include <cstring>

#include "top_k/cuda/top_k_job.hpp"

namespace anydml::cuda::selection {
namespace {

using anydml::top_k::kSortSmallTileCount;
using anydml::top_k::kSortThreads;
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
  Int tiles;            // of the pairs of a row
  Pairs first, second;  // `first` has the keys that are made of the elements, or what is picked
  void* counts = nullptr;
  void* totals = nullptr;
};

Workspace workspace_for(const Job& job, Queue& queue) {
  const Rows& rows = job.rows;
  Workspace space;
  space.wide = rows.n >= kWide || (rows.places != nullptr && rows.wide_places);
  space.picks = picks(rows);
  const Int sorted = space.picks ? rows.k : rows.n, counter = space.wide ? 8 : 4;
  space.tiles = (sorted + anydml::top_k::kSortTile - 1) / anydml::top_k::kSortTile;
  const Int bytes = 2 * sorted * (job.width + counter);
  space.rows_at_once = std::max<Int>(std::min(rows.rows, kScratch / bytes), 1);
  const Int pairs = space.rows_at_once * sorted;
  // A single pass needs neither a second place nor places of its own.
  if (job.width > 1 || space.picks)
    space.first = pairs_for(pairs, job.width, space.wide, queue);
  else
    space.first.keys = queue.scratch(pairs);
  if (job.width > 1) space.second = pairs_for(pairs, job.width, space.wide, queue);
  space.counts = queue.scratch(space.rows_at_once * 256 * space.tiles * counter);
  space.totals = queue.scratch(space.rows_at_once * 256 * counter);
  return space;
}

// Sorts rows of elements, or the pairs that were picked.
void passes(const Job& job, Int first_row, Int count, const Workspace& space, Queue& queue) {
  const auto kernel = [&](const char* entry) -> Function& {
    return queue.function("top_k_sort", entry,
                          {{"width", job.width}, {"is_float", job.is_float}, {"wide", space.wide}});
  };
  Rows rows = job.rows;
  if (space.picks) rows.n = rows.k;
  const auto grid = static_cast<unsigned>(count * space.tiles);
  Pairs from = space.first, to = space.second;
  for (int pass = 0; pass < job.width; ++pass) {
    const bool elements = pass == 0 && !space.picks;
    Sort sort{};
    sort.first_row = first_row;
    sort.tiles = space.tiles;
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

bool picks(const Rows& rows) {
  return rows.source == nullptr && (rows.k < rows.n / 8 || !rows.sorted);
}

void sort(const Job& job, Queue& queue) {
  if (picks(job.rows) && !job.rows.sorted)
    return pick(job, 0, job.rows.rows, nullptr, nullptr, false, queue);
  const Workspace space = workspace_for(job, queue);
  for (Int first = 0; first < job.rows.rows; first += space.rows_at_once) {
    const Int count = std::min(space.rows_at_once, job.rows.rows - first);
    if (space.picks)
      pick(job, first, count, space.first.keys, space.first.places, space.wide, queue);
    passes(job, first, count, space, queue);
  }
}

}  // namespace anydml::cuda::selection
