// Copies, splits and joins against an element-by-element reference.
#include "moving/cpu/slabs.hpp"

#include <algorithm>
#include <string>

#include "harness.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;
const bool short_run = std::getenv("ANYDML_TEST_SHORT") != nullptr;

std::string describe(const Tensor& tensor) {
  std::string text = "size " + std::to_string(tensor.element_size) + " {";
  for (int i = 0; i < tensor.layout.rank; ++i)
    text += std::to_string(tensor.layout.sizes[i]) + ":" +
            std::to_string(tensor.layout.strides[i]) + " ";
  return text + "}";
}

void check_copy(Random& random, const std::vector<Int>& sizes, int element_size, Strides to,
                Strides from, int threads) {
  Buffer source(random, sizes, element_size, from, Role::input);
  Buffer target(random, sizes, element_size, to, Role::output);
  copy_elements(target.tensor.layout, target.data(), source.tensor.layout, source.data(),
                element_size, threads);
  EXPECT(target.elements() == source.elements(), "copy %s <- %s", describe(target.tensor).c_str(),
         describe(source.tensor).c_str());
  EXPECT(target.gaps_intact(), "copy %s <- %s", describe(target.tensor).c_str(),
         describe(source.tensor).c_str());
  EXPECT(source.unchanged(), "source");
  ++passed;
}

// Source and target each packed in an order of dimensions of their own, aligned for streaming.
void check_permuted(Random& random, const std::vector<Int>& sizes, const std::vector<int>& order,
                    int element_size, int threads) {
  const int rank = static_cast<int>(sizes.size());
  Tensor from, to;
  for (Int size : sizes) {
    from.layout.push(size, 0);
    to.layout.push(size, 0);
  }
  set_packed_strides(to.layout, element_size);
  Int stride = element_size;
  for (int n = rank - 1; n >= 0; --n) {
    from.layout.strides[order[static_cast<std::size_t>(n)]] = stride;
    stride *= sizes[static_cast<std::size_t>(order[static_cast<std::size_t>(n)])];
  }
  Scratch<char> source(stride + 64), target(stride + 64);
  for (Int i = 0; i < stride; i += 8) {
    const uint64_t bits = random.bits();
    std::memcpy(source.get() + i, &bits, static_cast<std::size_t>(std::min<Int>(8, stride - i)));
  }
  std::memset(target.get(), 0x5A, static_cast<std::size_t>(stride + 64));
  copy_elements(to.layout, target.get(), from.layout, source.get(), element_size, threads);
  const Int count = to.layout.count();
  const Layout* const layouts[1] = {&from.layout};
  Walker<1> walker(layouts, rank);
  walker.start(0);
  for (Int i = 0; i < count; ++i, walker.next())
    EXPECT(std::memcmp(target.get() + i * element_size, source.get() + walker.offset[0],
                       static_cast<std::size_t>(element_size)) == 0,
           "permuted at %lld", i);
  for (Int i = stride; i < stride + 64; ++i) EXPECT(target[i] == 0x5A, "past the end");
  ++passed;
}

void test_copies() {
  Random random(1);
  const int element_sizes[] = {1, 2, 4, 8, 16, 3, 12, 24, 32};
  for (int n = 0; n < cases(5000, 300); ++n) {
    const int rank = static_cast<int>(random.between(0, 6));
    std::vector<Int> sizes;
    Int limit = random.chance(0.3) ? 20000 : 500;
    for (int i = 0; i < rank; ++i) {
      const Int size =
          random.chance(0.03)
              ? 0
              : random.between(1,
                               std::max<Int>(1, std::min<Int>(limit, random.chance(0.3) ? 80 : 7)));
      sizes.push_back(size);
      limit /= std::max<Int>(1, size);
    }
    check_copy(random, sizes, element_sizes[random.between(0, 8)], random_strides(random),
               random_strides(random), any_threads(random));
  }
  // Transpositions around every tile and block size.
  for (int element_size : {1, 2, 4, 8, 16}) {
    const Int side = 64 / element_size;
    std::vector<Int> edges = {1, 2, side - 1, side, side + 1, 2 * side + 3, 4 * side, 4 * side + 1};
    for (Int height : edges)
      for (Int width : edges) {
        if (height < 1 || width < 1 || (short_run && random.chance(0.8))) continue;
        check_permuted(random, {height, width}, {1, 0}, element_size, 1);
        check_permuted(random, {3, height, width}, {2, 1, 0}, element_size, 2);
        check_copy(random, {height, 2, width}, element_size, Strides::packed, Strides::any, 2);
      }
  }
  // Streamed blocks whose lines are aligned but whose surroundings are not.
  if (kMinThreads == 1) check_permuted(random, {8000, 16, 17}, {2, 1, 0}, 4, 1);
  // Every method with threads, small and past the cache.
  for (int threads = 1; threads <= 4; threads += short_run ? 3 : 2) {
    if (threads < kMinThreads) continue;
    const Int k = short_run ? 1 : 3;
    if (has_turn()) check_permuted(random, {1024 * k, 1031}, {0, 1}, 4, threads);
    if (has_turn()) check_permuted(random, {1024 * k, 1024}, {1, 0}, 4, threads);
    if (has_turn()) check_permuted(random, {1031, 1027 * k}, {1, 0}, 4, threads);
    if (has_turn()) check_permuted(random, {16, 3, 100000 * k}, {0, 2, 1}, 2, threads);
    if (has_turn()) check_permuted(random, {2, 100000 * k, 3}, {0, 2, 1}, 4, threads);
    if (has_turn()) check_permuted(random, {3, 1000 * k, 1024}, {2, 0, 1}, 1, threads);
    if (has_turn()) check_permuted(random, {500 * k, 7, 301}, {1, 0, 2}, 8, threads);
    if (has_turn()) check_permuted(random, {100 * k, 64, 50, 3}, {3, 1, 2, 0}, 16, threads);
    if (has_turn()) check_copy(random, {2 * k, 700, 900}, 1, Strides::any, Strides::any, threads);
    if (has_turn()) check_copy(random, {1000, 700 * k}, 2, Strides::any, Strides::packed, threads);
    if (has_turn()) check_copy(random, {1500 * k}, 1000, Strides::packed, Strides::packed, threads);
  }
}

// Checks split and join by `method`; true when it applied.
bool check_slabs(Random& random, std::vector<Int> before, const std::vector<Int>& lengths,
                 const std::vector<Int>& behind, int element_size, Strides strides,
                 SlabMethod method, int threads) {
  const int axis = static_cast<int>(before.size());
  Int length = 0;
  for (Int part : lengths) length += part;
  std::vector<Int> sizes = before;
  sizes.push_back(length);
  sizes.insert(sizes.end(), behind.begin(), behind.end());
  bool applied = false;
  for (const bool split : {true, false}) {
    const Role part_role = split ? Role::output : Role::input;
    Buffer joined(random, sizes, element_size, strides, split ? Role::input : Role::output);
    SlabsPlan plan(joined.tensor, axis);
    std::vector<Buffer> parts;
    for (Int part : lengths) {
      sizes[static_cast<std::size_t>(axis)] = part;
      parts.emplace_back(random, sizes, element_size, strides, part_role);
      plan.add(parts.back().tensor.layout);
    }
    sizes[static_cast<std::size_t>(axis)] = length;
    std::vector<void*> pointers;
    for (Buffer& part : parts) pointers.push_back(part.data());
    const bool ran = split ? split_by(plan, method, joined.data(), pointers.data(), threads)
                           : join_by(plan, method, pointers.data(), joined.data(), threads);
    applied = applied || ran;
    if (!ran) {
      for (const Buffer& part : parts) EXPECT(part.unchanged(), "did not apply");
      EXPECT(joined.unchanged(), "did not apply");
      continue;
    }
    Int outer = 1, inner = element_size;
    for (Int size : before) outer *= size;
    for (Int size : behind) inner *= size;
    const std::vector<unsigned char> all = joined.elements();
    Int start = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::vector<unsigned char> part = parts[p].elements();
      const Int piece = lengths[p] * inner;
      for (Int row = 0; row < outer && piece > 0; ++row)
        EXPECT(std::memcmp(part.data() + row * piece, all.data() + row * length * inner + start,
                           static_cast<std::size_t>(piece)) == 0,
               "%s part %zu row %lld of %s, method %d", split ? "split" : "join", p, row,
               describe(joined.tensor).c_str(), static_cast<int>(method));
      start += piece;
      if (split)
        EXPECT(parts[p].gaps_intact(), "split part %zu of %s", p, describe(joined.tensor).c_str());
      else
        EXPECT(parts[p].unchanged(), "join source");
    }
    if (split)
      EXPECT(joined.unchanged(), "split source");
    else
      EXPECT(joined.gaps_intact(), "join %s", describe(joined.tensor).c_str());
    ++passed;
  }
  return applied;
}

// Parts with gaps behind each row, streamed.
void check_gaps(Random& random, SlabMethod method) {
  constexpr Int rows = 800, piece = 6, step = 10, count = 8;
  Buffer joined(random, {rows, piece * count}, 1, Strides::packed, Role::input);
  SlabsPlan plan(joined.tensor, 1);
  std::vector<Buffer> parts;
  std::vector<void*> pointers;
  std::vector<std::vector<unsigned char>> expected;
  for (Int p = 0; p < count; ++p) {
    parts.emplace_back(random, std::vector<Int>{rows, step}, 1, Strides::packed, Role::output);
    Layout layout = parts.back().tensor.layout;
    layout.sizes[1] = piece;
    plan.add(layout);
    expected.push_back(parts.back().elements());
    for (Int row = 0; row < rows; ++row)
      std::memcpy(&expected.back()[static_cast<std::size_t>(row * step)],
                  joined.at((row * count + p) * piece), piece);
  }
  for (Buffer& part : parts) pointers.push_back(part.data());
  EXPECT(split_by(plan, method, joined.data(), pointers.data(), 1), "did not apply");
  for (Int p = 0; p < count; ++p)
    EXPECT(parts[static_cast<std::size_t>(p)].elements() == expected[static_cast<std::size_t>(p)],
           "part %lld with gaps, method %d", p, static_cast<int>(method));
  ++passed;
}

// The same the other way: rows of a whole that has gaps, one byte longer than whole lines.
void check_gaps_joined(Random& random, SlabMethod method) {
  constexpr Int rows = 300, piece = 19, count = 27, step = piece * count + 10;
  static_assert(piece * count % 64 == 1);
  Buffer joined(random, {rows, step}, 1, Strides::packed, Role::output);
  std::vector<unsigned char> expected = joined.elements();
  Tensor tensor = joined.tensor;
  tensor.layout.sizes[1] = piece * count;
  SlabsPlan plan(tensor, 1);
  std::vector<Buffer> parts;
  std::vector<void*> pointers;
  for (Int p = 0; p < count; ++p) {
    parts.emplace_back(random, std::vector<Int>{rows, piece}, 1, Strides::packed, Role::input);
    plan.add(parts.back().tensor.layout);
    for (Int row = 0; row < rows; ++row)
      std::memcpy(&expected[static_cast<std::size_t>(row * step + p * piece)],
                  parts.back().at(row * piece), piece);
  }
  for (Buffer& part : parts) pointers.push_back(part.data());
  EXPECT(join_by(plan, method, pointers.data(), joined.data(), 1), "did not apply");
  EXPECT(joined.elements() == expected, "a whole with gaps, method %d", static_cast<int>(method));
  ++passed;
}

// Tiles past the cache need whole lines on the side that is written: of each part, of every row.
void check_alignment(Random& random, bool split, Int joined_offset, Int first_at, Int others_at) {
  constexpr Int rows = 160, count = 64, bytes = 4, part_bytes = rows * bytes + 64;
  constexpr Int row = count * bytes;
  Scratch<char> joined(rows * row + 64), memory(count * part_bytes);
  Tensor tensor;
  tensor.element_size = bytes;
  tensor.layout.push(rows, row);
  tensor.layout.push(count, bytes);
  SlabsPlan plan(tensor, 1);
  Layout part;
  part.push(rows, bytes);
  part.push(1, bytes);
  std::vector<char*> parts;
  for (Int p = 0; p < count; ++p) {
    plan.add(part);
    parts.push_back(memory.get() + p * part_bytes + (p == 0 ? first_at : others_at));
  }
  std::vector<void*> pointers(parts.begin(), parts.end());
  char* const all = joined.get() + joined_offset;
  for (Int i = 0; i < rows * row; ++i) all[i] = static_cast<char>(random.bits());
  for (Int p = 0; p < count && !split; ++p)
    for (Int i = 0; i < rows * bytes; ++i)
      parts[static_cast<std::size_t>(p)][i] = static_cast<char>(random.bits());
  EXPECT(split ? split_by(plan, SlabMethod::tiles, all, pointers.data(), 1)
               : join_by(plan, SlabMethod::tiles, pointers.data(), all, 1),
         "did not apply");
  for (Int p = 0; p < count; ++p)
    for (Int r = 0; r < rows; ++r)
      EXPECT(std::memcmp(parts[static_cast<std::size_t>(p)] + r * bytes, all + r * row + p * bytes,
                         bytes) == 0,
             "part %lld, row %lld", p, r);
  ++passed;
}

// Layouts that are not a matrix of bytes use the general copy.
void check_no_rows() {
  Tensor joined;
  joined.element_size = 4;
  joined.layout.push(6, 4);
  joined.layout.push(5, 24);
  SlabsPlan plan(joined, 0);
  Layout part;
  part.push(3, 4);
  part.push(5, 12);
  plan.add(part);
  plan.add(part);
  char data[120], first[60], second[60];
  for (int i = 0; i < 120; ++i) data[i] = static_cast<char>(i);
  void* parts[] = {first, second};
  for (const SlabMethod method : {SlabMethod::rows, SlabMethod::blocks, SlabMethod::tiles})
    EXPECT(!split_by(plan, method, data, parts, 1), "method %d", static_cast<int>(method));
  EXPECT(split_by(plan, SlabMethod::choose, data, parts, 1), "layouts");
  for (int i = 0; i < 5; ++i)
    EXPECT(std::memcmp(first + 12 * i, data + 24 * i, 12) == 0 &&
               std::memcmp(second + 12 * i, data + 24 * i + 12, 12) == 0,
           "row %d", i);
  ++passed;
}

constexpr SlabMethod kMethods[] = {SlabMethod::choose, SlabMethod::layouts, SlabMethod::rows,
                                   SlabMethod::blocks, SlabMethod::tiles};

void test_slabs() {
  Random random(2);
  const int element_sizes[] = {1, 2, 4, 8, 16, 3};
  Int applied[5] = {};
  for (int n = 0; n < cases(2000, 200); ++n) {
    const int rank = static_cast<int>(random.between(1, 6));
    const int axis = static_cast<int>(random.between(0, rank - 1));
    std::vector<Int> before, behind, lengths;
    for (int i = 0; i < rank; ++i) {
      const Int size = random.chance(0.02) ? 0 : random.between(1, random.chance(0.2) ? 9 : 3);
      if (i < axis) before.push_back(size);
      if (i > axis) behind.push_back(size);
    }
    const Int equal = random.chance(0.4) ? random.between(1, 5) : 0;
    const Int count = random.between(1, random.chance(0.3) ? 40 : 5);
    for (Int p = 0; p < count; ++p)
      lengths.push_back(equal > 0 ? equal : random.between(0, random.chance(0.1) ? 50 : 6));
    const int element_size = element_sizes[random.between(0, 5)];
    const int method = static_cast<int>(random.between(0, 4));
    applied[method] += check_slabs(random, before, lengths, behind, element_size,
                                   random_strides(random), kMethods[method], any_threads(random));
  }
  // Rows and parts around the sides of tiles, every size of piece.
  for (Int bytes = 1; bytes <= 70; bytes += shortening() > 8 ? 7 : 1) {
    const bool tiled = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    for (int n = 0; n < (short_run ? 1 : tiled ? 30 : 4); ++n) {
      const Int side = tiled ? 64 / bytes : 16;
      const Int rows = side * random.between(1, 5) + random.between(-1, 1);
      const Int count = side * random.between(1, 3) + random.between(-1, 1);
      if (rows < 1 || count < 1) continue;
      const std::vector<Int> lengths(static_cast<std::size_t>(count), bytes);
      for (int method = 0; method < 5; ++method) {
        const bool ran =
            check_slabs(random, {rows}, lengths, {}, 1, Strides::packed, kMethods[method], 2);
        EXPECT(ran == (kMethods[method] != SlabMethod::tiles ||
                       (tiled && rows >= side && count >= side)),
               "method %d, %lld pieces of %lld bytes", method, count, bytes);
        applied[method] += ran;
      }
    }
  }
  for (int method = 0; method < 5; ++method)
    EXPECT(applied[method] > cases(50, 3) - 1, "method %d ran %lld times", method, applied[method]);
  for (const SlabMethod method : {SlabMethod::choose, SlabMethod::rows, SlabMethod::blocks})
    check_gaps(random, method);
  for (const SlabMethod method : {SlabMethod::choose, SlabMethod::rows, SlabMethod::blocks})
    check_gaps_joined(random, method);
  for (const bool split : {true, false})
    for (const Int at : {0, 1, 4, 32}) {
      check_alignment(random, split, at, 0, 0);
      check_alignment(random, split, 0, at, 0);
      check_alignment(random, split, 0, at, at);
    }
  check_no_rows();
  for (const SlabMethod method : {SlabMethod::layouts, SlabMethod::rows, SlabMethod::blocks}) {
    const auto check = [&](Int rows, const std::vector<Int>& lengths, int threads) {
      check_slabs(random, {rows}, lengths, {}, 1, Strides::packed, method, threads);
    };
    // Parts of which most are empty; one byte, or one row, more than whole pieces and one less.
    std::vector<Int> sparse(40, 0);
    sparse[7] = 1;
    check(70, sparse, 1);
    for (const Int more : {-1, 0, 1}) {
      check(1, {4000, 96 + more}, 1);
      check(640 + more, {20, 20, 20}, 1);
    }
    // Wider than a buffer.
    if (method == SlabMethod::blocks) check(kStreamBytes / 20012 + 1, {5, 20000, 7}, 1);
    // A thread begins in the second of five parts.
    if (method == SlabMethod::rows)
      check(1, {100000, 1700000, 100000, 100000, 100000}, kMinThreads + 1);
  }
  // Past the cache, and with threads.
  for (int threads = 1; threads <= 4; threads += 3) {
    if (threads < kMinThreads) continue;
    const Int k = short_run ? 1 : 4;
    for (SlabMethod method : kMethods) {
      const auto check = [&](std::vector<Int> before, std::vector<Int> lengths,
                             std::vector<Int> behind, int size, Strides strides) {
        if (has_turn())
          check_slabs(random, before, lengths, behind, size, strides, method, threads);
      };
      if (threads == 1 && method != SlabMethod::choose) continue;
      check({3000000}, {1, 1, 1}, {}, 1, Strides::packed);
      check({1000}, {500 * k, 700 * k, 1 * k}, {}, 2, Strides::packed);
      check({}, {300000, 0, 700001 * k}, {}, 2, Strides::packed);
      check({1100}, std::vector<Int>(512, 4 * k), {}, 1, Strides::packed);
      check({4100}, std::vector<Int>(66, 2), {2 * k}, 4, Strides::packed);
      check({1100 * k, 2}, std::vector<Int>(1030, 1), {}, 1, Strides::packed);
      check({1100 * k}, std::vector<Int>(258, 1), {}, 8, Strides::packed);
      std::vector<Int> uneven;
      for (Int p = 0; p < 300; ++p) uneven.push_back(p == 7 ? 2000 : random.between(0, 40));
      check({300 * k}, uneven, {}, 1, Strides::packed);
      check({30, 20}, {5, 6, 7}, {3, 11 * k}, 8, Strides::any);
      // Parts that exceed a block's buffer, rows with gaps, tiles that begin within a line.
      std::vector<Int> one_long(20, 16);
      one_long.push_back(400);
      check({130 * k}, one_long, {}, 1, Strides::packed);
      for (int n = 0; n < 8; ++n) {
        check({300 * k}, std::vector<Int>(40, 3), {}, 4, Strides::stepped);
        check({3, 100 * k}, std::vector<Int>(33, 1), {}, 4, Strides::any);
      }
    }
  }
}

}  // namespace

int main() {
  test_copies();
  test_slabs();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
