// SCATTER_ND against one loop over the tuples, with every algorithm forced.

#include "scatter/cpu/scatter_nd.hpp"

#include <thread>

#include "scatter_reference.hpp"

namespace anydml::test {
namespace {

using scatter::NdMethod;
using scatter::NdTuning;

int passed = 0;
constexpr NdMethod kMethods[] = {NdMethod::automatic, NdMethod::direct, NdMethod::rows,
                                 NdMethod::buckets};

struct Case {
  std::vector<Int> sizes, batch;
  int length = 1;
  TypeInfo type{DataType::unknown, 4};
  DataType index_type = DataType::int64;
  Reduction reduction = Reduction::none;
  Strides input = Strides::packed, indices = Strides::packed, updates = Strides::packed,
          output = Strides::packed;
  bool in_place = false, output_is_private = false, bad = false;
  int threads = 1;
  NdMethod method = NdMethod::automatic;
  NdTuning tuning;
};

void run(Random& random, const Case& c) {
  std::vector<Int> index_sizes = c.batch, update_sizes = c.batch;
  index_sizes.push_back(c.length);
  update_sizes.insert(update_sizes.end(), c.sizes.begin() + c.length, c.sizes.end());
  Buffer input(random, c.sizes, c.type.size, c.input, c.in_place ? Role::output : Role::input,
               c.type.type);
  Buffer indices(random, index_sizes, facts_of(c.index_type).size, c.indices, Role::input,
                 c.index_type);
  Buffer updates(random, update_sizes, c.type.size, c.updates, Role::input, c.type.type);
  Buffer other(random, c.sizes, c.type.size, c.output, Role::output, c.type.type);
  Buffer& output = c.in_place ? input : other;
  if (c.reduction != Reduction::none) {
    tame(random, input);
    tame(random, updates);
  }
  Int tuples = 1, slice = 1;
  for (Int size : c.batch) tuples *= size;
  for (std::size_t d = static_cast<std::size_t>(c.length); d < c.sizes.size(); ++d)
    slice *= c.sizes[d];
  const auto size_of = [&](Int flat) { return c.sizes[static_cast<std::size_t>(flat % c.length)]; };
  Pattern pattern(random);
  bool empty = false;
  for (Int i = 0; i < indices.count(); ++i) {
    if (size_of(i) == 0)
      empty = true;
    else
      set_index(
          indices, i,
          good_index(random, c.index_type, size_of(i), pattern.position(i / c.length, size_of(i))));
  }
  if (c.bad && !empty && indices.count() > 0)
    for (Int n = random.between(1, 3); n > 0; --n) {
      const Int at = random.between(0, indices.count() - 1);
      set_index(indices, at, bad_index(random, c.index_type, size_of(at)));
    }

  // The reference.
  Int bad = -1;
  for (Int i = 0; i < indices.count() && bad < 0; ++i)
    if (position_of(indices, i, size_of(i)) < 0) bad = i;
  const std::size_t bytes = static_cast<std::size_t>(c.type.size);
  Expected reference{input.tensor, c.reduction, input.elements()};
  for (Int i = 0; i < tuples && bad < 0 && slice > 0; ++i) {
    Int target = 0;
    for (Int d = 0; d < c.length; ++d)
      target = target * size_of(d) + position_of(indices, i * c.length + d, size_of(d));
    for (Int e = 0; e < slice; ++e)
      reference.take(static_cast<std::size_t>(target * slice + e), updates.at(i * slice + e));
  }
  const std::vector<unsigned char>& expected = reference.elements;

  input.remember();
  indices.remember();
  updates.remember();
  other.remember();
  const ScatterNdPlan plan{input.tensor, indices.tensor, updates.tensor, output.tensor,
                           c.reduction};
  const Status status =
      scatter::run_scatter_nd(plan, input.data(), indices.data(), updates.data(), output.data(),
                              c.output_is_private, c.threads, c.method, c.tuning);
  const int method = static_cast<int>(c.method);
  EXPECT(status.bad_index == bad, "got %lld, not %lld; method %d, output_is_private %d",
         status.bad_index, bad, method, c.output_is_private);
  EXPECT(indices.unchanged() && updates.unchanged(), "method %d", method);
  EXPECT(c.in_place || input.unchanged(), "method %d", method);
  EXPECT(output.gaps_intact(), "method %d", method);
  if (bad >= 0) {
    EXPECT(c.output_is_private || output.unchanged(), "method %d wrote although index %lld is bad",
           method, bad);
  } else {
    const std::vector<unsigned char> got = output.elements();
    for (std::size_t i = got == expected ? got.size() : 0; i < got.size(); i += bytes)
      EXPECT(same_element(input.tensor, &got[i], &expected[i]),
             "element %lld of %lld; method %d, rank %d, length %d, tuples %lld, type %d, size %d, "
             "%s, threads %d, in place %d, strides %d %d %d",
             static_cast<Int>(i / bytes), output.count(), method, input.tensor.layout.rank,
             c.length, tuples, static_cast<int>(c.type.type), c.type.size,
             kReductionNames[static_cast<int>(c.reduction)], c.threads, c.in_place,
             static_cast<int>(c.input), static_cast<int>(c.updates), static_cast<int>(c.output));
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

void small_tuning(Random& random, NdTuning& tuning) {
  tuning.small_bytes = random.chance(0.5) ? 0 : tuning.small_bytes;
  tuning.piece_bytes = Int{1} << random.between(5, 15);
  tuning.stream_bytes = random.chance(0.5) ? 0 : kStreamBytes;
  tuning.bucket_bits = static_cast<int>(random.between(3, 10));
  tuning.round = random.chance(0.5) ? NdTuning{}.round : random.between(100, 2000);
}

// A shape of at most `limit` elements or so.
std::vector<Int> random_sizes(Random& random, int rank, Int limit) {
  std::vector<Int> sizes;
  for (int d = 0; d < rank; ++d) {
    Int size =
        random.chance(0.02) ? 0 : random.between(1, std::max<Int>(1, std::min<Int>(limit, 40)));
    if (random.chance(0.15)) size = random.between(1, limit);
    sizes.push_back(size);
    limit = std::max<Int>(1, limit / std::max<Int>(1, size));
  }
  for (int d = rank - 1; d > 0; --d)
    std::swap(sizes[static_cast<std::size_t>(d)],
              sizes[static_cast<std::size_t>(random.between(0, d))]);
  return sizes;
}

void random_case(Random& random, Int limit) {
  Case c;
  random_type(random, c);
  const int rank = static_cast<int>(random.between(0, 6));
  c.sizes = random_sizes(random, rank, limit);
  c.length = static_cast<int>(random.between(0, rank));
  if (random.chance(0.3)) c.length = rank;
  Int slice = 1;
  for (int d = c.length; d < rank; ++d) slice *= c.sizes[static_cast<std::size_t>(d)];
  c.batch = random_sizes(random, static_cast<int>(random.between(0, 3)),
                         std::max<Int>(1, 2 * limit / std::max<Int>(1, slice)));
  if (random.chance(0.6)) {
    c.input = random_strides(random);
    c.indices = random_strides(random);
    c.updates = random_strides(random);
    c.output = random_strides(random);
  }
  c.in_place = random.chance(0.3);
  c.output_is_private = !c.in_place && random.chance(0.5);
  c.bad = random.chance(0.15);
  c.threads = any_threads(random);
  c.method = kMethods[random.between(0, 3)];
  if (random.chance(0.8)) small_tuning(random, c.tuning);
  run(random, c);
}

// Strided rows in any of the tensors, for every type and size of element, and rows longer than what
// is packed, gathered or shared out at a time.
void stepped_rows(Random& random) {
  for (int n = 0; n < cases(1500, 150); ++n) {
    Case c;
    random_type(random, c);
    if (n % 3 == 0) c.type = {DataType::unknown, 1 << n / 3 % 5}, c.reduction = Reduction::none;
    const auto strides = [&] { return random.chance(0.6) ? Strides::stepped : Strides::packed; };
    c.input = strides();
    c.updates = strides();
    c.indices = strides();
    c.output = random.chance(0.3) ? Strides::stepped : Strides::packed;
    const bool wide = n % 10 == 0;
    c.sizes = {random.between(1, 40), wide ? random.between(600, 9000) : random.between(1, 150)};
    if (random.chance(0.3)) c.sizes.insert(c.sizes.begin() + 1, random.between(1, 4));
    c.length = 1;
    c.batch = {random.between(1, wide ? 10 : 90)};
    c.in_place = random.chance(0.2);
    c.output_is_private = !c.in_place && random.chance(0.5);
    c.bad = random.chance(0.1);
    c.threads = any_threads(random);
    c.method = random.chance(0.8) ? NdMethod::rows : NdMethod::direct;
    if (random.chance(0.8)) small_tuning(random, c.tuning);
    run(random, c);
  }
}

// Sums of floats of 16 bits: of few elements or slices, each named once or several times, and of
// more than can be numbered.
void few_sums(Random& random) {
  for (const TypeInfo type : {TypeInfo{DataType::float16, 2}, TypeInfo{DataType::bfloat16, 2}})
    for (const Strides output : {Strides::packed, Strides::stepped, Strides::any})
      for (const bool in_place : {false, true})
        for (const Int slice : {1, 5, 300, 9000})
          for (const Int tuples : {1, 3, 40}) {
            Case c;
            c.sizes = {slice == 1 ? 2000 : slice == 9000 ? 90 : 700, slice};
            if (slice == 300) c.sizes = {700, 20, 15};
            c.length = 1;
            c.batch = {tuples};
            c.type = type;
            c.reduction = random.chance(0.5) ? Reduction::add : Reduction::mul;
            c.output = output;
            c.updates = random_strides(random);
            c.in_place = in_place;
            c.output_is_private = !in_place && random.chance(0.5);
            c.bad = random.chance(0.1);
            c.threads = any_threads(random);
            c.method = NdMethod::direct;
            run(random, c);
          }
  for (const Strides output : {Strides::packed, Strides::stepped})
    for (const Int slice : {1, 2})
      for (const NdMethod method : {NdMethod::automatic, NdMethod::direct, NdMethod::buckets}) {
        Case c;
        c.sizes = {80000, slice};
        c.length = 1;
        c.batch = {70000};
        c.type = {DataType::bfloat16, 2};
        c.reduction = Reduction::add;
        c.output = output;
        c.in_place = random.chance(0.5);
        c.threads = any_threads(random);
        c.method = method;
        run(random, c);
      }
}

// Sizes at which the plan's own choice takes every algorithm, with threads and past the cache.
void large_cases(Random& random) {
  struct Shape {
    std::vector<Int> sizes;
    int length;
    Int tuples;
  };
  const std::vector<Shape> shapes = {
      {{40000, 64}, 1, 3000},    {{40000, 64}, 1, 40000},          {{40000, 64}, 1, 300},
      {{1500, 1500}, 2, 400000}, {{1500, 1500}, 2, 900},           {{700000, 3}, 1, 700000},
      {{700000, 2}, 1, 500000},  {{3000000}, 1, 900000},           {{10, 300000}, 1, 7},
      {{3000000}, 0, 3},         {{100, 90, 300}, 2, 8000},        {{100, 90, 30, 9}, 3, 90000},
      {{9, 100000, 2}, 1, 20},   {{20, 30, 20, 20, 10}, 4, 300000}};
  int turn = 0;
  for (const Shape& shape : shapes) {
    ++turn;
    if (!has_turn()) continue;
    for (int variant = 0; variant < 3; ++variant) {
      if (shortening() > 1 && variant != turn % 3) continue;  // one of the three in turns
      Case c;
      random_type(random, c);
      if (variant == 0) c.type = {DataType::float32, 4}, c.reduction = Reduction::none;
      c.sizes = shape.sizes;
      c.length = shape.length;
      c.batch = {shape.tuples};
      c.threads = any_threads(random);
      c.in_place = variant == 1;
      c.output_is_private = variant == 0;
      c.bad = variant == 2 && random.chance(0.3);
      run(random, c);
    }
  }
}

// Indices that are good when they are checked and bad when they are read again, as another thread
// would make them: those of the second round lie in the output, which the first round writes. It is
// too late to fail then, and everything is still written.
void spoilt_meanwhile(Random& random) {
  constexpr Int size = 900, tuples = 800, round = 512;
  Buffer input(random, {size}, 8, Strides::packed, Role::input);
  Buffer updates(random, {tuples}, 8, Strides::packed, Role::input);
  std::vector<int64_t> memory(static_cast<std::size_t>(tuples + size), 3);
  // The last of the indices are the output's first elements.
  int64_t* const out = memory.data() + round;
  constexpr int64_t spoilt = -7 * size;
  for (Int i = 0; i < size; ++i) input.set<int64_t>(i, spoilt);
  for (Int i = 0; i < tuples; ++i) updates.set<int64_t>(i, spoilt - 1);
  Tensor indices = updates.tensor, output = input.tensor;
  indices.layout.push(1, 8);
  indices.type = DataType::int64;
  const ScatterNdPlan plan{input.tensor, indices, updates.tensor, output, Reduction::none};
  NdTuning tuning;
  tuning.round = round;
  tuning.bucket_bits = 6;
  const Status status = scatter::run_scatter_nd(plan, input.data(), memory.data(), updates.data(),
                                                out, false, 1, NdMethod::buckets, tuning);
  EXPECT(status.ok(), "failed on index %lld after the output was written", status.bad_index);
  for (Int i = 0; i < size; ++i)
    EXPECT(out[i] == spoilt || out[i] == spoilt - 1, "element %lld", i);
  ++passed;
}

// Slices of whole pieces, of all but the last byte of one, and of one byte more; slices of which
// several make a piece, but for the last.
void check_piece_sizes(Random& random) {
  for (const Int bytes : {256, 255, 257, 16})
    for (const Strides output : {Strides::packed, Strides::stepped}) {
      Case c;
      c.sizes = {5, bytes};
      c.length = 1;
      c.batch = {4};
      c.type = {DataType::unknown, 1};
      c.output = output;
      c.method = NdMethod::rows;
      c.tuning.piece_bytes = 64;
      run(random, c);
    }
  for (int n = 0; n < 8; ++n) {  // long slices of any strides, which are no pieces
    Case c;
    c.sizes = {4, 6, 50};
    c.length = 1;
    c.batch = {9};
    c.type = {DataType::int32, 4};
    c.reduction = Reduction::add;
    c.input = c.output = Strides::any;
    c.in_place = n % 2 == 0;
    c.method = NdMethod::rows;
    c.tuning.piece_bytes = 64;
    run(random, c);
  }
}

// Threads count what goes to each part of the output.
void shared_counts(Random& random) {
  Case c;
  c.sizes = {301};
  c.length = 1;
  c.batch = {84000};
  c.type = {DataType::int32, 4};
  c.reduction = Reduction::add;
  c.method = NdMethod::rows;
  c.threads = 3;
  run(random, c);
}

// The first index of many is bad, or the first of a row of them, by elements and by slices.
void first_bad(Random& random) {
  for (const NdMethod method : kMethods)
    for (const Int slice : {1, 3})
      for (const Int bad : {0, 400})
        for (const bool output_is_private : {true, false}) {
          Buffer input(random, {40, slice}, 4, Strides::packed, Role::input);
          Buffer indices(random, {3, 400, 1}, 8, Strides::packed, Role::input, DataType::int64);
          Buffer updates(random, {3, 401, slice}, 4, Strides::packed, Role::input);
          Buffer output(random, {40, slice}, 4, Strides::packed, Role::output);
          Layout& rows = updates.relaid();
          rows.sizes[1] = 400;
          if (bad == 0) rows.strides[0] = 400 * rows.strides[1];  // one list of them
          for (Int i = 0; i < 1200; ++i) indices.set<int64_t>(i, i == bad ? -41 : i % 40);
          output.remember();
          const ScatterNdPlan plan{input.tensor, indices.tensor, updates.tensor, output.tensor,
                                   Reduction::none};
          NdTuning tuning;
          tuning.round = 600;
          const Status status =
              scatter::run_scatter_nd(plan, input.data(), indices.data(), updates.data(),
                                      output.data(), output_is_private, 1, method, tuning);
          const int number = static_cast<int>(method);
          EXPECT(status.bad_index == bad, "method %d: %lld", number, status.bad_index);
          EXPECT(output.gaps_intact(), "method %d", number);
          EXPECT(output_is_private || output.unchanged(), "method %d has written", number);
          ++passed;
        }
}

// In place the input's layout is ignored, also by SCATTER.
void in_place_by_another_layout(Random& random) {
  for (const NdMethod method : kMethods) {
    Buffer output(random, {5, 9}, 4, Strides::packed, Role::output);
    Buffer indices(random, {1, 1}, 8, Strides::packed, Role::input, DataType::int64);
    Buffer updates(random, {1, 9}, 4, Strides::packed, Role::input);
    indices.set<int64_t>(0, 2);
    std::vector<unsigned char> expected = output.elements();
    const std::vector<unsigned char> row = updates.elements();
    std::copy(row.begin(), row.end(), expected.begin() + 2 * 36);
    Tensor input = output.tensor;
    input.layout.strides[0] = 0;
    const ScatterNdPlan plan{input, indices.tensor, updates.tensor, output.tensor, Reduction::none};
    EXPECT(scatter::run_scatter_nd(plan, output.data(), indices.data(), updates.data(),
                                   output.data(), false, 1, method, NdTuning{})
               .ok(),
           "in place");
    EXPECT(output.elements() == expected, "method %d", static_cast<int>(method));
    ++passed;
  }
  int32_t line[4] = {1, 2, 3, 4};
  const int64_t index = 1;
  const int32_t update = 9;
  const auto tensor = [](Int size, Int stride, DataType type, int element_size) {
    Tensor result;
    result.layout.push(size, stride);
    result.type = type;
    result.element_size = element_size;
    return result;
  };
  const ScatterPlan plan{tensor(4, 0, DataType::int32, 4),
                         tensor(1, 8, DataType::int64, 8),
                         tensor(1, 4, DataType::int32, 4),
                         tensor(4, 4, DataType::int32, 4),
                         0,
                         Reduction::none};
  EXPECT(plan.run(line, &index, &update, line, false, 1).ok(), "in place");
  EXPECT(line[0] == 1 && line[1] == 9 && line[2] == 3 && line[3] == 4, "%d %d %d %d", line[0],
         line[1], line[2], line[3]);
  ++passed;
}

// Another thread makes indices bad between the check and the use: nothing outside may change.
void changed_meanwhile(Random& random) {
#if !defined(ANYDML_TEST_RACES)
  for (int round = 0; round < cases(60, 8); ++round) {
    const bool rows = random.chance(0.5);
    const std::vector<Int> sizes = rows ? std::vector<Int>{1000, 20} : std::vector<Int>{20000};
    Buffer input(random, sizes, 4, Strides::packed, Role::input);
    Buffer updates(random, sizes, 4, Strides::packed, Role::input);
    Buffer indices(random, {sizes[0], 1}, 8, Strides::packed, Role::input);
    Buffer output(random, sizes, 4, Strides::packed, Role::output);
    indices.tensor.type = DataType::int64;
    for (Int i = 0; i < indices.count(); ++i) indices.set<int64_t>(i, i);
    output.remember();
    std::atomic<bool> stop{false};
    volatile int64_t* const changed =
        reinterpret_cast<int64_t*>(indices.at(random.between(0, sizes[0] - 1)));
    std::thread changer([&] {
      while (!stop.load()) {
        *changed = int64_t{1} << 40;
        *changed = -1;
      }
    });
    const ScatterNdPlan plan{input.tensor, indices.tensor, updates.tensor, output.tensor,
                             Reduction::none};
    NdTuning tuning;
    small_tuning(random, tuning);
    for (int n = 0; n < 20; ++n)
      scatter::run_scatter_nd(plan, input.data(), indices.data(), updates.data(), output.data(),
                              n % 2 == 0, 2, kMethods[random.between(0, 3)], tuning);
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
  Random random(20240612);
  const int rounds = cases(7000, 1500);
  for (int i = 0; i < rounds; ++i) random_case(random, 600);
  for (int i = 0; i < rounds / 10; ++i) random_case(random, 20000);
  stepped_rows(random);
  few_sums(random);
  spoilt_meanwhile(random);
  check_piece_sizes(random);
  shared_counts(random);
  first_bad(random);
  in_place_by_another_layout(random);
  changed_meanwhile(random);
  large_cases(random);
  std::printf("%d passed, 0 failed\n", passed);
  return 0;
}
