// Cases of the GPU's scatters, and the check of one against the CPU's kernels, every byte of the
// operands.
#pragma once

#include <cmath>

#include "on_device.hpp"

namespace anydml::test::scatters {

inline Outcome outcome;

inline constexpr Reduction kReductions[] = {Reduction::none, Reduction::add, Reduction::mul,
                                            Reduction::min, Reduction::max};

inline void set(Operand& operand, Int flat, uint64_t bits) {
  std::memcpy(operand.at(flat), &bits, static_cast<std::size_t>(operand.tensor.element_size));
}

// A complex number is two floats.
inline DataType part_of(DataType type) {
  return type == DataType::complex64    ? DataType::float32
         : type == DataType::complex128 ? DataType::float64
                                        : type;
}

// Mostly everyday numbers, because otherwise sums are infinities and NaNs only.
inline void fill(Random& random, Operand& operand) {
  const DataType type = part_of(operand.tensor.type);
  if (type == DataType::unknown || !is_float_type(type)) return;  // random bytes
  const int size = size_of(type), parts = operand.tensor.element_size / size;
  const double odd = random.chance(0.2) ? 0.5 : random.chance(0.5) ? 0.05 : 0;
  for (Int i = 0; i < operand.count(); ++i)
    for (int part = 0; part < parts; ++part) {
      const long double number = static_cast<long double>(random.between(-4000, 4000)) / 257;
      const uint64_t bits =
          random.chance(odd) ? odd_bits(random, type) : nearest_bits(number, type);
      std::memcpy(operand.at(i) + part * size, &bits, static_cast<std::size_t>(size));
    }
}

enum class Pattern {
  random,
  ascending,
  descending,
  one,
  few_indices,
  turns,
  sorted_runs,
  window,
  pairs
};
inline constexpr Pattern kPatterns[] = {Pattern::random, Pattern::ascending,   Pattern::descending,
                                        Pattern::one,    Pattern::few_indices, Pattern::turns,
                                        Pattern::window, Pattern::sorted_runs, Pattern::pairs};

inline Int position(Random& random, Pattern pattern, Int i, Int count, Int size) {
  switch (pattern) {
    case Pattern::ascending:
      return i % size;
    case Pattern::descending:
      return size - 1 - i % size;
    case Pattern::one:
      return size / 2;
    case Pattern::few_indices:
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

inline void set_index(Random& random, Operand& indices, Int flat, Int size, Int place) {
  const bool negative = is_signed_type(indices.tensor.type) && random.chance(0.3);
  set(indices, flat, static_cast<uint64_t>(negative ? place - size : place));
}

inline void spoil(Random& random, Operand& indices, Int flat, Int size) {
  const bool wide = indices.tensor.element_size == 8;
  uint64_t value = static_cast<uint64_t>(size + (random.chance(0.5) ? 0 : random.between(0, 99)));
  if (is_signed_type(indices.tensor.type)) {
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

inline void check(Random& random, const Case& c) {
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

}  // namespace anydml::test::scatters
