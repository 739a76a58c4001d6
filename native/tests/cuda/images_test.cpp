// REVERSE_SUBSEQUENCES and UPSAMPLE_2D on the GPU against the CPU's kernels, every byte of the
// operands.
#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;

constexpr DataType kLengths[] = {DataType::uint32, DataType::int32, DataType::uint64,
                                 DataType::int64};

void check_reverse(Random& random, int element_size, const std::vector<Int>& sizes, int axis,
                   Strides to, Strides from, bool shared) {
  const std::size_t dimension = static_cast<std::size_t>(axis);
  std::vector<Int> counts = sizes;
  counts[dimension] = 1;
  Operand source(random, sizes, element_size, DataType::unknown, from, Role::input);
  Operand target(random, sizes, element_size, DataType::unknown, to, Role::output);
  const DataType type = kLengths[random.between(0, 3)];
  Operand lengths(random, counts, size_of(type), type,
                  shared ? Strides::packed : random_strides(random), Role::input);
  if (shared)  // of everything behind the axis
    for (std::size_t i = dimension + 1; i < sizes.size(); ++i) lengths.tensor.layout.strides[i] = 0;
  for (Int i = 0; i < lengths.count(); ++i) {
    const Int length = random.chance(0.1) ? static_cast<Int>(random.bits())
                                          : random.between(-1, sizes[dimension] + 1);
    std::memcpy(lengths.at(i), &length, static_cast<std::size_t>(size_of(type)));
  }
  const ReversePlan plan{source.tensor, lengths.tensor, target.tensor, axis};
  for (Operand* operand : {&source, &target, &lengths}) operand->on_gpu();
  plan.run(source.host(), lengths.host(), target.host(), 1);
  on_device([&](cuda::Queue& queue) {
    cuda::reverse_subsequences(plan, source.on_gpu(), lengths.on_gpu(), target.on_gpu(), queue);
  });
  const std::string what = "reverse axis " + std::to_string(axis) + " " + source.text() + " by " +
                           lengths.text() + " -> " + target.text();
  outcome.expect(target, what);
  outcome.expect(source, what + " source");
  outcome.expect(lengths, what + " lengths");
}

void check_reversals(Random& random) {
  const int element_sizes[] = {1, 2, 4, 8, 16};
  for (int n = 0; n < cases(600, 60); ++n) {
    std::vector<Int> sizes = random_sizes(random, 5, 3000);
    if (sizes.empty()) sizes.push_back(random.between(0, 3000));
    check_reverse(random, element_sizes[random.between(0, 4)], sizes,
                  static_cast<int>(random.between(0, static_cast<Int>(sizes.size()) - 1)),
                  random_strides(random), random_strides(random), random.chance(0.4));
  }
  for (bool shared : {false, true}) {
    check_reverse(random, 4, {300, 1001}, 1, Strides::packed, Strides::packed, shared);
    check_reverse(random, 2, {20, 90, 301}, 1, Strides::packed, Strides::packed, shared);
    check_reverse(random, 1, {64, 16, 48}, 0, Strides::packed, Strides::packed, shared);
    for (int size : {1, 2, 4, 8, 16}) {  // rows and columns of whole lines
      check_reverse(random, size, {40, 1024}, 1, Strides::packed, Strides::packed, shared);
      check_reverse(random, size, {7, 5, 48}, 2, Strides::packed, Strides::packed, shared);
      check_reverse(random, size, {1024, 40}, 0, Strides::packed, Strides::packed, shared);
      check_reverse(random, size, {5, 300, 64}, 1, Strides::packed, Strides::packed, shared);
    }
  }
}

void check_upsample(Random& random, DataType type, const std::vector<Int>& sizes, Int height,
                    Int width, bool linear, Strides to, Strides from) {
  std::vector<Int> scaled = sizes;
  scaled[sizes.size() - 2] *= height;
  scaled[sizes.size() - 1] *= width;
  Operand source(random, sizes, size_of(type), type, from, Role::input);
  Operand target(random, scaled, size_of(type), type, to, Role::output);
  for (Int i = 0; i < source.count(); ++i) {
    const uint64_t bits =
        random.chance(0.2)
            ? odd_bits(random, type)
            : nearest_bits(static_cast<long double>(random.between(-999, 999)) / 64, type);
    std::memcpy(source.at(i), &bits, static_cast<std::size_t>(size_of(type)));
  }
  const UpsamplePlan plan{source.tensor, target.tensor, height, width, linear};
  source.on_gpu();
  target.on_gpu();
  plan.run(source.host(), target.host(), 1);
  on_device(
      [&](cuda::Queue& queue) { cuda::upsample(plan, source.on_gpu(), target.on_gpu(), queue); });
  const std::string what = std::string(linear ? "linear " : "nearest ") + std::to_string(height) +
                           " by " + std::to_string(width) + " " + source.text() + " -> " +
                           target.text();
  outcome.expect(target, what);
  outcome.expect(source, what + " source");
}

void check_upsamples(Random& random) {
  for (DataType type : {DataType::float32, DataType::float16, DataType::uint8, DataType::int64})
    for (bool linear : {false, true}) {
      if (linear && type != DataType::float32 && type != DataType::float16) continue;
      for (int n = 0; n < cases(200, 20); ++n) {
        std::vector<Int> sizes;
        for (Int i = random.between(2, 5); i > 0; --i)
          sizes.push_back(random.chance(0.02) ? 0 : random.between(1, i > 2 ? 3 : 9));
        check_upsample(random, type, sizes, random.between(1, random.chance(0.2) ? 40 : 4),
                       random.between(1, random.chance(0.2) ? 40 : 4), linear,
                       random_strides(random), random_strides(random));
      }
      for (Int width : {1, 2, 3, 300})
        check_upsample(random, type, {2, 700 / width + 1}, 2, width, linear, Strides::packed,
                       Strides::packed);
      check_upsample(random, type, {3, 70, 101}, 4, 5, linear, Strides::packed, Strides::packed);
      for (Int scale : {1, 2, 3, 16, 48})
        check_upsample(random, type, {2, 9, 16}, scale, scale, linear, Strides::packed,
                       random_strides(random));
      check_upsample(random, type, {2, 33, 1040}, 3, 2, linear, Strides::packed, Strides::packed);
    }
}

void time_all(Clock& clock) {
  constexpr Int many = Int{1} << 26;
  DeviceMemory source(std::size_t{4} * many), target(std::size_t{4} * many), lengths(4 * many);
  repeat_on_device(source, 4 * many, random_block());
  const auto reverse = [&](const char* name, DataType type, const std::vector<Int>& sizes,
                           int axis) {
    std::vector<Int> counts = sizes;
    counts[static_cast<std::size_t>(axis)] = 1;
    Tensor tensor = packed_tensor(type, size_of(type), sizes);
    Tensor length_tensor = packed_tensor(DataType::uint32, 4, counts);
    std::vector<uint32_t> numbers(static_cast<std::size_t>(length_tensor.layout.count()));
    Random random(3);
    for (uint32_t& number : numbers)
      number = static_cast<uint32_t>(random.between(0, sizes[static_cast<std::size_t>(axis)]));
    lengths.upload(numbers.data(), numbers.size() * 4);
    const ReversePlan plan{tensor, length_tensor, tensor, axis};
    clock.report(name, static_cast<double>(2 * tensor.layout.count() * size_of(type)),
                 [&](cuda::Queue& queue) {
                   cuda::reverse_subsequences(plan, source.get(), lengths.get(), target.get(),
                                              queue);
                 });
  };
  reverse("reverse 512x128x1024, axis 1", DataType::float32, {512, 128, 1024}, 1);
  reverse("reverse 16384x4096, axis 1", DataType::float32, {16384, 4096}, 1);
  reverse("reverse 4096x16384, axis 0", DataType::float32, {4096, 16384}, 0);
  reverse("reverse uint8 16384x4096, axis 1", DataType::uint8, {16384, 4096}, 1);
  for (bool linear : {false, true})
    for (DataType type : {DataType::float32, DataType::float16})
      for (Int scale : {2, 4}) {
        const Int images = 256, side = 512 / scale;
        const UpsamplePlan plan{packed_tensor(type, size_of(type), {images, side, side}),
                                packed_tensor(type, size_of(type), {images, 512, 512}), scale,
                                scale, linear};
        const Int bytes = (plan.input.layout.count() + plan.output.layout.count()) * size_of(type);
        clock.report(std::string(linear ? "linear" : "nearest") + " 256x512x512 type " +
                         std::to_string(static_cast<int>(type)) + " by " + std::to_string(scale),
                     static_cast<double>(bytes), [&](cuda::Queue& queue) {
                       cuda::upsample(plan, source.get(), target.get(), queue);
                     });
      }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    Clock clock;
    if (count > 2) clock.only = arguments[2];
    clock.copy_rate();
    time_all(clock);
    return 0;
  }
  Random random(44);
  check_reversals(random);
  check_upsamples(random);
  return outcome.exit_status("images");
}
