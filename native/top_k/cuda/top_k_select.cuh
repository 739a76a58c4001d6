// What the host and the kernel of the selecting TOP_K have in common: plain C++.
#pragma once

namespace anydml::top_k {

// The blocks of a row: one; those of a cluster, which meet in the shared memory of the first one;
// those of a cooperative launch, which meet in global memory, for rows of fewer than 2^32 elements
// or any. Of many rows of small k, each has a small block: while some choose, others read.
constexpr int kTeamAlone = 0, kTeamCluster = 1, kTeamGrid = 2, kTeamWide = 3, kTeamMany = 4;
constexpr int kMaxCluster = 8;  // that every GPU with clusters has
constexpr int select_threads(int team) {
  return team == kTeamMany ? 256 : team == kTeamAlone ? 512 : 1024;
}
constexpr int max_listed(int team) { return team == kTeamMany ? 4096 : 8192; }  // items of the list
constexpr int order_bits(int team) { return team == kTeamMany ? 11 : 12; }

// Digits of 8 bits for bytes, else of 11.
constexpr int digit_bits(int width) { return width == 1 ? 8 : 11; }
constexpr int digit_levels(int width) {
  return (8 * width + digit_bits(width) - 1) / digit_bits(width);
}

// The work of a row whose blocks meet in global memory: counters, sums of digits, two counts of
// each block, and the list. Counters and sums are zero at first.
constexpr long long kWorkHead = 128;
constexpr long long work_sums(int width) {
  return 2 * digit_levels(width) * 8ll << digit_bits(width);
}

struct Selection {
  long long first_row;
  unsigned blocks;       // of each row
  unsigned capacity;     // of the list
  char* work;            // of the launch's rows
  long long work_bytes;  // of each row
  // Not null: the k items become pairs of the complement of the key and the place, in the order of
  // places (the greatest first where the last of equals goes first).
  void* keys;
  void* places;
  bool wide_places;
  bool by_place;  // the k items become results, in the order of places
};

}  // namespace anydml::top_k
