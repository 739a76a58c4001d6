// The gathers at their edges: bad indices at every place of a vector, the first of two, axes
// without a position, rows that end where readable memory does, steps of one byte, outputs with
// gaps.
#include "fenced.hpp"
#include "gather/cpu/gather_elements.hpp"
#include "harness.hpp"

namespace {

using namespace anydml;
using namespace anydml::test;

Tensor packed(Int rows, Int columns, int size, DataType type = DataType::unknown) {
  Tensor tensor;
  tensor.type = type;
  tensor.element_size = size;
  tensor.layout.push(rows, 0);
  tensor.layout.push(columns, 0);
  set_packed_strides(tensor.layout, size);
  return tensor;
}

void put(std::vector<char>& bytes, Int at, int size, Int value) {
  if (size == 8)
    store(bytes.data() + at * 8, value);
  else
    store(bytes.data() + at * 4, static_cast<int>(value));
}

// Two rows of elements of `size` bytes, the last one before a page that cannot be read.
void rows(const Fenced& memory, int size, DataType type, bool output_is_private) {
  const int index_size = type == DataType::int64 || type == DataType::uint64 ? 8 : 4;
  const Int columns = 301, reads = 261;
  char* const input = memory.last(2 * columns * size);
  for (Int i = 0; i < 2 * columns * size; ++i) input[i] = static_cast<char>(i * 7 + i / 256);
  const GatherElementsPlan plan{packed(2, columns, size), packed(2, reads, index_size, type),
                                packed(2, reads, size), 1};
  std::vector<char> indices(static_cast<std::size_t>(2 * reads * index_size));
  std::vector<char> output(static_cast<std::size_t>(2 * reads * size));
  const auto place = [&](Int i) { return i % 5 == 0 ? columns - 1 : i * 31 % columns; };
  for (Int i = 0; i < 2 * reads; ++i) put(indices, i, index_size, place(i));
  const auto run = [&] {
    return plan.run(input, indices.data(), output.data(), output_is_private, 1).bad_index;
  };
  EXPECT(run() == -1, "good indices, size %d", size);
  for (Int i = 0; i < 2 * reads; ++i)
    EXPECT(std::memcmp(output.data() + i * size, input + (i / reads * columns + place(i)) * size,
                       static_cast<std::size_t>(size)) == 0,
           "size %d, element %lld", size, i);
  const bool sign = type == DataType::int64 || type == DataType::int32;
  for (Int bad = 0; bad < 2 * reads; ++bad)
    for (const Int value : {columns, sign ? -columns - 1 : Int{INT32_MAX}}) {
      put(indices, bad, index_size, value);
      EXPECT(run() == bad, "size %d, a bad index at %lld", size, bad);
      put(indices, bad, index_size, place(bad));
    }
  // The first of two in the same piece: its last vector, and its first two.
  for (const auto& [first, second] : {std::pair<Int, Int>{512, 514}, {0, 20}}) {
    put(indices, first, index_size, columns);
    put(indices, second, index_size, columns);
    EXPECT(run() == first, "size %d, the first of two bad indices", size);
    put(indices, first, index_size, place(first));
    put(indices, second, index_size, place(second));
  }
}

Tensor strided(std::initializer_list<std::pair<Int, Int>> dims, int size,
               DataType type = DataType::unknown) {
  Tensor tensor;
  tensor.type = type;
  tensor.element_size = size;
  for (const auto& [length, stride] : dims) tensor.layout.push(length, stride);
  return tensor;
}

// Tuples of one and two of which two values are bad, in a row and apart: the first is named, and a
// bound output is left as it is.
void bad_tuples(DataType type, Int width, Int stride, Int count, bool output_is_private) {
  const int size = type == DataType::int64 || type == DataType::uint64 ? 8 : 4;
  const bool sign = type == DataType::int64 || type == DataType::int32;
  const std::vector<char> input(25 * 4, 1);
  std::vector<char> indices(static_cast<std::size_t>(count * width * stride * size));
  Tensor from = width == 1 ? strided({{5, 20}}, 4) : strided({{5, 20}, {5, 4}}, 4);
  const GatherNdPlan plan{
      from, strided({{count, width * stride * size}, {width, stride * size}}, size, type),
      strided({{count, 4}}, 4), 0};
  for (Int bad = 0; bad < count * width; ++bad)
    for (const Int value : {Int{5}, sign ? Int{-6} : Int{INT32_MAX}}) {
      std::vector<char> output(static_cast<std::size_t>(count * 4));
      put(indices, bad * stride, size, value);
      put(indices, (count * width - 1) * stride, size, value);
      const Int got =
          plan.run(input.data(), indices.data(), output.data(), output_is_private, 1).bad_index;
      EXPECT(got == bad, "value %lld of %lld tuples of %lld: %lld", bad, count, width, got);
      EXPECT(output_is_private || output == std::vector<char>(output.size()), "written");
      put(indices, bad * stride, size, 0);
    }
}

// Axes without a position, of which no element can be read, and outputs without an element.
void empty_axes() {
  const std::vector<Int> indices = {7, 0, -9, 0, 1, 1, 0, 0, 2, 0};
  const std::unique_ptr<char[]> nothing(new char[0]);
  const DataType index = DataType::int64;
  for (const bool output_is_private : {true, false})
    for (const OutOfRange mode :
         {OutOfRange::raise, OutOfRange::clamp, OutOfRange::wrap, OutOfRange::clip}) {
      std::vector<char> output(800);
      const auto bad = [&](const auto& plan) {
        return plan.run(nothing.get(), indices.data(), output.data(), output_is_private, 1)
            .bad_index;
      };
      EXPECT(bad(GatherPlan{strided({{0, 4}}, 4), strided({{5, 8}}, 8, index), strided({{5, 4}}, 4),
                            0, mode}) == 0,
             "gather");
      EXPECT(
          bad(GatherElementsPlan{strided({{2, 4}, {0, 4}}, 4), strided({{2, 40}, {5, 8}}, 8, index),
                                 strided({{2, 20}, {5, 4}}, 4), 1, mode}) == 0,
          "gather_elements");
      EXPECT(bad(GatherElementsPlan{strided({{0, 400}, {100, 4}}, 4),
                                    strided({{2, 0}, {100, 0}}, 8, index),
                                    strided({{2, 400}, {100, 4}}, 4), 0, mode}) == 0,
             "gather_elements, in strips");
      // The first value is out of range of its own axis, which a clamped one may be.
      EXPECT(
          bad(GatherNdPlan{strided({{3, 0}, {0, 4}}, 4), strided({{5, 16}, {2, 8}}, 8, index),
                           strided({{5, 4}}, 4), 0, mode}) == (mode == OutOfRange::raise ? 0 : 1),
          "gather_nd");
      const Int first = mode == OutOfRange::raise ? 0 : -1;
      EXPECT(bad(GatherPlan{strided({{4, 0}, {0, 4}}, 4), strided({{5, 8}}, 8, index),
                            strided({{5, 0}, {0, 4}}, 4), 0, mode}) == first,
             "gather of nothing");
      EXPECT(bad(GatherNdPlan{strided({{4, 0}, {0, 4}}, 4), strided({{5, 8}, {1, 8}}, 8, index),
                              strided({{5, 0}, {0, 4}}, 4), 0, mode}) == first,
             "gather_nd of nothing");
      EXPECT(output == std::vector<char>(800) || output_is_private, "written");
    }
}

// Elements of two bytes by rows of one, between pages that cannot be read.
void single_element() {
  const Fenced memory(4096);
  const std::vector<Int> indices(300);
  for (char* const row : {memory.first(2), memory.last(2)}) {
    store(row, uint16_t{0x1234});
    std::vector<uint16_t> output(300);
    const GatherElementsPlan plan{packed(1, 1, 2), packed(1, 300, 8, DataType::int64),
                                  packed(1, 300, 2), 1};
    EXPECT(plan.run(row, indices.data(), output.data(), true, 1).ok(), "a row of one");
    EXPECT(output == std::vector<uint16_t>(300, 0x1234), "a row of one");
  }
}

// Lines along the first axis, one byte apart in the input: also such as overlap.
void byte_steps(Int depth, Int reads, Int columns, Int axis_step, Int column_step, int size) {
  std::vector<char> input(
      static_cast<std::size_t>((depth - 1) * axis_step + (columns - 1) * column_step + size));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7 + i / 251);
  std::vector<int> indices(static_cast<std::size_t>(reads * columns));
  const auto place = [&](Int i) { return i * 31 % depth; };
  for (Int i = 0; i < reads * columns; ++i)
    indices[static_cast<std::size_t>(i)] = static_cast<int>(place(i));
  std::vector<char> output(static_cast<std::size_t>(reads * columns * size));
  const GatherElementsPlan plan{strided({{depth, axis_step}, {columns, column_step}}, size),
                                packed(reads, columns, 4, DataType::int32),
                                packed(reads, columns, size), 0};
  Status status;
  gather_elements_by(plan, GatherElementsMethod::direct, input.data(), indices.data(),
                     output.data(), true, 1, status);
  EXPECT(status.ok(), "byte steps");
  for (Int i = 0; i < reads * columns; ++i)
    EXPECT(std::memcmp(output.data() + i * size,
                       input.data() + place(i) * axis_step + i % columns * column_step,
                       static_cast<std::size_t>(size)) == 0,
           "%lld lines, %d bytes: element %lld", columns, size, i);
}

// Rows whose elements are two bytes apart, and which begin a byte apart, far away.
void bytes_in_turns() {
  std::vector<char> input(600000);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7 + i / 251);
  std::vector<int> indices(40);
  for (Int i = 0; i < 40; ++i) indices[static_cast<std::size_t>(i)] = static_cast<int>(i * 7001);
  std::vector<char> output(40);
  const GatherElementsPlan plan{strided({{2, 1}, {300000, 2}}, 1),
                                packed(2, 20, 4, DataType::int32), packed(2, 20, 1), 1};
  EXPECT(plan.run(input.data(), indices.data(), output.data(), true, 1).ok(), "in turns");
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT(output[i] == input[i * 14002 + i / 20], "in turns: element %zu", i);
}

// Outputs that are large enough to go past the cache, but not in one run: elements apart, whose
// dimensions of one lie close; strips whose rows are not whole lines, or are and the last strip's
// are not; rows of whole lines that begin beside one.
void past_the_cache() {
  const Int count = kStreamBytes / 16 + 1;
  const std::vector<uint64_t> input(2 * 4096, 3);
  const std::vector<int> indices(static_cast<std::size_t>(count));
  std::vector<uint64_t> output(static_cast<std::size_t>(4 * count));
  const GatherPlan strided_plan{strided({{9, 16}}, 16),
                                strided({{count, 4}, {1, 4}, {1, 4}}, 4, DataType::int32),
                                strided({{count, 32}, {1, 16}, {1, 16}}, 16), 0};
  EXPECT(strided_plan.run(input.data(), indices.data(), output.data(), true, 1).ok(), "apart");
  for (Int i = 0; i < 4 * count; ++i)
    EXPECT(output[static_cast<std::size_t>(i)] == (i % 4 < 2 ? 3 : 0), "apart, word %lld", i);

  const Int half = count / 2;  // columns that lie one after the other
  std::fill(output.begin(), output.end(), 0);
  const GatherPlan across{strided({{9, 16}}, 16), strided({{half, 8}, {2, 4}}, 4, DataType::int32),
                          strided({{half, 16}, {2, 16 * half}}, 16), 0};
  EXPECT(across.run(input.data(), indices.data(), output.data(), true, 1).ok(), "across");
  for (Int i = 0; i < 4 * half; ++i)
    EXPECT(output[static_cast<std::size_t>(i)] == 3, "across, word %lld", i);

  const auto strips = [](Int columns, Int row, Int offset) {
    const Int rows = kStreamBytes / (columns * 16) + 1;
    const std::vector<uint64_t> from(static_cast<std::size_t>(4 * columns * 2), 5);
    const std::vector<int> zeros(static_cast<std::size_t>(rows * columns));
    std::vector<char> memory(static_cast<std::size_t>(rows * row + 128));
    char* const to =
        memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) + offset;
    const GatherElementsPlan plan{packed(4, columns, 16), packed(rows, columns, 4, DataType::int32),
                                  strided({{rows, row}, {columns, 16}}, 16), 0};
    Status status;
    EXPECT(gather_elements_by(plan, GatherElementsMethod::strips, from.data(), zeros.data(), to,
                              true, 1, status) &&
               status.ok(),
           "strips");
    for (Int at = 0; at < rows; ++at) {
      EXPECT(std::memcmp(to + at * row, from.data(), static_cast<std::size_t>(columns * 16)) == 0,
             "strips of %lld columns: row %lld", columns, at);
      for (Int i = columns * 16; i < row; ++i) EXPECT(to[at * row + i] == 0, "between rows");
    }
    EXPECT(to[rows * row] == 0, "behind the output");
  };
  // So many positions that not even a line of each fits a cache.
  const GatherElementsPlan deep{strided({{140000, 64}, {64, 1}}, 1),
                                packed(2, 64, 4, DataType::int32), packed(2, 64, 1), 0};
  Status status;
  EXPECT(!gather_elements_by(deep, GatherElementsMethod::strips, input.data(), indices.data(),
                             output.data(), true, 1, status),
         "strips of a deep axis");
  strips(20, 320, 0);
  strips(16, 256, 1);
  strips(16, 257, 0);
}

}  // namespace

int main() {
  const Fenced memory(Int{64} << 10);
  for (const int size : {1, 2, 4, 8, 16})
    for (const DataType type :
         {DataType::int64, DataType::int32, DataType::uint64, DataType::uint32})
      for (const bool output_is_private : {true, false})
        rows(memory, size, type, output_is_private);
  for (const DataType type : {DataType::int64, DataType::int32, DataType::uint64, DataType::uint32})
    for (const Int width : {1, 2})
      for (const Int stride : {1, 3})
        for (const Int count : {7, 8, 20})
          for (const bool output_is_private : {true, false})
            bad_tuples(type, width, stride, count, output_is_private);
  empty_axes();
  single_element();
  for (const int size : {1, 2}) {
    byte_steps(30, 20, 600, 1000, 1, size);
    byte_steps(30, 2, 20000, 20000, 1, size);  // far
    byte_steps(300000, 20, 2, 2, 1, size);
  }
  bytes_in_turns();
  past_the_cache();
  std::printf("passed, 0 failed\n");
  return 0;
}
