#include <cstdlib>
#include <limits>

#include "python/shape_rules.hpp"
#include "runtime/cuda/plans.hpp"

namespace anydml::python {
namespace {

// Returns the error of a window in one dimension, or null.
const char* window_error(Int start, Int size, Int stride, Int limit) {
  if (start < 0 || size < 0 || size > limit - start) return "a window outside the input";
  if (stride == 0) return "a stride of 0";
  if (stride == std::numeric_limits<Int>::min()) return "a stride of -2^63";
  return nullptr;
}

// numbers: starts, sizes and strides of the window, one for each dimension. An output may have
// fewer elements than the strides reach.
const char* shape(const Call& call, Results& results) {
  const Operand& in = call.operands[0];
  const Layout& layout = in.tensor.layout;
  const Int *const starts = call.numbers, *const sizes = starts + layout.rank,
                   *const strides = sizes + layout.rank;
  Results::One& one = results.one[0];
  begin(one, "the result", in);
  one.at_most = true;
  for (int i = 0; i < layout.rank; ++i) {
    if (const char* const wrong = window_error(starts[i], sizes[i], strides[i], layout.sizes[i]))
      return wrong;
    one.dims[one.rank++] = sizes[i] == 0 ? 0 : (sizes[i] - 1) / std::abs(strides[i]) + 1;
  }
  return nullptr;
}

// A window with strides is a view of the input's memory, which is copied.
template <class Copy>
void copy_window(const Call& call, const Copy& copy) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  if (out.tensor.layout.count() == 0) return;
  const int rank = in.tensor.layout.rank;
  const Int *const starts = call.numbers, *const sizes = starts + rank,
                   *const strides = sizes + rank;
  Layout window;
  const char* from = static_cast<const char*>(in.data);
  for (int i = 0; i < rank; ++i) {
    const Int size = out.tensor.layout.sizes[i], step = in.tensor.layout.strides[i];
    // A negative stride starts at the end of the window.
    from += (starts[i] + (strides[i] > 0 ? 0 : sizes[i] - 1)) * step;
    window.push(size, size > 1 ? strides[i] * step : 0);
  }
  copy(out.tensor.layout, out.data, window, from, out.tensor.element_size);
}

Int run(const Call& call) {
  copy_window(call, [&](const Layout& to, const auto&... others) {
    without_gil(to.count(), [&] { call_kernel<&copy_elements>(to, others..., call.threads); });
  });
  return -1;
}

void enqueue(const Call& call, cuda::Queue& queue) {
  copy_window(call, [&](const auto&... all) { cuda::copy_elements(all..., queue); });
}

// arguments: starts, sizes, strides or None.
bool attribute_numbers(const FunctionCall& call, Int* numbers, Results&) {
  const int rank = call.inputs[0].tensor.layout.rank;
  for (int i = 0; i < 3; ++i) {
    const Integers& values = call.integers[i];
    const bool ones = i == 2 && values.depth == Integers::none;
    if (!ones && (values.depth != Integers::list || values.count != rank)) return false;
    for (int d = 0; d < rank; ++d) {
      numbers[i * rank + d] = 1;
      if (!ones && !values.get(d, numbers[i * rank + d])) return false;
    }
  }
  return true;
}

const Registration slice_window{{
    .name = "slice_window",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"starts", nullptr, Attribute::per_axis},
                   {"sizes", nullptr, Attribute::per_axis},
                   {"strides", nullptr, Attribute::per_axis}},
    .shape = shape,
    .runs = {run, enqueue},
    .arguments = {{Argument::integers}, {Argument::integers}, {Argument::integers}},
    .attribute_numbers = attribute_numbers,
    .variants = cuda::copy_variants,
}};

}  // namespace
}  // namespace anydml::python
