// Selection among keys that lie in scratch: bounds by bisection, ranks by counting, and the list
// that collects candidates with a bound that rises.
#pragma once

#include "top_k/cpu/top_k.hpp"
#include "top_k/cpu/top_k_simd.hpp"

namespace anydml::top_k {

// A bound that at least `rank` of the keys reach (1 <= rank <= count), found by bisection on the
// key's value: at most 8 W counting passes, whatever the distribution. Stops early when no more
// than rank + slack keys reach it; with slack 0 either exactly `rank` keys do, or it is the rank-th
// greatest key. Keys are padded.
template <int W>
inline typename Bits<W>::Signed bisect(const typename Bits<W>::Signed* keys, Int count, Int rank,
                                       Int slack, Int* reached = nullptr) {
  using Key = typename Bits<W>::Signed;
  using Unsigned = typename Bits<W>::Unsigned;
  Key low = keys[0], high = keys[0];
  for (Int i = 1; i < count; ++i) {
    low = keys[i] < low ? keys[i] : low;
    high = keys[i] > high ? keys[i] : high;
  }
  const Int padded = (count + kUnit - 1) / kUnit * kUnit;
  Int have = count;  // keys that reach `low`
  while (low < high && have > rank + slack) {
    const Unsigned span =
        static_cast<Unsigned>(static_cast<Unsigned>(high) - static_cast<Unsigned>(low));
    const Key middle = static_cast<Key>(
        static_cast<Unsigned>(static_cast<Unsigned>(low) + (span / 2) + (span & 1)));
    const Int found = count_at_least<W>(keys, padded, middle);
    if (found >= rank) {
      low = middle;
      have = found;
    } else {
      high = static_cast<Key>(middle - 1);
    }
  }
  if (reached != nullptr) *reached = have;
  return low;
}

// Calls put(mask, first position) for the `k` greatest keys, earlier ones first among equals, in
// ascending order of position; returns the least of them. 1 <= k <= count, keys padded. With slack
// it may be up to k + slack keys, the k greatest among them, and what is returned is a bound.
// `guess` is tried first, unless it is the least key there is: with ties it is often right.
template <int W, class Put>
inline typename Bits<W>::Signed select_greatest(const typename Bits<W>::Signed* keys, Int count,
                                                Int k, Int slack, typename Bits<W>::Signed guess,
                                                Put&& put) {
  using Key = typename Bits<W>::Signed;
  constexpr Key max_key = std::numeric_limits<Key>::max();
  constexpr int lanes = Line<W>::lanes;
  const Int padded = (count + kUnit - 1) / kUnit * kUnit;
  Key bound = guess;
  Int reached = 0;
  if (guess == std::numeric_limits<Key>::min() ||
      (reached = count_at_least<W>(keys, padded, guess)) < k ||
      (guess != max_key && count_at_least<W>(keys, padded, static_cast<Key>(guess + 1)) >= k))
    bound = bisect<W>(keys, count, k, slack, &reached);
  if (slack == 0 &&
      reached == k) {  // the bound may lie between two keys: lower it to the lowest above
    Key lowest = max_key;
    for (Int i = 0; i < count; ++i)
      lowest = keys[i] >= bound && keys[i] < lowest ? keys[i] : lowest;
    bound = lowest;
  }
  const bool ties = reached > k + slack;
  const Key above = bound == max_key ? max_key : static_cast<Key>(bound + 1);
  Int quota = 0;
  if (ties) quota = k - (bound == max_key ? 0 : count_at_least<W>(keys, padded, above));
  const Line<W> bound_line = Line<W>::splat(bound), more = Line<W>::splat(above);
  for (Int i = 0; i < padded; i += kUnit) {
    uint64_t mask = 0, greater = 0;
    for (int n = 0; n < W; ++n) {
      const Line<W> line = Line<W>::read(keys + i + n * lanes);
      mask |= at_least<W>(line, bound_line) << (n * lanes % 64);
      if (ties && bound != max_key) greater |= at_least<W>(line, more) << (n * lanes % 64);
    }
    if (count - i < kUnit) mask &= ~(~uint64_t{0} << (count - i));
    if (mask == 0) continue;
    if (ties) {
      uint64_t equal = mask & ~greater;
      if (__builtin_popcountll(equal) > quota) {  // the first ones
        uint64_t rest = equal;
        for (; quota > 0; --quota) rest &= rest - 1;
        equal ^= rest;
      } else {
        quota -= __builtin_popcountll(equal);
      }
      mask &= greater | equal;
    }
    put(mask, i);
  }
  return bound;
}

// rank[i] = the number of keys before the i-th in the order wanted: greater ones, and equal ones
// with a smaller position. Fewer than 127 keys of one byte. Keys and ranks have capacity for a
// multiple of a line.
template <int W>
inline void rank_all(typename Bits<W>::Signed* keys, Int count, typename Bits<W>::Signed* rank) {
  using Key = typename Bits<W>::Signed;
  constexpr int lanes = Line<W>::lanes;
  Key positions[lanes];
  for (int i = 0; i < lanes; ++i) positions[i] = static_cast<Key>(i);
  const Line<W> iota = Line<W>::read(positions);
  for (Int i = count; i % lanes != 0; ++i) keys[i] = std::numeric_limits<Key>::min();
  for (Int start = 0; start < count; start += lanes) {
    const Line<W> own = Line<W>::read(keys + start);
    Line<W> sum = Line<W>::splat(0);
    const Int end = std::min<Int>(start + lanes, count);
    for (Int i = 0; i < start; ++i) sum.count_at_least(Line<W>::splat(keys[i]), own);
    for (Int i = start; i < end; ++i) {
      const Line<W> other = Line<W>::splat(keys[i]);
      const Line<W> place = Line<W>::splat(static_cast<Key>(i - start));
      for (int v = 0; v < kLineVectors; ++v)
        sum.part[v] -= (other.part[v] > own.part[v]) |
                       ((other.part[v] == own.part[v]) & (iota.part[v] > place.part[v]));
    }
    for (Int i = end; i < count; ++i) sum.count_above(Line<W>::splat(keys[i]), own);
    sum.write(rank + start);
  }
}

// The k-th greatest key, by counting what is above each: for some lines of keys, padded to lines.
template <int W>
inline typename Bits<W>::Signed bound_by_rank(const typename Bits<W>::Signed* keys, Int count,
                                              Int k) {
  using Key = typename Bits<W>::Signed;
  constexpr int lanes = Line<W>::lanes;
  constexpr Key max_key = std::numeric_limits<Key>::max();
  const Line<W> limit = Line<W>::splat(static_cast<Key>(k - 1));
  Line<W> smallest = Line<W>::splat(max_key);
  for (Int start = 0; start < count; start += lanes) {
    const Line<W> own = Line<W>::read(keys + start);
    Line<W> above[2] = {Line<W>::splat(0), Line<W>::splat(0)};
    for (Int i = 0; i < count; i += 2) {
      above[0].count_above(Line<W>::splat(keys[i]), own);
      above[1].count_above(Line<W>::splat(keys[i + 1]), own);
    }
    for (int v = 0; v < kLineVectors; ++v) {
      const auto sum = above[0].part[v] + above[1].part[v];
      const auto selected = sum > limit.part[v] ? smallest.part[v] : own.part[v];
      smallest.part[v] = selected < smallest.part[v] ? selected : smallest.part[v];
    }
  }
  Key lane[lanes], bound = max_key;
  smallest.write(lane);
  for (Key key : lane) bound = key < bound ? key : bound;
  return bound;
}

// One row, or what it takes to read one: elements at any stride.
template <class Order>
struct Source {
  using Key = typename Order::Key;
  using Unsigned = typename Order::Unsigned;
  const char* data;
  Int stride;
  typename Order::Flip flip;

  Unsigned bits(Int i) const {
    before_reading(data + i * stride, 0, 1, Order::width);
    return load<Unsigned>(data + i * stride);
  }
  Key key(Int i) const { return Order::key(bits(i), flip); }
};

// Elements between two checks of a list's length, and its capacity.
constexpr Int kMaxPiece = 512;
constexpr Int list_piece(Int k) { return std::min(kMaxPiece, (k + kUnit - 1) / kUnit * kUnit); }
constexpr Int list_capacity(Int k) { return 2 * k + 2 * list_piece(k); }
constexpr Int kListSlack = 64;  // expand_bits() writes past the end

// The candidates of one row or a part of it, in ascending position. When the list is full, the k
// greatest stay and the bound rises above the k-th: whatever the input, an element costs a bounded
// amount of work, and ties go to the earlier element because an equal later one no longer enters.
template <class Order>
struct Collector {
  using Key = typename Order::Key;
  static constexpr Key max_key = std::numeric_limits<Key>::max();

  Source<Order> row;
  Int k;
  Key bound;        // what enters: key >= bound
  uint32_t* index;  // list_capacity(k) + kListSlack
  Key* keys;        // as many
  Int count = 0;
  bool raised = false;
  bool done = false;  // no later element can enter

  void gather() {
    for (Int i = 0; i < count; ++i) keys[i] = row.key(index[i]);
    pad(keys, count);
  }

  void prune() {
    gather();
    Int selected = 0;
    const Key last =
        select_greatest<Order::width>(keys, count, k, 0, bound, [&](uint64_t mask, Int first) {
          for (; mask != 0; mask &= mask - 1)
            index[selected++] = index[first + __builtin_ctzll(mask)];
        });
    count = selected;
    raised = true;
    if (last == max_key)
      done = true;
    else
      bound = static_cast<Key>(last + 1);
  }

  // The first k that hold the greatest key of the type: no others are needed.
  void stop_when_full() {
    if (bound != max_key || raised || count < k) return;
    count = k;
    done = true;
  }

  // Ensures capacity for `more`, or sets `done`.
  bool has_capacity(Int more) {
    if (count + more > list_capacity(k)) prune();
    return !done;
  }

  void scan(Int begin, Int end) {
    alignas(64) char packed[kMaxPiece * Order::width];
    while (begin < end && !done) {
      const Int next = std::min(end, begin + list_piece(k));
      if (!has_capacity(next - begin)) return;
      const char* data = row.data;
      Int base = 0;
      if (row.stride != Order::width) {
        pack_elements<Order::width>(data + begin * row.stride, row.stride, next - begin, packed);
        data = packed;
        base = begin;
      }
      count += filter<Order>(data, begin - base, next - base, row.flip, bound, index + count,
                             static_cast<uint32_t>(base));
      begin = next;
      stop_when_full();
    }
  }

  // Restarts with every element a candidate: for a row that changed after its bound was found. At
  // least k stay, even if it changes again.
  void take_all(Int n) {
    count = 0;
    raised = done = false;
    bound = std::numeric_limits<Key>::min();
    scan(0, n);
  }

  void push(Int position) {
    if (!has_capacity(1)) return;
    index[count++] = static_cast<uint32_t>(position);
    stop_when_full();
  }
};

}  // namespace anydml::top_k
