// Casts between all types against plain arithmetic in long doubles.
#include "numbers.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;

uint64_t cast(uint64_t bits, DataType from, DataType to) {
  if (from == to) return bits;
  if (!is_float_type(from) && !is_float_type(to)) {
    const int shift = 64 - 8 * size_of(from);
    if (is_signed_type(from))
      bits = static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
    return low_bits(bits, to);
  }
  const long double value = number_of(bits, from);
  return is_float_type(to) ? nearest_bits(value, to) : saturated_bits(value, to);
}

void check(Buffer& source, Buffer& target, int threads) {
  const DataType from = source.tensor.type, to = target.tensor.type;
  source.remember();
  CastPlan{source.tensor, target.tensor}.run(source.data(), target.data(), threads);
  for (Int i = 0; i < source.count(); ++i) {
    const uint64_t bits = bits_at(source, i), got = bits_at(target, i);
    EXPECT(got == cast(bits, from, to), "type %d to %d: %llx gave %llx, not %llx",
           static_cast<int>(from), static_cast<int>(to), static_cast<unsigned long long>(bits),
           static_cast<unsigned long long>(got),
           static_cast<unsigned long long>(cast(bits, from, to)));
  }
  EXPECT(target.gaps_intact(), "gaps");
  EXPECT(source.unchanged(), "source");
  ++passed;
}

void check_random(Random& random, DataType from, DataType to, const std::vector<Int>& sizes,
                  Strides strides, int threads) {
  Buffer source(random, sizes, size_of(from), strides, Role::input, from);
  Buffer target(random, sizes, size_of(to), strides, Role::output, to);
  for (Int i = 0; i < source.count(); ++i) set_bits(source, i, odd_bits(random, from));
  check(source, target, threads);
}

}  // namespace

int main() {
  Random random(11);
  for (DataType from : kTypes)
    for (DataType to : kTypes) {
      for (int n = 0; n < cases(24, 6); ++n) {
        std::vector<Int> sizes;
        Int limit = random.chance(0.2) ? 4000 : 300;
        for (Int i = random.between(0, 4); i > 0; --i) {
          sizes.push_back(random.chance(0.03) ? 0
                                              : random.between(1, random.chance(0.3) ? limit : 5));
          limit = std::max<Int>(1, limit / std::max<Int>(1, sizes.back()));
        }
        check_random(random, from, to, sizes, random_strides(random),
                     static_cast<int>(random.between(1, 4)));
      }
      // Every length of the ends of vectors; rows on both sides of those that share blocks.
      for (Int n : {1, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 2500})
        check_random(random, from, to, {n}, Strides::packed, 1);
      check_random(random, from, to, {3, 65}, Strides::any, 2);
      if (size_of(from) <= 2) {  // every value
        const Int all = Int{1} << (8 * size_of(from));
        Buffer source(random, {all}, size_of(from), Strides::packed, Role::input, from);
        Buffer target(random, {all}, size_of(to), Strides::packed, Role::output, to);
        for (Int i = 0; i < all; ++i) set_bits(source, i, static_cast<uint64_t>(i));
        check(source, target, 1);
      }
    }
  // Past the cache, and with threads.
  const Int many = shortening() == 0 ? 2 * 1024 * 1024 : 1100 * 1024;
  for (const Int more : {-1, 0, 1})  // around what a thread takes at a time
    check_random(random, DataType::float32, DataType::int8, {65536 + more}, Strides::packed, 1);
  for (int threads : {1, 3}) {
    check_random(random, DataType::float32, DataType::int8, {many}, Strides::packed, threads);
    check_random(random, DataType::int8, DataType::float64, {2, many / 4 + 3}, Strides::packed,
                 threads);
    check_random(random, DataType::float64, DataType::float16, {300, many / 600, 2}, Strides::any,
                 threads);
  }
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
