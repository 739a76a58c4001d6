#include <cstdlib>
#include <limits>

#include "../fit.hpp"

namespace anydml::python {
namespace {

// What is wrong with a window of one dimension.
const char* outside(Int start, Int size, Int stride, Int most) {
  if (start < 0 || size < 0 || size > most - start) return "a window outside the input";
  if (stride == 0) return "a stride of 0";
  if (stride == std::numeric_limits<Int>::min()) return "a stride of -2^63";
  return nullptr;
}

// numbers: starts, sizes and strides of the window, one for each dimension.
const char* misfit(const Call& call) {
  const Tensor &in = call.operands[0].tensor, &out = call.operands[1].tensor;
  const std::size_t rank = static_cast<std::size_t>(in.layout.rank);
  if (call.number_count != 3 * rank) return kNumbers;
  if (out.layout.rank != in.layout.rank) return kRank;
  if (!same_element(in, out)) return kElements;
  for (std::size_t i = 0; i < rank; ++i) {
    const Int start = call.numbers[i], size = call.numbers[rank + i],
              stride = call.numbers[2 * rank + i];
    const Int wanted = out.layout.sizes[i];
    if (const char* const wrong = outside(start, size, stride, in.layout.sizes[i])) return wrong;
    if (wanted > 0 && (size == 0 || wanted - 1 > (size - 1) / std::abs(stride)))
      return "an output of more than the strides reach";
  }
  return nullptr;
}

// A window with strides is a layout of the input's memory: what is left is a copy.
Layout window_of(const Call& call, Int& first) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  const int rank = in.tensor.layout.rank;
  const Int *const starts = call.numbers, *const sizes = starts + rank,
                   *const strides = sizes + rank;
  Layout window;
  first = 0;
  for (int i = 0; i < rank; ++i) {
    const Int wanted = out.tensor.layout.sizes[i], step = in.tensor.layout.strides[i];
    // From the end of the window where the stride is negative.
    first += (starts[i] + (strides[i] > 0 ? 0 : sizes[i] - 1)) * step;
    window.push(wanted, wanted > 1 ? strides[i] * step : 0);
  }
  return window;
}

Int run(const Call& call) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  if (out.tensor.layout.count() == 0) return -1;
  Int first;
  const Layout window = window_of(call, first);
  const char* const from = static_cast<const char*>(in.data) + first;
  without_gil(out.tensor.layout.count(), [&] {
    copy_elements(out.tensor.layout, out.data, window, from, out.tensor.element_size, call.threads);
  });
  return -1;
}

void enqueue(const Call& call, cuda::Queue& queue) {
  const Operand &in = call.operands[0], &out = call.operands[1];
  if (out.tensor.layout.count() == 0) return;
  Int first;
  const Layout window = window_of(call, first);
  cuda::copy_elements(out.tensor.layout, out.data, window,
                      static_cast<const char*>(in.data) + first, out.tensor.element_size, queue);
}

// arguments: starts, sizes, strides or None.
bool shape(const Quick& quick, Int* numbers, Results& results) {
  const Operand& in = quick.inputs[0];
  const Layout& layout = in.tensor.layout;
  const int rank = layout.rank;
  for (int i = 0; i < 3; ++i) {
    const Integers& given = quick.integers[i];
    const bool ones = i == 2 && given.depth == Integers::none;
    if (!ones && (given.depth != Integers::list || given.count != rank)) return false;
    for (int d = 0; d < rank; ++d) {
      numbers[i * rank + d] = 1;
      if (!ones && !given.get(d, numbers[i * rank + d])) return false;
    }
  }
  begin(results.one[0], "the result", in);
  for (int i = 0; i < rank; ++i) {
    const Int start = numbers[i], size = numbers[rank + i], stride = numbers[2 * rank + i];
    if (outside(start, size, stride, layout.sizes[i]) != nullptr) return false;
    results.one[0].dims[results.one[0].rank++] = size == 0 ? 0 : (size - 1) / std::abs(stride) + 1;
  }
  return true;
}

const Registration slice_window{{
    .name = "slice_window",
    .inputs = 1,
    .outputs = 1,
    .attributes = {{"starts"}, {"sizes"}, {"strides"}},
    .misfit = misfit,
    .run = run,
    .arguments = {{Argument::integers}, {Argument::integers}, {Argument::integers}},
    .shape = shape,
    .enqueue = enqueue,
}};

}  // namespace
}  // namespace anydml::python
