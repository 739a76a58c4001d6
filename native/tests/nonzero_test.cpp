// NONZERO_COORDINATES against a walk over all elements that keeps the coordinates by counting.
#include "nonzero_cases.hpp"

namespace anydml::test {
namespace {

void small_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    const int rank = static_cast<int>(random.between(0, 6));
    const Int limit = random.chance(0.1) ? 9000 : 600;
    run(random, any_case(random, any_sizes(random, rank, limit)), any_pattern(random),
        any_density(random));
  }
}

// Several chunks; dimensions around the size above which a column is not divided.
void chunk_cases(Random& random, int count) {
  const std::vector<std::vector<Int>> shapes = {
      {32767},       {32768},       {32769},
      {65536},       {100001},      {4, 33250},
      {3, 32767},    {3, 32768},    {3, 32769},
      {2, 3, 20000}, {2, 40001},    {100, 331, 2},
      {300, 300},    {257, 256},    {70000, 1},
      {1, 70000, 1}, {33000, 3},    {5, 7, 11, 191},
      {181, 181, 2}, {2, 182, 182}, {64, 64, 17},
      {17, 64, 64},  {128, 512, 1}, {1023, 65},
      {1025, 63},    {66, 1024},    {2, 2, 2, 2, 2, 2, 1100},
  };
  for (int i = 0; i < count; ++i) {
    const auto& shape =
        shapes[static_cast<std::size_t>(random.between(0, static_cast<Int>(shapes.size()) - 1))];
    run(random, any_case(random, shape), any_pattern(random), any_density(random));
  }
}

// Rows longer than a chunk that end inside a word, few elements set but those around the ends: what
// is decoded eight words at a time must stop there.
void row_ends(Random& random) {
  for (Int length : {33250, 32769, 33279, 40001}) {
    for (Write write_mode : {Write::direct, Write::streamed, Write::grouped, Write::strided}) {
      Case c = any_case(random, {5, length});
      c.columns = 2;
      c.strides = c.row_strides = Strides::packed;
      c.threads = 1;
      c.scan = Scan::automatic;
      c.write = write_mode;
      Buffer input(random, c.sizes, c.kind.size, c.strides, Role::input, c.kind.type);
      fill(random, c.kind, input, Pattern::random, 0.001);
      for (Int end = length; end < 5 * length; end += length)
        for (Int at = end - 3; at < end + 40; at += random.between(1, 9))
          put_nonzero(random, c.kind, input.at(at));
      check(random, c, input);
    }
  }
}

// Rows that are made from words of which eight are decoded at once: some hold all their bits, so
// that the list of offsets becomes as long as it can, and most of a chunk holds none.
void dense_words(Random& random) {
  for (const std::vector<Int>& sizes :
       {std::vector<Int>{2, 2, 2, 8192}, {2, 2, 2, 2, 4096}, {65536}}) {
    for (const Write write_mode :
         {Write::direct, Write::streamed, Write::grouped, Write::strided}) {
      Case c = any_case(random, sizes);
      c.kind = {DataType::uint8, 1};
      c.columns = static_cast<int>(sizes.size());
      c.strides = c.row_strides = Strides::packed;
      c.threads = kMinThreads;
      c.scan = Scan::automatic;
      c.write = write_mode;
      Buffer input(random, sizes, 1, c.strides, Role::input, c.kind.type);
      for (Int i = 0; i < input.count(); ++i) {
        const Int word = i / nonzero::kWord, second = nonzero::kChunk / nonzero::kWord;
        // Where the first word is full the next sixteen are not decoded at once, else just so.
        const bool set = (word == 0 && i < (sizes.size() == 1 ? 48 : 64)) ||
                         (word >= 8 && word < 24) || (word >= second && word < second + 16) ||
                         i % 61 == 60;
        input.set<unsigned char>(i, set ? 1 : 0);
      }
      check(random, c, input);
    }
  }
}

// Columns of which some wrap within a chunk and others do not, in every way, a bit in some twenty.
void columns_cases(Random& random) {
  for (const std::vector<Int>& sizes :
       {std::vector<Int>{2, 2, 2, 2, 2, 2, 1100}, {1, 1, 1, 4, 150, 150}, {5, 7, 11, 191}}) {
    for (const Write write_mode :
         {Write::direct, Write::streamed, Write::grouped, Write::strided}) {
      for (const int columns : {static_cast<int>(sizes.size()), 0}) {
        Case c = any_case(random, sizes);
        c.kind = {DataType::uint8, 1};
        c.columns = columns;
        c.strides = c.row_strides = Strides::packed;
        c.threads = kMinThreads;
        c.scan = Scan::automatic;
        c.write = write_mode;
        run(random, c, Pattern::random, 0.05);
      }
    }
  }
}

// Tiles of a transposed input, each by itself: the words of the others must not change.
void tiles() {
  struct Shape {
    Int outer, size, length;
  };
  for (const Shape shape :
       {Shape{1, 63, 130}, {1, 64, 130}, {1, 65, 64}, {3, 100, 5}, {2, 70, 63}, {1, 69, 13}})
    for (const int width : {1, 2, 4, 8, 16}) {
      const Int rows = shape.outer * shape.size, count = rows * shape.length;
      std::vector<char> memory(static_cast<std::size_t>(count * width), 0);
      std::vector<uint64_t> words(static_cast<std::size_t>((count + 63) / 64)), expected(words);
      for (Int i = 0; i < count; ++i) {
        if (i % 3 != 0 && i % 7 != 0) continue;
        expected[static_cast<std::size_t>(i / 64)] |= uint64_t{1} << (i % 64);
        const Int row = i / shape.length, column = i % shape.length;
        const Int at = (row / shape.size * shape.length + column) * shape.size + row % shape.size;
        memory[static_cast<std::size_t>(at * width + i % width)] = 1;
      }
      nonzero::Source source;
      source.data = memory.data();
      source.element_size = width;
      source.mask = ~uint64_t{0};
      source.layout.push(shape.outer, count / shape.outer * width);
      source.layout.push(shape.size, width);
      source.layout.push(shape.length, shape.size * width);
      const nonzero::Tiling tiling = nonzero::transposed_tiling(source, true);
      EXPECT(tiling.dimension == 1 && tiling.rows == rows && tiling.row_length == shape.length,
             "dimension %d", tiling.dimension);
      EXPECT(tiling.tiles() == (rows + 63) / 64, "%lld tiles", tiling.tiles());
      for (Int tile = 0; tile < tiling.tiles(); ++tile) {
        const auto first = static_cast<std::size_t>(tile * shape.length);
        const std::size_t last =
            std::min(words.size(), first + static_cast<std::size_t>(shape.length));
        std::fill(words.begin(), words.end(), 0xA5A5A5A5A5A5A5A5u);
        nonzero::fill_transposed(source, tiling, tile, tile + 1, words.data());
        for (std::size_t word = 0; word < words.size(); ++word)
          EXPECT(
              words[word] == (word >= first && word < last ? expected[word] : 0xA5A5A5A5A5A5A5A5u),
              "%lld x %lld x %lld elements of %d bytes, tile %lld, word %zu", shape.outer,
              shape.size, shape.length, width, tile, word);
      }
      ++passed;
    }
}

// Rows at an address that is not a multiple of a coordinate's size.
void unaligned_rows() {
  const unsigned char values[] = {1, 0, 1, 1};
  NonzeroPlan plan;
  for (const Int stride : {2, 1}) plan.input.layout.push(2, stride);
  plan.input.type = DataType::uint8;
  plan.input.element_size = 1;
  plan.columns = 2;
  const NonzeroPlan::Found found = plan.scan(values, 1);
  Tensor rows;
  rows.layout.push(3, 8);
  rows.layout.push(2, 4);
  rows.element_size = 4;
  alignas(4) char memory[25] = {};
  plan.write(found, rows, memory + 1, 1);
  const uint32_t expected[] = {0, 0, 1, 0, 1, 1};
  EXPECT(std::memcmp(memory + 1, expected, sizeof(expected)) == 0, "rows at an odd address");
  ++passed;
}

// Columns of more elements than single precision tells apart.
void long_rows(Int length) {
  const Int last = 2 * length - 1;
  std::vector<unsigned char> values(static_cast<std::size_t>(2 * length));
  const Int places[] = {0, length - 1, length, last};
  for (const Int place : places) values[static_cast<std::size_t>(place)] = 1;
  NonzeroPlan plan;
  plan.input.layout.push(2, length);
  plan.input.layout.push(length, 1);
  plan.input.type = DataType::uint8;
  plan.input.element_size = 1;
  plan.columns = 2;
  const NonzeroPlan::Found found = plan.scan(values.data(), 1);
  EXPECT(found.count == 4, "%lld", found.count);
  Tensor rows;
  rows.layout.push(4, 16);
  rows.layout.push(2, 8);
  rows.element_size = 8;
  for (const Write write_mode : {Write::direct, Write::strided}) {
    uint64_t out[8] = {};
    nonzero::write(plan, found, rows, out, 1, write_mode);
    for (int i = 0; i < 4; ++i)
      EXPECT(static_cast<Int>(out[2 * i]) == places[i] / length &&
                 static_cast<Int>(out[2 * i + 1]) == places[i] % length,
             "element %lld", places[i]);
  }
  ++passed;
}

void long_rows() {
  for (const Int more : {5, 6}) long_rows((Int{1} << 23) + more);
}

// A dimension other than the last is the contiguous one.
void transposed_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    std::vector<Int> memory;  // sizes in the order of memory, the last contiguous
    const int rank = static_cast<int>(random.between(2, 5));
    Int limit = random.chance(0.2) ? 60000 : 8000;
    for (int j = 0; j < rank; ++j) {
      memory.push_back(random.between(1, std::min<Int>(limit, j == rank - 1 ? 300 : 140)));
      limit = std::max<Int>(limit / memory.back(), 1);
    }
    std::vector<std::size_t> order(memory.size());  // dimension j of the input is memory[order[j]]
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
    for (std::size_t j = order.size() - 1; j > 0; --j)
      std::swap(order[j], order[static_cast<std::size_t>(random.between(0, static_cast<Int>(j)))]);
    std::vector<Int> sizes;
    for (std::size_t j : order) sizes.push_back(memory[j]);
    Case c = any_case(random, sizes);
    if (random.chance(0.5)) c.scan = Scan::transposed;
    Buffer input(random, memory, c.kind.size, Strides::packed, Role::input, c.kind.type);
    const std::vector<Int> strides(input.tensor.layout.strides, input.tensor.layout.strides + rank);
    Layout& layout = input.relaid();
    for (int j = 0; j < rank; ++j) {
      const std::size_t from = order[static_cast<std::size_t>(j)];
      layout.sizes[j] = memory[from];
      layout.strides[j] = strides[from];
    }
    fill(random, c.kind, input, any_pattern(random), any_density(random));
    check(random, c, input);
  }
}

void deep_cases(Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    std::vector<Int> sizes(static_cast<std::size_t>(random.between(7, 64)), 1);
    for (int j = 0; j < 11; ++j)
      sizes[static_cast<std::size_t>(random.between(0, static_cast<Int>(sizes.size()) - 1))] = 2;
    run(random, any_case(random, sizes), any_pattern(random), any_density(random));
  }
}

// Large enough that the plan itself chooses every path: several threads, streaming stores.
void large_cases(Random& random, bool brief) {
  for (const Kind& kind : {Kind{DataType::float32, 4}, Kind{DataType::uint8, 1}}) {
    for (Pattern pattern : {Pattern::all, Pattern::random, Pattern::runs}) {
      for (int columns : {1, 2, 3, 5}) {
        std::vector<Int> sizes = {13, 5, 7, 60, 61};
        if (brief && (kind.size != 4 || columns != 2)) continue;
        if (columns == 2) sizes = {1500, 1101};
        if (columns == 3) sizes = {11, 333, 401};
        if (columns == 1) sizes = {2500000};
        Case c = any_case(random, sizes);
        c.kind = kind;
        c.columns = columns;
        c.value_size = random.chance(0.5) ? 4 : 8;
        c.strides = Strides::packed;
        c.row_strides = Strides::packed;
        c.threads = 3;
        c.scan = Scan::automatic;
        c.write = Write::automatic;
        run(random, c, pattern, 0.7);
      }
    }
  }
}

// The plan's own entry points, on the page's example.
void example() {
  const float values[] = {1.0f, 0.0f, 0.0f, 2.0f, -0.0f, 3.5f, 0.0f, -5.2f};
  NonzeroPlan plan;
  for (Int size : {1, 1, 2, 4}) plan.input.layout.push(size, 0);
  set_packed_strides(plan.input.layout, 4);
  plan.input.type = DataType::float32;
  plan.input.element_size = 4;
  plan.columns = 3;
  NonzeroPlan::Found scanned = plan.scan(values, 1);
  const NonzeroPlan::Found found = std::move(scanned);  // a caller may keep it elsewhere
  EXPECT(found.count == 4, "%lld", found.count);
  Tensor rows;
  rows.layout.push(8, 12);
  rows.layout.push(3, 4);
  rows.element_size = 4;
  uint32_t out[24] = {};
  plan.write(found, rows, out, 1);
  const uint32_t expected[24] = {0, 0, 0, 0, 0, 3, 0, 1, 1, 0, 1, 3};
  EXPECT(std::memcmp(out, expected, sizeof(out)) == 0, "the page's example");
  ++passed;
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  const bool brief = std::getenv("ANYDML_TEST_SHORT") != nullptr;
  Random random(20240607);
  example();
  small_cases(random, cases(12000, 600));
  chunk_cases(random, cases(700, 40));
  transposed_cases(random, cases(1500, 60));
  row_ends(random);
  dense_words(random);
  columns_cases(random);
  tiles();
  unaligned_rows();
  long_rows();
  deep_cases(random, cases(600, 40));
  large_cases(random, brief);
  std::printf("%ld passed, 0 failed\n", passed);
  return 0;
}
