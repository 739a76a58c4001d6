// The gathers on the GPU against the CPU's kernels: every byte, and every bad index.
#include <cstring>

#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;

enum class Op { gather, elements, nd };
enum class Bad { none, one, all };

void put(Operand& indices, Int flat, Int value) {
  std::memcpy(indices.at(flat), &value, static_cast<std::size_t>(indices.tensor.element_size));
}
Int get(Operand& indices, Int flat) {
  if (indices.tensor.element_size == 8) {
    Int value;
    std::memcpy(&value, indices.at(flat), 8);
    return value;
  }
  unsigned value;
  std::memcpy(&value, indices.at(flat), 4);
  return indices.tensor.type == DataType::int32 ? static_cast<int>(value) : static_cast<Int>(value);
}

Int good_value(Random& random, Int size, DataType type) {
  return is_signed_type(type) ? random.between(-size, size - 1) : random.between(0, size - 1);
}
Int bad_value(Random& random, Int size, DataType type) {
  const Int choice = random.between(0, 3);
  const Int far = size_of(type) == 8 ? Int{1} << 62 : Int{1} << 30;
  if (choice == 0) return size;
  if (choice == 1) return is_signed_type(type) ? -size - 1 : size + 1;
  if (choice == 2) return is_signed_type(type) ? -far : -1;  // an unsigned type's greatest
  return far;
}

struct Case {
  Op op;
  std::vector<Int> input, indices, output;
  int axis = 0, count = 1;  // axes that indices point into
};

// Sizes of a call; `batch` of them are common to input and indices for nd.
Case random_case(Random& random, Op op, Int limit) {
  Case test_case;
  test_case.op = op;
  test_case.input = random_sizes(random, 5, limit);
  if (test_case.input.empty()) test_case.input = {random.between(1, limit)};
  const int rank = static_cast<int>(test_case.input.size());
  const auto part = [](const std::vector<Int>& from, int begin, int end) {
    return std::vector<Int>(from.begin() + begin, from.begin() + end);
  };
  const auto append = [](std::vector<Int>& to, const std::vector<Int>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  if (op == Op::elements) {
    test_case.axis = static_cast<int>(random.between(0, rank - 1));
    test_case.indices = test_case.input;
    for (int i = 0; i < rank; ++i) {
      Int& size = test_case.indices[static_cast<std::size_t>(i)];
      if (i == test_case.axis)
        size = random.chance(0.05) ? 0 : random.between(1, 40);
      else if (random.chance(0.3))
        size = random.between(0, size);
    }
    test_case.output = test_case.indices;
  } else if (op == Op::gather) {
    test_case.axis = static_cast<int>(random.between(0, rank - 1));
    test_case.indices = random_sizes(random, 3, 60);
    test_case.output = part(test_case.input, 0, test_case.axis);
    append(test_case.output, test_case.indices);
    append(test_case.output, part(test_case.input, test_case.axis + 1, rank));
  } else {
    test_case.axis = static_cast<int>(random.between(0, random.chance(0.5) ? 0 : rank));  // batches
    test_case.count = static_cast<int>(random.between(0, rank - test_case.axis));
    test_case.indices = part(test_case.input, 0, test_case.axis);
    append(test_case.indices, random_sizes(random, 2, 60));
    test_case.output = test_case.indices;
    append(test_case.output, part(test_case.input, test_case.axis + test_case.count, rank));
    test_case.indices.push_back(test_case.count);
  }
  return test_case;
}

Status on_cpu(const Case& test_case, const Tensor& in, const Tensor& lookup, const Tensor& out,
              OutOfRange mode, const void* source, const void* indices, void* target,
              bool output_is_private) {
  if (test_case.op == Op::gather)
    return GatherPlan{in, lookup, out, test_case.axis, mode}.run(source, indices, target,
                                                                 output_is_private, 1);
  if (test_case.op == Op::elements)
    return GatherElementsPlan{in, lookup, out, test_case.axis, mode}.run(source, indices, target,
                                                                         output_is_private, 1);
  return GatherNdPlan{in, lookup, out, test_case.axis, mode}.run(source, indices, target,
                                                                 output_is_private, 1);
}
void on_gpu(const Case& test_case, const Tensor& in, const Tensor& lookup, const Tensor& out,
            OutOfRange mode, const void* source, const void* indices, void* target,
            bool output_is_private, cuda::Queue& queue) {
  if (test_case.op == Op::gather)
    cuda::gather({in, lookup, out, test_case.axis, mode}, source, indices, target,
                 output_is_private, queue);
  else if (test_case.op == Op::elements)
    cuda::gather_elements({in, lookup, out, test_case.axis, mode}, source, indices, target,
                          output_is_private, queue);
  else
    cuda::gather_nd({in, lookup, out, test_case.axis, mode}, source, indices, target,
                    output_is_private, queue);
}

void check(Random& random, const Case& test_case, int size, DataType type, Strides strides, Bad bad,
           OutOfRange mode, bool output_is_private) {
  Int elements = 1;
  for (Int n : test_case.output) elements *= n;
  if (elements > 3000000 || test_case.output.size() > 8) return;
  Operand input(random, test_case.input, size, DataType::unknown, strides, Role::input);
  Operand indices(random, test_case.indices, size_of(type), type,
                  random.chance(0.5) ? Strides::packed : random_strides(random), Role::input);
  Operand output(random, test_case.output, size, DataType::unknown,
                 output_is_private ? Strides::packed : strides, Role::output);
  const Int count = indices.count();
  for (Int i = 0; i < count; ++i) {
    const Int axis_size = test_case.input[static_cast<std::size_t>(
        test_case.axis + (test_case.count > 1 ? i % test_case.count : 0))];
    if (axis_size == 0) {
      if (mode == OutOfRange::clamp) return;
      put(indices, i, 0);
      continue;
    }
    const bool wrong = bad == Bad::all || (bad == Bad::one && random.chance(1.0 / 40));
    put(indices, i,
        wrong ? bad_value(random, axis_size, type) : good_value(random, axis_size, type));
  }
  const std::string what = "op " + std::to_string(static_cast<int>(test_case.op)) + " axis " +
                           std::to_string(test_case.axis) + " of " +
                           std::to_string(test_case.count) +
                           (output_is_private ? " output_is_private" : " bound") +
                           (mode == OutOfRange::clamp ? " clamp " : " ") + input.text() +
                           " indices " + indices.text() + " output " + output.text();
  const std::vector<unsigned char> before = output.bytes;
  input.on_gpu();
  indices.on_gpu();
  output.on_gpu();
  const Status status = on_cpu(test_case, input.tensor, indices.tensor, output.tensor, mode,
                               input.host(), indices.host(), output.host(), false);
  if (!status.ok()) {
    outcome.add(output.bytes == before, what + ": the CPU wrote");
    if (output_is_private)
      for (Int i = 0; i < output.count(); ++i)
        std::memset(output.at(i), 0, static_cast<std::size_t>(size));
  }
  on_device([&](cuda::Queue& queue) {
    on_gpu(test_case, input.tensor, indices.tensor, output.tensor, mode, input.on_gpu(),
           indices.on_gpu(), output.on_gpu(), output_is_private, queue);
  });
  outcome.expect(output, what);
  cuda::BadIndex found;
  const bool reported = device().bad_indices.take(found);
  outcome.add(reported == !status.ok(), what + ": a bad index is reported");
  if (!reported || status.ok()) return;
  outcome.add(found.position == status.bad_index, what + ": position " +
                                                      std::to_string(found.position) + ", not " +
                                                      std::to_string(status.bad_index));
  outcome.add(found.value == get(indices, status.bad_index),
              what + ": value " + std::to_string(found.value));
  const int at = test_case.count > 1 ? static_cast<int>(status.bad_index % test_case.count) : 0;
  outcome.add(found.axis == test_case.axis + at &&
                  found.size == test_case.input[static_cast<std::size_t>(found.axis)] &&
                  found.sizes == test_case.indices && found.more == 0,
              what + ": what the message says");
}

void check_all() {
  Random random(31);
  for (Op op : {Op::gather, Op::elements, Op::nd})
    for (int size : {1, 2, 4, 8, 16})
      for (DataType type : kIndexTypes)
        for (Bad bad : {Bad::none, Bad::none, Bad::one, Bad::all})
          for (int n = 0; n < cases(12, 1); ++n)
            check(random, random_case(random, op, random.chance(0.4) ? 5000 : 300), size, type,
                  random_strides(random), bad, OutOfRange::raise, random.chance(0.5));
  for (Op op : {Op::gather, Op::elements, Op::nd})
    for (int size : {1, 4, 16})
      for (DataType type : kIndexTypes)
        for (Bad bad : {Bad::none, Bad::one, Bad::all})
          for (int n = 0; n < cases(4, 1); ++n)
            check(random, random_case(random, op, 500), size, type, random_strides(random), bad,
                  OutOfRange::clamp, random.chance(0.5));
  // Rows of every length at every address, strips, many dimensions, several blocks.
  for (int size : {1, 2, 4, 8})
    for (Int row : {1, 3, 17, 31, 64, 65, 127, 128, 257, 1000, 4099})
      for (Bad bad : {Bad::none, Bad::one})
        for (bool output_is_private : {false, true}) {
          Case test_case{Op::gather, {97, row}, {211}, {211, row}};
          check(random, test_case, size, DataType::int64, Strides::packed, bad, OutOfRange::raise,
                output_is_private);
          test_case = {Op::nd, {5, 97, row}, {5, 40, 1}, {5, 40, row}, 1, 1};
          check(random, test_case, size, DataType::int32, Strides::packed, bad, OutOfRange::raise,
                output_is_private);
        }
  for (Bad bad : {Bad::none, Bad::one})
    for (bool output_is_private : {false, true}) {
      const Case tall{Op::elements, {20000, 1100}, {300, 1100}, {300, 1100}};
      const Case wide{Op::elements, {3, 9000, 1031}, {3, 70, 1031}, {3, 70, 1031}, 1};
      for (int size : {1, 4, 8}) {
        check(random, tall, size, DataType::int64, Strides::packed, bad, OutOfRange::raise,
              output_is_private);
        check(random, wide, size, DataType::uint32, Strides::packed, bad, OutOfRange::raise,
              output_is_private);
      }
      const Case last{Op::elements, {300, 8192}, {300, 5000}, {300, 5000}, 1};
      for (int size : {1, 2, 4, 8, 16})
        check(random, last, size, DataType::int64, Strides::packed, bad, OutOfRange::raise,
              output_is_private);
      check(random, {Op::gather, {2, 3, 2, 3, 2, 4, 3}, {5}, {2, 3, 2, 5, 2, 4, 3}, 3}, 4,
            DataType::int64, Strides::any, bad, OutOfRange::raise, output_is_private);
      check(random, {Op::nd, {2, 3, 2, 3, 2, 4, 3, 2}, {500, 8}, {500}, 0, 8}, 2, DataType::int64,
            Strides::any, bad, OutOfRange::raise, output_is_private);
    }
}

// More elements than a launch counts, and places beyond 2^31 elements and 2^32 bytes.
void check_large() {
  const Int rows = Int{3} << 20, row = 1024, taken = Int{5} << 19;  // 3 G elements of a byte
  const Int bytes = rows * row;
  DeviceMemory input(static_cast<std::size_t>(bytes)), output(static_cast<std::size_t>(bytes));
  repeat_on_device(input, bytes, random_block());
  Random random(32);
  std::vector<Int> indices(static_cast<std::size_t>(taken));
  for (Int& index : indices) index = random.between(-rows, rows - 1);
  indices.back() = rows - 1;
  DeviceMemory lookup(indices.size() * 8);
  lookup.upload(indices.data(), indices.size() * 8);
  const Int block = static_cast<Int>(random_block().size());
  for (Int shift : {0, 1}) {  // at 1 the rows have no address of 16 bytes: by rows, by bytes
    const Case test_case{Op::gather, {rows - 1, row}, {taken}, {taken, row}};
    const Tensor in = packed_tensor(DataType::unknown, 1, test_case.input);
    const Tensor out = packed_tensor(DataType::unknown, 1, test_case.output);
    const Tensor at = packed_tensor(DataType::int64, 8, test_case.indices);
    for (Int& index : indices)
      if (index == rows - 1 || index == -rows) index = rows - 2;
    lookup.upload(indices.data(), indices.size() * 8);
    on_device([&](cuda::Queue& queue) {
      on_gpu(test_case, in, at, out, OutOfRange::raise, input.get() + shift, lookup.get(),
             output.get(), true, queue);
    });
    std::vector<unsigned char> row_bytes(static_cast<std::size_t>(row));
    bool good = true;
    for (int n = 0; n < 4000; ++n) {
      const Int i = n == 0 ? taken - 1 : random.between(0, taken - 1);
      events().download(row_bytes.data(),
                        reinterpret_cast<unsigned long long>(output.get()) +
                            static_cast<unsigned long long>(i * row),
                        row_bytes.size());
      Int from = indices[static_cast<std::size_t>(i)];
      from = (from < 0 ? from + rows - 1 : from) * row + shift;
      for (Int b = 0; b < row; ++b)
        good = good && row_bytes[static_cast<std::size_t>(b)] ==
                           random_block()[static_cast<std::size_t>((from + b) % block)];
    }
    outcome.add(good, "gather above 2^31 elements, shift " + std::to_string(shift));
    // A bad index near the end of a bound output: nothing is written.
    const Int wrong = rows;
    events().upload(reinterpret_cast<unsigned long long>(lookup.get() + (taken - 2) * 8), &wrong,
                    8);
    on_device([&](cuda::Queue& queue) {
      queue.zero(output.get(), bytes);
      on_gpu(test_case, in, at, out, OutOfRange::raise, input.get() + shift, lookup.get(),
             output.get(), false, queue);
    });
    cuda::BadIndex found;
    outcome.add(
        device().bad_indices.take(found) && found.position == taken - 2 && found.value == rows,
        "a bad index above 2^31 elements");
    good = true;
    for (int n = 0; n < 1000; ++n) {
      events().download(row_bytes.data(),
                        reinterpret_cast<unsigned long long>(output.get()) +
                            static_cast<unsigned long long>(random.between(0, taken - 1) * row),
                        row_bytes.size());
      for (unsigned char byte : row_bytes) good = good && byte == 0;
    }
    outcome.add(good, "nothing is written above 2^31 elements");
  }
}

// ---- times --------------------------------------------------------------------------------------

enum class Pattern { random, ascending, descending, one, few_rows, permutation };
constexpr const char* kNames[] = {"random", "ascending", "descending", "one", "few", "permutation"};

std::vector<Int> pattern_of(Pattern pattern, Int count, Int size) {
  Random random(33);
  std::vector<Int> positions(static_cast<std::size_t>(count));
  for (Int i = 0; i < count; ++i) {
    Int& value = positions[static_cast<std::size_t>(i)];
    switch (pattern) {
      case Pattern::random:
        value = random.between(0, size - 1);
        break;
      case Pattern::one:
        value = size / 3;
        break;
      case Pattern::few_rows:
        value = random.between(0, 9) * (size / 10);
        break;
      case Pattern::descending:
        value = size - 1 - i % size;
        break;
      default:
        value = i % size;
    }
  }
  if (pattern == Pattern::permutation)
    for (Int i = count - 1; i > 0; --i)
      std::swap(positions[static_cast<std::size_t>(i)],
                positions[static_cast<std::size_t>(random.between(0, i))]);
  return positions;
}

void time_case(Clock& clock, const std::string& name, const Case& test_case, int size,
               Pattern pattern, Int distinct, bool output_is_private = true) {
  const Tensor in = packed_tensor(DataType::unknown, size, test_case.input);
  const Tensor out = packed_tensor(DataType::unknown, size, test_case.output);
  const Tensor at = packed_tensor(DataType::int64, 8, test_case.indices);
  const Int count = at.layout.count();
  DeviceMemory input(static_cast<std::size_t>(in.layout.count() * size));
  DeviceMemory output(static_cast<std::size_t>(out.layout.count() * size));
  DeviceMemory lookup(static_cast<std::size_t>(count * 8));
  const Int chunk = std::min<Int>(count, Int{8} << 20);
  const std::vector<Int> values = pattern_of(pattern, chunk, distinct);
  const unsigned char* const raw = reinterpret_cast<const unsigned char*>(values.data());
  repeat_on_device(lookup, count * 8, std::vector<unsigned char>(raw, raw + chunk * 8));
  repeat_on_device(input, in.layout.count() * size, random_block());
  const double bytes =
      static_cast<double>(count) * 8 + 2.0 * static_cast<double>(out.layout.count()) * size;
  clock.report(
      name + " " + kNames[static_cast<int>(pattern)] + (output_is_private ? "" : ", bound"), bytes,
      [&](cuda::Queue& queue) {
        on_gpu(test_case, in, at, out, OutOfRange::raise, input.get(), lookup.get(), output.get(),
               output_is_private, queue);
      });
}

void time_all(const char* only) {
  Clock clock;
  clock.only = only;
  clock.copy_rate();
  const Int M = Int{1} << 20;
  for (int p = 0; p < 6; ++p) {
    const Pattern pattern = static_cast<Pattern>(p);
    for (Int row : {32, 128, 1024, 4096}) {
      const Int rows = 256 * M / (row * 4);
      time_case(clock, "rows of " + std::to_string(row) + " float32",
                {Op::gather, {rows, row}, {rows}, {rows, row}}, 4, pattern, rows);
    }
    time_case(clock, "rows of 127 float32",
              {Op::gather, {512 * 1024, 127}, {512 * 1024}, {512 * 1024, 127}}, 4, pattern,
              512 * 1024);
    time_case(clock, "64 M from 64 M float32", {Op::gather, {64 * M}, {64 * M}, {64 * M}}, 4,
              pattern, 64 * M);
    time_case(clock, "4 M from 64 M float32", {Op::gather, {64 * M}, {4 * M}, {4 * M}}, 4, pattern,
              64 * M);
    time_case(clock, "elements 8192^2 axis 1",
              {Op::elements, {8192, 8192}, {8192, 8192}, {8192, 8192}, 1}, 4, pattern, 8192);
    time_case(clock, "elements 8192^2 axis 0",
              {Op::elements, {8192, 8192}, {8192, 8192}, {8192, 8192}, 0}, 4, pattern, 8192);
    time_case(clock, "nd 16 M tuples of 2 from 8192^2",
              {Op::nd, {8192, 8192}, {16 * M, 2}, {16 * M}, 0, 2}, 4, pattern, 8192);
    if (p > 0) continue;
    for (int size : {1, 2, 8, 16})
      time_case(clock, "64 M from 64 M of " + std::to_string(size),
                {Op::gather, {64 * M}, {64 * M}, {64 * M}}, size, pattern, 64 * M);
    time_case(clock, "rows of 1024 float32", {Op::gather, {65536, 1024}, {65536}, {65536, 1024}}, 4,
              pattern, 65536, false);
    time_case(clock, "64 M from 64 M float32", {Op::gather, {64 * M}, {64 * M}, {64 * M}}, 4,
              pattern, 64 * M, false);
    time_case(clock, "elements 8192^2 axis 1",
              {Op::elements, {8192, 8192}, {8192, 8192}, {8192, 8192}, 1}, 4, pattern, 8192, false);
    time_case(clock, "columns: 8192^2 axis 1, 4096",
              {Op::gather, {8192, 8192}, {4096}, {8192, 4096}, 1}, 4, pattern, 8192);
    time_case(clock, "32000x4096 half, 8192 rows",
              {Op::gather, {32000, 4096}, {8192}, {8192, 4096}}, 2, pattern, 32000);
    time_case(clock, "4096 rows of 128", {Op::gather, {100000, 128}, {4096}, {4096, 128}}, 4,
              pattern, 100000);
    time_case(clock, "16 from 16", {Op::gather, {16}, {16}, {16}}, 4, pattern, 16);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    time_all(count > 2 ? arguments[2] : "");
    return 0;
  }
  check_all();
  if (shortening() == 0 || count > 1) check_large();
  return outcome.exit_status("gather");
}
