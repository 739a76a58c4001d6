// Few of many along an axis that is not contiguous, while its rows are neighbours in memory:
// nothing is transposed, a lane of each vector is a row. One reading takes the maximum of every
// chunk of positions, the bounds of a line of rows are bisected side by side, and the chunks that
// reach them are read again. Where the rows lie a little apart, pieces are packed on the way.
#pragma once

#include "top_k/cpu/top_k_job.hpp"
#include "top_k/cpu/top_k_row.hpp"

namespace anydml::top_k {

template <class Order>
class Vertical {
  static constexpr int W = Order::width;
  static constexpr int lanes = Line<W>::lanes;
  static constexpr int kGroup = 4;  // lines read side by side
  using Key = typename Order::Key;
  using Unsigned = typename Order::Unsigned;
  static constexpr Key max_key = std::numeric_limits<Key>::max();

 public:
  explicit Vertical(const Job& job)
      : job_(job),
        flip_(flip_of<Order>(job)),
        lane_stride_(job.rows.strides[job.rows.rank - 1]),
        inner_(job.rows.sizes[job.rows.rank - 1]),
        strips_((inner_ + lanes - 1) / lanes),
        shape_(job.n, job.k, TopKAlgorithm::maxima, W, 1) {
    const double positions =
        std::sqrt(static_cast<double>(job.n) / static_cast<double>(16 * job.k));
    length_ = std::max<Int>(4, std::min<Int>(64, static_cast<Int>(positions)));
    chunks_ = job.n / length_;
  }

  void run() {
    const Int outer = job_.rows.count() / inner_;
    const Int witness_per_outer = strips_ * chunks_ * lanes;
    // The first reading of a batch stays in the cache for the second where it can.
    const Int bytes_per_outer = inner_ * job_.n * W;
    const Int batch = std::max<Int>(
        1, std::min(outer, (Int{4} << 20) * std::max(1, job_.threads) / bytes_per_outer));
    const Int work = outer * bytes_per_outer / 16;  // ns, about
    int threads = work < 100000 ? 1 : job_.threads;
    const int slots = static_cast<int>(std::min<Int>(threads, batch * strips_));
    const Int list = list_capacity(job_.k) + kListSlack;
    const Int lists_bytes = RowShape::rounded(lanes * list * 4);
    const Int slot_bytes = lists_bytes + shape_.bytes();
    Scratch<Key> witness(batch * witness_per_outer);
    Scratch<char> memory(slots * slot_bytes);
    const Layout* const layouts[3] = {&job_.rows, &job_.value_rows, &job_.index_rows};
    for (Int first = 0; first < outer; first += batch) {
      const Int count = std::min(batch, outer - first);
      first_reading(layouts, first, count, threads, witness.get());
      std::atomic<Int> next{0};
      parallel_chunks(slots, threads, [&](Int slot) {
        char* const own = memory.get() + slot * slot_bytes;
        Workspace work_space;
        shape_.place(own + lists_bytes, &work_space);
        for (;;) {
          const Int item = next.fetch_add(1, std::memory_order_relaxed);
          if (item >= count * strips_) break;
          second_reading(layouts, first + item / strips_, item % strips_,
                         witness.get() + item * chunks_ * lanes, reinterpret_cast<uint32_t*>(own),
                         list, work_space);
        }
      });
    }
  }

 private:
  using Layouts = const Layout* const (&)[3];

  // The last strip overlaps the one before it.
  Int first_row(Int strip) const { return std::min(strip * lanes, inner_ - lanes); }

  // The keys of a line of rows at one position.
  template <bool kPacked>
  Line<W> keys_at(const char* from) const {
    if constexpr (kPacked) return line_of_keys<Order>(from, flip_);
    alignas(64) char packed[kLineBytes];
    pack_elements<W>(from, lane_stride_, lanes, packed);
    return line_of_keys<Order>(packed, flip_);
  }

  Line<W> keys_of_row(const char* from) const {
    return lane_stride_ == W ? keys_at<true>(from) : keys_at<false>(from);
  }

  template <int N, bool kPacked>
  void maxima(const char* const* from, Int begin, Int end, Key* const* to) const {
    for (Int chunk = begin; chunk < end; ++chunk) {
      const Int start = chunk * length_ * job_.stride;
      Line<W> best[N];
      for (int s = 0; s < N; ++s) best[s] = keys_at<kPacked>(from[s] + start);
      for (Int i = 1; i < length_; ++i)
        for (int s = 0; s < N; ++s)
          best[s].raise_to(keys_at<kPacked>(from[s] + start + i * job_.stride));
      for (int s = 0; s < N; ++s) best[s].write(to[s] + chunk * lanes);
    }
  }

  void first_reading(Layouts layouts, Int first, Int count, int threads, Key* witness) const {
    const Int groups = (strips_ + kGroup - 1) / kGroup;
    const Int piece_bytes = kGroup * kLineBytes * length_;
    const Int pieces =
        std::max<Int>(1, std::min<Int>(chunks_, chunks_ * piece_bytes / (256 << 10)));
    parallel_chunks(count * groups * pieces, threads, [&](Int item) {
      const Int piece = item % pieces, group = item / pieces % groups,
                outer = item / pieces / groups;
      Walker<3> walker(layouts, job_.rows.rank - 1);
      walker.start(first + outer);
      const Int strip = group * kGroup;
      const int strips = static_cast<int>(std::min<Int>(kGroup, strips_ - strip));
      const char* from[kGroup];
      Key* to[kGroup];
      for (int s = 0; s < strips; ++s) {
        from[s] = job_.input + walker.offset[0] + first_row(strip + s) * lane_stride_;
        to[s] = witness + (outer * strips_ + strip + s) * chunks_ * lanes;
      }
      const Int begin = chunks_ * piece / pieces, end = chunks_ * (piece + 1) / pieces;
      const auto read = [&]<bool kPacked>(std::bool_constant<kPacked>) {
        if (strips == kGroup)
          maxima<kGroup, kPacked>(from, begin, end, to);
        else
          for (int s = 0; s < strips; ++s) maxima<1, kPacked>(from + s, begin, end, to + s);
      };
      if (lane_stride_ == W)
        read(std::true_type{});
      else
        read(std::false_type{});
    });
  }

  // bisect() for each lane separately: `low` becomes the bounds.
  void bounds_of(const Key* witness, Key* __restrict low) const {
    Line<W> low_line = Line<W>::read(witness), high_line = low_line;
    for (Int c = 1; c < chunks_; ++c) {
      const Line<W> line = Line<W>::read(witness + c * lanes);
      high_line.raise_to(line);
      for (int v = 0; v < kLineVectors; ++v)
        low_line.part[v] = low_line.part[v] < line.part[v] ? low_line.part[v] : line.part[v];
    }
    Key high[lanes], middle[lanes];
    Int have[lanes], found[lanes];
    low_line.write(low);
    high_line.write(high);
    for (int lane = 0; lane < lanes; ++lane) have[lane] = chunks_;
    for (;;) {
      bool open = false;
      for (int lane = 0; lane < lanes; ++lane) {
        const Unsigned span = static_cast<Unsigned>(static_cast<Unsigned>(high[lane]) -
                                                    static_cast<Unsigned>(low[lane]));
        middle[lane] = static_cast<Key>(
            static_cast<Unsigned>(static_cast<Unsigned>(low[lane]) + (span / 2) + (span & 1)));
        found[lane] = 0;
        open |= low[lane] < high[lane] && have[lane] > job_.k + job_.k / 8;
      }
      if (!open) break;
      const Line<W> middle_line = Line<W>::read(middle);
      for (Int start = 0; start < chunks_; start += 120) {  // lanes of one byte hold 127 at most
        const Int end = std::min<Int>(chunks_, start + 120);
        Line<W> sum = Line<W>::splat(0);
        for (Int c = start; c < end; ++c)
          sum.count_at_least(Line<W>::read(witness + c * lanes), middle_line);
        Key lane_sum[lanes];
        sum.write(lane_sum);
        for (int lane = 0; lane < lanes; ++lane) found[lane] += lane_sum[lane];
      }
      for (int lane = 0; lane < lanes; ++lane) {
        if (low[lane] >= high[lane]) continue;
        if (found[lane] >= job_.k) {
          low[lane] = middle[lane];
          have[lane] = found[lane];
        } else {
          high[lane] = static_cast<Key>(middle[lane] - 1);
        }
      }
    }
  }

  void second_reading(Layouts layouts, Int outer, Int strip, const Key* witness, uint32_t* lists,
                      Int list_length, const Workspace& work) const {
    Walker<3> walker(layouts, job_.rows.rank - 1);
    walker.start(outer);
    const Int first = first_row(strip);
    const int skip = static_cast<int>(strip * lanes - first);  // rows of the strip before
    const char* const base = job_.input + walker.offset[0] + first * lane_stride_;
    Key bound[lanes];
    bounds_of(witness, bound);
    Collector<Order> list[lanes];
    for (int lane = 0; lane < lanes; ++lane)
      list[lane] = Collector<Order>{{base + lane * lane_stride_, job_.stride, flip_},
                                    job_.k,
                                    bound[lane],
                                    lists + lane * list_length,
                                    work.keys_as<Key>()};
    uint64_t active = ~uint64_t{0} >> (64 - lanes) >> skip << skip;
    const auto scan = [&](Int begin, Int end) {
      for (Int i = begin; i < end; ++i) {
        uint64_t mask =
            at_least<W>(keys_of_row(base + i * job_.stride), Line<W>::read(bound)) & active;
        for (; mask != 0; mask &= mask - 1) {
          const int lane = __builtin_ctzll(mask);
          list[lane].push(i);
          bound[lane] = list[lane].bound;
          if (list[lane].done) active &= ~(uint64_t{1} << lane);
        }
      }
    };
    for (Int chunk = 0; chunk < chunks_ && active != 0; ++chunk) {
      const Line<W> greatest = Line<W>::read(witness + chunk * lanes);
      if ((at_least<W>(greatest, Line<W>::read(bound)) & active) != 0)
        scan(chunk * length_, (chunk + 1) * length_);
    }
    scan(chunks_ * length_, job_.n);
    const int last = job_.rows.rank - 1;
    for (int lane = skip; lane < lanes; ++lane) {
      if (list[lane].count < job_.k) list[lane].take_all(job_.n);
      const Int row = first + lane;
      Output out =
          output_of(job_, job_.values + walker.offset[1] + row * job_.value_rows.strides[last],
                    job_.indices + walker.offset[2] + row * job_.index_rows.strides[last], job_.n);
      out.stream = false;
      finish(out, list[lane].row, list[lane].index, list[lane].count, job_.k, work);
    }
  }

  const Job& job_;
  typename Order::Flip flip_;
  Int lane_stride_;  // bytes from row to row
  Int inner_, strips_;
  Int length_, chunks_;  // positions of a chunk, chunks of the axis
  RowShape shape_;       // scratch of finish()
};

}  // namespace anydml::top_k
