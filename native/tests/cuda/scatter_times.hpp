// Times of the GPU's scatters, by case and by the order of the indices.
#pragma once

#include <regex>

#include "index_orders.hpp"
#include "on_device.hpp"

namespace anydml::test::scatters {

inline std::regex selected_names;  // a regular expression for the names of timings

struct Timed {
  Tensor input, indices, updates;
  std::vector<int64_t> index;
  bool nd = false;
  int axis = 0;
};

// The input as it comes, with another output; once for a result of the library, once for the
// caller's.
inline void time_case(Clock& clock, const std::string& name, const Timed& timed,
                      Reduction reduction, double bytes, bool bound = false) {
  if (!std::regex_search(name, selected_names)) return;
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
  for (int in_place = 0; in_place <= (bound ? 1 : 0); ++in_place)
    clock.report(name + (in_place ? ", bound" : ""), bytes, [&](cuda::Queue& queue) {
      if (timed.nd)
        cuda::scatter_nd(tuples, input.get(), indices.get(), updates.get(), output.get(), !in_place,
                         queue);
      else
        cuda::scatter_elements(elements, input.get(), indices.get(), updates.get(), output.get(),
                               !in_place, queue);
    });
}

inline Timed plane(Order order, int axis, DataType type) {
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

inline Timed line(Order order, int bits, Int count, DataType type) {
  Timed timed;
  timed.input = packed_tensor(type, size_of(type), {Int{1} << bits});
  timed.updates = packed_tensor(type, size_of(type), {count});
  timed.indices = packed_tensor(DataType::int64, 8, {count});
  timed.index = positions(order, count, bits, 1);
  return timed;
}

inline Timed rows(Order order, int bits, Int count, Int width) {
  Timed timed = line(order, bits, count, DataType::float32);
  timed.nd = true;
  timed.input = packed_tensor(DataType::float32, 4, {Int{1} << bits, width});
  timed.updates = packed_tensor(DataType::float32, 4, {count, width});
  timed.indices = packed_tensor(DataType::int64, 8, {count, 1});
  return timed;
}

inline Timed scalars(Order order, Int count) {
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

inline double traffic(const Timed& timed) {
  return static_cast<double>(2 * timed.input.layout.count() * timed.input.element_size +
                             timed.updates.layout.count() * timed.updates.element_size) +
         8 * static_cast<double>(timed.index.size());
}

// The same indices for several types and reductions; made only if a selected name needs them.
struct Way {
  const char* name;
  DataType type;
  Reduction reduction;
};
inline constexpr Way kMoves{"", DataType::float32, Reduction::none};
inline constexpr Way kAllWays[] = {kMoves,
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
  bool is_selected = false;
  for (const Way& way : ways) is_selected |= std::regex_search(name_of(way), selected_names);
  if (!is_selected) return;
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

inline void time_all(const char* only) {
  Clock clock;
  selected_names = only;
  clock.copy_rate();
  constexpr Int M = Int{1} << 20;
  const std::initializer_list<Way> all = {kAllWays[0], kAllWays[1], kAllWays[2], kAllWays[3],
                                          kAllWays[4]};
  const std::initializer_list<Way> two = {kAllWays[0], kAllWays[2]};
  for (Order order : {Order::permutation, Order::repeats, Order::ascending, Order::reversed,
                      Order::one, Order::few_indices, Order::window, Order::runs}) {
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

}  // namespace anydml::test::scatters
