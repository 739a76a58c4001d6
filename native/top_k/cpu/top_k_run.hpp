// All rows of a call: how they are shared among threads, and how a row that is not contiguous
// becomes so. Included by one file for each kind of key.
#pragma once

#include "top_k/cpu/top_k_vertical.hpp"
#include "top_k/cpu/top_k_wide.hpp"

namespace anydml::top_k {

// What one row costs on one thread, in ns, roughly: it decides about threads and nothing else.
inline double row_cost(TopKAlgorithm algorithm, Int n, Int k, int width) {
  const double size = static_cast<double>(n), selected = static_cast<double>(k);
  switch (algorithm) {
    case TopKAlgorithm::rank:
      return 20 + size * (1 + size / 32);
    case TopKAlgorithm::maxima:
      return 60 + size * width * 0.03 + selected * 10;
    case TopKAlgorithm::threshold:
      return 200 + size * 0.5 + selected * 8;
    case TopKAlgorithm::sample:
      return 10000 + size * width * 0.05 + selected * 8;
    default:
      return 200 + size * 8;
  }
}

// The work, in ns, that pays for a thread, and for a second one that is awake.
constexpr double kElementsPerThread = 50000, kSharedFrom = 30000;

// Rows that are not contiguous are packed in batches of neighbours, so that a cache line is read
// once.
constexpr Int kPackBytes = Int{128} << 10;

// Rows that are prefetched: their end takes long enough to matter, two of them fit the
// second-level cache, and the input is not in a cache already.
constexpr Int kPrefetchMinK = 256;  // k
constexpr Int kPrefetchMaxRowBytes = Int{384} << 10;
constexpr Int kPrefetchMinInputBytes = Int{32} << 20;

template <class Order>
class Rows {
  static constexpr int W = Order::width;

 public:
  explicit Rows(const Job& job) : job_(job), flip_(flip_of<Order>(job)) {}

  void run() const {
    if (job_.algorithm == TopKAlgorithm::vertical) {
      Vertical<Order>(job_).run();
      return;
    }
    if (job_.algorithm == TopKAlgorithm::wide) {
      run_all_wide();
      return;
    }
    const Int rows = job_.rows.count();
    Int sum = 0;
    for (Int row = 0; job_.lengths != nullptr && row < rows; ++row) sum += job_.lengths[row];
    const RowShape usual = shape_of(job_.lengths != nullptr ? sum / rows : job_.n, 1);
    const double row_time = row_cost(usual.algorithm, usual.n, usual.k, W);
    const double total = row_time * static_cast<double>(rows);
    int threads = job_.threads;
    if (threads > 1 && total >= kSharedFrom && total < 2 * kElementsPerThread)
      threads = in_quick_succession() ? 2 : 1;
    else if (threads > 1)
      threads =
          std::max(1, static_cast<int>(std::min<double>(threads, total / kElementsPerThread)));
    const bool divisible = job_.algorithm != TopKAlgorithm::rank && job_.n >= kThresholdLimit;
    const bool within = threads > 1 && divisible && rows < 4 * threads && row_time > 200000;
    const int slots = within ? 1 : static_cast<int>(std::min<Int>(threads, rows));
    RowShape shape = shape_of(job_.n, within ? std::min(threads, kMaxParts) : 1);
    const int last = job_.rows.rank - 1;
    const Int row_bytes = job_.n * W;
    if (job_.stride == W && job_.lengths == nullptr && last >= 0 &&
        job_.rows.strides[last] == row_bytes && !within && job_.k >= kPrefetchMinK &&
        row_bytes <= kPrefetchMaxRowBytes && rows * row_bytes >= kPrefetchMinInputBytes)
      shape.next_row = row_bytes;
    Int batch = 0;  // rows to pack at once; 0: rows are read in place
    // `maxima` reads rows in place, except neighbours that share lines. Shorter rows may take other
    // algorithms.
    const bool shared = last >= 0 && std::abs(job_.rows.strides[last]) < std::abs(job_.stride) &&
                        std::abs(job_.rows.strides[last]) < kLineBytes;
    if (job_.stride != W && job_.algorithm != TopKAlgorithm::rank &&
        (job_.algorithm != TopKAlgorithm::maxima || shared || job_.lengths != nullptr)) {
      batch =
          within ? 1 : std::max<Int>(1, std::min<Int>(kLineBytes / W, kPackBytes / (job_.n * W)));
      batch = std::min(batch, rows);
    }
    Int shape_bytes = job_.lengths == nullptr ? shape.bytes() : 0;
    for (Int row = 0, seen = -1; job_.lengths != nullptr && row < rows; ++row) {
      if (job_.lengths[row] == seen) continue;
      seen = job_.lengths[row];
      shape_bytes = std::max(shape_bytes, shape_of(seen, shape.parts).bytes());
    }
    shape_bytes = RowShape::rounded(shape_bytes);
    const Int slot_bytes = shape_bytes + RowShape::rounded(batch * job_.n * W);
    alignas(64) char local[kLocalBytes];
    Scratch<char> heap;
    char* memory = local;
    if (slots * slot_bytes > kLocalBytes) {
      heap.reset(slots * slot_bytes);
      memory = heap.get();
    }
    if (slots == 1) {
      run_range(shape, shape_bytes, batch, 0, rows, memory);
      return;
    }
    // About ten ranges for each thread, but none too small to pay.
    const Int range =
        std::max<Int>({Int{1}, rows / (slots * 10), static_cast<Int>(20000 / row_time),
                       std::min(batch, rows / slots)});
    std::atomic<Int> next{0};
    parallel_chunks(slots, threads, [&](Int slot) {
      for (;;) {
        const Int begin = next.fetch_add(range, std::memory_order_relaxed);
        if (begin >= rows) break;
        run_range(shape, shape_bytes, batch, begin, std::min(rows, begin + range),
                  memory + slot * slot_bytes);
      }
    });
  }

 private:
  static constexpr Int kLocalBytes = 24 << 10;

  RowShape shape_of(Int length, int parts) const {
    if (job_.lengths == nullptr) return {job_.n, job_.k, job_.algorithm, W, parts};
    const Int k = std::min(job_.k, length);
    return {length, k, choose(length, k, W, job_.sorted), W, length < kThresholdLimit ? 1 : parts};
  }

  Int length_of(Int row) const { return job_.lengths == nullptr ? job_.n : job_.lengths[row]; }

  // The positions behind a row's elements, which come first where it is read from its end.
  Int skipped(Int row) const { return job_.from_end ? job_.n - length_of(row) : 0; }

  Output output(const Walker<3>& at, Int row) const {
    char *const values = job_.values + at.offset[1], *const indices = job_.indices + at.offset[2];
    for (Int rank = length_of(row); rank < job_.k; ++rank) {
      store(values + rank * job_.value_stride, static_cast<typename Order::Unsigned>(job_.fill));
      char* const index = indices + rank * job_.index_stride;
      if (job_.wide_index)
        store(index, ~uint64_t{0});
      else
        store(index, ~uint32_t{0});
    }
    return output_of(job_, values, indices, length_of(row));
  }

  void run_range(RowShape shape, Int shape_bytes, Int batch, Int begin, Int end,
                 char* memory) const {
    Workspace work;
    shape.place(memory, &work);
    const RowSelector<Order> select{shape, work};
    const Layout* const layouts[3] = {&job_.rows, &job_.value_rows, &job_.index_rows};
    Walker<3> walker(layouts, job_.rows.rank);
    walker.start(begin);
    const int parts = shape.parts;
    const auto run_row = [&](Int row, const char* data, Int stride) {
      const Int length = length_of(row);
      if (length != shape.n) {
        shape = shape_of(length, parts);
        shape.place(memory, &work);
      }
      const Output out = output(walker, row);
      if (length > 0) select.run({data + skipped(row) * stride, stride, flip_}, out);
      walker.next();
    };
    if (batch == 0) {
      for (Int row = begin; row < end; ++row)
        run_row(row, job_.input + walker.offset[0], job_.stride);
      return;
    }
    char* const packed = memory + shape_bytes;
    const int last = job_.rows.rank - 1;
    const Int inner = last >= 0 ? job_.rows.sizes[last] : 1;
    for (Int row = begin; row < end;) {
      // Neighbours along the last dimension.
      const Int count = std::min({batch, end - row, inner - row % inner});
      pack(row, job_.input + walker.offset[0], last >= 0 ? job_.rows.strides[last] : 0, count,
           packed, parts);
      for (Int i = 0; i < count; ++i) run_row(row + i, packed + i * job_.n * W, W);
      row += count;
    }
  }

  void pack(Int first, const char* from, Int row_stride, Int count, char* to, int parts) const {
    for_parts(parts, job_.n, [&](int, Int begin, Int end) {
      constexpr Int tile = 128;  // positions: their lines stay in the cache for all rows
      for (Int start = begin; start < end; start += tile) {
        for (Int row = 0; row < count; ++row) {
          const Int skip = skipped(first + row), length = length_of(first + row);
          const Int at = std::max(start, skip);
          const Int stop = std::min({end, start + tile, skip + length});
          if (at < stop)
            pack_elements<W>(from + row * row_stride + at * job_.stride, job_.stride, stop - at,
                             to + (row * job_.n + at) * W);
        }
      }
    });
  }

  void run_all_wide() const {
    Scratch<WideItem> items(2 * job_.k);
    const Layout* const layouts[3] = {&job_.rows, &job_.value_rows, &job_.index_rows};
    Walker<3> walker(layouts, job_.rows.rank);
    walker.start(0);
    const Int rows = job_.rows.count();
    for (Int row = 0; row < rows; ++row) {
      const Int length = length_of(row);
      const Output out = output(walker, row);
      run_wide<Order>(
          {job_.input + walker.offset[0] + skipped(row) * job_.stride, job_.stride, flip_}, out,
          length, std::min(job_.k, length), items.get(), items.get() + job_.k);
      walker.next();
    }
  }

  const Job& job_;
  typename Order::Flip flip_;
};

}  // namespace anydml::top_k
