// CAST, ELEMENT_WISE_IDENTITY, FILL_VALUE_SEQUENCE and PADDING on the GPU against the CPU's
// kernels, every byte of the operands.
#include <cmath>

#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;

void set(Operand& operand, Int flat, uint64_t bits) {
  std::memcpy(operand.at(flat), &bits, static_cast<std::size_t>(operand.tensor.element_size));
}

void fill_odd(Random& random, Operand& operand) {
  for (Int i = 0; i < operand.count(); ++i) set(operand, i, odd_bits(random, operand.tensor.type));
}

// ---- cast ---------------------------------------------------------------------------------------

void check_cast(Operand& source, Operand& target) {
  const CastPlan plan{source.tensor, target.tensor};
  source.on_gpu();
  target.on_gpu();
  plan.run(source.host(), target.host(), 1);
  on_device([&](cuda::Queue& queue) { cuda::cast(plan, source.on_gpu(), target.on_gpu(), queue); });
  const std::string what = "cast " + source.text() + " -> " + target.text();
  outcome.expect(target, what);
  outcome.expect(source, what + " source");
}

void check_casts() {
  Random random(41);
  for (DataType from : kTypes)
    for (DataType to : kTypes) {
      for (int n = 0; n < cases(7, 2); ++n) {
        const std::vector<Int> sizes =
            n == 0 ? std::vector<Int>{30011} : random_sizes(random, 4, 1000);
        const Strides strides = n < 3 ? Strides::packed : random_strides(random);
        Operand source(random, sizes, size_of(from), from, strides, Role::input);
        Operand target(random, sizes, size_of(to), to,
                       random.chance(0.7) ? Strides::packed : strides, Role::output);
        fill_odd(random, source);
        check_cast(source, target);
      }
      if (size_of(from) > 2) continue;  // every value
      const Int all = Int{1} << (8 * size_of(from));
      Operand source(random, {all}, size_of(from), from, Strides::packed, Role::input);
      Operand target(random, {all}, size_of(to), to, Strides::packed, Role::output);
      for (Int i = 0; i < all; ++i) set(source, i, static_cast<uint64_t>(i));
      check_cast(source, target);
    }
}

// ---- identity -----------------------------------------------------------------------------------

void check_identity(Random& random, DataType type, const std::vector<Int>& sizes, Strides strides) {
  const float numbers[] = {1, 0, -2.5F, 0.1F, 3e38F, 1e-40F, -INFINITY, NAN, 1.0000001F};
  IdentityPlan plan;
  Operand target(random, sizes, size_of(type), type, strides, Role::output);
  Operand other(random, sizes, size_of(type), type, strides, Role::input);
  const bool in_place = random.chance(0.3);
  Operand& source = in_place ? target : other;
  fill_odd(random, source);
  plan = {source.tensor, target.tensor, random.chance(0.85),
          static_cast<double>(numbers[random.between(0, 8)]),
          static_cast<double>(numbers[random.between(0, 8)])};
  source.on_gpu();
  target.on_gpu();
  other.on_gpu();
  plan.run(source.host(), target.host(), 1);
  on_device(
      [&](cuda::Queue& queue) { cuda::identity(plan, source.on_gpu(), target.on_gpu(), queue); });
  const std::string what = "identity " + source.text() + " * " + std::to_string(plan.scale) +
                           " + " + std::to_string(plan.bias) + " -> " + target.text();
  outcome.expect(target, what);
  outcome.expect(other, what + " source");
}

// ---- sequences ----------------------------------------------------------------------------------

void check_sequence(Random& random, DataType type, const std::vector<Int>& sizes, Strides strides,
                    uint64_t start, uint64_t delta) {
  Operand target(random, sizes, size_of(type), type, strides, Role::output);
  SequencePlan plan;
  plan.output = target.tensor;
  plan.start = start;
  plan.delta = delta;
  if (is_float_type(type)) {
    plan.float_start = static_cast<double>(number_of(start, type));
    plan.float_delta = static_cast<double>(number_of(delta, type));
  }
  target.on_gpu();
  plan.run(target.host(), 1);
  on_device([&](cuda::Queue& queue) { cuda::sequence(plan, target.on_gpu(), queue); });
  outcome.expect(target, "sequence " + std::to_string(start) + " + " + std::to_string(delta) +
                             " (bits) " + target.text());
}

uint64_t start_bits(Random& random, DataType type) {
  if (!is_float_type(type)) return low_bits(random.bits(), type);
  const long double value = std::ldexp(static_cast<long double>(random.between(-4097, 4097)),
                                       static_cast<int>(random.between(-30, 8)));
  return random.chance(0.1) ? low_bits(random.bits(), type) : nearest_bits(value, type);
}

void check_sequences() {
  Random random(42);
  for (DataType type : kTypes) {
    if (type == DataType::bfloat16) continue;
    if (type == DataType::float64) continue;
    for (int n = 0; n < cases(40, 4); ++n)
      check_sequence(random, type, random_sizes(random, 4, 3000), random_strides(random),
                     start_bits(random, type), start_bits(random, type));
    for (int n = 0; n < 4; ++n)
      check_sequence(random, type, {2200, 1001}, Strides::packed, start_bits(random, type),
                     start_bits(random, type));
  }
  // Through all binades: every sum of steps that are rounded, of ties, of the smallest numbers.
  const long double pairs[][2] = {{0, 0.1L},       {-3, 0.7L},     {16777215, 1},
                                  {-16777300, 3},  {1, 0x1p-24L},  {1, 0x3p-24L},
                                  {1, 0x5p-25L},   {0, 0x1p-149L}, {-0x7p-130L, 0x3p-149L},
                                  {3e38L, 1e36L},  {-1, 1e-6L},    {2049, -0x1p-11L},
                                  {-65504, 0.01L}, {0, 0x1p-24L},  {-0x3p-14L, 0x1p-24L},
                                  {-0.0L, -0.0L}};
  for (DataType type : {DataType::float32, DataType::float16})
    for (const auto& pair : pairs)
      check_sequence(random, type, {400000}, Strides::packed, nearest_bits(pair[0], type),
                     nearest_bits(pair[1], type));
}

// ---- paddings -----------------------------------------------------------------------------------

constexpr PaddingMode kModes[] = {PaddingMode::constant, PaddingMode::edge, PaddingMode::reflection,
                                  PaddingMode::symmetric, PaddingMode::wrap};

void check_padding(Random& random, PaddingMode mode, int size, const std::vector<Int>& sizes,
                   const std::vector<Int>& starts, const std::vector<Int>& ends, Strides to,
                   Strides from) {
  std::vector<Int> padded = sizes;
  for (std::size_t i = 0; i < sizes.size(); ++i) padded[i] += starts[i] + ends[i];
  Operand source(random, sizes, size, DataType::unknown, from, Role::input);
  Operand target(random, padded, size, DataType::unknown, to, Role::output);
  const PaddingPlan plan{
      source.tensor, target.tensor, starts.data(), mode, {random.bits(), random.bits()}};
  source.on_gpu();
  target.on_gpu();
  plan.run(source.host(), target.host(), 1);
  on_device([&](cuda::Queue& queue) { cuda::pad(plan, source.on_gpu(), target.on_gpu(), queue); });
  const std::string what = "pad mode " + std::to_string(static_cast<int>(mode)) + " " +
                           source.text() + " -> " + target.text();
  outcome.expect(target, what);
  outcome.expect(source, what + " source");
}

void check_paddings() {
  Random random(43);
  const int element_sizes[] = {1, 2, 4, 8, 16};
  for (PaddingMode mode : kModes) {
    for (int n = 0; n < cases(200, 20); ++n) {
      std::vector<Int> sizes = random_sizes(random, 4, random.chance(0.2) ? 3000 : 60), starts,
                       ends;
      for (Int& size : sizes) {
        if (mode != PaddingMode::constant) size = std::max<Int>(size, 1);
        const bool none = random.chance(0.4);
        starts.push_back(none ? 0 : random.between(0, random.chance(0.2) ? 20 : 3));
        ends.push_back(none ? 0 : random.between(0, random.chance(0.2) ? 20 : 3));
      }
      check_padding(random, mode, element_sizes[random.between(0, 4)], sizes, starts, ends,
                    random_strides(random), random_strides(random));
    }
    check_padding(random, mode, 4, {150, 1600}, {2, 3}, {1, 5}, Strides::packed, Strides::packed);
    check_padding(random, mode, 2, {30, 50, 32}, {1, 1, 0}, {2, 0, 0}, Strides::packed,
                  Strides::packed);
    check_padding(random, mode, 8, {5}, {70000}, {70000}, Strides::packed, Strides::packed);
  }
}

// ---- times --------------------------------------------------------------------------------------

constexpr Int kMany = Int{1} << 28;

void time_casts(Clock& clock) {
  DeviceMemory source(std::size_t{8} * kMany), target(std::size_t{8} * kMany);
  repeat_on_device(source, 8 * kMany, random_block());
  const DataType pairs[][2] = {
      {DataType::float32, DataType::float16}, {DataType::float16, DataType::float32},
      {DataType::float32, DataType::int32},   {DataType::float32, DataType::uint8},
      {DataType::uint8, DataType::float32},   {DataType::int64, DataType::int32},
      {DataType::float64, DataType::float32}, {DataType::float64, DataType::int8},
      {DataType::int8, DataType::int16},      {DataType::uint64, DataType::float16},
      {DataType::float32, DataType::bfloat16}};
  for (const auto& pair : pairs) {
    const CastPlan plan{packed_tensor(pair[0], size_of(pair[0]), {kMany}),
                        packed_tensor(pair[1], size_of(pair[1]), {kMany})};
    clock.report("cast type " + std::to_string(static_cast<int>(pair[0])) + " to " +
                     std::to_string(static_cast<int>(pair[1])),
                 static_cast<double>(kMany * (size_of(pair[0]) + size_of(pair[1]))),
                 [&](cuda::Queue& queue) { cuda::cast(plan, source.get(), target.get(), queue); });
  }
  for (DataType type : {DataType::float32, DataType::float16, DataType::float64, DataType::int32,
                        DataType::int8, DataType::int64}) {
    const Tensor tensor = packed_tensor(type, size_of(type), {kMany});
    const IdentityPlan plan{tensor, tensor, true, 1.5, 0.25};
    clock.report("scale type " + std::to_string(static_cast<int>(type)),
                 static_cast<double>(2 * kMany * size_of(type)), [&](cuda::Queue& queue) {
                   cuda::identity(plan, source.get(), target.get(), queue);
                 });
  }
}

void time_sequences(Clock& clock) {
  DeviceMemory target(std::size_t{8} * kMany);
  for (DataType type :
       {DataType::float32, DataType::float16, DataType::int32, DataType::int64, DataType::int8}) {
    SequencePlan plan;
    plan.output = packed_tensor(type, size_of(type), {kMany});
    plan.start = 3;
    plan.delta = 7;
    plan.float_start = -1;
    plan.float_delta = 0.015625;
    clock.report("sequence type " + std::to_string(static_cast<int>(type)) + ", written",
                 static_cast<double>(kMany * size_of(type)),
                 [&](cuda::Queue& queue) { cuda::sequence(plan, target.get(), queue); });
  }
}

void time_paddings(Clock& clock) {
  DeviceMemory source(std::size_t{4} * kMany), target(std::size_t{6} * kMany);
  repeat_on_device(source, 4 * kMany, random_block());
  struct Case {
    const char* name;
    int size;
    std::vector<Int> sizes, starts, ends;
  };
  const Case all[] = {
      {"64x64x224x224 of 4 by 3", 4, {64, 64, 224, 224}, {0, 0, 3, 3}, {0, 0, 3, 3}},
      {"64x224x224x64 of 4 by 1, channels last", 4, {64, 224, 224, 64}, {0, 1, 1, 0}, {0, 1, 1, 0}},
      {"16384x16000 of 4 by 100", 4, {16384, 16000}, {0, 100}, {0, 100}},
      {"16384x16000 of 2 by 100", 2, {16384, 16000}, {0, 100}, {0, 100}},
      {"256x3x512x512 of 1 by 8", 1, {256, 3, 512, 512}, {0, 0, 8, 8}, {0, 0, 8, 8}},
  };
  for (const Case& c : all)
    for (PaddingMode mode : {PaddingMode::constant, PaddingMode::reflection}) {
      std::vector<Int> padded = c.sizes;
      for (std::size_t i = 0; i < padded.size(); ++i) padded[i] += c.starts[i] + c.ends[i];
      const PaddingPlan plan{packed_tensor(DataType::unknown, c.size, c.sizes),
                             packed_tensor(DataType::unknown, c.size, padded),
                             c.starts.data(),
                             mode,
                             {7, 7}};
      const Int bytes = (plan.input.layout.count() + plan.output.layout.count()) * c.size;
      clock.report(std::string("pad ") + c.name + " mode " + std::to_string(static_cast<int>(mode)),
                   static_cast<double>(bytes),
                   [&](cuda::Queue& queue) { cuda::pad(plan, source.get(), target.get(), queue); });
    }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    Clock clock;
    if (count > 2) clock.only = arguments[2];
    clock.copy_rate();
    time_casts(clock);
    time_sequences(clock);
    time_paddings(clock);
    return 0;
  }
  Random random(40);
  for (DataType type : kTypes) {
    if (type == DataType::bfloat16) continue;
    for (int n = 0; n < cases(40, 4); ++n)
      check_identity(random, type, random_sizes(random, 4, 2000), random_strides(random));
    check_identity(random, type, {1100, 1000}, Strides::packed);
  }
  check_sequences();
  check_paddings();
  check_casts();
  return outcome.exit_status("data_movement");
}
