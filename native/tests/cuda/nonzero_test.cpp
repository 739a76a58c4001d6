// NONZERO_COORDINATES on the GPU against the CPU's kernels, every byte of count and rows.
#include <cstring>

#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;

struct Kind {
  DataType type;
  int size;
};
constexpr Kind kKinds[] = {
    {DataType::float16, 2},  {DataType::float32, 4}, {DataType::float64, 8}, {DataType::uint8, 1},
    {DataType::int8, 1},     {DataType::int16, 2},   {DataType::uint16, 2},  {DataType::int32, 4},
    {DataType::uint32, 4},   {DataType::int64, 8},   {DataType::uint64, 8},  {DataType::unknown, 1},
    {DataType::bfloat16, 2},
};

enum class Pattern { random, runs, alternating, none, all, first, last, bytes };
constexpr Pattern kPatterns[] = {Pattern::random, Pattern::runs, Pattern::alternating,
                                 Pattern::none,   Pattern::all,  Pattern::first,
                                 Pattern::last,   Pattern::bytes};

// Zeros of both signs; other elements of one bit, of all bits (a NaN), or random.
void put(Random& random, const Kind& kind, char* element, bool set) {
  uint64_t bits = 0;
  if (set) {
    const uint64_t choice = random.bits();
    bits = choice % 4 == 0   ? uint64_t{1} << (choice / 4 % static_cast<uint64_t>(8 * kind.size))
           : choice % 4 == 1 ? ~uint64_t{0}
                             : random.bits();
  } else if (is_float_type(kind.type) && random.chance(0.5)) {
    bits = uint64_t{1} << (8 * kind.size - 1);
  }
  std::memcpy(element, &bits, static_cast<std::size_t>(kind.size));
}

void fill(Random& random, const Kind& kind, Operand& operand, Pattern pattern) {
  if (pattern == Pattern::bytes) return;  // as they are: nearly all are set
  const Int count = operand.count();
  const double density = random.chance(0.5) ? 0.02 : random.chance(0.5) ? 0.5 : 0.9;
  bool run = random.chance(0.5);
  Int left = 0;
  for (Int i = 0; i < count; ++i) {
    if (pattern == Pattern::runs && left-- == 0) {
      run = !run;
      left = random.between(1, random.chance(0.2) ? 3000 : 70);
    }
    const bool set = pattern == Pattern::random        ? random.chance(density)
                     : pattern == Pattern::runs        ? run
                     : pattern == Pattern::alternating ? i % 2 == 0
                     : pattern == Pattern::all         ? true
                     : pattern == Pattern::first       ? i == 0
                     : pattern == Pattern::last        ? i == count - 1
                                                       : false;
    put(random, kind, operand.at(i), set);
  }
}

void check(Random& random, const Kind& kind, const std::vector<Int>& sizes, Strides strides,
           Pattern pattern, Strides row_strides) {
  Operand input(random, sizes, kind.size, kind.type, strides, Role::input);
  fill(random, kind, input, pattern);
  const int rank = static_cast<int>(sizes.size());
  NonzeroPlan plan;
  plan.input = input.tensor;
  plan.columns = static_cast<int>(random.chance(0.7) ? rank : random.between(0, rank));
  const NonzeroPlan::Found found = plan.scan(input.host(), 1);
  const int size = random.chance(0.5) ? 8 : 4;
  const DataType type = size == 8 ? DataType::uint64 : DataType::uint32;
  // Spare rows, which must stay unchanged; or too few rows, where the rest is left out.
  const Int limit =
      random.chance(0.85) ? found.count + random.between(0, 3) : random.between(0, found.count);
  Operand rows(random, {limit, plan.columns}, size, type, row_strides, Role::output);
  Operand count(random, {1}, 12 - size, DataType::unknown, Strides::packed, Role::output);
  input.on_gpu();
  rows.on_gpu();
  count.on_gpu();
  const Tensor packed = packed_tensor(type, size, {found.count, plan.columns});
  std::vector<unsigned char> all(static_cast<std::size_t>(packed.layout.count() * size));
  plan.write(found, packed, all.data(), 1);
  for (Int i = 0; i < std::min(rows.count(), packed.layout.count()); ++i)
    std::memcpy(rows.at(i), all.data() + i * size, static_cast<std::size_t>(size));
  const Int number = found.count;
  std::memcpy(count.host(), &number, static_cast<std::size_t>(12 - size));
  on_device([&](cuda::Queue& queue) {
    const cuda::NonzeroFound found_on_device = cuda::nonzero_scan(plan, input.on_gpu(), queue);
    cuda::nonzero_write(plan, found_on_device, limit, rows.tensor, rows.on_gpu(), queue);
    cuda::nonzero_count(found_on_device, count.tensor, count.on_gpu(), queue);
  });
  const std::string what = "nonzero " + input.text() + " pattern " +
                           std::to_string(static_cast<int>(pattern)) + " rows " + rows.text();
  outcome.expect(rows, what);
  outcome.expect(count, what + " count");
  outcome.expect(input, what + " input");
}

void check_all() {
  Random random(21);
  for (const Kind& kind : kKinds)
    for (Pattern pattern : kPatterns) {
      for (int n = 0; n < cases(10, 1); ++n) {
        const Int limit = random.chance(0.3) ? 40000 : 600;
        check(random, kind, random_sizes(random, 5, limit), random_strides(random), pattern,
              random.chance(0.6) ? Strides::packed : random_strides(random));
      }
      // Ends of words, lines, slices, granules and blocks.
      for (Int size : {1, 31, 33, 1023, 1025, 8191, 8192, 8193, 32769, 100001})
        check(random, kind, {size}, Strides::packed, pattern, Strides::packed);
    }
  if (shortening() > 0) return;
  // Several groups of granules; high ranks; long and short innermost dimensions.
  const Kind bytes{DataType::uint8, 1}, floats{DataType::float32, 4};
  for (Pattern pattern : {Pattern::random, Pattern::runs, Pattern::all, Pattern::last})
    for (const std::vector<Int>& sizes : {std::vector<Int>{3000, 7001},
                                          {21000000},
                                          {9, 1100, 700, 3},
                                          {2, 3, 2, 3, 2, 3, 700, 5}}) {
      check(random, bytes, sizes, Strides::packed, pattern, Strides::packed);
      if (sizes.size() > 1) check(random, floats, sizes, Strides::any, pattern, Strides::packed);
    }
  std::vector<Int> many(40, 1);
  for (int i = 0; i < 40; i += 3) many[static_cast<std::size_t>(i)] = 2;
  for (int n = 0; n < 6; ++n)
    check(random, floats, many, n < 3 ? Strides::packed : Strides::any, Pattern::random,
          Strides::packed);
}

// ---- times --------------------------------------------------------------------------------------

std::vector<unsigned char> block_of(Random& random, const Kind& kind, double density) {
  std::vector<unsigned char> block(std::size_t{64} << 20);
  for (std::size_t at = 0; at < block.size(); at += static_cast<std::size_t>(kind.size)) {
    const uint64_t bits = random.chance(density) ? random.bits() | 1 : 0;
    std::memcpy(block.data() + at, &bits, static_cast<std::size_t>(kind.size));
  }
  return block;
}

void time_case(Clock& clock, const std::string& name, const Kind& kind,
               const std::vector<Int>& sizes, const std::vector<unsigned char>& block, int row_size,
               bool transposed = false) {
  NonzeroPlan plan;
  plan.input = packed_tensor(kind.type, kind.size, sizes);
  if (transposed) std::swap(plan.input.layout.strides[0], plan.input.layout.strides[1]);
  plan.columns = static_cast<int>(sizes.size());
  const Int elements = plan.input.layout.count(), bytes = elements * kind.size;
  DeviceMemory input(static_cast<std::size_t>(bytes));
  repeat_on_device(input, bytes, block);
  Int count = 0;
  on_device([&](cuda::Queue& queue) {
    queue.read(&count, cuda::nonzero_scan(plan, input.get(), queue).count, sizeof count);
  });
  const Tensor rows = packed_tensor(row_size == 8 ? DataType::int64 : DataType::uint32, row_size,
                                    {count, plan.columns});
  const Int written_bytes = rows.layout.count() * row_size;
  DeviceMemory coordinates(static_cast<std::size_t>(written_bytes));
  const auto work = [&](cuda::Queue& queue) {
    const cuda::NonzeroFound found = cuda::nonzero_scan(plan, input.get(), queue);
    cuda::nonzero_write(plan, found, count, rows, coordinates.get(), queue);
  };
  clock.report(name, static_cast<double>(bytes + written_bytes), work);
  clock.report("    its scan", static_cast<double>(bytes),
               [&](cuda::Queue& queue) { cuda::nonzero_scan(plan, input.get(), queue); });
}

void time_all(const char* only) {
  Random random(22);
  Clock clock;
  clock.only = only;
  clock.copy_rate();
  const Kind floats{DataType::float32, 4}, bytes{DataType::uint8, 1};
  const std::vector<Int> square{16384, 16384};
  for (double density : {0.01, 0.5, 1.0}) {
    const auto block = block_of(random, floats, density);
    const std::string name = std::to_string(static_cast<int>(density * 100)) + " %";
    time_case(clock, "16384^2 float32 int64 rows " + name, floats, square, block, 8);
    time_case(clock, "16384^2 float32 uint32 rows " + name, floats, square, block, 4);
    time_case(clock, "4096^2 float32 int64 rows " + name, floats, {4096, 4096}, block, 8);
    if (density == 1.0) continue;
    time_case(clock, "16x64x512x512 float32 int64 rows " + name, floats, {16, 64, 512, 512}, block,
              8);
    time_case(clock, "256x1024x1024 float32 int64 rows " + name, floats, {256, 1024, 1024}, block,
              8);
    time_case(clock, "16384^2 transposed int64 rows " + name, floats, square, block, 8, true);
  }
  const auto sparse = block_of(random, floats, 0.0001);
  time_case(clock, "16384^2 float32 int64 rows, mostly zero", floats, square, sparse, 8);
  std::vector<unsigned char> hot(std::size_t{64} << 20);
  std::fill_n(hot.begin(), 65536, static_cast<unsigned char>(1));
  time_case(clock, "16384^2 float32 int64 rows, a hot row of 1024", floats, square, hot, 8);
  std::vector<unsigned char> half(std::size_t{64} << 20);
  std::fill_n(half.begin(), half.size() / 2, static_cast<unsigned char>(1));
  time_case(clock, "16384^2 float32 int64 rows, halves", floats, square, half, 8);
  const auto small = block_of(random, bytes, 0.5);
  time_case(clock, "16384^2 uint8 int64 rows 50 %", bytes, square, small, 8);
  time_case(clock, "16 float32 int64 rows", floats, {16}, sparse, 8);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    time_all(count > 2 ? arguments[2] : "");
    return 0;
  }
  check_all();
  return outcome.exit_status("nonzero");
}
