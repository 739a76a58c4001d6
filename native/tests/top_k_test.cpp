// TOP_K against a stable sort by an independent definition of the order.
#include "top_k_cases.hpp"

namespace {

// Ranks 0 to 6, any layout, small.
void small_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    Case c = random_case(random);
    const int rank = static_cast<int>(random.between(0, 6));
    for (int d = 0; d < rank; ++d)
      c.sizes.push_back(random.between(random.chance(0.02) ? 0 : 1, 5));
    c.axis = rank == 0 ? 0 : static_cast<int>(random.between(0, rank - 1));
    if (rank > 0 && random.chance(0.5))
      c.sizes[static_cast<std::size_t>(c.axis)] = random.between(1, rank < 4 ? 200 : 30);
    c.k = rank == 0 ? random.between(0, 1)
                    : random_k(random, c.sizes[static_cast<std::size_t>(c.axis)]);
    check(random, c);
  }
}

// Each algorithm by force, sizes around its thresholds.
void forced_cases(Random& random, int count) {
  const TopKAlgorithm algorithms[] = {
      TopKAlgorithm::rank, TopKAlgorithm::maxima,   TopKAlgorithm::threshold, TopKAlgorithm::sample,
      TopKAlgorithm::sort, TopKAlgorithm::vertical, TopKAlgorithm::wide};
  const Int edges[] = {1,   15,  16,  31,  63,  64,   65,   127,  128, 129,
                       159, 160, 161, 255, 512, 1000, 1024, 2047, 4096};
  for (int i = 0; i < count; ++i) {
    Case c = random_case(random);
    c.algorithm = algorithms[i % 7];
    Int n = edges[random.between(0, 18)] + random.between(-1, 1);
    n = std::max<Int>(n, 1);
    if (c.algorithm == TopKAlgorithm::sample) n = random.between(4096, 9000);
    if (c.algorithm == TopKAlgorithm::maxima || c.algorithm == TopKAlgorithm::vertical) {
      n = std::max<Int>(n, 64);
      const bool short_row = c.algorithm == TopKAlgorithm::maxima && n <= 512 && c.type.width <= 4;
      c.k = random.between(1, n / (short_row ? 8 : 16));
    } else {
      c.k = random_k(random, n);
    }
    const Int rows = random.between(1, std::max<Int>(1, std::min<Int>(20, 3000 / n)));
    if (c.algorithm == TopKAlgorithm::vertical) {
      if (random.chance(0.7)) c.strides = Strides::packed;
      c.sizes = {random.between(1, 2), n, random.between(64 / c.type.width, 200 / c.type.width)};
      c.axis = 1;
    } else if (random.chance(0.7)) {
      c.sizes = {rows, n};
      c.axis = 1;
    } else {
      c.sizes = {n, rows};
      c.axis = 0;
    }
    EXPECT(c.k == 0 || c.algorithm == TopKAlgorithm::rank ||
               c.algorithm == TopKAlgorithm::vertical ||
               top_k::applicable(c.algorithm, n, c.k, c.type.width),
           "algorithm %d n %lld k %lld", static_cast<int>(c.algorithm), n, c.k);
    check(random, c);
  }
}

// What the plan chooses by itself around the thresholds, and calls that are worth threads.
void chosen_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    Case c = random_case(random);
    c.threads = any_threads(random);
    const bool packed = random.chance(0.7);
    c.strides = packed ? Strides::packed : Strides::any;
    const Int n =
        random.between(0, 2) == 0 ? random.between(16000, 17000) : random.between(50, 6000);
    const Int rows = random.between(1, std::max<Int>(1, 40000 / n));
    c.k = std::max<Int>(1, random_k(random, n));
    if (random.chance(0.6)) {
      c.sizes = {rows, n};
      c.axis = 1;
    } else {
      c.sizes = {n, rows};
      c.axis = 0;
    }
    check(random, c);
  }
}

// Rows that several threads share, every algorithm of long rows.
void large_cases(Random& random) {
  struct Shape {
    Int n, k;
    TopKAlgorithm algorithm;
  };
  const Shape shapes[] = {
      {3000000, 100, TopKAlgorithm::automatic}, {1500000, 20000, TopKAlgorithm::automatic},
      {1100000, 300000, TopKAlgorithm::sample}, {300000, 290000, TopKAlgorithm::automatic},
      {200000, 200000, TopKAlgorithm::sort},    {2200000, 1100000, TopKAlgorithm::automatic},
      {400000, 100000, TopKAlgorithm::wide},
  };
  int turn = 0;
  for (const Shape& shape : shapes) {
    for (int i = 0; i < (short_run ? 1 : 3); ++i) {
      Case c = random_case(random);
      c.type = kTypes[(turn * 5 + i * 4) % 12];
      c.fill = static_cast<Fill>((turn + i * 3) % static_cast<int>(Fill::count_));
      c.strides = Strides::packed;
      c.threads = 2 + i;
      c.sizes = {shape.n};
      if (short_run) c.sizes[0] /= 8;
      c.axis = 0;
      c.k = short_run ? shape.k / 8 : shape.k;
      c.algorithm = shape.algorithm;
      c.gaps = false;
      if (has_turn()) check(random, c);
      ++turn;
    }
  }
  // Radix passes whose targets lie in the same sets of the cache, in each number of threads.
  for (const Int n : {Int{8192}, Int{65536}, Int{1} << 18}) {
    for (int i = 0; i < 4; ++i) {
      Case c = random_case(random);
      c.type = kTypes[i < 2 ? 5 : 6];
      c.fill = i % 2 == 0 ? Fill::ascending : Fill::descending;
      c.strides = Strides::packed;
      c.threads = i % 2 == 0 ? kMinThreads : 3;
      c.sizes = {n};
      c.axis = 0;
      c.k = n;
      c.algorithm = TopKAlgorithm::sort;
      c.gaps = false;
      if (has_turn()) check(random, c);
    }
  }
  // Neighbouring rows of more than are read at once.
  Case strided_case = random_case(random);
  strided_case.type = kTypes[6];
  strided_case.fill = Fill::bits;
  strided_case.strides = Strides::packed;
  strided_case.threads = 1;
  strided_case.sizes = {66000, 8};
  strided_case.axis = 0;
  strided_case.k = 3;
  strided_case.algorithm = TopKAlgorithm::vertical;
  strided_case.gaps = false;
  if (has_turn()) check(random, strided_case);
  // Many rows, a strided long row, a tall matrix along its first axis.
  const std::vector<Int> sizes[] = {{300, 2000}, {150000, 2}, {20000, 40}, {2, 400000}};
  for (const auto& own_sizes : sizes) {
    for (int axis = 0; axis < 2; ++axis) {
      Case c = random_case(random);
      c.strides = Strides::packed;
      c.threads = 3;
      c.sizes = own_sizes;
      if (short_run) c.sizes[own_sizes[0] > own_sizes[1] ? 0 : 1] /= 8;
      c.axis = axis;
      c.k = std::min<Int>(c.sizes[static_cast<std::size_t>(axis)], 10);
      if (has_turn()) check(random, c);
    }
  }
}

// Sorts through buckets: every type and fill, k from few to all, in each number of threads.
void bucket_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    Case c = random_case(random);
    c.type = kTypes[i % 12];
    c.fill = static_cast<Fill>(i / 12 % static_cast<int>(Fill::count_));
    c.algorithm = random.chance(0.5) ? TopKAlgorithm::sort : TopKAlgorithm::sample;
    const Int n = random.between(32000, random.chance(0.3) ? 140000 : 40000);
    c.sizes = {random.chance(0.3) ? 2 : 1, n};
    c.axis = 1;
    c.k = random.chance(0.4) ? n - random.between(0, 3) : random.between(1, n);
    check(random, c);
  }
}

// Candidates as many as are ranked, and one more; rows that are packed by threes, a byte more than
// lines; equal elements of the least key; too few neighbouring rows for a vector of them.
void limits(Random& random) {
  struct Limit {
    std::vector<Int> sizes;
    Int k;
    int type;
    TopKAlgorithm algorithm;
  };
  const TopKAlgorithm maxima = TopKAlgorithm::maxima, vertical = TopKAlgorithm::vertical,
                      threshold = TopKAlgorithm::threshold, sample = TopKAlgorithm::sample;
  for (const Limit& limit : {
           Limit{{4000}, 160, 5, maxima},
           {{4000}, 161, 1, maxima},
           {{1000}, 160, 4, threshold},
           {{1000}, 161, 6, threshold},
           {{5000}, 160, 5, sample},
           {{5000}, 161, 2, sample},
           {{12011, 3}, 3000, 3, threshold},
           {{100}, 6, 5, maxima},
           {{100}, 6, 4, maxima},
           {{200, 63}, 3, 7, vertical},
           {{200, 31}, 3, 8, vertical},
           {{200, 15}, 3, 9, vertical},
           {{200, 7}, 3, 10, vertical},
       }) {
    Case c = random_case(random);
    c.type = kTypes[limit.type];
    c.fill = limit.sizes[0] == 100 ? Fill::smallest : Fill::bits;
    c.strides = Strides::packed;
    c.threads = limit.k == 161 ? 0 : 1;  // the fewest possible
    c.largest = true;
    c.sizes = limit.sizes;
    c.axis = 0;
    c.k = limit.k;
    c.algorithm = limit.algorithm;
    check(random, c);
  }
  // Scratch grows with threads, not with rows.
  Case c = random_case(random);
  for (const bool side_by_side : {false, true}) {
    c.type = kTypes[7];
    c.strides = Strides::packed;
    c.threads = kMinThreads;
    c.sizes = {1, 400, 512};
    if (!side_by_side) std::swap(c.sizes[1], c.sizes[2]);
    c.axis = side_by_side ? 1 : 2;
    c.k = side_by_side ? 20 : 200;
    c.algorithm = side_by_side ? TopKAlgorithm::vertical : TopKAlgorithm::threshold;
    pool_peak();
    check(random, c);
    const std::size_t bytes = pool_peak();
    EXPECT(bytes < 1 << 18, "%zu bytes", bytes);
  }
  c.sizes = {100000};
  c.axis = 0;
  c.algorithm = TopKAlgorithm::maxima;
  pool_peak();
  check(random, c);
  const std::size_t bytes = pool_peak();
  EXPECT(bytes < 1 << 18, "%zu bytes", bytes);
}

// An adversarial row for the sample: all sampled elements are great, all others small.
void misleading_samples(Random& random) {
  for (const Int n : {Int{20000}, Int{200000}}) {
    const Type type = kTypes[5];  // int32
    for (int round = 0; round < 4; ++round) {
      Buffer input(random, {n}, 4, Strides::packed, Role::input, type.type);
      for (Int i = 0; i < n; ++i) input.set<int>(i, static_cast<int>(random.between(0, 100)));
      for (Int i = 0; i < top_k::kSample; ++i)
        if (round < 2 || i % 2 == 0)
          input.set<int>(top_k::sample_position(i, n), 1000000 + static_cast<int>(i));
      const Int k = round == 0 ? n / 2 : round == 1 ? n / 10 : round == 2 ? n / 4 : 100;
      Buffer values(random, {k}, 4, Strides::packed, Role::output, type.type);
      Buffer indices(random, {k}, 8, Strides::packed, Role::output, DataType::int64);
      const TopKPlan plan{input.tensor, values.tensor, indices.tensor, 0, k, true};
      top_k::run(plan, input.data(), values.data(), indices.data(), 3, TopKAlgorithm::sample);
      std::vector<Int> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), Int{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](Int a, Int b) { return input.get<int>(a) > input.get<int>(b); });
      for (Int j = 0; j < k; ++j)
        EXPECT(indices.get<Int>(j) == order[static_cast<std::size_t>(j)], "misled at rank %lld", j);
      ++passed;
    }
  }
}

// Keys of 8 bytes whose upper halves are the same from the k-th on, in the opposite order: the last
// one that is wanted begins a run which the first sort leaves in order of position.
void runs_at_the_end(Random& random) {
  const Type type = kTypes[6];  // int64
  for (const Int n : {Int{1000}, Int{40000}, Int{140000}}) {
    for (const Int k : {Int{1}, Int{2}, Int{100}, n / 3, n - 20}) {
      for (const bool largest : {true, false}) {
        Buffer input(random, {n}, 8, Strides::packed, Role::input, type.type);
        for (Int rank = 0; rank < n; ++rank) {
          const bool in_run = rank >= k - 1 && rank < k + 9;
          const Int upper = 2 * n - (in_run ? k - 1 : rank), lower = in_run ? k + 9 - rank : 0;
          const Int value = (upper << 33) + lower;
          input.set<Int>(n - 1 - rank, largest ? value : -value);
        }
        Buffer values(random, {k}, 8, Strides::packed, Role::output, type.type);
        Buffer indices(random, {k}, 8, Strides::packed, Role::output, DataType::int64);
        const TopKPlan plan{input.tensor, values.tensor, indices.tensor, 0, k, largest};
        const int threads = n == 40000 ? 3 : 1;
        top_k::run(plan, input.data(), values.data(), indices.data(), threads, TopKAlgorithm::sort);
        for (Int j = 0; j < k; ++j)
          EXPECT(indices.get<Int>(j) == n - 1 - j, "a run at the end: n %lld k %lld rank %lld", n,
                 k, j);
        ++passed;
      }
    }
  }
}

}  // namespace

int main() {
  short_run = std::getenv("ANYDML_TEST_SHORT") != nullptr;
  const char* const seed = std::getenv("ANYDML_TEST_SEED");
  Random random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 20240607);
  const int scale = short_run ? 10 : 1;
  small_cases(random, 12000 / scale);
  forced_cases(random, 7000 / scale);
  chosen_cases(random, 800 / scale);
  bucket_cases(random, 352 / scale);
  large_cases(random);
  limits(random);
  misleading_samples(random);
  runs_at_the_end(random);
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
