// Overflow of sizes: layouts and scratch that are rejected, exceptions of a worker, and kernels on
// empty tensors of large sizes (under the undefined sanitizer, which detects a product that
// overflows).
#include <atomic>
#include <chrono>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "harness.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Int passed = 0;
constexpr Int kMax = std::numeric_limits<Int>::max(), kMin = std::numeric_limits<Int>::min();

Layout layout_of(std::initializer_list<std::pair<Int, Int>> dims) {
  Layout layout;
  for (const auto& [size, stride] : dims) layout.push(size, stride);
  return layout;
}

bool is_valid_layout(std::initializer_list<std::pair<Int, Int>> dims, int element_size = 8) {
  Layout layout = layout_of(dims);
  ++passed;
  return layout.normalize_checked(element_size);
}

void test_layouts() {
  EXPECT(is_valid_layout({}), "a scalar");
  EXPECT(is_valid_layout({{3, 8}, {4, -24}}), "an ordinary one");
  EXPECT(is_valid_layout({{kMaxElements, 0}}), "as many as there may be");
  EXPECT(!is_valid_layout({{kMaxElements + 1, 0}}), "one more");
  EXPECT(!is_valid_layout({{Int{1} << 32, 0}, {Int{1} << 32, 0}}), "a product that wraps to 0");
  EXPECT(!is_valid_layout({{kMax, 0}, {kMax, 0}, {kMax, 0}}), "a product that wraps");
  EXPECT(!is_valid_layout({{-1, 8}}), "a negative size");
  EXPECT(!is_valid_layout({{kMin, 8}}), "the least size");
  EXPECT(is_valid_layout({{2, kMaxReach}}), "as far as memory reaches");
  EXPECT(is_valid_layout({{2, -kMaxReach}}), "backwards");
  EXPECT(!is_valid_layout({{2, kMaxReach + 1}}), "further");
  EXPECT(!is_valid_layout({{2, kMaxReach}, {2, 1}}), "further with a second dimension");
  EXPECT(!is_valid_layout({{2, kMaxReach}, {2, -1}}), "and backwards");
  for (const Int stride : {kMax, kMin, kMin + 1, Int{1} << 62}) {
    EXPECT(!is_valid_layout({{2, stride}}), "stride %lld", stride);
    EXPECT(!is_valid_layout({{3, stride}}), "stride %lld", stride);
    Layout layout = layout_of({{1, stride}, {2, 8}});
    EXPECT(layout.normalize_checked(8) && layout.strides[0] == 0 && layout.strides[1] == 8,
           "a stride that no element needs, %lld", stride);
    layout = layout_of({{5, stride}, {0, stride}, {3, 8}});
    EXPECT(layout.normalize_checked(8), "empty with stride %lld", stride);
    for (int i = 0; i < 3; ++i) EXPECT(layout.strides[i] == 0, "empty");
    passed += 2;
  }
  EXPECT(is_valid_layout({{Int{1} << 40, 0}, {Int{1} << 20, 0}, {0, 0}}, 4), "empty");
  EXPECT(!is_valid_layout({{Int{1} << 40, 0}, {Int{1} << 20, 0}, {0, 0}}, 8),
         "empty, no NumPy array");
  EXPECT(!is_valid_layout({{0, 0}, {kMax, 0}, {kMax, 0}}, 1), "empty, no NumPy array");
  Layout many;
  for (int i = 0; i < kMaxRank; ++i) many.push(2, kMaxReach);
  EXPECT(!many.normalize_checked(1), "64 strides");
}

template <class T>
void refuses(Int count, bool counted) {
  try {
    Scratch<T> scratch(count);
    EXPECT(false, "scratch of %lld", count);
  } catch (const std::bad_alloc& error) {
    const auto* const failed = dynamic_cast<const AllocationFailed*>(&error);
    EXPECT(failed != nullptr, "what is thrown");
    EXPECT(failed->purpose() == std::string("scratch"), "%s", failed->purpose());
    const unsigned long long bytes = static_cast<unsigned long long>(count) * sizeof(T);
    EXPECT(failed->bytes() == (counted ? bytes : ~0ull), "%llu bytes", failed->bytes());
  }
  ++passed;
}

void test_scratch() {
  refuses<char>(-1, false);
  refuses<char>(kMin, false);
  refuses<char>(Int{1} << 62, true);
  refuses<Int>(Int{1} << 61, false);  // 2^64 bytes: a product that wraps to 0
  refuses<Int>((Int{1} << 61) + 1, false);
  refuses<Int>(kMax, false);
  refuses<Int>(Int{1} << 59, true);
  Scratch<Int> good(3);
  good[2] = 7;
  try {
    good.reset(Int{1} << 60);
  } catch (const AllocationFailed&) {
    EXPECT(good.get() == nullptr, "what it had is given back");
  }
}

// Whatever thread a body throws on, the caller receives the exception once, after all threads have
// left.
void test_exceptions() {
  for (int threads = 1; threads <= 4; ++threads) {
    for (Int bad = 0; bad < 40; bad += 13) {
      std::atomic<Int> inside{0}, ran{0};
      bool caught = false;
      try {
        parallel_chunks(40, threads, [&](Int chunk) {
          inside.fetch_add(1);
          std::this_thread::sleep_for(std::chrono::microseconds(20));
          inside.fetch_sub(1);
          ran.fetch_add(1);
          if (chunk >= bad) throw AllocationFailed(static_cast<unsigned long long>(chunk), "test");
        });
      } catch (const AllocationFailed& failed) {
        caught = true;
        EXPECT(failed.bytes() >= static_cast<unsigned long long>(bad), "which");
      }
      EXPECT(caught, "%d threads", threads);
      EXPECT(inside.load() == 0, "all have left");
      EXPECT(ran.load() <= bad + 2 * threads, "the others are left out: %lld ran", ran.load());
      ++passed;
    }
    bool caught = false;
    try {
      parallel_ranges(1000, 1, threads, [](Int, Int) { throw std::runtime_error("of any kind"); });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    EXPECT(caught, "a range");
    std::atomic<Int> sum{0};  // the pool is unchanged
    parallel_chunks(100, threads, [&](Int chunk) { sum.fetch_add(chunk); });
    EXPECT(sum.load() == 4950, "afterwards");
    ++passed;
  }
}

Tensor tensor_of(std::initializer_list<Int> sizes, DataType type, int element_size) {
  Tensor tensor;
  tensor.type = type;
  tensor.element_size = element_size;
  for (const Int size : sizes) tensor.layout.push(size, 0);
  EXPECT(tensor.layout.normalize_checked(element_size), "sizes of an array");
  return tensor;
}
Tensor floats(std::initializer_list<Int> sizes) { return tensor_of(sizes, DataType::float32, 4); }
Tensor numbers(std::initializer_list<Int> sizes) { return tensor_of(sizes, DataType::int64, 8); }

void test_empty() {
  constexpr Int a = Int{1} << 40, b = Int{1} << 19;
  const Tensor none = floats({a, b, 0});
  char memory[64] = {};
  const long long two[2] = {5, 1};
  for (int threads = 1; threads <= 2; ++threads) {
    TopKPlan{none, none, tensor_of({a, b, 0}, DataType::uint32, 4), 1, b, true}.run(
        memory, memory, memory, threads);
    const NonzeroPlan nonzero{none, 3};
    EXPECT(nonzero.scan(memory, threads).count == 0, "nonzero");
    const ScatterPlan scatter{none, numbers({2, 3, 0}), floats({2, 3, 0}), none, 0};
    const ScatterNdPlan nd{none, numbers({1, 2}), floats({1, 0}), none};
    const ScatterNdPlan plan{floats({3, 0}), numbers({a, 0}), floats({a, 3, 0}), floats({3, 0})};
    const GatherPlan gather{none, numbers({2}), floats({2, b, 0}), 0};
    const GatherPlan wide{floats({0, 3}), numbers({a, 0}), floats({a, 0, 3}), 0};
    const GatherElementsPlan elements{none, numbers({2, 3, 0}), floats({2, 3, 0}), 0};
    const GatherNdPlan gather_nd{none, numbers({1, 2}), floats({1, 0}), 0};
    for (const bool output_is_private : {false, true}) {
      EXPECT(scatter.run(memory, two, memory, memory + 32, output_is_private, threads).ok(),
             "scatter");
      EXPECT(nd.run(memory, two, memory, memory + 32, output_is_private, threads).ok(),
             "scatter_nd");
      EXPECT(plan.run(memory, two, memory, memory + 32, output_is_private, threads).ok(),
             "no coordinates");
      EXPECT(gather.run(memory, two, memory + 32, output_is_private, threads).ok(), "gather");
      EXPECT(wide.run(memory, two, memory + 32, output_is_private, threads).ok(),
             "gather, no indices");
      EXPECT(elements.run(memory, two, memory + 32, output_is_private, threads).ok(),
             "gather_elements");
      EXPECT(gather_nd.run(memory, two, memory + 32, output_is_private, threads).ok(), "gather_nd");
      passed += 7;
    }
    SlabsPlan slabs(none, 1);
    slabs.add(floats({a, 1, 0}).layout);
    slabs.add(floats({a, b - 1, 0}).layout);
    void* parts[2] = {memory, memory + 32};
    slabs.split(memory, parts, threads);
    slabs.join(parts, memory, threads);
    copy_elements(none.layout, memory, none.layout, memory + 32, 4, threads);
    ++passed;
  }
  for (const char byte : memory) EXPECT(byte == 0, "nothing is written");
}

// A size or a stride that 32 bits do not hold; indices in a row and apart, which are read in other
// ways.
void test_far_gathers() {
  constexpr Int far = Int{1} << 32, count = 19;
  const Spread memory(far + 64);
  char* const data = memory.data();
  if (data == nullptr) return;
  const auto tensor = [](std::initializer_list<std::pair<Int, Int>> dims) {
    Tensor result;
    result.element_size = 1;
    for (const auto& [size, stride] : dims) result.layout.push(size, stride);
    return result;
  };
  data[0] = 1, data[8] = 2, data[far] = 3, data[far + 8] = 4;
  for (const auto& [size, stride] : {std::pair<Int, Int>{2, far}, {far + 1, 1}})
    for (const Int spacing : {1, 2})
      for (const bool pairs : {false, true}) {
        std::vector<Int> values(static_cast<std::size_t>(2 * 2 * count));
        char expected[count], got[count] = {};
        for (Int i = 0; i < count; ++i) {
          const bool last = i % 3 != 0, second = pairs && i % 2 != 0;
          const std::size_t at = static_cast<std::size_t>((pairs ? 2 : 1) * spacing * i);
          values[at] = last ? size - 1 : 0;
          if (pairs) values[at + 1] = second;
          expected[i] = data[(last ? far : 0) + (second ? 8 : 0)];
        }
        const Tensor output = tensor({{count, 1}});
        Tensor input = tensor({{size, stride}}), indices = tensor({{count, 8 * spacing}});
        indices.type = DataType::int64;
        indices.element_size = 8;
        const auto check_bytes = [&](Status status, const char* what) {
          EXPECT(status.ok() && std::equal(got, got + count, expected), "%s", what);
          std::fill(got, got + count, '\0');
          ++passed;
        };
        if (!pairs) {
          check_bytes(GatherPlan{input, indices, output, 0}.run(data, values.data(), got, true, 1),
                      "gather, far");
          check_bytes(
              GatherElementsPlan{input, indices, output, 0}.run(data, values.data(), got, true, 1),
              "gather_elements, far");
        }
        if (pairs) input.layout.push(2, 8);
        indices.layout = tensor({{count, (pairs ? 16 : 8) * spacing}, {pairs ? 2 : 1, 8}}).layout;
        check_bytes(GatherNdPlan{input, indices, output, 0}.run(data, values.data(), got, true, 1),
                    "gather_nd, far");
      }
}

// The same of the first axis of several and of SCATTER's.
void test_far_scatters() {
  constexpr Int far = Int{1} << 32, count = 19;
  const Spread memory(far + 64);
  char* const data = memory.data();
  if (data == nullptr) return;
  for (const auto& [size, stride] : {std::pair<Int, Int>{2, far}, {far + 1, 1}})
    for (const Int spacing : {1, 2})
      for (Int length = 0; length <= 5; ++length) {  // 0: SCATTER
        const Int width = std::max<Int>(1, length);
        std::vector<Int> values(static_cast<std::size_t>(width * spacing * count));
        for (Int i = 0; i < count; ++i)
          values[static_cast<std::size_t>(width * spacing * i)] = i % 2 != 0 ? size - 1 : 0;
        char updates[count];
        for (Int i = 0; i < count; ++i) updates[i] = static_cast<char>(i);
        data[0] = data[far] = 'x';
        Tensor output, index, update;
        output.element_size = update.element_size = 1;
        output.layout.push(size, stride);
        for (Int d = 1; d < width; ++d) output.layout.push(2, 8);
        index.type = DataType::int64;
        index.element_size = 8;
        index.layout.push(count, width * 8 * spacing);
        if (length > 0) index.layout.push(width, 8);
        update.layout.push(count, 1);
        const Status status =
            length == 0 ? ScatterPlan{output, index, update, output, 0, Reduction::none}.run(
                              data, values.data(), updates, data, false, 1)
                        : ScatterNdPlan{output, index, update, output, Reduction::none}.run(
                              data, values.data(), updates, data, false, 1);
        EXPECT(status.ok() && data[0] == count - 1 && data[far] == count - 2,
               "size %lld, stride %lld, %lld coordinates: %d, %d", size, stride, length, data[0],
               data[far]);
        ++passed;
      }
}

}  // namespace

int main() {
  test_layouts();
  test_scratch();
  test_exceptions();
  test_empty();
  test_far_gathers();
  test_far_scatters();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
