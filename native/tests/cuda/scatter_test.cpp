// SCATTER and SCATTER_ND on the GPU against the CPU's kernels, every byte of the operands.
#include <cmath>
#include <regex>

#include "index_orders.hpp"
#include "on_device.hpp"

using namespace anydml;
using namespace anydml::test;

namespace {

Outcome outcome;

constexpr Reduction kReductions[] = {Reduction::none, Reduction::add, Reduction::mul,
                                     Reduction::min, Reduction::max};
constexpr DataType kIndexTypes[] = {DataType::int64, DataType::int32, DataType::uint64,
                                    DataType::uint32};

void set(Operand& operand, Int flat, uint64_t bits) {
  std::memcpy(operand.at(flat), &bits, static_cast<std::size_t>(operand.tensor.element_size));
}

// Numbers of everyday size among odd ones, or sums are infinities and NaNs only.
void fill(Random& random, Operand& operand) {
  const DataType type = operand.tensor.type;
  if (type == DataType::unknown || !is_float(type)) return;  // random bytes
  const double odd = random.chance(0.2) ? 0.5 : random.chance(0.5) ? 0.05 : 0;
  for (Int i = 0; i < operand.count(); ++i) {
    const long double number = static_cast<long double>(random.between(-4000, 4000)) / 257;
    set(operand, i, random.chance(odd) ? odd_bits(random, type) : nearest_bits(number, type));
  }
}

enum class Pattern { random, ascending, descending, one, few, turns, sorted_runs, window, pairs };
constexpr Pattern kPatterns[] = {Pattern::random, Pattern::ascending,   Pattern::descending,
                                 Pattern::one,    Pattern::few,         Pattern::turns,
                                 Pattern::window, Pattern::sorted_runs, Pattern::pairs};

Int position(Random& random, Pattern pattern, Int i, Int count, Int size) {
  switch (pattern) {
    case Pattern::ascending:
      return i % size;
    case Pattern::descending:
      return size - 1 - i % size;
    case Pattern::one:
      return size / 2;
    case Pattern::few:
      return random.between(0, std::min<Int>(size, 3) - 1);
    case Pattern::turns:
      return random.chance(0.03) ? random.between(0, size - 1) : i % 2 * (size - 1);
    case Pattern::sorted_runs:
      return i * size / count;
    case Pattern::window:
      return size / 3 + random.between(0, size / 64);
    case Pattern::pairs:  // in the opposite order, each twice
      return size - 1 - i / 2 % size;
    default:
      return random.between(0, size - 1);
  }
}

bool is_signed_index(DataType type) { return type == DataType::int64 || type == DataType::int32; }

void set_index(Random& random, Operand& indices, Int flat, Int size, Int place) {
  const bool negative = is_signed_index(indices.tensor.type) && random.chance(0.3);
  set(indices, flat, static_cast<uint64_t>(negative ? place - size : place));
}

void spoil(Random& random, Operand& indices, Int flat, Int size) {
  const bool wide = indices.tensor.element_size == 8;
  uint64_t value = static_cast<uint64_t>(size + (random.chance(0.5) ? 0 : random.between(0, 99)));
  if (is_signed_index(indices.tensor.type)) {
    if (random.chance(0.4)) value = static_cast<uint64_t>(-size - 1);
    if (random.chance(0.2)) value = wide ? uint64_t{1} << 63 : uint64_t{1} << 31;
  } else if (random.chance(0.3)) {
    value = ~uint64_t{0};
  }
  set(indices, flat, value);
}

struct Case {
  bool nd = false;
  std::vector<Int> sizes, index_sizes, update_sizes;
  int axis = 0;
  DataType type = DataType::unknown, index_type = DataType::int64;
  int size = 4;
  Reduction reduction = Reduction::none;
  Strides strides = Strides::packed, output_strides = Strides::packed;
  Pattern pattern = Pattern::random;
  bool in_place = false, output_is_private = false;
  int bad = 0;  // indices

  // The size of the axis that an index points into.
  Int size_of(Int flat) const {
    if (!nd) return sizes.empty() ? 1 : sizes[static_cast<std::size_t>(axis)];
    return sizes[static_cast<std::size_t>(flat % index_sizes.back())];
  }
};

void check(Random& random, const Case& c) {
  Operand input(random, c.sizes, c.size, c.type, c.in_place ? c.output_strides : c.strides,
                c.in_place ? Role::output : Role::input);
  Operand other(random, c.sizes, c.size, c.type, c.output_strides, Role::output);
  Operand indices(random, c.index_sizes, size_of(c.index_type), c.index_type, c.strides,
                  Role::input);
  Operand updates(random, c.update_sizes, c.size, c.type, c.strides, Role::input);
  Operand& output = c.in_place ? input : other;
  fill(random, input);
  fill(random, updates);
  const Int count = indices.count();
  for (Int i = 0; i < count; ++i) {
    const Int size = c.size_of(i);
    if (size > 0)
      set_index(random, indices, i, size, position(random, c.pattern, i, count, size));
    else
      set(indices, i, 0);
  }
  for (int n = 0; n < c.bad && count > 0; ++n) {
    const Int at = n == 0 && random.chance(0.3) ? count - 1 : random.between(0, count - 1);
    spoil(random, indices, at, c.size_of(at));
  }
  for (Operand* operand : {&input, &other, &indices, &updates}) operand->on_gpu();
  const ScatterPlan elements{input.tensor,  indices.tensor, updates.tensor,
                             output.tensor, c.axis,         c.reduction};
  const ScatterNdPlan tuples{input.tensor, indices.tensor, updates.tensor, output.tensor,
                             c.reduction};
  const Status status =
      c.nd ? tuples.run(input.host(), indices.host(), updates.host(), output.host(), false, 1)
           : elements.run(input.host(), indices.host(), updates.host(), output.host(), false, 1);
  if (!status.ok() && c.output_is_private)
    for (Int i = 0; i < output.count(); ++i)
      std::memset(output.at(i), 0, static_cast<std::size_t>(c.size));
  on_device([&](cuda::Queue& queue) {
    if (c.nd)
      cuda::scatter_nd(tuples, input.on_gpu(), indices.on_gpu(), updates.on_gpu(), output.on_gpu(),
                       c.output_is_private, queue);
    else
      cuda::scatter_elements(elements, input.on_gpu(), indices.on_gpu(), updates.on_gpu(),
                             output.on_gpu(), c.output_is_private, queue);
  });
  cuda::BadIndex found;
  const bool is_bad = device().bad_indices.take(found);
  const std::string what =
      std::string(c.nd ? "scatter_nd " : "scatter ") + input.text() + " <- " + indices.text() +
      ", " + updates.text() + " to " + output.text() + " axis " + std::to_string(c.axis) +
      " reduction " + std::to_string(static_cast<int>(c.reduction)) + " pattern " +
      std::to_string(static_cast<int>(c.pattern)) + " in place " + std::to_string(c.in_place) +
      " output_is_private " + std::to_string(c.output_is_private);
  outcome.add(is_bad == !status.ok() && (!is_bad || found.position == status.bad_index),
              what + ": bad index " + std::to_string(is_bad ? found.position : -1) + ", not " +
                  std::to_string(status.bad_index));
  outcome.expect(output, what);
  outcome.expect(c.in_place ? other : input, what + " input");
  outcome.expect(indices, what + " indices");
  outcome.expect(updates, what + " updates");
}

void random_type(Random& random, Case& c) {
  c.index_type = kIndexTypes[random.between(0, 3)];
  c.reduction = kReductions[random.chance(0.4) ? 0 : random.between(1, 4)];
  c.type = c.reduction == Reduction::none && random.chance(0.6) ? DataType::unknown
                                                                : kTypes[random.between(0, 10)];
  c.size = c.type == DataType::unknown ? 1 << random.between(0, 4) : size_of(c.type);
  c.strides = random.chance(0.5) ? Strides::packed : random_strides(random);
  c.output_strides = random.chance(0.5) ? Strides::packed : c.strides;
  c.pattern = kPatterns[random.between(0, 8)];
  c.in_place = random.chance(0.3);
  c.output_is_private = random.chance(0.5);
  c.bad = random.chance(0.12) ? static_cast<int>(random.between(1, 3)) : 0;
}

void make_elements(Random& random, Case& c) {
  const int rank = static_cast<int>(c.sizes.size());
  c.axis = rank == 0 ? 0 : static_cast<int>(random.between(0, rank - 1));
  c.index_sizes = c.sizes;
  const bool prefix = random.chance(0.2);
  for (int d = 0; d < rank; ++d) {
    Int& size = c.index_sizes[static_cast<std::size_t>(d)];
    if (d == c.axis && random.chance(0.6))
      size = random.chance(0.05) ? 0 : random.between(1, std::max<Int>(1, 2 * size));
    else if (d != c.axis && prefix && random.chance(0.5))
      size = random.between(0, size);
  }
  c.update_sizes = c.index_sizes;
}

void make_tuples(Random& random, Case& c, Int most) {
  c.nd = true;
  const Int rank = static_cast<Int>(c.sizes.size());
  const auto length = static_cast<std::size_t>(random.between(random.chance(0.1) ? 0 : 1, rank));
  Int slice = 1;
  for (std::size_t d = length; d < c.sizes.size(); ++d) slice *= c.sizes[d];
  c.index_sizes = some_sizes(random, 3, std::max<Int>(1, most / std::max<Int>(1, slice)));
  c.update_sizes = c.index_sizes;
  c.index_sizes.push_back(static_cast<Int>(length));
  c.update_sizes.insert(c.update_sizes.end(), c.sizes.begin() + static_cast<std::ptrdiff_t>(length),
                        c.sizes.end());
}

void random_case(Random& random, Int most) {
  Case c;
  random_type(random, c);
  c.sizes = some_sizes(random, 5, most);
  if (c.sizes.size() > 1 && random.chance(0.5)) std::swap(c.sizes.front(), c.sizes.back());
  if (!c.sizes.empty() && random.chance(0.5))
    make_tuples(random, c, most);
  else
    make_elements(random, c);
  check(random, c);
}

// One line that takes many updates, of every type by every reduction.
void check_lines(Random& random) {
  for (Reduction reduction : kReductions)
    for (DataType type : kTypes)
      for (Pattern pattern : kPatterns)
        for (Int n = 0; n < cases(2, 1); ++n) {
          Case c;
          c.type = type;
          c.size = size_of(type);
          c.reduction = reduction;
          c.pattern = pattern;
          const Int sizes[] = {300, 70000, 600000, 2300000};
          c.sizes = {sizes[random.between(0, type == DataType::float32 ? 3 : 2)]};
          c.index_sizes = {random.chance(0.5) ? c.sizes[0] : random.between(1, 400000)};
          c.update_sizes = c.index_sizes;
          c.index_type = kIndexTypes[random.between(0, 3)];
          c.in_place = random.chance(0.3);
          c.output_is_private = random.chance(0.5);
          c.bad = random.chance(0.05) ? 1 : 0;
          check(random, c);
        }
}

// Lines so long that blocks take several tiles, and so crowded that several blocks take a bucket.
void check_long(Random& random) {
  for (Pattern pattern : kPatterns)
    for (Int n = 0; n < cases(2, 1); ++n) {
      Case c;
      constexpr DataType kSome[] = {DataType::int32, DataType::uint8, DataType::int64,
                                    DataType::float32};
      c.type = kSome[random.between(0, 2)];
      c.reduction = kReductions[random.chance(0.4) ? 0 : random.between(1, 4)];
      if (c.reduction == Reduction::none) c.type = kSome[random.between(0, 3)];
      c.size = size_of(c.type);
      c.pattern = pattern;
      c.sizes = {random.between(1, 5) * 1000003};
      c.index_sizes = c.update_sizes = {random.between(2000000, 6000000)};
      c.index_type = kIndexTypes[random.between(0, 3)];
      c.in_place = random.chance(0.3);
      c.output_is_private = random.chance(0.5);
      c.bad = random.chance(0.1) ? 1 : 0;
      check(random, c);
    }
}

// Rows and strips as wide as shared memory takes them, and wider.
void check_planes(Random& random) {
  for (const std::vector<Int>& sizes : {std::vector<Int>{70, 8192},
                                        {8192, 70},
                                        {300, 1000},
                                        {3, 60000},
                                        {40000, 12},
                                        {2, 5000, 33},
                                        {130000, 5},
                                        {1500, 3, 300}})
    for (int n = 0; n < cases(24, 4); ++n) {
      Case c;
      random_type(random, c);
      if (random.chance(0.5)) c.strides = c.output_strides = Strides::packed;
      c.sizes = sizes;
      make_elements(random, c);
      check(random, c);
    }
}

void check_rows(Random& random) {
  for (const std::vector<Int>& sizes :
       {std::vector<Int>{30000, 64}, {5000, 3}, {400, 300, 5}, {100, 20000}, {900000, 2}})
    for (int n = 0; n < cases(24, 4); ++n) {
      Case c;
      random_type(random, c);
      if (random.chance(0.5)) c.strides = c.output_strides = Strides::packed;
      c.sizes = sizes;
      make_tuples(random, c, 400000);
      check(random, c);
    }
}

void check_all(Int seed) {
  Random random(static_cast<uint64_t>(seed));
  const auto done = [](const char* what) {  // told at once: a run may be cut off
    std::printf("%s: %lld passed, %lld failed so far\n", what, outcome.passed, outcome.failed);
    std::fflush(stdout);
  };
  for (int n = 0; n < cases(2500, 300); ++n) random_case(random, random.chance(0.2) ? 30000 : 800);
  done("random cases");
  check_lines(random);
  done("lines");
  check_long(random);
  done("long lines");
  check_planes(random);
  done("planes");
  check_rows(random);
}

// ---- times --------------------------------------------------------------------------------------

std::regex wanted_names;  // found in the names of what is timed

struct Timed {
  Tensor input, indices, updates;
  std::vector<int64_t> index;
  bool nd = false;
  int axis = 0;
};

// The input as it comes, with another output; once for a result of the library, once for the
// caller's.
void time_case(Clock& clock, const std::string& name, const Timed& timed, Reduction reduction,
               double bytes, bool bound = false) {
  if (!std::regex_search(name, wanted_names)) return;
  const auto bytes_of = [](const Tensor& tensor) {
    return tensor.layout.count() * tensor.element_size;
  };
  const Int data = bytes_of(timed.input), values = bytes_of(timed.updates);
  DeviceMemory input(static_cast<std::size_t>(data)), output(static_cast<std::size_t>(data)),
      updates(static_cast<std::size_t>(values)), indices(timed.index.size() * 8);
  repeat_on_device(input, data, random_block());
  repeat_on_device(updates, values, random_block());
  indices.upload(timed.index.data(), timed.index.size() * 8);
  const ScatterPlan elements{timed.input, timed.indices, timed.updates,
                             timed.input, timed.axis,    reduction};
  const ScatterNdPlan tuples{timed.input, timed.indices, timed.updates, timed.input, reduction};
  for (int given = 0; given <= (bound ? 1 : 0); ++given)
    clock.report(name + (given ? ", bound" : ""), bytes, [&](cuda::Queue& queue) {
      if (timed.nd)
        cuda::scatter_nd(tuples, input.get(), indices.get(), updates.get(), output.get(), !given,
                         queue);
      else
        cuda::scatter_elements(elements, input.get(), indices.get(), updates.get(), output.get(),
                               !given, queue);
    });
}

Timed plane(Order order, int axis, DataType type) {
  constexpr int kBits = 13;
  constexpr Int side = Int{1} << kBits;
  Timed timed;
  timed.input = timed.updates = packed_tensor(type, size_of(type), {side, side});
  timed.indices = packed_tensor(DataType::int64, 8, {side, side});
  timed.axis = axis;
  timed.index.resize(static_cast<std::size_t>(side * side));
  for (Int line = 0; line < side; ++line) {
    const std::vector<int64_t> own =
        positions(order, side, kBits, static_cast<uint64_t>(line * 7 + 1));
    for (Int i = 0; i < side; ++i)
      timed.index[static_cast<std::size_t>(axis == 1 ? line * side + i : i * side + line)] =
          own[static_cast<std::size_t>(i)];
  }
  return timed;
}

Timed line(Order order, int bits, Int count, DataType type) {
  Timed timed;
  timed.input = packed_tensor(type, size_of(type), {Int{1} << bits});
  timed.updates = packed_tensor(type, size_of(type), {count});
  timed.indices = packed_tensor(DataType::int64, 8, {count});
  timed.index = positions(order, count, bits, 1);
  return timed;
}

Timed rows(Order order, int bits, Int count, Int width) {
  Timed timed = line(order, bits, count, DataType::float32);
  timed.nd = true;
  timed.input = packed_tensor(DataType::float32, 4, {Int{1} << bits, width});
  timed.updates = packed_tensor(DataType::float32, 4, {count, width});
  timed.indices = packed_tensor(DataType::int64, 8, {count, 1});
  return timed;
}

Timed scalars(Order order, Int count) {
  Timed timed = line(order, 26, count, DataType::float32);
  timed.nd = true;
  timed.input = packed_tensor(DataType::float32, 4, {8192, 8192});
  timed.indices = packed_tensor(DataType::int64, 8, {count, 2});
  std::vector<int64_t> pairs;
  for (int64_t at : timed.index) {
    pairs.push_back(at >> 13);
    pairs.push_back(at & 8191);
  }
  timed.index = pairs;
  return timed;
}

double traffic(const Timed& timed) {
  return static_cast<double>(2 * timed.input.layout.count() * timed.input.element_size +
                             timed.updates.layout.count() * timed.updates.element_size) +
         8 * static_cast<double>(timed.index.size());
}

// The same indices for several types and reductions; made only where some name is wanted.
struct Way {
  const char* name;
  DataType type;
  Reduction reduction;
};
constexpr Way kMoves{"", DataType::float32, Reduction::none};
constexpr Way kAllWays[] = {kMoves,
                            {" max", DataType::float32, Reduction::max},
                            {" add", DataType::float32, Reduction::add},
                            {" add int32", DataType::int32, Reduction::add},
                            {" add int64", DataType::int64, Reduction::add}};

template <class Make>
void time_ways(Clock& clock, const std::string& what, Order order, std::initializer_list<Way> ways,
               const Make& make) {
  const auto name_of = [&](const Way& way) {
    return what + way.name + " " + kOrders[static_cast<int>(order)];
  };
  bool wanted = false;
  for (const Way& way : ways) wanted |= std::regex_search(name_of(way), wanted_names);
  if (!wanted) return;
  Timed timed = make(order);
  for (const Way& way : ways) {
    for (Tensor* tensor : {&timed.input, &timed.updates}) {
      tensor->type = way.type;
      tensor->element_size = size_of(way.type);
      set_packed_strides(tensor->layout, tensor->element_size);
    }
    time_case(clock, name_of(way), timed, way.reduction, traffic(timed),
              order == Order::permutation && way.reduction == Reduction::none);
  }
}

void time_all(const char* only) {
  Clock clock;
  wanted_names = only;
  clock.copy_rate();
  constexpr Int M = Int{1} << 20;
  const std::initializer_list<Way> all = {kAllWays[0], kAllWays[1], kAllWays[2], kAllWays[3],
                                          kAllWays[4]};
  const std::initializer_list<Way> two = {kAllWays[0], kAllWays[2]};
  for (Order order : {Order::permutation, Order::repeats, Order::ascending, Order::reversed,
                      Order::one, Order::few, Order::window, Order::runs}) {
    for (int axis : {1, 0})
      time_ways(clock, "8192^2 axis " + std::to_string(axis), order, all,
                [&](Order is) { return plane(is, axis, DataType::float32); });
    time_ways(clock, "64 M <- 64 M", order, all,
              [&](Order is) { return line(is, 26, 64 * M, DataType::float32); });
    time_ways(clock, "64 M <- 4 M", order, all,
              [&](Order is) { return line(is, 26, 4 * M, DataType::float32); });
    time_ways(clock, "nd rows", order, two, [&](Order is) { return rows(is, 22, M, 64); });
    time_ways(clock, "nd scalars", order, {kMoves}, [&](Order is) { return scalars(is, 16 * M); });
    time_ways(clock, "16", order, {kMoves},
              [&](Order is) { return line(is, 4, 16, DataType::float32); });
  }
}

// Compiles some of the kernels, so that several processes share the work (ANYDML_TEST_CACHE).
void compile(std::size_t first, std::size_t step) {
  const std::vector<cuda::Variant> all = cuda::scatter_variants();
  for (std::size_t i = first; i < all.size(); i += step) device().warm(all[i]);
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::string(arguments[1]) == "time") {
    time_all(count > 2 ? arguments[2] : "");
    return 0;
  }
  if (count > 3 && std::string(arguments[1]) == "compile") {
    compile(static_cast<std::size_t>(std::atoi(arguments[2])),
            static_cast<std::size_t>(std::atoi(arguments[3])));
    return 0;
  }
  check_all(count > 1 ? std::atoll(arguments[1]) : 61);
  return outcome.exit_status("scatter");
}
