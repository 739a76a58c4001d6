// From the candidates of a row to its k results: rank by counting, or sort, then write out.
#pragma once

#include "threads.hpp"
#include "top_k_select.hpp"
#include "top_k_sort.hpp"

namespace anydml::top_k {

// Where one row's results go.
struct Output {
  char* values;
  Int value_stride;
  char* indices;
  Int index_stride;
  bool wide_index;  // 8 bytes, else 4
  bool stream;      // past the cache
};

template <class Order>
inline void put(const Output& out, Int rank, const Source<Order>& row, Int position) {
  store(out.values + rank * out.value_stride, row.bits(position));
  char* const index = out.indices + rank * out.index_stride;
  if (out.wide_index)
    store(index, static_cast<uint64_t>(position));
  else
    store(index, static_cast<uint32_t>(position));
}

// Scratch of one row at a time.
struct Workspace {
  char* witness = nullptr;    // keys that a bound is taken from
  uint32_t* index = nullptr;  // candidates, a list for each part
  Int list = 0;               // length of one list, slack included
  char* keys = nullptr;       // their keys; the same memory as items
  uint64_t* items = nullptr;  // to be sorted: key difference << 32 | position
  uint64_t* other = nullptr;
  char* sort = nullptr;  // of sort_packed()
  int parts = 1;         // threads within the row

  template <class Key>
  Key* witness_as() const {
    return reinterpret_cast<Key*>(witness);
  }
  template <class Key>
  Key* keys_as() const {
    return reinterpret_cast<Key*>(keys);
  }
};

// Wide enough for ranks.
template <class Order>
using RankKey = typename Bits<(Order::width < 2 ? 2 : Order::width)>::Signed;

// All of `count` <= kRankLimit candidates, ranked; position_of(j) gives the j-th one.
template <class Order, class PositionOf>
inline void put_ranked(const Output& out, const Source<Order>& row, Int count, Int k,
                       PositionOf&& position_of) {
  using Key = RankKey<Order>;
  alignas(64) Key keys[kRankLimit + 64], rank[kRankLimit + 64];
  for (Int j = 0; j < count; ++j) keys[j] = row.key(position_of(j));
  rank_all<static_cast<int>(sizeof(Key))>(keys, count, rank);
  for (Int j = 0; j < count; ++j)
    if (rank[j] < k) put(out, rank[j], row, position_of(j));
}

// The bits of a key, where only one pattern has it: not so for zeros and NaN, which are `special`.
template <class Order>
inline typename Order::Unsigned bits_of(typename Order::Unsigned key, typename Order::Unsigned flip,
                                        bool& special) {
  using Unsigned = typename Order::Unsigned;
  const Unsigned ordered = static_cast<Unsigned>(key ^ flip);
  if constexpr (Order::is_float) {
    constexpr int top = 8 * Order::width - 1;
    constexpr Unsigned nan = static_cast<Unsigned>(~(Unsigned{1} << top));
    special = ordered == 0 || ordered == nan;
    const Unsigned sign = static_cast<Unsigned>(static_cast<typename Order::Key>(ordered) >> top);
    const Unsigned magnitude = static_cast<Unsigned>((ordered ^ sign) - sign);
    return static_cast<Unsigned>(magnitude | (sign << top));
  } else {
    special = false;
    return ordered;
  }
}

// Results [begin, end) from the sorted items. Where an item holds the whole key (`high` minus its
// upper half), the element's bits are made from it: reading them back from all over a long row
// would cost as much as the sort. Zeros and NaN are read back.
template <class Order>
inline void put_sorted(const Output& out, const Source<Order>& row, const uint64_t* items,
                       Int begin, Int end, typename Order::Unsigned high, bool whole) {
  using Unsigned = typename Order::Unsigned;
  constexpr Int width = Order::width;
  constexpr Int block = 512;
  alignas(64) Unsigned values[block];
  alignas(64) uint64_t wide[block];
  alignas(64) uint32_t narrow[block];
  const Int index_width = out.wide_index ? 8 : 4;
  const bool packed = out.value_stride == width && out.index_stride == index_width;
  for (Int start = begin; start < end; start += block) {
    const Int count = std::min(block, end - start);
    const uint64_t* const from = items + start;
    for (Int i = 0; i < count; ++i) wide[i] = static_cast<uint32_t>(from[i]);
    if (whole) {
      int specials = 0;
      for (Int i = 0; i < count; ++i) {
        bool special;
        values[i] = bits_of<Order>(
            static_cast<Unsigned>(high - static_cast<Unsigned>(from[i] >> 32)), row.flip, special);
        specials |= special;
      }
      for (Int i = 0; specials != 0 && i < count; ++i) {
        bool special;
        bits_of<Order>(static_cast<Unsigned>(high - static_cast<Unsigned>(from[i] >> 32)), row.flip,
                       special);
        if (special) values[i] = row.bits(static_cast<Int>(wide[i]));
      }
    } else {
      for (Int i = 0; i < count; ++i) values[i] = row.bits(static_cast<Int>(wide[i]));
    }
    if (!packed) {
      for (Int i = 0; i < count; ++i) {
        store(out.values + (start + i) * out.value_stride, values[i]);
        char* const index = out.indices + (start + i) * out.index_stride;
        if (out.wide_index)
          store(index, wide[i]);
        else
          store(index, static_cast<uint32_t>(wide[i]));
      }
      continue;
    }
    const void* index = wide;
    if (!out.wide_index) {
      for (Int i = 0; i < count; ++i) narrow[i] = static_cast<uint32_t>(wide[i]);
      index = narrow;
    }
    const auto bytes = static_cast<std::size_t>(count);
    if (out.stream) {
      stream_copy(out.values + start * width, values, bytes * width);
      stream_copy(out.indices + start * index_width, index,
                  bytes * static_cast<std::size_t>(index_width));
    } else {
      std::memcpy(out.values + start * width, values, bytes * width);
      std::memcpy(out.indices + start * index_width, index,
                  bytes * static_cast<std::size_t>(index_width));
    }
  }
  if (out.stream) stream_fence();
}

// Work within one row is split into `parts` of equal length.
template <class Body>
inline void for_parts(int parts, Int count, Body&& body) {
  if (parts == 1) {
    body(0, Int{0}, count);
    return;
  }
  const Int share = (count + parts - 1) / parts;
  parallel_chunks(parts, parts, [&](Int part) {
    body(static_cast<int>(part), std::min(count, part * share),
         std::min(count, (part + 1) * share));
  });
}

// Sorts candidates and writes the first k. The candidates come in as many lists as there are parts:
// starts[p] of them before list p, `position_of(p, j)` the j-th of list p.
template <class Order, class PositionOf>
inline void put_by_sorting(const Output& out, const Source<Order>& row, const Int* starts, Int k,
                           const Workspace& work, PositionOf&& position_of) {
  using Key = typename Order::Key;
  using Unsigned = typename Order::Unsigned;
  constexpr int W = Order::width;
  const int parts = work.parts;
  const Int count = starts[parts];
  Key lows[kMostParts], highs[kMostParts];
  const auto extremes = [&](Int part) {
    Key low = std::numeric_limits<Key>::max(), high = std::numeric_limits<Key>::min();
    const Int length = starts[part + 1] - starts[part];
    for (Int j = 0; j < length; ++j) {
      const Key key = row.key(position_of(part, j));
      low = key < low ? key : low;
      high = key > high ? key : high;
    }
    lows[part] = low;
    highs[part] = high;
  };
  parallel_chunks(parts, parts, extremes);
  const Key low = *std::min_element(lows, lows + parts);
  const Key high = *std::max_element(highs, highs + parts);
  const auto difference = [&](Int position) {
    return static_cast<Unsigned>(static_cast<Unsigned>(high) -
                                 static_cast<Unsigned>(row.key(position)));
  };
  const Unsigned span =
      static_cast<Unsigned>(static_cast<Unsigned>(high) - static_cast<Unsigned>(low));
  const int bits = span == 0 ? 0 : 64 - __builtin_clzll(span);
  const int shift = W == 8 && bits > 32 ? bits - 32 : 0;
  parallel_chunks(parts, parts, [&](Int part) {
    const Int start = starts[part], length = starts[part + 1] - start;
    for (Int j = 0; j < length; ++j) {
      const Int position = position_of(part, j);
      work.items[start + j] = static_cast<uint64_t>(difference(position)) >> shift << 32 |
                              static_cast<uint64_t>(position);
    }
  });
  uint64_t* const sorted =
      sort_packed(work.items, work.other, count, bits - shift, parts, work.sort);
  if constexpr (W == 8) {
    // Runs that agree in the upper 32 bits of the difference are in order of position: sort them by
    // the rest.
    uint64_t* const spare = sorted == work.items ? work.other : work.items;
    const uint64_t rest = (uint64_t{1} << shift) - 1;
    for (Int begin = 0; shift > 0 && begin < k;) {
      Int end = begin + 1;
      while (end < count && sorted[end] >> 32 == sorted[begin] >> 32) ++end;
      if (end - begin > 1) {
        for (Int i = begin; i < end; ++i) {
          const uint64_t position = static_cast<uint32_t>(sorted[i]);
          sorted[i] = (difference(static_cast<Int>(position)) & rest) << 32 | position;
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
              sort_packed(sorted + begin, spare + begin, end - begin, shift, parts, work.sort);
          if (run != sorted + begin)
            std::memcpy(sorted + begin, run, static_cast<std::size_t>(end - begin) * 8);
        }
      }
      begin = end;
    }
  }
  for_parts(parts, k, [&](int, Int begin, Int end) {
    put_sorted(out, row, sorted, begin, end, static_cast<Unsigned>(high), shift == 0);
  });
}

// One list of candidates in ascending position, the winners among them.
template <class Order>
inline void finish(const Output& out, const Source<Order>& row, uint32_t* index, Int count, Int k,
                   const Workspace& work) {
  using Key = typename Order::Key;
  if (k <= kRankLimit ? count > kRankLimit || count > k + k / 2 + 40 : count > k + k / 2) {
    Collector<Order> all{row, k, Key{}, index, work.keys_as<Key>()};
    all.count = count;
    all.prune();
    count = k;
  }
  if (count <= kRankLimit) {
    put_ranked(out, row, count, k, [&](Int j) { return static_cast<Int>(index[j]); });
    return;
  }
  Int starts[kMostParts + 1] = {};
  for (int part = 0; part <= work.parts; ++part)
    starts[part] = count / work.parts * part + (part == work.parts ? count % work.parts : 0);
  put_by_sorting(out, row, starts, k, work,
                 [&](Int part, Int j) { return static_cast<Int>(index[starts[part] + j]); });
}

}  // namespace anydml::top_k
