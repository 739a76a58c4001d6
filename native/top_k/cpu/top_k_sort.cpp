// Radix sort of (key, position) items from the lowest digit up: O(passes * count), stable.
//
// Plain stores to all targets in turn are fastest, half a nanosecond an item, as long as the
// targets' cache lines lie in different sets. Keys that are evenly spread, such as 0 to n - 1 in
// any order, make targets that start at the same place of a page, and the same stores take ten
// times as long: this is seen from the counters, and such a pass gathers whole lines in a buffer
// first.
#include "top_k/cpu/top_k_sort.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "runtime/cpu/threads.hpp"

namespace anydml::top_k {
namespace {

// Above this many items, digits of more than 8 bits have more open targets than the processor has
// page translations for, unless the pages happen to be large ones.
constexpr Int kWideDigits = Int{1} << 19;

// A bucket and the buffer that it is sorted through fit the nearer caches.
constexpr Int kMinBucket = 4096;

struct Digits {
  int passes, bits;
};

// Clearing and summing the counters against moving the items once more.
Digits choose_digits(Int count, int bits) {
  Digits best{0, 0};
  Int best_cost = 0;
  const int max_digit_bits = count > kWideDigits ? 8 : kMaxDigitBits;
  for (int passes = (bits + max_digit_bits - 1) / max_digit_bits; passes <= 4; ++passes) {
    const int digit = (bits + passes - 1) / passes;
    const Int cost = passes * (count * 3 + (Int{1} << digit) + 60);
    if (best.passes == 0 || cost < best_cost) {
      best = {passes, digit};
      best_cost = cost;
    }
  }
  return best;
}

// Whether many targets of about the same weight start in the same sets of the cache.
class SetLoad {
 public:
  void add(Int start, Int count) {
    const Int set = start / kLineItems % 64;
    weight_[set] += count;
    targets_[set] += count > 0;
  }
  bool crowded(Int count) const {
    for (int set = 0; set < 64; ++set)
      if (targets_[set] >= 10 && weight_[set] > count / 12) return true;
    return false;
  }

 private:
  int targets_[64] = {};
  Int weight_[64] = {};
};

void scatter(const uint64_t* from, Int count, uint64_t low, int shift, uint64_t mask,
             uint32_t* place, uint64_t* to) {
  for (Int i = 0; i < count; ++i) to[place[(from[i] - low) >> shift & mask]++] = from[i];
}

// `to` is aligned to a line, and so is the scratch.
void scatter_lines(const uint64_t* from, Int count, uint64_t low, int shift, uint64_t mask,
                   uint32_t* place, uint64_t* to, uint64_t* lines) {
  constexpr uint32_t last = kLineItems - 1;
  uint32_t start[1 << kMaxDigitBits];
  std::memcpy(start, place, static_cast<std::size_t>(mask + 1) * sizeof(uint32_t));
  for (Int i = 0; i < count; ++i) {
    const uint64_t item = from[i], digit = (item - low) >> shift & mask;
    const uint32_t at = place[digit]++;
    uint64_t* const line = lines + digit * kLineItems;
    line[at & last] = item;
    if ((at & last) != last) continue;
    const uint32_t first = at - last;
    if (first >= start[digit]) {
      std::memcpy(to + first, line, kLineItems * sizeof(uint64_t));
    } else {  // the front of this line belongs to the previous target
      for (uint32_t j = start[digit]; j <= at; ++j) to[j] = line[j & last];
    }
  }
  for (uint64_t digit = 0; digit <= mask; ++digit) {
    const uint32_t end = place[digit];
    for (uint32_t j = std::max(start[digit], end & ~last); j < end; ++j)
      to[j] = lines[digit * kLineItems + (j & last)];
  }
}

uint64_t* sort_serial(uint64_t* from, uint64_t* to, Int count, uint64_t low, Digits digits,
                      SortPart* scratch) {
  // All counters in one reading, as the totals do not depend on the order.
  uint32_t counters[3 << kMaxDigitBits];  // four passes have smaller digits
  const Int size = Int{1} << digits.bits;
  const uint64_t mask = static_cast<uint64_t>(size - 1);
  std::memset(counters, 0, static_cast<std::size_t>(size * digits.passes) * sizeof(uint32_t));
  const auto count_digits = [&]<int passes>(std::integral_constant<int, passes>) {
    for (Int i = 0; i < count; ++i) {
      uint64_t key = (from[i] - low) >> 32;
      for (int pass = 0; pass < passes; ++pass, key >>= digits.bits)
        ++counters[pass * size + static_cast<Int>(key & mask)];
    }
  };
  switch (digits.passes) {
    case 1:
      count_digits(std::integral_constant<int, 1>{});
      break;
    case 2:
      count_digits(std::integral_constant<int, 2>{});
      break;
    case 3:
      count_digits(std::integral_constant<int, 3>{});
      break;
    default:
      count_digits(std::integral_constant<int, 4>{});
  }
  for (int pass = 0; pass < digits.passes; ++pass) {
    const int shift = 32 + pass * digits.bits;
    uint32_t* const place = counters + pass * size;
    if (place[(from[0] - low) >> shift & mask] == static_cast<uint32_t>(count))
      continue;  // all digits are the same
    bool crowded = false;
    uint32_t sum = 0;
    if (count >= kBufferedSort) {
      SetLoad load;
      for (Int digit = 0; digit < size; ++digit) {
        load.add(sum, place[digit]);
        sum += place[digit];
      }
      crowded = load.crowded(count);
      sum = 0;
    }
    for (Int digit = 0; digit < size; ++digit) {
      const uint32_t own = place[digit];
      place[digit] = sum;
      sum += own;
    }
    if (crowded)
      scatter_lines(from, count, low, shift, mask, place, to, scratch->lines);
    else
      scatter(from, count, low, shift, mask, place, to);
    std::swap(from, to);
  }
  return from;
}

uint64_t* sort_parallel(uint64_t* from, uint64_t* to, Int count, uint64_t low, Digits digits,
                        int parts, SortPart* scratch) {
  const Int size = Int{1} << digits.bits;
  const uint64_t mask = static_cast<uint64_t>(size - 1);
  const Int share = (count + parts - 1) / parts;
  for (int pass = 0; pass < digits.passes; ++pass) {
    const int shift = 32 + pass * digits.bits;
    parallel_chunks(parts, parts, [&](Int part) {
      uint32_t* const mine = scratch[part].places;
      std::memset(mine, 0, static_cast<std::size_t>(size) * sizeof(uint32_t));
      const Int end = std::min(count, (part + 1) * share);
      for (Int i = std::min(count, part * share); i < end; ++i)
        ++mine[(from[i] - low) >> shift & mask];
    });
    uint32_t sum = 0, largest = 0;
    SetLoad load;
    for (Int digit = 0; digit < size; ++digit) {
      const uint32_t before = sum;
      for (int part = 0; part < parts; ++part) {
        const uint32_t own = scratch[part].places[digit];
        scratch[part].places[digit] = sum;
        sum += own;
      }
      load.add(before, sum - before);
      largest = std::max(largest, sum - before);
    }
    if (largest == static_cast<uint32_t>(count)) continue;  // all digits are the same
    const bool crowded = load.crowded(count);
    parallel_chunks(parts, parts, [&](Int part) {
      SortPart& mine = scratch[part];
      const Int begin = std::min(count, part * share), end = std::min(count, (part + 1) * share);
      if (crowded)
        scatter_lines(from + begin, end - begin, low, shift, mask, mine.places, to, mine.lines);
      else
        scatter(from + begin, end - begin, low, shift, mask, mine.places, to);
    });
    std::swap(from, to);
  }
  return from;
}

}  // namespace

Int sort_scratch_bytes(Int count, int parts) {
  if (count < kBufferedSort) return 0;
  return static_cast<Int>(sizeof(SortPart)) * parts;
}

Int sort_slack(Int count, int parts) {
  return through_buckets(count, parts) ? 2 * kLineItems * kMaxBuckets + kBucketBlock : 0;
}

uint64_t* sort_packed(uint64_t* items, uint64_t* other, Int count, uint32_t low, int bits,
                      int parts, SortPart* scratch) {
  if (count < 2 || bits == 0) return items;
  const Digits digits = choose_digits(count, bits);
  const uint64_t best_cost = static_cast<uint64_t>(low) << 32;
  if (parts <= 1 || count < kParallelSort)
    return sort_serial(items, other, count, best_cost, digits, scratch);
  return sort_parallel(items, other, count, best_cost, digits, parts, scratch);
}

int fine_digit_bits(Int count) {
  int bits = 8;
  while (bits < kMaxFineBits && count >> bits > 256) ++bits;
  return bits;
}

Int group_digits(SortPart* sort_parts, int parts, Int digits, Int k, uint8_t* map, Bucket* bucket) {
  // Large enough to keep the number of buckets below its limit.
  const Int min_size = std::max<Int>(kMinBucket, k / (kMaxBuckets - 4));
  Int rank = 0, item = 0, buckets = 0, digit = 0;
  for (;;) {
    bucket[buckets] = {rank, item, digit};
    Int size = 0;
    uint32_t totals[kMaxParts] = {};
    while (digit < digits && rank + size < k && size < min_size) {
      for (int part = 0; part < parts; ++part) {
        size += sort_parts[part].fine[digit];
        totals[part] += sort_parts[part].fine[digit];
      }
      map[digit++] = static_cast<uint8_t>(buckets);
    }
    if (size == 0) break;  // k items are found, or no values are left
    uint32_t place = static_cast<uint32_t>(item);
    for (int part = 0; part < parts; ++part) {
      sort_parts[part].places[buckets] = place;
      place += totals[part];
      sort_parts[part].ends[buckets] = place;
    }
    rank += size;
    item += (size + kLineItems - 1) / kLineItems * kLineItems + kLineItems;
    ++buckets;
  }
  bucket[buckets] = {rank, item, digit};
  for (; digit < digits; ++digit) map[digit] = static_cast<uint8_t>(buckets - 1);
  return buckets;
}

}  // namespace anydml::top_k
