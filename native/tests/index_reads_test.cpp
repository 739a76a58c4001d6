// Every index is read once for each use: the loader of this build (read_once.hpp) calls a hook here
// that counts readings, and returns another value, mostly a bad one, from the second reading of an
// index on.
//
// Whatever the hook returns, no access may be out of bounds (run with the address sanitizer;
// operands are separate allocations), a status names an index or none, an output that has not
// failed is written completely, and a bound one that has failed is not written. If an algorithm
// reads every index once, the result is that of the original values.
#include <atomic>
#include <memory>
#include <string>

#include "gather/cpu/gather_elements.hpp"
#include "harness.hpp"
#include "runtime/cpu/read_once.hpp"
#include "scatter/cpu/scatter.hpp"
#include "scatter/cpu/scatter_nd.hpp"

namespace {

using namespace anydml;
using namespace anydml::test;
using Sizes = std::vector<Int>;

// The value from the second reading on: huge, just outside, or inside but different. first_bad: the
// first reading of some indices is bad and all later ones are good.
enum class Change { none, huge, outside, inside, first_bad };

struct Watch {
  const char* begin = nullptr;
  const char* end = nullptr;
  Change change = Change::none;
  std::vector<Int> limits;  // of each component of a tuple
  Int stride = 0;           // bytes of a tuple where tuples are packed
  std::unique_ptr<std::atomic<int>[]> readings;
  std::atomic<Int> peak{0}, total{0};
} watch;

void put(char* copy, Int size, Int value) {
  if (size == 8)
    store(copy, value);
  else
    store(copy, static_cast<int>(value));
}

}  // namespace

void anydml::on_read(const char* address, char* copy, Int size) {
  if (address < watch.begin || address >= watch.end) return;
  const Int at = address - watch.begin;
  const int before = watch.readings[static_cast<std::size_t>(at)].fetch_add(1);
  watch.total.fetch_add(1);
  Int peak = watch.peak.load();
  while (before + 1 > peak && !watch.peak.compare_exchange_weak(peak, before + 1)) {
  }
  const Int limit = watch.limits[0];
  const Int huge = size == 8 ? INT64_MAX - 5 : INT32_MAX - 5;
  if (watch.change == Change::first_bad) {
    if (before == 0 && at / size % 97 == 13) put(copy, size, huge);
    return;
  }
  if (before == 0) return;
  if (watch.change == Change::huge) put(copy, size, huge);
  if (watch.change == Change::outside) put(copy, size, limit + at / size % 3);
  if (watch.change == Change::inside) put(copy, size, at / size % limit);
}

namespace {

constexpr unsigned char kUnwritten = 0xEE;
Int calls = 0;

// Memory of exactly its elements; `is_strided`: every third place of the last dimension is used.
struct Operand {
  Tensor tensor;
  std::vector<char> bytes;

  Operand(const Sizes& sizes, int element_size, DataType type = DataType::unknown,
          bool is_strided = false) {
    tensor.type = type;
    tensor.element_size = element_size;
    for (const Int size : sizes) tensor.layout.push(size, 0);
    set_packed_strides(tensor.layout, element_size);
    if (is_strided)
      for (int i = 0; i < tensor.layout.rank; ++i) tensor.layout.strides[i] *= 3;
    const Int places =
        tensor.layout.count() == 0 ? 0 : (tensor.layout.count() - 1) * (is_strided ? 3 : 1);
    bytes.resize(static_cast<std::size_t>((places + 1) * element_size));
  }
  Int count() const { return tensor.layout.count(); }
  char* at(Int flat) { return bytes.data() + offset_at(tensor.layout, flat); }
  // No byte of an element has the pattern of unwritten memory.
  void fill(Random& random) {
    for (char& byte : bytes) byte = static_cast<char>(random.between(0, 0x3F));
  }
  void clear() { std::fill(bytes.begin(), bytes.end(), static_cast<char>(kUnwritten)); }
  bool cleared() const {
    for (const char byte : bytes)
      if (static_cast<unsigned char>(byte) != kUnwritten) return false;
    return true;
  }
  Int unwritten() {
    const std::string mark(static_cast<std::size_t>(tensor.element_size),
                           static_cast<char>(kUnwritten));
    for (Int i = 0; i < count(); ++i)
      if (std::memcmp(at(i), mark.data(), mark.size()) == 0) return i;
    return -1;
  }
};

struct Indices : Operand {
  Indices(Random& random, const Sizes& sizes, DataType type, const Sizes& limits, bool is_strided)
      : Operand(sizes, type == DataType::int64 || type == DataType::uint64 ? 8 : 4, type,
                is_strided) {
    const bool sign = type == DataType::int64 || type == DataType::int32;
    const Int width = static_cast<Int>(limits.size());
    for (Int i = 0; i < count(); ++i) {
      const Int limit = limits[static_cast<std::size_t>(i % width)];
      put(at(i), tensor.element_size,
          random.between(0, limit - 1) - (sign && random.chance(0.3) ? limit : 0));
    }
  }
};

void start(const Indices& indices, Change change, Int limit) {
  watch.begin = indices.bytes.data();
  watch.end = watch.begin + indices.bytes.size();
  watch.change = change;
  watch.limits = {limit};
  watch.readings = std::make_unique<std::atomic<int>[]>(indices.bytes.size());
  watch.peak.store(0);
  watch.total.store(0);
}

struct Setting {
  DataType type;
  bool is_strided, output_is_private;
  int threads;
};

// run(output, output_is_private) calls a kernel; `once`: it reads every index once when the output
// is private.
template <class Run>
void check(const char* what, Indices& indices, Operand& output, const Setting& s, Int limit,
           bool once, Run&& run) {
  Operand expected = output;
  start(indices, Change::none, limit);
  EXPECT(run(expected).ok(), "%s: good indices fail", what);
  for (const Change change : {Change::huge, Change::outside, Change::inside, Change::first_bad}) {
    output.clear();
    start(indices, change, limit);
    const Status status = run(output);
    const int kind = static_cast<int>(change);
    EXPECT(status.bad_index >= -1 && status.bad_index < indices.count(), "%s: %lld of %lld", what,
           status.bad_index, indices.count());
    EXPECT(watch.total.load() > 0, "%s: no index was read", what);
    if (!s.output_is_private && !status.ok())
      EXPECT(output.cleared(), "%s: failed and written, %d", what, kind);
    if (status.ok()) {
      const Int left = output.unwritten();
      EXPECT(left < 0, "%s: element %lld is not written, change %d", what, left, kind);
    }
    if (once && s.output_is_private && change != Change::first_bad) {
      EXPECT(watch.peak.load() == 1, "%s: an index was read %lld times", what, watch.peak.load());
      EXPECT(status.ok() && output.bytes == expected.bytes, "%s: other values", what);
    }
    ++calls;
  }
  watch.begin = watch.end = nullptr;
}

Sizes joined(Sizes a, const Sizes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void gather(Random& random, const Setting& s, const Sizes& in, const Sizes& at, int axis,
            OutOfRange mode, int size, bool once) {
  const Int limit = in[static_cast<std::size_t>(axis)];
  Operand input(in, size);
  input.fill(random);
  Indices indices(random, at, s.type, {limit}, s.is_strided);
  Operand output(joined(joined(Sizes(in.begin(), in.begin() + axis), at),
                        Sizes(in.begin() + axis + 1, in.end())),
                 size);
  const GatherPlan plan{input.tensor, indices.tensor, output.tensor, axis, mode};
  check("gather", indices, output, s, limit, once, [&](Operand& to) {
    return plan.run(input.bytes.data(), indices.bytes.data(), to.bytes.data(), s.output_is_private,
                    s.threads);
  });
}

void gather_elements(Random& random, const Setting& s, const Sizes& in, const Sizes& at, int axis,
                     GatherElementsMethod method, int size, OutOfRange mode = OutOfRange::raise) {
  const Int limit = in[static_cast<std::size_t>(axis)];
  Operand input(in, size), output(at, size);
  input.fill(random);
  Indices indices(random, at, s.type, {limit}, s.is_strided);
  const GatherElementsPlan plan{input.tensor, indices.tensor, output.tensor, axis, mode};
  check("gather_elements", indices, output, s, limit, true, [&](Operand& to) {
    Status status;
    EXPECT(gather_elements_by(plan, method, input.bytes.data(), indices.bytes.data(),
                              to.bytes.data(), s.output_is_private, s.threads, status),
           "does not apply");
    return status;
  });
}

void gather_nd(Random& random, const Setting& s, const Sizes& in, Sizes at, int batch, Int width,
               int size, OutOfRange mode = OutOfRange::raise) {
  const Sizes limits(in.begin() + batch, in.begin() + batch + width);
  const Sizes out = joined(at, Sizes(in.begin() + batch + width, in.end()));
  at.push_back(width);
  Operand input(in, size), output(out, size);
  input.fill(random);
  Indices indices(random, at, s.type, limits, s.is_strided);
  const GatherNdPlan plan{input.tensor, indices.tensor, output.tensor, batch, mode};
  check("gather_nd", indices, output, s, *std::min_element(limits.begin(), limits.end()), true,
        [&](Operand& to) {
          return plan.run(input.bytes.data(), indices.bytes.data(), to.bytes.data(),
                          s.output_is_private, s.threads);
        });
}

void gathers(Random& random, const Setting& s) {
  for (const OutOfRange mode :
       {OutOfRange::raise, OutOfRange::clamp, OutOfRange::wrap, OutOfRange::clip}) {
    gather(random, s, {3000}, {703}, 0, mode, 4, true);
    gather(random, s, {300000}, {2100}, 0, mode, 4, true);     // far
    gather(random, s, {2000, 70}, {900}, 0, mode, 4, true);    // rows, far
    gather(random, s, {9, 400, 3}, {40}, 1, mode, 4, true);    // a short list for all positions
    gather(random, s, {9, 400, 30}, {900}, 1, mode, 4, true);  // kept offsets
    gather(random, s, {5, 3000}, {600}, 1, mode, 4, false);    // offsets made for each position
    gather_elements(random, s, {300000}, {3000}, 0, GatherElementsMethod::choose, 4, mode);
    gather_nd(random, s, {50, 60}, {1500}, 0, 2, 4, mode);
    gather_nd(random, s, {20, 30, 40}, {700}, 0, 3, 2, mode);
  }
  for (const int size : {1, 2, 4, 8, 16}) {
    gather_elements(random, s, {3, 600}, {3, 703}, 1, GatherElementsMethod::choose, size);
    gather_elements(random, s, {40, 300}, {50, 300}, 0, GatherElementsMethod::strips, size);
    gather_elements(random, s, {40, 300}, {50, 300}, 0, GatherElementsMethod::direct, size);
    gather_elements(random, s, {500, 7}, {500, 9}, 1, GatherElementsMethod::choose, size);
  }
  gather_nd(random, s, {1000, 1000}, {1300}, 0, 2, 4);  // far
  gather_nd(random, s, {300, 70}, {1300}, 0, 1, 4);
  gather_nd(random, s, {30, 3000, 7}, {30, 40}, 1, 1, 4);
  gather_nd(random, s, {7, 8, 9, 10, 3}, {900}, 0, 4, 4);
  gather_nd(random, s, {3, 4, 5, 6, 7, 2}, {300}, 0, 6, 8);
}

void scatters(Random& random, const Setting& s) {
  using scatter::Method;
  struct Shape {
    Sizes sizes, index;
    int axis;
  };
  const std::vector<Shape> shapes = {{{60, 50}, {60, 70}, 1},
                                     {{60, 50}, {90, 50}, 0},
                                     {{5000}, {1700}, 0},
                                     {{4, 300, 17}, {4, 200, 17}, 1},
                                     {{3, 40, 700}, {2, 9, 650}, 1}};
  for (const Shape& shape : shapes)
    for (const Method method :
         {Method::automatic, Method::direct, Method::blocks, Method::buckets, Method::shares})
      for (const int reduction : {0, 1, 3}) {
        Operand input(shape.sizes, 4, DataType::int32), output(shape.sizes, 4, DataType::int32);
        Operand updates(shape.index, 4, DataType::int32);
        input.fill(random);
        updates.fill(random);
        const Int limit = shape.sizes[static_cast<std::size_t>(shape.axis)];
        Indices indices(random, shape.index, s.type, {limit}, s.is_strided);
        scatter::Tuning tuning;
        tuning.block_bytes = tuning.row_bytes = 2048;
        tuning.max_bytes = 4096;
        tuning.small_bytes = 512;
        tuning.share_updates = 100;
        tuning.bucket_bits = 6;
        if (random.chance(0.5)) tuning.round = 600;
        const ScatterPlan plan{input.tensor,  indices.tensor, updates.tensor,
                               output.tensor, shape.axis,     static_cast<Reduction>(reduction)};
        check("scatter", indices, output, s, limit, true, [&](Operand& to) {
          return scatter::run_scatter(plan, input.bytes.data(), indices.bytes.data(),
                                      updates.bytes.data(), to.bytes.data(), s.output_is_private,
                                      s.threads, method, tuning);
        });
      }
}

void scatters_nd(Random& random, const Setting& s) {
  using scatter::NdMethod;
  struct Shape {
    Sizes sizes;
    Int tuples, width;
  };
  const std::vector<Shape> shapes = {{{3000}, 700, 1},          {{60, 50}, 900, 2},
                                     {{20, 10, 30, 3}, 700, 3}, {{5, 6, 7, 8}, 600, 4},
                                     {{80, 70}, 90, 1},         {{3, 4, 5, 4, 3, 2}, 300, 5}};
  for (const Shape& shape : shapes)
    for (const NdMethod method :
         {NdMethod::automatic, NdMethod::direct, NdMethod::rows, NdMethod::buckets})
      for (const int reduction : {0, 1, 3}) {
        const Sizes slice(shape.sizes.begin() + shape.width, shape.sizes.end());
        Operand input(shape.sizes, 4, DataType::int32), output(shape.sizes, 4, DataType::int32);
        Operand updates(joined({shape.tuples}, slice), 4, DataType::int32);
        input.fill(random);
        updates.fill(random);
        const Sizes limits(shape.sizes.begin(), shape.sizes.begin() + shape.width);
        Indices indices(random, {shape.tuples, shape.width}, s.type, limits, s.is_strided);
        scatter::NdTuning tuning;
        tuning.small_bytes = 0;
        tuning.piece_bytes = 1024;
        tuning.bucket_bits = 6;
        if (random.chance(0.5)) tuning.round = 600;
        const ScatterNdPlan plan{input.tensor, indices.tensor, updates.tensor, output.tensor,
                                 static_cast<Reduction>(reduction)};
        // A tuple whose slice goes on in the next piece of the partition is read for both.
        const bool once = method == NdMethod::direct || method == NdMethod::rows ||
                          shape.width == static_cast<Int>(shape.sizes.size());
        check("scatter_nd", indices, output, s, *std::min_element(limits.begin(), limits.end()),
              once, [&](Operand& to) {
                return scatter::run_scatter_nd(plan, input.bytes.data(), indices.bytes.data(),
                                               updates.bytes.data(), to.bytes.data(),
                                               s.output_is_private, s.threads, method, tuning);
              });
      }
}

}  // namespace

int main() {
  Random random(8);
  for (const DataType type : {DataType::int64, DataType::int32, DataType::uint64, DataType::uint32})
    for (const bool output_is_private : {true, false})
      for (const int form : {0, 1, 2}) {
        // Threads do not change how a value is read: one type does.
        if (form == 2 && type != DataType::uint32) continue;
        const Setting setting{type, form == 1, output_is_private, form == 2 ? 3 : 1};
        gathers(random, setting);
        scatters(random, setting);
        scatters_nd(random, setting);
      }
  const Setting setting{DataType::int64, false, true, 3};
  gather(random, setting, {2, 1100000}, {3}, 0, OutOfRange::raise, 4, true);  // blocks of megabytes
  gather_nd(random, setting, {2, 3, 1100000}, {2}, 0, 2, 4);
  std::printf("%lld passed, 0 failed\n", calls);
  return 0;
}
