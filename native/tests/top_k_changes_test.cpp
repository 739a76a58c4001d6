// TOP_K while its input changes: another thread's writes may change values, and nothing else. Every
// output element is written, every index lies on the axis, no access is out of bounds.
//
// The kernels call a hook before every read of the input (ANYDML_TEST_READS). Here it counts how
// often each element is read and changes it from the n-th reading on, as a thread could do at the
// worst moment.
#include <atomic>
#include <memory>
#include <string>

#include "harness.hpp"
#include "top_k/cpu/top_k_row.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

struct Type {
  DataType type;
  int width;
  bool is_float;
};

constexpr Type kTypes[] = {
    {DataType::float16, 2, true}, {DataType::float32, 4, true}, {DataType::float64, 8, true},
    {DataType::int8, 1, false},   {DataType::int16, 2, false},  {DataType::int32, 4, false},
    {DataType::int64, 8, false},  {DataType::uint8, 1, false},  {DataType::uint16, 2, false},
    {DataType::uint32, 4, false}, {DataType::uint64, 8, false}, {DataType::bfloat16, 2, true},
};
constexpr int kTypeCount = 12;

enum class Fill { random, zeros, ones, nan, ascending, descending, small, count_ };

// A pseudo-random number that depends only on the element and the reading.
uint64_t mixed(uint64_t seed, Int element, Int reading) {
  uint64_t x = seed + static_cast<uint64_t>(element) * 0x9E3779B97F4A7C15ull +
               static_cast<uint64_t>(reading) * 0xD1B54A32D192ED03ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

uint64_t filled(Fill fill, const Type& type, uint64_t seed, Int element, Int reading) {
  const int bits = 8 * type.width;
  const uint64_t all = ~0ull >> (64 - bits);
  switch (fill) {
    case Fill::zeros:
      return 0;
    case Fill::ones:
      return all;
    case Fill::nan:  // of integers the greatest signed one
      return all >> 1;
    case Fill::ascending:
      return static_cast<uint64_t>(element) & all >> 1;
    case Fill::descending:
      return (all >> 2) - (static_cast<uint64_t>(element) & all >> 2);
    case Fill::small:
      return mixed(seed, element, reading) & 3;
    default:
      return mixed(seed, element, reading) & all;
  }
}

// The input of a call, and its changes.
struct Changing {
  Type type;
  Fill before, after;
  uint64_t seed;
  Int from;    // the reading from which on the value differs
  bool again;  // and differs again at each later reading
  Int elements;
  std::vector<char> memory;
  std::unique_ptr<std::atomic<unsigned char>[]> readings;

  uint64_t value(Int element, Int reading) const {
    if (reading < from) return filled(before, type, seed, element, 0);
    return filled(after, type, ~seed, element, again ? reading : from);
  }
  void set(Int element, uint64_t value) {
    std::memcpy(memory.data() + element * type.width, &value, static_cast<std::size_t>(type.width));
  }
  void start() {
    memory.resize(static_cast<std::size_t>(elements * type.width));
    readings = std::make_unique<std::atomic<unsigned char>[]>(static_cast<std::size_t>(elements));
    for (Int i = 0; i < elements; ++i) set(i, value(i, 0));
  }
  void read(const char* at) {
    const Int offset = at - memory.data();
    if (offset < 0 || offset >= elements * type.width) return;  // a copy in scratch
    const Int element = offset / type.width;
    auto& count = readings[static_cast<std::size_t>(element)];
    const Int reading = count.load(std::memory_order_relaxed);
    if (reading < 200) count.store(static_cast<unsigned char>(reading + 1));
    if (reading == from || (again && reading > from)) set(element, value(element, reading));
  }
  bool had(Int element, uint64_t bits) const {
    const Int last = readings[static_cast<std::size_t>(element)].load();
    for (Int reading = 0; reading <= last; ++reading)
      if (value(element, reading) == bits) return true;
    return false;
  }
};

Changing* changing = nullptr;
Int passed = 0, changed = 0;

struct Case {
  std::vector<Int> sizes;
  int axis = 0;
  Int step = 1;  // of the last dimension, in elements
  Int k = 1;
  bool largest = true, wide_index = false;
  int threads = 1;
  TopKAlgorithm algorithm = TopKAlgorithm::automatic;
};

void check(Random& random, Changing& input, const Case& c) {
  const int rank = static_cast<int>(c.sizes.size()), width = input.type.width;
  const Int n = c.sizes[static_cast<std::size_t>(c.axis)];
  std::vector<Int> out_sizes = c.sizes;
  out_sizes[static_cast<std::size_t>(c.axis)] = c.k;
  Tensor source;
  source.type = input.type.type;
  source.element_size = width;
  for (const Int size : c.sizes) source.layout.push(size, 0);
  Int stride = c.step;
  for (int i = rank - 1; i >= 0; --i) {
    source.layout.strides[i] = stride * width;
    stride *= c.sizes[static_cast<std::size_t>(i)];
  }
  input.elements = stride;
  input.start();
  Buffer values(random, out_sizes, width, Strides::packed, Role::output, input.type.type);
  Buffer indices(random, out_sizes, c.wide_index ? 8 : 4, Strides::packed, Role::output,
                 c.wide_index ? DataType::uint64 : DataType::uint32);
  std::memset(values.data(), 0xA5, static_cast<std::size_t>(values.count() * width));
  std::memset(indices.data(), 0xFF,
              static_cast<std::size_t>(indices.count() * (c.wide_index ? 8 : 4)));
  values.remember();
  indices.remember();
  changing = &input;
  const TopKPlan plan{source, values.tensor, indices.tensor, c.axis, c.k, c.largest};
  top_k::run(plan, input.memory.data(), values.data(), indices.data(), c.threads, c.algorithm);
  changing = nullptr;

  std::string what = "algorithm " + std::to_string(static_cast<int>(c.algorithm)) + " type " +
                     std::to_string(static_cast<int>(input.type.type)) + " fills " +
                     std::to_string(static_cast<int>(input.before)) + " " +
                     std::to_string(static_cast<int>(input.after)) + " from reading " +
                     std::to_string(input.from) + " again " + std::to_string(input.again) + " k " +
                     std::to_string(c.k) + " axis " + std::to_string(c.axis) + " step " +
                     std::to_string(c.step) + " largest " + std::to_string(c.largest) +
                     " threads " + std::to_string(c.threads) + " sizes";
  for (const Int size : c.sizes) what += " " + std::to_string(size);
  EXPECT(values.gaps_intact() && indices.gaps_intact(), "%s", what.c_str());
  for (Int i = 0; i < input.elements; ++i) {
    if (input.readings[static_cast<std::size_t>(i)].load() <= input.from) continue;
    ++changed;
    break;
  }
  Int inner = 1;
  for (int i = c.axis + 1; i < rank; ++i) inner *= c.sizes[static_cast<std::size_t>(i)];
  for (Int flat = 0; flat < values.count(); ++flat) {
    const Int outer = flat / (c.k * inner), row = flat % inner;
    const uint64_t index = c.wide_index ? indices.get<uint64_t>(flat) : indices.get<uint32_t>(flat);
    EXPECT(index < static_cast<uint64_t>(n), "output %lld: index %llu of %lld; %s", flat,
           static_cast<unsigned long long>(index), n, what.c_str());
    uint64_t value = 0;
    std::memcpy(&value, values.at(flat), static_cast<std::size_t>(width));
    const Int element = ((outer * n + static_cast<Int>(index)) * inner + row) * c.step;
    // An 8-byte value may combine a key and the key that it was compared with before.
    EXPECT(width == 8 ? value != 0xA5A5A5A5A5A5A5A5ull : input.had(element, value),
           "output %lld: %llx is not what element %llu had; %s", flat,
           static_cast<unsigned long long>(value), static_cast<unsigned long long>(index),
           what.c_str());
  }
  ++passed;
}

Changing random_changes(Random& random, const Type& type, Int from) {
  Changing input;
  input.type = type;
  input.before = static_cast<Fill>(random.between(0, static_cast<int>(Fill::count_) - 1));
  if (random.chance(0.4)) input.before = Fill::random;
  input.after = static_cast<Fill>(random.between(0, static_cast<int>(Fill::count_) - 1));
  input.seed = random.bits();
  input.from = from;
  input.again = random.chance(0.3);
  return input;
}

constexpr int kThreads = 3;

// Each algorithm with each type, both directions, in each arrangement of rows.
void small_cases(Random& random, int rounds) {
  const TopKAlgorithm algorithms[] = {TopKAlgorithm::rank,      TopKAlgorithm::maxima,
                                      TopKAlgorithm::threshold, TopKAlgorithm::sample,
                                      TopKAlgorithm::sort,      TopKAlgorithm::vertical,
                                      TopKAlgorithm::wide,      TopKAlgorithm::automatic};
  for (int turn = 0; turn < rounds * 8 * kTypeCount * 2 * 4; ++turn) {
    const Type& type = kTypes[turn / 8 % kTypeCount];
    Case c;
    c.algorithm = algorithms[turn % 8];
    c.largest = turn / (8 * kTypeCount) % 2 == 0;
    Changing input = random_changes(random, type, 1 + turn / (8 * kTypeCount * 2) % 4);
    Int n = random.between(1, random.chance(0.5) ? 160 : 3000);
    if (c.algorithm == TopKAlgorithm::rank) n = random.between(1, top_k::kRankLimit);
    if (c.algorithm == TopKAlgorithm::sample) n = random.between(4096, 9000);
    c.k = random.between(1, n);
    if (c.algorithm == TopKAlgorithm::maxima || c.algorithm == TopKAlgorithm::vertical) {
      n = random.between(64, random.chance(0.5) ? 600 : 6000);
      c.k = random.between(1, n / 16);
    }
    const Int rows = random.between(1, std::max<Int>(1, std::min<Int>(20, 3000 / n)));
    if (c.algorithm == TopKAlgorithm::vertical) {
      c.sizes = {random.between(1, 2), n, random.between(64 / type.width, 140 / type.width)};
      c.axis = 1;
      c.k = std::min<Int>(c.k, 512);
    } else if (random.chance(0.6)) {
      c.sizes = {rows, n};
      c.axis = 1;
    } else {
      c.sizes = {n, rows};
    }
    if (random.chance(0.3)) c.step = random.between(2, 3);
    c.wide_index = random.chance(0.5);
    c.threads = random.chance(0.3) ? kThreads : 1;
    check(random, input, c);
  }
}

// Long rows: sorts through buckets, and rows that several threads share.
void long_cases(Random& random, int rounds) {
  struct Shape {
    Int n, k;
    TopKAlgorithm algorithm;
  };
  const Shape shapes[] = {
      {40000, 40000, TopKAlgorithm::sort},      {40000, 9000, TopKAlgorithm::sort},
      {50000, 36000, TopKAlgorithm::sample},    {60000, 26000, TopKAlgorithm::sample},
      {40000, 34000, TopKAlgorithm::threshold}, {20000, 1000, TopKAlgorithm::maxima},
  };
  for (int turn = 0; turn < rounds * 6 * kTypeCount * 6; ++turn) {
    const Shape& shape = shapes[turn % 6];
    Case c;
    c.algorithm = shape.algorithm;
    Changing input =
        random_changes(random, kTypes[turn / 6 % kTypeCount], 1 + turn / (6 * kTypeCount) % 6);
    c.sizes = {shape.n + random.between(0, 100)};
    c.k = shape.k + random.between(-100, 0);
    if (shape.k == shape.n) c.k = c.sizes[0] - random.between(0, 1);
    c.largest = random.chance(0.5);
    c.wide_index = random.chance(0.5);
    c.threads = random.chance(0.7) ? kThreads : 1;
    check(random, input, c);
  }
  // Buckets on one thread, and maxima by several.
  for (int turn = 0; turn < 2 * kTypeCount; ++turn) {
    for (const bool sorted : {false, true}) {
      Case c;
      c.algorithm = sorted ? TopKAlgorithm::sort : TopKAlgorithm::maxima;
      Changing input = random_changes(random, kTypes[turn % kTypeCount], 1 + turn / kTypeCount);
      c.sizes = {sorted ? 135000 : 330000};
      c.k = sorted ? random.between(1000, 135000) : 20000;
      c.largest = random.chance(0.5);
      c.threads = sorted ? 1 : kThreads;
      check(random, input, c);
    }
  }
}

// How often elements of an unchanged input are read: a bound that is too low or too high leads to
// more reads, and has no other symptom.
void work_cases(Random& random) {
  struct Limit {  // readings of an element, on average: of several bytes, of one
    double wide, narrow;
  };
  struct Shape {
    std::vector<Int> sizes;
    int axis;
    Int k;
    TopKAlgorithm algorithm;
    Limit random, equal, sorted;
  };
  const Shape shapes[] = {
      {{300, 500}, 1, 20, TopKAlgorithm::maxima, {1.05, 1.14}, {1.09, 1.09}, {1.09, 1.1}},
      {{10, 2000}, 1, 50, TopKAlgorithm::maxima, {2.04, 1.99}, {1.31, 1.31}, {1.58, 2.07}},
      {{20000}, 0, 20, TopKAlgorithm::maxima, {1.22, 0.75}, {1.03, 1.04}, {1.11, 1.37}},
      {{330000}, 0, 2000, TopKAlgorithm::maxima, {1.6, 1.91}, {1.05, 1.05}, {1.15, 1.96}},
      {{5000}, 0, 1000, TopKAlgorithm::threshold, {1.66, 1.46}, {1.61, 1.41}, {1.45, 1.45}},
      {{100000}, 0, 10000, TopKAlgorithm::sample, {1.41, 1.3}, {1.46, 1.46}, {1.32, 1.3}},
      {{8000}, 0, 6000, TopKAlgorithm::sort, {2.76, 2.01}, {2.76, 2.01}, {2.01, 2.01}},
      {{40000}, 0, 36000, TopKAlgorithm::sort, {3.91, 2.01}, {3.91, 2.01}, {3.01, 2.01}},
      {{2, 3000, 128}, 1, 20, TopKAlgorithm::vertical, {1.61, 1.92}, {1.14, 1.14}, {1.08, 1.14}},
      {{2, 1500}, 1, 10, TopKAlgorithm::wide, {9.02, 2.02}, {9.02, 2.02}, {9.02, 2.02}},
  };
  for (const Shape& shape : shapes)
    for (const Type& type : kTypes)
      for (const Fill fill : {Fill::random, Fill::nan, Fill::ascending, Fill::descending})
        for (const int threads : {1, kThreads}) {
          Case c;
          c.sizes = shape.sizes;
          c.axis = shape.axis;
          c.k = shape.k;
          c.algorithm = shape.algorithm;
          c.threads = threads;
          Changing input;
          input.type = type;
          input.before = input.after = fill;
          input.seed = random.bits();
          input.from = 255;  // never
          input.again = false;
          check(random, input, c);
          Int readings = 0;
          for (Int i = 0; i < input.elements; ++i)
            readings += input.readings[static_cast<std::size_t>(i)].load();
          const Limit& limit = fill == Fill::random ? shape.random
                               : fill == Fill::nan  ? shape.equal
                                                    : shape.sorted;
          const double mean = static_cast<double>(readings) / static_cast<double>(input.elements);
          EXPECT(mean <= (type.width == 1 ? limit.narrow : limit.wide) + 0.02,
                 "%lld of %lld elements of %d bytes, algorithm %d fill %d threads %d: read %.3f "
                 "times each",
                 shape.k, shape.sizes.back(), type.width, static_cast<int>(shape.algorithm),
                 static_cast<int>(fill), threads, mean);
        }
}

// The greatest key of the type in 32 lanes: nothing after them is read, and nothing before them
// twice. Without it, each element is read once and few of them again.
void early_ends() {
  constexpr Int n = 20000, k = 32, full = 256;
  using Order = IntegerOrder<4>;
  for (const int parts : {1, kThreads})
    for (const Int place : {Int{0}, Int{9984}, n}) {
      Changing input;
      input.type = {DataType::int32, 4, false};
      input.before = input.after = Fill::descending;
      input.seed = 1;
      input.from = 255;  // never
      input.again = false;
      input.elements = n;
      input.start();
      for (Int i = place; i < std::min(n, place + full); ++i) input.set(i, 0x7FFFFFFF);
      const top_k::RowShape shape(n, k, TopKAlgorithm::maxima, 4, parts);
      EXPECT(full == 2 * shape.chunk_elements(), "chunks of %lld", shape.chunk_elements());
      const Scratch<char> memory(shape.bytes());
      top_k::Workspace work;
      shape.place(memory.get(), &work);
      int values[k];
      uint32_t indices[k];
      const top_k::Output out{
          reinterpret_cast<char*>(values), 4, reinterpret_cast<char*>(indices), 4, false, false};
      changing = &input;
      top_k::RowSelector<Order>{shape, work}.run({input.memory.data(), 4, 0}, out);
      changing = nullptr;
      Int readings = 0;
      for (Int i = 0; i < n; ++i) readings += input.readings[static_cast<std::size_t>(i)].load();
      const double mean = static_cast<double>(readings) / static_cast<double>(n);
      for (Int i = 0; i < k; ++i)
        EXPECT(indices[i] == (place == n ? 0 : place) + i, "rank %lld: %u", i, indices[i]);
      EXPECT(mean <= (place == 0                ? 0.03
                      : place < n && parts == 1 ? 0.55
                                                : 1.1),
             "%d parts, from %lld on: each read %.3f times", parts, place, mean);
      ++passed;
    }
}

}  // namespace

namespace anydml::top_k {
void before_reading(const void* from, Int stride, Int count, int);
}
void anydml::top_k::before_reading(const void* from, Int stride, Int count, int) {
  if (changing == nullptr) return;
  for (Int i = 0; i < count; ++i) changing->read(static_cast<const char*>(from) + i * stride);
}

int main() {
  const bool short_run = std::getenv("ANYDML_TEST_SHORT") != nullptr;
  const char* const seed = std::getenv("ANYDML_TEST_SEED");
  Random random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 20261121);
  small_cases(random, short_run ? 1 : 6);
  long_cases(random, short_run ? 1 : 3);
  EXPECT(changed > passed / 4, "%lld of %lld cases saw a change", changed, passed);
  work_cases(random);
  early_ends();
  std::printf("%lld passed, 0 failed; the input changed in %lld\n", passed, changed);
  return 0;
}
