// Cases of NONZERO_COORDINATES, and the check of one against a walk over all elements.
#pragma once

#include <cmath>
#include <limits>

#include "harness.hpp"
#include "nonzero/cpu/nonzero.hpp"

namespace anydml::test {
namespace {

using nonzero::Scan;
using nonzero::Write;

long passed = 0;

struct Kind {
  DataType type;
  int size;
};
const Kind kKinds[] = {
    {DataType::float16, 2},  {DataType::float32, 4},  {DataType::float64, 8},
    {DataType::uint8, 1},    {DataType::int8, 1},     {DataType::int16, 2},
    {DataType::uint16, 2},   {DataType::int32, 4},    {DataType::uint32, 4},
    {DataType::int64, 8},    {DataType::uint64, 8},   {DataType::unknown, 1},
    {DataType::unknown, 2},  {DataType::unknown, 4},  {DataType::unknown, 8},
    {DataType::unknown, 16}, {DataType::bfloat16, 2},
};

bool is_nonzero(const Kind& kind, const char* element) {
  switch (kind.type) {
    case DataType::bfloat16:
    case DataType::float16: {
      const auto bits = load<uint16_t>(element);
      return bits != 0x0000 && bits != 0x8000;
    }
    case DataType::float32: {
      const auto value = load<float>(element);
      return std::isnan(value) || value != 0.0f;
    }
    case DataType::float64: {
      const auto value = load<double>(element);
      return std::isnan(value) || value != 0.0;
    }
    default:
      for (int i = 0; i < kind.size; ++i)
        if (element[i] != 0) return true;
      return false;
  }
}

void put_zero(Random& random, const Kind& kind, char* element) {
  std::memset(element, 0, static_cast<std::size_t>(kind.size));
  const bool is_float = kind.type == DataType::float16 || kind.type == DataType::bfloat16 ||
                        kind.type == DataType::float32 || kind.type == DataType::float64;
  if (is_float && random.chance(0.5)) element[kind.size - 1] = static_cast<char>(0x80);
}

void put_nonzero(Random& random, const Kind& kind, char* element) {
  do {
    switch (random.between(0, 3)) {
      case 0:  // one bit, which may be a float's sign: then again
        std::memset(element, 0, static_cast<std::size_t>(kind.size));
        element[random.between(0, kind.size - 1)] = static_cast<char>(1 << random.between(0, 7));
        break;
      case 1:  // all ones: a NaN
        std::memset(element, 0xFF, static_cast<std::size_t>(kind.size));
        break;
      default:
        for (int i = 0; i < kind.size; ++i) element[i] = static_cast<char>(random.bits());
    }
  } while (!is_nonzero(kind, element));
}

enum class Pattern { random, runs, alternating, none, all, first, last };

void fill(Random& random, const Kind& kind, Buffer& buffer, Pattern pattern, double density) {
  const Int count = buffer.count();
  bool run = random.chance(0.5);
  Int left = 0;
  for (Int i = 0; i < count; ++i) {
    bool set = false;
    switch (pattern) {
      case Pattern::random:
        set = random.chance(density);
        break;
      case Pattern::runs:
        if (left-- == 0) {
          run = !run;
          left = random.between(1, random.chance(0.1) ? 3000 : 70);
        }
        set = run;
        break;
      case Pattern::alternating:
        set = i % 2 == 0;
        break;
      case Pattern::none:
        break;
      case Pattern::all:
        set = true;
        break;
      case Pattern::first:
        set = i == 0;
        break;
      case Pattern::last:
        set = i == count - 1;
        break;
    }
    if (set)
      put_nonzero(random, kind, buffer.at(i));
    else
      put_zero(random, kind, buffer.at(i));
  }
}

struct Case {
  Kind kind;
  std::vector<Int> sizes;
  Strides strides;
  int columns;
  int value_size;
  Strides row_strides;
  Int spare;  // rows beyond the count
  int threads;
  Scan scan;
  Write write;
};

void check(Random& random, const Case& c, Buffer& input) {
  input.remember();
  NonzeroPlan plan;
  plan.input = input.tensor;
  plan.columns = c.columns;
  const NonzeroPlan::Found found = nonzero::scan(plan, input.data(), c.threads, c.scan);

  std::vector<Int> flats;
  for (Int i = 0; i < input.count(); ++i)
    if (is_nonzero(c.kind, input.at(i))) flats.push_back(i);
  const Int expected = static_cast<Int>(flats.size());
  EXPECT(found.count == expected, "%lld, not %lld", found.count, expected);

  Buffer rows(random, {expected + c.spare, c.columns}, c.value_size, c.row_strides, Role::output);
  const std::vector<unsigned char> before = rows.elements();
  rows.remember();
  nonzero::write(plan, found, rows.tensor, rows.data(), c.threads, c.write);
  const int rank = static_cast<int>(c.sizes.size());
  for (Int row = 0; row < expected; ++row) {
    Int flat = flats[static_cast<std::size_t>(row)];
    for (int i = rank - 1; i >= rank - c.columns; --i) {
      const Int size = c.sizes[static_cast<std::size_t>(i)];
      const Int at = row * c.columns + i - (rank - c.columns);
      const Int got = c.value_size == 4 ? static_cast<Int>(rows.get<uint32_t>(at))
                                        : static_cast<Int>(rows.get<uint64_t>(at));
      EXPECT(got == flat % size, "row %lld of %lld, dimension %d: %lld, not %lld", row, expected, i,
             got, flat % size);
      flat /= size;
    }
  }
  const std::vector<unsigned char> after = rows.elements();
  const auto used = static_cast<std::ptrdiff_t>(expected * c.columns * c.value_size);
  EXPECT(std::equal(before.begin() + used, before.end(), after.begin() + used), "spare rows");
  EXPECT(rows.gaps_intact(), "gaps of the rows");
  EXPECT(input.unchanged(), "input");
  ++passed;
}

void run(Random& random, const Case& c, Pattern pattern, double density) {
  Buffer input(random, c.sizes, c.kind.size, c.strides, Role::input, c.kind.type);
  fill(random, c.kind, input, pattern, density);
  check(random, c, input);
}

Pattern any_pattern(Random& random) {
  return random.chance(0.6) ? Pattern::random : static_cast<Pattern>(random.between(0, 6));
}

double any_density(Random& random) {
  const double densities[] = {0.001, 0.01, 0.1, 0.5, 0.9, 0.99};
  return densities[random.between(0, 5)];
}

Case any_case(Random& random, std::vector<Int> sizes) {
  Case c;
  c.kind = kKinds[random.between(0, 16)];
  c.sizes = std::move(sizes);
  c.strides = random.chance(0.5) ? Strides::packed : Strides::any;
  c.columns = static_cast<int>(random.between(0, static_cast<Int>(c.sizes.size())));
  if (random.chance(0.4)) c.columns = static_cast<int>(c.sizes.size());
  c.value_size = random.chance(0.5) ? 4 : 8;
  c.row_strides = random.chance(0.7) ? Strides::packed : Strides::any;
  c.spare = random.chance(0.5) ? 0 : random.between(0, 5);
  c.threads = any_threads(random);
  c.scan = static_cast<Scan>(random.between(0, 3));
  c.write = static_cast<Write>(random.between(0, 4));
  return c;
}

// Sizes whose product stays at or below `limit`.
std::vector<Int> any_sizes(Random& random, int rank, Int limit) {
  std::vector<Int> sizes(static_cast<std::size_t>(rank), 1);
  for (int tries = 0; tries < rank; ++tries) {
    Int& size = sizes[static_cast<std::size_t>(random.between(0, rank - 1))];
    if (size != 1) continue;
    const Int top = random.chance(0.5) ? std::min<Int>(limit, 9) : limit;
    size = random.between(1, std::max<Int>(top, 1));
    limit /= size;
  }
  if (rank > 0 && random.chance(0.03))
    sizes[static_cast<std::size_t>(random.between(0, rank - 1))] = 0;
  return sizes;
}

}  // namespace
}  // namespace anydml::test
