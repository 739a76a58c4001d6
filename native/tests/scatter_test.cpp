// SCATTER against one loop over the indices, with every algorithm forced.
#include "scatter_cases.hpp"

namespace anydml::test {
namespace {

// Updates of one line that threads share: every integer by every reduction.
void shared_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    Case c;
    random_type(random, c);
    do c.type = kTypes[random.between(0, kLastType)];
    while (is_float_type(c.type.type));
    c.reduction = static_cast<Reduction>(1 + i % 4);
    const Int size = random.between(1, 60), rank = random.between(1, 3);
    for (Int d = 0; d < rank; ++d) c.sizes.push_back(1);
    c.axis = static_cast<int>(random.between(0, rank - 1));
    c.sizes[static_cast<std::size_t>(c.axis)] = size;
    c.index_sizes = c.sizes;
    // From too few updates for sharing to several shares.
    c.index_sizes[static_cast<std::size_t>(c.axis)] =
        random.chance(0.1) ? random.between(60000, 100000) : random.between(1, 60 * size);
    c.strides = c.index_strides = random_strides(random);
    c.in_place = random.chance(0.3);
    c.output_is_private = !c.in_place && random.chance(0.5);
    c.bad = random.chance(0.1);
    c.threads = any_threads(random);
    c.method = random.chance(0.5) ? Method::automatic : Method::shares;
    c.tuning.share_updates = 1;
    run(random, c);
  }
}

// Many updates of a short line by a reduction whose result depends on their order.
void rounded_line(Random& random) {
  for (const DataType type :
       {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16}) {
    const int size = type == DataType::float32 ? 4 : type == DataType::float64 ? 8 : 2;
    const Int length = 2 * Tuning{}.share_updates;
    Buffer input(random, {5}, size, Strides::packed, Role::input, type);
    Buffer indices(random, {length}, 8, Strides::packed, Role::input, DataType::int64);
    Buffer updates(random, {length}, size, Strides::packed, Role::input, type);
    for (Buffer* buffer : {&input, &updates})
      for (Int i = 0; i < buffer->count(); ++i) {
        const double value = static_cast<double>(random.between(1, 1 << 20)) / 3e9;
        if (size == 8) buffer->set(i, value);
        if (size == 4) buffer->set(i, static_cast<float>(value));
        if (type == DataType::float16) buffer->set(i, half_bits(value));
        if (type == DataType::bfloat16) buffer->set(i, bfloat_bits(value));
      }
    Expected reference{input.tensor, Reduction::add, input.elements()};
    for (Int i = 0; i < length; ++i) {
      indices.set<int64_t>(i, random.between(0, 4));
      reference.take(static_cast<std::size_t>(indices.get<int64_t>(i)), updates.at(i));
    }
    for (const Method method : kMethods)
      for (const int threads : {1, 4}) {
        Buffer output(random, {5}, size, Strides::packed, Role::output, type);
        const ScatterPlan plan{input.tensor,  indices.tensor, updates.tensor, output.tensor, 0,
                               Reduction::add};
        EXPECT(scatter::run_scatter(plan, input.data(), indices.data(), updates.data(),
                                    output.data(), true, threads, method, Tuning{})
                   .ok(),
               "a rounded line");
        EXPECT(output.elements() == reference.elements, "type %d, method %d, %d threads",
               static_cast<int>(type), static_cast<int>(method), threads);
        ++passed;
      }
  }
}

// Sums of floats of 16 bits: of few elements of a line, and of more than can be numbered, in lines
// that are packed or not.
void few_sums(Random& random) {
  for (const TypeInfo type : {TypeInfo{DataType::float16, 2}, TypeInfo{DataType::bfloat16, 2}})
    for (const Strides strides : {Strides::packed, Strides::stepped})
      for (const bool in_place : {false, true})
        for (const Int length : {70, 3000, 90000})
          for (const Method method : {Method::automatic, Method::direct, Method::buckets}) {
            if (length > 3000 && method == Method::automatic) continue;
            Case c;
            c.sizes = {length == 70 ? 2000 : 100000};
            c.index_sizes = {length};
            c.type = type;
            c.reduction = random.chance(0.5) ? Reduction::add : Reduction::mul;
            c.strides = strides;
            c.in_place = in_place;
            c.threads = any_threads(random);
            c.method = method;
            run(random, c);
          }
}

// A bad index behind the first round of a partition that is only checked on the way, or in one of
// its lines.
void bad_in_a_later_round(Random& random) {
  for (const Int round : {1000, 2999, 3000, 5000})
    for (const bool in_place : {false, true})
      for (const Int bad : {0, 999, 1000, 2999}) {
        Buffer input(random, {5000}, 4, Strides::packed, Role::output);
        Buffer indices(random, {3000}, 8, Strides::packed, Role::input, DataType::int64);
        Buffer updates(random, {3000}, 4, Strides::packed, Role::input);
        Buffer other(random, {5000}, 4, Strides::packed, Role::output);
        Buffer& output = in_place ? input : other;
        for (Int i = 0; i < 3000; ++i) indices.set<int64_t>(i, random.between(0, 4999));
        indices.set<int64_t>(bad, 5000);
        input.remember();
        other.remember();
        const ScatterPlan plan{input.tensor,   indices.tensor, updates.tensor, output.tensor, 0,
                               Reduction::none};
        Tuning tuning;
        tuning.round = round;
        tuning.bucket_bits = 8;
        const Status status =
            scatter::run_scatter(plan, input.data(), indices.data(), updates.data(), output.data(),
                                 false, 1, Method::buckets, tuning);
        EXPECT(status.bad_index == bad, "got %lld, not %lld", status.bad_index, bad);
        EXPECT(output.unchanged(), "rounds of %lld wrote although index %lld is bad", round, bad);
        ++passed;
      }
  for (int n = 0; n < 8; ++n) {  // two lines, and one of three
    Case c;
    c.sizes = {2 + n % 2, 700};
    c.index_sizes = {2 - n % 2, 500};
    c.axis = 1;
    c.bad = true;
    c.method = Method::buckets;
    c.tuning.bucket_bits = 6;
    run(random, c);
  }
}

// Partitions of a line by updates that lie apart, more than are gathered at a time; the last bucket
// lacks one element or none, or has one alone, and so has the last piece of updates.
void check_distant_updates(Random& random) {
  for (const Int last : {-1, 0, 1})
    for (const Int round : {Int{700}, Int{1} << 60}) {
      const Strides index_strides = last < 0 ? Strides::stepped : Strides::any;
      Case c;
      c.sizes = {47 * 64 + last};
      c.index_sizes = {last > 0 ? 513 : 2500};
      c.tuning.bucket_bits = 6;
      c.index_strides = index_strides;
      c.method = Method::buckets;
      c.tuning.round = round;
      run(random, c);
    }
}

// Rounds of several parts: a later round is shared as evenly as the first, or pages run out.
void rounds_in_parts(Random& random) {
  Case c;
  c.sizes = {3000};
  c.index_sizes = {250000};
  c.type = {DataType::int32, 4};
  c.reduction = Reduction::add;  // which shows every update
  c.tuning.bucket_bits = 10;
  c.tuning.round = 90000;
  c.method = Method::buckets;
  c.threads = 3;
  run(random, c);
}

// Enough updates of one group that its columns are taken in strips, and groups in bands, of which
// the last has one, or lacks one; a block and a line of a byte more than a cache line.
void strips_of_columns(Random& random) {
  for (const Int lines : {65, 33, 47})
    for (const int axis : {0, 1})
      for (const bool output_is_private : {false, true}) {
        Case c;
        const std::size_t at = static_cast<std::size_t>(axis);
        c.sizes = c.index_sizes = {lines, lines};
        c.sizes[at] = 20;
        c.index_sizes[at] = 1000;
        c.axis = axis;
        c.method = lines == 65 ? Method::direct : Method::blocks;
        c.tuning.block_bytes = 2560;  // two strips' columns, which threads halve
        c.tuning.small_bytes = 1280;
        c.tuning.strip_bytes = 64;
        c.output_is_private = output_is_private;
        c.threads = 4;
        run(random, c);
      }
  Case square;
  square.sizes = square.index_sizes = {33, 33};
  square.transposed = true;
  square.method = Method::blocks;
  run(random, square);
  for (const Method method : {Method::blocks, Method::shares}) {
    Case c;
    c.sizes = {65};
    c.index_sizes = {32769};  // a share and one more
    c.type = {DataType::int8, 1};
    c.reduction = Reduction::add;
    c.method = method;
    c.tuning.share_updates = 1;
    c.threads = 2;
    run(random, c);
  }
}

// The nearest bad index on either side, at every place of what a register holds and behind it.
void bad_in_every_place(Random& random) {
  for (const Int count : {1, 7, 8, 20})
    for (Int bad = 0; bad < count; ++bad)
      for (const Int value : {20, -21})
        for (const bool output_is_private : {false, true}) {
          Buffer input(random, {20}, 4, Strides::packed, Role::input);
          Buffer indices(random, {count}, 8, Strides::packed, Role::input, DataType::int64);
          Buffer updates(random, {count}, 4, Strides::packed, Role::input);
          Buffer output(random, {20}, 4, Strides::packed, Role::output);
          for (Int i = 0; i < count; ++i) indices.set<int64_t>(i, random.between(-20, 19));
          indices.set<int64_t>(bad, value);
          output.remember();
          const ScatterPlan plan{input.tensor,   indices.tensor, updates.tensor, output.tensor, 0,
                                 Reduction::none};
          const Status status = plan.run(input.data(), indices.data(), updates.data(),
                                         output.data(), output_is_private, 1);
          EXPECT(status.bad_index == bad, "got %lld, not %lld of %lld: %lld", status.bad_index, bad,
                 count, value);
          EXPECT(output_is_private || output.unchanged(), "wrote although index %lld is bad", bad);
          ++passed;
        }
}

// An index that is bad when it is read and good when it is looked for, as another thread would make
// it: the indices of the first line lie in the output's second line, which is written in between.
void repaired_meanwhile(Random& random) {
  constexpr Int size = 700, length = 600;
  Buffer input(random, {2, size}, 8, Strides::packed, Role::input);
  Buffer updates(random, {2, length}, 8, Strides::packed, Role::input);
  Buffer output(random, {2, size}, 8, Strides::packed, Role::output);
  std::vector<int64_t> second(length);
  for (Int i = 0; i < input.count(); ++i) input.set<int64_t>(i, i % size);
  for (Int i = 0; i < updates.count(); ++i) updates.set<int64_t>(i, i % size);
  for (Int i = 0; i < output.count(); ++i) output.set<int64_t>(i, -7 * size);
  for (Int i = 0; i < length; ++i) second[static_cast<std::size_t>(i)] = i;
  Tensor indices = updates.tensor;
  indices.type = DataType::int64;
  const char* const first = output.at(size);
  indices.layout.strides[0] = reinterpret_cast<const char*>(second.data()) - first;
  output.remember();
  const ScatterPlan plan{input.tensor, indices, updates.tensor, output.tensor, 1, Reduction::none};
  Tuning tuning;
  tuning.bucket_bits = 6;
  const Status status = scatter::run_scatter(plan, input.data(), first, updates.data(),
                                             output.data(), true, 1, Method::buckets, tuning);
  EXPECT(status.ok(), "index %lld", status.bad_index);
  for (Int i = 0; i < output.count(); ++i)
    EXPECT(output.get<int64_t>(i) >= 0, "element %lld has not been written", i);
  EXPECT(output.gaps_intact(), "repaired meanwhile");
  ++passed;
}

// Sizes at which the plan's own choice takes every algorithm, with threads and past the cache.
void large_cases(Random& random) {
  struct Shape {
    std::vector<Int> sizes;
    int axis;
    Int length;
  };
  const std::vector<Shape> shapes = {
      {{700, 900}, 1, 900},     {{700, 900}, 0, 700},     {{2100, 1024}, 0, 2100},
      {{2100, 1024}, 0, 9},     {{3000000}, 0, 700000},   {{3000000}, 0, 2000},
      {{3, 300000}, 1, 300000}, {{100000, 7}, 0, 30000},  {{60000, 4}, 1, 4},
      {{50, 3, 4000}, 1, 3},    {{20, 9000, 3}, 1, 5000}, {{300, 300}, 0, 900},
      {{3000}, 0, 900000},      {{5000, 500}, 1, 500},    {{12000, 200}, 0, 12000}};
  int turn = 0;
  for (const Shape& shape : shapes) {
    ++turn;
    if (!has_turn()) continue;
    for (int variant = 0; variant < 3; ++variant) {
      if (shortening() > 1 && variant != turn % 3) continue;  // one of the three in turns
      Case c;
      random_type(random, c);
      if (variant == 0) c.type = {DataType::float32, 4}, c.reduction = Reduction::none;
      c.sizes = c.index_sizes = shape.sizes;
      c.index_sizes[static_cast<std::size_t>(shape.axis)] = shape.length;
      c.axis = shape.axis;
      c.threads = any_threads(random);
      c.in_place = variant == 1;
      c.output_is_private = variant == 0;
      c.bad = variant == 2 && random.chance(0.3);
      run(random, c);
    }
  }
}

// float16 and integers at their edges: every pair of interesting values.
void edges(Random& random) {
  const uint64_t values[] = {0,      1,      0x8000, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00,
                             0xFC00, 0x7E00, 0x7C01, 0x0400, 0x03FF, 0x8001, 0x7FFF, 0xFFFF,
                             0x1000, 0x6400, 0x6401, 0x3555, 0x7F,   0x80,   0xFF,   0x0FFF,
                             0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7F81, 0x7FC0};
  const Int count = static_cast<Int>(std::size(values));
  for (const TypeInfo& type : kTypes) {
    for (int r = 1; r < 5; ++r) {
      Buffer input(random, {count * count}, type.size, Strides::packed, Role::input, type.type);
      Buffer updates(random, {count * count}, type.size, Strides::packed, Role::input, type.type);
      Buffer indices(random, {count * count}, 8, Strides::packed, Role::input, DataType::int64);
      Buffer output(random, {count * count}, type.size, Strides::packed, Role::output, type.type);
      for (Int i = 0; i < count * count; ++i) {
        const uint64_t shift = type.size > 2 ? 8u * static_cast<unsigned>(type.size) - 16u : 0u;
        uint64_t a = values[i / count] << shift, b = values[i % count] << shift;
        std::memcpy(input.at(i), &a, static_cast<std::size_t>(type.size));
        std::memcpy(updates.at(i), &b, static_cast<std::size_t>(type.size));
        indices.set<int64_t>(i, i);
      }
      Expected reference{input.tensor, static_cast<Reduction>(r), input.elements()};
      for (Int i = 0; i < count * count; ++i)
        reference.take(static_cast<std::size_t>(i), updates.at(i));
      const ScatterPlan plan{input.tensor,
                             indices.tensor,
                             updates.tensor,
                             output.tensor,
                             0,
                             static_cast<Reduction>(r)};
      EXPECT(plan.run(input.data(), indices.data(), updates.data(), output.data(), false, 1).ok(),
             "edges");
      for (Int i = 0; i < count * count; ++i)
        EXPECT(same_element(input.tensor, reinterpret_cast<unsigned char*>(output.at(i)),
                            &reference.elements[static_cast<std::size_t>(i * type.size)]),
               "pair %lld of type %d, %s", i, static_cast<int>(type.type), kReductionNames[r]);
      ++passed;
    }
  }
}

// Another thread makes indices bad between the check and the use: nothing outside may change.
void changed_meanwhile(Random& random) {
#if !defined(ANYDML_TEST_RACES)
  for (int round = 0; round < cases(60, 8); ++round) {
    const bool columns = random.chance(0.5);
    const std::vector<Int> sizes = columns ? std::vector<Int>{500, 40} : std::vector<Int>{20000};
    Buffer input(random, sizes, 4, Strides::packed, Role::input);
    Buffer updates(random, sizes, 4, Strides::packed, Role::input);
    Buffer indices(random, sizes, 8, Strides::packed, Role::input);
    Buffer output(random, sizes, 4, Strides::packed, Role::output);
    indices.tensor.type = DataType::int64;
    for (Int i = 0; i < indices.count(); ++i) indices.set<int64_t>(i, i % sizes[0]);
    output.remember();
    std::atomic<bool> stop{false};
    volatile int64_t* const changed =
        reinterpret_cast<int64_t*>(indices.at(random.between(0, 19999)));
    std::thread changer([&] {
      while (!stop.load()) {
        *changed = int64_t{1} << 40;
        *changed = -1;
      }
    });
    const ScatterPlan plan{input.tensor,   indices.tensor, updates.tensor, output.tensor, 0,
                           Reduction::none};
    Tuning tuning;
    small_tuning(random, tuning);
    for (int n = 0; n < 20; ++n)
      scatter::run_scatter(plan, input.data(), indices.data(), updates.data(), output.data(),
                           n % 2 == 0, 2, kMethods[random.between(0, 4)], tuning);
    stop.store(true);
    changer.join();
    EXPECT(output.gaps_intact(), "changed meanwhile");
    ++passed;
  }
#else
  (void)random;
#endif
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  Random random(20240611);
  edges(random);
  const int rounds = cases(10000, 1500);
  for (int i = 0; i < rounds; ++i) random_case(random, 600);
  for (int i = 0; i < rounds / 10; ++i) random_case(random, 20000);
  shared_cases(random, rounds / 10);
  rounded_line(random);
  few_sums(random);
  bad_in_a_later_round(random);
  check_distant_updates(random);
  rounds_in_parts(random);
  strips_of_columns(random);
  bad_in_every_place(random);
  repaired_meanwhile(random);
  changed_meanwhile(random);
  large_cases(random);
  if (!short_run()) large_cases(random);
  std::printf("%d passed, 0 failed\n", passed);
  return 0;
}
