// The long sort of TOP_K: its passes, the groups of digits that become buckets, the runs of keys
// that are equal in their upper halves.
#include "top_k_pieces.hpp"

using namespace anydml;
using namespace anydml::top_k;
using namespace anydml::test;

namespace {

Int passed = 0;

void sorts(Random& random, Int count, int bits, int parts, bool even) {
  const Items items = items_of(count), other = items_of(count);
  const std::unique_ptr<SortPart[]> scratch(new SortPart[static_cast<std::size_t>(parts)]);
  const uint64_t span = bits == 0 ? 1 : uint64_t{1} << bits;
  const uint64_t low = bits == 32 ? 0 : random.bits() % ((uint64_t{1} << 32) - span);
  std::vector<uint64_t> expected(static_cast<std::size_t>(count));
  for (Int i = 0; i < count; ++i) {
    // Evenly spread keys make targets that lie in the same sets of the cache.
    const uint64_t key =
        even ? static_cast<uint64_t>(count - 1 - i) * span / static_cast<uint64_t>(count)
             : random.bits() % span;
    items[static_cast<std::size_t>(i)] = (low + key) << 32 | static_cast<uint64_t>(i);
    expected[static_cast<std::size_t>(i)] = items[static_cast<std::size_t>(i)];
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](uint64_t a, uint64_t b) { return a >> 32 < b >> 32; });
  const uint64_t* const sorted = sort_packed(
      items.get(), other.get(), count, static_cast<uint32_t>(low), bits, parts, scratch.get());
  EXPECT(sorted == items.get() || sorted == other.get(), "%lld items", count);
  EXPECT(std::equal(expected.begin(), expected.end(), sorted),
         "%lld items of %d bits by %d, even %d", count, bits, parts, even);
  ++passed;
}

void groups(Random& random, int parts, Int k) {
  const Int digits = Int{1} << random.between(8, kMaxFineBits);
  const std::unique_ptr<SortPart[]> sort_parts(new SortPart[static_cast<std::size_t>(parts)]);
  std::vector<Int> of_digit(static_cast<std::size_t>(digits)),
      of_part(static_cast<std::size_t>(parts));
  Int total = 0;
  const Int limit = random.chance(0.5) ? 40 : std::max<Int>(1, 4 * k / digits);
  for (Int digit = 0; digit < digits; ++digit)
    for (int part = 0; part < parts; ++part) {
      const Int own = random.chance(0.3) ? 0 : random.between(0, limit);
      sort_parts[static_cast<std::size_t>(part)].fine[digit] = static_cast<uint32_t>(own);
      of_digit[static_cast<std::size_t>(digit)] += own;
      total += own;
    }
  std::vector<uint8_t> map(static_cast<std::size_t>(digits));
  std::vector<Bucket> bucket(kMaxBuckets + 1);
  const Int count = group_digits(sort_parts.get(), parts, digits, k, map.data(), bucket.data());
  EXPECT(count >= 1 && count <= kMaxBuckets, "%lld buckets", count);
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
    // A bucket is full before the next one begins, and begins only while items are missing.
    EXPECT(b + 1 == count || size >= 4096, "bucket %lld of %lld", b, size);
    EXPECT(own.rank < k, "bucket %lld begins at %lld", b, own.rank);
    // Each begins at its own line, with one line between.
    EXPECT(next.item % kLineItems == 0 && next.item >= own.item + size + kLineItems &&
               next.item < own.item + size + 2 * kLineItems,
           "bucket %lld", b);
    Int place = own.item;
    for (int part = 0; part < parts; ++part) {
      const SortPart& scratch = sort_parts[static_cast<std::size_t>(part)];
      Int share = 0;
      for (Int digit = own.digit; digit < next.digit; ++digit) share += scratch.fine[digit];
      EXPECT(Int{scratch.places[b]} == place && Int{scratch.ends[b]} == place + share,
             "bucket %lld of part %d", b, part);
      place += share;
    }
  }
  for (Int digit = end.digit; digit < digits; ++digit)
    EXPECT(map[static_cast<std::size_t>(digit)] == count - 1, "digit %lld", digit);
  EXPECT(end.item <= end.rank + count * 2 * kLineItems, "capacity for %lld", end.item);
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

// Few values: two that differ by one; in buckets some on both sides of the middle of all ranks
// behind a full bucket of the greatest; a bucket of evenly spread ones, as long as its scratch.
void few_values(Int n) {
  std::vector<int> input(static_cast<std::size_t>(n)), values(input);
  std::vector<uint32_t> indices(input.size());
  TopKPlan plan{{}, {}, {}, 0, n, true};
  for (Tensor* const tensor : {&plan.input, &plan.values, &plan.indices}) {
    tensor->layout.push(n, 4);
    tensor->type = tensor == &plan.indices ? DataType::uint32 : DataType::int32;
    tensor->element_size = 4;
  }
  enum class Values { two, sides, even };
  for (const Values values_are : {Values::two, Values::sides, Values::even}) {
    for (int i = 0; i < n; ++i)
      input[static_cast<std::size_t>(i)] =
          values_are == Values::two    ? i % 40 == 39
          : values_are == Values::even ? kMax<4> - (i < kBufferedSort ? i : 8192 * (1 + i % 255))
          : i % 8 == 0                 ? kMax<4>
          : i % 40 == 9                ? 0
                                       : -1 - i % 256;
    top_k::run(plan, input.data(), values.data(), indices.data(), 2, TopKAlgorithm::sort);
    const std::vector<Int> order = order_of(input.data(), n);
    EXPECT(std::equal(order.begin(), order.end(), indices.begin()), "%lld of kind %d", n,
           static_cast<int>(values_are));
  }
  ++passed;
}

// Enough buckets to exceed the limit by one if each had the least size.
void max_buckets() {
  constexpr Int digits = 1 << kMaxFineBits, size = 8000, k = size * (kMaxBuckets + 2);
  const std::unique_ptr<SortPart[]> sort_parts(new SortPart[1]);
  std::fill_n(sort_parts[0].fine, digits, static_cast<uint32_t>(size));
  std::vector<uint8_t> map(digits);
  std::vector<Bucket> bucket(kMaxBuckets + 1);
  const Int count = group_digits(sort_parts.get(), 1, digits, k, map.data(), bucket.data());
  EXPECT(count <= kMaxBuckets && bucket[static_cast<std::size_t>(count)].rank >= k, "%lld buckets",
         count);
  EXPECT(sort_slack(kBucketSort, 1) >= 2 * kLineItems * kMaxBuckets + kBucketBlock, "capacity");
  EXPECT(fine_digit_bits(1000) == 8 && fine_digit_bits(Int{1} << 40) == kMaxFineBits, "digits");
  ++passed;
}

}  // namespace

int main() {
  Random random(20261122);
  const int count = cases(600, 60);
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
  for (const Int n : {1000, 40000}) few_values(n);
  max_buckets();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
