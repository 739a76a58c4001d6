// Scaled copies, sequences and paddings against plain loops.
#include "fenced.hpp"
#include "numbers.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;

std::vector<Int> random_sizes(Random& random, Int limit) {
  std::vector<Int> sizes;
  for (Int i = random.between(0, 4); i > 0; --i) {
    sizes.push_back(random.chance(0.03) ? 0 : random.between(1, random.chance(0.3) ? limit : 6));
    limit = std::max<Int>(1, limit / std::max<Int>(1, sizes.back()));
  }
  return sizes;
}

// ---- identity
// ------------------------------------------------------------------------------------

uint64_t scaled(uint64_t bits, DataType type, float scale, float bias) {
  if (type == DataType::float32 || type == DataType::float16) {
    const float x = static_cast<float>(number_of(bits, type));
    const volatile float product = x * scale;  // rounded here
    return nearest_bits(static_cast<long double>(product + bias), type);
  }
  const double x = static_cast<double>(number_of(bits, type));
  const volatile double product = x * static_cast<double>(scale);
  const volatile double sum = product + static_cast<double>(bias);
  const long double value = static_cast<long double>(sum);
  return is_float_type(type) ? nearest_bits(value, type) : saturated_bits(value, type);
}

void check_identity(Random& random, DataType type, const std::vector<Int>& sizes, Strides strides,
                    int threads) {
  const float numbers[] = {1, 0, -2.5F, 0.1F, 3e38F, 1e-40F, -INFINITY, NAN};
  const float scale = numbers[random.between(0, 7)], bias = numbers[random.between(0, 7)];
  const bool with = random.chance(0.7);
  const bool in_place = random.chance(0.3);
  Buffer target(random, sizes, size_of(type), strides, Role::output, type);
  Buffer other(random, sizes, size_of(type), strides, Role::input, type);
  Buffer& source = in_place ? target : other;
  for (Int i = 0; i < source.count(); ++i) set_bits(source, i, odd_bits(random, type));
  std::vector<uint64_t> before;
  for (Int i = 0; i < source.count(); ++i) before.push_back(bits_at(source, i));
  target.remember();
  other.remember();
  const IdentityPlan plan{source.tensor, target.tensor, with, static_cast<double>(scale),
                          static_cast<double>(bias)};
  plan.run(source.data(), target.data(), threads);
  for (Int i = 0; i < target.count(); ++i) {
    const uint64_t bits = before[static_cast<std::size_t>(i)];
    const uint64_t expected = with ? scaled(bits, type, scale, bias) : bits;
    EXPECT(bits_at(target, i) == expected, "type %d: %llx * %g + %g gave %llx, not %llx",
           static_cast<int>(type), static_cast<unsigned long long>(bits),
           static_cast<double>(scale), static_cast<double>(bias),
           static_cast<unsigned long long>(bits_at(target, i)),
           static_cast<unsigned long long>(expected));
  }
  EXPECT(target.gaps_intact(), "gaps");
  if (!in_place) EXPECT(source.unchanged(), "source");
  ++passed;
}

// ---- sequences
// -----------------------------------------------------------------------------------

// The sum of two numbers of a type is exact in a long double, but for what both roundings lose.
uint64_t added(uint64_t a, uint64_t b, DataType type) {
  if (!is_float_type(type)) return low_bits(a + b, type);
  const long double x = number_of(a, type), y = number_of(b, type);
  if (type == DataType::float32) {
    const volatile float sum = static_cast<float>(x) + static_cast<float>(y);
    return nearest_bits(static_cast<long double>(sum), type);
  }
  return nearest_bits(x + y, type);
}

void check_sequence(Random& random, DataType type, const std::vector<Int>& sizes, Strides strides,
                    uint64_t start, uint64_t delta, int threads) {
  Buffer target(random, sizes, size_of(type), strides, Role::output, type);
  SequencePlan plan;
  plan.output = target.tensor;
  plan.start = start;
  plan.delta = delta;
  if (is_float_type(type)) {
    plan.float_start = static_cast<double>(number_of(start, type));
    plan.float_delta = static_cast<double>(number_of(delta, type));
  }
  plan.run(target.data(), threads);
  uint64_t value = is_float_type(type) ? nearest_bits(number_of(start, type), type) : start;
  for (Int i = 0; i < target.count(); ++i) {
    EXPECT(bits_at(target, i) == low_bits(value, type),
           "type %d, %llx + %llx .. at %lld: %llx, not %llx", static_cast<int>(type),
           static_cast<unsigned long long>(start), static_cast<unsigned long long>(delta), i,
           static_cast<unsigned long long>(bits_at(target, i)),
           static_cast<unsigned long long>(value));
    value = added(value, delta, type);
  }
  EXPECT(target.gaps_intact(), "gaps");
  ++passed;
}

uint64_t start_bits(Random& random, DataType type) {
  if (!is_float_type(type)) return low_bits(random.bits(), type);
  const long double value = std::ldexp(static_cast<long double>(random.between(-4097, 4097)),
                                       static_cast<int>(random.between(-30, 8)));
  return random.chance(0.1) ? low_bits(random.bits(), type) : nearest_bits(value, type);
}

// ---- paddings
// ------------------------------------------------------------------------------------

// The position that is read, found by walking there; -1: the value.
Int place(PaddingMode mode, Int at, Int size) {
  if (mode == PaddingMode::constant) return at < 0 || at >= size ? -1 : at;
  if (mode == PaddingMode::edge) return at < 0 ? 0 : at >= size ? size - 1 : at;
  if (size == 1) return 0;
  at %= mode == PaddingMode::reflection ? 2 * size - 2 : 2 * size;  // whole ways there and back
  while (at < 0 || at >= size) {
    if (mode == PaddingMode::wrap)
      at += at < 0 ? size : -size;
    else if (mode == PaddingMode::reflection)
      at = at < 0 ? -at : 2 * size - 2 - at;
    else
      at = at < 0 ? -1 - at : 2 * size - 1 - at;
  }
  return at;
}

void check_padding(Random& random, PaddingMode mode, int element_size,
                   const std::vector<Int>& sizes, const std::vector<Int>& starts,
                   const std::vector<Int>& ends, Strides to, Strides from, int threads) {
  std::vector<Int> padded = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) padded[i] += starts[i] + ends[i];
  Buffer source(random, sizes, element_size, from, Role::input);
  Buffer target(random, padded, element_size, to, Role::output);
  PaddingPlan plan{
      source.tensor, target.tensor, starts.data(), mode, {random.bits(), random.bits()}};
  plan.run(source.data(), target.data(), threads);
  Layout flat = target.tensor.layout;
  for (Int i = 0; i < target.count(); ++i) {
    Int rest = i, offset = 0;
    bool inside = true;
    for (int n = flat.rank - 1; n >= 0; --n) {
      const std::size_t d = static_cast<std::size_t>(n);
      const Int at = place(mode, rest % padded[d] - starts[d], sizes[d]);
      inside = inside && at >= 0;
      offset += at * source.tensor.layout.strides[n];
      rest /= padded[d];
    }
    const void* const expected = inside ? static_cast<const void*>(source.data() + offset)
                                        : static_cast<const void*>(plan.value);
    EXPECT(std::memcmp(target.at(i), expected, static_cast<std::size_t>(element_size)) == 0,
           "mode %d, elements of %d bytes, at %lld of %lld", static_cast<int>(mode), element_size,
           i, target.count());
  }
  EXPECT(target.gaps_intact(), "gaps");
  EXPECT(source.unchanged(), "source");
  ++passed;
}

// Rows of a few bytes, again and again, between pages that cannot be touched: forward, backward,
// and all the same one.
void check_repeated(Random& random, const Fenced& in, const Fenced& out, PaddingMode mode,
                    int element_size, Int length, Int before, Int after, Int rows) {
  const Int row = length * element_size, width = (before + length + after) * element_size;
  for (const Int step : {row, row + 1, -row, Int{0}}) {
    const Int span = std::abs(step) * (rows - 1) + row, begin = step < 0 ? -step * (rows - 1) : 0;
    const Int limit = (out.size() - FencedTarget::kGuardBytes) / rows - width;
    const Int gap = random.chance(0.6) ? 0 : random.between(1, std::min<Int>(70, limit));
    const Int to_step = width + gap, to_span = to_step * (rows - 1) + width;
    char* const memory = random.chance(0.5) ? in.first(span) : in.last(span);
    const FencedTarget result(out, random.chance(0.5), to_span);
    char* const target = result.data();
    random.fill(reinterpret_cast<unsigned char*>(memory), static_cast<std::size_t>(span));
    PaddingPlan plan{};
    plan.input.element_size = plan.output.element_size = element_size;
    plan.input.layout.push(rows, step);
    plan.input.layout.push(length, element_size);
    plan.output.layout.push(rows, to_step);
    plan.output.layout.push(before + length + after, element_size);
    const Int starts[] = {0, before};
    plan.starts = starts;
    plan.mode = mode;
    plan.run(memory + begin, target, 1);
    for (Int i = 0; i < rows; ++i) {
      for (Int n = 0; n < width / element_size; ++n)
        EXPECT(
            same_bytes(target + i * to_step + n * element_size,
                       memory + begin + i * step + place(mode, n - before, length) * element_size,
                       static_cast<std::size_t>(element_size)),
            "mode %d, rows of %lld elements of %d bytes, %lld apart, %lld and %lld more, at %lld",
            static_cast<int>(mode), length, element_size, step, before, after, n);
      for (Int n = width; n < to_step && i + 1 < rows; ++n)
        EXPECT(target[i * to_step + n] == FencedTarget::kUntouched, "behind row %lld", i);
    }
    EXPECT(result.intact(), "beside the rows");
    ++passed;
  }
}

constexpr PaddingMode kModes[] = {PaddingMode::constant, PaddingMode::edge, PaddingMode::reflection,
                                  PaddingMode::symmetric, PaddingMode::wrap};

void test_paddings(Random& random) {
  const int element_sizes[] = {1, 2, 4, 8, 16};
  const Fenced in(Int{1} << 20), out(Int{2} << 20);
  for (PaddingMode mode : kModes) {
    for (int n = 0; n < cases(500, 60); ++n) {
      std::vector<Int> sizes = random_sizes(random, 60), starts, ends;
      for (Int& size : sizes) {
        if (mode != PaddingMode::constant) size = std::max<Int>(size, 1);
        const bool none = random.chance(0.4);
        starts.push_back(none ? 0 : random.between(0, random.chance(0.2) ? 20 : 3));
        ends.push_back(none ? 0 : random.between(0, random.chance(0.2) ? 20 : 3));
      }
      check_padding(random, mode, element_sizes[random.between(0, 4)], sizes, starts, ends,
                    random_strides(random), random_strides(random), any_threads(random));
    }
    // More runs than a short row may have, the longest short row, a last block of few bytes,
    // periods that are written in place.
    check_padding(random, mode, 1, {3, 2}, {0, 70}, {0, 0}, Strides::packed, Strides::packed, 1);
    check_padding(random, mode, 2, {3, 1000}, {0, 12}, {0, 12}, Strides::packed, Strides::packed,
                  1);
    check_padding(random, mode, 1, {819 * 5 + 3, 9}, {0, 1}, {0, 0}, Strides::packed,
                  Strides::packed, 1);
    check_padding(random, mode, 1, {2, 9, 3}, {0, 500, 0}, {0, 1500, 0}, Strides::packed,
                  Strides::packed, 1);
    // One more than a thread takes of a row; outputs with gaps past the cache.
    check_padding(random, mode, 1, {65500}, {30}, {7}, Strides::packed, Strides::packed, 1);
    check_padding(random, mode, 4, {12000}, {5}, {7}, Strides::stepped, Strides::packed, 1);
    for (int n = 0; n < 4; ++n)
      check_padding(random, mode, 4, {30, 12, 30}, {1, 0, n}, {0, n % 2, 1}, Strides::any,
                    Strides::any, 1);
    if (mode != PaddingMode::constant)
      for (Int bytes = 1; bytes <= 17; ++bytes)
        for (const int size : {1, 2, 4, 8}) {
          if (bytes % size != 0) continue;
          const Int length = bytes / size;
          check_repeated(random, in, out, mode, size, length, random.between(0, 300 / bytes),
                         random.between(0, 1100 / size) / length * length, 5);
        }
    // Past the cache: short rows of odd lengths, blocks of several elements, one long row.
    const Int k = shortening() == 0 ? 1 : 4;
    for (int threads : {1, 3}) {
      if (threads < kMinThreads) continue;
      if (has_turn())
        check_padding(random, mode, 4, {1500 / k, 1600}, {2, 3}, {1, 5}, Strides::packed,
                      Strides::packed, threads);
      if (has_turn())
        check_padding(random, mode, 2, {300, 500 / k, 33}, {1, 1, 0}, {2, 0, 0}, Strides::packed,
                      Strides::packed, threads);
      if (has_turn())
        check_padding(random, mode, 2, {4, 30000 / k, 34}, {0, 2, 1}, {1, 1, 3}, Strides::packed,
                      Strides::packed, threads);
      if (has_turn())
        check_padding(random, mode, 1, {4, 30000 / k, 70}, {0, 2, 1}, {1, 1, 3}, Strides::packed,
                      Strides::stepped, threads);
      if (has_turn())
        check_padding(random, mode, 8, {5}, {700000 / k}, {700000 / k}, Strides::packed,
                      Strides::packed, threads);
      // Many short periods in a row, and blocks of a few elements as what repeats.
      if (has_turn())
        check_padding(random, mode, 2, {3, 130}, {1, 900}, {4, 9000}, Strides::packed,
                      Strides::stepped, threads);
      if (has_turn())
        check_padding(random, mode, 1, {2, 9, 3}, {0, 500, 0}, {1, 4000, 0}, Strides::packed,
                      Strides::packed, threads);
    }
  }
}

// Periods around all sizes of vectors, few and many of them, from the first one or from within one.
void test_tiles(Random& random) {
  const Fenced in(Int{1} << 20), out(Int{2} << 20);
  const auto check = [&](int size, Int length, Int before, Int after, Int rows) {
    check_repeated(random, in, out, PaddingMode::wrap, size, length, before, after, rows);
  };
  for (Int bytes = 1; bytes <= 135; ++bytes)
    for (const int size : {1, 4}) {
      if (bytes % size != 0) continue;
      const Int length = bytes / size;
      check(size, length, 0, length * random.between(1, 12), random.between(2, 9));
      check(size, length, 0, (random.between(2100, 3000) / bytes) * length, 2);
      check(size, length, random.between(1, 2 * length), random.between(2100, 3000) / size, 2);
    }
  for (const Int bytes : {191, 192, 193, 511, 512, 513})
    check(1, bytes, random.between(0, 1) * random.between(1, bytes), bytes * random.between(2, 9),
          3);
  // So many that several short rows are written at a time.
  for (const Int bytes : {1, 2, 3, 5, 9, 17, 30})
    for (const int size : {1, 2}) {
      const Int length = bytes, row = length * size, times = random.between(2, 63 / row + 2);
      check(size, length, 0, (times - 1) * length, (Int{600} << 10) / (times * row));
    }
}

}  // namespace

int main() {
  Random random(12);
  for (DataType type : kTypes) {
    if (type == DataType::bfloat16) continue;
    for (int n = 0; n < cases(120, 20); ++n)
      check_identity(random, type, random_sizes(random, 2000), random_strides(random),
                     any_threads(random));
    // Enough for a table of what each byte becomes.
    for (int n = 0; n < cases(12, 4); ++n)
      check_identity(random, type, {5003}, random_strides(random), 1);
    check_identity(random, type, {1100, 1000}, Strides::packed, 3);
    if (type == DataType::float64) continue;
    for (int n = 0; n < cases(120, 20); ++n)
      check_sequence(random, type, random_sizes(random, 3000), random_strides(random),
                     start_bits(random, type), start_bits(random, type), any_threads(random));
    for (int threads : {1, 3})
      if (threads >= kMinThreads && has_turn())
        check_sequence(random, type, {2200, 1000}, Strides::packed, start_bits(random, type),
                       start_bits(random, type), threads);
  }
  // Through all binades: every sum of steps that are rounded, of ties, of the smallest numbers.
  const long double pairs[][2] = {{0, 0.1L},
                                  {-3, 0.7L},
                                  {16777215, 1},
                                  {-16777300, 3},
                                  {1, 0x1p-24L},
                                  {1, 0x3p-24L},
                                  {1, 0x5p-25L},
                                  {0, 0x1p-149L},
                                  {-0x7p-130L, 0x3p-149L},
                                  {3e38L, 1e36L},
                                  {-1, 1e-6L},
                                  {2049, -0x1p-11L},
                                  {-65504, 0.01L},
                                  {0, 0x1p-24L},
                                  {-0x3p-14L, 0x1p-24L},
                                  {0x3p-14L, -0x1p-24L},
                                  {0x7p-130L, -0x3p-149L},
                                  {1 + 0x1p-23L, 0x1p-24L},
                                  {-1 - 0x1p-23L, -0x1p-24L},
                                  {1 + 0x1p-10L, 0x1p-11L},
                                  {-1 - 0x1p-10L, -0x1p-11L},
                                  {0x1p-10L, 0x1p-30L},
                                  {0x5p-24L, -0x2p-24L}};
  for (DataType type : {DataType::float32, DataType::float16}) {
    const long double smallest = type == DataType::float32 ? 0x1p-149L : 0x1p-24L;
    for (const long double step : {smallest, -smallest})  // zero is the second element
      check_sequence(random, type, {50}, Strides::packed, nearest_bits(-step, type),
                     nearest_bits(step, type), 1);
    // Zeros of both signs, NaN, and infinity: for more elements than there is capacity for
    // segments.
    for (const long double start : {0.0L, -0.0L, 65504.0L, HUGE_VALL, -HUGE_VALL, NAN + 0.0L})
      for (const long double step : {0.0L, -0.0L, 1.0L, HUGE_VALL, -HUGE_VALL, NAN + 0.0L})
        check_sequence(random, type, {std::isnan(start) || std::isnan(step) ? 9000 : 40},
                       Strides::packed, nearest_bits(start, type), nearest_bits(step, type), 1);
    // The last element is the first one of a binade, and of a line.
    if (type == DataType::float32)
      for (const Int count : {8990, 8991, 8992, 8993})
        check_sequence(random, type, {count}, Strides::packed,
                       nearest_bits(16777217.0L - static_cast<long double>(count), type),
                       nearest_bits(1, type), 1);
    for (const auto& pair : pairs)
      check_sequence(random, type, {cases(400000, 40000)}, Strides::packed,
                     nearest_bits(pair[0], type), nearest_bits(pair[1], type), 2);
  }
  test_paddings(random);
  test_tiles(random);
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
