// The pieces that the algorithms of TOP_K are made of, each against what its comment promises: a
// bound that is looser than it need be costs time and alters no result, so that only a test of the
// bound itself sees it.
#include <memory>
#include <numeric>

#include "../cpu/top_k/top_k_buckets.hpp"
#include "../cpu/top_k/top_k_select.hpp"
#include "../cpu/top_k/top_k_sort.hpp"
#include "harness.hpp"

using namespace anydml;
using namespace anydml::top_k;
using namespace anydml::test;

namespace {

Int passed = 0;

template <int W>
using Key = typename Bits<W>::Signed;
template <int W>
constexpr Key<W> kLeast = std::numeric_limits<Key<W>>::min();
template <int W>
constexpr Key<W> kMost = std::numeric_limits<Key<W>>::max();

Int padded(Int count) { return (count + kUnit - 1) / kUnit * kUnit; }

// Of exactly the padded size: an access beyond it is an error.
template <int W>
std::vector<Key<W>> random_keys(Random& random, Int count) {
  std::vector<Key<W>> keys(static_cast<std::size_t>(padded(count)), kLeast<W>);
  const Int kinds = random.between(0, 3) == 0 ? 3 : random.between(0, 1) == 0 ? 20 : 0;
  const bool extremes = random.chance(0.3);
  for (Int i = 0; i < count; ++i) {
    auto& key = keys[static_cast<std::size_t>(i)];
    key = static_cast<Key<W>>(random.bits());
    if (kinds > 0) key = static_cast<Key<W>>(random.between(0, kinds - 1) - kinds / 2);
    if (extremes && random.chance(0.3)) key = random.chance(0.5) ? kMost<W> : kLeast<W>;
  }
  return keys;
}

// Positions in the order wanted: greater keys first, earlier ones among equals.
template <class T>
std::vector<Int> order_of(const T* keys, Int count) {
  std::vector<Int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Int{0});
  std::stable_sort(order.begin(), order.end(), [&](Int a, Int b) { return keys[a] > keys[b]; });
  return order;
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
  const Key<W> some = ranked(random.between(1, count));
  if (some != kLeast<W>)
    EXPECT(
        count_at_least<W>(keys.data(), padded(count), some) == reaching(keys.data(), count, some),
        "%d bytes, %lld keys", W, count);

  const Int rank = random.between(1, count);
  const Int slack = random.chance(0.5) ? 0 : random.between(0, rank / 4 + 1);
  Int reached = -1;
  const Key<W> bound = bisect<W>(keys.data(), count, rank, slack, &reached);
  EXPECT(reached == reaching(keys.data(), count, bound), "%d bytes, %lld keys", W, count);
  EXPECT(reached >= rank && (reached <= rank + slack || bound == ranked(rank)),
         "%d bytes, %lld keys: %lld reach the bound of %lld + %lld", W, count, reached, rank,
         slack);

  // Counted in lanes of the keys' own width.
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
void kept(Random& random, Int count) {
  const std::vector<Key<W>> keys = random_keys<W>(random, count);
  const std::vector<Int> order = order_of(keys.data(), count);
  const Int k = random.chance(0.2) ? count : random.between(1, count);
  const Int slack = random.chance(0.5) ? 0 : random.between(1, k / 8 + 1);
  const auto key_of = [&](Int rank) {
    return keys[static_cast<std::size_t>(order[static_cast<std::size_t>(rank)])];
  };
  const Key<W> last = key_of(k - 1);
  const Key<W> guesses[] = {kLeast<W>, kMost<W>, last, key_of(random.between(0, count - 1)),
                            static_cast<Key<W>>(random.bits())};
  for (const Key<W> guess : guesses) {
    std::vector<Int> found;
    Int before = -1;
    const Key<W> bound =
        keep_greatest<W>(keys.data(), count, k, slack, guess, [&](uint64_t mask, Int first) {
          EXPECT(first > before, "%d bytes, %lld keys", W, count);
          before = first;
          for (; mask != 0; mask &= mask - 1) found.push_back(first + __builtin_ctzll(mask));
        });
    const auto size = static_cast<Int>(found.size());
    EXPECT(size >= k && size <= k + slack, "%d bytes: %lld kept of %lld + %lld", W, size, k, slack);
    std::vector<Int> wanted(order.begin(), order.begin() + k);
    std::sort(wanted.begin(), wanted.end());
    EXPECT(std::includes(found.begin(), found.end(), wanted.begin(), wanted.end()),
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
  // Only what is to be read, so that anything else is out of bounds.
  std::vector<Unsigned> row(static_cast<std::size_t>(count));
  for (Int i = 0; i < count; ++i)
    row[static_cast<std::size_t>(i)] =
        static_cast<Unsigned>(static_cast<Unsigned>(keys[static_cast<std::size_t>(i)]) ^ flip);
  const auto* const data = reinterpret_cast<const char*>(row.data());
  const Int begin = random.between(0, count - 1);
  const Key<W> bound = keys[static_cast<std::size_t>(random.between(0, count - 1))];
  std::vector<uint32_t> out(static_cast<std::size_t>(count - begin + 64));
  const Int found = filter<Order>(data, begin, count, flip, bound, out.data(), 1000);
  std::vector<uint32_t> wanted;
  for (Int i = begin; i < count; ++i)
    if (keys[static_cast<std::size_t>(i)] >= bound)
      wanted.push_back(static_cast<uint32_t>(1000 + i));
  out.resize(static_cast<std::size_t>(found));
  EXPECT(out == wanted, "%d bytes from %lld to %lld", W, begin, count);

  std::vector<Key<W>> made(static_cast<std::size_t>(count));
  keys_of<Order>(data, count, flip, made.data());
  EXPECT(std::equal(made.begin(), made.end(), keys.begin()), "%d bytes, %lld keys", W, count);

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
  const auto room = static_cast<std::size_t>(list_capacity(k) + kListSlack);
  std::vector<uint32_t> index(room);
  std::vector<Key<W>> scratch(room);
  const Int stride = random.chance(0.5) ? 1 : 2;
  std::vector<Key<W>> row(static_cast<std::size_t>((count - 1) * stride + 1));
  for (Int i = 0; i < count; ++i)
    row[static_cast<std::size_t>(i * stride)] = keys[static_cast<std::size_t>(i)];
  const Source<Order> source{reinterpret_cast<const char*>(row.data()), stride * W, 0};
  const Key<W> last = keys[static_cast<std::size_t>(order[static_cast<std::size_t>(k - 1)])];
  for (const Key<W> bound : {kLeast<W>, last}) {
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
      std::vector<Int> wanted(order.begin(), order.begin() + k);
      std::sort(wanted.begin(), wanted.end());
      EXPECT(std::includes(found.begin(), found.end(), wanted.begin(), wanted.end()),
             "%d bytes, %lld of %lld", W, k, count);
      // Where k have the greatest key there is, nothing else is a candidate.
      if (bound == kMost<W>) EXPECT(found == wanted && list.done, "%d bytes, k %lld", W, k);
    }
  }
  ++passed;
}

// Few rounds of halving, by where the bound comes to lie.
template <int W>
void early_ends() {
  std::vector<Key<W>> keys(64, kLeast<W>);
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
    kept<W>(random, size);
    filtered<W>(random, size);
    collected<W>(random, size);
  }
}

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};
using Items = std::unique_ptr<uint64_t[], Freed>;
// Lines of the cache, and not a byte more.
Items items_of(Int count) {
  void* memory = nullptr;
  EXPECT(posix_memalign(&memory, 64, static_cast<std::size_t>(count * 8)) == 0, "memory");
  return Items(static_cast<uint64_t*>(memory));
}

void sorts(Random& random, Int count, int bits, int parts, bool even) {
  const Items items = items_of(count), other = items_of(count);
  const std::unique_ptr<SortPart[]> scratch(new SortPart[static_cast<std::size_t>(parts)]);
  const uint64_t span = bits == 0 ? 1 : uint64_t{1} << bits;
  const uint64_t low = bits == 32 ? 0 : random.bits() % ((uint64_t{1} << 32) - span);
  std::vector<uint64_t> wanted(static_cast<std::size_t>(count));
  for (Int i = 0; i < count; ++i) {
    // Evenly spread keys make targets that lie in the same sets of the cache.
    const uint64_t key =
        even ? static_cast<uint64_t>(count - 1 - i) * span / static_cast<uint64_t>(count)
             : random.bits() % span;
    items[static_cast<std::size_t>(i)] = (low + key) << 32 | static_cast<uint64_t>(i);
    wanted[static_cast<std::size_t>(i)] = items[static_cast<std::size_t>(i)];
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](uint64_t a, uint64_t b) { return a >> 32 < b >> 32; });
  const uint64_t* const sorted = sort_packed(
      items.get(), other.get(), count, static_cast<uint32_t>(low), bits, parts, scratch.get());
  EXPECT(sorted == items.get() || sorted == other.get(), "%lld items", count);
  EXPECT(std::equal(wanted.begin(), wanted.end(), sorted), "%lld items of %d bits by %d, even %d",
         count, bits, parts, even);
  ++passed;
}

void groups(Random& random, int parts, Int k) {
  const Int digits = Int{1} << random.between(8, kMostFineBits);
  const std::unique_ptr<SortPart[]> each(new SortPart[static_cast<std::size_t>(parts)]);
  std::vector<Int> of_digit(static_cast<std::size_t>(digits)),
      of_part(static_cast<std::size_t>(parts));
  Int total = 0;
  const Int most = random.chance(0.5) ? 40 : std::max<Int>(1, 4 * k / digits);
  for (Int digit = 0; digit < digits; ++digit)
    for (int part = 0; part < parts; ++part) {
      const Int own = random.chance(0.3) ? 0 : random.between(0, most);
      each[static_cast<std::size_t>(part)].fine[digit] = static_cast<uint32_t>(own);
      of_digit[static_cast<std::size_t>(digit)] += own;
      total += own;
    }
  std::vector<uint8_t> map(static_cast<std::size_t>(digits));
  std::vector<Bucket> bucket(kMostBuckets + 1);
  const Int count = group_digits(each.get(), parts, digits, k, map.data(), bucket.data());
  EXPECT(count >= 1 && count <= kMostBuckets, "%lld buckets", count);
  EXPECT(bucket[0].rank == 0 && bucket[0].item == 0 && bucket[0].digit == 0, "the first bucket");
  const Bucket& end = bucket[static_cast<std::size_t>(count)];
  EXPECT(end.rank >= std::min(k, total), "%lld of %lld in buckets", end.rank, k);
  for (Int b = 0; b < count; ++b) {
    const Bucket &own = bucket[static_cast<std::size_t>(b)],
                 &next = bucket[static_cast<std::size_t>(b + 1)];
    Int size = 0;
    for (Int digit = own.digit; digit < next.digit; ++digit) {
      size += of_digit[static_cast<std::size_t>(digit)];
      EXPECT(map[static_cast<std::size_t>(digit)] == b, "digit %lld", digit);
    }
    EXPECT(size > 0 && size == next.rank - own.rank, "bucket %lld", b);
    // Full before the next one begins, and begun only while something is missing.
    EXPECT(b + 1 == count || size >= 4096, "bucket %lld of %lld", b, size);
    EXPECT(own.rank < k, "bucket %lld begins at %lld", b, own.rank);
    // At a line of its own, with one between.
    EXPECT(next.item % kLineItems == 0 && next.item >= own.item + size + kLineItems &&
               next.item < own.item + size + 2 * kLineItems,
           "bucket %lld", b);
    Int place = own.item;
    for (int part = 0; part < parts; ++part) {
      const SortPart& scratch = each[static_cast<std::size_t>(part)];
      Int share = 0;
      for (Int digit = own.digit; digit < next.digit; ++digit) share += scratch.fine[digit];
      EXPECT(Int{scratch.places[b]} == place && Int{scratch.ends[b]} == place + share,
             "bucket %lld of part %d", b, part);
      place += share;
    }
  }
  for (Int digit = end.digit; digit < digits; ++digit)
    EXPECT(map[static_cast<std::size_t>(digit)] == count - 1, "digit %lld", digit);
  EXPECT(end.item <= end.rank + count * 2 * kLineItems, "room for %lld", end.item);
  ++passed;
}

// Runs of items that agree in the upper half of what is sorted by: long ones, whose sort ends in
// one buffer or in the other, and short ones, up to the last item.
void runs(Random& random, int shift, Int length, Int k) {
  const Int count = 3 * length;
  const Items sorted = items_of(count), spare = items_of(count);
  std::vector<Key<8>> row(static_cast<std::size_t>(count));
  const auto upper = [&](Int i) { return (i % 3) << 40; };
  for (Int i = 0; i < count; ++i)
    row[static_cast<std::size_t>(i)] = -upper(i) - random.between(0, (Int{1} << shift) - 1);
  Int at = 0;
  for (Int run = 0; run < 3; ++run)
    for (Int i = run; i < count; i += 3)
      sorted[static_cast<std::size_t>(at++)] =
          static_cast<uint64_t>(run) << 32 | static_cast<uint64_t>(i);
  const std::unique_ptr<SortPart[]> scratch(new SortPart[1]);
  const Source<IntegerOrder<8>> source{reinterpret_cast<const char*>(row.data()), 8, 0};
  sort_runs(source, sorted.get(), spare.get(), count, k, Key<8>{0}, shift, 1, scratch.get());
  const std::vector<Int> order = order_of(row.data(), count);
  for (Int rank = 0; rank < k; ++rank)
    EXPECT(static_cast<uint32_t>(sorted[static_cast<std::size_t>(rank)]) ==
               order[static_cast<std::size_t>(rank)],
           "runs of %lld, %d bits, rank %lld of %lld", length, shift, rank, k);
  ++passed;
}

// A list whose bound has risen to the greatest key there is: what it holds is not all as great.
void last_raise() {
  const Int k = 3, some = list_capacity(k), count = some + 5;
  std::vector<Key<1>> row(static_cast<std::size_t>(count), kMost<1> - 1);
  for (Int i = some; i < count; ++i) row[static_cast<std::size_t>(i)] = kMost<1>;
  std::vector<uint32_t> index(static_cast<std::size_t>(some + kListSlack));
  std::vector<Key<1>> scratch(index.size());
  const Source<IntegerOrder<1>> source{reinterpret_cast<const char*>(row.data()), 1, 0};
  Collector<IntegerOrder<1>> list{source, k, kLeast<1>, index.data(), scratch.data()};
  for (Int i = 0; i < count; ++i)
    if (row[static_cast<std::size_t>(i)] >= list.bound) list.push(i);
  for (Int i = some; i < some + k; ++i)
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

// Buckets whose values are few: two that differ by one, and some on both sides of the middle of all
// ranks behind a full bucket of the greatest.
void few_values() {
  constexpr Int n = 40000;
  std::vector<int> input(n), values(n);
  std::vector<uint32_t> indices(n);
  TopKPlan plan{{}, {}, {}, 0, n, true};
  for (Tensor* const tensor : {&plan.input, &plan.values, &plan.indices}) {
    tensor->layout.push(n, 4);
    tensor->type = tensor == &plan.indices ? DataType::uint32 : DataType::int32;
    tensor->element_size = 4;
  }
  for (const bool two : {true, false}) {
    for (int i = 0; i < n; ++i)
      input[static_cast<std::size_t>(i)] = two           ? i % 40 == 39
                                           : i % 8 == 0  ? kMost<4>
                                           : i % 40 == 9 ? 0
                                                         : -1 - i % 256;
    top_k::run(plan, input.data(), values.data(), indices.data(), 2, TopKAlgorithm::sort);
    const std::vector<Int> order = order_of(input.data(), n);
    EXPECT(std::equal(order.begin(), order.end(), indices.begin()), "two values: %d", two);
  }
  ++passed;
}

// Positions of 32 bits, and a sort's places, end where `wide` begins.
void wide_axes() {
  for (const Int n : {kWideAxis, kWideAxis + 1}) {
    EXPECT(choose(n, 1, 4) == TopKAlgorithm::wide, "%lld", n);
    EXPECT(!applicable(TopKAlgorithm::sort, n, 1, 4), "%lld", n);
    EXPECT(applicable(TopKAlgorithm::wide, n, 1, 4), "%lld", n);
  }
  EXPECT(choose(kWideAxis - 1, 1, 4) != TopKAlgorithm::wide, "%lld", kWideAxis - 1);
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
  for (int i = 0; i < count; ++i)
    sorts(random, random.between(0, 300), static_cast<int>(random.between(0, 32)), 1, i % 2 == 0);
  for (const Int size : {kBufferedSort - 1, kBufferedSort, kParallelSort, Int{70001}})
    for (const int bits : {1, 7, 11, 12, 22, 23, 32})
      for (const int parts : {1, 2, 3})
        for (const bool even : {false, true}) sorts(random, size, bits, parts, even);
  // Digits of 8 bits, four passes of them.
  for (const int parts : {1, 3}) sorts(random, (Int{1} << 19) + 1, 32, parts, false);
  for (int i = 0; i < count; ++i)
    groups(random, static_cast<int>(random.between(1, 4)), random.between(1, 200000));
  for (const int shift : {3, 20})
    for (const Int length : {16, 17, 100})
      for (const Int k : {length + 2, 3 * length}) runs(random, shift, length, k);
  last_raise();
  batches();
  few_values();
  wide_axes();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
