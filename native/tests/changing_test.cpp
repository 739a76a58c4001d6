// Operands that another thread changes while a kernel reads them. The changes may affect the
// results, but nothing outside an output is written, every element of it is written, coordinates
// are in range, and a call that fails leaves its output unchanged. Every algorithm is forced.
#include <atomic>
#include <thread>

#include "harness.hpp"
#include "moving/cpu/slabs.hpp"
#include "nonzero/cpu/nonzero.hpp"
#include "scatter/cpu/scatter.hpp"
#include "scatter/cpu/scatter_nd.hpp"

namespace anydml::test {
namespace {

long passed = 0;

// A pattern that no operand holds and that no kernel here can compute from the operands.
constexpr unsigned char kPoison = 0xA5;

void poison(Buffer& buffer) {
  for (Int i = 0; i < buffer.count(); ++i)
    std::memset(buffer.at(i), kPoison, static_cast<std::size_t>(buffer.tensor.element_size));
  buffer.remember();
}

// True when no element is what poison() left there.
bool is_written(const Buffer& buffer) {
  const std::vector<unsigned char> all = buffer.elements();
  const auto size = static_cast<std::size_t>(buffer.tensor.element_size);
  for (std::size_t at = 0; at < all.size(); at += size) {
    bool same = true;
    for (std::size_t i = 0; i < size; ++i) same = same && all[at + i] == kPoison;
    if (same) return false;
  }
  return true;
}

// Writes to the elements of some operands, over and over, until it is destroyed.
class Changer {
 public:
  // value(i, turn): the value of element i in that turn.
  using Value = uint64_t (*)(Int i, uint64_t turn);
  struct Changed {
    Buffer* buffer;
    Value value;
  };
  explicit Changer(std::vector<Changed> all) : all_(std::move(all)) {
    turn(0);  // all elements have one of the values
    thread_ = std::thread([this] {
      for (uint64_t n = 1; !stop_.load(std::memory_order_relaxed); ++n) turn(n);
    });
  }
  ~Changer() {
    stop_.store(true);
    thread_.join();
  }
  Changer(const Changer&) = delete;
  Changer& operator=(const Changer&) = delete;

 private:
  void turn(uint64_t n) {
    for (const Changed& changed : all_) {
      const Int count = changed.buffer->count();
      for (Int i = 0; i < count; ++i) {
        const uint64_t bits = changed.value(i, n);
        auto* const to = reinterpret_cast<volatile unsigned char*>(changed.buffer->at(i));
        const int size = changed.buffer->tensor.element_size;
        if (size == 8 && reinterpret_cast<uintptr_t>(to) % 8 == 0) {
          *reinterpret_cast<volatile uint64_t*>(to) = bits;
          continue;
        }
        for (int b = 0; b < size; ++b)
          to[b] = static_cast<unsigned char>(bits >> 8 * std::min(b, 7));
      }
      if (stop_.load(std::memory_order_relaxed)) return;
    }
  }

  std::vector<Changed> all_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Small numbers of every type, floats included: subnormal ones, of which no sum is the poison.
uint64_t number(Int i, uint64_t turn) { return static_cast<uint64_t>(i) % 13 + turn % 7; }
// Half of the elements zero, others every turn.
uint64_t alternate(Int i, uint64_t turn) {
  return (static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 40 ^ turn) & 1;
}
uint64_t rarely(Int i, uint64_t turn) {
  return ((static_cast<uint64_t>(i) + turn) * 0x9E3779B97F4A7C15u >> 40) % 50 == 0 ? 1 : 0;
}
// Indices of an axis of at least 50, in range or (in few turns, at few places) not.
uint64_t index(Int i, uint64_t turn) { return (static_cast<uint64_t>(i) * 31 + turn * 7) % 50; }
uint64_t bad_index(Int i, uint64_t turn) {
  const bool bad = turn % 3 == 1 && i % 997 == 500;
  return bad ? uint64_t{1} << 40 : index(i, turn);
}

// Runs call() several times while the operands change.
template <class Call>
void while_changing(std::vector<Changer::Changed> operands, Call&& call) {
  const Changer changer(std::move(operands));
  for (int n = 0; n < 3; ++n, ++passed) call();
}

void nonzero_cases(Random& random) {
  using nonzero::Scan;
  using nonzero::Write;
  for (const int size : {1, 2, 4, 8, 16})
    for (const Strides strides : {Strides::packed, Strides::any})
      for (int way = 0; way < 20; ++way) {
        const Scan scan = static_cast<Scan>(way % 4);
        const Write write = static_cast<Write>(way / 4);
        const std::vector<Int> sizes =
            way % 3 == 0 ? std::vector<Int>{3, 33250} : std::vector<Int>{30, 8, 131};
        const int columns = static_cast<int>(sizes.size());
        Buffer input(random, sizes, size, strides, Role::output);
        const NonzeroPlan plan{input.tensor, columns};
        while_changing({{&input, way % 2 == 0 ? rarely : alternate}}, [&] {
          const NonzeroPlan::Found found = nonzero::scan(plan, input.data(), 3, scan);
          EXPECT(found.count >= 0 && found.count <= input.count(), "%lld rows", found.count);
          Buffer rows(random, {found.count + 2, columns}, way % 2 == 0 ? 4 : 8, Strides::packed,
                      Role::output);
          poison(rows);
          nonzero::write(plan, found, rows.tensor, rows.data(), 3, write);
          EXPECT(rows.gaps_intact(), "scan %d, write %d", way % 4, way / 4);
          Int before = -1;
          for (Int row = 0; row < found.count; ++row) {
            Int flat = 0;
            for (int d = 0; d < columns; ++d) {
              const Int at = row * columns + d, length = sizes[static_cast<std::size_t>(d)];
              const Int got = way % 2 == 0 ? static_cast<Int>(rows.get<uint32_t>(at))
                                           : static_cast<Int>(rows.get<uint64_t>(at));
              EXPECT(got >= 0 && got < length, "row %lld has %lld on %d", row, got, d);
              flat = flat * length + got;
            }
            EXPECT(flat > before, "row %lld: %lld after %lld", row, flat, before);
            before = flat;
          }
          for (Int at = found.count * columns; at < rows.count(); ++at)
            EXPECT(static_cast<unsigned char>(*rows.at(at)) == kPoison, "a spare row is written");
        });
      }
}

// No uint8 where sums wrap around to the poison.
DataType random_type(Random& random, int reduction) {
  const DataType types[] = {DataType::uint8,   DataType::float32, DataType::float16,
                            DataType::float64, DataType::int32,   DataType::int64};
  const auto kind = static_cast<Reduction>(reduction);
  return types[random.between(kind == Reduction::add || kind == Reduction::mul ? 1 : 0, 5)];
}
int size_of(DataType type) {
  return type == DataType::uint8                                ? 1
         : type == DataType::float16                            ? 2
         : type == DataType::float64 || type == DataType::int64 ? 8
                                                                : 4;
}

// Runs a scatter with operands of these sizes in every way; run(buffers.., output_is_private)
// returns a status.
template <class Run>
void scatter_case(Random& random, const std::vector<Int>& sizes,
                  const std::vector<Int>& index_sizes, const std::vector<Int>& update_sizes,
                  DataType type, Run&& run) {
  const int size = size_of(type);
  const Strides strides = random.chance(0.6) ? Strides::packed : Strides::any;
  Buffer input(random, sizes, size, strides, Role::output, type);
  Buffer indices(random, index_sizes, 8, strides, Role::output, DataType::int64);
  Buffer updates(random, update_sizes, size, strides, Role::output, type);
  Buffer output(random, sizes, size, strides, Role::output, type);
  while_changing(
      {{&input, number}, {&indices, random.chance(0.5) ? bad_index : index}, {&updates, number}},
      [&] {
        for (const bool output_is_private : {false, true}) {
          poison(output);
          const Status status = run(input, indices, updates, output, output_is_private);
          EXPECT(output.gaps_intact(), "beside the output");
          if (status.ok())
            EXPECT(is_written(output), "an element is not written; output_is_private %d",
                   output_is_private);
          else
            EXPECT(output_is_private || output.unchanged(), "failed on %lld and has written",
                   status.bad_index);
        }
      });
  input.remember();
  while_changing({{&indices, bad_index}, {&updates, number}}, [&] {
    run(input, indices, updates, input, false);
    EXPECT(input.gaps_intact(), "beside the output, in place");
  });
}

void scatter_cases(Random& random) {
  using scatter::Method;
  const std::vector<std::vector<Int>> shapes = {{20000}, {50, 400}, {60, 20, 10}, {70}};
  for (const Method method :
       {Method::automatic, Method::direct, Method::blocks, Method::buckets, Method::shares})
    for (int r = 0; r < 5; ++r)
      for (const auto& shape : shapes) {
        const DataType type = random_type(random, r);
        std::vector<Int> index_sizes = shape;
        if (shape[0] == 70) index_sizes[0] = 30000;
        scatter::Tuning tuning;
        tuning.share_updates = 1000;
        tuning.bucket_bits = static_cast<int>(random.between(4, 10));
        tuning.block_bytes = tuning.row_bytes = tuning.max_bytes = Int{1} << random.between(8, 14);
        if (random.chance(0.5)) tuning.stream_bytes = 0;
        if (random.chance(0.5)) tuning.round = 3000;
        scatter_case(random, shape, index_sizes, index_sizes, type,
                     [&](Buffer& input, Buffer& indices, Buffer& updates, Buffer& output,
                         bool output_is_private) {
                       const ScatterPlan plan{input.tensor,
                                              indices.tensor,
                                              updates.tensor,
                                              output.tensor,
                                              0,
                                              static_cast<Reduction>(r)};
                       return scatter::run_scatter(plan, input.data(), indices.data(),
                                                   updates.data(), output.data(), output_is_private,
                                                   3, method, tuning);
                     });
      }
}

void scatter_nd_cases(Random& random) {
  using scatter::NdMethod;
  struct Shape {
    std::vector<Int> sizes;
    Int length, tuples;
  };
  const Shape shapes[] = {{{20000}, 1, 20000},
                          {{300, 50}, 1, 900},
                          {{60, 70, 3}, 2, 5000},
                          {{50, 2000}, 1, 60},
                          {{300}, 1, 400}};
  for (const NdMethod method :
       {NdMethod::automatic, NdMethod::direct, NdMethod::rows, NdMethod::buckets})
    for (int r = 0; r < 5; ++r)
      for (const Shape& shape : shapes) {
        const DataType type = random_type(random, r);
        std::vector<Int> update_sizes = {shape.tuples};
        update_sizes.insert(update_sizes.end(), shape.sizes.begin() + shape.length,
                            shape.sizes.end());
        scatter::NdTuning tuning;
        tuning.small_bytes = 0;
        tuning.bucket_bits = static_cast<int>(random.between(4, 10));
        tuning.piece_bytes = Int{1} << random.between(8, 14);
        if (random.chance(0.5)) tuning.stream_bytes = 0;
        if (random.chance(0.5)) tuning.round = 3000;
        scatter_case(random, shape.sizes, {shape.tuples, shape.length}, update_sizes, type,
                     [&](Buffer& input, Buffer& indices, Buffer& updates, Buffer& output,
                         bool output_is_private) {
                       const ScatterNdPlan plan{input.tensor, indices.tensor, updates.tensor,
                                                output.tensor, static_cast<Reduction>(r)};
                       return scatter::run_scatter_nd(plan, input.data(), indices.data(),
                                                      updates.data(), output.data(),
                                                      output_is_private, 3, method, tuning);
                     });
      }
}

void slab_cases(Random& random) {
  for (const int size : {1, 2, 4, 8, 16})
    for (const SlabMethod method : {SlabMethod::choose, SlabMethod::layouts, SlabMethod::rows,
                                    SlabMethod::blocks, SlabMethod::tiles})
      for (const bool split : {true, false}) {
        const Strides strides = random.chance(0.7) ? Strides::packed : Strides::any;
        Buffer joined(random, {200, 66}, size, strides, Role::output);
        SlabsPlan plan(joined.tensor, 1);
        std::vector<Buffer> parts;
        for (int p = 0; p < 66; ++p)
          parts.emplace_back(random, std::vector<Int>{200, 1}, size, strides, Role::output);
        std::vector<void*> data;
        std::vector<Changer::Changed> changed;
        for (Buffer& part : parts) {
          plan.add(part.tensor.layout);
          data.push_back(part.data());
          if (split)
            poison(part);
          else
            changed.push_back({&part, number});
        }
        if (split)
          changed.push_back({&joined, number});
        else
          poison(joined);
        bool applies = true;
        while_changing(changed, [&] {
          applies = split ? split_by(plan, method, joined.data(), data.data(), 3)
                          : join_by(plan, method, data.data(), joined.data(), 3);
        });
        if (!applies) continue;
        if (!split) EXPECT(joined.gaps_intact() && is_written(joined), "join %d", int(method));
        for (const Buffer& part : parts)
          EXPECT(!split || (part.gaps_intact() && is_written(part)), "split %d", int(method));
      }
}

void copy_cases(Random& random) {
  for (const int size : {1, 2, 4, 8, 16})
    for (int n = 0; n < 12; ++n) {
      const std::vector<Int> sizes = {random.between(2, 300), random.between(2, 90)};
      Buffer source(random, sizes, size, Strides::any, Role::output);
      Buffer target(random, sizes, size, random_strides(random), Role::output);
      while_changing({{&source, number}}, [&] {
        poison(target);
        copy_elements(target.tensor.layout, target.data(), source.tensor.layout, source.data(),
                      size, 3);
        EXPECT(target.gaps_intact() && is_written(target), "a copy");
      });
    }
}

}  // namespace
}  // namespace anydml::test

int main() {
  using namespace anydml::test;
  Random random(20240701);
  nonzero_cases(random);
  scatter_cases(random);
  scatter_nd_cases(random);
  slab_cases(random);
  copy_cases(random);
  std::printf("%ld passed, 0 failed\n", passed);
  return 0;
}
