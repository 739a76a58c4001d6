// Writing the results of a row, and the scratch of its algorithms.
#pragma once

#include "runtime/cpu/threads.hpp"
#include "top_k/cpu/top_k_job.hpp"
#include "top_k/cpu/top_k_select.hpp"
#include "top_k/cpu/top_k_sort.hpp"

namespace anydml::top_k {

// The destination of one row's results.
struct Output {
  char* values;
  Int value_stride;
  char* indices;
  Int index_stride;
  bool wide_index;     // 8 bytes, else 4
  bool stream;         // past the cache
  bool sorted = true;  // by key; else by position
  // A row that is read from its end has its positions counted from there.
  uint64_t from_end = 0, first = 0;

  uint64_t index_of(Int position) const {
    return (static_cast<uint64_t>(position) ^ from_end) + first;
  }
};

// The results of a row of `length` elements go to these addresses.
inline Output output_of(const Job& job, char* values, char* indices, Int length) {
  Output out{values,         job.value_stride, indices,   job.index_stride,
             job.wide_index, job.stream,       job.sorted};
  if (!job.from_end) return out;
  out.from_end = ~uint64_t{0};
  out.first = static_cast<uint64_t>(length);
  if (job.sorted) return out;
  const Int last = std::min(job.k, length) - 1;
  out.values += last * out.value_stride;
  out.indices += last * out.index_stride;
  out.value_stride = -out.value_stride;
  out.index_stride = -out.index_stride;
  return out;
}

template <class Order>
inline void put(const Output& out, Int rank, const Source<Order>& row, Int position) {
  store(out.values + rank * out.value_stride, row.bits(position));
  char* const index = out.indices + rank * out.index_stride;
  if (out.wide_index)
    store(index, out.index_of(position));
  else
    store(index, static_cast<uint32_t>(out.index_of(position)));
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

  SortPart* sort_parts() const { return reinterpret_cast<SortPart*>(sort); }
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

// The k first of `count` candidates, k <= count <= kRankLimit, with these keys; position_of(j)
// gives the j-th. Keys have capacity for a multiple of a line.
template <class Order, class PositionOf>
inline void put_ranked_keys(const Output& out, const Source<Order>& row, RankKey<Order>* keys,
                            Int count, Int k, PositionOf&& position_of) {
  alignas(64) RankKey<Order> rank[kRankLimit + 64];
  rank_all<static_cast<int>(sizeof(RankKey<Order>))>(keys, count, rank);
  // Writes all of them to their places: which ranks are below k cannot be predicted.
  uint32_t position[kRankLimit + 1];
  Int first = 0;  // of those that are among the k
  for (Int j = 0; j < count; ++j) {
    position[out.sorted ? rank[j] : first] = static_cast<uint32_t>(position_of(j));
    first += rank[j] < k;
  }
  for (Int r = 0; r < k; ++r) put(out, r, row, static_cast<Int>(position[r]));
}

template <class Order, class PositionOf>
inline void put_ranked(const Output& out, const Source<Order>& row, Int count, Int k,
                       PositionOf&& position_of) {
  alignas(64) RankKey<Order> keys[kRankLimit + 64];
  for (Int j = 0; j < count; ++j) keys[j] = row.key(position_of(j));
  pin(keys);
  put_ranked_keys(out, row, keys, count, k, position_of);
}

// The bits of a key, where only one pattern has it: not so for zeros and NaN, which are `special`.
template <class Order>
inline typename Order::Unsigned bits_of(typename Order::Unsigned key, typename Order::Flip flip,
                                        bool& special) {
  using Unsigned = typename Order::Unsigned;
  if constexpr (Order::is_float) {
    constexpr int top = 8 * Order::width - 1;
    const Unsigned ordered = static_cast<Unsigned>(key ^ flip.bits);
    special = ordered == 0 || key == flip.nan;
    const Unsigned sign = static_cast<Unsigned>(static_cast<typename Order::Key>(ordered) >> top);
    const Unsigned magnitude = static_cast<Unsigned>((ordered ^ sign) - sign);
    return static_cast<Unsigned>(magnitude | (sign << top));
  } else {
    special = false;
    return static_cast<Unsigned>(key ^ flip);
  }
}

// The results from rank `first` on, from sorted items. Where an item holds the whole key (`high`
// minus its upper half), the element's bits are made from it: reading them back from all over a
// long row would cost as much as the sort. Zeros and NaN are read back.
template <class Order>
inline void put_sorted(const Output& out, const Source<Order>& row, const uint64_t* items,
                       Int first, Int total, typename Order::Unsigned high, bool holds_key) {
  using Unsigned = typename Order::Unsigned;
  constexpr Int width = Order::width;
  constexpr Int block = 512;
  alignas(64) Unsigned values[block];
  alignas(64) uint64_t wide[block];
  alignas(64) uint32_t narrow[block];
  const Int index_width = out.wide_index ? 8 : 4;
  const bool packed = out.value_stride == width && out.index_stride == index_width;
  for (Int done = 0; done < total; done += block) {
    const Int count = std::min(block, total - done), start = first + done;
    const uint64_t* const from = items + done;
    for (Int i = 0; i < count; ++i) wide[i] = static_cast<uint32_t>(from[i]);
    if (holds_key) {
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
    for (Int i = 0; i < count; ++i) wide[i] = out.index_of(static_cast<Int>(wide[i]));
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

}  // namespace anydml::top_k
