// SCATTER and SCATTER_ND on the GPU against the CPU's kernels, every byte of the operands.
//
//   scatter_test [SEED]                all parts
//   scatter_test check PART [SEED]     one: random, lines, long, epochs, planes, rows, each
//   scatter_test time [NAMES]          times of the cases whose names a regular expression finds
//   scatter_test compile FIRST STEP    compiles some of the kernels
//
// `check_patterns` is every kernel once with little data: compute-sanitizer --tool racecheck takes
// it whole.
#include "scatter_cases.hpp"
#include "scatter_times.hpp"

using namespace anydml;
using namespace anydml::test;
using namespace anydml::test::scatters;

namespace {

void random_type(Random& random, Case& c) {
  c.index_type = kIndexTypes[random.between(0, 3)];
  c.reduction = kReductions[random.chance(0.4) ? 0 : random.between(1, 4)];
  c.type = c.reduction == Reduction::none && random.chance(0.6) ? DataType::unknown
                                                                : kTypes[random.between(0, 11)];
  c.size = c.type == DataType::unknown ? 1 << random.between(0, 4) : size_of(c.type);
  if ((c.reduction == Reduction::add || c.reduction == Reduction::mul) && random.chance(0.15)) {
    const bool wide = random.chance(0.5);
    c.type = wide ? DataType::complex128 : DataType::complex64;
    c.size = wide ? 16 : 8;
  }
  c.strides = random.chance(0.5) ? Strides::packed : random_strides(random);
  c.output_strides = random.chance(0.5) ? Strides::packed : c.strides;
  c.pattern = kPatterns[random.between(0, 8)];
  c.in_place = random.chance(0.3);
  c.output_is_private = random.chance(0.5);
  c.bad = random.chance(0.12) ? static_cast<int>(random.between(1, 3)) : 0;
}

void make_elements(Random& random, Case& c) {
  const int rank = static_cast<int>(c.sizes.size());
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
  c.update_sizes = c.index_sizes;
}

void make_tuples(Random& random, Case& c, Int limit) {
  c.nd = true;
  const Int rank = static_cast<Int>(c.sizes.size());
  const auto length = static_cast<std::size_t>(random.between(random.chance(0.1) ? 0 : 1, rank));
  Int slice = 1;
  for (std::size_t d = length; d < c.sizes.size(); ++d) slice *= c.sizes[d];
  c.index_sizes = random_sizes(random, 3, std::max<Int>(1, limit / std::max<Int>(1, slice)));
  c.update_sizes = c.index_sizes;
  c.index_sizes.push_back(static_cast<Int>(length));
  c.update_sizes.insert(c.update_sizes.end(), c.sizes.begin() + static_cast<std::ptrdiff_t>(length),
                        c.sizes.end());
}

void random_case(Random& random, Int limit) {
  Case c;
  random_type(random, c);
  c.sizes = random_sizes(random, 5, limit);
  if (c.sizes.size() > 1 && random.chance(0.5)) std::swap(c.sizes.front(), c.sizes.back());
  if (!c.sizes.empty() && random.chance(0.5))
    make_tuples(random, c, limit);
  else
    make_elements(random, c);
  check(random, c);
}

// One line that takes many updates, of every type by every reduction.
void check_lines(Random& random) {
  for (Reduction reduction : kReductions)
    for (DataType type : kTypes)
      for (Pattern pattern : kPatterns)
        for (Int n = 0; n < cases(2, 1); ++n) {
          Case c;
          c.type = type;
          c.size = size_of(type);
          c.reduction = reduction;
          c.pattern = pattern;
          const Int sizes[] = {300, 70000, 600000, 2300000};
          c.sizes = {sizes[random.between(0, type == DataType::float32 ? 3 : 2)]};
          c.index_sizes = {random.chance(0.5) ? c.sizes[0] : random.between(1, 400000)};
          c.update_sizes = c.index_sizes;
          c.index_type = kIndexTypes[random.between(0, 3)];
          c.in_place = random.chance(0.3);
          c.output_is_private = random.chance(0.5);
          c.bad = random.chance(0.05) ? 1 : 0;
          check(random, c);
        }
}

// Lines so long that blocks take several tiles, and so crowded that several blocks take a bucket.
void check_long(Random& random) {
  for (Pattern pattern : kPatterns)
    for (Int n = 0; n < cases(2, 1); ++n) {
      Case c;
      constexpr DataType kDrawnTypes[] = {DataType::int32,    DataType::uint8,   DataType::int64,
                                          DataType::bfloat16, DataType::float32, DataType::float64};
      c.reduction = kReductions[random.chance(0.4) ? 0 : random.between(1, 4)];
      const bool sums = c.reduction == Reduction::add || c.reduction == Reduction::mul;
      c.type = kDrawnTypes[random.between(0, sums ? 2 : 5)];
      c.size = size_of(c.type);
      c.pattern = pattern;
      c.sizes = {random.between(1, 5) * 1000003};
      c.index_sizes = c.update_sizes = {random.between(2000000, 6000000)};
      c.index_type = kIndexTypes[random.between(0, 3)];
      c.in_place = random.chance(0.3);
      c.output_is_private = random.chance(0.5);
      c.bad = random.chance(0.1) ? 1 : 0;
      check(random, c);
    }
}

// More updates than an epoch has, and few of them for each bucket.
void check_epochs(Random& random) {
  for (DataType type : {DataType::uint8, DataType::float32}) {
    Case c;
    c.type = type;
    c.size = size_of(type);
    c.sizes = {33000000};
    c.index_sizes = c.update_sizes = {4300000};
    check(random, c);
  }
}

// Rows and strips as wide as shared memory takes them, and wider.
void check_planes(Random& random) {
  for (const std::vector<Int>& sizes : {std::vector<Int>{70, 8192},
                                        {8192, 70},
                                        {300, 1000},
                                        {3, 60000},
                                        {40000, 12},
                                        {2, 5000, 33},
                                        {130000, 5},
                                        {1500, 3, 300}})
    for (int n = 0; n < cases(24, 4); ++n) {
      Case c;
      random_type(random, c);
      if (random.chance(0.5)) c.strides = c.output_strides = Strides::packed;
      c.sizes = sizes;
      make_elements(random, c);
      check(random, c);
    }
}

// Every kernel once in each of its ways, with as little data as possible: for slow tools such as
// the race checker.
void check_types(Random& random) {
  Case c;
  const auto check_patterns = [&](DataType type, Reduction reduction,
                                  std::initializer_list<Pattern> patterns) {
    c.type = reduction == Reduction::none ? DataType::unknown : type;
    c.size = size_of(type);
    c.reduction = reduction;
    for (Pattern pattern : patterns) {
      c.pattern = pattern;
      c.output_is_private = !c.output_is_private;
      check(random, c);
    }
  };
  const auto all = [&](std::initializer_list<Pattern> patterns) {
    check_patterns(DataType::float32, Reduction::none, patterns);
    check_patterns(DataType::uint8, Reduction::none, patterns);
    check_patterns(DataType::int32, Reduction::add, patterns);
    check_patterns(DataType::int16, Reduction::mul, patterns);
    check_patterns(DataType::float32, Reduction::min, patterns);
    check_patterns(DataType::bfloat16, Reduction::max, patterns);
  };
  const auto sizes = [&](const std::vector<Int>& data, const std::vector<Int>& lookup, int axis) {
    c.sizes = data;
    c.index_sizes = c.update_sizes = lookup;
    c.axis = axis;
  };
  sizes({3, 1100}, {3, 1500}, 1);  // lines; packed ones; columns
  all({Pattern::random, Pattern::one});
  sizes({2, 2048}, {2, 2048}, 1);
  all({Pattern::random, Pattern::one, Pattern::turns});
  sizes({300, 40}, {260, 33}, 0);
  all({Pattern::random, Pattern::few_indices});
  sizes({9000}, {66000}, 0);  // buckets, ordered keys
  check_patterns(DataType::float64, Reduction::none,
                 {Pattern::random, Pattern::ascending, Pattern::pairs});
  check_patterns(DataType::float32, Reduction::none,
                 {Pattern::random, Pattern::few_indices, Pattern::sorted_runs});
  check_patterns(DataType::int64, Reduction::add, {Pattern::random, Pattern::few_indices});
  sizes({70000}, {70000}, 0);
  check_patterns(DataType::float32, Reduction::none, {Pattern::random, Pattern::descending});
  check_patterns(DataType::float32, Reduction::max,
                 {Pattern::random, Pattern::descending, Pattern::pairs});
  check_patterns(DataType::int32, Reduction::add, {Pattern::random, Pattern::ascending});
  sizes({70000}, {140000}, 0);  // crowded buckets
  check_patterns(DataType::float32, Reduction::none, {Pattern::one, Pattern::few_indices});
  check_patterns(DataType::float16, Reduction::min, {Pattern::one, Pattern::few_indices});
  check_patterns(DataType::int32, Reduction::max, {Pattern::few_indices});
  sizes({600000}, {100000}, 0);  // sparse
  for (DataType type : {DataType::uint8, DataType::float32, DataType::complex128})
    check_patterns(type, Reduction::none, {Pattern::random, Pattern::one, Pattern::window});
  sizes({8500000}, {2200000}, 0);  // buckets of moves, of more elements than a map of winners has
  check_patterns(DataType::float32, Reduction::none, {Pattern::random, Pattern::one});
  sizes({50, 7}, {200, 7}, 0);  // sorted keys; long chains
  check_patterns(DataType::float32, Reduction::add, {Pattern::random, Pattern::one});
  check_patterns(DataType::float64, Reduction::mul, {Pattern::few_indices});
  c.nd = true;  // rows
  c.sizes = {300, 33};
  c.index_sizes = {500, 1};
  c.update_sizes = {500, 33};
  check_patterns(DataType::float32, Reduction::none, {Pattern::random, Pattern::one});
  check_patterns(DataType::float32, Reduction::add, {Pattern::few_indices});
  c.in_place = true;
  check_patterns(DataType::float32, Reduction::none, {Pattern::random});
}

void check_rows(Random& random) {
  for (const std::vector<Int>& sizes :
       {std::vector<Int>{30000, 64}, {5000, 3}, {400, 300, 5}, {100, 20000}, {900000, 2}})
    for (int n = 0; n < cases(24, 4); ++n) {
      Case c;
      random_type(random, c);
      if (random.chance(0.5)) c.strides = c.output_strides = Strides::packed;
      c.sizes = sizes;
      make_tuples(random, c, 400000);
      check(random, c);
    }
}

void check_random(Random& random) {
  for (int n = 0; n < cases(2500, 300); ++n) random_case(random, random.chance(0.2) ? 30000 : 800);
}

struct Part {
  const char* name;
  void (*check)(Random&);
};
constexpr Part kParts[] = {{"random", check_random}, {"lines", check_lines},   {"long", check_long},
                           {"epochs", check_epochs}, {"planes", check_planes}, {"rows", check_rows},
                           {"each", check_types}};

// All parts, or one of them; each from the seed, so that a part by itself is the same.
void check_parts(const char* only, Int seed) {
  for (const Part& part : kParts) {
    if (only != nullptr && std::string(part.name) != only) continue;
    Random random(static_cast<uint64_t>(seed));
    part.check(random);
    std::printf("%s: %lld passed, %lld failed so far\n", part.name, outcome.passed, outcome.failed);
    std::fflush(stdout);  // flushed at once: a run may be cut off
  }
}

// Compiles some of the kernels, so that several processes share the work (ANYDML_TEST_CACHE).
void compile(std::size_t first, std::size_t step) {
  const std::vector<cuda::Variant> all = cuda::scatter_variants();
  for (std::size_t i = first; i < all.size(); i += step) device().warm(all[i]);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    time_all(count > 2 ? arguments[2] : "");
    return 0;
  }
  if (count > 3 && std::string(arguments[1]) == "compile") {
    compile(static_cast<std::size_t>(std::atoi(arguments[2])),
            static_cast<std::size_t>(std::atoi(arguments[3])));
    return 0;
  }
  const bool one = count > 2 && std::string(arguments[1]) == "check";
  const int seed = one ? 3 : 1;
  check_parts(one ? arguments[2] : nullptr, count > seed ? std::atoll(arguments[seed]) : 61);
  return outcome.exit_status("scatter");
}
