// One plan, run by several callers at once with different thread counts: plans are immutable, and
// results do not depend on other callers. Meant for the thread sanitizer.
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "scatter/cpu/scatter.hpp"
#include "scatter_reference.hpp"

namespace anydml::test {
namespace {

Int passed = 0;

// A tensor in packed memory of its own; every caller has outputs of its own.
struct Packed {
  Tensor tensor;
  std::vector<char> bytes;

  Packed(const std::vector<Int>& sizes, TypeInfo type) {
    tensor.type = type.type;
    tensor.element_size = type.size;
    for (Int size : sizes) tensor.layout.push(size, 0);
    set_packed_strides(tensor.layout, type.size);
    bytes.assign(static_cast<std::size_t>(tensor.layout.count() * type.size), '\x5A');
  }
  void fill(Random& random) {
    for (char& byte : bytes) byte = static_cast<char>(random.bits());
  }
  template <class T>
  void fill(Random& random, Int limit) {
    for (Int i = 0; i < tensor.layout.count(); ++i)
      store(bytes.data() + i * tensor.element_size, static_cast<T>(random.between(0, limit - 1)));
  }
  void* data() { return bytes.data(); }
  const void* data() const { return bytes.data(); }
};

using Outputs = std::vector<Packed>;
using Run = std::function<void(Outputs&, int)>;

// The same from four callers, with one to four threads in turns, as from one with one thread.
void check(const char* name, const Outputs& outputs, const Run& run) {
  if (!has_turn()) return;
  Outputs expected = outputs;
  run(expected, 1);
  const int rounds = short_run() ? 2 : 4;
  std::atomic<int> ready{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      ready.fetch_add(1);
      while (ready.load() < 4) std::this_thread::yield();
      for (int round = 0; round < rounds; ++round) {
        Outputs own = outputs;
        run(own, 1 + (caller + round) % 4);
        for (std::size_t i = 0; i < own.size(); ++i)
          if (own[i].bytes != expected[i].bytes) wrong.fetch_add(1);
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT(wrong.load() == 0, "%s: %d wrong results", name, wrong.load());
  ++passed;
}

constexpr TypeInfo kFloat{DataType::float32, 4}, kIndex{DataType::int64, 8},
    kRow{DataType::uint32, 4}, kByte{DataType::uint8, 1}, kNumber{DataType::int32, 4};

void test_selections(Random& random) {
  Packed x({60, 4000}, kFloat);
  x.fill(random);
  for (const Int k : {Int{9}, Int{900}, Int{4000}}) {
    const Outputs outputs = {Packed({60, k}, kFloat), Packed({60, k}, kRow)};
    const TopKPlan plan{x.tensor, outputs[0].tensor, outputs[1].tensor, 1, k, true};
    check("top_k", outputs, [&](Outputs& own, int threads) {
      plan.run(x.data(), own[0].data(), own[1].data(), threads);
    });
  }
  Packed line({600000}, kFloat);  // one row that threads share
  line.fill(random);
  for (const Int k : {Int{100}, Int{200000}}) {
    const Outputs outputs = {Packed({k}, kFloat), Packed({k}, kRow)};
    const TopKPlan plan{line.tensor, outputs[0].tensor, outputs[1].tensor, 0, k, false};
    check("top_k of a long row", outputs, [&](Outputs& own, int threads) {
      plan.run(line.data(), own[0].data(), own[1].data(), threads);
    });
  }
  Packed dense({1500, 1000}, kByte);
  dense.fill<uint8_t>(random, 3);
  const NonzeroPlan plan{dense.tensor, 2};
  const Outputs outputs = {Packed({1500 * 1000, 2}, kRow)};
  check("nonzero", outputs, [&](Outputs& own, int threads) {
    const NonzeroPlan::Found found = plan.scan(dense.data(), threads);
    plan.write(found, own[0].tensor, own[0].data(), threads);
  });
}

void test_moves(Random& random) {
  Packed x({600, 1200}, kFloat), lookup({600, 1200}, kIndex), rows({900}, kIndex),
      tuples({90000, 2}, kIndex), updates({600, 1200}, kFloat), values({90000}, kFloat),
      slices({900, 1200}, kFloat), single({900, 1}, kIndex);
  for (Packed* packed : {&x, &updates, &values, &slices}) packed->fill(random);
  for (Packed* packed : {&lookup, &rows, &tuples, &single}) packed->fill<Int>(random, 600);
  const Outputs shared_outputs = {Packed({600, 1200}, kFloat)};
  for (const int axis : {0, 1}) {
    const GatherElementsPlan gather{x.tensor, lookup.tensor, shared_outputs[0].tensor, axis};
    const ScatterPlan scatter{x.tensor, lookup.tensor, updates.tensor, shared_outputs[0].tensor,
                              axis};
    for (const bool output_is_private : {false, true}) {
      check("gather_elements", shared_outputs, [&](Outputs& own, int threads) {
        EXPECT(gather.run(x.data(), lookup.data(), own[0].data(), output_is_private, threads).ok(),
               "index");
      });
      check("scatter", shared_outputs, [&](Outputs& own, int threads) {
        EXPECT(scatter
                   .run(x.data(), lookup.data(), updates.data(), own[0].data(), output_is_private,
                        threads)
                   .ok(),
               "index");
      });
    }
  }
  const Outputs taken = {Packed({900, 1200}, kFloat)}, picked = {Packed({90000}, kFloat)};
  const GatherPlan gather{x.tensor, rows.tensor, taken[0].tensor, 0};
  check("gather", taken, [&](Outputs& own, int threads) {
    EXPECT(gather.run(x.data(), rows.data(), own[0].data(), true, threads).ok(), "index");
  });
  const GatherNdPlan gather_nd{x.tensor, tuples.tensor, picked[0].tensor, 0};
  check("gather_nd", picked, [&](Outputs& own, int threads) {
    EXPECT(gather_nd.run(x.data(), tuples.data(), own[0].data(), true, threads).ok(), "index");
  });
  const ScatterNdPlan points{x.tensor, tuples.tensor, values.tensor, shared_outputs[0].tensor},
      lines{x.tensor, single.tensor, slices.tensor, shared_outputs[0].tensor};
  check("scatter_nd of elements", shared_outputs, [&](Outputs& own, int threads) {
    EXPECT(points.run(x.data(), tuples.data(), values.data(), own[0].data(), false, threads).ok(),
           "index");
  });
  check("scatter_nd of rows", shared_outputs, [&](Outputs& own, int threads) {
    EXPECT(lines.run(x.data(), single.data(), slices.data(), own[0].data(), false, threads).ok(),
           "index");
  });
  // Updates of one short line that threads share.
  Packed short_line({50}, kNumber), many({400000}, kIndex), added({400000}, kNumber);
  short_line.fill(random);
  many.fill<Int>(random, 50);
  added.fill(random);
  const Outputs sums = {Packed({50}, kNumber)};
  const ScatterPlan sum{short_line.tensor, many.tensor, added.tensor,
                        sums[0].tensor,    0,           Reduction::add};
  check("scatter of sums", sums, [&](Outputs& own, int threads) {
    EXPECT(
        sum.run(short_line.data(), many.data(), added.data(), own[0].data(), false, threads).ok(),
        "index");
  });
}

void test_slabs(Random& random) {
  Packed x({900, 1200}, kFloat);
  x.fill(random);
  for (const Int part : {Int{1}, Int{300}}) {
    Outputs parts;
    for (Int at = 0; at < 1200; at += part) parts.push_back(Packed({900, part}, kFloat));
    SlabsPlan plan(x.tensor, 1);
    for (const Packed& one : parts) plan.add(one.tensor.layout);
    const auto pointers = [](Outputs& own) {
      std::vector<void*> data;
      for (Packed& one : own) data.push_back(one.data());
      return data;
    };
    check("split", parts,
          [&](Outputs& own, int threads) { plan.split(x.data(), pointers(own).data(), threads); });
    plan.split(x.data(), pointers(parts).data(), 1);
    const std::vector<void*> sources = pointers(parts);
    check("join", {Packed({900, 1200}, kFloat)}, [&](Outputs& own, int threads) {
      plan.join(sources.data(), own[0].data(), threads);
      EXPECT(own[0].bytes == x.bytes, "joined");
    });
  }
}

// The check of indices that threads share, from the middle of a row on.
void shared_check(Random& random) {
  constexpr Int size = 50, rows = 3, columns = 60001;
  Buffer indices(random, {rows, columns}, 4, Strides::packed, Role::input, DataType::int32);
  for (Int i = 0; i < indices.count(); ++i)  // bad behind every row
    indices.set<int32_t>(i, static_cast<int>((i + 1) % columns == 0 ? size : i % size));
  Layout layout = indices.tensor.layout;
  layout.sizes[1] = columns - 1;  // rows do not follow one another
  const scatter::IndexReader& reader = scatter::index_reader(DataType::int32);
  for (const Int row : {Int{-1}, Int{0}, Int{1}, rows - 1})
    for (const Int column : {Int{0}, columns - 2}) {
      const Int bad = row < 0 ? -1 : row * (columns - 1) + column;
      if (row >= 0) indices.set<int32_t>(row * columns + column, size);
      for (const int threads : {kMinThreads, 2, 3}) {
        const Status status = scatter::check_indices(reader, layout, indices.data(), size, threads);
        EXPECT(status.bad_index == bad, "got %lld, not %lld", status.bad_index, bad);
        ++passed;
      }
      if (row >= 0) indices.set<int32_t>(row * columns + column, 0);
    }
}

// Three workers at once on one line, each with its own copy: none continues before all have
// arrived.
std::atomic<int> arrived{0};
bool convert_vectors(const char* source, Int stride, Int count, Int size, Int scale, Int base,
                     Int step, Int* offsets) {
  thread_local bool here = false;
  if (!here) {
    here = true;
    arrived.fetch_add(1);
    const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (arrived.load() < 3 && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  }
  return scatter::index_reader(DataType::int64)
      .convert(source, stride, count, size, scale, base, step, offsets);
}
void three_workers() {
  constexpr Int length = Int{3} << 15;
  const std::vector<int64_t> indices(static_cast<std::size_t>(length), 4);
  const std::vector<int32_t> updates(static_cast<std::size_t>(length), 1);
  int32_t line[5] = {1, 2, 3, 4, 5};
  scatter::IndexReader reader = scatter::index_reader(DataType::int64);
  reader.convert = convert_vectors;
  scatter::Problem problem{};
  problem.axis_size = 5;
  problem.length = length;
  problem.columns = problem.groups = problem.rest_count = 1;
  problem.axis[scatter::kOut] = problem.axis[scatter::kUpdate] = 4;
  problem.axis[scatter::kIndex] = 8;
  problem.element_size = 4;
  problem.reduction = Reduction::add;
  problem.reader = &reader;
  problem.writer = &scatter::writer(Reduction::add, DataType::int32, 4);
  EXPECT(scatter::run_shares(problem, reinterpret_cast<const char*>(indices.data()),
                             reinterpret_cast<const char*>(updates.data()),
                             reinterpret_cast<char*>(line), 3),
         "three workers");
  EXPECT(line[3] == 4 && line[4] == 5 + length, "%d, %d", line[3], line[4]);
  ++passed;
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  Random random(11);
  test_selections(random);
  test_moves(random);
  test_slabs(random);
  shared_check(random);
  three_workers();
  std::printf("%lld passed, 0 failed\n", passed);
  return 0;
}
