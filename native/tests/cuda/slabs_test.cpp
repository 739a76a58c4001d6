// Copies, SPLIT and JOIN on the GPU against the CPU's kernels, every byte of the operands.
#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;
constexpr int kSizes[] = {1, 2, 4, 8, 16};

void check_copy(Operand& target, Operand& source) {
  target.on_gpu();
  source.on_gpu();
  const Tensor &to = target.tensor, &from = source.tensor;
  copy_elements(to.layout, target.host(), from.layout, source.host(), to.element_size, 1);
  on_device([&](cuda::Queue& queue) {
    cuda::copy_elements(to.layout, target.on_gpu(), from.layout, source.on_gpu(), to.element_size,
                        queue);
  });
  const std::string what = "copy " + target.text() + " <- " + source.text();
  outcome.expect(target, what);
  outcome.expect(source, what + " source");
}

void check_copy(Random& random, const std::vector<Int>& sizes, int size, Strides to, Strides from) {
  Operand target(random, sizes, size, DataType::unknown, to, Role::output);
  Operand source(random, sizes, size, DataType::unknown, from, Role::input);
  check_copy(target, source);
}

// The source packed in another order of its dimensions.
void check_permuted(Random& random, const std::vector<Int>& sizes, const std::vector<int>& order,
                    int size) {
  Operand target(random, sizes, size, DataType::unknown, Strides::packed, Role::output);
  Operand source(random, sizes, size, DataType::unknown, Strides::packed, Role::input);
  Int stride = size;
  for (std::size_t n = order.size(); n-- > 0;) {
    source.tensor.layout.strides[order[n]] = stride;
    stride *= sizes[static_cast<std::size_t>(order[n])];
  }
  check_copy(target, source);
}

void check_copies() {
  Random random(31);
  for (int size : kSizes)
    for (int n = 0; n < cases(250, 25); ++n)
      check_copy(random, random_sizes(random, 6, random.chance(0.3) ? 20000 : 500), size,
                 random_strides(random), random_strides(random));
  for (int size : kSizes) {
    for (Int height : {1, 3, 4, 31, 64, 65, 130, 500})
      for (Int width : {2, 5, 32, 63, 64, 128, 257}) {
        check_permuted(random, {height, width}, {1, 0}, size);
        check_permuted(random, {3, height, width}, {2, 1, 0}, size);
      }
    check_permuted(random, {5, 3, 7, 64, 4}, {4, 2, 0, 3, 1}, size);
    check_permuted(random, {1000, 3}, {1, 0}, size);
    check_permuted(random, {3, 5000}, {1, 0}, size);
    // Rows that begin anywhere.
    for (Int row : {255, 256, 257, 1000, 5001, 70001}) {
      check_copy(random, {7, row}, size, Strides::packed, Strides::any);
      check_copy(random, {7, row}, size, Strides::any, Strides::packed);
      check_copy(random, {row * 7}, size, Strides::packed, Strides::packed);
    }
  }
  for (int size : {3, 12, 24})  // runs of bytes
    for (int n = 0; n < 20; ++n)
      check_copy(random, random_sizes(random, 4, 500), size, random_strides(random),
                 random_strides(random));
}

void check_slabs(Random& random, const std::vector<Int>& before, const std::vector<Int>& lengths,
                 const std::vector<Int>& behind, int size, Strides strides) {
  const int axis = static_cast<int>(before.size());
  const auto sizes_with = [&](Int length) {
    std::vector<Int> sizes = before;
    sizes.push_back(length);
    sizes.insert(sizes.end(), behind.begin(), behind.end());
    return sizes;
  };
  Int total = 0;
  for (Int length : lengths) total += length;
  for (bool split : {true, false}) {
    Operand joined(random, sizes_with(total), size, DataType::unknown, strides,
                   split ? Role::input : Role::output);
    std::vector<std::unique_ptr<Operand>> parts;
    std::vector<void*> host, on_gpu;
    SlabsPlan plan(joined.tensor, axis);
    joined.on_gpu();
    for (Int length : lengths) {
      parts.push_back(std::make_unique<Operand>(random, sizes_with(length), size, DataType::unknown,
                                                random.chance(0.8) ? Strides::packed : strides,
                                                split ? Role::output : Role::input));
      host.push_back(parts.back()->host());
      on_gpu.push_back(parts.back()->on_gpu());
      plan.add(parts.back()->tensor.layout);
    }
    if (split)
      plan.split(joined.host(), host.data(), 1);
    else
      plan.join(host.data(), joined.host(), 1);
    on_device([&](cuda::Queue& queue) {
      if (split)
        cuda::split(plan, joined.on_gpu(), on_gpu.data(), queue);
      else
        cuda::join(plan, on_gpu.data(), joined.on_gpu(), queue);
    });
    const std::string what = std::string(split ? "split " : "join ") + joined.text() + " axis " +
                             std::to_string(axis) + " parts " + std::to_string(lengths.size());
    outcome.expect(joined, what);
    for (std::size_t p = 0; p < parts.size(); ++p)
      outcome.expect(*parts[p], what + " part " + std::to_string(p) + " " + parts[p]->text());
  }
}

void check_all_slabs() {
  Random random(32);
  for (int size : kSizes)
    for (int n = 0; n < cases(60, 8); ++n) {
      const int rank = static_cast<int>(random.between(1, 4));
      const int axis = static_cast<int>(random.between(0, rank - 1));
      std::vector<Int> before, behind, lengths;
      for (int i = 0; i < rank; ++i) {
        const Int own = random.chance(0.02) ? 0 : random.between(1, random.chance(0.3) ? 90 : 4);
        if (i < axis) before.push_back(own);
        if (i > axis) behind.push_back(own);
      }
      const Int equal = random.chance(0.4) ? random.between(1, 5) : 0;
      const Int count = random.between(1, random.chance(0.2) ? 90 : 5);
      for (Int p = 0; p < count; ++p)
        lengths.push_back(equal > 0 ? equal : random.between(0, random.chance(0.1) ? 500 : 6));
      check_slabs(random, before, lengths, behind, size,
                  random.chance(0.7) ? Strides::packed : random_strides(random));
    }
  for (int size : kSizes) {
    check_slabs(random, {70}, std::vector<Int>(700, 2), {}, size, Strides::packed);  // a table
    check_slabs(random, {3}, std::vector<Int>(700, 37), {}, size, Strides::packed);
    check_slabs(random, {300}, {1, 1, 1}, {}, size, Strides::packed);
    check_slabs(random, {40}, {1000, 0, 3001, 17}, {}, size, Strides::packed);
    check_slabs(random, {}, {100000, 1, 70001}, {}, size, Strides::packed);
    check_slabs(random, {9}, std::vector<Int>(100, 128), {}, size, Strides::packed);
    // Short pieces in lines, several rows a block.
    check_slabs(random, {301}, std::vector<Int>(40, 64 / size), {}, size, Strides::packed);
    check_slabs(random, {101}, std::vector<Int>(20, 512 / size), {}, size, Strides::packed);
    std::vector<Int> lines;
    for (int p = 0; p < 90; ++p) lines.push_back(random.between(0, 14) * 16 / size);
    check_slabs(random, {301}, lines, {}, size, Strides::packed);
    check_slabs(random, {101}, {304 / size, 16 / size, 2000 / size, 640 / size}, {}, size,
                Strides::packed);
    std::vector<Int> uneven;
    for (int p = 0; p < 600; ++p) uneven.push_back(p == 7 ? 2000 : random.between(0, 40));
    check_slabs(random, {50}, uneven, {}, size, Strides::packed);
    check_slabs(random, {4, 3}, {5, 6, 7}, {3, 11}, size, Strides::any);
  }
}

// ---- times --------------------------------------------------------------------------------------

Clock* timer;

void time_slabs(const std::string& name, Int rows, const std::vector<Int>& lengths, int size) {
  Int total = 0;
  for (Int length : lengths) total += length;
  const Tensor joined = packed_tensor(DataType::unknown, size, {rows, total});
  const Int bytes = joined.layout.count() * size;
  DeviceMemory memory(static_cast<std::size_t>(bytes)),
      all(static_cast<std::size_t>(bytes) + lengths.size() * 512);
  SlabsPlan plan(joined, 1);
  std::vector<void*> parts;
  Int at = 0;
  for (Int length : lengths) {
    parts.push_back(all.get() + at);
    at += (rows * length * size + 511) / 512 * 512;
    plan.add(packed_tensor(DataType::unknown, size, {rows, length}).layout);
  }
  repeat_on_device(memory, bytes, random_block());
  repeat_on_device(all, at, random_block());
  timer->report("split " + name, 2.0 * static_cast<double>(bytes),
                [&](cuda::Queue& queue) { cuda::split(plan, memory.get(), parts.data(), queue); });
  timer->report("join  " + name, 2.0 * static_cast<double>(bytes),
                [&](cuda::Queue& queue) { cuda::join(plan, parts.data(), memory.get(), queue); });
}

void time_copy(const std::string& name, const Layout& to, const Layout& from, int size,
               double bytes, Int memory_bytes) {
  DeviceMemory source(static_cast<std::size_t>(memory_bytes)),
      target(static_cast<std::size_t>(memory_bytes));
  repeat_on_device(source, memory_bytes, random_block());
  timer->report("copy  " + name, bytes, [&](cuda::Queue& queue) {
    cuda::copy_elements(to, target.get(), from, source.get(), size, queue);
  });
}

void time_all(const char* only) {
  Clock clock;
  timer = &clock;
  clock.only = only;
  clock.copy_rate();
  const auto equal = [](Int count, Int length) {
    return std::vector<Int>(static_cast<std::size_t>(count), length);
  };
  time_slabs("float32 16384x24576, 3 parts", 16384, equal(3, 8192), 4);
  time_slabs("float32 16384x24576, 192 parts", 16384, equal(192, 128), 4);
  time_slabs("int8 16384x24576, 192 parts", 16384, equal(192, 128), 1);
  time_slabs("int8 16384x24576, 6144 parts of 4", 16384, equal(6144, 4), 1);
  time_slabs("int8 16384x24576, 1024 parts of 24", 16384, equal(1024, 24), 1);
  time_slabs("float32 64 M x 2 (stack)", Int{1} << 26, equal(2, 1), 4);
  time_slabs("float32 16384x24575, 3 parts, uneven", 16384, {8191, 8193, 8191}, 4);
  time_slabs(
      "float32 16384x24576, 200 parts, uneven", 16384,
      [&] {
        std::vector<Int> lengths;
        for (int p = 0; p < 100; ++p) lengths.insert(lengths.end(), {100, 145});
        lengths.push_back(76);
        return lengths;
      }(),
      4);
  time_slabs("int8 1024 x 1 M parts of 1", 1024, equal(1 << 20, 1), 1);
  for (int size : kSizes) {
    const Int side = size == 16 ? 8192 : 16384, all = side * side * size;
    const Tensor square = packed_tensor(DataType::unknown, size, {side, side});
    const Layout to = square.layout;
    const std::string of = " of " + std::to_string(size);
    Layout from = to;
    std::swap(from.strides[0], from.strides[1]);
    time_copy("transposed" + of, to, from, size, 2.0 * static_cast<double>(all), all);
    from = to;
    from.sizes[1] -= 3;
    Layout packed = from;
    set_packed_strides(packed, size);
    const double moved = 2.0 * static_cast<double>(packed.count()) * size;
    time_copy("columns[:-3]" + of, packed, from, size, moved, all);
    time_copy("into columns[:-3]" + of, from, packed, size, moved, all);
    from = to;
    from.sizes[1] /= 2;
    from.strides[1] *= 2;
    packed = from;
    set_packed_strides(packed, size);
    time_copy("columns[::2], whole lines read" + of, packed, from, size,
              1.5 * static_cast<double>(all), all);
    // Rows of an image, channels last to channels first and back.
    const Int pixels = side * side / 3;
    Layout planes = packed_tensor(DataType::unknown, size, {3, pixels}).layout, mixed = planes;
    mixed.strides[0] = size;
    mixed.strides[1] = 3 * size;
    time_copy("3 channels apart" + of, planes, mixed, size,
              6.0 * static_cast<double>(pixels) * size, all);
    time_copy("3 channels together" + of, mixed, planes, size,
              6.0 * static_cast<double>(pixels) * size, all);
    Layout rows = to;
    rows.strides[0] = 0;
    time_copy("one row to all, written" + of, to, rows, size, static_cast<double>(all), all);
    rows = to;
    rows.strides[1] = 0;
    time_copy("one column to all, written" + of, to, rows, size, static_cast<double>(all), all);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    time_all(count > 2 ? arguments[2] : "");
    return 0;
  }
  check_copies();
  check_all_slabs();
  return outcome.exit_status("slabs");
}
