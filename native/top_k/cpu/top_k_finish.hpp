// From the candidates of a row to its k results: rank by counting, or sort, then write out.
#pragma once

#include "top_k/cpu/top_k_buckets.hpp"

namespace anydml::top_k {

// Sorts candidates and writes the first k. The candidates come in as many lists as there are parts:
// starts[p] of them before list p, `position_of(p, j)` the j-th of list p. `contiguous`: they are
// all elements of the row, in order.
template <class Order, class PositionOf>
inline void put_by_sorting(const Output& out, const Source<Order>& row, const Int* starts, Int k,
                           const Workspace& work, bool contiguous, PositionOf&& position_of) {
  using Key = typename Order::Key;
  using Unsigned = typename Order::Unsigned;
  const int parts = work.parts;
  const Int count = starts[parts];
  if (through_buckets(count, parts)) {
    BucketSort<Order, std::remove_reference_t<PositionOf>>(out, row, starts, k, work, position_of,
                                                           contiguous)
        .run();
    return;
  }
  const auto for_each_candidate = [&](auto&& body) {
    for (int part = 0; part < parts; ++part)
      for (Int j = 0, at = starts[part]; at < starts[part + 1]; ++j, ++at)
        body(at, position_of(part, j));
  };
  Key low = std::numeric_limits<Key>::max(), high = std::numeric_limits<Key>::min();
  for_each_candidate([&](Int, Int position) {
    const Key key = row.key(position);
    low = key < low ? key : low;
    high = key > high ? key : high;
  });
  const Unsigned span =
      static_cast<Unsigned>(static_cast<Unsigned>(high) - static_cast<Unsigned>(low));
  const int bits = span == 0 ? 0 : 64 - __builtin_clzll(span);
  const int shift = std::max(0, bits - 32);
  for_each_candidate([&](Int at, Int position) {
    const Unsigned difference = static_cast<Unsigned>(static_cast<Unsigned>(high) -
                                                      static_cast<Unsigned>(row.key(position)));
    work.items[at] =
        static_cast<uint64_t>(difference) >> shift << 32 | static_cast<uint64_t>(position);
  });
  uint64_t* const sorted =
      sort_packed(work.items, work.other, count, 0, bits - shift, 1, work.sort_parts());
  if (shift > 0)
    sort_runs(row, sorted, sorted == work.items ? work.other : work.items, count, k, high, shift, 1,
              work.sort_parts());
  put_sorted(out, row, sorted, 0, k, static_cast<Unsigned>(high), shift == 0);
}

// One list of candidates in ascending position, the winners among them.
template <class Order>
inline void finish(const Output& out, const Source<Order>& row, uint32_t* index, Int count, Int k,
                   const Workspace& work) {
  using Key = typename Order::Key;
  if (k <= kRankLimit ? count > max_ranked(k) : count > (out.sorted ? k + k / 2 : k)) {
    Collector<Order> all{row, k, std::numeric_limits<Key>::min(), index, work.keys_as<Key>()};
    all.count = count;
    all.prune();
    count = k;
  }
  if (!out.sorted && count == k) {
    for (Int j = 0; j < k; ++j) put(out, j, row, static_cast<Int>(index[j]));
    return;
  }
  if (count <= kRankLimit) {
    put_ranked(out, row, count, k, [&](Int j) { return static_cast<Int>(index[j]); });
    return;
  }
  Int starts[kMaxParts + 1] = {};
  for (int part = 0; part <= work.parts; ++part)
    starts[part] = count / work.parts * part + (part == work.parts ? count % work.parts : 0);
  put_by_sorting(out, row, starts, k, work, false,
                 [&](Int part, Int j) { return static_cast<Int>(index[starts[part] + j]); });
}

}  // namespace anydml::top_k
