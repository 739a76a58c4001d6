// Tensors and axes of more than 2^31 elements on the GPU against the CPU's kernels. Some 20 GB of
// memory on either side.
#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;
const int threads = 16;

// The same bytes in host and device memory.
struct Both {
  explicit Both(Int size)
      : bytes(size),
        host(new char[static_cast<std::size_t>(size)]),
        device(static_cast<std::size_t>(size)) {
    const auto& block = random_block();
    const Int chunk = static_cast<Int>(block.size());
    for (Int at = 0; at < bytes; at += chunk)
      std::memcpy(host.get() + at, block.data(),
                  static_cast<std::size_t>(std::min(chunk, bytes - at)));
    repeat_on_device(device, bytes, block);
  }
  void compare(const std::string& what) {
    std::unique_ptr<char[]> found(new char[static_cast<std::size_t>(bytes)]);
    device.download(found.get(), static_cast<std::size_t>(bytes));
    const bool same = std::memcmp(found.get(), host.get(), static_cast<std::size_t>(bytes)) == 0;
    outcome.add(same, what);
    std::printf("%s: %s\n", what.c_str(), same ? "the same" : "DIFFERENT");
    std::fflush(stdout);
  }

  Int bytes;
  std::unique_ptr<char[]> host;
  DeviceMemory device;
};

void check_copies() {
  Both source(Int{4400000000});
  {
    const Tensor to = packed_tensor(DataType::unknown, 1, {70001, 61357});
    Tensor from = to;
    from.layout.strides[0] = 1;
    from.layout.strides[1] = 70001;
    Both target(to.layout.count());
    copy_elements(to.layout, target.host.get(), from.layout, source.host.get(), 1, threads);
    on_device([&](cuda::Queue& queue) {
      cuda::copy_elements(to.layout, target.device.get(), from.layout, source.device.get(), 1,
                          queue);
    });
    target.compare("a transposed copy");
  }
  const Tensor to = packed_tensor(DataType::unknown, 1, {65537, 33001});
  Tensor from = packed_tensor(DataType::unknown, 1, {65537, 66002});
  from.layout.sizes[1] = 33001;
  from.layout.strides[1] = 2;
  Both target(to.layout.count());
  copy_elements(to.layout, target.host.get(), from.layout, source.host.get(), 1, threads);
  on_device([&](cuda::Queue& queue) {
    cuda::copy_elements(to.layout, target.device.get(), from.layout, source.device.get(), 1, queue);
  });
  target.compare("a copy of every other element");
}

void check_slabs(const std::vector<Int>& sizes, int axis, const std::vector<Int>& lengths) {
  const Tensor joined = packed_tensor(DataType::unknown, 1, sizes);
  SlabsPlan plan(joined, axis);
  Both all(joined.layout.count()), parts(joined.layout.count());
  std::vector<void*> host, device;
  Int at = 0;
  for (Int length : lengths) {
    std::vector<Int> own = sizes;
    own[static_cast<std::size_t>(axis)] = length;
    const Tensor part = packed_tensor(DataType::unknown, 1, own);
    plan.add(part.layout);
    host.push_back(parts.host.get() + at);
    device.push_back(parts.device.get() + at);
    at += part.layout.count();
  }
  plan.split(all.host.get(), host.data(), threads);
  on_device([&](cuda::Queue& queue) { cuda::split(plan, all.device.get(), device.data(), queue); });
  parts.compare("split of " + std::to_string(sizes.size()) + " dimensions");
  std::memset(all.host.get(), 0, static_cast<std::size_t>(all.bytes));
  on_device([&](cuda::Queue& queue) {
    queue.zero(all.device.get(), all.bytes);
    cuda::join(plan, device.data(), all.device.get(), queue);
  });
  plan.join(host.data(), all.host.get(), threads);
  all.compare("join of " + std::to_string(sizes.size()) + " dimensions");
}

void check_nonzero(const std::vector<Int>& sizes) {
  NonzeroPlan plan;
  plan.input = packed_tensor(DataType::uint8, 1, sizes);
  plan.columns = static_cast<int>(sizes.size());
  Both input(plan.input.layout.count());
  // Mostly zeros: one byte in some hundred keeps its random value.
  std::vector<unsigned char> block = random_block();
  Random random(5);
  for (unsigned char& byte : block)
    if (!random.chance(0.003)) byte = 0;
  const Int chunk = static_cast<Int>(block.size());
  for (Int at = 0; at < input.bytes; at += chunk)
    std::memcpy(input.host.get() + at, block.data(),
                static_cast<std::size_t>(std::min(chunk, input.bytes - at)));
  repeat_on_device(input.device, input.bytes, block);
  const NonzeroPlan::Found found = plan.scan(input.host.get(), threads);
  const Tensor rows = packed_tensor(DataType::uint64, 8, {found.count, plan.columns});
  Both coordinates(rows.layout.count() * 8);
  plan.write(found, rows, coordinates.host.get(), threads);
  Int count = -1;
  on_device([&](cuda::Queue& queue) {
    const cuda::NonzeroFound found_on_device = cuda::nonzero_scan(plan, input.device.get(), queue);
    cuda::nonzero_write(plan, found_on_device, found.count, rows, coordinates.device.get(), queue);
    queue.read(&count, found_on_device.count, sizeof count);
  });
  outcome.add(count == found.count, "the count");
  coordinates.compare("coordinates of " + std::to_string(sizes.size()) + " dimensions");
}

void check_data_movement() {
  {
    const CastPlan plan{packed_tensor(DataType::uint8, 1, {Int{2200000003}}),
                        packed_tensor(DataType::float16, 2, {Int{2200000003}})};
    Both from(plan.input.layout.count()), to(plan.output.layout.count() * 2);
    plan.run(from.host.get(), to.host.get(), threads);
    on_device(
        [&](cuda::Queue& queue) { cuda::cast(plan, from.device.get(), to.device.get(), queue); });
    to.compare("a cast");
  }
  for (DataType type : {DataType::int16, DataType::float16}) {
    SequencePlan plan;
    plan.output = packed_tensor(type, 2, {65537, 33001});
    plan.start = 3;
    plan.delta = 7;
    plan.float_start = -100;
    plan.float_delta = 0x1p-14;
    Both to(plan.output.layout.count() * 2);
    plan.run(to.host.get(), threads);
    on_device([&](cuda::Queue& queue) { cuda::sequence(plan, to.device.get(), queue); });
    to.compare("a sequence of type " + std::to_string(static_cast<int>(type)));
  }
  for (const std::vector<Int>& starts : {std::vector<Int>{1, 3}, {0, 70000}}) {
    const Tensor input = packed_tensor(DataType::unknown, 1, {33000, 66000});
    Tensor output =
        packed_tensor(DataType::unknown, 1, {33000 + starts[0] + 2, 66000 + starts[1] + 5});
    const PaddingPlan plan{input, output, starts.data(), PaddingMode::reflection, {0, 0}};
    Both from(input.layout.count()), to(output.layout.count());
    plan.run(from.host.get(), to.host.get(), threads);
    on_device(
        [&](cuda::Queue& queue) { cuda::pad(plan, from.device.get(), to.device.get(), queue); });
    to.compare("a padding");
  }
}

// Some positions among `size`, in both memories.
struct Positions {
  Positions(Random& random, Int count, Int size)
      : host(static_cast<std::size_t>(count)), device(static_cast<std::size_t>(count) * 8) {
    for (int64_t& at : host) at = random.between(-size, size - 1);
    host.back() = size - 1;
    device.upload(host.data(), host.size() * 8);
  }
  std::vector<int64_t> host;
  DeviceMemory device;
};

void check_gathers(Random& random) {
  const auto compare = [&](const std::vector<Int>& sizes, const std::vector<Int>& lookup,
                           const std::vector<Int>& result, const std::string& what) {
    const GatherPlan plan{packed_tensor(DataType::unknown, 1, sizes),
                          packed_tensor(DataType::int64, 8, lookup),
                          packed_tensor(DataType::unknown, 1, result), 0, OutOfRange::raise};
    const Positions at(random, plan.indices.layout.count(), sizes[0]);
    Both from(plan.input.layout.count()), to(plan.output.layout.count());
    plan.run(from.host.get(), at.host.data(), to.host.get(), true, threads);
    on_device([&](cuda::Queue& queue) {
      cuda::gather(plan, from.device.get(), at.device.get(), to.device.get(), true, queue);
    });
    to.compare(what);
  };
  compare({Int{2200000003}}, {5000000}, {5000000}, "a gather from 2.2 G elements");
  compare({70001, 33000}, {66700}, {66700, 33000}, "a gather of 2.2 G elements in rows");
  compare({3, 33}, {Int{67000000}}, {Int{67000000}, 33},
          "a gather of 2.2 G elements in short rows");
}

void check_scatters(Random& random) {
  for (Reduction reduction : {Reduction::none, Reduction::add}) {
    const Tensor target = packed_tensor(DataType::uint8, 1, {Int{2200000003}});
    const ScatterPlan plan{target,
                           packed_tensor(DataType::int64, 8, {5000000}),
                           packed_tensor(DataType::uint8, 1, {5000000}),
                           target,
                           0,
                           reduction};
    const Positions at(random, 5000000, target.layout.sizes[0]);
    Both from(target.layout.count()), updates(5000000), to(target.layout.count());
    plan.run(from.host.get(), at.host.data(), updates.host.get(), to.host.get(), true, threads);
    on_device([&](cuda::Queue& queue) {
      cuda::scatter_elements(plan, from.device.get(), at.device.get(), updates.device.get(),
                             to.device.get(), true, queue);
    });
    to.compare("a scatter to 2.2 G elements, reduction " +
               std::to_string(static_cast<int>(reduction)));
  }
  const Tensor target = packed_tensor(DataType::uint8, 1, {70001, 33000});
  const ScatterNdPlan plan{target, packed_tensor(DataType::int64, 8, {5000, 1}),
                           packed_tensor(DataType::uint8, 1, {5000, 33000}), target,
                           Reduction::none};
  const Positions at(random, 5000, 70001);
  Both from(target.layout.count()), updates(plan.updates.layout.count()), to(target.layout.count());
  plan.run(from.host.get(), at.host.data(), updates.host.get(), to.host.get(), true, threads);
  on_device([&](cuda::Queue& queue) {
    cuda::scatter_nd(plan, from.device.get(), at.device.get(), updates.device.get(),
                     to.device.get(), true, queue);
  });
  to.compare("rows into 2.2 G elements");
}

}  // namespace

// `indices`: gathers and scatters only.
int main(int count, char** arguments) {
  Random random(9);
  check_gathers(random);
  check_scatters(random);
  if (count > 1 && std::string(arguments[1]) == "indices") return outcome.exit_status("large");
  check_copies();
  check_slabs({65537, 65600}, 1, {1, 32799, 32800});
  check_slabs({Int{2300000011}}, 0, {Int{2200000000}, 1, 100000010});
  check_nonzero({65537, 65539});
  check_nonzero({Int{2200000003}});
  check_data_movement();
  return outcome.exit_status("large");
}
