// One-hot sequences against plain loops.
#include "numbers.hpp"
#include "runtime/plans.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;

constexpr DataType kIndices[] = {DataType::uint32, DataType::int32, DataType::uint64,
                                 DataType::int64};

struct Case {
  std::vector<Int> sizes;  // of the output
  int axis;
  int element_size;
  DataType index;
  bool inserts;  // the indices lack the axis
};

// The place that an index names, or -1.
Int place_of(const Buffer& indices, Int flat, DataType type, Int size) {
  Int index = 0;
  if (type == DataType::uint32) index = indices.get<uint32_t>(flat);
  if (type == DataType::int32) index = indices.get<int32_t>(flat);
  if (type == DataType::int64) index = indices.get<int64_t>(flat);
  if (type == DataType::uint64) {
    const uint64_t value = indices.get<uint64_t>(flat);
    return value < static_cast<uint64_t>(size) ? static_cast<Int>(value) : -1;
  }
  if (index < -size || index >= size) return -1;
  return index < 0 ? index + size : index;
}

void check(Random& random, const Case& c, Strides to, Strides from, int threads) {
  const std::size_t dimension = static_cast<std::size_t>(c.axis);
  const Int size = c.sizes[dimension];
  std::vector<Int> lookup = c.sizes;
  if (c.inserts)
    lookup.erase(lookup.begin() + c.axis);
  else
    lookup[dimension] = 1;
  Buffer indices(random, lookup, size_of(c.index), from, Role::input, c.index);
  const std::vector<Int> shapes[] = {{2}, {1, 2, 1}, {2, 2}, {1, 3}, {5, 1}};
  Buffer values(random, shapes[random.between(0, 4)], c.element_size, random_strides(random),
                Role::input);
  Buffer target(random, c.sizes, c.element_size, to, Role::output);
  for (Int i = 0; i < indices.count(); ++i)
    set_bits(indices, i,
             random.chance(0.1) ? random.bits()
                                : static_cast<uint64_t>(random.between(-size - 1, size + 1)));
  for (Buffer* buffer : {&indices, &values, &target}) buffer->remember();
  const OneHotPlan plan{indices.tensor, values.tensor, target.tensor, c.axis, c.inserts};
  plan.run(indices.data(), values.data(), target.data(), threads);

  Int inner = 1;
  for (std::size_t i = dimension + 1; i < c.sizes.size(); ++i) inner *= c.sizes[i];
  for (Int i = 0; i < target.count(); ++i) {
    const Int outer = i / inner / size, place = i / inner % size;
    const bool on = place == place_of(indices, outer * inner + i % inner, c.index, size);
    EXPECT(
        same_bytes(target.at(i), values.at(on ? 1 : 0), static_cast<std::size_t>(c.element_size)),
        "elements of %d bytes, axis %d, at %lld of %lld", c.element_size, c.axis, i,
        target.count());
  }
  EXPECT(target.gaps_intact(), "gaps");
  EXPECT(indices.unchanged() && values.unchanged(), "inputs");
  ++passed;
}

void check_all(Random& random) {
  const int element_sizes[] = {1, 2, 4, 8, 16};
  const auto any = [&](std::vector<Int> sizes, int axis) {
    return Case{std::move(sizes), axis, element_sizes[random.between(0, 4)],
                kIndices[random.between(0, 3)], random.chance(0.5)};
  };
  for (int n = 0; n < cases(3000, 400); ++n) {
    std::vector<Int> sizes;
    for (Int i = random.between(1, 5); i > 0; --i)
      sizes.push_back(random.chance(0.02) ? 0 : random.between(1, random.chance(0.1) ? 40 : 5));
    const int axis = static_cast<int>(random.between(0, static_cast<Int>(sizes.size()) - 1));
    check(random, any(std::move(sizes), axis), random_strides(random), random_strides(random),
          any_threads(random));
  }
  // Several blocks, and several threads' shares.
  const Int k = shortening() == 0 ? 1 : 4;
  for (int axis : {0, 1, 2})
    for (Strides to : {Strides::packed, Strides::any}) {
      check(random, any({70, 90, 110 / k}, axis), to, Strides::packed, 3);
      check(random, any({3, 700 / k, 5}, axis), to, Strides::any, 2);
      check(random, any({2, 1, 40000 / k}, axis), to, Strides::packed, 3);
      check(random, any({40000 / k, 1, 3}, axis), to, Strides::packed, 3);
    }
}

}  // namespace

int main() {
  Random random(24);
  check_all(random);
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
