// Cases of SCATTER, and the check of one against a loop over the indices, by any algorithm.
#pragma once

#include "scatter/cpu/scatter.hpp"

#include <thread>

#include "scatter_reference.hpp"

namespace anydml::test {
namespace {

using scatter::Method;
using scatter::Tuning;

int passed = 0;
constexpr Method kMethods[] = {Method::automatic, Method::direct, Method::blocks, Method::buckets,
                               Method::shares};

struct Case {
  std::vector<Int> sizes, index_sizes;
  int axis = 0;
  TypeInfo type{DataType::unknown, 4};
  DataType index_type = DataType::int64;
  Reduction reduction = Reduction::none;
  Strides strides = Strides::packed, index_strides = Strides::packed;  // of indices and updates
  bool in_place = false, output_is_private = false, bad = false;
  bool transposed = false;  // a square input whose rows are columns in memory
  int threads = 1;
  Method method = Method::automatic;
  Tuning tuning;
};

void run(Random& random, const Case& c) {
  Buffer input(random, c.sizes, c.type.size, c.strides, c.in_place ? Role::output : Role::input,
               c.type.type);
  Buffer indices(random, c.index_sizes, facts_of(c.index_type).size, c.index_strides, Role::input,
                 c.index_type);
  Buffer updates(random, c.index_sizes, c.type.size, c.index_strides, Role::input, c.type.type);
  Buffer other(random, c.sizes, c.type.size, c.strides, Role::output, c.type.type);
  Buffer& output = c.in_place ? input : other;
  if (c.transposed) std::swap(input.relaid().strides[0], input.relaid().strides[1]);
  if (c.reduction != Reduction::none) {
    tame(random, input);
    tame(random, updates);
  }
  const int rank = static_cast<int>(c.sizes.size());
  const Int size = rank == 0 ? 1 : c.sizes[static_cast<std::size_t>(c.axis)];
  const Int count = indices.count();
  Pattern pattern(random);
  for (Int i = 0; i < count && size > 0; ++i)
    set_index(indices, i, good_index(random, c.index_type, size, pattern.position(i, size)));
  if (c.bad && count > 0)
    for (Int n = random.between(1, 3); n > 0; --n)
      set_index(indices, random.between(0, count - 1), bad_index(random, c.index_type, size));

  // The reference.
  Int bad = -1;
  for (Int i = 0; i < count && bad < 0; ++i)
    if (position_of(indices, i, size) < 0) bad = i;
  const std::size_t bytes = static_cast<std::size_t>(c.type.size);
  Expected reference{input.tensor, c.reduction, input.elements()};
  for (Int i = 0; i < count && bad < 0; ++i) {
    Int flat = i, target = 0, scale = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const std::size_t at = static_cast<std::size_t>(d);
      const Int coordinate = flat % c.index_sizes[at];
      flat /= c.index_sizes[at];
      target += scale * (d == c.axis ? position_of(indices, i, size) : coordinate);
      scale *= c.sizes[at];
    }
    reference.take(static_cast<std::size_t>(target), updates.at(i));
  }
  const std::vector<unsigned char>& expected = reference.elements;

  input.remember();
  indices.remember();
  updates.remember();
  other.remember();
  const ScatterPlan plan{input.tensor,  indices.tensor, updates.tensor,
                         output.tensor, c.axis,         c.reduction};
  const Status status =
      scatter::run_scatter(plan, input.data(), indices.data(), updates.data(), output.data(),
                           c.output_is_private, c.threads, c.method, c.tuning);
  const int method = static_cast<int>(c.method);
  EXPECT(status.bad_index == bad, "got %lld, not %lld; method %d, rank %d, output_is_private %d",
         status.bad_index, bad, method, rank, c.output_is_private);
  EXPECT(indices.unchanged() && updates.unchanged(), "method %d", method);
  EXPECT(c.in_place || input.unchanged(), "method %d", method);
  EXPECT(output.gaps_intact(), "method %d, rank %d", method, rank);
  if (bad >= 0) {
    EXPECT(c.output_is_private || output.unchanged(), "method %d wrote although index %lld is bad",
           method, bad);
  } else {
    const std::vector<unsigned char> got = output.elements();
    for (std::size_t i = got == expected ? got.size() : 0; i < got.size(); i += bytes)
      EXPECT(same_element(input.tensor, &got[i], &expected[i]),
             "element %lld of %lld; method %d, rank %d, axis %d, type %d, size %d, %s, threads %d, "
             "in place %d, strides %d",
             static_cast<Int>(i / bytes), output.count(), method, rank, c.axis,
             static_cast<int>(c.type.type), c.type.size,
             kReductionNames[static_cast<int>(c.reduction)], c.threads, c.in_place,
             static_cast<int>(c.strides));
  }
  ++passed;
}

void random_type(Random& random, Case& c) {
  c.index_type = kIndexTypes[random.between(0, 3)];
  c.reduction = random.chance(0.5) ? Reduction::none : static_cast<Reduction>(random.between(1, 4));
  if (c.reduction == Reduction::none && random.chance(0.5))
    c.type = {DataType::unknown, 1 << random.between(0, 4)};
  else
    c.type = kTypes[random.between(0, kLastType)];
}

void small_tuning(Random& random, Tuning& tuning) {
  tuning.block_bytes = Int{1} << random.between(5, 12);
  tuning.row_bytes = Int{1} << random.between(5, 12);
  tuning.max_bytes = Int{1} << random.between(8, 14);
  tuning.strip_bytes = Int{64} << random.between(0, 2);
  tuning.small_bytes = Int{1} << random.between(4, 12);
  tuning.stream_bytes = random.chance(0.5) ? 0 : kStreamBytes;
  tuning.share_updates = random.between(1, 1000);
  tuning.bucket_bits = static_cast<int>(random.between(3, 10));
  tuning.round = random.chance(0.5) ? Tuning{}.round : random.between(100, 2000);
}

void random_case(Random& random, Int limit) {
  Case c;
  random_type(random, c);
  const int rank = static_cast<int>(random.between(0, 6));
  Int left = limit;
  for (int d = 0; d < rank; ++d) {
    Int size =
        random.chance(0.02) ? 0 : random.between(1, std::max<Int>(1, std::min<Int>(left, 40)));
    if (random.chance(0.1)) size = random.between(1, left);
    c.sizes.push_back(size);
    left = std::max<Int>(1, left / std::max<Int>(1, size));
  }
  if (rank > 1 && random.chance(0.5))
    std::swap(c.sizes[0], c.sizes[static_cast<std::size_t>(rank - 1)]);
  c.axis = rank == 0 ? 0 : static_cast<int>(random.between(0, rank - 1));
  c.index_sizes = c.sizes;
  const bool prefix = random.chance(0.2);
  for (int d = 0; d < rank; ++d) {
    Int& size = c.index_sizes[static_cast<std::size_t>(d)];
    if (d == c.axis && random.chance(0.6))
      size = random.chance(0.05) ? 0 : random.between(1, std::max<Int>(1, 2 * size));
    else if (d != c.axis && prefix && random.chance(0.5))
      size = random.between(0, size);
  }
  c.strides = random_strides(random);
  c.index_strides = random_strides(random);
  c.in_place = random.chance(0.3);
  c.output_is_private = !c.in_place && random.chance(0.5);
  c.bad = random.chance(0.15);
  c.threads = any_threads(random);
  c.method = kMethods[random.between(0, 4)];
  if (random.chance(0.8)) small_tuning(random, c.tuning);
  run(random, c);
}

}  // namespace
}  // namespace anydml::test
