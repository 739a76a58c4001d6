// The sort of many candidates: one stable partition by value into buckets that fit the nearest
// cache, then a radix sort of each bucket by itself. What is behind the k-th is not moved at all.
//
// The range of the values is taken from a sample and cut into fine digits, which are counted;
// neighbouring digits make one bucket, as many as it takes to fill it. Values outside the sampled
// range belong to the first and the last digit. A bucket that stays large, because its values are
// (nearly) the same in digits, is sorted by all threads.
#pragma once

#include <atomic>
#include <cassert>

#include "top_k/cpu/top_k_output.hpp"

namespace anydml::top_k {

// Of sorted items that hold only the upper 32 bits of a difference: runs that agree in these are in
// order of position; sorts them by the `shift` bits below, as far as the first k go.
template <class Order>
inline void sort_runs(const Source<Order>& row, uint64_t* sorted, uint64_t* spare, Int count, Int k,
                      typename Order::Key high, int shift, int parts, SortPart* scratch) {
  using Unsigned = typename Order::Unsigned;
  const uint64_t rest = (uint64_t{1} << shift) - 1;
  for (Int begin = 0; begin < k;) {
    Int end = begin + 1;
    while (end < count && sorted[end] >> 32 == sorted[begin] >> 32) ++end;
    if (end - begin > 1) {
      for (Int i = begin; i < end; ++i) {
        const uint64_t position = static_cast<uint32_t>(sorted[i]);
        const auto key = static_cast<Unsigned>(row.key(static_cast<Int>(position)));
        sorted[i] = ((static_cast<Unsigned>(high) - key) & rest) << 32 | position;
      }
      if (end - begin <= 16) {
        for (Int i = begin + 1; i < end; ++i) {
          const uint64_t item = sorted[i];
          Int j = i;
          for (; j > begin && sorted[j - 1] > item; --j) sorted[j] = sorted[j - 1];
          sorted[j] = item;
        }
      } else {
        const uint64_t* const run =
            sort_packed(sorted + begin, spare + begin, end - begin, 0, shift, parts, scratch);
        if (run != sorted + begin)
          std::memcpy(sorted + begin, run, static_cast<std::size_t>(end - begin) * 8);
      }
    }
    begin = end;
  }
}

// A row's candidates, as lists in ascending position: starts[p] of them lie before list p.
template <class Order, class PositionOf>
class BucketSort {
  static constexpr int W = Order::width;
  using Key = typename Order::Key;
  using Unsigned = typename Order::Unsigned;
  static constexpr Key max_key = std::numeric_limits<Key>::max();
  static constexpr Int kBlock = kBucketBlock;
  static constexpr bool kRankIsKey = W <= 4;  // a rank holds all of the key

 public:
  // position_of(p, j): the j-th of list p; `contiguous`: they are all elements in order.
  BucketSort(const Output& out, const Source<Order>& row, const Int* starts, Int k,
             const Workspace& work, const PositionOf& position_of, bool contiguous)
      : out_(out),
        row_(row),
        starts_(starts),
        k_(k),
        work_(work),
        position_of_(position_of),
        contiguous_(contiguous && row.stride == W),
        parts_(work.sort_parts()) {}

  void run() {
    if constexpr (!kRankIsKey) find_extremes();
    sample();
    const int parts = work_.parts;
    parallel_chunks(parts, parts, [&](Int part) { count(part); });
    buckets_ = group_digits(parts_, parts, Int{1} << bits_, k_, map_, bucket_);
    parallel_chunks(parts, parts, [&](Int part) { distribute(part); });
    sort_buckets();
  }

 private:
  // The order as 32 bits, ascending in the order of the results.
  uint32_t rank_of(Key key) const {
    const Unsigned difference =
        static_cast<Unsigned>(static_cast<Unsigned>(high_) - static_cast<Unsigned>(key));
    if constexpr (kRankIsKey)
      return difference;
    else
      return static_cast<uint32_t>(difference >> shift_);
  }

  Int length(Int part) const { return starts_[part + 1] - starts_[part]; }

  void find_extremes() {
    Key lows[kMaxParts], highs[kMaxParts];
    parallel_chunks(work_.parts, work_.parts, [&](Int part) {
      Key low = max_key, high = std::numeric_limits<Key>::min();
      const Int size = length(part);
      for (Int j = 0; j < size; ++j) {
        const Key key = row_.key(position_of_(part, j));
        low = key < low ? key : low;
        high = key > high ? key : high;
      }
      lows[part] = low;
      highs[part] = high;
    });
    high_ = *std::max_element(highs, highs + work_.parts);
    const Unsigned span =
        static_cast<Unsigned>(static_cast<Unsigned>(high_) -
                              static_cast<Unsigned>(*std::min_element(lows, lows + work_.parts)));
    shift_ = std::max(0, 32 - __builtin_clzll(span | 1));
  }

  void sample() {
    const Int total = starts_[work_.parts];
    bits_ = fine_digit_bits(total);
    const Int step = std::max<Int>(1, total >> (bits_ - 2));
    low_ = ~uint32_t{0};
    top_ = 0;
    for (int part = 0; part < work_.parts; ++part) {
      const Int size = length(part);
      for (Int j = 0; j < size; j += step) {
        const uint32_t rank = rank_of(row_.key(position_of_(part, j)));
        low_ = std::min(low_, rank);
        top_ = std::max(top_, rank);
      }
    }
    const int bits = 32 - __builtin_clz((top_ - low_) | 1);
    digit_shift_ = std::max(0, bits - bits_);
  }

  // Ranks and digits of a block of candidates.
  struct Block {
    alignas(64) uint32_t rank[kBlock];
    alignas(64) int32_t digit[kBlock];
  };

  void read(Int part, Int begin, Int size, Block& block) const {
    if (contiguous_) {
      const char* const from = row_.data + (starts_[part] + begin) * W;
      alignas(64) Key keys[kBlock];
      keys_of<Order>(from, size, row_.flip, keys);
      for (Int i = 0; i < size; ++i) block.rank[i] = rank_of(keys[i]);
    } else {
      for (Int i = 0; i < size; ++i)
        block.rank[i] = rank_of(row_.key(position_of_(part, begin + i)));
    }
    pin(block.rank);
    const uint32_t low = low_, top = top_;
    const int shift = digit_shift_;
    for (Int i = 0; i < size; ++i) {
      uint32_t rank = block.rank[i];
      rank = rank < low ? low : rank;
      rank = rank > top ? top : rank;
      block.digit[i] = static_cast<int32_t>((rank - low) >> shift);
    }
  }

  void count(Int part) const {
    uint32_t* const counts = parts_[part].fine;
    std::memset(counts, 0, sizeof(uint32_t) << bits_);
    Block block;
    const Int total = length(part);
    for (Int begin = 0; begin < total; begin += kBlock) {
      const Int size = std::min(kBlock, total - begin);
      read(part, begin, size, block);
      for (Int i = 0; i < size; ++i) ++counts[block.digit[i]];
    }
  }

  void distribute(Int part) const {
    uint32_t* const place = parts_[part].places;
    const uint32_t* const ends = parts_[part].ends;
    const int32_t digits = static_cast<int32_t>(bucket_[buckets_].digit);
    const bool all = bucket_[buckets_].rank == starts_[work_.parts];
    Block block;
    alignas(64) uint32_t selected[kBlock + 64];
    const Line<4> bound = Line<4>::splat(-digits + 1);
    const Int total = length(part);
    for (Int begin = 0; begin < total; begin += kBlock) {
      const Int size = std::min(kBlock, total - begin);
      read(part, begin, size, block);
      const auto move = [&](Int i) {
        const uint64_t position = static_cast<uint64_t>(position_of_(part, begin + i));
        work_.items[place[map_[block.digit[i]]]++] =
            static_cast<uint64_t>(block.rank[i]) << 32 | position;
      };
      if (all) {
        for (Int i = 0; i < size; ++i) move(i);
        if (overrun(part)) break;
        continue;
      }
      for (Int i = size; i % kUnit != 0; ++i) block.digit[i] = digits;
      Int count = 0;
      for (Int i = 0; i < size; i += kUnit) {
        uint64_t mask = 0;
        for (int n = 0; n < 4; ++n) {
          Line<4> line = Line<4>::read(block.digit + i + n * Line<4>::lanes);
          for (auto& vector : line.part) vector = -vector;
          mask |= at_least<4>(line, bound) << (n * Line<4>::lanes);
        }
        count += expand_bits(mask, static_cast<uint32_t>(i), selected + count);
      }
      for (Int j = 0; j < count; ++j) move(selected[j]);
      if (overrun(part)) break;
    }
    for (Int b = 0; b < buckets_; ++b) {
      assert(place[b] <= ends[b] + kBlock);
      // As many as were counted, even if the row has changed.
      for (uint32_t at = place[b]; at < ends[b]; ++at) {
        const Int position = position_of_(part, at % total);
        const uint64_t rank = rank_of(row_.key(position));
        work_.items[at] = rank << 32 | static_cast<uint64_t>(position);
      }
    }
  }

  // Whether a place is beyond its end, because the row changed since it was counted. At most one
  // block was written past the end, to places of other elements or to the slack.
  bool overrun(Int part) const {
    const uint32_t* const place = parts_[part].places;
    const uint32_t* const ends = parts_[part].ends;
    uint32_t beyond = 0;
    for (Int b = 0; b < buckets_; ++b) beyond |= place[b] > ends[b];
    return beyond != 0;
  }

  void sort_buckets() {
    const int parts = work_.parts;
    const Int total = bucket_[buckets_].rank;
    const auto large = [&](Int b) {
      return parts > 1 && bucket_[b + 1].rank - bucket_[b].rank > total / (2 * parts);
    };
    for (Int b = 0; b < buckets_; ++b)
      if (large(b)) sort_bucket(b, 0, parts);
    std::atomic<Int> next{0};
    parallel_chunks(parts, parts, [&](Int slot) {
      for (;;) {
        const Int b = next.fetch_add(1, std::memory_order_relaxed);
        if (b >= buckets_) break;
        if (!large(b)) sort_bucket(b, slot, 1);
      }
    });
  }

  void sort_bucket(Int b, Int slot, int parts) const {
    const Int rank = bucket_[b].rank, count = bucket_[b + 1].rank - rank, at = bucket_[b].item;
    uint64_t* const items = work_.items + at;
    uint64_t* const spare = count < kBufferedSort ? parts_[slot].lines : work_.other + at;
    uint64_t smallest = items[0], greatest = items[0];
    for (Int i = 1; i < count; ++i) {
      smallest = std::min(smallest, items[i]);
      greatest = std::max(greatest, items[i]);
    }
    const uint32_t low = static_cast<uint32_t>(smallest >> 32);
    const uint32_t span = static_cast<uint32_t>(greatest >> 32) - low;
    const int bits = span == 0 ? 0 : 32 - __builtin_clz(span);
    SortPart* const scratch = parts_ + slot;
    uint64_t* const sorted = sort_packed(items, spare, count, low, bits, parts, scratch);
    const Int end = std::min(k_ - rank, count);
    if constexpr (!kRankIsKey) {
      if (shift_ > 0)
        sort_runs(row_, sorted, sorted == items ? spare : items, count, end, high_, shift_, parts,
                  scratch);
    }
    for_parts(parts, end, [&](int, Int first, Int last) {
      put_sorted(out_, row_, sorted + first, rank + first, last - first,
                 static_cast<Unsigned>(high_), shift_ == 0);
    });
  }

  const Output& out_;
  const Source<Order>& row_;
  const Int* const starts_;
  const Int k_;
  const Workspace& work_;
  const PositionOf& position_of_;
  const bool contiguous_;
  SortPart* const parts_;
  Key high_ = max_key;
  int shift_ = 0;                   // of differences of 8 bytes, to 32 bits
  uint32_t low_, top_;              // sampled range of ranks
  int bits_, digit_shift_;          // fine digits
  uint8_t map_[1 << kMaxFineBits];  // digit to bucket
  Bucket bucket_[kMaxBuckets + 1];
  Int buckets_ = 0;
};

}  // namespace anydml::top_k
