// Stable sorts of the candidates of TOP_K: items are a rank, ascending in the order of the results,
// in the upper 32 bits, and a position below.
#pragma once

#include <cstdint>

#include "common/layout.hpp"

namespace anydml::top_k {

constexpr int kMaxDigitBits = 11;
constexpr int kMaxParts = 64;

// Below this everything fits the nearer caches, however the targets of a pass lie.
constexpr Int kBufferedSort = Int{1} << 13;

// From here on a sort is shared by several threads, and goes through buckets for that.
constexpr Int kParallelSort = Int{1} << 15;
// From here on buckets are faster on one thread too.
constexpr Int kBucketSort = Int{1} << 17;
constexpr int kMaxFineBits = 12;
constexpr int kMaxBuckets = 256;

constexpr Int kBucketBlock = 512;  // items put into buckets between two checks of their ends

constexpr Int kLineItems = 8;

// Scratch of one thread, aligned to 64 bytes.
struct SortPart {
  uint64_t lines[kLineItems << kMaxDigitBits];
  uint32_t places[1 << kMaxDigitBits];
  uint32_t fine[1 << kMaxFineBits];  // of BucketSort: counters
  uint32_t ends[kMaxBuckets];        // of BucketSort: behind the places of each bucket
};

// Bytes of scratch for sorting `count` items, and items that their buffers need beyond `count`:
// buckets start at lines of their own, in different sets of the cache.
Int sort_scratch_bytes(Int count, int parts);
Int sort_slack(Int count, int parts);

// Sorts by the upper halves, of which `low` is the least and low + 2^bits is above all: a radix
// sort from the lowest digit up, stable. Uses `other` as its second half and returns which of the
// two holds the result. `parts` threads; scratch for each.
uint64_t* sort_packed(uint64_t* items, uint64_t* other, Int count, uint32_t low, int bits,
                      int parts, SortPart* scratch);

// A bucket: its first rank among the results, its place in the buffer, its first fine digit.
struct Bucket {
  Int rank, item, digit;
};

inline bool through_buckets(Int count, int parts) {
  return count >= (parts > 1 ? kParallelSort : kBucketSort);
}

// For this many candidates.
int fine_digit_bits(Int count);

// Makes buckets of neighbouring fine digits until they hold k items, from the counters of all
// parts; bucket[b + 1] is the end of bucket b. Fills the map from digit to bucket, those behind the
// last with the last one, and in each part the places where it puts its items and their ends.
// Returns the number of buckets.
Int group_digits(SortPart* sort_parts, int parts, Int digits, Int k, uint8_t* map, Bucket* bucket);

}  // namespace anydml::top_k
