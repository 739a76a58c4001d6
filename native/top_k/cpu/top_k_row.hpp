// The algorithms for one contiguous row.
#pragma once

#include <atomic>
#include <cmath>

#include "top_k/cpu/top_k_finish.hpp"

namespace anydml::top_k {

// Witnesses per result above which a bound is bisected.
constexpr Int kFold = 32;
// Up to this count they are ranked instead.
constexpr Int kRankedWitnesses = 64;
// How far ahead reads of long rows prefetch: the hardware prefetcher reaches a third less, because
// it restarts in every row.
constexpr Int kPrefetchBytes = 6144;
// For a row that is not contiguous: lines that are packed before they are read.
constexpr Int kPackedLines = 16;

// The requirements of a row of this shape: the algorithm, its parameters, its scratch.
struct RowShape {
  Int n, k;
  TopKAlgorithm algorithm;
  int width;
  int parts;
  Int lines = 0;     // maxima: elements of a group, one from each line of its chunk
  Int chunks = 0;    // maxima
  Int next_row = 0;  // bytes to the next row, if prefetching it pays

  Int lanes() const { return kLineBytes / width; }
  Int chunk_elements() const { return lines * lanes(); }

  RowShape(Int n_, Int k_, TopKAlgorithm chosen, int width_, int parts_)
      : n(n_), k(k_), algorithm(chosen), width(width_), parts(parts_) {
    if (algorithm != TopKAlgorithm::maxima) return;
    // More lines to a group are fewer witnesses, but more to read again around each winner, and
    // more candidates when the winners lie side by side.
    const double per_line = static_cast<double>(lanes()) * static_cast<double>(k);
    Int group = static_cast<Int>(std::sqrt(2.0 * static_cast<double>(n) / per_line));
    group = std::min<Int>(std::max<Int>(group, 4), n / (2 * k));
    Int units = group / width;  // a unit of 64 elements is `width` lines
    units = std::max<Int>(1, std::min<Int>(units, n / kUnit));
    lines = units * width;
    // k witnesses at least, or there is no bound: as lines <= n / (2 k), there are more than
    // 2 k - lanes() of them, and never fewer than lanes().
    chunks = n / chunk_elements();
  }

  Int witnesses() const {
    switch (algorithm) {
      case TopKAlgorithm::maxima:
        return chunks * lanes() + chunks * lanes() / 2 + 2 * kUnit;
      case TopKAlgorithm::threshold:
        return n + kUnit;
      case TopKAlgorithm::sample:
        return kSample;  // whole units
      default:
        return 0;
    }
  }
  Int list() const {
    switch (algorithm) {
      case TopKAlgorithm::maxima:
      case TopKAlgorithm::sample:
        // A part is at most its share, rounded up to chunks.
        return std::min(n / parts + 2 * chunk_elements() + 2 * kMaxPiece, list_capacity(k)) +
               kListSlack;
      case TopKAlgorithm::threshold:
        return k + k / 8 + kListSlack;
      default:
        return 0;
    }
  }
  Int sorted() const {
    switch (algorithm) {
      case TopKAlgorithm::maxima:
      case TopKAlgorithm::sample:
        return k <= kRankLimit ? 0 : std::min(list() * parts, k + k / 2);
      case TopKAlgorithm::threshold:
        return k <= kRankLimit ? 0 : k + k / 8;
      case TopKAlgorithm::sort:
        return n;
      default:
        return 0;
    }
  }
  Int key_bytes() const { return list() * parts * width; }

  static Int rounded(Int bytes) { return (bytes + 63) / 64 * 64; }
  Int bytes() const { return place(nullptr, nullptr); }
  // Lays a workspace out at `memory`, 64-byte aligned; returns the bytes it takes.
  Int place(char* memory, Workspace* work) const {
    const Int index_at = rounded(witnesses() * width);
    const Int items_at = index_at + rounded(list() * parts * 4);
    const Int half = rounded((sorted() + sort_slack(sorted(), parts)) * 8);
    const Int sort_at = items_at + std::max(2 * half, rounded(key_bytes()));
    if (work != nullptr) {
      work->witness = memory;
      work->index = reinterpret_cast<uint32_t*>(memory + index_at);
      work->list = list();
      work->keys = memory + items_at;
      work->items = reinterpret_cast<uint64_t*>(memory + items_at);
      work->other = reinterpret_cast<uint64_t*>(memory + items_at + half);
      work->sort = memory + sort_at;
      work->parts = parts;
    }
    return sort_at + sort_scratch_bytes(sorted(), parts);
  }
};

template <class Order>
struct RowSelector {
  static constexpr int W = Order::width;
  static constexpr int lanes = Line<W>::lanes;
  using Key = typename Order::Key;
  static constexpr Key max_key = std::numeric_limits<Key>::max();

  const RowShape& shape;
  const Workspace& work;

  void run(const Source<Order>& row, const Output& out) const {
    switch (shape.algorithm) {
      case TopKAlgorithm::rank:
        put_ranked(out, row, shape.n, shape.k, [](Int j) { return j; });
        return;
      case TopKAlgorithm::maxima:
        by_maxima(row, out);
        return;
      case TopKAlgorithm::threshold:
        by_threshold(row, out);
        return;
      case TopKAlgorithm::sample:
        by_sample(row, out);
        return;
      default:
        by_sorting(row, out);
    }
  }

 private:
  // The lines of a chunk, packed a few at a time.
  Line<W> strided_maxima(const Source<Order>& row, const char* from) const {
    Line<W> best = Line<W>::splat(std::numeric_limits<Key>::min());
    alignas(64) char packed[kPackedLines * kLineBytes];
    for (Int line = 0; line < shape.lines; line += kPackedLines) {
      const Int count = std::min(kPackedLines, shape.lines - line) * lanes;
      const char* const start = from + line * lanes * row.stride;
      if (row.stride > 0 && row.stride < kLineBytes)
        for (Int at = 0; at < count * row.stride; at += kLineBytes)
          __builtin_prefetch(start + kPrefetchBytes + at);
      pack_elements<W>(start, row.stride, count, packed);
      for (Int i = 0; i < count; i += lanes)
        best.raise_to(line_of_keys<Order>(packed + i * W, row.flip));
    }
    return best;
  }

  // The greatest key of each group of the chunks [begin, end): lane l of a chunk's lines is a
  // group. Stops behind the chunk with which k groups hold the greatest key there is: nothing later
  // can enter. Returns where it stopped.
  Int group_maxima(const Source<Order>& row, Int begin, Int end, Key* witness) const {
    const Line<W> top = Line<W>::splat(max_key);
    Int full = 0;
    const Int lines = shape.lines;
    for (Int chunk = begin; chunk < end; ++chunk) {
      const char* const from = row.data + chunk * lines * lanes * row.stride;
      Line<W> best;
      if (row.stride == W) {
        best = line_of_keys<Order>(from, row.flip);
        __builtin_prefetch(from + kPrefetchBytes);
        for (Int line = 1; line < lines; ++line) {
          __builtin_prefetch(from + kPrefetchBytes + line * kLineBytes);
          best.raise_to(line_of_keys<Order>(from + line * kLineBytes, row.flip));
        }
      } else {
        best = strided_maxima(row, from);
      }
      best.write(witness + chunk * lanes);
      full += __builtin_popcountll(at_least<W>(best, top));
      if (full >= shape.k) return chunk + 1;
    }
    return end;
  }

  // All groups' maxima; returns the number of chunks that count.
  Int all_maxima(const Source<Order>& row, Key* witness) const {
    const Int chunks = shape.chunks;
    if (shape.parts == 1) return group_maxima(row, 0, chunks, witness);
    // The first part alone may be enough.
    const Int probe = std::min<Int>(chunks, chunks / 64 + 1);
    Int stop = group_maxima(row, 0, probe, witness);
    if (stop < probe) return stop;
    std::atomic<Int> limit{chunks};
    parallel_ranges(chunks - probe, 16, shape.parts, [&](Int begin, Int end) {
      begin += probe;
      end += probe;
      if (begin >= limit.load(std::memory_order_relaxed)) return;
      const Int reached = group_maxima(row, begin, end, witness);
      if (reached == end) return;
      Int seen = limit.load(std::memory_order_relaxed);
      while (reached < seen && !limit.compare_exchange_weak(seen, reached)) {
      }
    });
    return limit.load();
  }

  // A bound that k witnesses reach, and not many more.
  Key bound_of(Key* witness, Int count) const {
    const Int k = shape.k;
    const Int padded = pad(witness, count);
    if (count <= kRankedWitnesses) return bound_by_rank<W>(witness, count, k);
    // Far more witnesses than are needed are folded: maxima of maxima are maxima of larger groups,
    // and the bound stays certain. Lines far apart go together, because great elements are often
    // neighbours.
    const Int lines = count / lanes, fold = lines / ((kFold * k + lanes - 1) / lanes);
    if (fold > 1) {
      Key* const folded_keys = witness + padded;
      const Int folded = lines / fold * lanes;
      std::memcpy(folded_keys, witness, static_cast<std::size_t>(folded) * W);
      for (Int turn = 1; turn < fold; ++turn) {
        for (Int i = 0; i < folded; i += lanes) {
          Line<W> best = Line<W>::read(folded_keys + i);
          best.raise_to(Line<W>::read(witness + turn * folded + i));
          best.write(folded_keys + i);
        }
      }
      pad(folded_keys, folded);
      witness = folded_keys;
      count = folded;
    }
    return bisect<W>(witness, count, k, k / 8 + 1);
  }

  // A short row in which more keys than can be ranked reach the bound.
  void put_ties_of_short_row(const Source<Order>& row, const Output& out, const Key* keys,
                             Key bound) const {
    uint32_t index[kSmallKRow / kSmallKRatio * 2 + kUnit];
    Int count = 0;
    select_greatest<W>(keys, shape.n, shape.k, 0, bound, [&](uint64_t mask, Int first) {
      count += expand_bits(mask, static_cast<uint32_t>(first), index + count);
    });
    put_ranked(out, row, count, shape.k, [&](Int j) { return static_cast<Int>(index[j]); });
  }

  // A short row, whose keys are kept in scratch.
  void put_by_maxima_of_short_row(const Source<Order>& row, const Output& out) const {
    const Int n = shape.n, step = shape.chunk_elements(), end = shape.chunks * step;
    alignas(64) Key keys[kSmallKRow + kUnit], witness[2 * kSmallKRow];
    alignas(64) char packed[kSmallKRow * W];
    const char* data = row.data;
    if (row.stride != W) {
      pack_elements<W>(data, row.stride, n, packed);
      data = packed;
    }
    for (Int start = 0, chunk = 0; start < end; start += step, ++chunk) {
      Line<W> best = line_of_keys<Order>(data + start * W, row.flip);
      best.pin();
      best.write(keys + start);
      for (Int i = start + lanes; i < start + step; i += lanes) {
        Line<W> line = line_of_keys<Order>(data + i * W, row.flip);
        line.pin();
        line.write(keys + i);
        best.raise_to(line);
      }
      best.write(witness + chunk * lanes);
    }
    keys_of<Order>(data + end * W, n - end, row.flip, keys + end);
    pin(keys);
    pad(keys, n);
    const Key bound_key = bound_of(witness, shape.chunks * lanes);
    const Line<W> bound = Line<W>::splat(bound_key);
    // Lines are written at unaligned positions; staying within a page keeps that from taking twice
    // as long.
    alignas(1024) uint32_t index[kRankLimit + kListSlack];
    alignas(W == 8 ? 2048 : 1024) Key candidates[kRankLimit + kListSlack];
    Int count = 0;
    // Padding keys are the lowest key, so they reach a bound only if all keys do, which are too
    // many to be ranked.
    for (Int i = 0; i < n; i += kUnit) {
      uint64_t masks[W], mask = 0;
      for (int line = 0; line < W; ++line) {
        masks[line] = at_least<W>(Line<W>::read(keys + i + line * lanes), bound);
        mask |= masks[line] << (line * lanes % 64);
      }
      const Int more = __builtin_popcountll(mask);
      if (count + more > max_ranked(shape.k))
        return put_ties_of_short_row(row, out, keys, bound_key);
      for (int line = 0; line < W; ++line) {
        const Int before = line == 0 ? 0 : __builtin_popcountll(mask << (64 - line * lanes));
        compress_line<W>(Line<W>::read(keys + i + line * lanes), masks[line],
                         candidates + count + before);
      }
      expand_bits(mask, static_cast<uint32_t>(i), index + count);
      count += more;
    }
    const auto position_of = [&](Int j) { return static_cast<Int>(index[j]); };
    if constexpr (W == 1)
      put_ranked(out, row, count, shape.k, position_of);
    else
      put_ranked_keys(out, row, candidates, count, shape.k, position_of);
  }

  void by_maxima(const Source<Order>& row, const Output& out) const {
    if (shape.n <= kSmallKRow) return put_by_maxima_of_short_row(row, out);
    Key* const witness = work.witness_as<Key>();
    const Int chunks = all_maxima(row, witness);
    const bool stopped = chunks < shape.chunks;
    const Key bound = stopped ? max_key : bound_of(witness, chunks * lanes);
    const Int size = shape.chunk_elements();
    const auto scan = [&](Collector<Order>& list, Int begin, Int end) {
      for (Int chunk = begin; chunk < end && !list.done; ++chunk) {
        if (shape.next_row > 0) {  // the memory would idle while this row is picked over
          const char* const next = row.data + shape.next_row + chunk * shape.lines * kLineBytes;
          for (Int line = 0; line < shape.lines; ++line)
            __builtin_prefetch(next + line * kLineBytes, 0, 2);
        }
        if (at_least<W>(Line<W>::read(witness + chunk * lanes), Line<W>::splat(list.bound)) != 0)
          list.scan(chunk * size, (chunk + 1) * size);
      }
      if (end == shape.chunks) list.scan(end * size, shape.n);
    };
    // Too few if the row changed after the first reading.
    if (!collect(row, out, bound, chunks, scan)) collect_all(row, out);
  }

  // Lets each part's list scan its share of `count` items with `scan`, then finishes the row.
  // Returns false, with nothing written, if fewer than k candidates reached the bound.
  template <class Scan>
  bool collect(const Source<Order>& row, const Output& out, Key bound, Int count,
               Scan&& scan) const {
    Int counts[kMaxParts];
    const int parts = shape.parts;
    for_parts(parts, count, [&](int part, Int begin, Int end) {
      Collector<Order> list{row, shape.k, bound, work.index + part * work.list,
                            work.keys_as<Key>() + part * work.list};
      if (begin < end) scan(list, begin, end);
      counts[part] = list.count;
    });
    Int starts[kMaxParts + 1];
    starts[0] = 0;
    for (int part = 0; part < parts; ++part) starts[part + 1] = starts[part] + counts[part];
    const Int total = starts[parts];
    if (total < shape.k) return false;
    if (out.sorted && parts > 1 && total > kRankLimit && shape.k > kRankLimit &&
        total <= shape.k + shape.k / 2) {
      put_by_sorting(out, row, starts, shape.k, work, false, [&](Int part, Int j) {
        return static_cast<Int>(work.index[part * work.list + j]);
      });
      return true;
    }
    for (int part = 1; part < parts; ++part)
      std::memmove(work.index + starts[part], work.index + part * work.list,
                   static_cast<std::size_t>(counts[part]) * sizeof(uint32_t));
    finish(out, row, work.index, total, shape.k, work);
    return true;
  }

  // Everything is a candidate: at least k, even if the row changes.
  void collect_all(const Source<Order>& row, const Output& out) const {
    collect(row, out, std::numeric_limits<Key>::min(), shape.n,
            [&](Collector<Order>& list, Int begin, Int end) { list.scan(begin, end); });
  }

  void by_threshold(const Source<Order>& row, const Output& out) const {
    Key* const keys = work.witness_as<Key>();
    keys_of<Order>(row.data, shape.n, row.flip, keys);
    pad(keys, shape.n);
    Int selected = 0;
    select_greatest<W>(keys, shape.n, shape.k, out.sorted ? shape.k / 8 : 0,
                       std::numeric_limits<Key>::min(), [&](uint64_t mask, Int first) {
                         selected +=
                             expand_bits(mask, static_cast<uint32_t>(first), work.index + selected);
                       });
    finish(out, row, work.index, selected, shape.k, work);
  }

  void by_sample(const Source<Order>& row, const Output& out) const {
    Key* const keys = work.witness_as<Key>();
    for (Int i = 0; i < kSample; ++i) keys[i] = row.key(sample_position(i, shape.n));
    const double share = static_cast<double>(shape.k) / static_cast<double>(shape.n);
    const double deviation = std::sqrt(share * (1 - share) * static_cast<double>(kSample));
    Int rank = static_cast<Int>(share * static_cast<double>(kSample) + 3.5 * deviation + 3);
    // A misleading sample is replaced by a larger one. No natural input causes this, but a row that
    // changes after the sample may.
    for (; rank < kSample; rank += rank + 64) {
      const Key bound = bisect<W>(keys, kSample, rank, rank / 64);
      if (collect(row, out, bound, shape.n,
                  [&](Collector<Order>& list, Int begin, Int end) { list.scan(begin, end); }))
        return;
    }
    collect_all(row, out);
  }

  void by_sorting(const Source<Order>& row, const Output& out) const {
    Int starts[kMaxParts + 1];
    const int parts = shape.parts;
    const Int share = (shape.n + parts - 1) / parts;
    for (int part = 0; part <= parts; ++part) starts[part] = std::min(shape.n, part * share);
    put_by_sorting(out, row, starts, shape.k, work, true,
                   [&](Int part, Int j) { return starts[part] + j; });
  }
};

}  // namespace anydml::top_k
