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

// Selection before sorting: finds the key of which `need` equal ones are wanted, and all greater
// ones. A step counts the digit at `shift` of the keys that agree with the digits known so far.
struct Choice {
  unsigned long long key;  // of TOP_K, not complemented
  long long need;
};
struct Pick {
  long long first_row, tiles;
  const void* keys;  // complements, made by the first step
  void* key_buffer;
  Choice* choices;  // one a row
  void* histogram;  // [row][256]
  void* counts;     // [row][2][tiles]: greater, equal
  void* to_keys;
  void* to_places;
  int shift;
};

}  // namespace anydml::top_k
