// Cases of TOP_K, and the check of one against a stable sort by an independent order.
#pragma once

#include "top_k/cpu/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "harness.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;
bool short_run = false;

struct Type {
  DataType type;
  int width;
  bool is_float, is_signed;
};

constexpr Type kTypes[] = {
    {DataType::float16, 2, true, true},  {DataType::float32, 4, true, true},
    {DataType::float64, 8, true, true},  {DataType::int8, 1, false, true},
    {DataType::int16, 2, false, true},   {DataType::int32, 4, false, true},
    {DataType::int64, 8, false, true},   {DataType::uint8, 1, false, false},
    {DataType::uint16, 2, false, false}, {DataType::uint32, 4, false, false},
    {DataType::uint64, 8, false, false}, {DataType::bfloat16, 2, true, true},
};

// The contents of a case.
enum class Fill {
  bits,        // any bit pattern: NaN of all kinds, infinities, subnormals
  numbers,     // ordinary floats, small integers
  few_values,  // few distinct values, zeros of both signs and NaN among them
  constant,
  ascending,
  descending,
  all_nan,   // or the greatest integer
  crowded,   // one small range of bit patterns: long common prefixes
  smallest,  // for integers the lowest
  count_
};

uint64_t element(Random& random, const Type& type, Fill fill, Int i, uint64_t seed) {
  const int bits = 8 * type.width;
  const uint64_t sign = 1ull << (bits - 1);
  const auto ordered = [&](uint64_t value) {  // the value-th smallest non-negative, about
    return value & (sign - 1);
  };
  const bool bfloat = type.type == DataType::bfloat16;
  const uint64_t one = bfloat            ? 0x3F80
                       : type.width == 2 ? 0x3C00
                       : type.width == 4 ? 0x3F800000
                                         : 0x3FF0000000000000;
  const uint64_t infinity = bfloat            ? 0x7F80
                            : type.width == 2 ? 0x7C00
                            : type.width == 4 ? 0x7F800000
                                              : 0x7FF0000000000000;
  switch (fill) {
    case Fill::numbers:
      if (type.is_float) return (one + (random.bits() >> (68 - bits))) ^ (random.bits() & sign);
      return random.bits() % 1000;
    case Fill::few_values: {
      const uint64_t specials[] = {0,
                                   sign,
                                   one,
                                   one | sign,
                                   infinity,
                                   infinity | sign,
                                   infinity + 1,
                                   infinity + 2 + (seed & 3),
                                   ~0ull};
      const Int kinds = type.is_float ? 9 : 5;
      return specials[random.between(0, kinds - 1)];
    }
    case Fill::constant:
      return seed;
    case Fill::ascending:
      return ordered(static_cast<uint64_t>(i));
    case Fill::descending:
      return ordered(infinity - 1 - static_cast<uint64_t>(i));
    case Fill::all_nan:
      if (!type.is_float) return type.is_signed ? sign - 1 : ~0ull;
      return (infinity + 1 + (random.bits() % 100)) | (random.bits() & sign);
    case Fill::crowded:
      // Of 8 bytes: long runs that agree in the upper half of what differs.
      if (type.width == 8)
        return ordered(seed) / 4 + ((random.bits() & 3) << 44) + (random.bits() & 0xFFF);
      return ordered(seed) / 2 + (random.bits() & 0x3F);
    case Fill::smallest:
      return type.is_signed ? sign : 0;
    default:
      return random.bits();
  }
}

// The order by its definition: a double holds every float exactly, so compare as numbers.
bool before(const Type& type, uint64_t a, uint64_t b, bool largest, bool nan_last = false) {
  const int bits = 8 * type.width;
  if (type.is_float) {
    const auto number = [&](uint64_t raw) {
      if (type.width == 4) return static_cast<double>(load<float>(&raw));
      if (type.width == 8) return load<double>(&raw);
      if (type.type == DataType::bfloat16) {
        const uint32_t wide = static_cast<uint32_t>(raw << 16);
        return static_cast<double>(load<float>(&wide));
      }
      const int exponent = static_cast<int>(raw >> 10 & 31);
      const double fraction = static_cast<double>(raw & 1023);
      double value = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(1024 + fraction, exponent - 25);
      return raw >> 15 & 1 ? -value : value;
    };
    const double x = number(a), y = number(b);
    if (std::isnan(x) || std::isnan(y)) {
      if (std::isnan(x) == std::isnan(y)) return false;
      return std::isnan(x) == (largest && !nan_last);
    }
    return largest ? x > y : x < y;
  }
  if (type.is_signed) {
    const Int x = static_cast<Int>(a << (64 - bits)) >> (64 - bits);
    const Int y = static_cast<Int>(b << (64 - bits)) >> (64 - bits);
    return largest ? x > y : x < y;
  }
  return largest ? a > b : a < b;
}

uint64_t get_bits(const Buffer& buffer, Int flat, int width) {
  uint64_t value = 0;
  std::memcpy(&value, buffer.at(flat), static_cast<std::size_t>(width));
  return value;
}

struct Case {
  std::vector<Int> sizes;
  int axis;
  Int k;
  bool largest;
  Type type;
  DataType index;
  Strides strides;
  Fill fill;
  int threads;
  TopKAlgorithm algorithm;
  bool gaps = true;  // off for the largest cases: the check is slow
  bool sorted = true, nan_last = false, last_first = false;
  DataType lengths = DataType::unknown;  // the type of the rows' lengths, if they have some
};

void check(Random& random, const Case& c) {
  const int rank = static_cast<int>(c.sizes.size());
  std::vector<Int> out_sizes = c.sizes;
  if (rank > 0) out_sizes[static_cast<std::size_t>(c.axis)] = c.k;
  const int index_width = c.index == DataType::uint32 ? 4 : 8;
  Buffer input(random, c.sizes, c.type.width, c.strides, Role::input, c.type.type);
  Buffer values(random, out_sizes, c.type.width, c.strides, Role::output, c.type.type);
  Buffer indices(random, out_sizes, index_width, c.strides, Role::output, c.index);
  const uint64_t mask = c.type.width == 8 ? ~0ull : (1ull << (8 * c.type.width)) - 1;
  const uint64_t seed = random.bits();
  Int inner = 1, n = 1;
  for (int i = c.axis + 1; i < rank; ++i) inner *= c.sizes[static_cast<std::size_t>(i)];
  if (rank > 0) n = c.sizes[static_cast<std::size_t>(c.axis)];
  for (Int i = 0; i < input.count(); ++i) {
    const uint64_t bits = element(random, c.type, c.fill, i / inner % n, seed) & mask;
    std::memcpy(input.at(i), &bits, static_cast<std::size_t>(c.type.width));
  }
  TopKPlan plan{input.tensor, values.tensor, indices.tensor, c.axis,      c.k,
                c.largest,    c.sorted,      c.nan_last,     c.last_first};
  const bool has_lengths = c.lengths != DataType::unknown;
  std::vector<Int> row_sizes = c.sizes;
  if (rank > 0) row_sizes.erase(row_sizes.begin() + c.axis);
  const DataType lengths_type = has_lengths ? c.lengths : DataType::int64;
  const int length_width = facts_of(lengths_type).size;
  Buffer lengths(random, row_sizes, length_width, c.strides, Role::input, lengths_type);
  std::vector<Int> length;
  for (Int i = 0; i < lengths.count(); ++i) {
    Int own = n;
    if (has_lengths) {
      own = random.chance(0.2)   ? random.between(0, std::min<Int>(n, c.k + 1))
            : random.chance(0.3) ? n + random.between(-2, 2)
                                 : random.between(0, n);
      if (is_signed_type(c.lengths) && random.chance(0.05)) own = -random.between(1, 9);
      if (own < 0 && !is_signed_type(c.lengths)) own = 0;
    }
    std::memcpy(lengths.at(i), &own, static_cast<std::size_t>(length_width));
  }
  for (Int i = 0; i < lengths.count(); ++i) {  // several rows may share a length
    const int unused = 64 - 8 * length_width;
    const uint64_t bits = get_bits(lengths, i, length_width) << unused;
    const Int own = is_signed_type(lengths_type) ? static_cast<Int>(bits) >> unused
                                                 : static_cast<Int>(bits >> unused);
    length.push_back(std::clamp<Int>(own, 0, n));
  }
  plan.fill = 0xA5C3F00D12345678u & mask;
  if (has_lengths) plan.lengths = lengths.tensor;
  input.remember();
  lengths.remember();
  values.remember();
  indices.remember();
  const void* const of_rows = has_lengths ? lengths.data() : nullptr;
  if (c.algorithm == TopKAlgorithm::automatic)
    plan.run(input.data(), values.data(), indices.data(), c.threads, of_rows);
  else
    top_k::run(plan, input.data(), values.data(), indices.data(), c.threads, c.algorithm, of_rows);

  std::string what = "algorithm " + std::to_string(static_cast<int>(c.algorithm)) + " type " +
                     std::to_string(static_cast<int>(c.type.type)) + " fill " +
                     std::to_string(static_cast<int>(c.fill)) + " k " + std::to_string(c.k) +
                     " axis " + std::to_string(c.axis) + " largest " + std::to_string(c.largest) +
                     " threads " + std::to_string(c.threads) + " sorted " +
                     std::to_string(c.sorted) + " nan last " + std::to_string(c.nan_last) +
                     " last first " + std::to_string(c.last_first) + " lengths " +
                     std::to_string(has_lengths) + " sizes";
  for (Int size : c.sizes) what += " " + std::to_string(size);
  EXPECT(input.unchanged() && lengths.unchanged(), "%s", what.c_str());
  if (c.gaps) EXPECT(values.gaps_intact() && indices.gaps_intact(), "%s", what.c_str());
  if (input.count() == 0 || c.k == 0) {
    EXPECT(values.unchanged() && indices.unchanged(), "%s", what.c_str());
    ++passed;
    return;
  }
  std::vector<Int> order(static_cast<std::size_t>(n));
  std::vector<uint64_t> row(static_cast<std::size_t>(n));
  for (Int r = 0; r < input.count() / n; ++r) {
    const Int base = r / inner * n * inner + r % inner, out = r / inner * c.k * inner + r % inner;
    for (Int i = 0; i < n; ++i)
      row[static_cast<std::size_t>(i)] = get_bits(input, base + i * inner, c.type.width);
    const Int own = length[static_cast<std::size_t>(r)], found = std::min(c.k, own);
    order.resize(static_cast<std::size_t>(own));
    std::iota(order.begin(), order.end(), Int{0});
    if (c.last_first) std::reverse(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(), [&](Int a, Int b) {
      return before(c.type, row[static_cast<std::size_t>(a)], row[static_cast<std::size_t>(b)],
                    c.largest, c.nan_last);
    });
    if (!c.sorted) std::sort(order.begin(), order.begin() + found);
    for (Int j = 0; j < c.k; ++j) {
      const Int got = static_cast<Int>(get_bits(indices, out + j * inner, index_width));
      if (j >= found) {
        EXPECT(got == (index_width == 4 ? Int{0xFFFFFFFF} : Int{-1}) &&
                   get_bits(values, out + j * inner, c.type.width) == plan.fill,
               "row %lld rank %lld: no element; %s", r, j, what.c_str());
        continue;
      }
      const Int expected = order[static_cast<std::size_t>(j)];
      EXPECT(got == expected, "row %lld rank %lld: index %lld, not %lld; %s", r, j, got, expected,
             what.c_str());
      EXPECT(get_bits(values, out + j * inner, c.type.width) ==
                 row[static_cast<std::size_t>(expected)],
             "row %lld rank %lld: wrong bits; %s", r, j, what.c_str());
    }
  }
  ++passed;
}

Case random_case(Random& random) {
  Case c;
  c.type = kTypes[random.between(0, 11)];
  const DataType index_types[] = {DataType::uint32, DataType::uint64, DataType::int64};
  c.index = index_types[random.between(0, 2)];
  c.fill = static_cast<Fill>(random.between(0, static_cast<Int>(Fill::count_) - 1));
  c.strides = random.chance(0.5) ? Strides::packed : Strides::any;
  c.threads = any_threads(random);
  c.largest = random.chance(0.5);
  c.algorithm = TopKAlgorithm::automatic;
  if (random.chance(0.5)) return c;
  c.sorted = random.chance(0.5);
  c.nan_last = random.chance(0.4);
  c.last_first = random.chance(0.4);
  if (random.chance(0.5)) c.lengths = kIndexTypes[random.between(0, 3)];
  return c;
}

Int random_k(Random& random, Int n) {
  switch (random.between(0, 5)) {
    case 0:
      return n;
    case 1:
      return std::min<Int>(n, random.between(0, 3));
    case 2:
      return std::max<Int>(0, n - random.between(0, 2));
    case 3:
      return n / 16 + random.between(0, n > 32 ? 1 : 0);
    case 4:
      return random.between(0, std::max<Int>(n / 20, 1) < n ? std::max<Int>(n / 20, 1) : n);
    default:
      return random.between(0, n);
  }
}

}  // namespace
