// The three gathers against references that compute every element's place on its own.
#include <algorithm>
#include <limits>
#include <string>

#include "gather/cpu/gather_elements.hpp"
#include "harness.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;
const bool short_run = std::getenv("ANYDML_TEST_SHORT") != nullptr;
using Sizes = std::vector<Int>;

std::string describe(const Tensor& tensor) {
  std::string text = "size " + std::to_string(tensor.element_size) + " {";
  for (int i = 0; i < tensor.layout.rank; ++i)
    text += std::to_string(tensor.layout.sizes[i]) + ":" +
            std::to_string(tensor.layout.strides[i]) + " ";
  return text + "}";
}

int index_size(DataType type) { return facts_of(type).size; }

// Every value that an index may have, as a number.
__int128 value_of(const Buffer& indices, Int flat) {
  switch (indices.tensor.type) {
    case DataType::int64:
      return indices.get<int64_t>(flat);
    case DataType::int32:
      return indices.get<int32_t>(flat);
    case DataType::uint64:
      return indices.get<uint64_t>(flat);
    default:
      return indices.get<uint32_t>(flat);
  }
}

void set_value(Buffer& indices, Int flat, Int value) {
  if (indices.tensor.element_size == 8)
    indices.set<Int>(flat, value);
  else
    indices.set<int>(flat, static_cast<int>(value));
}

enum class Pattern { random, ascending, descending, constant };

// Fills the indices; component k of a tuple of `limits.size()` is in range of limits[k].
void fill(Random& random, Buffer& indices, const Sizes& limits, Pattern pattern, int bad) {
  const Int count = indices.count(), width = static_cast<Int>(limits.size());
  const DataType type = indices.tensor.type;
  for (Int i = 0; i < count; ++i) {
    const Int limit = std::max<Int>(1, limits[static_cast<std::size_t>(i % width)]);
    Int value = pattern == Pattern::random      ? random.between(0, limit - 1)
                : pattern == Pattern::ascending ? i / width % limit
                : pattern == Pattern::constant  ? limit / 2
                                                : limit - 1 - i / width % limit;
    if (is_signed_type(type) && random.chance(0.3)) value -= limit;
    set_value(indices, i, value);
  }
  for (; bad > 0 && count > 0; --bad) {
    const Int at = random.between(0, count - 1);
    const Int limit = limits[static_cast<std::size_t>(at % width)];
    const Int wrong[] = {
        limit, is_signed_type(type) ? -limit - 1 : limit + 1,
        type == DataType::int64 || type == DataType::uint64 ? std::numeric_limits<Int>::min()
                                                            : Int{0x7FFFFFFF},
        type == DataType::int64 || type == DataType::uint64 ? std::numeric_limits<Int>::max()
                                                            : -Int{0x7FFFFFFF}};
    set_value(indices, at, wrong[random.between(0, 3)]);
  }
  indices.remember();
}

// The expected outcome of a call: the source of every output element, and the first bad index.
struct Expected {
  std::vector<Int> source;  // flat, of each output element; unused when an index is bad
  Int first_bad = -1;
};

// The position of value `flat` along an axis of `size`; records a bad one.
Int position(const Buffer& indices, Int flat, Int size, OutOfRange mode, Expected& expected) {
  __int128 at = value_of(indices, flat);
  if (mode == OutOfRange::wrap && size > 0) at = (at % size + size) % size;
  if (at < 0 && mode != OutOfRange::clip) at += size;
  if (mode != OutOfRange::raise && size > 0) at = at < 0 ? 0 : at < size ? at : size - 1;
  if (at < 0 || at >= size) {
    if (expected.first_bad < 0 || flat < expected.first_bad) expected.first_bad = flat;
    return 0;
  }
  return static_cast<Int>(at);
}

// The next place in row-major order.
void advance(Sizes& place, const Sizes& sizes) {
  for (std::size_t i = sizes.size(); i-- > 0; place[i] = 0)
    if (++place[i] < sizes[i]) return;
}
Int product(const Sizes& sizes) {
  Int total = 1;
  for (Int size : sizes) total *= size;
  return total;
}

template <class Run>
void check(const Buffer& input, const Buffer& indices, Buffer& output, const Expected& expected,
           bool output_is_private, const char* what, Run&& run) {
  const std::string text = std::string(what) + " " + describe(output.tensor) + " <- " +
                           describe(input.tensor) + " at " + describe(indices.tensor);
  const Status status = run();
  EXPECT(status.bad_index == expected.first_bad, "%s: bad index %lld, not %lld", text.c_str(),
         status.bad_index, expected.first_bad);
  if (expected.first_bad < 0) {
    const std::size_t size = static_cast<std::size_t>(output.tensor.element_size);
    for (Int i = 0; i < output.count(); ++i)
      EXPECT(same_bytes(output.at(i), input.at(expected.source[static_cast<std::size_t>(i)]), size),
             "%s: element %lld", text.c_str(), i);
  } else if (!output_is_private) {
    EXPECT(output.unchanged(), "%s: written in spite of a bad index", text.c_str());
  }
  EXPECT(output.gaps_intact(), "%s", text.c_str());
  EXPECT(input.unchanged() && indices.unchanged(), "%s", text.c_str());
  ++passed;
}

struct Options {
  int element_size = 4;
  DataType type = DataType::int64;
  Strides input = Strides::packed, indices = Strides::packed, output = Strides::packed;
  OutOfRange mode = OutOfRange::raise;
  Pattern pattern = Pattern::random;
  int bad = 0;
  bool output_is_private = true;
  int threads = 1;
};

Options any_options(Random& random) {
  const int element_sizes[] = {1, 2, 4, 8, 16};
  Options options;
  options.element_size = element_sizes[random.between(0, 4)];
  options.type = kIndexTypes[random.between(0, 3)];
  options.input = random_strides(random);
  options.indices = random_strides(random);
  options.output = random_strides(random);
  options.mode =
      random.chance(0.6) ? OutOfRange::raise : static_cast<OutOfRange>(random.between(1, 3));
  options.pattern = static_cast<Pattern>(random.between(0, 3));
  options.bad = random.chance(0.3) ? static_cast<int>(random.between(1, 3)) : 0;
  options.output_is_private = random.chance(0.5);
  options.threads = any_threads(random);
  return options;
}

struct Buffers {
  Buffer input, indices, output;
  Buffers(Random& random, const Sizes& in, const Sizes& at, const Sizes& out, const Options& o)
      : input(random, in, o.element_size, o.input, Role::input),
        indices(random, at, index_size(o.type), o.indices, Role::input, o.type),
        output(random, out, o.element_size, o.output, Role::output) {}
};

void check_gather(Random& random, const Sizes& in, const Sizes& at, int axis,
                  const Options& options) {
  Sizes out(in.begin(), in.begin() + axis);
  out.insert(out.end(), at.begin(), at.end());
  out.insert(out.end(), in.begin() + axis + 1, in.end());
  Buffers b(random, in, at, out, options);
  const Int size = in[static_cast<std::size_t>(axis)];
  fill(random, b.indices, {size}, options.pattern, options.bad);
  Expected expected;
  const Int count = product(at);
  std::vector<Int> places(static_cast<std::size_t>(count));
  const bool nothing = product(out) == 0;
  if (!nothing || options.mode == OutOfRange::raise)
    for (Int i = 0; i < count; ++i)
      places[static_cast<std::size_t>(i)] = position(b.indices, i, size, options.mode, expected);
  if (expected.first_bad < 0 && !nothing) {
    Int outer = 1, inner = 1;
    for (int i = 0; i < axis; ++i) outer *= in[static_cast<std::size_t>(i)];
    for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < in.size(); ++i) inner *= in[i];
    for (Int o = 0; o < outer; ++o)
      for (Int i = 0; i < count; ++i)
        for (Int k = 0; k < inner; ++k)
          expected.source.push_back((o * size + places[static_cast<std::size_t>(i)]) * inner + k);
  }
  GatherPlan plan{b.input.tensor, b.indices.tensor, b.output.tensor, axis, options.mode};
  check(b.input, b.indices, b.output, expected, options.output_is_private, "gather", [&] {
    return plan.run(b.input.data(), b.indices.data(), b.output.data(), options.output_is_private,
                    options.threads);
  });
}

bool check_elements(Random& random, const Sizes& in, const Sizes& at, int axis,
                    const Options& options, GatherElementsMethod method) {
  Buffers b(random, in, at, at, options);
  const Int size = in[static_cast<std::size_t>(axis)];
  fill(random, b.indices, {size}, options.pattern, options.bad);
  Expected expected;
  const Int count = product(at);
  Sizes place(at.size());
  for (Int i = 0; i < count; ++i, advance(place, at)) {
    const Int found = position(b.indices, i, size, options.mode, expected);
    Int flat = 0;
    for (std::size_t d = 0; d < in.size(); ++d)
      flat = flat * in[d] + (d == static_cast<std::size_t>(axis) ? found : place[d]);
    expected.source.push_back(flat);
  }
  GatherElementsPlan plan{b.input.tensor, b.indices.tensor, b.output.tensor, axis, options.mode};
  Status status;
  if (!gather_elements_by(plan, method, b.input.data(), b.indices.data(), b.output.data(),
                          options.output_is_private, options.threads, status)) {
    EXPECT(b.output.unchanged(), "did not apply");
    return false;
  }
  check(b.input, b.indices, b.output, expected, options.output_is_private, "gather_elements",
        [&] { return status; });
  return true;
}

void check_nd(Random& random, const Sizes& in, const Sizes& at, int batch_dims,
              const Options& options) {
  const std::size_t width = static_cast<std::size_t>(at.back()),
                    batch = static_cast<std::size_t>(batch_dims);
  Sizes out(at.begin(), at.end() - 1);
  out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(batch + width), in.end());
  Buffers b(random, in, at, out, options);
  const Sizes limits(in.begin() + static_cast<std::ptrdiff_t>(batch),
                     in.begin() + static_cast<std::ptrdiff_t>(batch + width));
  if (width > 0) fill(random, b.indices, limits, options.pattern, options.bad);
  Expected expected;
  const Sizes tuples(at.begin(), at.end() - 1);
  Int block = 1;
  for (std::size_t i = batch + width; i < in.size(); ++i) block *= in[i];
  const bool nothing = product(out) == 0;
  Sizes place(tuples.size());
  if (!nothing || options.mode == OutOfRange::raise)
    for (Int i = 0, all = product(tuples); i < all; ++i, advance(place, tuples)) {
      Int flat = 0;
      for (std::size_t k = 0; k < batch; ++k) flat = flat * in[k] + place[k];
      for (std::size_t k = 0; k < width; ++k)
        flat = flat * in[batch + k] + position(b.indices,
                                               i * static_cast<Int>(width) + static_cast<Int>(k),
                                               in[batch + k], options.mode, expected);
      for (Int k = 0; k < block; ++k) expected.source.push_back(flat * block + k);
    }
  GatherNdPlan plan{b.input.tensor, b.indices.tensor, b.output.tensor, batch_dims, options.mode};
  check(b.input, b.indices, b.output, expected, options.output_is_private, "gather_nd", [&] {
    return plan.run(b.input.data(), b.indices.data(), b.output.data(), options.output_is_private,
                    options.threads);
  });
}

Sizes any_sizes(Random& random, int rank, Int largest) {
  Sizes sizes;
  Int limit = 3000;
  for (int i = 0; i < rank; ++i) {
    const Int size =
        random.chance(0.02)
            ? 0
            : random.between(1,
                             std::max<Int>(1, std::min(limit, random.chance(0.2) ? largest : 5)));
    sizes.push_back(size);
    limit /= std::max<Int>(1, size);
  }
  return sizes;
}

void test_small() {
  Random random(3);
  for (int n = 0; n < cases(3000, 300); ++n) {
    const int rank = static_cast<int>(random.between(1, 6));
    const Sizes in = any_sizes(random, rank, 700);
    const int axis = static_cast<int>(random.between(0, rank - 1));
    Sizes at = any_sizes(random, static_cast<int>(random.between(0, 3)), 700);
    while (product(at) * product(in) > 200000) at.pop_back();
    check_gather(random, in, at, axis, any_options(random));
  }
  Int strips = 0;
  for (int n = 0; n < cases(3000, 300); ++n) {
    const int rank = static_cast<int>(random.between(1, 6));
    const Sizes in = any_sizes(random, rank, 700);
    const int axis = static_cast<int>(random.between(0, rank - 1));
    Sizes at;
    for (int i = 0; i < rank; ++i) {
      const Int size = in[static_cast<std::size_t>(i)];
      at.push_back(i == axis            ? random.between(random.chance(0.1) ? 0 : 1, 6)
                   : random.chance(0.8) ? size
                                        : random.between(0, size));
    }
    check_elements(
        random, in, at, axis, any_options(random),
        random.chance(0.5) ? GatherElementsMethod::choose : GatherElementsMethod::direct);
  }
  for (int n = 0; n < cases(1000, 50); ++n) {
    Options options = any_options(random);
    if (random.chance(0.8)) options.input = options.output = Strides::packed;
    const Int columns = random.between(1, 400), depth = random.between(1, 40),
              outer = random.between(1, 3);
    const Sizes in = {outer, depth, columns};
    const Sizes at = {random.between(1, outer), random.between(1, 50), random.between(1, columns)};
    strips += check_elements(random, in, at, 1, options, GatherElementsMethod::strips);
  }
  EXPECT(strips > cases(200, 5) - 1, "strips ran %lld times", strips);
  for (int n = 0; n < cases(3000, 300); ++n) {
    const int rank = static_cast<int>(random.between(1, 6));
    const Sizes in = any_sizes(random, rank, 40);
    const int batch = static_cast<int>(random.between(0, random.chance(0.5) ? 0 : rank));
    const Int width = random.between(0, rank - batch);
    Sizes at(in.begin(), in.begin() + batch);
    for (Int i = random.between(0, 2); i > 0; --i)
      at.push_back(random.between(random.chance(0.05) ? 0 : 1, 30));
    at.push_back(width);
    if (product(at) * product(in) > 100000) continue;
    check_nd(random, in, at, batch, any_options(random));
  }
}

// Rows long enough to be read at once, and short lists whose reads are prefetched: every element
// and index size, the last element of a row among those read, lengths off the vector's width.
void test_rows() {
  Random random(5);
  for (int n = 0; n < cases(240, 60); ++n) {
    Options options = any_options(random);
    options.input = options.output = Strides::packed;
    if (n % 2 == 0) options.mode = OutOfRange::raise;
    if (n % 3 != 0) options.element_size = n % 3 == 1 ? 2 : 4;
    const Int columns = random.between(3, 700), reads = random.between(250, 1200);
    check_elements(random, {3, columns}, {3, reads}, 1, options, GatherElementsMethod::choose);
    check_elements(random, {2, 5000}, {2, random.between(1, 60)}, 1, options,
                   GatherElementsMethod::choose);
    check_gather(random, {90, 3000}, {random.between(1, 40)}, 1, options);
  }
}

// Elements at a step in any of the three tensors, for each element size: rows shorter and longer
// than what is packed at a time, near and far, and a strip's columns.
void test_steps() {
  Random random(6);
  for (int n = 0; n < cases(600, 60); ++n) {
    Options options = any_options(random);
    options.element_size = 1 << n % 5;
    options.input = Strides::stepped;
    options.indices = random.chance(0.5) ? Strides::stepped : Strides::packed;
    options.output = random.chance(0.3) ? Strides::stepped : Strides::packed;
    if (n % 3 > 0) options.mode = OutOfRange::raise, options.bad = 0;
    const Int columns = random.between(1, 150), rows = random.between(1, 60);
    check_gather(random, {rows, columns}, {random.between(1, 90)}, 0, options);
    check_gather(random, {2, rows, 3, columns}, {random.between(1, 30)}, 1, options);
    check_gather(random, {5, random.between(4000, 6000)}, {4}, 0, options);
    check_nd(random, {rows, 3, columns}, {random.between(1, 90), 2}, 0, options);
    check_elements(random, {3, columns * 10}, {3, random.between(250, 1200)}, 1, options,
                   GatherElementsMethod::choose);
    check_elements(random, {2, rows, columns}, {2, 20, columns}, 1, options,
                   GatherElementsMethod::strips);
    if (n % 12 > 0) continue;
    check_gather(random, {9000, 64}, {1000}, 0, options);  // far
    if (n % 60 > 0) continue;
    options.output = Strides::packed;  // past the cache
    const Int wide = 64 * 16 / options.element_size + n % 7;
    check_gather(random, {1000, wide}, {9000}, 0, options);
    check_nd(random, {30, 30, wide}, {9000, 2}, 0, options);
  }
}

// Streamed outputs, with threads, and with bad indices near the ends of a long list.
void test_large() {
  Random random(4);
  for (int n = 0; n < 6; ++n) {
    if (short_run && (n == 1 || n == 2)) continue;  // the clamped and the bad ones always
    if (shortening() > 1 && n == 0) continue;
    if (!has_turn()) continue;
    Options options;
    options.threads = std::max(kMinThreads, 1 + n % 4);
    options.type = kIndexTypes[n % 4];
    options.output_is_private = n % 2 == 0;
    options.bad = n == 4 || n == 5 ? 1 : 0;
    if (n == 3) options.mode = OutOfRange::clamp;
    options.pattern = static_cast<Pattern>(n % 4);
    const Int k = short_run ? 1 : 3;
    check_gather(random, {300000}, {700000 * k}, 0, options);
    check_gather(random, {3000, 64}, {12000 * k}, 0, options);
    check_gather(random, {3000, 13}, {50000 * k}, 0, options);
    check_gather(random, {300, 1200}, {2500 * k}, 1, options);
    check_gather(random, {20000, 200}, {40 * k}, 1, options);
    check_gather(random, {100, 300, 3}, {5000 * k}, 1, options);
    check_gather(random, {2, 1100000}, {3 * k}, 0, options);
    check_elements(random, {700, 1024}, {700, 1024 * k}, 1, options, GatherElementsMethod::choose);
    check_elements(random, {700, 1024}, {700 * k, 1024}, 0, options, GatherElementsMethod::choose);
    check_elements(random, {700, 1024}, {700 * k, 1024}, 0, options, GatherElementsMethod::strips);
    check_elements(random, {2, 1200, 515}, {2, 1000 * k, 515}, 1, options,
                   GatherElementsMethod::choose);
    check_elements(random, {1500000}, {800000 * k}, 0, options, GatherElementsMethod::choose);
    check_elements(random, {300000, 3}, {300000 * k, 3}, 0, options, GatherElementsMethod::choose);
    check_elements(random, {64, 20000}, {64, 50 * k}, 1, options, GatherElementsMethod::choose);
    for (const Int count : {1, 127, 128, 129, 300}) {  // around the pieces of reads far away
      check_gather(random, {300000}, {count}, 0, options);
      check_elements(random, {300000}, {count}, 0, options, GatherElementsMethod::choose);
      check_nd(random, {1000, 1000}, {count, 2}, 0, options);
    }
    check_nd(random, {1000, 1000}, {500000 * k, 2}, 0, options);
    check_nd(random, {40, 50, 60}, {300000 * k, 3}, 0, options);
    check_nd(random, {1000, 10, 30}, {30000 * k, 2}, 0, options);
    check_nd(random, {500, 100, 70}, {500, 30 * k, 1}, 1, options);
    options.output = options.indices = Strides::any;
    check_gather(random, {300000}, {700, 500 * k}, 0, options);
    check_elements(random, {700, 1024}, {500, 1024 * k}, 1, options, GatherElementsMethod::choose);
    check_nd(random, {1000, 1000}, {100000 * k, 2}, 0, options);
  }
  Options options;
  options.threads = 3;
  options.element_size = 8;
  check_gather(random, {3, 700000}, {2}, 0, options);
  check_nd(random, {2, 3, 300000}, {2, 2}, 0, options);
}

// Paths that few sizes reach: blocks of megabytes behind several positions, far reads to an output
// with gaps, from every batch, by tuples longer than the prefetch distance; short lists that
// threads begin in the middle of, rows that are packed before they are read or too long for it, a
// single byte.
void test_seldom() {
  Random random(8);
  Options options;
  options.element_size = 16;
  check_gather(random, {2, 2, 1 << 18}, {1}, 1, options);
  check_nd(random, {2, 2, 1 << 18}, {2, 1, 1}, 1, options);
  options.element_size = 4;
  check_nd(random, {3, 140000}, {3, 300, 1}, 1, options);
  check_gather(random, {3, 140000}, {300}, 1, options);
  check_gather(random, {2, 140000}, {20}, 1, options);
  check_elements(random, {20, 600}, {5, 600}, 0, options, GatherElementsMethod::direct);
  options.input = Strides::stepped;
  check_elements(random, {3, 6000}, {3, 2000}, 1, options, GatherElementsMethod::direct);
  check_gather(random, {2, 30, 16}, {600}, 1, options);  // offsets that are kept, to the last
  options.input = Strides::packed;
  options.threads = 3;
  check_gather(random, {451, 20}, {499}, 1, options);
  options.threads = 1;
  EXPECT(
      !check_elements(random, {20, 3, 100}, {20, 3, 90}, 0, options, GatherElementsMethod::strips),
      "strips of an axis that is not the last but one");
  options.element_size = 1;
  check_elements(random, {20, 257}, {9, 257}, 0, options, GatherElementsMethod::strips);
  check_gather(random, {2, 50}, {3000}, 1, options);
  check_gather(random, {5}, {1}, 0, options);
  check_nd(random, {5}, {1, 1}, 0, options);
  Options empty = options;  // nothing to write, but a bad index
  empty.bad = 1;
  check_gather(random, {4, 0}, {5}, 0, empty);
  check_gather(random, {0, 4}, {5}, 1, empty);
  check_nd(random, {4, 0}, {5, 1}, 0, empty);
  options.element_size = 8;
  Sizes twos(18, 2);
  for (const DataType type : kIndexTypes) {
    options.type = type;
    options.output = Strides::packed;
    check_nd(random, twos, {140, 18}, 0, options);
    options.output = Strides::any;
    check_nd(random, {300, 300}, {20, 30, 2}, 0, options);
    options.output = Strides::stepped;
    check_elements(random, {20, 20000}, {20, 300}, 1, options, GatherElementsMethod::direct);
    check_elements(random, {3, 90000}, {3, 20}, 1, options, GatherElementsMethod::direct);
    check_elements(random, {150, 600}, {30, 600}, 0, options, GatherElementsMethod::direct);
    Options moved = options;
    moved.bad = 30;
    for (const OutOfRange mode : {OutOfRange::clamp, OutOfRange::wrap, OutOfRange::clip}) {
      moved.mode = mode;
      check_gather(random, {9}, {60}, 0, moved);
      check_nd(random, {9, 9, 9}, {30, 3}, 0, moved);
      check_nd(random, {9, 9}, {30, 2}, 0, moved);
    }
  }
}

}  // namespace

int main() {
  test_small();
  test_rows();
  test_steps();
  test_seldom();
  test_large();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
