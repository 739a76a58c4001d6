// TOP_K on a GPU against the CPU's, every byte of the outputs and around them:
//   top_k_test [seed] [seconds] [type]    generated cases
//   top_k_test wide                       an axis of more than 2^32 elements
//   top_k_test time [words]               the cases of the targets, or those with words in them
//   top_k_test warm FIRST STEP            compiles every STEP-th variant, for several processes
// The environment variable ANYDML_TEST_CACHE names a folder for compiled kernels.
#include <chrono>

#include "runtime/cuda/compiler.hpp"
#include "runtime/cuda/plans.hpp"
#include "top_k_cases.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0, failed = 0;

void compare(const std::vector<unsigned char>& expected, const std::vector<unsigned char>& got,
             const Operand& operand, const char* what, const Case& c) {
  if (expected == got) return;
  for (std::size_t at = 0; at < expected.size(); ++at) {
    if (expected[at] == got[at]) continue;
    std::printf("%s: %s differ at byte %lld from the first element: %d, not %d\n",
                c.words().c_str(), what, static_cast<Int>(at) - operand.origin, got[at],
                expected[at]);
    std::fflush(stdout);
    if (++failed >= 20) std::exit(1);
    return;
  }
}

void check(cuda::Device& device, Operands& operands, const Case& c) {
  const DeviceMemory input(operands.input.bytes.data(), operands.input.bytes.size());
  const DeviceMemory values(operands.values.bytes.data(), operands.values.bytes.size());
  const DeviceMemory indices(operands.indices.bytes.data(), operands.indices.bytes.size());
  const DeviceMemory lengths(operands.lengths.data(), operands.lengths.size() * sizeof(Int));
  {
    cuda::Queue queue(device, nullptr);
    cuda::top_k(operands.plan, input.data() + operands.input.origin,
                values.data() + operands.values.origin, indices.data() + operands.indices.origin,
                queue, operands.lengths.empty() ? nullptr : lengths.data());
  }
  operands.plan.run(operands.input.data(), operands.values.data(), operands.indices.data(), 4,
                    operands.lengths_data());
  std::vector<unsigned char> got(operands.values.bytes.size());
  values.read(got.data());
  compare(operands.values.bytes, got, operands.values, "values", c);
  got.resize(operands.indices.bytes.size());
  indices.read(got.data());
  compare(operands.indices.bytes, got, operands.indices, "indices", c);
  ++passed;
}

void check(cuda::Device& device, Random& random, const Case& c) {
  Operands operands(random, c);
  check(device, operands, c);
}

// The places that a block samples of n elements that begin at a multiple of 16 bytes.
std::vector<Int> sampled_places(Int n, int width, uint32_t salt) {
  const Int vector = 16 / width, vectors = n / vector,
            sampled_per_vector = std::min<Int>(vector, 4);
  std::vector<Int> places;
  for (Int stratum = 0; stratum < 512; ++stratum) {
    const Int begin = stratum * vectors / 512, size = (stratum + 1) * vectors / 512 - begin;
    uint32_t x = static_cast<uint32_t>(stratum) + salt;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    const Int at = begin + (static_cast<Int>(x) * size >> 32);
    for (Int i = 0; size > 0 && i < sampled_per_vector; ++i) places.push_back(at * vector + i);
  }
  return places;
}

// Adversarial rows for the sample of top_k_select, so that the bound is far too low or too high.
void fool(cuda::Device& device, Random& random, const Type& type) {
  constexpr Int kRows = 140;
  for (int way = 0; way < 6; ++way) {
    Case c{{kRows, 50000}, 1, way % 2 == 0 ? 50 : 900, true, &type};
    c.fill = way < 4 ? Fill::random : Fill::ascending;
    Operands operands(random, c);
    operands.input.origin = 64;
    operands.input.set(type, c.fill, 1, random.bits());
    const uint64_t value = bits_of(type, way == 2 || way == 3 ? 3.9 : -3.9);
    for (Int row = 0; row < kRows; ++row)
      for (const uint32_t salt : {0u, 0x5A5A5A5Au}) {
        if (salt != 0 && way < 2) continue;
        for (const Int place :
             sampled_places(50000, type.width, static_cast<uint32_t>(row) * 7919u ^ salt))
          std::memcpy(operands.input.data() + (row * 50000 + place) * type.width, &value,
                      static_cast<std::size_t>(type.width));
      }
    check(device, operands, c);
  }
}

Case random_case(Random& random, const Type& type) {
  Case c{{}, 0, 1, random.chance(0.5), &type};
  c.fill = static_cast<Fill>(random.between(0, static_cast<Int>(Fill::count_) - 1));
  const DataType indices[] = {DataType::uint32, DataType::uint64, DataType::int64, DataType::int32};
  c.index = indices[random.between(0, 3)];
  c.sorted = random.chance(0.7);
  c.nan_last = random.chance(0.3);
  c.last_first = random.chance(0.3);
  c.lengths = random.chance(0.3);
  c.strides = random_strides(random);
  constexpr Int kMax = 300000;
  Int n = 1, rows = 1;
  const Int kind = random.between(0, 9);
  if (kind <= 1) {
    n = random.between(1, 32), rows = random.between(1, 700);
  } else if (kind <= 3) {
    n = random.between(33, 128), rows = random.between(1, 300);
  } else if (kind <= 5) {
    n = random.between(129, 8300), rows = random.between(1, 40);
  } else if (kind <= 7) {
    n = random.between(8000, 70000), rows = random.between(1, random.chance(0.3) ? 40 : 5);
  } else if (kind == 8) {
    n = random.between(65000, 280000);
  } else {
    n = random.between(1, 3000), rows = random.between(1, 3000);
  }
  rows = std::max<Int>(std::min(rows, kMax / n), 1);
  c.k = random.chance(0.5)   ? random.between(1, std::min<Int>(n, 40))
        : random.chance(0.5) ? random.between(1, std::min<Int>(n, 9000))
        : random.chance(0.2) ? n
                             : random.between(1, n);
  // The rows in some dimensions, mostly few.
  const Int dimensions = random.chance(0.3) ? 1 : random.between(1, random.chance(0.2) ? 7 : 3);
  for (Int i = 1; i < dimensions; ++i) {
    const Int size = random.between(1, std::min<Int>(rows, i == 1 ? rows : 4));
    c.sizes.push_back(size);
    rows = std::max<Int>(rows / size, 1);
  }
  c.sizes.push_back(rows);
  c.axis = static_cast<int>(random.chance(0.6) ? c.sizes.size()
                                               : random.between(0, Int(c.sizes.size())));
  c.sizes.insert(c.sizes.begin() + c.axis, n);
  return c;
}

void generated(cuda::Device& device, uint64_t seed, double seconds, int only) {
  const auto begin = std::chrono::steady_clock::now();
  Random random(seed);
  int number = 0;
  for (const Type& type : kTypes) {
    if (only >= 0 && only != number++) continue;
    if (shortening() == 0) fool(device, random, type);
    // Equals of the k-th key in several blocks.
    for (const Fill fill : {Fill::few_values, Fill::repeated})
      for (const Int k : {1000, 1982})
        for (const Int n : {Int{204186}, Int{1} << 22}) {
          if (n > 300000 && shortening() > 0) continue;
          Case c{{n}, 0, k, k == 1000, &type};
          c.fill = fill;
          check(device, random, c);
        }
    for (const bool largest : {true, false})
      for (int fill = 0; fill < static_cast<int>(Fill::count_); fill += cases(1, 6)) {
        const auto at = [&](std::vector<Int> sizes, int axis, Int k) {
          Case c{std::move(sizes), axis, k, largest, &type};
          c.fill = static_cast<Fill>(fill);
          check(device, random, c);
          c.sorted = random.chance(0.5);
          c.nan_last = random.chance(0.5);
          c.last_first = random.chance(0.5);
          c.lengths = random.chance(0.5);
          check(device, random, c);
        };
        at({300, 9}, 1, 2);
        at({100, 128}, 1, 8);
        at({20, 1000}, 1, 10);
        at({8, 4096}, 1, 200);
        at({3, 30000}, 1, 64);
        at({2, 150000}, 1, 500);
        at({2, 150000}, 1, 100);
        at({40000}, 0, 4096);
        at({140, 20000}, 1, 3000);
        at({3, 100000}, 1, 8192);
        at({1, 120000}, 1, 60000);
        at({1, 120000}, 1, 9000);
        at({5000, 40}, 0, 7);
        at({2, 300, 33}, 1, 20);
        if (shortening() == 0) at({300, 9001}, 1, 20);
      }
  }
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds)
    check(device, random, random_case(random, kTypes[only >= 0 ? only : random.between(0, 10)]));
  std::printf("%lld cases, seed %llu type %d\n", passed, static_cast<unsigned long long>(seed),
              only);
}

// An axis whose places need more than 32 bits.
void wide(cuda::Device& device) {
  Random random(1);
  for (const Int k : {10, 20000}) {
    Case c{{(Int{1} << 32) + 5000}, 0, k, k == 10, &kTypes[3]};
    check(device, random, c);
    std::printf("%s\n", c.words().c_str());
    std::fflush(stdout);
  }
}

void timed(cuda::Device& device, const char* filter) {
  Timer timer;
  const double rate = copy_rate(timer);
  std::printf("copy %.2f TB/s\n", rate / 1e9);
  const Type &f32 = kTypes[0], &f16 = kTypes[1], &i8 = kTypes[3];
  const Case cases[] = {
      {{1024, 50257}, 1, 50, true, &f32},  {{1024, 131072}, 1, 50, true, &f32},
      {{16, 1 << 20}, 1, 100, true, &f32}, {{1 << 24}, 0, 100, true, &f32},
      {{1024, 50257}, 1, 50, true, &f16},  {{65536, 128}, 1, 8, true, &f32},
      {{8192, 128}, 1, 8, true, &f32},     {{64, 4096}, 1, 8, true, &f32},
      {{4096, 4096}, 1, 8, true, &f32},    {{50000, 64}, 0, 10, true, &f32},
      {{256, 65536}, 1, 1024, true, &f32}, {{4, 1 << 20}, 1, 1000, true, &f32},
      {{1 << 20}, 0, 1 << 19, true, &f32}, {{1 << 24}, 0, 100, true, &i8},
      {{1 << 24}, 0, 20000, true, &f32},   {{65536, 8}, 1, 2, true, &f32},
      {{10000, 1000}, 1, 500, true, &f32}, {{1024, 50257}, 1, 50, false, &f32},
  };
  Random random(1);
  for (const Case& base : cases) {
    double usual = 0;
    for (int fill = 0; fill <= static_cast<int>(Fill::hot); ++fill) {
      Case c = base;
      c.fill = static_cast<Fill>(fill);
      if (filter != nullptr && c.words().find(filter) == std::string::npos) continue;
      Operands operands(random, c);
      // Rows as an allocator gives them.
      operands.input.origin = 0;
      operands.input.set(*c.type, c.fill, c.axis, random.bits());
      const DeviceMemory input(operands.input.bytes.data(), operands.input.bytes.size());
      const DeviceMemory values(operands.values.bytes.data(), operands.values.bytes.size());
      const DeviceMemory indices(operands.indices.bytes.data(), operands.indices.bytes.size());
      const auto run = [&] {
        cuda::Queue queue(device, nullptr);
        cuda::top_k(operands.plan, input.data() + operands.input.origin,
                    values.data() + operands.values.origin,
                    indices.data() + operands.indices.origin, queue);
      };
      run();
      operands.plan.run(operands.input.data(), operands.values.data(), operands.indices.data(), 16);
      std::vector<unsigned char> got(operands.values.bytes.size());
      values.read(got.data());
      compare(operands.values.bytes, got, operands.values, "values", c);
      got.resize(operands.indices.bytes.size());
      indices.read(got.data());
      compare(operands.indices.bytes, got, operands.indices, "indices", c);
      const double ms = timer.median(11, run);
      const double bytes =
          static_cast<double>(operands.plan.input.layout.count() * c.type->width) +
          static_cast<double>(operands.plan.values.layout.count() * (c.type->width + 8));
      if (fill == 0) usual = ms;
      std::printf("%-60s %8.4f ms  %5.1f %% of the copy  %4.2f of random\n", c.words().c_str(), ms,
                  100 * bytes / ms / rate, usual > 0 ? ms / usual : 0.0);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* const cache = std::getenv("ANYDML_TEST_CACHE"))
    cuda::compiler_places().cache = cache;
  cuda::Device& device = cuda::device_at(0);
  if (argc > 1 && std::string(argv[1]) == "warm") {  // some of the variants, for several processes
    const std::vector<cuda::Variant> variants = cuda::top_k_variants();
    const std::size_t step = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    for (std::size_t i = std::strtoull(argv[2], nullptr, 10); i < variants.size(); i += step)
      device.warm(variants[i]);
    return 0;
  }
  cuda::Queue queue(device, nullptr);  // makes the context current for the test itself
  if (argc > 1 && std::string(argv[1]) == "wide") {
    wide(device);
    return failed > 0;
  }
  if (argc > 1 && std::string(argv[1]) == "time") {
    timed(device, argc > 2 ? argv[2] : nullptr);
    return failed > 0;
  }
  generated(device, argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1,
            argc > 2 ? std::strtod(argv[2], nullptr) : 20, argc > 3 ? std::atoi(argv[3]) : -1);
  return failed > 0;
}
