// What the host and the kernels of the sorting TOP_K have in common: plain C++.
#pragma once

namespace anydml::top_k {

constexpr int kSortThreads = 256;
constexpr int kSortSmallTileCount = 64;  // the largest count of tiles that one warp sums up

constexpr int kSortTile = 2048;  // elements of a block

// One pass over some rows. Pairs are packed. Without `keys`, counting makes them of the rows'
// elements, in `key_buffer`; without `places` they are positions in the row; without `to_keys`
// pairs become results. counts: [row][256][tiles], totals: [row][256].
struct Sort {
  long long first_row, tiles;
  const void* keys;
  void* key_buffer;
  const void* places;
  void* to_keys;
  void* to_places;
  void* counts;
  void* totals;
  int shift;
};

}  // namespace anydml::top_k
