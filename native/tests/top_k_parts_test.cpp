// The building blocks of TOP_K's algorithms, each against what its comment promises. A bound that
// is looser than necessary costs time and changes no result, so only a test of the bound itself
// detects it.
#include "top_k_pieces.hpp"

using namespace anydml;
using namespace anydml::top_k;
using namespace anydml::test;

namespace {

Int passed = 0;

Int padded(Int count) { return (count + kUnit - 1) / kUnit * kUnit; }

// Of exactly the padded size, so that an access beyond it is an error.
template <int W>
std::vector<Key<W>> random_keys(Random& random, Int count) {
  std::vector<Key<W>> keys(static_cast<std::size_t>(padded(count)), kMin<W>);
  const Int kinds = random.between(0, 3) == 0 ? 3 : random.between(0, 1) == 0 ? 20 : 0;
  const bool extremes = random.chance(0.3);
  for (Int i = 0; i < count; ++i) {
    auto& key = keys[static_cast<std::size_t>(i)];
    key = static_cast<Key<W>>(random.bits());
    if (kinds > 0) key = static_cast<Key<W>>(random.between(0, kinds - 1) - kinds / 2);
    if (extremes && random.chance(0.3)) key = random.chance(0.5) ? kMax<W> : kMin<W>;
  }
  return keys;
}

template <class T>
Int reaching(const T* keys, Int count, T bound) {
  return std::count_if(keys, keys + count, [&](T key) { return key >= bound; });
}

template <int W>
void bounds(Random& random, Int count) {
  std::vector<Key<W>> keys = random_keys<W>(random, count);
  const std::vector<Int> order = order_of(keys.data(), count);
  const auto ranked = [&](Int rank) {
    return keys[static_cast<std::size_t>(order[static_cast<std::size_t>(rank - 1)])];
  };
  const Key<W> probe = ranked(random.between(1, count));
  if (probe != kMin<W>)
    EXPECT(
        count_at_least<W>(keys.data(), padded(count), probe) == reaching(keys.data(), count, probe),
        "%d bytes, %lld keys", W, count);

  const Int rank = random.between(1, count);
  const Int slack = random.chance(0.5) ? 0 : random.between(0, rank / 4 + 1);
  Int reached = -1;
  const Key<W> bound = bisect<W>(keys.data(), count, rank, slack, &reached);
  EXPECT(reached == reaching(keys.data(), count, bound), "%d bytes, %lld keys", W, count);
  EXPECT(reached >= rank && (reached <= rank + slack || bound == ranked(rank)),
         "%d bytes, %lld keys: %lld reach the bound of %lld + %lld", W, count, reached, rank,
         slack);

  // Counted in lanes of the keys' width.
  if (W > 1 || (count < 127 && rank < 127)) {
    const Int lines = (count + kLineBytes / W - 1) / (kLineBytes / W) * (kLineBytes / W);
    EXPECT(bound_by_rank<W>(keys.data(), lines, rank) == ranked(rank),
           "%d bytes, rank %lld of %lld", W, rank, count);
    if (count <= kRankLimit && count < 127) {
      std::vector<Key<W>> own(keys.begin(), keys.begin() + lines),
          ranks(static_cast<std::size_t>(lines));
      rank_all<W>(own.data(), count, ranks.data());
      for (Int i = 0; i < count; ++i)
        EXPECT(Int{ranks[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]} == i,
               "%d bytes, %lld keys", W, count);
    }
  }
  ++passed;
}

template <int W>
void check_selected(Random& random, Int count) {
  const std::vector<Key<W>> keys = random_keys<W>(random, count);
  const std::vector<Int> order = order_of(keys.data(), count);
  const Int k = random.chance(0.2) ? count : random.between(1, count);
  const Int slack = random.chance(0.5) ? 0 : random.between(1, k / 8 + 1);
  const auto key_of = [&](Int rank) {
    return keys[static_cast<std::size_t>(order[static_cast<std::size_t>(rank)])];
  };
  const Key<W> last = key_of(k - 1);
  const Key<W> guesses[] = {kMin<W>, kMax<W>, last, key_of(random.between(0, count - 1)),
                            static_cast<Key<W>>(random.bits())};
  for (const Key<W> guess : guesses) {
    std::vector<Int> found;
    Int before = -1;
    const Key<W> bound =
        select_greatest<W>(keys.data(), count, k, slack, guess, [&](uint64_t mask, Int first) {
          EXPECT(first > before, "%d bytes, %lld keys", W, count);
          before = first;
          for (; mask != 0; mask &= mask - 1) found.push_back(first + __builtin_ctzll(mask));
        });
    const auto size = static_cast<Int>(found.size());
    EXPECT(size >= k && size <= k + slack, "%d bytes: %lld kept of %lld + %lld", W, size, k, slack);
    std::vector<Int> expected(order.begin(), order.begin() + k);
    std::sort(expected.begin(), expected.end());
    EXPECT(std::includes(found.begin(), found.end(), expected.begin(), expected.end()),
           "%d bytes, %lld of %lld", W, k, count);
    EXPECT(slack > 0 || bound == last, "%d bytes, %lld of %lld", W, k, count);
    EXPECT(bound <= last, "%d bytes, %lld of %lld", W, k, count);
  }
  ++passed;
}

template <int W>
void filtered(Random& random, Int count) {
  using Order = IntegerOrder<W>;
  using Unsigned = typename Order::Unsigned;
  const std::vector<Key<W>> keys = random_keys<W>(random, count);
  const Unsigned flip = static_cast<Unsigned>(random.chance(0.5) ? 0 : ~0ull);
  // Holds only the elements to read, so that any other access is out of bounds.
  std::vector<Unsigned> row(static_cast<std::size_t>(count));
  for (Int i = 0; i < count; ++i)
    row[static_cast<std::size_t>(i)] =
        static_cast<Unsigned>(static_cast<Unsigned>(keys[static_cast<std::size_t>(i)]) ^ flip);
  const auto* const data = reinterpret_cast<const char*>(row.data());
  const Int begin = random.between(0, count - 1);
  const Key<W> bound = keys[static_cast<std::size_t>(random.between(0, count - 1))];
  std::vector<uint32_t> out(static_cast<std::size_t>(count - begin + 64));
  const Int found = filter<Order>(data, begin, count, flip, bound, out.data(), 1000);
  std::vector<uint32_t> expected;
  for (Int i = begin; i < count; ++i)
    if (keys[static_cast<std::size_t>(i)] >= bound)
      expected.push_back(static_cast<uint32_t>(1000 + i));
  out.resize(static_cast<std::size_t>(found));
  EXPECT(out == expected, "%d bytes from %lld to %lld", W, begin, count);

  std::vector<Key<W>> read_keys(static_cast<std::size_t>(count));
  keys_of<Order>(data, count, flip, read_keys.data());
  EXPECT(std::equal(read_keys.begin(), read_keys.end(), keys.begin()), "%d bytes, %lld keys", W,
         count);

  for (const Int step : {Int{1}, Int{2}, Int{-1}, Int{3}, Int{-2}}) {
    const Int pieces = (count + std::abs(step) - 1) / std::abs(step);
    const char* const from = data + (step < 0 ? (count - 1) * W : 0);
    std::vector<Unsigned> packed(static_cast<std::size_t>(pieces));
    pack_elements<W>(from, step * W, pieces, reinterpret_cast<char*>(packed.data()));
    for (Int i = 0; i < pieces; ++i)
      EXPECT(packed[static_cast<std::size_t>(i)] ==
                 row[static_cast<std::size_t>((step < 0 ? count - 1 : 0) + i * step)],
             "%d bytes, %lld apart, %lld of %lld", W, step, i, pieces);
  }
  ++passed;
}

// The candidates of a row whose bound rises as it fills.
template <int W>
void collected(Random& random, Int count) {
  using Order = IntegerOrder<W>;
  std::vector<Key<W>> keys = random_keys<W>(random, count);
  keys.resize(static_cast<std::size_t>(count));
  const std::vector<Int> order = order_of(keys.data(), count);
  const Int k = random.between(1, std::max<Int>(1, count / 3));
  const auto capacity = static_cast<std::size_t>(list_capacity(k) + kListSlack);
  std::vector<uint32_t> index(capacity);
  std::vector<Key<W>> scratch(capacity);
  const Int stride = random.chance(0.5) ? 1 : 2;
  std::vector<Key<W>> row(static_cast<std::size_t>((count - 1) * stride + 1));
  for (Int i = 0; i < count; ++i)
    row[static_cast<std::size_t>(i * stride)] = keys[static_cast<std::size_t>(i)];
  const Source<Order> source{reinterpret_cast<const char*>(row.data()), stride * W, 0};
  const Key<W> last = keys[static_cast<std::size_t>(order[static_cast<std::size_t>(k - 1)])];
  for (const Key<W> bound : {kMin<W>, last}) {
    for (const bool one_by_one : {false, true}) {
      Collector<Order> list{source, k, bound, index.data(), scratch.data()};
      if (one_by_one) {
        for (Int i = 0; i < count && !list.done; ++i)
          if (keys[static_cast<std::size_t>(i)] >= list.bound) list.push(i);
      } else {
        const Int middle = random.between(0, count);
        list.scan(0, middle);
        list.scan(middle, count);
      }
      EXPECT(list.count >= k && list.count <= list_capacity(k), "%d bytes: %lld of %lld", W,
             list.count, k);
      std::vector<Int> found(index.begin(), index.begin() + list.count);
      EXPECT(std::is_sorted(found.begin(), found.end()), "%d bytes, k %lld", W, k);
      std::vector<Int> expected(order.begin(), order.begin() + k);
      std::sort(expected.begin(), expected.end());
      EXPECT(std::includes(found.begin(), found.end(), expected.begin(), expected.end()),
             "%d bytes, %lld of %lld", W, k, count);
      // If k elements have the greatest key of the type, nothing else is a candidate.
      if (bound == kMax<W>) EXPECT(found == expected && list.done, "%d bytes, k %lld", W, k);
    }
  }
  ++passed;
}

// Few rounds of halving, by where the bound comes to lie.
template <int W>
void early_ends() {
  std::vector<Key<W>> keys(64, kMin<W>);
  for (int i = 0; i < 10; ++i) keys[static_cast<std::size_t>(i)] = i < 5 ? 100 : 0;
  Int reached = 0;
  EXPECT(bisect<W>(keys.data(), 10, 5, 0, &reached) == 50 && reached == 5, "%d bytes", W);
  EXPECT(bisect<W>(keys.data(), 10, 10, 0) == 0, "%d bytes", W);
  EXPECT(bisect<W>(keys.data(), 10, 8, 2) == 0, "%d bytes", W);
  EXPECT(bisect<W>(keys.data(), 10, 7, 2) == 0, "%d bytes", W);
  EXPECT(bisect<W>(keys.data(), 10, 4, 1) == 50, "%d bytes", W);
  EXPECT(bisect<W>(keys.data(), 10, 3, 1) == 100, "%d bytes", W);
  ++passed;
}

template <int W>
void for_width(Random& random, int count) {
  early_ends<W>();
  for (int i = 0; i < count; ++i) {
    const Int size = random.chance(0.8) ? random.between(1, 300) : random.between(300, 4000);
    bounds<W>(random, size);
    check_selected<W>(random, size);
    filtered<W>(random, size);
    collected<W>(random, size);
  }
}

// A list whose bound has risen to the greatest key of the type: not all of its elements have that
// key.
void last_raise() {
  const Int k = 3, capacity = list_capacity(k), count = capacity + 5;
  std::vector<Key<1>> row(static_cast<std::size_t>(count), kMax<1> - 1);
  for (Int i = capacity; i < count; ++i) row[static_cast<std::size_t>(i)] = kMax<1>;
  std::vector<uint32_t> index(static_cast<std::size_t>(capacity + kListSlack));
  std::vector<Key<1>> scratch(index.size());
  const Source<IntegerOrder<1>> source{reinterpret_cast<const char*>(row.data()), 1, 0};
  Collector<IntegerOrder<1>> list{source, k, kMin<1>, index.data(), scratch.data()};
  for (Int i = 0; i < count; ++i)
    if (row[static_cast<std::size_t>(i)] >= list.bound) list.push(i);
  for (Int i = capacity; i < capacity + k; ++i)
    EXPECT(std::count(index.begin(), index.begin() + list.count, static_cast<uint32_t>(i)) == 1,
           "the greatest, at %lld of %lld", i, count);
  ++passed;
}

// Planes that are read in batches of which the last is smaller, each row with one great element.
void batches() {
  constexpr Int outer = 3, n = 32768, inner = 64;
  std::vector<signed char> input(outer * n * inner, 0), values(outer * inner);
  std::vector<uint32_t> indices(outer * inner);
  const auto place = [](Int row) { return row * 167 % n; };
  for (Int row = 0; row < outer * inner; ++row)
    input[static_cast<std::size_t>((row / inner * n + place(row)) * inner + row % inner)] = 1;
  TopKPlan plan{{}, {}, {}, 1, 1, true};
  for (const Int size : {outer, n, inner}) plan.input.layout.push(size, 0);
  for (Tensor* const out : {&plan.values, &plan.indices})
    for (const Int size : {outer, Int{1}, inner}) out->layout.push(size, 0);
  plan.input.type = plan.values.type = DataType::int8;
  plan.indices.type = DataType::uint32;
  plan.input.element_size = plan.values.element_size = 1;
  plan.indices.element_size = 4;
  for (Tensor* const tensor : {&plan.input, &plan.values, &plan.indices})
    set_packed_strides(tensor->layout, tensor->element_size);
  top_k::run(plan, input.data(), values.data(), indices.data(), 1, TopKAlgorithm::vertical);
  for (Int row = 0; row < outer * inner; ++row)
    EXPECT(indices[static_cast<std::size_t>(row)] == place(row), "row %lld", row);
  ++passed;
}

// More keys of two bytes than a lane of them can count.
void long_count() {
  const std::vector<Key<2>> keys(static_cast<std::size_t>(64 * (Int{1} << 15) + 64), 1);
  const auto count = static_cast<Int>(keys.size());
  EXPECT(count_at_least<2>(keys.data(), count, Key<2>{1}) == count, "%lld keys", count);
  ++passed;
}

// A row that several threads share, or one alone, in scratch that initially holds the greatest or
// the lowest key or another one, and is no larger than the row needs.
template <int W>
void shared_rows(Random& random, int count) {
  using Order = IntegerOrder<W>;
  const TopKAlgorithm algorithms[] = {TopKAlgorithm::maxima, TopKAlgorithm::threshold,
                                      TopKAlgorithm::sample, TopKAlgorithm::sort};
  const int threads[] = {1, 2, 3, kMaxParts};
  for (int i = 0; i < count; ++i) {
    const TopKAlgorithm algorithm = algorithms[i % 4];
    const int parts = threads[i / 4 % 4];
    Int n = random.between(algorithm == TopKAlgorithm::sample ? kSample : 2600, 6000);
    if (algorithm == TopKAlgorithm::sort && random.chance(0.3)) n = kParallelSort;
    Int k = random.chance(0.3) ? random.between(159, 162) : random.between(1, n);
    if (algorithm == TopKAlgorithm::maxima) k = std::min(k, random.between(1, n / 16));
    std::vector<Key<W>> row = random_keys<W>(random, n), values(static_cast<std::size_t>(k));
    row.resize(static_cast<std::size_t>(n));
    if (random.chance(0.3)) std::sort(row.begin(), row.end());
    std::vector<uint32_t> indices(values.size());
    const RowShape shape(n, k, algorithm, W, parts);
    const Items memory = items_of(shape.bytes() / 8);
    const int stale[] = {0x7F, 0x80, 0, 0x55};
    std::memset(memory.get(), stale[random.between(0, 3)], static_cast<std::size_t>(shape.bytes()));
    Workspace work;
    shape.place(reinterpret_cast<char*>(memory.get()), &work);
    const Source<Order> source{reinterpret_cast<const char*>(row.data()), W, 0};
    const Output out{reinterpret_cast<char*>(values.data()),
                     W,
                     reinterpret_cast<char*>(indices.data()),
                     4,
                     false,
                     false};
    RowSelector<Order>{shape, work}.run(source, out);
    const std::vector<Int> order = order_of(row.data(), n);
    EXPECT(std::equal(indices.begin(), indices.end(), order.begin()),
           "%d bytes, algorithm %d, %lld of %lld in %d parts", W, static_cast<int>(algorithm), k, n,
           parts);
    for (Int rank = 0; rank < k; ++rank)
      EXPECT(values[static_cast<std::size_t>(rank)] == row[indices[static_cast<std::size_t>(rank)]],
             "%d bytes, rank %lld", W, rank);
    ++passed;
  }
}

// One sampled element in each stratum, and not all at the same place of it.
void sampled_positions() {
  for (const Int n : {Int{4096}, Int{5000}, Int{200000}, kWideAxis - 1}) {
    Int early = 0;
    for (Int i = 0; i < kSample; ++i) {
      const Int begin = i * n / kSample, end = (i + 1) * n / kSample, at = sample_position(i, n);
      EXPECT(at >= begin && at < end, "%lld of %lld: %lld", i, n, at);
      early += 2 * (at - begin) < end - begin;
    }
    EXPECT(n < 3 * kSample || (early > kSample / 3 && early < kSample * 2 / 3),
           "%lld: %lld in the first half", n, early);
  }
  ++passed;
}

// The algorithm that is chosen, and the applicable ones: none may apply without the memory that it
// needs.
void choices() {
  using A = TopKAlgorithm;
  struct Row {
    Int n, k;
    int width;
    A chosen;
  };
  for (const Row& row : {
           Row{63, 1, 4, A::rank},
           {64, 4, 8, A::maxima},
           {64, 5, 8, A::rank},
           {64, 8, 4, A::maxima},
           {64, 9, 4, A::rank},
           {512, 64, 4, A::maxima},
           {513, 33, 4, A::threshold},
           {512, 33, 8, A::threshold},
           {160, 160, 4, A::rank},
           {161, 101, 4, A::threshold},
           {161, 102, 4, A::sort},
           {16384, 1024, 4, A::maxima},
           {16384, 1025, 4, A::threshold},
           {16385, 2000, 4, A::sample},
           {131071, 81920, 4, A::sample},
           {131071, 81921, 4, A::sort},
           {131072, 26214, 4, A::sample},
           {131072, 26215, 4, A::sort},
           {131072, 26215, 8, A::sample},
           {kWideAxis, 1, 4, A::wide},
           {kWideAxis - 1, 1, 4, A::maxima},
       })
    EXPECT(choose(row.n, row.k, row.width) == row.chosen, "%lld of %lld by %d: %d", row.k, row.n,
           row.width, static_cast<int>(choose(row.n, row.k, row.width)));
  struct Applicability {
    A algorithm;
    Int n, k;
    bool applies;
  };
  for (const Applicability& expected : {
           Applicability{A::rank, 160, 160, true},
           {A::rank, 161, 1, false},
           {A::maxima, 63, 1, false},
           {A::maxima, 64, 8, true},
           {A::maxima, 64, 9, false},
           {A::maxima, 1000, 63, false},
           {A::vertical, 63, 1, false},
           {A::vertical, 64, 4, true},
           {A::vertical, 64, 5, false},
           {A::vertical, 8192, 512, true},
           {A::vertical, 8208, 513, false},
           {A::sample, 4095, 1, false},
           {A::sample, 4096, 1, true},
           {A::wide, 1, 1, true},
           {A::automatic, 100, 1, false},
           {A::wide, kWideAxis, 1, true},
           {A::sort, kWideAxis, 1, false},
       })
    EXPECT(applicable(expected.algorithm, expected.n, expected.k, 4) == expected.applies,
           "algorithm %d, %lld of %lld", static_cast<int>(expected.algorithm), expected.k,
           expected.n);
  ++passed;
}

}  // namespace

int main() {
  Random random(20261122);
  const int count = cases(600, 60);
  for_width<1>(random, count);
  for_width<2>(random, count);
  for_width<4>(random, count);
  for_width<8>(random, count);
  last_raise();
  batches();
  long_count();
  const int rows = cases(96, 32);
  shared_rows<1>(random, rows);
  shared_rows<2>(random, rows);
  shared_rows<4>(random, rows);
  shared_rows<8>(random, rows);
  sampled_positions();
  choices();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
